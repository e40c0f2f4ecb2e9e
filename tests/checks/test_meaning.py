"""A hint that names a value is accepted by the check, and means what was meant."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from npuprof import catalog
from npuprof.checks.meaning import UNKNOWN, find_near_choices, guess_choice, guess_plain_value, read_number, read_truth
from npuprof.checks.settings import find_setting_faults
from npuprof.document.keys import format_full_key
from npuprof.model import FRAMEWORK_SECTIONS, SECTIONS

KEYS = [
    f"{section}.{name}" if section in FRAMEWORK_SECTIONS else format_full_key(section, name)
    for section in SECTIONS
    for name in catalog.record_names(section)
]
WORDS = [
    True, False, 0, 1, 2, -1, 1.0, 0.0, 2.5, "0", "1", "yes", "no", "on", "off", "true", "false", "True", "FALSE", "enable", "disable",
    "none", "2000s", "1h", "1h30m", "5 min", "16GiB", "32MB", "1_000", "07", "1e3", "", " ", "x", "FP16", "Allow_Mix_Precision",
    "maybe", [], [1], {}, {"a": 1},
]  # fmt: skip


#: Choices that are numbers of things: no word for yes or no is one of them, whatever their order.
NUMBERED = (
    "graph_run_mode", "dynamic_node_type", "atomic_clean_policy", "topo_sorting_mode", "env.ASCEND_GLOBAL_LOG_LEVEL",
    "env.TF_CPP_MIN_LOG_LEVEL", "atc.framework", "atc.mode", "atc.topo_sorting_mode", "atc.atomic_clean_policy",
)  # fmt: skip


@pytest.mark.parametrize("key", NUMBERED)
def test_where_0_is_not_off_no_word_is_taken_for_a_number(key: str) -> None:
    for value in (True, False, "on", "off", "yes", "no", "none", "disabled"):
        for fault in find_setting_faults(key, value):
            assert fault.fix is None, (value, fault.hint)
            assert not re.fullmatch(r"write (\S+ = )?\"?\d+\"?", fault.hint), (value, fault.hint)


@pytest.mark.parametrize("key", KEYS)
def test_a_hint_applied_is_clean_and_never_reverses(key: str) -> None:
    for value in WORDS:
        for fault in find_setting_faults(key, value):
            written = re.fullmatch(r"write (\S+) = (.*)", fault.hint)
            if written is None or fault.code not in ("NP202", "NP203"):
                continue
            assert written[1] == (key.partition(".")[2] or key)
            named = tomllib.loads(f"v = {written[2]}")["v"]
            assert find_setting_faults(key, named) == [], (value, fault.hint)
            truths = read_truth(value), read_truth(named)
            assert None in truths or truths[0] is truths[1], (value, fault.hint)


#: Values in the wrong form, and forms with a fault inside.
ODD: list[Any] = [
    *WORDS, ["x"], [[1]], {"a": "x"}, {"a": [1]}, "x:1", "a,b", "x y", " 1", "floaty", ["fast", "x"], {"data": [[1, "x"]]},
    {"launcher": "x"}, {"OpType::Add": {"InputDtype": ["floaty", "int33"]}}, {"black-list": {"to-add": [1]}},
    {"Switch": {"GraphFusion": {"A": "x"}}},
    {"op_debug_config": ["oo"]}, {"feature": ["x"]}, {"ByOpType": {"A": "high"}}, {"ByOpType": 1},
]  # fmt: skip


def read_hint(hint: str, name: str) -> tuple[bool, list[Any]]:
    """Return the values that a hint names, and whether each is the whole value of the setting or what stands at the place of the fault."""
    if whole := re.fullmatch(rf"write (?:{re.escape(name)} = (.*)|text like (.*?)(?:, or .*)?)", hint):
        return True, [tomllib.loads(f"v = {whole[1] or whole[2]}")["v"]]
    if meant := re.fullmatch(r"did you mean (.*)\?", hint):
        return False, [tomllib.loads(f"v = {text}")["v"] for text in meant[1].split(" or ")]
    one_of = re.fullmatch(r"write one of (.*)", hint)
    try:
        found = tomllib.loads(f"v = [{one_of[1]}]")["v"] if one_of else [tomllib.loads(f"v = {hint.removeprefix('write ')}")["v"]]
    except tomllib.TOMLDecodeError:
        return False, []  # it says in words what to do
    return False, found


def lay(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """Return a value with another at a place below it."""
    if not place:
        return new
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[place[0]] = lay(copy[place[0]], place[1:], new)
    return copy


@pytest.mark.parametrize("key", KEYS)
def test_whatever_a_hint_writes_out_is_taken(key: str) -> None:
    for value in ODD:
        for fault in find_setting_faults(key, value):
            whole, named = read_hint(fault.hint, key.rpartition(".")[2])
            for new in named if "unknown key" not in fault.message else ():
                there = new if whole else lay(value, fault.tail, new)
                left = [one for one in find_setting_faults(key, there) if whole or one.tail == fault.tail]
                assert left == [], (value, fault.hint)


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("dynamic_dims", [1], "write a list of size profiles like [[20, 20], [40, 40]]"),
        ("dynamic_dims", [[1], "x"], "write a list of size profiles like [[20, 20], [40, 40]]"),
        ("profiling_options", [1], 'write { output = "/tmp/profiling" }'),
        ("in_out_pair", [1], "write a list with one pair of node lists like [[['first/node'], ['last/node']]]"),
        ("customize_dtypes", {"a": {"InputDtype": ["floaty"]}}, "did you mean 'float' or 'float16'?"),
        ("customize_dtypes", {"a": {"OutputDtype": ["fp16"]}}, "write float16"),
        ("customize_dtypes", {"a": {"OutputDtype": ["float32"]}}, "write float"),
        ("customize_dtypes", {"a": {"OutputDtype": ["bfloat16"]}}, "write bf16"),
        ("env.CM_CHIEF_IP", "x", 'write text like "192.168.1.1"'),
        ("env.JOB_ID", "a b", 'write text like "10086"'),
        ("env.HCCL_ALGO", "ring", 'write text like "level0:NA;level1:ring"'),
        ("env.NPU_DEBUG", {}, 'write one of "1", "0", "true", "false"'),
        ("env.RANK_SIZE", {}, 'write RANK_SIZE = { launcher = "world-size" }'),
        ("precision_mode_v2", [], 'write one of "fp16", "origin", "cube_fp16in_fp32out", "mixed_float16", "mixed_bfloat16"'),
        ("deterministic", "yes", "write deterministic = 1"),
        ("deterministic", "no", "write deterministic = 0"),
        ("deterministic", False, "write deterministic = 0"),
        ("profiling_mode", "no", "write profiling_mode = false"),
        ("profiling_mode", "off", "write profiling_mode = false"),
        ("profiling_mode", "perhaps", "write true or false"),
        ("hccl_timeout", "2000s", "write hccl_timeout = 2000"),
        ("hccl_timeout", "1h", "write hccl_timeout = 3600"),
        ("hccl_timeout", 600.0, "write hccl_timeout = 600"),
        ("op_compiler_cache_mode", "disabled", 'write op_compiler_cache_mode = "disable"'),
        ("precision_mode_v2", "FP16", 'write precision_mode_v2 = "fp16"'),
        ("jit_compile", True, 'write jit_compile = "true"'),
        ("aoe_mode", "yes", 'write one of "1", "2", "4"'),
        ("dump_path", True, 'write text like "/home/test/output"'),
        ("hccl_timeout", True, "write a whole number, 0 to 2147483647 s"),
        ("env.AOE_MODE", True, 'write one of "1", "2", "4"'),
        ("env.ASCEND_CACHE_PATH", True, "write text"),
        ("env.TE_PARALLEL_COMPILER", True, "write a whole number, 1 to 32"),
        ("env.ASCEND_DEVICE_ID", "0,1", "write a whole number, at least 0"),
        ("env.HCCL_CONNECT_TIMEOUT", "1,200", "write HCCL_CONNECT_TIMEOUT = 1200"),
        ("env.NPU_DEBUG", False, 'write NPU_DEBUG = "false"'),
        ("env.HCCL_CONNECT_TIMEOUT", "10m", "write HCCL_CONNECT_TIMEOUT = 600"),
        ("env.HCCL_CONNECT_TIMEOUT", 1.5, "write a whole number, 120 to 7200 s"),
        ("env.HCCL_CONNECT_TIMEOUT", {"a": 1}, "write a whole number, 120 to 7200 s"),
        ("env.ASCEND_GLOBAL_LOG_LEVEL", "off", 'write one of "0", "1", "2", "3", "4"'),
        ("env.TF_CPP_MIN_LOG_LEVEL", False, 'write one of "0", "1", "2", "3"'),
        ("atc.framework", "True", "write one of 0, 1, 3, 5"),
        ("optypelist_for_implmode", {"a": 1}, 'write ["Pooling", "SoftmaxV2"]'),
        (
            "op_select_implmode",
            "HIGH_PRECISION_FOR_ALL",
            'write one of "high_precision", "high_performance"; "high_precision_for_all" is doubtful itself',
        ),
    ],
)
def test_a_hint_names_what_was_meant(key: str, value: Any, hint: str) -> None:
    (fault,) = find_setting_faults(key, value)
    assert fault.hint == hint


@pytest.mark.parametrize(
    ("value", "unit", "number"),
    [("2000s", "s", 2000), ("1h", "s", 3600), ("250ms", "s", 0.25), ("1.5 h", "ms", 5_400_000), ("16GiB", "bytes", 16 * 1024**3),
     ("2k", "KB", 2),
     ("1_000", "", 1000), ("1,000", "", 1000), ("-1", "s", -1), ("2000s", "", None), ("2000s", "bytes", None), ("1 fortnight", "s", None),
     ("", "", None), ("ten", "s", None), (True, "", None), ("9" * 30, "", None)],
)  # fmt: skip
def test_a_number_is_read_in_the_unit_that_is_asked_for(value: Any, unit: str, number: Any) -> None:
    assert read_number(value, unit) == number


@pytest.mark.parametrize(
    ("value", "choices", "choice"),
    [("yes", [0, 1], 1), ("no", ["enable", "disable", "force"], "disable"), ("FP16", ["fp16", "origin"], "fp16"),
     (True, ["0", "1", "2"], "1"),
     ("yes", ["1", "2", "4"], UNKNOWN),
     ("no", ["a", "b"], UNKNOWN), ("no", ["off", "disable"], UNKNOWN), (2.0, [1, 2], 2), ("2", [1, 2], 2), ("", [0, 1], UNKNOWN)],
)  # fmt: skip
def test_a_choice_is_guessed_only_where_one_is_meant(value: Any, choices: list[Any], choice: Any) -> None:
    assert guess_choice(value, choices) is choice


@pytest.mark.parametrize(
    ("value", "choices", "near"),
    [("disable", ["enable", "force"], []), ("not_allow", ["allow"], []), ("mixed_flaot16", ["mixed_float16", "origin"], ["mixed_float16"]),
     ("enabel", ["enable", "disable"], ["enable"])],
)  # fmt: skip
def test_what_looks_alike_and_says_the_opposite_is_not_offered(value: str, choices: list[str], near: list[str]) -> None:
    assert find_near_choices(value, choices) == near


def test_what_has_no_meaning_as_another_kind_is_not_guessed() -> None:
    assert guess_plain_value("x", "bool") is UNKNOWN
    assert guess_plain_value(2.5, "int") is UNKNOWN
    assert guess_plain_value(float("nan"), "int") is UNKNOWN
    assert guess_plain_value([], "str") is UNKNOWN
