"""Numbers that commands print, read while they print: the last one of each name counts, however long the output is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from npuprof.system.tree import Tree

#: The number of a metric: the one of its pattern's first group, or the first in what the pattern matches.
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan\b|inf(?:inity)?\b)", re.IGNORECASE)
#: So much is searched at a time.
WINDOW = 1_048_576
#: So much of what was searched is searched again with what follows: patterns may reach over lines.
_OVERLAP = 65_536


class MetricReader:
    """Reads the numbers that an output tells, the last of each name; ``metrics`` are patterns by name, an empty one for JSON lines."""

    def __init__(self, metrics: Mapping[str, str]) -> None:
        self._patterns = {name: re.compile(pattern, re.MULTILINE) for name, pattern in metrics.items() if pattern}
        self._names = {name: tuple({json.dumps(name), json.dumps(name, ensure_ascii=False)}) for name, text in metrics.items() if not text}
        self._held = bytearray()
        self._before = ""  # the character before what is held: it decides what begins a line
        self.found: dict[str, float] = {}

    def add(self, piece: bytes) -> None:
        """Take a piece of the output."""
        if not self._patterns and not self._names:
            return
        self._held += piece
        if len(self._held) >= 2 * WINDOW:
            self._search_held()

    def finish(self) -> dict[str, float]:
        """Return the numbers, at the end of the output."""
        self._search(self._held)
        return self.found

    def _search_held(self) -> None:
        """Search the whole lines that are held, and let go of all but the last of them; a line without an end is cut."""
        end = self._held.rfind(b"\n") + 1
        end = end if end > WINDOW else len(self._held)
        self._search(self._held[:end])
        last = self._held.find(b"\n", end - _OVERLAP, end) + 1
        start = last if 0 < last < end else end - _OVERLAP
        self._before = chr(self._held[start - 1])
        del self._held[:start]

    def _search(self, raw: bytes | bytearray) -> None:
        text = self._before + raw.decode(errors="replace")
        for name, pattern in self._patterns.items():
            last = None
            for last in pattern.finditer(text, len(self._before)):  # noqa: B007 - the last one counts
                pass
            if last is None:
                continue
            self.found.pop(name, None)  # what matches last counts, also where it is no number
            if number := _NUMBER.search((last[1] if last.re.groups else last[0]) or ""):
                self.found[name] = float(number[0])
        for name, spelled in self._names.items():
            value = _find_json_number(text, name, spelled)
            if value is not None:
                self.found[name] = value


def read_metrics(tree: Tree, name: str, metrics: Mapping[str, str]) -> dict[str, float]:
    """Return the numbers in a file of a tree; none if it cannot be read."""
    reader = MetricReader(metrics)
    with suppress(OSError), tree.open_reader(name) as file:
        while piece := file.read(WINDOW):
            reader.add(piece)
    return reader.finish()


def _find_json_number(text: str, name: str, spelled: tuple[str, ...]) -> float | None:
    """Return the number of a name in the last JSON object that stands in a line of its own and has one."""
    end = len(text)
    while (place := max(text.rfind(word, 0, end) for word in spelled)) >= 0:
        start = text.rfind("\n", 0, place) + 1
        stop = text.find("\n", place)
        value = _read_object(text[start : stop if stop >= 0 else len(text)]).get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        end = start
    return None


def _read_object(line: str) -> dict[str, Any]:
    if not line.lstrip().startswith("{"):
        return {}
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}


def list_missing_metrics(metrics: Mapping[str, str], runs: Sequence[Mapping[str, float]]) -> list[str]:
    """Return a remark for each metric that no run has given; ``runs`` are the numbers read in the output of each."""
    return [
        f"the output of no run gives the metric {name}: "
        + (f"nothing in it matches {pattern!r}" if pattern else f"no line in it is JSON with {name!r}")
        for name, pattern in metrics.items()
        if runs and not any(name in found for found in runs)
    ]
