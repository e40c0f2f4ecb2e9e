"""Sidecar files against the parsers in CANN that read them, written down here from what those do."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from npuprof.catalog.sidecars import SIDECARS, resolve_mixlist_outcome, resolve_mixlist_outcomes
from support.building import codes, options, render_unchecked, toml
from support.running import Run, Store

ROLES = [(f"{name}-list", action) for name in ("black", "white", "gray") for action in ("to-add", "to-remove")]
#: What the parser accepts for one operator, role by role.
ACCEPTED = [
    {"black+"}, {"black+", "white-"}, {"black+", "gray-"},
    {"white+"}, {"white+", "black-"}, {"white+", "gray-"},
    {"gray+"}, {"gray+", "black-"}, {"gray+", "white-"},
    {"black-"}, {"white-"},
]  # fmt: skip


def mixlist(roles: Any, operator: str = "A") -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for name, action in roles:
        found.setdefault(name, {})[action] = [operator]
    return found


@pytest.mark.parametrize("count", range(1, 7))
def test_the_combinations_of_roles_are_those_the_parser_takes(count: int) -> None:
    for roles in itertools.combinations(ROLES, count):
        short = {f"{name[:-5]}{'+' if action == 'to-add' else '-'}" for name, action in roles}
        faults = SIDECARS["mixlist"].faults(mixlist(roles))
        assert bool(faults) == (short not in ACCEPTED), roles


@pytest.mark.parametrize(
    ("roles", "base", "outcome"),
    [
        # an operator that is white by default, as the vendor's page has it
        ([("black-list", "to-add")], "white", "black"),
        ([("black-list", "to-add"), ("white-list", "to-remove")], "white", "black"),
        ([("white-list", "to-remove")], "white", "gray"),
        # the page's general rule, and its mirror
        ([("black-list", "to-remove")], "black", "gray"),
        ([("white-list", "to-add")], "black", "white"),
        ([("white-list", "to-add"), ("black-list", "to-remove")], "black", "white"),
        # a removal from a list it is not in changes nothing
        ([("white-list", "to-remove")], "black", "black"),
        # gray additions: the code looks at the removals alone
        ([("gray-list", "to-add")], "white", "white"),
        ([("gray-list", "to-add"), ("white-list", "to-remove")], "white", "gray"),
        ([], "white", "white"),
        # the built-in list is not known
        ([("black-list", "to-add")], None, "black"),
        ([("white-list", "to-remove")], None, None),
    ],
)
def test_where_an_operator_ends(roles: Any, base: str | None, outcome: str | None) -> None:
    assert resolve_mixlist_outcome(mixlist(roles), "A", base) == outcome


@pytest.mark.parametrize(
    "value",
    [
        {"grey-list": {"to-add": ["A"]}}, {"black-list": {"add": ["A"]}}, {"black-list": ["A"]}, {"black-list": {"to-add": "A"}},
        {"black-list": {"to-add": [1]}}, {"black-list": {"to-add": [""]}}, ["A"],
    ],
)  # fmt: skip
def test_a_list_the_parser_would_refuse_is_a_fault(value: Any) -> None:
    assert SIDECARS["mixlist"].faults(value)


def test_the_vendors_sample_is_written_without_its_comments() -> None:
    sample = {
        "black-list": {"to-remove": ["Xlog1py"], "to-add": ["MatMul", "Cast"]},
        "white-list": {"to-remove": ["Conv2D"], "to-add": ["Bias"]},
    }
    side = SIDECARS["mixlist"]
    assert side.faults(sample) == []
    assert json.loads(side.format(sample)) == sample
    assert side.parse('{ "black-list": { // comment\n "to-add": ["A"] } }') is None


# -- op_precision.ini ----------------------------------------------------------------------------------------------------

MODES = (
    "high_performance", "high_precision", "super_performance", "enable_float_32_execution", "enable_hi_float_32_execution",
    "support_out_of_bound_index", "keep_fp16",
)  # fmt: skip


def read_modes(text: str) -> dict[str, dict[str, str]]:
    """Read as op_impl_mode_config_parser.cc does: line by line, unknown modes dropped, the first of a name wins."""
    found: dict[str, dict[str, str]] = {}
    section = "ByOpType"
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        name, equals, mode = line.partition("=")
        if not equals:
            section = name.strip()[1:-1] if name.strip() in ("[ByOpType]", "[ByNodeName]") else section
        elif name.strip() and mode.strip() in MODES:
            found.setdefault(section, {}).setdefault(name.strip(), mode.strip())
    return found


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8) | st.sampled_from([
    "Conv2D", "bert/layer_0/mul", "a b", "#a", "a#b", "[x]", " a", "a ", "a=b", "", "a\nb", "a\rb", "a:b", "a::b", "OpType::Add",
    "OpType::", "x\x85y",
])  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(["ByOpType", "ByNodeName"]), st.dictionaries(names, st.sampled_from([*MODES, "fast", ""]), max_size=4))
)
def test_modes_without_faults_are_read_back_as_they_are(value: dict[str, dict[str, str]]) -> None:
    side = SIDECARS["op-precision"]
    assume(not side.faults(value))
    kept = {section: entries for section, entries in value.items() if entries}
    assert read_modes(side.format(value)) == kept
    assert {section: entries for section, entries in side.parse(side.format(value)).items() if entries} == kept


def test_a_file_without_sections_is_by_operator_type() -> None:
    assert SIDECARS["op-precision"].parse("optype1=high_precision\noptype2=high_performance\n") == {
        "ByOpType": {"optype1": "high_precision", "optype2": "high_performance"}
    }


def test_a_misspelt_mode_is_a_fault_because_cann_drops_it_in_silence() -> None:
    assert SIDECARS["op-precision"].faults({"ByOpType": {"Conv2D": "high_preformance"}})


# -- customize_dtypes.cfg ------------------------------------------------------------------------------------------------


def read_dtypes(text: str) -> dict[str, dict[str, list[str]]]:
    """Read as op_cust_dtypes_config_parser.cc does; raise ValueError where it refuses the file."""
    found: dict[str, dict[str, list[str]]] = {}
    lines = text.split("\n")
    for line in lines[:-1] if lines[-1] == "" else lines:
        if len(line.encode()) >= 1023:
            break
        inputs, outputs = line.find("InputDtype"), line.find("OutputDtype")
        if inputs < 0 and outputs < 0:
            raise ValueError(line)
        name = "OpType::" + line[8:].split(":")[0] if line.startswith("OpType::") else line.split(":")[0]
        rule = {}
        if inputs >= 0:
            body = line[inputs + len("InputDtype:") : outputs if outputs >= 0 else None]
            rule["InputDtype"] = body.removesuffix(",").split(",") if outputs >= 0 else body.split(",")
        if outputs >= 0:
            rule["OutputDtype"] = line[outputs + len("OutputDtype:") :].split(",")
        found.setdefault(name, rule)
    return found


types = st.lists(st.sampled_from(["float16", "float", "int8"]), min_size=1, max_size=3)
odd_types = st.lists(st.sampled_from(["float16", "", "DT", "a b"]), min_size=1, max_size=3)
operators = st.sampled_from(["OpType::Add", "bert/layer_0/mul", "conv1"])
SIDES = st.sampled_from(["InputDtype", "OutputDtype"])


@given(
    st.dictionaries(operators, st.dictionaries(SIDES, types, min_size=1, max_size=2), min_size=1, max_size=3)
    | st.dictionaries(names, st.dictionaries(SIDES, types | odd_types, max_size=2), min_size=1, max_size=2)
)
def test_types_without_faults_are_read_back_as_they_are(value: dict[str, dict[str, list[str]]]) -> None:
    side = SIDECARS["custom-dtypes"]
    assume(not side.faults(value))
    assert read_dtypes(side.format(value)) == value
    assert side.parse(side.format(value)) == value


@pytest.mark.parametrize("text", ["# by name\nA::InputDtype:float16", "A::InputDtype:float16\n\nB::InputDtype:float16", "A", ""])
def test_a_file_the_parser_refuses_has_no_structured_form(text: str) -> None:
    assert SIDECARS["custom-dtypes"].parse(text) is None


def test_a_line_that_ends_the_reading_is_a_fault() -> None:
    assert SIDECARS["custom-dtypes"].faults({"n" * 1023: {"InputDtype": ["float16"]}})


# -- the others ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("op-debug", {"op_debug_config": ["ccec_g", "oom"], "op_debug_list": ["GatherV2", "OpType::ReduceSum"]},
         "op_debug_config=ccec_g,oom\nop_debug_list=GatherV2,OpType::ReduceSum\n"),
        ("op-precision", {"ByOpType": {"Conv2D": "high_performance"}, "ByNodeName": {"a/b": "high_precision"}},
         "[ByOpType]\nConv2D=high_performance\n[ByNodeName]\na/b=high_precision\n"),
        ("custom-dtypes",
         {"OpType::Add": {"InputDtype": ["float16", "float16"], "OutputDtype": ["float16"]}, "a/b": {"OutputDtype": ["float"]}},
         "OpType::Add:InputDtype:float16,float16,OutputDtype:float16\na/b::OutputDtype:float\n"),
    ],
)  # fmt: skip
def test_a_file_is_written_as_documented(kind: str, value: Any, text: str) -> None:
    side = SIDECARS[kind]
    assert side.faults(value) == []
    assert side.format(value) == text
    assert side.parse(text) == value


def test_fusion_switches_are_read_in_both_forms() -> None:
    side = SIDECARS["fusion-switch"]
    assert side.parse("PackFusionPass:off\n") == {"Switch": {"GraphFusion": {"PackFusionPass": "off"}}}
    value = {"Switch": {"GraphFusion": {"ALL": "off", "SoftmaxFusionPass": "on"}, "UBFusion": {"TbePool2dQuantFusionPass": "off"}}}
    assert side.faults(value) == []
    assert side.parse(side.format(value)) == value
    assert side.parse("# a comment\nA:on") is None
    assert side.faults({"Switch": {"GraphFusion": {"A": "On"}}})
    assert side.faults({"Switch": {"Graph": {}}})


def test_a_fault_in_a_file_is_found_by_check() -> None:
    bad = {"precision_mode_v2": "mixed_float16", "modify_mixlist": {"black-list": {"to-add": ["A"]}, "white-list": {"to-add": ["A"]}}}
    assert "NP204" in codes(toml({"options": bad}))
    assert "NP204" in codes(toml({"options": {"aoe_config_file": {"tune_optimization_level": "O3"}}}))


def test_code_that_needs_a_file_names_the_option_that_is_the_file(store: Store, run: Run) -> None:
    store({"leaf": '[options]\ninput_shape = { a = [1, 2] }\nop_precision_mode = { ByOpType = { A = "high_precision" } }\n'})
    said = run("render", "leaf", "--no-check").err
    assert "leaf.toml:3:1: error NP904: the code needs op_precision.ini" in said
    assert "why: op_precision_mode is written out in the preset." in said


def test_explain_says_where_each_operator_ends(store: Store, run: Run) -> None:
    text = """\
