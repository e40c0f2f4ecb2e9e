"""Files that options name by path: mixed-precision lists, operator modes, fusion switches, ...

The formats are those of the parsers in CANN, which are stricter than the documented samples: JSON
without comments, no blank lines in customize_dtypes.cfg, no operator in two contradicting lists.
"""

from __future__ import annotations

import re

from npuprof.catalog import caveats, load_built_part
from npuprof.catalog.ignored_parts import (
    find_dropped_debug_lines,
    find_dropped_modes,
    find_repeated_keys,
    find_repeated_rules,
)
from npuprof.catalog.shapes import (
    NAME,
    SWITCH,
    Structure,
    ValueFault,
    find_schema_faults,
    list_entries,
    list_schema,
    map_schema,
    table_schema,
)
from npuprof.catalog.structures import find_json_faults, parse_json
from npuprof.model import Any, Path, TomlTable, did_you_mean

IMPLEMENTATION_MODES = (
    "high_performance",
    "high_precision",
    "super_performance",
    "enable_float_32_execution",
    "enable_hi_float_32_execution",
    "support_out_of_bound_index",
    "keep_fp16",
)
#: The characters that no name in a file of modes contains.
_NO_NAME = frozenset("=\r\n")
DEBUG_OPTIONS = ("oom", "dump_cce", "dump_loc", "ccec_O0", "ccec_g", "check_flag", "dump_bin")

#: The valid combinations of an operator's roles in a mixed-precision list; CANN rejects all others.
_ROLES = {
    frozenset(roles.split())
    for roles in (
        "black.to-add",
        "black.to-add white.to-remove",
        "black.to-add gray.to-remove",
        "white.to-add",
        "white.to-add black.to-remove",
        "white.to-add gray.to-remove",
        "gray.to-add",
        "gray.to-add black.to-remove",
        "gray.to-add white.to-remove",
        "black.to-remove",
        "white.to-remove",
    )
}


_MIXLIST = table_schema(
    dict.fromkeys(
        ("black-list", "white-list", "gray-list"),
        table_schema({"to-add": list_schema(NAME), "to-remove": list_schema(NAME)}),
    )
)
_PRECISION = table_schema(
    dict.fromkeys(("ByOpType", "ByNodeName"), map_schema({"enum": list(IMPLEMENTATION_MODES)}, 0))
)
_DTYPES = {
    **table_schema(
        {side: list_schema({"type": "string"}) for side in ("InputDtype", "OutputDtype")}
    ),
    "minProperties": 1,
}
#: The keys of a rule for an operator; their types are checked separately.
_SIDES = table_schema({side: {} for side in _DTYPES["properties"]})
_PASSES = table_schema(dict.fromkeys(("GraphFusion", "UBFusion"), map_schema(SWITCH, 0)))
_FUSION = table_schema({"Switch": _PASSES, "Priority": {}, "ExceptionalPassOfO1Level": {}})
_DEBUG = table_schema(
    {
        "op_debug_config": list_schema({"enum": list(DEBUG_OPTIONS)}, 1),
        "op_debug_list": list_schema(NAME),
    }
)
_TUNING = table_schema(
    {
        "tune_ops_name": list_schema(NAME),
        "tune_ops_type": list_schema(NAME),
        "tune_optimization_level": {"enum": ["O1", "O2"]},
        "feature": list_schema({"enum": ["deeper_opat", "nonhomo_split"]}),
    }
)


