"""``# npuprof: ignore[NP378] reason`` in a script: findings that are accepted where they stand, or in the line below."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npuprof.catalog.acceptance import find_acceptance_fault
from npuprof.model import Finding, Place

_MARK = re.compile(r"#+[ \t]*npuprof:[ \t]*ignore\b(?:\[([^\]]*)\])?(.*)")


class Accepted(NamedTuple):
    """The findings of a script that are told all the same, and those that its remarks accept."""

    told: list[Finding]
    accepted: list[Finding]


class _Remark(NamedTuple):
    """One code that a remark accepts, where that stands, and the lines it holds for."""

    code: str
    reason: str
    place: Place
    lines: tuple[int, ...]


def sift_script_findings(path: str, data: bytes, findings: Sequence[Finding]) -> Accepted:
    """Return what is told of a script; remarks that accept nothing are told too."""
    if b"npuprof:" not in data:
        return Accepted(list(findings), [])
    remarks = list(_find_remarks(path, data.decode(errors="replace").splitlines()))
    problems = [found for remark in remarks if (found := _find_remark_fault(remark))]
    good = [remark for remark in remarks if remark.reason and not find_acceptance_fault(remark.code)]
    told: list[Finding] = []
    accepted: list[Finding] = []
    used: set[_Remark | None] = set()
    for finding in findings:
        by = next((one for one in good if one.code == finding.code and finding.path == path and finding.line in one.lines), None)
        (told if by is None else accepted).append(finding)
        used.add(by)
    idle = [_build_idle_finding(remark) for remark in good if remark not in used]
    return Accepted([*told, *problems, *idle], accepted)


def _find_remarks(path: str, lines: Sequence[str]) -> Iterator[_Remark]:
    for number, line in enumerate(lines, 1):
        match = _MARK.search(line) if "npuprof:" in line else None
        if match is None:
            continue
        here: tuple[int, ...] = (number,)
        if not line[: match.start()].strip():  # alone in its line: for what follows, past other such remarks
            below = next((later for later, text in enumerate(lines[number:], number + 1) if not _MARK.match(text.strip())), number)
            here = (number, below)
        place = Place(path, number, match.start() + 1)
        for code in (match[1] or "").split(","):
            yield _Remark(code.strip(), match[2].strip(" \t:-"), place, here)


def _find_remark_fault(remark: _Remark) -> Finding | None:
    if not remark.code:
        what, hint = "an ignore names no code", "write # npuprof: ignore[NP378] one device only"
    elif fault := find_acceptance_fault(remark.code):
        what, hint = f"ignore[{remark.code}]: {fault}", "take the remark out"
    elif not remark.reason:
        what, hint = f"ignore[{remark.code}] gives no reason", f"write # npuprof: ignore[{remark.code}] and why"
    else:
        return None
    return Finding("NP706", what, "It accepts nothing as it stands.", hint, where=remark.place)


def _build_idle_finding(remark: _Remark) -> Finding:
    what = f"{remark.code} is accepted here ({remark.reason}), and does not occur"
    return Finding("NP705", what, "What is accepted for nothing hides the next one of its kind.", "take it out", where=remark.place)
