"""Plays a process: which lines it says, in which order, and which of them show what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from support.adapterlogs import wire

TITLES = {"b": ("init options:", "session options:"), "c": ("init options:", "session options:")}
LOWER = ("init options: ", "session options: ")
ADDED = {
    "ge.exec.allow_hf32": "1",
    "ge.exec.deviceId": "0",
    "ge.exec.hcclFlag": "0",
    "ge.exec.isUseHcom": "0",
    "ge.exec.jobId": "1",
}
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
PLUGIN, GEOP, MANAGER = (
    "tf_adapter/util/ge_plugin.cc",
    "tf_adapter/kernels/geop_npu.cc",
    "tf_adapter/util/session_manager.cc",
)
#: No line of a log is longer, in bytes.
LIMIT = 1022


class Line(NamedTuple):
    """A line as the program says it; ``kind`` is the log it goes to: debug or run."""

    text: str
    kind: str
    module: str
    level: str


class PlayedSession(NamedTuple):
    """A simulated session: its parameter map, the resulting maps, and the options of the engine."""

    entries: Mapping[str, wire.Entry]
    maps: wire.Maps
    init: Mapping[str, str]


class Played:
    """A process that is played.

    ``shown`` has, for a session and a stage or an option, the groups of lines of which each shows
    it.
    """

    def __init__(self, snapshot: str, modules: str, pid: int) -> None:
        self.snapshot, self.modules, self.pid = snapshot, modules.split(), pid
        self.lines: list[Line] = []
        self.sessions: list[PlayedSession] = []
        self.shown: dict[tuple[int, str], list[list[int]]] = {}

    def add(self, file: str, text: str, *, kind: str = "debug") -> int:
        """Say something as the adapter; return the line's number, -1 where its level is off."""
        if kind == "debug" and "FMK" not in self.modules:
            return -1
        number = 20 + sum(map(ord, file + text[:4])) % 2900
        place = f"{file if self.snapshot < 'g' else file.rpartition('/')[2]}:{number}"
        head = "[adapter_logger.cc:28]" if self.snapshot >= "e" else "[adp_logger.cc:33]"
        thread = str(self.pid) if self.snapshot >= "e" else ""
        self.lines.append(Line(f"{head}[TF_ADAPTER] [{place}]{thread} {text}", kind, "FMK", "INFO"))
        return len(self.lines) - 1

    def add_engine(self, place: str, text: str, *, level: str = "INFO") -> int:
        """Say something as the graph engine."""
        if "GE" not in self.modules:
            return -1
        self.lines.append(Line(f"[{place}]{self.pid} {text}", "debug", "GE", level))
        return len(self.lines) - 1

    def add_block(self, file: str, title: str, entries: Mapping[str, str]) -> list[int]:
        """Say a block of options; return its lines."""
        first = self.add(file, title)
        return [
            first,
            *(
                self.add("tf_adapter/util/npu_attrs.cc", f"{key}: {entries[key]}")
                for key in sort_keys(entries)
            ),
        ]

    def add_engine_block(
        self, place: str, function: str, entries: Mapping[str, str], tail: str = ""
    ) -> list[int]:
        """Say what the graph engine was given.

        A long value goes on in lines that hold only the rest.
        """
        lines = []
        for key in sort_keys(entries):
            text = f"GE option: {key}, value: {entries[key]}{tail}."
            lines.append(self.add_engine(place, f"{function}:{text[:900]}"))
            lines += [
                self.add_engine(place, f"{function}:{text[start : start + 800]}")
                for start in range(900, len(text), 800)
            ]
        return lines

    def show(self, what: str, lines: list[int]) -> None:
        """Note that some lines together show a stage or an option of the last session."""
        if lines and -1 not in lines:
            self.shown.setdefault((len(self.sessions) - 1, what), []).append(lines)


def sort_keys(entries: Mapping[str, str]) -> list[str]:
    """Return keys in byte order, as a map of C++ keeps them."""
    return sorted(entries, key=str.encode)


