"""The origins of effective and overridden values at a path of a preset."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from npuprof.model import Path as SettingPath
from npuprof.resolve import origins
from support.building import options, resolve

MIXLIST = "modify_mixlist"


class OverriddenCase(NamedTuple):
    """Presets from the lowest to the highest, a path, and what is overridden there."""

    name: str
    texts: tuple[str, ...]
    key: str
    tail: SettingPath
    expected: list[tuple[Any, str]]
    winners: list[str]


OVERRIDDEN = [
    OverriddenCase(
        name="values of three presets, latest first",
        texts=("options.hccl_timeout = 1", "options.hccl_timeout = 2", "options.hccl_timeout = 3"),
        key="hccl_timeout",
        tail=(),
        expected=[(2, "p1.toml:2"), (1, "p0.toml:1")],
        winners=["p2.toml:2"],
    ),
    OverriddenCase(
        name="a single value",
        texts=("options.hccl_timeout = 1",),
        key="hccl_timeout",
        tail=(),
        expected=[],
        winners=["p0.toml:1"],
    ),
    OverriddenCase(
        name="a value that is unset",
        texts=("options.hccl_timeout = 1", 'profile.unset = ["hccl_timeout"]'),
        key="hccl_timeout",
        tail=(),
        expected=[(1, "p0.toml:1")],
        winners=[],
    ),
    OverriddenCase(
        name="a value that is unset and set again",
        texts=(
            "options.hccl_timeout = 1",
            'profile.unset = ["hccl_timeout"]',
            "options.hccl_timeout = 3",
        ),
        key="hccl_timeout",
        tail=(),
        expected=[(1, "p0.toml:1")],
        winners=["p2.toml:2"],
    ),
    OverriddenCase(
        name="a table of which a part is effective",
        texts=(
            'options.profiling_options = { output = "/a", task_trace = "on" }',
            'options.profiling_options = { output = "/b" }',
        ),
        key="profiling_options",
        tail=(),
        expected=[],
        winners=["p1.toml:2", "p0.toml:1"],
    ),
    OverriddenCase(
        name="one entry of a table",
        texts=(
            '[options.profiling_options]\noutput = "/a"\ntask_trace = "on"',
            'options.profiling_options = { output = "/b" }',
        ),
        key="profiling_options",
        tail=("output",),
        expected=[("/a", "p0.toml:2")],
        winners=["p1.toml:2"],
    ),
    OverriddenCase(
        name="an entry that a later table does not have",
        texts=(
            '[options.profiling_options]\noutput = "/a"\ntask_trace = "on"',
            'options.profiling_options = { output = "/b" }',
        ),
        key="profiling_options",
        tail=("task_trace",),
        expected=[],
        winners=["p0.toml:3"],
    ),
    OverriddenCase(
        name="an entry of a text",
        texts=(
            """options.profiling_options = '{"output": "/a", "task_trace": "on"}'""",
            'options.profiling_options = { output = "/b" }',
        ),
        key="profiling_options",
        tail=("output",),
        expected=[("/a", "p0.toml:1")],
        winners=["p1.toml:2"],
    ),
    OverriddenCase(
        name="an entry of a text whose other entry is effective",
        texts=(
            """options.profiling_options = '{"output": "/a", "task_trace": "on"}'""",
            """options.profiling_options = '{"output": "/b", "task_trace": "on"}'""",
        ),
        key="profiling_options",
        tail=("task_trace",),
        expected=[("on", "p0.toml:1")],
        winners=["p1.toml:2"],
    ),
    OverriddenCase(
        name="an element of a list that was appended to",
        texts=(
            "options.dump_step = [1,\n  2]",
            "append.options.dump_step = [3,\n  4]",
        ),
        key="dump_step",
        tail=(3,),
        expected=[],
        winners=["p1.toml:3"],
    ),
    OverriddenCase(
        name="elements of lists that a later list replaces",
        texts=(
            "options.dump_step = [1,\n  2]",
            "append.options.dump_step = [3]",
            "options.dump_step = [9,\n  8, 7]",
        ),
        key="dump_step",
        tail=(1,),
        expected=[(2, "p0.toml:2")],
        winners=["p2.toml:3"],
    ),
    OverriddenCase(
        name="an appended element that a later list replaces",
        texts=(
            "options.dump_step = [1,\n  2]",
            "append.options.dump_step = [3,\n  4]",
            "options.dump_step = [9, 8,\n  7,\n  6]",
        ),
        key="dump_step",
        tail=(3,),
        expected=[(4, "p1.toml:3")],
        winners=["p2.toml:4"],
    ),
    OverriddenCase(
        name="an appended element that a later list is too short for",
        texts=(
            "options.dump_step = [1]",
            "append.options.dump_step = [3]",
            "options.dump_step = [9]",
        ),
        key="dump_step",
        tail=(1,),
        expected=[(3, "p1.toml:2")],
        winners=[],
    ),
    OverriddenCase(
        name="an element of a list that was appended to a list of lists",
        texts=(
            "options.dump_step = [[1, 2]]",
            "append.options.dump_step = [[3, 4]]",
            "options.dump_step = [[9], [8,\n  7]]",
        ),
        key="dump_step",
        tail=(1, 1),
        expected=[(4, "p1.toml:2")],
        winners=["p2.toml:3"],
    ),
    OverriddenCase(
        name="an element appended below a table, of lists that were unset before",
        texts=(
            f'options.{MIXLIST} = {{ black-list = {{ to-add = ["Cast", "Add"] }} }}',
            f'profile.unset = ["{MIXLIST}.black-list"]',
            f'append.options.{MIXLIST} = {{ black-list = {{ to-add = ["MatMul"] }} }}',
            f'options.{MIXLIST} = {{ white-list = {{ to-add = ["Cast"] }} }}',
            f'append.options.{MIXLIST} = {{ black-list = {{ to-add = ["Mul"] }} }}',
            f'options.{MIXLIST} = {{ black-list = {{ to-add = ["Sub",\n  "Exp"] }} }}',
        ),
        key=MIXLIST,
        tail=("black-list", "to-add", 1),
        expected=[("Mul", "p4.toml:2"), ("Add", "p0.toml:1")],
        winners=["p5.toml:3"],
    ),
    OverriddenCase(
        name="an element after one that was removed",
        texts=(
            "options.dump_step = [1,\n  2,\n  3]",
            "append.options.dump_step = [4,\n  5]",
            "remove.options.dump_step = [2, 4]",
        ),
        key="dump_step",
        tail=(2,),
        expected=[],
        winners=["p1.toml:3"],
    ),
    OverriddenCase(
        name="an element of a list that replaces one with removed elements",
        texts=(
            "options.dump_step = [1,\n  2,\n  3]",
            "remove.options.dump_step = [2]",
            "options.dump_step = [7,\n  8, 9]",
        ),
        key="dump_step",
        tail=(1,),
        expected=[(3, "p0.toml:3")],
        winners=["p2.toml:3"],
    ),
    OverriddenCase(
        name="an element that has no place in the list before a removal",
        texts=(
            "options.dump_step = [1, 2]",
            "remove.options.dump_step = [2]",
            "options.dump_step = [7,\n  8]",
        ),
        key="dump_step",
        tail=(1,),
        expected=[],
        winners=["p2.toml:3"],
    ),
    OverriddenCase(
        name="a removed element is no overridden value",
        texts=("options.dump_step = [1, 2]", "remove.options.dump_step = [2]"),
        key="dump_step",
        tail=(),
        expected=[],
        winners=["p0.toml:1"],
    ),
    OverriddenCase(
        name="an element that is appended again to a set, and one after it",
        texts=(
            "options.dump_step = [1]",
            "append.options.dump_step = [2]",
            "append.options.dump_step = [1, 2,\n  3]",
            "options.dump_step = [7, 8,\n  9]",
        ),
        key="dump_step",
        tail=(2,),
        expected=[(3, "p2.toml:3")],
        winners=["p3.toml:3"],
    ),
]


def list_places(found: list[Any]) -> list[str]:
    return [str(origin).rpartition("/")[2] for origin in found]


@pytest.mark.parametrize("case", OVERRIDDEN, ids=lambda case: case.name)
def test_overridden_values_are_those_of_all_earlier_presets_at_the_same_path(
    case: OverriddenCase, tmp_path: Path
) -> None:
    presets = {
        f"p{index}": (f'profile.extends = ["p{index - 1}"]\n' if index else "") + text
        for index, text in enumerate(case.texts)
    }
    config = resolve(tmp_path, presets, f"p{len(case.texts) - 1}")
    found = origins.find_overridden(config, case.key, case.tail)
    values, places = [value for value, _ in found], list_places([origin for _, origin in found])
    assert values == [value for value, _ in case.expected]
    assert places == [place for _, place in case.expected]
    winners = origins.find_authors_at(config, case.key, case.tail)
    assert list_places(winners) == case.winners


def test_a_traced_value_without_its_origins_is_the_value() -> None:
    lists = {"black-list": {"to-add": ["MatMul", "Cast"]}, "white-list": {"to-add": []}}
    traced = options(modify_mixlist=lists, hccl_timeout=0)
    assert origins.strip_origins(traced.traced_value(MIXLIST)) == lists
    assert origins.strip_origins(traced.traced_value("hccl_timeout")) == 0
    assert origins.strip_origins([1, {"a": None}]) == [1, {"a": None}]
    assert traced.traced_value(MIXLIST) != lists


def test_an_origin_in_a_file_and_one_without_a_line_are_fields_of_json(tmp_path: Path) -> None:
    block = '\n[[override]]\nmatch.product = "atlas-a3"\noptions.hccl_timeout = 2\n'
    presets = {"job": f"options.hccl_timeout = 1{block}"}
    config = resolve(tmp_path, presets, "job", product="atlas-a3", set={"hccl_timeout": 3})
    typed, override, value = map(origins.build_origin_dict, config.origins("hccl_timeout"))
    assert value == {
        "profile": "job",
        "path": f"{tmp_path}/job.toml",
        "line": 1,
        "column": 9,
        "layer": "values",
        "revision": None,
    }
    assert override == {**value, "line": 4, "layer": "override 1"}
    assert typed == {
        **value,
        "profile": "set",
        "path": "set",
        "layer": "command line",
        "line": None,
        "column": None,
    }


@pytest.mark.parametrize(
    ("path", "other", "expected"),
    [((), ("a",), False), (("a", "b"), ("a",), False), (("a", "b"), ("a", "c", "d"), True)],
    ids=["a whole value", "a table and its entry", "two entries"],
)
def test_paths_are_apart_unless_one_contains_the_other(
    path: SettingPath, other: SettingPath, expected: bool
) -> None:
    assert origins.are_apart(path, other) is expected
    assert origins.are_apart(other, path) is expected
