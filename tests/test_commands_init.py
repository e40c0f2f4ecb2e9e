"""``init``: a store that works at once, and never over what is there."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from building import REPOSITORY
from repositories import Repo

Run = Callable[..., Any]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("ci", ["github", "gitlab", "none"])
def test_a_new_store_is_clean_and_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, ci: str) -> None:
    folder = tmp_path / "pro ject"
    folder.mkdir()
    monkeypatch.chdir(folder)
    said = run("init", "--ci", ci)
    assert said.code == 0, said.err
    assert said.out.splitlines() == files(folder)
    assert {"profiles/bert-training.toml", "profiles/.schema.json", ".gitattributes", ".taplo.toml"} <= set(files(folder))
    assert (".github/workflows/presets.yml" in files(folder)) == (ci == "github")
    assert (".gitlab/presets.yml" in files(folder)) == (ci == "gitlab")
    assert run("check").code == 0
    assert run("render", "bert-training").code == 0
    assert tomllib.loads((folder / ".taplo.toml").read_text())["rule"][0]["schema"]["path"] == "profiles/.schema.json"


def test_the_drivers_find_the_attributes_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    made = Repo(tmp_path / "made")
    monkeypatch.chdir(made.folder)
    run("init")
    before = (made.folder / ".gitattributes").read_bytes()
    assert run("git", "install").code == 0
    assert (made.folder / ".gitattributes").read_bytes() == before
    assert run("git", "status").code == 0


def test_it_overwrites_nothing(tmp_path: Path, run: Run) -> None:
    assert run("init", "made").code == 0
    before = {name: (tmp_path / "made" / name).read_bytes() for name in files(tmp_path / "made")}
    said = run("init", "made")
    assert said.code == 2
    assert "NP923" in said.err
    assert {name: (tmp_path / "made" / name).read_bytes() for name in files(tmp_path / "made")} == before


def test_one_file_in_the_way_stops_all(tmp_path: Path, run: Run) -> None:
    other = tmp_path / "made/.github/workflows/presets.yml"
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    said = run("init", "made")
    assert said.code == 2
    assert ".github/workflows/presets.yml exists already" in said.err
    assert files(tmp_path / "made") == [".github/workflows/presets.yml"]


def test_attributes_and_editor_settings_that_are_there_stay(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / ".gitattributes").write_text("*.png binary")
    (folder / ".taplo.toml").write_text("# mine\n")
    said = run("init", "made")
    assert said.code == 0
    assert "let it name profiles/.schema.json" in said.err
    assert (folder / ".taplo.toml").read_text() == "# mine\n"
    assert (folder / ".gitattributes").read_text().splitlines()[0] == "*.png binary"
    assert "profiles/**/*.toml diff=npuprof merge=npuprof" in (folder / ".gitattributes").read_text().splitlines()


def test_a_dry_run_only_lists(tmp_path: Path, run: Run) -> None:
    said = run("init", "made", "--dry-run")
    assert said.code == 0
    assert not (tmp_path / "made").exists()
    assert said.out == run("init", "made").out


def test_an_unknown_ci_is_refused(run: Run) -> None:
    said = run("init", "made", "--ci", "gitlub")
    assert said.code == 2
    assert "gitlab" in said.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, run: Run) -> None:
    (tmp_path / "made").mkdir(mode=0o500)
    said = run("init", "made")
    assert said.code == 2
    assert "NP012" in said.err


def test_this_repository_uses_what_it_hands_out() -> None:
    action = (REPOSITORY / ".github/actions/presets/action.yml").read_text()
    assert action == (REPOSITORY / "npuprof/templates/github-action.yml").read_text()
    assert "uses: ./.github/actions/presets" in (REPOSITORY / ".github/workflows/presets.yml").read_text()
    assert "profiles/**/*.toml diff=npuprof merge=npuprof" in (REPOSITORY / ".gitattributes").read_text().splitlines()
