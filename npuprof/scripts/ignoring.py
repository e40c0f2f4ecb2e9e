"""Comments that accept findings of a script: ``# npuprof: ignore[NP378] reason``.

They apply to their line, to the next line, or to one statement.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from npuprof.catalog import build_finding
from npuprof.catalog.code_pages import find_acceptance_fault
from npuprof.model import Finding, Place
from npuprof.scripts.python.parsing import Script, iterate_comments
from npuprof.scripts.python.statements import list_lines
from npuprof.system import decode_safely

_MARK = re.compile(r"#+[ \t]*npuprof:[ \t]*ignore\b(?:\[([^\]]*)\])?(.*)")


#: A line up to its comment, skipping quoted text.
# "*+" is possessive: a quote without an end costs no backtracking
_COMMENT = re.compile(r"(?:[^'\"#\\]|\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|(?<=[^\s;])#)*+(#)")


class _IgnoreComment(NamedTuple):
    """One accepted code, its place, and the lines it covers."""

    code: str
    reason: str
    place: Place
    lines: tuple[int, ...]


def sift_script_findings(
    path: str, data: bytes, findings: Sequence[Finding]
) -> tuple[list[Finding], list[Finding]]:
    """Return the reported and the accepted findings of a script.

    Unused ignore comments are reported too.
    """
    if b"npuprof:" not in data:
        return list(findings), []
    text = decode_safely(data).replace("\r\n", "\n").replace("\r", "\n")
    beginnings = _find_beginnings(path, text)
    faults = [
        (note, _find_ignore_fault(note)) for note in _find_ignore_comments(path, text.split("\n"))
    ]
    good = [note for note, fault in faults if fault is None]
    # reversed: of several comments for one line, the first one counts as used
    near = {(note.code, line): note for note in reversed(good) for line in note.lines}
    used = {
        id(near.get((finding.code, finding.line))) for finding in findings if finding.path == path
    }
    # a comment that matches nothing on its own or the next line covers the statement: findings are
    # at its start or at an argument
    wide = [note for note in reversed(good) if id(note) not in used]
    far = {(note.code, beginnings.get(note.lines[-1], note.lines[-1])): note for note in wide}
    reported: list[Finding] = []
    accepted: list[Finding] = []
    for finding in findings:
        line = finding.line
        by = (
            near.get((finding.code, line)) or far.get((finding.code, beginnings.get(line, line)))
            if finding.path == path
            else None
        )
        (accepted if by else reported).append(finding)
        used.add(id(by))
    idle = [_build_idle_finding(note) for note in good if id(note) not in used]
    return [*reported, *(fault for _, fault in faults if fault), *idle], accepted


def _find_beginnings(path: str, text: str) -> dict[int, int]:
    """Return, for each line, the first line of its innermost statement.

    A shell continues lines with a backslash.
    """
    if path.endswith(".py"):
        tree = Script(path, text.encode()).tree
        nodes = (
            [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
            if tree is not None
            else []
        )  # inner ones come last
        return {line: node.lineno for node in nodes for line in list_lines(node)}
    beginnings = {}
    first = 1
    for number, line in enumerate(text.split("\n"), 1):
        beginnings[number] = first
        first = first if line.endswith("\\") else number + 1
    return beginnings


def _find_ignore_comments(path: str, lines: Sequence[str]) -> list[_IgnoreComment]:
    """Return the ignore comments of a script; one on its own line covers the next code line."""
    comments = {
        number: match.start(1)
        for number, line in enumerate(lines, 1)
        if (match := _COMMENT.match(line))
    }
    # in Python, the tokenizer decides: the pattern does not know texts of several lines
    if path.endswith(".py"):
        comments = {token.start[0]: token.start[1] for token in iterate_comments("\n".join(lines))}
    notes: list[_IgnoreComment] = []
    below = 0
    for number in range(len(lines), 0, -1):  # from the bottom, so that the covered line is known
        line = lines[number - 1]
        match = _MARK.search(line, comments[number]) if number in comments else None
        if match is None or line[: match.start()].strip():
            below = number
        if match is not None:
            here = (number, max(below, number)) if below != number else (number,)
            place, reason = Place(path, number, match.start() + 1), match[2].strip(" \t:-")
            notes[:0] = [
                _IgnoreComment(code.strip(), reason, place, here)
                for code in (match[1] or "").split(",")
            ]
    return notes


def _find_ignore_fault(note: _IgnoreComment) -> Finding | None:
    fault = find_acceptance_fault(note.code) if note.code else "it names no code"
    if not fault and note.reason:
        return None
    what = f"ignore[{note.code}]: {fault or 'it gives no reason'}"
    hint = "write # npuprof: ignore[CODE] and why, or remove it"
    return build_finding("NP706", what, "It accepts nothing in this form.", hint, where=note.place)


def _build_idle_finding(note: _IgnoreComment) -> Finding:
    what = f"{note.code} is accepted here ({note.reason}), and does not occur"
    return build_finding(
        "NP705",
        what,
        "An unused entry hides the next finding of its kind.",
        "take it out",
        where=note.place,
    )
