"""A hint that names a value is accepted by the check, and means what was meant."""

from __future__ import annotations

import re
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from npuprof import catalog
from npuprof.checks.meaning import UNKNOWN, find_near_choices, guess_choice, read_number, read_truth
from npuprof.checks.setting_values import find_setting_faults
from npuprof.document.keys import format_full_key
from npuprof.model import FRAMEWORK_SECTIONS, SECTIONS

KEYS = [
    f"{section}.{name}" if section in FRAMEWORK_SECTIONS else format_full_key(section, name)
    for section in SECTIONS
    for name in catalog.record_names(section)
]
WORDS = [
    True,
    False,
    0,
    1,
    2,
    -1,
    1.0,
    0.0,
    2.5,
    "0",
    "1",
    "yes",
    "no",
    "on",
    "off",
    "true",
    "false",
    "True",
    "FALSE",
    "enable",
    "disable",
    "none",
    "2000s",
    "1h",
    "1h30m",
    "5 min",
    "16GiB",
    "32MB",
    "1_000",
    "07",
    "1e3",
    "",
    " ",
    "x",
    "FP16",
    "Allow_Mix_Precision",
    "maybe",
    [],
    [1],
    {},
    {"a": 1},
]


#: At least how many hints of a section are judged.
FLOORS = {
    "options": 800,
    "env": 2500,
    "estimator": 60,
    "atc": 500,
    "torch_npu": 300,
    "vllm_ascend": 1200,
}
BY_SECTION = [
    (
        section,
        [key for key in KEYS if (key.partition(".")[0] if "." in key else "options") == section],
    )
    for section in FLOORS
]


#: Values in the wrong form, and forms with a fault inside.
ODD: list[Any] = [
    *WORDS,
    ["x"],
    [[1]],
    {"a": "x"},
    {"a": [1]},
    "x:1",
    "a,b",
    "x y",
    " 1",
    "floaty",
    ["fast", "x"],
    {"data": [[1, "x"]]},
    {"launcher": "x"},
    {"OpType::Add": {"InputDtype": ["floaty", "int33"]}},
    {"black-list": {"to-add": [1]}},
    {"Switch": {"GraphFusion": {"A": "x"}}},
    {"op_debug_config": ["oo"]},
    {"feature": ["x"]},
    {"ByOpType": {"A": "high"}},
    {"ByOpType": 1},
]


def read_hint(hint: str, name: str) -> tuple[bool, list[Any]]:
    """Return whether a hint replaces the whole setting or its faulty part, and the values it names.

    A hint in words names none.
    """
    assignment = re.fullmatch(rf"write {re.escape(name)} = (.*)", hint)
    example = re.fullmatch(r"write text like (.*?)(?:, or .*)?", hint)
    if whole := assignment or example:
        return True, [parse_value(whole[1])]
    if similar := re.fullmatch(r"did you mean (.*)\?", hint):
        return False, [parse_value(text) for text in similar[1].split(" or ")]
    choices = re.fullmatch(r"write one of (.*)", hint)
    try:
        if choices:
            return False, parse_value(f"[{choices[1]}]")
        return False, [parse_value(hint.removeprefix("write "))]
    except tomllib.TOMLDecodeError:
        return False, []


def parse_value(text: str) -> Any:
    return tomllib.loads(f"value = {text}")["value"]


