"""Where keys and list elements stand: awkward documents by hand, random ones in random layout."""

from __future__ import annotations

import random
import re
import tomllib
from typing import Any

import pytest
import tomlkit
from hypothesis import assume, given
from hypothesis import strategies as st

from npuprof.document import Document, parse_document, positions
from npuprof.document.positions import Positions
from npuprof.model import is_same_typed_value
from support import layouts
from support.building import documents

Q3 = '"""'
A3 = "'''"

#: Text, then where paths stand: (path, line, column), counted from 1.
TABLE = [
    ("", [((), 1, 1), (("a",), 1, 1)]),
    ("a = 1", [(("a",), 1, 1)]),
    ("a = 1\r\nb = 2\r\n", [(("b",), 2, 1)]),
    (
        "[t]\na = 1\n[u]\na = 2\n",
        [(("t",), 1, 2), (("t", "a"), 2, 1), (("u",), 3, 2), (("u", "a"), 4, 1)],
    ),
    (
        '[ a . \'b.c\' . "d\\"" ]\nx=1',
        [(("a", "b.c", 'd"'), 1, 15), (("a", "b.c", 'd"', "x"), 2, 1), (("a",), 1, 3)],
    ),
    ("a . b = 1\na.'c' = 2", [(("a",), 1, 1), (("a", "b"), 1, 5), (("a", "c"), 2, 3)]),
    (
        "a = { b = 1, 'c' = [2, 3], d.e = { f = 4 } }",
        [
            (("a", "b"), 1, 7),
            (("a", "c"), 1, 14),
            (("a", "c", 0), 1, 21),
            (("a", "c", 1), 1, 24),
            (("a", "d"), 1, 28),
            (("a", "d", "e"), 1, 30),
            (("a", "d", "e", "f"), 1, 36),
        ],
    ),
    (
        "a = [ # [ not this\n  1, # , nor ] this\n\n  [ 2 ,\n3 ] ,\n  ]\nb = 1",
        [
            (("a", 0), 2, 3),
            (("a", 1), 4, 3),
            (("a", 1, 0), 4, 5),
            (("a", 1, 1), 5, 1),
            (("b",), 7, 1),
        ],
    ),
    ("a = []\nb = [ ]\nc = {}\nd = { }\ne = [\n]\nf=1", [(("a", 0), 1, 1), (("f",), 7, 1)]),
    (
        (
            "[[a]]\nx = 1\n[[a]]\nx = 2\n[a.b]\ny = 3\n[[a.c]]\n"
            "z = 4\n[[a.c]]\nz = 5\n[[a]]\n[a.b]\ny = 6\n"
        ),
        [
            (("a",), 1, 3),
            (("a", 0), 1, 3),
            (("a", 0, "x"), 2, 1),
            (("a", 1), 3, 3),
            (("a", 1, "x"), 4, 1),
            (("a", 1, "b"), 5, 4),
            (("a", 1, "b", "y"), 6, 1),
            (("a", 1, "c", 0, "z"), 8, 1),
            (("a", 1, "c", 1, "z"), 10, 1),
            (("a", 2, "b", "y"), 13, 1),
        ],
    ),
    ('a = \'x = 1 # [\'\nb = "]\\"\\\\" # "\nc = 1', [(("b",), 2, 1), (("c",), 3, 1)]),
    (f"a = {Q3}\nb = 1\n[t]\n\\{Q3} {Q3}\nc = 2", [(("b",), 1, 1), (("c",), 5, 1)]),
    (f"a = {A3}\\{A3}\nb = {A3}\n'' \n{A3}''\nc = 3", [(("b",), 2, 1), (("c",), 5, 1)]),
    (
        f"a = [{Q3}\n]{Q3}, '[', \"]\", {A3}\n,{A3}, 5]",
        [(("a", 1), 2, 7), (("a", 2), 2, 12), (("a", 3), 2, 17), (("a", 4), 3, 7)],
    ),
    (
        (
            "a = 1979-05-27 07:32:00 # d\n"
            "b = [ 1979-05-27T07:32:00Z,07:32:00.5 ]\nc = [-inf,+nan,1e5 , 0xf]"
        ),
        [
            (("b",), 2, 1),
            (("b", 1), 2, 28),
            (("c", 1), 3, 11),
            (("c", 2), 3, 16),
            (("c", 3), 3, 22),
        ],
    ),
    ("\"caf\u00e9\" = 1\na = ['\U0001f600', 2]", [(("caf\u00e9",), 1, 1), (("a", 1), 2, 11)]),
    (
        "[override.match]\n[x]\n[override]\nunset = ['q']",
        [(("override", "match"), 1, 11), (("override", "unset", 0), 4, 10)],
    ),
    ("1 = 1\n-2-_ = 2\n3.14 = 'pi'", [(("1",), 1, 1), (("-2-_",), 2, 1), (("3", "14"), 3, 3)]),
    (
        "# c\n[options]\nl = [\n[1],\n]\nx = 1\n[env]\nx = 2\n",
        [(("options", "l"), 3, 1), (("options", "x"), 6, 1), (("env", "x"), 8, 1)],
    ),
    (
        "a = 1\n[env]\ny = 1\n[options]\ns = ''\nx = 1\n",
        [(("options", "s"), 5, 1), (("options", "x"), 6, 1), (("options", "y"), 4, 2)],
    ),
    (
        f"# c\n[options]\ns = {Q3}\nx = 1\n{Q3}\nx = 1\n",
        [(("options", "s"), 3, 1), (("options", "x"), 6, 1)],
    ),
    (
        "[[a]]\n[options]\n[env]\nx = 1\n[options.t]\nx = 2\n",
        [(("options", "x"), 2, 2), (("env", "x"), 4, 1)],
    ),
    (
        "[a]\n[a.b.c]\nx = 1\n[a.b]\ny = 2",
        [(("a", "b"), 2, 4), (("a", "b", "c", "x"), 3, 1), (("a", "b", "y"), 5, 1)],
    ),
]


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_awkward_documents(text: str, expected: list[tuple[Any, int, int]]) -> None:
    data = tomllib.loads(text)
    positions = Positions(text)
    assert [(path, *positions.find_position(path)) for path, _, _ in expected] == expected
    check(text, data, positions)


