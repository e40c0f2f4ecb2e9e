"""Writers of findings: text and JSON. ``hosting.reports`` writes the formats of services."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from npuprof.model import TRUST_CODES, Any, Fields, Finding, shorten_values
from npuprof.report.json_text import format_json_answer
from npuprof.report.text import count_rest, escape_controls, format_count, measure_width, paint_text
from npuprof.system import decode_safely, lazy_pattern
from npuprof.system.files import read_plain_file

_COLOURS = {"error": "31", "warning": "33", "info": "36"}
#: Line numbers in messages: they change while the finding stays the same.
_LINE = lazy_pattern(r"(\.(?:toml|py|sh)):\d+(?::\d+)?")
#: Severities as SARIF names them, which are also nouns to count.
LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def format_findings(findings: Sequence[Finding], coloured: bool = False) -> str:
    """Return findings with source lines, why and what to try, with a blank line between two."""
    split_lines.cache_clear()  # files may have changed
    return "\n".join(_format_finding(finding, coloured) for finding in findings)


def mark_source_line(finding: Finding) -> list[str]:
    """Return the line that a finding cites, and one with a caret below its column.

    It has no secrets. Empty if there is none to show.
    """
    number, column = finding.position
    if not number:
        return []
    path = finding.path or ""
    text = finding.origin.document.text if finding.origin is not None else None
    lines = split_lines(path, text)
    # a longer line would fill the screen around the finding
    if number > len(lines) or len(lines[number - 1]) > 400:
        return []
    from npuprof.document.secrets import hide_secrets

    line = lines[number - 1].rstrip("\r")
    shown = hide_secrets(path, line)
    offset = max(column - 1, 0)
    if shown != line:
        # before the first secret the column is the same; after it, it is counted from the end
        first_hidden = 0
        while shown[first_hidden : first_hidden + 1] == line[first_hidden : first_hidden + 1]:
            first_hidden += 1
        from_end = offset - len(line) + len(shown) if column > first_hidden else 0
        offset = max(min(offset, first_hidden), from_end)
    caret = " " * measure_width(escape_controls(shown[:offset])) + "^"
    return [f"{number} | {escape_controls(shown)}", f"{' ' * len(str(number))} | {caret}"]


@lru_cache(1)  # findings of one file mostly follow each other, and may be thousands
def split_lines(path: str, text: str | None) -> list[str]:
    """Return the lines of a text, or of the file at a path if there is none."""
    if text is None:
        try:
            text = decode_safely(read_plain_file(path))
        except (OSError, ValueError):
            return []
    return text.split("\n")


#: The path prefix of a file from a source: its name and the version.
_OF_SOURCE = lazy_pattern(r"([A-Za-z0-9][\w/-]*)@[^:]*:", re.ASCII)


def build_hint(finding: Finding) -> str:
    """Return the hint of a finding; a trust hint for a source names the source."""
    match = _OF_SOURCE.match(finding.path or "") if finding.code in TRUST_CODES else None
    if match is None:
        return finding.hint
    return finding.hint.replace("npuprof trust STORE", f"npuprof trust {match[1]}:")


def mark_likely(message: str, certainty: str) -> str:
    """Return the message of a finding, with a mark if the finding is only likely."""
    return f"likely: {message}" if certainty == "likely" else message


def _format_finding(finding: Finding, coloured: bool) -> str:
    severity = paint_text(finding.severity, f"1;{_COLOURS[finding.severity]}", coloured)
    location = escape_controls(shorten_values(finding.place))
    prefix = f"{paint_text(location, '1', coloured)}: " if location else ""
    message = escape_controls(mark_likely(finding.message, finding.certainty))
    lines = [f"{prefix}{severity} {finding.code}: {message}"]
    if source := mark_source_line(finding):
        head, bar, caret = source[1].rpartition("| ")
        caret = paint_text(caret, _COLOURS[finding.severity], coloured)
        lines += [f"  {source[0]}", f"  {head}{bar}{caret}"]
    if finding.why:
        lines.append(f"  why: {escape_controls(finding.why)}")
    if hint := build_hint(finding):
        lines.append(f"  try: {escape_controls(hint)}")
    author = finding.origin.profile if finding.origin else ""
    dependents = [name for name in finding.profiles if name != author]
    if dependents and author:
        shown = [author, *dependents] if author in finding.profiles else dependents
        lines.append(f"  in:  {count_rest(shown, 8)}")
    return "\n".join(lines) + "\n"


def format_concise_findings(findings: Sequence[Finding]) -> str:
    """Return findings as one line each: place, code, message."""
    lines = (
        f"{finding.place}{': ' * bool(finding.place)}{finding.code} "
        f"{mark_likely(finding.message, finding.certainty)}"
        for finding in findings
    )
    return "".join(f"{escape_controls(line)}\n" for line in lines)


def build_finding_dict(finding: Finding) -> Fields:
    """Return a finding as the fields of the JSON form."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "certainty": finding.certainty,
        "message": finding.message,
        "path": finding.path,
        "line": finding.line or None,
        "column": finding.column or None,
        "key": finding.key or None,
        "why": finding.why or None,
        "hint": build_hint(finding) or None,
        "profiles": list(finding.profiles),
    }


def format_json_findings(
    findings: Sequence[Finding],
    accepted: int,
    coverage: Mapping[str, Any] | None,
    releases: Sequence[Mapping[str, Any]],
) -> str:
    """Return findings as JSON.

    ``accepted`` is the number of accepted findings, ``coverage`` the settings checked, ``releases``
    the pinned releases that files were judged for.
    """
    covered = {} if coverage is None else {"coverage": coverage}
    pinned = {"releases": releases} if releases else {}
    return format_json_answer(
        {
            "schema": "npuprof.findings/1",
            "findings": [build_finding_dict(finding) for finding in findings],
            "accepted": accepted,
            **covered,
            **pinned,
        }
    )


def strip_lines(finding: Finding) -> str:
    """Return a message without line numbers, so that it stays the same when lines move."""
    return _LINE.sub(r"\1", finding.message)


#: The formats whose paths another program opens in the work tree.
WITH_PLAIN_PATHS = ("concise", "sarif", "github", "gitlab")


def format_severity_counts(findings: Sequence[Finding]) -> str:
    """Return the counts by severity: ``2 errors, 1 warning``."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(
        format_count(counts[severity], noun)
        for severity, noun in LEVELS.items()
        if counts[severity]
    )