def _say_start(played: Played, session: PlayedSession) -> None:
    """Say what GePlugin::Init says: the start, or that the engine is up already."""
    if len(played.sessions) > 1:
        played.add(PLUGIN, "[GePlugin] Ge has already initialized")
        played.add_engine(
            "ge_api.cc:212",
            "GEInitializeImpl:GEInitialize is called more than once",
            level="WARNING",
        )
        return
    if played.snapshot == "g":
        played.show("i", played.add_block(PLUGIN, "Init options: ", session.init))
    for speaker, name, option, key in SINGLE:
        if speaker == "GePlugin" and (played.snapshot < "g" or name == "graph run mode"):
            played.show(
                f"o:{option}",
                [played.add(PLUGIN, f"[GePlugin] {name} : {session.init.get(key, '')}")],
            )
    played.add(PLUGIN, "[GePlugin] device id : 0")
    played.add_engine(
        "status:INIT] [ge_api.cc:194", "GEInitializeImpl:GEInitialize start", level="TRACE"
    )
    if played.snapshot == "g":
        played.show(
            "i",
            played.add_engine_block("ge_api.cc:250", "GEInitializeImpl", {**session.init, **ADDED}),
        )
    played.add(
        PLUGIN, f"[GePlugin] Initialize {'parser' if played.snapshot == 'g' else 'ge'} success."
    )


def _say_session(played: Played, session: PlayedSession) -> None:
    """Say what a session of the graph engine says when it is made."""
    if played.snapshot == "g":
        played.show("s", played.add_block(MANAGER, "Session options: ", session.maps.session))
        played.show(
            "s", played.add_engine_block("ge_api.cc:410", "CreateSession", session.maps.session)
        )
    for speaker, name, option, key in SINGLE:
        if speaker == "GEOP" and (played.snapshot < "g" or name == "variable_acceleration"):
            played.show(
                f"o:{option}",
                [played.add(MANAGER, f"[GEOP] {name} :{session.maps.session.get(key, '')}")],
            )
    played.add(GEOP, "[GEOP] tf session: direct5e1a77b0c3d24f19 get ge session success.")


def _say_old_blocks(played: Played, session: PlayedSession, starts: list[int]) -> None:
    """Log the blocks of 2021-09 to 2023-12: the options of each GeOp.

    They are logged even if they were not passed to the engine.
    """
    init, per_session = TITLES.get(played.snapshot, LOWER)
    block = played.add_block(GEOP, init, session.maps.init)
    if len(played.sessions) == 1:
        played.show("i", [*starts, *block])
    played.show("s", played.add_block(GEOP, per_session, session.maps.session))


def _say_partition(played: Played, requested: Mapping[str, str | None]) -> None:
    mix = "True" if requested["mix_compile_mode"] == "1" else "False"
    shape, dims = requested["input_shape"] or "", requested["dynamic_dims"] or ""
    text = (
        f"OMPartition subgraph_0 begin. mix_compile_mode is {mix}, iterations_per_loop is "
        f"{requested['iterations_per_loop'] or '1'}, "
    )
    text += f"input_shape: {shape}, dynamic_dims: {dims}"
    line = played.add("tf_adapter/optimizers/om_partition_subgraphs_pass.cc", text, kind="run")
    for option in ("mix_compile_mode", "iterations_per_loop", "input_shape", "dynamic_dims"):
        played.show(f"o:{option}", [line])


def _say_geop(played: Played, requested: Mapping[str, str | None]) -> None:
    mode = requested["dynamic_graph_execute_mode"] or (
        "dynamic_execute" if requested["dynamic_input"] == "1" else ""
    )
    line = played.add(
        GEOP,
        f"[GEOP] dynamic_input: {requested['dynamic_input'] or '0'}, "
        f"dynamic_graph_execute_mode: {mode}, "
        f"jit_compile: {requested['jit_compile'] or '2'}, is_dynamic_input: 0, "
        "getnext_inputs_shape_range: , "
        "data_inputs_shape_range: "
        f"{(requested['dynamic_inputs_shape_range'] or '').removeprefix('data:')}, "
        "is_train_graph: 0, "
        "is_dynamic_getnext: 0, placeholder_index: , compile_dynamic_mode: "
        f"{requested['compile_dynamic_mode'] or '0'}, "
        f"shape_generalization_mode: {requested['shape_generalization_mode'] or 'STRICT'}",
    )
    for option in ("dynamic_input", "compile_dynamic_mode", "shape_generalization_mode"):
        played.show(f"o:{option}", [line])
    line = played.add(
        GEOP, f"graph_max_parallel_model_num :{requested['graph_max_parallel_model_num'] or '1'}"
    )
    played.show("o:graph_max_parallel_model_num", [line])
    line = played.add(
        GEOP, f"accelerate train mode :{requested['experimental_accelerate_train_mode'] or ''}"
    )
    played.show("o:experimental_accelerate_train_mode", [line])