[options]
precision_mode_v2 = "mixed_float16"
[options.modify_mixlist]
black-list = { to-add = ["MatMul"], to-remove = ["Xlog1py"] }
white-list = { to-remove = ["Conv2D"], to-add = ["Bias"] }
gray-list = { to-add = ["Add"] }
"""
    store({"leaf": text})
    lines = run("explain", "leaf", "modify_mixlist").out.splitlines()
    assert "  MatMul       black, whatever its built-in list" in lines
    assert "  Bias         white, whatever its built-in list" in lines
    assert "  Conv2D       gray if it is white by default, else as built in" in lines
    assert "  Xlog1py      gray if it is black by default, else as built in" in lines
    assert any(line.startswith("  Add          as built in") for line in lines)
    outcomes = json.loads(run("explain", "leaf", "modify_mixlist", "--format", "json").out)["outcomes"]
    assert outcomes["Conv2D"] == {"white": "gray", "black": "black", "gray": "gray"}
    assert "MatMul " not in run("explain", "leaf", "precision_mode_v2").out


def test_explain_reads_a_list_that_is_named_by_its_path(store: Store, run: Run, tmp_path: Any) -> None:
    file = tmp_path / "ops_info.json"
    file.write_text('{"white-list": {"to-remove": ["Conv2D"]}}')
    store({"leaf": toml({"options": {"modify_mixlist": str(file)}}), "gone": toml({"options": {"modify_mixlist": "/no/such/file"}})})
    assert "  Conv2D       gray if it is white by default, else as built in" in run("explain", "leaf", "modify_mixlist").out.splitlines()
    assert run("explain", "gone", "modify_mixlist").code == 0
    file.write_bytes(b"\xff\x00")
    assert run("explain", "leaf", "modify_mixlist").code == 0


def test_an_empty_table_in_a_file_is_no_reason_to_refuse_it() -> None:
    modes = {"ByOpType": {}, "ByNodeName": {"a": "high_precision"}}
    assert '["op_precision_mode"]' in render_unchecked(options(op_precision_mode=modes), "session")
    assert '["modify_mixlist"]' in render_unchecked(options(modify_mixlist={"black-list": {}}), "session")


def test_where_operators_end_is_told_without_comparing_each_with_all() -> None:
    class Counted(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return str.__eq__(self, other)  # type: ignore[no-any-return]

    names = [Counted(f"Op{number}") for number in range(400)]
    found = resolve_mixlist_outcomes({"black-list": {"to-add": names[:200]}, "gray-list": {"to-remove": names[200:]}})
    assert (len(found), found["Op0"]["white"], found["Op399"]["white"]) == (400, "black", "white")
    assert Counted.compared < 10 * len(names)
