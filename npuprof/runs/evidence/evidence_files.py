"""Reads files with the parser of their kind, and merges the results by process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from npuprof.model import Place, build_error
from npuprof.report.terminal import progress_line
from npuprof.runs.evidence import Evidence, Process
from npuprof.runs.evidence.graph_dump import scan_dump
from npuprof.runs.evidence.line_splitting import scan_stream
from npuprof.runs.evidence.log_locations import find_sources, open_source
from npuprof.runs.evidence.log_reader import LogReader, Processes


def read_evidence(
    paths: Sequence[str], tell: Callable[[str], None] = lambda text: None
) -> Evidence:
    """Return the evidence in files and folders; ``tell`` is called with the progress.

    Raises NpuprofError for unreadable files.
    """
    sources = find_sources(paths)
    processes = Processes()
    of_tf2 = []
    read = 0

    def add(size: int) -> None:
        nonlocal read
        read += size
        tell(f"{read // 1_000_000:,} MB read, now {source.path}")

    for source in sources:
        with open_source(source.path) as (stream, most):
            if source.is_dump:
                machine = source.machine if source.pid is not None else source.path
                scan_dump(stream, processes.find_dumped(machine, source.pid), add, most)
            else:
                reader = LogReader(source.machine, processes)
                scan_stream(stream, reader, add, most)
                of_tf2 += reader.finish()
    for process in processes.found.values():
        if process.pending or not process.variables:
            process.settle()
    reporting = [
        process
        for process in (*processes.found.values(), *of_tf2)
        if process.variables or _has_options(process)
    ]
    return Evidence(reporting, len(sources), tuple(processes.unknown))


def _has_options(process: Process) -> bool:
    return bool(process.dumps or process.warned) or any(
        epoch.maps or epoch.requested or epoch.late for epoch in process.epochs
    )


def read_logs(
    paths: Sequence[str],
    with_variables: bool = False,
    of_torch: bool = False,
    with_unknown: bool = False,
) -> Evidence:
    """Return the evidence in files and folders, with progress on a terminal.

    Raises NpuprofError, also if there is none.

    Processes with variables only do not count unless ``with_variables``, nor do variables that
    vLLM calls unknown unless ``with_unknown``. The hint is for runs ``of_torch``.
    """
    evidence = read_with_progress(paths)
    if not with_variables:
        evidence = evidence._replace(processes=[*filter(_has_options, evidence.processes)])
    if not evidence.processes and not (with_unknown and evidence.unknown):
        names = ", ".join(paths[:3]) + (" …" if len(paths) > 3 else "")
        what = f"nothing in {names} was written by an adapter or by the engine of Ascend"
        why = "At the default level they write down next to nothing of their options."
        hint = (
            "let the run have ASCEND_MODULE_LOG_LEVEL=FMK=1:GE=1, and name the folder of its "
            "logs, ~/ascend/log if nothing else is set"
        )
        if of_torch:
            hint = (
                "let the run have TORCH_NPU_LOGS=env, and "
                "name the file that its standard error goes to"
            )
        where = Place(paths[0]) if paths[0] != "-" else None
        raise build_error("NP970", what, why, hint, where=where)
    return evidence


def read_with_progress(paths: Sequence[str]) -> Evidence:
    """Return the evidence in files and folders, possibly empty, with progress on a terminal.

    Raises NpuprofError.
    """
    with progress_line() as tell:
        return read_evidence(paths, tell)
