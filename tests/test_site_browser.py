"""The pages of a site in a real browser: Chromium of the machine, driven by Playwright, opened as files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from building import REPOSITORY, build_store

playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("jinja2")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = REPOSITORY / ".venv/node_modules/axe-core/axe.min.js"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]

PAGES = ("index.html", "family.html", "compare.html#base/one&leaf3", "boards.html", "catalogue.html", "rules.html", "presets/leaf3.html")
PAGES += ("docs/index.html", "docs/commands.html", "docs/sources.html")
HOSTILE = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from npuprof.__main__ import main

    folder = tmp_path_factory.mktemp("site")
    presets = {
        "base/one": 'profile.scenario = "training"\n[options]\nhccl_timeout = 1836\ndeterministic = 1\n',
        "base/two": 'profile.extends = ["base/one"]\n[options]\nhccl_timeout = 1904\n',
        "hostile": f"[profile]\ndescription = '''{HOSTILE}'''\nowner = '''{HOSTILE}'''\n[env]\nX = '''{HOSTILE}'''\n",
        "broken": 'profile.extends = ["nowhere"]\n',
    }
    presets |= {f"leaf{number}": f'profile.extends = ["base/two"]\n[options]\nop_wait_timeout = {number}\n' for number in range(20)}
    build_store(folder / "profiles", presets)
    assert main(["site", str(folder / "public"), "--store", str(folder / "profiles")]) == 0
    return folder / "public"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def page(browser: Any, site: Path) -> Iterator[Any]:
    """A page that fails the test where anything is asked of a network, or said on the console."""
    context = browser.new_context()
    made = context.new_page()
    said: list[str] = []
    made.on("console", lambda message: said.append(message.text))
    made.on("pageerror", lambda error: said.append(str(error)))
    made.on("request", lambda request: said.append(request.url) if not request.url.startswith(f"file://{site}/") else None)
    yield made
    context.close()
    assert said == []


def open_page(page: Any, site: Path, path: str) -> None:
    page.goto(f"file://{site}/{path}")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("width", [1280, 360])
def test_no_page_is_wider_than_the_window(page: Any, site: Path, path: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    open_page(page, site, path)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core from npm")
@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, site: Path, path: str, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    open_page(page, site, path)
    page.add_script_tag(path=str(AXE))
    found = page.evaluate("axe.run().then((done) => done.violations.map((one) => [one.impact, one.id, one.nodes[0].html]))")
    context.close()
    assert [one for one in found if one[0] in ("serious", "critical")] == []


@pytest.mark.parametrize(("text", "left"), [("", 24), ("leaf1", 11), ("LEAF13", 1), ("leaf training", 20), ("nothing at all", 0)])
def test_search_leaves_what_holds_all_words(page: Any, site: Path, text: str, left: int) -> None:
    open_page(page, site, "index.html")
    page.keyboard.press("/")
    page.keyboard.type(text)
    assert page.locator("#presets tbody tr:visible").count() == left


def test_a_link_to_a_comparison_shows_only_what_differs(page: Any, site: Path) -> None:
    open_page(page, site, "compare.html#base%2Fone&leaf3")
    rows = page.locator("#compared tbody tr")
    rows.first.wait_for()
    assert [row.split("\n")[0] for row in rows.all_inner_texts()] == ["hccl_timeout", "op_wait_timeout"]
    page.get_by_label("what is the same as well").check()
    assert rows.count() == 3


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


def test_the_family_of_one_preset_is_focused_by_its_address_and_by_search(page: Any, site: Path) -> None:
    open_page(page, site, "family.html#leaf3")
    assert page.locator("#count").inner_text() == "2 above, 0 below"
    assert page.locator("#family a.away").count() == 22  # nowhere is one
    page.get_by_label("Search").fill("base/one")
    assert page.locator("#count").inner_text() == "0 above, 21 below"
    page.get_by_role("button", name="Show all").click()
    assert page.locator("#family a.away").count() == 0
    page.locator('#family a[data-name="leaf3"]').click()
    assert page.url.endswith("presets/leaf3.html")


def test_the_catalogue_is_filtered(page: Any, site: Path) -> None:
    open_page(page, site, "catalogue.html")
    every = page.locator("#catalogue tbody tr:visible").count()
    page.get_by_label("Kind").select_option("flag")
    flags = page.locator("#catalogue tbody tr:visible").count()
    page.get_by_label("Search").fill("soc_version")
    assert 0 < page.locator("#catalogue tbody tr:visible").count() < flags < every


def test_two_releases_are_compared_by_what_they_read(page: Any, site: Path) -> None:
    from npuprof import catalog
    from npuprof.catalog import releases

    known = releases.load_releases()
    first, last = known[5], known[-1]
    open_page(page, site, "catalogue.html")
    page.get_by_label("From CANN").select_option(first)
    page.get_by_label("To CANN").select_option(last)
    states = {name: option.states for name in catalog.record_names() if (option := catalog.find_option(name)) is not None}
    fresh = sorted(name for name, text in states.items() if text[5] == "." and text[-1] == "Y")
    assert fresh
    assert page.locator("#net dd").first.inner_text() == ", ".join(fresh)


def test_what_is_written_as_code_can_be_copied(browser: Any, site: Path) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    open_page(page, site, "presets/leaf3.html")
    first = page.locator("details").first
    first.locator("summary").click()
    first.get_by_role("button").click()
    page.get_by_text("Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == first.locator("pre").inner_text()
    assert "op_wait_timeout" in copied
    context.close()


def test_all_is_reached_by_keyboard(page: Any, site: Path) -> None:
    open_page(page, site, "index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id"))
    assert {"Family", "Catalogue", "search", "base/one"} <= seen


def test_the_family_is_walked_and_a_preset_opened_by_keyboard_alone(page: Any, site: Path) -> None:
    open_page(page, site, "family.html")
    page.get_by_label("Search").focus()
    page.keyboard.type("leaf3")
    assert page.locator("#count").inner_text() == "2 above, 0 below"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.dataset.name || ''")
        reached.add(name)
        if name == "leaf3":
            break
    assert {"base/one", "base/two", "leaf3"} <= reached
    page.keyboard.press("Enter")
    page.wait_for_url("**/presets/leaf3.html")


@pytest.mark.parametrize("path", ["presets/hostile.html", "index.html", "compare.html#hostile&base%2Fone", "family.html"])
def test_what_somebody_wrote_is_shown_and_never_run(page: Any, site: Path, path: str) -> None:
    open_page(page, site, path)
    page.wait_for_timeout(100)
    assert page.title() != "run"
    assert page.locator("img").count() == 0
    if path.startswith(("presets", "index")):
        assert HOSTILE in page.inner_text("body")


def test_all_text_is_there_without_javascript(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for path, said in (
        ("index.html", "leaf19"),
        ("presets/leaf3.html", "1904"),
        ("family.html", "extends base/two"),
        ("compare.html", "npuprof diff"),
    ):
        open_page(page, site, path)
        assert said in page.inner_text("body"), path
    context.close()


def test_a_page_prints(browser: Any, site: Path) -> None:
    page = browser.new_page()
    open_page(page, site, "presets/leaf3.html")
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    page.close()


@pytest.mark.accepted
def test_the_picture_of_the_documentation_is_that_of_a_page(browser: Any, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    from npuprof.__main__ import main

    picture = REPOSITORY / "npuprof/docs/site.png"
    assert main(["site", str(tmp_path / "public"), "--store", str(REPOSITORY / "profiles")]) == 0
    page = browser.new_page(viewport={"width": 1100, "height": 640})
    open_page(page, tmp_path / "public", "presets/bert-large-cluster-training.html")
    page.locator("#settings").evaluate("(heading) => heading.scrollIntoView()")
    taken = page.screenshot()
    page.close()
    if request.config.getoption("--update-golden"):
        picture.write_bytes(taken)
    # Letters are drawn differently by each machine: held are the format and the size, width and height in the head of the file.
    assert picture.read_bytes()[:24] == taken[:24]
    assert "](site.png)" in (REPOSITORY / "npuprof/docs/commands.md").read_text(encoding="utf-8")
