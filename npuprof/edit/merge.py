"""Three-way merge of profiles as data: by key, by list element, by the match of an override.

What only one side changed is taken; what both changed alike is taken once; all else is a clash. No value of
either side is lost: it is in the result, or its path is in a clash.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from npuprof.catalog import values
from npuprof.document import keys
from npuprof.document.profile import PROFILE_KEYS
from npuprof.edit.paths import MISSING, PathChange, find_at_path, is_same_document
from npuprof.edit.sequences import find_differing_runs
from npuprof.model import SECTIONS, Path, Record


class Clash(Record):
    """Where both sides changed one thing differently: the path in ours, and the three values (or MISSING)."""

    path: Path
    base: Any
    ours: Any
    theirs: Any
    there: Path = ()


class Merge:
    """The outcome of a three-way merge: ``steps`` to make to ours, and ``clashes`` that need a person.

    ``forced`` are paths that clash wherever the sides differ. ``guessed`` means that both sides added parents, and
    ours were put first.
    """

    def __init__(self, base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any], forced: Sequence[Path] = ()) -> None:
        self.steps: list[PathChange] = []
        self.clashes: list[Clash] = []
        self.guessed = False
        self._forced = frozenset(forced)
        for name in dict.fromkeys((*ours, *theirs, *base)):
            self._merge_node((name,), (name,), *(side.get(name, MISSING) for side in (base, ours, theirs)))

    def _merge_node(self, path: Path, there: Path, base: Any, ours: Any, theirs: Any) -> None:
        if values.is_same_typed_value(ours, theirs):
            return
        if path in self._forced:
            self.clashes.append(Clash(path, base, ours, theirs, there))
        elif path == ("override",):
            self._merge_overrides(base, ours, theirs)
        elif isinstance(ours, dict) and isinstance(theirs, dict):
            below = base if isinstance(base, dict) else {}
            for name in dict.fromkeys((*ours, *theirs)):
                self._merge_node((*path, name), (*there, name), *(side.get(name, MISSING) for side in (below, ours, theirs)))
        elif values.is_same_typed_value(theirs, base):
            return
        elif values.is_same_typed_value(ours, base):
            self.steps.append(PathChange(path, theirs, there))
        else:
            self._merge_changed_twice(path, there, base, ours, theirs)

    def _merge_changed_twice(self, path: Path, there: Path, base: Any, ours: Any, theirs: Any) -> None:
        """Merge what both sides changed, and differently."""
        key = find_setting_key(path)
        if len(path) == 1 + (path[0] == "append") and all(side is MISSING or isinstance(side, dict) for side in (base, ours, theirs)):
            self._merge_node(path, there, *({} if side is MISSING else side for side in (base, ours, theirs)))
            return  # a section that is gone: its keys are
        if key and MISSING not in (ours, theirs) and values.is_equivalent_setting(key, ours, theirs):
            return  # one meaning in two forms
        if key and isinstance(ours, (str, dict, list)) and isinstance(theirs, (str, dict, list)) and str in (type(ours), type(theirs)):
            merged = _merge_text_forms(key, base, ours, theirs)
        elif isinstance(ours, list) and isinstance(theirs, list):
            below = base if isinstance(base, list) else []
            merged = self._merge_list(path, below, ours, theirs)
        else:
            merged = MISSING
        if merged is MISSING:
            self.clashes.append(Clash(path, base, ours, theirs, there))
        elif not values.is_same_typed_value(merged, ours):
            self.steps.append(PathChange(path, merged, there))

    def _merge_list(self, path: Path, base: list[Any], ours: list[Any], theirs: list[Any]) -> Any:
        if _is_unordered_list(path):
            return merge_unordered_lists(base, ours, theirs)
        merged, guessed = merge_ordered_lists(base, ours, theirs)
        if guessed and path == ("profile", "extends"):
            self.guessed = True
        return merged

    def _merge_overrides(self, base: Any, ours: Any, theirs: Any) -> None:
        """Merge override blocks: those with one match are the same block; their order counts."""
        path = ("override",)
        if values.is_same_typed_value(theirs, base) and not any(forced[0] == "override" for forced in self._forced):
            return
        sides = [index_override_blocks(side) for side in (base, ours, theirs)]
        if None in sides:
            self._take_whole_overrides(base, ours, theirs)
            return
        below, mine, rival = (side or {} for side in sides)
        common = [mark for mark in mine if mark in rival]
        moved = [mark for mark in rival if mark in mine] != common
        fresh = [mark in mine for mark in rival if mark in mine or mark not in below]
        if moved or fresh != sorted(fresh, reverse=True):
            self._take_whole_overrides(base, ours, theirs)
            return
        others, first = {mark: number for number, mark in enumerate(rival)}, len(self.clashes)
        gone: list[int] = []
        new: list[PathChange] = []
        for place, (mark, block) in enumerate(mine.items()):
            before = below.get(mark, MISSING)
            if mark in rival:
                self._merge_node((*path, place), (*path, others[mark]), before, block, rival[mark])
            elif values.is_same_typed_value(before, block):
                gone.append(place)
            elif before is not MISSING:
                self.clashes.append(Clash((*path, place), before, block, MISSING, path))
        for mark in (mark for mark in others if mark not in mine):
            there = (*path, others[mark])
            if mark not in below:
                new.append(PathChange((*path, len(mine) + len(new)), rival[mark], there))
            elif not values.is_same_typed_value(below[mark], rival[mark]):
                self.clashes.append(Clash((*path, len(mine)), below[mark], MISSING, rival[mark], there))
        self.steps += [*new, *(PathChange((*path, place), MISSING, path) for place in reversed(gone))]
        size = len(mine) + len(new) - len(gone)
        for index, clash in enumerate(self.clashes[first:], first):  # places in what the steps leave
            place = clash.path[1]
            if place == len(mine):
                place, size = size, size + 1
            else:
                place -= bisect_left(gone, place)
            self.clashes[index] = clash._replace(path=(*path, place, *clash.path[2:]))

    def _take_whole_overrides(self, base: Any, ours: Any, theirs: Any) -> None:
        path = ("override",)
        if values.is_same_typed_value(ours, base):
            self.steps.append(PathChange(path, theirs, path))
        else:
            self.clashes.append(Clash(path, base, ours, theirs, path))


def is_merge_of_both(data: dict[str, Any], base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Return whether a document contains what both sides changed, and nothing else.

    The order of override blocks, which a merge by key leaves to a person, may be any.
    """
    merge = Merge(base, ours, theirs)
    wanted = deepcopy(ours)
    for step in merge.steps:
        step.make(wanted)
    if any(clash.path != ("override",) for clash in merge.clashes):
        return False
    if not merge.clashes:
        return is_same_document(data, wanted)
    if not is_same_document(*({**side, "override": []} for side in (data, wanted))):
        return False
    blocks, *sides = (index_override_blocks(side.get("override", MISSING)) for side in (data, base, ours, theirs))
    if blocks is None or None in sides:
        return False
    for mark in {mark for side in sides for mark in side or ()}:
        below, mine, rival = ({"override": [side[mark]]} if side and mark in side else {} for side in sides)
        merged = Merge(below, mine, rival)
        for step in merged.steps:
            step.make(mine)
        block = (mine.get("override") or [MISSING])[0]
        if merged.clashes or not values.is_same_typed_value(blocks.pop(mark, MISSING), block):
            return False
    return not blocks


