"""Faults of time: which releases read a setting, for options, variables, flags and settings."""

from __future__ import annotations

from itertools import starmap

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.programs import find_program
from npuprof.checks.view import Fault
from npuprof.document import keys
from npuprof.model import TYPE_CHECKING, Context, Finding, Record, TomlTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Lifetime(Record):
    """The releases that read a setting, with one letter for each release of an axis.

    The letters are those of catalogue records. ``subject`` is the name of the setting in messages,
    and of one of its values if the letters are those of the value. ``unread`` says what releases
    that do not read it do with it. ``variable`` is the name of a variable, whose texts are loaded
    for faults only, and ``framework`` is the program that reads it.
    """

    subject: str
    axis: str
    states: str = ""
    deprecated: str = ""
    no_effect: str = ""
    replaced_by: str = ""
    successor_states: str = ""
    unread: str = "where nothing reads it, it is ignored silently"
    variable: str = ""
    framework: str = ""

    def load_texts(self) -> TomlTable:
        """Return the texts of a variable, which are loaded apart."""
        return catalog.find_record_texts("env", self.variable) if self.variable else {}

    def list_other_readers(self) -> list[str]:
        """Return the programs of other axes that may read a variable.

        Programs such as the graph engine are parts of CANN, and have its releases.
        """
        others = set(releases.list_frameworks()) - {self.framework}
        return [reader for reader in self.load_texts().get("read_by", ()) if reader in others]


def build_lifetime(key: str, record: catalog.Entry) -> Lifetime:
    """Return the lifetime of an option, a variable, a flag or a setting, by its record."""
    section, name = keys.split_section_and_name(key)
    lifetime = Lifetime(
        key,
        releases.find_axis(section, record),
        record.states,
        record.deprecated,
        record.no_effect,
        record.replaced_by,
        record.successor_states,
    )
    if isinstance(record, catalog.Variable):
        return lifetime._replace(variable=name, framework=record.framework)
    if isinstance(record, catalog.Setting):
        if name != record.name:  # another flag of an argument
            states = record.flag_reads.get(f"--{name}", record.states)
            lifetime = lifetime._replace(states=intersect_states(record.states, states))
        return lifetime._replace(unread="others fail at it or ignore it")
    return lifetime


def intersect_states(letters: str, others: str) -> str:
    """Return the releases of both, ``?`` where the first are unknown."""
    # "." sorts before "Y"
    return "".join(
        letter if letter == "?" else min(letter, other)
        for letter, other in zip(letters or others, others, strict=True)
    )


def find_lifetime_faults(lifetime: Lifetime, covered: tuple[str, ...]) -> Iterator[Fault]:
    """Yield that releases do not read a setting, ignore it, or call it deprecated.

    ``covered`` are the named releases of its axis. Without any, the newest stable release decides:
    what it reads, and does not ignore, gets a note at most.
    """
    if not (lifetime.states or lifetime.deprecated or lifetime.no_effect):
        return
    if not covered:
        yield from _judge_newest(lifetime)
        return
    if unread := select_releases(lifetime, lifetime.states, covered, "."):
        yield _build_unread_fault(lifetime, covered, unread)
        return
    states = lifetime.states
    if find_program(lifetime.axis):  # nothing is recorded of its oldest releases
        states = states.lstrip("?").rjust(len(states), "Y")
    if unknown := select_releases(lifetime, states, covered, "?"):
        yield _build_unknown_fault(lifetime, unknown)
    yield from _find_age_fault(lifetime, covered)


def find_choice(record: catalog.Setting, value: Any) -> Any:
    """Return the choice that a value is, None if it is none.

    Enums and the backends of kernels are read in any letter case.
    """

    def fold(text: Any) -> str:
        is_folded = record.kind == "any" or record.name.endswith(("_backend", "-backend"))
        return str(text).lower().replace("-", "_") if is_folded else str(text)

    return next(
        (each for each in record.choices if value == each or fold(value) == fold(each)), None
    )


def find_value_states(record: catalog.Setting, value: Any) -> str:
    """Return the ``states`` of a choice, or of a value where any is accepted; empty for all."""
    if not record.choices:
        return record.unlimited if is_out_of_range(record, value) else ""
    choice = find_choice(record, value)
    states = record.choice_reads.get(str(choice), "")
    if not record.unlimited or (not states and choice is not None):
        return states
    # "." sorts before "Y"
    return "".join(map(max, record.unlimited, states or record.unlimited))


