"""A block of ``KEY: TEXT`` lines while it is parsed.

Keys are in byte order, so a smaller key ends it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from npuprof.catalog.wire import Generation
from npuprof.runs.evidence import Epoch, Map, Process, Text, Values


class Block:
    """One block that may continue.

    ``lost`` is set if lines are missing, ``epoch`` is the epoch at its start, ``generation`` the
    one with its title.

    ``standing`` are the keys that every block of its kind has, in order: a skipped one was lost.
    Keys are ASCII.
    """

    __slots__ = ("_last", "epoch", "generation", "lost", "stage", "standing", "values")

    def __init__(
        self, stage: str, standing: tuple[str, ...] = (), generation: Generation | None = None
    ) -> None:
        self.stage = stage
        self.generation = generation
        self.standing = standing
        self.values: Values = {}
        self._last = ""
        self.lost = False
        self.epoch: Epoch | None = None

    def takes(self, key: str) -> bool:
        """Return whether a key can come next."""
        return key.encode("utf-8", "surrogateescape") > self._last.encode(
            "utf-8", "surrogateescape"
        )

    def add(self, key: str, text: Text) -> None:
        """Add the text of a key."""
        after = self.standing[bisect_right(self.standing, self._last) :]
        self.lost |= bool(after) and after[0] < key  # a mandatory key is missing
        self._last = key
        self.values[key] = text

    def close(self, is_complete: bool) -> Map:
        """Return the map."""
        # the last mandatory key has no key after it that shows its loss
        lost = self.lost or self.standing[-1:] > (self._last,)
        return Map(dict(self.values), whole=is_complete and not lost)


class BlockLog:
    """The lines of one writer in one stream, in blocks.

    Each thread of a process has at most one block that may continue.
    """

    def __init__(self, tail: Tail) -> None:
        self._blocks: dict[tuple[Process, str], Block] = {}  # by process and thread
        self._tail = tail

    def finish(self) -> None:
        """Close all blocks: at the end of the stream, or where lines are missing."""
        for process, thread in list(self._blocks):
            self._close(process, thread, whole=False)

    def _close(self, process: Process, thread: str, whole: bool) -> None:
        """Record the block of a thread, if it has one."""
        raise NotImplementedError

    def _open(self, process: Process, thread: str, block: Block, starts_once: bool = True) -> None:
        """Open a block.

        One of a session or graph belongs to the current epoch, even if it ends in the next one.

        If the engine ``starts_once`` after a block of init options, another thread's block has
        ended by now.
        """
        if block.stage != "init":
            for (owner, other_thread), earlier in list(self._blocks.items()) if starts_once else ():
                if owner is process and earlier.stage == "init":
                    self._close(process, other_thread, whole=False)
            block.epoch = process.last
            if starts_once and block.epoch is not None and block.stage == "session":
                block.epoch.joined |= bool(block.epoch.late)
        self._blocks[process, thread] = block


class Tail:
    """The last text: a line without a head may continue it."""

    __slots__ = ("_keep", "_key", "_values")

    def __init__(self) -> None:
        self._values: Values | None = None
        self._keep: Callable[[], None] | None = None
        self._key = ""

    @property
    def is_open(self) -> bool:
        """Whether the next line may continue it."""
        return self._values is not None

    def set(self, values: Values, key: str, keep: Callable[[], None] | None = None) -> None:
        """Set the last text; ``keep`` is called if a line continues it."""
        self._values, self._key, self._keep = values, key, keep

    def clear(self) -> None:
        """Forget the last text."""
        self._values = None

    def go_on(self) -> None:
        """Mark the text as possibly continued on further lines."""
        if self._values is not None:
            self._values[self._key] = self._values[self._key]._replace(followed=True)
            if self._keep is not None:
                self._keep()
        self._values = None
