"""Plays a process: which lines it says, in which order, and which of them show what."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from adapterlogs import wire


class Line(NamedTuple):
    """A line as the program says it; ``kind`` is where it goes (debug, run or screen), ``head`` whether a plog head stands before it."""

    text: str
    kind: str = "debug"
    module: str = "FMK"
    level: str = "INFO"
    tid: int = 0


class Session(NamedTuple):
    """A session that a script makes: its parameter map, how many GeOps it has, how often each adds its graph."""

    entries: Mapping[str, wire.Entry]
    geops: int = 1
    graphs: int = 1


class Epoch(NamedTuple):
    """A life of the graph engine: its sessions; the arguments with which npu_resource_init started it, if it did."""

    sessions: Sequence[Session]
    resource: Mapping[str, Any] | None = None


class Plan(NamedTuple):
    """A process: the adapter's state, its epochs, the modules whose info lines are on, and whether an epoch's sessions run side by side."""

    snapshot: str
    pid: int
    epochs: Sequence[Epoch]
    modules: frozenset[str] = frozenset({"FMK"})
    threads: bool = False
    prefix: str = ""


class Held(NamedTuple):
    """A session that was played: what it asked for, what the graph engine was started with, and the graph it compiled."""

    epoch: int
    entries: Mapping[str, wire.Entry]
    maps: wire.Maps
    init: Mapping[str, str]
    resource: Mapping[str, Any] | None
    first: bool


class Played(NamedTuple):
    """A process that was played; ``shown`` has, for a session and a stage or an option, the groups of lines of which each shows it."""

    pid: int
    snapshot: str
    lines: list[Line]
    sessions: list[Held]
    shown: dict[tuple[int, str], list[list[int]]]


class _Stage:
    """Collects the lines of a process, or of one of its threads."""

    def __init__(self, plan: Plan, tid: int) -> None:
        self.plan, self.tid = plan, tid
        self.lines: list[Line] = []
        self.shown: dict[tuple[int, str], list[list[int]]] = {}

    def add(self, file: str, text: str, *, kind: str = "debug", level: str = "INFO") -> int:
        """Say something as the adapter; return the line's number, -1 where its level is off."""
        plan = self.plan
        if kind == "debug" and "FMK" not in plan.modules:
            return -1
        number = 20 + sum(map(ord, file + text[:4])) % 2900
        place = f"{plan.prefix}{file}:{number}" if plan.snapshot < "g" else f"{file.rpartition('/')[2]}:{number}"
        if plan.snapshot >= "e":
            content = f"[adapter_logger.cc:28][TF_ADAPTER] [{place}]{self.tid} {text}"
        else:
            content = f"[adp_logger.cc:33][TF_ADAPTER] [{place}] {text}"
        self.lines.append(Line(content, kind, "FMK", level, self.tid))
        return len(self.lines) - 1

    def add_engine(self, place: str, text: str, *, level: str = "INFO") -> int:
        """Say something as the graph engine."""
        if "GE" not in self.plan.modules:
            return -1
        self.lines.append(Line(f"[{place}]{self.tid} {text}", "debug", "GE", level, self.tid))
        return len(self.lines) - 1

    def add_block(self, file: str, title: str, entries: Mapping[str, str]) -> list[int]:
        """Say a block of options; return its lines."""
        first = self.add(file, title)
        return [first, *(self.add("tf_adapter/util/npu_attrs.cc", f"{key}: {entries[key]}") for key in sort_keys(entries))]

    def add_engine_block(self, place: str, function: str, entries: Mapping[str, str], tail: str = "") -> list[int]:
        """Say what the graph engine was given; a long value goes on in lines that hold only the rest."""
        said = []
        for key in sort_keys(entries):
            text = f"GE option: {key}, value: {entries[key]}{tail}."
            said.append(self.add_engine(place, f"{function}:{text[:900]}"))
            said += [self.add_engine(place, f"{function}:{text[start : start + 800]}") for start in range(900, len(text), 800)]
        return said

    def show(self, session: int, what: str, lines: list[int]) -> None:
        """Note that some lines together show a stage or an option of a session."""
        if lines and -1 not in lines:
            self.shown.setdefault((session, what), []).append(lines)


