"""The differences between two values by path.

DeepDiff compares a form of them in which all relevant differences are visible. On its own, DeepDiff
treats ``true`` as ``1`` and ``1`` as ``1.0``, ignores keys that begin with ``__``, does not compare
tables that share few keys, and takes quadratic time for long lists. In the form, leaves are texts
with their type, and unordered lists are tables of their elements.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from datetime import UTC, datetime

from npuprof.catalog import values
from npuprof.model import Path, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from deepdiff.model import DiffLevel

    #: DeepDiff's input for a value: a text, or a table or list of such forms.
    Form = str | dict[Any, "Form"] | list["Form"]

_KINDS = {
    "dictionary_item_added": "added",
    "iterable_item_added": "added",
    "dictionary_item_removed": "removed",
    "iterable_item_removed": "removed",
    "values_changed": "changed",
    "type_changes": "changed",
}
# from this number of leaves on, lists are compared by position: alignment takes quadratic time
_LONG = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Difference(Record):
    """One difference below a path: ``kind`` is ``added``, ``removed`` or ``changed``.

    If ``element`` is set, it is an element added to or removed from the unordered list at ``tail``.
    """

    kind: str
    tail: Path
    before: Any
    after: Any
    element: bool = False


class _Elements(dict[str, "Any"]):
    """An unordered list as a table of its elements by text; never equal in type to a table."""


def compare_pairs(
    pairs: dict[Path, tuple[Any, Any]], unordered: Container[Path] = ()
) -> Iterator[tuple[Path, Difference]]:
    """Yield the differences of each pair of values with their paths, in the order of the sides.

    The two values of a pair differ; None is a missing side. The lists at the paths in ``unordered``
    are compared without order; any other list is one value. A value that is replaced by another
    type is one difference: DeepDiff is called only if both sides have members.
    """
    deep = {
        place: pair
        for place, pair in pairs.items()
        if all(isinstance(side, (dict, list) if place in unordered else dict) for side in pair)
    }
    differences: dict[Path, list[Difference]] = {place: [] for place in deep}
    forms = [
        {place: _build_form(pair[index], place in unordered) for place, pair in deep.items()}
        for index in (0, 1)
    ]
    for place in deep:
        if (plain := _compare_plain_tables(forms[0][place], forms[1][place])) is not None:
            is_list = isinstance(forms[0][place], _Elements)
            sides = [form.pop(place) for form in forms]
            for kind, name in plain:
                was, now = (side.get(name) for side in (sides if is_list else deep[place]))  # type: ignore[union-attr]
                differences[place].append(
                    _build_difference(kind, () if is_list else (name,), was, now, is_list)
                )
    for kind, level in _find_levels(forms) if forms[0] else ():
        place, *tail = level.path(output_format="list")
        if isinstance(_list_parents(level)[-1].t1, _Elements):
            differences[place].append(_build_difference(kind, tail[:-1], level.t1, level.t2, True))
        else:
            differences[place].append(
                _build_difference(
                    kind, tail, *(values.find_value("", side, tail)[1] for side in deep[place])
                )
            )
    for place, (was, now) in pairs.items():
        # If DeepDiff finds nothing, the values are tables in another key order.
        kind_of_pair = "added" if was is None else "removed" if now is None else "changed"
        yield from (
            (place, difference)
            for difference in differences.get(place) or [Difference(kind_of_pair, (), was, now)]
        )


def compare_lists(before: list[Any], after: list[Any]) -> list[Difference]:
    """Return the differences between two ordered lists, by position; tables inside are compared."""
    forms = [[_build_form(item, opened=True) for item in side] for side in (before, after)]
    if (plain := _compare_plain_lists(*forms)) is not None:
        old, new = (dict(enumerate(side)) for side in (before, after))
        return [_build_difference(kind, (at,), old.get(at), new.get(at)) for kind, at in plain]
    start, aligned = 0, True
    if max(map(_count_leaves, forms)) > _LONG:
        start = _count_common(*forms)
        end = _count_common(*(side[start:][::-1] for side in forms))
        forms = [side[start : len(side) - end] for side in forms]
        aligned = max(map(_count_leaves, forms)) <= _LONG
    differences = []
    for kind, level in _find_levels(forms, aligned):
        left, right = (
            (path[0] + start, *path[1:])
            for path in (level.path(output_format="list", use_t2=use) for use in (False, True))
        )
        was, now = values.find_value("", before, left)[1], values.find_value("", after, right)[1]
        differences.append(_build_difference(kind, left, was, now))
    return differences


def _compare_plain_tables(before: Form, after: Form) -> list[tuple[str, str]] | None:
    """Return added, removed and changed entries of a table of texts, in DeepDiff's order.

    None if the table is nested.
    """
    if (
        not isinstance(before, dict)
        or not isinstance(after, dict)
        or type(before) is not type(after)
    ):
        return None
    if any(isinstance(form, (dict, list)) for side in (before, after) for form in side.values()):
        return None
    differing = [
        name
        for name in {**before, **after}
        if name not in before or name not in after or before[name] != after[name]
    ]
    return [
        ("added" if name not in before else "removed" if name not in after else "changed", name)
        for name in differing
    ]


def _compare_plain_lists(before: list[Form], after: list[Form]) -> list[tuple[str, int]] | None:
    """Return the differences of two lists of texts with a unique alignment.

    None if DeepDiff must choose.
    """
    if not all(isinstance(form, str) for form in (*before, *after)):
        return None
    old, new = set(map(str, before)), set(map(str, after))
    if (len(old), len(new)) != (len(before), len(after)):
        return None
    pairs = list(enumerate(zip(before, after, strict=False)))
    if len(before) == len(after) and all(
        was == now or (was not in new and now not in old) for _, (was, now) in pairs
    ):
        return [("changed", at) for at, (was, now) in pairs if was != now]
    if max(len(before), len(after)) > _LONG:
        return None  # apart from their ends, compared by position
    if [form for form in after if form in old] == before:
        return [("added", at) for at, form in enumerate(after) if form not in old]
    if [form for form in before if form in new] == after:
        return [("removed", at) for at, form in enumerate(before) if form not in new]
    return None


def _build_difference(
    kind: str, tail: Sequence[Any], before: Any, after: Any, element: bool = False
) -> Difference:
    return Difference(
        kind,
        tuple(tail),
        None if kind == "added" else before,
        None if kind == "removed" else after,
        element,
    )


def _build_form(value: Any, unordered: bool = False, opened: bool = False) -> Form:
    """Return DeepDiff's input for a value; with ``opened``, it compares inside ordered lists."""
    if isinstance(value, dict):
        return {name: _build_form(item, unordered, opened) for name, item in value.items()}
    if (
        unordered
        and isinstance(value, list)
        and all(isinstance(item, (str, int)) for item in value)
    ):
        return _Elements((repr(item), item) for item in value)
    if opened and isinstance(value, list):
        return [_build_form(item, unordered, opened) for item in value]
    return _write_typed_text(value)


