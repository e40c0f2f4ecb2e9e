"""The static inspector: which pages there are, what stands on them, and what is written where."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repositories import Repo

from npuprof.site.family import draw_family

pytest.importorskip("jinja2")

Run = Callable[..., Any]
PRESETS = {
    "base/training": """[profile]
description = "what all trainings share"
scenario = "training"
abstract = true
[options]
hccl_timeout = 1836
""",
    "job": """profile.extends = ["base/training"]
profile.owner = "team-a"
[options]
hccl_timeout = 1904
precision_mode_v2 = "mixed_float16"
""",
    "other": """profile.extends = ["base/training"]
[options]
precision_mode = "allow_mix_precision"
precision_mode_v2 = "mixed_float16"
""",
    "broken": 'profile.extends = ["nowhere"]\n[options]\ndeterministic = 1\n',
}
HOSTILE = '<script>alert("x")</script>\'"&amp;\u202e<img src=x onerror=alert(1)>'


class Page(HTMLParser):
    """The text of a page, its links and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.tags.append((tag, held))
        self.links += [str(held[name]) for name in ("href", "src") if held.get(name)]
        self.ids |= {str(held["id"])} if held.get("id") else set()

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def site(repo: Repo, run: Run) -> Path:
    repo.commit(PRESETS, message="one")
    result = run("site", "public")
    assert result.code == 0, result.err
    return repo.folder / "public"


def test_each_preset_has_a_page_that_says_what_it_is_who_wrote_what_and_what_is_wrong(site: Path) -> None:
    page = Page(site / "presets/job.html").text
    for said in ("team-a", "training", "hccl_timeout", "1904", "1836", "profiles/base/training.toml:6", "profiles/job.toml:4", "one"):
        assert said in page, said
    assert "NP301" in Page(site / "presets/other.html").text or "error" in Page(site / "presets/other.html").text
    broken = Page(site / "presets/broken.html").text
    assert "cannot be resolved" in broken
    assert "nowhere" in broken
    assert Page(site / "index.html").text.index("broken") < Page(site / "index.html").text.index("base/training")


def test_every_link_of_every_page_leads_to_a_file_and_a_place_in_it(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            target, _, place = link.partition("#")
            there = Path(os.path.normpath(path.parent / target)) if target else path
            assert there.is_file(), (path, link)
            if place and there.name in ("catalogue.html", "rules.html"):
                assert place in pages[there].ids, (path, link)


def test_the_same_presets_give_the_same_bytes_and_a_second_run_writes_nothing(site: Path, run: Run, repo: Repo) -> None:
    before = {name: (site / name).stat().st_mtime_ns for name in read_files(site)}
    result = run("site", "public")
    assert " 0 written, 0 removed" in result.err
    assert {name: (site / name).stat().st_mtime_ns for name in read_files(site)} == before
    assert run("site", "again").code == 0
    assert read_files(repo.folder / "again") == read_files(site)


def test_a_page_goes_with_its_preset_and_nothing_else(site: Path, run: Run, repo: Repo) -> None:
    (site / "notes.txt").write_text("mine")
    (repo.folder / "profiles/broken.toml").unlink()
    assert run("site", "public").code == 0
    assert not (site / "presets/broken.html").exists()
    assert (site / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("mark", [None, "{", '{"schema": "other"}', '{"schema": "npuprof.site/1", "files": ["../job.toml"]}'])
def test_a_folder_that_holds_something_else_is_refused(repo: Repo, run: Run, mark: str | None) -> None:
    repo.commit(PRESETS)
    folder = repo.folder / "docs"
    folder.mkdir()
    (folder / "index.html").write_text("somebody's")
    if mark is not None:
        (folder / ".npuprof-site.json").write_text(mark)
    result = run("site", "docs")
    assert result.code != 0
    assert "NP980" in result.err
    assert (folder / "index.html").read_text() == "somebody's"


def test_a_store_outside_of_git_has_pages_without_a_history(store: Callable[..., Path], run: Run, tmp_path: Path) -> None:
    store(PRESETS)
    assert run("site", "public").code == 0
    assert "History" not in Page(tmp_path / "public/presets/job.html").text


@given(st.text(max_size=40))
def test_no_text_of_a_preset_becomes_markup(text: str) -> None:
    import tempfile

    from npuprof.__main__ import main
    from npuprof.document.keys import format_toml_value

    with tempfile.TemporaryDirectory() as folder:
        written = format_toml_value(f"{HOSTILE}{text}".encode(errors="ignore").decode())
        (Path(folder) / "profiles").mkdir()
        (Path(folder) / "profiles/job.toml").write_text(
            f"# {HOSTILE}\n[profile]\ndescription = {written}\nowner = {written}\n"
            f"[options]\nop_debug_config = {written}\n[env]\nX = {written}\n"
        )
        assert main(["site", f"{folder}/public", "--store", f"{folder}/profiles"]) == 0
        for path in Path(folder, "public").rglob("*.html"):
            page = Page(path)
            scripts = [held for tag, held in page.tags if tag == "script"]
            assert {held.get("src", "").rpartition("/")[2] for held in scripts} <= {"site.js", "index.js"}
            assert not [tag for tag, _ in page.tags if tag in ("img", "iframe", "object")]
            assert not [name for _, held in page.tags for name in held if name.startswith("on")]
        for path in Path(folder, "public/data").glob("*.js"):
            text_ = path.read_text()
            assert text_.isascii()
            assert text_.startswith("npuprof.")
            assert text_.count("\n") == 1
            json.loads("[" + text_.partition("(")[2].rpartition(")")[0] + "]")


CHAINS = [
    ({}, 0, 0),
    ({"a": []}, 1, 0),
    ({"a": [], "b": ["a"]}, 2, 1),
    ({"a": [], "b": ["a"], "c": ["a"]}, 2, 1),
    ({"a": [], "b": ["a"], "c": ["b"]}, 3, 2),
    ({"a": ["b"], "b": ["a"]}, 2, 2),
    ({"a": ["gone"]}, 2, 1),
    ({"a": [], "b": ["a", "a"]}, 2, 1),
]


@pytest.mark.parametrize(("parents", "boxes", "lines"), CHAINS)
def test_presets_that_extend_the_same_share_a_box(parents: dict[str, list[str]], boxes: int, lines: int) -> None:
    family = draw_family(parents)
    assert (len(family.boxes), len(family.lines)) == (boxes, lines)


def test_no_two_boxes_overlap_and_parents_stand_above() -> None:
    parents = {f"base{number}": [f"base{number // 3}"] if number else [] for number in range(40)}
    parents |= {f"leaf{number}": [f"base{number % 40}", f"base{number % 7}"] for number in range(260)}
    family = draw_family(parents)
    home = {name: box for box in family.boxes for name in box.names}
    assert set(home) == set(parents)
    for place, one in enumerate(family.boxes):
        for other in family.boxes[place + 1 :]:
            apart = (
                one.x + one.width <= other.x
                or other.x + other.width <= one.x
                or one.y + one.height <= other.y
                or other.y + other.height <= one.y
            )
            assert apart, (one, other)
    assert all(home[above].y < home[name].y for name, those in parents.items() for above in those if above != name)
