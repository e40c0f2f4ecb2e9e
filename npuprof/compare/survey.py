"""Comparison of two states of a store: affected presets, changed values, and new errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from npuprof.compare.preset_states import (
    Pair,
    build_resolved_pair,
    compare_raw_preset,
    compare_resolved_preset,
)
from npuprof.compare.renames import match_renamed_presets
from npuprof.compare.sides import ResolvedSide, StoreSide, WorkTree
from npuprof.model import (
    TYPE_CHECKING,
    Context,
    Finding,
    NpuprofError,
    Record,
    did_you_mean,
    raise_any,
)
from npuprof.resolve.config import Config
from npuprof.store import spec
from npuprof.store.enclosing_repository import has_release_tags
from npuprof.store.folder import Folder
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.outputs import Output, Outputs
from npuprof.store.worktree import find_converted_files
from npuprof.system import group_pairs

if TYPE_CHECKING:
    from npuprof.store.sources.opening import Sources


class Survey(Record):
    """The selected presets in two states of a store; ``before`` and ``after`` name the states.

    ``committed`` is the newer state in git, of two revisions. ``outputs`` are those of npuprof.toml
    that differ.
    """

    before: str
    after: str
    pairs: tuple[Pair, ...]
    committed: Revision | None = None
    outputs: tuple[str, ...] = ()

    @property
    def touched_pairs(self) -> list[Pair]:
        """The presets with something to report."""
        return [pair for pair in self.pairs if pair.is_touched]

    @property
    def unknown_pairs(self) -> list[Pair]:
        """The presets whose differences are unknown."""
        return [pair for pair in self.pairs if pair.unavailable and not pair.is_different]

    @property
    def different_pairs(self) -> list[Pair]:
        """The presets that differ in more than their warnings."""
        return [pair for pair in self.pairs if pair.is_different]

    @property
    def has_unread(self) -> bool:
        """Whether a preset cannot be compared."""
        return any(pair.unread for pair in self.pairs)

    def describe_unread(self) -> list[str]:
        """Return which presets cannot be compared, and why."""
        broken = [pair.name for pair in self.pairs if pair.unread and not pair.unavailable]
        reasons = {"cannot be read or resolved now": broken} if broken else {}
        reasons |= group_pairs(
            (f"{finding.message}; {finding.hint}", pair.name)
            for pair in self.pairs
            for finding in pair.unavailable
        )
        return [f"cannot compare {', '.join(names)}: {reason}" for reason, names in reasons.items()]


def compare_store_states(
    before: Revision,
    after: Revision | Folder,
    labels: tuple[str, str],
    context: Context,
    names: Sequence[str] = (),
    raw: bool = False,
    is_brief: bool = False,
) -> Survey:
    """Return every preset that may differ between two states of a store, or only the named ones.

    Files with equal content and equal ancestors are not read. With ``raw``, the files are compared
    as written. If it ``is_brief``, presets that change alike are compared once, and only one of
    them has its configs. Raises NpuprofError for a name that is in neither state.
    """
    old = StoreSide(before, context, before)
    new = StoreSide(after, context, before)
    # most values are the same in both
    new.workspace.resolver.judged = old.workspace.resolver.judged
    changed = differing = (old.names | new.names) - {
        name for name in old.names & new.names if new.is_same_file(name, before.files[name])
    }
    # filters and line endings change bytes, but not the committed content
    if isinstance(new.texts, WorkTree) and (in_both := differing & old.names & new.names):
        changed = differing - find_converted_files(before.repository, in_both, before.files)
    renamed = match_renamed_presets(
        old.texts, new.texts, old.names - new.names, new.names - old.names
    )
    # a renamed preset is listed by its new name only
    everything = sorted({*old.names, *new.names} - set(renamed.values()))
    selected = select_named_presets(names, everything, renamed) if names else everything
    if raw:
        affected = changed
    elif names:
        affected = set(selected)
        # named presets may have any ancestor
        old.texts.load_texts(old.names)
        new.texts.load_texts(new.names)
    else:
        affected = find_reached_presets(old, new, changed)
    known: dict[str, Pair] = {}
    if is_brief and not (raw or names):
        known = _compare_alike(old, new, affected - differing)
    if not raw:
        old.texts.load_texts(affected - known.keys())
    pairs = []
    for name in selected:
        was = renamed.get(name, name)
        if name in known:
            pairs.append(known[name])
        elif name not in affected and was not in affected:
            pairs.append(Pair(name, "unchanged"))
        elif raw:
            pairs.append(compare_raw_preset(old, new, name, was))
        else:
            pairs.append(compare_resolved_preset(old, new, name, was))
    return Survey(*labels, tuple(pairs))


def _compare_alike(old: StoreSide, new: StoreSide, names: Iterable[str]) -> dict[str, Pair]:
    """Return the pairs of unchanged presets that an ancestor changes as it changes another one."""
    from npuprof.compare.dependents import group_dependents, has_same_effect

    known = {}
    for first, *others in group_dependents(new, sorted(names)):
        if others:
            pair = known[first] = compare_resolved_preset(old, new, first, first)
            with suppress(NpuprofError):  # an invalid policy, which all pairs report
                if has_same_effect(pair):
                    known |= {name: Pair(name, pair.status, pair.changes) for name in others}
    return known


def compare_lock_states(before: spec.Workspace, after: spec.Workspace) -> Survey:
    """Return the differences of a folder's presets between two states of their sources.

    Both are of the same folder, each with the sources of its state; a preset without sources is
    unchanged.
    """
    old_side = ResolvedSide(before, before.store)
    new_side = ResolvedSide(after, after.store)
    stores = (before.store.label, after.store.label)
    pairs = []
    for name in after.store.names():
        old = old_side.resolve_preset(name)
        new = new_side.resolve_preset(name)
        if _have_equal_texts(old, new):
            pairs.append(Pair(name, "unchanged"))
        else:
            pairs.append(build_resolved_pair(old, new, name, name, stores))
    return Survey("npuprof.lock", "the update", tuple(pairs))


def _have_equal_texts(old: object, new: object) -> bool:
    """Return whether two configs were resolved from the same texts; False for errors."""
    if not (isinstance(old, Config) and isinstance(new, Config)):
        return False
    old_texts, new_texts = (
        [(member.key, member.document.text) for member in config.lineage] for config in (old, new)
    )
    return old_texts == new_texts


def select_named_presets(
    names: Sequence[str], known: list[str], renamed: dict[str, str]
) -> list[str]:
    """Return the selected presets by their current names.

    Raises NpuprofError for names that are on neither side.
    """
    selected = []
    problems = []
    current = {was: name for name, was in renamed.items()}
    for requested in names:
        name = current.get(requested, requested)
        if name in known:
            selected.append(name)
        else:
            hint = did_you_mean(name, known)
            problems.append(Finding("NP008", f"no preset {name!r} on either side", "", hint))
    raise_any(problems)
    return sorted(set(selected))


def find_reached_presets(old: StoreSide, new: StoreSide, changed: set[str]) -> set[str]:
    """Return the changed names and all presets that may extend them; each text is read once."""
    # rules and sources apply to all presets, also to those whose files are equal
    if have_other_policies(old.store, new.store) or have_other_sources(old.store, new.store):
        return {*old.names, *new.names}
    moved = have_moved_ranges(old.store, new.store)
    if not changed and not moved:
        return set()
    new.texts.load_texts(new.names)
    children = defaultdict(set)
    reached = set(changed)
    for name in new.names - changed:
        parents = new.read_parent_names(name)
        if parents is None:
            reached.add(name)  # unreadable: it may extend anything
        for parent in parents or ():
            children[parent].add(name)
            if moved and "@" in parent:
                reached.add(name)
    waiting = list(reached)
    while waiting:
        more = children.get(waiting.pop(), set()) - reached
        reached |= more
        waiting += more
    # most files are equal in both, and need not be read twice
    if isinstance(old.texts, Revision) and isinstance(new.texts, Revision):
        old.texts.adopt_texts(new.texts)
    return reached


def compare_outputs(before: Revision | Folder, after: Revision | Folder) -> Iterator[str]:
    """Yield the outputs whose spec, context or effective values differ, with their paths."""
    old, new = (
        {
            output.path: (
                output._replace(origin=None),
                _find_output_digest(outputs, output),
            )
            for output in outputs.declared
        }
        for outputs in (Outputs(spec.Workspace(opened=side), side) for side in (before, after))
    )
    for path, (output, _) in {**old, **new}.items():
        if old.get(path) != new.get(path):
            state = ", removed" if path not in new else "" if path in old else ", new"
            yield f"{path} ({output.describe()}{state})"


def _find_output_digest(outputs: Outputs, output: Output) -> str:
    """Return the digest of an output's effective values, an empty string if it has none."""
    try:
        return outputs.resolve(output).digest
    except NpuprofError:
        return ""