def _format_json_file(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _find_mixlist_faults(value: Any) -> list[ValueFault]:
    faults = find_schema_faults(value, _MIXLIST)
    if faults:
        return faults
    roles: dict[str, dict[str, Path]] = {}
    for name, table in value.items():
        for action, operators in table.items():
            role = f"{name.removesuffix('-list')}.{action}"
            for index, operator in enumerate(operators):
                roles.setdefault(operator, {})[role] = (name, action, index)
    for operator, paths in roles.items():
        if frozenset(paths) not in _ROLES:
            last_path = list(paths.values())[-1]
            what = f"{operator} is in {' and '.join(paths)}, which CANN rejects"
            hint = "name an operator in one to-add, with at most the matching to-remove"
            faults.append(ValueFault(last_path, what, hint))
            break
    return faults


def resolve_mixlist_outcome(value: TomlTable, operator: str, base: str | None) -> str | None:
    """Return the list (black, white, gray) of an operator, or None if it depends on ``base``.

    ``base`` is the operator's built-in list, None if unknown. Source: CANN's parser applies
    additions to black or white first, then removals; a gray addition alone changes nothing.
    """
    for name in ("black", "white"):
        if operator in value.get(f"{name}-list", {}).get("to-add", ()):
            return name
    for name in ("black", "white"):
        if operator in value.get(f"{name}-list", {}).get("to-remove", ()):
            return "gray" if base == name else base
    return base


def resolve_mixlist_outcomes(value: TomlTable) -> dict[str, dict[str, str]]:
    """Return, for each operator in a mixed-precision list, its resulting list by built-in list."""
    operators: dict[str, None] = {}
    for name in ("black", "white", "gray"):
        table = value.get(f"{name}-list", {})
        operators |= dict.fromkeys((*table.get("to-add", ()), *table.get("to-remove", ())))
    # sets, as each operator is looked up in every list
    lists_by_name = {
        name: {action: frozenset(names) for action, names in table.items()}
        for name, table in value.items()
    }
    return {
        operator: {
            base: str(resolve_mixlist_outcome(lists_by_name, operator, base))
            for base in ("white", "black", "gray")
        }
        for operator in operators
    }


def describe_mixlist_outcome(outcomes: dict[str, str]) -> str:
    """Return the resulting list of an operator, by built-in list, as text."""
    if len(set(outcomes.values())) == 1:
        return f"{next(iter(outcomes.values()))} for any built-in list"
    moved = [f"{end} if it is {base} by default" for base, end in outcomes.items() if end != base]
    if not moved:
        return (
            "as built in: an addition to gray-list alone "
            "changes nothing, add the matching to-remove"
        )
    return f"{'; '.join(moved)}, else as built in"


def _parse_modes(text: str) -> Any:
    sections: dict[str, dict[str, str]] = {}
    section = "ByOpType"
    for line in text.split("\n"):
        if line.startswith("#") or not line.strip():
            continue
        name, equals, mode = (part.strip() for part in line.partition("="))
        if not equals:
            tag = name.removeprefix("[").removesuffix("]")
            if name == f"[{tag}]" and tag in _PRECISION["properties"]:
                section = tag
        elif name and mode:
            sections.setdefault(section, {}).setdefault(name, mode)
    return sections


def _format_modes(value: dict[str, dict[str, str]]) -> str:
    lines = []
    for section in _PRECISION["properties"]:
        if entries := value.get(section):
            lines += [f"[{section}]", *(f"{name}={mode}" for name, mode in entries.items())]
    return "\n".join([*lines, ""])


def _find_modes_faults(value: Any) -> list[ValueFault]:
    """Return the faults of a table of modes; CANN silently drops lines with an unknown mode."""
    faults = find_schema_faults(value, _PRECISION)
    for section, entries in list_entries(value):
        for name, _ in list_entries(entries):
            is_writable = name == name.strip() and _NO_NAME.isdisjoint(name)
            if not is_writable or not name or name[0] in "#[":
                what = f"{name!r} cannot be written as a name"
                hint = "omit '=', '#' and blanks at the ends"
                faults.append(ValueFault((section, name), what, hint))
    return faults


def _parse_dtypes(text: str) -> Any:
    rules: dict[str, dict[str, list[str]]] = {}
    for line in text.removesuffix("\n").split("\n"):
        by_type = line.startswith("OpType::")
        name, colon, body = line.strip().removeprefix("OpType::").partition(":")
        rule = _parse_dtypes_rule(body.removeprefix(":"))
        if not name or not colon or not rule:
            return None  # CANN rejects the whole file
        rules.setdefault(f"OpType::{name}" if by_type else name, rule)
    return rules


def _parse_dtypes_rule(body: str) -> dict[str, list[str]] | None:
    inputs, output, outputs = body.partition("OutputDtype:")
    rule = {}
    if inputs:
        if not inputs.startswith("InputDtype:"):
            return None
        types = inputs.removeprefix("InputDtype:")
        rule["InputDtype"] = (types.removesuffix(",") if output else types).split(",")
    if output:
        rule["OutputDtype"] = outputs.split(",")
    return None if any(":" in item for types in rule.values() for item in types) else rule


def _format_dtypes(value: dict[str, dict[str, list[str]]]) -> str:
    lines = []
    for name, rule in value.items():
        sides = [f"{side}:{','.join(rule[side])}" for side in _DTYPES["properties"] if side in rule]
        lines.append(f"{name}{':' if name.startswith('OpType::') else '::'}{','.join(sides)}")
    return "\n".join([*lines, ""])


def _suggest_dtype(dtype: str) -> str:
    """Return CANN's name for a data type, or similar names."""
    names: TomlTable = load_built_part("names")
    right = names["foreign_dtypes"].get(dtype.lower())
    return f"write {right}" if right else did_you_mean(dtype, names["dtypes"], "write float16")


def _find_dtypes_faults(value: Any) -> list[ValueFault]:
    if not isinstance(value, dict) or not value:
        hint = 'write { "OpType::Add" = { InputDtype = ["float16", "float16"] } }'
        return [ValueFault((), "not a table of operators", hint)]
    faults = []
    for name, rule in value.items():
        is_name = re.fullmatch(r"(OpType::)?[^:\s]+", name)
        if not is_name or "InputDtype" in name or "OutputDtype" in name:
            what = f"{name!r} cannot be written as a name"
            hint = "write a node name without ':', or OpType::Type"
            faults.append(ValueFault((name,), what, hint))
        faults += find_schema_faults(rule, _SIDES, (name,))
        if isinstance(rule, dict) and not rule:
            hint = 'write { InputDtype = ["float16"] }'
            faults.append(ValueFault((name,), "no types", hint))
        for side, types in list_entries(rule):
            faults += _find_type_faults(types, (name, side))
    if not faults:
        for line, name in zip(_format_dtypes(value).split("\n"), value, strict=False):
            if len(line.encode()) >= 1023:
                what = "the line is longer than 1022 bytes: CANN drops it and all after it"
                faults.append(ValueFault((name,), what, "shorten the node name"))
    return faults


def _find_type_faults(types: Any, path: Path) -> list[ValueFault]:
    """Return the faults of the data types of an operator's inputs or outputs."""
    is_list = isinstance(types, list) and all(
        isinstance(dtype, str) and re.fullmatch(r"\w*", dtype, re.ASCII) for dtype in types
    )
    if not is_list:
        hint = 'write ["float16", "float"]; "" keeps the type'
        return [ValueFault(path, "not a list of types", hint)]
    known = load_built_part("names")["dtypes"]
    faults = []
    for index, dtype in enumerate(types):
        if dtype and dtype.lower() not in known:
            what = f"CANN knows no type {dtype!r}, and the build stops"
            faults.append(ValueFault((*path, index), what, _suggest_dtype(dtype)))
    return faults


def _parse_fusion(text: str) -> Any:
    value = parse_json(text)
    if value is not None:
        return value
    passes = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        name, colon, state = line.partition(":")
        if not colon or state not in ("on", "off") or name in passes:
            return None
        passes[name] = state
    return {"Switch": {"GraphFusion": passes}} if passes else None


def _parse_debug(text: str) -> Any:
    lists = {}
    for line in map(str.strip, text.split("\n")):
        left, _, right = line.partition("=")
        name = left.strip()
        if name in _DEBUG["properties"] and right.strip():
            lists[name] = [item.strip() for item in right.split(",")]
    return lists or None


def _format_debug(value: dict[str, list[str]]) -> str:
    return "".join(
        f"{name}={','.join(value[name])}\n" for name in _DEBUG["properties"] if name in value
    )


def _find_debug_faults(value: Any) -> list[ValueFault]:
    faults = find_schema_faults(value, _DEBUG)
    if not isinstance(value, dict):
        return faults
    if not value.get("op_debug_config"):
        faults.append(ValueFault((), "no op_debug_config", 'write { op_debug_config = ["oom"] }'))
    entries = value.get("op_debug_list", [])
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, str) and ("," in entry or entry != entry.strip()):
            what = f"{entry!r} cannot be written in the list"
            faults.append(ValueFault(("op_debug_list", index), what, "one operator an element"))
    return faults


