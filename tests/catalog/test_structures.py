"""Structured forms of options whose wire form is one text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.catalog.sidecars import SIDECARS
from npuprof.catalog.structures import STRUCTURES

FORMS = {**STRUCTURES, **SIDECARS}
#: Texts from the manuals and their structured form; each is written back to the byte.
DOCUMENTED: list[tuple[str, str, Any]] = [
    (
        "shapes",
        "data:1,1,40,-1;label:1,-1;mask:-1,-1",
        {"data": [1, 1, 40, -1], "label": [1, -1], "mask": [-1, -1]},
    ),
    (
        "size-profiles",
        "20,20,1,1;40,40,2,2;80,60,4,4",
        [[20, 20, 1, 1], [40, 40, 2, 2], [80, 60, 4, 4]],
    ),
    ("steps", "0|5|10", [0, 5, 10]),
    ("steps", "0|3-5|10", [0, "3-5", 10]),
    ("counts", "DNN_VM_AICPU:10,AIcoreEngine:1", {"DNN_VM_AICPU": 10, "AIcoreEngine": 1}),
    ("cores", "24|48", [24, 48]),
    ("acceleration", "fast|step|0.9", ["fast", "step", 0.9]),
    ("acceleration", "fast|loss|1.05", ["fast", "loss", 1.05]),
    ("acceleration", "fast1|step", ["fast1", "step"]),
    (
        "names",
        "ScopeLayerNormPass,ScopeClipBoxesPass",
        ["ScopeLayerNormPass", "ScopeClipBoxesPass"],
    ),
    ("words", "node1 node2", ["node1", "node2"]),
    ("ids", "0,1", [0, 1]),
    ("switches", "A:on;B:off", {"A": "on", "B": "off"}),
    ("node-ranges", "[[['in/conv'], ['out/a', 'out/b']]]", [[["in/conv"], ["out/a", "out/b"]]]),
    (
        "shape-ranges",
        "getnext:[128,3~5,-1],[64];data:[1]",
        {"getnext": [[128, "3~5", -1], [64]], "data": [[1]]},
    ),
    ("json", '{"a":[1]}', {"a": [1]}),
    ("argument", '{"mode":3,"sizes":[1]}', {"mode": 3, "sizes": [1]}),
    (
        "profiling",
        '{"output":"/tmp/profiling","training_trace":"on","fp_point":"","bp_point":""}',
        {"output": "/tmp/profiling", "training_trace": "on", "fp_point": "", "bp_point": ""},
    ),
]


@pytest.mark.parametrize(("kind", "text", "value"), DOCUMENTED)
def test_a_documented_text_has_its_structured_form_and_back(
    kind: str, text: str, value: Any
) -> None:
    structure = FORMS[kind]
    assert structure.parse(text) == value
    assert structure.faults(value) == []
    assert structure.format(value) == text


def test_every_structure_without_a_file_has_a_documented_text() -> None:
    assert {kind for kind, _, _ in DOCUMENTED} == {
        name for name, structure in FORMS.items() if not structure.file
    }


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("steps", list(range(101))),
        ("steps", ["5-3"]),
        ("steps", ["5-5"]),
        ("steps", [True]),
        ("steps", [-1]),
        ("steps", []),
        ("size-profiles", [[1, "2"]]),
        ("size-profiles", [[]]),
        ("shapes", {"a": []}),
        ("shapes", {"a:b": [1]}),
        ("shapes", {"a": [-2]}),
        ("acceleration", ["fast", "step", 0.95]),
        ("acceleration", ["fast", "loss", 1.0]),
        ("acceleration", ["fast2", "step"]),
        ("acceleration", ["fast", "time"]),
        ("counts", {"A": 0}),
        ("counts", {"A-B": 1}),
        ("cores", [24]),
        ("cores", [24, 0]),
        ("node-ranges", [[["a"], []]]),
        ("node-ranges", [[["a"], ["b"]], [["c"], ["d"]]]),
        ("node-ranges", [[["a'b"], ["c"]]]),
        ("node-ranges", [[["a\x1bb"], ["c"]]]),
        ("node-ranges", [[["a\u200bb"], ["c"]]]),
        ("shape-ranges", {"x": [[1]]}),
        ("shape-ranges", {"data": [["3-5"]]}),
        ("switches", {"A": "On"}),
        ("switches", {"A:B": "on"}),
        ("names", ["a,b"]),
        ("names", ["a b"]),
        ("words", ["a b"]),
        ("names", [""]),
        ("ids", [-1]),
        ("json", {"a": float("inf")}),
    ],
)
def test_a_value_that_cannot_be_written_is_a_fault(kind: str, value: Any) -> None:
    assert FORMS[kind].faults(value)


ODD: list[Any] = [
    0,
    -1,
    7,
    "",
    "a b",
    "a;b",
    "a,b",
    "a:b",
    "a|b",
    "3-5",
    "'",
    "\n",
    "é",
    True,
    1.5,
    [],
    {},
    [[]],
    ["x"],
    {"a": [1]},
]


def vary(value: Any) -> list[Any]:
    """Return a value, and copies of it with another value at one of its paths."""
    found = [value, *ODD]
    for place, inner in list(
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        for other in vary(inner):
            copy: Any = dict(value) if isinstance(value, dict) else list(value)
            copy[place] = other
            found.append(copy)
    return found


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, _, value in DOCUMENTED])
def test_a_value_next_to_a_documented_one_is_a_fault_or_comes_back(kind: str, value: Any) -> None:
    structure = FORMS[kind]
    texts = [structure.format(near) for near in vary(value) if not structure.faults(near)]
    assert len(texts) > 1
    assert [structure.format(structure.parse(text)) for text in texts] == texts


@pytest.mark.parametrize("kind", FORMS)
@given(st.text(max_size=20) | st.text("0123456789-|;:,~[]'\"{} abon", max_size=16))
def test_any_text_has_no_structured_form_or_one_without_loss(kind: str, text: str) -> None:
    structure = FORMS[kind]
    value = structure.parse(text)
    assert (
        value is None
        or structure.faults(value)
        or structure.parse(structure.format(value)) == value
    )
