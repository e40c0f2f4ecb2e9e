"""From a parameter map to the maps of the graph engine, for adapters of 2021-04 to 2026-07."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
#: What the adapter puts in place of an empty profiling_options.
PROFILING = (
    '{"output":"./","training_trace":"on","task_time":"on","hccl":"on","aicpu":"on",'
    '"aic_metrics":"PipeUtilization","msproftx":"off"}'
)
#: Folders that are links on the machine that is played.
LINKS = {"/data/link/dump": "/mnt/disk1/dump", "/data/link/work": "/mnt/disk1/work"}
CLOSE = "forbidden_close_pass:on"
#: What an option needs beside it to be read at all.
NEEDS: dict[str, dict[str, Any]] = {
    "dump_mode": {"enable_dump": True},
    "dump_step": {"enable_dump": True},
    "dump_path": {"enable_dump": True},
    "dump_debug_mode": {"enable_dump_debug": True},
    "profiling_options": {"profiling_mode": True},
    "work_path": {"aoe_mode": "2"},
    "distribute_config": {"aoe_mode": "2"},
    "modify_mixlist": {"precision_mode": "allow_mix_precision"},
    "optypelist_for_implmode": {"op_select_implmode": "high_precision"},
    "dynamic_graph_execute_mode": {"dynamic_input": True},
    "dynamic_inputs_shape_range": {"dynamic_input": True},
    "input_shape": {"dynamic_dims": "1;2", "dynamic_node_type": 1},
    "dynamic_dims": {"input_shape": "data:-1", "dynamic_node_type": 1},
    "dynamic_node_type": {"input_shape": "data:-1", "dynamic_dims": "1;2"},
}
JIT = {"true": "1", "false": "0", "auto": "2"}

#: An entry of the parameter map: the protobuf field that the script filled, and its value.
Entry = tuple[str, Any]


class Key(NamedTuple):
    """A key of a map: its stage, name, text when unset (None: no key), and first snapshot."""

    stage: str
    name: str
    unset: str | None
    since: str


class Option(NamedTuple):
    """What an adapter makes of one option."""

    name: str
    field: str
    read: str
    mapped: str
    keys: tuple[Key, ...]
    attributes: tuple[str, ...]
    values: tuple[Any, ...]


class Maps(NamedTuple):
    """What the adapter hands over, and what it read."""

    init: dict[str, str]
    session: dict[str, str]
    graph: dict[str, str]
    requested: dict[str, str | None]


def _parse_key(text: str, first: str) -> Key:
    stage, _, rest = text.partition(":")
    name, _, unset = rest.partition("=")
    unset, _, since = unset.partition("@")
    return Key(stage, name, None if unset == "-" else unset, since or first)


@cache
def list_options() -> dict[str, Option]:
    """Return the options of TF 1 by name."""
    found = {}
    lines = (FOLDER / "tf1.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith("#"):
            continue
        name, field, read, mapped, keys, attributes, values = (
            "" if cell == "." else cell for cell in line.split(" | ")
        )
        made = tuple(_parse_key(key, mapped[:1] or "a") for key in keys.split())
        found[name] = Option(
            name, field, read, mapped, made, tuple(attributes.split()), tuple(json.loads(values))
        )
    return found


def list_keys(option: Option, snapshot: str) -> list[Key]:
    """Return the keys of an option that the maps of a snapshot have.

    Those of the pass stage stand in no map.
    """
    return [
        key
        for key in option.keys
        if snapshot in option.mapped and key.since <= snapshot and key.stage != "p"
    ]


def write_value(option: Option, value: Any) -> str:
    """Return the text that a value of the right field becomes."""
    if option.name == "jit_compile":
        return JIT[value]
    if option.name == "oo_constant_folding":
        return "true" if value else "false"
    if option.field == "b":
        return "1" if value else "0"
    return (
        LINKS.get(str(value), str(value))
        if option.name in ("dump_path", "work_path")
        else str(value)
    )


def read_entry(option: Option, entries: Mapping[str, Entry], snapshot: str) -> str | None:
    """Return the text of what the adapter reads for an option; None where it reads nothing."""
    if option.name not in entries or snapshot not in option.read:
        return None
    field, value = entries[option.name]
    if field == option.field:
        return write_value(option, value)
    if option.name in ("oo_constant_folding", "export_compile_stat"):
        return None
    return {"i": "0", "b": "0", "s": ""}[option.field]


def _strike_unread(requested: dict[str, str | None]) -> None:
    """Take away what is only read when something else is on."""
    for name, need in (
        ("dump_mode", "enable_dump"),
        ("dump_step", "enable_dump"),
        ("dump_debug_mode", "enable_dump_debug"),
    ):
        if requested[need] != "1":
            requested[name] = None
    if "1" not in (requested["enable_dump"], requested["enable_dump_debug"]):
        requested["dump_path"] = None
    for name in ("work_path", "distribute_config"):
        if not requested["aoe_mode"]:
            requested[name] = None
    for name in ("dynamic_graph_execute_mode", "dynamic_inputs_shape_range"):
        if requested["dynamic_input"] != "1":
            requested[name] = None
    if not requested["op_select_implmode"]:
        requested["optypelist_for_implmode"] = None
    if requested["profiling_mode"] != "1":
        requested["profiling_options"] = None
    elif not requested["profiling_options"]:
        requested["profiling_options"] = PROFILING
    if not all(requested[name] for name in ("input_shape", "dynamic_dims", "dynamic_node_type")):
        requested.update(input_shape=None, dynamic_dims=None, dynamic_node_type=None)
    for name in (
        "graph_memory_max_size",
        "variable_memory_max_size",
        "graph_compiler_cache_dir",
        "precision_mode",
        "precision_mode_v2",
    ):
        requested[name] = requested[name] or None


def build_maps(
    entries: Mapping[str, Entry], snapshot: str, kept: dict[str, str] | None = None
) -> Maps:
    """Return what an adapter of TF 1 makes of a parameter map.

    ``kept`` is what stays in the process from session to session.
    """
    options = list_options()
    requested = {option.name: read_entry(option, entries, snapshot) for option in options.values()}
    _strike_unread(requested)
    if snapshot >= "e":  # read into an attribute that nobody looks at
        requested["auto_tune_mode"] = None
    stages: dict[str, dict[str, str]] = {"i": {}, "s": {}, "g": {}}
    for option in options.values():
        for key in list_keys(option, snapshot):
            text = requested[option.name]
            text = key.unset if text is None else text
            if text is not None:
                stages[key.stage][key.name] = text
    init, session, graph = stages.values()
    if requested["graph_run_mode"] == "0" and snapshot >= "d":
        session["ge.enableSmallChannel"] = "1"
    if requested["aoe_mode"] and not requested["work_path"] and snapshot >= "b":
        init.update(
            {name: "/home/user/job" for name in ("ge.tuningPath", "work_path") if name in init}
        )
    if snapshot in "abcde":
        _add_precision_of_old(requested, init, snapshot)
    if snapshot in "de":
        init["GE_USE_STATIC_MEMORY"] = init["ge.exec.staticMemoryPolicy"]
    if snapshot == "g":
        _finish_current(requested, init, session, graph)
    if kept is not None and snapshot >= "f":
        for name in ("precision_mode", "precision_mode_v2"):
            text = requested.get(name) or kept.get(name)
            if text:
                kept[name] = text
                init[name] = init[f"ge.exec.{name}"] = text
    return Maps(init, session, graph, requested)


def _add_precision_of_old(
    requested: Mapping[str, str | None], init: dict[str, str], snapshot: str
) -> None:
    text = requested["precision_mode"] or (
        "force_fp16" if requested["graph_run_mode"] == "0" else "allow_fp32_to_fp16"
    )
    init["ge.exec.precision_mode"] = text
    if snapshot >= "c":
        init["precision_mode"] = text


def _finish_current(
    requested: Mapping[str, str | None],
    init: dict[str, str],
    session: dict[str, str],
    graph: dict[str, str],
) -> None:
    """Add keys that only the adapter of 2026 writes: of no option, or shared by several."""
    init["ge.autoTuneMode"] = ""
    for stage in (init, session):
        text = requested["optimization_switch"]
        stage["ge.optimizationSwitch"] = f"{text};{CLOSE}" if text else CLOSE
        stage["ge.inputPlacement"] = "DeviceHbm"
    plain = (
        requested["jit_compile"] == "1"
        and (requested["shape_generalization_mode"] or "STRICT") == "STRICT"
    )
    session["ge.compile_dynamic_mode"] = (
        "0" if plain and requested["compile_dynamic_mode"] != "1" else "1"
    )
    if (requested["iterations_per_loop"] or "1") == "1":
        graph.pop("iterations_per_loop", None)
    if requested["graph_compiler_cache_dir"]:
        graph["ge.graph_key"] = "GeOp11_0"
    if requested["aoe_mode"]:
        graph["ge.buildMode"] = "normal"
    graph["ge.graphLevelSat"] = "0" if requested["mix_compile_mode"] == "1" else "1"
    graph["ge.shape_generalized_build_mode"] = "shape_precise"
    graph.pop("ge.exec.dynamicInput", None)
    graph.pop("ge.exec.dynamicGraphExecuteMode", None)
    graph.pop("ge.exec.dataInputsShapeRange", None)
    if requested["dynamic_input"] == "1":
        mode = requested["dynamic_graph_execute_mode"] or "dynamic_execute"
        span = (requested["dynamic_inputs_shape_range"] or "").removeprefix("data:")
        precise = mode != "dynamic_execute" or span
        graph.update(
            {
                "ge.exec.dynamicInput": "1",
                "ge.exec.dynamicGraphExecuteMode": mode,
                "ge.exec.dataInputsShapeRange": span,
            }
        )
        graph.update(
            {
                "ge.jit_compile": "1",
                "ge.shape_generalized_build_mode": "shape_precise"
                if precise
                else "shape_generalized",
            }
        )
    if requested["experimental_accelerate_train_mode"]:
        graph["ge.exec.precision_mode"] = "allow_mix_precision"
    graph.update(
        {
            "ge.exec.graphIOMemAllocMode": "ByGE",
            "ge.exec.overflow": "1",
            "ge.exec.isVarInitGraph": "0",
        }
    )
    graph.update({"ge.exec.inputReuseMemIndexes": "0", "ge.exec.outputReuseMemIndexes": "0"})
