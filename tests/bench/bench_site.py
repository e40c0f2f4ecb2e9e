"""The pages of 1,000 presets: weight, time until they can be used, and until a search answers, in headless Chromium.

Run ``python tests/bench/bench_site.py``. The store is that of ``bench_engine``; pages are opened as files, each measure is the
median of nine. Exits 1 where a line is not held.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bench_engine

PRESETS = 1_000
ROUNDS = 9
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_SEARCH = """
(text) => {
  const field = document.getElementById("search");
  const start = performance.now();
  field.value = text;
  field.dispatchEvent(new Event("input"));
  document.body.offsetHeight;  // laid out anew
  return performance.now() - start;
}
"""


def main() -> int:
    """Measure and print; return 1 where a line is not held."""
    from playwright.sync_api import sync_playwright

    from npuprof.__main__ import main as npuprof

    bench_engine.MANY = PRESETS
    with tempfile.TemporaryDirectory(prefix="npuprof-bench-") as folder:
        os.chdir(bench_engine._many(Path(folder) / "store"))
        start = time.process_time()
        npuprof(["site", "public"])
        built = time.process_time() - start
        start = time.process_time()
        npuprof(["site", "public"])
        again = time.process_time() - start
        public = Path("public").resolve()
        first = sum((public / name).stat().st_size for name in ("index.html", "static/site.css", "static/site.js")) / 1000
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            usable = statistics.median(_open(browser, public) for _ in range(ROUNDS))
            answers = statistics.median(_search(browser, public) for _ in range(ROUNDS))
            browser.close()
    rows = [
        (f"first view of {PRESETS:,} presets, kB", first, 300),
        ("until its search can be used, ms", usable, 1000),
        ("until a search answers, ms", answers, 50),
    ]
    print(f"built in {built:.1f} s of processor time, again in {again:.1f} s")
    for title, found, line in rows:
        print(f"{found:8.1f}  hold {line:<5} {'' if found <= line else 'NOT HELD  '}{title}")
    return int(any(found > line for _, found, line in rows))


def _open(browser: Any, public: Path) -> float:
    page = browser.new_page()
    start = time.perf_counter()
    page.goto(f"file://{public}/index.html")
    page.wait_for_function("document.getElementById('count').textContent !== ''")
    took = (time.perf_counter() - start) * 1000
    page.close()
    return took


def _search(browser: Any, public: Path) -> float:
    page = browser.new_page()
    page.goto(f"file://{public}/index.html")
    page.wait_for_function("document.getElementById('count').textContent !== ''")
    took = statistics.median(page.evaluate(_SEARCH, text) for text in ("job1", "job17 training", "nothing", "job", ""))
    page.close()
    return float(took)


if __name__ == "__main__":
    if CHROMIUM is None:
        sys.exit("no Chromium on this machine")
    sys.exit(main())
