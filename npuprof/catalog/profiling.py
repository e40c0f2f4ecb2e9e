"""What a profiling run records: the JSON of profiling_options and PROFILING_OPTIONS."""

from __future__ import annotations

import re

from npuprof.catalog.readers import find_shell_expansion
from npuprof.catalog.shapes import ValueFault
from npuprof.model import Any, TomlTable, did_you_mean

_SWITCH = ("on", "off")
_LEVEL = ("on", "off", "l0", "l1")
_TEXT: tuple[str, ...] = ()
#: The values of each member: words, the bounds of a number, or any text.
_MEMBERS: dict[str, tuple[str, ...] | tuple[int, int]] = {
    "output": _TEXT,
    "storage_limit": _TEXT,
    "training_trace": _SWITCH,
    "task_trace": _LEVEL,
    "task_time": _LEVEL,
    "op_trace": _SWITCH,
    "ge_api": ("off", "l0", "l1"),
    "hccl": _SWITCH,
    "aicpu": _SWITCH,
    "fp_point": _TEXT,
    "bp_point": _TEXT,
    "l2": _SWITCH,
    "aic_metrics": (
        "ArithmeticUtilization",
        "PipeUtilization",
        "Memory",
        "MemoryL0",
        "MemoryUB",
        "ResourceConflictRatio",
        "L2Cache",
        "MemoryAccess",
    ),
    "msproftx": _SWITCH,
    "runtime_api": _SWITCH,
    "sys_hardware_mem_freq": (1, 100),
    "llc_profiling": ("read", "write"),
    "sys_io_sampling_freq": (1, 100),
    "sys_interconnection_freq": (1, 50),
    "dvpp_freq": (1, 100),
    "instr_profiling": _SWITCH,
    "instr_profiling_freq": (300, 30000),
    "host_sys": _TEXT,
    "host_sys_usage": _TEXT,
    "host_sys_usage_freq": (1, 50),
}
_LIMIT = (200, 4294967295)


def find_profiling_faults(value: Any) -> list[ValueFault]:
    """Return the faults of known members, and of their combinations."""
    if not isinstance(value, dict):
        return []
    faults = [
        fault
        for name, item in value.items()
        if name in _MEMBERS and (fault := _find_member_fault(name, item))
    ]
    others = [
        name
        for name in ("training_trace", "task_trace", "task_time")
        if value.get(name) in ("on", "l0", "l1")
    ]
    if others and value.get("op_trace") == "on":
        what = (
            f"op_trace together with {' and '.join(others)}: "
            "single operators are traced by themselves"
        )
        faults.append(ValueFault(("op_trace",), what, "switch op_trace off, or all of the others"))
    return faults


def _find_member_fault(name: str, item: Any) -> ValueFault | None:
    if name == "output" and isinstance(item, str):
        if shell_part := find_shell_expansion(item):
            what = f"{item!r} contains {shell_part}, which nothing expands"
            hint = "write the path out, or one from the current folder on"
            return ValueFault((name,), what, hint)
        return None
    if name == "storage_limit":
        low, high = _LIMIT
        match = re.fullmatch(r"([0-9]{1,9})MB", str(item), re.ASCII)
        if match is not None and low <= int(match[1]) <= high:
            return None
        hint = f'write a text like "{low}MB", at most {high}MB'
        return ValueFault((name,), f"{item!r} is not a limit", hint)
    accepted = _MEMBERS[name]
    if not accepted:
        if isinstance(item, str):
            return None
        return ValueFault((name,), f"{item!r} is no text", "write a text")
    if isinstance(accepted[0], int):
        low, high = map(int, accepted)
        is_digits = isinstance(item, str) and re.fullmatch(r"[0-9]{1,9}", item, re.ASCII)
        number = int(item) if is_digits else item
        if type(number) is int and low <= number <= high:
            return None
        return ValueFault((name,), f"{item!r} is out of range", f"write {low} to {high}")
    if item in accepted or (name == "aic_metrics" and str(item).startswith("Custom:")):
        return None
    return ValueFault(
        (name,),
        f"{item!r} is none of {', '.join(map(str, accepted))}",
        f"write {' or '.join(map(repr, accepted))}",
    )


def find_profiling_caveats(value: TomlTable) -> list[ValueFault]:
    """Return the undocumented members."""
    listed = "npuprof option profiling_options lists the keys"
    return [
        ValueFault((name,), f"no manual knows {name!r}", did_you_mean(name, _MEMBERS, listed))
        for name in value
        if name not in _MEMBERS
    ]
