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
from npuprof.edit.inline import revalue
from npuprof.edit.layout import Statement, dotted, starts
from npuprof.edit.tree import MISSING, assign, at, same
from npuprof.model import Finding, NpuprofError, Path, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


__all__ = ["MISSING", "Change", "assign", "at", "cut", "edited", "put", "refused", "same"]

#: The tables of a profile in the order in which new ones are put.
_ORDER = ("profile", "options", "append", "env", "estimator", "atc", "override")
_WIDE = 120
#: From so many changes on it pays to look for those that only replace values.
_MANY = 4


class Change(Record):
    """A value to put at a path, or MISSING to take away what is there.

    ``donor`` are the statements of another text to copy what is new from, its comments included; ``stale``
    tells of a comment line above what is taken away whether it goes too.
    """

    path: Path
    value: Any
    donor: list[Statement] | None = None
    stale: Callable[[str], bool] | None = None


def edited(text: str, changes: Iterable[Change]) -> str:
    """Return the text of a profile with changes made. Raises NpuprofError (NP921) where one cannot be made.

    ``text`` is valid TOML with any line endings; they are kept, and new lines get those of the rest.
    """
    plain = text.replace("\r\n", "\n")
    whole = plain if plain.endswith("\n") or not plain else plain + "\n"
    expected = tomllib.loads(whole)
    wanted = list(changes)
    result = whole
    if len(wanted) > _MANY:
        result, wanted = _values(whole, wanted, expected)
    for change in wanted:
        assign(expected, change.path, change.value)
        result = _checked(result, change, expected)
    if result == whole:
        return text
    if whole != plain and result.splitlines()[-1:] == plain.splitlines()[-1:]:
        result = result[:-1]
    result = layout.endings(text, result)
    if not same(tomllib.loads(result), expected):
        raise refused((), "the line endings cannot be kept")
    return result


def _values(text: str, changes: list[Change], expected: dict[str, Any]) -> tuple[str, list[Change]]:
    """Make all changes that only replace values, reading the text once; return it and the changes that are left.

    Nothing is done where a change bears on what another one changes, since their order counts then.
    """
    paths = {change.path for change in changes}
    if len(paths) < len(changes) or any(path[:end] in paths for path in paths for end in range(1, len(path))):
        return text, changes
    rows = layout.read(text)
    pairs = {row.path: row for row in rows if row.kind == "pair"}
    done, left = deepcopy(expected), []
    for change in changes:
        row = next((pairs[change.path[:end]] for end in range(1, len(change.path) + 1) if change.path[:end] in pairs), None)
        if row is None or (change.value is MISSING and row.path == change.path):
            left.append(change)
        else:
            revalue(row, change.path[len(row.path) :], change.value)
            assign(done, change.path, change.value)
    result = layout.join(rows)
    if not same(tomllib.loads(result), done):
        return text, changes
    expected.clear()
    expected.update(done)
    return result, left


def _checked(text: str, change: Change, expected: dict[str, Any]) -> str:
    """Make one change; if copying from the donor does not give what is asked, write it anew."""
    for donor in (change.donor, None) if change.donor else (None,):
        result = cut(text, change.path, change.stale) if change.value is MISSING else put(text, change.path, change.value, donor)
        try:
            if same(tomllib.loads(result), expected):
                return result
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
    raise refused(change.path, "read again, the text is not what was asked for")


def refused(path: Path, what: str) -> NpuprofError:
    """Return the error of an edit that cannot be made without harm."""
    shown = keys.show("", path).lstrip(".") or "the file"
    why = "An edit is read again before it is written; this one would have changed something else, or not what was meant."
    return NpuprofError([Finding("NP921", "error", f"cannot edit {shown}: {what}", why, "make this change by hand", key=shown)])


def put(text: str, path: Path, value: Any, donor: list[Statement] | None = None) -> str:
    """Return the text with a value at a path."""
    rows = layout.read(text)
    for row in rows:
        if row.kind == "pair" and starts(path, row.path):
            revalue(row, path[len(row.path) :], value)
            return layout.join(rows)
    if not any(row.kind in ("header", "pair") and starts(row.path, path) for row in rows):
        return _insert(rows, path, value, donor)
    old = at(tomllib.loads(text), path)
    if isinstance(value, dict) and isinstance(old, dict):
        for name in old:
            if name not in value:
                text = cut(text, (*path, name))
        for name, item in value.items():
            if name not in old or not values.same(item, old[name]):
                text = put(text, (*path, name), item, donor)
        return text
    return put(cut(text, path), path, value, donor)


def cut(text: str, path: Path, stale: Callable[[str], bool] | None = None) -> str:
    """Return the text without what is at a path; comment lines above it stay unless ``stale`` says otherwise."""
    rows = layout.read(text)
    for row in rows:
        if row.kind == "pair" and starts(path, row.path) and row.path != path:
            revalue(row, path[len(row.path) :], MISSING)
            return layout.join(rows)
    gone: set[int] = set()
    for index, row in enumerate(rows):
        if row.kind in ("header", "pair") and starts(row.path, path):
            end = layout.region(rows, index) if row.kind == "header" else index + 1
            gone.update(range(index, end))
            first = layout.lead(rows, index)
            gone.update(place for place in range(first, index) if stale and stale(rows[place].text.strip()))
    result = layout.join(_tidy(rows, gone))
    if gone and len(path) > 2 and at(tomllib.loads(result), path[:-1]) is MISSING:
        return put(result, path[:-1], {})  # a table made of dotted keys went with the last of them
    return result


