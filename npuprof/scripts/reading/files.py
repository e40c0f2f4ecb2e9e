"""One file to what it holds, by its kind; and the quick test that spares most files the parsing."""

from __future__ import annotations

import bisect
import os
import re
from itertools import accumulate

from npuprof.scripts.reading import env, global_options, run_config, session, shell
from npuprof.scripts.reading.comments import commented
from npuprof.scripts.reading.found import Imported
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.walk import Walk

PYTHON = (".py", ".pyw", ".pyi")
SHELL = (".sh", ".bash", ".ksh", ".zsh", ".env", ".dotenv")

_SURFACES = (session, run_config, global_options, env)
_WORDS = tuple(dict.fromkeys((*(word for surface in _SURFACES for word in surface.HOT), *session.HELPERS)))
#: What a Python file has to hold to be worth parsing. ``environ`` alone is not: one of our variables must be there too.
_FIRST = tuple(word.encode() for word in _WORDS if word not in ("environ", "putenv", "remapping", "memory_optimization"))
_COMMON = tuple(word.encode() for word in (*run_config.HOT, *global_options.HOT) if word != "NPURunConfig")
_CERTAIN = tuple(word for word in _FIRST if word not in _COMMON)


def kind(path: str, data: bytes) -> str:
    """Return ``python``, ``shell``, or nothing for what no importer reads."""
    ending = os.path.splitext(path)[1].lower()
    if ending in PYTHON:
        return "python"
    if ending in SHELL:
        return "shell"
    if not ending and data.startswith(b"#!"):
        line = data[:200].partition(b"\n")[0]
        return "python" if b"python" in line else "shell" if re.search(rb"\b(?:ba|z|k|da)?sh\b", line) else ""
    return ""


def wanted(path: str, data: bytes) -> bool:
    """Return whether a file can hold a setting at all, without parsing it."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data:
        return bool(kind(path, data))  # said by name, whatever it holds
    if b">>> npuprof " in data:
        return True
    what = kind(path, data)
    if what == "python":
        if any(word in data for word in _CERTAIN) or (b"npu" in data and any(word in data for word in _COMMON)):
            return True
        return (b"environ" in data or b"putenv" in data) and env.mentions(data)
    return what == "shell" and shell.mentions(data)


def read(path: str, data: bytes) -> Imported:
    """Return what one file holds; faults of the file are in ``problems``, and nothing is raised for any bytes."""
    what = kind(path, data) or "python"
    if what == "shell":
        return shell.read(path, data)
    script = Script(path, data)
    if script.tree is None:
        return Imported(path, (), (), tuple(script.problems))
    hot = _hot_lines(script)
    walk = Walk(script, hot, tuple(surface.handle for surface in _SURFACES if any(word in script.text for word in surface.HOT)))
    try:
        walk.run()
        found = [*walk.found, *commented(script)]
    except RecursionError:
        script.problem("the file is nested too deeply to be read", "", "flatten it")
        found = walk.found
    walk.facts["text"] = script.text
    others = {scope for scope, site in walk.sites.items() if site.entry is not None and session.foreign(site.entry)}
    found = [one for one in found if one.scope not in others or one.commented]
    sites = tuple(site for scope, site in walk.sites.items() if scope not in others)
    return Imported(path, tuple(found), sites, tuple(script.problems), walk.facts)


def _hot_lines(script: Script) -> list[int]:
    """Return the numbers of the lines that hold a tell-tale word, or a name that stands for something of ours."""
    text = script.text if "\r" not in script.text else "\n".join(script.lines)
    starts = [0, *accumulate(len(line) + 1 for line in script.lines)]
    found: set[int] = set()
    for word in (*_WORDS, *session.aliases(text), *global_options.aliases(text)):
        at = text.find(word)
        while at >= 0:
            line = bisect.bisect_right(starts, at)
            found.add(line)
            at = text.find(word, starts[line] if line < len(starts) else len(text))
    return sorted(found)
