"""Vendored releases: references mean the same without history, and foreign files are reported."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import npuprof
from support.repositories import Repo
from support.running import Run, expect
from support.templates import copy_built

ROOT = "[options]\nop_debug_level = {}\nhcom_parallel = true\n"
BASE = '[profile]\nextends = ["{}"]\n[options]\ngraph_run_mode = {}\n'
LEAF = '[profile]\nextends = ["{}"]\n[options]\nprecision_mode_v2 = "fp16"\n'
#: Presets of the store below, and what they extend: a whole number, ranges, a release that pins
#: another one itself.
LEAVES = {
    "whole": "base/training@1.0.0",
    "newest": "base/training@1",
    "minor": "base/training@1.1",
    "quoted": "base/root@v1.0.0",
}


@pytest.fixture
def store(tmp_path: Path, run: Run, committer: None, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A store that has moved on since its releases, and keeps those that its presets extend."""

    def build(empty: Path) -> int:
        repo = Repo(empty / "repo")
        with monkeypatch.context() as patch:
            patch.chdir(repo.folder)
            repo.commit({"base/root": ROOT.format(0), "base/training": BASE.format("base/root", 1)})
            assert run("release", "base/root").code == run("release", "base/training").code == 0
            repo.commit({"base/training": BASE.format("base/root@1", 0)})
            assert run("release", "base/training", "1.1.0").code == 0
            repo.commit({"base/root": ROOT.format(2), "base/training": BASE.format("base/root", 1)})
            repo.commit({name: LEAF.format(parent) for name, parent in LEAVES.items()})
            assert run("source", "vendor", ".").code == 0
            repo.commit()
        return repo.day

    day = copy_built("kept releases", tmp_path, build)
    made = Repo(tmp_path / "repo", init=False)
    made.day = day
    monkeypatch.chdir(made.folder)
    return made


def export(store: Repo, folder: Path) -> Path:
    """Return a folder with what the last commit holds, and no history."""
    folder.mkdir()
    packed = subprocess.run(
        ["git", "archive", "HEAD"], cwd=store.folder, capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "x"], cwd=folder, input=packed, check=True)
    return folder


