"""One preset in two states: what it resolves to in each, which findings are new and which are gone."""

from __future__ import annotations

from typing import Any

from npuprof import checks
from npuprof.compare import changes as diff
from npuprof.compare.changes import Change
from npuprof.compare.scopes import compare_with_scopes
from npuprof.compare.sides import StoreSide
from npuprof.model import Finding, NpuprofError, Record
from npuprof.resolve.config import Config
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.problems import UNTOLD, advise_sync_of, is_untold


class Pair(Record):
    """One preset before and after. ``status`` is ``changed``, ``added``, ``removed``, ``unchanged``, or ``unknown``.

    ``was`` is the name it had before, where it was renamed. ``broken`` are the errors and warnings it has now and had not
    before, ``mended`` those that are gone; ``valid`` says whether it has no errors, before and after (None: not there).
    ``unread`` says that nothing is known of what differs: it cannot be read or resolved now, or a source that one of its sides
    builds on is not on this machine, as ``untold`` says.
    """

    name: str
    status: str
    changes: tuple[Change, ...] = ()
    was: str = ""
    before: Config | None = None
    after: Config | None = None
    broken: tuple[Finding, ...] = ()
    mended: tuple[Finding, ...] = ()
    valid: tuple[bool | None, bool | None] = (None, None)
    unread: bool = False
    untold: tuple[Finding, ...] = ()

    @property
    def is_touched(self) -> bool:
        """Whether it differs, has other warnings, or is unknown."""
        return bool(self.is_different or self.broken or self.mended or self.untold)

    @property
    def is_different(self) -> bool:
        """Whether it resolves differently, has another name or other errors."""
        came_and_went = (*self.broken, *self.mended)
        return bool(
            self.status not in ("unchanged", "unknown") or self.was or any(finding.severity == "error" for finding in came_and_went)
        )


def build_preset_pair(before: Config, after: Config, name: str = "") -> Pair:
    """Return what differs between two configs, and between the errors they have."""
    changes = tuple(compare_with_scopes(before, after))
    pair = Pair(name or after.name, "changed" if changes else "unchanged", changes, "", before, after)
    return _add_fault_changes(pair, _judge_side(before, ""), _judge_side(after, ""))


def compare_resolved_preset(old: StoreSide, new: StoreSide, name: str, was: str) -> Pair:
    """Return what a preset resolves to on both sides; ``was`` is its name on the first."""
    sides = old.resolve_preset(was), new.resolve_preset(name)
    pair = build_resolved_pair(*sides, name, was, (old.store.label, new.store.label))
    if not pair.untold:
        return pair
    untold = [
        advise_sync_of(finding, f"--rev {side.store.commit[:12]}") if isinstance(side.store, Revision) else finding
        for side, resolved in zip((old, new), sides, strict=True)
        for finding in _list_untold(resolved)
    ]
    return pair._replace(untold=tuple(dict.fromkeys(untold)))


def build_resolved_pair(
    before: Config | NpuprofError | None, after: Config | NpuprofError | None, name: str, was: str, labels: tuple[str, str]
) -> Pair:
    """Return what differs between two results of resolving a preset; ``labels`` are what messages call the two stores."""
    old = None if isinstance(before, NpuprofError) else before
    new = None if isinstance(after, NpuprofError) else after
    changes = tuple(compare_with_scopes(old, new)) if old and new else ()
    untold = tuple(dict.fromkeys((*_list_untold(before), *_list_untold(after))))
    if before is None or after is None:
        status = "added" if before is None else "removed"
        only = new or old
        changes = tuple(diff.build_one_sided_changes(only.ordered_settings(), status, only.origin)) if only else ()
    else:
        status = "unknown" if untold else "changed" if changes or (old is None) != (new is None) else "unchanged"
    unread = bool(untold) or isinstance(after, NpuprofError)
    pair = Pair(name, status, changes, was if was != name else "", old, new, unread=unread, untold=untold)
    return _add_fault_changes(pair, _judge_side(before, labels[0]), _judge_side(after, labels[1]))


def _list_untold(side: Config | NpuprofError | None) -> tuple[Finding, ...]:
    """Return the findings that a source is not on this machine, so that a side of a preset is unknown."""
    return tuple(finding for finding in side.findings if finding.code in UNTOLD) if isinstance(side, NpuprofError) else ()


def compare_raw_preset(old: StoreSide, new: StoreSide, name: str, was: str) -> Pair:
    """Return what differs in the file of a preset, inheritance aside; ``was`` is its name on the first."""
    documents: list[Any] = []
    faults: list[tuple[Finding, ...]] = []
    for side, called in ((old, was), (new, name)):
        try:
            documents.append(side.store.profile(called).document if called in side.names else None)
            faults.append(())
        except NpuprofError as error:
            documents.append(None)
            faults.append(tuple(error.findings))
    changes = tuple(diff.compare_documents(*documents))
    there = (was in old.names, name in new.names)
    status = "changed" if changes or any(faults) else "unchanged"
    status = status if all(there) else "added" if there[1] else "removed"
    return Pair(
        name, status, changes, was if was != name else "", None, None, faults[1], () if faults[1] else faults[0], unread=bool(faults[1])
    )


class _Verdict(Record):
    """What is wrong with one side of a pair: errors and warnings; ``label`` is what its store is called in them.

    One that is not ``judged`` could not be read or resolved: of what the checks would say of it, nothing is known.
    """

    is_there: bool
    faults: tuple[Finding, ...]
    label: str
    judged: bool = True

    @property
    def valid(self) -> bool | None:
        """Whether it has no errors; None if it is absent or unknown."""
        if is_untold(self.faults):
            return None
        return not any(fault.severity == "error" for fault in self.faults) if self.is_there else None

    def list_marks(self) -> list[tuple[str, str, str]]:
        """Return what makes each fault the same on the other side, where the store has another name."""
        marks = map(checks.identify_finding, self.faults)
        return [(code, key, message.replace(self.label, "the store") if self.label else message) for code, key, message in marks]


def _judge_side(side: Config | NpuprofError | None, label: str) -> _Verdict:
    if isinstance(side, NpuprofError):
        return _Verdict(True, tuple(side.findings), label, judged=False)
    try:
        return _Verdict(side is not None, tuple(checks.check_config(side, notes=False)) if side is not None else (), label)
    except NpuprofError as error:  # what the team says in that tree cannot be understood
        return _Verdict(True, tuple(error.findings), label, judged=False)


def _add_fault_changes(pair: Pair, before: _Verdict, after: _Verdict) -> Pair:
    """Return a pair with the errors and warnings that came and went, found or from resolving."""
    marks = before.list_marks(), after.list_marks()
    broken = tuple(fault for fault, mark in zip(after.faults, marks[1], strict=True) if mark not in marks[0])
    broken = broken if not is_untold(before.faults) else ()
    known = after.is_there and after.judged and not is_untold(before.faults)
    mended = tuple(fault for fault, mark in zip(before.faults, marks[0], strict=True) if mark not in marks[1]) if known else ()
    return pair._replace(broken=broken, mended=mended, valid=(before.valid, after.valid))
