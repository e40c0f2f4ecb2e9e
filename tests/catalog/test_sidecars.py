"""Sidecar files against the parsers in CANN that read them, rewritten here."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from npuprof.catalog.sidecars import SIDECARS, resolve_mixlist_outcome
from support.building import options, render_unchecked, toml
from support.running import Run, Store

ROLES = [
    (f"{name}-list", action)
    for name in ("black", "white", "gray")
    for action in ("to-add", "to-remove")
]
#: What the parser accepts for one operator, role by role.
ACCEPTED = [
    {"black+"},
    {"black+", "white-"},
    {"black+", "gray-"},
    {"white+"},
    {"white+", "black-"},
    {"white+", "gray-"},
    {"gray+"},
    {"gray+", "black-"},
    {"gray+", "white-"},
    {"black-"},
    {"white-"},
]


def mixlist(roles: Any, operator: str = "A") -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for name, action in roles:
        found.setdefault(name, {})[action] = [operator]
    return found


@pytest.mark.parametrize("count", range(1, 7))
def test_the_combinations_of_roles_are_those_the_parser_takes(count: int) -> None:
    cases = [*itertools.combinations(ROLES, count)]
    assert cases
    for roles in cases:
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
        {"grey-list": {"to-add": ["A"]}},
        {"black-list": {"add": ["A"]}},
        {"black-list": ["A"]},
        {"black-list": {"to-add": "A"}},
        {"black-list": {"to-add": [1]}},
        {"black-list": {"to-add": [""]}},
        ["A"],
    ],
)
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


# -- op_precision.ini and customize_dtypes.cfg ----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "modes", "types"),
    [
        ("bert/layer_0/mul", True, True),
        ("OpType::Add", True, True),
        ("a b", True, False),
        ("a:b", True, False),
        ("OpType::", True, False),
        ("x\x85y", True, False),
        ("n" * 1023, True, False),
        ("#a", False, True),
        ("[x]", False, True),
        ("a=b", False, True),
        (" a", False, False),
        ("", False, False),
        ("a\nb", False, False),
        ("a\rb", False, False),
    ],
)
def test_a_name_is_written_where_the_parser_reads_it_back_and_is_a_fault_elsewhere(
    name: str, modes: bool, types: bool
) -> None:
    # op_impl_mode_config_parser.cc reads names up to "=", op_cust_dtypes_config_parser.cc up to
    # "::" and lines up to 1023 bytes
    written = (
        ("op-precision", {"ByNodeName": {name: "high_precision"}}, modes),
        ("custom-dtypes", {name: {"InputDtype": ["float16"]}}, types),
    )
    assert written
    for kind, value, fits in written:
        side = SIDECARS[kind]
        assert bool(side.faults(value)) is not fits, kind
        assert not fits or side.parse(side.format(value)) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("op-precision", {"ByOpType": {"Conv2D": "high_preformance"}}),
        ("op-precision", {"ByOpType": {"A": ""}}),
        ("custom-dtypes", {"A": {}}),
        ("custom-dtypes", {"A": {"InputDtype": ["DT"]}}),
        ("custom-dtypes", {"A": {"InputDtype": ["a b"]}}),
    ],
)
def test_what_the_parser_drops_or_stops_at_is_a_fault(kind: str, value: Any) -> None:
    assert SIDECARS[kind].faults(value)


def test_a_file_without_sections_is_by_operator_type() -> None:
    assert SIDECARS["op-precision"].parse("optype1=high_precision\noptype2=high_performance\n") == {
        "ByOpType": {"optype1": "high_precision", "optype2": "high_performance"}
    }


@pytest.mark.parametrize(
    "text",
    ["# by name\nA::InputDtype:float16", "A::InputDtype:float16\n\nB::InputDtype:float16", "A", ""],
)
def test_a_file_the_parser_refuses_has_no_structured_form(text: str) -> None:
    assert SIDECARS["custom-dtypes"].parse(text) is None


# -- the others -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (
            "op-debug",
            {
                "op_debug_config": ["ccec_g", "oom"],
                "op_debug_list": ["GatherV2", "OpType::ReduceSum"],
            },
            "op_debug_config=ccec_g,oom\nop_debug_list=GatherV2,OpType::ReduceSum\n",
        ),
        (
            "op-precision",
            {"ByOpType": {"Conv2D": "high_performance"}, "ByNodeName": {"a/b": "high_precision"}},
            "[ByOpType]\nConv2D=high_performance\n[ByNodeName]\na/b=high_precision\n",
        ),
        (
            "custom-dtypes",
            {
                "OpType::Add": {"InputDtype": ["float16", "float16"], "OutputDtype": ["float16"]},
                "a/b": {"OutputDtype": ["float"]},
            },
            "OpType::Add:InputDtype:float16,float16,OutputDtype:float16\na/b::OutputDtype:float\n",
        ),
    ],
)
def test_a_file_is_written_as_documented(kind: str, value: Any, text: str) -> None:
    side = SIDECARS[kind]
    assert side.faults(value) == []
    assert side.format(value) == text
    assert side.parse(text) == value


def test_fusion_switches_are_read_in_both_forms() -> None:
    side = SIDECARS["fusion-switch"]
    assert side.parse("PackFusionPass:off\n") == {
        "Switch": {"GraphFusion": {"PackFusionPass": "off"}}
    }
    value = {
        "Switch": {
            "GraphFusion": {"ALL": "off", "SoftmaxFusionPass": "on"},
            "UBFusion": {"TbePool2dQuantFusionPass": "off"},
        }
    }
    assert side.faults(value) == []
    assert side.parse(side.format(value)) == value
    assert side.parse("# a comment\nA:on") is None
    assert side.faults({"Switch": {"GraphFusion": {"A": "On"}}})
    assert side.faults({"Switch": {"Graph": {}}})


def test_code_that_needs_a_file_names_the_option_that_is_the_file(store: Store, run: Run) -> None:
    store(
        {
            "leaf": (
                "[options]\ninput_shape = { a = [1, 2] }\n"
                'op_precision_mode = { ByOpType = { A = "high_precision" } }\n'
            )
        }
    )
    messages = run("render", "leaf", "--no-check").err
    assert "leaf.toml:3:1: error NP904: the code needs op_precision.ini" in messages
    assert "why: op_precision_mode is written out in the preset." in messages


@pytest.mark.parametrize("entry", ["A,B", " A", "A "])
def test_an_operator_that_the_list_to_debug_cannot_hold_is_a_fault(
    entry: str, store: Store, run: Run
) -> None:
    lists = f'{{ op_debug_config = ["oom"], op_debug_list = ["Conv2D", "{entry}"] }}'
    store({"leaf": f"[options]\nop_debug_config = {lists}\n"})
    done = run("check", "leaf")
    fault = f"op_debug_config.op_debug_list[1]: {entry!r} cannot be written in the list"
    assert done.out.startswith(f"profiles/leaf.toml:2:75: error NP204: {fault}\n")
    assert done.out.count("error NP204") == 1


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
    assert "  MatMul       black for any built-in list" in lines
    assert "  Bias         white for any built-in list" in lines
    assert "  Conv2D       gray if it is white by default, else as built in" in lines
    assert "  Xlog1py      gray if it is black by default, else as built in" in lines
    assert any(line.startswith("  Add          as built in") for line in lines)
    outcomes = json.loads(run("explain", "leaf", "modify_mixlist", "--format", "json").out)[
        "outcomes"
    ]
    assert outcomes["Conv2D"] == {"white": "gray", "black": "black", "gray": "gray"}
    assert "MatMul " not in run("explain", "leaf", "precision_mode_v2").out


def test_explain_reads_a_list_that_is_named_by_its_path(
    store: Store, run: Run, tmp_path: Any
) -> None:
    file = tmp_path / "ops_info.json"
    file.write_text('{"white-list": {"to-remove": ["Conv2D"]}}')
    store(
        {
            "leaf": toml({"options": {"modify_mixlist": str(file)}}),
            "gone": toml({"options": {"modify_mixlist": "/no/such/file"}}),
        }
    )
    assert (
        "  Conv2D       gray if it is white by default, else as built in"
        in run("explain", "leaf", "modify_mixlist").out.splitlines()
    )
    assert run("explain", "gone", "modify_mixlist").code == 0
    file.write_bytes(b"\xff\x00")
    assert run("explain", "leaf", "modify_mixlist").code == 0


def test_an_empty_table_in_a_file_is_no_reason_to_refuse_it() -> None:
    modes = {"ByOpType": {}, "ByNodeName": {"a": "high_precision"}}
    assert '["op_precision_mode"]' in render_unchecked(options(op_precision_mode=modes), "session")
    assert '["modify_mixlist"]' in render_unchecked(
        options(modify_mixlist={"black-list": {}}), "session"
    )
