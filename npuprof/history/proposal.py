"""The number of the next version of a preset, proposed from what changed in any context since the last one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product as combinations
from typing import NamedTuple

from npuprof.catalog import products, releases
from npuprof.catalog.releases import is_range_within
from npuprof.compare.changes import Change, compare_configs
from npuprof.compare.folds import format_change_sentence
from npuprof.compare.pairs import Pair, build_preset_pair
from npuprof.document.profile import Override, Profile
from npuprof.model import Context, Finding, NpuprofError, Record
from npuprof.resolve import is_match_met, is_override_active
from npuprof.resolve.claims import order_claims
from npuprof.resolve.config import Config
from npuprof.resolve.contexts import build_point, list_frameworks_matched, resolve_elsewhere
from npuprof.resolve.digests import FORM
from npuprof.store import spec
from npuprof.store.gitstore import revisions
from npuprof.store.sources.mirror import UNREADABLE, advise_sync_of
from npuprof.store.versions import Version, VersionNumber

_STEPS = ("first", "major", "minor", "patch", "none")


class Proposal(Record):
    """The next number, how big a step it is (``major``, ``minor``, ``patch``, ``first``, ``none``), and why.

    ``former`` is the name that the preset had until the last version, with its number, where it has another one now; ``untold``
    is why nobody can tell what changed since then, where that is so.
    """

    number: VersionNumber
    step: str
    reasons: tuple[str, ...]
    former: str = ""
    untold: str = ""


class Reason(NamedTuple):
    """Why a step is as big as it is."""

    step: str
    text: str


def propose_version(
    workspace: spec.Workspace,
    config: Config,
    last: Version | None,
    taken: frozenset[VersionNumber],
    is_asked: bool = True,
    uncompared: bool = False,
) -> tuple[Pair | None, Proposal]:
    """Return what changed since the last version, and the number that follows from it; numbers that are ``taken`` are left out.

    Raises NpuprofError if the last version cannot be read here, unless the number is not needed (``is_asked``), or it may
    count as what breaks everything (``uncompared``).
    """
    if last is None:
        return None, _build_proposal("first", (0, 0, 0), ["the first release"], taken)
    try:
        before = workspace.resolver.resolve_profile(revisions.load_release(workspace.store, last).profile(last.name))
    except NpuprofError as error:
        if is_asked and not uncompared:
            require_readable(error, f"what {last.tag_name} is", f"--rev {last.tag_name}")
        if untold := find_unreadable(error):
            return None, _propose_uncompared(config, last, taken)._replace(untold=untold[0].message)
        reason = f"{last.number_text} cannot be resolved: {error.findings[0].message}"
        return None, _build_proposal("major", last.number, [reason], taken)
    pair = build_preset_pair(before, config)
    reasons = explain_changes(before, config)
    if not reasons and last.name != config.name:
        reasons = [Reason("patch", f"only the name changed, from {last.name}")]
    reasons = reasons or [Reason("none", f"nothing has changed since {last.number_text}")]
    former = f"{last.name} until {last.number_text}" if last.name != config.name else ""
    return pair, choose_step(reasons, last.number, taken)._replace(former=former)


def require_readable(error: NpuprofError, what: str, words: str) -> None:
    """Raise NpuprofError where an error says that something is not to be read here, and nothing of what it is.

    A preset that was broken changes for its users once it is fixed; if it is only absent here, its changes are unknown.
    """
    findings = [
        advise_sync_of(finding._replace(message=f"nobody can tell {what}: {finding.message}"), words) for finding in find_unreadable(error)
    ]
    way = "where nobody has it any more: --uncompared releases it as a major step"
    if findings:
        raise NpuprofError(finding._replace(hint=f"{finding.hint}; {way}" if finding.hint else way) for finding in findings) from None


def find_unreadable(error: NpuprofError) -> list[Finding]:
    """Return what of an error says that something is not to be read here, and nothing of what it is."""
    return [finding for finding in error.findings if finding.code in UNREADABLE]


def _propose_uncompared(config: Config, last: Version, taken: frozenset[VersionNumber]) -> Proposal:
    """Return the number after a version that cannot be read: the same if its tag records the current digest, else a major step."""
    record = last.record
    if last.name == config.name and record.form == FORM and record.preset_digest == config.preset_digest:
        return _build_proposal("none", last.number, [f"the preset digest is that of {last.number_text}"], taken)
    return _build_proposal("major", last.number, [f"not compared with {last.number_text}, which could not be read"], taken)


def explain_changes(before: Config, after: Config) -> list[Reason]:
    """Return what asks for a step from one state of a preset to another, text too; nothing where there is no difference."""
    if _collect_texts(before.lineage) == _collect_texts(after.lineage):
        return []
    return list(_explain_changes(before, after)) or [Reason("patch", "only the text changed, no resolved value")]


def choose_step(reasons: Sequence[Reason], last: VersionNumber, taken: frozenset[VersionNumber]) -> Proposal:
    """Return the biggest step that is asked for, and who asks for it."""
    step = min((reason.step for reason in reasons), key=_STEPS.index)
    texts = list(dict.fromkeys(reason.text for reason in reasons if reason.step == step))
    return _build_proposal(step, last, texts, taken)


def _build_proposal(step: str, last: VersionNumber, reasons: list[str], taken: frozenset[VersionNumber]) -> Proposal:
    """Return the number after the last one, or the next that is free: another line of releases may have taken it."""
    place = 0 if step in ("first", "major") else 1 if step == "minor" else 2
    number = _raise_number(last, place)
    while number in taken:
        reasons = [*reasons, f"{'.'.join(map(str, number))} is taken by another line of releases"]
        number = _raise_number(number, place)
    return Proposal(number, step, tuple(reasons))


def _raise_number(number: VersionNumber, place: int) -> VersionNumber:
    major, minor, patch = number
    return ((major + 1, 0, 0), (major, minor + 1, 0), (major, minor, patch + 1))[place]


def _explain_changes(before: Config, after: Config) -> Iterator[Reason]:
    """Yield what asks for a step, in the order of contexts; what is the same in all of them once."""
    yield from _explain_purpose(before, after)
    known: set[str] = set()
    for context, changes, resolved in compare_everywhere(before, after):
        where = describe_context(context)
        if resolved[0] != resolved[1]:
            yield Reason("major", f"cannot be resolved any more{where}") if resolved[0] else Reason("minor", f"resolves again{where}")
        for change in changes:
            if change.setting.startswith("profile.") or (mark := repr((change.key, change.kind, change.before, change.after))) in known:
                continue
            known.add(mark)
            yield _explain_change(change, where)


def _explain_change(change: Change, where: str) -> Reason:
    if "numerics" in change.risk:
        return Reason("major", f"may change numerics: {format_change_sentence(change)}{where}")
    if change.kind == "removed" and not change.element:
        return Reason("major", f"a key is gone: {change.key}{where}")
    return Reason("minor", f"changed: {format_change_sentence(change)}{where}")


def _explain_purpose(before: Config, after: Config) -> Iterator[Reason]:
    """Yield changes of what a preset is for, and of what its dependents may change."""
    was, now = before.scenario, after.scenario
    if was != now:
        yield _explain_reach("scenario", was, now, now is None)
    ranges = before.list_ranges(), after.list_ranges()
    for axis in order_claims(*ranges):
        inner, outer = (spans.get(axis) for spans in ranges)
        if inner != outer:
            wider = outer is None or (inner is not None and is_range_within(inner, outer, axis))
            yield _explain_reach(axis, inner, outer, wider)
    if sorted(before.products) != sorted(after.products):
        wider = not after.products or (bool(before.products) and _list_covered(before) <= _list_covered(after))
        yield _explain_reach("products", ", ".join(before.products), ", ".join(after.products), wider)
    if before.abstract != after.abstract:
        yield Reason("major", "abstract now" if after.abstract else "not abstract any more")
    locks = [{key for profile in config.lineage for key in profile.locked} for config in (before, after)]
    for key in sorted(locks[0] ^ locks[1]):
        yield Reason("major", f"locked now, so an heir may break: {key}" if key in locks[1] else f"not locked any more: {key}")


def _explain_reach(name: str, was: str | None, now: str | None, wider: bool) -> Reason:
    return Reason("minor" if wider else "major", f"{name} {'widened' if wider else 'narrowed'}: {was or 'any'} → {now or 'any'}")


def _list_covered(config: Config) -> set[str]:
    """Return the products that a preset is meant for, families and their lines."""
    known = {name for name in products.product_names() if any(products.is_product_covered(pattern, name) for pattern in config.products)}
    return known | {name for name in config.products if products.find_product(name) is None}


def _collect_texts(lineage: Sequence[Profile]) -> list[str]:
    return [profile.document.text.replace("\r\n", "\n") for profile in lineage]


class ContextChanges(NamedTuple):
    """What changes in one context and those like it; ``resolved`` says on which sides the preset can be resolved there."""

    context: Context
    changes: list[Change]
    resolved: tuple[bool, bool]


def compare_everywhere(before: Config, after: Config) -> Iterator[ContextChanges]:
    """Yield what changes in one context of each kind: two are of a kind where the same overrides take part on both sides.

    No context is left out: products, releases and targets that no override names are like one that was not asked for.
    """
    sides = [(config, [override for profile in config.lineage for override in profile.overrides]) for config in (before, after)]
    seen: set[tuple[bool, ...]] = set()
    for context in _list_contexts([override for _, overrides in sides for override in overrides]):
        active = tuple(is_override_active(override, context, config.scenario) for config, overrides in sides for override in overrides)
        if active in seen:
            continue
        seen.add(active)
        old, new = (resolve_elsewhere(config, context) for config in (before, after))
        changes = compare_configs(old, new, trace=False) if old and new else []
        yield ContextChanges(context, changes, (old is not None, new is not None))


def _list_contexts(overrides: list[Override]) -> Iterator[Context]:
    """Yield the contexts that overrides may distinguish, the empty one first."""
    axes = ["product", "cann", "target", *list_frameworks_matched(overrides)]
    named = {axis: {text for override in overrides for text in override.match.get(axis, ())} for axis in axes}
    strange = sorted(text for text in named["product"] if products.find_product(text) is None)
    known = {"product": (*products.product_names(), *strange), "target": tuple(sorted(named["target"]))}
    values = [(None, *(known.get(axis) or _list_telling_releases(axis, named[axis]))) if named[axis] else (None,) for axis in axes]
    for combination in combinations(*values):
        yield build_point(Context(), dict(zip(axes, combination, strict=True)))


def _list_telling_releases(axis: str, specs: Iterable[str]) -> list[str]:
    """Return releases of CANN or a framework of which no two are inside of the same of some ranges."""
    telling = {tuple(is_match_met(axis, (spec,), name) for spec in specs): name for name in reversed(releases.load_releases(axis))}
    return [*reversed(telling.values())]


def describe_context(context: Context) -> str:
    """Return a context as the end of a sentence; an empty text for the empty one."""
    words = [f"{name} {value}" for name in ("product", "cann", "target") if (value := getattr(context, name))]
    words += [f"{name} {release}" for name, release in context.versions]
    return f" for {', '.join(words)}" if words else ""
