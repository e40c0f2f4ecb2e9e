"""``source sync``: fetch the commits that the lock names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from npuprof.commands.framework import Verb, arguments, flag, option
from npuprof.commands.framework.parameters import STORE
from npuprof.model import Finding, NpuprofError, build_usage_error, did_you_mean
from npuprof.report import Answer
from npuprof.store import FILE, spec
from npuprof.store.layout import list_project_paths
from npuprof.store.project import require_fitting_project
from npuprof.store.sources.reading import find_copy_faults, read_sources
from npuprof.store.sources.sync import fetch_sources_of, sync_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.folder import Folder
    from npuprof.store.sources.reading import Sources


class Sync(Verb):
    """Fetch the locked sources.

    Fetches exactly what npuprof.lock names, without changing it. Afterwards, presets of the sources can be used offline. In
    a repository without a work tree, as on a server, npuprof reads the lock of HEAD.
    """

    group = "team"

    names: list[str] = arguments("NAME...", "Sources to fetch [default: all]")
    rev: str | None = option("--rev", metavar="REV", text="Fetch the commits in the lock at this revision [default: the work tree]")
    history: bool = flag("--history", text="Fetch the commits in the locks of all branches and tags, for log, diff and verify")
    store: str | None = STORE

    def run(self) -> Answer:
        """Fetch what is missing. Raises NpuprofError with all failures."""
        if self.rev is not None and self.history:
            raise build_usage_error("--rev and --history name different locks", "say one of them")
        home = spec.Workspace(self.store).store if self.rev is not None or self.history or not self._is_in_work_tree() else None
        problems: list[Finding] = []
        fetched: list[str] = []
        known: set[str] = set()
        for sources, is_older in self._list_sources(home):
            known |= sources.project.sources.keys()
            wanted = [name for name in sources.project.sources if name in self.names or not self.names]
            for name in wanted:
                if self.history and name not in sources.lock.sources:
                    continue  # not locked then: nothing to fetch
                if is_older and not sources.lock.sources[name].is_sealed:
                    continue  # an older lock is never updated, and without checksums it names nothing
                try:
                    fetched += _sync(sources, name, problems)
                except NpuprofError as error:
                    problems += error.findings
        problems += [
            Finding("NP042", f"there is no source {name!r} in {FILE}", "", did_you_mean(name, known, "npuprof source list"))
            for name in self.names
            if name not in known
        ]
        if problems:
            raise NpuprofError(list(dict.fromkeys(problems)))
        if not known:
            if home is None:
                spec.open_project_files(self.store).refuse_nowhere()
            return Answer(None, (f"{FILE} names no sources",))
        names = ", ".join(dict.fromkeys(fetched))
        return Answer(None, (f"fetched {names}" if names else "everything that npuprof.lock names is here",))

    def _is_in_work_tree(self) -> bool:
        try:
            return spec.Workspace(self.store).store.in_work_tree
        except NpuprofError:
            return True  # a repository may use sources before it has presets

    def _list_sources(self, home: Folder | None) -> Iterator[tuple[Sources, bool]]:
        """Yield the locks of the work tree, else of a revision or commit of the store, and whether the lock is older.

        Raises NpuprofError.
        """
        if home is None:
            yield read_sources(spec.open_project_files(self.store).home), False
        elif not self.history:
            sources = read_sources(home.repository.load_named_revision(self.rev or "HEAD"))
            require_fitting_project(sources.project)
            yield sources, False
        else:
            now: Sources | None = None
            with suppress(NpuprofError):
                now = read_sources(home if home.in_work_tree else home.repository.load_named_revision("HEAD"))
            for commit in _list_lock_commits(home):
                try:
                    sources = read_sources(home.repository.load_revision(commit))
                except NpuprofError:
                    continue  # an unreadable lock names nothing; log reports it
                yield sources, now is None or sources.lock.sources != now.lock.sources


def _sync(sources: Sources, name: str, problems: list[Finding]) -> Sequence[str]:
    """Fetch the locked commit of a source and its own sources; return what was fetched.

    Faults of a vendored copy are added to ``problems``; the sources of a new copy are fetched. Raises NpuprofError.
    """
    locked = sources.require_lock(name)
    if sources.project.sources[name].vendor:
        faults = find_copy_faults(sources, name)
        if not faults:
            sources.open_source(name).require_fit()
            return ()
        problems += faults
    store, is_new = sync_source(name, locked)
    return [*([f"{name} {locked.shown}"] if is_new else []), *fetch_sources_of(store)]


def _list_lock_commits(home: Folder) -> list[str]:
    """Return the commits of all branches and tags that changed the lock or npuprof.toml. Raises NpuprofError."""
    repository = home.repository
    paths = list_project_paths(repository.prefix)
    return repository.git.run_command("rev-list", "--all", "--full-history", "HEAD", "--", *paths).decode().split()


VERB = Sync
