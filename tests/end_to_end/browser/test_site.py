"""The pages of a site in Chromium, driven by Playwright and opened as files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support.browsing import CHROMIUM, wait_until
from support.building import REPOSITORY, build_store
from support.repositories import Repo
from support.running import Run

pytest.importorskip("playwright.sync_api")
pytest.importorskip("jinja2")
AXE = REPOSITORY / ".venv/node_modules/axe-core/axe.min.js"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

PAGES = (
    "index.html",
    "compare.html",
    "search.html#q=hccl",
    "family.html",
    "family.html#base%2Fone",
    "compare.html#base/one&leaf3",
    "compatibility.html",
    "catalogue.html",
    "catalogue/options-tensorflow.html",
    "rules.html",
    "presets/leaf3.html",
    "presets/broken.html",
    "docs/index.html",
    "docs/commands.html",
    "docs/sources.html",
)
HOSTILE = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"


def make_site(folder: Path, presets: dict[str, str]) -> Path:
    from npuprof.__main__ import main

    build_store(folder / "profiles", presets)
    assert main(["site", str(folder / "public"), "--store", str(folder / "profiles")]) == 0
    return folder / "public"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    presets = {
        "base/one": (
            'profile.scenario = "training"\n[options]\nhccl_timeout = 1836\ndeterministic = 1\n'
        ),
        "base/two": 'profile.extends = ["base/one"]\n[options]\nhccl_timeout = 1904\n',
        "hostile": (
            f"[profile]\ndescription = '''{HOSTILE}'''\n"
            f"owner = '''{HOSTILE}'''\n[env]\nX = '''{HOSTILE}'''\n"
        ),
        "broken": 'profile.extends = ["nowhere"]\n',
    }
    presets |= {
        f"leaf{number}": f'profile.extends = ["base/two"]\n[options]\nop_wait_timeout = {number}\n'
        for number in range(20)
    }
    return make_site(tmp_path_factory.mktemp("site"), presets)


@pytest.fixture(scope="module")
def own_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the presets of this repository."""
    from npuprof.__main__ import main

    folder = tmp_path_factory.mktemp("own") / "public"
    assert main(["site", str(folder), "--store", str(REPOSITORY / "profiles")]) == 0
    return folder


@pytest.fixture(scope="module")
def shared_page(browser: Any) -> Iterator[Any]:
    """The page that tests share which leave nothing behind.

    The site stores nothing in the browser, and a new page is slow.
    """
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def scripted_page(browser: Any) -> Iterator[Any]:
    """What tests share that put scripts of their own into a page."""
    context = browser.new_context(bypass_csp=True)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(shared_page: Any, site: Path) -> Iterator[Any]:
    """A page that fails the test where anything is asked of a network, or said on the console."""
    messages: list[str] = []
    takers = {
        "console": lambda message: messages.append(message.text),
        "pageerror": lambda error: messages.append(str(error)),
        "request": lambda request: (
            messages.append(request.url) if not request.url.startswith(f"file://{site}/") else None
        ),
    }
    shared_page.goto("about:blank")
    shared_page.set_viewport_size({"width": 1280, "height": 720})
    shared_page.emulate_media(
        media="null", color_scheme="null", reduced_motion="null", forced_colors="null"
    )
    for event, take in takers.items():
        shared_page.on(event, take)
    yield shared_page
    is_local = shared_page.url.startswith("file:")
    stored = (
        shared_page.evaluate("Object.keys(localStorage).concat(Object.keys(sessionStorage))")
        if is_local
        else []
    )
    for event, take in takers.items():
        shared_page.remove_listener(event, take)
    assert messages == []
    assert stored == []


def open_page(page: Any, site: Path, path: str) -> None:
    page.goto(f"file://{site}/{path}")


