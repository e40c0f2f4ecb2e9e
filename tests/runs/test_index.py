"""The index of history: what it costs to build it, and what is said meanwhile."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from npuprof.report import terminal
from npuprof.runs import index
from npuprof.store.gitstore import repository
from npuprof.store.gitstore.repository import Repository, TreeEntry
from support.repositories import Repo, fast_import

PRESET = '[profile]\nscenario = "training"\n[options]\nhccl_timeout = {}\n'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def make_history(commits: int, presets: int) -> list[Mapping[str, str]]:
    tree = {f"p{number}": PRESET.format(100 + number) for number in range(presets)}
    return [{**tree, "p0": PRESET.format(1000 + number)} for number in range(commits)]


def load(repo: Repo, store: str = "profiles") -> index.Index:
    found = Repository(str(repo.folder / store))
    return index.load_index(found, index.list_commits(found))


class Screen(io.StringIO):
    """Standard error that is a terminal, or is none."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: is_terminal  # type: ignore[method-assign]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_is_told_how_many_commits_were_looked_at_and_a_pipe_is_not(
    is_terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = fast_import(tmp_path / "r", make_history(5, 2))
    screen = Screen(is_terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=count().__next__))
    assert len(load(repo).states) == 5
    assert ("3 of 5 commits looked at" in screen.getvalue()) is is_terminal
    assert is_terminal or not screen.getvalue()


def count_entries() -> int:
    return sum(isinstance(one, TreeEntry) for one in gc.get_objects())


def test_of_a_long_history_not_all_trees_are_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "_TREES", 5)
    repo = fast_import(tmp_path / "r", make_history(30, 40))
    gc.collect()
    before = count_entries()
    built = load(repo)
    assert len(built.states) == 30
    assert count_entries() - before < 300


def test_commits_from_before_a_store_was_moved_are_looked_at_if_a_later_one_tells_where_it_was(tmp_path: Path) -> None:
    repo = fast_import(tmp_path / "r", make_history(2, 1))
    repo.git("mv", "profiles", "store")
    assert load(repo, "store").states == []
    repo.git("commit", "-qm", "move the store")
    assert sum(len(state.commits) for state in load(repo, "store").states) == 3


GARBAGE = """
import gc
from npuprof import __main__ as started
def make_rings():
    for _ in range(500_000):
        ring = []
        ring.append(ring)
    print(len(gc.get_objects()), flush=True)
    return 0
started.main = make_rings
started.script()
"""


def test_a_process_that_makes_much_garbage_collects_it() -> None:
    done = subprocess.run([sys.executable, "-c", GARBAGE], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 250_000