def replace_at(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a value with another at a path below it."""
    if not path:
        return new
    copy = list(value) if isinstance(value, list) else dict(value)
    first, *rest = path
    copy[first] = replace_at(copy[first], tuple(rest), new)
    return copy


@pytest.mark.parametrize(("section", "keys"), BY_SECTION)
def test_whatever_a_hint_writes_out_is_taken_and_never_reverses(
    section: str, keys: list[str]
) -> None:
    judged = 0
    cases = [*product(keys, ODD)]
    assert cases
    for key, value in cases:
        for fault in find_setting_faults(key, value):
            whole, named = read_hint(fault.hint, key.rpartition(".")[2])
            for new in named if "unknown key" not in fault.message else ():
                judged += 1
                there = new if whole else replace_at(value, fault.tail, new)
                left = [
                    other
                    for other in find_setting_faults(key, there)
                    if whole or other.tail == fault.tail
                ]
                assert left == [], (key, value, fault.hint)
                truths = read_truth(value), read_truth(new if " = " in fault.hint else None)
                assert None in truths or truths[0] is truths[1], (key, value, fault.hint)
    assert judged >= FLOORS[section], section


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    tomllib.loads(Path(__file__).with_name("hints.toml").read_text())["rows"],
)
def test_a_hint_names_what_was_meant(key: str, value: Any, hint: str) -> None:
    (fault,) = find_setting_faults(key, value)
    assert fault.hint == hint


def test_no_fix_loses_a_comment_of_the_longest_value_whose_comment_is_read() -> None:
    text = "5 //"
    (fault,) = find_setting_faults("hccl_timeout", text + "x" * (500 - len(text)))
    assert fault.hint == "write hccl_timeout = 5, and the comment after # on its line"
    assert fault.fix is None
    (fault,) = find_setting_faults("hccl_timeout", text + "x" * (501 - len(text)))
    assert "comment" not in fault.hint


@pytest.mark.parametrize(
    ("value", "described"), [({"a": 1}, "a table"), ([1, 2], "a list"), ("x", '"x"')]
)
def test_a_value_of_another_type_is_described_by_its_type_if_it_has_parts(
    value: Any, described: str
) -> None:
    (fault,) = find_setting_faults("hccl_timeout", value)
    assert fault.message == f"hccl_timeout takes a whole number, not {described}"


@pytest.mark.parametrize(
    ("value", "unit", "number"),
    [
        ("2000s", "s", 2000),
        ("1h", "s", 3600),
        ("250ms", "s", 0.25),
        ("1.5 h", "ms", 5_400_000),
        ("16GiB", "bytes", 16 * 1024**3),
        ("2k", "KB", 2),
        ("1_000", "", 1000),
        ("1,000", "", 1000),
        ("-1", "s", -1),
        ("2000s", "", None),
        ("2000s", "bytes", None),
        ("1 fortnight", "s", None),
        ("", "", None),
        ("ten", "s", None),
        (True, "", None),
        ("9" * 30, "", None),
        ("1h" * 49, "s", 49 * 3600),
        ("1h" * 50, "s", None),
    ],
)
def test_a_number_is_read_in_the_unit_that_is_asked_for(value: Any, unit: str, number: Any) -> None:
    assert read_number(value, unit) == number


@pytest.mark.parametrize(
    ("value", "choices", "choice"),
    [
        pytest.param("yes", [0, 1], 1, id="yes is 1"),
        pytest.param("no", ["enable", "disable", "force"], "disable", id="no is disable"),
        pytest.param("FP16", ["fp16", "origin"], "fp16", id="another case"),
        pytest.param(True, ["0", "1", "2"], "1", id="true is '1'"),
        pytest.param("yes", ["1", "2", "4"], UNKNOWN, id="no choice is yes"),
        pytest.param("no", ["a", "b"], UNKNOWN, id="no choice is like it"),
        pytest.param("no", ["off", "disable"], UNKNOWN, id="two choices mean no"),
        pytest.param(2.0, [1, 2], 2, id="a float that is a whole number"),
        pytest.param("2", [1, 2], 2, id="a number as text"),
        pytest.param("", [0, 1], UNKNOWN, id="an empty text"),
    ],
)
def test_a_choice_is_guessed_only_where_one_is_meant(
    value: Any, choices: list[Any], choice: Any
) -> None:
    assert guess_choice(value, choices) is choice


@pytest.mark.parametrize(
    ("value", "choices", "near"),
    [
        ("disable", ["enable", "force"], []),
        ("not_allow", ["allow"], []),
        ("mixed_flaot16", ["mixed_float16", "origin"], ["mixed_float16"]),
        ("enabel", ["enable", "disable"], ["enable"]),
    ],
)
def test_what_looks_alike_and_says_the_opposite_is_not_offered(
    value: str, choices: list[str], near: list[str]
) -> None:
    assert find_near_choices(value, choices) == near