@pytest.mark.parametrize("path", PAGES)
def test_no_page_is_wider_than_a_phone(page: Any, site: Path, path: str) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    open_page(page, site, path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def find_serious(page: Any, address: str, width: int = 1280, scheme: str = "light") -> list[Any]:
    """Return what axe-core calls serious or critical at an address."""
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.goto(address)
    page.add_script_tag(path=str(AXE))
    found = page.evaluate(
        "axe.run({resultTypes: ['violations']}).then((done) => done.violations.map((one) => "
        "[one.impact, one.id, one.nodes[0].html]))"
    )
    return [violation for violation in found if violation[0] in ("serious", "critical")]


#: Each page in one of two ways to show it, which are as unlike as can be.
ONCE = [
    (path, *((1280, "light"), (360, "dark"))[number % 2])
    for number, path in enumerate(PAGES)
    if not path.startswith(("docs", "catalogue"))
]


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core from npm")
@pytest.mark.parametrize(("path", "width", "scheme"), ONCE)
def test_axe_finds_nothing_serious(
    scripted_page: Any, site: Path, path: str, width: int, scheme: str
) -> None:
    assert find_serious(scripted_page, f"file://{site}/{path}", width, scheme) == []


OVERRIDES = """[[override]]
match = { product = "atlas-a3" }
options = { hccl_timeout = 1904 }
[[override]]
match = { product = "atlas-a3", cann = ">=9.0" }
options = { hccl_timeout = 2000, deterministic = 1 }
"""
MIXLIST = '[options]\nmodify_mixlist = { black-list = { to-add = ["Add", "MatMul"] } }\n'
SIDES = {
    "plain": "[options]\nhccl_timeout = 1836\n",
    "apart": f"[options]\nhccl_timeout = 1836\n{OVERRIDES}",
    "as-there": "[options]\nhccl_timeout = 1904\ndeterministic = 1\n",
    "meant": (
        '[profile]\nscenario = "training"\ncann = ">=8.0"\nproducts = ["atlas-a3", "atlas-a2"]\n'
        "[options]\nhccl_timeout = 1836\n"
    ),
    "meant-too": (
        '[profile]\nscenario = "training"\ncann = ">=8.0"\nproducts = ["atlas-a2", "atlas-a3"]\n'
        "[options]\nhccl_timeout = 1836\n"
    ),
    "shapes": "[options]\ndynamic_dims = [[1, 2], [3, 4]]\n",
    "shapes-as-text": '[options]\ndynamic_dims = "1,2;3,4"\n',
    "lists": MIXLIST,
    "lists-turned": MIXLIST.replace('"Add", "MatMul"', '"MatMul", "Add"'),
    "cleared": (
        "[options]\nhccl_timeout = 1836\n[[override]]\n"
        'match = { product = "atlas-a2" }\nunset = ["hccl_timeout"]\n'
    ),
}
# which two are held against each other, and the rows: setting, where only, one side, the other
COMPARED = {
    "what each is meant for": (
        "plain",
        "meant",
        [
            ("profile.cann", "", "not set", '">=8.0"'),
            ("profile.products", "", "not set", '["atlas-a2", "atlas-a3"]'),
            ("profile.scenario", "", "not set", '"training"'),
        ],
    ),
    "what an override says": (
        "plain",
        "apart",
        [
            ("deterministic", "product atlas-a3, cann >=9.0", "default 0", "1"),
            ("hccl_timeout", "product atlas-a3", "1836", "1904"),
            ("hccl_timeout", "product atlas-a3, cann >=9.0", "1836", "2000"),
        ],
    ),
    "an override that makes the same of it": (
        "apart",
        "as-there",
        [
            ("deterministic", "", "default 0", "1"),
            ("hccl_timeout", "", "1836", "1904"),
            ("hccl_timeout", "product atlas-a3, cann >=9.0", "2000", "1904"),
        ],
    ),
    "an override that clears": (
        "plain",
        "cleared",
        [("hccl_timeout", "product atlas-a2", "1836", "default 1836")],
    ),
    "products in another order": ("meant", "meant-too", []),
    "a text and the structure that it stands for": ("shapes", "shapes-as-text", []),
    "lists whose order means nothing": ("lists", "lists-turned", []),
}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site(tmp_path_factory.mktemp("sides"), SIDES)


def read_comparison(page: Any) -> list[tuple[str, ...]]:
    wait_until(
        page,
        (
            "document.querySelectorAll('#compared caption').length && "
            "!/loading/.test(document.getElementById('count').value)"
        ),
    )
    read = """[...document.querySelectorAll("#compared tbody tr")].flatMap((row) => {
        const key = row.cells[0].firstChild.textContent, cells = [...row.cells].slice(1);
        const columns = cells.map((cell) => [...cell.querySelectorAll(".scopes > div")]);
        const scoped = columns.find((list) => list.length) || [null];
        const scopes = scoped.map((column) => column && column.firstChild.textContent);
        const find = (cell) => cell.querySelector(".value, .quiet").textContent;
        return scopes.map((scope, index) => {
            const values = cells.map((cell, side) => find(columns[side][index] || cell));
            return [key, index ? scope : "", ...values];
        });
    })"""
    # What is the same everywhere is there for what differs somewhere.
    return [tuple(row) for row in page.evaluate(read) if row[1] or len(set(row[2:])) > 1]


@pytest.mark.parametrize("title", COMPARED)
def test_a_comparison_tells_what_diff_tells(shared_page: Any, sides: Path, title: str) -> None:
    from npuprof import diff, open_store

    left, right, rows = COMPARED[title]
    shared_page.goto("about:blank")
    shared_page.goto(f"file://{sides}/compare.html#{left}&{right}")
    assert sorted(read_comparison(shared_page)) == sorted(rows)
    summary = shared_page.locator("#count").inner_text()
    number = len({row[0] for row in rows})
    assert summary == (
        "Nothing differs."
        if not rows
        else f"{number} setting{' differs' if number == 1 else 's differ'}"
    )
    assert shared_page.locator("#compared tbody tr").count() == number  # each setting once
    store = open_store(sides.parent / "profiles")
    assert {change.key for change in diff(store.resolve(left), store.resolve(right))} == {
        row[0] for row in rows if not row[1]
    }


def test_what_puts_results_at_risk_stands_first_in_a_comparison(
    shared_page: Any, sides: Path
) -> None:
    shared_page.goto("about:blank")
    shared_page.goto(f"file://{sides}/compare.html#plain&lists&as-there")
    risks = {"deterministic": 0, "modify_mixlist.black-list.to-add": 0, "hccl_timeout": 1}
    found = [risks[row[0]] for row in read_comparison(shared_page)]
    assert found == sorted(found)
    assert len(found) == 3


def test_who_takes_sides_away_by_keyboard_keeps_the_place(page: Any, site: Path) -> None:
    open_page(page, site, "compare.html#base%2Fone&leaf3&leaf4")
    page.locator("#compared thead th").nth(3).wait_for()
    page.get_by_role("button", name="Remove leaf3").focus()
    for name, after in (("leaf4", "#base%2Fone&leaf4"), ("base/one", "#base%2Fone")):
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/compare.html{after}")
        wait_until(page, f"document.activeElement.getAttribute('aria-label') === 'Remove {name}'")
    page.keyboard.press("Enter")
    wait_until(page, "document.activeElement.id === 'add'")


def test_a_side_whose_file_is_missing_is_told(browser: Any, sides: Path, tmp_path: Path) -> None:
    import shutil

    from npuprof.site.page_data import name_data

    shutil.copytree(sides, tmp_path / "public")
    (tmp_path / "public" / name_data(["plain"])["plain"]).unlink()
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"file://{tmp_path}/public/compare.html#plain&apart&nowhere")
    wait_until(
        page,
        (
            "/plain cannot be read.*nowhere is not in this "
            "site/.test(document.getElementById('count').value)"
        ),
    )
    context.close()


