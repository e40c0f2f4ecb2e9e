"""``# npuprof: ignore[NP378] reason`` in a script: findings that are accepted where they stand, in the line below, or in one statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from npuprof.catalog import build_finding
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
    text = data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    layout = (_read_python_layout(text) if path.endswith(".py") else None) or _Layout(None, _join_continued_lines(lines))
    remarks = _find_remarks(path, lines, layout.comments)
    problems = [found for remark in remarks if (found := _find_remark_fault(remark))]
    good = [remark for remark in remarks if remark.reason and not find_acceptance_fault(remark.code)]
    told, near, used = _accept([(remark, line) for remark in good for line in remark.lines], path, findings, lambda line: line)
    # one that accepts nothing in its own line, or the next, is for the whole statement: findings stand where that begins, or at an argument
    wide = [(remark, layout.find_beginning(remark.lines[-1])) for remark in good if id(remark) not in used]
    told, far, more = _accept(wide, path, told, layout.find_beginning)
    idle = [_build_idle_finding(remark) for remark in good if id(remark) not in used | more]
    return Accepted([*told, *problems, *idle], [*near, *far])


def _accept(
    remarks: Sequence[tuple[_Remark, int]], path: str, findings: Sequence[Finding], find_place: Callable[[int], int]
) -> tuple[list[Finding], list[Finding], set[int]]:
    """Return the findings that no remark accepts at its place, those that one does, and the ids of such remarks.

    ``find_place`` tells the place of a line of a finding.
    """
    by_place: dict[tuple[str, int], _Remark] = {}
    for remark, place in remarks:
        by_place.setdefault((remark.code, place), remark)
    told: list[Finding] = []
    accepted: list[Finding] = []
    used: set[int] = set()
    for finding in findings:
        by = by_place.get((finding.code, find_place(finding.line))) if finding.path == path else None
        (told if by is None else accepted).append(finding)
        used.add(id(by))
    return told, accepted, used


class _Layout(NamedTuple):
    """The columns at which comments begin by line, None where that is not known; and where the statement of each line begins."""

    comments: dict[int, int] | None
    statements: dict[int, int]

    def find_beginning(self, line: int) -> int:
        """Return the line in which the statement of a line begins; itself outside of all."""
        return self.statements.get(line, line)


def _join_continued_lines(lines: Sequence[str]) -> dict[int, int]:
    """Return for each line of a shell script the first of those that a backslash joins with it."""
    found: dict[int, int] = {}
    first = 1
    for number, line in enumerate(lines, 1):
        found[number] = first
        if not line.endswith("\\"):
            first = number + 1
    return found


def _read_python_layout(text: str) -> _Layout | None:
    """Return where comments and statements stand; None where that is no Python of today."""
    import io
    import tokenize

    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, RecursionError):
        return None
    statements: dict[int, int] = {}
    first = 0
    for token in tokens:
        if token.type == tokenize.NEWLINE:
            statements |= dict.fromkeys(range(first, token.start[0] + 1), first)
            first = 0
        elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
            first = first or token.start[0]
    return _Layout(dict(token.start for token in tokens if token.type == tokenize.COMMENT), statements)


def _is_in_quotes(line: str, end: int) -> bool:
    """Return whether a place in a line stands in a text that began in that line."""
    quote, escaped = "", False
    for char in line[:end]:
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
    return bool(quote)


def _find_mark(line: str, number: int, comments: dict[int, int] | None) -> re.Match[str] | None:
    """Return the remark of a line that stands in a comment."""
    for match in _MARK.finditer(line) if "npuprof:" in line else ():
        if comments is None:
            begins = match.start() == 0 or line[match.start() - 1].isspace() or line[match.start() - 1] == ";"
            if begins and not _is_in_quotes(line, match.start()):
                return match
        elif comments.get(number, match.start() + 1) <= match.start():
            return match
    return None


def _find_remarks(path: str, lines: Sequence[str], comments: dict[int, int] | None) -> list[_Remark]:
    found: list[list[_Remark]] = []
    below = 0
    for number in range(len(lines), 0, -1):  # from below: what stands under a remark is known then
        line = lines[number - 1]
        match = _find_mark(line, number, comments)
        alone = match is not None and not line[: match.start()].strip()
        if match is not None:
            # alone in its line it is for what follows, past other such remarks
            here = (number, below if below > number else number) if alone else (number,)
            place, reason = Place(path, number, match.start() + 1), match[2].strip(" \t:-")
            found.append([_Remark(code.strip(), reason, place, here) for code in (match[1] or "").split(",")])
        if not alone:
            below = number
    return [remark for remarks in reversed(found) for remark in remarks]


def _find_remark_fault(remark: _Remark) -> Finding | None:
    if not remark.code:
        what, hint = "an ignore names no code", "write # npuprof: ignore[NP378] one device only"
    elif fault := find_acceptance_fault(remark.code):
        what, hint = f"ignore[{remark.code}]: {fault}", "take the remark out"
    elif not remark.reason:
        what, hint = f"ignore[{remark.code}] gives no reason", f"write # npuprof: ignore[{remark.code}] and why"
    else:
        return None
    return build_finding("NP706", what, "It accepts nothing as it stands.", hint, where=remark.place)


def _build_idle_finding(remark: _Remark) -> Finding:
    what = f"{remark.code} is accepted here ({remark.reason}), and does not occur"
    return build_finding("NP705", what, "What is accepted for nothing hides the next one of its kind.", "take it out", where=remark.place)
