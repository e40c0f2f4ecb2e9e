"""Faults of npuprof in one file: a finding about that file, and the other files are read all the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from npuprof.model import Finding, NpuprofError, Place, shorten_values
from npuprof.report import output
from npuprof.report.text import escape_controls, escape_lines


@contextmanager
def isolate_faults(path: str, problems: list[Finding], preset: str = "") -> Iterator[None]:
    """Append a finding of severity error about ``path`` to ``problems`` if the body fails, and go on behind it.

    A bug in npuprof is NP831; what the system or its limits refuse is NP801, or NP001 for the file of a ``preset``. With
    NPUPROF_DEBUG=1 the traceback is printed. Raises NpuprofError and BrokenPipeError as the body does.
    """
    try:
        yield
    except (NpuprofError, BrokenPipeError):
        raise
    except Exception as error:
        if os.environ.get("NPUPROF_DEBUG") == "1":
            import traceback

            output.write_to_stderr(escape_lines(traceback.format_exc()).rstrip("\n"))
        profiles = (preset,) if preset else ()
        problems.append(_build_finding(error, path, bool(preset))._replace(where=Place(path), profiles=profiles))


def _build_finding(error: Exception, path: str, is_preset: bool) -> Finding:
    if isinstance(error, (RecursionError, MemoryError, OSError)):
        reason = output.describe_os_error(error, path) if isinstance(error, OSError) else "it is nested too deeply, or too large"
        return Finding("NP001" if is_preset else "NP801", f"the file is not read: {reason}", "Nothing in it was read.")
    what = escape_controls(shorten_values(f"{type(error).__name__}: {error}"))
    why = "This is a bug in npuprof, not in your file. The other files were read."
    return Finding("NP831", what, why, "NPUPROF_DEBUG=1 shows where; please report it with the file that caused it")
