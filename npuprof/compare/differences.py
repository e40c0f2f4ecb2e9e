"""The differences between two values by path.

Leaves are compared as texts with their type, and unordered lists as tables of their elements.
DeepDiff aligns ordered lists of such texts. Without these texts, it treats ``true`` as ``1`` and
``1`` as ``1.0``. It also ignores keys that begin with ``__``, does not compare tables that share
few keys, and takes quadratic time for long lists.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from datetime import UTC, datetime

from npuprof.catalog import values
from npuprof.document import keys
from npuprof.model import TYPE_CHECKING, Path, Record, find_change_kind
from npuprof.system import count_common, is_list_of

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

    @property
    def index(self) -> str:
        """Its position in a list, as in ``[2]``."""
        return keys.format_key_path("", self.tail)


def compare_pairs(
    pairs: dict[Path, tuple[Any, Any]], unordered: Container[Path] = ()
) -> Iterator[tuple[Path, Difference]]:
    """Yield the differences of each pair of values with their paths, in the order of the sides.

    The two values of a pair differ, except for two tables in ``unordered``; None is a missing side.
    The lists at these paths are compared without order; any other list is one value. A value that
    is replaced by another type is one difference.
    """
    for path, (was, now) in pairs.items():
        is_unordered = path in unordered
        kinds = (dict, list) if is_unordered else dict
        inside = []
        if isinstance(was, kinds) and isinstance(now, kinds):
            inside = [*_compare_values(was, now, is_unordered)]
            if is_unordered and not inside:
                continue
        # Nothing differs inside two tables if only the order of their keys does.
        for difference in inside or [Difference(find_change_kind(was, now), (), was, now)]:
            yield path, difference


def compare_lists(before: list[Any], after: list[Any]) -> list[Difference]:
    """Return the differences between two ordered lists, by position; tables inside are compared."""
    old_form, new_form = ([_build_form(item) for item in side] for side in (before, after))
    plain = _compare_plain_lists(old_form, new_form)
    if plain is not None:
        old_items = dict(enumerate(before))
        new_items = dict(enumerate(after))
        return [
            _build_difference(kind, (index,), old_items.get(index), new_items.get(index))
            for kind, index in plain
        ]
    start = 0
    aligned = True
    if _are_long(old_form, new_form):
        # Equal ends need no alignment; what is between them may be short enough for it.
        start = count_common(old_form, new_form)
        end = count_common(old_form[start:][::-1], new_form[start:][::-1])
        old_form = old_form[start : len(old_form) - end]
        new_form = new_form[start : len(new_form) - end]
        aligned = not _are_long(old_form, new_form)
    differences = []
    for kind, level in _find_levels(old_form, new_form, aligned):
        index, *tail = level.path(output_format="list")
        new_index, *new_tail = level.path(output_format="list", use_t2=True)
        path = (index + start, *tail)
        was = values.find_value("", before, path)[1]
        now = values.find_value("", after, (new_index + start, *new_tail))[1]
        differences.append(_build_difference(kind, path, was, now))
    return differences


def _compare_values(was: Any, now: Any, unordered: bool, tail: Path = ()) -> Iterator[Difference]:
    """Yield the differences of two values at the path ``tail``, in the order of their keys."""
    old, new, element = was, now, False
    # other values may be equal and have different texts, such as times in two zones
    if unordered and is_list_of((str, int), was) and is_list_of((str, int), now):
        old, new = ({repr(item): item for item in side} for side in (was, now))
        element = True
    if not isinstance(old, dict) or not isinstance(new, dict):
        if _write_typed_text(was) != _write_typed_text(now):
            yield Difference("changed", tail, was, now)
        return
    for name in {**old, **new}:
        # the text of an element is no part of the path
        path = tail if element else (*tail, name)
        if name not in old:
            yield Difference("added", path, None, new[name], element)
        elif name not in new:
            yield Difference("removed", path, old[name], None, element)
        elif not element:
            yield from _compare_values(old[name], new[name], unordered, path)


def _compare_plain_lists(before: list[Form], after: list[Form]) -> list[tuple[str, int]] | None:
    """Return the differences of two lists of texts with a unique alignment.

    None if DeepDiff must choose.
    """
    if not all(isinstance(form, str) for form in (*before, *after)):
        return None
    old = set(map(str, before))
    new = set(map(str, after))
    # equal elements can be aligned in several ways
    if (len(old), len(new)) != (len(before), len(after)):
        return None
    if len(before) == len(after):
        pairs = list(zip(before, after, strict=True))
        # no element has moved, so that equal positions belong together
        if all(was == now or (was not in new and now not in old) for was, now in pairs):
            return [("changed", index) for index, (was, now) in enumerate(pairs) if was != now]
    if max(len(before), len(after)) > _LONG:
        return None  # apart from their ends, compared by position
    if [form for form in after if form in old] == before:
        return [("added", index) for index, form in enumerate(after) if form not in old]
    if [form for form in before if form in new] == after:
        return [("removed", index) for index, form in enumerate(before) if form not in new]
    return None


def _build_difference(kind: str, tail: Sequence[Any], before: Any, after: Any) -> Difference:
    return Difference(
        kind,
        tuple(tail),
        None if kind == "added" else before,
        None if kind == "removed" else after,
    )


def _build_form(value: Any) -> Form:
    """Return DeepDiff's input for a value in an ordered list."""
    if isinstance(value, dict):
        return {name: _build_form(item) for name, item in value.items()}
    return [*map(_build_form, value)] if isinstance(value, list) else _write_typed_text(value)


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
    if isinstance(form, str):
        return 1
    return sum(map(_count_leaves, form.values() if isinstance(form, dict) else form))


def _are_long(before: list[Form], after: list[Form]) -> bool:
    """Return whether one of two lists has too many leaves for DeepDiff's alignment."""
    return max(_count_leaves(before), _count_leaves(after)) > _LONG


def _find_levels(
    before: Form | dict[Path, Form], after: Form | dict[Path, Form], aligned: bool
) -> list[tuple[str, DiffLevel]]:
    """Return DeepDiff's differences with their kinds.

    They are in the order of the first side; additions of the second follow. With ``aligned``, list
    elements move up if one is removed; else equal positions are compared.
    """
    # The import takes longer than everything else if no table or list differs.
    from deepdiff import DeepDiff

    tree = DeepDiff(
        before,
        after,
        view="tree",
        # by default, DeepDiff reports tables that share few keys as one change
        threshold_to_diff_deeper=0,
        ignore_private_variables=False,
        zip_ordered_iterables=not aligned,
    )
    ranks: dict[int, dict[Any, int]] = {}
    levels = [(_KINDS[report], level) for report, listed in tree.items() for level in listed]
    return sorted(levels, key=lambda found: (_find_position(found[1], ranks), found[0]))


def _find_position(level: DiffLevel, ranks: dict[int, dict[Any, int]]) -> list[int]:
    """Return the sort position of a difference.

    Indexes sort by number, keys by their rank among those of both sides.
    """
    position = []
    for part, parent in zip(level.path(output_format="list"), _list_parents(level), strict=True):
        if not isinstance(parent.t1, dict):
            position.append(part)
            continue
        table = id(parent.t1)  # a table is met once for each of its differences, ranked once
        if table not in ranks:
            ranks[table] = {name: rank for rank, name in enumerate({**parent.t1, **parent.t2})}
        position.append(ranks[table][part])
    return position


def _list_parents(level: DiffLevel) -> list[DiffLevel]:
    parents = []
    while level.up is not None:
        level = level.up
        parents.append(level)
    return parents[::-1]