def _write_typed_text(value: Any) -> str:
    """Return a text that is equal for two values if ``is_same_typed_value`` is true for them."""
    if isinstance(value, dict):
        pairs = [f"{name!r}:{_write_typed_text(value[name])}" for name in sorted(value)]
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_write_typed_text, value))}]"
    if isinstance(value, float):
        return repr(value + 0.0)  # -0.0 is 0.0
    if isinstance(value, datetime) and value.tzinfo:
        return f"instant {value - _EPOCH}"  # in any time zone
    return repr(value)


def _count_leaves(form: Form) -> int:
    return (
        1
        if isinstance(form, str)
        else sum(map(_count_leaves, form.values() if isinstance(form, dict) else form))
    )


def _count_common(left: list[Form], right: list[Form]) -> int:
    """Return the length of the common prefix of two lists."""
    return next(
        (index for index, (was, now) in enumerate(zip(left, right, strict=False)) if was != now),
        min(len(left), len(right)),
    )


def _find_levels(forms: Sequence[Form], aligned: bool = True) -> list[tuple[str, DiffLevel]]:
    """Return DeepDiff's differences with their kinds.

    They are in the order of the first side; additions of the second follow. With ``aligned``, list
    elements move up if one is removed; else equal positions are compared.
    """
    from deepdiff import (
        DeepDiff,
    )  # the import takes longer than everything else if no table or list differs

    before, after = forms
    tree = DeepDiff(
        before,
        after,
        view="tree",
        threshold_to_diff_deeper=0,
        ignore_private_variables=False,
        zip_ordered_iterables=not aligned,
    )
    ranks: dict[int, dict[Any, int]] = {}
    levels = [(_KINDS[name], level) for name, found in tree.items() for level in found]
    return sorted(levels, key=lambda found: (_find_position(found[1], ranks), found[0]))


def _find_position(level: DiffLevel, ranks: dict[int, dict[Any, int]]) -> list[int]:
    """Return the sort position of a difference.

    Indexes sort by number, keys by their rank among those of both sides.
    """
    position = []
    for part, parent in zip(level.path(output_format="list"), _list_parents(level), strict=True):
        if isinstance(parent.t1, dict) and id(parent.t1) not in ranks:
            ranks[id(parent.t1)] = {
                name: rank for rank, name in enumerate({**parent.t1, **parent.t2})
            }
        position.append(ranks[id(parent.t1)][part] if isinstance(parent.t1, dict) else part)
    return position


def _list_parents(level: DiffLevel) -> list[DiffLevel]:
    parents = []
    while level.up is not None:
        level = level.up
        parents.append(level)
    return parents[::-1]
