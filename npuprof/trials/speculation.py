"""Several trials at once: what a search would ask for next, whatever the results are that are not there yet."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeVar

from npuprof.trials.search import BAD, GOOD, Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.trials.search import Ask

TYPE_CHECKING = False

Found = TypeVar("Found")
#: A search is gone through so many times for each trial that is looked for.
_PATIENCE = 6


def replay_search(search: Callable[[Ask], Found], known: Callable[[int], str | None]) -> Found:
    """Return what a search finds from what is known. Raises Pending where that is not enough."""
    return search(lambda units, likely: _answer(units, likely, {}, known))


def foresee_trials(search: Callable[[Ask], object], known: Callable[[int], str | None], wanted: int) -> list[int]:
    """Return the trials that a search asks for: the next, and those it may ask for after it, the likelier first; none where it is done."""
    found: dict[int, None] = {}
    waiting: list[tuple[float, int, dict[int, str]]] = [(-1.0, 0, {})]
    for turn in range(1, wanted * _PATIENCE + 1):
        if not waiting or len(found) >= wanted:
            break
        chance, _, assumed = heappop(waiting)
        try:
            search(lambda units, likely, assumed=assumed: _answer(units, likely, assumed, known))  # type: ignore[misc]
        except Pending as pending:
            found[pending.units] = None
            for answer, share in ((GOOD, pending.likely), (BAD, 1 - pending.likely)):
                heappush(waiting, (chance * share, 2 * turn + (answer == BAD), {**assumed, pending.units: answer}))
    return list(found)


def _answer(units: int, likely: float, assumed: dict[int, str], known: Callable[[int], str | None]) -> str:
    answer = assumed.get(units) or known(units)
    if answer is None:
        raise Pending(units, likely)
    return answer
