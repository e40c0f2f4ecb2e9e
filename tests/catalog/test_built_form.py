"""The built form of the catalogue: in a checkout always that of the records, in a wheel complete without them."""

from __future__ import annotations

import marshal
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuprof import catalog
from npuprof.catalog import build
from support.building import Checkout

RECORD = '[a_new_option]\nfield = "i"\nkind = "int"\nsummary = "For a test."\nsource = ["a test"]\n'


def leave_alone(catalogue: Path) -> None:
    """Change nothing."""


def cut_kept_files(catalogue: Path) -> None:
    """Leave files that a process has not written to the end."""
    for path in (catalogue / "_built").iterdir():
        path.write_bytes(path.read_bytes()[:-10])


def refuse_writing(catalogue: Path) -> None:
    """Leave no place where anything could be kept."""
    shutil.rmtree(catalogue / "_built")
    (catalogue / "_built").write_text("")


@pytest.mark.parametrize("leave", [leave_alone, cut_kept_files, refuse_writing])
def test_a_checkout_shows_its_records_as_they_are_now(checkout: Checkout, leave: Callable[[Path], None]) -> None:
    assert "a_new_option" not in checkout.run("options")
    leave(checkout.catalogue)
    with (checkout.catalogue / "options/basic.toml").open("a") as file:
        file.write(f"\n{RECORD}")
    assert "a_new_option" in checkout.run("options")
    (checkout.catalogue / "options/basic.toml").write_text(RECORD)
    assert "session_device_id" not in checkout.run("options")


def test_a_checkout_reads_its_records_once_for_many_commands(checkout: Checkout) -> None:
    checkout.run("options")
    kept = checkout.catalogue / "_built"
    assert {path.name for path in kept.iterdir()} == set(build.build_parts())
    before = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
    checkout.run("options")
    assert {path: path.stat().st_mtime_ns for path in kept.iterdir()} == before


def test_an_installed_package_needs_no_records(checkout: Checkout) -> None:
    for path in [*checkout.catalogue.rglob("*.toml"), checkout.catalogue / "build.py", checkout.catalogue / "checkout.py"]:
        path.unlink()
    assert "_built" in checkout.run("options", code=2)
    build.write_parts(checkout.catalogue / "_built")
    assert "hccl_timeout" in checkout.run("options")


def test_what_a_wheel_carries_says_what_the_records_say(tmp_path: Path) -> None:
    build.write_parts(tmp_path)
    for name, part in build.build_parts().items():
        written = marshal.loads((tmp_path / f"{name}.marshal").read_bytes())
        assert written == part == catalog.load_built_part(name)


RELEASES = [{"name": name, "code": name != "8.0.0"} for name in ("6.0.0", "7.0.0", "8.0.0", "9.0.0", "9.1.0")]


@pytest.mark.parametrize(
    ("record", "states"),
    [
        ({"field": "i", "since": "7.0.0"}, ".YYYY"), ({"field": "i", "since": "8.0.0", "absent_in": "6.0.0"}, ".?YYY"),
        ({"field": "i", "since": "9.0.0", "absent_in": "7.0.0"}, "..?YY"), ({"field": "i", "absent_in": "7.0.0"}, "..?YY"),
        ({"field": "i"}, "???YY"), ({"field": "i", "since": "7.0.0", "missing_in": ["9.0.0"]}, ".YY.Y"),
        ({"field": "i", "since": "6.0.0", "removed_in": "9.0.0"}, "YY?.."), ({"since": "6.0.0", "removed_in": "7.0.0"}, "Y...."),
        ({"since": "7.0.0"}, "....."),
    ],
)  # fmt: skip
def test_the_letters_of_an_option_say_which_release_reads_it(record: dict[str, Any], states: str) -> None:
    assert build._compute_release_states(record, RELEASES) == states
