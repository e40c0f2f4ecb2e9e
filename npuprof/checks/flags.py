"""Combinations of ATC flags: those of ``[atc]``, and options with an equivalent flag."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from npuprof import catalog
from npuprof.catalog import Flag
from npuprof.checks.restrictions import encode_flag_value
from npuprof.checks.view import Fault, View, find_chip
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.model import TYPE_CHECKING, Finding, Record
from npuprof.system import group_pairs

if TYPE_CHECKING:
    from npuprof.checks.rules import KeyFilter


#: The dimensions that a flag fills, by their number.
_DIMENSIONS = {1: "the first dimension", 2: "height and width"}


def check_flags(view: View, about: KeyFilter) -> Iterator[Finding]:
    """Yield flags that exclude each other, lack a required flag, or are set twice.

    For presets that ATC reads.
    """
    setters_by_flag = group_pairs(
        (flag, key) for key in view.settings if (flag := find_flag_name(key))
    )
    yield from _check_chip(view, about)
    for flag, setters in setters_by_flag.items():
        if len(setters) == 2 and about(setters):
            yield from _check_twice_given(view, flag, *sorted(setters))
        record = catalog.find_flag(flag)
        for own, excluded in _list_conflicts(record):
            name = excluded.removeprefix("--").partition("=")[0]
            pair = [setters[0], setters_by_flag[name][0]] if name in setters_by_flag else []
            if record is not None and pair and about(pair):
                yield from _check_conflict(view, record, own, excluded, *pair)
        if record is not None and not view.config.abstract:
            yield from _check_requirements(view, record, setters[0], setters_by_flag, about)
    yield from _check_sizes(view, setters_by_flag, about)


def _check_sizes(
    view: View, setters_by_flag: dict[str, list[str]], about: KeyFilter
) -> Iterator[Finding]:
    """Yield flags whose number of elements does not match the flag that they count."""
    for flag, counted_flag in _list_sized_pairs():
        if flag not in setters_by_flag or counted_flag not in setters_by_flag:
            continue
        pair = [setters_by_flag[flag][0], setters_by_flag[counted_flag][0]]
        counter, counted = catalog.find_flag(flag), catalog.find_flag(counted_flag)
        if counter and counted and all(map(view.is_decided, pair)) and about(pair):
            text, counted_text = (_format_value(view, key) for key in pair)
            if fault := _find_size_fault(counter, text, counted, counted_text):
                yield view.build_finding(fault, pair[0])


def _list_conflicts(flag: Flag | None) -> list[tuple[str, str]]:
    """Return the flags that exclude a flag, each with the excluded value.

    The value is empty if any value is excluded.
    """
    if flag is None:
        return []
    return [
        *(("", rival) for rival in flag.conflicts),
        *((own, rival) for own, listed in flag.value_conflicts.items() for rival in listed),
    ]


@cache
def list_flag_reads() -> tuple[frozenset[str], ...]:
    """Return the groups of settings that are read together.

    These are flags that may be set twice, conflicts and requirements.
    """
    setters = _list_setters()
    groups = {frozenset(both) for both in setters.values() if len(both) == 2}
    groups |= {
        frozenset((setter, another))
        for flag, second in _list_sized_pairs()
        for setter in setters[flag]
        for another in setters[second]
    }
    for flag, ours in setters.items():
        record = catalog.find_flag(flag)
        for _, second in _list_conflicts(record):
            theirs = setters.get(second.removeprefix("--").partition("=")[0], ())
            groups |= {frozenset((setter, another)) for setter in ours for another in theirs}
        for requirement in record.requires if record else ():
            required = _list_term_setters(_parse_requirement(requirement))
            groups |= {frozenset((setter, *required)) for setter in ours}
    return tuple(groups)


def _list_term_setters(terms: tuple[Term, ...]) -> list[str]:
    """Return the settings that set a flag of any alternative."""
    return [setter for term in terms for setter in _list_setters().get(term.name, ())]


@cache
def _list_setters() -> dict[str, list[str]]:
    """Return the settings that set each flag, by flag name."""
    return {
        flag.name: [*([flag.twin] if flag.twin else []), f"atc.{flag.name}"]
        for flag in catalog.list_records(Flag, "atc")
    }


class Term(Record):
    """One alternative of a requirement: a flag, with or without certain values.

    Without ``values``, any value meets it; if ``barred``, any value except those.
    """

    name: str
    values: tuple[str, ...] = ()
    barred: bool = False

    def __str__(self) -> str:
        if self.barred:
            return f"another --{self.name} than {', '.join(self.values)}"
        return f"--{self.name}={' or '.join(self.values)}" if self.values else f"--{self.name}"

    def is_met_by(self, text: str) -> bool:
        """Return whether one of the values is required, or all other values if they are barred."""
        return (text in self.values) != self.barred


@cache
def _parse_requirement(text: str) -> tuple[Term, ...]:
    """Return the alternatives of a requirement such as ``--input_format!=ND|NCDHW``."""
    terms = []
    for part in text.split(" or "):
        name, _, listed = part.removeprefix("--").partition("=")
        values = tuple(listed.split("|")) if listed else ()
        terms.append(Term(name.removesuffix("!"), values, barred=name.endswith("!")))
    return tuple(terms)


def _check_requirements(
    view: View, flag: Flag, key: str, setters_by_flag: dict[str, list[str]], about: KeyFilter
) -> Iterator[Finding]:
    """Yield the flags that another flag requires and that are certainly missing."""
    if flag.requires_unless and (
        not view.is_decided(key) or _format_value(view, key) in flag.requires_unless
    ):
        return
    for requirement in flag.requires:
        terms = _parse_requirement(requirement)
        reads = (key, *_list_term_setters(terms))
        if about(reads) and not any(_may_be_met(view, term, setters_by_flag) for term in terms):
            required = " or ".join(map(str, terms))
            what = f"--{flag.name} needs {required}"
            hint = f"give {required}, or omit --{flag.name}"
            fault = Fault("NP912", what, "ATC stops, or ignores the flag.", hint)
            if flag.stops_without:
                fault = fault._replace(why="ATC stops.", severity="error")
            yield view.build_finding(fault, key)


def _may_be_met(view: View, term: Term, setters_by_flag: dict[str, list[str]]) -> bool:
    """Return whether a flag is set as required, or may be."""
    if setters := setters_by_flag.get(term.name):
        return not term.values or any(
            not view.is_decided(key) or term.is_met_by(_format_value(view, key)) for key in setters
        )
    flag = catalog.find_flag(term.name)
    is_required = flag is not None and flag.required
    if view.may_be_given(_list_setters().get(term.name, ()), of_conversion=is_required):
        return True
    if not term.values:
        return False
    default = flag.default if flag else None
    if default is None:
        return term.barred
    return term.is_met_by(keys.format_plain_value(default))


@cache
def find_flag_name(key: str) -> str:
    """Return the ATC flag of a setting, empty if there is none."""
    section, name = keys.split_section_and_name(key)
    if section == "atc":
        return name
    option = catalog.find_option(name) if section == "options" else None
    return option.flag if option else ""


def _check_conflict(
    view: View, record: Flag, own: str, excluded: str, key: str, excluded_key: str
) -> Iterator[Finding]:
    """Yield the finding for two conflicting flags, possibly only with the ``own`` value.

    Once, if both records list it.
    """
    name, equals, value = excluded.removeprefix("--").partition("=")
    if own and not _is_certainly(view, key, own):
        return
    if equals and not _is_certainly(view, excluded_key, value):
        return
    rival = catalog.find_flag(name)
    if rival is not None and f"--{record.name}" in rival.conflicts and name < record.name:
        return  # reported at the other flag
    own_text = f"--{record.name}={own}" if own else f"--{record.name}"
    what = f"{own_text} and {excluded} exclude each other"
    fault = Fault("NP912", what, "One overrides the other.", f"unset {key} or {excluded_key}")
    if record.stops and rival is not None and rival.stops:
        fault = fault._replace(why="ATC stops.", severity="error")
    yield view.build_finding(fault, key)


def _is_certainly(view: View, key: str, text: str) -> bool:
    """Return whether a setting has a value in every context of the view, as ATC reads it."""
    return view.is_decided(key) and _format_value(view, key) == text


def _check_chip(view: View, about: KeyFilter) -> Iterator[Finding]:
    """Yield the finding for a conversion whose chip does not belong to all selected products."""
    chip = find_chip(view.settings) if view.named else None
    if chip is None or not about((chip[0],)):
        return
    key, family = chip
    others = [name for name in view.named if name != family]
    if others:
        what = (
            f"{key} = {format_short_value(view.settings[key])} "
            f"is a chip of {family}, not of {', '.join(others)}"
        )
        hint = (
            f"write a chip of {' or '.join(others)}, in an [[override]] if there are several "
            "products, or correct the products"
        )
        yield view.build_finding(Fault("NP407", what, "A conversion is for one chip.", hint), key)


def _check_twice_given(view: View, flag: str, own: str, option: str) -> Iterator[Finding]:
    """Yield the finding for a flag and its equivalent option with different values."""
    first, second = (_format_value(view, key) for key in (option, own))
    if first != second:
        what = (
            f"--{flag} is {format_short_value(first)} by {option} and "
            f"{format_short_value(second)} by {own}"
        )
        why = "Either is a setting of the preset, and a command line takes one."
        hint = f'unset {own}, or {option} in an [[override]] with match = {{ target = "atc" }}'
        yield view.build_finding(Fault("NP912", what, why, hint, severity="error"), own)


def _format_value(view: View, key: str) -> str:
    """Return the value of a setting as ATC reads it."""
    option, value = catalog.find_option(key), view.settings[key]
    return keys.format_plain_value(value if option is None else encode_flag_value(option, value))


@cache
def _list_sized_pairs() -> tuple[tuple[str, str], ...]:
    """Return the flags with a count, each with the flag whose elements it counts."""
    return tuple(
        (flag.name, counted)
        for flag in catalog.list_records(Flag, "atc")
        for counted in (*flag.filled, flag.one_per)
        if counted
    )


def _find_size_fault(flag: Flag, text: str, counted: Flag, counted_text: str) -> Fault | None:
    """Return the fault of two flags if the first lacks elements that the second requires."""
    dimensions = flag.filled.get(counted.name)
    if dimensions is not None:
        # A range of sizes, as in "1~20", needs no -1.
        if "~" in counted_text or _has_open_dimensions(counted_text, dimensions):
            return None
        where = _DIMENSIONS[dimensions]
        what = (
            f"--{flag.name} fills {where}, and --{counted.name} has no -1 there, or one elsewhere"
        )
        hint = f"write -1 for {where} in --{counted.name}, and nowhere else"
        return Fault("NP382", what, "ATC replaces each -1 with a size.", hint)
    required = len([part for part in counted_text.split(counted.separator) if part])
    count = len(text.split(flag.separator))
    if count == required:
        return None
    what = f"--{flag.name} is for {count}, and --{counted.name} names {required}"
    why = "There is one for each, in the same order."
    return Fault("NP912", what, why, f"write {required} of them")


def _has_open_dimensions(shapes: str, count: int) -> bool:
    """Return whether each shape with a -1 has exactly ``count`` of them; if one, it is the first.

    At least one shape must have one. ``shapes`` is a text such as ``"x:-1,3;y:2,3"``.
    """
    is_open = False
    for shape in shapes.split(";"):
        _, _, sizes = shape.rpartition(":")
        is_unknown = [size.strip() == "-1" for size in sizes.split(",")]
        if not any(is_unknown):
            continue
        is_open = True
        if sum(is_unknown) != count or (count == 1 and not is_unknown[0]):
            return False
    return is_open
