"""Generated pages, and pages that point at tests, match the code; what they point at exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from npuprof.docs import split_code
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


def test_the_threat_model_names_modules_that_are_there() -> None:
    modules = re.findall(r"`(npuprof/[\w/]+\.py)`", read("reference/threat-model.md"))
    assert modules
    assert [module for module in modules if not (REPOSITORY / module).is_file()] == []


def test_every_promise_of_the_threat_model_is_held_by_a_test() -> None:
    there = set(
        re.findall(
            r"^def (test_\w+)",
            "".join(path.read_text("utf-8") for path in (REPOSITORY / "tests").rglob("test_*.py")),
            re.MULTILINE,
        )
    )
    tests = tomllib.loads(Path(__file__).with_name("threat-model.toml").read_text("utf-8"))
    promised: dict[str, list[str]] = {}
    for section in read("reference/threat-model.md").split("\n## ")[1:]:
        rows = re.findall(r"(?m)^\| (.+?) \| ", section)[1:]  # without the head
        if rows:
            promised[section.partition("\n")[0]] = rows
    assert promised == {section: list(rows) for section, rows in tests.items()}
    named = {name for rows in tests.values() for names in rows.values() for name in names}
    assert len(named) > 40
    assert sorted(named - there) == []
    assert all(names for rows in tests.values() for names in rows.values())


@pytest.mark.parametrize("guide", sorted(DOCS.rglob("*-zh.md")), ids=lambda path: path.name)
def test_a_chinese_guide_shows_what_the_english_one_shows(guide: Path) -> None:
    pages = [guide, guide.with_name(guide.name.replace("-zh", ""))]
    shown = []
    for page in pages:
        parts = [*split_code(page.read_text(encoding="utf-8"))]
        prose = "".join(text for text, is_prose in parts if is_prose)
        blocks = [text for text, is_prose in parts if not is_prose]
        shown.append(
            (
                # each page is run by itself, with commits of its own
                [re.sub(r"\b(?=[a-f]*\d)[0-9a-f]{7}\b", "COMMIT", block) for block in blocks],
                re.findall(r"^#+(?= )|^\|", prose, re.MULTILINE),
                sorted(re.findall(r"\]\(([^)\s]+)\)", prose)),
            )
        )
    assert shown[0] == shown[1], "change both pages, and run their commands with --update-golden"
