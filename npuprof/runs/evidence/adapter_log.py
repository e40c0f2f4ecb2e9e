"""Log lines of the adapter for TensorFlow 1: blocks of options, single lines, and engine starts."""

from __future__ import annotations

import re
from itertools import zip_longest

from npuprof.catalog.wire import (
    STAGES,
    Generation,
    list_standing_keys,
    load_generations,
    load_known_keys,
    load_line_fields,
    load_single_names,
)
from npuprof.runs.evidence import Map, Process, Text, Values
from npuprof.runs.evidence.lines import Line
from npuprof.runs.evidence.option_blocks import Block, BlockLog, Tail

_PAIR = re.compile(r"(?P<key>[A-Za-z_][\w.]*):(?: (?P<text>.*))?", re.ASCII | re.DOTALL)
#: The source file in block lines, and the start of a line that ends before its text.
_LISTS = "npu_attrs.cc"
_KEY = re.compile(r"[\w.]*", re.ASCII)
#: Engine lines have a blank before the text, operator lines none: there, a blank belongs to the
#: text.
_SINGLE = re.compile(
    r"\[(?:(?P<engine>GePlugin)|GEOP)\] (?P<name>[A-Za-z][\w ]{0,60}?) ?:"
    r"(?(engine)[ ]?)(?P<text>.*)",
    re.ASCII | re.DOTALL,
)
_PARTITION = re.compile(r"OMPartition subgraph_\d+ begin\. ", re.ASCII)
_ADD_GRAPH = re.compile(
    r"\[GEOP\] call ge session add graph (?P<key>\w+): (?P<text>\w+), graph_id: \d+", re.ASCII
)
_OPERATOR = re.compile(r"\[GEOP\] (?=dynamic_input: )", re.ASCII)
#: The start of a field in a line; its text extends to the next field. The line may end early.
_FIELD = re.compile(r"(?:^|, )(\w+)(?::| is)(?: |$)", re.ASCII)
_BROKEN_FIELD = re.compile(r", \w*(?: is?)?$", re.ASCII)
#: A message after a start; a shorter line may be the cut message that the engine was already
#: running.
_STARTED = "[GePlugin] Initialize"
_BEGINS = re.compile(r"\[GEOP\] Begin (?:to )?GeOp initialize", re.ASCII)
_RUNNING = "[GePlugin] Ge has already"
_DEVICE = re.compile(r"\[GePlugin\] device id : (\d+)")
#: Why a later engine start was dropped.
ALREADY = "the engine was running already"
GLOBAL = "init_resource had started the engine"
#: Title and stage of an operator that starts the engine before any session; only earlier lines show
#: whether it did, and no line names the adapter.
_EARLY_TITLE, _EARLY = "init option:", "early init"


def _index_titles() -> dict[str, tuple[Generation, str]]:
    return {
        title: (generation, stage)
        for generation in load_generations()
        for stage in STAGES
        # some adapters have no such block
        if not generation.tf2 and (title := getattr(generation, stage))
    }


