"""The index of history: what it costs to build it, and what is said meanwhile."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from npuprof.report import terminal
from npuprof.runs import index
from npuprof.store.gitstore.revisions import StoreRepository
from support.repositories import Repo, fast_import

PRESET = '[profile]\nscenario = "training"\n[options]\nhccl_timeout = {}\n'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def make_history(commits: int, presets: int) -> list[Mapping[str, str]]:
    tree = {f"p{number}": PRESET.format(100 + number) for number in range(presets)}
    return [{**tree, "p0": PRESET.format(1000 + number)} for number in range(commits)]


def load(repo: Repo, store: str = "profiles") -> index.Index:
    found = StoreRepository(str(repo.folder / store))
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


def test_commits_from_before_a_store_was_moved_are_looked_at_if_a_later_one_tells_where_it_was(
    tmp_path: Path,
) -> None:
    repo = fast_import(tmp_path / "r", make_history(2, 1))
    repo.git("mv", "profiles", "store")
    assert load(repo, "store").states == []
    repo.git("commit", "-qm", "move the store")
    assert sum(len(state.commits) for state in load(repo, "store").states) == 3
    for value in (1, 2):  # a preset that npuprof.toml names is outside the store
        (repo.folder / "npuprof.toml").write_text('presets = ["job.toml"]\n')
        (repo.folder / "job.toml").write_text(PRESET.format(value))
        repo.commit(message="change it")
    assert [state.commits for state in load(repo, "store").states][-2:] == [
        [repo.git("rev-parse", rev)] for rev in ("HEAD~1", "HEAD")
    ]
