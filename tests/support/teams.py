"""A team that shares its presets: its repository, and the bare one that others fetch."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from support.repositories import Repo
from support.running import Run
from support.templates import copy_built, copy_empty_repository, link_to

BASE = '[profile]\ndescription = "base"\nscenario = "training"\n[options]\nhccl_timeout = {}\n'
HEIR = '[profile]\nextends = ["team:base"]\n[options]\ndeterministic = 1\n'


class Team:
    """A repository with presets, and the bare one that it is pushed to."""

    def __init__(self, folder: Path, init: bool = True) -> None:
        self.repo = Repo(folder / "team", init)
        self.bare = folder / "team.git"
        if init:
            copy_empty_repository(self.bare, "--bare")
        self.url = f"file://{self.bare}"

    def publish(
        self, presets: dict[str, str | bytes | None], version: str = "", *presets_released: str
    ) -> str:
        commit = self.repo.commit(presets)
        if version:
            self.repo.git("tag", "-a", f"v{version}", "-m", version)
        for name in presets_released:
            self.repo.git("tag", "-a", name, "-m", name)
        self.push()
        return commit

    def push(self, *arguments: str) -> None:
        self.repo.git("push", "-q", *arguments, str(self.bare), "main", "--tags")


class Shared(NamedTuple):
    """A team and a repository that uses its presets."""

    team: Team
    app: Repo


def publish_first(team: Team) -> None:
    """Publish two presets as 1.0.0."""
    team.publish(
        {"base": BASE.format(600), "other": "options.deterministic = 1\n"}, "1.0.0", "base/v1.0.0"
    )


def copy_team(folder: Path, begin: Callable[[Team], None] = publish_first) -> Team:
    """Have a team in a folder as ``begin`` publishes it; its address is the same in every test."""

    def build(empty: Path) -> int:
        made = Team(empty)
        begin(made)
        return made.repo.day

    return _open_team(folder, copy_built(f"team-{begin.__qualname__}", folder, build))


def change_nothing(shared: Shared) -> None:
    """Make nothing further."""


def copy_shared(
    folder: Path,
    run: Run,
    go_on: Callable[[Shared], None] = change_nothing,
    begin: Callable[[Team], None] = publish_first,
) -> Shared:
    """Copy a team into a folder, and into ``app`` a repository that uses its presets at 1.0.0.

    ``go_on`` changes both before they are copied.

    That is called once in a process, in the folder of the repository.
    """

    def build(empty: Path) -> tuple[int, int]:
        with pytest.MonkeyPatch.context() as patch:
            (empty / "home").mkdir()
            patch.setenv("HOME", str(empty / "home"))
            patch.setenv("XDG_CACHE_HOME", str(empty / "home" / "cache"))
            team = copy_team(empty, begin)
            link_to(empty)
            app = Repo(empty / "app")
            app.write({"job": HEIR, "own": "options.deterministic = 0\n"})
            patch.chdir(app.folder)
            result = run("source", "add", "team", team.url)
            assert result.code == 0, result.err
            app.commit(message="one")
            go_on(Shared(team, app))
            return team.repo.day, app.day

    days = copy_built(f"{begin.__qualname__}-{go_on.__qualname__}", folder, build)
    app = Repo(folder / "app", init=False)
    app.day = days[1]
    return Shared(_open_team(folder, days[0]), app)


def _open_team(folder: Path, day: int) -> Team:
    made = Team(folder, init=False)
    made.repo.day = day
    made.url = f"file://{link_to(folder)}/{made.bare.name}"
    return made


def make_unreachable(team: Team) -> None:
    shutil.move(team.bare, team.bare.with_suffix(".gone"))
