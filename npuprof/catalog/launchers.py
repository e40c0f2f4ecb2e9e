"""Facts that only a launcher knows: the rank of this process, its place on the node, the size of the job.

A preset asks for one (``RANK_ID = { launcher = "rank" }``) instead of freezing it. They are read from the
variables that launchers set, and where none is there from the rank table. Launchers run inside one another: a
batch script of Slurm has SLURM_PROCID=0 and so has every process that mpirun starts in it. The innermost decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: For each fact the variables that tell it: Ascend's own, Slurm, Open MPI, PMIx, MPICH, torchrun, Kubernetes.
FACTS: dict[str, tuple[str, ...]] = {
    "rank": ("RANK_ID", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK"),
    "local-rank": ("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK", "ASCEND_DEVICE_ID", "DEVICE_ID"),
    "world-size": ("RANK_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE"),
    "node-rank": ("SLURM_NODEID", "GROUP_RANK"),
    "node-ip": ("CM_WORKER_IP", "HCCL_IF_IP", "POD_IP", "XDL_IP"),
    "job": ("JOB_ID", "SLURM_JOB_ID", "PBS_JOBID", "PMIX_NAMESPACE"),
}  # fmt: skip
#: Launchers, innermost first: the variables by which each is known, and what it tells of its processes.
_LAUNCHERS: tuple[tuple[tuple[str, ...], dict[str, tuple[str, ...]]], ...] = (
    (("RANK_ID",), {"rank": ("RANK_ID",), "local-rank": ("ASCEND_DEVICE_ID", "DEVICE_ID"), "world-size": ("RANK_SIZE",)}),
    (
        ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
        {"rank": ("RANK",), "local-rank": ("LOCAL_RANK",), "world-size": ("WORLD_SIZE",), "node-rank": ("GROUP_RANK",)},
    ),
    (
        ("OMPI_COMM_WORLD_RANK",),
        {
            "rank": ("OMPI_COMM_WORLD_RANK",),
            "local-rank": ("OMPI_COMM_WORLD_LOCAL_RANK",),
            "world-size": ("OMPI_COMM_WORLD_SIZE",),
            "job": ("PMIX_NAMESPACE",),
        },
    ),
    (("PMI_RANK", "MPI_LOCALRANKID"), {"rank": ("PMI_RANK",), "local-rank": ("MPI_LOCALRANKID",), "world-size": ("PMI_SIZE",)}),
)
#: The facts that are numbers.
NUMBERS = ("rank", "local-rank", "world-size", "node-rank")
#: Variables that may hold what a rank table calls its server_id.
_SERVERS = ("CM_WORKER_IP", "HCCL_IF_IP", "POD_IP", "XDL_IP", "POD_NAME", "HOSTNAME")


def find_launcher_fact(name: str, environ: Mapping[str, str], table: str = "") -> str | None:
    """Return what the launcher says of this process, or None where nothing has said it.

    ``table`` is the text of the rank table, if there is one.
    """
    inner = [value.get(name, ()) for known, value in _LAUNCHERS if all(_has_fact_value(environ, variable, "rank") for variable in known)]
    variables = (variable for group in (*inner, FACTS[name]) for variable in group)
    value = next((environ[variable] for variable in variables if _has_fact_value(environ, variable, name)), None)
    return value if value is not None or not table else _find_rank_table_fact(name, environ, table)


def find_launch(environ: Mapping[str, str]) -> str | None:
    """Return what the launcher calls a launch: its job, and with Slurm the step of it, for each srun of a batch script is one."""
    job, step = find_launcher_fact("job", environ), environ.get("SLURM_STEP_ID", "")
    return f"{job}.{step}" if job and job == environ.get("SLURM_JOB_ID") and step.isdecimal() else job


def list_rank_variables() -> tuple[tuple[str, ...], ...]:
    """Return the variables that tell the rank, those of the innermost launchers first; each with those that have to be there beside it."""
    inner = [tuple(dict.fromkeys((name, *known))) for known, told in _LAUNCHERS for name in told.get("rank", ())]
    return tuple(dict.fromkeys((*inner, *((name,) for name in FACTS["rank"]))))


def tell_single_process(device: str) -> dict[str, str]:
    """Return what the launcher of Ascend says to a job of one process on a device."""
    facts = {"rank": "0", "local-rank": device, "world-size": "1"}
    return {variable: facts[fact] for fact, variables in _LAUNCHERS[0][1].items() for variable in variables}


def _has_fact_value(environ: Mapping[str, str], variable: str, name: str) -> bool:
    """Return whether a variable holds a fact of this kind: text that is no number is no rank."""
    text = environ.get(variable, "")
    return text.isascii() and text.isdecimal() if name in NUMBERS else bool(text)


def _find_rank_table_fact(name: str, environ: Mapping[str, str], table: str) -> str | None:
    import json

    try:
        servers = json.loads(table)["server_list"]
        devices: list[list[dict[str, Any]]] = [server["device"] for server in servers]
        if name == "world-size":
            return str(sum(map(len, devices)))
        here = [place for place, server in enumerate(servers) if server["server_id"] in [environ.get(v) for v in _SERVERS]]
        node = here[0] if here else 0 if len(servers) == 1 else None
        if node is None:
            return None
        if name == "node-rank":
            return str(node)
        if name == "rank":
            mine = find_launcher_fact("local-rank", environ)
            return next((str(device["rank_id"]) for device in devices[node] if str(device["device_id"]) == mine), None)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None  # another format: as good as none
    return None
