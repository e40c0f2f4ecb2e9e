"""The store at successive commits behind a tip."""

from __future__ import annotations

from npuprof import document
from npuprof.document.profile import Profile, ProfileSource
from npuprof.model import TYPE_CHECKING, NpuprofError, Origin, build_error
from npuprof.store.base import read_once
from npuprof.store.gitstore.commits import ReadAhead
from npuprof.store.gitstore.repository import CLASH, TreeFile
from npuprof.store.gitstore.revisions import StoreRepository
from npuprof.store.layout import list_project_paths

if TYPE_CHECKING:
    from npuprof.store.base import ProfileOrError
    from npuprof.store.gitstore import revisions
    from npuprof.store.sources.opening import Sources
    from npuprof.store.versions import Version

_PROFILES = 400  # kept for the next commits


class Snapshots(ProfileSource):
    """The store at one commit after another.

    ``files`` are those of the current ``commit``, ``layout`` locates the presets.
    """

    def __init__(
        self, repository: StoreRepository, tip: str, release: Version | None = None
    ) -> None:
        self.repository = repository
        self.commit = tip
        self.ahead = ReadAhead(repository.git)
        self._release = release
        self.files: dict[str, TreeFile] = {}
        self.layout = repository.find_layout(tip)
        self._tip = tip
        self._profiles: dict[tuple[str, str, str], ProfileOrError] = {}
        self._project_files: dict[str, tuple[str, ...]] = {}
        self._sources: dict[tuple[str, ...], Sources] = {}

    def pin_parent(self, reference: str, requested: Origin | None) -> revisions.Pin:
        """Return the target of a reference with an @, seen from the current commit.

        Raises NpuprofError.
        """
        # the records of a tag are those of its own commit
        release = self._release if self.commit == self._tip else None
        return self.repository.find_pin(reference, requested, release, seen_from=self.commit)

    @property
    def sources(self) -> Sources:
        """The sources of the current commit. Raises NpuprofError."""
        files = self._find_project_files(self.commit)
        if files not in self._sources:
            from npuprof.store.sources.opening import read_sources_at

            self._sources[files] = read_sources_at(
                self.repository, self.commit, self.layout.prefix, None
            )
        return self._sources[files]

    def _find_project_files(self, commit: str) -> tuple[str, ...]:
        """Return the ids of npuprof.toml and npuprof.lock at a commit."""
        if commit not in self._project_files:
            paths = list_project_paths(self.layout.prefix)
            files = self.repository.git.read_objects([f"{commit}:{path}" for path in paths])
            self._project_files[commit] = tuple(file.oid if file else "" for file in files)
        return self._project_files[commit]

    def sees_same_versions(self, first: str, second: str) -> bool:
        """Return whether every range and source resolves the same at two commits.

        Raises NpuprofError.
        """
        if self._find_project_files(first) != self._find_project_files(second):
            return False
        # at the tip, references resolve as the tag records, and not by reachable versions
        if self._release and self._tip in (first, second):
            return first == second
        return self.repository.sees_same_versions(first, second)

    def profile(self, name: str, referrer: Origin | None = None) -> Profile:
        """Return a profile at the current commit. Raises NpuprofError."""
        if name not in self.files:
            assert referrer, "the preset itself has been looked for"
            what = f"{referrer.profile} extends {name!r}, which was not there"
            raise build_error(
                "NP101", what, "", "", referrer, "profile.extends", (referrer.profile,)
            )
        file = self.files[name]
        if file.mode == CLASH:
            paths = (self.layout.path_of(name), self.layout.path_of(name, True))
            from npuprof.store import problems

            raise NpuprofError(problems.build_clash_finding(name, paths, referrer))
        from npuprof.store.gitstore import revisions

        target = name
        if file.is_link:
            target = revisions.Revision(self.repository, self._tip, self.files).trace_links(name)[
                -1
            ]
        oid = self.files[target].oid
        if len(self._profiles) > _PROFILES:
            self._profiles.clear()
        path = self.layout.path_of(name, file.outside)

        def read() -> Profile:
            return Profile(
                document.parse_document(name, path, self.ahead.read_content(target, oid)),
                # equal content has one key, so that commits share what is computed from it
                key=f"{path}@{oid}",
                home=self,
            )

        return read_once(self._profiles, (path, name, oid), read)
