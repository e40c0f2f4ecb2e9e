"""Evidence read with somebody waiting: how far it is, and what to do where there is nothing in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from npuprof.model import Finding, NpuprofError, Place
from npuprof.runs.evidence import Evidence


def read_told_evidence(paths: Sequence[str]) -> Evidence:
    """Return what files and folders hold, saying on a terminal how far it is. Raises NpuprofError, also where they hold nothing."""
    evidence = read_with_progress(paths)
    if not evidence.processes:
        names = ", ".join(paths[:3]) + (" …" if len(paths) > 3 else "")
        what = f"nothing in {names} was written by an adapter or by the engine of Ascend"
        why = "At the default level they write down next to nothing of their options."
        hint = "let the run have ASCEND_MODULE_LOG_LEVEL=FMK=1:GE=1, and name the folder of its logs, ~/ascend/log if nothing else is set"
        raise NpuprofError([Finding("NP970", what, why, hint, where=Place(paths[0]) if paths[0] != "-" else None)])
    return evidence


def read_with_progress(paths: Sequence[str]) -> Evidence:
    """Return what files and folders hold, which may be nothing, saying on a terminal how far it is. Raises NpuprofError."""
    from npuprof.runs.evidence.reading import read_evidence

    with _open_progress() as tell:
        return read_evidence(paths, tell)


def _open_progress() -> AbstractContextManager[Callable[[str], None]]:
    if sys.stderr.isatty():
        from npuprof.report.terminal import progress_line

        return progress_line()
    quiet: Callable[[str], None] = lambda text: None  # noqa: E731
    return nullcontext(quiet)