def test_presets_are_added_and_taken_back_and_the_back_button_works(page: Any, site: Path) -> None:
    open_page(page, site, "compare.html")
    for name in ("base/one", "leaf3", "leaf4"):
        page.get_by_label("Add").fill(name)
        page.keyboard.press("Enter")
    page.locator("#compared thead th").nth(3).wait_for()
    page.get_by_role("button", name="Remove leaf4").click()
    assert page.url.endswith("#base%2Fone&leaf3")
    page.go_back()
    page.locator("#compared thead th").nth(3).wait_for()


def test_the_family_of_one_preset_is_drawn_by_its_address_and_by_search(
    page: Any, site: Path
) -> None:
    open_page(page, site, "family.html#leaf3")
    assert page.locator("#count").inner_text() == "2 above, 0 below"
    assert page.locator("#around a").evaluate_all(
        "(all) => all.map((one) => one.dataset.name)"
    ) == ["base/one", "base/two", "leaf3"]
    assert not page.locator("#family").is_visible()
    page.get_by_label("Search").fill("base/one")
    assert page.locator("#count").inner_text() == "0 above, 21 below"
    assert page.locator("#around a").count() == 22
    page.get_by_label("Search").fill("leaf1")
    assert (
        page.locator("#count").inner_text() == "2 above, 0 below"
    )  # a whole name, though others begin like it
    page.get_by_label("Search").fill("leaf")
    assert page.locator("#count").inner_text() == "20 found"
    assert page.locator("#family a.found").count() == 20
    page.get_by_role("button", name="Show all").click()
    assert page.locator("#family a.away").count() == 0
    page.locator('#family a[data-name="leaf3"]').click()
    assert page.url.endswith("presets/leaf3.html")
    page.go_back()
    assert page.locator("#family").is_visible()


