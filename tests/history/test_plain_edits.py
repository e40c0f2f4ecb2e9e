"""Edits that are read from lines without a parser, and those that are not."""

from __future__ import annotations

import tomllib

import pytest

from npuprof.history.plain_edits import PlainEdit, find_plain_edits

TEXT = (
    '[profile]\nscenario = "training"\n[options]\nhccl_timeout = 1 # s\nop_wait_timeout = 2\n'
    'dump_mode = "all"\n[env]\nhccl_timeout = "a"\n'
)


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        pytest.param("= 1", "= +9", {"hccl_timeout": PlainEdit(4, 1)}, id="a sign"),
        pytest.param("= 1", "= true", {"hccl_timeout": PlainEdit(4, 1)}, id="a truth value"),
        pytest.param("= 1", '= "1"', {"hccl_timeout": PlainEdit(4, 1)}, id="a text"),
        pytest.param("# s", "# seconds", {"hccl_timeout": PlainEdit(4, 1)}, id="a comment"),
        pytest.param(
            "= 2", "= true # yes", {"op_wait_timeout": PlainEdit(5, 2)}, id="value and comment"
        ),
        pytest.param('"all"', '"input"', {"dump_mode": PlainEdit(6, "all")}, id="a choice"),
        pytest.param('"a"', '"b"', {"env.hccl_timeout": PlainEdit(8, "a")}, id="a variable"),
        pytest.param("= 2", "= 2", {}, id="nothing"),
        pytest.param(
            "= 1 # s\nop_wait_timeout = 2",
            "= 3\nop_wait_timeout = 4",
            {"hccl_timeout": PlainEdit(4, 1), "op_wait_timeout": PlainEdit(5, 2)},
            id="two values",
        ),
        pytest.param("= 1", "=  1", None, id="only blanks"),
        pytest.param("= 1", "= 1.0", None, id="a float"),
        pytest.param("= 1", "= [1]", None, id="a list"),
        pytest.param("training", "online-inference", None, id="the scenario"),
        pytest.param("= 2", "= 2\n", None, id="a new line"),
        pytest.param('"all"', r'"\u0061"', None, id="an escape"),
        pytest.param("op_wait", "op_execute", None, id="a key"),
        pytest.param("= 2", "= { a = 1 }", None, id="an inline table"),
        pytest.param("[env]", "[atc]", None, id="the head of a table"),
        pytest.param(
            'dump_mode = "all"',
            'modify_mixlist = "all"',
            None,
            id="an option with a table of its own",
        ),
        pytest.param("[options]", "[[override]]", None, id="an array of tables"),
        pytest.param("= 2", '= """', None, id="a text of several lines"),
    ],
)
def test_edits_are_read_from_lines_of_plain_values_only(
    was: str, now: str, expected: object
) -> None:
    changed = TEXT.replace(was, now, 1)
    assert find_plain_edits(TEXT.encode(), changed.encode()) == expected
    assert (find_plain_edits(changed.encode(), TEXT.encode()) is None) == (expected is None)


@pytest.mark.parametrize("text", ["false", "-7", '"a b"', '""'])
def test_the_earlier_value_has_the_type_that_a_parser_gives_it(text: str) -> None:
    old, new = (f"[options]\nhccl_timeout = {value} # s\n" for value in (text, 5))
    edits = find_plain_edits(old.encode(), new.encode())
    value = tomllib.loads(old)["options"]["hccl_timeout"]
    assert edits == {"hccl_timeout": PlainEdit(2, value)}
    assert type(edits["hccl_timeout"].value) is type(value)


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
    old, new = (f"{header}\na = {number}\n".encode() for number in (1, 2))
    assert find_plain_edits(old, new) is None
