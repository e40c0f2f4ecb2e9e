"""``npuprof run``: real processes, their environment, exit codes and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from npuprof.catalog.launchers import FACTS, find_launcher_fact
from support.building import build_store
from support.running import Run, Store

SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
NPUPROF = [sys.executable, "-m", "npuprof"]
Start = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Run ``npuprof run leaf -- COMMAND`` as a process of its own, over a preset given as text."""

    def run(
        text: str,
        *command: str,
        environ: Mapping[str, str] | None = None,
        flags: tuple[str, ...] = (),
    ) -> subprocess.CompletedProcess[bytes]:
        build_store(tmp_path / "profiles", {"leaf": text})
        arguments = [*NPUPROF, "run", "leaf", *flags, "--", *command]
        return subprocess.run(
            arguments,
            env={**os.environ, **(environ or {})},
            capture_output=True,
            cwd=tmp_path,
            check=False,
        )

    return run


def read_environment(done: subprocess.CompletedProcess[bytes]) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_a_command_gets_the_presets_environment(start: Start) -> None:
    text = (
        '[options]\naoe_mode = "2"\nenable_dump = true\n'
        'dump_path = "/d"\n[env]\nHCCL_EXEC_TIMEOUT = 1800\n'
    )
    stale = {
        "NPUPROF_HCCL_TIMEOUT": "1",
        "NPUPROF_PROFILE": "other",
        "KEPT": "yes",
        "AOE_MODE": "1",
    }
    found = read_environment(start(text, sys.executable, "-c", SHOW, environ=stale))
    assert found["NPUPROF_PROFILE"] == "leaf"
    assert len(found["NPUPROF_DIGEST"]) == 64
    assert found["AOE_MODE"] == "2"
    assert found["NPUPROF_ENABLE_DUMP"] == "1"
    assert found["HCCL_EXEC_TIMEOUT"] == "1800"
    assert found["KEPT"] == "yes"
    assert "NPUPROF_HCCL_TIMEOUT" not in found  # left over from another preset


@pytest.mark.parametrize(
    ("text", "flags", "is_there"),
    [
        ('profile.unset = ["env.HCCL_ALGO"]\n', (), False),
        ("", (), True),
        ("", ("--unset", "env.HCCL_ALGO"), False),
        ('[[override]]\nmatch = { target = "env" }\nunset = ["env.HCCL_ALGO"]\n', (), False),
        ('[[override]]\nmatch = { target = "tf2" }\nunset = ["env.HCCL_ALGO"]\n', (), True),
        ('profile.unset = ["env.HCCL_ALGO"]\nenv.HCCL_ALGO = "level0:NA;level1:ring"\n', (), True),
        ('[profile]\nunset = ["env.PATH", "env.HOME", "env.NPUPROF_STORE"]\n', (), True),
    ],
)
def test_a_command_does_not_get_a_variable_that_the_preset_unsets(
    text: str, flags: tuple[str, ...], is_there: bool, start: Start
) -> None:
    found = read_environment(
        start(
            text,
            sys.executable,
            "-c",
            SHOW,
            environ={"HCCL_ALGO": "level0:NA;level1:H-D_R"},
            flags=(*flags, "--no-check"),
        )
    )
    assert ("HCCL_ALGO" in found) is is_there
    assert {"PATH", "HOME"} <= found.keys()