def _say_graph(played: Played, session: PlayedSession) -> None:
    line = played.add(
        GEOP,
        (
            "[GEOP] call ge session add graph jit_compile: "
            f"{session.maps.graph.get('ge.jit_compile', '2')}, graph_id: 1"
        ),
        kind="run",
    )
    if session.maps.requested["dynamic_input"] != "1":
        played.show("o:jit_compile", [line])
    for _ in range(
        2 if (session.maps.requested["graph_max_parallel_model_num"] or "1") != "1" else 1
    ):
        played.show("g", played.add_block(GEOP, "Graph options: ", session.maps.graph))
    tail = f", innerSession:{len(played.sessions) - 1}, graphid: 1"
    played.show(
        "g", played.add_engine_block("inner_session.cc:402", "AddGraph", session.maps.graph, tail)
    )


def _play_session(played: Played, session: PlayedSession) -> None:
    is_current = played.snapshot == "g"
    if is_current:
        _say_partition(played, session.maps.requested)
    played.add(GEOP, f"[GEOP] Begin {'to ' if is_current else ''}GeOp initialize.")
    if is_current:
        _say_geop(played, session.maps.requested)
    before = len(played.lines)
    _say_start(played, session)
    starts = list(range(before, len(played.lines)))
    played.add(GEOP, "[GEOP] GePlugin init success" + "." * is_current)
    if "b" <= played.snapshot < "g":
        _say_old_blocks(played, session, starts)
    if is_current:
        played.add(GEOP, "init options: ")
        played.add(GEOP, "[GEOP] GeOp Initialize success, cost:[12 ms].", kind="run")
    _say_session(played, session)
    if is_current:
        _say_graph(played, session)


def play(
    snapshot: str, sessions: Sequence[Mapping[str, wire.Entry]], modules: str = "FMK", pid: int = 42
) -> Played:
    """Play a process of TF 1 whose sessions have these parameter maps.

    ``modules`` are those whose info lines are on.
    """
    kept: dict[str, str] = {}
    played = Played(snapshot, modules, pid)
    for entries in sessions:
        maps = wire.build_maps(entries, snapshot, kept)
        init = played.sessions[0].init if played.sessions else dict(maps.init)
        played.sessions.append(PlayedSession(entries, maps, init))
        if len(played.sessions) > 1:
            played.shown[len(played.sessions) - 1, "i"] = list(played.shown.get((0, "i"), ()))
        _play_session(played, played.sessions[-1])
    return played


def write_lines(played: Played, start: datetime = datetime(2026, 7, 24, 10)) -> list[bytes]:
    """Return the lines of a process as a log has them, without their ends, cut to its width."""
    found = []
    for number, line in enumerate(played.lines, 1):
        at = start + timedelta(microseconds=137 * number)
        stamp = f"{at:%Y-%m-%d-%H:%M:%S}.{at.microsecond // 1000:03}.{at.microsecond % 1000:03}"
        found.append(
            f"[{line.level}] {line.module}({played.pid},python3.7):{stamp} {line.text}".encode()[
                :LIMIT
            ]
        )
    return found


def write_folder(folder: Path, played: Played) -> set[int]:
    """Write the log folder of a device, a file for each kind.

    Return the lines of which nothing was cut away.
    """
    lines = write_lines(played)
    for kind in ("debug", "run"):
        chosen = [raw for raw, line in zip(lines, played.lines, strict=True) if line.kind == kind]
        if chosen:
            path = folder / kind / "plog" / f"plog-{played.pid}_20260724100000000.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(raw + b"\n" for raw in chosen))
    return {number for number, raw in enumerate(lines) if len(raw) < LIMIT}


def write_log(folder: Path, used: Mapping[str, object]) -> None:
    """Write the log folder of a process of today with one session that has these options."""
    known = wire.list_options()
    write_folder(
        folder, play("g", [{name: (known[name].field, value) for name, value in used.items()}])
    )
