"""What the adapter for TensorFlow 1 writes: blocks of options, single lines, and how the engine was started."""

from __future__ import annotations

import re

from npuprof.catalog.wire import Generation, load_generations, load_single_names
from npuprof.runs.evidence import Map, Process, Values
from npuprof.runs.evidence.blocks import Block, Tail, make_text
from npuprof.runs.evidence.lines import Line

_PAIR = re.compile(r"([A-Za-z_][\w.]*):(?: (.*))?", re.ASCII | re.DOTALL)
_SINGLE = re.compile(r"\[(GePlugin|GEOP)\] ([A-Za-z][\w ]{0,60}?) ?:[ ]?(.*)", re.ASCII | re.DOTALL)
_PARTITION = re.compile(
    r"OMPartition subgraph_\d+ begin\. mix_compile_mode is (\w+), iterations_per_loop is (-?\d+)"
    r"(?:, input_shape: (.*), dynamic_dims: (.*))?",
    re.DOTALL,
)
_ADD_GRAPH = re.compile(r"\[GEOP\] call ge session add graph jit_compile: (\w+), graph_id: \d+")
_OPERATOR_FIELDS = (
    "dynamic_input", "dynamic_graph_execute_mode", "jit_compile", "getnext_inputs_shape_range", "data_inputs_shape_range",
    "compile_dynamic_mode", "shape_generalization_mode",
)  # fmt: skip
_OPERATOR_LINES = {"graph_max_parallel_model_num": "graph_max_parallel_model_num", "accelerate train mode": "accelerate train mode"}
_DEVICE = re.compile(r"\[GePlugin\] device id : (\d+)")
#: Why a later try to start the engine was dropped.
ALREADY = "the engine was running already"
GLOBAL = "init_resource had started the engine"
#: A title after which come options that nobody can place: those of a resource that is made before any session.
_ODD_TITLE = "init option:"


def _index_titles() -> dict[str, tuple[Generation, str]]:
    found: dict[str, tuple[Generation, str]] = {}
    for generation in load_generations():
        if not generation.tf2:
            for stage in ("init", "session", "graph"):
                if title := getattr(generation, stage):
                    found[title] = (generation, stage)
    return found