@pytest.mark.parametrize(
    ("environ", "flags", "is_warned"),
    [
        ({"HCCL_IF_IP": "10.0.0.1"}, (), True),
        ({"HCCL_IF_IP": "10.0.0.1"}, ("--unset", "env.HCCL_IF_IP"), False),
        ({"HCCL_IF_IP": "10.0.0.1"}, ("--no-check",), False),
        ({"ASCEND_GLOBAL_LOG_LEVEL": "3"}, (), False),
    ],
)
def test_run_warns_of_a_host_variable_that_overrides_the_preset(
    environ: dict[str, str], flags: tuple[str, ...], is_warned: bool, start: Start
) -> None:
    done = start(
        '[env]\nHCCL_SOCKET_IFNAME = "eth"\n',
        sys.executable,
        "-c",
        SHOW,
        environ=environ,
        flags=flags,
    )
    assert ("HCCL_IF_IP" in read_environment(done)) is (
        environ.keys() == {"HCCL_IF_IP"} and "--unset" not in flags
    )
    assert (
        b"profiles/leaf.toml:2:1: warning NP391: HCCL_IF_IP overrides HCCL_SOCKET_IFNAME"
        in done.stderr
    ) is is_warned


@pytest.mark.parametrize(("flags", "is_there"), [((), True), (("--trust",), False)])
def test_a_variable_that_affects_execution_is_removed_only_with_trust(
    flags: tuple[str, ...], is_there: bool, start: Start
) -> None:
    done = start(
        'profile.unset = ["env.BASH_ENV"]\n',
        sys.executable,
        "-c",
        SHOW,
        environ={"BASH_ENV": "/host"},
        flags=flags,
    )
    assert ("BASH_ENV" in read_environment(done)) is is_there
    assert (
        b"BASH_ENV keeps the value it has here: removing it needs --trust" in done.stderr
    ) is is_there


def test_arguments_arrive_as_they_are(start: Start) -> None:
    arguments = ["--help", "--store", "a b", "", "$(id)", "--", "-x", "'", "é"]
    done = start(
        "", sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *arguments
    )
    assert json.loads(done.stdout) == arguments


def test_the_exit_code_is_the_commands_own_127_where_it_is_not_there_and_126_where_it_cannot_run(
    start: Start, tmp_path: Path
) -> None:
    assert start("", "sh", "-c", "exit 70").returncode == 70
    done = start("", "no-such-command-here")
    assert done.returncode == 127
    assert done.stdout == b""
    assert b"no-such-command-here" in done.stderr
    (tmp_path / "data").write_text("x")
    assert start("", "./data").returncode == 126


def test_the_command_takes_the_place_of_npuprof(tmp_path: Path) -> None:
    build_store(tmp_path / "profiles", {"leaf": ""})
    arguments = [
        *NPUPROF,
        "run",
        "leaf",
        "--",
        sys.executable,
        "-c",
        "import os; print(os.getpid(), flush=True); input()",
    ]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM


def test_no_signal_stays_ignored(start: Start) -> None:
    done = start("", "sh", "-c", "grep SigIgn /proc/self/status")
    ignored = int(done.stdout.split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))
    assert not ignored & (1 << (signal.SIGXFSZ - 1))


def test_sidecar_files_are_there_when_the_command_starts(start: Start) -> None:
    text = (
        '[options]\nprecision_mode_v2 = "mixed_float16"\n'
        'modify_mixlist = { black-list = { to-add = ["Cast"] } }\n'
    )
    done = start(text, "sh", "-c", 'cat "$NPUPROF_MODIFY_MIXLIST"')
    assert json.loads(done.stdout) == {"black-list": {"to-add": ["Cast"]}}


def test_a_preset_with_errors_runs_nothing(start: Start, tmp_path: Path) -> None:
    texts = ("[options]\nhccl_timeot = 1\n", "touch", str(tmp_path / "ran"))
    done = start(*texts)
    assert done.returncode == 2
    assert b":2:1: error NP201: unknown option 'hccl_timeot'" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert start(*texts, flags=("--no-check",)).returncode == 0
    assert (tmp_path / "ran").exists()


def test_no_command_is_an_error(run: Run, store: Store) -> None:
    store({"leaf": ""})
    result = run("run", "leaf")
    assert result.code == 2, result.err
    assert result.out == "", result.err
    assert "NP" in result.err, result.err


# -- facts of the launcher ------------------------------------------------------------------------

