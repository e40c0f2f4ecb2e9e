"""git hooks: on a server, and after a merge or rebase, as git calls no driver for
errors across files.
"""

from __future__ import annotations

import os
import shlex

from npuprof.hosting.git_drivers import find_command
from npuprof.model import Finding, NpuprofError, Place, build_error
from npuprof.store.gitstore.objects import Git, read_path, require_no_links_out
from npuprof.system import expand_home, is_below, writing
from npuprof.system.files import make_folder, read_file_content
from npuprof.system.locks import lock_folders
from npuprof.system.tree import Tree
from npuprof.system.writing import PlannedWrite

#: The hooks of a clone, and that of a server.
HOOKS = ("post-merge", "post-rewrite")
SERVER_HOOK = "pre-receive"
#: Each hook, with the arguments of its verb and its comment line.
_AFTER = "# npuprof git install --hook: what joining two sides breaks is told"
_CALLS = {
    "post-merge": ('git after merge -- "$@" || :', _AFTER),
    "post-rewrite": ('git after rewrite -- "$@" || :', _AFTER),
    SERVER_HOOK: (
        "git receive || exit 1",
        "# npuprof git install --server: a push of presets with errors is not taken",
    ),
}
#: Passes the input of a foreign hook first to npuprof, which reads all of it, and then to the rest
#: of that hook.
_KEEP_INPUT = 'pushed=$(mktemp); cat > "$pushed"; exec < "$pushed"'
_GIVE_INPUT = 'exec < "$pushed"; rm "$pushed"'
_FOLDERS = ("git-dir", "git-common-dir")
_OWN_WORDS = (" git after ", " git receive")


def format_call(name: str) -> str:
    """Return the hook line that calls npuprof."""
    return f"{find_command()} {_CALLS[name][0]}"


def find_hook(git: Git, name: str) -> str:
    """Return the path of a hook, respecting ``core.hooksPath``. Raises NpuprofError."""
    path = (
        git.writing()
        .run_command("rev-parse", "--git-path", f"hooks/{name}")
        .decode(errors="surrogateescape")
        .removesuffix("\n")
    )
    return os.path.join(git.folder, expand_home(path))


def reject_outside_hook(git: Git, path: str) -> None:
    """Raise NpuprofError (NP941) if a repository's own configuration puts its hooks outside of it:
    a clone may be malicious.
    """
    common = reject_foreign_folder(git)
    said = os.fsdecode(
        git.writing()
        .try_command("config", "--show-scope", "-z", "--get-all", "core.hooksPath")
        .output
    ).split("\0")
    if said[:-1] and said[:-1:2][-1] not in ("local", "worktree"):
        return  # the user's own setting
    if not any(is_below(path, folder) for folder in (git.folder, common)):
        what = (
            f"the repository {git.folder} has its hooks elsewhere: "
            f"{os.path.dirname(os.path.realpath(path))}"
        )
        why = (
            "Its own configuration (core.hooksPath) or a link says "
            "so, which a clone or an archive may have brought."
        )
        hint = f"remove the link {path}"
        if said[:-1]:
            hint = "unset it: git config --local --unset core.hooksPath; the --global value is used"
        raise build_error("NP941", what, why, hint)


def reject_foreign_folder(git: Git) -> str:
    """Return the common git folder of a repository's work trees, with its configuration and hooks.

    Raises NpuprofError (NP941) if it or ``.git`` leads to a folder that does not know this work
    tree, as in an unpacked archive.
    """
    top, inside = git.bare or git.top, os.path.join(git.top, ".git")
    require_no_links_out(top)
    folder, common = (
        os.path.join(top, os.fsdecode(git.run_command("rev-parse", f"--{name}").rstrip(b"\n")))
        for name in _FOLDERS
    )
    if os.path.realpath(common) != os.path.realpath(folder) and not is_below(
        folder, os.path.join(common, "worktrees")
    ):
        link, why = (
            os.path.join(folder, "commondir"),
            "A clone or an archive may have brought it, and that repository would be changed.",
        )
        hint = f"remove it: rm {shlex.quote(link)}"
        raise build_error(
            "NP941", f"{link} leads to another repository: {common}", why, hint, where=Place(link)
        )
    if git.bare or (os.path.isdir(inside) and not os.path.islink(inside)):
        return common
    linked = read_path(os.path.join(folder, "gitdir")).rstrip("\n")
    tree = (
        git.writing()
        .try_command("config", f"--file={os.path.join(folder, 'config')}", "--get", "core.worktree")
        .output
    )
    back = (linked, os.path.join(folder, os.fsdecode(tree.rstrip(b"\n")), ".git") if tree else "")
    if is_below(folder, git.top) or any(
        path and os.path.realpath(path) == os.path.realpath(inside) for path in back
    ):
        return common
    what = f"{inside} leads to {folder}, which knows nothing of {git.top}"
    why = (
        "A clone or an archive may have brought it, and "
        "another repository of yours would be changed."
    )
    hint = (
        f"where that is right, say so there: git --git-dir={shlex.quote(folder)} config "
        f"core.worktree {shlex.quote(git.top)}"
    )
    raise build_error("NP941", what, why, hint, where=Place(inside))


