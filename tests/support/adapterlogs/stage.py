"""A process that speaks: what is played, who says what, and which lines show which stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from support.adapterlogs import wire


class Line(NamedTuple):
    """A line as the program says it; ``kind`` is where it goes (debug, run or screen), ``head`` whether a plog head stands before it."""

    text: str
    kind: str = "debug"
    module: str = "FMK"
    level: str = "INFO"
    tid: int = 0


class Session(NamedTuple):
    """A session that a script makes: its parameter map, how many GeOps it has, how often each adds its graph."""

    entries: Mapping[str, wire.Entry]
    geops: int = 1
    graphs: int = 1


class Epoch(NamedTuple):
    """A life of the graph engine: its sessions, and what started it if no session did.

    That is npu_resource_init with its arguments, or an operator of a session without GeOp: initialize_system ("init"), a data set ("data").
    """

    sessions: Sequence[Session]
    resource: Mapping[str, Any] | None = None
    operator: str = ""
    entries: Mapping[str, wire.Entry] = {}


class Plan(NamedTuple):
    """A process: the adapter's state, its epochs, the modules whose info lines are on, and whether an epoch's sessions run side by side.

    On a ``console`` the adapter speaks through TensorFlow's logger, as a build of 2020 did.
    """

    snapshot: str
    pid: int
    epochs: Sequence[Epoch]
    modules: frozenset[str] = frozenset({"FMK"})
    threads: bool = False
    prefix: str = ""
    console: bool = False


class Held(NamedTuple):
    """A session that was played: what it asked for, what the graph engine was started with, and the graph it compiled."""

    epoch: int
    entries: Mapping[str, wire.Entry]
    maps: wire.Maps
    init: Mapping[str, str]
    resource: Mapping[str, Any] | None
    first: bool


class Played(NamedTuple):
    """A process that was played; ``shown`` has, for a session and a stage or an option, the groups of lines of which each shows it."""

    pid: int
    snapshot: str
    lines: list[Line]
    sessions: list[Held]
    shown: dict[tuple[int, str], list[list[int]]]


class Stage:
    """Collects the lines of a process, or of one of its threads."""

    def __init__(self, plan: Plan, tid: int) -> None:
        self.plan, self.tid = plan, tid
        self.lines: list[Line] = []
        self.shown: dict[tuple[int, str], list[list[int]]] = {}

    def add(self, file: str, text: str, *, kind: str = "debug", level: str = "INFO") -> int:
        """Say something as the adapter; return the line's number, -1 where its level is off."""
        plan = self.plan
        if kind == "debug" and "FMK" not in plan.modules:
            return -1
        number = 20 + sum(map(ord, file + text[:4])) % 2900
        place = f"{plan.prefix}{file}:{number}" if plan.snapshot < "g" else f"{file.rpartition('/')[2]}:{number}"
        if plan.console:
            self.lines.append(Line(f"I {place}] {text}", "screen"))
            return len(self.lines) - 1
        if plan.snapshot >= "e":
            content = f"[adapter_logger.cc:28][TF_ADAPTER] [{place}]{self.tid} {text}"
        else:
            content = f"[adp_logger.cc:33][TF_ADAPTER] [{place}] {text}"
        self.lines.append(Line(content, kind, "FMK", level, self.tid))
        return len(self.lines) - 1

    def add_engine(self, place: str, text: str, *, level: str = "INFO") -> int:
        """Say something as the graph engine."""
        if "GE" not in self.plan.modules:
            return -1
        self.lines.append(Line(f"[{place}]{self.tid} {text}", "debug", "GE", level, self.tid))
        return len(self.lines) - 1

    def add_block(self, file: str, title: str, entries: Mapping[str, str]) -> list[int]:
        """Say a block of options; return its lines."""
        first = self.add(file, title)
        return [first, *(self.add("tf_adapter/util/npu_attrs.cc", f"{key}: {entries[key]}") for key in sort_keys(entries))]

    def add_engine_block(self, place: str, function: str, entries: Mapping[str, str], tail: str = "") -> list[int]:
        """Say what the graph engine was given; a long value goes on in lines that hold only the rest."""
        said = []
        for key in sort_keys(entries):
            text = f"GE option: {key}, value: {entries[key]}{tail}."
            said.append(self.add_engine(place, f"{function}:{text[:900]}"))
            said += [self.add_engine(place, f"{function}:{text[start : start + 800]}") for start in range(900, len(text), 800)]
        return said

    def show(self, session: int, what: str, lines: list[int]) -> None:
        """Note that some lines together show a stage or an option of a session."""
        if lines and -1 not in lines:
            self.shown.setdefault((session, what), []).append(lines)


def sort_keys(entries: Mapping[str, str]) -> list[str]:
    """Return keys in byte order, as a map of C++ keeps them."""
    return sorted(entries, key=str.encode)
