"""The history of resolved values: the commits that changed them, and who wrote each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.repositories import Repo
from support.running import Run, expect

BASE = "[options]\nhccl_timeout = {}\n"
LEAF = '[profile]\nextends = ["base"]\n[options]\ngraph_run_mode = {}\n'


def read_log(run: Run, *arguments: str) -> list[dict[str, Any]]:
    done = run("log", *arguments, "--format", "json")
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["commits"]
    return found


def test_a_change_of_a_parent_is_in_the_history_of_its_heirs(repo: Repo, run: Run) -> None:
    first = repo.commit({"base": BASE.format(1), "leaf": LEAF.format(1)}, "start")
    repo.commit({"other": "[options]\n"}, "elsewhere")
    second = repo.commit({"base": BASE.format(2)}, "slower")
    repo.commit({"base": "# a remark\n" + BASE.format(2)}, "remark")
    third = repo.commit({"leaf": LEAF.format(0)}, "inference")
    assert [entry["commit"] for entry in read_log(run, "leaf")] == [third, second, first]
    assert [entry["commit"] for entry in read_log(run, "leaf", "hccl_timeout")] == [second, first]
    assert [entry["commit"] for entry in read_log(run, "leaf@HEAD~3")] == [first]
    assert [entry["commit"] for entry in read_log(run, "leaf", "-n", "1")] == [third]
    assert read_log(run, "leaf", "precision_mode") == []
    assert run("log", "leaf", "hccl_timeout").out.splitlines()[:2] == [
        f"{second[:7]} 2026-01-03 Ada Lovelace  slower",
        "  ~ hccl_timeout 1 → 2 s  [distributed]  via profiles/base.toml:2",
    ]


def read_blame(run: Run, *arguments: str) -> dict[str, tuple[Any, ...]]:
    done = run("blame", *arguments, "--format", "json")
    assert done.code == 0, done.err
    return {
        item["key"]: (item["value"], item["commit"], item["origin"]["text"])
        for item in json.loads(done.out)["values"]
    }


def test_blame_reaches_into_pinned_parents(repo: Repo, run: Run) -> None:
    first = repo.commit({"base": BASE.format(1)})
    repo.release("base", "1.0.0")
    repo.commit({"base": BASE.format(2), "leaf": '[profile]\nextends = ["base@1"]\n'})
    assert read_blame(run, "leaf")["hccl_timeout"] == (
        1,
        first,
        f"{first[:7]}:profiles/base.toml:2",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("log base+base", "extends base twice"),
        ("log -", "NP024"),
        ("log base@nope", "unknown revision 'nope'"),
        ("log bose", "did you mean 'base'?"),
        ("blame nope", "NP008"),
        ("log base@--x", "cannot start with '-'"),
    ],
)
def test_log_and_blame_refuse_what_has_no_history(
    arguments: str, message: str, repo: Repo, run: Run
) -> None:
    repo.commit({"base": BASE.format(1)})
    assert "error NP" in expect(run(*arguments.split()), 2, message)


def test_explain_tells_the_last_change_where_there_is_a_history(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(1), "leaf": LEAF.format(1)}, "start")
    second = repo.commit({"base": BASE.format(2)}, "slower")
    repo.commit({"leaf": LEAF.format(0)}, "elsewhere")
    assert run("explain", "leaf", "hccl_timeout").out.endswith(
        f"\n  last change  {second[:7]} 2026-01-02 Ada Lovelace: slower\n"
    )
    assert (
        json.loads(run("explain", "leaf", "hccl_timeout", "--format", "json").out)["last_change"][
            "commit"
        ]
        == second
    )
    assert (
        "last change" not in run("explain", "leaf", "hccl_timeout", "--set", "hccl_timeout=3").out
    )
    repo.write({"base": BASE.format(3)})
    assert run("explain", "leaf", "hccl_timeout").out.endswith("  last change  not committed yet\n")


def test_a_store_that_moved_is_cited_by_the_paths_of_each_time(repo: Repo, run: Run) -> None:
    leaf = '[profile]\nextends = ["base"]\n'
    base = "# one\n# two\n# three\n[options]\nhccl_timeout = {}\n"
    repo.commit({"base": base.format(1), "leaf": leaf}, "first")
    repo.commit({"base": base.format(2)}, "second")
    repo.git("mv", "profiles", "presets")
    repo.commit({}, "move")
    (repo.folder / "presets/base.toml").write_text(base.format(3))
    repo.commit({}, "third")
    repo.git("mv", "presets", "profiles")
    repo.commit({"base": base.format(4)}, "move and change")
    steps = read_log(run, "leaf", "hccl_timeout")
    assert read_log(run, "leaf") == steps
    cited = [
        (step["subject"], *[(o or {}).get("path") for o in step["changes"][0]["origins"].values()])
        for step in steps
    ]
    now, then = "profiles/base.toml", "presets/base.toml"
    assert cited == [
        ("move and change", then, now),
        ("third", then, then),
        ("second", now, now),
        ("first", None, now),
    ]


# -- what only an override brings -----------------------------------------------------------------

OVERRIDDEN = (
    '[options]\nhccl_timeout = 1\n[[override]]\nmatch = {{ product = "atlas-a3" }}\n'
    'options = {{ precision_mode_v2 = "{}" }}\n'
    '[[override]]\nmatch = {{ cann = ">=9.0" }}\noptions = {{ hccl_timeout = {} }}\n'
)
PLAIN = "[options]\nhccl_timeout = {}\n"

#: The texts of ``base`` at commits one after the other, the key, and what is printed of each step,
#: oldest first.
SCOPED: dict[str, tuple[list[str], str, list[list[str]]]] = {
    "all that changed": (
        [OVERRIDDEN.format("fp16", 5), OVERRIDDEN.format("mixed_float16", 6)],
        "",
        [
            [
                "+ hccl_timeout 1",
                "+ (product atlas-a3) precision_mode_v2 fp16",
                "+ (cann >=9.0) hccl_timeout 5",
            ],
            [
                "~ (product atlas-a3) precision_mode_v2 mixed_float16",
                "~ (cann >=9.0) hccl_timeout 6",
            ],
        ],
    ),
    "an override that comes and goes": (
        [PLAIN.format(1), OVERRIDDEN.format("fp16", 5), PLAIN.format(1)],
        "hccl_timeout",
        [
            ["+ hccl_timeout 1"],
            ["~ (cann >=9.0) hccl_timeout 5"],
            ["~ (cann >=9.0) hccl_timeout 1"],
        ],
    ),
    "a value beside the override": (
        [OVERRIDDEN.format("fp16", 5), OVERRIDDEN.format("fp16", 5).replace("= 1\n", "= 2\n", 1)],
        "hccl_timeout",
        [["+ hccl_timeout 1", "+ (cann >=9.0) hccl_timeout 5"], ["~ hccl_timeout 2"]],
    ),
    "a key that nobody ever set": ([OVERRIDDEN.format("fp16", 5)], "graph_run_mode", []),
}


@pytest.mark.parametrize("case", SCOPED)
def test_what_only_an_override_changes_is_in_the_history_with_its_scope(
    repo: Repo, run: Run, case: str
) -> None:
    texts, key, expected = SCOPED[case]
    for number, text in enumerate(texts):
        repo.commit({"base": text, "leaf": '[profile]\nextends = ["base"]\n'}, f"step {number}")
    done = run("log", "leaf", *([key] if key else []), "--format", "json")
    steps = [
        [
            f"{c['sign']} {'(' + c['scope'] + ') ' if c['scope'] else ''}{c['key']} {c['after']}"
            for c in step["changes"]
        ]
        for step in json.loads(done.out)["commits"]
    ]
    assert steps[::-1] == expected
    log = run("log", "leaf", *([key] if key else []))
    assert ("has never set" in log.err) is (expected == [])
    for line in (line for step in expected for line in step if ")" in line):
        assert f"  {line.partition(') ')[0]}) " in log.out


def test_the_last_change_of_a_value_is_not_that_of_another_product(repo: Repo, run: Run) -> None:
    repo.commit({"base": OVERRIDDEN.format("fp16", 5)}, "first")
    repo.commit({"base": OVERRIDDEN.format("fp16", 6)}, "second")
    assert "first" in run("explain", "base", "hccl_timeout").out
    assert "second" in run("explain", "base", "hccl_timeout", "--cann", "9.0.0").out