#: The structured forms that are written to files.
SIDECARS: dict[str, Structure] = {
    "mixlist": Structure(
        'lists of operator types, as black-list = { to-add = ["MatMul"] }',
        _MIXLIST,
        parse_json,
        _format_json_file,
        _find_mixlist_faults,
        "ops_info.json",
        unordered=True,
        dropped=find_repeated_keys,
        is_exact=True,
        caveats=caveats.find_mixlist_caveats,
    ),
    "op-precision": Structure(
        'modes, as ByOpType = { Conv2D = "high_performance" }',
        _PRECISION,
        _parse_modes,
        _format_modes,
        _find_modes_faults,
        "op_precision.ini",
        dropped=find_dropped_modes,
        caveats=caveats.find_mode_caveats,
    ),
    "custom-dtypes": Structure(
        'types by operator, as "OpType::Add" = { InputDtype = ["float16"] }',
        map_schema(_DTYPES),
        _parse_dtypes,
        _format_dtypes,
        _find_dtypes_faults,
        "customize_dtypes.cfg",
        dropped=find_repeated_rules,
        caveats=caveats.find_typed_caveats,
    ),
    "fusion-switch": Structure(
        'passes, as Switch.GraphFusion = { SoftmaxFusionPass = "off" }',
        _FUSION,
        _parse_fusion,
        _format_json_file,
        lambda value: find_schema_faults(value, _FUSION) or find_json_faults(value),
        "fusion_switch.cfg",
        dropped=find_repeated_keys,
        is_exact=True,
        caveats=caveats.find_switch_caveats,
    ),
    "op-debug": Structure(
        'op_debug_config = ["oom"], op_debug_list = ["OpType::Conv2D"]',
        _DEBUG,
        _parse_debug,
        _format_debug,
        _find_debug_faults,
        "op_debug.cfg",
        unordered=True,
        dropped=find_dropped_debug_lines,
        caveats=lambda value: caveats.find_typed_caveats(
            value.get("op_debug_list", []), ("op_debug_list",)
        ),
    ),
    "aoe-config": Structure(
        'tune_ops_type = ["MatMul"], tune_optimization_level = "O1"',
        _TUNING,
        parse_json,
        _format_json_file,
        lambda value: find_schema_faults(value, _TUNING),
        "tuning_config.cfg",
        unordered=True,
        dropped=find_repeated_keys,
        is_exact=True,
        caveats=lambda value: caveats.find_name_caveats(
            "operators", value.get("tune_ops_type", []), ("tune_ops_type",)
        ),
    ),
}
