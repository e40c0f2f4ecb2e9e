"""Explains failed fetches and unusable mirrors: git's message, and a hint."""

from __future__ import annotations

import re
from shlex import quote

from npuprof.model import Finding, NpuprofError, build_error
from npuprof.report.text import escape_controls
from npuprof.store.urls import hide_credentials

_LONGEST = 300  # maximum length of a quoted git message
#: git's messages about the cache: full, read-only, another owner, or locked by another git.
_UNUSABLE = re.compile(
    r"(?i)no space left|quota exceeded|out of disk|write error|couldn't "
    r"write|(?:unable|failed|cannot) to write|read-only file system|"
    r"unable to create|insufficient permission|\.lock': file exists"
)
#: git's messages about a damaged mirror.
_DAMAGED = re.compile(
    r"(?i)corrupt|loose object|object file|inflate|packed-refs|bad "
    r"(?:object|tree|ref|config)|unable to (?:read|find|load)|"
    r"missing (?:blob|tree|commit)|did not send all necessary"
)


def build_failure(label: str, output: str, mirror: str, requested: str = "") -> NpuprofError:
    """Return the error for a failed fetch, from git's output.

    ``label`` names the source, ``requested`` the objects to fetch.
    """
    # a remote's messages are about its own disk
    local = "\n".join(line for line in output.splitlines() if not line.startswith("remote:"))
    if _UNUSABLE.search(local) or _DAMAGED.search(local):
        return NpuprofError(build_mirror_finding(label, mirror, output))
    intent = f"npuprof asked for {requested}; " if requested else ""
    hint = (
        "test the address and your access: git ls-remote ADDRESS; "
        "npuprof never prompts for a password"
    )
    return build_fetch_error(label, f"{intent}{_quote_git(output)}", hint)


def _quote_git(output: str) -> str:
    """Return the most informative line of git's output.

    That is one about an object, one of a local program, else one of the remote.
    """
    line = _select_line([line.strip() for line in output.splitlines()])
    return f"git said: {escape_controls(hide_credentials(line))[:_LONGEST]}"


def _select_line(lines: list[str]) -> str:
    # git adds this line to every failure of ssh, and it has no cause
    lines = [line for line in lines if line and "Could not read from remote" not in line]
    for start in ("error: object ", "ssh:", "fatal:", "error:", "remote:", ""):
        for line in lines:
            if line.startswith(start):
                return line
    return "nothing"


def build_fetch_error(label: str, why: str, hint: str) -> NpuprofError:
    """Return the error for a source that cannot be fetched; ``label`` names it."""
    return build_error(
        "NP045", f"{escape_controls(hide_credentials(label))} cannot be fetched", why, hint
    )


def build_cache_error(folder: str, why: str) -> NpuprofError:
    """Return the error for an unusable cache."""
    hint = "check its room, owner and permissions, or let XDG_CACHE_HOME name another place"
    return build_error("NP053", f"the cache {folder} cannot be used", why, hint)


def build_foreign_error(folder: str) -> NpuprofError:
    """Return the error for a cache, or a part of it, with another owner."""
    return build_cache_error(
        folder, "It belongs to somebody else, who could change every preset that is read from it."
    )


def build_mirror_finding(label: str, mirror: str, output: str) -> Finding:
    """Return why git could not use a source's mirror: a fault of the cache, else a damaged mirror.

    ``label`` names the source.
    """
    # before the other messages: a foreign mirror is not damaged
    if "dubious ownership" in output:
        return build_foreign_error(mirror).findings[0]
    if _UNUSABLE.search(output) or re.search("permission denied", output, re.IGNORECASE):
        return build_cache_error(mirror, _quote_git(output)).findings[0]
    hint = (
        f"move it away, then fetch it again: mv {quote(mirror)} "
        f"{quote(f'{mirror}.damaged')} && npuprof source sync"
    )
    return Finding("NP054", f"the mirror of {label} is damaged: {mirror}", _quote_git(output), hint)