@pytest.mark.parametrize(("text", "expected"), TABLE[1:])
def test_a_document_says_the_same_of_a_place_whatever_was_asked_before(
    text: str, expected: list[tuple[Any, int, int]]
) -> None:
    paths = [path for path, _, _ in expected] + [("not", "there"), ("a", "not there")]
    known = Positions(text)
    assert paths
    for first in paths:
        requested = parse_document("a", "a.toml", text)
        for path in (first, first, *paths, first):
            assert requested.locate_line(path) == known.find_position(path)[0], (first, path)
            assert requested.locate_path(path) == known.find_position(path), (first, path)


def test_what_stands_behind_a_sought_place_is_not_read() -> None:
    positions = Positions("[a]\nb = [1, 2]\n[c]\nd = 1\n[a.e]\n")
    assert positions.find_position(("a", "b", 1)) == (2, 9)
    assert {*positions._at} == {("a",), ("a", "b"), ("a", "b", 0), ("a", "b", 1)}
    assert positions.find_position(("a", "x")) == (1, 2)
    assert ("a", "e") in positions._at
    assert len(positions.statements) == 5


def check(text: str, data: Any, positions: Positions) -> None:
    """Assert that each key and element is at its position, also if only it is sought."""
    for path, _ in walk(data, ()):
        assert Positions(text).find_position(path) == positions.find_position(path), path
        assert Document("a", "a.toml", text, data).locate_path(path) == positions.find_position(
            path
        ), path
        line = Document("a", "a.toml", text, data).locate_line(path)
        assert line == positions.find_position(path)[0], path
    text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    for path, value in walk(data, ()):
        assert path in positions, path
        line, column = positions.find_position(path)
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        if isinstance(path[-1], int) and in_header(lines[line - 1], column):
            continue  # an array of tables: its elements are headers
        if isinstance(path[-1], int):
            assert starts_with_value(f"v = {rest}", "v", value), (path, rest)
        elif in_header(lines[line - 1], column):
            assert read_segment(rest) == path[-1]
        elif not isinstance(value, dict) or re.match(
            r"""([\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')[ \t]*=""", rest, re.ASCII
        ):
            assert starts_with_value(rest, path[-1], value), (path, rest)
        else:
            assert read_segment(rest) == path[-1]


