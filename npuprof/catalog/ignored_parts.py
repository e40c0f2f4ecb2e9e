"""Parts of a file that CANN silently ignores: duplicates and invalid lines."""

from __future__ import annotations

from collections.abc import Iterator

from npuprof.catalog.shapes import IgnoredPart
from npuprof.system import lazy_pattern

_JSON_TOKEN = lazy_pattern(r'"(?:\\.|[^"\\])*"(?P<colon>\s*:)?|[{}\[\]]')
_TAGS = ("[ByOpType]", "[ByNodeName]")
_DEBUG_KEY = lazy_pattern(r"op_debug_(?:config|list)\s*=\s*\S")


def _shorten(text: str) -> str:
    return text if len(text) <= 72 else f"{text[:69]}..."


def find_repeated_keys(text: str) -> list[IgnoredPart]:
    """Return duplicate keys in the objects of a JSON text; empty if the text is not JSON."""
    import json

    open_tables: list[set[str]] = []
    repeated = []
    for token in _JSON_TOKEN.finditer(text):
        if token[0] in "{[":
            open_tables.append(set())
        elif token[0] in "}]":
            open_tables = open_tables[:-1]
        elif token["colon"] and open_tables:
            try:
                name = json.loads(token[0].removesuffix(token["colon"]), strict=False)
            except ValueError:
                return []
            if name in open_tables[-1]:
                line = text.count("\n", 0, token.start()) + 1
                what = f"{_shorten(name)} is set twice: the last one counts"
                repeated.append(IgnoredPart(line, what, "write it once"))
            open_tables[-1].add(name)
    return repeated


def find_dropped_modes(text: str) -> Iterator[IgnoredPart]:
    """Yield the ignored lines of an op_precision.ini."""
    section = _TAGS[0]
    named = set()
    for number, line in enumerate(text.split("\n"), 1):
        name, equals, mode = (part.strip() for part in line.partition("="))
        if line.startswith("#") or not line.strip() or (not equals and name.startswith("#")):
            continue
        if not equals and name in _TAGS:
            section = name
        elif not equals and name.startswith("["):
            what = f"unknown tag {_shorten(name)}: the lines after it are read as part of {section}"
            yield IgnoredPart(number, what, f"write {' or '.join(_TAGS)}")
        elif not equals:
            left, colon, right = (part.strip() for part in name.partition(":"))
            hint = (
                f"write {_shorten(f'{left}={right}')}" if colon else "write Conv2D=high_precision"
            )
            yield IgnoredPart(number, f"{_shorten(name)} is not a line Name=mode", hint)
        elif not name or not mode:
            what = f"{_shorten(line.strip())} has no {'mode' if name else 'name'}"
            yield IgnoredPart(number, what, "write Name=mode, or omit it")
        elif (section, name) in named:
            what = f"{_shorten(name)} is set twice in {section}: the first line counts"
            yield IgnoredPart(number, what, "write it once")
        else:
            named.add((section, name))


def find_repeated_rules(text: str) -> Iterator[IgnoredPart]:
    """Yield the lines of a customize_dtypes.cfg for an operator of an earlier line."""
    named = set()
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        by_type = "OpType::" if line.startswith("OpType::") else ""
        name = by_type + line.strip().removeprefix("OpType::").partition(":")[0]
        if name in named:
            what = f"{_shorten(name)} is set twice: the first line counts"
            yield IgnoredPart(number, what, "write it once")
        named.add(name)


def find_dropped_debug_lines(text: str) -> Iterator[IgnoredPart]:
    """Yield the ignored lines of an op_debug.cfg: the last line of a key wins."""
    last: dict[str, int] = {}
    for number, line in enumerate(map(str.strip, text.split("\n")), 1):
        if not line or line.startswith("#"):
            continue
        if not _DEBUG_KEY.search(line):
            what = f"{_shorten(line)} is not a line op_debug_config=... or op_debug_list=..."
            yield IgnoredPart(number, what, "correct it, or omit it")
            continue
        name = line.partition("=")[0].strip()
        if name in last:
            what = f"{_shorten(name)} is set twice: the last line counts"
            yield IgnoredPart(last[name], what, "write it once")
        last[name] = number
