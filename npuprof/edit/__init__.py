"""Changes to the text of a profile that keep its comments, order, layout and line endings.

Statements are moved as text; inside a value tomlkit makes the change. Each step is read again and compared with
the same change made to plain data: what does not come out exactly as asked is refused.
"""

from __future__ import annotations

import tomllib
from copy import deepcopy
from typing import Any

from npuprof.catalog import values
from npuprof.document import keys
from npuprof.edit import layout
from npuprof.edit.inline import replace_pair_value
from npuprof.edit.layout import Statement, format_dotted_key, has_path_prefix
from npuprof.edit.paths import MISSING, assign_at_path, find_at_path, is_same_document
from npuprof.model import Finding, NpuprofError, Path, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


__all__ = [
    "MISSING",
    "PathChange",
    "apply_changes",
    "assign_at_path",
    "build_edit_error",
    "cut_value",
    "find_at_path",
    "is_same_document",
    "put_value",
]

#: The tables of a profile in the order in which new ones are put.
_TABLE_ORDER = ("profile", "options", "append", "env", "estimator", "atc", "override")
_MAX_LINE_WIDTH = 120
#: From so many changes on it pays to look for those that only replace values.
_BULK_MINIMUM = 4


class PathChange(Record):
    """A value to put at a path, or MISSING to take away what is there.

    ``donor`` are the statements of another text to copy what is new from, its comments included; ``stale``
    tells of a comment line above what is taken away whether it goes too.
    """

    path: Path
    value: Any
    donor: list[Statement] | None = None
    stale: Callable[[str], bool] | None = None


def apply_changes(text: str, changes: Iterable[PathChange]) -> str:
    """Return the text of a profile with changes made. Raises NpuprofError (NP921) where one cannot be made.

    ``text`` is valid TOML with any line endings; they are kept, and new lines get those of the rest.
    """
    plain = text.replace("\r\n", "\n")
    whole = plain if plain.endswith("\n") or not plain else plain + "\n"
    expected = tomllib.loads(whole)
    wanted = list(changes)
    result = whole
    if len(wanted) > _BULK_MINIMUM:
        result, wanted = _apply_value_changes(whole, wanted, expected)
    for change in wanted:
        assign_at_path(expected, change.path, change.value)
        result = _apply_checked_change(result, change, expected)
    if result == whole:
        return text
    if whole != plain and result.splitlines()[-1:] == plain.splitlines()[-1:]:
        result = result[:-1]
    result = layout.keep_line_endings(text, result)
    if not is_same_document(tomllib.loads(result), expected):
        raise build_edit_error((), "the line endings cannot be kept")
    return result


def _apply_value_changes(text: str, changes: list[PathChange], expected: dict[str, Any]) -> tuple[str, list[PathChange]]:
    """Make all changes that only replace values, reading the text once; return it and the changes that are left.

    Nothing is done where a change bears on what another one changes, since their order counts then.
    """
    paths = {change.path for change in changes}
    if len(paths) < len(changes) or any(path[:end] in paths for path in paths for end in range(1, len(path))):
        return text, changes
    rows = layout.parse_statements(text)
    pairs = {row.path: row for row in rows if row.kind == "pair"}
    done, left = deepcopy(expected), []
    for change in changes:
        row = next((pairs[change.path[:end]] for end in range(1, len(change.path) + 1) if change.path[:end] in pairs), None)
        if row is None or (change.value is MISSING and row.path == change.path):
            left.append(change)
        else:
            replace_pair_value(row, change.path[len(row.path) :], change.value)
            assign_at_path(done, change.path, change.value)
    result = layout.join_statements(rows)
    if not is_same_document(tomllib.loads(result), done):
        return text, changes
    expected.clear()
    expected.update(done)
    return result, left


def _apply_checked_change(text: str, change: PathChange, expected: dict[str, Any]) -> str:
    """Make one change; if copying from the donor does not give what is asked, write it anew."""
    for donor in (change.donor, None) if change.donor else (None,):
        result = (
            cut_value(text, change.path, change.stale) if change.value is MISSING else put_value(text, change.path, change.value, donor)
        )
        try:
            if is_same_document(tomllib.loads(result), expected):
                return result
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
    raise build_edit_error(change.path, "read again, the text is not what was asked for")


