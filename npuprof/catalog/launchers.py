"""Facts set by a launcher: the rank of this process, its local rank, the size of the job.

A preset refers to a fact (``RANK_ID = { launcher = "rank" }``) instead of fixing its value. Facts
are read from the launcher's variables, else from the rank table. Launchers can be nested: a Slurm
batch script has SLURM_PROCID=0, and so has every process that mpirun starts in it. The innermost
launcher decides.
"""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The variables with each fact: Ascend's own, Slurm, Open MPI, PMIx, MPICH, torchrun, Kubernetes.
FACTS: dict[str, tuple[str, ...]] = {
    "rank": ("RANK_ID", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK"),
    "local-rank": (
        "SLURM_LOCALID",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "LOCAL_RANK",
        "ASCEND_DEVICE_ID",
        "DEVICE_ID",
    ),
    "world-size": (
        "RANK_SIZE",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_NTASKS",
        "OMPI_COMM_WORLD_SIZE",
        "PMI_SIZE",
        "WORLD_SIZE",
    ),
    "node-rank": ("SLURM_NODEID", "GROUP_RANK"),
    "node-ip": ("CM_WORKER_IP", "HCCL_IF_IP", "POD_IP", "XDL_IP"),
    "job": ("JOB_ID", "SLURM_JOB_ID", "PBS_JOBID", "PMIX_NAMESPACE"),
}
#: Launchers, innermost first: the variables that identify each, and the variables with its facts.
_LAUNCHERS: tuple[tuple[tuple[str, ...], dict[str, tuple[str, ...]]], ...] = (
    (
        ("RANK_ID",),
        {
            "rank": ("RANK_ID",),
            "local-rank": ("ASCEND_DEVICE_ID", "DEVICE_ID"),
            "world-size": ("RANK_SIZE",),
        },
    ),
    (
        ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
        {
            "rank": ("RANK",),
            "local-rank": ("LOCAL_RANK",),
            "world-size": ("WORLD_SIZE",),
            "node-rank": ("GROUP_RANK",),
        },
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
    (
        ("PMI_RANK", "MPI_LOCALRANKID"),
        {"rank": ("PMI_RANK",), "local-rank": ("MPI_LOCALRANKID",), "world-size": ("PMI_SIZE",)},
    ),
)
#: The numeric facts.
NUMBERS = ("rank", "local-rank", "world-size", "node-rank")
#: Variables that may contain the server_id of a rank table.
_SERVERS = ("CM_WORKER_IP", "HCCL_IF_IP", "POD_IP", "XDL_IP", "POD_NAME", "HOSTNAME")


def find_launcher_fact(name: str, environ: Mapping[str, str], table: str = "") -> str | None:
    """Return a fact about this process, or None if no launcher has set it.

    ``table`` is the text of the rank table, if there is one.
    """
    inner = [
        value.get(name, ())
        for known, value in _LAUNCHERS
        if all(_has_fact_value(environ, variable, "rank") for variable in known)
    ]
    variables = (variable for group in (*inner, FACTS[name]) for variable in group)
    value = next(
        (environ[variable] for variable in variables if _has_fact_value(environ, variable, name)),
        None,
    )
    return value if value is not None or not table else _find_rank_table_fact(name, environ, table)


def find_launch(environ: Mapping[str, str]) -> str | None:
    """Return the launcher's job id.

    With Slurm also the step, as each srun of a batch script is a separate launch.
    """
    job, step = find_launcher_fact("job", environ), environ.get("SLURM_STEP_ID", "")
    return (
        f"{job}.{step}" if job and job == environ.get("SLURM_JOB_ID") and step.isdecimal() else job
    )


def list_rank_variables() -> tuple[tuple[str, ...], ...]:
    """Return the variables with the rank, innermost launchers first.

    Each with the variables that must be set too.
    """
    inner = [
        tuple(dict.fromkeys((name, *known)))
        for known, told in _LAUNCHERS
        for name in told.get("rank", ())
    ]
    return tuple(dict.fromkeys((*inner, *((name,) for name in FACTS["rank"]))))


def list_single_process_facts(device: str) -> dict[str, str]:
    """Return the variables that Ascend's launcher sets for a single process on a device."""
    facts = {"rank": "0", "local-rank": device, "world-size": "1"}
    return {
        variable: facts[fact]
        for fact, variables in _LAUNCHERS[0][1].items()
        for variable in variables
    }


def _has_fact_value(environ: Mapping[str, str], variable: str, name: str) -> bool:
    """Return whether a variable has a valid value for a fact: a rank must be a number."""
    text = environ.get(variable, "")
    return text.isascii() and text.isdecimal() if name in NUMBERS else bool(text)


def _find_rank_table_fact(name: str, environ: Mapping[str, str], table: str) -> str | None:
    import json

    try:
        servers = json.loads(table)["server_list"]
        devices: list[list[dict[str, Any]]] = [server["device"] for server in servers]
        if name == "world-size":
            return str(sum(map(len, devices)))
        here = [
            place
            for place, server in enumerate(servers)
            if server["server_id"] in [environ.get(v) for v in _SERVERS]
        ]
        node = here[0] if here else 0 if len(servers) == 1 else None
        if node is None:
            return None
        if name == "node-rank":
            return str(node)
        if name == "rank":
            mine = find_launcher_fact("local-rank", environ)
            return next(
                (
                    str(device["rank_id"])
                    for device in devices[node]
                    if str(device["device_id"]) == mine
                ),
                None,
            )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None  # an unknown format: ignored
    return None
