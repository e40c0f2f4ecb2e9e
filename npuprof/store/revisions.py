"""Stores at other times: the only place where npuprof reads a git repository.

Imported only by what was asked for a revision, a version or a history.
"""

from __future__ import annotations

from typing import Any

from npuprof.model import Finding, NpuprofError, Origin
from npuprof.store.repository import Repository, Version, shorten_commit
from npuprof.store.revision import Revision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import Profile


def find_repository(home: Any) -> Repository:
    """Return the repository around a store, found once. Raises NpuprofError where there is none."""
    if isinstance(home, Revision):
        return home.repository
    root = getattr(home, "root", None)
    if root is None:
        what = f"{getattr(home, 'label', 'this store')} has no revisions"
        raise NpuprofError([Finding("NP021", "error", what, "Revisions are those of a git repository.", "leave out the revision")])
    if home.history is None:
        home.history = Repository(root)
    found: Repository = home.history
    return found


def load_revision(home: Any, commit: str) -> Revision:
    """Return a store as it was at a commit (its full id), read once."""
    return load_repository_revision(find_repository(home), commit)


def load_repository_revision(repository: Repository, commit: str) -> Revision:
    """Return the store of a repository as it was at a commit (its full id), read once.

    Where the store's folder was not there then, it is the folder that the store of the last commit came from.
    """
    known = repository.revisions.get(commit)
    if not isinstance(known, Revision):
        made = Revision(repository, commit)
        head = None if made.files else repository.git.read_objects(["HEAD"])[0]
        if head and head[0] != commit:
            from npuprof.store.commits import find_former_folder

            place = find_former_folder(repository, commit, head[0])
            made = made if place is None else Revision(repository.with_store_prefix(place), commit)
        repository.revisions[commit] = known = made
    return known


def load_profile_at_revision(home: Any, reference: str, asked: Origin | None = None) -> tuple[Profile, str]:
    """Return the profile that ``NAME@REV`` names in a store, and the name to show: ``bert@1.2.0``, ``bert@abc1234``.

    Raises NpuprofError.
    """
    name, _, revision = reference.partition("@")
    commit, shown = find_repository(home).resolve_revision(name, revision, asked)
    return load_revision(home, commit).profile(name, asked), f"{name}@{shown}"


__all__ = [
    "Repository",
    "Revision",
    "Version",
    "find_repository",
    "load_profile_at_revision",
    "load_repository_revision",
    "load_revision",
    "shorten_commit",
]
