"""The repository around a store, as far as files show; git is called only if they do not suffice."""

from __future__ import annotations

import os
from contextlib import suppress

from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin
from npuprof.store.folder import Folder
from npuprof.system import find_repository_top
from npuprof.system.files import read_plain_file


def has_release_tags(root: str) -> bool:
    """Return whether a store may have released versions: whether its repository has tags.

    git is called only if this is true. For unusual repository formats, the result is True.
    """
    top = find_repository_top(os.path.realpath(root))
    if not top:
        return False
    git = os.path.join(top, ".git")
    try:
        with suppress(FileNotFoundError):
            if os.path.isfile(git) or os.path.isdir(os.path.join(git, "reftable")) or os.listdir(os.path.join(git, "refs", "tags")):
                return True
        return b" refs/tags/" in read_plain_file(os.path.join(git, "packed-refs"))
    except FileNotFoundError:
        return False
    except OSError:  # git reports why
        return True


def has_sparse_checkout(root: str) -> bool:
    """Return whether a sparse checkout may exclude files of a store: only then git is called."""
    top = find_repository_top(os.path.realpath(root))
    git = os.path.join(top, ".git")
    return bool(top) and (os.path.isfile(git) or os.path.exists(os.path.join(git, "info", "sparse-checkout")))


class BareStore(Folder):
    """The store of a bare repository, by its folder in the tree: revisions only, without a work tree."""

    in_work_tree = False

    def __init__(self, git_folder: str, path: str) -> None:
        super().__init__(os.path.join(git_folder, path))
        self.git_folder = git_folder
        self.label = path

    def profile_path(self, name: str) -> str:
        """Raise NpuprofError: there is no file to open or write."""
        raise NpuprofError([self._build_no_tree_finding(name)])

    def _load_listing(self) -> dict[str, bool]:
        raise NpuprofError([self._build_no_tree_finding("NAME")])

    def _read_profile(self, name: str, asked: Origin | None) -> Profile:
        raise NpuprofError([self._build_no_tree_finding(name)])

    def build_sources_finding(self) -> Finding:
        """Return the finding that a bare repository's sources are those of its commits and cannot be changed here."""
        what = f"the repository {self.git_folder} has no work tree, so no npuprof.toml and no npuprof.lock to read or write"
        hint = "work in a clone, and push; npuprof source sync fetches the commits in the lock of HEAD here"
        return Finding("NP010", what, "They are in its commits only.", hint)

    def _build_no_tree_finding(self, name: str) -> Finding:
        what = f"the repository {self.git_folder} has no work tree"
        hint = f"name a revision: npuprof show {name}@HEAD, npuprof check --rev HEAD"
        return Finding("NP010", what, "Its presets are in its commits only.", hint)


def find_bare_repository(asked: str, environ: dict[str, str] | os._Environ[str]) -> str:
    """Return the bare repository around the current folder, or in ``$GIT_DIR``; an empty string if there is none.

    ``asked`` is the requested store, if any, as a path in the tree. A nearer folder ``profiles`` and a requested folder are
    stores themselves. Repositories inside a work tree do not count, as they may be part of a clone.
    """
    if asked == "builtin:" or os.path.isabs(asked) or os.path.normpath(asked).startswith(os.pardir):
        return ""
    named = environ.get("GIT_DIR", "")
    named = os.path.realpath(named) if named and _is_git_folder(named) else ""
    here = os.getcwd()
    inside = ""
    while True:
        if not asked and os.path.isdir(os.path.join(here, "profiles")):
            return ""
        if not inside and os.path.basename(here) != ".git" and _is_git_folder(here):
            inside = here
        if os.path.exists(os.path.join(here, ".git")):
            inside = inside if os.path.realpath(inside) == named else ""
            break
        above = os.path.dirname(here)
        if above == here:
            break
        here = above
    if inside or not named or (asked and (os.path.basename(named) == ".git" or os.path.isdir(asked))):
        return inside
    return named


def _is_git_folder(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "HEAD")) and all(os.path.isdir(os.path.join(folder, name)) for name in ("objects", "refs"))


def is_own_folder(folder: str) -> bool:
    """Return whether a repository's folder belongs to this user, or is in safe.directory, as git would check."""
    if os.environ.get("GIT_TEST_ASSUME_DIFFERENT_OWNER", "0") in ("", "0") and _is_owned(folder):
        return True
    from npuprof.system import processes

    # (outside any repository: its own settings do not count)
    words = ["config", "--type=path", "-z", "--get-all", "safe.directory"]
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GIT_DIR")}
    try:
        output = processes.finish(processes.start_git(words, os.sep, environ | {**processes.READ.variables}))[0]
    except OSError:
        return False
    safe = False
    for place in os.fsdecode(output).split("\0")[:-1]:
        beneath = place.endswith("/*") and os.path.realpath(folder).startswith(os.path.realpath(place[:-2]) + os.sep)
        safe = bool(place) and (safe or place == "*" or beneath or os.path.realpath(place) == os.path.realpath(folder))
    return safe


def _is_owned(folder: str) -> bool:
    find_user = getattr(os, "geteuid", None)
    if find_user is None:
        return True  # the system has no such ownership
    user, owner = find_user(), os.lstat(folder).st_uid
    return owner == user or (user == 0 and str(owner) == os.environ.get("SUDO_UID"))
