"""The store along the commits behind a tip: its profiles as they were at the commit that is looked at, texts read ahead."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from npuprof import document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin
from npuprof.store import read_once
from npuprof.store.gitstore.commits import Commit, walk_commits
from npuprof.store.gitstore.repository import CLASH, Repository, TreeFile
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.layout import list_project_paths
from npuprof.store.problems import build_clash_finding
from npuprof.store.versions import Version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store import ProfileOrError
    from npuprof.store.sources.reading import Sources

_PROFILES = 400  # kept for the next commits


class SnapshotWalk:
    """The store at one commit after another. ``files`` are those of the ``commit`` that is looked at, ``layout`` says where they are.

    ``members`` names the profiles whose texts are worth reading ahead. ``everything`` has commits walked that do not touch
    the store as well, ``simplified`` leaves out branches that a merge took nothing from. ``view`` is that of the tip, where that was
    asked for as a release.
    """

    view = ""

    def __init__(self, repository: Repository, tip: str, name: str, release: Version | None = None) -> None:
        self.repository = repository
        self.commit = tip
        self.everything = self.simplified = False
        self._release = release
        self.files: dict[str, TreeFile] = {}
        self.layout = repository.find_layout(tip)
        self.members = frozenset([name])
        self._tip = tip
        self._profiles: dict[tuple[str, str, str], ProfileOrError] = {}
        self._texts: dict[str, bytes] = {}
        self._ahead: set[str] = set()
        self._project_files: dict[str, tuple[str, ...]] = {}
        self._sources: dict[tuple[str, ...], Sources] = {}

    def walk_commits(self) -> Iterator[Commit]:
        """Yield the commits; the texts that they need are read in batches."""
        for commits in _split_into_batches(walk_commits(self.repository, self._tip, self.everything, self.layout, self.simplified)):
            self._load_batch(self._find_wanted_texts(commits))
            yield from commits

    @property
    def seen_from(self) -> str:
        """The commit whose tags count for ranges."""
        return self.commit

    @property
    def release(self) -> Version | None:
        """The release that the commit which is looked at was asked for as."""
        return self._release if self.commit == self._tip else None

    @property
    def sources(self) -> Sources:
        """The sources that the commit which is looked at takes presets from. Raises NpuprofError."""
        files = self._find_project_files(self.commit)
        if files not in self._sources:
            from npuprof.store.sources.reading import read_sources_at

            self._sources[files] = read_sources_at(self.repository, self.commit, self.layout.prefix, None)
        return self._sources[files]

    def _find_project_files(self, commit: str) -> tuple[str, ...]:
        """Return the ids of the files that say where presets come from, and at which commits."""
        if commit not in self._project_files:
            read = self.repository.git.read_objects([f"{commit}:{path}" for path in list_project_paths(self.layout.prefix)])
            self._project_files[commit] = tuple(file.oid if file else "" for file in read)
        return self._project_files[commit]

    def sees_same_versions(self, first: str, second: str) -> bool:
        """Return whether every range, and every source, means the same at two commits. Raises NpuprofError."""
        if self._find_project_files(first) != self._find_project_files(second):
            return False
        if self._release and self._tip in (first, second):
            return first == second
        return self.repository.sees_same_versions(first, second)

    def _find_wanted_texts(self, commits: list[Commit]) -> set[str]:
        """Return the ids of what the members were before each of some commits."""
        known = self.members
        return {
            change.old.oid
            for commit in commits
            for changed in commit.changes.values()
            for change in changed
            if change.was in known and change.old
        }

    def _load_batch(self, wanted: set[str]) -> None:
        """Read the texts of a batch of commits; those of the batch before stay, as they are the next ones' last."""
        recent = {oid: text for oid, text in self._texts.items() if oid in self._ahead}
        self._texts = recent | self.repository.read_blobs(wanted)
        self._ahead = wanted

    def load_text(self, oid: str) -> bytes:
        """Return the text of a file by its id. Raises NpuprofError where the repository lacks it."""
        if oid not in self._texts:
            self._texts.update(self.repository.read_blobs([oid]))
            if oid not in self._texts:
                raise NpuprofError([self.repository.git.explain_absence([oid])])
        return self._texts[oid]

    def profile(self, name: str, referrer: Origin | None = None) -> Profile:
        """Return one profile as it was at the commit that is looked at. Raises NpuprofError."""
        if name not in self.files:
            assert referrer is not None, "the preset itself has been looked for"
            what = f"{referrer.profile} extends {name!r}, which was not there"
            raise NpuprofError([Finding("NP101", what, "", "", referrer, "profile.extends", (referrer.profile,))])
        file = self.files[name]
        if file.mode == CLASH:
            paths = (self.layout.path_of(name), self.layout.path_of(name, True))
            raise NpuprofError([build_clash_finding(name, paths, referrer)])
        oid = self.files[Revision(self.repository, self._tip, self.files).follow_links(name)].oid if file.is_link else file.oid
        if len(self._profiles) > _PROFILES:
            self._profiles.clear()
        path = self.layout.path_of(name, file.outside)
        return read_once(self._profiles, (path, name, oid), lambda: self._read_profile(name, path, oid))

    def find_policy(self, name: str) -> None:
        """Return None: presets of a history are not checked."""

    def _read_profile(self, name: str, path: str, oid: str) -> Profile:
        return Profile(document.parse_document(name, path, self.load_text(oid)), key=f"{path}@{oid}", home=self)


def _split_into_batches(commits: Iterator[Commit]) -> Iterator[list[Commit]]:
    """Yield commits in lists: short ones first, so that a few steps of a long history come at once."""
    size = 16
    while some := list(islice(commits, size)):
        yield some
        size = min(8 * size, 8192)
