"""git hooks: on a server, and after a merge or rebase.

git calls no driver for errors across files.
"""

from __future__ import annotations

import os
import shlex

from npuprof.hosting.git_drivers import find_command
from npuprof.model import Finding, NpuprofError, Place, build_error
from npuprof.store.gitstore.objects import Git, read_path, require_no_links_out
from npuprof.system import expand_home, find_real_folder, is_below, writing
from npuprof.system.files import make_folder, read_file_content
from npuprof.system.locks import lock_files
from npuprof.system.tree import Tree
from npuprof.system.writing import PlannedWrite

#: The hooks of a clone, and that of a server.
HOOKS = ("post-merge", "post-rewrite")
SERVER_HOOK = "pre-receive"


#: How each hook calls npuprof, and the comment line before the call.
_CALLS = {
    "post-merge": 'git after merge -- "$@" || :',
    "post-rewrite": 'git after rewrite -- "$@" || :',
    SERVER_HOOK: "git receive || exit 1",
}
_COMMENTS = {
    **dict.fromkeys(HOOKS, "# npuprof git install --hook: what joining two sides breaks is told"),
    SERVER_HOOK: "# npuprof git install --server: a push of presets with errors is not taken",
}
#: Passes the input of a foreign hook first to npuprof, which reads all of it, and then to the rest
#: of that hook.
_STORE_INPUT = 'pushed=$(mktemp); cat > "$pushed"; exec < "$pushed"'
_REPEAT_INPUT = 'exec < "$pushed"; rm "$pushed"'
#: Parts of the lines that call npuprof, also in hooks of older npuprofs.
_OWN_CALLS = (" git after ", " git receive")


def format_call(name: str) -> str:
    """Return the hook line that calls npuprof."""
    return f"{find_command()} {_CALLS[name]}"


def find_hook(git: Git, name: str) -> str:
    """Return the path of a hook, respecting ``core.hooksPath``. Raises NpuprofError."""
    output = git.writing().run_command("rev-parse", "--git-path", f"hooks/{name}")
    path = output.decode(errors="surrogateescape").removesuffix("\n")
    return os.path.join(git.folder, expand_home(path))


def reject_outside_hook(git: Git, path: str) -> None:
    """Raise NpuprofError (NP941) if a repository's own configuration puts its hooks outside of it.

    A clone may be malicious.
    """
    common = reject_foreign_folder(git)
    result = git.writing().try_command(
        "config", "--show-scope", "-z", "--get-all", "core.hooksPath"
    )
    scopes = os.fsdecode(result.output).split("\0")[:-1:2]  # scope, value, scope, ...
    if scopes and scopes[-1] not in ("local", "worktree"):
        return  # the user's own setting
    if is_below(path, git.folder) or is_below(path, common):
        return
    elsewhere = find_real_folder(path)
    what = f"the repository {git.folder} has its hooks elsewhere: {elsewhere}"
    why = (
        "Its own configuration (core.hooksPath) or a link says so, which a clone or an archive may "
        "have brought."
    )
    hint = f"remove the link {path}"
    if scopes:
        hint = "unset it: git config --local --unset core.hooksPath; the --global value is used"
    raise build_error("NP941", what, why, hint)


def reject_foreign_folder(git: Git) -> str:
    """Return the common git folder of a repository's work trees, with its configuration and hooks.

    Raises NpuprofError (NP941) if it or ``.git`` leads to a folder that does not know this work
    tree, as in an unpacked archive.
    """
    top = git.bare or git.top
    inside = os.path.join(git.top, ".git")
    require_no_links_out(top)
    folder = _ask_folder(git, top, "--git-dir")
    common = _ask_folder(git, top, "--git-common-dir")
    is_main = os.path.realpath(common) == os.path.realpath(folder)
    if not is_main and not is_below(folder, os.path.join(common, "worktrees")):
        link = os.path.join(folder, "commondir")
        what = f"{link} leads to another repository: {common}"
        why = "A clone or an archive may have brought it, and that repository would be changed."
        hint = f"remove it: rm {shlex.quote(link)}"
        raise build_error("NP941", what, why, hint, where=Place(link))
    if git.bare or (os.path.isdir(inside) and not os.path.islink(inside)):
        return common
    if is_below(folder, git.top) or os.path.realpath(inside) in _list_work_trees(git, folder):
        return common
    what = f"{inside} leads to {folder}, which knows nothing of {git.top}"
    why = (
        "A clone or an archive may have brought it, and another repository of yours would be "
        "changed."
    )
    hint = (
        f"where that is right, say so there: git --git-dir={shlex.quote(folder)} config "
        f"core.worktree {shlex.quote(git.top)}"
    )
    raise build_error("NP941", what, why, hint, where=Place(inside))


