"""Structured forms of options whose wire form is one delimited string.

Each structure turns the documented text into plain lists and tables and back. The text a user wrote is never
rewritten: it is parsed only to compare, to merge, and to check.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from npuprof.catalog.shapes import (
    COUNT,
    DIMENSION,
    NAME,
    SWITCH,
    WHOLE,
    Fault,
    Schema,
    Structure,
    find_part_faults,
    fits_schema,
    list_schema,
    map_schema,
    table_schema,
    tuple_schema,
)
from npuprof.document.keys import is_no_number
from npuprof.model import Path

_IDS = list_schema(WHOLE, 1)
_SHAPE = list_schema(DIMENSION, 1)
_SIZE_PROFILES = list_schema(list_schema(WHOLE, 1), 1)
_STEPS = list_schema({"anyOf": [WHOLE, {"type": "string", "pattern": "^[0-9]{1,18}-[0-9]{1,18}$"}]}, 1)
_COUNTS = map_schema(COUNT)
_CORES: Schema = {**list_schema(COUNT, 2), "maxItems": 2}
_NODES = list_schema(NAME, 1)
_KINDS, _TRIGGERS = {"enum": ["fast", "fast1"]}, {"enum": ["step", "loss"]}
_ACCELERATION: Schema = {"anyOf": [tuple_schema([_KINDS, _TRIGGERS]), tuple_schema([_KINDS, _TRIGGERS, {"type": "number"}])]}
_SIZE: Schema = {"anyOf": [DIMENSION, {"type": "string", "pattern": "^[0-9]+~[0-9]+$"}]}
_SHAPE_RANGES: Schema = {**table_schema({kind: list_schema(list_schema(_SIZE), 1) for kind in ("getnext", "data")}), "minProperties": 1}
_SWITCHES = map_schema(SWITCH)
#: The names of engines.
_ENGINE = r"[A-Za-z_][A-Za-z0-9_]*"


def _build_word_list(separator: str, example: str) -> Structure:
    def parse_words(text: str) -> Any:
        words = text.split(separator)
        return words if all(words) and not any(word.strip() != word for word in words) else None

    def find_word_faults(value: Any) -> list[Fault]:
        if not isinstance(value, list) or not value:
            return [((), "not a list of names", f"write {example}")]
        return [
            ((index,), f"{item!r} is not a name that can stand in the list", "leave out blanks and separators")
            for index, item in enumerate(value)
            if not isinstance(item, str) or not item or separator in item or item.split() != [item]
        ]

    return Structure(f"a list of names, as {example}", _NODES, parse_words, separator.join, find_word_faults)


def _parse_ids(text: str) -> Any:
    return [int(part) for part in text.split(",")] if re.fullmatch(r"\d{1,18}(,\d{1,18})*", text, re.ASCII) else None


def _find_ids_faults(value: Any) -> list[Fault]:
    return find_part_faults(
        value, _IDS, ("not a list of device ids", "write [0, 1]"), ("{item} is not a device id", "write a whole number")
    )


def _parse_shapes(text: str) -> Any:
    shapes: dict[str, list[int]] = {}
    for part in text.split(";"):
        match = re.fullmatch(r"([^:;,\s]+):((?:-1|\d{1,18})(?:,(?:-1|\d{1,18}))*)", part, re.ASCII)
        if not match or match[1] in shapes:
            return None
        shapes[match[1]] = [int(number) for number in match[2].split(",")]
    return shapes


def _format_shapes(value: dict[str, list[int]]) -> str:
    return ";".join(f"{name}:{','.join(map(str, dims))}" for name, dims in value.items())


def _find_shapes_faults(value: Any) -> list[Fault]:
    if not isinstance(value, dict) or not value:
        return [((), "not a table of shapes", "write { data = [1, -1], label = [1] }")]
    faults: list[Fault] = []
    for name, dims in value.items():
        if not re.fullmatch(r"[^:;,\s]+", name):
            faults.append(((name,), f"{name!r} is not an input name", "leave out ':', ';', ',' and blanks"))
        if not fits_schema(dims, _SHAPE):
            faults.append(((name,), "a shape is a list of whole numbers from -1", f"write {name} = [1, -1]"))
    return faults


def _parse_size_profiles(text: str) -> Any:
    if not re.fullmatch(r"\d{1,18}(,\d{1,18})*(;\d{1,18}(,\d{1,18})*)*", text, re.ASCII):
        return None
    return [[int(number) for number in part.split(",")] for part in text.split(";")]


def _find_size_profiles_faults(value: Any) -> list[Fault]:
    no_profiles = ("not a list of size profiles", "write [[20, 20], [40, 40]]")
    if isinstance(value, list) and not any(isinstance(sizes, list) for sizes in value):
        return [((), *no_profiles)]  # one profile by itself, if anything
    return find_part_faults(value, _SIZE_PROFILES, no_profiles, ("a size profile is a list of whole numbers", "write [20, 20]"))


def _is_whole(text: str) -> bool:
    """Return whether a text is a whole number of at most 18 digits; without a pattern, which would be compiled for it in most commands."""
    return 0 < len(text) <= 18 and text.isascii() and text.isdigit()


def _parse_steps(text: str) -> Any:
    parts = text.split("|")
    if not all(len(ends := part.split("-")) <= 2 and all(map(_is_whole, ends)) for part in parts):
        return None
    return [part if "-" in part else int(part) for part in parts]


def _find_steps_faults(value: Any) -> list[Fault]:
    part = ("{item} is neither a step nor a range", 'write 7 or "3-5"')
    faults = find_part_faults(value, _STEPS, ("not a list of steps", 'write [0, "3-5", 10]'), part)
    if not isinstance(value, list) or not value:
        return faults
    for index, step in enumerate(value):
        first, _, last = step.partition("-") if isinstance(step, str) and fits_schema(step, _STEPS["items"]) else ("0", "-", "1")
        if int(first) >= int(last):
            faults.append(((index,), f"the range {step!r} does not rise", "write the smaller step first"))
    many = f"{len(value)} steps and ranges, of which the adapter takes 100"
    return [((), many, "join steps to ranges")] * (len(value) > 100) + sorted(faults, key=lambda fault: fault[0])


def _parse_counts(text: str) -> Any:
    pairs = [part.split(":") for part in text.split(",")]
    if not all(
        len(pair) == 2 and pair[0].isascii() and pair[0].isidentifier() and _is_whole(pair[1]) and pair[1][0] != "0" for pair in pairs
    ):
        return None
    counts = {name: int(count) for name, count in pairs}
    return counts if len(counts) == len(pairs) else None


def _find_counts_faults(value: Any) -> list[Fault]:
    no_table = ("not a table of engines", "write { DNN_VM_AICPU = 10, AIcoreEngine = 1 }")
    return find_part_faults(
        value, _COUNTS, no_table, ("{name} = {item} is not an engine with a count", "write a whole number from 1"), _ENGINE
    )


def _parse_cores(text: str) -> Any:
    match = re.fullmatch(r"([1-9]\d{0,17})\|([1-9]\d{0,17})", text, re.ASCII)
    return [int(match[1]), int(match[2])] if match else None


def _find_cores_faults(value: Any) -> list[Fault]:
    return [] if fits_schema(value, _CORES) else [((), "not two core counts, cube and vector", "write [24, 48]")]


def _parse_node_ranges(text: str) -> Any:
    import ast

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if '"' not in text and not _find_node_ranges_faults(value) else None


def _find_node_ranges_faults(value: Any) -> list[Fault]:
    hint = "write [[['first/node'], ['last/node']]]"
    if not isinstance(value, list) or len(value) != 1:
        return [((), "not a list with one [in_nodes, out_nodes] pair", hint)]
    pair = value[0]
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(side, list) and side for side in pair):
        return [((0,), "not a pair of node lists", "write [['first/node'], ['last/node']]")]
    return [
        ((0, side, index), f"{name!r} is not a node name", "leave out quotes, commas, brackets and blanks")
        for side in (0, 1)
        for index, name in enumerate(pair[side])
        if not isinstance(name, str) or not re.fullmatch(r"[^',\[\]\"\s\\]+", name) or not name.isprintable()
    ]


def _parse_acceleration(text: str) -> Any:
    match = re.fullmatch(r"(fast1?)\|(step|loss)(?:\|(\d+(?:\.\d+)?))?", text, re.ASCII)
    if not match:
        return None
    return [match[1], match[2]] + ([float(match[3])] if match[3] else [])


def _find_acceleration_faults(value: Any) -> list[Fault]:
    hint = 'write ["fast", "step", 0.9]'
    if not isinstance(value, list) or not 2 <= len(value) <= 3:
        return [((), "not a list of kind, trigger and ratio", hint)]
    if not fits_schema(value[0], _KINDS):
        return [((0,), f"{value[0]!r} is not an acceleration", 'write "fast" (float16) or "fast1" (bfloat16)')]
    if not fits_schema(value[1], _TRIGGERS):
        return [((1,), f"{value[1]!r} is not a trigger", 'write "step" or "loss"')]
    low, high = (0.2, 0.9) if value[1] == "step" else (1.01, 1.5)
    if len(value) == 3 and (type(value[2]) not in (int, float) or not low <= value[2] <= high):
        return [((2,), f"{value[2]!r} is outside {low} to {high}", f"with {value[1]!r} write a ratio from {low} to {high}")]
    return []


def _parse_shape_ranges(text: str) -> Any:
    kinds: dict[str, list[list[Any]]] = {}
    for part in text.split(";"):
        kind, colon, rest = part.partition(":")
        if not colon or kind in kinds or not re.fullmatch(r"\[[^\[\]]*\](?:,\[[^\[\]]*\])*", rest):
            return None
        shapes = []
        for body in re.findall(r"\[([^\[\]]*)\]", rest):
            words = [word.strip(" ") for word in body.split(",")] if body else []
            shapes.append([word if "~" in word else int(word) if re.fullmatch(r"-1|\d{1,18}", word, re.ASCII) else word for word in words])
        kinds[kind] = shapes
    return None if _find_shape_ranges_faults(kinds) else kinds


def _format_shape_ranges(value: dict[str, list[list[Any]]]) -> str:
    return ";".join(f"{kind}:{','.join('[' + ','.join(map(str, shape)) + ']' for shape in shapes)}" for kind, shapes in value.items())


def _find_shape_ranges_faults(value: Any) -> list[Fault]:
    hint = 'write { getnext = [[128, "3~5", -1]] }'
    if not isinstance(value, dict) or not value:
        return [((), "not a table of getnext and data shapes", hint)]
    faults: list[Fault] = []
    for kind, shapes in value.items():
        if kind not in _SHAPE_RANGES["properties"]:
            faults.append(((kind,), f"{kind!r} is not a kind of input", "write getnext or data"))
        elif not isinstance(shapes, list) or not shapes or not all(isinstance(shape, list) for shape in shapes):
            faults.append(((kind,), "not a list of shapes", hint))
        else:
            faults += [
                ((kind, row, column), f"{item!r} is not a dimension", 'write 128, "3~5" or -1')
                for row, shape in enumerate(shapes)
                for column, item in enumerate(shape)
                if not fits_schema(item, _SIZE)
            ]
    return faults


def _parse_switches(text: str) -> Any:
    pairs = [part.split(":") for part in text.split(";") if part]
    if not pairs or any(len(pair) != 2 or not pair[0] or pair[1] not in ("on", "off") for pair in pairs):
        return None
    switches = dict(pairs)
    return switches if len(switches) == len(pairs) else None


def _find_switches_faults(value: Any) -> list[Fault]:
    no_table = ("not a table of passes", 'write { SomePass = "off" }')
    return find_part_faults(value, _SWITCHES, no_table, ("{name} = {item} is not a switch", 'write "on" or "off"'), r"[^:;\s]+")


def parse_json(text: str) -> Any:
    """Return the object in a JSON text, or None where the text is not one JSON object."""
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _format_json_line(value: Any) -> str:
    """Return a value as JSON on one line, in the order it was written."""
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def find_json_faults(value: Any, path: Path = ()) -> list[Fault]:
    """Return what JSON cannot hold: dates, times, infinities."""
    if isinstance(value, dict):
        return [fault for name, item in value.items() for fault in find_json_faults(item, (*path, name))]
    if not path:
        return [((), "not a table", 'write { output = "/tmp/profiling" }')]
    if isinstance(value, list):
        return [fault for index, item in enumerate(value) for fault in find_json_faults(item, (*path, index))]
    if is_no_number(value):
        return [(path, f"{value!r} has no form in JSON", "write a finite number")]
    return [] if isinstance(value, (str, int, float)) else [(path, f"{value!s} has no form in JSON", "write text")]


def _build_pair_formatter(pair: str, between: str) -> Callable[[Any], str]:
    return lambda value: between.join(f"{name}{pair}{item}" for name, item in value.items())


def _build_list_formatter(between: str) -> Callable[[Any], str]:
    return lambda value: between.join(map(str, value))


def _find_profile_faults(value: Any) -> list[Fault]:
    if faults := find_json_faults(value):
        return faults
    from npuprof.catalog.profiling import find_profiling_faults  # few presets profile

    return find_profiling_faults(value)


#: The forms that are written into one text.
STRUCTURES: dict[str, Structure] = {
    "words": _build_word_list(" ", '["node1", "node2"]'),
    "names": _build_word_list(",", '["ScopeLayerNormPass", "ScopeClipBoxesPass"]'),
    "ids": Structure("a list of device ids, as [0, 1]", _IDS, _parse_ids, _build_list_formatter(","), _find_ids_faults),
    "shapes": Structure(
        "a table of input shapes, as { data = [1, -1] }", map_schema(_SHAPE), _parse_shapes, _format_shapes, _find_shapes_faults,
        ordered_keys=True,
    ),
    "size-profiles": Structure(
        "a list of size profiles, as [[20, 20], [40, 40]]",
        _SIZE_PROFILES,
        _parse_size_profiles,
        lambda value: ";".join(",".join(map(str, sizes)) for sizes in value),
        _find_size_profiles_faults,
    ),
    "steps": Structure(
        'a list of steps and ranges, as [0, "3-5", 10]', _STEPS, _parse_steps, _build_list_formatter("|"), _find_steps_faults,
        unordered=True,
    ),
    "counts": Structure(
        "a table of engines, as { AIcoreEngine = 1 }", _COUNTS, _parse_counts, _build_pair_formatter(":", ","), _find_counts_faults
    ),
    "cores": Structure("cube and vector cores, as [24, 48]", _CORES, _parse_cores, _build_list_formatter("|"), _find_cores_faults),
    "node-ranges": Structure(
        "[[in_nodes, out_nodes]]",
        {**list_schema({**list_schema(_NODES, 2), "maxItems": 2}, 1), "maxItems": 1},
        _parse_node_ranges, str, _find_node_ranges_faults,
    ),
    "acceleration": Structure(
        'kind, trigger and ratio, as ["fast", "step", 0.9]', _ACCELERATION, _parse_acceleration, _build_list_formatter("|"),
        _find_acceleration_faults, members=("kind", "trigger", "ratio"),
    ),
    "shape-ranges": Structure(
        'a table of ranges, as { data = [[1, "3~5"]] }', _SHAPE_RANGES, _parse_shape_ranges, _format_shape_ranges,
        _find_shape_ranges_faults,
    ),
    "switches": Structure(
        'a table of passes, as { SomePass = "off" }', _SWITCHES, _parse_switches, _build_pair_formatter(":", ";"), _find_switches_faults
    ),
    "json": Structure(
        "a table, written as JSON", {"type": "object"}, parse_json, _format_json_line, find_json_faults
    ),
    "profiling": Structure(
        "a table, written as JSON", {"type": "object"}, parse_json, _format_json_line, _find_profile_faults
    ),
}  # fmt: skip
