"""Edits of plain values, found by comparing the lines of two texts.

Most of a long history then need not be resolved.
"""

from __future__ import annotations

from functools import lru_cache

from npuprof.document import parse_document
from npuprof.model import TomlTable, TomlValue
from npuprof.system import count_common, lazy_pattern

#: A line that sets a plain value, or has a comment only, or nothing; a table or list may be plain.
_PLAIN = lazy_pattern(
    r"[ \t]*(?:(?P<key>[A-Za-z0-9_-]+)[ \t]*=[ \t]*"
    r"""(?P<value>true|false|[+-]?(?:0|[1-9][0-9]{0,17})|"[ !#-\[\]-~]*"|'[ -&(-~]*'"""
    r"|(?P<nested>[\[{][\t -\"$-~]*[\]}]))[ \t]*)?"
    r"(?:#[^\x00-\x08\x0a-\x1f\x7f]*)?\r?"
)
#: The headers below which such lines are settings.
_SECTIONS = {"[options]": "options", "[env]": "env", "[atc]": "atc", "[estimator]": "estimator"}

#: The earlier values of edited settings by section and name, None for one that was not set.
Edits = dict[tuple[str, str], "TomlValue"]


def find_edits(old: str, new: str, data: TomlTable) -> Edits | None:
    """Return the edits of settings between two texts of a preset; ``data`` is that of the new one.

    Lines that only have other places, blanks or comments are no edits. None if anything but plain
    values may differ, or if the old text may be invalid. Raises NpuprofError for a list or table of
    several lines.
    """
    olds, news = _split_lines(old), _split_lines(new)
    if not olds or not news:
        return None
    start = count_common(olds, news)
    end = count_common(olds[start:][::-1], news[start:][::-1])
    headers = (line.strip() for line in reversed(news[:start]) if line.lstrip().startswith("["))
    header = next(headers, "")
    before, others = _read_lines(olds[start : len(olds) - end], header)
    after, same = _read_lines(news[start : len(news) - end], header)
    if others != same:
        return None
    edits = {}
    for path in {**before, **after}:
        value = before.get(path)
        if value == after.get(path):
            continue
        section, key = _SECTIONS[path[0]], path[1]
        # the old text sets it twice, if another line sets it now
        if path not in after and data[section].get(key) is not None:
            return None
        edits[section, key] = _read_value(value) if value else None
    return edits


@lru_cache(8)  # the old text is the new one of the next edit
def _split_lines(text: str) -> list[str]:
    """Return the lines of a text, which no caller changes; none if it has multi-line strings.

    A line inside such a string may look like an assignment.
    """
    return [] if '"""' in text or "'''" in text else text.split("\n")


def _read_lines(lines: list[str], header: str) -> tuple[dict[tuple[str, str], str], list[str]]:
    """Return the plain values below a header, by header and key, and the other lines."""
    found = {}
    others = []
    for line in lines:
        plain = _PLAIN.fullmatch(line)
        if plain and plain["nested"]:
            _read_value(plain["nested"])  # may go on below
        path = header, plain["key"] if plain else ""
        # overrides have headers in common
        if not plain or path in found or (plain["key"] and header not in _SECTIONS):
            others.append(line)
            header = line.strip() if line.lstrip().startswith("[") else header
        elif plain["key"]:
            found[path] = plain["value"]
    return found, others


@lru_cache(64)
def _read_value(text: str) -> TomlValue:
    """Return a value, which no caller changes. Raises NpuprofError."""
    if text[0] in "[{":
        return parse_document("", "", f"[v]\nv = {text}").data["v"]["v"]
    if text[0] in "\"'":
        return text[1:-1]
    return text == "true" if text in ("true", "false") else int(text)
