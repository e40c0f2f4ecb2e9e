"""Which settings of a script are in force where its configuration is used: those made before that, and not taken out again.

What is set after the last use of a configuration, in a part that the script empties, in an object whose name is given to another one,
or in a function that never runs, is reported as unused. What one use has and another has not is reported too: no preset holds both.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from npuprof.scripts.reading.found import TAKEN_BACK, FoundSetting
from npuprof.scripts.reading.happenings import Assigned, Cleared, Moment, Spot, Used
from npuprof.scripts.reading.heap import Born, Heap, covers
from npuprof.scripts.reading.idle import find_idle_functions
from npuprof.scripts.reading.rehearsal import Rehearsal
from npuprof.scripts.reading.source import Script

_SURFACES = ("session", "global_options")
#: So many uses before a setting, and after it, are looked at.
_MOST_LOOKED_AT = 40


def mark_unused(script: Script, found: list[FoundSetting], named_elsewhere: Callable[[str], bool]) -> list[FoundSetting]:
    """Return the settings of a script, those that are not in force with the reason."""
    live = [one for one in found if not one.commented and not one.dead and not one.unused and _is_of_interest(one)]
    if not live or script.tree is None:
        return found
    reasons: dict[int, str] = {}
    first = _find_first_definition(script)
    inner = [one for one in live if _find_line(one) >= first]
    idle = find_idle_functions(script.tree, named_elsewhere) if inner else []
    for one in inner:
        line = _find_line(one)
        reasons |= {id(one): function.why for function in idle if function.first <= line <= function.last}
    wanted: dict[Spot, bool] = {
        _find_spot(one): one.surface == "global_options" for one in live if one.surface in _SURFACES and id(one) not in reasons
    }
    if wanted:
        rehearsal = Rehearsal(script, wanted)
        rehearsal.run_script()
        judge = _Judge(rehearsal)
        for one in live:
            if one.surface in _SURFACES and id(one) not in reasons:
                reasons[id(one)] = judge.judge_spot(_find_spot(one), one.reason == TAKEN_BACK, not one.branches)
    return [one._replace(unused=why) if (why := reasons.get(id(one), "")) else one for one in found]


def _is_of_interest(one: FoundSetting) -> bool:
    return one.surface in ("session", "global_options", "run_config", "env") and (
        not one.reason or one.reason == TAKEN_BACK or bool(one.key)
    )


def _find_line(one: FoundSetting) -> int:
    return one.call[0] if one.call else one.line


def _find_spot(one: FoundSetting) -> Spot:
    return one.call if one.call else (one.line, one.column)


def _find_first_definition(script: Script) -> int:
    return next((number for number, line in enumerate(script.lines, 1) if line.lstrip().startswith(("def ", "class ", "async "))), 1 << 60)


class _Judge:
    """What has happened to each object, and what follows for what is set in it."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._heap: Heap = rehearsal.heap
        self._replaced = rehearsal.replaced
        self._assigned: dict[Spot, list[Assigned]] = {}
        self._uses: dict[int, list[Used]] = {}
        self._cleared: dict[int, list[Cleared]] = {}
        for one in rehearsal.happened:
            if isinstance(one, Assigned):
                for spot in one.spots:
                    self._assigned.setdefault(spot, []).append(one)
            elif isinstance(one, Used):
                self._uses.setdefault(one.number, []).append(one)
            else:
                self._cleared.setdefault(one.number, []).append(one)

    def judge_spot(self, spot: Spot, takes_back: bool, always: bool) -> str:
        """Return why what is set at a place is not in force, empty where it is, or where nothing is known against it."""
        by_object: dict[tuple[int, tuple[str, ...]], list[str]] = {}
        for one in self._assigned.get(spot, ()):
            by_object.setdefault((one.number, one.path), []).append(self._judge(one, takes_back, always))
        told = [reasons[0] for reasons in by_object.values() if all(reasons)]
        return told[0] if told else ""

    def _judge(self, one: Assigned, takes_back: bool, always: bool) -> str:
        born = self._heap.born[one.number]
        if born.taken_out:
            return f"it belongs to an entry that line {born.taken_out} takes out"
        line, after = self._replaced.get(one.number, (0, 0))
        if after and one.number not in self._uses and not born.shared and (after in self._uses or self._heap.born[after].shared):
            return f"line {line} makes the configuration anew, and this one goes nowhere"
        earlier, later = self._select_uses(one, always)
        reason = self._judge_order(one.moment, earlier, later, born)
        if reason or takes_back:
            return reason
        return self._judge_cleared(one, later)

    def _select_uses(self, one: Assigned, always: bool) -> tuple[list[Used], list[Used]]:
        """Return the uses of the object before it is set, and those after that.

        What is told as ``always`` set does not hold for a use before it that leaves the function either.
        """
        uses = self._uses.get(one.number, [])
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
            told = f"stands after {first.what} (line {first.moment.line})"
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

    def _judge_cleared(self, one: Assigned, after: list[Used]) -> str:
        for clear in self._cleared.get(one.number, ())[:200]:
            later = clear.moment.time > one.moment.time and clear.moment.run == one.moment.run
            if not later or not clear.moment.can_meet(one.moment) or not covers(clear.path, one.path):
                continue
            between = [use for use in after if use.moment.time < clear.moment.time and use.certain]
            if not between:
                return f"line {clear.moment.line} takes it back"
            if any(use.moment.time > clear.moment.time for use in after):
                return f"line {clear.moment.line} takes it back, after {between[0].what} (line {between[0].moment.line}) with it"
        return ""
