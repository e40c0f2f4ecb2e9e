"""Generated pages, and pages that point at tests, match the code; what they point at exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import generated
from support.building import REPOSITORY
from support.lanes import ACCEPT

DOCS = REPOSITORY / "npuprof" / "docs"


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.accepted
def test_the_plot_of_speed_shows_the_figures_that_are_kept(request: pytest.FixtureRequest) -> None:
    path: Path = DOCS / "reference" / "speed.svg"
    if request.config.getoption("--update-golden"):
        path.write_text(generated.draw_speed(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == generated.draw_speed(), (
        f"speed.svg is out of date; {ACCEPT}"
    )


def test_the_threat_model_names_tests_and_modules_that_are_there() -> None:
    text = read("reference/threat-model.md")
    there = set(
        re.findall(
            r"^def (test_\w+)",
            "".join(path.read_text("utf-8") for path in (REPOSITORY / "tests").rglob("test_*.py")),
            re.MULTILINE,
        )
    )
    named = re.findall(r"`(test_\w+)`", text)
    assert len(named) > 40
    assert sorted(set(named) - there) == []
    modules = re.findall(r"`(npuprof/[\w/]+\.py)`", text)
    assert modules
    assert [module for module in modules if not (REPOSITORY / module).is_file()] == []


def test_every_promise_of_the_threat_model_is_held_by_a_test() -> None:
    rows = [
        line.strip("| ").split(" | ")
        for line in read("reference/threat-model.md").splitlines()
        if line.startswith("| ")
    ]
    assert [
        row for row in rows if row[-1] != "tested by" and not row[-1].startswith("`test_")
    ] == []
