"""Files named only by ATC flags: operators that keep types, image preprocessing, engine options.

A preset contains the path of such a file; its content is checked when a script that names it is
linted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from npuprof.catalog.ignored_parts import find_repeated_keys
from npuprof.catalog.shapes import (
    NAME,
    Schema,
    Structure,
    ValueFault,
    list_entries,
    list_schema,
    map_schema,
    table_schema,
)
from npuprof.catalog.structures import parse_json
from npuprof.model import Path, Record, TomlTable, did_you_mean

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<word>[A-Za-z_]\w*)|(?P<mark>[{}:\[\],;<>])
    |(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?f?)""",
    re.VERBOSE | re.ASCII,
)
_MODES = ("static", "dynamic")
_FORMATS = ("YUV420SP_U8", "XRGB8888_U8", "RGB888_U8", "YUV400_U8")
_FIELDS = (
    "aipp_mode",
    "related_input_rank",
    "input_format",
    "src_image_size_w",
    "src_image_size_h",
    "crop",
    "load_start_pos_w",
    "load_start_pos_h",
    "crop_size_w",
    "crop_size_h",
    "padding",
    "left_padding_size",
    "right_padding_size",
    "top_padding_size",
    "bottom_padding_size",
    "csc_switch",
    "rbuv_swap_switch",
    "ax_swap_switch",
    "max_src_image_size",
    *(
        f"{name}_{channel}"
        for name in ("mean_chn", "min_chn", "var_reci_chn")
        for channel in range(4)
    ),
    *(f"matrix_r{row}c{column}" for row in range(3) for column in range(3)),
    *(f"{name}_bias_{channel}" for name in ("input", "output") for channel in range(3)),
)


class _Range(Record):
    """The numbers that a field allows: a range, and perhaps one number outside it."""

    low: int
    high: int
    other: int | None = None

    def contains(self, number: int) -> bool:
        return self.low <= number <= self.high or number == self.other


_RANGES = {
    "src_image_size_w": _Range(2, 4096, other=0),
    "src_image_size_h": _Range(1, 4096, other=0),
    **{f"{side}_padding_size": _Range(0, 32) for side in ("left", "right", "top", "bottom")},
    **{f"mean_chn_{channel}": _Range(0, 255) for channel in range(4)},
}
_OPTIONS = table_schema(
    dict.fromkeys(("global", "session", "graph"), map_schema({"type": "string"}, 0))
)
_ENGINE = table_schema({"compile options": _OPTIONS, "execute options": _OPTIONS})


def _find_name_faults(value: Any) -> Iterator[ValueFault]:
    for index, name in enumerate(value):
        prefix, colons, kind = name.partition("::")
        if colons and prefix == "OpType" and not re.fullmatch(r"[A-Z][a-zA-Z0-9]*", kind):
            right = kind[:1].upper() + kind[1:]
            hint = f"write OpType::{right}" if right.isalnum() else "write a type"
            yield ValueFault((index,), f"{kind!r} is not an operator type", hint)
        elif name.startswith("#"):
            what = f"{name!r} is read as the name of an operator"
            yield ValueFault((index,), what, "remove the line: the file takes no comments")


def _parse_blocks(text: str) -> Any:
    """Return the blocks of a protobuf text by name, None if it is invalid."""
    tokens = _split_tokens(text)
    if tokens is None:
        return None
    blocks: dict[str, list[TomlTable]] = {}
    rest = iter(tokens)
    for name in rest:
        opening = next(rest, "")
        if opening == ":":  # protobuf allows a colon before a block
            opening = next(rest, "")
        if not name.isidentifier() or opening != "{":
            return None
        fields = _parse_fields(rest)
        if fields is None:
            return None
        blocks.setdefault(name, []).append(fields)
    return blocks or None


def _split_tokens(text: str) -> list[str] | None:
    """Return the tokens of a protobuf text without blanks and comments, None if it is invalid."""
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        if match.lastgroup:
            tokens.append(match[0])
        position = match.end()
    return tokens


