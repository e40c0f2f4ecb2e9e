"""Two values to what differs between them, place by place; inside lists of tables or lists as DeepDiff aligns them.

Left to itself DeepDiff takes ``true`` for ``1`` and ``1`` for ``1.0``. So the leaves that it is given are texts that tell the type.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from npuprof.catalog import values
from npuprof.model import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: What DeepDiff is given for a value: a text, or a table or list of such forms.
    Form = str | dict[Any, "Form"] | list["Form"]

_KINDS = {"dictionary_item_added": "added", "iterable_item_added": "added", "dictionary_item_removed": "removed",
          "iterable_item_removed": "removed", "values_changed": "changed", "type_changes": "changed"}  # fmt: skip
_LONG = 1000  # leaves in a list
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Difference(NamedTuple):
    """One difference below a place: ``kind`` is ``added``, ``removed`` or ``changed``.

    If ``element`` is true, it is an element that came to or left the list at ``tail``, whose order means nothing.
    """

    kind: str
    tail: Path
    before: Any
    after: Any
    element: bool = False


def compare_pairs(pairs: dict[Path, tuple[Any, Any]], unordered: Container[Path] = ()) -> Iterator[tuple[Path, Difference]]:
    """Yield what differs in each pair of values, with its place: pair by pair, in the order of the sides.

    The two values of a pair differ; None stands for a side that has none. At the places in ``unordered`` the order of
    a list means nothing; any other list is one value.
    """
    for place, (was, now) in pairs.items():
        # Tables in which nothing differs have their keys in another order.
        differences = list(_compare_values((), was, now, place in unordered)) or [_build_difference((), was, now)]
        yield from ((place, difference) for difference in differences)


def _compare_values(tail: Path, was: Any, now: Any, unordered: bool) -> Iterator[Difference]:
    if isinstance(was, dict) and isinstance(now, dict):
        for name in {**was, **now}:
            yield from _compare_values((*tail, name), was.get(name), now.get(name), unordered)
    elif unordered and _is_list_of_names(was) and _is_list_of_names(now):
        old, new = ({repr(item): item for item in side} for side in (was, now))
        for text in {**old, **new}:
            if text not in old or text not in new:
                yield _build_difference(tail, old.get(text), new.get(text), True)
    elif not values.is_same_typed_value(was, now):
        yield _build_difference(tail, was, now)


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, (str, int)) for item in value)


def compare_lists(before: list[Any], after: list[Any]) -> list[Difference]:
    """Return what differs between two lists, by position: of names those that came or went, else what DeepDiff finds.

    Of very long lists nothing: DeepDiff needs the square of their length.
    """
    if _is_list_of_names(before) and _is_list_of_names(after):
        old, new = set(map(repr, before)), set(map(repr, after))
        gone = [_build_difference((at,), item, None) for at, item in enumerate(before) if repr(item) not in new]
        return gone + [_build_difference((at,), None, item) for at, item in enumerate(after) if repr(item) not in old]
    forms = _build_form(before), _build_form(after)
    if max(map(_count_leaves, forms)) > _LONG:
        return []
    from deepdiff import DeepDiff  # its import takes longer than all else where no such list differs

    tree = DeepDiff(*forms, view="tree", threshold_to_diff_deeper=0, ignore_private_variables=False)
    levels = [(level.path(output_format="list"), _KINDS[name], level) for name, levels in tree.items() for level in levels]
    differences = []
    for left, kind, level in sorted(levels, key=lambda row: row[:2]):
        was = None if kind == "added" else values.find_value("", before, left)[1]
        now = None if kind == "removed" else values.find_value("", after, level.path(output_format="list", use_t2=True))[1]
        differences.append(_build_difference(left, was, now))
    return differences


def _build_difference(tail: Sequence[Any], was: Any, now: Any, element: bool = False) -> Difference:
    return Difference("added" if was is None else "removed" if now is None else "changed", tuple(tail), was, now, element)


def _build_form(value: Any) -> Form:
    """Return what DeepDiff is given for a value."""
    if isinstance(value, dict):
        return {name: _build_form(item) for name, item in value.items()}
    return list(map(_build_form, value)) if isinstance(value, list) else _write_typed_text(value)


def _write_typed_text(value: Any) -> str:
    """Return a text that two values share exactly when ``values.is_same_typed_value`` says so."""
    if isinstance(value, float):
        return repr(value + 0.0)  # -0.0 is 0.0
    if isinstance(value, datetime) and value.tzinfo:
        return f"instant {value - _EPOCH}"  # in whatever offset it is written
    return repr(value)


def _count_leaves(form: Form) -> int:
    return 1 if isinstance(form, str) else sum(map(_count_leaves, form.values() if isinstance(form, dict) else form))
