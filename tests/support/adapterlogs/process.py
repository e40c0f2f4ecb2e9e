"""Plays a process: which lines it says, in which order, and which of them show what."""

from __future__ import annotations

import random
from collections.abc import Mapping

from support.adapterlogs import wire
from support.adapterlogs.stage import Epoch, Held, Plan, Played, Session, Stage, sort_keys

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


def _say_start(stage: Stage, number: int, held: Held, *, up: bool) -> None:
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


def _say_engine_start(stage: Stage, number: int, init: Mapping[str, str]) -> None:
    stage.add_engine("status:INIT] [ge_api.cc:194", "GEInitializeImpl:GEInitialize start", level="TRACE")
    if stage.plan.snapshot == "g":
        stage.show(number, "i", stage.add_engine_block("ge_api.cc:250", "GEInitializeImpl", {**init, **ADDED}))


def _say_session(stage: Stage, number: int, held: Held) -> None:
    """Say what a session of the graph engine says when it is made."""
    if stage.plan.snapshot == "g":
        stage.show(number, "s", stage.add_block(MANAGER, "Session options: ", held.maps.session))
        stage.show(number, "s", stage.add_engine_block("ge_api.cc:410", "CreateSession", held.maps.session))
    for speaker, name, option, key in SINGLE:
        if speaker == "GEOP" and (stage.plan.snapshot < "g" or name == "variable_acceleration"):
            line = stage.add(MANAGER, f"[GEOP] {name} :{held.maps.session.get(key, '')}")
            stage.show(number, f"o:{option}", [line])


def _say_old_blocks(stage: Stage, number: int, held: Held, starts: list[int], *, up: bool) -> None:
    """Say the blocks of 2021-09 to 2023-12: of every GeOp, its own options, whether or not they were given to the engine."""
    init, session = TITLES.get(stage.plan.snapshot, LOWER)
    block = stage.add_block(GEOP, init, held.maps.init)
    if not up:
        stage.show(number, "i", [*starts, *block])
    stage.show(number, "s", stage.add_block(GEOP, session, held.maps.session))


def _say_partition(stage: Stage, number: int, asked: Mapping[str, str | None], graph: int) -> None:
    mix = "True" if asked["mix_compile_mode"] == "1" else "False"
    shape, dims = asked["input_shape"] or "", asked["dynamic_dims"] or ""
    text = f"OMPartition subgraph_{graph} begin. mix_compile_mode is {mix}, iterations_per_loop is {asked['iterations_per_loop'] or '1'}, "
    line = stage.add(
        "tf_adapter/optimizers/om_partition_subgraphs_pass.cc", f"{text}input_shape: {shape}, dynamic_dims: {dims}", kind="run"
    )
    for option in ("mix_compile_mode", "iterations_per_loop", "input_shape", "dynamic_dims"):
        stage.show(number, f"o:{option}", [line])


def _say_geop(stage: Stage, number: int, asked: Mapping[str, str | None]) -> None:
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


def _say_graph(stage: Stage, number: int, held: Held, graph: int) -> None:
    jit = held.maps.graph.get("ge.jit_compile", "2")
    line = stage.add(GEOP, f"[GEOP] call ge session add graph jit_compile: {jit}, graph_id: {graph}", kind="run")
    if held.maps.asked["dynamic_input"] != "1":
        stage.show(number, "o:jit_compile", [line])
    for _ in range(2 if (held.maps.asked["graph_max_parallel_model_num"] or "1") != "1" else 1):
        stage.show(number, "g", stage.add_block(GEOP, "Graph options: ", held.maps.graph))
    tail = f", innerSession:{number}, graphid: {graph}"
    stage.show(number, "g", stage.add_engine_block("inner_session.cc:402", "AddGraph", held.maps.graph, tail))


def _play_session(stage: Stage, number: int, held: Held, session: Session, *, up: bool) -> int:
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


def _start_without_session(stage: Stage, epoch: Epoch, kept: dict[str, str]) -> dict[str, str]:
    """Say what starts the graph engine before any session; return what the engine was given."""
    if epoch.resource is not None:
        init = wire.build_resource_map(epoch.resource)
        stage.show(-1, "i", stage.add_block(PLUGIN, "Init options: ", init))
        _say_engine_start(stage, -1, init)
        return init
    snapshot = stage.plan.snapshot
    init = wire.build_maps(epoch.entries, snapshot, kept).init
    if snapshot == "g" and epoch.operator == "data":
        init.update({name: wire.SPELT[init[name]] for name in ("input_batch_cpy", "ge.inputBatchCpy")})
    held = Held(-1, epoch.entries, wire.Maps(init, {}, {}, {}), init, None, True)
    if "b" <= snapshot < "g":
        if epoch.operator == "init":
            stage.add("tf_adapter/kernels/npu_sys_ctl_ops.cc", "init option:")
        for key in sort_keys(init):
            stage.add("tf_adapter/util/npu_attrs.cc", f"{key}: {init[key]}")
    _say_start(stage, -1, held, up=False)
    return init


def play(plan: Plan, rng: random.Random) -> Played:
    """Play a process of TF 1."""
    kept: dict[str, str] = {}
    played = Played(plan.pid, plan.snapshot, [], [], {})
    for count, epoch in enumerate(plan.epochs):
        stages: list[tuple[Stage, int]] = []
        init: Mapping[str, str] = {}
        shown: list[list[int]] = []
        if epoch.resource is not None or epoch.operator:
            stage = Stage(plan, plan.pid)
            init = _start_without_session(stage, epoch, kept)
            shown = stage.shown.pop((-1, "i"), [])
            stage.shown.clear()
            stages.append((stage, len(stage.lines)))
        for place, session in enumerate(epoch.sessions):
            maps = wire.build_maps(session.entries, plan.snapshot, kept)
            up = place > 0 or bool(stages)
            init = init if up else dict(maps.init)
            number = len(played.sessions)
            played.sessions.append(Held(count, session.entries, maps, init, epoch.resource, not up))
            stage = Stage(plan, plan.pid + (place if plan.threads else 0))
            stages.append((stage, _play_session(stage, number, played.sessions[-1], session, up=up)))
            if not up:
                shown = stage.shown.get((number, "i"), [])
            elif shown:
                stages[0][0].shown[number, "i"] = list(shown)
        _append(played, stages, rng if plan.threads else None)
    return played


def _append(played: Played, stages: list[tuple[Stage, int]], rng: random.Random | None) -> None:
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
