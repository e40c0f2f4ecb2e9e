"""The CI job of a service, and the values of its variables."""

from __future__ import annotations

import re

from npuprof.hosting.comments import ServiceComments
from npuprof.model import Record, build_error

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Job(Record):
    """A CI job of a service.

    ``number`` is that of the pull request, 0 for other jobs, which only check presets. ``base`` and
    ``head`` are its commits, ``pages`` the URL for links to lines, ``summary`` the file of the job
    summary (empty if the log is used), ``target`` the target branch, ``depth`` how to configure a
    complete checkout. ``comments`` is None without a token; ``token_hint`` describes how to set
    one.
    """

    service: str
    format: str
    number: int = 0
    base: str = ""
    head: str = ""
    pages: str = ""
    summary: str = ""
    depth: str = ""
    comments: ServiceComments | None = None
    token_hint: str = ""
    target: str = ""


def require_variable(name: str, value: object, pattern: str) -> str:
    """Return a variable of the service as validated text. Raises NpuprofError (NP060)."""
    text = str(value) if isinstance(value, (str, int)) else ""
    if not re.fullmatch(pattern, text):
        what = f"the job's {name} is {text!r}" if text else f"the job has no {name}"
        why = "It identifies the pull request of the job."
        raise build_error("NP060", what, why, "run it as a job of the service, for a pull request")
    return text


def require_commit(name: str, value: object) -> str:
    """Return the full id of a commit. Raises NpuprofError (NP060)."""
    return require_variable(name, value, _COMMIT.pattern)


def require_address(name: str, value: object) -> str:
    """Return the URL of a service or its pages, without a trailing slash.

    Raises NpuprofError (NP060).
    """
    return require_variable(
        name, value, r"https?://[A-Za-z0-9.:\[\]_-]+(/[^\s\"'<>`|()\\]*)?"
    ).rstrip("/")
