"""Changes of configs: their order, causes and scopes, in every format."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import npuprof
from support.building import build_store, toml
from support.growth import measure_growth
from support.repositories import Repo
from support.running import Run, Store, expect


def changes(
    before: dict[str, Any], after: dict[str, Any], section: str = "options"
) -> list[tuple[Any, ...]]:
    left, right = (npuprof.loads(toml({section: side})) for side in (before, after))
    return [
        (change.kind, change.key, change.before, change.after)
        for change in npuprof.diff(left, right)
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"x": True}, {"x": 1}, [("changed", "x", True, 1)], id="true becomes 1"),
        pytest.param({"x": 2}, {"x": 2.0}, [("changed", "x", 2, 2.0)], id="2 becomes 2.0"),
        pytest.param(
            {"x": [True]}, {"x": [1]}, [("changed", "x", [True], [1])], id="[true] becomes [1]"
        ),
        pytest.param({"x": "1"}, {"x": 1}, [("changed", "x", "1", 1)], id="text becomes a number"),
        pytest.param({"x": 0}, {"x": False}, [("changed", "x", 0, False)], id="0 becomes false"),
        pytest.param({"x": float("nan")}, {"x": float("nan")}, [], id="NaN stays NaN"),
        pytest.param({"x": 1}, {}, [("removed", "x", 1, None)], id="removed"),
        pytest.param({}, {"x": 1}, [("added", "x", None, 1)], id="added"),
        pytest.param(
            {"x": {"a": 1, "b": 2}},
            {"x": {"b": 3, "c": 4}},
            [("removed", "x.a", 1, None), ("changed", "x.b", 2, 3), ("added", "x.c", None, 4)],
            id="keys of a table",
        ),
        pytest.param(
            {"x": {"a": {}}},
            {"x": {"a": []}},
            [("changed", "x.a", {}, [])],
            id="a table becomes a list",
        ),
        pytest.param(
            {"x": [1, 2]}, {"x": [2, 1]}, [("changed", "x", [1, 2], [2, 1])], id="an ordered list"
        ),
        # the structured form and the text are the same value
        pytest.param(
            {"dynamic_dims": "20,20;40,40"},
            {"dynamic_dims": [[20, 20], [40, 40]]},
            [],
            id="text and list of one value",
        ),
        pytest.param(
            {"dynamic_dims": "20,20;40,40"},
            {"dynamic_dims": [[20, 20], [40, 41]]},
            [("changed", "dynamic_dims", [[20, 20], [40, 40]], [[20, 20], [40, 41]])],
            id="text and list of two values",
        ),
        # where order means nothing, each element is a change of its own
        pytest.param(
            {"modify_mixlist": {"black-list": {"to-add": ["A", "B"]}}},
            {"modify_mixlist": {"black-list": {"to-add": ["C", "B"]}}},
            [
                ("removed", "modify_mixlist.black-list.to-add", "A", None),
                ("added", "modify_mixlist.black-list.to-add", None, "C"),
            ],
            id="element of an unordered list",
        ),
        pytest.param(
            {"modify_mixlist": {"black-list": {"to-add": ["A", "B"]}}},
            {"modify_mixlist": {"black-list": {"to-add": ["B", "A", "B"]}}},
            [],
            id="unordered list with a repetition",
        ),
        pytest.param(
            {"dump_step": "0|1"},
            {"dump_step": [1, 2]},
            [("removed", "dump_step", 0, None), ("added", "dump_step", None, 2)],
            id="list of numbers in a text",
        ),
        # a path is not what is in the file
        pytest.param(
            {"modify_mixlist": "/a"},
            {"modify_mixlist": {"black-list": {"to-add": ["A"]}}},
            [("changed", "modify_mixlist", "/a", {"black-list": {"to-add": ["A"]}})],
            id="a path becomes a table",
        ),
        # the order of inputs means something
        pytest.param(
            {"input_shape": {"a": [1], "b": [2]}},
            {"input_shape": {"b": [2], "a": [1]}},
            [("changed", "input_shape", {"a": [1], "b": [2]}, {"b": [2], "a": [1]})],
            id="order of an ordered table",
        ),
    ],
)
def test_changes_are_typed_and_in_the_structured_form(
    before: dict[str, Any], after: dict[str, Any], expected: list[Any]
) -> None:
    assert repr(changes(before, after)) == repr(expected)


def test_changes_come_in_the_catalogues_order_and_name_unit_and_risk() -> None:
    left, right = (
        npuprof.loads("[env]\nX = 1\n"),
        npuprof.loads('[options]\nhccl_timeout = 5\nprecision_mode_v2 = "fp16"\n'),
    )
    found = npuprof.diff(left, right)
    assert [change.key for change in found] == ["precision_mode_v2", "hccl_timeout", "env.X"]
    assert "numerics" in found[0].risk
    assert found[1].unit == "s"


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            {"a": [[1]]},
            {"a": [[1.0]]},
            [("changed", "x.a", [[1]], [[1.0]])],
            id="an integer becomes a float",
        ),
        pytest.param(
            {"a": [{"b": True}]},
            {"a": [{"b": 1}]},
            [("changed", "x.a", [{"b": True}], [{"b": 1}])],
            id="true becomes 1",
        ),
        pytest.param(
            {"a": "x\ny"},
            {"a": "x\nz"},
            [("changed", "x.a", "x\ny", "x\nz")],
            id="a text of two lines",
        ),
        # what is the same, however it is written
        pytest.param({"a": 0.0}, {"a": -0.0}, [], id="zero and minus zero"),
        pytest.param({"a": float("nan")}, {"a": float("nan")}, [], id="NaN"),
        pytest.param(
            {"a": NOON},
            {"a": NOON.astimezone(timezone(timedelta(hours=2)))},
            [],
            id="one moment in two time zones",
        ),
        pytest.param(
            {"a": datetime.min.replace(tzinfo=timezone(timedelta(hours=2)))},
            {"a": NOON},
            [("changed", "x.a", datetime.min.replace(tzinfo=timezone(timedelta(hours=2))), NOON)],
            id="the first moment of all",
        ),
        pytest.param(
            {"a": [{"b": 1, "c": -0.0}]},
            {"a": [{"c": 0.0, "b": 1}]},
            [],
            id="minus zero in another order",
        ),
        # what is not the same, though it looks so
        pytest.param(
            {"a": NOON.replace(tzinfo=None)},
            {"a": NOON},
            [("changed", "x.a", NOON.replace(tzinfo=None), NOON)],
            id="a time gets a time zone",
        ),
        pytest.param(
            {"a": NOON.date()},
            {"a": NOON},
            [("changed", "x.a", NOON.date(), NOON)],
            id="a date becomes a time",
        ),
        pytest.param(
            {"a": [NOON]},
            {"a": [str(NOON)]},
            [("changed", "x.a", [NOON], [str(NOON)])],
            id="a time becomes its text",
        ),
        # keys of any kind
        pytest.param(
            {"__a": 1},
            {"__a": 2},
            [("changed", "x.__a", 1, 2)],
            id="a key that begins with underscores",
        ),
        pytest.param(
            {"__a": {"__b": 1}},
            {"__a": {}},
            [("removed", "x.__a.__b", 1, None)],
            id="such a key in another",
        ),
        pytest.param(
            {"a']['b": 1, "a": {"b": 1}},
            {"a']['b": 2, "a": {"b": 1}},
            [("changed", """x."a']['b\"""", 1, 2)],
            id="a key with brackets",
        ),
        pytest.param(
            {"a'\"b": 1},
            {"a'\"b": 2},
            [("changed", """x."a'\\"b\"""", 1, 2)],
            id="a key with both quotes",
        ),
        pytest.param(
            {"a.b": 1, "[0]": 1, "": 1},
            {"a.b": 2, "[0]": 2, "": 2},
            [("changed", 'x."a.b"', 1, 2), ("changed", 'x."[0]"', 1, 2), ("changed", 'x.""', 1, 2)],
            id="keys that look like paths",
        ),
        # tables that share few keys
        pytest.param(
            {"a": 1, "b": 1, "c": 1, "d": 1},
            {"e": 2, "f": 2, "a": 2},
            [
                ("changed", "x.a", 1, 2),
                *(("removed", f"x.{name}", 1, None) for name in "bcd"),
                ("added", "x.e", None, 2),
                ("added", "x.f", None, 2),
            ],
            id="many keys",
        ),
    ],
)
def test_what_deepdiff_does_not_see_by_itself_is_told(
    before: dict[str, Any], after: dict[str, Any], expected: list[Any]
) -> None:
    rest = {"same": 1, "other": 0}
    found = changes({"x": {**before, **rest}}, {"x": {**after, **rest, "other": 1}})
    assert repr([change for change in found if change[1] != "x.other"]) == repr(expected)
    assert ("changed", "x.other", 0, 1) in found


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (["A", "A", "B"], ["B", "A"], []),
        (["A"], ["A", "A", "C"], [("added", None, "C", True)]),
        ([], ["A"], [("added", None, "A", True)]),
        (
            ["B", "A"],
            ["D", "A", "C"],
            [("removed", "B", None, True), ("added", None, "D", True), ("added", None, "C", True)],
        ),
        # what is no list of names on both sides is one value
        ([], [1.5], [("changed", [], [1.5], False)]),
        ([1.5, "A"], ["A", 1.5], [("changed", [1.5, "A"], ["A", 1.5], False)]),
        ([], {}, [("changed", [], {}, False)]),
        (["A"], {"A": 1}, [("changed", ["A"], {"A": 1}, False)]),
    ],
)
def test_of_a_list_without_order_the_elements_are_told(
    before: Any, after: Any, expected: list[Any]
) -> None:
    left, right = (
        npuprof.loads(toml({"options": {"modify_mixlist": {"black-list": {"to-add": side}}}}))
        for side in (before, after)
    )
    found = npuprof.diff(left, right)
    assert [
        (change.kind, change.before, change.after, change.element) for change in found
    ] == expected
    assert {change.key for change in found} <= {"modify_mixlist.black-list.to-add"}


