"""The steps of a preset's history: their kinds, names and changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from npuprof.compare.changes import Change
from npuprof.document import keys
from npuprof.history.timeline import HistoryStep, Timeline
from npuprof.model import Context
from npuprof.store.gitstore.revisions import StoreRepository
from support.histories import import_versions
from support.repositories import Node, Repo, import_graph

LEAF = '[profile]\nextends = ["base"]\n'
UNSET = LEAF + 'unset = ["hccl_timeout"]\n'
BASE = "[options]\nhccl_timeout = {}\n"
BOTH = "[options]\nhccl_timeout = {}\ngraph_run_mode = {}\n"
TABLE = "[options]\nstream_max_parallel_num = {{ A = {}, B = {} }}\n"
LISTS = (
    '[options.modify_mixlist]\nblack-list = {{ to-add = ["{}"] }}\n'
    'white-list = {{ to-add = ["{}"] }}\n'
)
ONE, TWO, THREE, NONE, BAD = (
    BASE.format(1),
    BASE.format(2),
    BASE.format(3),
    "[options]\n",
    "broken [",
)


def tell_steps(repo: Repo, key: str) -> list[str]:
    """Return the steps as lines, oldest first: number of the commit, kind, new name, changes."""
    numbers = {
        oid: number
        for number, oid in enumerate(
            repo.git("rev-list", "--reverse", "--topo-order", "HEAD").splitlines()
        )
    }
    repository = StoreRepository(str(repo.folder / "profiles"))
    steps = Timeline(repository, repository.resolve_commit("HEAD"), "leaf", Context()).walk_steps(
        *(keys.parse_key(key) or ("", ()))
    )
    return sorted(f"{numbers[step.commit.id]} {describe_step(step)}" for step in steps)


def describe_step(step: HistoryStep) -> str:
    name = "" if step.name == "leaf" else f" as {step.name}"
    return f"{step.kind}{name}: {', '.join(map(describe_change, step.changes))}".removesuffix(": ")


def describe_change(change: Change) -> str:
    values = " to ".join(str(value) for value in (change.before, change.after) if value is not None)
    cause = change.origins[1] or change.origins[0]
    return (
        f"{change.sign}{change.key} {values} by {cause.profile}:{cause.line}"
        if cause
        else f"{change.sign}{change.key}"
    )


#: What is asked for, the presets at commits one after the other, and the steps.
STEPS: dict[str, tuple[str, Sequence[dict[str, str]], list[str]]] = {
    "a preset that comes, changes and goes": (
        "",
        [
            {},
            {"base": ONE},
            {"base": ONE, "leaf": LEAF},
            {"base": TWO, "leaf": LEAF},
            {"base": TWO},
            {"base": TWO, "leaf": LEAF},
        ],
        [
            "2 created: +hccl_timeout 1 by base:2",
            "3 changed: ~hccl_timeout 1 to 2 by base:2",
            "4 removed",
            "5 created: +hccl_timeout 2 by base:2",
        ],
    ),
    "one that has it not": (
        "deterministic",
        [{}, {"leaf": ONE}, {"leaf": TWO}, {}, {"leaf": TWO}],
        [],
    ),
    "one that breaks and is mended": (
        "hccl_timeout",
        [{"leaf": ONE}, {"leaf": BAD}, {"leaf": BAD + BAD}, {"leaf": TWO}],
        ["0 created: +hccl_timeout 1 by leaf:2", "1 broken", "3 mended: +hccl_timeout 2 by leaf:2"],
    ),
    "one that breaks without the key": (
        "deterministic",
        [{"leaf": ONE}, {"leaf": BAD}, {"leaf": TWO}],
        ["1 broken", "2 mended"],
    ),
    "a parent that goes and comes": (
        "",
        [{"base": ONE, "leaf": LEAF}, {"leaf": LEAF}, {"base": ONE, "leaf": LEAF}],
        ["0 created: +hccl_timeout 1 by base:2", "1 broken", "2 mended: +hccl_timeout 1 by base:2"],
    ),
    "a parent that has another name": (
        "hccl_timeout",
        [
            {"base": ONE, "leaf": LEAF},
            *({"root": text, "leaf": LEAF.replace("base", "root")} for text in (ONE, TWO)),
        ],
        ["0 created: +hccl_timeout 1 by base:2", "2 changed: ~hccl_timeout 1 to 2 by root:2"],
    ),
    "a preset that has another name": (
        "",
        [
            {"one": BOTH.format(1, 1)},
            {"x/two": BOTH.format(1, 1)},
            {"x/two": BOTH.format(1, 0)},
            {"leaf": BOTH.format(1, 0)},
        ],
        [
            "0 created as one: +graph_run_mode 1 by one:3, +hccl_timeout 1 by one:2",
            "2 changed as x/two: ~graph_run_mode 1 to 0 by x/two:3",
        ],
    ),
    "a text that another preset takes over": (
        "hccl_timeout",
        [{"leaf": BOTH.format(1, 1)}, {"other": BOTH.format(1, 1), "leaf": TWO}],
        ["0 created: +hccl_timeout 1 by leaf:2", "1 changed: ~hccl_timeout 1 to 2 by leaf:2"],
    ),
    "a key that comes and goes": (
        "hccl_timeout",
        [{"leaf": NONE}, {"leaf": ONE}, {"leaf": NONE}],
        ["1 changed: +hccl_timeout 1 by leaf:2", "2 changed: -hccl_timeout 1 by leaf:2"],
    ),
    "a key that is unset": (
        "hccl_timeout",
        [
            {"base": ONE + f"a = {number}\n", "leaf": leaf}
            for number, leaf in enumerate([LEAF, UNSET, UNSET])
        ],
        ["0 created: +hccl_timeout 1 by base:2", "1 changed: -hccl_timeout 1 by leaf:3"],
    ),
    "what lies below a key": (
        "modify_mixlist.black-list",
        [
            *({"leaf": LISTS.format(*names)} for names in ("AX", "BX", "BY")),
            {"leaf": ONE},
            {"leaf": TWO},
        ],
        [
            (
                "0 created: +modify_mixlist {'black-list': {'to-add': ['A']}, 'white-list': "
                "{'to-add': ['X']}} by leaf:1"
            ),
            (
                "1 changed: -modify_mixlist.black-list.to-add A by leaf:2, "
                "+modify_mixlist.black-list.to-add B by leaf:2"
            ),
            (
                "3 changed: -modify_mixlist {'black-list': {'to-add': ['B']}, 'white-list': "
                "{'to-add': ['Y']}} by leaf:1"
            ),
        ],
    ),
    "what does not lie below it": (
        "modify_mixlist.grey-list",
        [{}, *({"leaf": LISTS.format(*names)} for names in ("AX", "BX")), {}],
        [],
    ),
}


@pytest.mark.parametrize("case", STEPS)
def test_a_commit_is_told_by_what_it_did_to_the_preset(tmp_path: Path, case: str) -> None:
    key, trees, expected = STEPS[case]
    repo = import_versions(
        tmp_path / "repo",
        [{"beside": f"# {number}\n", **tree} for number, tree in enumerate(trees)],
    )
    assert tell_steps(repo, key) == expected


#: What is asked for, the preset where two sides part, on both of them, and merged; and what is told
#: of the merge.
MERGES: dict[str, tuple[str, tuple[str | None, ...], str]] = {
    "taken from both sides": (
        "",
        (BOTH.format(1, 0), BOTH.format(2, 0), BOTH.format(1, 1), BOTH.format(2, 1)),
        "changed: ~graph_run_mode 0 to 1 by leaf:3",
    ),
    "as on neither side": (
        "hccl_timeout",
        (ONE, TWO, THREE, BASE.format(4)),
        "changed: ~hccl_timeout 2 to 4 by leaf:2",
    ),
    "one new, one taken": (
        "",
        (BOTH.format(1, 0), BOTH.format(2, 0), BOTH.format(3, 1), BOTH.format(4, 1)),
        "changed: ~hccl_timeout 2 to 4 by leaf:2",
    ),
    "one part new, one taken": (
        "stream_max_parallel_num",
        (TABLE.format(1, 1), TABLE.format(2, 1), TABLE.format(1, 2), TABLE.format(3, 2)),
        "changed: ~stream_max_parallel_num.A 2 to 3 by leaf:2",
    ),
    "a part of each side": (
        "stream_max_parallel_num",
        (TABLE.format(1, 1), TABLE.format(2, 1), TABLE.format(1, 2), TABLE.format(2, 2)),
        "changed: ~stream_max_parallel_num.B 1 to 2 by leaf:2",
    ),
    "removed on one side and kept": ("hccl_timeout", (ONE, TWO, None, TWO), ""),
    "removed on one side and new": (
        "hccl_timeout",
        (ONE, TWO, None, THREE),
        "created: +hccl_timeout 3 by leaf:2",
    ),
    "removed as on neither side": ("hccl_timeout", (ONE, TWO, ONE, None), "removed"),
    "removed, another key": ("deterministic", (ONE, TWO, ONE, None), ""),
    "broken as on neither side": ("hccl_timeout", (ONE, TWO, ONE, BAD), "broken"),
    "broken on one side and kept": ("hccl_timeout", (ONE, TWO, BAD, TWO), ""),
    "broken on one side and new": (
        "hccl_timeout",
        (ONE, TWO, BAD, THREE),
        "mended: +hccl_timeout 3 by leaf:2",
    ),
    "broken on both sides": (
        "hccl_timeout",
        (ONE, BAD, BAD + BAD, TWO),
        "mended: +hccl_timeout 2 by leaf:2",
    ),
}


@pytest.mark.parametrize("case", MERGES)
def test_a_merge_is_told_where_it_is_as_in_neither_parent(tmp_path: Path, case: str) -> None:
    key, texts, expected = MERGES[case]
    trees: list[dict[str, str]] = [
        {"beside": ""} | ({"leaf": text} if text is not None else {}) for text in texts
    ]
    repo = import_graph(
        tmp_path / "repo",
        [Node((), trees[0]), Node((0,), trees[1]), Node((0,), trees[2]), Node((1, 2), trees[3])],
    )
    assert [step[2:] for step in tell_steps(repo, key) if step.startswith("3 ")] == (
        [expected] if expected else []
    )
