"""Fixtures of a repository with a source: npuprof.toml, the lock, and another machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from npuprof.store.sources.mirror import find_cache_folder
from support.repositories import Repo


@pytest.fixture
def lock(app: Repo) -> Path:
    """The lock of the repository that uses a source."""
    return app.folder / "npuprof.lock"


@pytest.fixture
def project(app: Repo) -> Path:
    """Its ``npuprof.toml``."""
    return app.folder / "npuprof.toml"


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Go on as on a machine that has fetched nothing yet; return the folder of its cache."""

    def begin() -> Path:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
        return tmp_path / "fresh"

    return begin


@pytest.fixture
def forget() -> Callable[..., None]:
    """Remove what the cache holds: everything, or a folder of it."""
    return lambda *parts: shutil.rmtree(Path(find_cache_folder(), *parts))
