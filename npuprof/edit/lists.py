"""Changes of lists: ``KEY+=VALUE`` and ``KEY-=VALUE``.

They concern the list itself, or the elements that a preset appends to the inherited list or removes
from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof.catalog import values
from npuprof.catalog.values import subtract_lists
from npuprof.document import keys
from npuprof.document.profile import NAMES, PROFILE_KEYS, Profile
from npuprof.edit.assignments import (
    locate_key,
    parse_assignment,
    resolve_inherited,
    split_listed_names,
)
from npuprof.edit.changed import resolve_apart
from npuprof.edit.fixing import find_respellings
from npuprof.edit.paths import MISSING, PathChange, assign_at_path, find_at_path
from npuprof.model import LIST_OPS, NpuprofError, Path, Record, TomlTable, build_error
from npuprof.store import assignment_arguments
from npuprof.system import is_list_of


class ListChange(Record):
    """The elements to add to a key's list, or to remove from it, as the user wrote them."""

    key: str
    text: str
    adds: bool


def parse_list_change(text: str) -> ListChange | None:
    """Return ``KEY+=VALUE`` or ``KEY-=VALUE`` parsed; None for other texts."""
    name, equals, raw = text.partition("=")
    name = name.rstrip()
    key = name[:-1].rstrip()
    sign = name[-1:]
    if not equals or not key or sign not in ("+", "-"):
        return None
    return ListChange(key, raw.strip(), sign == "+")


def parse_appended(text: str) -> ListChange:
    """Return ``KEY=VALUE`` parsed as an addition to a list.

    Raises NpuprofError if it is invalid.
    """
    name, equals, raw = text.partition("=")
    if not equals:
        raise build_error(
            "NP009", f"{text!r} is not KEY=VALUE", "", assignment_arguments.suggest_assignment(text)
        )
    return parse_list_change(text) or ListChange(name.strip(), raw.strip(), True)


def find_changes(
    profile: Profile,
    data: TomlTable,
    assignments: Sequence[str],
    appended: Sequence[str],
    notes: list[str],
    below: TomlTable | None = None,
) -> list[PathChange]:
    """Return the arguments of ``set`` as changes, and apply them to ``data``.

    See ``find_list_changes``. Raises NpuprofError.
    """
    results = find_respellings(profile, data)
    changes = [
        *((text, parse_list_change(text)) for text in assignments),
        *((text, parse_appended(text)) for text in appended),
    ]
    for text, change in changes:
        if change:
            results += find_list_changes(profile, data, change, notes, below)
        elif plain := parse_assignment(data, text):
            results.append(plain)
    return results


def find_list_changes(
    profile: Profile,
    data: TomlTable,
    change: ListChange,
    notes: list[str],
    below: TomlTable | None,
) -> list[PathChange]:
    """Return the changes that add or remove elements, and apply them to ``data``.

    Existing elements are noted and not repeated.

    ``below`` are the settings of the preset below a layer. Raises NpuprofError for a value that is
    not a list, and for missing elements.
    """
    path, key = locate_key(change.key)
    if not key:
        return _change_names(profile, data, path, change, notes)
    # both spellings mean the same elements
    if path[0] in LIST_OPS:
        change = change._replace(adds=change.adds == (path[0] == "append"))
        path = path[1:]
    removed_path, appended_path = ((op, *path) for op in LIST_OPS)
    written = {at: find_at_path(data, at) for at in (path, appended_path, removed_path)}
    base = MISSING  # the inherited list, unless the preset's own list replaces it
    is_inherited, inherited = values.find_setting_value(
        below if below is not None else resolve_inherited(profile, data), key, path[2:]
    )
    if is_inherited and written[path] is MISSING:
        base = values.parse_structured_value(key, inherited) if len(path) == 2 else inherited
    lists = {}
    for at, value in {**written, (): base}.items():
        if value is not MISSING and not isinstance(value, list):
            raise _build_no_list_error(change.key, value)
        lists[at] = [] if value is MISSING else value
    removed = lists[removed_path]
    lower = [*lists[()], *lists[path]]
    present = [*subtract_lists(lower, removed), *lists[appended_path]]
    items = _read_items(change.text, present)
    results = {}
    if change.adds:
        new = _leave_out_known(items, present, change.key, notes)
        if (kept := subtract_lists(removed, new)) != removed:
            results[removed_path] = kept
            new = subtract_lists(new, lower)
        if new:
            is_own = written[appended_path] is MISSING and base is MISSING
            target = path if is_own else appended_path
            results[target] = [*lists[target], *new]
    else:
        _require_present(items, present, change.key)
        for at in (path, appended_path):
            if (kept := subtract_lists(lists[at], items)) != lists[at]:
                results[at] = kept
        left = subtract_lists(lists[()], removed)
        if gone := subtract_lists(items, subtract_lists(items, left)):
            results[removed_path] = [*removed, *gone]
    return [_put_list(data, at, listed) for at, listed in results.items()]


