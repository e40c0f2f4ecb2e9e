"""The commit that wrote a value, through moved lines and renamed files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof.history.value_commits import blame_config_values, find_earlier_path
from npuprof.store.gitstore.revisions import StoreRepository
from support.repositories import Node, import_graph

LEAF = '[profile]\nextends = ["base"]\n'
MANY = [f"x{number % 7}" for number in range(300)]

#: A path, the data it is in, the data before, and where the value was there.
PATHS: dict[str, tuple[tuple[Any, ...], Any, Any, tuple[Any, ...] | None]] = {
    "the same": (("a", "b"), {"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, ("a", "b")),
    "another value": (("a", "b"), {"a": {"b": 1}}, {"a": {"b": 2}}, None),
    "another kind": (("a",), {"a": 1}, {"a": True}, None),
    "a value where a table is": (("a", "b"), {"a": {"b": 1}}, {"a": 1}, None),
    "a list where a table is": (("a", "b"), {"a": {"b": 1}}, {"a": [1]}, None),
    "a table where a list is": (("a", 0), {"a": [1]}, {"a": {"b": 1}}, None),
    "a whole list": (("a",), {"a": [1, 2]}, {"a": [1, 2]}, ("a",)),
    "the same element": (("a", 1), {"a": [1, 2]}, {"a": [1, 2, 3]}, ("a", 1)),
    "an element after a new one": (("a", 2), {"a": [0, 1, 2]}, {"a": [1, 2]}, ("a", 1)),
    "an element after one that is gone": (("a", 0), {"a": [2, 3]}, {"a": [1, 2, 3]}, ("a", 1)),
    "a new element": (("a", 0), {"a": [0, 1, 2]}, {"a": [1, 2]}, None),
    "an element of another kind": (("a", 0), {"a": [True]}, {"a": [1]}, None),
    "an element that reads alike": (("a", 1), {"a": [0, "1"]}, {"a": [1]}, None),
    "a value in an element that moved": (
        ("a", 1, "b"),
        {"a": [{"c": 1}, {"b": 1}]},
        {"a": [{"b": 1}]},
        ("a", 0, "b"),
    ),
    "a value in an element that changed besides": (
        ("a", 0, "b"),
        {"a": [{"b": 1, "c": 2}]},
        {"a": [{"b": 1, "c": 1}]},
        ("a", 0, "b"),
    ),
    "a value in an element that changed": (
        ("a", 0, "b"),
        {"a": [{"b": 1}]},
        {"a": [{"b": 2}]},
        None,
    ),
    "an element of one that grew": (("a", 0, 1), {"a": [[0, 1]]}, {"a": [[1]]}, ("a", 0, 0)),
    "an element among many alike": (
        ("a", 300),
        {"a": [*MANY, "x1", "y"]},
        {"a": ["y0", *MANY, "x1", "y"]},
        ("a", 301),
    ),
}


@pytest.mark.parametrize("case", PATHS)
def test_a_value_is_found_where_it_stood_before(case: str) -> None:
    path, new, old, expected = PATHS[case]
    assert find_earlier_path(path, new, old) == expected


def blame_values(folder: Path, spec: str = "leaf") -> dict[str, int | None]:
    """Return the number of the commit that wrote each value, from 0.

    None where it is not committed.
    """
    store = npuprof.open_store(str(folder / "profiles"))
    repository = StoreRepository(str(folder / "profiles"))
    numbers = {
        oid: number
        for number, oid in enumerate(
            repository.git.run_command("rev-list", "--reverse", "--topo-order", "HEAD")
            .decode()
            .split()
        )
    }
    lines = blame_config_values(repository, store.resolve(spec))
    return {
        ".".join(map(str, (line.key, *line.tail))): numbers[line.commit.id] if line.commit else None
        for line in lines
    }


LISTS = "[options]\ndynamic_dims = {}\nmodify_mixlist = {}\n"
THREE = "[options]\na = {}\nb = {}\nc = {}\n"
ONE = "[options]\nhccl_timeout = 1\n"
TRAINING = '[profile]\nscenario = "training"\n[options]\na = 1\n'
OVERRIDE = (
    TRAINING + '[[override]]\nmatch = {{ scenario = "training" }}\noptions = {{ a = 2, b = {} }}\n'
)


def chain(*texts: str, name: str = "leaf") -> list[Node]:
    """Return commits one after the other, each with another text of a preset."""
    return [
        Node((number - 1,) if number else (), {name: text}) for number, text in enumerate(texts)
    ]


#: Commits, and the one that wrote each value of ``leaf`` at the last.
BLAMED: dict[str, tuple[list[Node], dict[str, int | None]]] = {
    "values and elements": (
        chain(
            LISTS.format("[[1, 2]]", '{ black-list = { to-add = ["A"] } }'),
            LISTS.format("[[1, 3]]", '{ black-list = { to-add = ["A"] } }'),
            LISTS.format(
                "[[0], [1, 3]]", '{ black-list = { to-add = ["B", "A"] }, white-list = {} }'
            ),
        ),
        {
            "dynamic_dims.0.0": 2,
            "dynamic_dims.1.0": 0,
            "dynamic_dims.1.1": 1,
            "modify_mixlist.black-list.to-add.0": 2,
            "modify_mixlist.black-list.to-add.1": 0,
            "modify_mixlist.white-list": 2,
        },
    ),
    "a text that cannot be read in between": (chain(ONE, "broken [", ONE), {"hccl_timeout": 0}),
    "a value that came, went and came": (chain(ONE, "[options]\n", ONE), {"hccl_timeout": 2}),
    "a file that came, went and came": (
        [*chain(ONE), Node((0,), {"x": ""}), Node((1,), {"leaf": ONE})],
        {"hccl_timeout": 2},
    ),
    "a merge": (
        [
            Node(parents, {"base": THREE.format(*values), "leaf": LEAF})
            for parents, values in (
                ((), (1, 1, 1)),
                ((0,), (2, 1, 1)),
                ((0,), (1, 2, 1)),
                ((1, 2), (2, 2, 2)),
            )
        ],
        {"a": 1, "b": 2, "c": 3},
    ),
    "a file from one side": (
        [
            Node((), {"x": "x"}),
            Node((0,), {"x": "y"}),
            Node((0,), {"x": "x", "leaf": ONE}),
            Node((1, 2), {"x": "y", "leaf": ONE}),
        ],
        {"hccl_timeout": 2},
    ),
    "a file that had another name": (
        [*chain(THREE.format(1, 1, 1), name="x/old"), Node((0,), {"leaf": THREE.format(1, 2, 1)})],
        {"a": 0, "b": 1, "c": 0},
    ),
    "an override": (chain(TRAINING, OVERRIDE.format(1), OVERRIDE.format(2)), {"a": 1, "b": 2}),
}


@pytest.mark.parametrize("case", BLAMED)
def test_a_value_is_of_the_commit_since_which_it_stands_as_it_does(
    tmp_path: Path, case: str
) -> None:
    nodes, expected = BLAMED[case]
    assert blame_values(import_graph(tmp_path / "repo", nodes).folder) == expected


def test_what_is_not_committed_is_of_no_commit(tmp_path: Path) -> None:
    repo = import_graph(
        tmp_path / "repo", [Node((), {"base": "[options]\na = 1\nb = 1\n", "leaf": LEAF})]
    )
    repo.write(
        {
            "base": "[options]\nb = 1\n\n# moved\na   =   2\n",
            "leaf": LEAF,
            "new": LEAF + "[options]\nc = 1\n",
        }
    )
    assert blame_values(repo.folder) == {"a": None, "b": 0}
    assert blame_values(repo.folder, "leaf@HEAD") == {"a": 0, "b": 0}
    assert blame_values(repo.folder, "new") == {"a": None, "b": 0, "c": None}
