"""Another answer about a store is found when two recordings are compared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from end_to_end.recorded import answers
from end_to_end.recorded.record import HERE

ANSWERS = (
    "$ npuprof list\n= 0\n  leaf\n\n$ npuprof check\n= 1\n! wrong\n\n$ npuprof list\n= 0\n  leaf\n"
)
#: What a recording says afterwards, and the lines that tell of it.
RECORDINGS: dict[str, tuple[dict[str, str], list[str]]] = {
    "the same": ({"a.txt": ANSWERS}, []),
    "another line": (
        {"a.txt": ANSWERS.replace("wrong", "amiss")},
        ["a.txt: $ npuprof check", "    @@ -2 +2 @@", "    -! wrong", "    +! amiss"],
    ),
    "another exit code": (
        {"a.txt": ANSWERS.replace("= 1", "= 2")},
        ["a.txt: $ npuprof check", "    @@ -1 +1 @@", "    -= 1", "    += 2"],
    ),
    "the second run of a line": (
        {"a.txt": ANSWERS.removesuffix("leaf\n") + "twig\n"},
        ["a.txt: $ npuprof list (run 2)", "    @@ -2 +2 @@", "    -  leaf", "    +  twig"],
    ),
    "a line less": (
        {"a.txt": ANSWERS.replace("$ npuprof check\n= 1\n! wrong\n\n", "")},
        ["a.txt: $ npuprof check", "    only in the recording before"],
    ),
    "a file that is written": (
        {"a.txt": ANSWERS.replace("! wrong\n", "! wrong\n+ cache\n")},
        ["a.txt: $ npuprof check", "    @@ -2,0 +3 @@", "    ++ cache"],
    ),
    "another store": (
        {"b.txt": ANSWERS},
        ["a.txt: only in the recording before", "b.txt: only in the recording after"],
    ),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_another_answer_is_printed_with_its_store_and_command(name: str) -> None:
    after, report = RECORDINGS[name]
    assert answers.compare({"a.txt": ANSWERS}, after) == report


def test_only_the_first_lines_of_a_difference_are_printed() -> None:
    report = answers.compare({"a.txt": "$ x\n" + "a\n" * 20}, {"a.txt": "$ x\n" + "b\n" * 20})
    assert len(report) == 10
    assert report[-1] == "    ... and 33 lines more"


def test_the_answers_of_two_programs_about_one_store_are_recorded_and_compared(
    tmp_path: Path,
) -> None:
    script, environ = (
        [sys.executable, str(HERE / "answers.py")],
        os.environ | {"TMPDIR": str(tmp_path)},
    )
    for name, word in (("before", "one"), ("after", "two")):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "$PWD $*"\ncase "$1" in render) echo {word};; esac\n')
        program.chmod(0o755)
        arguments = [
            "record",
            str(tmp_path / f"{name}-answers"),
            "--npuprof",
            str(program),
            "--only",
            "np101",
        ]
        subprocess.run([*script, *arguments], check=True, env=environ)
    report = [
        "rules/np101.txt: $ npuprof render --store NP101 --to json -- example",
        "    @@ -3 +3 @@",
        "    -  one",
        "    +  two",
    ]
    for name, code, lines in (("before", 0, ["no difference in 1 stores"]), ("after", 1, report)):
        arguments = ["compare", str(tmp_path / "before-answers"), str(tmp_path / f"{name}-answers")]
        done = subprocess.run([*script, *arguments], check=False, capture_output=True, text=True)
        assert done.returncode == code
        assert done.stdout.splitlines() == lines


def test_every_store_has_a_transcript_of_its_own() -> None:
    paths = [store.path for store in answers.list_stores()]
    assert len(set(paths)) == len(paths) > 200
