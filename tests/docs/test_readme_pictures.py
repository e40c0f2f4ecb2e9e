"""The pictures of the README: a terminal recording and a page of the site, light and dark.

``python -m pytest --update-golden tests/docs/test_readme_pictures.py`` makes them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from support.browsing import CHROMIUM
from support.building import REPOSITORY
from support.documents import list_blocks
from support.pictures import draw_recording

PICTURES = REPOSITORY / ".github/pictures"
SCHEMES = ("light", "dark")
#: When each command of the recording appears, and the command, in a folder with the first preset of
#: the README.
COMMANDS = (
    (0, "cat bert.toml"),
    (1.5, "npuprof render ./bert.toml --inline | tail -n 6"),
    (4, "npuprof env ./bert.toml | grep -m 3 export"),
    (6, "npuprof check ./bert.toml"),
)

pytestmark = pytest.mark.accepted


def run_command(command: str, folder: Path) -> str:
    script = f"npuprof() {{ '{sys.executable}' -m npuprof \"$@\"; }}; {command}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout or done.stderr


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_recording_is_what_the_commands_print(
    scheme: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "bert.toml").write_text(list_blocks("README", "toml")[0].partition("\n")[2])
    steps = [(second, command, run_command(command, tmp_path)) for second, command in COMMANDS]
    drawn = draw_recording(
        steps,
        scheme,
        "A preset, the code and the variables that npuprof makes of it, and its check",
    )
    picture = PICTURES / f"terminal-{scheme}.svg"
    if request.config.getoption("--update-golden"):
        picture.parent.mkdir(exist_ok=True)
        picture.write_text(drawn, encoding="utf-8")
    assert picture.read_text(encoding="utf-8") == drawn
    assert ElementTree.fromstring(drawn).tag.endswith("svg")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_recording_shows_code_within_two_seconds_and_loops(browser: Any, scheme: str) -> None:
    page = browser.new_page()
    page.goto(f"file://{PICTURES}/terminal-{scheme}.svg")
    shown = """(ms) => {
        for (const animation of document.getAnimations()) {
            animation.pause();
            animation.currentTime = ms;
        }
        const groups = [...document.querySelectorAll("g")];
        const seen = groups.filter((group) => getComputedStyle(group).opacity === "1");
        return seen.map((one) => one.textContent).join(" "); }"""
    assert "parameter_map" not in page.evaluate(shown, 1000)
    assert "precision_mode_v2" in page.evaluate(shown, 0)
    assert "parameter_map" in page.evaluate(shown, 2000)
    assert "export" in page.evaluate(shown, 9000)
    assert "parameter_map" not in page.evaluate(shown, 11000)
    page.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from npuprof.__main__ import main

    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(
        REPOSITORY / "profiles", folder / "profiles"
    )  # outside of git: the history of a page is not that of each commit
    assert main(["site", str(folder / "public"), "--store", str(folder / "profiles")]) == 0
    return folder / "public"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_is_whole_and_twice_as_fine(
    browser: Any, scheme: str, site: Path, request: pytest.FixtureRequest
) -> None:
    page = browser.new_page(
        viewport={"width": 1100, "height": 640}, device_scale_factor=2, color_scheme=scheme
    )
    page.goto(f"file://{site}/presets/bert-training.html")
    picture = PICTURES / f"site-{scheme}.png"
    taken = page.screenshot(full_page=True)
    page.close()
    if request.config.getoption("--update-golden"):
        picture.write_bytes(taken)
    # Letters are drawn differently by each machine: the format and the width in the head of the
    # file are compared.
    assert picture.read_bytes()[:20] == taken[:20]


@pytest.mark.parametrize(
    "page",
    [REPOSITORY / "README.md", REPOSITORY / ".github/README.zh-CN.md"],
    ids=lambda page: page.name,
)
def test_the_readme_links_each_picture_in_both_schemes(page: Path) -> None:
    found = re.findall(
        (
            r'<picture><source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)"><img '
            r'alt="[^"]+" src="([^"]+)"[^>]*></picture>'
        ),
        page.read_text(encoding="utf-8"),
    )
    paths = [tuple((page.parent / path).resolve() for path in pair) for pair in found]
    assert paths == [
        (PICTURES / f"{name}-dark.{kind}", PICTURES / f"{name}-light.{kind}")
        for name, kind in (("terminal", "svg"), ("site", "png"))
    ]
