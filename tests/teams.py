"""A team that shares its presets: the repository where they are kept, and the bare one that others take them from."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from repositories import ENVIRONMENT, Repo

BASE = '[profile]\ndescription = "base"\nscenario = "training"\n[options]\nhccl_timeout = {}\n'
HEIR = '[profile]\nextends = ["team:base"]\n[options]\ndeterministic = 1\n'


class Team:
    """A repository with presets, and the bare one that it is pushed to."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo(folder / "team")
        self.bare = folder / "team.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", self.bare], check=True, env={**os.environ, **ENVIRONMENT})
        self.url = f"file://{self.bare}"

    def publish(self, presets: dict[str, str | bytes | None], version: str = "", *presets_released: str) -> str:
        commit = self.repo.commit(presets)
        if version:
            self.repo.git("tag", "-a", f"v{version}", "-m", version)
        for name in presets_released:
            self.repo.git("tag", "-a", name, "-m", name)
        self.push()
        return commit

    def push(self, *words: str) -> None:
        self.repo.git("push", "-q", *words, str(self.bare), "main", "--tags")


def offline(team: Team) -> None:
    shutil.move(team.bare, team.bare.with_suffix(".gone"))
