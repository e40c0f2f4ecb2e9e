"""The page of ``scan --format html`` in Chromium: what it shows, its filter, hostile texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support import hostile
from support.browsing import CHROMIUM
from support.building import REPOSITORY
from support.running import Run

pytest.importorskip("playwright.sync_api")
AXE = REPOSITORY / ".venv/node_modules/axe-core/axe.min.js"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

SCRIPTS = {
    "run.sh": "export HCCL_CONECT_TIMEOUT=600\nexport TASK_QUEUE_ENABLE=7\n",
    "train.py": 'custom_op.parameter_map["precison_mode"].s = b"x"\n',
    "fine.sh": "export TASK_QUEUE_ENABLE=1\n",
}


@pytest.fixture
def scanned(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page of a folder with faults in two of three files."""
    folder = tmp_path / "tree"
    folder.mkdir()
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    assert run("scan", ".", "--format", "html", "-o", "../page.html").code == 1
    return tmp_path / "page.html"


def open_page(browser: Any, path: Path, **options: Any) -> tuple[Any, list[str]]:
    """Return a page in a context of its own, and what it said or asked for."""
    page = browser.new_context(**options).new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: messages.append(dialog.message))
    page.on("request", lambda request: messages.append(request.url))
    page.goto(f"file://{path}")
    assert messages.pop(0) == f"file://{path}"
    return page, messages


def list_codes(page: Any) -> list[str]:
    return list(page.locator(".findings > li:visible a").all_inner_texts())


def test_findings_stand_by_file_with_line_caret_and_the_text_of_their_rule(
    browser: Any, scanned: Path
) -> None:
    page, messages = open_page(browser, scanned)
    assert page.locator("main > section > h2").all_inner_texts() == ["run.sh 2", "train.py 1"]
    assert page.locator("pre").first.inner_text() == (
        "1 | export HCCL_CONECT_TIMEOUT=600\n  |        ^"
    )
    assert "did you mean 'HCCL_CONNECT_TIMEOUT'?" in page.locator(".findings").first.inner_text()
    assert "3 files scanned: 1 error, 2 warnings" in page.locator(".lead").inner_text()
    page.get_by_role("link", name="NP206").click()
    assert page.url.endswith("#NP206")
    assert "unknown environment variable" in page.locator("#NP206").inner_text()
    assert messages == []
    page.context.close()


def test_findings_are_filtered_by_text_severity_and_code(browser: Any, scanned: Path) -> None:
    page, messages = open_page(browser, scanned)
    everything = list_codes(page)
    assert sorted(everything) == ["NP201", "NP203", "NP206"]
    page.keyboard.press("/")
    page.keyboard.type("run.sh queue")
    assert list_codes(page) == ["NP203"]
    assert page.locator("output").inner_text() == "1 of 3"
    assert page.locator("main > section:visible > h2").first.inner_text() == "run.sh 2"
    page.keyboard.press("Escape")
    assert list_codes(page) == everything
    page.get_by_label("Severity").select_option("warning")
    assert list_codes(page) == ["NP206", "NP201"]
    page.get_by_label("Severity").select_option("")
    page.get_by_label("Code").select_option("NP201")
    assert list_codes(page) == ["NP201"]
    assert messages == []
    page.context.close()


def test_the_page_is_whole_without_javascript(browser: Any, scanned: Path) -> None:
    page, messages = open_page(browser, scanned, java_script_enabled=False)
    assert len(list_codes(page)) == 3
    assert not page.locator("form").is_visible()
    assert messages == []
    page.context.close()


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core from npm")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_and_the_page_fits_the_window(
    browser: Any, scanned: Path, width: int, scheme: str
) -> None:
    page, _ = open_page(
        browser,
        scanned,
        bypass_csp=True,
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
    )
    page.add_script_tag(path=str(AXE))
    found = page.evaluate(
        "axe.run({resultTypes: ['violations']}).then((done) => done.violations.map((one) => "
        "[one.impact, one.id, one.nodes[0].html]))"
    )
    assert [one for one in found if one[0] in ("serious", "critical")] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


def test_hostile_names_and_lines_run_nothing_and_are_shown(
    browser: Any, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for number, text in enumerate(hostile.TEXTS):
        line = "".join(text.split("\n"))
        name = re.sub(r"[/\0]", "", line)[:60]
        content = f"export TASK_QUEUE_ENABLE=7 # {line}\nexport HCCL_CONECT_{number}='{line}'\n"
        (folder / f"{number}{name}.sh").write_text(content, errors="surrogatepass")
    assert run("scan", ".", "--format", "html", "-o", "../page.html").code == 1
    page, messages = open_page(browser, tmp_path / "page.html")
    assert page.locator("main > section > h2").count() >= len(hostile.TEXTS)
    assert page.locator("main img, main script").count() <= 1  # its own script
    assert page.title() == "Findings"
    assert messages == []
    page.context.close()


def test_a_tree_without_findings_has_a_page(
    browser: Any, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fine.sh").write_text(SCRIPTS["fine.sh"])
    monkeypatch.chdir(tmp_path)
    assert run("scan", "fine.sh", "--format", "html", "-o", "page.html").code == 0
    page, messages = open_page(browser, tmp_path / "page.html")
    assert "1 file scanned" in page.locator(".lead").inner_text()
    assert page.locator("h2").count() == 0
    assert not page.locator("form").is_visible()
    assert messages == []
    page.context.close()
