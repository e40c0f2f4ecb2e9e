"""Evidence: what adapter and engine wrote down of a run, as values. ``reading`` gathers it from files, ``verdicts`` judges it.

A process has epochs: the engine starts, sessions are made in it, and it may end and start again. What of an epoch is seen is kept as
maps of texts by key, one list for each stage; equal maps are kept once, and no more than ``MOST_MAPS``.
"""

from __future__ import annotations

from typing import NamedTuple

#: How many different maps of one stage are kept of an epoch; of an epoch with more, that stage cannot be told.
MOST_MAPS = 64


class Text(NamedTuple):
    """The text of a key. It is ``cut`` if its line may go on, and ``followed`` if the next line has no head and may be part of it."""

    text: str
    cut: bool = False
    followed: bool = False


Values = dict[str, Text]


class Map(NamedTuple):
    """The texts of one block. ``engine`` ones are in the engine's own words; ``whole`` ones ended as they should."""

    values: Values
    engine: bool = False
    whole: bool = True


class Epoch:
    """The engine from one start to the next.

    ``maps`` are by stage: ``init``, ``session``, ``graph``, and ``single``, ``partition``, ``operator``, ``add graph`` for lines of these
    kinds. ``asked`` are init options that came when the engine was running already. It is ``late`` where somebody tried that,
    ``joined`` where a session was made after that, ``doubtful`` where a block of init options may be such a one, and nothing says so.
    ``crowded`` are stages of which not all was kept.
    """

    __slots__ = ("asked", "crowded", "doubtful", "joined", "late", "maps")

    def __init__(self) -> None:
        self.maps: dict[str, list[Map]] = {}
        self.asked: list[Map] = []
        self.late = ""
        self.joined = False
        self.doubtful = False
        self.crowded: set[str] = set()

    def add(self, stage: str, texts: Map) -> None:
        """Keep a map of a stage, unless an equal one is there."""
        known = self.maps.setdefault(stage, [])
        if texts in known:
            return
        if len(known) >= MOST_MAPS:
            self.crowded.add(stage)
            return
        known.append(texts)

    def has(self, *stages: str) -> bool:
        """Return whether anything of these stages was seen."""
        return any(self.maps.get(stage) for stage in stages)


class Process:
    """One process: where it was found, its number (None where its lines do not say), what a launcher calls it, and what it did.

    ``tf2`` tells the adapter for TensorFlow 2 apart, ``generation`` is the row of ``catalog.wire`` that its lines fit, ``threaded`` says
    that they name threads. ``warned`` are texts by attribute from the warnings of TF 2, ``dumps`` maps of attributes of graph dumps by
    kind (``node``, ``operator``). It is ``spoilt`` if lines of a file of it are cut or run into each other, ``orphaned`` are keys of
    lines that have lost the title of their block. ``variables`` are the texts that torch_npu read of each.
    """

    def __init__(self, place: str, pid: int | None, label: str = "") -> None:
        self.place = place
        self.pid = pid
        self.label = label
        self.rank = ""
        self.device = ""
        self.tf2 = False
        self.generation = ""
        self.number = 1
        self.informed = False
        self.threaded = False
        self.epochs: list[Epoch] = []
        self.pending: list[tuple[str, Map]] = []
        self.dumps: list[tuple[str, Map]] = []
        self.warned: dict[str, list[Text]] = {}
        self.warnings_mixed = False
        self.spoilt = False
        self.orphaned: set[str] = set()
        self.variables: dict[str, list[Text]] = {}

    @property
    def epoch(self) -> Epoch:
        """The epoch that goes on."""
        if not self.epochs:
            self.epochs.append(Epoch())
        return self.epochs[-1]

    def start_epoch(self, anew: bool = False) -> Epoch:
        """Begin an epoch: the engine starts. What was seen since the last one did something belongs to it."""
        last = self.epochs[-1] if self.epochs else None
        if anew or last is None or last.late or last.doubtful or last.has("init", "session", "graph"):
            self.epochs.append(Epoch())
        return self.settle()

    def settle(self) -> Epoch:
        """Let what was seen lately belong to the epoch that goes on."""
        for stage, texts in self.pending:
            self.epoch.add(stage, texts)
        self.pending.clear()
        return self.epoch

    def note(self, stage: str, texts: Map) -> None:
        """Keep what may belong to an epoch that has not begun yet."""
        if (stage, texts) in self.pending:
            return
        if len(self.pending) >= MOST_MAPS:
            self.settle()
        self.pending.append((stage, texts))


class Evidence(NamedTuple):
    """All processes that left something, in the order in which they were found, and how many files were read."""

    processes: list[Process]
    files: int
