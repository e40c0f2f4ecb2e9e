"""The names of a text that may stand for the options of TensorFlow 2, found without parsing it: their lines are worth reading."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

_IMPORTED = re.compile(r"\bglobal_options\s+as\s+([A-Za-z_]\w*)")
#: What stands between the targets of an assignment and its value, and a target at the end of what is before.
_GIVES = re.compile(r":=|(?<![=!<>:])=(?!=)")
_TARGET = re.compile(r"([A-Za-z_][\w.]*)[ \t]*(?::[^:]*)?$")
_MOST_NAMES = 50
_DEFINED = re.compile(r"\bdef ([A-Za-z_]\w*)\(([^()]*)\)")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_PARAMETER = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)")
_RETURN = re.compile(r"(?:.*:)?[ \t]*return\b(.*)")


def find_options_names(text: str, known: Iterable[str] = ()) -> list[str]:
    """Return the names that stand for the options, a group of them, or a function that gives them; ``known`` come from other files."""
    seeds = [name for name in known if name in text]
    if "global_options" not in text and not seeds:
        return []
    found = dict.fromkeys((*_IMPORTED.findall(text), *seeds))
    waiting = ["global_options", *found]
    most = _MOST_NAMES + len(found)
    functions = list(_DEFINED.finditer(text))
    defined = {match[1]: _PARAMETER.findall(match[2]) for match in functions}
    starts = [match.start() for match in functions]
    while waiting and len(found) < most:
        word = waiting.pop()
        value = re.compile(rf"[ \t]*\(*(?:\w+\.)*{re.escape(word)}(?:\(\))?(?:\.\w+)*[ \t):]*(?:#.*)?$")
        for line_start, line in _iterate_lines_with(text, word):
            names = [*_iterate_given_names(line, value), *_iterate_parameter_names(line, defined)]
            given = _RETURN.match(line)
            if given is not None and value.match(given[1]) and (at := bisect_right(starts, line_start + len(line))):
                names.append(functions[at - 1][1])
            for name in names:
                if name not in found:
                    found[name] = None
                    waiting.append(name)
    return sorted(found)


def _iterate_lines_with(text: str, word: str) -> Iterator[tuple[int, str]]:
    """Yield the lines in which a word stands, each with where it begins."""
    at = text.find(word)
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        start = text.rfind("\n", 0, at) + 1
        yield start, text[start:end]
        at = text.find(word, end)


def _iterate_given_names(line: str, value: re.Pattern[str]) -> Iterator[str]:
    """Yield what a line gives a value."""
    for statement in line.split(";"):
        *targets, last = _GIVES.split(statement)
        if targets and any(map(value.match, last.split(","))):
            yield from (match[1] for target in ",".join(targets).split(",") if (match := _TARGET.search(target)))


def _iterate_parameter_names(line: str, defined: dict[str, list[str]]) -> Iterator[str]:
    """Yield the parameters of the functions of a text that a line calls."""
    for function in dict.fromkeys(_CALLED.findall(line)) if defined else ():
        yield from defined.pop(function, ())