def in_header(line: str, column: int) -> bool:
    return (
        line.lstrip(" \t").startswith("[")
        and re.match(r"[ \t]*\[\[?[^=]*$", line[: column - 1]) is not None
    )


def walk(value: Any, path: tuple[Any, ...]) -> list[tuple[tuple[Any, ...], Any]]:
    found = [(path, value)] if path else []
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return found + [pair for name, item in pairs for pair in walk(item, (*path, name))]


def read_segment(text: str) -> str:
    """Return the first segment of a key."""
    match = re.match(r"""([A-Za-z0-9_-]+)|"(?:[^"\\]|\\.)*"|'[^']*'""", text)
    assert match is not None, text
    return match[1] if match[1] is not None else next(iter(tomllib.loads(f"{match[0]} = 1")))


def starts_with_value(text: str, name: str, value: Any) -> bool:
    """Return whether some beginning of a text is ``name = value`` in TOML."""
    for end in range(1, len(text) + 1):
        if end < len(text) and text[end - 1] == text[end] == " ":
            continue
        try:
            found = tomllib.loads(text[:end])
        except tomllib.TOMLDecodeError:
            continue
        if len(found) == 1 and name in found and is_same_value(found[name], value):
            return True
    return False


def is_same_value(left: Any, right: Any) -> bool:
    return is_same_typed_value(left, right)


@given(documents)
def test_documents_that_tomlkit_wrote(document: dict[str, Any]) -> None:
    text = tomlkit.dumps(document)
    data = layouts.parse_toml(text)
    assume(data is not None)
    check(text, data, Positions(text))


@pytest.mark.parametrize("name", [name for name in layouts.TEXTS if "deep" not in name])
def test_documents_that_no_editor_expects(name: str) -> None:
    check(layouts.TEXTS[name], tomllib.loads(layouts.TEXTS[name]), Positions(layouts.TEXTS[name]))


@given(st.randoms(use_true_random=False))
def test_documents_in_any_layout(dice: random.Random) -> None:
    text = layouts.roll_document(dice)
    check(text, tomllib.loads(text), Positions(text))


def test_a_megabyte_in_one_value_is_scanned_at_once() -> None:
    body = "x\\n" * 200_000
    text = f'a = ["{body}", """{body}""", 3]\nb = [{"1," * 100_000}]\nc = 1\n'
    positions = Positions(text)
    assert positions.find_position(("c",)) == (3, 1)
    assert positions.find_position(("b", 99_999)) == (2, 6 + 2 * 99_999)
    assert text.split("\n")[0][positions.find_position(("a", 2))[1] - 1 :] == "3]"


@given(documents, st.randoms(use_true_random=False))
def test_plain_statements_are_read_as_all_others_are(
    document: dict[str, Any], rng: random.Random
) -> None:
    texts = [tomlkit.dumps(document), layouts.roll_document(rng), layouts.roll_document(rng)]
    for text in (*texts, *(text for text, _ in TABLE)):
        data = layouts.parse_toml(text)
        if data is None:  # tomlkit writes some documents that are none
            continue
        quick = Positions(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(positions, "_PLAIN", re.compile("(?!)"))
            slow = Positions(text)
        assert quick.statements == slow.statements, text
        assert [quick.find_position(path) for path, _ in walk(data, ())] == [
            slow.find_position(path) for path, _ in walk(data, ())
        ], text
