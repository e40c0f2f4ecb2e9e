"""Suspicious parts of structured values: misspelt letter case, entries without effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from npuprof.catalog import load_built_part
from npuprof.catalog.shapes import Fault
from npuprof.model import Path
from npuprof.system import lazy_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from npuprof.catalog import profiling
else:
    profiling = lazy_module("npuprof.catalog.profiling")

_OPERATOR = "the operator library spells it {right}, and another spelling names no operator"
_FUSION = "CANN spells it {right}, and another spelling names no pass"
_REASONS = {"operators": _OPERATOR, "passes": _FUSION}


def find_doubts(form: str, value: Any) -> list[Fault]:
    """Return the suspicious parts of a valid value of a structured form."""
    finder = _DOUBTS.get(form)
    return list(finder(value)) if finder else []


@cache
def _index_names(kind: str) -> dict[str, str]:
    names: dict[str, list[str]] = load_built_part("names")
    return {name.lower(): name for name in names[kind]}


def find_name_doubts(kind: str, names: Any, path: Path = ()) -> Iterator[Fault]:
    """Yield the names in a list or table that are known in another letter case only; ``kind`` is a list of ``names.toml``."""
    for place, name in enumerate(names) if isinstance(names, list) else ((name, name) for name in names):
        right = _index_names(kind).get(str(name).lower(), name)
        if right != name:
            yield (*path, place), f"{name!r}: {_REASONS[kind].format(right=right)}", f"write {right}"


def _find_mixlist_doubts(value: dict[str, Any]) -> Iterator[Fault]:
    removed = {name for side in ("black", "white") for name in value.get(f"{side}-list", {}).get("to-remove", ())}
    for name, table in value.items():
        for action, operators in table.items():
            yield from find_name_doubts("operators", operators, (name, action))
            if (name, action) == ("gray-list", "to-add"):
                yield from (
                    ((name, action, index), f"{operator} is only added to the gray list, which changes nothing", _explain_gray(operator))
                    for index, operator in enumerate(operators)
                    if operator not in removed
                )


def _explain_gray(operator: str) -> str:
    return f"remove {operator} from the list that it is in by default: white-list or black-list, to-remove"


def _find_mode_doubts(value: dict[str, Any]) -> Iterator[Fault]:
    yield from find_name_doubts("operators", value.get("ByOpType", {}), ("ByOpType",))


def _find_typed_doubts(names: Any, path: Path = ()) -> Iterator[Fault]:
    """Yield each ``OpType::Name`` in a list or table whose names are in another letter case."""
    for place, entry in enumerate(names) if isinstance(names, list) else ((name, name) for name in names):
        prefix, colons, name = entry.partition("::") if isinstance(entry, str) else ("", "", "")
        if colons and prefix.lower() == "optype":
            for _, what, hint in find_name_doubts("operators", [name]):
                yield (*path, place), what, hint.replace("write ", "write OpType::")


def _find_switch_doubts(value: dict[str, Any]) -> Iterator[Fault]:
    for group, passes in value.get("Switch", {}).items():
        yield from find_name_doubts("passes", passes, ("Switch", group))


def _find_device_doubts(value: list[int]) -> Iterator[Fault]:
    for index, device in enumerate(value):
        if device > 9:
            yield (index,), f"{device} is read as two devices: the reader of the list takes ids of one digit", "write ids from 0 to 9"


#: Finders by the name of the form.
_DOUBTS: dict[str, Callable[[Any], Iterable[Fault]]] = {
    "mixlist": _find_mixlist_doubts,
    "op-precision": _find_mode_doubts,
    "custom-dtypes": _find_typed_doubts,
    "fusion-switch": _find_switch_doubts,
    "op-debug": lambda value: _find_typed_doubts(value.get("op_debug_list", []), ("op_debug_list",)),
    "aoe-config": lambda value: find_name_doubts("operators", value.get("tune_ops_type", []), ("tune_ops_type",)),
    "switches": lambda value: find_name_doubts("passes", value),
    "ids": _find_device_doubts,
    "profiling": lambda value: profiling.find_profiling_doubts(value),
}
