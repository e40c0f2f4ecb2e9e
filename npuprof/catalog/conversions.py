"""Files named only by ATC flags: operators that keep their types, image preprocessing,
engine options.

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
    Fault,
    Schema,
    Structure,
    list_entries,
    list_schema,
    map_schema,
    table_schema,
)
from npuprof.catalog.structures import parse_json
from npuprof.model import Path, did_you_mean

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<word>[A-Za-z_]\w*)|(?P<mark>[{}:\[\],;<>])
    |(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?f?)""",
    re.VERBOSE | re.ASCII,
)
_MODES, _FORMATS = ("static", "dynamic"), ("YUV420SP_U8", "XRGB8888_U8", "RGB888_U8", "YUV400_U8")
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
#: Allowed numbers of fields: minimum, maximum, and one further number.
_RANGES: dict[str, tuple[int, int, int | None]] = {
    "src_image_size_w": (2, 4096, 0),
    "src_image_size_h": (1, 4096, 0),
    **{f"{side}_padding_size": (0, 32, None) for side in ("left", "right", "top", "bottom")},
    **{f"mean_chn_{channel}": (0, 255, None) for channel in range(4)},
}
_OPTIONS = table_schema(
    dict.fromkeys(("global", "session", "graph"), map_schema({"type": "string"}, 0))
)
_ENGINE: Schema = table_schema({"compile options": _OPTIONS, "execute options": _OPTIONS})


def _parse_names(text: str) -> Any:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _find_name_faults(value: Any) -> Iterator[Fault]:
    for index, name in enumerate(value):
        prefix, colons, kind = name.partition("::")
        if colons and prefix == "OpType" and not re.fullmatch(r"[A-Z][a-zA-Z0-9]*", kind):
            right = kind[:1].upper() + kind[1:]
            yield (
                (index,),
                f"{kind!r} is not an operator type",
                f"write OpType::{right}" if right.isalnum() else "write a type",
            )
        elif name.startswith("#"):
            yield (
                (index,),
                f"{name!r} is read as the name of an operator",
                "remove the line: the file takes no comments",
            )


def _parse_blocks(text: str) -> Any:
    """Return the blocks of a protobuf text by name, None if it is invalid."""
    tokens: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        if match.lastgroup:
            tokens.append(match[0])
        at = match.end()
    blocks: dict[str, list[dict[str, Any]]] = {}
    place = 0
    while place < len(tokens):
        name = tokens[place]
        place += 1 + (tokens[place + 1 : place + 2] == [":"])
        if not name.isidentifier() or tokens[place : place + 1] != ["{"]:
            return None
        read = _parse_fields(tokens, place + 1)
        if read is None:
            return None
        fields, place = read
        blocks.setdefault(name, []).append(fields)
    return blocks or None


def _parse_fields(tokens: list[str], place: int) -> tuple[dict[str, Any], int] | None:
    """Return the fields of a block and the position after it.

    None if it is unterminated or invalid.
    """
    fields: dict[str, Any] = {}
    while place < len(tokens):
        name = tokens[place]
        if name in ("}", ",", ";"):
            place += 1
            if name == "}":
                return fields, place
            continue
        value = tokens[place + 2 : place + 3]
        if (
            not name.isidentifier()
            or not value
            or tokens[place + 1] != ":"
            or value[0] in set("{}:[],;<>")
        ):
            return None
        fields[name] = value[0]
        place += 3
    return None


def _find_block_faults(value: Any) -> Iterator[Fault]:
    for name, blocks in value.items():
        if name != "aipp_op":
            yield (name,), f"unknown block {name!r}", "write aipp_op"
            continue
        for index, fields in enumerate(blocks):
            yield from _find_field_faults(fields, (name, index))


def _find_field_faults(fields: dict[str, str], path: Path) -> Iterator[Fault]:
    for name in fields:
        if name not in _FIELDS and (
            hint := did_you_mean(name, _FIELDS, "")
        ):  # the fields of other products are not all listed
            yield (*path, name), f"unknown field {name!r}", hint
    mode = fields.get("aipp_mode")
    if mode not in _MODES:
        what = "no aipp_mode" if mode is None else f"{mode!r} is not a mode"
        yield (*path, "aipp_mode"), what, "write aipp_mode: static or aipp_mode: dynamic"
    if mode == "dynamic" and "max_src_image_size" not in fields:
        yield (
            (*path, "aipp_mode"),
            "the dynamic mode needs max_src_image_size",
            "write max_src_image_size: and a number of bytes",
        )
    form = fields.get("input_format", "")
    if form and form not in _FORMATS and (hint := did_you_mean(form, _FORMATS, "")):
        yield (*path, "input_format"), f"{form!r} is not an image format", hint
    for name, (low, high, also) in _RANGES.items():
        number = fields.get(name, str(low))
        if (
            re.fullmatch(r"-?\d{1,18}", number, re.ASCII)
            and not low <= int(number) <= high
            and int(number) != also
        ):
            yield (*path, name), f"{name} is out of range", f"write {low} to {high}"


def _find_engine_faults(value: Any) -> Iterator[Fault]:
    for part, levels in value.items():
        if part not in _ENGINE["properties"]:
            yield (
                (part,),
                f"unknown key {part!r}",
                did_you_mean(part, _ENGINE["properties"], 'write "compile options"'),
            )
        for level, options in list_entries(levels):
            if level not in _OPTIONS["properties"]:
                yield (part, level), f"unknown key {level!r}", "write global, session or graph"
            for name, text in list_entries(options):
                if not name or not isinstance(text, str):
                    yield (
                        (part, level, name),
                        f"{name!r} has no text",
                        "write the key of an option, and its value in quotes",
                    )


def _refuse_to_write(value: Any) -> str:
    raise TypeError(value)  # presets contain the path of such a file


def _build_form(
    shape: str,
    schema: Schema,
    parse: Callable[[str], Any],
    find_faults: Callable[[Any], Iterator[Fault]],
    file: str,
    **named: Any,
) -> Structure:
    return Structure(
        shape,
        schema,
        parse,
        _refuse_to_write,
        lambda value: list(find_faults(value)),
        file,
        **named,
    )


#: Structures by the name that flags use.
CONVERSIONS: dict[str, Structure] = {
    "kept-types": _build_form(
        "a name or OpType::Type a line",
        list_schema(NAME),
        _parse_names,
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
