"""Structured forms of options that are transferred as one delimited string.

Each structure converts the documented text to plain lists and tables and back. The text of a preset
is never rewritten: it is parsed only to compare, merge and check.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from npuprof.catalog.shapes import (
    COUNT,
    DIMENSION,
    SWITCH,
    WHOLE,
    Schema,
    Structure,
    ValueFault,
    find_form_faults,
    fits_schema,
    list_schema,
    map_schema,
    table_schema,
    tuple_schema,
)
from npuprof.document.keys import is_no_number
from npuprof.model import TYPE_CHECKING, Path, TomlTable, has_only_digits, is_variable_name
from npuprof.system import list_items

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: The characters that no name in a table of shapes contains.
_NO_NAME = frozenset(",: \t\n\r\f\v")
_IDS = list_schema(WHOLE, 1)
_SHAPES = map_schema(list_schema(DIMENSION, 1), names=r"[^:;,\s]+")
_SIZE_PROFILES = list_schema(list_schema(WHOLE, 1), 1)
_STEPS = list_schema(
    {"anyOf": [WHOLE, {"type": "string", "pattern": "^[0-9]{1,18}-[0-9]{1,18}$"}]}, 1
)
#: Counts by engine name.
_COUNTS = map_schema(COUNT, names="[A-Za-z_][A-Za-z0-9_]*")
_CORES = {**list_schema(COUNT, 2), "maxItems": 2}
#: Excludes characters that would end a name or are invisible.
_NODES = list_schema(
    {
        "type": "string",
        "pattern": r"""^[^',\[\]"\s\\\u0000-\u0020\u007f-\u00a0\u00ad"""
        r"""\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]+$""",
    },
    1,
)
_NODE_RANGES = {**list_schema({**list_schema(_NODES, 2), "maxItems": 2}, 1), "maxItems": 1}
_KINDS = {"enum": ["fast", "fast1"]}
_TRIGGERS = {"enum": ["step", "loss"]}
_ACCELERATION: Schema = {
    "anyOf": [
        tuple_schema([_KINDS, _TRIGGERS]),
        tuple_schema([_KINDS, _TRIGGERS, {"type": "number"}]),
    ]
}
_SIZE: Schema = {"anyOf": [DIMENSION, {"type": "string", "pattern": "^[0-9]+~[0-9]+$"}]}
_SHAPE_RANGES = {
    **table_schema({kind: list_schema(list_schema(_SIZE), 1) for kind in ("getnext", "data")}),
    "minProperties": 1,
}
_SWITCHES = map_schema(SWITCH, names=r"[^:;\s]+")


def _build_form(
    shape: str,
    schema: Schema,
    parse: Callable[[str], Any],
    write: Callable[[Any], str],
    find_more: Callable[[Any], list[ValueFault]] = lambda value: [],
    **named: Any,
) -> Structure:
    """Return a form whose schema covers nearly all faults.

    ``find_more`` finds the others in a value that matches it.
    """
    return Structure(
        shape,
        schema,
        parse,
        write,
        lambda value: find_form_faults(value, schema, shape) or find_more(value),
        **named,
    )


def _build_name_list(separator: str, example: str) -> Structure:
    def parse_names(text: str) -> Any:
        names = text.split(separator)
        return names if all(names) and all(name.strip() == name for name in names) else None

    schema = list_schema({"type": "string", "pattern": rf"^[^\s{separator}]+$"}, 1)
    return _build_form(f"a list of names, as {example}", schema, parse_names, separator.join)


def _parse_ids(text: str) -> Any:
    parts = text.split(",")
    return [int(part) for part in parts] if all(map(_is_whole, parts)) else None


def _parse_shapes(text: str) -> Any:
    shapes = {}
    for part in text.split(";"):
        name, _, sizes = part.partition(":")
        if not name or name in shapes or not _NO_NAME.isdisjoint(name):
            return None
        numbers = sizes.split(",")
        if not all(size == "-1" or _is_whole(size) for size in numbers):
            return None
        shapes[name] = [int(size) for size in numbers]
    return shapes


def _format_shapes(value: dict[str, list[int]]) -> str:
    return ";".join(f"{name}:{','.join(map(str, dims))}" for name, dims in value.items())


def _parse_size_profiles(text: str) -> Any:
    profiles = [_parse_ids(part) for part in text.split(";")]
    return profiles if all(profiles) else None


def _is_whole(text: str) -> bool:
    """Return whether a text is an integer of at most 18 digits.

    Avoids compiling a regular expression in most commands.
    """
    return len(text) <= 18 and has_only_digits(text)


