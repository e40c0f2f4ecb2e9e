"""What several sessions and threads of a process prove together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from npuprof.runs.evidence.evidence_files import read_evidence
from npuprof.runs.verdicts import judge_process
from support.logged import INIT, SESSION, write_block, write_engine_line, write_line, write_run

SIZE = {"ge.variableMemoryMaxSize": "9"}


def judge(folder: Path, text: str, setting: str, value: object) -> list[str]:
    (folder / "run.log").write_text(text, encoding="utf-8")
    return [
        judge_process({setting: value}, process)[0].state
        for process in read_evidence([str(folder / "run.log")]).processes
    ]


def write_old(*sessions: Mapping[str, str]) -> str:
    text = ""
    for number, session in enumerate(sessions):
        text += write_line(
            "[GePlugin] Ge has already initialized"
            if number
            else "[GePlugin] Initialize ge success.",
            "ge_plugin.cc",
        )
        text += write_block("init options: ", INIT, file="geop_npu.cc")
        text += write_block("session options: ", {**SESSION, **session}, file="geop_npu.cc")
    return text


@pytest.mark.parametrize(
    ("text", "state"),
    [
        pytest.param(write_old(SIZE, SIZE), "in force", id="in both sessions"),
        pytest.param(write_old(SIZE, {}), "cannot tell", id="in the first session"),
        pytest.param(write_old({}, SIZE), "cannot tell", id="in the second session"),
        pytest.param(
            write_run({}, SIZE, {"ge.hcomParallel": "0", **SIZE}),
            "in force",
            id="second session with another option",
        ),
    ],
)
def test_a_session_without_a_line_that_others_have_is_no_proof_of_it(
    tmp_path: Path, text: str, state: str
) -> None:
    assert judge(tmp_path, text, "variable_memory_max_size", "9") == [state]


def write_start(thread: str, switch: str) -> str:
    text = write_block("Init options: ", INIT, thread=thread)
    lines = write_block(
        "Session options: ",
        {**SESSION, "ge.hcomParallel": switch},
        file="session_manager.cc",
        thread=thread,
    )
    return text + "".join(lines.splitlines(keepends=True)[:-1])


def test_what_the_engine_says_of_a_session_is_of_the_start_in_which_it_began(
    tmp_path: Path,
) -> None:
    text = ""
    for thread, switch in (("7", "0"), ("8", "1")):
        text += write_start(thread, switch)
        text += "".join(
            write_engine_line(f"GE option: {key}, value: {value}.", "CreateSession").replace(
                "]100 ", f"]{thread} "
            )
            for key, value in sorted({**SESSION, "ge.hcomParallel": switch}.items())
        )
    assert judge(tmp_path, text, "hcom_parallel", False) == ["changed"]


def test_a_start_and_its_session_may_be_of_two_threads(tmp_path: Path) -> None:
    text = "".join(
        write_block("Init options: ", {**INIT, "ge.deterministic": "1"}, thread="7").splitlines(
            keepends=True
        )[:-1]
    )
    text += write_block("Session options: ", SESSION, file="session_manager.cc", thread="8")
    assert judge(tmp_path, text, "deterministic", 1) == ["in force"]