LONG = list(range(2000))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([1, 2, 3], [0, 1, 2, 3], [("added", "[0]", None, 0)]),
        ([1, 2, 3], [1, 3], [("removed", "[1]", 2, None)]),
        ([True, 2], [1, 3], [("changed", "[0]", True, 1), ("changed", "[1]", 2, 3)]),
        (
            [2, 2],
            [2.5, 3, 2, 2.5],
            [("added", "[0]", None, 2.5), ("added", "[1]", None, 3), ("changed", "[1]", 2, 2.5)],
        ),
        (
            [[1, 2], [3]],
            [[0, 1, 2], [4]],
            [("added", "[0][0]", None, 0), ("changed", "[1][0]", 3, 4)],
        ),
        (
            [{"__a": 1, "b": 1}, 2],
            [{"__a": 2, "c": 1}, 3, 4],
            [
                ("changed", "[0].__a", 1, 2),
                ("removed", "[0].b", 1, None),
                ("added", "[0].c", None, 1),
                ("changed", "[1]", 2, 3),
                ("added", "[2]", None, 4),
            ],
        ),
        (
            [{"a": 1, "b": 1, "c": 1}, 0],
            [{"c": 1, "b": 1, "a": 1}, 0.5],
            [("changed", "[1]", 0, 0.5)],
        ),
        # long lists too, as far as it takes no longer than they are long
        (LONG, [-1, *LONG], [("added", "[0]", None, -1)]),
        (
            LONG,
            [*LONG[:500], -1, -2, *LONG[501:]],
            [("changed", "[500]", 500, -1), ("added", "[501]", None, -2)],
        ),
        (
            [LONG, 0],
            [LONG[1:], 0],
            [
                *(("changed", f"[0][{n}]", n, n + 1) for n in LONG[:-1]),
                ("removed", "[0][1999]", 1999, None),
            ],
        ),
    ],
)
def test_of_a_list_in_order_the_elements_are_told_by_position(
    before: list[Any], after: list[Any], expected: list[Any]
) -> None:
    (change,) = npuprof.diff(
        *(npuprof.loads(toml({"options": {"x": side}})) for side in (before, after))
    )
    assert change.kind == "changed"
    assert change.key == "x"
    inner = [
        (element.kind, element.index, element.before, element.after)
        for element in change.compare_elements()
    ]
    assert repr(inner) == repr(expected)


