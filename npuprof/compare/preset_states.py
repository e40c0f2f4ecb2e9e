"""One preset in two states: its resolved values, new findings and fixed findings."""

from __future__ import annotations

from operator import attrgetter

from npuprof import checks
from npuprof.compare import changes as diff
from npuprof.compare.changes import Change
from npuprof.compare.override_scopes import compare_with_scopes
from npuprof.compare.sides import StoreSide
from npuprof.document import Document
from npuprof.model import TRUST_CODES, TYPE_CHECKING, Finding, NpuprofError, Record, select_errors
from npuprof.resolve.config import Config
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.problems import UNAVAILABLE, advise_sync_of, lacks_source

if TYPE_CHECKING:
    from npuprof.checks.accepted import Accepted


class Pair(Record):
    """One preset before and after.

    ``status`` is ``changed``, ``added``, ``removed``, ``unchanged``, or ``unknown``.

    ``was`` is the former name of a renamed preset. ``broken`` are its new errors and warnings,
    ``fixed`` the fixed ones; ``accepted`` are its findings that are accepted only after, those
    about execution first. ``valid`` is whether it has no errors, before and after (None: missing).
    ``unread`` is set if the differences are unknown: the preset cannot be read or resolved, or a
    source of one side is missing on this machine, as reported in ``unavailable``.
    """

    name: str
    status: str
    changes: tuple[Change, ...] = ()
    was: str = ""
    before: Config | None = None
    after: Config | None = None
    broken: tuple[Finding, ...] = ()
    fixed: tuple[Finding, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    valid: tuple[bool | None, bool | None] = (None, None)
    unread: bool = False
    unavailable: tuple[Finding, ...] = ()

    @property
    def is_touched(self) -> bool:
        """Whether it differs, has other warnings or accepted findings, or is unknown."""
        return bool(
            self.is_different or self.broken or self.fixed or self.accepted or self.unavailable
        )

    @property
    def is_different(self) -> bool:
        """Whether it resolves differently, has another name or other errors."""
        came_and_went = (*self.broken, *self.fixed)
        return bool(
            self.status not in ("unchanged", "unknown") or self.was or select_errors(came_and_went)
        )


def build_preset_pair(before: Config, after: Config, name: str = "") -> Pair:
    """Return the differences between two configs and between their errors."""
    name = name or after.name
    return build_resolved_pair(before, after, name, name, ("", ""))


def compare_resolved_preset(old: StoreSide, new: StoreSide, name: str, was: str) -> Pair:
    """Return the differences of a resolved preset; ``was`` is its name on the old side."""
    sides = old.resolve_preset(was), new.resolve_preset(name)
    pair = build_resolved_pair(*sides, name, was, (old.store.label, new.store.label))
    if not pair.unavailable:
        return pair
    unavailable: list[Finding] = []
    for side, resolved in zip((old, new), sides, strict=True):
        findings = _list_unavailable(resolved)
        # the lock of that commit may name other commits than the one in the work tree
        if isinstance(side.store, Revision):
            lock = f"--rev {side.store.commit[:12]}"
            findings = tuple(advise_sync_of(finding, lock) for finding in findings)
        unavailable += findings
    return pair._replace(unavailable=tuple(dict.fromkeys(unavailable)))


def build_resolved_pair(
    before: Config | NpuprofError | None,
    after: Config | NpuprofError | None,
    name: str,
    was: str,
    labels: tuple[str, str],
) -> Pair:
    """Return the differences of two resolution results.

    ``labels`` are the names of the two stores in messages.
    """
    old = None if isinstance(before, NpuprofError) else before
    new = None if isinstance(after, NpuprofError) else after
    changes = tuple(compare_with_scopes(old, new)) if old and new else ()
    unavailable = tuple(dict.fromkeys((*_list_unavailable(before), *_list_unavailable(after))))
    if before is None or after is None:
        status = "added" if before is None else "removed"
        only = new or old
        if only:
            changes = tuple(
                diff.build_one_sided_changes(only.ordered_settings(), status, only.origin)
            )
    elif unavailable:
        status = "unknown"
    # broken on one side only: no values can be compared, but something has changed
    elif changes or (old is None) != (new is None):
        status = "changed"
    else:
        status = "unchanged"
    pair = Pair(
        name,
        status,
        changes,
        was=was if was != name else "",
        before=old,
        after=new,
        unread=bool(unavailable) or isinstance(after, NpuprofError),
        unavailable=unavailable,
    )
    return _add_fault_changes(pair, _judge_side(before, labels[0]), _judge_side(after, labels[1]))


def _list_unavailable(side: Config | NpuprofError | None) -> tuple[Finding, ...]:
    """Return the findings about sources missing here, without which a side is unknown."""
    findings = side.findings if isinstance(side, NpuprofError) else ()
    return tuple(finding for finding in findings if finding.code in UNAVAILABLE)


def compare_raw_preset(old: StoreSide, new: StoreSide, name: str, was: str) -> Pair:
    """Return the differences in a preset's file, without inheritance.

    ``was`` is its name on the old side.
    """
    before, fixed = _read_document(old, was)
    after, broken = _read_document(new, name)
    changes = tuple(diff.compare_documents(before, after))
    status = "changed" if changes or fixed or broken else "unchanged"
    if was not in old.names or name not in new.names:
        status = "added" if name in new.names else "removed"
    return Pair(
        name,
        status,
        changes,
        was if was != name else "",
        broken=broken,
        fixed=() if broken else fixed,
        unread=bool(broken),
    )


def _read_document(side: StoreSide, name: str) -> tuple[Document | None, tuple[Finding, ...]]:
    """Return a preset's file, None if it cannot be read, and the faults of reading it."""
    try:
        return side.store.profile(name).document if name in side.names else None, ()
    except NpuprofError as error:
        return None, error.findings


class _Verdict(Record):
    """The errors and warnings of one side of a pair; ``label`` is the name of its store in them.

    If not ``judged``, the preset is missing, or it could not be read or resolved, as its errors
    report.
    """

    judged: bool
    faults: tuple[Finding, ...]
    label: str
    accepted: tuple[Accepted, ...] = ()

    @property
    def valid(self) -> bool | None:
        """Whether it has no errors; None if it is missing or unknown."""
        if lacks_source(self.faults) or not (self.judged or self.faults):
            return None
        return not select_errors(self.faults)

    def identify_faults(self) -> list[tuple[str, str, str]]:
        """Return the code, key and message of each fault, without the name of the store.

        Tuples: each is searched among those of the other side.
        """
        return [
            # two revisions have other labels, which would make every message a new one
            (code, key, message.replace(self.label, "the store") if self.label else message)
            for code, key, message in map(checks.identify_finding, self.faults)
        ]


def _judge_side(side: Config | NpuprofError | None, label: str) -> _Verdict:
    if isinstance(side, NpuprofError):
        return _Verdict(False, tuple(side.findings), label)
    if side is None:
        return _Verdict(False, (), label)
    try:
        verdict = checks.judge_config(side, notes=None)
    except NpuprofError as error:  # an invalid team policy in that tree
        return _Verdict(False, tuple(error.findings), label)
    faults = tuple(finding for finding in verdict.findings if finding.severity != "info")
    return _Verdict(True, faults, label, accepted=tuple(verdict.accepted))


def _list_newly_accepted(before: _Verdict, after: _Verdict) -> tuple[Accepted, ...]:
    """Return the findings that are accepted only after, each once.

    One about execution also if its value differs.
    """
    known = set(map(_identify_accepted, before.accepted))
    new = []
    for accepted in sorted(after.accepted, key=attrgetter("order")):
        identity = _identify_accepted(accepted)
        if identity not in known:
            known.add(identity)
            new.append(accepted)
    return tuple(new)


def _identify_accepted(accepted: Accepted) -> tuple[str, str, str]:
    """Return the code and key of an accepted finding, and its value if that is executed."""
    finding = accepted.finding
    value = repr(accepted.value) if finding.code in TRUST_CODES else ""
    return finding.code, finding.key, value


def _add_fault_changes(pair: Pair, before: _Verdict, after: _Verdict) -> Pair:
    """Return a pair with its new, fixed and accepted findings, from checks or resolution."""
    pair = pair._replace(valid=(before.valid, after.valid))
    # without the old side, nothing can be called new
    if lacks_source(before.faults):
        return pair
    changed: tuple[Finding, ...] = ()
    if pair.before and pair.after and pair.before.versions != pair.after.versions:
        from npuprof.checks.changed_defaults import find_defaults_of_ranges

        changed = find_defaults_of_ranges(pair.before, pair.after)
    return pair._replace(
        broken=(*_list_faults_missing_in(before, after), *changed),
        # The faults of a side that could not be judged are unknown, not fixed.
        fixed=_list_faults_missing_in(after, before) if after.judged else (),
        accepted=_list_newly_accepted(before, after),
    )


def _list_faults_missing_in(other: _Verdict, verdict: _Verdict) -> tuple[Finding, ...]:
    """Return the faults of a verdict that the other side does not have."""
    known = set(other.identify_faults())
    identified = zip(verdict.faults, verdict.identify_faults(), strict=True)
    return tuple(fault for fault, identity in identified if identity not in known)