class AdapterLog:
    """The lines of the adapter in one stream, each of its process; ``open_blocks`` are by process and thread."""

    def __init__(self, tail: Tail) -> None:
        self._titles = _index_titles()
        self._singles = load_single_names()
        self._blocks: dict[tuple[int, str], tuple[Process, Block]] = {}
        self._started: dict[int, str] = {}  # what was seen of a start since the last block of init options
        self._tail = tail

    @property
    def is_open(self) -> bool:
        """Whether a block may go on."""
        return bool(self._blocks)

    def take(self, process: Process, line: Line, ended: bool) -> None:
        """Take a line. What it says is kept in its process."""
        where = (id(process), line.thread)
        text = line.text
        found = self._blocks.get(where)
        if found is not None:
            pair = _PAIR.fullmatch(text)
            if pair is not None and found[1].takes(pair[1]) and text.rstrip() not in self._titles:
                block = found[1]
                block.add(pair[1], make_text(pair[2] or "", line.size, ended))
                if block.stage:
                    process.informed = True
                self._tail.set(block.values, pair[1], line.size)
                return
            self._close(where, whole=pair is None)
        title = text.rstrip()
        if title in self._titles:
            generation, stage = self._titles[title]
            self._blocks[where] = (process, Block(stage, generation.name))
        elif title == _ODD_TITLE:
            self._blocks[where] = (process, Block("", ""))
        elif text.startswith("["):
            self._take_marked(process, text, line, ended)
        elif text.startswith("OMPartition"):
            self._take_partition(process, text, line, ended)
        else:
            name, colon, value = text.partition(" :")
            if colon and name in _OPERATOR_LINES:
                process.note("operator", Map({_OPERATOR_LINES[name]: make_text(value, line.size, ended)}))
                process.informed = True

    def finish(self) -> None:
        """End all blocks: there is nothing more to read."""
        for where in list(self._blocks):
            self._close(where, whole=False)

    def _take_marked(self, process: Process, text: str, line: Line, ended: bool) -> None:
        if "already initialized" in text:
            self._started[id(process)] = ALREADY
            process.settle().late = ALREADY
        elif "skip GePlugin init" in text:
            self._started[id(process)] = GLOBAL
            process.settle().late = GLOBAL
        elif text.startswith("[GEOP] dynamic_input: "):
            process.note("operator", Map(_parse_operator(text.removeprefix("[GEOP] "), line.size, ended)))
            process.informed = True
        elif match := _ADD_GRAPH.match(text):
            process.settle().add("add graph", Map({"jit_compile": make_text(match[1], 0, ended)}))
        elif match := _DEVICE.match(text):
            process.device = match[1]
            self._started.setdefault(id(process), "")
        elif match := _SINGLE.fullmatch(text):
            self._take_single(process, match, line, ended)
        elif text.startswith("[GePlugin]"):
            self._started.setdefault(id(process), "")

    def _take_single(self, process: Process, match: re.Match[str], line: Line, ended: bool) -> None:
        if match[1] == "GePlugin":
            self._started.setdefault(id(process), "")
        option = self._singles.get(match[2]) or self._singles.get(match[2].replace(" ", "_"))
        if option is None:
            return
        process.informed = True
        stage = "single init" if match[1] == "GePlugin" else "single session"
        last = process.epochs[-1] if process.epochs else None
        known = last is not None and any(option in one.values for one in last.maps.get(stage, ()))
        if known and stage == "single init" and not (last is not None and last.has("init")):
            process.start_epoch(anew=True)
        process.epoch.add(stage, Map({option: make_text(match[3], line.size, ended)}))

    def _take_partition(self, process: Process, text: str, line: Line, ended: bool) -> None:
        match = _PARTITION.fullmatch(text)
        if match is None:  # its line is cut somewhere in the shapes
            match = _PARTITION.fullmatch(text.partition(", input_shape: ")[0])
        if match is None:
            return
        values = {
            "mix_compile_mode": make_text(match[1], 0, True),
            "iterations_per_loop": make_text(match[2], 0, ended or match[3] is not None),
        }
        if match[3] is not None:
            values["input_shape"] = make_text(match[3], 0, True)
            values["dynamic_dims"] = make_text(match[4], line.size, ended)
        process.note("partition", Map(values))

    def _close(self, where: tuple[int, str], whole: bool) -> None:
        process, block = self._blocks.pop(where)
        if not block.values or not block.stage:
            return
        found = block.close(whole)
        generation = next(one for one in load_generations() if one.name == block.title)
        process.generation = process.generation or generation.name
        if block.stage != "init":
            process.settle().add(block.stage, found)
            return
        if generation.per == "start":
            process.start_epoch().add("init", found)
            self._started.pop(id(process), None)
            return
        self._close_operator_block(process, found)

    def _close_operator_block(self, process: Process, found: Map) -> None:
        """Keep the init options of an operator: they were in force only where it was the one that started the engine."""
        started = self._started.pop(id(process), None)
        if started:
            process.epoch.asked.append(found)
            del process.epoch.asked[:-8]
            return
        known = process.epochs[-1].maps.get("init", ()) if process.epochs else ()
        if started is None and any(one.values == found.values for one in known):
            return
        epoch = process.start_epoch()
        epoch.add("init", found)
        epoch.doubtful = epoch.doubtful or started is None


def _parse_operator(text: str, size: int, ended: bool) -> Values:
    """Return the fields of an operator's line: their texts may hold blanks and commas, their names may not."""
    places = []
    for name in _OPERATOR_FIELDS:
        mark = f"{name}: "
        start = 0 if text.startswith(mark) else text.find(f", {mark}") + 2
        if start == 0 and not text.startswith(mark):
            continue
        if start >= 2 or text.startswith(mark):
            places.append((start, name, start + len(mark)))
    found = {}
    for _, name, begin in places:
        end = re.compile(r", \w+: ").search(text, begin - 1 if text[begin - 1 : begin] == "," else begin)
        stop = end.start() if end else len(text)
        found[name] = make_text(text[begin:stop], size if end is None else 0, ended or end is not None)
    return found
