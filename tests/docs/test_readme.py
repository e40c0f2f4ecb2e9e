"""What the README shows is what the commands print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from npuprof.catalog.releases import load_releases
from npuprof.docs import split_code
from npuprof.document.profile import PROFILE_KEYS
from support.documents import PAGES, list_blocks

ROOT = Path(__file__).parents[2]
FRAMEWORKS = ROOT / "npuprof/catalog/frameworks"
RECORDS = ROOT / ".ci/upstream/vllm"
CHINESE = ROOT / ".github" / "README.zh-CN.md"


def read(page: str) -> str:
    return PAGES[page].read_text(encoding="utf-8")


def test_the_profile_file_is_clean_and_can_be_rendered(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    shown = list_blocks("reference/preset-file.md", "toml")[0]
    (tmp_path / "profiles/shown.toml").write_text(shown, encoding="utf-8")
    for arguments in (
        ["check", "shown", "--strict"],
        ["render", "shown", "-o", "out"],
        ["render", "shown", "--to", "estimator", "-o", "out"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "npuprof", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "error" not in done.stderr, done.stdout + done.stderr
    assert sorted(path.name for path in (tmp_path / "out").glob("*.py")) == [
        "estimator.py",
        "session.py",
    ]


def test_the_profile_file_shows_every_key() -> None:
    shown = list_blocks("reference/preset-file.md", "toml")[0]
    assert list(tomllib.loads(shown)["profile"]) == list(PROFILE_KEYS)


def test_the_readme_is_short() -> None:
    prose = "".join(part for part, is_prose in split_code(read("README")) if is_prose)
    assert (
        len(
            re.sub(
                r"<!--.*?-->|<picture>.*?</picture>|\]\([^)]*\)", " ", prose, flags=re.DOTALL
            ).split()
        )
        <= 900
    )


def test_each_section_of_the_readme_begins_with_something_to_copy() -> None:
    sections = re.findall(
        r"^(#+ .+)\n\n(.+)$", "\n".join(read("README").split("\n")[1:]), re.MULTILINE
    )
    assert len(sections) > 9
    assert [
        title for title, first in sections if title.startswith("##") and not first.startswith("```")
    ] == []


def list_releases(name: str) -> list[str]:
    path = FRAMEWORKS / name / "framework.toml"
    return [*tomllib.loads(path.read_text(encoding="utf-8"))["releases"]]


@pytest.mark.parametrize(
    ("section", "releases"),
    [
        ("options", [*load_releases()][-1:]),
        *((name, list_releases(name)) for name in ("torch_npu", "vllm_ascend", "megatron", "verl")),
        ("mindie", [release for release in list_releases("mindie") if release >= "3"]),
        (
            "vllm",
            sorted(
                (path.stem for path in RECORDS.glob("*.json")),
                key=lambda release: [int(part) for part in release.split(".")],
            ),
        ),
    ],
)
@pytest.mark.parametrize("page", ["README", "Chinese"])
def test_the_readme_names_the_first_and_last_release_of_each_section(
    page: str, section: str, releases: list[str]
) -> None:
    text = read("README") if page == "README" else CHINESE.read_text(encoding="utf-8")
    row = re.search(rf"^\| `\[{section}\]`.*$", text, re.MULTILINE)
    assert row
    assert [name for name in (releases[0], releases[-1]) if name not in row[0].split()] == []


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    assert list_blocks("README", "sh")[-1].strip() in (ROOT / ".ci" / "run").read_text(
        encoding="utf-8"
    )


#: What in a page is the same in every language: blocks, the levels of headings, code in the prose,
#: and where links lead.
PARALLEL = {
    "blocks": lambda text: [part for part, is_prose in split_code(text) if not is_prose],
    "headings": lambda text: re.findall(r"^#+(?= )", take_prose(text), re.MULTILINE),
    "code": lambda text: sorted(re.findall(r"`[^`\n]+`", take_prose(text))),
    "links": lambda text: [
        os.path.basename(link) for link in re.findall(r"\]\(([^)\s]+)\)", take_prose(text))
    ][1:],
    "counts": lambda text: re.findall(
        r"\d+", "".join(re.findall(r"<!-- generated: counts -->(.*?)<!-- end -->", text))
    ),
    "items": lambda text: len(re.findall(r"^- ", take_prose(text), re.MULTILINE)),
}


def take_prose(text: str) -> str:
    return "".join(part for part, is_prose in split_code(text) if is_prose)


@pytest.mark.parametrize("what", PARALLEL)
def test_the_chinese_readme_is_parallel_to_the_english_one(what: str) -> None:
    find = PARALLEL[what]
    assert find(CHINESE.read_text(encoding="utf-8")) == find(read("README"))


def test_the_chinese_readme_links_to_files_that_exist() -> None:
    links = re.findall(r"\]\(([^)\s#]+)", take_prose(CHINESE.read_text(encoding="utf-8")))
    assert len(links) > 15
    assert all((CHINESE.parent / link).is_file() for link in links)
