"""Configurations that a script fills and hands to nothing, although it makes a session."""

from __future__ import annotations

import re
from collections.abc import Callable

from npuprof.scripts.reading.found import GOES_NOWHERE, FoundSetting, IdleConfig
from npuprof.scripts.reading.rehearsal.idle import OPEN
from npuprof.scripts.reading.rehearsal.judging import Judge
from npuprof.scripts.reading.rehearsal.rehearsing import Rehearsal

_OPEN = re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(OPEN - {'modules', 'Fire', '__dict__'}))})\(|__dict__|sys\.modules|\bFire\b")


def mark_idle_configs(
    rehearsal: Rehearsal, judge: Judge, settings: list[FoundSetting], named_elsewhere: Callable[[str], bool]
) -> list[IdleConfig]:
    """Return the configurations with settings that go nowhere; the judge knows of them from then on.

    None where the script makes no session: then it is a part of something, and who has the rest has the use. None of those that an
    object or a table of the script holds, or that another file names.
    """
    if not rehearsal.sessions or not rehearsal.is_complete or _OPEN.search(rehearsal.script.text):
        return []
    by_object: dict[int, dict[str, None]] = {}
    for one in settings:
        for event in judge.list_assigned(one) if one.surface == "session" else ():
            by_object.setdefault(event.number, {})[one.scope] = None
    line, text, given = min(rehearsal.sessions, key=lambda one: (one[2], one[0]))
    found: list[IdleConfig] = []
    reasons: dict[int, str] = {}
    for number in judge.list_unused():
        names = rehearsal.heap.list_names(number)
        held = number in rehearsal.loose or not rehearsal.kept_names.isdisjoint(names)
        if number in by_object and not held and not any(map(named_elsewhere, names)):
            born = rehearsal.heap.born[number].line
            reasons[number] = f"{GOES_NOWHERE} of line {born}"
            found.append(IdleConfig(born, tuple(names), tuple(by_object[number]), text, line, given))
    judge.set_idle(reasons)
    return found