def _tidy(rows: list[Statement], gone: set[int]) -> list[Statement]:
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


def _insert(rows: list[Statement], path: Path, value: Any, donor: list[Statement] | None) -> str:
    """Put what is new where its like stands: after its table's last pair, or as a table of its own."""
    if donor is not None and (block := _block(donor, path)):
        return _insert_block(rows, path, block)
    if isinstance(value, list) and len(path) == 1 and value and all(isinstance(item, dict) for item in value):
        return _insert_block(rows, path, [Statement("pair", "\n".join(_many(path, item) for item in value))])
    if len(path) > 1 and isinstance(path[-1], int):
        return _insert_block(rows, path, [Statement("pair", _many(path[:-1], value))])
    parent = path[:-1]
    while parent and not any(row.kind in ("header", "pair") and starts(row.path, parent) for row in rows):
        parent = parent[:-1]
    fresh = path[:2] if path[0] == "append" and len(path) > 2 else path[:1]
    explicit = any(row.kind == "header" and row.path == parent for row in rows)
    if len(parent) < len(fresh) and not explicit and (len(path) > len(fresh) or isinstance(value, dict)):
        for part in reversed(path[len(fresh) :]):
            value = {part: value}
        return _insert_block(rows, path, [Statement("header", _section(fresh, value))])
    for part in reversed(path[len(parent) + 1 :]):
        value = {part: value}
    return _insert_pair(rows, parent, path[len(parent)], value, donor)


def _insert_pair(rows: list[Statement], parent: Path, name: Any, value: Any, donor: list[Statement] | None) -> str:
    head = next((index for index, row in enumerate(rows) if row.kind == "header" and row.path == parent), None)
    near = [index for index, row in enumerate(rows) if row.kind == "pair" and starts(row.path, parent)]
    if head is not None or not parent:
        inside = [index for index in near if rows[index].table == parent]
        place = _after_sibling(rows, inside, donor, (*parent, name)) or (inside[-1] + 1 if inside else 0 if head is None else head + 1)
        indent = rows[inside[-1]].indent if inside else "" if head is None else rows[head].indent
        key = keys.segment(str(name))
    elif near:
        place, indent = near[-1] + 1, rows[near[-1]].indent
        key = dotted((*parent[len(rows[near[-1]].table) :], name))
    else:
        place = layout.lead(rows, next(i for i, row in enumerate(rows) if row.kind == "header" and starts(row.path, parent)))
        text = _section(parent, {name: value}) + "\n"
        return layout.join([*rows[:place], Statement("header", text), *rows[place:]])
    text = f"{indent}{key} = {_written(value, indent, len(key))}\n"
    if donor is not None:
        for index, row in enumerate(donor):
            if row.kind == "pair" and row.path == (*parent, name) and row.table == parent:
                text = layout.join(donor[layout.lead(donor, index) : index + 1])
    return layout.join([*rows[:place], Statement("pair", text), *rows[place:]])


def _after_sibling(rows: list[Statement], inside: list[int], donor: list[Statement] | None, path: Path) -> int | None:
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


def _block(donor: list[Statement], path: Path) -> list[Statement]:
    """Return the tables at and below a path as they stand in the donor, with the comments above them."""
    found: list[Statement] = []
    for index, row in enumerate(donor):
        if row.kind == "header" and starts(row.path, path):
            if found:
                found.append(Statement("blank", "\n"))
            found += donor[layout.lead(donor, index) : layout.region(donor, index)]
    return found


def _insert_block(rows: list[Statement], path: Path, block: list[Statement]) -> str:
    """Put whole tables after their like, else where their section goes, with a blank line on each side."""
    heads = [index for index, row in enumerate(rows) if row.kind == "header"]
    place = len(rows)
    for depth in range(len(path), 0, -1):
        alike = [index for index in heads if starts(rows[index].path, path[:depth])]
        if alike:
            place = layout.region(rows, alike[-1])
            break
    else:
        later = [index for index in heads if _rank(rows[index].path) > _rank(path)]
        if later:
            place = layout.lead(rows, later[0])
    before, after = rows[:place], rows[place:]
    blank = Statement("blank", "\n")
    opening = [blank] if before and before[-1].kind != "blank" else []
    closing = [blank] if after and after[0].kind != "blank" else []
    return layout.join([*before, *opening, *block, *closing, *after])


def _rank(path: Path) -> int:
    return _ORDER.index(path[0]) if path[0] in _ORDER else len(_ORDER)


def _section(path: Path, value: Any) -> str:
    """Return a table with its header."""
    return f"[{dotted(path)}]\n" + "".join(f"{keys.segment(n)} = {_written(item, '', len(n))}\n" for n, item in value.items())


def _many(path: Path, value: dict[str, Any]) -> str:
    return f"[{_section(path, value)}".replace("]\n", "]]\n", 1)


def _written(value: Any, indent: str, used: int) -> str:
    """Return a value as TOML: on one line, or a long list with a line for each element."""
    text = keys.toml(value)
    if isinstance(value, list) and len(value) > 1 and len(indent) + used + len(text) > _WIDE:
        inner = "".join(f"{indent}    {keys.toml(item)},\n" for item in value)
        return f"[\n{inner}{indent}]"
    return text
