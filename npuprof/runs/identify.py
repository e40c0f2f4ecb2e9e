"""Identifies the preset of a digest, with its commits and versions.

Every match is verified at its commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property

from npuprof.compare.preset_states import Pair, build_preset_pair
from npuprof.model import NpuprofError, Record
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.resolve.digests import list_digests, list_preset_digests
from npuprof.runs.evidence import Evidence
from npuprof.runs.fingerprints import Clue
from npuprof.runs.fitting import Fit, find_fits
from npuprof.runs.index import Index, list_commits, list_configs, list_former_configs, load_index
from npuprof.runs.run_records import list_requested_changes, list_texts, read_table
from npuprof.runs.unknown_variables import explain_variable
from npuprof.store import strip_revision
from npuprof.store.assignment_arguments import parse_assignments
from npuprof.store.gitstore.commits import Commit, load_commits
from npuprof.store.gitstore.revisions import StoreRepository
from npuprof.store.sources.lookups import Lookups
from npuprof.store.spec import Workspace, build_context
from npuprof.store.versions import Version


class Match(Record):
    """A preset with a digest, or one that fits the logs (``fit``).

    ``newest`` and ``oldest`` are its commits, None for a match in the work tree only. ``kind`` is
    the matching digest, ``resolved`` or ``preset``, or ``fits``; ``config`` is the matching preset;
    ``now`` are its differences from the current preset, None if that is missing or cannot be
    resolved; ``requested`` are the mix-ins and changes. ``renamed`` is its current name, empty if
    unchanged.
    """

    name: str
    kind: str
    config: Config
    count: int = 0
    newest: Commit | None = None
    oldest: Commit | None = None
    versions: tuple[str, ...] = ()
    in_work_tree: bool = False
    now: Pair | None = None
    requested: tuple[str, ...] = ()
    fit: Fit | None = None
    renamed: str = ""


class Identified(Record):
    """The matches of one clue; ``notes`` are about places that could not be searched."""

    clue: Clue
    matches: tuple[Match, ...]
    notes: tuple[str, ...]


class Identifier:
    """Looks digests up: in the work tree, in the versions, in all commits."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._repository: StoreRepository | None = None
        self._order: dict[str, int] = {}
        self._index: Index | None = None
        self._configs: dict[str, list[Config]] = {}
        # a store outside a repository has no history
        with suppress(NpuprofError):
            self._repository = self._workspace.store.repository
            self._order = list_commits(self._repository)

    @property
    def index(self) -> Index | None:
        """The index of the store's repository; None if there is none."""
        if self._index is None and self._repository is not None:
            self._index = load_index(self._repository, self._order)
        return self._index

    def identify(self, clue: Clue) -> Identified:
        """Return the presets that match a clue, named ones first.

        Raises NpuprofError if git fails.
        """
        if clue.evidence is not None:
            fits = [self._compare(match) for match in self._search_fits(clue.evidence)]
            answers = map(explain_variable, clue.evidence.unknown)
            return Identified(clue, tuple(fits), (*answers, *self._list_caveats(bool(fits))))
        matches = {}
        repeated = self._repeat(clue) if clue.record else None
        if repeated is not None:
            matches[repeated.name, repeated.config.digest] = repeated
        for prefix in clue.digests:
            for match in self._search_digest(clue.name, prefix):
                key = match.name, match.config.digest
                matches[key] = _join(matches[key], match) if key in matches else match
            if matches:
                break  # the digest of the resolved config is more specific than the preset digest
        requested = list_requested_changes(clue.record) if clue.record else ()
        if requested:
            # a preset digest is that of the preset without the mix-ins and changes of the run
            for key, match in matches.items():
                if match.kind == "preset" and match.name == clue.name:
                    matches[key] = match._replace(requested=requested)
        ordered = sorted(
            matches.values(),
            key=lambda match: (match.name != clue.name, not match.in_work_tree, match.name),
        )
        notes = [f"{clue.location}: {clue.edited}"] if clue.edited else []
        return Identified(
            clue,
            tuple(self._compare(match) for match in ordered),
            (*notes, *self._list_caveats(bool(matches))),
        )

    def _list_caveats(self, has_matches: bool) -> Iterable[str]:
        """Yield what could not be searched; most of it matters only without a match."""
        if self._repository is None:
            yield "the store is not in a git repository: only the current presets were searched"
        if has_matches:
            return
        if self._repository is not None and self._repository.is_shallow():
            yield "this clone is shallow, older commits were not looked at: git fetch --unshallow"
        if self._index is not None and self._index.lacks_sources:
            yield (
                "some presets cannot be resolved here, as a source is not on this machine: "
                "npuprof source sync --history"
            )
        if self._index is not None and (missing := self._index.missing_objects):
            yield (
                "some presets of older commits cannot be read here, "
                f"{missing.message}: {missing.hint}"
            )

    def _search_digest(self, name: str, prefix: str) -> Iterator[Match]:
        """Yield the presets with a digest; ``name`` is that of the clue, for composed presets."""
        for current_name in self._list_names():
            if match := self._find_current(current_name, prefix):
                yield match
        yield from self._search_history(prefix)
        yield from self._search_composed(name, prefix)

    # -- the work tree ----------------------------------------------------------------------------

    def _find_current(self, name: str, prefix: str) -> Match | None:
        """Return the match of a preset in the work tree, None if it has another digest."""
        match = _find_match(name, self._load_current(name), prefix)
        return match._replace(in_work_tree=True) if match else None

    def _list_names(self) -> list[str]:
        """Return the names of the presets in the work tree."""
        with suppress(NpuprofError):
            store = self._workspace.store
            return store.names() if store.in_work_tree else []
        return []

    def _load_current(self, name: str) -> list[Config]:
        """Return the configs of a preset in the work tree; empty if it cannot be resolved."""
        if name not in self._configs:
            self._configs[name] = []
            with suppress(NpuprofError):
                self._configs[name] = list_configs(self._workspace.resolve_spec(name))
        return self._configs[name]

    # -- history ----------------------------------------------------------------------------------

    def _search_history(self, prefix: str) -> Iterator[Match]:
        """Yield the presets that had a digest at some commit, with those commits and versions."""
        repository = self._repository
        if repository is None or not self._order or self.index is None:
            return
        versions: Sequence[Version] = ()
        with suppress(NpuprofError):
            versions = repository.load_versions()
        for name, commits in self.index.find(prefix).items():
            match = None
            with suppress(NpuprofError):  # the cache alone is not trusted
                config = self._load_past(repository, name, commits[0])
                match = _find_match(name, list_former_configs(config), prefix)
            if match:
                known = set(commits)
                numbers = tuple(
                    version.number_text
                    for version in versions
                    if version.name == name and version.commit in known
                )
                yield _add_commits(match._replace(versions=numbers), repository, commits)

    def _load_past(self, repository: StoreRepository, name: str, commit: str) -> Config:
        """Return a preset at a commit. Raises NpuprofError."""
        return Resolver(Lookups()).resolve_profile(
            repository.load_revision(commit).profile(name), f"{name}@{commit[:7]}"
        )

    def _search_composed(self, name: str, prefix: str) -> Iterator[Match]:
        """Yield composed presets by name, ``A+B``, with the commits at which they had a digest."""
        parts = self._workspace.split_spec(name) if "+" in name else []
        if len(parts) < 2:
            return
        if match := self._find_current(name, prefix):
            yield match
        if self._repository is None or self.index is None:
            return
        moving = dict.fromkeys(part for part in parts if not _is_fixed(part))
        for commits in self.index.group_commits(moving):
            with suppress(NpuprofError):
                resolved = self._workspace.open_beside().resolve_spec(self._pin(name, commits[0]))
                if match := _find_match(name, list_former_configs(resolved), prefix):
                    yield _add_commits(match, self._repository, commits)

    # -- evidence ---------------------------------------------------------------------------------

    def _search_fits(self, evidence: Evidence) -> list[Match]:
        """Return the best fitting presets, with the commits that contain them."""

        def load(name: str, commit: str) -> Config:
            assert self._repository is not None, "the commit is one of it"
            self._repository.make_room()
            return self._load_past(self._repository, name, commit)

        current = (
            (name, config) for name in self._list_names() for config in self._load_current(name)[:1]
        )
        matches = []
        for fit in find_fits(evidence, current, self.index if self._order else None, load):
            digest = fit.config.digest
            committed = (past for past in self._search_history(digest) if past.name == fit.name)
            match = next(committed, Match(fit.name, "fits", fit.config))
            is_current = any(config.digest == digest for config in self._load_current(fit.name))
            matches.append(match._replace(kind="fits", fit=fit, in_work_tree=is_current))
        return sorted(matches, key=lambda match: (not match.in_work_tree, match.name))

    # -- records ----------------------------------------------------------------------------------

    def _repeat(self, clue: Clue) -> Match | None:
        """Return a record's request resolved again at its commit; None if the result differs."""
        request = clue.record.get("asked") or {}
        files = clue.record.get("profiles") or []
        presets = [
            file for file in files if isinstance(file, dict) and file.get("layer") == "preset"
        ]
        commits = {str(file.get("commit")) for file in presets}
        # personal layers and sources are in no commit of this repository
        has_other_layers = len(presets) < len(files)
        is_edited = any(file.get("dirty") for file in presets)
        if self._repository is None or has_other_layers or is_edited or len(commits) != 1:
            return None
        [commit] = commits
        name = str(request.get("spec", ""))
        if commit not in self._order and self._repository.git.read_object(commit) is None:
            return None
        try:
            context = clue.record.get("context") or {}
            requested = build_context(
                context.get("cann"),
                context.get("product"),
                "env",
                read_table(context, "versions"),
                read_table(context, "axes"),
                self._workspace,
            )
            changes = parse_assignments(
                list_texts(request.get("set")), list_texts(request.get("unset"))
            )
            mixins = [self._pin(mixin, commit) for mixin in list_texts(request.get("with"))]
            config = self._workspace.open_beside(requested).resolve_spec(
                self._pin(name, commit), mixins, changes
            )
        # a record may have been edited: its fields may have any type
        except (NpuprofError, TypeError):
            return None
        if not clue.digest or _find_digest_kind(config, clue.digest) != "resolved":
            return None
        return _add_commits(
            Match(name, "resolved", config, requested=list_requested_changes(clue.record)),
            self._repository,
            [commit],
        )

    def _pin(self, spec: str, commit: str) -> str:
        """Return a spec with each preset of the store pinned to a commit."""
        return "+".join(
            part if _is_fixed(part) else f"{part}@{commit}"
            for part in self._workspace.split_spec(spec)
        )

    # -- now --------------------------------------------------------------------------------------

    def _compare(self, match: Match) -> Match:
        """Return a match with its differences from the current preset, in the same context."""
        if match.in_work_tree:
            return match
        name = strip_revision(match.name) if "+" not in match.name else match.name
        existing = set(self._list_names())
        new_parts = [
            part if part in existing else self._new_names.get(part, "") for part in name.split("+")
        ]
        new_name = "+".join(new_parts)
        renamed = new_name if all(new_parts) and new_name != name else ""
        try:
            workspace = self._workspace.open_beside(match.config.context._replace(target=None))
            spec = renamed or name
            if not workspace.store.in_work_tree:  # a bare repository has no work tree
                spec = self._pin(spec, "HEAD")
            now = workspace.resolve_spec(spec)
        except NpuprofError:
            return match
        return match._replace(now=build_preset_pair(match.config, now), renamed=renamed)

    @cached_property
    def _new_names(self) -> dict[str, str]:
        """The current names of presets by former ones."""
        repository = self._repository
        with suppress(NpuprofError):
            if repository is not None:
                formers = repository.find_former_names("HEAD", set(self._list_names()))
                return {
                    former.name: new_name for new_name, known in formers.items() for former in known
                }
        return {}