@pytest.mark.parametrize(
    ("key", "build"),
    [
        ("x", lambda numbers: {f"k{index}": number for index, number in enumerate(numbers)}),
        (
            "modify_mixlist",
            lambda numbers: {"black-list": {"to-add": [f"Op{number}" for number in numbers]}},
        ),
    ],
    ids=["table", "list without order"],
)
def test_twice_as_much_takes_twice_as_long(key: str, build: Callable[[list[int]], Any]) -> None:
    def compare(size: int) -> Callable[[], object]:
        half = [number + 10**6 * (number % 2) for number in range(size)]
        left, right = (
            npuprof.loads(toml({"options": {key: build(numbers)}}))
            for numbers in (list(range(size)), half)
        )
        return lambda: [change.compare_elements() for change in npuprof.diff(left, right)]

    assert measure_growth(compare, 200, 2) < 1.25


FIRST = "[options.modify_mixlist]\nblack-list.to-add = {}\n[options]\ndynamic_dims = {}\n"
MORE = (
    '[profile]\nextends = ["{}"]\n[append.options.modify_mixlist]\nblack-list.to-add = {}\n'
    "[append.options]\ndynamic_dims = {}\n"
)
CHAIN = {
    "base": FIRST.format('["A", "B"]', "[[1], [2]]"),
    "mid": MORE.format("base", '["C"]', "[[3]]"),
    "top": MORE.format("mid", '["D"]', "[[4]]"),
}
PLAIN = '[profile]\nextends = ["{}"]\n'

