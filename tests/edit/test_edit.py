"""Edits of a text: what changes, and above all what does not."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given

from npuprof.edit import PathChange, apply_changes
from npuprof.edit.paths import MISSING, assign_at_path, find_at_path, is_same_document
from npuprof.edit.toml_statements import Statements, collect_comments, split_lines
from npuprof.model import NpuprofError, is_same_typed_value
from support import building, layouts
from support.growth import measure_growth

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
    "a value, its comment stays": (
        [change("options", "hccl_timeout", to=1904)],
        [("1836 #", "1904 #")],
    ),
    "a key inside an inline table": (
        [change("options", "modify_mixlist", "white-list", to={"to-add": ["Cast"]})],
        [('["MatMul"] } }', '["MatMul"] }, white-list = { to-add = ["Cast"] } }')],
    ),
    "an element more": (
        [change("options", "modify_mixlist", "black-list", "to-add", to=["MatMul", "Cast"])],
        [('["MatMul"]', '["MatMul", "Cast"]')],
    ),
    "an element less, comments stay": (
        [change("options", "skip", to=["one"])],
        [('    "two",\n', "")],
    ),
    "an element between": (
        [change("options", "skip", to=["one", "new", "two"])],
        [('    "two",', '    "new",\n    "two",')],
    ),
    "a new key stands behind its like": (
        [change("options", "deterministic", to=1)],
        [('dump.path = "/tmp"\n', 'dump.path = "/tmp"\ndeterministic = 1\n')],
    ),
    "the indent of its like": (
        [change("env", "A", to=1)],
        [('    HCCL_ALGO = "ring"\n', '    HCCL_ALGO = "ring"\n    A = 1\n')],
    ),
    "a new section has its place": (
        [change("atc", "framework", to=3)],
        [('    HCCL_ALGO = "ring"\n', '    HCCL_ALGO = "ring"\n\n[atc]\nframework = 3\n')],
    ),
    "a section before a later one": (
        [change("append", "options", "skip", to=["x"])],
        [("x = 1\n\n[env]", 'x = 1\n\n[append.options]\nskip = ["x"]\n\n[env]')],
    ),
    "a key goes, the comment above it stays": (
        [change("options", "hccl_timeout")],
        [("hccl_timeout = 1836 # 27 * 68\n", "")],
    ),
    "a table goes": ([change("options", "deep")], [("[options.deep]\nx = 1\n\n", "")]),
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
    assert (
        apply_changes("[options]\na = 1\nb = 2", [change("options", "a", to=3)])
        == "[options]\na = 3\nb = 2"
    )
    assert (
        apply_changes("[options]\na = 1", [change("options", "b", to=3)])
        == "[options]\na = 1\nb = 3\n"
    )


def test_mixed_line_endings_stay_where_they_are() -> None:
    text = "[options]\r\na = 1\nb = 2\r\n# end\r\n"
    assert (
        apply_changes(text, [change("options", "b", to=3), change("options", "c", to=4)])
        == "[options]\r\na = 1\nb = 3\r\nc = 4\r\n# end\r\n"
    )


def test_an_edit_that_would_come_out_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npuprof.edit.text_draft.rewrite_value", lambda *_: "1837")
    with pytest.raises(NpuprofError, match="NP921"):
        apply_changes(BASE, [change("options", "hccl_timeout", to=1838)])


@given(building.documents, building.names, building.toml_values)
def test_any_key_and_value_that_toml_can_hold_can_be_put_and_taken_away(
    data: dict[str, Any], name: str, value: Any
) -> None:
    document = {"options": data}
    text = building.toml(document)
    assign_at_path(document, ("options", name), value)
    after = apply_changes(text, [change("options", name, to=value)])
    assert is_same_typed_value(tomllib.loads(after), document)
    assign_at_path(document, ("options", name), MISSING)
    assert is_same_document(
        tomllib.loads(apply_changes(after, [change("options", name)])), document
    )


# -- any valid TOML -------------------------------------------------------------------------------

VALUES: list[Any] = [7, [1, "x"], {"a": {"b": [{"c": 1}]}}, [{"a": 1}, {"a": 2}]]


def possible_changes(data: dict[str, Any]) -> list[PathChange]:
    """Return every value replaced and removed, and something new put into every table and list."""
    found = [PathChange(("new",), value) for value in VALUES]
    paths = list(layouts.list_paths(data))
    for path in paths[:: len(paths) // 30 + 1]:
        stored = find_at_path(data, path)
        found += [PathChange(path, value) for value in (*VALUES, MISSING)]
        if isinstance(stored, (dict, list)):
            inside = "n w" if isinstance(stored, dict) else len(stored)
            found += [PathChange((*path, inside), value) for value in VALUES]
    return found


def check_edit(text: str, changes: list[PathChange]) -> str:
    """Make changes to a text; hold what it says against the same changes to plain data."""
    expected = tomllib.loads(text)
    for step in changes:
        assign_at_path(expected, step.path, step.value)
    after = apply_changes(text, changes)
    assert is_same_document(tomllib.loads(after), expected), changes
    return after


def check_untouched_lines(text: str, step: PathChange, after: str) -> None:
    """Check that a change touched only lines that it may: one statement, one place, or removals."""
    rows = list(Statements(text))
    no_table = (
        isinstance(step.path[-1], int)
        and step.value is not MISSING
        and not isinstance(step.value, dict)
    )
    size = (
        len(step.path) - no_table
    )  # an array of tables that gets another element is an array of tables no more
    within = [row for row in rows if not row.header and step.path[: len(row.path)] == row.path]
    below = [row for row in rows if row.path[:size] == step.path[:size]]
    if within and (within[0].path != step.path or step.value is not MISSING):
        (row,) = within
        joined = (
            "".join(earlier.lead + earlier.text for earlier in rows[: rows.index(row)]) + row.lead
        )
        assert after.startswith(joined), step
        rest = after[len(joined) :]
        for comment in collect_comments(
            row.text[row.value : row.end]
        ):  # what stood in the old value may stand above it now
            rest = re.sub(rf"^[ \t]*{re.escape(comment)}\r?\n", "", rest)
        assert rest.startswith(row.text[: row.value]), step
        assert after.rstrip("\r\n").endswith(text[len(joined) + row.end :].rstrip("\r\n")), step
    elif not below and not isinstance(step.path[-1], int):
        start = next(
            (
                place
                for place, pair in enumerate(zip(text, after, strict=False))
                if pair[0] != pair[1]
            ),
            min(len(text), len(after)),
        )
        assert after.endswith(text[start:]), step
    elif step.value is MISSING and any(
        row not in below and row.path[: size - 1] == step.path[:-1] for row in rows
    ):
        left = iter(split_lines(text))
        assert all(line in left for line in split_lines(after)), (
            step
        )  # the same lines in the same order
    others = {
        line
        for row in rows
        if row not in below and row not in within
        for line in split_lines(row.text)
    }
    assert {line.rstrip("\r\n") for line in others} <= {
        line.rstrip("\r\n") for line in split_lines(after)
    }, step


@pytest.mark.parametrize("name", layouts.TEXTS)
def test_every_place_of_any_valid_toml_can_be_changed(name: str) -> None:
    text = layouts.TEXTS[name]
    for step in possible_changes(tomllib.loads(text)):
        check_untouched_lines(text, step, check_edit(text, [step]))


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value that holds no other."""
    inside = list(
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    if path and not inside:
        yield path
    for part, item in inside:
        yield from leaves(item, (*path, part))


@pytest.mark.parametrize("name", [*layouts.TEXTS, *range(20)])
def test_a_value_that_is_set_takes_no_comment_away(name: str | int) -> None:
    dice = random.Random(name)
    text = layouts.TEXTS[name] if isinstance(name, str) else layouts.roll_document(dice)
    paths = [*leaves(tomllib.loads(text))]
    assert paths or name == "nothing"
    for path in paths:
        for stored in VALUES:
            lost = collect_comments(text) - collect_comments(
                check_edit(text, [PathChange(path, stored)])
            )
            assert not lost, path


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        pytest.param(
            "a = [ # x\n  1, # one\n]\n",
            PathChange(("a",), 7),
            "# x\n# one\na = 7\n",
            id="a list becomes a number",
        ),
        pytest.param(
            "a = [[1, # one\n 2]]\n",
            PathChange(("a", 0, 1), 7),
            "a = [[1, # one\n 7]]\n",
            id="one element of a list",
        ),
        pytest.param(
            "a = [\n  # none\n]\nb = 1\n",
            PathChange(("a",), ""),
            '# none\na = ""\nb = 1\n',
            id="an empty list becomes a text",
        ),
        pytest.param(
            "x = 1\n[a] # why\n\n[b]\n",
            PathChange(("a",), 7),
            "x = 1\na = 7\n# why\n\n[b]\n",
            id="a table becomes a number",
        ),
    ],
)
def test_a_comment_in_a_value_that_is_replaced_stands_above_it(
    text: str, change: PathChange, expected: str
) -> None:
    assert apply_changes(text, [change]) == expected


