"""The tests themselves leave the home folder of who runs them alone."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def shared_home() -> str:
    return os.path.expanduser("~")


def test_what_several_tests_share_is_made_in_a_home_of_its_own(shared_home: str) -> None:
    real = pwd.getpwuid(os.getuid()).pw_dir
    assert not Path(shared_home).is_relative_to(real)
    assert shared_home != os.path.expanduser("~"), "each test has one of its own besides"
    assert not {"XDG_STATE_HOME", "XDG_CONFIG_HOME"} & set(os.environ)
