"""Stores at other times: the only place where npuprof reads a git repository.

Imported only by what was asked for a revision, a version or a history.
"""

from __future__ import annotations

from npuprof.model import Finding, NpuprofError, Origin
from npuprof.store import Folder
from npuprof.store.bare import BareStore
from npuprof.store.repository import Repository, shorten_commit
from npuprof.store.revision import Pin, Revision
from npuprof.store.versions import Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import ProfileSource


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
        made = Revision(repository, commit, find_pin=find_pin)
        head = None if made.has_store else repository.git.read_objects(["HEAD"])[0]
        if head and head.oid != commit:
            from npuprof.store.commits import find_former_folder

            place = find_former_folder(repository, commit, head.oid)
            made = made if place is None else Revision(repository.with_store_prefix(place), commit, find_pin=find_pin)
        repository.revisions[commit] = known = made
    return known


def load_release(home: ProfileSource, version: Version) -> Revision:
    """Return a store as it was where a version was released, with what the tag records. Raises NpuprofError."""
    repository = find_repository(home)
    return _load_view(repository, repository.resolve_commit(version.commit), version)


def load_named_revision(home: ProfileSource, revision: str) -> Revision:
    """Return a store at what a user names: at a release tag with what that records, else at a commit. Raises NpuprofError."""
    repository = find_repository(home)
    commit = repository.resolve_commit(revision)
    version = repository.find_version_of_tag(revision)
    return _load_view(repository, commit, version) if version else load_repository_revision(repository, commit)


def _load_view(repository: Repository, commit: str, release: Version, view: str = "") -> Revision:
    """Return a store at a commit, as a version that the tag of a release knows is seen; without a view the release itself."""
    if release.faults and not view:
        raise NpuprofError([build_unfit_finding(release)])
    plain = load_repository_revision(repository, commit)
    if not release.record.parents:
        return plain
    key = f"{release.tag} {view} {commit}"
    known = repository.revisions.get(key)
    if not isinstance(known, Revision):
        repository.revisions[key] = known = Revision(plain.repository, commit, plain.files, release, view, find_pin)
        known.adopt_texts(plain)
    return known


def find_pin(home: ProfileSource, reference: str, asked: Origin | None = None) -> Pin:
    """Return what ``NAME@REV`` names in a store: what the release says that the store is seen by, else what it is now.

    Raises NpuprofError.
    """
    name, _, revision = reference.partition("@")
    repository = find_repository(home)
    release: Version | None = getattr(home, "release", None)
    recorded = release.record.find_parent(getattr(home, "view", ""), reference) if release else None
    if release and recorded:
        if repository.git.read_objects([recorded.commit])[0] is None:
            raise NpuprofError([_build_lost_parent_finding(release, reference, recorded.commit, asked)])
        label = f"{name}@{recorded.version or shorten_commit(recorded.commit)}"
        there = _load_view(repository, recorded.commit, release, recorded.own_view)
        return Pin(name, recorded.version, recorded.commit, there, label)
    found = repository.resolve_revision(name, revision, asked, getattr(home, "seen_from", ""))
    there = _load_view(repository, found.commit, found.version) if found.version else load_repository_revision(repository, found.commit)
    version = found.version
    return Pin(name, version.number_text if version else "", found.commit, there, f"{name}@{found.label}", version)


def build_unfit_finding(version: Version) -> Finding:
    """Return that a tag cannot be the release that its name says."""
    what = f"the tag {version.name}/v{version.number_text} is malformed: {'; '.join(version.faults)}"
    why = "What a release was made of stands in its tag; npuprof does not guess it."
    return Finding("NP028", what, why, advise_refetch(version))


def advise_refetch(version: Version) -> str:
    """Return how to get a release tag as it was made."""
    tag = f"{version.name}/v{version.number_text}"
    commit = shorten_commit(version.commit)
    return f"fetch the tag anew: git fetch --force origin tag {tag}; what is there now is {version.name}@{commit}"


def _build_lost_parent_finding(release: Version, reference: str, commit: str, asked: Origin | None) -> Finding:
    what = f"{release.name} {release.number_text} was made with {reference} at {shorten_commit(commit)}, which this repository lacks"
    why = "Its tag records the commit; no other stands in for it."
    return Finding("NP022", what, why, f"fetch it: git fetch origin {commit}", asked, "profile.extends" if asked else "")


__all__ = [
    "Pin",
    "Repository",
    "Revision",
    "Version",
    "advise_refetch",
    "build_unfit_finding",
    "find_pin",
    "find_repository",
    "load_named_revision",
    "load_release",
    "load_repository_revision",
    "load_revision",
    "shorten_commit",
]
