"""The pictures of the README, light and dark: a recording, a diagram and a page of the site.

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

from npuprof.renderers.environment_files import FORMATS
from support.browsing import CHROMIUM
from support.building import REPOSITORY
from support.diagrams import TINTS, Card, draw_inheritance
from support.documents import README, read_blocks
from support.pictures import draw_recording

PICTURES = REPOSITORY / ".github/pictures"
SCHEMES = ("light", "dark")
#: When each command of the recording appears, and the command, in a folder with the files of the
#: README.
COMMANDS = (
    (0, "npuprof scan launch.sh --format concise"),
    (1.5, "cat profiles/qwen3.toml"),
    (4, "npuprof render qwen3 --to vllm -o serving"),
    (6, "grep -hv '^#' serving/config.yaml serving/env.sh | head -n 4"),
)
#: A setting as ``show --origin`` prints it: name, value, place, and the value that it overrides.
SETTING = re.compile(r"(\S+) = (.+?)  # profiles/([\w.-]+:\d+)(?:, over (.+) \(\S+\))?")

pytestmark = pytest.mark.accepted


def run_command(command: str, folder: Path) -> str:
    script = f"npuprof() {{ '{sys.executable}' -m npuprof \"$@\"; }}; {command}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr  # 1: there are findings
    return done.stdout or done.stderr


def write_files(folder: Path) -> list[tuple[str, str]]:
    """Write the files that the README shows; return the paths and texts of its presets."""
    presets = []
    for block in read_blocks(README.read_text(encoding="utf-8")):
        if block.path:
            (folder / block.path).parent.mkdir(exist_ok=True)
            text = block.text.partition("\n")[2]
            # The path is the first line of the file, as for who copies the block.
            (folder / block.path).write_text(block.text, encoding="utf-8")
            presets += [(block.path, text)] * (block.language == "toml")
    return presets


def compare_picture(name: str, drawn: str, request: pytest.FixtureRequest) -> None:
    picture = PICTURES / name
    if request.config.getoption("--update-golden"):
        picture.parent.mkdir(exist_ok=True)
        picture.write_text(drawn, encoding="utf-8")
    assert picture.read_text(encoding="utf-8") == drawn
    assert ElementTree.fromstring(drawn).tag.endswith("svg")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_diagram_shows_what_the_presets_resolve_to(
    scheme: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    presets = write_files(tmp_path)
    tints = {Path(path).name: tint for (path, _), tint in zip(presets, TINTS, strict=True)}
    resolved: list[tuple[str, str, str]] = []
    section = ""
    for line in run_command("npuprof show qwen3-32b --origin", tmp_path).splitlines():
        section = line.strip("[]") if line.startswith("[") else section
        if found := SETTING.fullmatch(line):
            name, value, place, overridden = found.groups()
            bar = tints[place.partition(":")[0]]
            over = f", over {overridden}" if overridden else ""
            resolved += [
                (f"{section}.{name} = {value}", "", bar),
                (f"{place}{over}", "quiet", bar),
            ]
    run_command("npuprof render qwen3-32b --to vllm -o serving", tmp_path)
    files = sorted(path.name for path in (tmp_path / "serving").iterdir())
    formats = {"docker": "Docker", "k8s-env": "Kubernetes", "slurm-job": "Slurm"}
    assert set(formats) <= set(FORMATS)
    columns = [
        (
            "Presets in git",
            [
                Card(
                    path,
                    [
                        (line, "quiet" * line.startswith("["), "")
                        for line in text.splitlines()
                        if line
                    ],
                    tints[Path(path).name],
                )
                for path, text in presets
            ],
        ),
        ("Resolved settings", [Card("qwen3-32b", resolved)]),
        (
            "Rendered",
            [
                Card("render --to vllm", [(name, "quiet", "") for name in files]),
                Card("env --format", [(name, "quiet", "") for name in formats.values()]),
                Card("run", [("starts a command", "quiet", "")]),
            ],
        ),
    ]
    drawn = draw_inheritance(
        columns, scheme, "Two presets, what they resolve to, and what npuprof renders"
    )
    compare_picture(f"inheritance-{scheme}.svg", drawn, request)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_recording_is_what_the_commands_print(
    scheme: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    write_files(tmp_path)
    steps = [(second, command, run_command(command, tmp_path)) for second, command in COMMANDS]
    drawn = draw_recording(
        steps,
        scheme,
        "The mistakes of a launch script, a preset, and the files that npuprof renders from it",
    )
    compare_picture(f"terminal-{scheme}.svg", drawn, request)


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
    assert "weight_nz_mode" not in page.evaluate(shown, 1000)
    assert "TASK_QUEUE_ENABLE" in page.evaluate(shown, 0)
    assert "weight_nz_mode" in page.evaluate(shown, 2000)
    assert "export" in page.evaluate(shown, 9000)
    assert "weight_nz_mode" not in page.evaluate(shown, 11000)
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
        for name, kind in (("terminal", "svg"), ("inheritance", "svg"), ("site", "png"))
    ]