def sort_keys(entries: Mapping[str, str]) -> list[str]:
    """Return keys in byte order, as a map of C++ keeps them."""
    return sorted(entries, key=str.encode)


TITLES = {"b": ("init options:", "session options:"), "c": ("init options:", "session options:")}
LOWER = ("init options: ", "session options: ")
ADDED = {"ge.exec.allow_hf32": "1", "ge.exec.deviceId": "0", "ge.exec.hcclFlag": "0", "ge.exec.isUseHcom": "0", "ge.exec.jobId": "1"}
#: The single lines of the adapters until 2021-04: who says them, their name, the option, the key.
SINGLE = (
    ("GePlugin", "graph run mode", "graph_run_mode", "ge.graphRunMode"),
    ("GePlugin", "precision_mode", "precision_mode", "ge.exec.precision_mode"),
    ("GePlugin", "auto_tune_mode", "auto_tune_mode", "ge.autoTuneMode"),
    ("GePlugin", "op_debug_level", "op_debug_level", "ge.opDebugLevel"),
    ("GEOP", "variable_acceleration", "variable_format_optimize", "ge.exec.variable_acc"),
    ("GEOP", "hcom_parallel", "hcom_parallel", "ge.hcomParallel"),
    ("GEOP", "stream_max_parallel_num", "stream_max_parallel_num", "ge.streamMaxParallelNum"),
)
PLUGIN, GEOP, MANAGER = "tf_adapter/util/ge_plugin.cc", "tf_adapter/kernels/geop_npu.cc", "tf_adapter/util/session_manager.cc"


def _say_start(stage: _Stage, number: int, held: Held, *, up: bool) -> None:
    """Say what GePlugin::Init says: the start, or that the engine is up already."""
    if held.resource is not None:
        stage.add(GEOP, "[GEOP] GePlugin global, skip GePlugin init")
        return
    if up:
        stage.add(PLUGIN, "[GePlugin] Ge has already initialized")
        stage.add_engine("ge_api.cc:212", "GEInitializeImpl:GEInitialize is called more than once", level="WARNING")
        return
    snapshot = stage.plan.snapshot
    if snapshot == "g":
        block = stage.add_block(PLUGIN, "Init options: ", held.init)
        stage.show(number, "i", block)
    for speaker, name, option, key in SINGLE:
        if speaker == "GePlugin" and (snapshot < "g" or name == "graph run mode"):
            line = stage.add(PLUGIN, f"[GePlugin] {name} : {held.init.get(key, '')}")
            stage.show(number, f"o:{option}", [line])
    stage.add(PLUGIN, "[GePlugin] device id : 0")
    _say_engine_start(stage, number, held.init)
    stage.add(PLUGIN, "[GePlugin] Initialize parser success." if snapshot == "g" else "[GePlugin] Initialize ge success.")


def _say_engine_start(stage: _Stage, number: int, init: Mapping[str, str]) -> None:
    stage.add_engine("status:INIT] [ge_api.cc:194", "GEInitializeImpl:GEInitialize start", level="TRACE")
    if stage.plan.snapshot == "g":
        stage.show(number, "i", stage.add_engine_block("ge_api.cc:250", "GEInitializeImpl", {**init, **ADDED}))


def _say_session(stage: _Stage, number: int, held: Held) -> None:
    """Say what a session of the graph engine says when it is made."""
    if stage.plan.snapshot == "g":
        stage.show(number, "s", stage.add_block(MANAGER, "Session options: ", held.maps.session))
        stage.show(number, "s", stage.add_engine_block("ge_api.cc:410", "CreateSession", held.maps.session))
    for speaker, name, option, key in SINGLE:
        if speaker == "GEOP" and (stage.plan.snapshot < "g" or name == "variable_acceleration"):
            line = stage.add(MANAGER, f"[GEOP] {name} :{held.maps.session.get(key, '')}")
            stage.show(number, f"o:{option}", [line])


