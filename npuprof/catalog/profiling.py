"""The content of a profiling run: the members of the JSON in profiling_options and
PROFILING_OPTIONS.
"""

from __future__ import annotations

import re

from npuprof.catalog.readers import find_shell_word
from npuprof.catalog.shapes import Fault
from npuprof.model import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


def find_profiling_faults(value: Any) -> list[Fault]:
    """Return the faults of known members, and of their combinations."""
    if not isinstance(value, dict):
        return []
    faults = [
        (((name,), *fault))
        for name, item in value.items()
        if name in _MEMBERS and (fault := _find_member_fault(name, item))
    ]
    alone = value.get("op_trace") == "on"
    others = [
        name
        for name in ("training_trace", "task_trace", "task_time")
        if value.get(name) in ("on", "l0", "l1")
    ]
    if alone and others:
        what = (
            f"op_trace together with {' and '.join(others)}: "
            "single operators are traced by themselves"
        )
        faults.append((("op_trace",), what, "switch op_trace off, or all of the others"))
    return faults


def _find_member_fault(name: str, item: Any) -> tuple[str, str] | None:
    if name == "output" and isinstance(item, str) and (word := find_shell_word(item)):
        return (
            f"{item!r} contains {word}, which nothing expands",
            "write the path out, or one from the current folder on",
        )
    if name == "storage_limit":
        match = re.fullmatch(r"([0-9]{1,9})MB", str(item), re.ASCII)
        good = match is not None and _LIMIT[0] <= int(match[1]) <= _LIMIT[1]
        return (
            None
            if good
            else (
                f"{item!r} is not a limit",
                f'write a text like "{_LIMIT[0]}MB", at most {_LIMIT[1]}MB',
            )
        )
    takes = _MEMBERS[name]
    if not takes:
        return None if isinstance(item, str) else (f"{item!r} is no text", "write a text")
    if isinstance(takes[0], int):
        low, high = int(takes[0]), int(takes[1])
        number = (
            int(item)
            if isinstance(item, str) and re.fullmatch(r"[0-9]{1,9}", item, re.ASCII)
            else item
        )
        good = type(number) is int and low <= number <= high
        return None if good else (f"{item!r} is out of range", f"write {low} to {high}")
    if item in takes or (name == "aic_metrics" and str(item).startswith("Custom:")):
        return None
    return (
        f"{item!r} is none of {', '.join(map(str, takes))}",
        f"write {' or '.join(map(repr, takes))}",
    )


def find_profiling_doubts(value: dict[str, Any]) -> list[Fault]:
    """Return the undocumented members."""
    return [
        (
            (name,),
            f"no manual knows {name!r}",
            did_you_mean(name, list(_MEMBERS), "npuprof option profiling_options lists the keys"),
        )
        for name in value
        if name not in _MEMBERS
    ]
