"""Findings as people and machines read them: text, json, sarif, github."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from npuprof.model import Finding
from npuprof.report.text import escape_controls, format_count, measure_width, paint_text, shorten_words

_COLOURS = {"error": "31", "warning": "33", "info": "36"}
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}  # as SARIF names them, and as we count them


def format_findings(findings: Sequence[Finding], coloured: bool = False) -> str:
    """Return findings with their source lines, why and what to try."""
    sources = _Sources()
    return "".join(_format_finding(finding, coloured, sources) for finding in findings)


class _Sources:
    """The lines of the text that was asked for last: findings of one file mostly follow each other, and may be thousands."""

    def __init__(self) -> None:
        self._mark: object = None
        self._lines: list[str] = []

    def read_line(self, finding: Finding, number: int) -> str | None:
        """Return the line a finding cites, None where there is none to show."""
        if not number:
            return None
        mark = id(finding.origin.document) if finding.origin is not None else finding.path
        if mark != self._mark:
            self._mark, self._lines = mark, _split_source(finding)
        if number > len(self._lines):
            return None
        line = self._lines[number - 1].rstrip("\r")
        return line if len(line) <= 400 else None


def _split_source(finding: Finding) -> list[str]:
    if finding.origin is not None:
        return finding.origin.document.text.split("\n")
    from npuprof.report.output import read_plain_file

    try:
        return read_plain_file(finding.path or "").decode(errors="replace").split("\n")
    except (OSError, ValueError):
        return []


def _format_finding(finding: Finding, coloured: bool, sources: _Sources) -> str:
    severity = paint_text(finding.severity, f"1;{_COLOURS[finding.severity]}", coloured)
    place = finding.place
    place = f"{paint_text(_format_words(place), '1', coloured)}: " if place else ""
    lines = [f"{place}{severity} {finding.code}: {_format_words(finding.message)}"]
    line, column = finding.position
    source = sources.read_line(finding, line)
    if source is not None:
        number = str(line)
        caret = " " * measure_width(escape_controls(source[: column - 1])) + "^"
        lines += [
            f"  {number} | {escape_controls(source)}",
            f"  {' ' * len(number)} | {paint_text(caret, _COLOURS[finding.severity], coloured)}",
        ]
    if finding.why:
        lines.append(f"  why: {_format_words(finding.why)}")
    if finding.hint:
        lines.append(f"  try: {_format_words(finding.hint)}")
    author = finding.origin.profile if finding.origin else ""
    heirs = [name for name in finding.profiles if name != author]
    if heirs and author:
        lines.append(f"  in:  {_format_profile_names([author, *heirs] if author in finding.profiles else heirs)}")
    return "\n".join(lines) + "\n"


def _format_words(text: str) -> str:
    return escape_controls(shorten_words(text))


def _format_profile_names(names: Sequence[str]) -> str:
    shown = ", ".join(map(_format_words, names[:8] if len(names) <= 8 else names[:7]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 7} more"


def build_finding_dict(finding: Finding) -> dict[str, Any]:
    """Return a finding as the fields of the JSON form."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "path": finding.path,
        "line": finding.line or None,
        "column": finding.column or None,
        "key": finding.key or None,
        "why": finding.why or None,
        "hint": finding.hint or None,
        "profiles": list(finding.profiles),
    }


def format_json_findings(findings: Sequence[Finding], accepted: int = 0) -> str:
    """Return findings as JSON; ``accepted`` is how many more there would be, had nobody accepted them."""
    from npuprof.report.json_text import format_json_answer

    told = [build_finding_dict(finding) for finding in findings]
    return format_json_answer({"schema": "npuprof.findings/1", "findings": told, "accepted": accepted})


def _format_github_findings(findings: Sequence[Finding]) -> str:
    return "".join(_format_github_annotation(finding) for finding in findings)


def _format_github_annotation(finding: Finding) -> str:
    level = {"error": "error", "warning": "warning", "info": "notice"}[finding.severity]
    places = {"file": finding.path, "line": finding.line or None, "col": finding.column or None, "title": f"npuprof {finding.code}"}
    shown = ",".join(f"{name}={_escape_github_text(str(value), property_=True)}" for name, value in places.items() if value)
    parts = [finding.message, f"Why: {finding.why}" if finding.why else "", f"Try: {finding.hint}" if finding.hint else ""]
    return f"::{level} {shown}::{_escape_github_text(chr(10).join(filter(None, parts)))}\n"


def _escape_github_text(text: str, property_: bool = False) -> str:
    for char, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), *(((":", "%3A"), (",", "%2C")) if property_ else ())):
        text = text.replace(char, code)
    return escape_controls(text)


def _format_sarif_findings(findings: Sequence[Finding]) -> str:
    from npuprof.catalog import pages
    from npuprof.model import __version__
    from npuprof.report.json_text import format_json_answer

    codes = sorted({finding.code for finding in findings})
    described = []
    for code in codes:
        page = pages.load_pages().get(code)
        one = next(finding for finding in findings if finding.code == code)
        title, text = (page.title, f"{page.why} {page.fix}") if page else (one.why.rstrip("."), f"{one.why} Try: {one.hint}.")
        described.append({"id": code, "shortDescription": {"text": title}, "help": {"text": text.strip()}})
    results = []
    for finding in findings:
        result: dict[str, Any] = {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": _LEVELS[finding.severity],
            "message": {
                "text": " ".join(filter(None, (f"{finding.message}.", finding.why, f"Try: {finding.hint}." if finding.hint else "")))
            },
        }
        if finding.path:
            from urllib.parse import quote

            location: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.path, errors="surrogateescape")}}
            if finding.line:
                location["region"] = {"startLine": finding.line, "startColumn": finding.column or 1}
            result["locations"] = [{"physicalLocation": location}]
        results.append(result)
    driver = {"name": "npuprof", "version": __version__, "rules": described}
    return format_json_answer({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    })  # fmt: skip


#: Machine forms of a list of findings, by ``--format``.
FORMATS: dict[str, Callable[[Sequence[Finding]], str]] = {
    "json": format_json_findings,
    "sarif": _format_sarif_findings,
    "github": _format_github_findings,
}


def format_severity_counts(findings: Sequence[Finding]) -> str:
    """Return the counts by severity: ``2 errors, 1 warning``."""
    numbers = {noun: sum(finding.severity == severity for finding in findings) for severity, noun in _LEVELS.items()}
    return ", ".join(format_count(number, noun) for noun, number in numbers.items() if number)