class AdapterLog(BlockLog):
    """The adapter's lines in one stream, assigned to processes."""

    def __init__(self, tail: Tail) -> None:
        super().__init__(tail)
        self._titles = _index_titles()
        self._repeated = next(
            generation for generation in load_generations() if generation.per == "operator"
        )
        self._singles = load_single_names()
        self._fields = {stage: load_line_fields(stage) for stage in ("partition", "operator")}
        #: by process and thread: why the start since its last block of init options was dropped
        self._started: dict[tuple[Process, str], str] = {}
        known = load_known_keys()
        self._keys = known["init"] | known["session"]
        # a graph may receive any of them
        self._foreign = {stage: self._keys - known[stage] for stage in ("init", "session")}
        self.is_truncated = False  # whether a line ends before its text

    @property
    def is_open(self) -> bool:
        """Whether a block may continue."""
        return bool(self._blocks)

    def take(self, process: Process, line: Line) -> None:
        """Parse a line and record it in its process."""
        text = line.text
        block = self._blocks.get((process, line.thread))
        if block is not None:
            pair = _PAIR.fullmatch(text)
            key = pair["key"] if pair is not None else ""
            if pair is not None and block.takes(key) and text.rstrip() not in self._titles:
                block.add(key, Text(pair["text"] or "", line.is_cut))
                process.informed = True
                self._tail.set(block.values, key)
                return
            # cut, and more lines may follow
            if line.origin == _LISTS and _KEY.fullmatch(text) is not None:
                self.is_truncated = block.lost = True
                return
            self._close(process, line.thread, whole=pair is None)
        title = text.rstrip()
        if title in self._titles:
            generation, stage = self._titles[title]
            block = Block(stage, list_standing_keys(generation.name, stage), generation)
            self._open(process, line.thread, block, generation.per == "start")
        elif title == _EARLY_TITLE:
            self._blocks[process, line.thread] = Block(
                _EARLY, list_standing_keys(self._repeated.name, "init")
            )
        elif text.startswith("["):
            self._take_marked(process, text, line)
        elif match := _PARTITION.match(text):
            process.note(
                "partition", Map(self._parse_fields("partition", text[match.end() :], line))
            )
        elif (
            line.origin == _LISTS
            and (pair := _PAIR.fullmatch(text)) is not None
            and pair["key"] in self._keys
        ):
            process.keys_without_header.add(pair["key"])
        else:
            name, colon, value = text.partition(" :")
            if colon and name in self._fields["operator"]:
                process.note("operator", Map({name: Text(value, line.is_cut)}))
                process.informed = True

    def _take_marked(self, process: Process, text: str, line: Line) -> None:
        if _BEGINS.match(text):
            self._started.pop((process, line.thread), None)
        elif "already initialized" in text or text.startswith(_RUNNING):
            self._started[process, line.thread] = ALREADY
            process.settle().late = ALREADY
        elif "skip GePlugin init" in text:
            self._started[process, line.thread] = GLOBAL
            epoch = process.settle()
            epoch.late, epoch.joined = GLOBAL, True
        elif match := _OPERATOR.match(text):
            process.note("operator", Map(self._parse_fields("operator", text[match.end() :], line)))
            process.informed = True
        elif match := _ADD_GRAPH.match(text):
            process.settle().add(
                "add graph", Map({match["key"]: Text(match["text"], not line.ended)})
            )
        elif match := _DEVICE.match(text):
            process.device = match[1]
            self._note_start(process, line.thread)
        elif (match := _SINGLE.fullmatch(text)) and not text.startswith(_RUNNING[:16]):
            self._take_single(process, match, line)
        elif text.startswith(_STARTED):
            self._note_start(process, line.thread)

    def _note_start(self, process: Process, thread: str) -> None:
        self._started.setdefault((process, thread), "")

    def _take_single(self, process: Process, match: re.Match[str], line: Line) -> None:
        name = match["name"]
        if match["engine"]:
            self._note_start(process, line.thread)
        option = self._singles.get(name) or self._singles.get(name.replace(" ", "_"))
        if option is None:
            return
        process.informed = True
        stage = "single init" if match["engine"] else "single session"
        single = Map({option: Text(match["text"], line.is_cut)})
        if process.generation and stage == "single init":  # the block of this start comes later
            process.note(stage, single)
            self._tail.set(single.values, option, lambda: process.note(stage, single))
            return
        last = process.last
        if (
            last is not None
            and stage == "single init"
            and last.texts(option, stage)
            and not last.has("init")
        ):
            # adapters without blocks write this line once for each start
            process.start_epoch(anew=True)
        epoch = process.epoch
        epoch.joined |= stage == "single session" and bool(epoch.late)
        epoch.add(stage, single)
        self._tail.set(single.values, option, lambda: epoch.add(stage, single))

    def _parse_fields(self, stage: str, text: str, line: Line) -> Values:
        """Return the option fields of a line: their texts may contain blanks and commas.

        Only the last one can be cut.
        """
        fields = list(_FIELD.finditer(text))
        texts = {}
        for field, following in zip_longest(fields, fields[1:]):
            name = field[1]
            if name not in self._fields[stage]:
                continue
            if following is not None:
                texts[name] = Text(text[field.end() : following.start()])
            else:
                value, broken = _BROKEN_FIELD.subn("", text[field.end() :])
                texts[name] = Text(value, line.is_cut or bool(broken))
        return texts

    def _close(self, process: Process, thread: str, whole: bool) -> None:
        block = self._blocks.pop((process, thread), None)
        if block is None or not block.values:
            return
        # the end of another block without its title
        if not self._foreign.get(block.stage, frozenset()).isdisjoint(block.values):
            process.keys_without_header |= block.values.keys()
            return
        closed = block.close(whole)
        generation = block.generation
        if generation is not None:
            process.threaded |= bool(thread)
            process.generation = process.generation or generation
            if block.stage != "init":
                process.settle()
                (block.epoch or process.epoch).add(block.stage, closed)
                return
        started = self._started.pop((process, thread), None)
        if generation is not None:
            if generation.per == "start":
                process.start_epoch().add("init", closed)
                return
            if started == "" and process.epochs and process.epoch.doubtful:
                started = None  # the start may belong to another block
        self._close_operator_block(process, closed, started)

    def _close_operator_block(self, process: Process, closed: Map, started: str | None) -> None:
        """Record the init options of an operator.

        They were effective only if the operator started the engine.
        """
        if started:
            if closed not in process.epoch.requested:
                process.epoch.requested.append(closed)
                # every operator of a run may request some
                del process.epoch.requested[:-8]
            return
        known = process.last.blocks("init") if process.last else ()
        if started is None and any(block.values == closed.values for block in known):
            return
        epoch = process.start_epoch()
        epoch.add("init", closed)
        epoch.doubtful |= started is None
