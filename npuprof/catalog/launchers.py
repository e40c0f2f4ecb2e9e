"""Facts set by a launcher: the rank of this process, its local rank, the size of the job.

A preset refers to a fact (``RANK_ID = { launcher = "rank" }``) instead of fixing its value. Facts
are read from the launcher's variables, else from the rank table. Launchers can be nested: a Slurm
batch script has SLURM_PROCID=0, and so has every process that mpirun starts in it. The innermost
launcher decides.
"""

from __future__ import annotations

from collections.abc import Mapping

from npuprof.model import Record

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


class _Launcher(Record):
    """A launcher: the variables that identify it, and the variables with each of its facts."""

    identified_by: tuple[str, ...]
    facts: dict[str, tuple[str, ...]]


_ASCEND_LAUNCHER = _Launcher(
    ("RANK_ID",),
    {
        "rank": ("RANK_ID",),
        "local-rank": ("ASCEND_DEVICE_ID", "DEVICE_ID"),
        "world-size": ("RANK_SIZE",),
    },
)
_TORCHRUN = _Launcher(
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    {
        "rank": ("RANK",),
        "local-rank": ("LOCAL_RANK",),
        "world-size": ("WORLD_SIZE",),
        "node-rank": ("GROUP_RANK",),
    },
)
_OPEN_MPI = _Launcher(
    ("OMPI_COMM_WORLD_RANK",),
    {
        "rank": ("OMPI_COMM_WORLD_RANK",),
        "local-rank": ("OMPI_COMM_WORLD_LOCAL_RANK",),
        "world-size": ("OMPI_COMM_WORLD_SIZE",),
        "job": ("PMIX_NAMESPACE",),
    },
)
_MPICH = _Launcher(
    ("PMI_RANK", "MPI_LOCALRANKID"),
    {"rank": ("PMI_RANK",), "local-rank": ("MPI_LOCALRANKID",), "world-size": ("PMI_SIZE",)},
)
#: Launchers, innermost first.
_LAUNCHERS = (_ASCEND_LAUNCHER, _TORCHRUN, _OPEN_MPI, _MPICH)
#: The numeric facts.
NUMBERS = ("rank", "local-rank", "world-size", "node-rank")
#: Variables that may contain the server_id of a rank table.
_SERVERS = ("CM_WORKER_IP", "HCCL_IF_IP", "POD_IP", "XDL_IP", "POD_NAME", "HOSTNAME")


def find_launcher_fact(name: str, environ: Mapping[str, str], table: str = "") -> str | None:
    """Return a fact about this process, or None if no launcher has set it.

    ``table`` is the text of the rank table, if there is one.
    """
    variables: list[str] = []
    for launcher in _LAUNCHERS:
        if all(_has_fact_value(environ, variable, "rank") for variable in launcher.identified_by):
            variables += launcher.facts.get(name, ())
    for variable in (*variables, *FACTS[name]):
        if _has_fact_value(environ, variable, name):
            return environ[variable]
    return _find_rank_table_fact(name, environ, table) if table else None


def find_launch(environ: Mapping[str, str]) -> str | None:
    """Return the launcher's job id.

    With Slurm also the step, as each srun of a batch script is a separate launch.
    """
    job = find_launcher_fact("job", environ)
    step = environ.get("SLURM_STEP_ID", "")
    if job and job == environ.get("SLURM_JOB_ID") and step.isdecimal():
        return f"{job}.{step}"
    return job


def list_rank_variables() -> tuple[tuple[str, ...], ...]:
    """Return the variables with the rank, innermost launchers first.

    Each with the variables that must be set too.
    """
    groups = [
        tuple(dict.fromkeys((*launcher.facts["rank"], *launcher.identified_by)))
        for launcher in _LAUNCHERS
    ]
    groups += [(variable,) for variable in FACTS["rank"]]
    return tuple(dict.fromkeys(groups))


def list_single_process_facts(device: str) -> dict[str, str]:
    """Return the variables that Ascend's launcher sets for a single process on a device."""
    values = {"rank": "0", "local-rank": device, "world-size": "1"}
    return {
        variable: values[fact]
        for fact, variables in _ASCEND_LAUNCHER.facts.items()
        for variable in variables
    }


def _has_fact_value(environ: Mapping[str, str], variable: str, name: str) -> bool:
    """Return whether a variable has a valid value for a fact: a rank must be a number."""
    text = environ.get(variable, "")
    return text.isascii() and text.isdecimal() if name in NUMBERS else bool(text)


def _find_rank_table_fact(name: str, environ: Mapping[str, str], table: str) -> str | None:
    """Return a fact from the text of a rank table, None if the table lacks it."""
    import json

    try:
        servers = json.loads(table)["server_list"]
        devices = [server["device"] for server in servers]
        if name == "world-size":
            return str(sum(map(len, devices)))
        addresses = [environ.get(variable) for variable in _SERVERS]
        nodes = [index for index, server in enumerate(servers) if server["server_id"] in addresses]
        if not nodes and len(servers) == 1:
            nodes = [0]
        if nodes and name == "node-rank":
            return str(nodes[0])
        if nodes and name == "rank":
            local_rank = find_launcher_fact("local-rank", environ)
            for device in devices[nodes[0]]:
                if str(device["device_id"]) == local_rank:
                    return str(device["rank_id"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None  # an unknown format: ignored
    return None
