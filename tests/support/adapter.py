"""The TF adapter as its source is read: what it does with a value, and with values that meet.

Written from the facts about ``npu_attrs.cc`` and its neighbours alone, apart from the catalogue and its checks. ``REFUSED``
is an aborted process or a failed session, ``CHANGED`` a value that silently becomes another one.
"""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from npuprof import catalog
from npuprof.catalog import Option
from support.judging import SESSION

REFUSED, CHANGED, TAKEN = "refused", "changed", "taken"

#: Options whose every other value stops the process.
_ONE_OF = (
    "precision_mode_v2", "precision_mode", "dump_mode", "dump_debug_mode", "dump_data", "buffer_optimize", "jit_compile", "graph_slice",
    "shape_generalization_mode", "op_select_implmode", "dynamic_graph_execute_mode", "variable_placement", "aoe_mode",
)  # fmt: skip
_BETWEEN: dict[str, tuple[float, float]] = {
    "graph_run_mode": (float("-inf"), 1),
    "session_device_id": (0, float("inf")),
    "variable_use_1g_huge_page": (0, 2),
    "dynamic_node_type": (0, 1),
    "compile_hybrid_mode": (0, 1),
    "enable_exception_dump": (0, 2),
    "export_compile_stat": (0, 2),
    "iterations_per_loop": (1, float("inf")),
    "task_index": (0, float("inf")),
    "local_rank_id": (0, 7),
}
_FORMATS = {
    "input_shape": r"[^;]*:-?\d+(,-?\d+)*(;[^;]*:-?\d+(,-?\d+)*)*;?",
    "dynamic_dims": r"\d+(,\d+)*(;\d+(,\d+)*)*;?",
    "dynamic_inputs_shape_range": r"(data|getnext):[^:;]*(;(data|getnext):[^:;]*)?",
}
_CLAMPED = {"input_fusion_size": (0, 33554432), "stream_sync_timeout": (-(2**31), 2**31 - 1), "event_sync_timeout": (-(2**31), 2**31 - 1)}


def alone(name: str, value: Any) -> str:
    """Return what happens to a value that is stored in the field its type belongs to."""
    option = catalog.find_option(name)
    assert option is not None
    field = "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "s" if isinstance(value, str) else None
    if field is None:
        return REFUSED  # no field of an AttrValue can be assigned it
    if option.field is None:
        return TAKEN  # nothing reads it
    if field != option.field:
        return CHANGED  # the right field reads as empty
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return REFUSED
    if name in _ONE_OF:
        return TAKEN if value in SESSION[name][1] else REFUSED
    if name in _BETWEEN:
        low, high = _BETWEEN[name]
        return TAKEN if low <= value <= high else REFUSED
    if name in _FORMATS:
        return TAKEN if re.fullmatch(_FORMATS[name], value, re.ASCII) else REFUSED
    if name in _CLAMPED:
        low, high = _CLAMPED[name]
        return TAKEN if low <= value <= high else CHANGED
    if name == "dump_step":
        return _steps(value)
    if name == "experimental_accelerate_train_mode":
        return _acceleration(value)
    return TAKEN


def _steps(text: str) -> str:
    parts = text.split("|")
    if len(parts) > 100:
        return REFUSED
    for part in parts:
        ends = part.split("-")
        if len(ends) > 2 or not all(end.isascii() and (end.isdigit() or not end) for end in ends):
            return REFUSED
        if len(ends) == 2 and all(ends) and int(ends[0]) >= int(ends[1]):
            return REFUSED
    return TAKEN


def _acceleration(text: str) -> str:
    parts = text.split("|")
    if not 2 <= len(parts) <= 3 or parts[0] not in ("fast", "fast1") or parts[1] not in ("step", "loss"):
        return REFUSED
    if len(parts) == 3 and parts[2]:
        low, high = (0.2, 0.9) if parts[1] == "step" else (1.01, 1.5)
        if not re.fullmatch(r"[0-9.]+", parts[2]) or parts[2].count(".") > 1 or not low <= float(parts[2]) <= high:
            return REFUSED
    return TAKEN


def values(option: Option) -> st.SearchStrategy[Any]:
    """Return values near to what an option takes, and far from it."""
    near: list[Any] = [*option.choices, *option.doubtful_values, option.minimum, option.maximum, 0, 1, -1, 2, "", "0", "1", True, False]
    example = catalog.find_record_texts("options", option.name).get("example")
    near += [example, str(example), f" {example}", f"{example} ", str(example).upper(), f"{example};", f"{example}|", f"{example},"]
    near += [bound + step for bound in (option.minimum, option.maximum) if bound is not None for step in (-1, 1)]
    near += [
        "fast|step|0.19",
        "fast|loss",
        "1|2-2",
        "5-",
        "|".join(["1"] * 101),
        "|".join(["1"] * 100),
        "a:-1;b:-2",
        "1;2",
        ";",
        "1.5",
        1.5,
        2**63,
    ]
    seeds = st.sampled_from([value for value in near if value is not None])
    return seeds | st.integers() | st.text(st.sampled_from("0123456789abc:;,|-[]{}'\" ~."), max_size=12)


