"""What happens to configuration objects when a script runs, in order: they are set, handed on, cleared."""

from __future__ import annotations

from npuprof.model import Record
from npuprof.scripts.reading.rehearsal.heap import Path

#: Where something stands: line and column, as people count.
Spot = tuple[int, int]


class Moment(Record):
    """When something happens: its place in the order, the arms of tests and the loops around, and the run it belongs to.

    What may be passed over altogether (a loop without a turn, what stands behind something that fails) is an arm of a test too.

    Of what happens in two runs nobody knows which comes first: a function that something out of sight calls is a run of its own.
    """

    time: int
    run: int
    arms: tuple[tuple[int, int], ...]
    loops: tuple[int, ...]
    line: int

    def can_meet(self, other: Moment) -> bool:
        """Return whether both can happen in one run of the script."""
        arms = dict(self.arms)
        return all(arms.get(number, arm) == arm for number, arm in other.arms)


class Assigned(Record):
    """Something is set in an object; ``spots`` are its place and those of the calls around it."""

    moment: Moment
    number: int
    path: Path
    spots: tuple[Spot, ...]


class Used(Record):
    """An object is handed on. ``certain``: what it holds then is what counts; ``what`` says what takes it, ``function`` who gives it."""

    moment: Moment
    number: int
    what: str
    certain: bool
    function: str = ""


class Cleared(Record):
    """A part of an object, or all of it, is emptied."""

    moment: Moment
    number: int
    path: Path


class Copied(Record):
    """An object is copied, or a part of it, into another one."""

    moment: Moment
    number: int
    source: int


class Returned(Record):
    """An object is returned under a test of its function, which ends at the time ``until`` where the test does not hold."""

    moment: Moment
    number: int
    until: int
