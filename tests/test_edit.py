"""Edits of a text: what changes, and above all what does not."""

from __future__ import annotations

import random
import tomllib
from typing import Any

import building
import layouts
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.catalog import values
from npuprof.edit import PathChange, apply_changes, layout
from npuprof.edit.paths import MISSING, assign_at_path, is_same_document
from npuprof.model import NpuprofError

BASE = """\
# for everybody
[profile]
description = "base"  # short
extends = ["base/a", 'base/b']

[options]
# seconds
hccl_timeout = 1836 # 27 * 68

modify_mixlist = { black-list = { to-add = ["MatMul"] } }
skip = [
    "one", # the first
    # about two
    "two",
]
dump.path = "/tmp"

[options.deep]
x = 1

[env]
    HCCL_ALGO = "ring"
"""


def change(*path: str, to: Any = MISSING) -> PathChange:
    return PathChange(path, to)


CASES: dict[str, tuple[list[PathChange], list[tuple[str, str]]]] = {
    "a value, its comment stays": ([change("options", "hccl_timeout", to=1904)], [("1836 #", "1904 #")]),
    "a value of another kind": ([change("options", "hccl_timeout", to=[1, 2])], [("1836 #", "[1, 2] #")]),
    "a key inside an inline table": (
        [change("options", "modify_mixlist", "white-list", to={"to-add": ["Cast"]})],
        [('["MatMul"] } }', '["MatMul"] }, white-list = { to-add = ["Cast"] }}')],
    ),
    "an element more": (
        [change("options", "modify_mixlist", "black-list", "to-add", to=["MatMul", "Cast"])],
        [('["MatMul"]', '["MatMul", "Cast"]')],
    ),
    "an element less, comments stay": ([change("options", "skip", to=["one"])], [('    "two",\n', "")]),
    "an element between": ([change("options", "skip", to=["one", "new", "two"])], [('    "two",', '    "new",\n    "two",')]),
    "a new key stands behind its like": (
        [change("options", "deterministic", to=1)],
        [('dump.path = "/tmp"\n', 'dump.path = "/tmp"\ndeterministic = 1\n')],
    ),
    "a new dotted key": (
        [change("options", "dump", "mode", to="all")],
        [('dump.path = "/tmp"\n', 'dump.path = "/tmp"\ndump.mode = "all"\n')],
    ),
    "a new key in a table of its own": ([change("options", "deep", "y", to=2)], [("x = 1\n", "x = 1\ny = 2\n")]),
    "the indent of its like": ([change("env", "A", to=1)], [('    HCCL_ALGO = "ring"\n', '    HCCL_ALGO = "ring"\n    A = 1\n')]),
    "a new section has its place": (
        [change("atc", "framework", to=3)],
        [('    HCCL_ALGO = "ring"\n', '    HCCL_ALGO = "ring"\n\n[atc]\nframework = 3\n')],
    ),
    "a section before a later one": (
        [change("append", "options", "skip", to=["x"])],
        [("x = 1\n\n[env]", 'x = 1\n\n[append.options]\nskip = ["x"]\n\n[env]')],
    ),
    "a key goes, the comment above it stays": ([change("options", "hccl_timeout")], [("hccl_timeout = 1836 # 27 * 68\n", "")]),
    "a table goes": ([change("options", "deep")], [("[options.deep]\nx = 1\n\n", "")]),
    "a key inside an inline table goes": ([change("options", "modify_mixlist", "black-list", "to-add")], [(' to-add = ["MatMul"] ', "  ")]),
    "nothing": ([], []),
    "the same value": ([change("options", "hccl_timeout", to=1836)], []),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_an_edit_changes_these_characters_and_no_others(name: str, ending: str) -> None:
    changes, replaced = CASES[name]
    after = BASE
    for old, new in replaced:
        assert after.count(old) == 1, old
        after = after.replace(old, new)
    assert apply_changes(BASE.replace("\n", ending), changes) == after.replace("\n", ending)


def test_a_file_without_a_last_newline_keeps_its_end() -> None:
    assert apply_changes("[options]\na = 1\nb = 2", [change("options", "a", to=3)]) == "[options]\na = 3\nb = 2"
    assert apply_changes("[options]\na = 1", [change("options", "b", to=3)]) == "[options]\na = 1\nb = 3\n"


def test_mixed_line_endings_stay_where_they_are() -> None:
    text = "[options]\r\na = 1\nb = 2\r\n# end\r\n"
    assert (
        apply_changes(text, [change("options", "b", to=3), change("options", "c", to=4)])
        == "[options]\r\na = 1\nb = 3\r\nc = 4\r\n# end\r\n"
    )


def test_an_empty_file_becomes_a_profile() -> None:
    assert (
        apply_changes("", [change("profile", "extends", to=["a"]), change("env", "A", to=1)])
        == '[profile]\nextends = ["a"]\n\n[env]\nA = 1\n'
    )


def test_what_stands_in_an_override_is_not_mistaken_for_the_section() -> None:
    text = '[[override]]\nmatch = { product = "a3" }\n[override.options]\na = 1\n'
    assert apply_changes(text, [change("options", "a", to=2)]) == f"[options]\na = 2\n\n{text}"


def test_one_override_is_changed_and_another_removed() -> None:
    text = '[[override]]\nmatch = { product = "a" }\n[override.options]\nx = 1\n\n[[override]]\nmatch = { product = "b" }\noptions.x = 2\n'
    after = apply_changes(text, [PathChange(("override", 0, "options", "x"), 9), PathChange(("override", 1), MISSING)])
    assert after == '[[override]]\nmatch = { product = "a" }\n[override.options]\nx = 9\n'


def test_an_edit_that_would_come_out_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npuprof.edit.put_value", lambda text, *_: text.replace("1836", "1837"))
    with pytest.raises(NpuprofError, match="NP921"):
        apply_changes(BASE, [change("options", "hccl_timeout", to=1838)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 1200, 100))
def test_edits_of_any_layout_do_what_is_asked_and_keep_the_comments(seed: int) -> None:
    for number in range(seed, seed + 100):
        dice = random.Random(number)
        text = layouts.profile(dice)
        data = tomllib.loads(text)
        done = layouts.changes(dice, data, 4 if number % 4 else 30)
        after = apply_changes(text, done)
        assert is_same_document(tomllib.loads(after), data), number
        lost = [row.text for row in layout.parse_statements(text) if row.kind == "comment" and row.text not in after]
        if not any(step.value is MISSING or isinstance(step.value, dict) for step in done):
            assert not lost, number
        untouched = [
            row.text for row in layout.parse_statements(text) if row.kind == "pair" and not any(_near(row.path, step.path) for step in done)
        ]
        assert all(line in after for line in untouched), number


def _near(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    size = min(len(left), len(right))
    return left[:size] == right[:size]


@given(building.documents, building.names, building.toml_values)
def test_any_key_and_value_that_toml_can_hold_can_be_put_and_taken_away(data: dict[str, Any], name: str, value: Any) -> None:
    document = {"options": data}
    text = building.toml(document)
    assign_at_path(document, ("options", name), value)
    after = apply_changes(text, [change("options", name, to=value)])
    assert values.is_same_typed_value(tomllib.loads(after), document)
    assign_at_path(document, ("options", name), MISSING)
    assert is_same_document(tomllib.loads(apply_changes(after, [change("options", name)])), document)


@given(st.text())
def test_any_text_comes_back_from_a_value(text: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in text):
        return
    assert tomllib.loads(apply_changes(BASE, [change("env", "A", to=text)]))["env"]["A"] == text


def test_many_changes_at_once_are_exact_in_a_large_file() -> None:
    text = "[env]\n" + "".join(f"V{number} = {number} # {number}\n" for number in range(3000))
    wanted = text
    for number in range(10, 3000, 15):
        wanted = wanted.replace(f"V{number} = {number} #", f'V{number} = "x" #')
    changes_ = [change("env", f"V{number}", to="x") for number in range(10, 3000, 15)]
    assert (
        apply_changes(text, [*changes_, change("env", "NEW", to=1), change("env", "V0")])
        == wanted.replace("V0 = 0 # 0\n", "") + "NEW = 1\n"
    )