#: What becomes of the presets of a chain, and for each changed key and value of the last preset the
#: places before and after.
LIST_CAUSES: dict[str, tuple[dict[str, str], list[tuple[str, Any, str, str]]]] = {
    "an element edited in the base": (
        {"base": FIRST.format('["A", "X"]', "[[1], [9]]")},
        [
            ("dynamic_dims", None, "base:4", "base:4"),
            ("-", "B", "base:2", "base:2"),
            ("+", "X", "", "base:2"),
        ],
    ),
    "the appends of a middle layer removed": (
        {"mid": PLAIN.format("base")},
        [("dynamic_dims", None, "mid:6", ""), ("-", "C", "mid:4", "")],
    ),
    "a list cleared in a middle layer": (
        {"mid": '[profile]\nextends = ["base"]\nunset = ["modify_mixlist.black-list"]\n'},
        [
            ("dynamic_dims", None, "mid:6", ""),
            ("-", "A", "base:2", "mid:3"),
            ("-", "B", "base:2", "mid:3"),
            ("-", "C", "mid:4", "mid:3"),
        ],
    ),
    "a middle layer no longer extended": (
        {"top": MORE.format("base", '["D"]', "[[4]]")},
        [("dynamic_dims", None, "mid:6", ""), ("-", "C", "mid:4", "")],
    ),
}


