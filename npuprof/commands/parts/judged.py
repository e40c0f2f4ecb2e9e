"""The store that a verb judges, in one context: as it stands in the work tree, or whole at a revision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from npuprof.commands.parts.reading import open_workspace
from npuprof.model import Context, Finding, NpuprofError
from npuprof.resolve.config import Config
from npuprof.store import ReadOnceStore, is_profile_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document import Document
    from npuprof.document.profile import Profile
    from npuprof.store.gitstore.revisions import Revision


class JudgedStore:
    """Presets by name, resolved; ``plainly`` cites those of a revision by their paths alone, as machines want them."""

    def __init__(self, given: str | None, rev: str | None, context: Context, plainly: bool = False) -> None:
        self._workspace = open_workspace(given, context)
        self._past: Revision | None = None
        if rev is not None:
            self._open_revision(rev, plainly)

    @contextmanager
    def stage(self) -> Iterator[None]:
        """Judge what is staged, as the next commit would hold it, for as long as this lasts. Raises NpuprofError."""
        from npuprof.history.proposed import propose_index
        from npuprof.store.gitstore import revisions

        with propose_index(revisions.find_repository(self._workspace.store)) as found:
            self._use(found)
            yield

    @property
    def home(self) -> ReadOnceStore:
        """The store; a preset outside of one needs none. Raises NpuprofError where there is none."""
        return self._past if self._past is not None else self._workspace.listed_store

    def _open_revision(self, rev: str, plainly: bool) -> None:
        from npuprof.store.gitstore import revisions

        home = self._workspace.store
        found = revisions.load_revision(home, revisions.find_repository(home).resolve_commit(rev))
        if not found.files:
            raise NpuprofError([Finding("NP023", f"there are no profiles in {found.label}", "", "name the store with --store")])
        if plainly:
            found.shown = None
        self._use(found)

    def _use(self, found: Revision) -> None:
        from npuprof.store.sources.beside import require_fitting_project
        from npuprof.store.sources.reading import find_sources

        require_fitting_project(find_sources(found).project)  # npuprof.toml tells which presets there are, if it can be understood
        self._past = found

    def load_profiles(self, names: Sequence[str]) -> None:
        """Read presets ahead: all files before all checks, as one kind of work at a time is faster by a fifth."""
        if self._past is not None:
            self._past.load_texts(names)
        for name in names:
            with suppress(Exception):  # it fails again where the preset is resolved, and is reported there
                self.home.profile(name)

    def cite_preset(self, name: str) -> str:
        """Return the path to cite for a preset of the store, and other specs as they are. Raises NpuprofError."""
        return self.home.cite_file(f"{name}.toml") if is_profile_name(name) else name

    def lay_over(self, document: Document) -> None:
        """Let the text of a preset in the work tree be another, which may be written."""
        self._workspace.lay_over(document)

    def resolve_preset(self, name: str) -> Config:
        """Return a preset resolved: at a revision one of the store, by its name or the path of its file. Raises NpuprofError."""
        if self._past is None:
            return self._workspace.resolve_spec(name)
        return self._workspace.resolver.resolve_profile(self._find_profile(name))

    def resolve_as_far_as_can_be(self, name: str) -> Config:
        """Return a preset that has faults of form, without what they concern. Raises NpuprofError where it cannot be read."""
        return self._workspace.resolver.resolve_as_far_as_can_be(self._find_profile(name))

    def _find_profile(self, name: str) -> Profile:
        if self._past is None:
            return self._workspace.profile(name)
        if name.endswith(".toml"):
            name = self._past.layout.name_of(name.removeprefix("./")) or name.removeprefix("./").removesuffix(".toml")
        return self.home.profile(name)
