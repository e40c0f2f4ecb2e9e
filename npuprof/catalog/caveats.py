"""Suspicious parts of structured values: misspelt letter case, entries without effect."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from npuprof.catalog import load_built_part
from npuprof.catalog.shapes import Fault
from npuprof.model import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OPERATOR = "the operator library spells it {right}, and another spelling names no operator"
_FUSION = "CANN spells it {right}, and another spelling names no pass"
_REASONS = {"operators": _OPERATOR, "passes": _FUSION}


@cache
def _index_names(kind: str) -> dict[str, str]:
    names: dict[str, list[str]] = load_built_part("names")
    return {name.lower(): name for name in names[kind]}


def find_name_doubts(kind: str, names: Any, path: Path = ()) -> Iterator[Fault]:
    """Yield the names in a list or table that are known in another letter case only.

    ``kind`` is a list of ``names.toml``.
    """
    for place, name in (
        enumerate(names) if isinstance(names, list) else zip(names, names, strict=True)
    ):
        right = _index_names(kind).get(str(name).lower(), name)
        if right != name:
            yield (
                (*path, place),
                f"{name!r}: {_REASONS[kind].format(right=right)}",
                f"write {right}",
            )


def find_mixlist_doubts(value: dict[str, Any]) -> Iterator[Fault]:
    """Yield the doubtful operators of a mixed-precision list."""
    removed = {
        name
        for side in ("black", "white")
        for name in value.get(f"{side}-list", {}).get("to-remove", ())
    }
    for name, table in value.items():
        for action, operators in table.items():
            yield from find_name_doubts("operators", operators, (name, action))
            if (name, action) == ("gray-list", "to-add"):
                yield from (
                    (
                        (name, action, index),
                        f"{operator} is only added to the gray list, which changes nothing",
                        _explain_gray(operator),
                    )
                    for index, operator in enumerate(operators)
                    if operator not in removed
                )


def _explain_gray(operator: str) -> str:
    return (
        f"remove {operator} from the list that it is in "
        "by default: white-list or black-list, to-remove"
    )


def find_mode_doubts(value: dict[str, Any]) -> Iterator[Fault]:
    """Yield the doubtful operators of a table of modes."""
    yield from find_name_doubts("operators", value.get("ByOpType", {}), ("ByOpType",))


def find_typed_doubts(names: Any, path: Path = ()) -> Iterator[Fault]:
    """Yield each ``OpType::Name`` in a list or table whose names are in another letter case."""
    for place, entry in (
        enumerate(names) if isinstance(names, list) else zip(names, names, strict=True)
    ):
        prefix, colons, name = entry.partition("::") if isinstance(entry, str) else ("", "", "")
        if colons and prefix.lower() == "optype":
            for _, what, hint in find_name_doubts("operators", [name]):
                yield (*path, place), what, hint.replace("write ", "write OpType::")


def find_switch_doubts(value: dict[str, Any]) -> Iterator[Fault]:
    """Yield the doubtful passes of a table of switches by group."""
    for group, passes in value.get("Switch", {}).items():
        yield from find_name_doubts("passes", passes, ("Switch", group))


def find_device_doubts(value: list[int]) -> Iterator[Fault]:
    """Yield the device ids that their reader takes for two."""
    for index, device in enumerate(value):
        if device > 9:
            yield (
                (index,),
                f"{device} is read as two devices: the reader of the list takes ids of one digit",
                "write ids from 0 to 9",
            )
