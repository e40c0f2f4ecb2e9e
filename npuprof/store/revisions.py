"""Stores at other times: the only place where npuprof reads a git repository.

Imported only by what was asked for a revision, a version or a history.
"""

from __future__ import annotations

from typing import NamedTuple

from npuprof.model import Finding, NpuprofError, Origin
from npuprof.store import Folder
from npuprof.store.bare import BareStore
from npuprof.store.repository import Repository, Version, shorten_commit
from npuprof.store.revision import Revision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import Profile, ProfileSource


class PinnedProfile(NamedTuple):
    """A profile at a revision, and the name to show: ``bert@1.2.0``, ``bert@abc1234``."""

    profile: Profile
    label: str


def find_repository(home: ProfileSource) -> Repository:
    """Return the repository around a store, found once. Raises NpuprofError where there is none."""
    if isinstance(home, Folder) and home.repository is None:
        home.repository = Repository(home.root, home.git_folder if isinstance(home, BareStore) else "")
    found = getattr(home, "repository", None)
    if not isinstance(found, Repository):
        what = f"{getattr(home, 'label', 'this store')} has no revisions"
        raise NpuprofError([Finding("NP021", what, "Revisions are those of a git repository.", "leave out the revision")])
    return found


def load_revision(home: ProfileSource, commit: str) -> Revision:
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
        if head and head.oid != commit:
            from npuprof.store.commits import find_former_folder

            place = find_former_folder(repository, commit, head.oid)
            made = made if place is None else Revision(repository.with_store_prefix(place), commit)
        repository.revisions[commit] = known = made
    return known


def load_profile_at_revision(home: ProfileSource, reference: str, asked: Origin | None = None) -> PinnedProfile:
    """Return the profile that ``NAME@REV`` names in a store. Raises NpuprofError."""
    name, _, revision = reference.partition("@")
    found = find_repository(home).resolve_revision(name, revision, asked)
    return PinnedProfile(load_revision(home, found.commit).profile(name, asked), f"{name}@{found.label}")


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
