"""Facts that only a launcher knows: the rank of this process, its place on the node, the size of the job.

A preset asks for one (``RANK_ID = { launcher = "rank" }``) instead of freezing it. They are read from the
variables that launchers set, the first that is there.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FACTS: dict[str, tuple[str, ...]] = {
    "rank": ("RANK_ID", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK"),
    "local-rank": ("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK", "ASCEND_DEVICE_ID", "DEVICE_ID"),
    "world-size": ("RANK_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE"),
    "node-rank": ("SLURM_NODEID", "GROUP_RANK"),
    "node-ip": ("CM_WORKER_IP", "HCCL_IF_IP", "POD_IP", "XDL_IP"),
    "job": ("JOB_ID", "SLURM_JOB_ID", "PBS_JOBID"),
}  # fmt: skip


def fact(name: str, environ: Mapping[str, str]) -> str | None:
    """Return what the launcher says of this process, or None where no launcher has said it."""
    return next((environ[variable] for variable in FACTS[name] if environ.get(variable)), None)