def test_boxes_of_one_family_do_not_overlap_and_fit_the_window(page: Any, site: Path) -> None:
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        for name in ("base%2Fone", "broken"):
            open_page(page, site, "index.html")
            open_page(page, site, f"family.html#{name}")
            boxes = page.locator("#around rect").evaluate_all(
                "(all) => all.map((one) => ['x', 'y', 'width', 'height'].map((name) => "
                "Number(one.getAttribute(name))))"
            )
            assert boxes
            assert all(x >= 0 and x + wide <= width for x, _, wide, _ in boxes)
            for place, (x, y, wide, high) in enumerate(boxes):
                for left, top, across, down in boxes[place + 1 :]:
                    assert (
                        x + wide <= left or left + across <= x or y + high <= top or top + down <= y
                    )


def test_two_releases_are_compared_by_what_they_read(page: Any, site: Path) -> None:
    from npuprof import catalog
    from npuprof.catalog import releases

    known = releases.load_releases()
    first, last = known[5], known[-1]
    open_page(page, site, "catalogue.html")
    page.get_by_label("From CANN").select_option(first)
    page.get_by_label("To CANN").select_option(last)
    states = {
        name: option.states
        for name in catalog.record_names()
        if (option := catalog.find_option(name)) is not None
    }
    fresh = sorted(name for name, text in states.items() if text[5] == "." and text[-1] == "Y")
    assert fresh
    assert page.locator("#net dd").first.inner_text() == ", ".join(fresh)
    status = page.locator("#told").inner_text()
    page.get_by_label("Read by CANN").select_option(first)
    assert page.url.endswith(f"#release={first}&from={first}&to={last}")
    page.reload()
    assert page.locator("#told").inner_text() == status
    assert page.get_by_label("From CANN").input_value() == first
    open_page(page, site, f"catalogue/options-tensorflow.html#release={first}")
    shown = page.locator("#catalogue tr[id]:visible").evaluate_all(
        "(all) => all.map((one) => one.id)"
    )
    assert sorted(shown) == sorted(name for name, text in states.items() if text[5] != ".")


def test_what_is_written_as_code_can_be_copied(browser: Any, site: Path) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    open_page(page, site, "presets/leaf3.html")
    for label, text in (
        ("Copy session", page.locator(".tabs pre").first.inner_text()),
        ("Copy digest", page.locator("[data-copy]").get_attribute("title")),
    ):
        button = page.get_by_role("button", name=label, exact=True)
        button.press("Enter")
        wait_until(
            page,
            (
                f"[...document.querySelectorAll('[aria-label={json.dumps(label)}]')].some((one) "
                "=> one.textContent === 'Copied')"
            ),
        )
        page.locator("[role=status]", has_text="Copied").wait_for(
            state="attached"
        )  # for who does not see the button
        assert page.evaluate("navigator.clipboard.readText()") == text
        assert "op_wait_timeout" in text or len(text) == 64
    context.close()


def test_targets_are_tabs_that_arrows_walk_and_the_one_of_the_scenario_is_open(
    browser: Any, tmp_path: Path
) -> None:
    make_site(
        tmp_path,
        {
            "om": '[profile]\nscenario = "offline-inference"\n[options]\nop_debug_level = 1\n',
            **SIDES,
        },
    )
    context = browser.new_context()
    page = context.new_page()
    chosen = "[role=tab][aria-selected=true]"
    for name, target in (("om", "atc"), ("plain", "session")):
        page.goto(f"file://{tmp_path}/public/presets/{name}.html")
        assert page.locator(f"{chosen}:visible").all_inner_texts() == [target]
    page.get_by_text("other targets").click()
    others = page.get_by_role("tablist", name="Other targets")
    tabs = others.get_by_role("tab").all_inner_texts()
    others.get_by_role("tab").first.focus()
    for key, place in (
        ("ArrowRight", 1),
        ("ArrowLeft", 0),
        ("ArrowLeft", -1),
        ("ArrowRight", 0),
        ("End", -1),
        ("Home", 0),
    ):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.textContent") == tabs[place]
        assert others.locator(chosen).all_inner_texts() == [tabs[place]]
        shown = page.locator(".others [role=tabpanel]:visible")
        assert shown.count() == 1
        assert shown.get_attribute("aria-labelledby") == page.evaluate("document.activeElement.id")
    context.close()