def _say_old_blocks(stage: _Stage, number: int, held: Held, starts: list[int], *, up: bool) -> None:
    """Say the blocks of 2021-09 to 2023-12: of every GeOp, its own options, whether or not they were given to the engine."""
    init, session = TITLES.get(stage.plan.snapshot, LOWER)
    block = stage.add_block(GEOP, init, held.maps.init)
    if not up:
        stage.show(number, "i", [*starts, *block])
    stage.show(number, "s", stage.add_block(GEOP, session, held.maps.session))


def _say_partition(stage: _Stage, number: int, asked: Mapping[str, str | None], graph: int) -> None:
    mix = "True" if asked["mix_compile_mode"] == "1" else "False"
    shape, dims = asked["input_shape"] or "", asked["dynamic_dims"] or ""
    text = f"OMPartition subgraph_{graph} begin. mix_compile_mode is {mix}, iterations_per_loop is {asked['iterations_per_loop'] or '1'}, "
    line = stage.add(
        "tf_adapter/optimizers/om_partition_subgraphs_pass.cc", f"{text}input_shape: {shape}, dynamic_dims: {dims}", kind="run"
    )
    for option in ("mix_compile_mode", "iterations_per_loop", "input_shape", "dynamic_dims"):
        stage.show(number, f"o:{option}", [line])


def _say_geop(stage: _Stage, number: int, asked: Mapping[str, str | None]) -> None:
    mode = asked["dynamic_graph_execute_mode"] or ("dynamic_execute" if asked["dynamic_input"] == "1" else "")
    line = stage.add(
        GEOP,
        f"[GEOP] dynamic_input: {asked['dynamic_input'] or '0'}, dynamic_graph_execute_mode: {mode}, "
        f"jit_compile: {asked['jit_compile'] or '2'}, is_dynamic_input: 0, getnext_inputs_shape_range: , "
        f"data_inputs_shape_range: {(asked['dynamic_inputs_shape_range'] or '').removeprefix('data:')}, is_train_graph: 0, "
        f"is_dynamic_getnext: 0, placeholder_index: , compile_dynamic_mode: {asked['compile_dynamic_mode'] or '0'}, "
        f"shape_generalization_mode: {asked['shape_generalization_mode'] or 'STRICT'}",
    )
    for option in ("dynamic_input", "compile_dynamic_mode", "shape_generalization_mode"):
        stage.show(number, f"o:{option}", [line])
    line = stage.add(GEOP, f"graph_max_parallel_model_num :{asked['graph_max_parallel_model_num'] or '1'}")
    stage.show(number, "o:graph_max_parallel_model_num", [line])
    line = stage.add(GEOP, f"accelerate train mode :{asked['experimental_accelerate_train_mode'] or ''}")
    stage.show(number, "o:experimental_accelerate_train_mode", [line])


def _say_graph(stage: _Stage, number: int, held: Held, graph: int) -> None:
    jit = held.maps.graph.get("ge.jit_compile", "2")
    line = stage.add(GEOP, f"[GEOP] call ge session add graph jit_compile: {jit}, graph_id: {graph}", kind="run")
    if held.maps.asked["dynamic_input"] != "1":
        stage.show(number, "o:jit_compile", [line])
    stage.show(number, "g", stage.add_block(GEOP, "Graph options: ", held.maps.graph))
    tail = f", innerSession:{number}, graphid: {graph}"
    stage.show(number, "g", stage.add_engine_block("inner_session.cc:402", "AddGraph", held.maps.graph, tail))