@pytest.mark.parametrize("seed", range(0, 60, 30))
def test_changes_made_together_do_what_they_do_one_after_another(seed: int) -> None:
    for number in range(seed, seed + 30):
        dice = random.Random(number)
        text = layouts.roll_document(dice)
        data = tomllib.loads(text)
        steps: list[PathChange] = []
        for step in dice.sample(possible_changes(data), 8):
            parents = [find_at_path(data, step.path[:end]) for end in range(len(step.path))]
            if all(
                isinstance(table, list if isinstance(part, int) else dict)
                for table, part in zip(parents, step.path, strict=True)
            ):
                if isinstance(step.path[-1], int) and not (
                    step.value is MISSING or step.path[-1] <= len(parents[-1])
                ):
                    continue
                assign_at_path(data, step.path, step.value)
                steps.append(step)
        check_edit(text, steps)


# -- how much work it is --------------------------------------------------------------------------

BLOCK = '[[override]]\nmatch = {{ product = "p{0}" }}\n[override.options]\na = {0}\n\n'
MANY: dict[str, tuple[str, str, Callable[[int], list[PathChange]]]] = {
    "each override gets a key": (
        "",
        BLOCK,
        lambda n: [PathChange(("override", i, "options", "b"), 1) for i in range(n)],
    ),
    "keys are renamed": (
        "[a]\n",
        "k{0} = 1\n",
        lambda n: [PathChange(("a", f"k{i}"), 2, name=f"m{i}") for i in range(n)],
    ),
    "a list gets an element": (
        "[a]\nl = [\n",
        "{0}, # c\n",
        lambda n: [change("a", "l", to=[*range(n), -1])],
    ),
}


@pytest.mark.parametrize("name", MANY)
def test_the_work_of_an_edit_grows_no_faster_than_the_file(name: str) -> None:
    start, line, changes = MANY[name]

    def edit(size: int) -> Callable[[], object]:
        text = start + "".join(map(line.format, range(size)))
        text += "]\n" if text.count("[") > text.count("]") else ""
        made = changes(size)
        return lambda: apply_changes(text, made)

    assert measure_growth(edit, 100) < 1.3
