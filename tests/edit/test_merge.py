"""Three-way merges with known outcomes for keys, elements, overrides, comments and conflicts."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.edit.merge import (
    format_conflicts,
    merge_ordered_lists,
    merge_texts,
    merge_unordered_lists,
    split_conflicts,
)
from npuprof.edit.paths import MISSING, is_same_document
from npuprof.edit.toml_statements import collect_comments
from support import building
from support.growth import measure_growth

BASE = """\
[profile]
extends = ["base/a"]
products = ["atlas-a2"]

[options]
hccl_timeout = 1836 # seconds
skip = ["a", "b", "c"]
dims = [1, 2, 3]

[options.modify_mixlist]
black-list = { to-add = ["MatMul"] }

[env]
A = 1
"""

CLEAN: dict[str, tuple[str, str, str]] = {
    "different keys": ("A = 1|A = 2", "1836|1904", "1836|1904;A = 1|A = 2"),
    "the same value in two forms": (
        'skip = ["a", "b", "c"]|skip = ["a", "b"]',
        'skip = ["a", "b", "c"]|skip = ["a","b"]',
        'skip = ["a", "b", "c"]|skip = ["a", "b"]',
    ),
    "keys added side by side": (
        "A = 1|A = 1\nB = 2",
        "A = 1|A = 1\nC = 3",
        "A = 1|A = 1\nB = 2\nC = 3",
    ),
    "different elements changed": (
        "[1, 2, 3]|[9, 2, 3]",
        "[1, 2, 3]|[1, 2, 8]",
        "[1, 2, 3]|[9, 2, 8]",
    ),
    "sets in [profile]": (
        '["atlas-a2"]|["atlas-a3"]',
        '["atlas-a2"]|["atlas-a2", "atlas-training"]',
        '["atlas-a2"]|["atlas-a3", "atlas-training"]',
    ),
    "a section added by theirs": (
        "A = 1|A = 2",
        "A = 1\n|A = 1\n\n# flags\n[atc]\nframework = 3 # tf\n",
        "A = 1\n|A = 2\n\n# flags\n[atc]\nframework = 3 # tf\n",
    ),
    "a section removed, another changed": (
        "1836|1904",
        "\n[env]\nA = 1\n|",
        "1836|1904;\n[env]\nA = 1\n|",
    ),
    "a comment beside, and the value by ours": (
        "1836|1904",
        "# seconds|# s, 27 * 68",
        "1836|1904;# seconds|# s, 27 * 68",
    ),
    "a key of theirs comes with its comments": (
        "1836|1904",
        "A = 1|A = 1\n# why\nB = 2 # two",
        "1836|1904;A = 1|A = 1\n# why\nB = 2 # two",
    ),
    "overrides added by both": (
        'A = 1\n|A = 1\n\n[[override]]\nmatch = { product = "a" }\nenv = { X = 1 }\n',
        'A = 1\n|A = 1\n\n# b is slow\n[[override]]\nmatch = { product = "b" }\nenv = { X = 2 }\n',
        'A = 1\n|A = 1\n\n[[override]]\nmatch = { product = "a" }\nenv = { X = 1 }\n\n'
        '# b is slow\n[[override]]\nmatch = { product = "b" }\nenv = { X = 2 }\n',
    ),
    "a licence above all": (
        "1836|1904",
        "[profile]|# Copyright them\n\n[profile]",
        "1836|1904;[profile]|# Copyright them\n\n[profile]",
    ),
    "a paragraph above a key that ours changed": (
        "1836|1904",
        "hccl|# free\n\nhccl",
        "hccl_timeout = 1836|# free\n\nhccl_timeout = 1904",
    ),
    "elements removed by both": (
        'A = 1\n|A = 1\n\n[remove.options]\nskip = ["a", "b"]\n',
        'A = 1\n|A = 1\n\n[remove.options]\nskip = ["c", "a"]\n',
        'A = 1\n|A = 1\n\n[remove.options]\nskip = ["a", "b", "c"]\n',
    ),
    "the end of the file": ("A = 1|A = 2", "A = 1\n|A = 1\n\n# bye\n", "A = 1\n|A = 2\n\n# bye\n"),
    "beside a header": ("A = 1|A = 2", "[env]|[env] # all", "A = 1|A = 2;[env]|[env] # all"),
}


def replace_lines(text: str, edits: str) -> str:
    for edit in edits.split(";") if edits else ():
        old, _, new = edit.partition("|")
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_both_changes_are_in_the_merge(name: str, ending: str) -> None:
    ours, theirs, expected = (
        replace_lines(BASE, edits).replace("\n", ending) for edits in CLEAN[name]
    )
    result = merge_texts(BASE.replace("\n", ending), ours, theirs)
    assert not result.conflicts
    assert result.text == expected


CONFLICTS: dict[str, tuple[str, str, str, str]] = {
    "parents added by both": (
        '["base/a"]|["base/a", "m/x"]',
        '["base/a"]|["base/a", "m/y"]',
        'extends = ["base/a", "m/x"]\n',
        'extends = ["base/a", "m/y"]\n',
    ),
    "one key, two values": (
        "1836|1904",
        "1836|1972",
        "hccl_timeout = 1904 # seconds\n",
        "hccl_timeout = 1972 # seconds\n",
    ),
    "changed here, removed there": (
        "1836|1904",
        "hccl_timeout = 1836 # seconds\n|",
        "hccl_timeout = 1904 # seconds\n",
        "",
    ),
    "removed here, changed there": (
        "hccl_timeout = 1836 # seconds\n|",
        "1836|1904",
        "",
        "hccl_timeout = 1904 # seconds\n",
    ),
    "one key added with two values": (
        "A = 1|A = 1\nB = 2",
        "A = 1|A = 1\nB = 3",
        "B = 2\n",
        "B = 3\n",
    ),
    "true is not 1": ("A = 1|A = 1\nB = true", "A = 1|A = 1\nB = 1", "B = true\n", "B = 1\n"),
    "numbers added at one place": (
        "[1, 2, 3]|[1, 2, 3, 4]",
        "[1, 2, 3]|[1, 2, 3, 5]",
        "dims = [1, 2, 3, 4]\n",
        "dims = [1, 2, 3, 5]\n",
    ),
    "a table here, text there": (
        (
            '[options.modify_mixlist]\nblack-list = { to-add = ["MatMul"] }\n\n|;[1, 2, 3]\n'
            '|[1, 2, 3]\nmodify_mixlist = "x.json"\n'
        ),
        '["MatMul"]|["Cast"]',
        'modify_mixlist = "x.json"\n',
        '\n[options.modify_mixlist]\nblack-list = { to-add = ["Cast"] }\n',
    ),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_clashes_is_marked_and_nothing_else(name: str) -> None:
    ours, theirs, mine, other = CONFLICTS[name]
    result = merge_texts(BASE, replace_lines(BASE, ours), replace_lines(BASE, theirs))
    assert len(result.conflicts) == 1
    assert f"<<<<<<< ours\n{mine}=======\n{other}>>>>>>> theirs\n" in result.text
    assert result.text.count("<<<<<<<") == 1
    picked = split_conflicts(result.text)
    assert picked is not None
    assert is_same_document(tomllib.loads(picked[0]), tomllib.loads(replace_lines(BASE, ours)))
    assert is_same_document(tomllib.loads(picked[1]), tomllib.loads(replace_lines(BASE, theirs)))


def test_what_does_not_clash_is_merged_beside_a_conflict() -> None:
    result = merge_texts(
        BASE,
        replace_lines(BASE, "1836|1904;A = 1|A = 1\nB = 2"),
        replace_lines(BASE, "1836|1972;A = 1|A = 1\nC = 3"),
    )
    assert result.conflicts == ("conflict in options.hccl_timeout: here 1904, there 1972",)
    picked = split_conflicts(result.text)
    assert picked is not None
    assert [tomllib.loads(side)["env"] for side in picked] == [{"A": 1, "B": 2, "C": 3}] * 2


def test_a_file_added_by_both_is_merged_from_nothing() -> None:
    ours, theirs = "[options]\na = 1\nb = 2\n", "[options]\nb = 2\nc = 3\n\n[env]\nX = 1\n"
    assert merge_texts("", ours, theirs).text == "[options]\na = 1\nb = 2\nc = 3\n\n[env]\nX = 1\n"


@pytest.mark.parametrize(
    "head",
    [
        "[options]\n",
        "[append.options]\n",
        '[[override]]\nmatch = { product = "a" }\n[override.options]\n',
    ],
)
def test_one_meaning_in_two_forms_is_no_conflict(head: str) -> None:
    ours = f'{head}local_device_list = "0,1"\n'
    assert merge_texts(head, ours, f"{head}local_device_list = [0, 1]\n").text == ours


def block(product: str, number: int) -> str:
    return f'[[override]]\nmatch = {{ product = "{product}" }}\nenv = {{ X = {number} }}\n\n'


def format_blocks(names: str) -> str:
    """Return overrides by product and value: ``a1 b2`` are two."""
    return "".join(block(name[0], int(name[1])) for name in names.split())


def list_blocks(text: str) -> list[str]:
    """Return the overrides of a text by product and value, in order."""
    overrides = tomllib.loads(text).get("override", [])
    return [f"{override['match']['product']}{override['env']['X']}" for override in overrides]


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        pytest.param("a1 b1", "a2 b1", "a1 b2", "a2 b2", id="each side changes one"),
        pytest.param("a1 b1", "b1", "a1 b2", "b2", id="we remove one, they change another"),
        pytest.param("a1 b1", "a1 b1 c1", "b1", "b1 c1", id="we add one, they remove another"),
        pytest.param("a1 b1", "a1 b1", "b1 a1", None, id="they move one"),
        pytest.param("", "a1", "b1", "a1 b1", id="each side adds one"),
        pytest.param("a1 b1", "a2 b1", "b1", None, id="we change what they remove"),
        pytest.param("a1 b1", "b1", "a2 b1", None, id="we remove what they change"),
        pytest.param("a1 b1", "b1 a1", "a1 c1 b1", None, id="we move one, they add another"),
        pytest.param("a1", "a2", "a3", None, id="both change one"),
        pytest.param("a1 a2", "a1 a3", "a9 a2", "a9 a3", id="two with one match"),
    ],
)
def test_overrides_are_merged_by_their_match(
    base: str, ours: str, theirs: str, expected: str | None
) -> None:
    result = merge_texts(format_blocks(base), format_blocks(ours), format_blocks(theirs))
    if expected is None:
        sides = split_conflicts(result.text)
        assert sides is not None
        left, right = map(list_blocks, sides)
        assert {*ours.split()} <= {*left, *right}
        assert {*theirs.split()} <= {*left, *right}
    else:
        assert not result.conflicts
        assert list_blocks(result.text) == expected.split()


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        pytest.param("abc", "abc", "abc", "abc", id="nothing changed"),
        pytest.param("abc", "axbc", "abyc", "axbyc", id="each side adds one"),
        pytest.param("abc", "bc", "ab", "b", id="each side removes one"),
        pytest.param("abc", "cab", "bca", "cba", id="each side moves one"),
        pytest.param("abcd", "bcda", "bcad", None, id="both move one element"),
        pytest.param("", "a", "b", None, id="both add at one place"),
        pytest.param("ab", "xb", "ay", "xy", id="each side replaces one"),
        pytest.param("ab", "xb", "b", None, id="we replace what they remove"),
    ],
)
def test_sequences(base: str, ours: str, theirs: str, expected: str | None) -> None:
    found = merge_ordered_lists(list(base), list(ours), list(theirs))
    assert found is MISSING if expected is None else found == list(expected)


def test_sets_never_clash() -> None:
    assert merge_unordered_lists([1, 2, 3], [1, 3, 4], [2, 3, 5]) == [3, 4, 5]
    assert merge_unordered_lists([1], [1, True], [1]) == [1, True]


def test_markers_and_sides_are_each_others_inverse() -> None:
    ours, theirs = "a\nb\nc\n", "a\nx\nc\nd\n"
    assert split_conflicts(format_conflicts(ours, theirs)) == (ours, theirs)
    assert split_conflicts(format_conflicts(ours, theirs, 12)) == (ours, theirs)
    assert split_conflicts(ours) is None
    assert split_conflicts("<<<<<<< ours\na\n") is None


# -- comments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a = 1 # x\n# y\n", ["# x", "# y"]),
        ("a = '#' # x", ["# x"]),
        ('a = "\\"# no" # x\n', ["# x"]),
        ('a = """\n# no\n""" # x\n', ["# x"]),
        ("a = '''\n# no''' # it's\n'b#' = 1 # x\n", ["# it's", "# x"]),
        ("a = [ # x\n1, # y\n]\r\n# z \r\n", ["# x", "# y", "# z"]),
        ("# x\n#\n## \n# x\n", ["# x", "# x"]),
    ],
)
def test_comments_are_what_stands_behind_a_hash_that_is_in_no_string(
    text: str, found: list[str]
) -> None:
    assert sorted(collect_comments(text).elements()) == found