@pytest.mark.parametrize("case", LIST_CAUSES)
def test_the_cause_of_a_change_in_a_list_is_the_edited_line(case: str, tmp_path: Path) -> None:
    edits, expected = LIST_CAUSES[case]
    before, after = (
        npuprof.open_store(build_store(tmp_path / side / "profiles", texts)).resolve("top")
        for side, texts in (("before", CHAIN), ("after", CHAIN | edits))
    )

    def show(origin: Any) -> str:
        return f"{origin.profile}:{origin.line}" if origin else ""

    found = [
        (change.sign, change.before or change.after, *map(show, change.origins))
        if change.element
        else (change.key, None, *map(show, change.origins))
        for change in npuprof.diff(before, after)
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


BASE = '[profile]\nabstract = true\n[options]\nhccl_timeout = {}\nprecision_mode_v2 = "{}"\n'
LEAF = '[profile]\nextends = ["base"]\nscenario = "training"\n[options]\niterations_per_loop = {}\n'


def leaves(number: int) -> dict[str, str | bytes | None]:
    return {f"leaf{index}": LEAF.format(index + 1) for index in range(number)}


def test_spans_are_those_of_git(repo: Repo, run: Run) -> None:
    repo.commit({"a": "[options]\nhccl_timeout = 1\n", "b": "[options]\nhccl_timeout = 1\n"})
    repo.git("branch", "side")
    repo.commit({"a": "[options]\nhccl_timeout = 2\n"})
    repo.git("checkout", "-q", "side")
    repo.commit({"b": "[options]\nhccl_timeout = 3\n"})
    assert run("diff", "--rev", "main..side", "--name-only").out == "a\nb\n"
    assert run("diff", "--rev", "main...side", "--name-only").out == "b\n"
    assert run("diff", "--rev", "main..", "--name-only").out == "a\nb\n"
    assert run("diff", "--rev", "..main", "--name-only").out == "a\nb\n"
    assert run("diff", "--name-only").out == ""
    repo.write({"b": "[options]\nhccl_timeout = 1\n"})
    assert run("diff", "--rev", "main", "--name-only").out == "a\n"
    assert run("diff", "--name-only").out == "b\n"
    assert run("diff", "--rev", "main..side", "a").out.startswith("a\n  ~ hccl_timeout 2 → 1 s")
    assert run("diff", "--rev", "main..side", "c").code == 2
    for unknown in ("--rev=--output=x..main", "--rev=main..nope", "--rev=-x"):
        done = run("diff", unknown)
        assert done.code == 2
        assert done.out == ""


def test_presets_that_break_or_are_mended_are_named_with_the_rule(repo: Repo, run: Run) -> None:
    repo.commit(
        {
            "base": BASE.format(1, "mixed_float16"),
            "leaf": LEAF.format(1) + "[options.modify_mixlist]\nblack-list.to-add = ['A']\n",
        }
    )
    repo.commit({"base": BASE.format(1, "fp16")})
    found = json.loads(run("diff", "--rev", "HEAD~1..HEAD", "--format", "json").out)
    leaf = next(pair for pair in found["presets"] if pair["preset"] == "leaf")
    assert leaf["valid"] == {"before": True, "after": False}
    assert [finding["code"] for finding in leaf["newly_broken"]] == ["NP303"]
    assert "leaf (INVALID NOW)\n  ! breaks NP303" in run("diff", "--rev", "HEAD~1..HEAD").out
    assert "\x1b[31m! breaks NP303" in run("diff", "--rev", "HEAD~1..HEAD", "--color", "always").out
    assert "leaf (valid again)\n  ! no longer NP303" in run("diff", "--rev", "HEAD..HEAD~1").out


def test_a_preset_that_cannot_be_resolved_on_one_side_does_not_stop_the_rest(
    repo: Repo, run: Run
) -> None:
    repo.commit(
        {
            "base": BASE.format(1, "fp16"),
            "leaf": LEAF.format(1),
            "other": "[options]\nhccl_timeout = 1\n",
        }
    )
    repo.commit({"base": None, "other": "[options]\nhccl_timeout = 2\n"})
    expect(
        run("diff", "--rev", "HEAD~1..HEAD"),
        2,
        "base (removed, 2 settings)",
        "leaf (INVALID NOW)\n  ! breaks NP101",
        "hccl_timeout 1 → 2 s",
    )


def test_a_change_that_holds_for_one_product_only_is_shown_with_it(repo: Repo, run: Run) -> None:
    override = (
        '[[override]]\nmatch = {{ product = "atlas-a3" }}\noptions = {{ hccl_timeout = {} }}\n'
    )
    repo.commit({"leaf": "[options]\nhccl_timeout = 1\n" + override.format(5)})
    repo.commit({"leaf": "[options]\nhccl_timeout = 1\n" + override.format(6)})
    assert "(product atlas-a3) hccl_timeout 5 → 6 s" in run("diff", "--rev", "HEAD~1..HEAD").out
    assert (
        "\n  ~ hccl_timeout 5 → 6 s"
        in run("diff", "--rev", "HEAD~1..HEAD", "--product", "atlas-a3").out
    )
    assert run("diff", "--rev", "HEAD~1..HEAD", "--product", "atlas-a2", "--exit-code").code == 0


def test_raw_compares_the_files_and_not_what_they_resolve_to(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(1, "fp16"), "leaf": LEAF.format(1)})
    repo.commit(
        {
            "base": BASE.format(2, "fp16"),
            "leaf": '[profile]\ndescription = "x"\n' + LEAF.format(1).removeprefix("[profile]\n"),
        }
    )
    done = run("diff", "--rev", "HEAD~1..HEAD", "--raw")
    assert '+ profile.description "x"' in done.out
    assert "~ options.hccl_timeout 1 → 2 s" in done.out
    assert "presets:" not in done.out
    assert run("diff", "leaf@HEAD~1", "leaf", "--raw").out.startswith("+ profile.description")


def test_exit_codes_counts_and_names(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(1, "fp16"), "leaf": LEAF.format(1), "same": "[options]\n"})
    repo.commit({"base": BASE.format(2, "fp16")})
    assert run("diff", "--rev", "HEAD~1..HEAD", "--exit-code").code == 1
    assert run("diff", "--rev", "HEAD..HEAD", "--exit-code").code == 0
    assert run("diff", "base", "base@HEAD", "--exit-code") == (0, "", "")
    assert run("diff", "leaf@HEAD~1", "leaf", "--exit-code").code == 1
    assert (
        run("diff", "--rev", "HEAD~1..HEAD", "--stat").out
        == "base | 0+ 0- 1~\nleaf | 0+ 0- 1~\n2 presets differ, 1 does not\n"
    )
    assert "same: unchanged" in run("diff", "--rev", "HEAD~1..HEAD", "--all").out
    assert run("diff", "base", "--format", "xml").code == 2
    assert run("diff", "-").code == 2


