"""Python scripts: one walk for all surfaces, and the quick test that spares most files the parsing."""

from __future__ import annotations

import bisect
import re
from itertools import accumulate

from npuprof.scripts.reading import classes, env, global_options, nested, run_config, session
from npuprof.scripts.reading.comments import find_commented_settings
from npuprof.scripts.reading.found import FoundSetting, ImportedFile
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.terms import TOO_MUCH
from npuprof.scripts.reading.walk import Walk

_SURFACES = (session, run_config, global_options, env)
_WORDS = tuple(dict.fromkeys((*(word for surface in _SURFACES for word in surface.HOT), *session.HELPERS)))
#: What a Python file has to hold to be worth parsing. ``environ`` alone is not: one of our variables must be there too.
_FIRST = tuple(word.encode() for word in _WORDS if word not in ("environ", "putenv", "remapping", "memory_optimization"))
_COMMON = tuple(word.encode() for word in (*run_config.HOT, *global_options.HOT) if word != "NPURunConfig")
_WORD = re.compile(r"\w+")
_FEW_NAMES = 50
_CERTAIN = tuple(word for word in _FIRST if word not in _COMMON)


def mentions_python_setting(data: bytes) -> bool:
    """Return whether a script can hold a setting, without parsing it."""
    if any(word in data for word in _CERTAIN) or (b"npu" in data and any(word in data for word in _COMMON)):
        return True
    return (b"environ" in data or b"putenv" in data) and env.mentions_variable(data)


def import_python(path: str, data: bytes) -> ImportedFile:
    """Return what a Python script holds; any bytes will do."""
    script = Script(path, data)
    if script.tree is None:
        return ImportedFile(path, (), (), tuple(script.problems))
    hot = _find_hot_lines(script)
    walk = Walk(script, hot, tuple(surface.handle_statement for surface in _SURFACES if any(word in script.text for word in surface.HOT)))
    try:
        walk.walk_module()
        nested.link_nested_configs(walk)
        found = [*walk.found, *find_commented_settings(script)]
    except RecursionError:
        script.add_script_problem("the file is nested too deeply to be read", "", "flatten it")
        found = walk.found
    walk.facts["text"] = script.text
    others = {scope for scope, site in walk.sites.items() if site.entry is not None and session.is_foreign_optimizer(site.entry)}
    found = [one for one in found if one.scope not in others or one.commented]
    _tell_what_is_too_much(script, found)
    sites = tuple(site for scope, site in walk.sites.items() if scope not in others)
    return ImportedFile(path, tuple(found), sites, tuple(script.problems), walk.facts)


def _tell_what_is_too_much(script: Script, found: list[FoundSetting]) -> None:
    """Remember, as faults of the file, the settings that could be told and are not, for what they are made of is too much."""
    told = {(one.line, one.column, one.reason.rpartition(": ")[2]): one for one in found if one.reason.endswith(TOO_MUCH) and not one.dead}
    for (line, column, reason), one in told.items():
        why = f"{one.name} was not looked at." if one.name else "What is set there was not looked at."
        script.add_script_problem(reason, why, "write it shorter", line, column)


def _find_hot_lines(script: Script) -> list[int]:
    """Return the numbers of the lines that hold a tell-tale word, or a name that stands for something of ours."""
    text = script.text if "\r" not in script.text else "\n".join(script.lines)
    starts = [0, *accumulate(len(line) + 1 for line in script.lines)]
    found: set[int] = set()
    names = {*session.find_entry_names(text), *global_options.find_options_names(text), *classes.find_class_names(text)}
    if len(names) > _FEW_NAMES:  # the text is looked through once for all of them, and not once for each
        last_words = {words[-1] for name in names if (words := _WORD.findall(name))}
        found |= {bisect.bisect_right(starts, match.start()) for match in _WORD.finditer(text) if match[0] in last_words}
        names = set()
    for word in (*_WORDS, *sorted(names)):
        at = text.find(word)
        while at >= 0:
            line = bisect.bisect_right(starts, at)
            found.add(line)
            at = text.find(word, starts[line] if line < len(starts) else len(text))
    return sorted(found)
