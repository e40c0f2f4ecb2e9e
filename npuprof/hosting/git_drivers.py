"""The git configuration of the drivers, and the attributes that enable them."""

from __future__ import annotations

import os
import posixpath
import shlex
import sys

from npuprof.model import NpuprofError, build_error
from npuprof.store.enclosing_repository import find_bare_repository
from npuprof.store.folder import find_store
from npuprof.store.gitstore.objects import Git, build_refusal_finding
from npuprof.store.layout import escape_glob
from npuprof.system import expand_home, find_shared_folder
from npuprof.system.files import build_write_error, is_stream

NOTE = "# npuprof git install: presets are compared and merged by key"
USE = "diff=npuprof merge=npuprof"
#: The attribute of other files next to a store: they are not presets, and git's own diffs suit
#: them.
MERGE = "merge=npuprof"
_PROJECT_FILES = ("npuprof.toml", "npuprof.lock")


#: A table header, for the hunk lines of a diff; a list element in brackets contains a comma or is
#: not a name.
_HEADER = r"""^[ \t]*(\[\[?[ \t]*["'A-Za-z_-][^]#,]*\]\]?)[ \t]*(#.*)?$"""


def list_settings() -> dict[str, str]:
    """Return the configuration that leaves git's output unchanged.

    If npuprof is missing or fails, git merges by line.
    """
    call = find_command().replace("%", "%%")  # git replaces %O, %A and others
    by_line = 'git merge-file --marker-size="${5:-7}" -L ours -L base -L theirs "$2" "$1" "$3"'
    # the driver exits with 0 or 1 for a merge, with or without conflicts
    driver = (
        f'f() {{ {call} git merge-driver -- "$@"; c=$?; [ $c -lt 2 ] && return $c; {by_line}; '
        "[ $? -eq 0 ]; }; f %O %A %B %P %L"
    )
    return {
        "diff.npuprof.xfuncname": _HEADER,
        "merge.npuprof.name": "presets by key and list element",
        "merge.npuprof.driver": driver,
    }


def list_diff_settings() -> dict[str, str]:
    """Return the configuration of semantic diffs; without npuprof, git shows its own."""
    call = find_command()
    plain = 'git --no-pager diff --no-index --no-ext-diff -- "$2" "$5"'
    textconv = f'{call} git textconv -- "$1" 2>/dev/null || cat -- "$1"'
    command = f'{call} git diff-driver -- "$@" || {plain}; return 0'
    return {
        "diff.npuprof.textconv": f"f() {{ {textconv}; }}; f",
        "diff.npuprof.command": f"f() {{ {command}; }}; f",
    }


def find_command() -> str:
    """Return the shell command of this npuprof with its full path: git may have another PATH."""
    script = os.path.join(os.path.dirname(sys.executable), "npuprof")
    if os.access(script, os.X_OK):
        return shlex.quote(script)
    return f"{shlex.quote(sys.executable)} -P -m npuprof"


def name_scope(everywhere: bool) -> str:
    """Return git config's flag for one repository or the whole user."""
    return "--global" if everywhere else "--local"


def open_git(everywhere: bool) -> Git:
    """Return git at the top of this repository, or in the current folder.

    Raises NpuprofError without a repository.
    """
    git = Git(os.getcwd())
    if everywhere:
        return git
    top = git.run_command("rev-parse", "--show-toplevel")
    return Git(top.decode(errors="surrogateescape").removesuffix("\n"))


def open_server_git() -> Git:
    """Return git in the bare repository around this folder.

    Raises NpuprofError if there is none.
    """
    repository = find_bare_repository("")
    if not repository:
        what = "--server needs a repository without a work tree, and here is none"
        why = "The hook is for servers: it does not accept pushes to a repository with a work tree."
        raise build_error("NP021", what, why, "cd presets.git")
    return Git(repository, bare=repository)


def read_setting(git: Git, scope: str, name: str) -> str | None:
    """Return a git setting, None if it is not set."""
    result = git.try_command("config", scope, "--get", name)
    if result.code:
        return None
    return result.output.decode(errors="surrogateescape").removesuffix("\n")


def _reject_special_configuration() -> None:
    """Raise NpuprofError (NP012) if the user's git configuration is a device or a pipe.

    git would replace it by a file.
    """
    path = os.environ.get("GIT_CONFIG_GLOBAL") or expand_home("~/.gitconfig")
    if is_stream(path):
        why = "git writes a new file and puts it in the place of the old one."
        raise build_write_error(f"git's configuration {path}: it is a device or a pipe", why)


def write_setting(git: Git, scope: str, name: str, value: str | None) -> None:
    """Write a git setting, or remove it. Raises NpuprofError."""
    if scope == "--global":
        _reject_special_configuration()
    change = ("--unset-all", name) if value is None else ("--replace-all", name, value)
    result = git.try_command("config", scope, *change)
    if result.code:
        raise NpuprofError(build_refusal_finding(result.complaint, git.folder))


def add_attributes(text: str, lines: list[str]) -> str:
    """Return the text of an attributes file with npuprof's lines, unchanged if all are there."""
    known = text.replace("\r", "").split("\n")
    missing = [line for line in lines if line not in known]
    if not missing:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text or text.endswith("\n") else end
    return f"{text}{gap}{NOTE}{end}{end.join(missing)}{end}"


def find_attributes(git: Git, everywhere: bool, store_: str | None) -> tuple[str, list[str]]:
    """Return the attributes file, and npuprof's lines in it for presets and project files."""
    if everywhere:
        path = read_setting(git, "--global", "core.attributesFile")
        if not path:
            path = os.path.join(find_shared_folder("config") or os.devnull, "git", "attributes")
        lines = [f"**/profiles/**/*.toml {USE}", *(f"{name} {MERGE}" for name in _PROJECT_FILES)]
        return expand_home(path), lines
    below = _find_store_path(git, store_)
    above = "" if below == "." else posixpath.dirname(below)
    presets = _quote_pattern(f"{escape_glob(below)}/**/*.toml" if below != "." else "**/*.toml")
    lines = [f"{presets} {USE}"]
    for name in _PROJECT_FILES:
        pattern = _quote_pattern(f"/{escape_glob(posixpath.join(above, name))}")
        lines.append(f"{pattern} {MERGE}")
    return os.path.join(git.folder, ".gitattributes"), lines


def _find_store_path(git: Git, store_: str | None) -> str:
    """Return the path of the store in the repository. Raises NpuprofError if it is outside."""
    try:
        root = find_store(store_, os.environ).root
    except NpuprofError:
        if store_ or os.environ.get("NPUPROF_STORE"):
            raise
        return "profiles"
    below = os.path.relpath(os.path.realpath(root), os.path.realpath(git.folder))
    if below == ".." or below.startswith(f"..{os.sep}"):
        what = f"the store {root} is not in the repository {git.folder}"
        why = "Attributes apply below the folder of their file."
        raise build_error("NP925", what, why, "run it in the store's repository")
    return below.replace(os.sep, "/")


def _quote_pattern(pattern: str) -> str:
    if any(char in pattern for char in ' \t"') or pattern[0] in "#!":
        inner = pattern.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        return f'"{inner}"'
    return pattern


def name_sample_preset(git: Git, store_: str | None) -> str:
    """Return a possible preset path in the store, to query git for its attributes."""
    below = _find_store_path(git, store_)
    return f"{'' if below == '.' else below + '/'}preset.toml"
