"""The benchmarks have a row for each goal, and are kept only if the machine was quiet."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import bench_all, bench_scan, measured
from bench.bench_history import wait_for_output
from bench.measured import Goal, Load, UnavailableError
from bench.workplace import Workplace, run_metered

from support import generated
from support.repositories import Repo

#: What npuprof promises, each as the part of a title.
PROMISED = (
    *("render bert", "env ", "show ", "option ", "list ", "check / bare", "explain ", "--help"),
    *("diff bert", "TAB: preset /", "TAB: key", "TAB: value", "TAB: revision", "TAB: preset of"),
    *("Hydra", "Conan", "check of 10,000 / tomllib", "each with a warning / tomllib", "set on"),
    *("rename of a base, 1,000 dependents / 300", "3,000 dependents changed", "diff --rev"),
    *("git processes", "each changes it", "a line above", "a comment", "a structured value"),
    *("log SPEC, ", "ast.parse of them", "one core / both", "s to the first output"),
    *("CPU s per 1,000", "three changed files", "MB/s", "growth", "render, peak MiB"),
    *("check of 10,000, peak MiB", "with a warning, peak MiB", "Megatron-LM, peak MiB"),
)
#: Other tools, whose times are shown for comparison.
PEERS = re.compile(r"(check-jsonschema|taplo|ruff) / check|.* / (ruff|shellcheck)")
GOALS = (
    Goal("render a / bare", 4, lambda place: 3.5),
    Goal("verify, MB/s", 100, lambda place: 90, more=True),
    Goal("a tool / check", None, lambda place: 7),
)
PAGE = "# Speed\n\n<!-- generated: speed --><!-- end -->\n"


class FixedLoad(Load):
    """A machine with this load of others, before the first row and after the last."""

    def __init__(self, before: float, after: float) -> None:
        self.before, self.after = before, after

    def read(self) -> float:
        return max(self.before, self.after)


def fail(place: Workplace) -> float:
    raise ValueError("exit 3")


def have_nothing(place: Workplace) -> float:
    raise UnavailableError("shellcheck is not installed")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path, True, str(tmp_path / "clones"), tmp_path / "cache")


def run(
    goals: tuple[Goal, ...], place: Workplace, words: list[str], load: tuple[float, float] = (0, 0)
) -> int:
    arguments = bench_all.parse_arguments(words)
    file, page = place.folder / "measured.json", place.folder / "speed.md"
    return bench_all.run(goals, arguments, place, FixedLoad(*load), file, page)


def test_each_goal_has_a_limit_and_a_function_that_measures_it() -> None:
    titles = [goal.title for goal in bench_all.GOALS]
    assert len(set(titles)) == len(titles)
    assert all(callable(goal.measure) for goal in bench_all.GOALS)
    without = [goal.title for goal in bench_all.GOALS if goal.limit is None]
    assert [title for title in without if not PEERS.fullmatch(title)] == []


def test_each_promise_has_a_row_with_a_limit() -> None:
    titles = [goal.title for goal in bench_all.GOALS if goal.limit is not None]
    assert [part for part in PROMISED if not any(part in title for title in titles)] == []


def test_each_row_is_printed_beside_its_limit(
    place: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    goals = (*GOALS, Goal("shell / shellcheck", 1, have_nothing), Goal("log / git", 8, fail))
    assert run(goals, place, [], (0.3, 1.2)) == 1
    machine, *lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+ cores, .*, load 0.3 before the first row", machine)
    assert lines == [
        "      3.50  at most 4      holds     render a / bare",
        "     90.00  at least 100   EXCEEDED  verify, MB/s",
        "      7.00                           a tool / check",
        "         -  at most 1      skipped   shell / shellcheck: shellcheck is not installed",
        "         -  at most 8      FAILED    log / git: exit 3",
        "load of other processes: 1.2 (before the first row: 0.3)",
        "5 rows: 1 exceeded, 1 skipped, 1 failed",
    ]


@pytest.mark.parametrize("load", [(0.6, 0), (0, 0.6)], ids=["before", "meanwhile"])
def test_figures_of_a_busy_machine_are_not_kept(
    load: tuple[float, float], place: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    page = place.folder / "speed.md"
    page.write_text(PAGE)
    assert run(GOALS, place, ["--update"], load) == 2
    assert capsys.readouterr().out.splitlines()[-1] == (
        "speed.md is not updated: the load of other processes is 0.6, above 0.5. "
        "Wait until the machine is quiet."
    )
    assert page.read_text() == PAGE
    assert not (place.folder / "measured.json").exists()


def test_a_busy_machine_is_told_before_the_first_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench_all.py", "--update"])
    monkeypatch.setattr(bench_all, "Load", lambda: FixedLoad(0.6, 0))
    assert bench_all.main() == 2
    assert capsys.readouterr().out.startswith("speed.md is not updated: the load")


def test_figures_of_a_run_with_failed_rows_are_not_kept(
    place: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run((*GOALS, Goal("log / git", 8, fail)), place, ["--update"]) == 2
    assert capsys.readouterr().out.splitlines()[-1] == "speed.md is not updated: rows failed."
    assert not (place.folder / "measured.json").exists()


def test_figures_of_a_quiet_machine_are_kept(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, page = place.folder / "measured.json", place.folder / "speed.md"
    page.write_text(PAGE)
    monkeypatch.setattr(generated, "MEASURED", file)
    goals = (*GOALS, Goal("shell / shellcheck", 1, have_nothing))
    assert run(goals, place, ["--update"], (0.5, 0.2)) == 1  # a limit is exceeded
    kept = json.loads(file.read_text())["all"]
    assert kept["machine"].endswith("load 0.5")
    assert kept["rows"][0] == ["render a / bare", 3.5, 4, False, ""]
    text = page.read_text()
    assert "| render a / bare | 3.50 | at most 4 |" in text
    assert "| verify, MB/s | 90.00 | at least 100, not held |" in text
    assert "| shell / shellcheck | shellcheck is not installed | at most 1 |" in text
    assert "npuprof render a: 3.5" in page.with_suffix(".svg").read_text()


@pytest.mark.parametrize("words", [["--reduced"], ["--only", "log"]])
def test_a_part_of_the_figures_is_not_kept(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        bench_all.parse_arguments(["--update", *words])


def test_the_load_is_what_others_took(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"busy": [100.0, 130.0], "own": [1.0, 13.0], "clock": [50.0, 80.0]}
    monkeypatch.setattr(measured.os, "getloadavg", lambda: (0.2, 5, 5))
    monkeypatch.setattr(measured, "_read_busy", lambda: seconds["busy"].pop(0))
    monkeypatch.setattr(measured, "_read_own", lambda: seconds["own"].pop(0))
    clock = SimpleNamespace(monotonic=lambda: seconds["clock"].pop(0))
    monkeypatch.setattr(measured, "time", clock)
    load = Load()
    assert (load.before, load.read()) == (0.2, pytest.approx(0.6))


def test_the_trees_are_at_least_four_at_fixed_commits() -> None:
    trees = bench_scan.TREES.values()
    assert len({tree["url"] for tree in trees}) >= 4
    assert [tree for tree in trees if not re.fullmatch("[0-9a-f]{40}", tree["commit"])] == []
    assert [tree for tree in trees if not tree["url"].startswith("https://")] == []
    assert set(bench_scan.WITH_SHELL) <= bench_scan.TREES.keys()


def test_the_python_and_shell_files_of_a_folder_are_checked_out(
    repo: Repo, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("in/a.py", "in/deep/b.sh", "in/c.txt", "out/d.py"):
        path = repo.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (place.folder / "clones").mkdir()
    (place.folder / "clones" / "small").symlink_to(repo.folder)
    tree = {"url": "https://example.org", "commit": repo.commit(), "folder": "in"}
    monkeypatch.setitem(bench_scan.TREES, "small", tree)
    monkeypatch.setitem(bench_scan.TREES, "lost", {**tree, "commit": "0" * 40})
    folder = bench_scan._check_out(place, "small")
    assert sorted(path.name for path in folder.glob("in/**/*.*")) == ["a.py", "b.sh"]
    assert sorted(path.name for path in folder.iterdir()) == [".git", "in"]
    for _ in range(2):
        with pytest.raises(UnavailableError, match=r"^the commit of lost cannot be fetched$"):
            bench_scan._check_out(place, "lost")


def test_imported_files_are_found_in_turn(tmp_path: Path) -> None:
    files = {
        "main.py": "import os, pkg.a\nfrom other import b\n",
        "other/__init__.py": "",
        "other/b.py": "def f():\n    from .c import d\n",
        "other/c.py": "",
        "pkg/__init__.py": "",
        "pkg/a.py": "from . import e\nfrom ..pkg import f\nfrom .. import top\n",
        "pkg/e.py": "",
        "pkg/f.py": "import main\n",
        "pkg/unused.py": "",
        "top.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert bench_scan.find_imported_files(tmp_path, ["main.py"]) == [
        name for name in sorted(files) if name != "pkg/unused.py"
    ]


def test_a_command_is_ended_after_its_first_output(tmp_path: Path) -> None:
    wait_for_output(tmp_path, ["sh", "-c", "echo one; sleep 600"], b"\n")
    wait_for_output(tmp_path, ["true"], b"\n")


def test_a_command_that_fails_has_no_figure(tmp_path: Path) -> None:
    assert run_metered(tmp_path, ["sh", "-c", "exit 3"], (0, 3)).peak > 0
    with pytest.raises(RuntimeError, match=r"exit 3$"):
        run_metered(tmp_path, ["sh", "-c", "exit 3"])
