"""A cluster of one node."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from end_to_end.slurm.cluster import start_cluster


@pytest.fixture(scope="session")
def slurm_conf() -> Iterator[str]:
    """The settings of a cluster of one node."""
    with tempfile.TemporaryDirectory(prefix="np") as top, start_cluster(Path(top)) as path:
        yield path


@pytest.fixture
def slurm(slurm_conf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of one node, which Slurm's programs find."""
    monkeypatch.setenv("SLURM_CONF", slurm_conf)
