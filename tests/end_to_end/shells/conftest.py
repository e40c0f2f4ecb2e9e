"""Shells on a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from end_to_end.shells.terminals import Terminal


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A shell with job control on a real terminal."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not here")
    made = Terminal()
    yield made
    made.close()
