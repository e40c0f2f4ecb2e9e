"""The plan of a release of several presets, before anything is tagged.

It has names, order and version numbers.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from npuprof.checks import check_config
from npuprof.compare.preset_states import Pair
from npuprof.compare.text_changes import format_pair_text
from npuprof.history.proposal import Proposal, Reason, choose_step, propose_version
from npuprof.history.releasing import (
    build_release_record,
    digest_store,
    find_last_release,
    list_earlier_versions,
)
from npuprof.history.store_steps import (
    StoreSteps,
    explain_presets,
    explain_project_changes,
    list_removed_presets,
)
from npuprof.model import Context, Finding, NpuprofError, Record, select_errors
from npuprof.report.isolating import collect_errors
from npuprof.report.tables import Table
from npuprof.resolve.config import Config
from npuprof.store import is_source_reference, spec, strip_revision
from npuprof.store.outputs import Output, Outputs
from npuprof.store.versions import ReleaseRecord, Version, VersionText
from npuprof.system import group_pairs, join_lines


class PlannedRelease(Record):
    """A planned version of a preset.

    ``follows`` are the planned versions that change it, if its own text is unchanged.
    """

    name: str
    number: VersionText
    was: str
    config: Config
    proposal: Proposal
    pair: Pair | None
    record: ReleaseRecord
    follows: tuple[str, ...] = ()

    @property
    def tag(self) -> str:
        """The name of its tag."""
        return f"{self.name}/v{self.number}"

    @property
    def label(self) -> str:
        """``base/cluster@2.0.0``."""
        return f"{self.name}@{self.number}"


class StoreRelease(Record):
    """A planned version of the whole store, and its digest.

    ``removed`` are presets of its last version that are gone. ``renamed`` maps old names to new
    ones.
    """

    number: VersionText
    was: str
    proposal: Proposal
    digest: str
    removed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()

    @property
    def tag(self) -> str:
        """The name of its tag."""
        return f"v{self.number}"


class ReleasePlan(Record):
    """The tags to create at a commit, parents first.

    ``unreleased`` are omitted presets that were never released.

    ``removed`` are released presets that are gone, if no version of the store, existing or planned,
    records it.

    ``composed`` is a composition whose presets are released, ``spec`` the same with their versions.
    """

    commit: str
    releases: tuple[PlannedRelease, ...]
    store: StoreRelease | None = None
    unreleased: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    composed: Config | None = None
    spec: str = ""

    @property
    def tags(self) -> list[str]:
        """The names of all tags to create, in order."""
        return [planned.tag for planned in self.releases] + ([self.store.tag] if self.store else [])

    def list_followers(self) -> dict[tuple[str, ...], list[PlannedRelease]]:
        """Return the versions that follow others, grouped by the labels of these others."""
        labels = {planned.name: planned.label for planned in self.releases}
        return group_pairs(
            (tuple(labels[name] for name in planned.follows), planned)
            for planned in self.releases
            if planned.follows
        )


def plan_releases(
    workspace: spec.Workspace,
    head: str,
    everything: bool,
    number: VersionText | None,
    uncompared: bool,
) -> ReleasePlan:
    """Return what to release at a commit: presets that have changed, parents first.

    With ``everything``, also presets that were never released, and the whole store, under
    ``number`` if given. Planned versions count for all later presets: ranges may select them. An
    unreadable last version is an error, unless it may count as a major step (``uncompared``).
    Raises NpuprofError with all problems.
    """
    planner = _Planner(workspace, head, everything, uncompared)
    releases, unreleased = planner.plan_presets()
    store = None
    if everything:
        planner.problems += planner.find_edited_copies()
        store = planner.plan_store(releases, number)
    require_no_errors(planner.problems)
    removed = () if everything else list_removed_presets(workspace.store, planner.committed)
    return ReleasePlan(head, tuple(releases), store, tuple(unreleased), removed)


def plan_composition(
    workspace: spec.Workspace, head: str, composition: str, uncompared: bool
) -> ReleasePlan:
    """Return what to release at a commit: the presets of a composition that have changed.

    A part at a fixed revision, or of another store, stays. Raises NpuprofError as
    ``plan_releases``.
    """
    parts = [
        part if "@" in part or ":" in part else workspace.split_single_spec(part, "release")[0]
        for part in workspace.split_spec(composition)
    ]
    planner = _Planner(workspace, head, True, uncompared)
    releases, _ = planner.plan_presets(parts)
    composed = planner.judge_composition(parts)
    require_no_errors(planner.problems)
    pinned = "+".join(planner.labels.get(part, part) for part in parts)
    return ReleasePlan(head, tuple(releases), composed=composed, spec=pinned)


def list_errors(config: Config) -> list[Finding]:
    """Return the errors of a preset: with any, it is not released."""
    return select_errors(check_config(config, notes=False))


def require_no_errors(errors: Sequence[Finding]) -> None:
    """Raise NpuprofError with the errors that prevent a release, if there are any."""
    if errors:
        what = "nothing is released, because of the errors above"
        raise NpuprofError(
            [*dict.fromkeys(errors), Finding("NP026", what, "", "fix them and commit")]
        )


def sort_parents_first(extends: dict[str, list[str]]) -> Iterator[list[str]]:
    """Yield names in groups, each after the groups of its parents.

    Cycles of versions are sorted by name.
    """
    waiting_for = {
        name: {parent for parent in parents if parent in extends and parent != name}
        for name, parents in extends.items()
    }
    while waiting_for:
        ready = sorted(name for name, parents in waiting_for.items() if not parents)
        if not ready:
            ready = [min(waiting_for)]  # a cycle: its first name breaks it
        yield ready
        for name in ready:
            del waiting_for[name]
        for waiting in waiting_for.values():
            waiting.difference_update(ready)


class _Planner:
    """Plans the presets of a commit, parents first.

    Errors are collected in ``problems`` and reported together.
    """

    def __init__(
        self, workspace: spec.Workspace, head: str, everything: bool, uncompared: bool
    ) -> None:
        self.problems: list[Finding] = []
        #: the newest or planned version of each released preset, by name
        self.labels: dict[str, str] = {}
        self._everything = everything
        self._uncompared = uncompared
        #: presets whose digests match an unreadable version, with its commit
        self._same: dict[str, str] = {}
        self._head = head
        self._workspace = workspace
        self._repository = workspace.store.repository
        self.committed = self._repository.load_revision(head)
        self._configs: dict[str, Config] = {}

    def plan_presets(self, chosen: Container[str] = ()) -> tuple[list[PlannedRelease], list[str]]:
        names = self.committed.names()
        self.committed.load_texts(names)
        pinned = set()  # presets of which others extend a version
        parents: dict[str, list[str]] = {}
        for name in names:
            parents[name] = []
            for reference in self._read_parents(name):
                parent, at, _ = reference.partition("@")
                # a pinned parent counts for the order, too: a range may select its new version
                parents[name].append(parent)
                if at:
                    pinned.add(parent)
        earlier = list_earlier_versions(self._repository, set(names), self._head)
        planned: dict[str, PlannedRelease] = {}
        unreleased = []
        for group in sort_parents_first(parents):
            for name in group:
                if chosen and name not in chosen:
                    continue
                last = find_last_release(earlier[name])
                # a first release is the owner's decision
                if last is None and not self._everything:
                    unreleased.append(name)
                    continue
                release = self._plan_preset(name, last, planned)
                if release:
                    planned[name] = release
                    self.labels[name] = release.label
                elif last:
                    self.labels[name] = f"{name}@{last.number_text}"
            new = [planned[name] for name in group if name in planned and name in pinned]
            if new:
                self._count_as_released(new)
        return list(planned.values()), sorted(unreleased)

    def _read_parents(self, name: str) -> list[str]:
        try:
            return [
                reference
                for reference in self.committed.profile(name).extends
                if not is_source_reference(reference)
            ]
        except NpuprofError:
            return []  # reported when it is resolved

    def _plan_preset(
        self, name: str, last: Version | None, planned: dict[str, PlannedRelease]
    ) -> PlannedRelease | None:
        with collect_errors(self.problems):
            config = self._configs[name] = self._workspace.resolver.resolve_profile(
                self.committed.profile(name), name
            )
            if last:
                self._workspace.lookups.require_unchanged(self._repository.load_release(last), last)
            pair, proposal = propose_version(
                self._workspace, config, last, uncompared=self._uncompared
            )
            if proposal.step == "none":
                if last and proposal.unknown:
                    self._same[name] = self._repository.resolve_commit(last.commit)
                return None
            # after the comparison: unchanged presets are not released, and not checked either
            if errors := list_errors(config):
                self.problems += errors
                return None
            return PlannedRelease(
                name,
                VersionText(proposal.number),
                last.number_text if last else "",
                config,
                proposal,
                pair,
                build_release_record(config),
                _find_causes(pair, planned) if pair else (),
            )
        return None

    def _count_as_released(self, planned: Sequence[PlannedRelease]) -> None:
        """Let ranges select planned versions, as if they were tagged.

        Affected presets are resolved again.
        """
        for release in planned:
            self._repository.propose_version(
                release.name, release.number, self._head, format_tag_message(release)
            )
        # cached revisions have resolved their ranges without the planned versions
        self._repository.forget_revisions()
        self._workspace = spec.Workspace(
            None, self._workspace.resolver.context, opened=self._workspace.store
        )
        self.committed = self._repository.load_revision(self._head)

    def judge_composition(self, parts: Sequence[str]) -> Config | None:
        """Return a composition at the commit; its errors are added to ``problems``.

        It is judged in the contexts of the outputs that name it, in any version, else in all.
        """
        outputs = Outputs(self._workspace, self.committed)
        names = list(map(strip_revision, parts))
        config = None
        with collect_errors(self.problems):
            contexts = [
                output.context
                for output in outputs.declared
                if list(map(strip_revision, self._workspace.split_spec(output.spec))) == names
            ]
            for context in contexts or [Context()]:
                config = outputs.resolve(Output("+".join(parts), "", context, None))
                self.problems += list_errors(config)
        return config

    def find_edited_copies(self) -> list[Finding]:
        """Return findings for vendored copies that differ from the lock at the commit."""
        try:
            return self._workspace.lookups.find_edited_copies(self.committed)
        except NpuprofError as error:
            return list(error.findings)

    def plan_store(
        self, planned: Sequence[PlannedRelease], number: VersionText | None
    ) -> StoreRelease | None:
        """Return the next version of the whole store, None if it has no changes."""
        last = find_last_release(self._repository.load_store_versions(self._head))
        known = self._repository.load_store_versions()
        taken = frozenset(version.number for version in known if not version.pre)
        first = StoreSteps([Reason("first", "the first release of the whole store")], (), ())
        steps = self._explain_store(last, planned) if last else first
        if not steps.reasons and number is None:
            return None
        proposal = choose_step(
            steps.reasons or [Reason("none", "nothing has changed")],
            last.number if last else (0, 0, 0),
            taken,
        )
        planned_number = number or VersionText(proposal.number)
        hint = f"the next is {VersionText(proposal.number)}"
        if any(version.text == planned_number for version in known):
            what = f"v{planned_number} is released already"
            self.problems.append(Finding("NP026", what, "A released version never changes.", hint))
        elif last and planned_number.order <= last.text.order:
            what = f"{planned_number} would go back: the store is at {last.number_text}"
            self.problems.append(Finding("NP026", what, "Version numbers only rise.", hint))
        return StoreRelease(
            planned_number,
            was=last.number_text if last else "",
            proposal=proposal,
            digest=digest_store(self.committed),
            removed=steps.removed,
            renamed=steps.renamed,
        )

    def _explain_store(self, last: Version, planned: Sequence[PlannedRelease]) -> StoreSteps:
        """Return the reasons for a version of the whole store since its last one.

        They are changes of presets and of project files. Without any, new versions of presets are
        the reason. Errors are added to ``problems``.
        """
        before = self._repository.load_revision(self._repository.resolve_commit(last.commit))
        # their digests match an unreadable version; one at another commit says nothing about it
        unchanged = {name for name, commit in self._same.items() if commit == before.commit}
        steps = StoreSteps([], (), ())
        with collect_errors(self.problems):
            steps = explain_presets(
                self._workspace.resolver,
                before,
                self.committed,
                self._configs,
                unchanged if self._uncompared else None,
            )
            steps.reasons.extend(explain_project_changes(before, self.committed))
        # other stores lock tags of the whole store: they get new versions only with another tag
        if not steps.reasons and planned:
            steps.reasons.append(Reason("patch", "only versions of presets are new"))
        return steps


def _find_causes(pair: Pair, planned: dict[str, PlannedRelease]) -> tuple[str, ...]:
    """Return the planned presets that cause a change, if the preset's own text is unchanged.

    Else none.
    """
    if pair.before is None or pair.after is None:
        return ()
    texts = {member.name: member.document.text for member in pair.before.lineage}
    *ancestors, own = pair.after.lineage
    if texts.get(own.name) != own.document.text:
        return ()
    return tuple(
        member.name
        for member in ancestors
        if member.name in planned and texts.get(member.name) != member.document.text
    )


def format_tag_message(planned: PlannedRelease) -> str:
    """Return the tag message of a version: its changes, and the record."""
    changes = format_pair_text(planned.pair) if planned.pair else ""
    body = changes or join_lines(planned.proposal.reasons)
    former = f"was {planned.proposal.former}\n" if planned.proposal.former else ""
    return f"{planned.name} {planned.number}\n\n{former}{body}\n{planned.record}"


def format_plan(plan: ReleasePlan) -> str:
    """Return a plan as text: presets with their own changes, dependents, the whole store."""
    rows = [
        (planned.label, _describe_step(planned.was, planned.proposal))
        for planned in plan.releases
        if not planned.follows
    ]
    if plan.store:
        step = _describe_step(plan.store.was, plan.store.proposal)
        rows.append((plan.store.tag, f"the whole store, {step}"))
    lines = Table(rows).format_plain().splitlines()
    # the table aligns it with the presets, but it comes after the dependents
    store_line = [lines.pop()] if plan.store else []
    for labels, followers in plan.list_followers().items():
        lines.append(f"{count_followers(followers)} {' and '.join(labels)}")
        steps = [
            (f"  {planned.label}", _describe_step(planned.was, planned.proposal, why=False))
            for planned in followers
        ]
        lines += Table(steps).format_plain().splitlines()
    return join_lines([*lines, *store_line])


def format_store_message(plan: ReleasePlan) -> str:
    """Return the tag message of the whole store: why its number, and which presets."""
    assert plan.store, "there is a version to describe"
    reasons = join_lines(plan.store.proposal.reasons)
    changes = format_plan(plan._replace(store=None)) or "no preset has a new version\n"
    return f"{plan.store.tag}\n\n{reasons}\n{changes}\nDigest: {plan.store.digest}\n"


def count_followers(releases: Sequence[PlannedRelease]) -> str:
    """Return the number of presets that follow others, as the beginning of a sentence."""
    return "1 preset follows" if len(releases) == 1 else f"{len(releases)} presets follow"


def _describe_step(was: str, proposal: Proposal, why: bool = True) -> str:
    step = f"{proposal.step} after {was}" if was else proposal.step
    step += f" (was {proposal.former})" if proposal.former else ""
    more = f", and {len(proposal.reasons) - 1} more" if len(proposal.reasons) > 1 else ""
    return f"{step}: {proposal.reasons[0]}{more}" if why else step
