"""``run --prove`` enables the log of a process and compares it with the preset.

A real process writes one as the adapter would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from npuprof.runs.run_log import plan_log
from support.adapterlogs.process import write_log
from support.building import build_store

NPUPROF = [sys.executable, "-m", "npuprof"]
PRESET = '[options]\nhccl_timeout = 1800\nprecision_mode = "force_fp32"\n'
#: Stands for the adapter: writes the log that it was given where the environment says, if the
#: levels are what its lines need.
ADAPTER = """
import os, shutil, sys
def copy(source, target):
    text = open(source).read().replace("(42,", f"({os.getpid()},")
    open(target.replace("-42_", f"-{os.getpid()}_"), "w").write(text)
levels = os.environ.get("ASCEND_MODULE_LOG_LEVEL", "").split(":")
if "FMK=1" in levels and "GE=1" in levels:
    folder = os.environ["ASCEND_PROCESS_LOG_PATH"]
    shutil.copytree(sys.argv[1], folder, dirs_exist_ok=True, copy_function=copy)
sys.exit(int(sys.argv[2]))
"""
Prove = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def prove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prove:
    """Run a stand-in of the adapter that was given some options, with ``--prove``."""
    build_store(tmp_path / "profiles", {"bert": PRESET})
    (tmp_path / "adapter.py").write_text(ADAPTER)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(
        used: Mapping[str, object],
        *flags: str,
        code: int = 0,
        environ: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        write_log(tmp_path / "given", used)
        arguments = [
            *NPUPROF,
            "run",
            "bert",
            "--prove",
            *flags,
            "--",
            sys.executable,
            "adapter.py",
            "given",
            str(code),
        ]
        env = {**os.environ, **(environ or {})}
        return subprocess.run(
            arguments, env=env, capture_output=True, text=True, cwd=tmp_path, check=False
        )

    return run


GOOD = {"hccl_timeout": 1800, "precision_mode": "force_fp32"}


@pytest.mark.parametrize(
    ("used", "code", "message"),
    [
        (GOOD, 0, "2 in force"),
        ({**GOOD, "precision_mode": "force_fp16"}, 1, "force_fp16, not"),
        ({"precision_mode": "force_fp32"}, 1, "hccl_timeout"),
    ],
)
def test_what_the_log_proves_is_the_exit_code_of_a_command_that_ends_well(
    used: dict[str, object], code: int, message: str, prove: Prove
) -> None:
    done = prove(used)
    assert done.returncode == code, done.stderr
    assert message in done.stderr, done.stderr
    assert done.stdout == "", done.stderr


def test_a_command_that_fails_keeps_its_own_code_and_is_told_of_all_the_same(prove: Prove) -> None:
    done = prove({**GOOD, "precision_mode": "force_fp16"}, code=7)
    assert done.returncode == 7
    assert "force_fp16, not" in done.stderr


def test_a_run_that_wrote_nothing_proves_nothing(prove: Prove) -> None:
    done = prove(GOOD, environ={"ASCEND_MODULE_LOG_LEVEL": "FMK=3:GE=1"})
    assert done.returncode == 2
    assert "NP970" in done.stderr


def test_the_log_lies_beside_the_record_which_says_what_was_proven(
    prove: Prove, tmp_path: Path
) -> None:
    assert prove(GOOD, "--record", "out").returncode == 0
    found = json.loads((tmp_path / "out" / "bert.0.run.json").read_text())
    assert found["proof"]["code"] == 0
    assert found["proof"]["log"].startswith(str(tmp_path / "out" / "logs" / "bert."))
    assert found["environment"]["ASCEND_PROCESS_LOG_PATH"] == found["proof"]["log"]
    assert list(Path(found["proof"]["log"]).rglob("*.log"))


def test_in_a_folder_that_the_user_named_each_run_has_its_own(prove: Prove, tmp_path: Path) -> None:
    logs = tmp_path / "mine"
    assert (
        prove(
            {**GOOD, "precision_mode": "force_fp16"}, environ={"ASCEND_PROCESS_LOG_PATH": str(logs)}
        ).returncode
        == 1
    )
    done = prove(GOOD, environ={"ASCEND_PROCESS_LOG_PATH": str(logs)})
    assert done.returncode == 0, done.stderr
    assert f"the log of this run goes to {logs}/bert." in done.stderr, done.stderr
    assert len(list(logs.iterdir())) == 2


@pytest.mark.parametrize(
    ("given_levels", "levels"),
    [
        (None, "FMK=1:GE=1"),
        ("", "FMK=1:GE=1"),
        ("GE=0", "GE=0:FMK=1"),
        ("FMK=0:GE=1", "FMK=0:GE=1"),
        ("HCCL=2", "HCCL=2:FMK=1:GE=1"),
        ("GE=3", "GE=3:FMK=1"),
    ],
)
def test_levels_that_the_user_has_set_stay_and_what_is_missing_is_added(
    given_levels: str | None, levels: str
) -> None:
    variables = plan_log(
        {"ASCEND_MODULE_LOG_LEVEL": given_levels} if given_levels is not None else {}, "/x", "leaf"
    )
    assert variables == {"ASCEND_MODULE_LOG_LEVEL": levels, "ASCEND_PROCESS_LOG_PATH": "/x"}


def test_signals_are_let_through_again_when_the_command_has_ended() -> None:
    script = """
import os, signal
from npuprof.runs import supervisor
ending = supervisor.run_command(["true"], dict(os.environ), lambda pid: None)
os.kill(os.getpid(), signal.SIGTERM)
ending.release()
os.write(2, b"on")
os.kill(os.getpid(), signal.SIGTERM)
os.write(2, b"not reached")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == -15
    assert done.stderr == b"on"
