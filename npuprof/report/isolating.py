"""Isolates internal errors to one file: they become a finding, and other files are still read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from npuprof.model import Finding, NpuprofError, Place, shorten_values
from npuprof.report import output
from npuprof.report.text import escape_controls, escape_lines
from npuprof.system.files import describe_os_error


class isolate_faults:  # noqa: N801 - a context manager; stores need thousands, and contextlib is four times slower
    """Turn an exception of the body into a finding about ``path`` in ``problems``, and continue.

    A bug in npuprof is NP831; an operating system error or limit is NP801, or NP001 for the file of
    a ``preset``. With NPUPROF_DEBUG=1 the traceback is printed. NpuprofError and BrokenPipeError
    are raised unchanged.
    """

    __slots__ = ("path", "preset", "problems")

    def __init__(
        self, path: str | Callable[[], str], problems: list[Finding], preset: str = ""
    ) -> None:
        self.path = path
        self.problems = problems
        self.preset = preset

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception) or isinstance(error, (NpuprofError, BrokenPipeError)):
            return False
        if os.environ.get("NPUPROF_DEBUG") == "1":
            import traceback

            output.write_to_stderr(
                escape_lines("".join(traceback.format_exception(error))).rstrip("\n")
            )
        profiles = (self.preset,) if self.preset else ()
        path = self.path if isinstance(self.path, str) else self.path()
        finding = _build_finding(error, path, bool(self.preset))
        self.problems.append(finding._replace(where=Place(path), profiles=profiles))
        return True


@contextmanager
def collect_errors(problems: list[Finding]) -> Iterator[None]:
    """Add the findings of an NpuprofError of the body to ``problems``, and continue."""
    try:
        yield
    except NpuprofError as error:
        problems += error.findings


def _build_finding(error: Exception, path: str, is_preset: bool) -> Finding:
    if isinstance(error, (RecursionError, MemoryError, OSError)):
        reason = "it is nested too deeply, or too large"
        if isinstance(error, OSError):
            reason = describe_os_error(error, path)
        code = "NP001" if is_preset else "NP801"
        return Finding(code, f"the file is not read: {reason}", "Nothing in it was read.")
    what = escape_controls(shorten_values(f"{type(error).__name__}: {error}"))
    why = "This is a bug in npuprof, not in your file. The other files were read."
    hint = "NPUPROF_DEBUG=1 shows where; please report it with the file that caused it"
    return Finding("NP831", what, why, hint)
