"""Stand-ins for the vendor's classes that only judge values, independent of the catalogue.

The tables were made from the adapter's sources and pages, not from the catalogue: an option's
protobuf field, the values the adapter knows, the ends of its range and its documented format; for
arguments also what NPUEstimator does with None.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from typing import Any, NamedTuple

from support.recorders import ADAPTERS_OWN, ARGUMENTS, LEAVES, NESTED, read_table


class SessionOption(NamedTuple):
    """What the adapter takes for an option; without choices, any value of the type."""

    field: str
    choices: tuple[Any, ...]
    lowest: int | None
    highest: int | None
    form: str


SESSION = {
    name: SessionOption(
        field,
        choices=tuple(literal_eval(choices or "[]")),
        lowest=int(lowest) if lowest else None,
        highest=int(highest) if highest else None,
        form=form,
    )
    for name, field, choices, lowest, highest, form in read_table("session.txt")
}

#: Arguments that are stored without asking whether they are None.
STORED = {
    "NPURunConfig": [
        "deterministic",
        "device_type",
        "enable_compress_weight",
        "enable_data_pre_proc",
        "enable_exception_dump",
        "enable_reduce_precision",
        "enable_small_channel",
        "event_sync_timeout",
        "external_weight",
        "frozen_variable",
        "graph_run_mode",
        "hcom_multi_mode",
        "hcom_parallel",
        "input_fusion_size",
        "is_tailing_optimization",
        "iterations_per_loop",
        "jit_compile",
        "mix_compile_mode",
        "stream_sync_timeout",
        "variable_placement",
    ],
    "ProfilingConfig": ["enable_profiling"],
    "MemoryConfig": ["atomic_clean_policy"],
    "DumpConfig": ["enable_dump", "enable_dump_debug", "dump_debug_mode"],
}
#: Arguments whose type the class itself looks at, exactly; those that become text by ``str()``;
#: those RunConfig compares with 0.
EXACT = {"mix_compile_mode": bool, "horovod_mode": bool, "jit_compile": str}
TEXTS = ("graph_memory_max_size", "variable_memory_max_size")
NUMBERS = {
    "save_summary_steps": 0,
    "save_checkpoints_steps": 0,
    "save_checkpoints_secs": 0,
    "keep_checkpoint_max": 0,
    "keep_checkpoint_every_n_hours": 1,
    "log_step_count_steps": 1,
}
#: Attributes of TF 2 whose class takes None beside its choices.
NONE_TOO = ("topo_sorting_mode",)
#: What the C++ lets pass beyond the documented values: a negative graph_run_mode is not rejected, 1
#: counts as 2.
LET_PASS: dict[str, tuple[Any, ...]] = {
    "graph_run_mode": (-1,),
    "static_memory_policy": (1,),
    "aicore_num": ("1",),
}
#: The adapter aborts, because the estimator always writes enable_compress_weight beside it.
ABORTS = ("compress_weight_conf",)


def takes_field(field: str, value: Any) -> bool:
    """Return whether protobuf stores a value in a field: bytes, whole numbers and truth values.

    Never None.
    """
    if field == "s":
        return isinstance(value, bytes)
    return isinstance(value, int) and -(2**63) <= value < 2**63


def takes_parameter(name: str, field: str, value: Any) -> bool:
    """Return whether a line ``parameter_map[name].field = value`` does what it says."""
    if name not in SESSION or SESSION[name].field != field or not takes_field(field, value):
        return False
    return _is_known_value(name, value.decode() if isinstance(value, bytes) else value)


def _is_known_value(name: str, value: Any) -> bool:
    _, choices, low, high, form = SESSION[name]
    if choices:
        return value in choices or value in LET_PASS.get(name, ())
    if isinstance(value, str) and form and value not in LET_PASS.get(name, ()):
        return _is_json_object(value) if form == ".json" else re.fullmatch(form, value) is not None
    return not isinstance(value, int) or (
        (low is None or value >= low) and (high is None or value <= high)
    )


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def takes_argument(cls: str, name: str, value: Any) -> bool:
    """Return whether a class of NPURunConfig, and NPUEstimator after it, go on with an argument."""
    if (cls, name) not in ADAPTERS_OWN[0]:
        return False
    _, key, field = ARGUMENTS[cls][name]
    if value is None:
        return name not in EXACT and name not in STORED.get(cls, ())
    if name in ABORTS or (name == "graph_run_mode" and value == -1):
        return False
    if (cls, name) == ("GraphMemoryOptimizeConfig", "recompute"):
        return value in ("auto", "manual")
    if name in EXACT and type(value) is not EXACT[name]:
        return False
    if name in NESTED or name == "session_config":
        return False  # whatever is not of the class
    if name in TEXTS and isinstance(value, (int, str)):
        return _is_known_value(name, str(value))
    if name in NUMBERS:
        return isinstance(value, (int, float)) and value > NUMBERS[name] - 1
    if name == "model_dir":
        return isinstance(value, str)
    if not key:
        return name != "tf_random_seed" or isinstance(value, int)
    if field == "s":
        if not isinstance(value, (bytes,) if name == "insert_op_file" else (str, bytes)):
            return False
        return key not in SESSION or _is_known_value(
            key, value.decode() if isinstance(value, bytes) else value
        )
    return takes_field(field, value) and (
        key not in SESSION or field == "b" or _is_known_value(key, value)
    )


def takes_attribute(path: str, value: Any) -> bool:
    """Return whether ``global_options()`` takes a value: one that equals a choice, or any."""
    if path not in ADAPTERS_OWN[1]:
        return False
    choices = LEAVES[path][0]
    return choices is None or value in choices or (value is None and path in NONE_TOO)