LIST = '[options]\nskip = [\n    "a", # about a\n    "b",\n]\n'
APART: dict[str, tuple[str, str, str]] = {
    "a comment above": ("# why\n" + LIST, "# why|# ours", "# why|# theirs"),
    "a comment beside": ("[env]\nA = 1 # why\n", "# why|# ours", "# why|# theirs"),
    "a comment in a list": (LIST, "about a|ours", "about a|theirs"),
    "of a key that theirs took out": (
        "[env]\n# why\nA = 1\nB = 2\n",
        "# why|# ours",
        "# why\nA = 1\n|",
    ),
    "beside a key that theirs took out": (
        "[env]\nA = 1\nB = 2\n",
        "A = 1|A = 1 # ours",
        "A = 1\n|",
    ),
    "above all": ("[env]\nA = 1\n", "[env]|# ours\n\n[env]", "[env]|# theirs\n\n[env]"),
    "at the end": ("[env]\nA = 1\n", "A = 1\n|A = 1\n# ours\n", "A = 1\n|A = 1\n# theirs\n"),
    "a paragraph above a key that theirs took out": (
        "[env]\nA = 1\nB = 2\n",
        "A = 1|# ours\n\nA = 1",
        "A = 1\n|",
    ),
    "in a table that theirs took out": (
        "[env]\nA = 1\n[atc]\nx = 1\n",
        "x = 1|# ours\nx = 1",
        "[atc]\nx = 1\n|",
    ),
}


