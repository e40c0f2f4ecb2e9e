"""Fetches the sources in the locks of a work tree, of a revision, or of all branches and tags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from npuprof.model import Finding, NpuprofError, did_you_mean, raise_any
from npuprof.report.isolating import collect_errors
from npuprof.store import FILE, spec
from npuprof.store.folder import Folder
from npuprof.store.layout import list_project_paths
from npuprof.store.project import require_fitting_project
from npuprof.store.sources.locked_commits import fetch_sources_of, sync_source
from npuprof.store.sources.opening import Sources, find_copy_faults, read_sources


def sync_sources(
    store: str | None, names: Sequence[str] = (), rev: str | None = None, history: bool = False
) -> list[str] | None:
    """Fetch the locked sources of a store, or only the named ones.

    Return those that were missing, None if there are no sources.

    Reads the lock of the work tree, else of HEAD; of ``rev``; or with ``history``, those of all
    branches and tags. Raises NpuprofError with all failures.
    """
    home: Folder | None = None  # the work tree's lock needs no presets
    if rev is not None or history or not _is_in_work_tree(store):
        home = spec.Workspace(store).store
    problems: list[Finding] = []
    fetched: list[str] = []
    known: set[str] = set()
    revisions: Iterable[tuple[Sources, bool]]
    if home is not None and history:
        revisions = _list_older_sources(home)
    else:
        revisions = [(_find_sources(store, home, rev), False)]
    for sources, is_older in revisions:
        known |= sources.project.sources.keys()
        for name in sources.project.sources:
            locked = sources.lock.sources.get(name)
            if (names and name not in names) or (history and locked is None):
                continue  # not locked then: nothing to fetch
            if is_older and locked is not None and not locked.is_sealed:
                continue  # an older lock is never updated, and without checksums it names nothing
            with collect_errors(problems):
                fetched += _sync_named_source(sources, name, problems)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, "npuprof source list")
            problems.append(Finding("NP042", f"there is no source {name!r} in {FILE}", "", hint))
    raise_any(dict.fromkeys(problems))
    if not known and home is None:
        spec.open_project_files(store).require_file()
    return list(dict.fromkeys(fetched)) if known else None


def _is_in_work_tree(store: str | None) -> bool:
    try:
        return spec.Workspace(store).store.in_work_tree
    except NpuprofError:
        return True  # a repository may use sources before it has presets


def _find_sources(store: str | None, home: Folder | None, rev: str | None) -> Sources:
    """Return the sources of the work tree, or of a revision of ``home``. Raises NpuprofError."""
    if home is None:
        return read_sources(spec.open_project_files(store).home)
    sources = read_sources(home.repository.load_named_revision(rev or "HEAD"))
    require_fitting_project(sources.project)
    return sources


def _list_older_sources(home: Folder) -> Iterator[tuple[Sources, bool]]:
    """Yield the sources at all commits that changed them, and whether their lock is older.

    Older than that of the work tree, or of HEAD without one.
    """
    current: Sources | None = None
    with suppress(NpuprofError):
        current = read_sources(
            home if home.in_work_tree else home.repository.load_named_revision("HEAD")
        )
    for commit in _list_lock_commits(home):
        try:
            sources = read_sources(home.repository.load_revision(commit))
        except NpuprofError:
            continue  # an unreadable lock names nothing; log reports it
        yield sources, current is None or sources.lock.sources != current.lock.sources


def _sync_named_source(sources: Sources, name: str, problems: list[Finding]) -> Sequence[str]:
    """Fetch the locked commit of a source and its own sources; return what was fetched.

    Faults of a vendored copy are added to ``problems``; the sources of a new copy are fetched.
    Raises NpuprofError.
    """
    locked = sources.require_lock(name)
    if sources.project.sources[name].vendor:
        faults = find_copy_faults(sources, name)
        if not faults:
            sources.open_source(name).require_fit()
            return ()
        # a faulty copy is reported, but its commit is fetched: the copy can then be made again
        problems += faults
    store, is_new = sync_source(name, locked)
    fetched = [f"{name} {locked.shown}"] if is_new else []
    return fetched + fetch_sources_of(store)


def _list_lock_commits(home: Folder) -> list[str]:
    """Return the commits of all branches and tags that changed the lock or npuprof.toml.

    Raises NpuprofError.
    """
    repository = home.repository
    paths = list_project_paths(repository.prefix)
    # HEAD may be detached, outside of all branches
    listed = repository.git.run_command("rev-list", "--all", "--full-history", "HEAD", "--", *paths)
    return listed.decode().split()