def _parse_steps(text: str) -> Any:
    steps = []
    for part in text.split("|"):
        ends = part.split("-")
        if len(ends) > 2 or not all(map(_is_whole, ends)):
            return None
        steps.append(int(part) if len(ends) == 1 else part)
    return steps


def _find_step_faults(value: list[Any]) -> list[ValueFault]:
    """Return descending ranges, and a fault if there are more steps than the adapter accepts."""
    faults = []
    if len(value) > 100:
        what = f"{len(value)} steps and ranges, of which the adapter takes 100"
        faults.append(ValueFault((), what, "join steps to ranges"))
    for index, step in enumerate(value):
        if isinstance(step, str):
            first, _, last = step.partition("-")
            if int(first) >= int(last):
                what = f"the range {step!r} does not rise"
                faults.append(ValueFault((index,), what, "write the smaller step first"))
    return faults


def _parse_counts(text: str) -> Any:
    counts = {}
    for part in text.split(","):
        name, _, count = part.partition(":")
        if not is_variable_name(name) or name in counts or not _is_count(count):
            return None
        counts[name] = int(count)
    return counts


def _is_count(text: str) -> bool:
    """Return whether a text is a positive integer without leading zeros."""
    return _is_whole(text) and text[0] != "0"


def _parse_cores(text: str) -> Any:
    cores = text.split("|")
    return [*map(int, cores)] if len(cores) == 2 and all(map(_is_count, cores)) else None


def _parse_node_ranges(text: str) -> Any:
    import ast

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if '"' not in text and fits_schema(value, _NODE_RANGES) else None


def _parse_acceleration(text: str) -> Any:
    kind, _, rest = text.partition("|")
    trigger, bar, ratio = rest.partition("|")
    if kind not in _KINDS["enum"] or trigger not in _TRIGGERS["enum"]:
        return None
    if not bar:
        return [kind, trigger]
    is_ratio = all(map(has_only_digits, ratio.split(".", 1)))
    return [kind, trigger, float(ratio)] if is_ratio else None


def _find_ratio_faults(value: list[Any]) -> list[ValueFault]:
    """Return a fault if the ratio of an acceleration is outside the range of its trigger."""
    if len(value) < 3:
        return []
    _, trigger, ratio = value
    low, high = (0.2, 0.9) if trigger == "step" else (1.01, 1.5)
    if low <= ratio <= high:
        return []
    hint = f"with {trigger!r} write a ratio from {low} to {high}"
    return [ValueFault((2,), f"{ratio!r} is outside {low} to {high}", hint)]


def _parse_shape_ranges(text: str) -> Any:
    kinds = {}
    for part in text.split(";"):
        kind, colon, rest = part.partition(":")
        if not colon or kind in kinds or not re.fullmatch(r"\[[^\[\]]*\](?:,\[[^\[\]]*\])*", rest):
            return None
        kinds[kind] = [
            [_parse_size(size.strip(" ")) for size in body.split(",")] if body else []
            for body in re.findall(r"\[([^\[\]]*)\]", rest)
        ]
    return kinds if fits_schema(kinds, _SHAPE_RANGES) else None


def _parse_size(text: str) -> int | str:
    """Return a size as a number, and a range (``3~5``) or any other text unchanged."""
    return int(text) if re.fullmatch(r"-1|\d{1,18}", text, re.ASCII) else text


def _format_shape_ranges(value: dict[str, list[list[Any]]]) -> str:
    kinds = []
    for kind, shapes in value.items():
        sizes = (",".join(map(str, shape)) for shape in shapes)
        kinds.append(f"{kind}:{','.join(f'[{text}]' for text in sizes)}")
    return ";".join(kinds)


def _parse_switches(text: str) -> Any:
    switches = {}
    for part in filter(None, text.split(";")):
        name, _, state = part.partition(":")
        if not name or name in switches or state not in ("on", "off"):
            return None
        switches[name] = state
    return switches or None


def parse_json(text: str | bytes) -> Any:
    """Return the object in a JSON text, or None if the text is not a single JSON object."""
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_argument(text: str) -> Any:
    """Return the object in a JSON text of a program's argument, None if no table is equal to it.

    Such a text is invalid, has a key twice, or a value that TOML cannot express.
    """
    if not text.lstrip().startswith("{"):
        return None
    import json

    def build_table(pairs: list[tuple[str, Any]]) -> TomlTable:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=build_table)
        json.dumps(value, ensure_ascii=False).encode()  # no half of a surrogate pair
    except (ValueError, RecursionError):
        return None
    return None if find_json_faults(value) else value


