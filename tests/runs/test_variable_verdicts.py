"""Variables that torch_npu logs with ``TORCH_NPU_LOGS=env``.

They are assigned to their process, and prove no more than the lines show.

The lines are made as its sources write them: ``Logger::log`` in ``csrc/logging/Logger.cpp`` for the
variables that C++ reads, the logger of torch (``TorchLogsFormatter``) for those that
``torch_npu/utils/patch_getenv.py`` sees Python read.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from npuprof.runs.evidence.lines import parse_variable
from npuprof.runs.run_log import plan_log
from support.building import config
from support.running import Run

PRESET = (
    "[env]\nTASK_QUEUE_ENABLE = 2\n"
    "PYTORCH_NPU_ALLOC_CONF = { expandable_segments = true }\nHCCL_BUFFSIZE = 200\n"
)
CPP = "/usr1/pytorch/torch_npu/csrc/core/npu/register/OptionsManager.cpp"


def write_cpp(name: str, text: str, pid: int = 100, rank: int | None = None) -> str:
    """Return the line of a variable that C++ reads."""
    return (
        f"I1127 10:00:01.000042 {pid} {CPP}:35] "
        f"{f'[rank:{rank}] ' if rank is not None else ''}get env {name} = {text}\n"
    )


def write_python(name: str, text: str, pid: int = 100, rank: int | None = None) -> str:
    """Return the line of a variable that Python reads."""
    before = f"[rank{rank}]:" if rank is not None else ""
    return (
        f"{before}I1127 10:00:01.000000 {pid} "
        f"torch_npu/utils/patch_getenv.py:15] get env {name} = {text}\n"
    )


GOOD = (
    write_cpp("TASK_QUEUE_ENABLE", "2")
    + write_cpp("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True")
    + write_python("HCCL_BUFFSIZE", "200")
)


@pytest.fixture
def verify(tmp_path: Path, run: Run) -> Callable[..., dict[str, Any]]:
    """Verify a preset by the text of a log.

    Return its fields, with a table of states by setting for each process.
    """

    def command(text: str, preset: str = PRESET, *flags: str) -> dict[str, Any]:
        (tmp_path / "job.toml").write_text(preset)
        (tmp_path / "err.txt").write_text(text, errors="surrogateescape")
        result = run(
            "verify", tmp_path / "job.toml", tmp_path / "err.txt", "--format", "json", *flags
        )
        fields: dict[str, Any] = json.loads(result.out)
        states = [
            {
                verdict["setting"].removeprefix("env."): verdict["state"]
                for verdict in process["verdicts"]
            }
            for process in fields["processes"]
        ]
        return {**fields, "code": result.code, "states": states}

    return command


def test_a_run_is_verified_by_the_variables_that_its_process_read(verify: Any) -> None:
    fields = verify(f"starting\n{GOOD}step 1: loss 7.0\n")
    assert fields["code"] == 0
    assert fields["states"] == [
        dict.fromkeys(("TASK_QUEUE_ENABLE", "PYTORCH_NPU_ALLOC_CONF", "HCCL_BUFFSIZE"), "in force")
    ]
    assert fields["processes"][0]["pid"] == 100
    assert fields["processes"][0]["rank"] is None
    assert fields["left_out"] == []


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        pytest.param(write_cpp("TASK_QUEUE_ENABLE", "2"), "in force", id="line of C++"),
        pytest.param(
            write_python("TASK_QUEUE_ENABLE", "2", rank=3), "in force", id="line of Python"
        ),
        pytest.param(
            f"\x1b[32m{write_cpp('TASK_QUEUE_ENABLE', '2')}", "in force", id="coloured line"
        ),
        pytest.param(write_cpp("TASK_QUEUE_ENABLE", "1"), "changed", id="another value"),
        pytest.param(write_cpp("TASK_QUEUE_ENABLE", "(null)"), "absent", id="unset"),
        pytest.param(
            write_cpp("TASK_QUEUE_ENABLE", "2") + write_python("TASK_QUEUE_ENABLE", "1"),
            "cannot tell",
            id="two values",
        ),
        pytest.param(
            write_cpp("TASK_QUEUE_ENABLE", "2").rstrip("\n"), "cannot tell", id="line without end"
        ),
        pytest.param(
            write_cpp("TASK_QUEUE_ENABLE", "2").rstrip("\n") + write_cpp("HCCL_BUFFSIZE", "200"),
            "cannot tell",
            id="right value and another line joined",
        ),
        pytest.param(
            write_cpp("TASK_QUEUE_ENABLE", "1").rstrip("\n") + write_cpp("HCCL_BUFFSIZE", "200"),
            "changed",
            id="wrong value and another line joined",
        ),
        pytest.param(
            write_cpp("TASK_QUEUE_ENABLE", "1") + "get env HCCL_BUFFSIZE = \0\0\n",
            "cannot tell",
            id="NUL bytes",
        ),
        pytest.param(write_cpp("task_queue_enable", "2"), "cannot tell", id="name in lower case"),
        pytest.param(
            write_cpp("HCCL_BUFFSIZE", "get env TASK_QUEUE_ENABLE = 2"),
            "cannot tell",
            id="name in the value of another variable",
        ),
    ],
)
def test_a_verdict_says_what_the_lines_of_a_variable_show(
    verify: Any, lines: str, state: str
) -> None:
    fields = verify(write_cpp("RANK", "0") + lines)
    states = {process["TASK_QUEUE_ENABLE"] for process in fields["states"]}
    assert state in states
    assert states <= {state, "cannot tell"}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("get env TASK_QUEUE_ENABLE = 2", id="no header"),
        pytest.param(
            f"I1127 10:00:01.000042 100 {CPP}:35] set env TASK_QUEUE_ENABLE = 2",
            id="set instead of get",
        ),
        pytest.param(
            f"I1127 10:00:01.000042 100 {CPP}:35] get env TASK_QUEUE_ENABLE=2", id="no blanks"
        ),
        pytest.param(
            f"I1127 10:00:01.000042 {'9' * 30} {CPP}:35] get env TASK_QUEUE_ENABLE = 2",
            id="thread number too long",
        ),
    ],
)
def test_a_line_that_torch_npu_does_not_write_is_no_evidence(line: str) -> None:
    assert parse_variable(line.encode(), True) is None
    assert parse_variable(write_cpp("TASK_QUEUE_ENABLE", "2").rstrip().encode(), True) is not None


@pytest.mark.parametrize(
    ("wanted", "text", "state"),
    [
        ("{ expandable_segments = true }", "expandable_segments:True", "in force"),
        (
            '"garbage_collection_threshold:0.8,max_split_size_mb:64"',
            "max_split_size_mb:64,garbage_collection_threshold:0.8",
            "in force",
        ),
        ("{ max_split_size_mb = 64 }", "max_split_size_mb:64,expandable_segments:True", "changed"),
        ("{ expandable_segments = true }", "expandable_segments:False", "changed"),
    ],
)
def test_pairs_are_the_same_in_any_order(verify: Any, wanted: str, text: str, state: str) -> None:
    fields = verify(
        write_cpp("PYTORCH_NPU_ALLOC_CONF", text), f"[env]\nPYTORCH_NPU_ALLOC_CONF = {wanted}\n"
    )
    assert fields["states"] == [{"PYTORCH_NPU_ALLOC_CONF": state}]


def test_processes_are_judged_apart_by_number_and_label_and_named_by_rank(verify: Any) -> None:
    lines = [
        write_cpp("TASK_QUEUE_ENABLE", "2", 100, 0),
        write_cpp("TASK_QUEUE_ENABLE", "1", 101, 1),
        f"node-2 | {write_cpp('TASK_QUEUE_ENABLE', '0', 100, 2)}",
    ]
    fields = verify("".join(lines), "[env]\nTASK_QUEUE_ENABLE = 2\n")
    assert [process["rank"] for process in fields["processes"]] == [0, 1, 2]
    assert [process["TASK_QUEUE_ENABLE"] for process in fields["states"]] == [
        "in force",
        "changed",
        "changed",
    ]
    assert fields["code"] == 1
    assert fields["disagree"] == ["env.TASK_QUEUE_ENABLE"]


def test_a_value_that_each_process_has_of_its_own_cannot_be_told(verify: Any) -> None:
    fields = verify(
        write_cpp("RANK", "0"), '[env]\nRANK = { launcher = "rank" }\nTASK_QUEUE_ENABLE = 2\n'
    )
    assert fields["states"] == [{"RANK": "cannot tell", "TASK_QUEUE_ENABLE": "cannot tell"}]
    assert fields["code"] == 2


@pytest.mark.parametrize("where", ["plain", "packed", "stdin", "folder"])
def test_lines_are_read_from_files_folders_and_standard_input(
    tmp_path: Path, run: Run, where: str
) -> None:
    (tmp_path / "job.toml").write_text(PRESET)
    folder = tmp_path / "logs"
    folder.mkdir()
    if where == "packed":
        (folder / "a.err.gz").write_bytes(gzip.compress(GOOD.encode()))
    else:
        (folder / "a.err").write_text(GOOD)
    path = {
        "stdin": "-",
        "folder": folder,
        "plain": folder / "a.err",
        "packed": folder / "a.err.gz",
    }[where]
    result = run("verify", tmp_path / "job.toml", path, stdin=GOOD.encode())
    assert result.code == 0
    assert result.out.count("in force") == 3


def test_a_log_without_lines_says_what_to_switch_on(tmp_path: Path, run: Run) -> None:
    (tmp_path / "job.toml").write_text(PRESET)
    (tmp_path / "a.err").write_text(
        write_cpp("RANK", "0") + "I1127 10:00:01.000042 7 a.cpp:1] something\n"
    )
    result = run("verify", tmp_path / "job.toml", tmp_path / "a.err")
    assert result.code == 2
    assert "no line of it: torch" in result.out
    (tmp_path / "b.err").write_text("step 1\n")
    silent = run("verify", tmp_path / "job.toml", tmp_path / "b.err")
    assert silent.code == 2
    assert "TORCH_NPU_LOGS=env" in silent.err


@pytest.mark.parametrize("verb", ["import", "whatran"])
def test_lines_of_variables_alone_are_no_run_of_tensorflow(
    tmp_path: Path, run: Run, verb: str
) -> None:
    (tmp_path / "a.log").write_text(GOOD)
    result = run(verb, tmp_path / "a.log")
    assert result.code == 2
    assert "NP970" in result.err


@given(
    st.text(
        st.characters(blacklist_characters="\n\r\x1b", blacklist_categories=("Cs",)), max_size=40
    )
)
@example("(null)")
@example("I1127 10:00:01.000042 100 x] get env A = B")
@pytest.mark.parametrize("write", [write_cpp, write_python])
def test_a_value_is_read_as_it_was_written_or_not_at_all(
    write: Callable[..., str], text: str
) -> None:
    line = write("NAME", text, 7, 1)
    variable = parse_variable(line.removesuffix("\n").encode(), True)
    assert variable is not None
    assert variable.pid == 7
    assert variable.rank == "1"
    assert variable.name == "NAME"
    assert variable.text == text or variable.cut


@pytest.mark.parametrize(
    ("preset", "environment", "expected"),
    [
        ("[env]\nTASK_QUEUE_ENABLE = 2\n", {}, "env"),
        ("[torch_npu]\njit_compile = false\n", {}, "env"),
        ('[profile.versions]\ntorch_npu = ">=7.1"\n[options]\ndeterministic = 1\n', {}, "env"),
        ("[env]\nTASK_QUEUE_ENABLE = 2\n", {"TORCH_NPU_LOGS": "memory"}, "memory,env"),
        ("[env]\nTASK_QUEUE_ENABLE = 2\n", {"TORCH_NPU_LOGS": "+env"}, "+env"),
        ("[env]\nTASK_QUEUE_ENABLE = 2\n", {"TORCH_LOGS": "+dynamo"}, "+dynamo,env"),
        ("[env]\nTASK_QUEUE_ENABLE = 2\n[options]\ndeterministic = 1\n", {}, None),
        ("[options]\ndeterministic = 1\n", {}, None),
    ],
)
def test_run_prove_switches_the_lines_on_for_presets_of_torch_npu(
    preset: str, environment: dict[str, str], expected: str | None
) -> None:
    variables = plan_log(environment, "/x", "leaf", config(preset))
    assert variables.get("TORCH_NPU_LOGS") == expected
    assert ("ASCEND_MODULE_LOG_LEVEL" in variables) == ("[options]" in preset), (
        "the engine has no options of others to write down"
    )


@pytest.mark.parametrize(("value", "code", "state"), [("", 0, "in force"), ("0", 1, "changed")])
def test_run_prove_verifies_what_the_command_read(
    tmp_path: Path, value: str, code: int, state: str
) -> None:
    (tmp_path / "job.toml").write_text("[env]\nTASK_QUEUE_ENABLE = 2\n")
    program = f"""
import os, sys
if "env" in os.environ.get("TORCH_NPU_LOGS", "").split(","):
    value = sys.argv[1] or os.environ["TASK_QUEUE_ENABLE"]
    sys.stderr.write({write_cpp("TASK_QUEUE_ENABLE", "VALUE")!r}.replace("VALUE", value))
"""
    python = sys.executable
    run_prove = [python, "-m", "npuprof", "run", "job.toml", "--prove", "--"]
    done = subprocess.run(
        [*run_prove, python, "-c", program, value],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert state in done.stderr, done.stderr
