"""Chromium of the machine, for tests that open pages as files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any

from support.waiting import PATIENCE

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


def open_browser() -> Iterator[Any]:
    """Yield a browser, driven by Playwright, and close it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


def wait_until(page: Any, condition: str) -> None:
    """Wait until an expression of a page holds. Raises AssertionError where it never does.

    What Playwright has for it, ``wait_for_function``, asks a second time from within the page: its
    policy forbids that.
    """
    ends = time.monotonic() + PATIENCE
    while not page.evaluate(condition):
        assert time.monotonic() < ends, condition
        page.wait_for_timeout(20)