def _ask_folder(git: Git, top: str, flag: str) -> str:
    """Return the folder that ``git rev-parse`` prints for a flag."""
    return os.path.join(top, os.fsdecode(git.run_command("rev-parse", flag).rstrip(b"\n")))


def _list_work_trees(git: Git, folder: str) -> list[str]:
    """Return the real paths of ``.git`` in the work trees that a git folder knows.

    git worktree writes them into the file gitdir, submodules into the setting core.worktree.
    """
    known = [read_path(os.path.join(folder, "gitdir")).rstrip("\n")]
    config = os.path.join(folder, "config")
    output = (
        git.writing().try_command("config", f"--file={config}", "--get", "core.worktree").output
    )
    if output:
        known.append(os.path.join(folder, os.fsdecode(output.rstrip(b"\n")), ".git"))
    return [os.path.realpath(path) for path in known if path]


def judge_hook(path: str, name: str) -> str:
    """Return the state of a hook in words, such as ``set`` or ``missing``.

    The others are ``not executable``, ``by another npuprof`` and ``somebody else's``. Raises
    NpuprofError.
    """
    text = _read_hook(path)
    if text is None:
        return "missing"
    if format_call(name) in text.splitlines():
        return "set" if os.access(path, os.X_OK) else "not executable"
    return "by another npuprof" if _COMMENTS[name] in text else "somebody else's"


def write_hook(path: str, name: str) -> None:
    """Write a missing hook, or update npuprof's; other lines in it stay. Raises NpuprofError."""
    make_folder(os.path.dirname(path))
    with lock_files(path):
        _write_locked_hook(path, name)
    folder, last = os.path.split(os.path.realpath(path))
    Tree(folder).make_executable(last)


def _write_locked_hook(path: str, name: str) -> None:
    known = writing.read_known_file(path)
    old = _read_hook(path)
    comment = _COMMENTS[name]
    call = format_call(name)
    if old is None:
        lines = ["#!/bin/sh", comment, call]
    else:
        lines = old.splitlines()
        if call not in lines:  # another npuprof's: replaced at its index
            index = lines.index(comment)
            lines = _drop_own_lines(lines, comment)
            lines[index:index] = [comment, call]
    _write_lines(path, lines, known)


def _write_lines(path: str, lines: list[str], known: bytes | None) -> None:
    """Write the lines of a hook; without any, remove it."""
    content = "\n".join([*lines, ""]).encode(errors="surrogateescape") if lines else None
    writing.write_planned_files([PlannedWrite(path, content, known)])


def remove_hook(path: str, name: str) -> bool:
    """Remove npuprof's lines from a hook, and the hook if nothing else is left.

    Return whether there were any.
    """
    with lock_files(path):
        known = writing.read_known_file(path)
        comment = _COMMENTS[name]
        lines = (_read_hook(path) or "").splitlines()
        if comment not in lines:
            return False
        lines = _drop_own_lines(lines, comment)
        is_empty = all(line.strip() in ("", "#!/bin/sh") for line in lines)
        _write_lines(path, [] if is_empty else lines, known)
    return True


def build_foreign_hook_finding(path: str, name: str) -> Finding:
    """Return the finding for a foreign hook, with the line to add to it."""
    why = "npuprof never changes an existing hook."
    hint = f"add this line to it: {format_call(name)}"
    if name in (SERVER_HOOK, "post-rewrite"):
        hint += (
            f"; where it reads its input itself, with {_STORE_INPUT} on a line before, and "
            f"{_REPEAT_INPUT} on one after"
        )
    return Finding("NP923", f"{path} exists already, and is not npuprof's", why, hint)


def _drop_own_lines(lines: list[str], comment: str) -> list[str]:
    """Return lines without npuprof's comment and, if it follows, the call."""
    index = lines.index(comment)
    after = lines[index + 1 :]
    if after and any(call in after[0] for call in _OWN_CALLS):
        after = after[1:]
    return lines[:index] + after


def _read_hook(path: str) -> str | None:
    if not os.path.lexists(path):
        return None
    try:
        return read_file_content(path).decode(errors="surrogateescape")
    except NpuprofError:
        if os.path.islink(path) and not os.path.exists(path):
            return ""
        raise
