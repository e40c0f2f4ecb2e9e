"""Reads metrics from the output of commands, line by line: the last value of each name counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from npuprof.catalog.structures import parse_json
from npuprof.model import Fields
from npuprof.system import decode_safely
from npuprof.system.tree import Tree

#: The number of a metric: the first group of its pattern, or the first number in its match.
_NUMBER = re.compile(
    r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan\b|inf(?:inity)?\b)",
    re.IGNORECASE,
)


class MetricReader:
    """Reads metrics from an output line by line, the last value of each.

    ``metrics`` are patterns by name, empty ones for JSON lines.
    """

    def __init__(self, metrics: Mapping[str, str]) -> None:
        self._patterns = {name: re.compile(pattern) for name, pattern in metrics.items() if pattern}
        self._names = [name for name, pattern in metrics.items() if not pattern]
        self.found: dict[str, float] = {}

    def add(self, raw: bytes) -> None:
        """Read a line of the output."""
        line = decode_safely(raw).rstrip("\r\n")
        for name, pattern in self._patterns.items():
            match = None
            for match in pattern.finditer(line):  # noqa: B007 - the last one counts
                pass
            if match is not None:
                self.found.pop(name, None)  # the last match counts, even if it is not a number
                text = match[1] if pattern.groups else match[0]
                number = _NUMBER.search(text or "")
                if number:
                    self.found[name] = float(number[0])
        # most lines of an output are no JSON, which costs more to find out by parsing
        values = read_json_object(line) if self._names and line.lstrip().startswith("{") else {}
        for name in self._names:
            value = values.get(name)
            # true is an int in Python, and no number of a metric
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                self.found[name] = float(value)


def read_metrics(tree: Tree, name: str, metrics: Mapping[str, str]) -> dict[str, float]:
    """Return the metrics in a file of a tree; empty if it cannot be read."""
    reader = MetricReader(metrics)
    with suppress(OSError), tree.open_reader(name) as file:
        for line in file:
            reader.add(line)
    return reader.found


def read_json_object(line: str | bytes) -> Fields:
    """Return the JSON object in a line; empty if it is none."""
    return parse_json(line) or {}


def list_missing_metrics(
    metrics: Mapping[str, str], runs: Sequence[Mapping[str, float]]
) -> list[str]:
    """Return a note for each metric missing in all runs; ``runs`` are the metrics of each."""
    notes = []
    for name, pattern in metrics.items():
        if runs and not any(name in numbers for numbers in runs):
            missing = f"matches {pattern!r}" if pattern else "is JSON with it"
            notes.append(f"the output of no run gives the metric {name}: nothing in it {missing}")
    return notes
