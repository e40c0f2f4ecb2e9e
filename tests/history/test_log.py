"""The past of resolved values: which commits changed them, through any parent, and who wrote each."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import npuprof
from support.lanes import more_at_night
from support.repositories import Repo
from support.running import Run

BASE = "[options]\nhccl_timeout = {}\n"
LEAF = '[profile]\nextends = ["base"]\n[options]\ngraph_run_mode = {}\n'


def logged(run: Run, *words: str) -> list[dict[str, Any]]:
    done = run("log", *words, "--format", "json")
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["commits"]
    return found


def test_a_change_of_a_parent_is_in_the_history_of_its_heirs(repo: Repo, run: Run) -> None:
    first = repo.commit({"base": BASE.format(1), "leaf": LEAF.format(1)}, "start")
    repo.commit({"other": "[options]\n"}, "elsewhere")
    second = repo.commit({"base": BASE.format(2)}, "slower")
    repo.commit({"base": "# a remark\n" + BASE.format(2)}, "remark")
    third = repo.commit({"leaf": LEAF.format(0)}, "inference")
    assert [entry["commit"] for entry in logged(run, "leaf")] == [third, second, first]
    assert [entry["commit"] for entry in logged(run, "leaf", "hccl_timeout")] == [second, first]
    assert [entry["commit"] for entry in logged(run, "leaf@HEAD~3")] == [first]
    assert [entry["commit"] for entry in logged(run, "leaf", "-n", "1")] == [third]
    assert logged(run, "leaf", "precision_mode") == []
    assert run("log", "leaf", "hccl_timeout").out.splitlines()[:2] == [
        f"{second[:7]} 2026-01-03 Ada Lovelace  slower",
        "  ~ hccl_timeout 1 → 2 s  [distributed]  via profiles/base.toml:2",
    ]


def test_renames_of_the_preset_and_of_its_parents_are_followed(repo: Repo, run: Run) -> None:
    first = repo.commit({"base": BASE.format(1), "leaf": LEAF.format(1)})
    second = repo.commit({"base": BASE.format(2)})
    repo.commit({"leaf": None, "team/leaf": LEAF.format(1)}, "rename")
    repo.commit({"base": None, "team/base": BASE.format(2), "team/leaf": LEAF.format(1).replace('"base"', '"team/base"')}, "rename again")
    last = repo.commit({"team/base": BASE.format(3)})
    found = logged(run, "team/leaf")
    assert [(entry["commit"], entry["preset"]) for entry in found] == [(last, "team/leaf"), (second, "leaf"), (first, "leaf")]


def test_a_merge_is_listed_where_the_preset_is_as_in_neither_parent(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(1), "leaf": LEAF.format(1)})
    repo.git("checkout", "-q", "-b", "side")
    side = repo.commit({"base": BASE.format(2)})
    repo.git("checkout", "-q", "main")
    main = repo.commit({"leaf": LEAF.format(0)})
    repo.git("merge", "-q", "--no-edit", "side")
    assert {entry["commit"] for entry in logged(run, "leaf", "hccl_timeout")[:-1]} == {side}
    assert {entry["commit"] for entry in logged(run, "leaf", "graph_run_mode")[:-1]} == {main}
    assert {entry["commit"] for entry in logged(run, "leaf")[:-1]} == {repo.head, side, main}  # as a whole it is new in the merge


def test_a_merge_that_makes_something_new_is_listed(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(1), "leaf": LEAF.format(1)})
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"base": BASE.format(2)})
    repo.git("checkout", "-q", "main")
    repo.commit({"base": BASE.format(3)})
    repo.git("merge", "-q", "-s", "ours", "--no-commit", "side")
    merge = repo.commit({"base": BASE.format(4)})
    entry = logged(run, "leaf", "hccl_timeout")[0]
    assert (entry["commit"], entry["changes"][0]["after"]) == (merge, 4)


def test_a_preset_that_was_removed_broken_and_mended_has_all_of_it_in_its_history(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(1), "leaf": LEAF.format(1)})
    repo.commit({"base": None})
    repo.commit({"base": BASE.format(2)})
    repo.commit({"leaf": "broken ["})
    repo.commit({"leaf": None})
    assert [entry["kind"] for entry in logged(run, "leaf")] == ["removed", "broken", "mended", "broken", "created"]
    assert run("log", "laef").code == 2


def test_tables_and_elements_have_a_history_of_their_own(repo: Repo, run: Run) -> None:
    mixlist = "[options.modify_mixlist]\nblack-list.to-add = {}\nwhite-list.to-add = {}\n"
    first = repo.commit({"leaf": mixlist.format(["A"], ["X"])})
    second = repo.commit({"leaf": mixlist.format(["A", "B"], ["X"])})
    repo.commit({"leaf": mixlist.format(["A", "B"], ["Y"])})
    assert [entry["commit"] for entry in logged(run, "leaf", "modify_mixlist.black-list")] == [second, first]
    assert len(logged(run, "leaf", "modify_mixlist")) == 3


@pytest.mark.parametrize("seed", more_at_night(range(5), range(5, 12)))
def test_the_history_of_a_value_is_what_resolving_every_commit_says(repo: Repo, run: Run, seed: int) -> None:
    """A random history, branches, renames and rewritten files in it, against the resolver at each commit."""
    dice = random.Random(seed)
    state: dict[str, dict[str, Any]] = {"base": {"hccl_timeout": 0}, "mid": {}, "leaf": {}, "other": {}}
    extends = {"base": [], "mid": ["base"], "leaf": ["mid"], "other": []}

    def text(name: str) -> str:
        style = dice.choice(["plain", "dotted", "remark", "late"])
        head = f'[profile]\ndescription = "{dice.randrange(3)}"\nextends = {json.dumps(extends[name])}\n'
        rows = [f"{key} = {json.dumps(value)}" for key, value in state[name].items()]
        if style == "dotted":
            return head.replace("[profile]\n", "").replace("description", "profile.description").replace(
                "extends", "profile.extends"
            ) + "".join(f"options.{row}\n" for row in rows)
        body = "[options]\n" + "".join(f"{row}{' # note' if style == 'remark' else ''}\n" for row in rows)
        return body + head if style == "late" else head + body

    repo.commit({name: text(name) for name in state})
    for step in range(24):
        name = dice.choice(list(state))
        action = dice.random()
        if action < 0.5:
            state[name][dice.choice(["hccl_timeout", "graph_run_mode", "hccl_timeout_x"])] = dice.choice([0, 1, "a", "hccl_timeout", True])
        elif action < 0.65:
            state[name].pop("hccl_timeout", None)
        elif action < 0.8:
            extends["leaf"] = dice.choice([["mid"], ["other"], ["mid", "other"], ["other", "mid"], []])
            name = "leaf"
        repo.commit({name: text(name)}, f"step {step}")
    store = npuprof.open_store()
    ids = repo.git("rev-list", "--reverse", "HEAD").splitlines()
    expected: list[str] = []
    before: Any = None
    for oid in ids:
        config = store.resolve(f"leaf@{oid}")
        now = repr(config.options.get("hccl_timeout"))
        if now != before and not (before is None and now == "None"):
            expected.append(oid)
        before = now
    assert [entry["commit"] for entry in logged(run, "leaf", "hccl_timeout")][::-1] == expected


def blamed(run: Run, *words: str) -> dict[str, tuple[Any, ...]]:
    done = run("blame", *words, "--format", "json")
    assert done.code == 0, done.err
    return {item["key"]: (item["value"], item["commit"], item["origin"]["text"]) for item in json.loads(done.out)["values"]}


def test_blame_names_the_commit_that_wrote_each_value_and_each_element(repo: Repo, run: Run) -> None:
    leaf = '[profile]\nextends = ["base"]\n[append.options]\nstream_max_parallel_num = {}\n'
    first = repo.commit({"base": "[options]\nstream_max_parallel_num = { A = 1, B = 2 }\n" + "dump_path = '/x'\n"})
    second = repo.commit({"base": "# moved\n\n[options]\ndump_path   =   '/x' # spaced\nstream_max_parallel_num = { B = 2, A = 5 }\n"})
    third = repo.commit({"leaf": '[profile]\nextends = ["base"]\n[options]\ndynamic_dims = [[1], [2]]\n'})
    fourth = repo.commit({"leaf": '[profile]\nextends = ["base"]\n[options]\ndynamic_dims = [[0], [1], [2]]\n'})
    assert leaf
    found = blamed(run, "leaf")
    assert found["dump_path"] == ("/x", first, "profiles/base.toml:4")
    assert found["stream_max_parallel_num.A"] == (5, second, "profiles/base.toml:5")
    assert found["stream_max_parallel_num.B"] == (2, first, "profiles/base.toml:5")
    assert [found[f"dynamic_dims[{index}][0]"][1] for index in range(3)] == [fourth, third, third]


def test_blame_follows_renames_merges_and_work_not_committed(repo: Repo, run: Run) -> None:
    first = repo.commit({"base": BASE.format(1) + "graph_run_mode = 1\ndeterministic = 1\n"})
    repo.git("checkout", "-q", "-b", "side")
    side = repo.commit({"base": BASE.format(2) + "graph_run_mode = 1\ndeterministic = 1\n"})
    repo.git("checkout", "-q", "main")
    main = repo.commit({"base": BASE.format(1) + "graph_run_mode = 1\ndeterministic = 0\n"})
    repo.git("merge", "-q", "--no-edit", "-X", "theirs", "side", check=False)
    repo.commit({"base": BASE.format(2) + "graph_run_mode = 1\ndeterministic = 0\n"})
    repo.commit({"base": None, "new": BASE.format(2) + "graph_run_mode = 1\ndeterministic = 0\n"})
    assert {key: commit for key, (_, commit, _) in blamed(run, "new").items()} == {
        "hccl_timeout": side, "graph_run_mode": first, "deterministic": main,
    }  # fmt: skip
    repo.write({"new": BASE.format(3) + "graph_run_mode = 1\ndeterministic = 0\n"})
    assert blamed(run, "new")["hccl_timeout"][1] is None
    assert blamed(run, "new")["graph_run_mode"][1] == first
    assert "not committed yet" in run("blame", "new").out
    assert blamed(run, "new@HEAD~2" if False else "new@HEAD")["hccl_timeout"][1] == side


def test_blame_reaches_into_pinned_parents(repo: Repo, run: Run) -> None:
    first = repo.commit({"base": BASE.format(1)})
    repo.release("base", "1.0.0")
    repo.commit({"base": BASE.format(2), "leaf": '[profile]\nextends = ["base@1"]\n'})
    assert blamed(run, "leaf")["hccl_timeout"] == (1, first, f"{first[:7]}:profiles/base.toml:2")


def test_log_and_blame_refuse_what_has_no_history(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(1)})
    for command in (
        ("log", "base+base"),
        ("log", "-"),
        ("log", "base@nope"),
        ("log", "base", "a b"),
        ("blame", "nope"),
        ("log", "base@--x"),
    ):
        done = run(*command)
        assert (done.code, done.out) == (2, ""), command


def test_a_store_that_is_not_committed_has_no_history(repo: Repo, run: Run) -> None:
    for number in range(300):  # so that git is asked for the store's commits only
        (repo.folder / f"other{number}").write_text(str(number))
    repo.commit({}, "elsewhere")
    repo.write({"leaf": BASE.format(1)})
    done = run("log", "leaf")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error NP023: no commit has a profile 'leaf'\n  try: commit it first: npuprof commit leaf\n"
    assert {commit for _, commit, _ in blamed(run, "leaf").values()} == {None}


def test_the_released_versions_are_listed(repo: Repo, run: Run) -> None:
    first = repo.commit({"base": BASE.format(1), "leaf": LEAF.format(1)})
    none = run("list", "--versions")
    assert (none.code, none.out) == (0, "")
    assert "nothing in profiles has been released yet" in none.err
    for version in ("1.10.0", "1.2.0"):
        repo.release("base", version)
    repo.git("tag", "leaf/v1.0.0")
    assert run("list", "--versions").out == f"base  1.2.0   {first[:7]}  2026-01-02  -\nbase  1.10.0  {first[:7]}  2026-01-02  -\n"
    assert json.loads(run("list", "--versions", "--format", "json").out)["versions"][0]["tag"] == "base/v1.2.0"


def test_explain_tells_the_last_change_where_there_is_a_history(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(1), "leaf": LEAF.format(1)}, "start")
    second = repo.commit({"base": BASE.format(2)}, "slower")
    repo.commit({"leaf": LEAF.format(0)}, "elsewhere")
    assert run("explain", "leaf", "hccl_timeout").out.endswith(f"\n  last change  {second[:7]} 2026-01-02 Ada Lovelace: slower\n")
    assert json.loads(run("explain", "leaf", "hccl_timeout", "--format", "json").out)["last_change"]["commit"] == second
    assert "last change" not in run("explain", "leaf", "hccl_timeout", "--set", "hccl_timeout=3").out
    repo.write({"base": BASE.format(3)})
    assert run("explain", "leaf", "hccl_timeout").out.endswith("  last change  not committed yet\n")


def test_explain_needs_neither_git_nor_a_repository(store, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    store({"leaf": BASE.format(1)})
    monkeypatch.setenv("PATH", "/nowhere")
    done = run("explain", "leaf", "hccl_timeout")
    assert (done.code, "last change" in done.out) == (0, False)


@pytest.mark.parametrize("key", [[], ["hccl_timeout"]])
def test_a_store_that_moved_is_cited_by_the_paths_of_each_time(repo: Repo, run: Run, key: list[str]) -> None:
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
    repo.commit({"base": base.format(5)}, "fifth")
    steps = json.loads(run("log", "leaf", *key, "--format", "json").out)["commits"]
    cited = [(step["subject"], *[(o or {}).get("path") for o in step["changes"][0]["origins"].values()]) for step in steps]
    now, then = "profiles/base.toml", "presets/base.toml"
    assert cited == [
        ("fifth", now, now), ("move and change", then, now), ("third", then, then), ("second", now, now), ("first", None, now),
    ]  # fmt: skip


# -- what only an override brings ---------------------------------------------------------------------------------

OVERRIDDEN = (
    '[options]\nhccl_timeout = 1\n[[override]]\nmatch = {{ product = "atlas-a3" }}\noptions = {{ precision_mode_v2 = "{}" }}\n'
    '[[override]]\nmatch = {{ cann = ">=9.0" }}\noptions = {{ hccl_timeout = {} }}\n'
)
PLAIN = "[options]\nhccl_timeout = {}\n"

#: The texts of ``base`` at commits one after the other, the key, and what is told of each step, oldest first.
SCOPED: dict[str, tuple[list[str], str, list[list[str]]]] = {
    "a value of one product": (
        [OVERRIDDEN.format("fp16", 5), OVERRIDDEN.format("mixed_float16", 5)], "precision_mode_v2",
        [["+ (product atlas-a3) precision_mode_v2 fp16"], ["~ (product atlas-a3) precision_mode_v2 mixed_float16"]],
    ),
    "all that changed": (
        [OVERRIDDEN.format("fp16", 5), OVERRIDDEN.format("mixed_float16", 6)], "",
        [
            ["+ hccl_timeout 1", "+ (product atlas-a3) precision_mode_v2 fp16", "+ (cann >=9.0) hccl_timeout 5"],
            ["~ (product atlas-a3) precision_mode_v2 mixed_float16", "~ (cann >=9.0) hccl_timeout 6"],
        ],
    ),
    "an override that comes and goes": (
        [PLAIN.format(1), OVERRIDDEN.format("fp16", 5), PLAIN.format(1)], "hccl_timeout",
        [["+ hccl_timeout 1"], ["~ (cann >=9.0) hccl_timeout 5"], ["~ (cann >=9.0) hccl_timeout 1"]],
    ),
    "a value beside the override": (
        [OVERRIDDEN.format("fp16", 5), OVERRIDDEN.format("fp16", 5).replace("= 1\n", "= 2\n", 1)], "hccl_timeout",
        [["+ hccl_timeout 1", "+ (cann >=9.0) hccl_timeout 5"], ["~ hccl_timeout 2"]],
    ),
    "an override of another key": (
        [PLAIN.format(1), OVERRIDDEN.format("fp16", 5), OVERRIDDEN.format("mixed_float16", 5)], "hccl_timeout",
        [["+ hccl_timeout 1"], ["~ (cann >=9.0) hccl_timeout 5"]],
    ),
    "a key that nobody ever set": ([OVERRIDDEN.format("fp16", 5)], "graph_run_mode", []),
}  # fmt: skip


@pytest.mark.parametrize("told", SCOPED)
def test_what_only_an_override_changes_is_in_the_history_with_its_scope(repo: Repo, run: Run, told: str) -> None:
    texts, key, expected = SCOPED[told]
    for number, text in enumerate(texts):
        repo.commit({"base": text, "leaf": '[profile]\nextends = ["base"]\n'}, f"step {number}")
    done = run("log", "leaf", *([key] if key else []), "--format", "json")
    steps = [
        [f"{c['sign']} {'(' + c['scope'] + ') ' if c['scope'] else ''}{c['key']} {c['after']}" for c in step["changes"]]
        for step in json.loads(done.out)["commits"]
    ]
    assert steps[::-1] == expected
    if not expected:
        assert "has never set" in run("log", "leaf", key).err
    said = run("log", "leaf", *([key] if key else [])).out
    for line in (line for step in expected for line in step if ")" in line):
        assert f"  {line.partition(') ')[0]}) " in said


def test_the_last_change_of_a_value_is_not_that_of_another_product(repo: Repo, run: Run) -> None:
    repo.commit({"base": OVERRIDDEN.format("fp16", 5)}, "first")
    repo.commit({"base": OVERRIDDEN.format("fp16", 6)}, "second")
    assert "first" in run("explain", "base", "hccl_timeout").out
    assert "second" in run("explain", "base", "hccl_timeout", "--cann", "9.0.0").out


def test_no_other_context_is_resolved_where_no_preset_has_an_override(repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from npuprof.resolve import Resolver

    for number in range(5):
        repo.commit({"base": PLAIN.format(number), "leaf": '[profile]\nextends = ["base"]\n'})
    monkeypatch.setattr(Resolver, "for_context", lambda *_: pytest.fail("another context was asked for"))
    assert len(json.loads(run("log", "leaf", "--format", "json").out)["commits"]) == 5
    assert len(json.loads(run("log", "leaf", "hccl_timeout", "--format", "json").out)["commits"]) == 5