def judge_hook(path: str, name: str) -> str:
    """Return the state of a hook: ``set``, ``missing``, ``by another npuprof``, or
    ``somebody else's``. Raises NpuprofError.
    """
    text = _read_hook(path)
    if text is None:
        return "missing"
    if format_call(name) in text.splitlines():
        return "set" if os.access(path, os.X_OK) else "not executable"
    return "by another npuprof" if _CALLS[name][1] in text else "somebody else's"


def write_hook(path: str, name: str) -> None:
    """Write a missing hook, or update npuprof's; other lines in it stay. Raises NpuprofError."""
    make_folder(os.path.dirname(path))
    with lock_folders([os.path.dirname(os.path.realpath(path))]):
        _write_locked_hook(path, name)
    folder, last = os.path.split(os.path.realpath(path))
    Tree(folder).make_executable(last)


def _write_locked_hook(path: str, name: str) -> None:
    known, old = writing.read_known_file(path), _read_hook(path)
    mark = _CALLS[name][1]
    ours = [mark, format_call(name)]
    if old is None:
        lines = ["#!/bin/sh", *ours]
    else:
        lines = old.splitlines()
        if format_call(name) not in lines:
            place = lines.index(mark)
            lines = _drop_own_lines(lines, mark)
            lines[place:place] = ours
    _write_lines(path, lines, known)


def _write_lines(path: str, lines: list[str], known: bytes | None) -> None:
    """Write the lines of a hook; without any, remove it."""
    content = "\n".join([*lines, ""]).encode(errors="surrogateescape") if lines else None
    writing.write_planned_files([PlannedWrite(path, content, known)])


def remove_hook(path: str, name: str) -> bool:
    """Remove npuprof's lines from a hook, and the hook if nothing else is left.

    Return whether there were any.
    """
    with lock_folders([os.path.dirname(os.path.realpath(path))]):
        known = writing.read_known_file(path)
        lines = (_read_hook(path) or "").splitlines()
        if _CALLS[name][1] not in lines:
            return False
        lines = _drop_own_lines(lines, _CALLS[name][1])
        _write_lines(
            path,
            lines if [line for line in lines if line.strip()] not in ([], ["#!/bin/sh"]) else [],
            known,
        )
    return True


def build_foreign_hook_finding(path: str, name: str) -> Finding:
    """Return the finding for a foreign hook, with the line to add to it."""
    why = "npuprof never changes an existing hook."
    hint = f"add this line to it: {format_call(name)}"
    if name in (SERVER_HOOK, "post-rewrite"):
        hint += (
            f"; where it reads its input itself, with {_KEEP_INPUT} on a line before, and "
            f"{_GIVE_INPUT} on one after"
        )
    return Finding("NP923", f"{path} exists already, and is not npuprof's", why, hint)


def _drop_own_lines(lines: list[str], mark: str) -> list[str]:
    place = lines.index(mark)
    calls = place + 1 < len(lines) and any(words in lines[place + 1] for words in _OWN_WORDS)
    return lines[:place] + lines[place + 1 + calls :]


def _read_hook(path: str) -> str | None:
    if not os.path.lexists(path):
        return None
    try:
        return read_file_content(path).decode(errors="surrogateescape")
    except NpuprofError:
        if os.path.islink(path) and not os.path.exists(path):
            return ""
        raise
