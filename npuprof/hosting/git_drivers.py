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
_BESIDE = ("npuprof.toml", "npuprof.lock")


#: A table header, for the hunk lines of a diff; a list element in brackets contains a comma or is
#: not a name.
_HEADER = r"""^[ \t]*(\[\[?[ \t]*["'A-Za-z_-][^]#,]*\]\]?)[ \t]*(#.*)?$"""


def list_settings() -> dict[str, str]:
    """Return the configuration that leaves git's output unchanged.

    If npuprof is missing or fails, git merges by line.
    """
    call = find_command()
    return {
        "diff.npuprof.xfuncname": _HEADER,
        "merge.npuprof.name": "presets by key and list element",
        "merge.npuprof.driver": f"f() {{ {call.replace('%', '%%')} git merge-driver "
        '-- "$@"; c=$?; [ $c -lt 2 ] && return $c; '
        'git merge-file --marker-size="${5:-7}" -L ours -L base -L theirs "$2" "$1" "$3"; [ $? '
        "-eq 0 ]; }; f %O %A %B %P %L",
    }


def list_diff_settings() -> dict[str, str]:
    """Return the configuration of semantic diffs; without npuprof, git shows its own."""
    call = find_command()
    plain = 'git --no-pager diff --no-index --no-ext-diff -- "$2" "$5"'
    return {
        "diff.npuprof.textconv": f'f() {{ {call} git textconv -- "$1" 2>/dev/null || cat -- "$1"; }}; f',
        "diff.npuprof.command": f'f() {{ {call} git diff-driver -- "$@" || {plain}; return 0; }}; f',
    }


def find_command() -> str:
    """Return the shell command of this npuprof, with its full path, since git may have
    another PATH.
    """
    quote = shlex.quote
    script = os.path.join(os.path.dirname(sys.executable), "npuprof")
    if os.access(script, os.X_OK):
        return quote(script)
    return f"{quote(sys.executable)} -P -m npuprof"


def name_scope(everywhere: bool) -> str:
    """Return git config's flag for one repository or the whole user."""
    return "--global" if everywhere else "--local"


def open_git(everywhere: bool) -> Git:
    """Return git at the top of this repository, or in the current folder.

    Raises NpuprofError without a repository.
    """
    here = os.getcwd()
    if everywhere:
        return Git(here)
    return Git(
        Git(here)
        .run_command("rev-parse", "--show-toplevel")
        .decode(errors="surrogateescape")
        .removesuffix("\n")
    )


def open_server_git() -> Git:
    """Return git in the bare repository around this folder.

    Raises NpuprofError if there is none.
    """
    found = find_bare_repository("", os.environ)
    if not found:
        why = "The hook is for servers: it does not accept pushes to a repository with a work tree."
        raise build_error(
            "NP021",
            "--server needs a repository without a work tree, and here is none",
            why,
            "cd presets.git",
        )
    return Git(found, bare=found)


def read_setting(git: Git, scope: str, name: str) -> str | None:
    """Return a git setting, None if it is not set."""
    result = git.try_command("config", scope, "--get", name)
    return (
        result.output.decode(errors="surrogateescape").removesuffix("\n")
        if result.code == 0
        else None
    )


def _refuse_special_configuration() -> None:
    """Raise NpuprofError (NP012) if the user's git configuration is a device or a pipe: git would
    replace it by a file.
    """
    path = os.environ.get("GIT_CONFIG_GLOBAL") or expand_home("~/.gitconfig")
    if is_stream(path):
        why = "git writes a new file and puts it in the place of the old one."
        raise build_write_error(f"git's configuration {path}: it is a device or a pipe", why)


def write_setting(git: Git, scope: str, name: str, value: str | None) -> None:
    """Write a git setting, or remove it. Raises NpuprofError."""
    if scope == "--global":
        _refuse_special_configuration()
    words = ("--unset-all", name) if value is None else ("--replace-all", name, value)
    result = git.try_command("config", scope, *words)
    if result.code:
        raise NpuprofError(build_refusal_finding(result.complaint, git.folder))


def add_attributes(text: str, lines: list[str]) -> str:
    """Return the text of an attributes file with npuprof's lines, unchanged if all are there."""
    missing = [line for line in lines if line not in text.replace("\r", "").split("\n")]
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text or text.endswith("\n") else end
    return f"{text}{gap}{NOTE}{end}{end.join(missing)}{end}" if missing else text


def find_attributes(git: Git, everywhere: bool, store_: str | None) -> tuple[str, list[str]]:
    """Return the attributes file, and npuprof's lines in it: for the presets, and for the files
    next to them.
    """
    if everywhere:
        given = read_setting(git, "--global", "core.attributesFile")
        return expand_home(
            given or os.path.join(find_shared_folder("config") or os.devnull, "git", "attributes")
        ), [
            f"**/profiles/**/*.toml {USE}",
            *(f"{name} {MERGE}" for name in _BESIDE),
        ]
    below = _find_store_path(git, store_)
    above = "" if below == "." else posixpath.dirname(below)
    presets = _quote_pattern(f"{escape_glob(below)}/**/*.toml" if below != "." else "**/*.toml")
    beside = [_quote_pattern(f"/{escape_glob(posixpath.join(above, name))}") for name in _BESIDE]
    return os.path.join(git.folder, ".gitattributes"), [
        f"{presets} {USE}",
        *(f"{pattern} {MERGE}" for pattern in beside),
    ]


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
        raise build_error(
            "NP925",
            what,
            "Attributes apply below the folder of their file.",
            "run it in the store's repository",
        )
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
