"""Verdicts on each TensorFlow 1 option, for each adapter, log level and use in a script.

They are compared with the truth.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from npuprof.catalog.wire import find_wire
from npuprof.runs.evidence.evidence_files import read_evidence
from npuprof.runs.verdicts import judge_process
from support.adapterlogs import dumps, truth, wire
from support.adapterlogs.process import Played, play, write_folder
from support.lanes import more_at_night

#: Adapters by the state of their sources (see adapterlogs), the modules whose info lines are on,
#: whether graphs were dumped.
RUNS = more_at_night(
    [("g", "FMK", False), ("g", "", True)],
    [
        ("a", "FMK", False),
        ("g", "GE", False),
        ("g", "FMK GE", False),
        *((snapshot, "FMK", False) for snapshot in "fedcb"),
    ],
)
#: What a script may have done with the setting of a preset.
FATES = ("set", "left out", "misspelt", "another value", "another type", "too late")
#: What no adapter reads on its own, and what it refuses, or reads as if it were not there.
LEFT_OUT = {"use_off_line", "job"}
REFUSED = {"jit_compile", "shape_generalization_mode", "dynamic_graph_execute_mode"}
#: What would show a setting next time.
BLOCKS, DUMP = "ASCEND_MODULE_LOG_LEVEL=FMK=1", "PRINT_MODEL=1"


class Row(NamedTuple):
    """A setting, what a script did with it, what is true of it and what was said."""

    option: wire.Option
    value: Any
    fate: str
    truth: truth.Truth
    state: str
    tell: str


def _list_values(option: wire.Option, snapshot: str) -> list[Any]:
    """Return the values of an option.

    The first is, if possible, one that the newest adapter logs differently from an unset option.
    """
    unset = {key.unset for key in option.keys if key.since <= snapshot}
    return sorted(option.values, key=lambda value: wire.write_value(option, value) in unset)


def _make_sessions(
    option: wire.Option, values: list[Any], fate: str
) -> list[dict[str, wire.Entry]] | None:
    needs = {
        name: (wire.list_options()[name].field, value)
        for name, value in wire.NEEDS.get(option.name, {}).items()
    }
    entries: dict[str, wire.Entry] = {
        "set": {option.name: (option.field, values[0])},
        "left out": {},
        "misspelt": {f"{option.name}s": (option.field, values[0])},
        "another value": {option.name: (option.field, values[-1])},
        "another type": {option.name: ("i" if option.field == "s" else "s", str(values[0]))},
        "too late": {option.name: (option.field, values[0])},
    }[fate]
    if (fate == "another type" and option.name in REFUSED) or (
        fate == "another value" and len(values) < 2
    ):
        return None
    return [needs, {**needs, **entries}] if fate == "too late" else [{**needs, **entries}]


def _write(place: Path, played: Played, dumped: bool = False) -> tuple[Any, set[int]]:
    """Return the evidence of a process, read, and the lines of it that are whole."""
    whole = write_folder(place / "log", played)
    graphs = place / "extra-info" / "graph" / "42_0"
    for number, session in enumerate(played.sessions if dumped else ()):
        graphs.mkdir(parents=True, exist_ok=True)
        (graphs / f"BeforeSubGraph_{number}.pbtxt").write_text(
            dumps.write_graph(session), encoding="utf-8"
        )
    (process,) = read_evidence([str(path) for path in place.iterdir()]).processes
    return process, whole


def _list_rows(snapshot: str, modules: str, dumped: bool, folder: Path) -> Iterator[Row]:
    for option in wire.list_options().values():
        values = _list_values(option, snapshot)
        for fate in FATES if snapshot in option.read and option.name not in LEFT_OUT else ():
            sessions = _make_sessions(option, values, fate)
            if sessions is None:
                continue
            played = play(snapshot, sessions, modules)
            process, whole = _write(folder / f"{option.name} {fate}", played, dumped)
            for value in dict.fromkeys((values[0], values[-1])):
                known_truth = truth.find_truth(
                    played, option.name, value, whole, range(len(played.sessions)) if dumped else ()
                )
                (verdict,) = judge_process({option.name: value}, process)
                yield Row(option, value, fate, known_truth, verdict.state, verdict.tell)


@pytest.mark.parametrize(("snapshot", "modules", "dumped"), RUNS)
def test_nothing_false_is_said_and_what_can_be_proven_is(
    tmp_path: Path, snapshot: str, modules: str, dumped: bool
) -> None:
    rows = list(_list_rows(snapshot, modules, dumped, tmp_path))
    assert [
        (row.option.name, row.value, row.fate, row.state, fault)
        for row in rows
        if (fault := row.truth.find_fault(row.state))
    ] == []
    missed = [row for row in rows if row.truth.told and row.state not in row.truth.list_right()]
    for row in missed:  # a single line that is not there may have been lost
        keys = wire.list_keys(row.option, snapshot)
        assert row.state == "cannot tell"
        assert {key.unset for key in keys} == {None} or (
            dumped and {key.stage for key in keys} <= {"i"}
        ), row
        assert row.fate != "set" or not keys
    assert len(missed) < sum(row.truth.told for row in rows) / 20


@pytest.mark.parametrize(
    ("modules", "proven", "tells"),
    [
        ("FMK", {"exact": 52, "other": 38, "line": 2}, {"dump": DUMP, "nothing": ""}),
        (
            "",
            {"exact": 2, "other": 3},
            {"exact": BLOCKS, "other": BLOCKS, "line": BLOCKS, "dump": DUMP, "nothing": ""},
        ),
    ],
)
def test_as_many_are_proven_as_can_be_and_the_rest_names_what_would_tell(
    tmp_path: Path, modules: str, proven: dict[str, int], tells: dict[str, str]
) -> None:
    found: Counter[str] = Counter()
    cases = wire.list_options()
    assert cases
    for option in cases.values():
        how = find_wire(option.name)
        if how is None or option.name in LEFT_OUT:
            continue
        values = _list_values(option, "g")
        sessions = _make_sessions(option, values, "set")
        assert sessions is not None
        process, _ = _write(tmp_path / option.name, play("g", sessions, modules))
        (verdict,) = judge_process({option.name: values[0]}, process)
        found[how.proves] += verdict.state == "in force"
        if verdict.state == "changed":
            assert verdict.note == "this adapter never passes it on"
        else:
            assert verdict.state == "in force" or verdict.tell == (
                tells[how.proves] or DUMP * bool(option.attributes)
            ), (option.name, verdict)
    assert +found == proven