def have_moved_ranges(before: Revision | Folder, after: Revision | Folder) -> bool:
    """Return whether a reference with @ may resolve differently although no file differs."""
    if not isinstance(before, Revision) or not before.commit or not has_release_tags(before.root):
        return False
    # the records of a tag resolve references differently from the commit's ranges
    if before.release or after.release:
        return True
    repository = before.repository
    head = None if after.seen_from else repository.git.read_objects(["HEAD"])[0]
    commit = after.seen_from or (head.oid if head else "")
    # without a commit, nothing is known about the reachable tags
    return not commit or not repository.sees_same_versions(before.commit, commit)


def have_other_sources(before: Revision | Folder, after: Revision | Folder) -> bool:
    """Return whether two states have different sources; unreadable ones count as different."""
    from npuprof.store.sources.lookups import Lookups

    try:
        old, new = map(Lookups().find_sources, (before, after))
    except NpuprofError:
        return True
    sources = old.project.sources
    if (sources, old.lock.sources) != (new.project.sources, new.lock.sources):
        return True
    return any(_has_edited_copy(old, name) != _has_edited_copy(new, name) for name in sources)


def _has_edited_copy(sources: Sources, name: str) -> bool:
    """Return whether a source has a vendored copy that differs from the lock."""
    from npuprof.store.sources.opening import find_copy_faults

    return (
        sources.open_copy is not None
        and bool(sources.project.sources[name].vendor)
        and bool(find_copy_faults(sources, name))
    )


def have_other_policies(before: Revision | Folder, after: Revision | Folder) -> bool:
    """Return whether two states have different team rules or accepted findings.

    Invalid ones count as different.
    """
    try:
        return _load_policy_tables(before) != _load_policy_tables(after)
    except NpuprofError:
        return True


def _load_policy_tables(store: Revision | Folder) -> list[Record]:
    """Return the rules and accepted findings of a state, without origins. Raises NpuprofError."""
    from npuprof.store.sources.lookups import Lookups

    policy = Lookups().load_policy(store) if store.may_have_policy() else None
    if not policy:
        return []
    # a rule that only moved to another line is the same
    return [table._replace(origin=None) for table in (*policy.rules, *policy.ignores)]