def build_edit_error(path: Path, what: str) -> NpuprofError:
    """Return the error of an edit that cannot be made without harm."""
    shown = keys.format_key_path("", path).lstrip(".") or "the file"
    why = "An edit is read again before it is written; this one would have changed something else, or not what was meant."
    return NpuprofError([Finding("NP921", "error", f"cannot edit {shown}: {what}", why, "make this change by hand", key=shown)])


def put_value(text: str, path: Path, value: Any, donor: list[Statement] | None = None) -> str:
    """Return the text with a value at a path."""
    rows = layout.parse_statements(text)
    for row in rows:
        if row.kind == "pair" and has_path_prefix(path, row.path):
            replace_pair_value(row, path[len(row.path) :], value)
            return layout.join_statements(rows)
    if not any(row.kind in ("header", "pair") and has_path_prefix(row.path, path) for row in rows):
        return _insert_value(rows, path, value, donor)
    old = find_at_path(tomllib.loads(text), path)
    if isinstance(value, dict) and isinstance(old, dict):
        for name in old:
            if name not in value:
                text = cut_value(text, (*path, name))
        for name, item in value.items():
            if name not in old or not values.is_same_typed_value(item, old[name]):
                text = put_value(text, (*path, name), item, donor)
        return text
    return put_value(cut_value(text, path), path, value, donor)


def cut_value(text: str, path: Path, stale: Callable[[str], bool] | None = None) -> str:
    """Return the text without what is at a path; comment lines above it stay unless ``stale`` says otherwise."""
    rows = layout.parse_statements(text)
    for row in rows:
        if row.kind == "pair" and has_path_prefix(path, row.path) and row.path != path:
            replace_pair_value(row, path[len(row.path) :], MISSING)
            return layout.join_statements(rows)
    gone: set[int] = set()
    for index, row in enumerate(rows):
        if row.kind in ("header", "pair") and has_path_prefix(row.path, path):
            end = layout.find_table_end(rows, index) if row.kind == "header" else index + 1
            gone.update(range(index, end))
            first = layout.find_lead_start(rows, index)
            gone.update(place for place in range(first, index) if stale and stale(rows[place].text.strip()))
    result = layout.join_statements(_drop_cut_rows(rows, gone))
    if gone and len(path) > 2 and find_at_path(tomllib.loads(result), path[:-1]) is MISSING:
        return put_value(result, path[:-1], {})  # a table made of dotted keys went with the last of them
    return result


def _drop_cut_rows(rows: list[Statement], gone: set[int]) -> list[Statement]:
    """Return the rows that stay, without the second of two blank lines that now meet."""
    kept: list[Statement] = []
    joined = False
    for index, row in enumerate(rows):
        if index in gone:
            joined = True
        elif joined and row.kind == "blank" and (not kept or kept[-1].kind == "blank"):
            joined = False
        else:
            joined = False
            kept.append(row)
    if joined and kept and kept[-1].kind == "blank":
        kept.pop()
    return kept


def _insert_value(rows: list[Statement], path: Path, value: Any, donor: list[Statement] | None) -> str:
    """Put what is new where its like stands: after its table's last pair, or as a table of its own."""
    if donor is not None and (block := _copy_donor_tables(donor, path)):
        return _insert_block(rows, path, block)
    if isinstance(value, list) and len(path) == 1 and value and all(isinstance(item, dict) for item in value):
        return _insert_block(rows, path, [Statement("pair", "\n".join(_format_table_element(path, item) for item in value))])
    if len(path) > 1 and isinstance(path[-1], int):
        return _insert_block(rows, path, [Statement("pair", _format_table_element(path[:-1], value))])
    parent = path[:-1]
    while parent and not any(row.kind in ("header", "pair") and has_path_prefix(row.path, parent) for row in rows):
        parent = parent[:-1]
    fresh = path[:2] if path[0] == "append" and len(path) > 2 else path[:1]
    explicit = any(row.kind == "header" and row.path == parent for row in rows)
    if len(parent) < len(fresh) and not explicit and (len(path) > len(fresh) or isinstance(value, dict)):
        for part in reversed(path[len(fresh) :]):
            value = {part: value}
        return _insert_block(rows, path, [Statement("header", _format_table(fresh, value))])
    for part in reversed(path[len(parent) + 1 :]):
        value = {part: value}
    return _insert_pair(rows, parent, path[len(parent)], value, donor)


