"""Chromium of the machine, for tests that open pages as files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def open_browser() -> Iterator[Any]:
    """Yield a browser, driven by Playwright, and close it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()
