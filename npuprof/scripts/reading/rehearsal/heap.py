"""What names stand for while a script is gone through as it would run: configuration objects, parts of them, functions, classes."""

from __future__ import annotations

import ast
from typing import NamedTuple

from npuprof.model import Record
from npuprof.scripts.reading.values.scopes import Function

#: The way from a configuration object to a part of it, a name or an item each.
Path = tuple[str, ...]

#: Stands in a path for an item that may be any.
ANY = "[?]"

#: The options of TensorFlow 2, and the environment: there is one object of each in a process.
OPTIONS = 0
ENVIRON = 1

_LONGEST_PATH = 10
_MOST_VALUES = 8


class Thing(NamedTuple):
    """A configuration object, by its number, or a part of it."""

    number: int
    path: Path = ()

    def step(self, name: str) -> Thing:
        """Return a part of it."""
        return self if len(self.path) >= _LONGEST_PATH else Thing(self.number, (*self.path, name))


class Callable(NamedTuple):
    """A function or method of the script, with the names around it, the object that it belongs to, and the class it stands in."""

    node: Function
    home: Frame
    owner: Instance | None = None
    within: Made | None = None


class Made(NamedTuple):
    """A class of the script, with the names in it."""

    node: ast.ClassDef
    body: Frame


class Instance(NamedTuple):
    """An object of a class of the script, with its attributes; without them some object of that class, nobody knows which."""

    cls: Made
    body: Frame | None = None


class Above(NamedTuple):
    """An object as the classes see it that the class of a method is made of: ``super()``."""

    instance: Instance
    cls: Made


Value = Thing | Callable | Made | Instance | Above
Values = frozenset[Value]
NOTHING: Values = frozenset()


class Frame:
    """The names of one run of a function, of a class, or of the module."""

    __slots__ = ("globals", "instance", "nonlocals", "outer", "returned", "running", "values")

    def __init__(self, outer: Frame | None = None) -> None:
        self.outer = outer
        self.values: dict[str, Values] = {}
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.returned: set[Value] = set()
        self.instance: Instance | None = None
        self.running: Callable | None = None

    def find_owner(self, name: str) -> Frame | None:
        """Return the frame that knows a name, seen from this one."""
        where: Frame | None = self
        while where is not None and name not in where.values:
            where = where.outer
        return where

    def find_target(self, name: str) -> Frame:
        """Return the frame that an assignment to a name belongs to."""
        if name in self.globals:
            return self.find_module()
        owner = self.outer.find_owner(name) if name in self.nonlocals and self.outer is not None else None
        return owner or self

    def find_module(self) -> Frame:
        """Return the frame of the whole module."""
        where = self
        while where.outer is not None:
            where = where.outer
        return where


class Born(Record):
    """How a configuration object came about: when, in which loops, and whether code out of sight may hold it too.

    ``arms`` are those of tests around it, ``run`` is the run it belongs to, ``place`` the line and column of what makes it, ``owner`` the
    class of the object whose method that is.
    """

    time: int
    loops: tuple[int, ...]
    shared: bool
    line: int = 0
    arms: tuple[tuple[int, int], ...] = ()
    run: int = 0
    place: tuple[int, int] | tuple[()] = ()
    owner: str = ""
    #: The line that took it out of the configuration it was a part of.
    taken_out: int = 0


class Heap:
    """The values of all names; what branches change can be undone and united."""

    def __init__(self) -> None:
        self.born: list[Born] = [Born(0, (), True), Born(0, (), True)]
        self._journal: list[dict[tuple[Frame, str], Values | None]] = []
        self._holders: dict[int, dict[tuple[Frame, str], None]] = {}  #: the names that may stand for an object or a part of it

    def make(self, born: Born) -> Thing:
        """Return a new configuration object."""
        self.born.append(born)
        return Thing(len(self.born) - 1)

    def share(self, values: Values) -> None:
        """Take note that code out of sight may hold objects."""
        for value in values:
            if isinstance(value, Thing) and not self.born[value.number].shared:
                self.born[value.number] = self.born[value.number]._replace(shared=True)

    def bind(self, frame: Frame, name: str, values: Values) -> None:
        """Let a name stand for values."""
        if self._journal:
            self._journal[-1].setdefault((frame, name), frame.values.get(name))
        frame.values[name] = values if len(values) <= _MOST_VALUES else NOTHING
        for value in frame.values[name]:
            if isinstance(value, Thing):
                self._holders.setdefault(value.number, {})[frame, name] = None

    def list_names(self, number: int) -> list[str]:
        """Return the names that an object has had, those of the module first."""
        names = sorted((frame.outer is not None, name) for frame, name in self._holders.get(number, ()))
        return list(dict.fromkeys(name for _, name in names))

    def begin_branch(self) -> None:
        """Begin what may not run."""
        self._journal.append({})

    def end_branch(self) -> dict[tuple[Frame, str], Values]:
        """Undo what a branch has changed, and return it."""
        changed = {}
        for (frame, name), before in self._journal.pop().items():
            changed[frame, name] = frame.values[name]
            if before is None:
                del frame.values[name]
            else:
                frame.values[name] = before
        return changed

    def unite(self, branches: list[dict[tuple[Frame, str], Values]]) -> None:
        """Let names stand for what any of several branches has given them, of which one has run."""
        for frame, name in dict.fromkeys(mark for branch in branches for mark in branch):
            before = frame.values.get(name, NOTHING)
            self.bind(frame, name, frozenset().union(*(branch.get((frame, name), before) for branch in branches)))

    def detach(self, number: int, path: Path, instead: int) -> None:
        """Let names for parts of what is taken out stand for another object, which belongs to nothing."""
        for frame, name in list(self._holders.get(number, ())):
            values = frame.values.get(name, NOTHING)
            if any(_is_part(value, number, path) for value in values):
                moved = (Thing(instead, value.path) if _is_part(value, number, path) else value for value in values)  # type: ignore[union-attr]
                self.bind(frame, name, frozenset(moved))


def list_things(values: Values) -> list[Thing]:
    """Return the configuration objects among values, always in the same order."""
    return sorted(value for value in values if isinstance(value, Thing))


def list_functions(values: Values) -> list[Callable | Made]:
    """Return the functions and classes among values, in the order of the text."""
    return sorted((value for value in values if isinstance(value, (Callable, Made))), key=lambda value: value.node.lineno)


def covers(path: Path, other: Path) -> bool:
    """Return whether what lies at a path holds what lies at another, or is it."""
    return len(path) <= len(other) and all(ANY in (one, two) or one == two for one, two in zip(path, other, strict=False))


def _is_part(value: Value, number: int, path: Path) -> bool:
    return isinstance(value, Thing) and value.number == number and len(value.path) > len(path) and covers(path, value.path)