def documented() -> list[tuple[str, Any]]:
    """Return every choice, bound and example of the catalogue."""
    found: list[tuple[str, Any]] = []
    for name in catalog.record_names():
        option = catalog.find_option(name)
        assert option is not None
        example = catalog.find_record_texts("options", name).get("example")
        given = [*option.choices, option.minimum, option.maximum, example, *((True, False) if option.field == "b" else ())]
        found += [(name, value) for value in dict.fromkeys(given) if value is not None]
    return found


_MIXED = ("allow_mix_precision", "allow_mix_precision_fp16", "allow_mix_precision_bf16")
_MIXED_V2 = ("mixed_float16", "mixed_bfloat16", "mixed_hif8")


def together(chosen: dict[str, Any]) -> str | None:
    """Return why the adapter refuses options that are each fine alone, or None. Files and folders are taken to exist."""
    get = chosen.get
    shape = [name for name in ("input_shape", "dynamic_dims", "dynamic_node_type") if name in chosen]
    faults = {
        "both precision modes": "precision_mode" in chosen and "precision_mode_v2" in chosen,
        "mixlist without mixed precision": "modify_mixlist" in chosen
        and (get("precision_mode") not in _MIXED if "precision_mode" in chosen else get("precision_mode_v2") not in _MIXED_V2),
        "an operator list without a mode": "optypelist_for_implmode" in chosen and "op_select_implmode" not in chosen,
        "part of the size profile keys": 0 < len(shape) < 3,
        "size profiles in mixed computing": len(shape) == 3 and get("mix_compile_mode", False),
        "size profiles while tuning": len(shape) == 3 and "aoe_mode" in chosen,
        "hybrid mode without size profiles": get("compile_hybrid_mode") == 1 and (len(shape) < 3 or get("dynamic_node_type") != 1),
        "dynamic compilation with size profiles": get("compile_dynamic_mode", False) and len(shape) == 3,
        "dynamic compilation with dynamic_input": get("compile_dynamic_mode", False) and get("dynamic_input", False),
        "a pair without mixed computing": "in_out_pair" in chosen and not get("mix_compile_mode", False),
        "dump without a path": (get("enable_dump", False) or get("enable_dump_debug", False)) and "dump_path" not in chosen,
        "both weight compressions": "enable_compress_weight" in chosen and "compress_weight_conf" in chosen,
        "lazy_recompile in loops": get("dynamic_input", False)
        and get("dynamic_graph_execute_mode") == "lazy_recompile"
        and get("iterations_per_loop", 1) != 1,
        "acceleration with another precision": "experimental_accelerate_train_mode" in chosen
        and (
            get("precision_mode", "allow_fp32_to_fp16") not in ("allow_fp32_to_fp16", "must_keep_origin_dtype")
            or get("precision_mode_v2", "origin") != "origin"
        ),
    }
    return next((reason for reason, broken in faults.items() if broken), None)


def combinations() -> st.SearchStrategy[dict[str, Any]]:
    """Return a few of the options that meet each other, each with a value that is fine alone."""
    shapes = {
        "input_shape": st.just("data:1,-1"), "dynamic_dims": st.just("20;40"), "dynamic_node_type": st.sampled_from([0, 1]),
        "compile_hybrid_mode": st.sampled_from([0, 1]), "compile_dynamic_mode": st.booleans(), "dynamic_input": st.booleans(),
        "mix_compile_mode": st.booleans(), "aoe_mode": st.sampled_from(["1", "2"]), "in_out_pair": st.just("[[['a'], ['b']]]"),
        "dynamic_graph_execute_mode": st.sampled_from(["dynamic_execute", "lazy_recompile"]),
        "iterations_per_loop": st.sampled_from([1, 10]),
    }  # fmt: skip
    others = {
        "precision_mode": st.sampled_from([*_MIXED, "force_fp16", "must_keep_origin_dtype"]),
        "precision_mode_v2": st.sampled_from([*_MIXED_V2, "fp16", "origin"]), "modify_mixlist": st.just("/etc/ops_info.json"),
        "op_select_implmode": st.just("high_precision"), "optypelist_for_implmode": st.just("Pooling"),
        "enable_dump": st.booleans(), "enable_dump_debug": st.booleans(), "dump_path": st.just("/tmp/dump"),
        "enable_compress_weight": st.booleans(), "compress_weight_conf": st.just("/etc/weights.cfg"),
        "experimental_accelerate_train_mode": st.just("fast|step|0.9"),
    }  # fmt: skip
    return st.fixed_dictionaries({}, optional=shapes) | st.fixed_dictionaries({}, optional=others)
