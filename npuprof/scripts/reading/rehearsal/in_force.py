"""Which settings of a script are in force where its configuration is used: those made before that, and not taken out again.

What is set after the last use of a configuration, in a part that the script empties, in an object whose name is given to another one,
or in a function that never runs, is reported as unused. What one use has and another has not is reported too: no preset holds both.
"""

from __future__ import annotations

from collections.abc import Callable

from npuprof.scripts.reading.found import TAKEN_BACK, FoundSetting, IdleConfig, unite_calls
from npuprof.scripts.reading.rehearsal.happenings import Spot
from npuprof.scripts.reading.rehearsal.idle import find_idle_functions
from npuprof.scripts.reading.rehearsal.idle_configs import mark_idle_configs
from npuprof.scripts.reading.rehearsal.judging import Judge, Timeline, find_spot
from npuprof.scripts.reading.rehearsal.rehearsing import Rehearsal
from npuprof.scripts.reading.rehearsal.replaced_methods import find_replaced_methods
from npuprof.scripts.reading.rehearsal.variants import Variant, Variants, tell_objects_apart
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.values.turns import Turns

_SURFACES = ("session", "global_options", "env")


def mark_unused(
    script: Script, found: list[FoundSetting], named_elsewhere: Callable[[str], bool], turns: Turns
) -> tuple[list[FoundSetting], list[Variant], list[IdleConfig]]:
    """Return the settings of a script, those that are not in force with the reason.

    Beside them, objects of one line that are unlike each other, and configurations that nothing is given. What is told of each call of
    a function stays so where each makes an object of its own.
    """
    marked = _mark_unused(script, found, named_elsewhere, turns)
    return marked if _are_calls_apart(marked[0]) else _mark_unused(script, list(unite_calls(found)), named_elsewhere, turns)


def _are_calls_apart(marked: list[FoundSetting]) -> bool:
    """Return whether no object has a setting from two calls of its function, and none that is in force belongs to no object."""
    by_setting: dict[int, list[FoundSetting]] = {}
    for one in marked:
        if one.otherwise is not None:
            by_setting.setdefault(id(one.otherwise), []).append(one)
    for calls in by_setting.values():
        labels = [label for one in calls for label in one.objects]
        if len(set(labels)) < len(labels) or not all(one.objects or one.unused for one in calls):
            return False
    return True


def _mark_unused(
    script: Script, found: list[FoundSetting], named_elsewhere: Callable[[str], bool], turns: Turns
) -> tuple[list[FoundSetting], list[Variant], list[IdleConfig]]:
    live = [one for one in found if not one.commented and not one.dead and not one.unused and _is_of_interest(one)]
    if not live or script.tree is None:
        return found, [], []
    variants: Variants | None = None
    reasons: dict[int, str] = {}
    first = _find_first_definition(script)
    inner = [one for one in live if _find_line(one) >= first]
    idle = find_idle_functions(script.tree, script.text, named_elsewhere) if inner else []
    for one in inner:
        line = _find_line(one)
        reasons |= {id(one): function.why for function in idle if function.first <= line <= function.last}
    configs: list[IdleConfig] = []
    judged = [one for one in live if one.surface in _SURFACES and id(one) not in reasons]
    if judged:
        wanted: dict[Spot, set[str]] = {}
        for one in judged:
            wanted.setdefault(find_spot(one), set()).add(one.surface)
            if one.within:
                wanted.setdefault(one.within, set()).add(one.surface)
        rehearsal = Rehearsal(script, wanted, turns)
        rehearsal.run_script()
        judge = Judge(rehearsal)
        if rehearsal.is_complete:
            for method in find_replaced_methods(script.tree, rehearsal.entered, named_elsewhere):
                reasons |= {id(one): method.why for one in inner if method.first <= _find_line(one) <= method.last}
        judged = [one for one in judged if id(one) not in reasons]
        configs = mark_idle_configs(rehearsal, judge, judged, named_elsewhere)
        by_object = Timeline(judge, judged).judge_all()
        variants = tell_objects_apart(rehearsal, judge, judged, by_object)
        reasons |= {id(one): why for one in judged if (why := variants.find_reason(one, by_object[id(one)]))}
    objects = variants.objects if variants else {}
    marked = [one._replace(unused=reasons.get(id(one)) or one.unused, objects=objects.get(id(one), ())) for one in found]
    return marked, variants.variants if variants else [], configs


def _is_of_interest(one: FoundSetting) -> bool:
    return one.surface in ("session", "global_options", "run_config", "env") and (
        not one.reason or one.reason == TAKEN_BACK or bool(one.key)
    )


def _find_line(one: FoundSetting) -> int:
    return one.call[0] if one.call else one.line


def _find_first_definition(script: Script) -> int:
    return next((number for number, line in enumerate(script.lines, 1) if line.lstrip().startswith(("def ", "class ", "async "))), 1 << 60)
