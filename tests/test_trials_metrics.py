"""Numbers in outputs: the last one of each name counts, however long the output is and wherever pieces of it end."""

from __future__ import annotations

import json
import random
import tracemalloc

import pytest

from npuprof.trials.journal import _read_result
from npuprof.trials.judging import Effect
from npuprof.trials.metrics import WINDOW, MetricReader

METRICS = {"loss": r"loss=(\S+)", "line": r"^it (\d+)$", "acc": ""}


@pytest.mark.parametrize("size", [1000, WINDOW - 7, 3 * WINDOW + 11])
def test_pieces_of_any_size_tell_what_the_whole_tells(size: int) -> None:
    chance = random.Random(size)

    def make_line() -> str:
        told = [f"loss={chance.random()}", f"it {chance.randrange(99)}", json.dumps({"acc": chance.random()})]
        return chance.choice(["x" * chance.randrange(400), *told])

    lines = [
        make_line()
        for _ in range(60_000)
    ]  # fmt: skip
    raw = "\n".join([*lines, "it 7 of 8", '{"acc": "none"}', ""]).encode()
    reader = MetricReader(METRICS)
    for place in range(0, len(raw), size):
        reader.add(raw[place : place + size])
    last = [line for line in lines if line.startswith("it ")][-1]
    expected = {
        "loss": float([line for line in lines if line.startswith("loss=")][-1][5:]),
        "line": float(last[3:]),
        "acc": json.loads([line for line in lines if line.startswith("{")][-1])["acc"],
    }
    assert len(raw) > 3 * WINDOW
    assert reader.finish() == expected


def test_a_number_in_the_middle_of_a_long_output_is_read_in_bounded_memory() -> None:
    reader = MetricReader({"loss": "loss=([0-9.]+)", "acc": ""})
    tracemalloc.start()
    for turn in range(200):
        reader.add(b"noise noise noise\n" * 15_000 + (b'loss=0.25\n{"acc": 3}\n' if turn == 90 else b""))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reader.finish() == {"loss": 0.25, "acc": 3}
    assert peak < 12 * WINDOW


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
    reader.add(text.encode())
    assert {name: value if value == value else "nan" for name, value in reader.finish().items()} == found


@pytest.mark.parametrize(
    ("good", "bad", "tolerance", "value", "verdict"),
    [
        (100, 90, 0.9, 90.9, "bad"), (100, 90, 0.9, 90.91, "good"), (0.1, 0.3, 0.1, 0.2, "bad"), (0.1, 0.3, 0.1, 0.1999, "good"),
        (1.0, 1.1, 1.1 * 0.01, 1.089, "bad"), (100, 90, 0.9, 89, "bad"),
    ],
)  # fmt: skip
def test_the_edge_of_a_tolerance_is_bad_on_either_side_whatever_floats_are_rounded_to(
    good: float, bad: float, tolerance: float, value: float, verdict: str
) -> None:
    assert Effect(good, bad, tolerance).judge(value) == verdict


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


@pytest.mark.parametrize(("name", "value"), [
    ("digest", 7), ("digest", None), ("exit", "0"), ("exit", True), ("exit", None), ("signal", "9"), ("seconds", "1"), ("seconds", None),
    ("hung", 1), ("hung", "no"), ("metrics", []), ("metrics", {"a": "1"}), ("metrics", None), ("log", 3), ("device", 0),
    ("files", {"a": 1}),
])  # fmt: skip
def test_a_kept_result_of_a_wrong_kind_is_none(name: str, value: object) -> None:
    assert _read_result(WHOLE) is not None
    assert _read_result({**WHOLE, name: value}) is None


def test_a_result_that_an_older_npuprof_kept_counts() -> None:
    older = {name: value for name, value in WHOLE.items() if name not in ("device", "files")}
    found = _read_result(older)
    assert found is not None
    assert (found.device, found.files) == ("", {})
