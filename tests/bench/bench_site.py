"""Weight, loading, search and build times of the pages of 100 and of 1,000 presets.

Run ``python tests/bench/bench_site.py [PAGE.md]``. The store is that of ``bench_engine``; pages are
opened as files in headless Chromium, each measure is the median of five, and of all pages the
worst; making them is processor time. Where a page is named, as
``npuprof/docs/reference/speed.md``, its measured part gets the table, unless other processes kept
the machine busy. Exits 1 where a line is not held.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from bench.bench_engine import make_many
from bench.measured import Load, describe_refusal
from bench.workplace import ROOT, time_command

SIZES = (100, 1_000)
ROUNDS = 5
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
#: What a first visitor opens, and what is there when it can be used.
PAGES = {
    "index.html": "#count:not(:empty)",
    "search.html": ".search button",
    "family.html": "#count:not(:empty)",
    "compare.html": "#compared caption",
    "compatibility.html": "#count:not(:empty)",
    "catalogue.html": "#count:not(:empty)",
    "rules.html": "#count:not(:empty)",
    "presets/job17.html": ".copy",
}
WORDS = ("job1", "job17 training", "nothing", "job", "op_wait_timeout=217")
_SEARCH = """
([id, text]) => {
  const field = document.getElementById(id);
  const start = performance.now();
  field.value = text;
  field.dispatchEvent(new Event("input"));
  document.body.offsetHeight;  // laid out anew
  return performance.now() - start;
}
"""
#: What is measured, its unit, and its line.
ROWS = (
    ("first view, the heaviest page", "kB", 300),
    ("until a page can be used, the slowest", "ms", 1000),
    ("until the list of presets is searched", "ms", 50),
    ("until all is searched", "ms", 50),
    ("what the search of all loads at its first letter", "kB", 0),
    ("making the pages", "s", 0),
)


def main() -> int:
    """Measure and print; return 1 where a line is not held."""
    os.environ["PYTHONPATH"] = str(ROOT)
    load = Load()
    found = [measure(size) for size in SIZES]
    bad = False
    for (title, unit, line), *values in zip(ROWS, *found, strict=True):
        is_met = not line or max(values) <= line
        bad |= not is_met
        shown = " ".join(f"{value:8.1f}" for value in values)
        print(
            f"{shown} {unit:<3} {f'hold {line}' if line else '':<10} "
            f"{'' if is_met else 'NOT HELD  '}{title}"
        )
    refusal = describe_refusal(load.read())
    if len(sys.argv) > 1 and refusal:
        print(refusal)
    elif len(sys.argv) > 1:
        page = Path(sys.argv[1])
        page.write_text(
            re.sub(
                r"(?s)(?<=<!-- measured -->\n).*?(?=<!-- end -->)",
                lambda _: format_measured(found),
                page.read_text(),
            )
        )
    return int(bad)


def measure(size: int) -> list[float]:
    """Return what is measured of a store of so many presets, in the order of ``ROWS``."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="npuprof-bench-") as name:
        folder = make_many(Path(name) / "store", presets=size)
        made = time_command(folder, [sys.executable, "-m", "npuprof", "site", "public"])
        public = folder.resolve() / "public"
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            opened = [_measure_loading(browser, public, path) for path in PAGES]
            weight = max(kilobytes for kilobytes, _ in opened)
            usable = max(milliseconds for _, milliseconds in opened)
            listed = _measure_search(browser, public, "index", "search")
            everything = _measure_search(browser, public, "search", "everything")
            browser.close()
        index = sum((public / f"data/{name}.js").stat().st_size for name in ("search", "catalogue"))
        return [weight, usable, listed, everything, index / 1000, made]


def _measure_loading(browser: Any, public: Path, path: str) -> tuple[float, float]:
    """Return the kB of a page and the median of the milliseconds until it can be used."""
    runs = [_open(browser, public, path) for _ in range(ROUNDS)]
    (weight, _), *_ = runs
    return weight, statistics.median(milliseconds for _, milliseconds in runs)


def _measure_search(browser: Any, public: Path, path: str, field: str) -> float:
    return statistics.median(_search(browser, public, path, field) for _ in range(ROUNDS))


def _open(browser: Any, public: Path, path: str) -> tuple[float, float]:
    """Return how many kB a page loads, and how many milliseconds go by until it can be used."""
    page, loaded = browser.new_page(), set()
    page.on("request", lambda request: loaded.add(request.url.removeprefix("file://")))
    start = time.perf_counter()
    page.goto(f"file://{public}/{path}")
    page.locator(PAGES[path]).first.wait_for(state="attached")
    took = (time.perf_counter() - start) * 1000
    page.close()
    return sum(os.path.getsize(url) for url in loaded) / 1000, took


def _search(browser: Any, public: Path, path: str, field: str) -> float:
    page = browser.new_page()
    page.goto(f"file://{public}/{path}.html")
    page.evaluate(_SEARCH, [field, "first"])
    page.locator("#count:not(:empty)").wait_for(state="attached")
    took = statistics.median(page.evaluate(_SEARCH, [field, text]) for text in WORDS)
    page.close()
    return float(took)


def format_measured(found: list[list[float]]) -> str:
    """Return the measured part of the page: how it was measured, and the table."""
    head = " | ".join(f"{size:,}" for size in SIZES)
    lines = [
        (
            "Written by `tests/bench/bench_site.py`. Pages are opened in headless Chromium, each "
            "measure is the median of five, and of all"
        ),
        (
            "kinds of pages the worst; a first view is a page with its style and its scripts. "
            "Making is processor time of the command."
        ),
        "",
        f"| presets | {head} | line |",
        f"|---|{'---:|' * len(SIZES)}---:|",
    ]
    for (title, unit, line), *values in zip(ROWS, *found, strict=True):
        lines.append(
            f"| {title}, {unit} | {' | '.join(f'{value:.1f}' for value in values)} | {line or ''} |"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    if CHROMIUM is None:
        sys.exit("no Chromium on this machine")
    sys.exit(main())
