"""Plays a process of TF 2: what the adapter says through TensorFlow's logger, and the graph engine in its own log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from support.adapterlogs import wire
from support.adapterlogs.process import ADDED
from support.adapterlogs.stage import Line, sort_keys


class Plan2(NamedTuple):
    """A process of TF 2: the adapter's state, its global options, TF_CPP_MIN_LOG_LEVEL, and whether the engine's info lines are on."""

    snapshot: str
    pid: int
    values: Mapping[str, Any]
    level: int = 0
    engine: bool = False


class Played2(NamedTuple):
    """A process of TF 2 that was played; ``shown`` has the groups of lines of which each shows a map or an attribute."""

    pid: int
    snapshot: str
    lines: list[Line]
    values: Mapping[str, Any]
    maps: wire.Maps2
    shown: dict[str, list[list[int]]]


class _Screen:
    """Collects what TensorFlow's logger writes to standard error."""

    def __init__(self, plan: Plan2) -> None:
        self.plan = plan
        self.lines: list[Line] = []

    def add(self, severity: str, text: str) -> int:
        if "IWE".index(severity) < self.plan.level:
            return -1
        number = {"W": 195, "I": 260}.get(severity, 300)
        self.lines.append(Line(f"{severity} core/npu_wrapper.cpp:{number}] {text}", "screen", "", severity, 0))
        return len(self.lines) - 1

    def add_engine(self, function: str, entries: Mapping[str, str]) -> list[int]:
        if not self.plan.engine:
            return [-1]
        first = len(self.lines)
        for key in sort_keys(entries):
            text = f"[ge_api.cc:250]{self.plan.pid} {function}:GE option: {key}, value: {entries[key]}."
            self.lines.append(Line(text, "debug", "GE", "INFO", self.plan.pid))
        return list(range(first, len(self.lines)))


def play2(plan: Plan2) -> Played2:
    """Play a process of TF 2 that calls npu.open() twice, of which the second changes nothing."""
    maps = wire.build_maps2(plan.values, plan.snapshot)
    screen, shown = _Screen(plan), {}
    attributes = {attribute.leaf: attribute for attribute in wire.list_attributes()}
    split = plan.snapshot == "g"
    given = {**maps.common, **ADDED} if split else {**maps.common, **maps.session, **ADDED}

    def warn(stage: str) -> None:
        for leaf in sorted(maps.sent):
            attribute = attributes[leaf]
            known = attribute.common if stage == "common" else attribute.session
            if not known:
                line = screen.add("W", f"Unrecognized graph engine option {leaf}:{maps.sent[leaf]}")
                shown.setdefault(f"o:{leaf}", []).append([line])

    if split:
        warn("common")
    block = [screen.add("I", "Start graph engine with options:")]
    block += [screen.add("I", f"  {key}:{given[key]}") for key in sort_keys(given)]
    engine = screen.add_engine("GEInitializeImpl", given)
    done = screen.add("I", "Start graph engine succeed")
    screen.add("I", "Create device instance /job:localhost/replica:0/task:0/device:NPU:0 with extra options:")
    if split:
        warn("session")
        shown["session"] = [screen.add_engine("CreateSession", maps.session)]
    shown["common"] = [[*block, done], engine]
    if not split:
        shown["session"] = shown["common"]
    return Played2(
        plan.pid, plan.snapshot, screen.lines, plan.values, maps, {what: [g for g in gs if -1 not in g] for what, gs in shown.items()}
    )
