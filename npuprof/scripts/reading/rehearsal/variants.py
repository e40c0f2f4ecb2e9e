"""Configurations that one line of a script makes several times, or that are copies of each other: which settings each of them has."""

from __future__ import annotations

from npuprof.model import Record
from npuprof.scripts.reading.found import GOES_NOWHERE, FoundSetting
from npuprof.scripts.reading.rehearsal.happenings import Copied
from npuprof.scripts.reading.rehearsal.judging import Judge
from npuprof.scripts.reading.rehearsal.rehearsing import Rehearsal

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: Why a setting is not in force in each of the objects that it is made in, empty where it is.
    Reasons = dict[int, str]

_MOST_VARIANTS = 12


class Variant(Record):
    """Objects that have the same settings, of several that one line makes.

    ``label`` is what stands in ``FoundSetting.objects``, ``family`` what all have in common that are made there. ``line`` and ``function``
    are those of the first use, ``is_given`` tells whether a NPURunConfig takes it there. ``owner`` is the class of the script whose objects
    make it.
    """

    label: str
    family: str
    line: int
    function: str = ""
    owner: str = ""
    is_given: bool = False


class Variants:
    """The variants of a script; ``objects`` are the labels of those that have a setting, by its identity."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []
        self.objects: dict[int, tuple[str, ...]] = {}
        self.refused: dict[int, str] = {}

    def find_reason(self, one: FoundSetting, told: Reasons) -> str:
        """Return why a setting is not in force, empty where it is or where nothing is known against it."""
        if id(one) in self.refused:
            return self.refused[id(one)]
        if id(one) in self.objects:
            return ""
        reasons = list(told.values())
        firm = [why for why in reasons if why and not _may_hold_elsewhere(why)]
        return firm[0] if firm else reasons[0] if reasons and all(reasons) else ""


def _may_hold_elsewhere(why: str) -> bool:
    """Return whether a reason is about one object, and says nothing of others that the same line sets something in."""
    return (why.startswith("line ") and " sets it again" in why) or why.startswith(GOES_NOWHERE)


def tell_objects_apart(rehearsal: Rehearsal, judge: Judge, found: list[FoundSetting], by_object: dict[int, Reasons]) -> Variants:
    """Return what objects have that one line makes unlike each other."""
    variants = Variants()
    families = _find_families(rehearsal) if rehearsal.is_complete else {}
    by_family: dict[int, list[FoundSetting]] = {}
    for one in found:
        for family in dict.fromkeys(families[number] for number in by_object[id(one)] if number in families):
            by_family.setdefault(family, []).append(one)
    members: dict[int, list[int]] = {}
    for number, family in families.items():
        if any(not use.what.endswith("took a copy") for use in judge.uses.get(number, ())):
            members.setdefault(family, []).append(number)
    for family, settings in by_family.items():
        having = {number for one in settings for number in by_object[id(one)] if families.get(number) == family}
        used = members.get(family) or sorted(having)  # where they are used is out of sight
        _split_family(rehearsal, judge, family, used, settings, families, by_object, variants)
    return variants


def _split_family(
    rehearsal: Rehearsal,
    judge: Judge,
    family: int,
    used: list[int],
    settings: list[FoundSetting],
    families: dict[int, int],
    by_object: dict[int, Reasons],
    variants: Variants,
) -> None:
    born = rehearsal.heap.born
    several = f"line {born[family].line} makes the configuration several times, and not each has this"
    having: dict[int, list[int]] = {number: [] for number in used}
    for one in settings:
        told = by_object[id(one)]
        for number in used:
            if told.get(number) == "":
                having[number].append(id(one))
        known = [told[number] for number in used if number in told]
        if all(known):
            variants.refused[id(one)] = known[0] if known else next(filter(None, told.values()), several)
    kinds: dict[tuple[int, ...], list[int]] = {}
    for number, held in having.items():
        kinds.setdefault(tuple(held), []).append(number)
    scopes = {one.scope for one in settings if any(id(one) in marks for marks in kinds)}
    if len(kinds) < 2 and len(scopes) < 2:
        return
    shared = any(len({families.get(number, -1) for number in by_object[id(one)]}) > 1 for one in settings)
    if shared or len(kinds) > _MOST_VARIANTS:
        for one in settings:
            if 0 < sum(id(one) in marks for marks in kinds) < len(kinds):
                variants.refused[id(one)] = several
        return
    for at, (marks, numbers) in enumerate(kinds.items()):
        first = next((use for use in judge.uses.get(numbers[0], ()) if not use.what.endswith("took a copy")), None)
        label, made = f"{family}/{at}", born[numbers[0]]
        line, function = (first.moment.line, first.function) if first is not None else (made.line, "")
        given = first is not None and "RunConfig" in first.what
        variants.variants.append(Variant(label, str(family), line, function, made.owner, given))
        for mark in marks:
            variants.objects[mark] = (*variants.objects.get(mark, ()), label)


def _find_families(rehearsal: Rehearsal) -> dict[int, int]:
    """Return for each object the first one of those that the same line makes, or that are copies of each other."""
    leader: dict[int, int] = {}
    places: dict[tuple[object, ...], int] = {}

    def find(number: int) -> int:
        while leader[number] != number:
            number = leader[number]
        return number

    for number, born in enumerate(rehearsal.heap.born):
        if born.place:
            leader[number] = find(places.setdefault(born.place, number)) if born.place in places else number
            places.setdefault(born.place, number)
    for one in rehearsal.happened:
        if isinstance(one, Copied) and one.number in leader and one.source in leader:
            first, other = sorted((find(one.number), find(one.source)))
            leader[other] = first
    return {number: find(number) for number in leader}