def find_setting_key(path: Path) -> str:
    """Return the full key of the setting a path of a document leads to, or an empty text."""
    if path[:1] == ("append",):
        path = path[1:]
    elif path[:1] == ("override",):
        path = path[2:]
    return keys.format_full_key(path[0], path[1]) if len(path) == 2 and path[0] in SECTIONS else ""


def _is_unordered_list(path: Path) -> bool:
    if path[0] == "profile" or path[-1] == "unset":
        return (key := PROFILE_KEYS.get(path[-1])) is not None and key.unordered
    inner = path[1:] if path[0] == "append" else path[2:] if path[0] == "override" else path
    if len(inner) < 2 or inner[0] not in SECTIONS:
        return inner[:1] == ("match",)
    structure = values.find_structure(keys.format_full_key(inner[0], inner[1]))
    return structure is not None and structure.unordered


def _merge_text_forms(key: str, base: Any, ours: Any, theirs: Any) -> Any:
    """Merge a setting of which a side has the text form through its structured form; MISSING if that cannot be."""
    structure = values.find_structure(key)
    three = [values.parse_structured_value(key, side) for side in (base, ours, theirs)]
    if structure is None or structure.file or any(isinstance(side, str) for side in three):
        return MISSING
    section, name = keys.split_section_and_name(key)
    below, mine, rival = ({section: {name: side}} if side is not MISSING else {} for side in three)
    inner = Merge(below, mine, rival)
    if inner.clashes:
        return MISSING
    merged: dict[str, Any] = mine
    for step in inner.steps:
        step.make(merged)
    value = find_at_path(merged, (section, name))
    if value is MISSING or structure.faults(value):
        return MISSING
    return structure.format(value) if isinstance(ours, str) else value


