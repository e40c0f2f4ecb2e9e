"""The history of one resolved preset: the commits that changed it, through any parent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter

from npuprof.compare.changes import Change
from npuprof.document import Document, decode_utf8, keys
from npuprof.document.profile import Profile
from npuprof.history.plain_edits import Edits, find_edits
from npuprof.history.snapshots import Snapshots
from npuprof.history.states import (
    PresetState,
    SettingPath,
    build_added_changes,
    compare_states,
    find_dependencies,
    has_setting,
    is_moving_reference,
    is_unknown_state,
)
from npuprof.model import (
    TYPE_CHECKING,
    Axes,
    Context,
    Finding,
    NpuprofError,
    Path,
    Record,
)
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.resolve.lineages import has_overrides
from npuprof.store.gitstore.commits import Commit, FileChange, walk_commits
from npuprof.store.gitstore.repository import TreeFile
from npuprof.store.gitstore.revisions import StoreRepository
from npuprof.store.spec import Workspace

if TYPE_CHECKING:
    from npuprof.history.past_references import PastLookups
    from npuprof.store.versions import Version

_FOLDS = 400  # kept for the next commits
_DEPENDENCIES = "dependencies"  # their key in the memo of a preset


class HistoryStep(Record):
    """One commit that changed the resolved preset.

    ``kind`` is ``changed``, ``created``, ``removed``, ``broken`` or ``mended``, or ``untold`` if
    the changes are unknown, as a source is missing on this machine. ``name`` is the preset's name
    after the commit, ``findings`` are the resolution errors.
    """

    commit: Commit
    kind: str
    name: str
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()


class StoreState(Record):
    """The store's files at a commit, the preset's name and state there, and the commit's id.

    The preset may be that of a later commit: ``moved`` are the texts of its members here, by name,
    in which no requested setting differs.
    """

    files: dict[str, TreeFile]
    name: str
    preset: PresetState
    commit: str
    moved: dict[str, Document] = {}


class _MovingParentMetError(Exception):
    """Raised if a preset depends on references that any commit may change.

    Walking only the commits of the store would then miss changes.
    """


class Timeline:
    """One preset along the commits behind a tip, newest first; renames are followed.

    If the tip was requested as a ``release``, the preset there is the tagged one.
    """

    def __init__(
        self,
        repository: StoreRepository,
        tip: str,
        name: str,
        context: Context,
        release: Version | None = None,
    ) -> None:
        self._repository = repository
        self._tip = tip
        self._name = name
        self._path = SettingPath()
        self._unavailable: list[Finding] = []  # about sources that are missing here
        self._everything = False  # whether commits outside the store are walked too
        self._snapshots = Snapshots(repository, tip, release)
        self._resolver = Resolver(self, context)

    def walk_steps(
        self, key: str = "", tail: Path = (), everywhere: bool = True
    ) -> Iterator[HistoryStep]:
        """Yield the commits that changed the resolved preset, or the value at a key or below it.

        With ``everywhere``, also changes limited to the products, releases and targets of an
        override, and changes on branches from which a merge took nothing. Raises NpuprofError after
        the last commit if some changes are unknown because a source is missing.
        """
        self._path = SettingPath(key, tail, everywhere)
        yielded = set()
        try:
            for step in self._walk_states():
                yielded.add(step.commit.id)
                yield step
        except _MovingParentMetError:
            self._everything = True
            # the walk begins again with all commits: the steps shown so far stay valid
            yield from (step for step in self._walk_states() if step.commit.id not in yielded)
        if self._unavailable:
            raise NpuprofError(
                [
                    _build_unknown_finding(self._name, finding)
                    for finding in dict.fromkeys(self._unavailable)
                ]
            )

    def load_tip(self) -> PresetState:
        """Return the preset at the tip."""
        try:
            return self._load_tip_state(self._tip).preset
        except _MovingParentMetError:
            self._everything = True
            return self._load_tip_state(self._tip).preset

    def _walk_states(self) -> Iterator[HistoryStep]:
        states = None
        for commit in self._snapshots.ahead.walk(
            walk_commits(
                self._repository,
                self._tip,
                self._everything,
                self._snapshots.layout,
                simplified=not self._path.everywhere,
            )
        ):
            if states is None:
                states = {commit.id: self._load_tip_state(commit.id)}
            state = states.pop(commit.id, None)
            if state is None:
                continue  # not reachable from the requested commits
            before = self._find_earlier_states(commit, state, states)
            # a preset that was passed on unchanged is the same object
            if any(then.preset is state.preset for then in before):
                continue
            then, now = [self._place_preset(each) for each in before], self._place_preset(state)
            step = build_history_step(commit, state.name, then, now, self._path)
            if step:
                yield step

    def _place_preset(self, state: StoreState) -> PresetState:
        """Return the preset of a state with the places of its commit."""
        if not state.moved or not isinstance(state.preset, Config):
            return state.preset
        return self._edit_preset(state.preset, state.moved, {})

    def _edit_preset(
        self, preset: Config, documents: dict[str, Document], edits: dict[str, Edits]
    ) -> Config:
        edited = self._resolver.edit_config(preset, documents, edits, not self._path.key)
        edited.memo[_DEPENDENCIES] = preset.memo[_DEPENDENCIES]
        return edited

    def _load_tip_state(self, commit: str) -> StoreState:
        files = self._repository.list_profile_files(self._tip)
        preset = self._resolve_preset(files, self._name, self._tip)
        return StoreState(files, self._name, preset, commit)

    def _find_earlier_states(
        self, commit: Commit, state: StoreState, states: dict[str, StoreState]
    ) -> list[StoreState]:
        """Return the state at each parent of a commit; ``states`` caches them."""
        before = []
        parents = commit.parents or ("",)
        for index, parent in enumerate(parents):
            known = states.get(parent)
            if known is None:
                # The last parent may change the files of the state, which nothing else reads again.
                files = state.files if index == len(parents) - 1 else dict(state.files)
                known = self._find_earlier_state(commit, state, files, parent)
                if parent:
                    states[parent] = known
            before.append(known)
        return before

    def _find_earlier_state(
        self, commit: Commit, state: StoreState, files: dict[str, TreeFile], parent: str
    ) -> StoreState:
        """Return the state at a parent commit.

        ``files`` is changed from the state after the commit to the state before it.
        """
        changed = commit.changes[parent]
        name = next(
            (change.was for change in changed if change.now == state.name and change.was),
            state.name,
        )
        undo_changes(files, changed)
        if commit.former_prefix is not None:
            self._snapshots.layout = self._snapshots.layout._replace(prefix=commit.former_prefix)
            # The folder of the store was renamed: earlier files have other paths.
            return StoreState(files, name, self._resolve_preset(files, name, parent), parent)
        preset, moved = state.preset, state.moved
        # with moving references, a commit may change the preset without touching the store
        if changed or self._everything:
            preset, moved = self._find_earlier_preset(changed, state, files, name, parent)
        return StoreState(files, name, preset, parent, moved)

    def _find_earlier_preset(
        self,
        changed: Sequence[FileChange],
        state: StoreState,
        files: dict[str, TreeFile],
        name: str,
        commit: str,
    ) -> tuple[PresetState, dict[str, Document]]:
        """Return the preset before some changes, and its moved texts.

        It is resolved again only if the changes can affect it.
        """
        preset = state.preset
        # a missing preset only appears by a change of its own name
        if preset is None:
            if not any(state.name in (change.was, change.now) for change in changed):
                return None, {}
        # what a broken preset depends on is not known: it is resolved at each commit
        elif not isinstance(preset, NpuprofError):
            needed = preset.memo[_DEPENDENCIES]
            touched = [
                change
                for change in changed
                if change.was in needed.members or change.now in needed.members
            ]
            if needed.is_linked:
                pass  # the target of a link may have changed
            elif not touched:
                if not needed.is_moving or self._snapshots.sees_same_versions(state.commit, commit):
                    return preset, state.moved
            elif not needed.is_moving:
                derived = self._undo_edits(preset, state.moved, touched)
                if derived:
                    return derived
        return self._resolve_preset(files, name, commit), {}

    def _undo_edits(
        self, preset: Config, moved: dict[str, Document], touched: Sequence[FileChange]
    ) -> tuple[Config, dict[str, Document]] | None:
        """Return the preset before some edits, and its moved texts.

        None if it has to be resolved.
        """
        moved = dict(moved)
        requested: dict[str, Edits] = {}
        for change in touched:
            name, old, new = change.was, change.old, change.new
            if (
                name is None
                or name != change.now
                or old is None
                or new is None
                # a link's content is a path, and no text with settings
                or (old.mode, old.outside) != (new.mode, new.outside)
            ):
                return None
            known = moved.get(name) or next(
                profile.document
                for profile in preset.lineage
                if profile.name == name and not profile.document.revision
            )
            try:
                text = decode_utf8("", self._snapshots.ahead.read_content(name, old.oid))
                edits = find_edits(text, known.text, known.data)
            except NpuprofError:  # reported when the preset is resolved
                return None
            if edits is None:
                return None
            data = known.data
            for (section, name_of_key), value in edits.items():
                key = keys.format_full_key(section, name_of_key)
                # the elements of its value are changed, which only a list has
                if key in preset.memo[_DEPENDENCIES].changed_lists:
                    return None
                data = {**data, section: {**data[section], name_of_key: value}}
                if self._path.key in ("", key):
                    requested.setdefault(name, {})[section, name_of_key] = value
            moved[name] = Document(name, known.source, text, data)
        if not requested:
            return preset, moved
        # an override may set the same key in some contexts
        if has_overrides(preset.lineage):
            return None
        return self._edit_preset(preset, moved, requested), {}

    def _resolve_preset(self, files: dict[str, TreeFile], name: str, commit: str) -> PresetState:
        if name not in files:
            return None
        self._snapshots.files = files
        self._snapshots.commit = commit
        # the same names have other texts at this commit
        self._resolver.forget_lineages(_FOLDS)
        try:
            config = self._resolver.resolve_profile(self._snapshots.profile(name), name)
            config.memo[_DEPENDENCIES] = find_dependencies(config, files)
            return config
        except NpuprofError as error:
            if error.findings[0].code == "NP022":
                raise  # objects are missing: nothing is known of the presets
            from npuprof.store import problems

            self._unavailable += [
                finding for finding in error.findings if finding.code in problems.UNAVAILABLE
            ]
            return error

    def find_policy(self, profile: Profile) -> None:
        """Return None: presets in history are not checked."""

    def find_axes(self, profile: Profile) -> Axes | None:
        """Return the axes declared at the current commit. Raises NpuprofError."""
        return self._lookups.find_axes(profile)

    def find_parent(self, reference: str, referrer: Profile | None, index: int) -> Profile:
        """Return the profile of a reference in ``extends``, as of the current commit.

        Raises NpuprofError.
        """
        home = (referrer and referrer.home) or self._snapshots
        # the walk has skipped commits that may have moved the reference
        if home is self._snapshots and not self._everything and is_moving_reference(reference):
            raise _MovingParentMetError
        if "@" in reference or ":" in reference:
            return self._lookups.find_parent_from(home, reference, referrer, index)
        origin = referrer.origin("profile", "extends", index) if referrer else None
        return home.profile(reference, origin)

    @cached_property
    def _lookups(self) -> PastLookups:
        from npuprof.history.past_references import PastLookups

        return PastLookups(self._snapshots)


def undo_changes(files: dict[str, TreeFile], changed: Sequence[FileChange]) -> None:
    """Change ``files`` from the state after some changes to the state before them."""
    for change in changed:
        # all new names first: one file's new name may be another's old one
        if change.now and change.now != change.was:
            files.pop(change.now, None)
    for change in changed:
        if change.was and change.old:
            files[change.was] = change.old


def walk_composition(
    workspace: Workspace, repository: StoreRepository, tip: str, name: str, key: str, tail: Path
) -> Iterator[HistoryStep]:
    """Yield the commits that changed a composition, newest first: some of those of its parts.

    Raises NpuprofError for a part that is not a preset of the store.
    """
    context = workspace.resolver.context
    commits: dict[str, Commit] = {}
    for part in workspace.split_spec(name):
        preset, _ = workspace.split_single_spec(part, "log")
        # a part at a fixed revision never changes
        steps = Timeline(repository, tip, preset, context).walk_steps(key, tail)
        commits |= {step.commit.id: step.commit for step in steps if preset == part}

    def resolve(commit: str) -> PresetState:
        there = Workspace(None, context, opened=repository.load_revision(commit), by=workspace)
        try:
            return there.resolve_spec(name)
        except NpuprofError as error:
            return None if error.findings[0].code == "NP023" else error

    for commit_id in repository.git.run_command("rev-list", tip).decode().split():
        if commit := commits.get(commit_id):
            before = [resolve(parent) for parent in commit.parents] or [None]
            path = SettingPath(key, tail)
            if step := build_history_step(commit, name, before, resolve(commit_id), path):
                yield step


def build_history_step(
    commit: Commit, name: str, before: list[PresetState], now: PresetState, path: SettingPath
) -> HistoryStep | None:
    """Return what a commit did to a preset, None if it equals one of the parents."""
    resolved = [then for then in before if isinstance(then, Config)]
    if isinstance(now, Config) and len(resolved) == len(before):
        changes = _select_common_changes(resolved, now, path)
        return HistoryStep(commit, "changed", name, tuple(changes)) if changes else None
    if any(map(is_unknown_state, (now, *before))):
        return _build_unknown_step(commit, name, before, now)
    if not isinstance(now, Config):
        return _build_loss_step(commit, name, before, now, path)
    # the merge took the preset from a parent in which it is valid
    if any(not compare_states(then, now, path, trace=False) for then in resolved):
        return None
    if path.key and not has_setting(now, path) and not _was_reported(before, path):
        return None
    kind = "created" if None in before else "mended"
    return HistoryStep(commit, kind, name, tuple(build_added_changes(now, path)))


def _build_unknown_step(
    commit: Commit, name: str, before: list[PresetState], now: PresetState
) -> HistoryStep | None:
    """Return a step for a commit with unknown changes.

    None if the previous step already reports that.
    """
    if is_unknown_state(now) and any(map(is_unknown_state, before)):
        return None
    findings = next(
        state.findings
        for state in (now, *before)
        if isinstance(state, NpuprofError) and is_unknown_state(state)
    )
    from npuprof.store import problems

    unavailable = tuple(
        problems.advise_sync_of(finding, "--history")
        for finding in findings
        if finding.code in problems.UNAVAILABLE
    )
    return HistoryStep(commit, "untold", name, (), unavailable)


def _build_unknown_finding(name: str, finding: Finding) -> Finding:
    """Return the finding that a missing source hides changes of a preset."""
    from npuprof.store import problems

    message = f"cannot find all changes of {name}: {finding.message}"
    advice = problems.advise_sync_of(finding._replace(message=message), "--history")
    return advice._replace(origin=None, key="", where=None)


def _build_loss_step(
    commit: Commit,
    name: str,
    before: list[PresetState],
    now: NpuprofError | None,
    path: SettingPath,
) -> HistoryStep | None:
    """Return a step for a preset that was removed or cannot be resolved any more.

    None if that is not new.
    """
    # it was missing, or broken, in a parent already
    if any(type(then) is type(now) for then in before):
        return None
    if now:
        return HistoryStep(commit, "broken", name, (), now.findings)
    if path.key and not _was_reported(before, path):
        return None
    return HistoryStep(commit, "removed", name)


def _select_common_changes(before: list[Config], now: Config, path: SettingPath) -> list[Change]:
    """Return the changes relative to all parents.

    A merge is described by its differences from all of them. If it differs from each parent only by
    changes of the others, it is compared with the first.
    """
    changes = compare_states(before[0], now, path)
    if len(before) == 1 or not changes:
        return changes
    others = [compare_states(then, now, path, trace=False) for then in before[1:]]
    if not all(others):
        return []
    identify = attrgetter("key", "scope")
    common = set(map(identify, changes)).intersection(*(map(identify, other) for other in others))
    return [change for change in changes if not common or identify(change) in common]


def _was_reported(before: list[PresetState], path: SettingPath) -> bool:
    """Return whether the history has already shown a key: its value, or that it is unknown."""
    return any(isinstance(then, NpuprofError) or has_setting(then, path) for then in before)
