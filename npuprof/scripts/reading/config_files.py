"""JSON files with the settings of a section, such as ``config.json`` of MindIE, and their parts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain

from npuprof import catalog
from npuprof.catalog import build_finding
from npuprof.document.json_tree import read_json_tree
from npuprof.model import Finding, Place
from npuprof.scripts.reading.program_arguments import read_table
from npuprof.scripts.reading.trees import Node, iterate_collections, iterate_tables
from npuprof.scripts.script_records import ImportedFile, Site
from npuprof.scripts.words import has_any

_Path = tuple[str, ...]
_Pairs = list[tuple[Node, Node]]
#: The minimum of known keys in a file, and in a block of a guide; those like maxSeqLen count twice.
_IN_FILE, _IN_GUIDE = 4, 3
_TWO_CAPITALS = re.compile("[A-Z].*[A-Z]")


@cache
def _index_names(section: str) -> dict[str, set[_Path]]:
    """Return the paths of the tables in which files of a section have a name."""
    index: dict[str, set[_Path]] = {}
    for name in catalog.load_sections()[section].names:
        parts = tuple(name.split("."))
        for end, part in enumerate(parts):
            index.setdefault(part, set()).add(parts[:end])
    return index


@cache
def _list_mentions(in_guide: bool) -> list[bytes]:
    sections = catalog.list_file_sections()
    names = [*chain(*sections.values())]
    names += [f'"{name}"' for name in chain(*map(_index_names, sections)) if in_guide]
    return [name.encode() for name in names]


def mentions_config_file(data: bytes, in_guide: bool = False) -> bool:
    """Return whether a file names a table of such files; a guide any key of them."""
    return has_any(data, _list_mentions(in_guide))


def find_config_section(table: Node) -> str:
    """Return the section whose settings a table has, with most of its keys; empty for others."""
    section = catalog.find_file_section([str(key.value) for key, _ in table.pairs or ()])
    return section if section and _is_of_section(section, (), table, _IN_FILE) else ""


def _is_of_section(section: str, path: _Path, table: Node, least: int) -> bool:
    """Return whether most keys of a table are of a section, and enough that few others have."""
    names = [*_list_names(section, path, table)]
    return _is_enough([name for name, is_known in names if is_known], len(names), least)


def _is_enough(known: list[str], count: int, least: int) -> bool:
    weight = len(known) + sum(map(bool, map(_TWO_CAPITALS.search, known)))
    return weight >= least and len(known) * 2 >= count


def _list_names(section: str, path: _Path, node: Node) -> Iterator[tuple[str, bool]]:
    """Yield the keys of a table, and whether the section has them there."""
    for key, value in node.pairs or ():
        inner = (*path, str(key.value))
        below = catalog.list_settings_below(section, ".".join(inner))
        yield inner[-1], bool(below)
        for table in [value, *(value.items or [])] if len(below) > 1 else ():
            yield from _list_names(section, inner, table)


def read_config_table(path: str, section: str, table: Node, place: str = "") -> ImportedFile:
    """Return the settings of a table, its site if nothing is left out, and keys that count twice.

    The scope has the section, the line of the table and its place.
    """
    scope = f"{section}@{table.line} {place}"
    problems = list(drop_doubles(path, catalog.load_sections()[section].title, table))
    found = read_table(path, section, (section,), table)
    settings = [setting._replace(scope=scope) for setting in found]
    is_whole = not any(node.is_open for _, node in iterate_collections([table]))
    site = Site(scope, section, *table.position, closed=is_whole)
    return ImportedFile(path, tuple(settings), (site,), tuple(problems))


def drop_doubles(path: str, reader: str, root: Node) -> Iterator[Finding]:
    """Yield a finding for each key that a table has twice, and keep the last one."""
    for table in iterate_tables([root]):
        # names like _comment are comments, which JSON lacks
        table.pairs = [pair for pair in table.pairs or () if not str(pair[0].value).startswith("_")]
        last: dict[object, tuple[Node, Node]] = {}
        for key, value in table.pairs:
            if first := last.get(key.value):
                what = f"{key.value} is in this table twice, first in line {first[0].line}"
                why = f"{reader} takes this one, and ignores the one above."
                where = Place(path, *key.position)
                yield build_finding("NP836", what, why, "remove one of them", where=where)
            last[key.value] = key, value
        table.pairs = [*last.values()]


def find_config_parts(text: str) -> list[tuple[str, Node]]:
    """Return the tables in a block of a guide, each from the top, with their sections."""
    tree = read_json_tree(text)
    if (part := _find_part(tree)) is not None:
        return [part]
    tables = [(find_config_section(table), table) for table in iterate_tables([tree])]
    return [(section, table) for section, table in tables if section]


def _find_part(tree: Node) -> tuple[str, Node] | None:
    """Return the section of a block, and its table from the top; None for others.

    A block may have a part of a file only, or keys of several tables side by side.
    """
    for section in catalog.list_file_sections():
        index = _index_names(section)
        found = [(pair, index.get(str(pair[0].value), set())) for pair in tree.pairs or ()]
        known = [str(key.value) for (key, _), paths in found if paths]
        count = Counter(path for _, paths in found for path in paths)
        for path in sorted(count, key=lambda path: (-count[path], path)):
            if _is_of_section(section, path, tree, _IN_GUIDE) or _is_enough(
                known, len(found), _IN_GUIDE
            ):
                root = Node(*tree.position)
                root.pairs = []
                tables: dict[_Path, _Pairs] = {(): root.pairs}
                for pair, paths in found:
                    (own,) = paths if len(paths) == 1 else (path,)
                    _open_table(section, tables, own, pair[0]).append(pair)
                return section, root
    return None


def _open_table(section: str, tables: dict[_Path, _Pairs], path: _Path, near: Node) -> _Pairs:
    """Return the pairs of the table at a path, which begins where its first key is."""
    if path not in tables:
        value = table = Node(*near.position)
        table.is_open = True
        table.pairs = tables[path] = []
        record = catalog.find_setting(section, ".".join(path))
        if record and record.kind == "list":
            value = Node(*near.position)
            value.items = [table]
        key = Node(*near.position, path[-1])
        _open_table(section, tables, path[:-1], near).append((key, value))
    return tables[path]
