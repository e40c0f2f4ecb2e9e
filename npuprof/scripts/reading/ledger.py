"""What a rehearsal writes down of configuration objects, at which moment, and for which of the places that settings are told at."""

from __future__ import annotations

import ast

from npuprof.scripts.reading.happenings import Assigned, Cleared, Moment, Returned, Spot, Used
from npuprof.scripts.reading.heap import ANY, OPTIONS, Frame, Heap, Path, Thing, Values, covers, list_things
from npuprof.scripts.reading.known_calls import REWRITE
from npuprof.scripts.reading.source import Script

#: More than that is not written down of uses.
_MOST_NOTED = 80_000


class Ledger:
    """Where a rehearsal stands; ``happened`` grows with what is done to configuration objects."""

    def __init__(self, script: Script, wanted: dict[Spot, bool]) -> None:
        self.script = script
        self.wanted = wanted  #: the spots of settings, and whether they are those of options of TensorFlow 2
        self.lines = {line for line, _ in wanted}
        self.heap = Heap()
        self.frame = Frame()
        self.happened: list[Assigned | Used | Cleared | Returned] = []
        self.time = self.run = 0
        self.arms: tuple[tuple[int, int], ...] = ()
        self.loops: tuple[int, ...] = ()
        self.added: dict[Thing, list[str]] = {}  #: what was added to each list of entries
        self.calls: list[Spot] = []  #: the calls around that something is told at

    def find_now(self, line: int) -> Moment:
        """Return the moment."""
        self.time += 1
        return Moment(self.time, self.run, self.arms, self.loops, line)

    def find_spot(self, node: ast.AST) -> Spot | None:
        """Return where a node stands, if a setting is told there."""
        line: int = node.lineno  # type: ignore[attr-defined]
        if line not in self.lines:
            return None
        spot = line, self.script.column(line, node.col_offset)  # type: ignore[attr-defined]
        return spot if spot in self.wanted else None

    def note_assigned(self, values: Values, spot: Spot | None, node: ast.AST) -> None:
        """Take note that something is set, where a setting is told there or at a call around."""
        spots = (*([spot] if spot is not None else []), *self.calls)
        if not spots:
            return
        moment = self.find_now(node.lineno)  # type: ignore[attr-defined]
        if any(self.wanted[one] for one in spots):
            self.happened.append(Assigned(moment, OPTIONS, (), spots))
        for value in list_things(values):
            if "parameter_map" in value.path or spot is not None:
                self.happened.append(Assigned(moment, value.number, value.path, spots))

    def note_used(self, node: ast.AST, values: Values, what: str, certain: bool) -> None:
        """Take note that configurations are handed on, as a whole or as far as where the entries are."""
        whole = [value for value in list_things(values) if value.path == REWRITE[: len(value.path)]]
        if whole and len(self.happened) < _MOST_NOTED:
            moment = self.find_now(node.lineno)  # type: ignore[attr-defined]
            self.happened += [Used(moment, number, what, certain) for number in dict.fromkeys(one.number for one in whole)]

    def note_cleared(self, thing: Thing, line: int, inside: bool = False) -> None:
        """Take note that a part of an object is emptied; names for what was in it stand for nothing of it any more."""
        path: Path = (*thing.path, ANY) if inside and thing.path[-1:] == ("custom_optimizers",) else thing.path
        self.happened.append(Cleared(self.find_now(line), thing.number, path))
        instead = self.heap.make(self.time, self.loops, True, line, taken_out=line)
        self.heap.detach(thing.number, thing.path, instead.number)
        for known in [one for one in self.added if one.number == thing.number and covers(thing.path, one.path)]:
            del self.added[known]
