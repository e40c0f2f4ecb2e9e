"""Every row of the catalogue is judged at every release, and every hint is followed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.programs import find_program
from npuprof.checks.lifetimes import Lifetime, build_lifetime, find_lifetime_faults
from npuprof.checks.view import Fault
from npuprof.document.keys import format_full_key

AXES = (releases.CANN, *releases.list_frameworks())
Row = catalog.Option | catalog.Variable | catalog.Flag | catalog.Setting


def list_rows() -> Iterator[tuple[str, Row]]:
    """Yield the keys and records whose releases are known."""
    for section in catalog.load_sections().values():
        for name in section.names:
            record = section.find(name)
            if isinstance(record, Row) and (record.states or record.deprecated):
                yield format_full_key(section.name, name), record


def find_advised(hint: str) -> Lifetime | None:
    """Return the lifetime of the setting that a hint says to use, None if no row is its key."""
    key = hint.rpartition(" ")[2]
    for name in (key, f"env.{key}", f"atc.{key.removeprefix('--')}"):
        record = catalog.find_key_record(name)
        if isinstance(record, Row):
            return build_lifetime(name, record)
    return None


ROWS = dict(list_rows())
LIFETIMES = {
    key: lifetime
    for key, record in ROWS.items()
    if not (isinstance(record, catalog.Option) and record.field is None)
    for lifetime in [build_lifetime(key, record)]
}


def judge(key: str, release: str) -> list[Fault]:
    return list(find_lifetime_faults(LIFETIMES[key], (release,)))


def find_first_recorded(axis: str, letters: str) -> int:
    """Return the place of the release from which on something is said of a setting."""
    return len(letters) - len(letters.lstrip("?")) if find_program(axis) else 0


def test_there_are_rows_and_hints_to_replay() -> None:
    assert len(LIFETIMES) > 500
    assert sum(bool(lifetime.replaced_by) for lifetime in LIFETIMES.values()) > 40
    assert Counter(lifetime.axis for lifetime in LIFETIMES.values()).keys() >= {
        "cann",
        "torch_npu",
        "vllm_ascend",
        "mindspore",
    }


@pytest.mark.parametrize("axis", AXES)
def test_a_release_that_reads_a_setting_is_never_called_one_that_does_not(axis: str) -> None:
    known = releases.load_releases(axis)
    for key in (key for key, lifetime in LIFETIMES.items() if lifetime.axis == axis):
        letters = LIFETIMES[key].states or "Y" * len(known)
        assert len(letters) == len(known), key
        for release, letter in zip(known, letters, strict=True):
            codes = [fault.code for fault in judge(key, release)]
            assert ("NP404" in codes) is (letter == "."), f"{key} at {release}"
            unknown = letter == "?" and known.index(release) >= find_first_recorded(axis, letters)
            assert ("NP405" in codes) is unknown, f"{key} at {release}"


@pytest.mark.parametrize("axis", AXES)
def test_whoever_follows_a_hint_gets_no_finding_about_time(axis: str) -> None:
    known = releases.load_releases(axis)
    for key in (key for key, lifetime in LIFETIMES.items() if lifetime.axis == axis):
        for release in known:
            for fault in judge(key, release):
                advised = find_advised(fault.hint)
                if "use " not in fault.hint or advised is None or advised.axis != axis:
                    continue
                later = re.search(r"from \S+ (\S+): use ", fault.hint)
                there = later[1] if later else release
                after = find_lifetime_faults(advised, (there,))
                left = [new.message for new in after if new.severity != "info"]
                assert left == [], f"{key} at {release}: {fault.hint}"
                assert not later or known.index(there) > known.index(release), key


@pytest.mark.parametrize("axis", AXES)
def test_no_hint_for_a_range_names_the_setting_itself_or_what_the_range_does_not_read(
    axis: str,
) -> None:
    known = releases.load_releases(axis)
    ranges = [known[first:last] for last in range(1, len(known) + 1) for first in range(last)]
    for key, lifetime in LIFETIMES.items():
        if lifetime.axis != axis or not lifetime.replaced_by:
            continue
        for covered in ranges:
            for fault in find_lifetime_faults(lifetime, covered):
                assert not fault.hint.endswith(f"use {key}"), key
                advised = find_advised(fault.hint)
                if fault.hint.startswith("use ") and advised is not None and advised.axis == axis:
                    after = find_lifetime_faults(advised, covered)
                    assert "NP404" not in [new.code for new in after], f"{key}: {fault.hint}"


def test_the_releases_that_read_a_successor_are_known() -> None:
    for key, lifetime in LIFETIMES.items():
        section, _, name = lifetime.replaced_by.partition(".")
        if section == lifetime.axis and name and "(" not in name:  # a call is no key
            assert lifetime.successor_states, key


@pytest.mark.parametrize("axis", AXES)
def test_every_message_about_time_names_a_release(axis: str) -> None:
    known = set(releases.load_releases(axis))
    for key in (key for key, lifetime in LIFETIMES.items() if lifetime.axis == axis):
        for covered in ((), *((release,) for release in known)):
            for fault in find_lifetime_faults(LIFETIMES[key], covered):
                text = f"{fault.message} {fault.why} {fault.hint}"
                is_named = any(release in text for release in known)
                assert is_named or "No release of" in text, f"{key}: {text}"


@pytest.mark.parametrize("axis", AXES)
def test_without_a_release_only_a_setting_that_no_stable_line_reads_is_a_warning(axis: str) -> None:
    known = releases.load_releases(axis)
    newest, stable = releases.find_stable_lines(axis)
    for key in (key for key, lifetime in LIFETIMES.items() if lifetime.axis == axis):
        lifetime = LIFETIMES[key]
        letters = dict(zip(known, lifetime.states or "Y" * len(known), strict=True))
        warned = {
            fault.code for fault in find_lifetime_faults(lifetime, ()) if fault.severity != "info"
        }
        later = known[known.index(newest) + 1 :]
        is_read = any(letters[release] != "." for release in (*stable, *later))
        is_idle = "Y" in lifetime.no_effect[known.index(newest) :][:1]
        is_lost = not is_read and set(lifetime.list_other_readers()).isdisjoint(AXES)
        assert "NP501" not in warned, key
        assert ("NP502" in warned) is (is_idle or is_lost), key