def is_out_of_range(record: catalog.Setting, value: Any) -> bool:
    """Return whether a value is a number outside the bounds of an argument."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    low, high = record.minimum, record.maximum
    is_outside = (low is not None and value < low) or (high is not None and value > high)
    return is_outside or value in (record.above, record.below)


def build_newer_findings(context: Context) -> list[Finding]:
    """Return a note for each requested release that is newer than all known ones."""
    return list(starmap(build_newer_finding, context.newer))


def build_newer_finding(axis: str, written: str) -> Finding:
    """Return the note that a release is newer than all known ones of its axis."""
    what = f"{axis} {written} is newer than all known releases"
    why = f"{releases.load_releases(axis)[-1]}, the newest known one, is checked instead."
    return Finding("NP402", what, why, "update npuprof for newer ones", severity="info")


def _judge_newest(lifetime: Lifetime) -> Iterator[Fault]:
    """Yield the fault of a setting for which no release is named."""
    axis, title = lifetime.axis, _get_title(lifetime.axis)
    newest, lines = releases.find_stable_lines(axis)
    if not select_releases(lifetime, lifetime.states, (newest,), "."):
        for fault in _find_age_fault(lifetime, (newest,)):
            # the run may use an older release, in which nothing is to be done
            yield fault._replace(severity="info") if fault.code == "NP501" else fault
        return
    known = releases.load_releases(axis)
    reading = select_releases(lifetime, lifetime.states, known, "Y")
    later = [name for name in reading if known.index(name) > known.index(newest)]
    if later:
        span, hint = f"from {title} {later[0]} on", f"set it for {later[0]} and newer"
        if later != list(known[known.index(later[0]) :]):  # read, and dropped again
            span = f"by {title} {releases.format_release_span(later, axis)} only"
            hint = _advise_successor(lifetime, (newest,)) or "unset it for other releases"
        what = f"{lifetime.subject} is read {span}"
        why = f"The newest stable release, {newest}, does not read it."
        yield Fault("NP502", what, why, hint, severity="info")
        return
    successor = _advise_successor(lifetime, (newest,))
    if not set(reading).isdisjoint(lines):
        what = f"{lifetime.subject} is no longer read in {title} {newest}"
        why = f"{title} {reading[-1]} is the last release that reads it."
        hint = successor or "unset it for newer releases"
        yield Fault("NP502", what, why, hint, severity="info")
        return
    why = f"No release of {title} reads it."
    if reading:
        why = f"The last release of {title} that reads it is {reading[-1]}."
    reason = "" if reading else lifetime.load_texts().get("why_unread", "")
    what = "has no effect"
    if find_program(axis) and not lifetime.variable:
        what, reason = f"is unknown to {title} {newest}", catalog.load_sections()[axis].unknown
    others = lifetime.list_other_readers()
    if others and not reason:
        reason = f"Perhaps {', '.join(others)} still reads it."
    yield Fault(
        "NP502",
        f"{lifetime.subject} {what}",
        f"{why} {reason}".rstrip(),
        successor or "unset it",
        severity="info" if others else "warning",
    )


def _find_age_fault(lifetime: Lifetime, covered: tuple[str, ...]) -> Iterator[Fault]:
    """Yield that a setting has no effect in the newest covered release, or is deprecated there."""
    title, newest = _get_title(lifetime.axis), covered[-1]
    if select_releases(lifetime, lifetime.no_effect, covered[-1:], "Y"):
        what = f"{lifetime.subject} has no effect in {title} {newest}"
        why = f"{title} takes the value and does nothing with it."
        yield Fault("NP502", what, why, _advise_successor(lifetime, covered) or "unset it")
    elif select_releases(lifetime, lifetime.deprecated, covered[-1:], "Y"):
        first = _find_start(lifetime.deprecated, lifetime.axis, newest)
        since = f"since {title} {first}" if first else f"in {title} {newest}"
        hint = _advise_successor(lifetime, covered) or "unset it if you can"
        # what replaces it is not there yet: the old name is the right one for now
        is_early = bool(lifetime.replaced_by) and not _is_successor_read(lifetime, covered)
        yield Fault(
            "NP501",
            f"{lifetime.subject} is deprecated {since}",
            "A later release may remove it.",
            hint,
            severity="info" if is_early else "warning",
        )


def _build_unread_fault(lifetime: Lifetime, covered: tuple[str, ...], unread: list[str]) -> Fault:
    axis, title = lifetime.axis, _get_title(lifetime.axis)
    other_readers = lifetime.list_other_readers()
    span = releases.describe_set(lifetime.states, axis)
    reading = f"It is read by {title} {span}" if span != "none" else f"No {title} reads it"
    if other_readers:
        reading = f"{reading}, and perhaps by {', '.join(other_readers)}"
    hint = _advise_successor(lifetime, covered)
    if not hint.startswith("use "):
        later = f"; {hint}" if hint else ""
        hint = f"unset it there, or narrow {axis}{later}"
    what = f"{lifetime.subject} is not read in {title} {releases.format_release_span(unread, axis)}"
    return Fault(
        "NP404",
        what,
        f"{reading}; {lifetime.unread}.",
        hint,
        severity="warning" if other_readers else "error",
    )


def _build_unknown_fault(lifetime: Lifetime, unknown: list[str]) -> Fault:
    axis = lifetime.axis
    span = f"{_get_title(axis)} {releases.format_release_span(unknown, axis)}"
    what = f"it is not known whether {span} reads {lifetime.subject}"
    if releases.load_axis(axis).documented:
        why = f"Its documentation lists it for {releases.describe_set(lifetime.states, axis)}."
    else:
        why = (
            "The sources of these releases could not be read; it is missing before them and "
            "there after them."
        )
    hint = f"narrow {axis} to releases that certainly read it, or test it"
    return Fault("NP405", what, why, hint)


def _advise_successor(lifetime: Lifetime, covered: tuple[str, ...]) -> str:
    """Return the advice to use a successor: now, or from a release on; empty if there is none."""
    if not lifetime.replaced_by:
        return ""
    following = _find_successor(lifetime)
    # a successor may have one of its own; two rows may name each other
    if (
        following is not None
        and following.replaced_by not in ("", lifetime.subject)
        and any(
            select_releases(following, marks, covered[-1:], "Y")
            for marks in (following.deprecated, following.no_effect)
        )
    ):
        return _advise_successor(following, covered)
    name = lifetime.replaced_by
    if catalog.find_option(name) is not None and lifetime.subject.startswith("env."):
        name = f"the TensorFlow adapter's option {name}"
    states = lifetime.successor_states
    reading = select_releases(lifetime, states, covered, "Y")
    missing = [release for release in covered if release not in reading]
    if not states or not missing:
        return f"use {name}"
    known = releases.load_releases(lifetime.axis)
    later = select_releases(lifetime, states, known[known.index(missing[-1]) :], "Y")
    return f"from {_get_title(lifetime.axis)} {later[0]}: use {name}" if later else ""


def _is_successor_read(lifetime: Lifetime, covered: tuple[str, ...]) -> bool:
    """Return whether one of some releases deprecates a setting and reads its successor.

    One such release is enough: there, the setting has to be replaced.
    """
    warning = tuple(select_releases(lifetime, lifetime.deprecated, covered, "Y"))
    states = lifetime.successor_states
    return not states or bool(select_releases(lifetime, states, warning, "Y"))


def _find_successor(lifetime: Lifetime) -> Lifetime | None:
    """Return the lifetime of a successor on the same axis, None if no record is known."""
    key = lifetime.replaced_by
    if lifetime.variable and catalog.find_variable(key):
        key = f"env.{key}"
    record = catalog.find_key_record(key)
    if record is None or isinstance(record, catalog.Argument):
        return None
    successor = build_lifetime(key, record)
    return successor if successor.axis == lifetime.axis else None


def _find_start(letters: str, axis: str, release: str) -> str:
    """Return the first of the consecutive releases with the letter ``Y`` up to a release.

    Empty if they begin with the first known one.
    """
    known = releases.load_releases(axis)
    before = letters[: known.index(release) + 1].rstrip("Y")
    return known[len(before)] if before else ""


def select_releases(
    lifetime: Lifetime, letters: str, names: tuple[str, ...], letter: str
) -> list[str]:
    """Return those of some releases that have a letter; none without letters."""
    known = releases.load_releases(lifetime.axis)
    return [name for name in names if name in known and letters[known.index(name) :][:1] == letter]


def _get_title(axis: str) -> str:
    return "CANN" if axis == releases.CANN else axis