def resolve(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return digest and options of the presets of a store."""
    opened = npuprof.open_store(str(folder / "profiles"))
    found = {name: opened.resolve(name) for name in LEAVES}
    return {name: (config.digest, dict(config.options)) for name, config in found.items()}


@pytest.mark.parametrize(
    "shape", ["export", "clone without tags", "shallow clone", "no git on the path"]
)
def test_a_pin_means_the_same_with_and_without_a_history(
    shape: str, store: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there"
    if "clone" in shape:
        arguments = ["--no-tags"] if "tags" in shape else ["--depth", "1"]
        subprocess.run(
            ["git", "clone", "-q", *arguments, f"file://{store.folder}", str(there)], check=True
        )
    else:
        export(store, there)
    expected = resolve(store.folder)
    if "path" in shape:
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert resolve(there) == expected
    assert expected["whole"][1]["graph_run_mode"] == 1
    assert expected["newest"][1]["graph_run_mode"] == 0
    assert {options["op_debug_level"] for _, options in expected.values()} == {0}


def test_what_is_kept_is_cited_by_its_own_path(
    store: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(export(store, tmp_path / "there"))
    cited = "profiles/.released/base/training@1/.released/base/root@1/base/root.toml"
    assert f"op_debug_level = 0  # {cited}:2" in run("show", "newest", "--origin").out
    assert Path(cited).is_file()
    assert (
        run("show", "base/training@1.0.0").out
        == run("show", "whole", "--unset", "precision_mode_v2").out
    )
    assert run("check").code == 0
    assert sorted(npuprof.open_store("profiles")) == sorted([*LEAVES, "base/root", "base/training"])


def test_a_commit_without_tags_is_read_with_what_it_keeps(
    store: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    store.git("clone", "-q", "--no-tags", f"file://{store.folder}", str(tmp_path / "there"))
    monkeypatch.chdir(tmp_path / "there")
    expect(run("show", "newest@HEAD"), 0, "graph_run_mode = 0")
    assert run("check", "--rev", "HEAD").code == run("diff", "--rev", "HEAD").code == 0


def test_a_later_release_is_told_where_an_older_one_is_kept(store: Repo, run: Run) -> None:
    store.commit({"base/training": BASE.format("base/root", 0)})
    assert run("release", "base/training", "1.2.0").code == 0
    result = run("check", "newest", "minor")
    assert "NP710" in result.out
    assert "newest extends base/training@1, of which the store keeps 1.1.0 at" in result.out
    assert "minor extends" not in result.out
    store.write({"minor": LEAF.format("base/training@1.2.0")})
    assert (
        "minor extends base/training@1.2.0, of which the store keeps nothing"
        in run("check", "minor").out
    )
    assert run("source", "vendor", ".").code == 0
    assert "NP710" not in run("check").out


def test_a_branch_is_not_kept_and_a_source_neither(store: Repo, run: Run) -> None:
    store.write({"whole": LEAF.format("base/training@main")})
    assert (
        "base/training@main is not a released version and was not vendored"
        in run("source", "vendor", ".").err
    )
    assert "omit --into" in run("source", "vendor", ".", "--into", "x").err


def test_a_pin_that_leads_nowhere_leaves_what_is_kept(store: Repo, run: Run) -> None:
    store.write({"bad": LEAF.format("base/training@7"), "worse": LEAF.format("nobody@1")})
    before = sorted(path for path in store.folder.rglob("*") if ".released" in str(path))
    done = run("source", "vendor", ".")
    assert done.code == 2
    assert done.err.count("error ") == 2
    assert sorted(path for path in store.folder.rglob("*") if ".released" in str(path)) == before


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def lead_out(top: Path) -> None:
    out = top.parents[4] / "out"
    shutil.move(top, out)
    top.symlink_to(out)


def link_out(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/passwd")


#: What may have become of the kept release ``base/training@1.0.0``, and what is said of it.
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a value is another": (
        lambda top: edit(top / "base/training.toml", "= 1", "= 0"),
        "is not base/training 1.0.0 as it was released",
    ),
    "an ancestor is gone": (lambda top: (top / "base/root.toml").unlink(), "which is not in"),
    "the preset is broken": (
        lambda top: (top / "base/training.toml").write_text("[profile\n"),
        "base/training.toml:1",
    ),
    "the record is gone": (
        lambda top: (top / ".release").unlink(),
        "does not say which release of base/training was kept",
    ),
    "the record is of another version": (
        lambda top: edit(top / ".release", " 1.0.0 ", " 1.1.0 "),
        "does not say which release",
    ),
    "it is a link out": (lead_out, "leads out of the store"),
    "a file is a link out": (lambda top: link_out(top / "base/root.toml"), "which is not in"),
    "it pins what was not kept": (
        lambda top: edit(top / "base/training.toml", "root", "root@1"),
        "was kept without base/root@1",
    ),
    "it pins a path": (
        lambda top: edit(top / "base/training.toml", "base/root", "../../x@1"),
        "../../x",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_not_as_it_was_kept_is_told_at_the_reference(
    damage: str, store: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(export(store, tmp_path / "there"))
    change, output = DAMAGE[damage]
    change(Path.cwd() / "profiles/.released/base/training@1.0.0")
    for arguments in (["show", "whole"], ["check", "whole"], ["render", "whole"]):
        done = run(*arguments)
        assert done.code == 2, done
        assert output in done.out + done.err, done
    assert run("show", "newest").code == 0


def test_git_goes_before_what_is_kept(store: Repo, run: Run) -> None:
    edit(store.folder / "profiles/.released/base/training@1.0.0/base/training.toml", "= 1", "= 0")
    assert "graph_run_mode = 1" in run("show", "whole").out


def test_what_the_shipped_presets_pin_is_what_their_commit_holds() -> None:
    shipped = Path(__file__).parents[2]
    records = sorted((shipped / "profiles/.released").rglob(".release"))
    assert records
    for record in records:
        commit = record.read_text().split()[2]
        if subprocess.run(
            ["git", "cat-file", "-e", f"{commit}^{{commit}}"],
            cwd=shipped,
            capture_output=True,
            check=False,
        ).returncode:
            pytest.skip(f"this checkout does not reach back to {commit}")
        files = [*record.parent.rglob("*.toml")]
        assert files
        for file in files:
            stored = subprocess.run(
                ["git", "show", f"{commit}:profiles/{file.relative_to(record.parent).as_posix()}"],
                cwd=shipped,
                capture_output=True,
                check=True,
            )
            assert file.read_bytes() == stored.stdout


@pytest.mark.parametrize(
    "damage", ["a value is another", "an ancestor is gone", "it is a link out"]
)
def test_a_check_tells_of_a_kept_release_that_would_fail_elsewhere_though_git_has_it(
    damage: str, store: Repo, run: Run
) -> None:
    assert run("check").code == 0
    change, output = DAMAGE[damage]
    change(store.folder / "profiles/.released/base/training@1.0.0")
    assert run("show", "whole").code == 0
    done = run("check")
    assert done.code == 2
    assert output.replace("which is not in", "no preset") in done.out or output in done.out


def test_a_damaged_release_is_told_once_where_it_is_read(
    store: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(export(store, tmp_path / "there"))
    edit(Path("profiles/.released/base/training@1.0.0/base/training.toml"), "= 1", "= 0")
    assert run("check").out.count("is not base/training 1.0.0 as it was released") == 1


def test_a_kept_release_that_nobody_extends_is_told(store: Repo, run: Run) -> None:
    store.write({"whole": LEAF.format("base/training@1.1")})
    done = run("check", "--format", "json")
    (idle,) = [
        finding for finding in json.loads(done.out)["findings"] if finding["code"] == "NP710"
    ]
    assert (
        idle["message"]
        == "the release base/training@1.0.0 is kept in profiles/.released, and no preset extends it"
    )
    assert idle["severity"] == "warning"
    assert idle["path"] == "profiles/.released/base/training@1.0.0/.release"
    assert "NP710" not in run("check", "whole").out
    assert run("source", "vendor", ".").code == 0
    assert "NP710" not in run("check").out


def test_a_folder_of_kept_releases_that_is_a_link_is_told_and_not_walked(
    store: Repo, tmp_path: Path, run: Run
) -> None:
    top = store.folder / "profiles/.released"
    shutil.move(top, tmp_path / "out")
    top.symlink_to(tmp_path / "out")
    done = run("check")
    assert done.code == 2
    assert done.out.count("leads out of the store") == len(LEAVES)