def _change_names(
    profile: Profile, data: TomlTable, path: Path, change: ListChange, notes: list[str]
) -> list[PathChange]:
    """Return the change to a list of ``[profile]``."""
    known = PROFILE_KEYS.get(str(path[1]))
    if len(path) != 2 or known is None or known.kind != NAMES:
        raise _build_no_list_error(change.key, find_at_path(data, path))
    before = find_at_path(data, path)
    if before is MISSING:  # its own list replaces the inherited one
        before = list(resolve_apart(profile).products) if known.inherited else []
    elif isinstance(before, str):
        before = [before]
    if not isinstance(before, list):
        raise _build_no_list_error(change.key, before)
    listed = assignment_arguments.parse_assigned_value("", change.text)
    items = listed if isinstance(listed, list) else split_listed_names(path, change.text)
    if change.adds:
        new = _leave_out_known(items, before, change.key, notes)
        return [_put_list(data, path, [*before, *new])] if new else []
    _require_present(items, before, change.key)
    return [_put_list(data, path, subtract_lists(before, items))]


def _read_items(text: str, known: list[Any]) -> list[Any]:
    """Return the elements of a text: one value, or those of a list.

    For a list of lists, a list is one element.
    """
    value = assignment_arguments.parse_assigned_value("", text)
    if not isinstance(value, list):
        return [value]
    # [a, b] is then one new element, and not two
    if known and is_list_of(list, known) and not is_list_of(list, value):
        return [value]
    return value


def _leave_out_known(items: list[Any], known: list[Any], key: str, notes: list[str]) -> list[Any]:
    new: list[Any] = []
    for item in items:
        added = subtract_lists([item], [*known, *new])
        new += added
        if not added:
            notes.append(f"{key} has {keys.format_short_value(item)} already")
    return new


def _require_present(items: list[Any], known: list[Any], key: str) -> None:
    """Raise NpuprofError for an element to remove that a list does not have."""
    for item in subtract_lists(items, known):
        hint = f"it is {keys.format_short_value(known)}" if known else ""
        raise build_error("NP924", f"{key} has no {keys.format_short_value(item)}", "", hint)


def _put_list(data: TomlTable, path: Path, listed: list[Any]) -> PathChange:
    """Set a list at a path of ``data`` and return the change.

    A meaningless empty list is removed with its empty tables.
    """
    if listed or path[0] not in (*LIST_OPS, "profile"):
        assign_at_path(data, path, listed)
        return PathChange(path, listed)
    while len(path) > 2 and len(find_at_path(data, path[:-1])) == 1 and path[0] != "profile":
        path = path[:-1]
    assign_at_path(data, path, MISSING)
    return PathChange(path, MISSING)


def _build_no_list_error(key: str, value: Any) -> NpuprofError:
    what = (
        f"{key} is {keys.format_short_value(value)}, which is not a list"
        if value is not MISSING
        else f"{key} takes no list"
    )
    return build_error(
        "NP920", what, "Only a list gets longer or shorter.", f"set it as a whole: {key}=VALUE"
    )
