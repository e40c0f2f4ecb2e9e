"""What a rehearsal writes down of configuration objects, at which moment, and for which of the places that settings are told at."""

from __future__ import annotations

import ast

from npuprof.scripts.reading.rehearsal.happenings import Assigned, Cleared, Copied, Moment, Returned, Spot, Used
from npuprof.scripts.reading.rehearsal.heap import ANY, ENVIRON, OPTIONS, Born, Frame, Heap, Path, Thing, Values, covers, list_things
from npuprof.scripts.reading.rehearsal.known_calls import REWRITE
from npuprof.scripts.reading.source import Script

#: More than that is not written down of uses.
_MOST_NOTED = 80_000
_MOST_COPIES = 40


class Ledger:
    """Where a rehearsal stands; ``happened`` grows with what is done to configuration objects."""

    def __init__(self, script: Script, wanted: dict[Spot, set[str]]) -> None:
        self.script = script
        self.wanted = wanted  #: the spots of settings, and their surfaces
        self.lines = {line for line, _ in wanted}
        self.heap = Heap()
        self.frame = Frame()
        self.happened: list[Assigned | Used | Cleared | Copied | Returned] = []
        self.copies = 0
        self.is_complete = True  #: whether nothing was passed over
        self.time = self.run = 0
        self.arms: tuple[tuple[int, int], ...] = ()
        self.maybe: tuple[tuple[int, int], ...] = ()  #: the arms of what may be passed over
        self.guards: dict[int, str] = {}  #: why, by the numbers of such tests
        self.implied: dict[int, set[tuple[int, int]]] = {}  #: the arms under which a function returns an object
        self.tries: tuple[tuple[int, bool], ...] = ()  #: the ``try`` around, each with whether an error goes on from there
        self.loops: tuple[int, ...] = ()
        self.added: dict[Thing, list[str]] = {}  #: what was added to each list of entries
        self.calls: list[Spot] = []  #: the calls around that something is told at
        self.sessions: list[tuple[int, str, bool]] = []  #: lines that make a session, how, and whether it is given something
        self.kept_names: set[str] = set()  #: what lambdas name, which run at any time
        self.loose: set[int] = set()  #: the objects that something holds which is not followed: a table, an object of the script

    def find_now(self, line: int) -> Moment:
        """Return the moment."""
        self.time += 1
        return Moment(self.time, self.run, (*self.arms, *self.maybe), self.loops, line)

    def describe_birth(self, shared: bool, node: ast.expr | None = None) -> Born:
        """Return what is to be known of an object that comes about now, by a node if that is in sight."""
        line, column = (node.lineno, node.col_offset) if node is not None else (0, 0)
        running = self.frame.running
        owner = running.owner.cls.node.name if running is not None and running.owner is not None else ""
        return Born(self.time, self.loops, shared, line, (*self.arms, *self.maybe), self.run, (line, column) if line else (), owner=owner)

    def note_failing(self, line: int) -> None:
        """Take note that an error may end the body of the ``try`` around: what comes behind may be passed over."""
        for number, goes_on in reversed(self.tries):
            if number not in self.guards:
                self.guards[number] = f"line {line} may fail before it"
            if (number, 0) not in self.maybe:
                self.maybe = (*self.maybe, (number, 0))
            if not goes_on:
                break

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
        for surface, number in (("global_options", OPTIONS), ("env", ENVIRON)):
            if any(surface in self.wanted[one] for one in spots):
                self.happened.append(Assigned(moment, number, (), spots))
        for value in list_things(values):
            if "parameter_map" in value.path or spot is not None:
                self.happened.append(Assigned(moment, value.number, value.path, spots))

    def note_used(self, node: ast.AST, values: Values, what: str, certain: bool) -> None:
        """Take note that configurations are handed on, as a whole or as far as where the entries are."""
        whole = [value for value in list_things(values) if value.path == REWRITE[: len(value.path)]]
        if whole and len(self.happened) < _MOST_NOTED:
            moment = self.find_now(node.lineno)  # type: ignore[attr-defined]
            running = self.frame.running
            name = running.node.name if running is not None else ""
            if running is not None and running.within is not None and name.startswith("__"):
                name = running.within.node.name
            self.happened += [Used(moment, number, what, certain, name) for number in dict.fromkeys(one.number for one in whole)]

    def note_copied(self, target: Thing, source: Thing, line: int) -> None:
        """Take note that an object, or a part of it, has from now on what another one has."""
        self.copies += 1
        if self.copies > _MOST_COPIES or len(self.happened) > _MOST_NOTED:
            self.is_complete = False
            return
        moment = self.find_now(line)
        self.happened.append(Copied(moment, target.number, source.number))
        for one in [one for one in self.happened if isinstance(one, (Assigned, Cleared)) and one.number == source.number]:
            if covers(source.path, one.path):
                path = (*target.path, *one.path[len(source.path) :])
                self.happened.append(one._replace(moment=self.find_now(line), number=target.number, path=path))
        for known, marks in list(self.added.items()):
            if known.number == source.number and covers(source.path, known.path):
                copy = Thing(target.number, (*target.path, *known.path[len(source.path) :]))
                self.added.setdefault(copy, []).extend(marks)

    def note_loose(self, values: Values) -> None:
        """Take note that objects are held by something through which they may get anywhere."""
        self.loose.update(one.number for one in list_things(values))

    def note_cleared(self, thing: Thing, line: int, inside: bool = False) -> None:
        """Take note that a part of an object is emptied; names for what was in it stand for nothing of it any more."""
        path: Path = (*thing.path, ANY) if inside and thing.path[-1:] == ("custom_optimizers",) else thing.path
        self.happened.append(Cleared(self.find_now(line), thing.number, path))
        instead = self.heap.make(Born(self.time, self.loops, True, line, taken_out=line))
        self.heap.detach(thing.number, thing.path, instead.number)
        for known in [one for one in self.added if one.number == thing.number and covers(thing.path, one.path)]:
            del self.added[known]
