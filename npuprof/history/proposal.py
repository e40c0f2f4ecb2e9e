"""The next version number of a preset, proposed from its changes in all contexts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from npuprof.catalog import products
from npuprof.catalog.releases import is_range_within
from npuprof.compare.changes import Change, compare_configs
from npuprof.compare.folds import format_change_sentence
from npuprof.compare.override_scopes import compare_with_scopes
from npuprof.compare.preset_states import Pair, build_preset_pair
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Record
from npuprof.resolve.claims import order_claims
from npuprof.resolve.config import Config
from npuprof.resolve.digests import COMPARED_FORMS, list_preset_digests
from npuprof.store import spec
from npuprof.store.problems import UNREADABLE, advise_sync_of
from npuprof.store.versions import Version, VersionNumber

_STEPS = ("first", "major", "minor", "patch", "none")


class Proposal(Record):
    """The next number, its step (``major``, ``minor``, ``patch``, ``first``, ``none``), and why.

    ``former`` is the name and number of the last version if the preset was renamed since;
    ``unknown`` is why the changes since then are unknown, if they are.
    """

    number: VersionNumber
    step: str
    reasons: tuple[str, ...]
    former: str = ""
    unknown: str = ""


class Reason(Record):
    """A reason for the size of a step."""

    step: str
    text: str


def propose_version(
    workspace: spec.Workspace,
    config: Config,
    last: Version | None,
    is_asked: bool = True,
    uncompared: bool = False,
) -> tuple[Pair | None, Proposal]:
    """Return the changes since the last version, and the number that follows from them.

    It skips taken numbers. Raises NpuprofError if the last version cannot be read here, unless the
    number is not needed (``is_asked``), or the version may count as a breaking change
    (``uncompared``).
    """
    # also on other branches: a tag exists once in a repository
    known = workspace.store.repository.load_versions(config.name)
    taken = frozenset(version.number for version in known if not version.pre)
    if last is None:
        return None, _build_proposal("first", (0, 0, 0), ["the first release"], taken)
    try:
        before = workspace.resolver.resolve_profile(
            workspace.store.repository.load_release(last).profile(last.name)
        )
    except NpuprofError as error:
        if is_asked and not uncompared:
            require_readable(error, f"what {last.tag_name} is", f"--rev {last.tag_name}")
        unreadable = find_unreadable(error)
        if unreadable:
            proposal = _propose_uncompared(config, last, taken)
            return None, proposal._replace(unknown=unreadable[0].message)
        reason = f"{last.number_text} cannot be resolved: {error.findings[0].message}"
        return None, _build_proposal("major", last.number, [reason], taken)
    pair = build_preset_pair(before, config)
    reasons = explain_changes(before, config)
    # dependents name a preset, so that a new name needs a version
    if not reasons and last.name != config.name:
        reasons = [Reason("patch", f"only the name changed, from {last.name}")]
    reasons = reasons or [Reason("none", f"nothing has changed since {last.number_text}")]
    former = f"{last.name} until {last.number_text}" if last.name != config.name else ""
    return pair, choose_step(reasons, last.number, taken)._replace(former=former)


def require_readable(error: NpuprofError, what: str, lock: str) -> None:
    """Raise NpuprofError if an error means that something is unreadable on this machine.

    Fixing a broken preset is a change for its users; if it is only missing here, its changes are
    unknown. ``lock`` is the argument of ``source sync`` for the sources then.
    """
    way = "if it is lost: --uncompared releases it as a major step"
    findings = []
    for unreadable in find_unreadable(error):
        message = f"cannot determine {what}: {unreadable.message}"
        finding = advise_sync_of(unreadable._replace(message=message), lock)
        findings.append(finding._replace(hint=f"{finding.hint}; {way}" if finding.hint else way))
    if findings:
        raise NpuprofError(findings) from None


def find_unreadable(error: NpuprofError) -> list[Finding]:
    """Return the findings of an error that mean something is unreadable on this machine."""
    return [finding for finding in error.findings if finding.code in UNREADABLE]


def _propose_uncompared(config: Config, last: Version, taken: frozenset[VersionNumber]) -> Proposal:
    """Return the number after an unreadable version.

    It stays if its tag has the current digest, else the step is major.
    """
    record = last.record
    if (
        last.name == config.name
        and record.form in COMPARED_FORMS
        and record.preset_digest in list_preset_digests(config.lineage)
    ):
        return _build_proposal(
            "none", last.number, [f"the preset digest is that of {last.number_text}"], taken
        )
    return _build_proposal(
        "major",
        last.number,
        [f"not compared with {last.number_text}, which could not be read"],
        taken,
    )


def explain_changes(before: Config, after: Config) -> list[Reason]:
    """Return the reasons for a step between two states of a preset, texts included.

    Empty without differences.
    """
    is_same_text = _collect_texts(before.lineage) == _collect_texts(after.lineage)
    # the rules of another form can give other values
    reasons = []
    if not is_same_text or before.form != after.form:
        reasons = [*_explain_purpose(before, after)]
        compare = partial(compare_configs, trace=False)
        # in context order; those common to all contexts once
        reasons += [
            _explain_change(change)
            for change in compare_with_scopes(before, after, compare=compare)
            if not change.setting.startswith("profile.")
        ]
    if reasons or is_same_text:
        return reasons
    return [Reason("patch", "only the text changed, no resolved value")]


def choose_step(
    reasons: Sequence[Reason], last: VersionNumber, taken: frozenset[VersionNumber]
) -> Proposal:
    """Return the largest required step, with its reasons."""
    # _STEPS begins with the largest
    step = min((reason.step for reason in reasons), key=_STEPS.index)
    texts = list(dict.fromkeys(reason.text for reason in reasons if reason.step == step))
    return _build_proposal(step, last, texts, taken)


def _build_proposal(
    step: str, last: VersionNumber, reasons: list[str], taken: frozenset[VersionNumber]
) -> Proposal:
    """Return the number after the last one, or the next free one.

    Another branch may have used it.
    """
    number = _raise_number(last, step)
    while number in taken:
        reasons = [*reasons, f"{'.'.join(map(str, number))} is taken by another line of releases"]
        number = _raise_number(number, step)
    return Proposal(number, step, tuple(reasons))


def _raise_number(number: VersionNumber, step: str) -> VersionNumber:
    major, minor, patch = number
    if step in ("first", "major"):
        return major + 1, 0, 0
    if step == "minor":
        return major, minor + 1, 0
    return major, minor, patch + 1


def _explain_change(change: Change) -> Reason:
    # first: a removed key with that risk is reported by what it does to results
    if "numerics" in change.risk:
        return Reason("major", f"may change numerics: {format_change_sentence(change)}")
    if change.kind == "removed" and not change.element:
        scope = f" for {change.scope}" if change.scope else ""
        return Reason("major", f"a key is gone: {change.key}{scope}")
    return Reason("minor", f"changed: {format_change_sentence(change)}")


def _explain_purpose(before: Config, after: Config) -> Iterator[Reason]:
    """Yield changes of a preset's claims, and of the keys that its dependents may change."""
    was = before.scenario
    now = after.scenario
    # without a scenario, a preset is for all of them
    if was != now:
        yield _explain_reach("scenario", was, now, now is None)
    ranges = before.list_ranges(), after.list_ranges()
    for axis in order_claims(*ranges):
        inner, outer = (spans.get(axis) for spans in ranges)
        if inner != outer:
            wider = outer is None or (inner is not None and is_range_within(inner, outer, axis))
            yield _explain_reach(axis, inner, outer, wider)
    if sorted(before.products) != sorted(after.products):
        # no products mean all of them
        wider = not after.products or (
            bool(before.products) and _list_covered(before) <= _list_covered(after)
        )
        yield _explain_reach(
            "products", ", ".join(before.products), ", ".join(after.products), wider
        )
    for axis in {**before.axes, **after.axes}:
        had, has = (sorted(config.axes.get(axis, ())) for config in (before, after))
        if had != has:
            wider = not has or (bool(had) and set(had) <= set(has))
            yield _explain_reach(axis, ", ".join(had), ", ".join(has), wider)
    if before.abstract != after.abstract:
        yield Reason("major", "abstract now" if after.abstract else "not abstract any more")
    was_locked, is_locked = (
        {key for profile in config.lineage for key in profile.locked} for config in (before, after)
    )
    for key in sorted(was_locked ^ is_locked):
        if key in is_locked:
            yield Reason("major", f"locked now, so a dependent may break: {key}")
        else:
            yield Reason("major", f"not locked any more: {key}")


def _explain_reach(name: str, was: str | None, now: str | None, wider: bool) -> Reason:
    step, change = ("minor", "widened") if wider else ("major", "narrowed")
    return Reason(step, f"{name} {change}: {was or 'any'} → {now or 'any'}")


def _list_covered(config: Config) -> set[str]:
    """Return the products that a preset supports, families and lines."""
    # unknown names count, too: the catalogue may be older than the preset
    return {name for name in config.products if products.find_product(name) is None} | {
        name
        for name in products.product_names()
        if any(products.is_product_covered(pattern, name) for pattern in config.products)
    }


def _collect_texts(lineage: Sequence[Profile]) -> list[str]:
    # line endings are git's to convert
    return [profile.document.text.replace("\r\n", "\n") for profile in lineage]