def _identify_value(value: Any) -> str:
    return keys.format_toml_value(value) if not isinstance(value, float) else f"float {value!r}"


def index_override_blocks(side: Any) -> dict[str, Any] | None:
    """Return override blocks by their match (and how many of it came before), None if the form is wrong."""
    if side is MISSING:
        return {}
    if not isinstance(side, list) or not all(isinstance(block, dict) for block in side):
        return None
    blocks: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    for block in side:
        match = block.get("match")
        ordered = dict(sorted(match.items())) if isinstance(match, dict) else match
        mark = _identify_value(ordered) if ordered is not None else ""
        blocks[f"{mark} {counts[mark]}"] = block
        counts[mark] += 1
    return blocks


def match_override_blocks(side: dict[str, Any], counterpart: dict[str, Any]) -> dict[int, int]:
    """Return the number that each override block of a document has in another one; none for blocks that are not there."""
    first, second = (list(index_override_blocks(data.get("override", MISSING)) or ()) for data in (side, counterpart))
    places = {mark: number for number, mark in enumerate(second)}
    return {number: places[mark] for number, mark in enumerate(first) if mark in places}


def merge_unordered_lists(base: list[Any], ours: list[Any], theirs: list[Any]) -> list[Any]:
    """Merge lists as sets: ours without what theirs removed, then what theirs added."""
    below, mine, rival = ({_identify_value(item) for item in side} for side in (base, ours, theirs))
    remaining = [item for item in ours if _identify_value(item) in rival or _identify_value(item) not in below]
    return remaining + [item for item in theirs if _identify_value(item) not in mine and _identify_value(item) not in below]


class _Hunks:
    """How one side turned a list into another: what came before each element, and what each element became."""

    def __init__(self, base: list[str], side: list[str], items: list[Any]) -> None:
        self.before: dict[int, list[Any]] = {}
        self.became: dict[int, list[Any]] = {}
        for first, last, start, end in find_differing_runs(base, side):
            for step in range(last - first):
                self.became[first + step] = items[start + step : min(start + step + 1, end)]
            if end - start > last - first:
                self.before[last] = items[start + last - first : end]


def merge_ordered_lists(base: list[Any], ours: list[Any], theirs: list[Any]) -> tuple[Any, bool]:
    """Merge lists whose order counts; return the list, or MISSING where both changed one place differently.

    The second value means that both sides added at one place: names, tables and lists then follow one after
    the other, ours first. Single numbers do not: there a place means something.
    """
    marks = [[_identify_value(item) for item in side] for side in (base, ours, theirs)]
    mine, rival = _Hunks(marks[0], marks[1], ours), _Hunks(marks[0], marks[2], theirs)
    merged: list[Any] = []
    guessed = False
    for place in range(len(base) + 1):
        first, second = mine.before.get(place, []), rival.before.get(place, [])
        if first and second and list(map(_identify_value, first)) != list(map(_identify_value, second)):
            if not all(isinstance(item, (str, list, dict)) for item in (*first, *second)):
                return MISSING, False
            guessed = True
            known = set(map(_identify_value, first))
            second = [item for item in second if _identify_value(item) not in known]
        elif first:
            second = []
        merged += first + second
        if place == len(base):
            break
        changed = [side.became[place] for side in (mine, rival) if place in side.became]
        if len(changed) == 2 and list(map(_identify_value, changed[0])) != list(map(_identify_value, changed[1])):
            return MISSING, False
        merged += changed[0] if changed else [base[place]]
    if Counter(map(_identify_value, merged)) - (Counter(marks[1]) | Counter(marks[2])):
        return MISSING, False  # both moved one element, to different places
    return merged, guessed
