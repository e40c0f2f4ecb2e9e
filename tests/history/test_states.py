"""The changes of a setting at each commit, compared with resolving the preset there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from npuprof.model import Context
from support.histories import describe_history, import_versions, resolve_setting, walk_history
from support.repositories import Link, Node, Repo, import_graph

# -- lines that change in place, and what else that can change ------------------------------------

LEAF = '[profile]\nextends = ["base"]\n'
TIMEOUT = "[options]\nhccl_timeout = @\n"
BESIDE = "[profile]\n@\n[options]\nhccl_timeout = 1\n"
OVERRIDE = (
    "[options]\nhccl_timeout = 1\n[[override]]\n"
    "[override.match]\n@\n[override.options]\nhccl_timeout = 9\n"
)
DIMS = '[options]\ndynamic_dims = "@"\nhccl_timeout = 1\n'


def fill(text: str, *values: object) -> list[str]:
    """Return versions of a text, each with another word where it has ``@``."""
    return [text.replace("@", str(value)) for value in values]


#: What is asked for, the preset, versions of what it extends, and what each step that is told
#: leaves, oldest first.
HISTORIES: dict[str, tuple[str, str, list[str], list[Any]]] = {
    "the value": ("hccl_timeout", LEAF, fill(TIMEOUT, 1, 2, 3), [1, 2, 3]),
    "the value written otherwise": (
        "hccl_timeout",
        LEAF,
        fill(TIMEOUT, 1, "+1", "1 ", " 1", "1 # one"),
        [1],
    ),
    "the value of another kind": (
        "hccl_timeout",
        LEAF,
        fill(TIMEOUT, 1, "true", '"1"', "1.0", 1, "[1]"),
        [1, True, "1", 1.0, 1, [1]],
    ),
    "truth": (
        "enable_data_pre_proc",
        LEAF,
        fill("[options]\nenable_data_pre_proc = @\n", "true", "false", "true"),
        [True, False, True],
    ),
    "text": (
        "dump_path",
        LEAF,
        fill('[options]\ndump_path = "@"\n', "a", "", "#", "a = 1"),
        ["a", "", "#", "a = 1"],
    ),
    "text with an escape": (
        "dump_path",
        LEAF,
        fill('[options]\ndump_path = "@"\n', "a", r"\u0061", "b", r"\t"),
        ["a", "b", "\t"],
    ),
    "numbers of many digits": (
        "hccl_timeout",
        LEAF,
        fill(TIMEOUT, 10**17, 10**18, 10**18 + 1),
        [10**17, 10**18, 10**18 + 1],
    ),
    "an escaped key": (
        "hccl_timeout",
        LEAF,
        fill('[options]\n"hccl\\u005ftimeout" = @\n', 1, 2),
        [1, 2],
    ),
    "a dotted key": ("hccl_timeout", LEAF, fill("options.hccl_timeout = @\n", 1, 2), [1, 2]),
    "a key that holds a dot": (
        'options."a.b"',
        LEAF,
        fill('[options]\n"a.b" = @\nb = @\n', 1, 2),
        [1, 2],
    ),
    "a value inline": (
        "hccl_timeout",
        LEAF,
        fill("options = { hccl_timeout = @ }\n", 1, 2),
        [1, 2],
    ),
    "a part of the value": (
        "dynamic_dims",
        LEAF,
        fill(DIMS, "1,2;3,4", "1,2;3,5"),
        ["1,2;3,4", "1,2;3,5"],
    ),
    "another value": (
        "hccl_timeout",
        LEAF,
        fill("[options]\ngraph_run_mode = @\nhccl_timeout = 1\n", 0, 1, 0),
        [1],
    ),
    "the key": (
        "graph_run_mode",
        LEAF,
        fill("[options]\n@ = 1\n", "a", "graph_run_mode", "a"),
        [1, "not set"],
    ),
    "a remark that comes and goes": (
        "hccl_timeout",
        LEAF,
        fill("@\n[options]\nhccl_timeout = 1\n", "", "# b", "\t# c", " "),
        [1],
    ),
    "a remark that was the value": (
        "hccl_timeout",
        LEAF,
        fill("[options]\n@hccl_timeout = 1\n", "", "# "),
        [1, "not set"],
    ),
    "the number of lines": (
        "hccl_timeout",
        LEAF,
        fill("[options]\n@hccl_timeout = 1\n", "", "a = 1\n", "hccl_timeout = 2 #"),
        [1, 2],
    ),
    "what is overruled": (
        "hccl_timeout",
        LEAF + "[options]\nhccl_timeout = 5\n",
        fill(TIMEOUT, 5, 6, 7),
        [5],
    ),
    "what is unset": ("hccl_timeout", LEAF + 'unset = ["hccl_timeout"]\n', fill(TIMEOUT, 1, 2), []),
    "what is locked": (
        "hccl_timeout",
        LEAF,
        fill('[profile]\nlocked = ["hccl_timeout"]\n' + TIMEOUT, 1, 2),
        [1, 2],
    ),
    "text for people": (
        "hccl_timeout",
        LEAF,
        fill(BESIDE, 'description = "1"', 'description = "2"'),
        [1],
    ),
    "the kind of another value": (
        "hccl_timeout",
        LEAF,
        fill(BESIDE, "abstract = true", "abstract = 1"),
        [1, "broken"],
    ),
    "a scenario that there is not": (
        "hccl_timeout",
        LEAF,
        fill(BESIDE, 'scenario = "x"', 'scenario = "training"'),
        ["broken", 1],
    ),
    "the scenario that the preset matches": (
        "hccl_timeout",
        LEAF + '[[override]]\nmatch = { scenario = "training" }\noptions = { hccl_timeout = 9 }\n',
        fill(
            BESIDE,
            'scenario = "training"',
            'scenario = "online-inference"',
            'scenario = "training"',
        ),
        [9, 1, 9],
    ),
    "a scenario that is matched": (
        "hccl_timeout",
        LEAF + 'scenario = "training"\n',
        fill(OVERRIDE, 'scenario = "training"', 'scenario = "online-inference"'),
        [9, 1],
    ),
    "a release that is matched": (
        "hccl_timeout",
        LEAF,
        fill(OVERRIDE, 'cann = ">=8.0"', 'cann = ">=9.0"'),
        [9, 1],
    ),
    "a target that is matched": (
        "hccl_timeout",
        LEAF,
        fill(OVERRIDE, 'target = "atc"', 'target = "session"'),
        [9, 1],
    ),
    "a value that does not match": (
        "hccl_timeout",
        LEAF,
        [OVERRIDE.replace("@", 'target = "x"').replace("9", n) for n in "89"],
        [1],
    ),
    "what an override adds to": (
        "hccl_timeout",
        LEAF + '[[override]]\nmatch = { target = "atc" }\nappend.options.dynamic_dims = [[9, 9]]\n',
        fill(DIMS, "1,2", "x", "3,4"),
        [1, "broken", 1],
    ),
    "what something is taken out of": (
        "stream_max_parallel_num",
        LEAF + 'unset = ["stream_max_parallel_num.A"]\n',
        fill('[options]\nstream_max_parallel_num = "@"\n', "A:1", "B:1", "B:2"),
        ["B:1", "B:2"],
    ),
}


@pytest.mark.parametrize("case", HISTORIES)
def test_a_line_that_changes_in_place_has_the_consequences_that_resolving_finds(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, leaf, versions, expected = HISTORIES[case]
    context = Context("8.0.0", "atlas-a2-training", "atc")
    repo = import_versions(tmp_path / "repo", [{"leaf": leaf, "base": text} for text in versions])
    monkeypatch.chdir(repo.folder)
    found = walk_history(repo.folder, key, context)
    assert list(resolve_setting(repo.folder, found[::-1], key, context).values()) == expected
    for requested in (key, ""):
        with monkeypatch.context() as patch:
            require_same_history(repo, requested, patch)


def require_same_history(repo: Repo, key: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compare a history with the one in which each commit is resolved.

    Return the number of its steps.
    """
    monkeypatch.chdir(repo.folder)
    found = describe_history(repo.folder, key)
    monkeypatch.setattr("npuprof.history.timeline.find_edits", lambda *_: None)
    assert found == describe_history(repo.folder, key)
    return len(found)


