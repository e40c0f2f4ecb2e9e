"""What ``npuprof scan`` finds in public trees at fixed commits stays as it was accepted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from end_to_end.ecosystem import ecosystem

from support.lanes import ACCEPT
from support.repositories import Repo

TREES = ecosystem.read_trees()
FILES = {
    "train.sh": "export HCCL_BUFFSIZE=200\nexport HCCL_ALGO=$1\nexport MY_OWN=1\n",
    "lib/a.sh": "export ASCEND_GLOBAL_LOG_LEVEL=7\n",
    "lib/b.sh": "\nexport ASCEND_GLOBAL_LOG_LEVEL=7\n",
    "model.pb": "export ASCEND_GLOBAL_LOG_LEVEL=7\n",
}
SUMMARY = """\
settings\t5
checked\t3
dynamic\t1
unknown\t1
NP203\twarning\tenv.ASCEND_GLOBAL_LOG_LEVEL\t2 in 2 files\t777679aa
unknown\tMY_OWN
"""
MESSAGE = 'env.ASCEND_GLOBAL_LOG_LEVEL = "7" is none of "0", "1", "2", "3", "4"'


@pytest.fixture
def tree(repo: Repo) -> ecosystem.Tree:
    """A small tree with two findings, as a repository."""
    for name, text in FILES.items():
        path = repo.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return ecosystem.Tree("small", repo.folder.as_uri(), repo.commit(), ("*.pb",))


@pytest.mark.nightly(
    "end_to_end/ecosystem/test_ecosystem.py::test_a_change_of_findings_is_described"
)
@pytest.mark.accepted
@pytest.mark.parametrize("tree", TREES, ids=[tree.name for tree in TREES])
def test_the_findings_in_a_public_tree_are_the_accepted_ones(
    tree: ecosystem.Tree, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    ecosystem.check_out(tree, folder, ecosystem.CLONES, ecosystem.CACHE)
    answer = ecosystem.scan(folder)
    path = ecosystem.FINDINGS / f"{tree.name}.tsv"
    if request.config.getoption("--update-golden"):
        path.write_text(ecosystem.summarize(answer))
    changes = ecosystem.describe_changes(path.read_text(), answer)
    if changes:
        pytest.fail("\n".join([*changes, "", f"{ACCEPT} --nightly"]), pytrace=False)


@pytest.mark.parametrize("cloned", [False, True], ids=["fetched", "a clone"])
def test_a_change_of_findings_is_described(
    cloned: bool, tree: ecosystem.Tree, repo: Repo, tmp_path: Path
) -> None:
    repo.commit({"later": ""})  # a branch that moves on
    folder = tmp_path / "tree"
    folder.mkdir()
    if cloned:
        (tmp_path / "clones").mkdir()
        (tmp_path / "clones" / tree.name).symlink_to(repo.folder)
    clones = str(tmp_path / "clones") if cloned else None
    ecosystem.check_out(tree, folder, clones, tmp_path / "cache")
    assert sorted(path.name for path in folder.rglob("*.*")) == ["a.sh", "b.sh", "train.sh"]
    assert repo.git("status", "--porcelain") == ""
    answer = ecosystem.scan(folder)
    assert ecosystem.summarize(answer) == SUMMARY
    assert ecosystem.describe_changes(SUMMARY, answer) == []
    before = SUMMARY.replace("2 in 2 files\t777679aa", "1 in 1 files\t00000000")
    changes = ecosystem.describe_changes(f"{before}unknown\tOLD\n", answer)
    assert [line for line in changes if not line.startswith("@@")] == [
        "--- kept",
        "+++ now",
        "-NP203\twarning\tenv.ASCEND_GLOBAL_LOG_LEVEL\t1 in 1 files\t00000000",
        "+NP203\twarning\tenv.ASCEND_GLOBAL_LOG_LEVEL\t2 in 2 files\t777679aa",
        f"    lib/a.sh:1:8: {MESSAGE}",
        f"    lib/b.sh:2:8: {MESSAGE}",
        "-unknown\tOLD",
    ]


def test_a_finding_that_moves_changes_its_line() -> None:
    finding = {"code": "NP203", "severity": "error", "key": None, "path": "a.sh"}
    counts = {"settings": 1, "names": []}
    summaries = [
        ecosystem.summarize(
            {"coverage": counts, "findings": [{**finding, "line": line, "column": 1}]}
        )
        for line in (1, 2)
    ]
    assert [summary.split("\t")[:5] for summary in summaries] == [
        ["settings", "1\nNP203", "error", "-", "1 in 1 files"]
    ] * 2
    assert summaries[0] != summaries[1]


@pytest.mark.parametrize("cloned", [False, True], ids=["fetched", "a clone"])
def test_a_tree_out_of_reach_is_skipped(cloned: bool, tmp_path: Path) -> None:
    lost = ecosystem.Tree("lost", (tmp_path / "nowhere").as_uri(), "0" * 40)
    clones = str(tmp_path) if cloned else None
    with pytest.raises(pytest.skip.Exception, match=r"^lost cannot be fetched: no commit 000"):
        ecosystem.check_out(lost, tmp_path / "tree", clones, tmp_path / "cache")


def test_each_tree_has_a_fixed_commit_and_a_short_summary() -> None:
    assert {path.stem for path in ecosystem.FINDINGS.iterdir()} == {tree.name for tree in TREES}
    assert [tree for tree in TREES if not re.fullmatch("[0-9a-f]{40}", tree.commit)] == []
    assert [tree for tree in TREES if not tree.url.startswith("https://")] == []
    sizes = [path.stat().st_size for path in ecosystem.FINDINGS.iterdir()]
    assert sum(sizes) < 60_000