def _insert_pair(rows: list[Statement], parent: Path, name: Any, value: Any, donor: list[Statement] | None) -> str:
    head = next((index for index, row in enumerate(rows) if row.kind == "header" and row.path == parent), None)
    near = [index for index, row in enumerate(rows) if row.kind == "pair" and has_path_prefix(row.path, parent)]
    if head is not None or not parent:
        inside = [index for index in near if rows[index].table == parent]
        place = _find_place_after_sibling(rows, inside, donor, (*parent, name)) or (
            inside[-1] + 1 if inside else 0 if head is None else head + 1
        )
        indent = rows[inside[-1]].indent if inside else "" if head is None else rows[head].indent
        key = keys.format_key_segment(str(name))
    elif near:
        place, indent = near[-1] + 1, rows[near[-1]].indent
        key = format_dotted_key((*parent[len(rows[near[-1]].table) :], name))
    else:
        place = layout.find_lead_start(
            rows, next(i for i, row in enumerate(rows) if row.kind == "header" and has_path_prefix(row.path, parent))
        )
        text = _format_table(parent, {name: value}) + "\n"
        return layout.join_statements([*rows[:place], Statement("header", text), *rows[place:]])
    text = f"{indent}{key} = {_format_pair_value(value, indent, len(key))}\n"
    if donor is not None:
        for index, row in enumerate(donor):
            if row.kind == "pair" and row.path == (*parent, name) and row.table == parent:
                text = layout.join_statements(donor[layout.find_lead_start(donor, index) : index + 1])
    return layout.join_statements([*rows[:place], Statement("pair", text), *rows[place:]])


def _find_place_after_sibling(rows: list[Statement], inside: list[int], donor: list[Statement] | None, path: Path) -> int | None:
    """Return the place after the pair that precedes ``path`` in the donor, and what only stands here, if it is there."""
    if donor is None:
        return None
    before = [row.path for row in donor if row.kind == "pair" and row.table == path[:-1]]
    places = {rows[index].path: index for index in inside}
    if path not in before:
        return None
    place = next((places[other] for other in reversed(before[: before.index(path)]) if other in places), None)
    while place is not None and place + 1 in inside and rows[place + 1].path not in before:
        place += 1
    return None if place is None else place + 1


def _copy_donor_tables(donor: list[Statement], path: Path) -> list[Statement]:
    """Return the tables at and below a path as they stand in the donor, with the comments above them."""
    found: list[Statement] = []
    for index, row in enumerate(donor):
        if row.kind == "header" and has_path_prefix(row.path, path):
            if found:
                found.append(Statement("blank", "\n"))
            found += donor[layout.find_lead_start(donor, index) : layout.find_table_end(donor, index)]
    return found


def _insert_block(rows: list[Statement], path: Path, block: list[Statement]) -> str:
    """Put whole tables after their like, else where their section goes, with a blank line on each side."""
    heads = [index for index, row in enumerate(rows) if row.kind == "header"]
    place = len(rows)
    for depth in range(len(path), 0, -1):
        alike = [index for index in heads if has_path_prefix(rows[index].path, path[:depth])]
        if alike:
            place = layout.find_table_end(rows, alike[-1])
            break
    else:
        later = [index for index in heads if _rank_table(rows[index].path) > _rank_table(path)]
        if later:
            place = layout.find_lead_start(rows, later[0])
    before, after = rows[:place], rows[place:]
    blank = Statement("blank", "\n")
    opening = [blank] if before and before[-1].kind != "blank" else []
    closing = [blank] if after and after[0].kind != "blank" else []
    return layout.join_statements([*before, *opening, *block, *closing, *after])


def _rank_table(path: Path) -> int:
    return _TABLE_ORDER.index(path[0]) if path[0] in _TABLE_ORDER else len(_TABLE_ORDER)


def _format_table(path: Path, value: Any) -> str:
    """Return a table with its header."""
    return f"[{format_dotted_key(path)}]\n" + "".join(
        f"{keys.format_key_segment(n)} = {_format_pair_value(item, '', len(n))}\n" for n, item in value.items()
    )


def _format_table_element(path: Path, value: dict[str, Any]) -> str:
    return f"[{_format_table(path, value)}".replace("]\n", "]]\n", 1)


def _format_pair_value(value: Any, indent: str, used: int) -> str:
    """Return a value as TOML: on one line, or a long list with a line for each element."""
    text = keys.format_toml_value(value)
    if isinstance(value, list) and len(value) > 1 and len(indent) + used + len(text) > _MAX_LINE_WIDTH:
        inner = "".join(f"{indent}    {keys.format_toml_value(item)},\n" for item in value)
        return f"[\n{inner}{indent}]"
    return text
