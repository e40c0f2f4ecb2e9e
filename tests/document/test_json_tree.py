"""JSON trees with places, and edits that keep the rest of a text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.document.json_tree import (
    Node,
    apply_edits,
    find_edits,
    find_json_error,
    read_json_tree,
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
TABLES = st.dictionaries(st.text(), VALUES, max_size=4)
LAYOUTS = st.sampled_from([None, 0, 2, 4, "\t"])


def plain(node: Node) -> Any:
    """Return the value of a tree."""
    if node.pairs is not None:
        return {key.value: plain(value) for key, value in node.pairs}
    return node.value if node.items is None else [plain(item) for item in node.items]


def merge(base: Any, value: Any) -> Any:
    """Return what a value makes of a base: tables by key, lists of tables by item."""
    if isinstance(base, dict) and isinstance(value, dict):
        return base | {k: merge(base[k], v) if k in base else v for k, v in value.items()}
    has_tables = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    if has_tables and isinstance(base, list):
        return [merge(*pair) for pair in zip(base, value, strict=False)] + (
            base[len(value) :] or value[len(base) :]
        )
    return value


@given(VALUES, LAYOUTS)
def test_a_tree_has_what_the_parser_of_python_reads(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent)
    tree = read_json_tree(text)
    # an ellipsis as a key stands for others
    if ".." not in text and "\\u2026" not in text:
        assert plain(tree) == value
        assert text[tree.start : tree.end] == text


@given(TABLES, TABLES, LAYOUTS)
def test_edits_merge_a_table_and_then_there_is_nothing_to_edit(
    base: Any, value: Any, indent: Any
) -> None:
    text = json.dumps(base, indent=indent)
    both = text + json.dumps(value)
    if ".." in both or "\\u2026" in both:  # a part that is left out
        return
    edited = apply_edits(text, find_edits(text, value))
    assert json.loads(edited) == merge(base, value)
    assert find_edits(edited, value) == []
    assert find_edits(text, base) == []


@given(st.text('{}[]:,"a1 \n/.#*<\u2026'))
def test_any_text_has_a_tree(text: str) -> None:
    tree = read_json_tree(text)
    if find_json_error(text) is None and not tree.is_open:
        assert plain(tree) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "value", "is_open"),
    [
        ('"a": 1, "b": [2]', {"a": 1, "b": [2]}, False),
        ('{"a": 1, // one\n "b": /* x */ 2, # y\n}', {"a": 1, "b": 2}, False),
        ('{"a": 1,\n ...\n}', {"a": 1}, True),
        ('{"a": 1, // ...\n "......": "" }', {"a": 1}, True),
        ('{"a": <number>, "b": 2}', {"b": 2}, True),
        ('{"a": {"b": 1', {"a": {"b": 1}}, False),
        ('"a": 1}]', {"a": 1}, False),
        ('{"a" 1 "b": 2}', {"b": 2}, True),
        ("...", {}, True),
    ],
)
def test_a_part_of_a_text_has_a_tree(text: str, value: Any, is_open: bool) -> None:
    tree = read_json_tree(text)
    assert plain(tree) == value
    assert tree.is_open is is_open


@pytest.mark.parametrize(
    ("text", "value", "edited"),
    [
        ('{"a" : 1,\r\n "b" : 2\r\n}', {"c": 3}, '{"a" : 1,\r\n "b" : 2,\r\n "c" : 3\r\n}'),
        ('{"a":1}', {"a": 2, "b": {"c": 1}}, '{"a":2, "b":{"c": 1}}'),
        ('{\n  "a":\n  {\n    "b": 1\n  }\n}', {"a": {"c": 2}},
         '{\n  "a":\n  {\n    "b": 1,\n    "c": 2\n  }\n}'),
        ('{\n  "a": {}\n}', {"a": {"b": [1]}}, '{\n  "a": {\n      "b": [1]\n  }\n}'),
        ('{"a": 1, "a": 2}', {"a": 3}, '{"a": 1, "a": 3}'),
        ('\ufeff{"a": 1.0}\n', {"a": 1}, '\ufeff{"a": 1}\n'),
        ('{"a": 1e3, "b": "\\u00e9"}', {"a": 1000.0, "b": "é"}, '{"a": 1e3, "b": "\\u00e9"}'),
        ('{"a": [{"b": 1}]}', {"a": [{}, {"b": 2}]}, '{"a": [{"b": 1}, {"b": 2}]}'),
    ],
)  # fmt: skip
def test_only_what_changes_is_written(text: str, value: Any, edited: str) -> None:
    assert apply_edits(text, find_edits(text, value)) == edited