def _parse_fields(tokens: Iterator[str]) -> TomlTable | None:
    """Consume the tokens of a block up to its closing brace, and return its fields.

    None if it is unterminated or invalid.
    """
    fields: TomlTable = {}
    for name in tokens:
        if name == "}":
            return fields
        if name in (",", ";"):
            continue
        colon = next(tokens, "")
        value = next(tokens, "")
        if not name.isidentifier() or colon != ":" or not value or value in "{}:[],;<>":
            return None
        fields[name] = value
    return None


def _find_block_faults(value: Any) -> Iterator[ValueFault]:
    for name, blocks in value.items():
        if name != "aipp_op":
            yield ValueFault((name,), f"unknown block {name!r}", "write aipp_op")
            continue
        for index, fields in enumerate(blocks):
            yield from _find_field_faults(fields, (name, index))


def _find_field_faults(fields: dict[str, str], path: Path) -> Iterator[ValueFault]:
    for name in fields:
        # the fields of other products are not all listed: only similar names are reported
        if name not in _FIELDS and (hint := did_you_mean(name, _FIELDS)):
            yield ValueFault((*path, name), f"unknown field {name!r}", hint)
    mode = fields.get("aipp_mode")
    if mode not in _MODES:
        what = "no aipp_mode" if mode is None else f"{mode!r} is not a mode"
        hint = "write aipp_mode: static or aipp_mode: dynamic"
        yield ValueFault((*path, "aipp_mode"), what, hint)
    if mode == "dynamic" and "max_src_image_size" not in fields:
        what = "the dynamic mode needs max_src_image_size"
        hint = "write max_src_image_size: and a number of bytes"
        yield ValueFault((*path, "aipp_mode"), what, hint)
    form = fields.get("input_format", "")
    if form and form not in _FORMATS and (hint := did_you_mean(form, _FORMATS)):
        yield ValueFault((*path, "input_format"), f"{form!r} is not an image format", hint)
    for name, allowed in _RANGES.items():
        text = fields.get(name, "")
        if re.fullmatch(r"-?\d{1,18}", text, re.ASCII) and not allowed.contains(int(text)):
            hint = f"write {allowed.low} to {allowed.high}"
            yield ValueFault((*path, name), f"{name} is out of range", hint)


def _find_engine_faults(value: Any) -> Iterator[ValueFault]:
    for part, levels in value.items():
        if part not in _ENGINE["properties"]:
            hint = did_you_mean(part, _ENGINE["properties"], 'write "compile options"')
            yield ValueFault((part,), f"unknown key {part!r}", hint)
        for level, options in list_entries(levels):
            if level not in _OPTIONS["properties"]:
                hint = "write global, session or graph"
                yield ValueFault((part, level), f"unknown key {level!r}", hint)
            for name, text in list_entries(options):
                if not name or not isinstance(text, str):
                    hint = "write the key of an option, and its value in quotes"
                    yield ValueFault((part, level, name), f"{name!r} has no text", hint)


def _reject_formatting(value: Any) -> str:
    raise TypeError(value)  # presets contain the path of such a file


def _build_form(
    shape: str,
    schema: Schema,
    parse: Callable[[str], Any],
    find_faults: Callable[[Any], Iterator[ValueFault]],
    file: str,
    **named: Any,
) -> Structure:
    return Structure(
        shape,
        schema,
        parse,
        _reject_formatting,
        lambda value: list(find_faults(value)),
        file,
        **named,
    )


#: Structures by the name that flags use.
CONVERSIONS: dict[str, Structure] = {
    "kept-types": _build_form(
        "a name or OpType::Type a line",
        list_schema(NAME),
        lambda text: [line.strip() for line in text.split("\n") if line.strip()],
        _find_name_faults,
        "exceptionlist.cfg",
    ),
    "preprocessing": _build_form(
        "aipp_op { ... } for each input, with a field: value a line",
        {"type": "object"},
        _parse_blocks,
        _find_block_faults,
        "insert_op.cfg",
    ),
    "engine-options": _build_form(
        '{"compile options": {"session": {"ge.key": "value"}}}',
        _ENGINE,
        parse_json,
        _find_engine_faults,
        "ge_options.json",
        dropped=find_repeated_keys,
    ),
}
