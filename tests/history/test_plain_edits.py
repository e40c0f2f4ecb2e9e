"""Edits that are read from lines without a parser, and those that are not."""

from __future__ import annotations

import tomllib

import pytest

from npuprof.history.plain_edits import find_edits
from npuprof.model import NpuprofError

TEXT = (
    '[profile]\nscenario = "training"\n[options]\nhccl_timeout = 1 # s\nop_wait_timeout = 2\n'
    'dump_mode = "all"\n[env]\nhccl_timeout = "a"\n'
)


HCCL, WAIT, MODE = (("options", name) for name in ("hccl_timeout", "op_wait_timeout", "dump_mode"))


def compare_texts(old: str, new: str) -> object:
    """Return the edits between two texts, the later one valid."""
    return find_edits(old, new, tomllib.loads(new))


@pytest.mark.parametrize(
    ("was", "now", "edited"),
    [
        pytest.param("= 1", "= +9", {HCCL: 1}, id="a sign"),
        pytest.param("= 1", "= true", {HCCL: 1}, id="a truth value"),
        pytest.param("= 1", '= "1"', {HCCL: 1}, id="a text"),
        pytest.param('"all"', "'input' # \"'\"", {MODE: "all"}, id="a text in single quotes"),
        pytest.param("= 2", "= true # yes", {WAIT: 2}, id="value and comment"),
        pytest.param('"all"', '"input"', {MODE: "all"}, id="a choice"),
        pytest.param('"a"', '"b"', {("env", "hccl_timeout"): "a"}, id="a variable"),
        pytest.param(
            "= 1 # s\nop_wait_timeout = 2",
            "= 3\n\n# s\nop_wait_timeout = 4",
            {HCCL: 1, WAIT: 2},
            id="two values, on other lines",
        ),
        pytest.param(
            "op_wait", "op_execute", {WAIT: 2, ("options", "op_execute_timeout"): None}, id="a key"
        ),
        pytest.param(
            "= 1 # s\n",
            '= 1\nmodify_mixlist = "all"\n',
            {("options", "modify_mixlist"): None},
            id="a new line",
        ),
        pytest.param("= 1", "= 1.0", None, id="a float"),
        pytest.param("= 1", "= [1] # one", {HCCL: 1}, id="a list"),
        pytest.param("= 1", "= [\n[1]]", None, id="a list of several lines"),
        pytest.param("training", "online-inference", None, id="the scenario"),
        pytest.param('"all"', r'"\u0061"', None, id="an escape"),
        pytest.param("= 2", "= { a = ['b', { c = 1.0 }] }", {WAIT: 2}, id="an inline table"),
        pytest.param("= 2", "= { a = '#' }", None, id="a mark of comments in a text"),
        pytest.param("[env]", "[atc]", None, id="the head of a table"),
        pytest.param("[options]", "[[override]]", None, id="an array of tables"),
        pytest.param("= 2", '= """\n"""', None, id="a text of several lines"),
    ],
)
def test_edits_are_read_from_lines_of_plain_values_only(was: str, now: str, edited: object) -> None:
    changed = TEXT.replace(was, now, 1)
    assert compare_texts(TEXT, changed) == edited
    assert (compare_texts(changed, TEXT) is None) == (edited is None)


@pytest.mark.parametrize(
    "line", ["options = { hccl_timeout = 5 }", "[override.options]\nhccl_timeout = 5"]
)
def test_a_setting_that_moves_to_another_override_is_left_to_the_parser(line: str) -> None:
    above, below = '[[override]]\nmatch = { cann = ">=9.0" }\n', "[[override]]\n"
    assert compare_texts(f"{above}{line}\n{below}", f"{above}{below}{line}\n") is None


def test_a_setting_that_moves_below_an_equal_header_is_left_to_the_parser() -> None:
    block = "[[override]]\n[override.options]\n"
    old, new = f"{block}hccl_timeout = 5\n{block}", f"{block}{block}hccl_timeout = 5\n"
    assert compare_texts(old, new) is None


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("= 2", "= 2"),
        ("= 2", "=   2"),
        ("# s", "# seconds, 秒"),
        ("# s", ""),
        ("[profile]", "# above\n\n[profile]"),
        ("[options]\n", "\n[options]\n# below\n"),
        ("hccl_timeout = 1 # s\nop_wait_timeout = 2", "op_wait_timeout = 2\nhccl_timeout = 1"),
    ],
)
def test_lines_with_other_places_or_comments_are_no_edits(was: str, now: str) -> None:
    changed = TEXT.replace(was, now, 1)
    assert compare_texts(TEXT, changed) == compare_texts(changed, TEXT) == {}


@pytest.mark.parametrize(
    "old",
    [
        "[options]\na = 2\na = 1\n",
        "[options]\na = 1\na = 2\n",
        "[options]\na = 1\n[options]\n",
        "[options]\na = 1 2\n",
        "[options]\na.b = 1\na = 1\n",
        "[options]\na = 1\n# \x00\n",
        "[options]\na = [1\n",
    ],
)
def test_an_invalid_text_has_no_edits(old: str) -> None:
    assert compare_texts(old, "[options]\na = 1\n") is None


@pytest.mark.parametrize("text", ["false", "-7", '"a b"', "'a\\b'", '""', "[true, {}]"])
def test_the_earlier_value_has_the_type_that_a_parser_gives_it(text: str) -> None:
    old, new = (f"[options]\nhccl_timeout = {value} # s\n" for value in (text, 5))
    edits = find_edits(old, new, tomllib.loads(new))
    value = tomllib.loads(old)["options"]["hccl_timeout"]
    assert edits == {HCCL: value}
    assert type(edits[HCCL]) is type(value)


@pytest.mark.parametrize(
    "header",
    [
        "[options.modify_mixlist]",
        "[override.options]",
        "[profile.versions]",
        "[torch_npu]",
        '["options"]',
    ],
)
def test_values_below_other_headers_are_left_to_the_parser(header: str) -> None:
    old, new = (f"{header}\na = {number}\n" for number in (1, 2))
    assert compare_texts(old, new) is None


@pytest.mark.parametrize("value", ["[[1]\n]", "{ a = 1, a = 2 }", "[1]]", "[" * 101 + "]" * 101])
def test_a_value_that_its_line_does_not_hold_is_left_to_the_parser(value: str) -> None:
    with pytest.raises(NpuprofError):
        compare_texts(f"[options]\na = {value}\n", "[options]\na = 1\n")