def _format_json_line(value: Any) -> str:
    """Return a value as JSON on one line, in its original order."""
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def find_json_faults(value: Any, path: Path = ()) -> list[ValueFault]:
    """Return the values that JSON cannot express: dates, times, infinities."""
    if not path and not isinstance(value, dict):
        return [ValueFault((), "not a table", 'write { output = "/tmp/profiling" }')]
    if isinstance(value, (dict, list)):
        faults = []
        for name, item in list_items(value):
            faults += find_json_faults(item, (*path, name))
        return faults
    if is_no_number(value):
        return [ValueFault(path, f"{value!r} has no form in JSON", "write a finite number")]
    if isinstance(value, (str, int, float)):
        return []
    return [ValueFault(path, f"{value!s} has no form in JSON", "write text")]


def _build_pair_formatter(between: str) -> Callable[[Any], str]:
    return lambda value: between.join(f"{name}:{item}" for name, item in value.items())


def _build_list_formatter(between: str) -> Callable[[Any], str]:
    return lambda value: between.join(map(str, value))


def _find_pass_caveats(value: Any) -> Iterable[ValueFault]:
    from npuprof.catalog import caveats

    return caveats.find_name_caveats("passes", value)


def _find_device_caveats(value: Any) -> Iterable[ValueFault]:
    from npuprof.catalog import caveats

    return caveats.find_device_caveats(value)


def _find_profiling_caveats(value: Any) -> Iterable[ValueFault]:
    from npuprof.catalog import profiling

    return profiling.find_profiling_caveats(value)


def _find_profiling_faults(value: Any) -> list[ValueFault]:
    from npuprof.catalog import profiling

    return find_json_faults(value) or profiling.find_profiling_faults(value)


#: The structured forms that are written as one text.
STRUCTURES: dict[str, Structure] = {
    "words": _build_name_list(" ", '["node1", "node2"]'),
    "names": _build_name_list(",", '["ScopeLayerNormPass", "ScopeClipBoxesPass"]'),
    "ids": _build_form(
        "a list of device ids, as [0, 1]",
        _IDS,
        _parse_ids,
        _build_list_formatter(","),
        caveats=_find_device_caveats,
    ),
    "shapes": _build_form(
        "a table of input shapes, as { data = [1, -1] }",
        _SHAPES,
        _parse_shapes,
        _format_shapes,
        ordered_keys=True,
    ),
    "size-profiles": _build_form(
        "a list of size profiles, as [[20, 20], [40, 40]]",
        _SIZE_PROFILES,
        _parse_size_profiles,
        lambda value: ";".join(",".join(map(str, sizes)) for sizes in value),
    ),
    "steps": _build_form(
        'a list of steps and ranges, as [0, "3-5", 10]',
        _STEPS,
        _parse_steps,
        _build_list_formatter("|"),
        _find_step_faults,
        unordered=True,
    ),
    "counts": _build_form(
        "a table of engines, as { AIcoreEngine = 1 }",
        _COUNTS,
        _parse_counts,
        _build_pair_formatter(","),
    ),
    "cores": _build_form(
        "cube and vector cores, as [24, 48]", _CORES, _parse_cores, _build_list_formatter("|")
    ),
    "node-ranges": _build_form(
        "a list with one pair of node lists, as [[['first/node'], ['last/node']]]",
        _NODE_RANGES,
        _parse_node_ranges,
        str,
    ),
    "acceleration": _build_form(
        'kind, trigger and ratio, as ["fast", "step", 0.9]',
        _ACCELERATION,
        _parse_acceleration,
        _build_list_formatter("|"),
        _find_ratio_faults,
        members=("kind", "trigger", "ratio"),
    ),
    "shape-ranges": _build_form(
        'a table of ranges, as { data = [[1, "3~5"]] }',
        _SHAPE_RANGES,
        _parse_shape_ranges,
        _format_shape_ranges,
    ),
    "switches": _build_form(
        'a table of passes, as { SomePass = "off" }',
        _SWITCHES,
        _parse_switches,
        _build_pair_formatter(";"),
        caveats=_find_pass_caveats,
    ),
    "json": Structure(
        "a table, written as JSON",
        {"type": "object"},
        parse_json,
        _format_json_line,
        find_json_faults,
        is_exact=True,
    ),
    "argument": Structure(
        "a table, written as JSON",
        {"type": "object"},
        parse_argument,
        _format_json_line,
        find_json_faults,
        is_exact=True,
    ),
    "profiling": Structure(
        "a table, written as JSON",
        {"type": "object"},
        parse_json,
        _format_json_line,
        _find_profiling_faults,
        is_exact=True,
        caveats=_find_profiling_caveats,
    ),
}
