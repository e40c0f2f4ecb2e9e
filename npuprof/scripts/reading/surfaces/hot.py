"""The lines of a Python script that can matter: those with a tell-tale word, or a name that stands for something of ours."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable
from itertools import accumulate

from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.surfaces import entries, env, global_options, run_config, session
from npuprof.scripts.reading.surfaces.option_names import find_options_names
from npuprof.scripts.reading.values import classes

SURFACES = (session, run_config, global_options, env)
WORDS = tuple(dict.fromkeys((*(word for surface in SURFACES for word in surface.HOT), *session.HELPERS)))
_WORD = re.compile(r"\w+")
_FEW_NAMES = 50


def find_hot_lines(script: Script, called: Iterable[str] = (), options: Iterable[str] = ()) -> list[int]:
    """Return the numbers of the lines that can matter; ``called`` are names of functions of other files, ``options`` of their options."""
    text = script.text if "\r" not in script.text else "\n".join(script.lines)
    starts = [0, *accumulate(len(line) + 1 for line in script.lines)]
    found: set[int] = set()
    names = {*entries.find_entry_names(text), *find_options_names(text, options), *classes.find_class_names(text), *called}
    if len(names) > _FEW_NAMES:  # the text is looked through once for all of them, and not once for each
        last_words = {words[-1] for name in names if (words := _WORD.findall(name))}
        found |= {bisect.bisect_right(starts, match.start()) for match in _WORD.finditer(text) if match[0] in last_words}
        names = set()
    for word in (*WORDS, *sorted(names)):
        at = text.find(word)
        while at >= 0:
            line = bisect.bisect_right(starts, at)
            found.add(line)
            at = text.find(word, starts[line] if line < len(starts) else len(text))
    return sorted(found)
