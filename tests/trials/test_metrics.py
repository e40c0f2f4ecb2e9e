"""Numbers in outputs: the last one of each name counts, however long the output is."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from npuprof.system.tree import Tree
from npuprof.trials.journal import _read_result
from npuprof.trials.metrics import MetricReader, read_metrics
from npuprof.trials.outcomes import Effect

METRICS = {"loss": r"loss=(\S+)", "line": r"^it (\d+)$", "acc": ""}


def test_the_last_number_of_a_long_output_counts(tmp_path: Path) -> None:
    lines = [
        b"noise noise noise\n" * 15_000 + b'loss=0.%d\n{"acc": %d}\n' % (turn, turn)
        for turn in range(1, 30)
    ]
    (tmp_path / "log").write_bytes(
        b"".join(lines) + b"it 7 of 8\n" + b'{"acc": "none"}\n' + b"x" * 3_000_000
    )
    assert read_metrics(Tree(str(tmp_path)), "log", METRICS) == {"loss": 0.29, "acc": 29}
    assert read_metrics(Tree(str(tmp_path)), "gone", METRICS) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("loss=1 loss=2", {"loss": 2}),
        ("loss=1 loss=nothing", {}),
        ("loss=nan\n", {"loss": "nan"}),
        ('{"acc": 1}\n{"acc": true}\n{"acc', {"acc": 1}),
        ('  {"acc": 2, "more": {"acc": 3}}\n', {"acc": 2}),
        ('said {"acc": 2}\n', {}),
        ("it 5\nit 6 of 7\n", {"line": 5}),
    ],
)
def test_what_is_a_number_of_a_metric(text: str, found: dict[str, float]) -> None:
    reader = MetricReader(METRICS)
    for line in text.encode().splitlines(keepends=True):
        reader.add(line)
    assert {
        name: value if value == value else "nan" for name, value in reader.found.items()
    } == found


class EdgeCase(NamedTuple):
    """The values of both ends, their tolerance, and the verdict on another value."""

    good: float
    bad: float
    tolerance: float
    value: float
    verdict: str


@pytest.mark.parametrize(
    "case",
    [
        EdgeCase(good=100, bad=90, tolerance=0.9, value=90.9, verdict="bad"),
        EdgeCase(good=100, bad=90, tolerance=0.9, value=90.91, verdict="good"),
        EdgeCase(good=0.1, bad=0.3, tolerance=0.1, value=0.2, verdict="bad"),
        EdgeCase(good=0.1, bad=0.3, tolerance=0.1, value=0.1999, verdict="good"),
        EdgeCase(good=1.0, bad=1.1, tolerance=1.1 * 0.01, value=1.089, verdict="bad"),
        EdgeCase(good=100, bad=90, tolerance=0.9, value=89, verdict="bad"),
    ],
    ids=lambda case: f"{case.value} {case.verdict}",
)
def test_the_edge_of_a_tolerance_is_bad_on_either_side_whatever_floats_are_rounded_to(
    case: EdgeCase,
) -> None:
    assert Effect(case.good, case.bad, case.tolerance).judge(case.value) == case.verdict


WHOLE = {
    "digest": "d",
    "exit": 0,
    "signal": None,
    "seconds": 0.1,
    "hung": False,
    "metrics": {"a": 1.0},
    "log": "",
    "device": "",
    "files": {},
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("digest", 7),
        ("digest", None),
        ("exit", "0"),
        ("exit", True),
        ("exit", None),
        ("signal", "9"),
        ("seconds", "1"),
        ("seconds", None),
        ("hung", 1),
        ("hung", "no"),
        ("metrics", []),
        ("metrics", {"a": "1"}),
        ("metrics", None),
        ("log", 3),
        ("device", 0),
        ("files", {"a": 1}),
    ],
)
def test_a_kept_result_of_a_wrong_kind_is_none(name: str, value: object) -> None:
    assert _read_result(WHOLE) is not None
    assert _read_result({**WHOLE, name: value}) is None


def test_a_result_that_an_older_npuprof_kept_counts() -> None:
    older = {name: value for name, value in WHOLE.items() if name not in ("device", "files")}
    found = _read_result(older)
    assert found is not None
    assert found.device == ""
    assert found.files == {}
