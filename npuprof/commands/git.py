"""``git install``, ``uninstall``, ``status``: the drivers in git's configuration, and the attributes that call them."""

from __future__ import annotations

import os
import sys

from npuprof import store
from npuprof.commands.flags import one_of
from npuprof.model import Finding, NpuprofError
from npuprof.report import format_json_answer, output
from npuprof.store.git import Git

_NOTE = "# npuprof git install: presets are compared and merged by key"
_USE = "diff=npuprof merge=npuprof"


def _settings() -> dict[str, str]:
    """Return the configuration. Where npuprof is gone or dies, each command does what git would do without it."""
    call = _command()
    plain = 'git --no-pager diff --no-index --no-ext-diff -- "$2" "$5"'
    return {
        "diff.npuprof.textconv": f'f() {{ {call} git textconv -- "$1" 2>/dev/null || cat -- "$1"; }}; f',
        "diff.npuprof.command": f'f() {{ {call} git diff-driver -- "$@" || {plain}; return 0; }}; f',
        "merge.npuprof.name": "presets by key and list element",
        "merge.npuprof.driver": f'f() {{ {call.replace("%", "%%")} git merge-driver -- "$@"; c=$?; [ $c -lt 2 ] && return $c; '
        'git merge-file -L ours -L base -L theirs "$2" "$1" "$3"; [ $? -eq 0 ]; }; f %O %A %B %P %L',
    }  # fmt: skip


def _command() -> str:
    """Return how to call this npuprof from a shell: by its whole path, since git may run where PATH is another."""
    from shlex import quote

    script = os.path.join(os.path.dirname(sys.executable), "npuprof")
    if os.access(script, os.X_OK):
        return quote(script)
    return f"{quote(sys.executable)} -P -m npuprof"


def install_drivers(everywhere: bool, store_: str | None) -> int:
    """Write the configuration and the attributes; what is there already stays."""
    git, scope = _git(everywhere), _scope(everywhere)
    path, pattern = _attributes(git, everywhere, store_)
    done = []
    for name, value in _settings().items():
        if _value(git, scope, name) != value:
            git.run_command("config", scope, name, value)
            done.append(name)
    old = _content(path)
    line = f"{pattern} {_USE}"
    if line not in old.replace("\r", "").split("\n"):
        end = "\r\n" if "\r\n" in old else "\n"
        gap = "" if not old or old.endswith("\n") else end
        output.make_folder(os.path.dirname(path))
        output.write_files_atomically({path: f"{old}{gap}{_NOTE}{end}{line}{end}".encode(errors="surrogateescape")})
        done.append(path)
    place = "all repositories of this user" if everywhere else git.folder
    output.write_to_stderr(f"npuprof: {'set up for' if done else 'already set up for'} {place}" + "".join(f"\n  {name}" for name in done))
    if not everywhere and path in done:
        output.write_to_stderr("npuprof: commit .gitattributes; everybody who runs 'npuprof git install' then has the drivers")
    return 0


def uninstall_drivers(everywhere: bool, store_: str | None) -> int:
    """Take away what ``install_drivers`` wrote, and nothing else."""
    git, scope = _git(everywhere), _scope(everywhere)
    path, pattern = _attributes(git, everywhere, store_)
    done = []
    for name in _settings():
        if _value(git, scope, name) is not None:
            git.run_command("config", scope, "--unset-all", name)
            done.append(name)
    old = _content(path)
    lines = old.splitlines(keepends=True)
    ours = [line.strip() in (_NOTE, f"{pattern} {_USE}") for line in lines]
    for index, line in enumerate(lines[:-1]):
        if line.strip() == _NOTE and lines[index + 1].rstrip().endswith(f" {_USE}"):
            ours[index + 1] = True
    kept = [line for line, gone in zip(lines, ours, strict=True) if not gone]
    if kept != lines:
        if kept:
            output.write_files_atomically({path: "".join(kept).encode(errors="surrogateescape")})
        else:
            os.unlink(path)
        done.append(path)
    where = "for all repositories of this user" if everywhere else "for this repository alone"
    output.write_to_stderr(f"npuprof: {'removed' if done else f'nothing was set up {where}'}" + "".join(f"\n  {name}" for name in done))
    return 0