def test_three_presets_make_a_matrix(store: Store, run: Run) -> None:
    same = "[options]\ngraph_run_mode = 1\n"
    store(
        {
            "a": f"{same}hccl_timeout = 1\n",
            "b": f"{same}hccl_timeout = 2\n",
            "c": same,
            "d": f'profile.scenario = "training"\n{same}',
        }
    )
    assert run("diff", "a", "b", "c").out == "              a  b  c\nhccl_timeout  1  2  -\n"
    assert [line.split() for line in run("diff", "a", "c", "d").out.splitlines()[1:]] == [
        ["profile.scenario", "-", "-", '"training"'],
        ["hccl_timeout", "1", "-", "-"],
    ]
    assert "graph_run_mode" in run("diff", "a", "b", "c", "--all").out
    found = json.loads(run("diff", "a", "b", "c", "--format", "json").out)
    assert found["rows"] == [
        {
            "key": "hccl_timeout",
            "same": False,
            "values": [
                {"set": True, "value": 1},
                {"set": True, "value": 2},
                {"set": False, "value": None},
            ],
        }
    ]
    assert (
        "| `hccl_timeout` | `1` | `2` |  |"
        in run("diff", "a", "b", "c", "--format", "markdown").out
    )
    assert run("diff", "a", "a", "a", "--exit-code") == (0, "", "")


HOSTILE = "a|b`c<script>alert(1)</script> @all [x](http://y) \\u001b[31m ```"


def test_nothing_a_preset_holds_becomes_markup(repo: Repo, run: Run) -> None:
    repo.commit({"leaf": '[options]\ndump_path = "x"\n'})
    repo.commit({"leaf": f'[options]\ndump_path = "{HOSTILE}"\n'})
    page = run("diff", "--rev", "HEAD~1..HEAD", "--format", "html").out
    assert "<script" not in page
    assert "\x1b" not in page
    text = run("diff", "--rev", "HEAD~1..HEAD", "--format", "markdown").out
    row = next(line for line in text.splitlines() if "alert(1)" in line)
    assert "```` " in row
    assert row.count("|") - row.count("\\|") == 5
    assert "\x1b" not in run("diff", "--rev", "HEAD~1..HEAD", "--color", "never").out


def test_json_says_everything_with_places_on_both_sides(repo: Repo, run: Run) -> None:
    first = repo.commit({"base": BASE.format(1, "fp16"), "leaf": LEAF.format(1)})
    repo.commit({"base": BASE.format(2, "fp16")})
    found = json.loads(run("diff", "leaf@HEAD~1", "leaf", "--format", "json").out)
    assert found["schema"] == "npuprof.diff/1"
    (change,) = found["changes"]
    assert change["key"] == "hccl_timeout"
    assert change["before"] == 1
    assert change["after"] == 2
    assert change["kind"] == "changed"
    assert change["origins"]["before"]["revision"] == first
    assert change["origins"]["after"] == {
        "profile": "base",
        "path": "profiles/base.toml",
        "line": 4,
        "column": 1,
        "revision": None,
        "layer": "values",
        "text": "profiles/base.toml:4",
    }
    whole = json.loads(run("diff", "--rev", "HEAD~1", "--format", "json").out)
    assert whole["changes"][0]["presets"] == ["base", "leaf"]
    assert whole["untouched"] == 0


def test_git_processes_do_not_grow_with_the_store(
    repo: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"base": BASE.format(1, "fp16"), **leaves(60)})
    repo.commit({"base": BASE.format(2, "fp16")})
    trace = tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
    assert run("diff", "--rev", "HEAD~1..HEAD").code == 0
    assert trace.read_text().count('"event":"start"') == 1


def test_lists_of_texts_are_compared_without_deepdiff(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = '"ascend-950", "atlas-a2", "atlas-a3", "atlas-inference"'
    presets = {
        name: f"[profile]\nproducts = [{known}{more}]\n"
        for name, more in (("a", ""), ("b", ', "atlas-training"'))
    }
    monkeypatch.setitem(sys.modules, "deepdiff", None)
    assert (
        '+ [4] "atlas-training"'
        in run("diff", "a", "b", "--store", build_store(tmp_path, presets)).out
    )
