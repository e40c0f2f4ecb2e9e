"""Stores at other times: the only place where npuprof reads a git repository.

Imported only by what was asked for a revision, a version or a history.
"""

from __future__ import annotations

from typing import Any

from npuprof.model import Finding, NpuprofError, Origin
from npuprof.store.repository import Repository, Version, short
from npuprof.store.revision import Revision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import Profile


def of(home: Any) -> Repository:
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


def at(home: Any, commit: str) -> Revision:
    """Return a store as it was at a commit (its full id), read once."""
    return at_repository(of(home), commit)


def at_repository(repository: Repository, commit: str) -> Revision:
    """Return the store of a repository as it was at a commit (its full id), read once.

    Where the store's folder was not there then, it is the folder that the store of the last commit came from.
    """
    known = repository.revisions.get(commit)
    if not isinstance(known, Revision):
        made = Revision(repository, commit)
        head = None if made.files else repository.git.read(["HEAD"])[0]
        if head and head[0] != commit:
            from npuprof.store.commits import former

            place = former(repository, commit, head[0])
            made = made if place is None else Revision(repository.moved(place), commit)
        repository.revisions[commit] = known = made
    return known


def profile(home: Any, reference: str, asked: Origin | None = None) -> tuple[Profile, str]:
    """Return the profile that ``NAME@REV`` names in a store, and the name to show: ``bert@1.2.0``, ``bert@abc1234``.

    Raises NpuprofError.
    """
    name, _, revision = reference.partition("@")
    commit, shown = of(home).find(name, revision, asked)
    return at(home, commit).profile(name, asked), f"{name}@{shown}"


__all__ = ["Repository", "Revision", "Version", "at", "at_repository", "of", "profile", "short"]
