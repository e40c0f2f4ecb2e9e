"""The repository around a store, as far as files show.

Git is called only if they do not suffice.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cached_property

from npuprof.document.profile import Profile
from npuprof.model import TYPE_CHECKING, Finding, NpuprofError, Origin, build_error
from npuprof.store.folder import Folder
from npuprof.system import find_repository_top
from npuprof.system.files import read_plain_file

if TYPE_CHECKING:
    from npuprof.store.gitstore.revisions import StoreRepository


def has_release_tags(root: str) -> bool:
    """Return whether a store may have released versions: whether its repository has tags.

    git is called only if this is true. For unusual repository formats, the result is True.
    """
    top = find_repository_top(root)
    if not top:
        return False
    git = os.path.join(top, ".git")
    try:
        with suppress(FileNotFoundError):
            if (
                # a linked work tree or submodule, and the reftable format: only git finds their
                # tags
                os.path.isfile(git)
                or os.path.isdir(os.path.join(git, "reftable"))
                or os.listdir(os.path.join(git, "refs", "tags"))
            ):
                return True
        # git moves tags there with git pack-refs and git gc
        return b" refs/tags/" in read_plain_file(os.path.join(git, "packed-refs"))
    except FileNotFoundError:
        return False
    except OSError:  # git reports why
        return True


def has_sparse_checkout(root: str) -> bool:
    """Return whether a sparse checkout may exclude files of a store: only then git is called."""
    top = find_repository_top(root)
    git = os.path.join(top, ".git")
    return bool(top) and (
        os.path.isfile(git) or os.path.exists(os.path.join(git, "info", "sparse-checkout"))
    )


def explain_missing_preset(home: Folder, name: str, error: NpuprofError) -> NpuprofError:
    """Return the error for a missing preset, noting if the name is a revision or a file."""
    finding = error.findings[0]
    if (
        len(error.findings) != 1
        or finding.code not in ("NP004", "NP008", "NP023")
        # with an origin, the name was written in a preset and not on the command line
        or finding.origin is not None
    ):
        return error
    if _is_revision(home, name):
        hint = f"npuprof diff --rev {name} compares the whole store"
        if ".." not in name:
            hint = (
                f"NAME@{name} is a preset as it was then; npuprof check --rev {name} checks the "
                f"whole store, {hint}"
            )
        return build_error("NP008", f"{name!r} is a revision, and no preset", finding.why, hint)
    if has_sparse_checkout(home.root):
        hint = "if git keeps it out of the folder: git sparse-checkout add brings it in"
        return NpuprofError(finding._replace(hint=hint))
    for folder in (name, f"{home.label}/{name}"):
        if os.path.isdir(folder):
            hint = f"npuprof list lists presets, npuprof scan {folder} reads scripts"
            return build_error("NP008", f"{name!r} is a folder, and no preset", "", hint)
    if os.path.isfile(name):
        hint = (
            f"{name} is a file: npuprof scan {name} reads a script, npuprof import {name} converts "
            "it"
        )
        return NpuprofError(finding._replace(hint=hint))
    return error


def _is_revision(home: Folder, text: str) -> bool:
    """Return whether git knows a revision, or both ends of a range."""
    ends = [end for end in re.split(r"\.{2,3}", text) if end]
    # a path such as ../base is no range
    if not ends or len(ends) > 2 or text.startswith(("-", ".", "/")) or not home.in_work_tree:
        return False
    with suppress(NpuprofError):
        return all(map(home.repository.has_commit, ends))
    return False


class BareStore(Folder):
    """The store of a bare repository, by its folder in the tree: revisions only."""

    in_work_tree = False

    def __init__(self, git_folder: str, path: str) -> None:
        super().__init__(os.path.join(git_folder, path))
        self.git_folder = git_folder
        self.label = path

    @cached_property
    def repository(self) -> StoreRepository:
        """The bare repository."""
        from npuprof.store.gitstore.revisions import StoreRepository

        return StoreRepository(self.root, self.git_folder)

    def profile_path(self, name: str) -> str:
        """Raise NpuprofError: there is no file to open or write."""
        raise self._build_no_tree_error(name)

    def _load_listing(self) -> dict[str, bool]:
        raise self._build_no_tree_error("NAME")

    def _read_profile(self, name: str, requested: Origin | None) -> Profile:
        raise self._build_no_tree_error(name)

    def build_sources_finding(self) -> Finding:
        """Return the finding that the sources of a bare repository cannot be changed here."""
        what = (
            f"the repository {self.git_folder} has no work tree, so no npuprof.toml and no "
            "npuprof.lock to read or write"
        )
        hint = (
            "work in a clone, and push; npuprof source sync "
            "fetches the commits in the lock of HEAD here"
        )
        return Finding("NP010", what, "They are in its commits only.", hint)

    def _build_no_tree_error(self, name: str) -> NpuprofError:
        what = f"the repository {self.git_folder} has no work tree"
        hint = (
            f"name a revision: npuprof show {name}@HEAD, npuprof check --rev HEAD; or use a clone"
        )
        return build_error("NP010", what, "Its presets are in its commits only.", hint)


def find_bare_repository(requested: str) -> str:
    """Return the bare repository around the current folder, or in ``$GIT_DIR``.

    An empty string if there is none. ``requested`` is the requested store, if any, as a path in the
    tree. A nearer folder ``profiles`` and a requested folder are stores themselves. Repositories
    inside a work tree do not count, as they may be part of a clone.
    """
    if (
        requested == "builtin:"
        or os.path.isabs(requested)
        or os.path.normpath(requested).startswith(os.pardir)
    ):
        return ""
    named = os.environ.get("GIT_DIR", "")
    named = os.path.realpath(named) if named and _is_git_folder(named) else ""
    around = ""  # the nearest bare repository
    folder = os.getcwd()
    while True:
        if not requested and os.path.isdir(os.path.join(folder, "profiles")):
            return ""
        # .git of a work tree looks like a bare repository
        if not around and os.path.basename(folder) != ".git" and _is_git_folder(folder):
            around = folder
        if os.path.exists(os.path.join(folder, ".git")):  # in a work tree
            # a clone may contain a bare repository with settings of its own; $GIT_DIR names it on
            # purpose
            if os.path.realpath(around) != named:
                around = ""
            break
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    if around or not named:
        return around
    is_store = os.path.basename(named) == ".git" or os.path.isdir(requested)
    return "" if requested and is_store else named


def _is_git_folder(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "HEAD")) and all(
        os.path.isdir(os.path.join(folder, name)) for name in ("objects", "refs")
    )
