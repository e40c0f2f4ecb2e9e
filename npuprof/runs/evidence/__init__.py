"""Logs of a run, parsed to values: what adapter and engine logged.

``reading`` collects it from files, ``verdicts`` evaluates it.

A process has epochs: the engine starts, sessions are created, and it may stop and start again. The
observed keys of an epoch are kept as maps of texts, one list per stage; equal maps are kept once,
and at most ``MOST_MAPS``.
"""

from __future__ import annotations

from typing import NamedTuple

from npuprof.catalog.wire import Generation
from npuprof.model import Record

#: The maximum number of different maps of a stage per epoch; beyond it, the stage is undecided.
MOST_MAPS = 64


class Text(NamedTuple):  # a tuple, because there is one for each line of a block
    """The text of a key.

    ``cut`` if its line may continue, ``followed`` if the next line has no head and may belong to
    it.
    """

    text: str
    cut: bool = False
    followed: bool = False


Values = dict[str, Text]


class Map(NamedTuple):  # a tuple, because each block is compared with all others of its stage
    """The texts of one block.

    ``engine`` maps use the engine's own format; ``whole`` ones ended regularly.
    """

    values: Values
    engine: bool = False
    whole: bool = True


class Epoch:
    """The engine from one start to the next.

    ``maps`` are by stage: ``init``, ``session``, ``graph``, and ``single``, ``partition``,
    ``operator``, ``add graph`` for lines of these kinds. ``requested`` are init options that came
    after the engine start; ``late`` is set if somebody tried that, ``joined`` if a session was
    created afterwards, ``doubtful`` if a block of init options may be such an attempt. ``crowded``
    are stages with dropped maps.
    """

    __slots__ = ("crowded", "doubtful", "joined", "late", "maps", "requested")

    def __init__(self) -> None:
        self.maps: dict[str, list[Map]] = {}
        self.requested: list[Map] = []
        self.late = ""
        self.joined = False
        self.doubtful = False
        self.crowded: set[str] = set()

    def add(self, stage: str, texts: Map) -> None:
        """Add a map to a stage, unless it has an equal one."""
        known = self.maps.setdefault(stage, [])
        if texts in known:
            return
        if len(known) >= MOST_MAPS:
            self.crowded.add(stage)
            return
        known.append(texts)

    def blocks(self, *stages: str) -> list[Map]:
        """Return the maps of stages."""
        return [block for stage in stages for block in self.maps.get(stage, ())]

    def texts(self, key: str, *stages: str) -> list[Text]:
        """Return the texts of a key in the maps of stages."""
        return [block.values[key] for block in self.blocks(*stages) if key in block.values]

    def has(self, *stages: str) -> bool:
        """Return whether any of these stages was observed."""
        return bool(self.blocks(*stages))


class Process:
    """One process with logs.

    ``place`` is the folder of its machine's logs, or the path of its log. ``pid`` is None if its
    lines lack the number, ``label`` is what the launcher writes before them. ``tf2`` marks the
    adapter for TensorFlow 2, ``generation`` is the matching row of ``catalog.wire``, ``threaded``
    is set if its lines name threads. ``warned`` are texts by attribute from warnings of TF 2,
    ``dumps`` maps of graph dump attributes by kind (``node``, ``operator``). ``is_truncated`` is
    set if lines are cut or merged, ``keys_without_header`` are keys of lines without the title of
    their block. ``variables`` are the texts that torch_npu read, by variable.
    """

    def __init__(self, place: str, pid: int | None, label: str = "") -> None:
        self.place = place
        self.pid = pid
        self.label = label
        self.rank = ""
        self.device = ""
        self.tf2 = False
        self.generation: Generation | None = None
        self.number = 1
        self.informed = False
        self.threaded = False
        self.epochs: list[Epoch] = []
        self.pending: list[tuple[str, Map]] = []
        self.dumps: list[tuple[str, Map]] = []
        self.warned: dict[str, list[Text]] = {}
        self.warnings_mixed = False
        self.is_truncated = False
        self.keys_without_header: set[str] = set()
        self.variables: dict[str, list[Text]] = {}

    @property
    def last(self) -> Epoch | None:
        """The current epoch, if there is one."""
        return self.epochs[-1] if self.epochs else None

    @property
    def epoch(self) -> Epoch:
        """The current epoch."""
        if not self.epochs:
            self.epochs.append(Epoch())
        return self.epochs[-1]

    def start_epoch(self, anew: bool = False) -> Epoch:
        """Return a new epoch of the engine, or the last one if nothing was observed in it.

        Pending observations belong to it.
        """
        last = self.last
        is_used = last is not None and (
            last.late or last.doubtful or last.has("init", "session", "graph")
        )
        if anew or last is None or is_used:
            self.epochs.append(Epoch())
        return self.settle()

    def settle(self) -> Epoch:
        """Assign pending observations to the current epoch."""
        for stage, texts in self.pending:
            self.epoch.add(stage, texts)
        self.pending.clear()
        return self.epoch

    def identify(self, values: Values) -> None:
        """Take rank and device from the engine's options, unless they are known."""
        self.rank = self.rank or values.get("ge.exec.rankId", Text("")).text
        self.device = self.device or values.get("ge.exec.deviceId", Text("")).text

    def note(self, stage: str, texts: Map) -> None:
        """Record an observation that may belong to the next epoch."""
        if (stage, texts) in self.pending:
            return
        # in a log without a start, they would grow with its length
        if len(self.pending) >= MOST_MAPS:
            self.settle()
        self.pending.append((stage, texts))


class Evidence(Record):
    """All processes with logs, in order of discovery, and the number of files read.

    ``unknown`` are the variables that vLLM calls unknown.
    """

    processes: list[Process]
    files: int
    unknown: tuple[str, ...]