TABLE = {
    "version": "1.0",
    "server_list": [
        {
            "server_id": "10.0.0.1",
            "device": [{"device_id": "0", "rank_id": "0"}, {"device_id": "1", "rank_id": "1"}],
        },
        {
            "server_id": "10.0.0.2",
            "device": [{"device_id": "0", "rank_id": "2"}, {"device_id": "1", "rank_id": "3"}],
        },
    ],
}
REQUESTED = """\
[env]
RANK_ID = { launcher = "rank" }
ASCEND_DEVICE_ID = { launcher = "local-rank" }
RANK_SIZE = { launcher = "world-size" }
"""


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"SLURM_PROCID": "9", "SLURM_LOCALID": "1", "SLURM_NTASKS": "16"}, ("9", "1", "16")),
        (
            {"RANK": "$(id)", "SLURM_PROCID": "9", "SLURM_LOCALID": "1", "SLURM_NTASKS": "16"},
            ("9", "1", "16"),
        ),
    ],
)
def test_facts_come_from_the_launchers_own_variables(
    start: Start, environ: dict[str, str], expected: tuple[str, ...]
) -> None:
    found = read_environment(start(REQUESTED, sys.executable, "-c", SHOW, environ=environ))
    assert (found["RANK_ID"], found["ASCEND_DEVICE_ID"], found["RANK_SIZE"]) == expected


BATCH = {
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NTASKS": "16",
    "SLURM_NODEID": "0",
}  # what a batch script has


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (
            {
                "OMPI_COMM_WORLD_RANK": "5",
                "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                "OMPI_COMM_WORLD_SIZE": "8",
            },
            ("5", "1", "8"),
        ),
        ({"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}, ("5", "1", "8")),
        ({"PMI_RANK": "5", "MPI_LOCALRANKID": "1", "PMI_SIZE": "8"}, ("5", "1", "8")),
        ({"RANK_ID": "5", "ASCEND_DEVICE_ID": "1", "RANK_SIZE": "8"}, ("5", "1", "8")),
        ({"RANK_ID": "5", "DEVICE_ID": "1"}, ("5", "1", "16")),
        ({"RANK": "5"}, ("0", "0", "16")),
        ({"ASCEND_DEVICE_ID": "3"}, ("0", "0", "16")),
    ],
)
def test_a_launcher_inside_a_batch_script_decides(
    inner: dict[str, str], expected: tuple[str, ...]
) -> None:
    assert (
        tuple(
            find_launcher_fact(name, {**BATCH, **inner})
            for name in ("rank", "local-rank", "world-size")
        )
        == expected
    )


def test_facts_nobody_tells_are_left_out_and_said(start: Start) -> None:
    done = start(REQUESTED, sys.executable, "-c", SHOW)
    assert "RANK_ID" not in read_environment(done)
    assert b"RANK_ID is omitted" in done.stderr


def test_the_rank_table_tells_what_variables_do_not(start: Start, tmp_path: Path) -> None:
    table = tmp_path / "hccl.json"
    table.write_text(json.dumps(TABLE))
    environ = {"RANK_TABLE_FILE": str(table), "POD_IP": "10.0.0.2", "ASCEND_DEVICE_ID": "1"}
    found = read_environment(start(REQUESTED, sys.executable, "-c", SHOW, environ=environ))
    assert found["RANK_ID"] == "3"
    assert found["ASCEND_DEVICE_ID"] == "1"
    assert found["RANK_SIZE"] == "4"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"server_list": 1}',
        '{"server_list": [{}]}',
        '{"server_list": [1]}',
        "[" * 9999,
    ],
)
def test_a_broken_rank_table_tells_nothing(text: str) -> None:
    requested = [
        find_launcher_fact(name, {"ASCEND_DEVICE_ID": "0"} if name != "local-rank" else {}, text)
        for name in FACTS
    ]
    assert requested == [None] * len(FACTS)