@pytest.mark.parametrize("name", APART)
def test_a_comment_that_cannot_be_kept_is_a_conflict(name: str) -> None:
    base, *edits = APART[name]
    ours, theirs = (replace_lines(base, edit) for edit in edits)
    result = merge_texts(base, ours, theirs)
    assert result.conflicts
    picked = split_conflicts(result.text)
    assert picked is not None
    assert [tomllib.loads(side) for side in picked] == [tomllib.loads(ours), tomllib.loads(theirs)]
    assert "ours" not in ours or "ours" in picked[0]
    assert "# theirs" not in theirs or "# theirs" in picked[1]
    windows = [text.replace("\n", "\r\n") for text in (base, ours, theirs)]
    text = merge_texts(*windows).text
    assert text.count("\n") == text.count("\r\n")


def test_a_value_in_conflict_has_the_comments_of_each_side_and_one_line_ending() -> None:
    base, ours, theirs = (
        f"[env]\r\nA = [\r\n  1, # one\r\n  {number}, # {side}\r\n]\r\n"
        for number, side in ((2, "b"), (3, "o"), (4, "t"))
    )
    text = merge_texts(base, ours, theirs).text
    assert text.count("\n") == text.count("\r\n")
    assert split_conflicts(text) == (ours, theirs)


def test_a_text_without_a_last_newline_takes_comments_at_its_end() -> None:
    result = merge_texts("[env]\nA = 1", "[env]\nA = 2", "[env]\nA = 1\n# bye\n")
    assert result.text == "[env]\nA = 2\n# bye\n"


