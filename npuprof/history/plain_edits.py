"""Edits of plain values, recognised by their lines.

Most of a long history then need not be resolved.
"""

from __future__ import annotations

from itertools import compress, count
from operator import ne

from npuprof.catalog import values
from npuprof.document import keys
from npuprof.model import Record
from npuprof.system import lazy_pattern

#: A line that sets a plain value.
_PLAIN = lazy_pattern(
    rb"[ \t]*(?P<key>[A-Za-z0-9_-]+)[ \t]*=[ \t]*"
    rb'(?P<value>true|false|[+-]?(?:0|[1-9][0-9]{0,17})|"[ !#-\[\]-~]*")'
    rb"[ \t]*(?:#[\t -~]*)?\r?"
)
#: The headers below which such lines are compared.
_SECTIONS = {b"[options]": "options", b"[env]": "env", b"[atc]": "atc", b"[estimator]": "estimator"}


class PlainEdit(Record):
    """An edited line, and its earlier value."""

    line: int
    value: bool | int | str


#: The edited settings.
PlainEdits = dict[str, PlainEdit]


def find_plain_edits(old: bytes, new: bytes) -> PlainEdits | None:
    """Return the edits of settings between two texts of a preset, of which one is valid.

    None if the texts differ in anything but plain values, or if an edited value starts in another
    column.
    """
    olds = old.split(b"\n")
    news = new.split(b"\n")
    # a line inside a multi-line string may look like an assignment
    if len(olds) != len(news) or b'"""' in new or b'"""' in old or b"'''" in new or b"'''" in old:
        return None
    edits = {}
    for index in compress(count(), map(ne, olds, news)):  # faster than a loop over all lines
        # headers differ in no line, so that both texts have the same section here
        above = reversed(news[:index])
        header = next((line for line in above if line.lstrip().startswith(b"[")), b"")
        section = _SECTIONS.get(header.strip())
        if section is None:
            return None
        before = _PLAIN.fullmatch(olds[index])
        after = _PLAIN.fullmatch(news[index])
        if (
            before is None
            or after is None
            or before["key"] != after["key"]
            # origins cite the column
            or before.start("value") != after.start("value")
        ):
            return None
        edited = keys.format_full_key(section, after["key"].decode())
        # a text with a structure is compared by its parts
        if values.find_structure(edited) is not None:
            return None
        edits[edited] = PlainEdit(index + 1, _read_value(before["value"].decode()))
    return edits


def _read_value(text: str) -> bool | int | str:
    if text.startswith('"'):
        return text[1:-1]
    return text == "true" if text in ("true", "false") else int(text)