def show_status(store_: str | None, format_: str, path: str | None) -> int:
    """Print which drivers are configured, and whether the presets of the store use them."""
    one_of("--format", format_, ("text", "json"))
    git = _git(False)
    wanted = _settings()
    rows: dict[str, str] = {}
    for name, value in wanted.items():
        here, user = _value(git, "--local", name), _value(git, "--global", name)
        found = here if here is not None else user
        where = "this repository" if here is not None else "this user"
        rows[name] = "missing" if found is None else where if found == value else f"{where}, by another npuprof"
    sample = _sample(git, store_)
    said = git.run_command("check-attr", "-z", "diff", "merge", "--", sample).decode(errors="replace").split("\0")
    uses = dict(zip(said[1::3], said[2::3], strict=False))
    for name in ("diff", "merge"):
        rows[f"attribute {name}"] = "set" if uses.get(name) == "npuprof" else "missing"
    whole = not any("missing" in state for state in rows.values())
    if format_ == "json":
        output.write_answer(format_json_answer({"schema": "npuprof.git-status/1", "complete": whole, "parts": rows}), path)
    else:
        width = max(map(len, rows))
        output.write_answer("".join(f"{name:<{width}}  {state}\n" for name, state in rows.items()), path)
        output.write_to_stderr("npuprof: complete" if whole else "npuprof: not complete; npuprof git install sets up what is missing")
    return 0 if whole else 1


def _scope(everywhere: bool) -> str:
    return "--global" if everywhere else "--local"


def _git(everywhere: bool) -> Git:
    here = os.getcwd()
    if everywhere:
        return Git(here)
    return Git(Git(here).run_command("rev-parse", "--show-toplevel").decode(errors="surrogateescape").removesuffix("\n"))


def _value(git: Git, scope: str, name: str) -> str | None:
    code, value, _ = git.try_command("config", scope, "--get", name)
    return value.decode(errors="surrogateescape").removesuffix("\n") if code == 0 else None


def _attributes(git: Git, everywhere: bool, store_: str | None) -> tuple[str, str]:
    """Return the file of attributes, and the pattern of the presets in it."""
    if everywhere:
        given = _value(git, "--global", "core.attributesFile")
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
        return os.path.expanduser(given or os.path.join(base, "git", "attributes")), "**/profiles/**/*.toml"
    return os.path.join(git.folder, ".gitattributes"), _pattern(_below(git, store_))


def _below(git: Git, store_: str | None) -> str:
    """Return the path of the store below the top of the repository. Raises NpuprofError where it is elsewhere."""
    try:
        root = store.find_store(store_, os.environ).root
    except NpuprofError:
        if store_ or os.environ.get("NPUPROF_STORE"):
            raise
        return "profiles"
    below = os.path.relpath(os.path.realpath(root), os.path.realpath(git.folder))
    if below == ".." or below.startswith(f"..{os.sep}"):
        what = f"the store {root} is not in the repository {git.folder}"
        raise NpuprofError(
            [Finding("NP925", "error", what, "Attributes hold below the file they stand in.", "run it in the store's repository")]
        )
    return below.replace(os.sep, "/")


def _pattern(below: str) -> str:
    """Return the pattern of gitattributes for the presets below a folder; what it would read as more than a name is escaped."""
    special = "".join(f"\\{char}" if char in "\\*?[]" else char for char in below)
    pattern = f"{special}/**/*.toml" if below != "." else "**/*.toml"
    if any(char in pattern for char in ' \t"') or pattern[0] in "#!":
        inner = pattern.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        return f'"{inner}"'
    return pattern


def _sample(git: Git, store_: str | None) -> str:
    below = _below(git, store_)
    return f"{'' if below == '.' else below + '/'}preset.toml"


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except OSError as error:
        what = f"cannot read {path}: {str(error.strerror).lower()}"
        raise NpuprofError([Finding("NP003", "error", what, "", "check the path and its permissions")]) from None