sections = st.dictionaries(
    st.sampled_from(["profile", "options", "env"]),
    st.dictionaries(building.names, building.toml_values, max_size=4),
    max_size=3,
)


@given(sections, sections)
def test_a_side_that_changed_nothing_leaves_the_merge_to_the_other(
    base: dict[str, Any], other: dict[str, Any]
) -> None:
    texts = building.toml(base), building.toml(other)
    for result in (
        merge_texts(texts[0], texts[0], texts[1]),
        merge_texts(texts[0], texts[1], texts[0]),
    ):
        assert not result.conflicts
        assert is_same_document(tomllib.loads(result.text), other)


# -- how much work it is --------------------------------------------------------------------------


def write_sides(start: str, line: str, *sides: Iterable[int], end: str = "") -> tuple[str, ...]:
    """Return three texts with common lines, and a line or a block for each number of each side."""
    return tuple(start + "".join(map(line.format, side)) + end for side in sides)


def make_three_sides(text: str) -> tuple[str, ...]:
    """Return three texts that differ in every value."""
    return tuple(text.replace("= 1", f"= {side}") for side in range(3))


KEY = "# about {0}\nk{0} = 1 # beside\n"
BLOCK = '# about {0}\n[[override]]\nmatch = {{ product = "p{0}" }}\nenv = {{ A = 1 }}\n\n'
MANY: dict[str, Callable[[int], tuple[str, ...]]] = {
    "keys added by both": lambda n: write_sides(
        "[env]\n", KEY, range(n), range(2 * n), [*range(n), *range(2 * n, 3 * n)]
    ),
    "overrides that clash": lambda n: make_three_sides(write_sides("", BLOCK, range(n))[0]),
    "elements of a list": lambda n: write_sides(
        "[options]\nskip = [", "'{0}', ", range(n), range(n + 1), range(-1, n), end="]\n"
    ),
}


@pytest.mark.parametrize("name", MANY)
def test_the_work_of_a_merge_grows_no_faster_than_the_files(name: str) -> None:
    def merge(size: int) -> Callable[[], object]:
        texts = MANY[name](size)
        return lambda: merge_texts(*texts)

    assert measure_growth(merge, 60) < 1.3
