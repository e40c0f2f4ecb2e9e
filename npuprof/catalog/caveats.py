"""Suspicious parts of structured values: misspelt letter case, entries without effect."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from npuprof.catalog import load_built_part
from npuprof.catalog.shapes import ValueFault
from npuprof.model import Any, Path, TomlTable

_OPERATOR = "the operator library spells it {right}, and another spelling names no operator"
_FUSION = "CANN spells it {right}, and another spelling names no pass"
_REASONS = {"operators": _OPERATOR, "passes": _FUSION}


@cache
def _index_names(kind: str) -> dict[str, str]:
    names: dict[str, list[str]] = load_built_part("names")
    return {name.lower(): name for name in names[kind]}


def find_name_caveats(
    kind: str, names: Any, path: Path = (), prefix: str = ""
) -> Iterator[ValueFault]:
    """Yield the names in a list or table that are known in another letter case only.

    ``kind`` is a list of ``names.toml``. With ``prefix``, only entries with it are names.
    """
    keys = range(len(names)) if isinstance(names, list) else names
    for key, entry in zip(keys, names, strict=True):
        start, colons, name = str(entry).rpartition("::")
        right = _index_names(kind).get(name.lower(), name)
        if right != name and start.lower() == prefix.lower():
            what = f"{name!r}: {_REASONS[kind].format(right=right)}"
            yield ValueFault((*path, key), what, f"write {prefix}{colons}{right}")


#: Yields each ``OpType::Name`` in a list or table whose name is in another letter case.
find_typed_caveats = partial(find_name_caveats, "operators", prefix="OpType")


def find_mixlist_caveats(value: TomlTable) -> Iterator[ValueFault]:
    """Yield the doubtful operators of a mixed-precision list."""
    removed = {
        *value.get("black-list", {}).get("to-remove", ()),
        *value.get("white-list", {}).get("to-remove", ()),
    }
    for name, table in value.items():
        for action, operators in table.items():
            yield from find_name_caveats("operators", operators, (name, action))
            if name == "gray-list" and action == "to-add":
                for index, operator in enumerate(operators):
                    if operator not in removed:
                        yield ValueFault(
                            (name, action, index),
                            f"{operator} is only added to the gray list, which changes nothing",
                            f"remove {operator} from the list that it is in by default: "
                            "white-list or black-list, to-remove",
                        )


def find_mode_caveats(value: TomlTable) -> Iterator[ValueFault]:
    """Yield the doubtful operators of a table of modes."""
    yield from find_name_caveats("operators", value.get("ByOpType", {}), ("ByOpType",))


def find_switch_caveats(value: TomlTable) -> Iterator[ValueFault]:
    """Yield the doubtful passes of a table of switches by group."""
    for group, passes in value.get("Switch", {}).items():
        yield from find_name_caveats("passes", passes, ("Switch", group))


def find_device_caveats(value: list[int]) -> Iterator[ValueFault]:
    """Yield the device ids that their reader takes for two."""
    for index, device in enumerate(value):
        if device > 9:
            what = f"{device} is read as two devices: the reader of the list takes ids of one digit"
            yield ValueFault((index,), what, "write ids from 0 to 9")
