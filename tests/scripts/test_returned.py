"""What functions of a script always return, and what a name stands for between two lines that give it a value."""

from __future__ import annotations

import pytest

from support.importing import HEAD, imported

READ = 'custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes({})\n'


def read_mode(before: str, expression: str, behind: str = "") -> object:
    found = [one for one in imported(f"{HEAD}{before}{READ.format(expression)}{behind}").found if one.name == "precision_mode"]
    return found[-1].value


@pytest.mark.parametrize(
    ("before", "expression"),
    [
        ("def give():\n    return 'right'\n", "give()"),
        ("def give(mode):\n    return mode\n", "give('right')"),
        ("def give(mode='right'):\n    chosen = mode\n    return chosen\n", "give()"),
        ("def inner():\n    return 'right'\ndef give():\n    return inner()\n", "give()"),
        ("class Config:\n    mode = 'right'\n", "getattr(Config, 'mode')"),
    ],
)
def test_what_is_certain_is_told(before: str, expression: str) -> None:
    assert read_mode(before, expression) == "right"


@pytest.mark.parametrize(
    ("before", "expression"),
    [
        ("def give(flag):\n    if flag:\n        return 'a'\n    return 'b'\n", "give(read())"),
        ("def give():\n    yield 'a'\n", "give()"),
        ("@cached\ndef give():\n    return 'a'\n", "give()"),
        ("def give():\n    return 'a'\ndef give():\n    return 'b'\n", "give()"),
        ("def give():\n    mode = 'a'\n    if read():\n        mode = 'b'\n    return mode\n", "give()"),
        ("def give():\n    return give()\n", "give()"),
        ("def give():\n    'nothing'\n", "give()"),
        ("async def give():\n    return 'a'\n", "give()"),
        ("class Job:\n    def mode(self):\n        return 'a'\njob = Job()\n", "job.mode"),
        ("class Mode:\n    A = 'a'\n", "Mode.A.value"),
        ("import json\nmode = json.loads('{')\n", "mode"),
        ("mode = 'a'\nif flag:\n    mode = 'b'\n", "mode"),
        ("class Job:\n    mode = 'a'\njob = Job()\nsetattr(job, 'mode', read())\n", "job.mode"),
        ("class Job:\n    mode = 'a'\njob = Job()\nsetattr(job, read(), 1)\n", "job.mode"),
        ("mode = 'a'\ndef give():\n    return mode\nmode = 'b'\n", "give()"),
        ("mode = 'a'\nmode = 'b'\nfor mode in read():\n    pass\n", "mode"),
        ("def change():\n    global mode\n    mode = 'c'\nmode = 'a'\nmode = 'b'\n", "mode"),
    ],
)
def test_what_the_run_may_decide_stays_unknown(before: str, expression: str) -> None:
    assert read_mode(before, expression) is None


def test_what_a_loop_gives_a_name_at_its_end_counts_in_the_next_turn() -> None:
    turns = "mode = 'a'\nfor n in range(3):\n    {}    mode = 'b'\n"
    found = [one for one in imported(HEAD + turns.format(READ.format("mode"))).found if one.name == "precision_mode"]
    assert [one.value for one in found] == [None]