def test_kinds_and_frameworks_of_the_own_presets_are_badges(
    shared_page: Any, own_site: Path
) -> None:
    shared_page.goto(f"file://{own_site}/index.html")
    assert shared_page.locator("#presets h2").all_inner_texts() == [
        "Models",
        "Models in serving",
        "Debugging",
        "Bases",
        "Mix-ins",
    ]
    badges = {
        "bert-offline": ["offline-inference", "ATC"],
        "mixins/torch-low-memory": ["torch_npu"],
    }
    assert badges
    for name, label in badges.items():
        assert (
            shared_page.locator(f"#presets tr:has(a:text-is('{name}')) td")
            .first.locator("i, b")
            .all_inner_texts()
            == label
        )
    shared_page.get_by_label("Framework").select_option("torch_npu")
    assert "bert-training" not in shared_page.locator("#presets").inner_text()


def test_a_phone_gets_results_before_filters_and_lists_in_place_of_matrices(
    browser: Any, own_site: Path
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    for path in ("index.html", "catalogue/options-tensorflow.html"):
        page.goto(f"file://{own_site}/{path}")
        assert not page.locator(".filters select").first.is_visible()
        assert page.locator("tbody tr:not(.group)").first.bounding_box()["y"] < 500
    page.goto(f"file://{own_site}/compatibility.html")
    assert page.locator(".matrix:visible").count() == 0
    assert (
        page.locator(".rows li:visible", has_text="bert-offline")
        .last.inner_text()
        .split("\n")[1]
        .startswith("not meant NP407 for ascend-950, atlas-a3")
    )
    page.goto(f"file://{own_site}/compare.html#bert-training&resnet50-training")
    page.locator("#compared tbody tr").first.wait_for()
    row = page.locator("#compared tbody tr").first.locator("td")
    cells = row.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().toJSON())")
    assert len({cell["x"] for cell in cells}) == 1
    assert cells[0]["bottom"] <= cells[1]["top"]
    assert "resnet50-training" in page.locator("#compared td").nth(1).evaluate(
        "(one) => getComputedStyle(one, '::before').content"
    )
    page.set_viewport_size({"width": 1280, "height": 800})
    assert (
        len(set(row.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().y)"))) == 1
    )
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_graph_opens_as_wide_as_the_window_with_whole_names_and_is_zoomed(
    browser: Any, own_site: Path, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(f"file://{own_site}/family.html")
    measured = "Number(document.getElementById('family').getAttribute('width'))"
    room = page.locator(".picture").evaluate("(one) => one.clientWidth")
    opened = page.evaluate(measured)
    letters = page.locator("#family text").first.evaluate("(one) => 12 * one.getScreenCTM().a")
    assert letters > 10
    assert room * 0.8 < opened <= room or (width == 390 and letters < 11)
    names = page.locator("#family a").evaluate_all(
        "(all) => all.map((one) => [one.dataset.name, one.querySelector('text').textContent])"
    )
    assert all(name == text for name, text in names)
    outside = """(labels) => labels.filter((label) => {
        const text = label.getBBox();
        const box = label.closest("g").querySelector("rect").getBBox();
        return text.x < box.x || text.x + text.width > box.x + box.width;
    }).length"""
    assert page.locator("#family text").evaluate_all(outside) == 0
    page.get_by_role("button", name="Zoom in").press("Enter")
    assert page.evaluate(measured) == pytest.approx(opened * 1.25, abs=1)
    page.get_by_role("button", name="Zoom out").press("Enter")
    page.get_by_role("button", name="Zoom out").press("Enter")
    assert page.evaluate(measured) == pytest.approx(opened / 1.25, abs=1)
    page.get_by_role("button", name="Fit").press("Enter")
    assert room * 0.8 < page.evaluate(measured) <= room
    page.close()


def test_the_graph_shows_every_edge_with_a_legend_and_lights_those_of_a_preset(
    shared_page: Any, own_site: Path
) -> None:
    from npuprof import open_store

    shared_page.goto("about:blank")
    shared_page.goto(f"file://{own_site}/family.html")
    store = open_store(REPOSITORY / "profiles")
    edges = {
        (parent.partition("@")[0], name)
        for name in store.names()
        for parent in store.resolve(name).profile.extends
    }
    read = """(paths) => {
        const names = [...document.querySelectorAll("#family a")].map((one) => one.dataset.name);
        return paths.filter((one) => one.checkVisibility()).flatMap((one) => (
            one.dataset.down.split(" ").map((down) => [names[one.dataset.up], names[down]])));
    }"""
    drawn = shared_page.locator("#family path").evaluate_all(read)
    assert {tuple(edge) for edge in drawn} == edges
    assert len(drawn) == len(edges)
    legend = shared_page.locator(".legend").inner_text()
    assert all(text in legend for text in ("first parent", "further parents", "error", "warning"))
    shared_page.locator('#family a[data-name="bert-bf16-cluster-training"]').focus()
    lit = shared_page.locator("#family path.lit").evaluate_all(read)
    assert {tuple(edge) for edge in lit} == {
        edge for edge in edges if "bert-bf16-cluster-training" in edge
    }


def test_the_colours_of_the_family_are_said_in_words_and_stand_in_its_address(
    page: Any, site: Path
) -> None:
    open_page(page, site, "family.html")
    labels = page.locator("#family a").evaluate_all(
        "(all) => all.map((one) => one.querySelector('title').textContent)"
    )
    assert {"base/one, training", "broken, broken"} <= set(labels)
    page.get_by_label("Colour by").select_option("scenario")
    assert page.url.endswith("#colour=scenario")
    page.get_by_label("Search").fill("leaf3")
    page.get_by_label("Search").press("Enter")
    page.wait_for_url("**/family.html#leaf3&colour=scenario")
    page.reload()
    assert page.locator("#around").get_attribute("data-colour") == "scenario"
    page.go_back()
    wait_until(
        page,
        (
            "!document.getElementById('around') && "
            "document.getElementById('family').dataset.colour === 'scenario'"
        ),
    )


def test_the_catalogue_is_filtered_by_what_presets_set(page: Any, site: Path) -> None:
    open_page(page, site, "catalogue/options-tensorflow.html#here=set")
    shown = page.locator("#catalogue tr[id]:visible").evaluate_all(
        "(all) => all.map((one) => one.id)"
    )
    assert shown == ["deterministic", "hccl_timeout", "op_wait_timeout"]
    page.get_by_label("In presets").select_option("not set")
    assert (
        page.locator("#catalogue tbody tr:visible", has_text="hccl_timeout")
        .filter(has_text="in 2")
        .count()
        == 0
    )


@pytest.mark.parametrize(
    "path",
    [
        "index.html",
        "compare.html#base/one&leaf3",
        "family.html",
        "catalogue.html",
        "presets/leaf3.html",
    ],
)
def test_text_is_as_big_as_the_reader_wants_it(page: Any, site: Path, path: str) -> None:
    page.set_viewport_size({"width": 640, "height": 800})
    open_page(page, site, path)
    sizes = (
        "[...document.querySelectorAll('p, td, dd, h1')].slice(0, 50).map((one) => "
        "parseFloat(getComputedStyle(one).fontSize))"
    )
    before = page.evaluate(sizes)
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.evaluate(sizes) == [2 * size for size in before]
    assert page.evaluate("document.documentElement.scrollWidth") <= 640


@pytest.mark.parametrize(
    "path", ["family.html", "compatibility.html", "compare.html#base%2Fone&leaf3&leaf4&leaf5"]
)
def test_what_is_wide_on_a_screen_fits_a_printed_page(page: Any, site: Path, path: str) -> None:
    page.set_viewport_size({"width": 1020, "height": 720})
    open_page(page, site, path)
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1020


@pytest.mark.parametrize(
    "path",
    [
        "search.html#q=leaf1",
        "family.html#leaf3",
        "compare.html#base/one&leaf3",
        "presets/leaf3.html",
    ],
)
def test_all_that_can_be_used_is_reached_by_the_tab_key_and_shows_that(
    page: Any, site: Path, path: str
) -> None:
    open_page(page, site, path)
    page.wait_for_timeout(200)
    usable = page.evaluate(
        """() => {
            const selector = "a[href], button, input, select, summary, [tabindex='0']";
            const usable = [...document.querySelectorAll(selector)].filter(
                (element) => element.checkVisibility() && element.tabIndex >= 0
            );
            usable.forEach((element, index) => { element.dataset.place = index; });
            return usable.length;
        }"""
    )
    seen, unmarked = set(), []
    for _ in range(usable + 12):
        page.keyboard.press("Tab")
        place, outline = page.evaluate(
            "() => { const one = document.activeElement; return [one.dataset.place || '', "
            "getComputedStyle(one).outlineStyle]; }"
        )
        seen.add(place)
        if place and outline == "none":
            unmarked.append(page.evaluate("document.activeElement.outerHTML"))
    assert {str(number) for number in range(usable)} <= seen
    assert unmarked == []


def test_the_link_to_the_content_leaves_the_choice_in_the_address(page: Any, site: Path) -> None:
    for path in ("index.html#q=leaf3", "family.html#leaf3", "compare.html#base/one&leaf3"):
        open_page(page, site, "rules.html")
        open_page(page, site, path)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        assert page.url.endswith(path)


CHOICES = [
    ("index.html#q=leaf1", 11, "11 of 24"),
    ("index.html#q=LEAF%20training", 20, "20 of 24"),
    ("index.html#found=broken", 1, "1 of 24"),
    ("index.html#found=-", 0, ""),
    ("catalogue/flags-atc.html#q=soc_version", 2, ""),
    ("catalogue.html#kind=option&q=hccl_timeout", 1, ""),
    ("rules.html#severity=error&q=NP001", 1, ""),
    ("compatibility.html#q=leaf3", 2, "1 of 23"),
    ("index.html#kind=nothing&q=%", 0, "0 of 24"),
]


@pytest.mark.parametrize(("path", "rows", "message"), CHOICES)
def test_what_is_chosen_on_a_list_stands_in_its_address(
    page: Any, site: Path, path: str, rows: int, message: str
) -> None:
    open_page(page, site, path)
    shown = page.locator("table tbody tr:not(.group):visible, #board .rows > li:visible")
    assert rows == 0 or shown.count() == rows
    assert not message or page.locator("#count").inner_text() == message
    page.locator("#search").fill("leaf7")
    assert "q=leaf7" in page.evaluate("location.href")
    page.keyboard.press("Escape")
    assert page.locator("#search").input_value() == ""
    assert "q=" not in page.evaluate("location.href")
    page.get_by_role("button", name="Clear").click()
    assert "=" not in page.evaluate("location.hash")


def test_names_of_a_long_list_are_found_one_by_one(shared_page: Any, tmp_path: Path) -> None:
    presets = {f"job{number}": "[options]\nhccl_timeout = 1836\n" for number in range(45)}
    folder = make_site(tmp_path, presets)
    shared_page.goto("about:blank")
    shared_page.goto(f"file://{folder}/compatibility.html#q=job1")
    assert shared_page.locator("#count").inner_text() == "11 of 45"
    names = shared_page.locator(".judged .names").first.inner_text().split("\n")[1]
    assert names.strip(" ,").split(", ") == ["job1", *(f"job1{digit}" for digit in range(10))]
    shared_page.locator(".judged .names a:visible").first.click()
    assert shared_page.url.endswith("search.html#q=job1")


SEARCHES = [
    ("hccl_timeout", ["settings", "values"], "hccl_timeout = 1904"),
    ("op_wait_timeout=7", ["values"], "leaf7"),
    ("leaf13", ["presets"], "leaf13"),
    ("<script>", ["presets", "values"], HOSTILE),
    ("zzz qqq vvv", [], ""),
    ("--op-wait-timeout=7", ["values"], "leaf7"),
    ("error: broken extends nowhere", ["findings"], "broken"),
    ("job: broken extends nowhere, see log", ["closest matches: findings"], "broken"),
]


@pytest.mark.parametrize(("query", "kinds", "message"), SEARCHES)
def test_one_search_answers_for_presets_values_settings_and_codes(
    page: Any, site: Path, query: str, kinds: list[str], message: str
) -> None:
    open_page(page, site, "search.html")
    page.keyboard.press("/")
    page.keyboard.type(query)
    page.locator("#count:not(:empty)").wait_for(state="attached")
    summary = page.locator("#count").inner_text()
    assert all(f"{kind}: " in summary for kind in kinds)
    assert kinds or summary == "nothing found"
    assert message in page.locator("#hits").inner_text()
    open_page(page, site, "rules.html")
    page.go_back()
    page.locator("#count:not(:empty)").wait_for(state="attached")
    assert page.locator("#count").inner_text() == summary


def test_all_text_is_there_without_javascript(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for path, message in (
        ("index.html", "leaf19"),
        ("presets/leaf3.html", "1904"),
        ("family.html", "extends base/two"),
        ("compare.html", "npuprof diff"),
    ):
        open_page(page, site, path)
        assert message in page.inner_text("body"), path
    context.close()


def test_a_page_prints_with_what_is_folded_open(browser: Any, site: Path) -> None:
    page = browser.new_page()
    open_page(page, site, "presets/leaf3.html")
    closed = page.locator("details:not([open]) pre").first
    assert not closed.is_visible()
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert closed.evaluate(
        "(one) => one.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true })"
    )
    assert closed.bounding_box()["height"] > 20
    page.close()


@pytest.mark.accepted
def test_the_picture_of_the_documentation_is_that_of_a_page(
    browser: Any, own_site: Path, request: pytest.FixtureRequest
) -> None:
    picture = REPOSITORY / "npuprof/docs/reference/site.png"
    page = browser.new_page(viewport={"width": 1100, "height": 640})
    open_page(page, own_site, "presets/bert-large-cluster-training.html")
    page.locator("#settings").evaluate("(heading) => heading.scrollIntoView()")
    taken = page.screenshot()
    page.close()
    if request.config.getoption("--update-golden"):
        picture.write_bytes(taken)
    # Letters are drawn differently by each machine: held are the format and the size, width and
    # height in the head of the file.
    assert picture.read_bytes()[:24] == taken[:24]
    assert "](site.png)" in (REPOSITORY / "npuprof/docs/reference/commands.md").read_text(
        encoding="utf-8"
    )


SINGLE = {
    "hostile presets": ["diff", "hostile", "base/two", "--format", "html"],
    "several presets": ["diff", "hostile", "leaf3", "leaf4", "leaf5", "--format", "html"],
}


@pytest.mark.parametrize("title", SINGLE)
def test_a_single_page_has_its_style_fits_the_window_and_is_clean(
    browser: Any, scripted_page: Any, site: Path, tmp_path: Path, title: str
) -> None:
    from npuprof.__main__ import main

    verb, *rest = SINGLE[title]
    assert main(
        [verb, "--store", str(site.parent / "profiles"), "-o", str(tmp_path / "page.html"), *rest]
    ) in (0, 1)
    for scheme, width in (("light", 1280), ("dark", 360)):
        context = browser.new_context(
            color_scheme=scheme, bypass_csp=False, viewport={"width": width, "height": 800}
        )
        page, said = context.new_page(), []
        page.on("console", lambda message, said=said: said.append(message.text))
        page.goto(f"file://{tmp_path}/page.html")
        assert said == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("getComputedStyle(document.body).color") != "rgb(0, 0, 0)"
        assert page.locator("script, img").count() == 0
        context.close()
    if AXE.exists():
        assert find_serious(scripted_page, f"file://{tmp_path}/page.html") == []


def test_revisions_versions_records_logs_and_compositions_are_compared_by_a_link(
    browser: Any, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.logged import write_run

    repo.commit(
        {
            "job": '[options]\nhccl_timeout = 600\nprecision_mode = "force_fp16"\n',
            "mix": "[options]\ndeterministic = 1\n",
        }
    )
    monkeypatch.chdir(repo.folder)
    assert run("release", "job", "1.0.0").code == 0
    repo.commit(
        {"job": '[options]\nhccl_timeout = 900\nprecision_mode = "force_fp16"\n'}, message="two"
    )
    arguments = ["run", "job", "--record", "runs", "--set", "hccl_timeout=700", "--", "true"]
    subprocess.run(
        [sys.executable, "-m", "npuprof", *arguments],
        check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # it forks
    (repo.folder / "run.log").write_text(
        write_run({"ge.exec.precision_mode": "force_fp32", "precision_mode": "force_fp32"}, pid=7)
    )
    (record,) = (path.relative_to(repo.folder) for path in repo.folder.glob("runs/*.run.json"))
    sides = {
        str(record): "700 s",
        "job@HEAD~1": "600 s",
        "job@1.0.0": "600 s",
        "job+mix": "900 s",
        "run.log": "default 1836",
        "./profiles/mix.toml": "default 1836",
    }
    arguments = [argument for side in sides for argument in ("--also", side)]
    result = run("site", "public", *arguments)
    assert result.code == 0, result.err
    page = browser.new_page()
    fragment = "&".join(quote(side, safe="") for side in ("job", *sides))
    page.goto(f"file://{repo.folder}/public/compare.html#{fragment}")
    page.locator("#compared thead th").nth(len(sides) + 1).wait_for()
    assert page.locator("#compared thead th").all_inner_texts() == ["setting", "job", *sides]
    row = page.locator("#compared tbody tr").filter(has_text="hccl_timeout")
    assert [text.split("\n")[0] for text in row.locator("td").all_inner_texts()] == [
        "900 s",
        *sides.values(),
    ]
    message = page.locator("#compared").inner_text()
    assert str(repo.folder) not in message
    assert '"force_fp32"' in message
    page.close()
    refused = run("site", "other", "--also", "nothere")
    assert refused.code == 2
    assert "NP008" in refused.err
    assert not Path("other").exists()
