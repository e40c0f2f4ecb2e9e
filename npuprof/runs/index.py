"""An index of the digests of a repository's presets at all commits.

A state is the common content of one or more commits: the tree of the store, npuprof.toml and
npuprof.lock. If a preset depends on references that a tag may move, every commit is its own state.
States are stored as differences from the previous one, so that a commit costs as much as its
changes.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from npuprof.catalog import is_argument
from npuprof.model import Finding, NpuprofError, Record
from npuprof.report.output import track_items
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.resolve.contexts import ContextMap
from npuprof.resolve.digests import OLDER_FORM, list_digests, list_preset_digests
from npuprof.store import is_profile_name, is_source_reference, read_revision
from npuprof.store.gitstore.commits import find_former_folder
from npuprof.store.gitstore.repository import TreeFile
from npuprof.store.gitstore.revisions import Revision, StoreRepository
from npuprof.store.layout import list_project_paths, read_globs
from npuprof.store.problems import lacks_source
from npuprof.store.sources.lookups import Lookups
from npuprof.store.versions import parse_version_text
from npuprof.system import decode_safely


class Digests(NamedTuple):  # a tuple, because it is hashed for each state
    """The digests of a preset: of its layers, and of its resolved values in each context."""

    preset: tuple[str, ...]
    resolved: tuple[str, ...]

    def match(self, prefix: str) -> bool:
        """Return whether one of them starts with a prefix."""
        return any(digest.startswith(prefix) for digest in (*self.preset, *self.resolved))


class State(Record):
    """Commits with equal presets, and the differences from the previous state.

    The difference of a removed preset is None.
    """

    commits: list[str]
    changed: dict[str, Digests | None]


class Index:
    """The digests of all presets at all commits of a repository.

    ``order`` are the indexes of the commits, newest first.
    """

    def __init__(self, repository: StoreRepository, order: dict[str, int]) -> None:
        self.repository = repository
        self.order = order
        self.states: list[State] = []
        #: whether some preset could not be resolved because a source is missing on this machine
        self.lacks_sources = False
        #: objects missing in a partial clone, which may be fetched later
        self.missing_objects: Finding | None = None

    def find(self, prefix: str) -> dict[str, list[str]]:
        """Return the presets that had a digest with a prefix.

        Each has those commits, newest first.
        """
        holding = set()
        commits_of = defaultdict(list)
        for state in self.states:
            for name, digests in state.changed.items():
                if digests is not None and digests.match(prefix):
                    holding.add(name)
                else:
                    holding.discard(name)
            for name in holding:
                commits_of[name].extend(state.commits)
        return {name: self._sort(commits) for name, commits in commits_of.items()}

    def group_commits(self, names: Collection[str]) -> list[list[str]]:
        """Return the commits that contain some presets, grouped by their digests.

        Each group newest first.
        """
        present = {}
        groups = defaultdict(list)
        for state in self.states:
            for name, digests in state.changed.items():
                if name in names and digests is not None:
                    present[name] = digests
                elif name in names:
                    present.pop(name, None)
            if len(present) == len(names):
                groups[tuple(present[name] for name in names)].extend(state.commits)
        return [*map(self._sort, groups.values())]

    def _sort(self, commits: list[str]) -> list[str]:
        return sorted(commits, key=self.order.__getitem__)


#: How many times a store may have moved to another folder.
_MOST_MOVES = 8


class _Location(Record):
    """The location of a commit's presets.

    It has the store folder, and the ids of everything they depend on.
    """

    prefix: str
    key: str


def list_commits(repository: StoreRepository) -> dict[str, int]:
    """Return all commits reachable from a branch, a tag or HEAD, with their indexes.

    The newest is first.
    """
    head = ["HEAD"] if repository.git.read_object("HEAD") is not None else []
    out = repository.git.run_command("rev-list", "--topo-order", "--all", *head)
    return {oid: index for index, oid in enumerate(out.decode().split())}


def load_index(repository: StoreRepository, order: dict[str, int]) -> Index:
    """Return the index of some commits of a repository. Raises NpuprofError."""
    index = Index(repository, order)
    # oldest first: each is similar to the previous one
    _Builder(index).add_commits(list(reversed(order)))
    return index


class _Known(Record):
    """What is known of a preset: its digests and the files it depends on.

    Without them, it could not be resolved.
    """

    digests: Digests | None = None
    members: frozenset[str] = frozenset()
    is_moving: bool = False  #: whether it depends on a reference that a tag may move


class _Builder:
    """Adds commits to an index, oldest first."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._repository = index.repository
        self._files: dict[str, TreeFile] = {}
        self._known: dict[str, _Known] = {}
        #: whether some preset depended on a reference that a tag may move, also if no later commit
        #: has it
        self._has_moved = False
        self._outside: dict[str, bool] = {}

    def add_commits(self, commits: list[str]) -> None:
        """Add commits, with progress on a terminal. Raises NpuprofError."""
        states: dict[str, State] = {}
        for commit, location in track_items(list(self._locate(commits)), "commits looked at"):
            # equal files may resolve differently if a tag has moved
            if location.key in states and not self._has_moved:
                states[location.key].commits.append(commit)
                continue
            states[location.key] = State([commit], self._compare(commit, location))
            self._index.states.append(states[location.key])

    def _locate(self, commits: list[str]) -> Iterator[tuple[str, _Location]]:
        """Yield commits with the locations of their presets.

        The store may have had another folder.
        """
        prefix = self._repository.prefix
        locations: dict[str, _Location] = {}
        missing = commits
        for _ in range(_MOST_MOVES):
            locations |= self._look_up(missing, prefix)
            missing = [commit for commit in missing if commit not in locations]
            head = self._repository.git.read_object("HEAD")
            if not missing or head is None:
                break
            newer = commits[commits.index(missing[-1]) + 1 :][:1] or [head.oid]
            former = find_former_folder(
                self._repository.with_store_prefix(prefix), missing[-1], newer[0]
            )
            if former is None or former == prefix:
                break
            prefix = former
        for commit in commits:
            if commit in locations:
                yield commit, locations[commit]

    def _look_up(self, commits: list[str], prefix: str) -> dict[str, _Location]:
        """Return the locations of presets of commits with a store in a folder, or with globs.

        One process for all.
        """
        names = (prefix.rstrip("/"), *list_project_paths(prefix), "")  # four names
        request = "".join(f"{commit}:{name}\n" for commit in commits for name in names)
        out = self._repository.git.run_command(
            "cat-file", "--batch-check=%(objectname)", stdin=os.fsencode(request)
        ).split(b"\n")
        ids = ("" if row.endswith(b" missing") else decode_safely(row) for row in out)
        locations = {}
        for commit in commits:
            store, project, lock, root = islice(ids, len(names))
            # npuprof.toml may name presets anywhere in the repository
            if project and prefix and self._leads_outside(project):
                store = root
            if store:
                locations[commit] = _Location(prefix, f"{prefix}:{store}:{project}:{lock}")
        return locations

    def _leads_outside(self, project: str) -> bool:
        if project not in self._outside:
            read = self._repository.git.read_object(project)
            self._outside[project] = (
                read is not None and read.type == "blob" and bool(read_globs(read.content))
            )
        return self._outside[project]

    def _compare(self, commit: str, location: _Location) -> dict[str, Digests | None]:
        """Return the changes of a commit's presets relative to the previous state."""
        repository = self._repository
        if location.prefix != repository.prefix:
            repository = repository.with_store_prefix(location.prefix)
        store = Revision(repository, commit)
        files = store.files
        touched = {
            name for name in {*files, *self._files} if files.get(name) != self._files.get(name)
        }
        linked = any(file.is_link for file in files.values())
        known = {name: self._known.get(name, _Known()) for name in sorted(files)}
        outdated = []
        for name, old in known.items():
            may_differ = (
                linked
                or name in touched
                or old.is_moving
                or old.digests is None
                or not old.members.isdisjoint(touched)
            )
            if may_differ and is_profile_name(name):  # last, as it checks every character
                outdated.append(name)
        changed: dict[str, Digests | None] = {
            name: None for name, old in self._known.items() if old.digests and name not in files
        }
        ahead = {name for member in outdated for name in (member, *known[member].members)}
        # only read ahead: what is missing is reported for each preset that needs it
        with suppress(NpuprofError):
            store.load_texts(name for name in sorted(ahead) if name in files)
        resolver = Resolver(Lookups())
        for name in outdated:
            new = self._resolve(store, resolver, name)
            self._has_moved |= new.is_moving
            if new.digests != known[name].digests:
                changed[name] = new.digests
            known[name] = new
        self._known, self._files = known, dict(files)
        repository.make_room()  # room for @ references
        return changed

    def _resolve(self, store: Revision, resolver: Resolver, name: str) -> _Known:
        try:
            config = resolver.resolve_profile(store.profile(name))
        except NpuprofError as error:
            self._index.lacks_sources |= lacks_source(error.findings)
            missing = next((finding for finding in error.findings if finding.code == "NP022"), None)
            self._index.missing_objects = self._index.missing_objects or missing
            return _Known(is_moving=True)  # a later tag may make it resolvable
        except RecursionError:
            return _Known()
        resolved = dict.fromkeys(
            digest
            for region in list_former_configs(config)
            for digest in list_digests(region.settings)
        )
        is_moving = any(
            _is_moving(reference) for member in config.lineage for reference in member.extends
        )
        return _Known(
            Digests(tuple(list_preset_digests(config.lineage)), tuple(resolved)),
            frozenset(member.name for member in config.lineage),
            is_moving,
        )


def _is_moving(reference: str) -> bool:
    """Return whether a reference may resolve differently without a file change.

    A tag or the update of a mirror may change it.
    """
    return is_source_reference(reference) or (
        "@" in reference and parse_version_text(read_revision(reference)) is None
    )


def list_configs(config: Config) -> list[Config]:
    """Return the configs of a preset without a context, and in others.

    The others are all contexts in which its overrides differ.
    """
    if not any(member.overrides for member in config.lineage):
        return [config]
    contexts = ContextMap(config)
    return [config, *(region.config for region in contexts.find_regions(contexts.touched))]


def list_former_configs(config: Config) -> list[Config]:
    """Return the configs of a committed preset, now and by the rules of the older digest form.

    These merge arguments of a program differently.
    """
    configs = list_configs(config)
    return configs + [
        found.resolver.for_context(found.context, OLDER_FORM).resolve_members(
            found.lineage, found.name, found.claims, found.changes
        )
        for found in configs
        if any(map(is_argument, found.settings))
    ]
