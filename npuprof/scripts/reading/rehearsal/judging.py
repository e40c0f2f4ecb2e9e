"""What follows for a setting from what happened to its object: too late, taken back, overruled, or nothing."""

from __future__ import annotations

from bisect import bisect_right

from npuprof.catalog.values import is_same_typed_value
from npuprof.scripts.reading.found import TAKEN_BACK, TOO_LATE, FoundSetting
from npuprof.scripts.reading.rehearsal.happenings import Assigned, Cleared, Moment, Returned, Spot, Used
from npuprof.scripts.reading.rehearsal.heap import ENVIRON, Born, Heap, Path, covers
from npuprof.scripts.reading.rehearsal.rehearsing import Rehearsal

#: So many uses before a setting, and after it, are looked at.
_MOST_LOOKED_AT = 40


def find_spot(one: FoundSetting) -> Spot:
    """Return where a setting is told in the script itself."""
    return one.call if one.call else (one.line, one.column)


class Judge:
    """What has happened to each object, and what follows for what is set in it."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._heap: Heap = rehearsal.heap
        self._guards = rehearsal.guards
        self._implied = rehearsal.implied
        self._replaced = rehearsal.replaced
        self._replacing = {after: number for number, (_, after) in rehearsal.replaced.items()}
        self.assigned: dict[Spot, list[Assigned]] = {}
        self.uses: dict[int, list[Used]] = {}
        self._cleared: dict[int, list[Cleared]] = {}
        self._returned: dict[int, list[Returned]] = {}
        self._idle: dict[int, str] = {}
        for one in rehearsal.happened:
            if isinstance(one, Assigned):
                for spot in one.spots:
                    self.assigned.setdefault(spot, []).append(one)
            elif isinstance(one, Used):
                self.uses.setdefault(one.number, []).append(one)
            elif isinstance(one, Returned):
                self._returned.setdefault(one.number, []).append(one)
            elif isinstance(one, Cleared):
                self._cleared.setdefault(one.number, []).append(one)

    def judge_objects(self, found: FoundSetting) -> dict[int, str]:
        """Return for each object that a setting is made in why it is not in force there, empty where it is."""
        by_path: dict[tuple[int, Path], list[str]] = {}
        for one in self.list_assigned(found):
            by_path.setdefault((one.number, one.path), []).append(self._judge(one, found))
        told: dict[int, str] = {}
        for (number, _), reasons in by_path.items():
            told[number] = told.get(number, "") or (reasons[0] if all(reasons) else "")
        return told

    def list_unused(self) -> list[int]:
        """Return the objects that are made in sight, and that nothing in sight is given."""
        return [number for number, born in enumerate(self._heap.born) if born.place and number not in self.uses and not born.shared]

    def set_idle(self, reasons: dict[int, str]) -> None:
        """Take note why objects have no effect."""
        self._idle = reasons

    def list_assigned(self, found: FoundSetting) -> list[Assigned]:
        """Return when a setting is made, and in which objects."""
        env = found.surface == "env"
        assigned = [one for one in self.assigned.get(find_spot(found), ()) if env is (one.number == ENVIRON)]
        return [one for one in assigned if found.within in one.spots] if found.within else assigned

    def _judge(self, one: Assigned, found: FoundSetting) -> str:
        born = self._heap.born[one.number]
        if born.taken_out:
            return f"it belongs to an entry that line {born.taken_out} takes out"
        if one.number not in self.uses and not born.shared and (why := self._judge_names(one.number)):
            return why
        if one.number in self._idle:
            return self._idle[one.number]
        earlier, later = self._select_uses(one, not found.branches)
        reason = self._judge_order(one.moment, earlier, later, born) or ("" if found.branches else self._judge_returned(one))
        reason = reason or ("" if found.branches else self._judge_skipped(one, later, born))
        if reason or found.reason == TAKEN_BACK:
            return reason
        return self._judge_cleared(one, _fill_name(one.path, found.name), later)

    def _judge_skipped(self, one: Assigned, later: list[Used], born: Born) -> str:
        """Return why a setting may be passed over although its object is used."""
        moment = one.moment
        sure = {*born.arms, *self._implied.get(one.number, ())}
        doubts = [arm for arm in moment.arms if arm[0] in self._guards and arm[1] == 0 and arm not in sure]
        for arm in doubts:
            use = next((use for use in later if arm not in use.moment.arms), None)
            if use is not None or (not self.uses.get(one.number) and born.shared):
                told = f", and {use.what} (line {use.moment.line}) all the same" if use is not None else ""
                return f"may be passed over: {self._guards[arm[0]]}{told}"
        if moment.run != born.run:
            uses = (use for use in self.uses.get(one.number, ()) if use.certain and use.moment.run == born.run)
            if (use := next(uses, None)) is not None:
                return f"runs when something out of sight calls it, maybe after {use.what} (line {use.moment.line})"
        return ""

    def _judge_names(self, number: int) -> str:
        """Return why an object that nothing uses has no effect: its name is that of another, which something uses."""
        line, after = self._replaced.get(number, (0, 0))
        for _ in range(_MOST_LOOKED_AT):
            if after in self.uses or self._heap.born[after].shared:
                break
            after = self._replaced.get(after, (0, 0))[1]
        if line and after:
            return f"line {line} makes the configuration anew, and this one goes nowhere"
        before = self._replacing.get(number, 0)
        if before in self.uses:
            return f"line {self._heap.born[number].line} makes the configuration anew, and nothing is given this one"
        return ""

    def _select_uses(self, one: Assigned, always: bool) -> tuple[list[Used], list[Used]]:
        """Return the uses of the object before it is set, and those after that.

        What is told as ``always`` set does not hold for a use before it that leaves the function either.
        """
        uses = self.uses.get(one.number, [])
        at = bisect_right(uses, one.moment.time, key=lambda use: use.moment.time)
        near = uses[max(0, at - _MOST_LOOKED_AT) : at], uses[at : at + _MOST_LOOKED_AT]
        before, after = ([use for use in some if use.moment.run == one.moment.run] for some in near)
        return [use for use in before if always or use.moment.can_meet(one.moment)], [
            use for use in after if use.moment.can_meet(one.moment)
        ]

    def _judge_order(self, moment: Moment, before: list[Used], after: list[Used], born: Born) -> str:
        certain = [use for use in before if use.certain]
        if certain:
            first = certain[-1]
            told = f"{TOO_LATE}{first.what} (line {first.moment.line})"
            around = set(moment.loops) - set(born.loops)
            if not after and any(around.intersection(use.moment.loops) for use in certain):
                return f"{told}, in a loop: only later turns have it"
            if after:
                return f"{told} and before {after[0].what} (line {after[0].moment.line}): one has it, the other has not"
            return told
        if before and not after and not born.shared:
            last = before[-1]
            return f"stands after {last.what} was given the configuration (line {last.moment.line}), which may have used it by then"
        return ""

    def _judge_returned(self, one: Assigned) -> str:
        for way in self._returned.get(one.number, ())[:200]:
            if way.moment.time < one.moment.time <= way.until and way.moment.run == one.moment.run:
                return f"line {way.moment.line} may return the configuration before this is set"
        return ""

    def _judge_cleared(self, one: Assigned, path: Path, after: list[Used]) -> str:
        for clear in self._cleared.get(one.number, ())[:200]:
            later = clear.moment.time > one.moment.time and clear.moment.run == one.moment.run
            if not later or not clear.moment.can_meet(one.moment) or not covers(clear.path, path):
                continue
            between = [use for use in after if use.moment.time < clear.moment.time and use.certain]
            if not between:
                return f"line {clear.moment.line} takes it back"
            if any(use.moment.time > clear.moment.time for use in after):
                return f"line {clear.moment.line} takes it back, after {between[0].what} (line {between[0].moment.line}) with it"
        return ""

    def list_certain_uses(self, one: Assigned, until: int) -> list[Used]:
        """Return the uses of an object between the time something is set in it and another time, if that is later."""
        uses = self.uses.get(one.number, [])
        at = bisect_right(uses, one.moment.time, key=lambda use: use.moment.time)
        near = uses[at : at + _MOST_LOOKED_AT]
        return [use for use in near if use.moment.time < until and use.certain and use.moment.can_meet(one.moment)]


class Timeline:
    """The settings of each object by their names, in the order in which they are made."""

    def __init__(self, judge: Judge, found: list[FoundSetting]) -> None:
        self._judge = judge
        self._found = found
        self._made: dict[tuple[int, str], list[tuple[Assigned, FoundSetting]]] = {}
        for one in found:
            for event in judge.list_assigned(one):
                self._made.setdefault((event.number, one.name), []).append((event, one))
        for events in self._made.values():
            events.sort(key=lambda pair: (pair[0].moment.time, pair[1].order))

    def judge_all(self) -> dict[int, dict[int, str]]:
        """Return why settings are not in force in the objects that they are made in, by their identity.

        The last ones are judged first, for others depend on them.
        """
        told: dict[int, dict[int, str]] = {}
        for one in sorted(self._found, key=self._find_time, reverse=True):
            told[id(one)] = self._judge.judge_objects(one)
            for number, why in self._judge_overruled(one, told).items():
                told[id(one)][number] = told[id(one)][number] or why
        return told

    def _find_time(self, one: FoundSetting) -> tuple[int, int]:
        return max((event.moment.time for event in self._judge.list_assigned(one)), default=0), one.order

    def _judge_overruled(self, one: FoundSetting, judged: dict[int, dict[int, str]]) -> dict[int, str]:
        """Return why a setting does not hold, where another function always sets the same after it, or a line between two uses."""
        by_object: dict[int, list[str]] = {}
        for event in self._judge.list_assigned(one):
            by_object.setdefault(event.number, []).append(self._judge_event(event, one, judged))
        return {
            number: told[0] if all(told) else next((why for why in told if "holds up to" in why), "") for number, told in by_object.items()
        }

    def _judge_event(self, event: Assigned, one: FoundSetting, judged: dict[int, dict[int, str]]) -> str:
        events = self._made[event.number, one.name]
        at = bisect_right(events, (event.moment.time, one.order), key=lambda pair: (pair[0].moment.time, pair[1].order))
        for later, other in events[at : at + _MOST_LOOKED_AT]:
            same = not one.reason and not other.reason and is_same_typed_value(one.value, other.value)
            if same or later.moment.run != event.moment.run or not later.moment.can_meet(event.moment):
                continue
            if not _is_same_entry(event.path, later.path):
                continue
            line = later.moment.line
            between = self._judge.list_certain_uses(event, later.moment.time)
            if between:
                if self._judge.list_certain_uses(later, 1 << 60):
                    return f"holds up to line {line} only, which sets it again after {between[-1].what} (line {between[-1].moment.line})"
                return ""
            if set(later.moment.arms) <= set(event.moment.arms) and (
                other.scope != one.scope or other.reason or judged.get(id(other), {}).get(later.number)
            ):
                return f"line {line} sets it again" + (f", to what {other.reason}" if other.reason.startswith("depends") else "")
        return ""


def _is_same_entry(path: Path, other: Path) -> bool:
    one, two = (some[: some.index("parameter_map")] if "parameter_map" in some else some for some in (path, other))
    return len(one) == len(two) and covers(one, two)


def _fill_name(path: Path, name: str) -> Path:
    """Return a path with the name of the option where the key of a loop stands."""
    if not path:
        return (f"[{name!r}]",)
    at = path.index("parameter_map") + 1 if "parameter_map" in path else len(path)
    return (*path[:at], f"[{name!r}]", *path[at + 1 :]) if at < len(path) else path
