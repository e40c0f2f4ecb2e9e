"""Jobs, arrays and tasks of a real Slurm: what they are given, and what they leave behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from end_to_end.slurm.cluster import explain_absence, run_batch

from support.running import Run, Store
from support.waiting import read_line, wait_for

pytestmark = pytest.mark.skipif(
    bool(explain_absence()), reason=explain_absence() or "Slurm is here"
)
RUN = [sys.executable, "-m", "npuprof", "run", "leaf", "--record", "out", "--"]


#: Counts what it gets of SIGTERM, and ends with that.
COUNTER = """
import signal, sys, time
count = [0]
def count_signal(number, frame):
    count[0] += 1
signal.signal(signal.SIGTERM, count_signal)
print("ready", flush=True)
for _ in range(600):
    if count[0]:
        break
    time.sleep(0.1)
time.sleep(1)
sys.exit(count[0])
"""


def test_under_slurm_each_task_has_a_record_and_gets_a_signal_once(
    store: Store, slurm: None
) -> None:
    store({"leaf": "[options]\nhccl_timeout = 600\n"})
    command = [
        "srun",
        "-J",
        "counted",
        "-n",
        "2",
        "--overcommit",
        *RUN,
        sys.executable,
        "-c",
        COUNTER,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as job:
        assert [read_line(job), read_line(job)] == ["ready", "ready"]
        # The controller lists a job a little later than it starts.
        listed = ["squeue", "-h", "-n", "counted", "-o", "%i"]
        wait_for(lambda: subprocess.run(listed, capture_output=True, check=True).stdout)
        subprocess.run(["scancel", "-s", "TERM", "-n", "counted"], check=True, capture_output=True)
        job.wait(60)
    assert sorted(os.listdir("out")) == ["leaf.0.run.json", "leaf.1.run.json"]
    records = [json.loads(Path(f"out/leaf.{rank}.run.json").read_bytes()) for rank in range(2)]
    assert [record["process"]["rank"] for record in records] == [0, 1]
    assert [record["process"]["world_size"] for record in records] == [2, 2]
    assert [record["exit"] for record in records] == [{"code": 1, "signal": None}] * 2


def test_slurm_hands_what_a_job_exports_to_its_tasks_although_it_was_submitted_without(
    store: Store, trusting_run: Run, tmp_path: Path, slurm: None
) -> None:
    store(
        {
            "leaf": (
                '[options]\nhccl_timeout = 600\n[env]\nODD = "a\'$(touch y)"\n'
                'F = { launcher = "rank" }\n'
            )
        }
    )
    (tmp_path / "job.sh").write_text(
        trusting_run("env", "leaf", "--format", "slurm-job", "--no-check").out
    )
    show = (
        "import os; open(f'task{os.environ[chr(70)]}', 'w').write(os.environ['ODD'] + "
        "os.environ['NPUPROF_HCCL_TIMEOUT'])"
    )
    run_batch("-n", "2", "--export=NONE", "job.sh", sys.executable, "-c", show, folder=tmp_path)
    printed = "".join(path.read_text() for path in tmp_path.glob("*.out"))
    assert [path.read_text() for path in sorted(tmp_path.glob("task*"))] == [
        "a'$(touch y)600"
    ] * 2, printed


def test_an_array_of_slurm_runs_the_sweep_and_its_results_are_read(
    run: Run, store: Store, tmp_path: Path, slurm: None
) -> None:
    store({"base": "[options]\nhccl_timeout = 600\n"})
    srun = [
        "--vary",
        "hccl_timeout=600,900",
        "--vary",
        "env.ODD=a b,$(touch pwned)",
        "--set",
        'env.R={launcher="rank"}',
        "--no-check",
    ]
    srun += ["--metric", "loss=loss=([0-9.]+)"]
    command = [
        "--",
        "sh",
        "-c",
        'echo "loss=0.$NPUPROF_HCCL_TIMEOUT $R $ODD"; [ $NPUPROF_HCCL_TIMEOUT != 900 ]',
    ]
    script = run("sweep", "base", "--to", "slurm-array", *srun, *command)
    assert script.code == 0, script.err
    (tmp_path / "job.sh").write_text(script.out)
    run_batch("--export=NONE", "-N", "1", "--ntasks-per-node=1", "job.sh")
    combinations = json.loads(
        run("sweep", "base", "--format", "json", "--results", *srun, *command).out
    )["combinations"]
    assert [(each["run"]["exit"], each["run"]["metrics"]["loss"]) for each in combinations] == [
        (0, 0.6),
        (0, 0.6),
        (1, 0.9),
        (1, 0.9),
    ]
    logs = [Path(each["run"]["log"]).read_text() for each in combinations]
    assert ["0 a b" in log for log in logs] == [True, False, True, False]
    assert not (tmp_path / "pwned").exists()
    done = run("sweep", "base", "--to", "slurm-array", *srun, *command)
    assert "all combinations have been run" in done.err