#: What stands above the line that the last commit edits, and what the commit before it takes away.
MIDDLES = {
    "a value over an unset one": (
        '[profile]\nextends = ["base"]\nunset = ["hccl_timeout"]\n',
        "[options]\nhccl_timeout = 3\n",
    ),
    "an element over a list": (
        '[profile]\nextends = ["base"]\n[options]\nhccl_timeout = [1]\n',
        "[append.options]\nhccl_timeout = [7]\n",
    ),
    "a value over another": (LEAF, "[options]\nhccl_timeout = 3\n"),
}


@pytest.mark.parametrize("above", MIDDLES)
def test_a_line_that_others_override_is_cited_only_by_its_own_commits(
    tmp_path: Path, above: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    middle, taken = MIDDLES[above]
    leaf = '[profile]\nextends = ["middle"]\n'
    first, second = ({"base": text, "middle": middle} for text in fill(TIMEOUT, 1, 2))
    trees = [
        {**first, "leaf": leaf + taken},
        {**first, "leaf": leaf},
        {**second, "leaf": leaf},
        {**second, "leaf": leaf + taken},
    ]
    assert (
        require_same_history(import_versions(tmp_path / "repo", trees), "hccl_timeout", monkeypatch)
        >= 3
    )


def test_a_line_in_a_file_that_moved_is_cited_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo(tmp_path / "repo")
    (repo.folder / "npuprof.toml").write_text('presets = ["ops/*.toml"]\n')
    first, two, three = (
        f"{text}op_wait_timeout = 1\n# long enough to be seen as the same file\n"
        for text in fill(TIMEOUT, 1, 2, 3)
    )
    repo.commit({"leaf": LEAF.replace("base", "ops/base"), "ops/base": first})
    (repo.folder / "ops").mkdir()
    (repo.folder / "ops/base.toml").write_text(two)
    repo.commit({"ops/base": None})
    (repo.folder / "ops/base.toml").write_text(three)
    repo.commit()
    assert require_same_history(repo, "hccl_timeout", monkeypatch) == 3


# -- what is not in the files that change ---------------------------------------------------------


def walk_versions(
    folder: Path, versions: list[dict[str, str]], key: str = "hccl_timeout"
) -> list[Any]:
    """Return what each step of a history leaves, oldest first.

    The first ``base`` has been released before as 1.0.0.
    """
    nodes = [
        Node((), {"base": versions[0]["base"]}, ("base/v1.0.0",)),
        *(Node((number,), tree) for number, tree in enumerate(versions)),
    ]
    repo = import_graph(folder / "repo", nodes)
    found = walk_history(repo.folder, key, Context())
    return list(resolve_setting(repo.folder, found[::-1], key, Context()).values())


def test_a_pinned_parent_is_as_it_was_whatever_becomes_of_its_name(tmp_path: Path) -> None:
    leaf = '[profile]\nextends = ["base@1"]\n[options]\ngraph_run_mode = {}\n'
    versions = [{"base": text, "leaf": leaf.format(0)} for text in fill(TIMEOUT, 1, 5, 1, 7)]
    assert walk_versions(tmp_path, versions) == [1]
    assert walk_versions(
        tmp_path / "2", [*versions, {**versions[-1], "leaf": leaf.format(1)}], "graph_run_mode"
    ) == [0, 1]


def test_a_pinned_parent_and_the_plain_one_are_two(tmp_path: Path) -> None:
    leaf = '[profile]\nextends = ["base@1", "base"]\n'
    assert walk_versions(
        tmp_path, [{"base": text, "leaf": leaf} for text in fill(TIMEOUT, 1, 5, 1, 7)]
    ) == [1, 5, 1, 7]


def test_a_change_where_a_link_leads_is_in_the_history(tmp_path: Path) -> None:
    versions = [
        {"real": text, "base": Link("real.toml"), "leaf": LEAF} for text in fill(TIMEOUT, 1, 5, 7)
    ]
    beside = [{**versions[-1], "leaf": f"# {number}\n{LEAF}"} for number in range(3)]
    assert walk_versions(tmp_path, [*versions, *beside]) == [1, 5, 7]
    assert walk_versions(
        tmp_path / "2", [{**tree, "leaf": Link("real.toml")} for tree in versions]
    ) == [1, 5, 7]


def test_a_file_that_becomes_a_link_has_its_history(tmp_path: Path) -> None:
    first, two, other = fill(TIMEOUT, 1, 2, 3)
    trees = [
        {"base": first},
        {"base": two},
        {"base": Link("real.toml"), "real": two},
        {"base": Link("real.toml"), "real": other},
    ]
    assert walk_versions(tmp_path, [{**tree, "leaf": LEAF} for tree in trees]) == [1, 2, 3]


@pytest.mark.parametrize("key", ["hccl_timeout", "modify_mixlist", ""])
def test_settings_whose_lines_move_are_cited_where_each_commit_has_them(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = '[profile]\nscenario = "training"\n'
    mixlist = 'modify_mixlist = { black-list = { to-add = ["Cast"] } }\n'
    texts = [
        f"{head}[options]\nhccl_timeout = 600\n{mixlist}",
        f"# why\n{head}\n[options]\nhccl_timeout = 600\n{mixlist}",
        f"# 原因\n{head}[options]\n# more\ndeterministic = 1\nhccl_timeout = 601 # s\n{mixlist}",
        f"{head}[options]\nhccl_timeout = 601\n{mixlist}deterministic = 1\n",
        f"{head}[options]\n\n{mixlist}hccl_timeout = 601\n",
        f'{head}products = ["atlas-a2"]\n[options]\n{mixlist}hccl_timeout = 602\n',
        f'# why\n{head}products = ["atlas-a3"]\n[options]\n{mixlist.replace("Cast", "Add")}',
    ]
    versions = [{"leaf": LEAF, "base": text} for text in texts]
    repo = import_versions(tmp_path / "repo", versions)
    assert require_same_history(repo, key, monkeypatch) > 1