def _add_commits(match: Match, repository: StoreRepository, commits: Sequence[str]) -> Match:
    """Return a match with its commits, newest first."""
    known = load_commits(repository, dict.fromkeys((commits[0], commits[-1])))
    return match._replace(count=len(commits), newest=known[commits[0]], oldest=known[commits[-1]])


def _is_fixed(part: str) -> bool:
    """Return whether a part of a spec resolves the same at every commit of the repository."""
    return "@" in part or ":" in part or part.endswith(".toml")


def _find_digest_kind(config: Config, prefix: str) -> str:
    """Return which digest of a config starts with a prefix.

    It is ``resolved``, ``preset``, or empty.
    """
    if config.digest.startswith(prefix):
        return "resolved"
    # older releases of npuprof wrote other forms
    if any(digest.startswith(prefix) for digest in list_preset_digests(config.lineage)):
        return "preset"
    is_resolved = any(digest.startswith(prefix) for digest in list_digests(config.settings))
    return "resolved" if is_resolved else ""


def _find_match(name: str, configs: Iterable[Config], prefix: str) -> Match | None:
    """Return the match of the first config that has a digest; None if none has it."""
    for config in configs:
        kind = _find_digest_kind(config, prefix)
        if kind:
            return Match(name, kind, config)
    return None


def _join(first: Match, second: Match) -> Match:
    """Return two matches of the same preset and digest, merged."""
    current, past = first, second
    if second.in_work_tree or (first.newest is not None and second.newest is None):
        current, past = second, first
    if past.newest is None:
        return current
    base = past if past.count >= current.count else current  # the longer history
    return base._replace(
        in_work_tree=current.in_work_tree or past.in_work_tree,
        requested=current.requested or past.requested,
        versions=past.versions or current.versions,
    )
