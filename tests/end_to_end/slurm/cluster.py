"""A cluster of one node: munge, slurmctld and slurmd of the system, in their own folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.waiting import wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "scancel", "squeue", "sinfo")
_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={top}/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={top}/state
SlurmdSpoolDir={top}/spool
SlurmctldPidFile={top}/ctld.pid
SlurmdPidFile={top}/d.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
"""


def explain_absence() -> str:
    """Return why there can be no cluster here, an empty text where there can."""
    if os.geteuid():
        return "Slurm's daemons are started as root only"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"not here: {', '.join(missing)}" if missing else ""


def start_daemon(command: list[str], environ: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a daemon that reads nothing and whose messages are dropped."""
    return subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def succeeds(command: list[str], environ: dict[str, str]) -> bool:
    done = subprocess.run(command, env=environ, capture_output=True, check=False)
    return done.returncode == 0


@contextmanager
def start_cluster(top: Path) -> Iterator[str]:
    """Start the daemons in a short folder.

    Yield the path of the settings by which clients find them.
    """
    ports = []
    for _ in range(2):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            ports.append(server.getsockname()[1])
    for name in ("state", "spool"):
        (top / name).mkdir(parents=True)
    (top / "munge.key").write_bytes(os.urandom(1024))
    (top / "munge.key").chmod(0o400)
    (top / "slurm.conf").write_text(
        _CONF.format(host=socket.gethostname().split(".")[0], top=top, ports=ports)
    )
    environ = {**os.environ, "SLURM_CONF": str(top / "slurm.conf")}
    own = [
        f"--{name}={top}/munge.{name.split('-')[0]}"
        for name in ("key-file", "pid-file", "log-file", "seed-file")
    ]
    key = ["munge", "--no-input", f"--socket={top}/munge.sock"]
    starts = [  # each daemon, and a command that succeeds once the daemon answers
        (["munged", "--force", "--foreground", f"--socket={top}/munge.sock", *own], key),
        (["slurmctld", "-D", "-c"], ["scontrol", "ping"]),
        (["slurmd", "-D"], ["scontrol", "show", "slurmd"]),
    ]
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        for command, probe in starts:
            daemons.append(start_daemon(command, environ))
            wait_for(lambda: succeeds(probe, environ), pause=0.1)  # noqa: B023 - called at once
        state = ["sinfo", "-h", "-o", "%t"]
        wait_for(
            lambda: (
                subprocess.run(state, env=environ, capture_output=True, check=False).stdout.strip()
                == b"idle"
            ),
            pause=0.2,
        )
        yield environ["SLURM_CONF"]
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def run_batch(*arguments: str, folder: Path | None = None) -> None:
    """Submit a job to the cluster that the environment names, and wait for its end.

    ``sbatch --wait`` looks ever more rarely, half a minute apart at last.
    """
    done = subprocess.run(
        ["sbatch", "--parsable", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    listed = ["squeue", "-h", "-j", done.stdout.strip()]
    wait_for(
        lambda: not subprocess.run(listed, capture_output=True, check=False).stdout.strip(),
        pause=0.1,
    )