def _play_session(stage: _Stage, number: int, held: Held, session: Session, *, up: bool) -> int:
    """Say all lines of a session; return how many of them belong to the start of the engine."""
    current, started = stage.plan.snapshot == "g", 0
    for geop in range(session.geops):
        if current:
            _say_partition(stage, number, held.maps.asked, geop)
        stage.add(GEOP, "[GEOP] Begin to GeOp initialize." if current else "[GEOP] Begin GeOp initialize.")
        if current:
            _say_geop(stage, number, held.maps.asked)
        before = len(stage.lines)
        _say_start(stage, number, held, up=up or geop > 0)
        starts = list(range(before, len(stage.lines)))
        stage.add(GEOP, "[GEOP] GePlugin init success." if current else "[GEOP] GePlugin init success")
        if stage.plan.snapshot in "bcdef":
            _say_old_blocks(stage, number, held, starts, up=up or geop > 0)
        started = started or len(stage.lines)
        if current:
            stage.add(GEOP, "init options: ")
            stage.add(GEOP, "[GEOP] GeOp Initialize success, cost:[12 ms].", kind="run")
        if not geop:
            _say_session(stage, number, held)
            stage.add(GEOP, "[GEOP] tf session: direct5e1a77b0c3d24f19 get ge session success.")
        for graph in range(session.graphs if current else 0):
            _say_graph(stage, number, held, geop * session.graphs + graph + 1)
    return started


def play(plan: Plan, rng: random.Random) -> Played:
    """Play a process of TF 1."""
    kept: dict[str, str] = {}
    played = Played(plan.pid, plan.snapshot, [], [], {})
    for count, epoch in enumerate(plan.epochs):
        stages: list[tuple[_Stage, int]] = []
        init: Mapping[str, str] = {}
        if epoch.resource is not None:
            init = wire.build_resource_map(epoch.resource)
            stage = _Stage(plan, plan.pid)
            resource = stage.add_block(PLUGIN, "Init options: ", init)
            _say_engine_start(stage, -1, init)
            engine = stage.shown.pop((-1, "i"), [])
            stages.append((stage, len(stage.lines)))
        for place, session in enumerate(epoch.sessions):
            maps = wire.build_maps(session.entries, plan.snapshot, kept)
            up = place > 0 or epoch.resource is not None
            init = init if up else dict(maps.init)
            number = len(played.sessions)
            played.sessions.append(Held(count, session.entries, maps, init, epoch.resource, not up))
            stage = _Stage(plan, plan.pid + (place if plan.threads else 0))
            stages.append((stage, _play_session(stage, number, played.sessions[-1], session, up=up)))
            if epoch.resource is not None:
                stages[0][0].show(number, "i", resource)
                stages[0][0].shown.setdefault((number, "i"), []).extend(engine)
            elif place:
                first = len(played.sessions) - 1 - place
                stages[0][0].shown.setdefault((number, "i"), []).extend(stages[0][0].shown.get((first, "i"), []))
        _append(played, stages, rng if plan.threads else None)
    return played


def _append(played: Played, stages: list[tuple[_Stage, int]], rng: random.Random | None) -> None:
    """Put the lines of threads one after another, or, once the engine is up, among each other."""
    order: list[tuple[int, int]] = []
    if rng is None or len(stages) == 1:
        order = [(number, line) for number, (stage, _) in enumerate(stages) for line in range(len(stage.lines))]
    else:
        order = [(0, line) for line in range(stages[0][1])]
        left = {number: list(range(stages[0][1] if not number else 0, len(stage.lines))) for number, (stage, _) in enumerate(stages)}
        while left := {number: lines for number, lines in left.items() if lines}:
            number = rng.choice(list(left))
            order += [(number, left[number].pop(0)) for _ in range(min(rng.randint(1, 6), len(left[number])))]
    at = {where: len(played.lines) + place for place, where in enumerate(order)}
    mixed = rng is not None and len(stages) > 1 and played.snapshot < "e"
    played.lines.extend(stages[number][0].lines[line] for number, line in order)
    for number, (stage, _) in enumerate(stages):
        for (session, what), groups in stage.shown.items():
            moved = [[at[number, line] for line in group] for group in groups]
            if mixed:  # without a thread's number nobody can tell whose line is whose, but for those said before there were two
                moved = [group for group in moved if number == 0 and max(group) < at[0, stages[0][1] - 1] + 1]
            played.shown.setdefault((session, what), []).extend(moved)
