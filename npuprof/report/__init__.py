"""Findings as people and machines read them: text, json, sarif, github."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from npuprof.document.keys import is_no_number, is_visible
from npuprof.model import Finding

_COLOURS = {"error": "31", "warning": "33", "info": "36"}
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}  # as SARIF names them, and as we count them


def paint_text(text: str, code: str, coloured: bool) -> str:
    """Return text in a terminal colour."""
    return f"\033[{code}m{text}\033[0m" if coloured else text


def format_findings(findings: Sequence[Finding], coloured: bool = False) -> str:
    """Return findings with their source lines, why and what to try."""
    return "".join(_format_finding(finding, coloured) for finding in findings)


def _format_finding(finding: Finding, coloured: bool) -> str:
    severity = paint_text(finding.severity, f"1;{_COLOURS[finding.severity]}", coloured)
    place = f"{paint_text(escape_controls(finding.place), '1', coloured)}: " if finding.place else ""
    lines = [f"{place}{severity} {finding.code}: {escape_controls(finding.message)}"]
    source = _read_source_line(finding)
    if source is not None:
        number = str(finding.line)
        caret = " " * _measure_display_width(source[: finding.column - 1]) + "^"
        lines += [
            f"  {number} | {escape_controls(source)}",
            f"  {' ' * len(number)} | {paint_text(caret, _COLOURS[finding.severity], coloured)}",
        ]
    if finding.why:
        lines.append(f"  why: {escape_controls(finding.why)}")
    if finding.hint:
        lines.append(f"  try: {escape_controls(finding.hint)}")
    author = finding.origin.profile if finding.origin else ""
    heirs = [name for name in finding.profiles if name != author]
    if heirs and author:
        lines.append(f"  in:  {_format_profile_names([author, *heirs] if author in finding.profiles else heirs)}")
    return "\n".join(lines) + "\n"


def _format_profile_names(names: Sequence[str]) -> str:
    shown = ", ".join(map(escape_controls, names[:8] if len(names) <= 8 else names[:7]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 7} more"


def _read_source_line(finding: Finding) -> str | None:
    if not finding.line:
        return None
    if finding.origin is not None:
        lines = finding.origin.document.text.split("\n")
    else:
        try:
            from npuprof.report.output import read_plain_file

            lines = read_plain_file(finding.path or "").decode(errors="replace").split("\n")
        except (OSError, ValueError):
            return None
    if finding.line > len(lines):
        return None
    line = lines[finding.line - 1].rstrip("\r")
    return line if len(line) <= 400 else None


def _measure_display_width(text: str) -> int:
    return sum(2 if "\u1100" <= char <= "\uffdc" and char not in "\u2018\u2019" else 1 for char in escape_controls(text))


def escape_controls(text: str) -> str:
    """Return text on one line with every character shown that shows nothing by itself.

    No file content, name or message can move a terminal's cursor, or turn the text around it.
    """
    if is_visible(text):
        return text
    return "".join(char if is_visible(char) else "    " if char == "\t" else _escape_character(char) for char in text)


def escape_lines(text: str) -> str:
    """Return text as ``escape_controls`` does, line by line: its line ends stay."""
    return "\n".join(map(escape_controls, text.split("\n")))


def escape_file_line(line: str) -> str:
    """Return a line of a file to be read: still a line of a patch, its tabs and its end as they are, unless it hides something."""
    text = line.removesuffix("\n").removesuffix("\r")
    end = line[len(text) :] if line.endswith("\n") else "\n"
    return "\t".join(map(escape_controls, text.split("\t"))) + end


def escape_terminal_text(text: str, coloured: bool) -> str:
    """Return an answer as a terminal may have it: of a text that is ``coloured``, the colours stay."""
    if not coloured:
        lines = text.split("\n")
        return "\n".join(escape_file_line(line).removesuffix("\n") for line in lines)
    import re

    parts = re.split(r"(\033\[[0-9;]*m)", text)
    return "".join(part if place % 2 else escape_terminal_text(part, False) for place, part in enumerate(parts))


def _escape_character(char: str) -> str:
    code = ord(char)
    short = {"\n": "\\n", "\r": "\\r"}.get(char)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


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


def format_json_answer(value: Any) -> str:
    """Return a JSON answer: indented, not escaped, ending in a newline."""
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str, allow_nan=False) + "\n"
    except ValueError:
        return format_json_answer(_replace_infinite_numbers(value))
    return _escape_json_text(text)


def _escape_json_text(text: str) -> str:
    """Return JSON in which what shows nothing is escaped, half a file name that is no text too: the values are the same."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(char if char == "\n" or is_visible(char) else "".join(_list_json_escapes(char)) for char in text)


def _list_json_escapes(char: str) -> list[str]:
    code = ord(char)
    units = [code] if code < 0x10000 else [0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF)]
    return [f"\\u{unit:04x}" for unit in units]


def _replace_infinite_numbers(value: Any) -> Any:
    """Return a value with the numbers that JSON has no form for as the text that TOML has for them."""
    if isinstance(value, dict):
        return {name: _replace_infinite_numbers(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_infinite_numbers(item) for item in value]
    return str(value) if is_no_number(value) else value


def _format_json_findings(findings: Sequence[Finding]) -> str:
    return format_json_answer({"schema": "npuprof.findings/1", "findings": [build_finding_dict(finding) for finding in findings]})


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

    codes = sorted({finding.code for finding in findings})
    described = []
    for code in codes:
        page = pages.find_page(code)
        described.append({"id": code, "shortDescription": {"text": page.title}, "help": {"text": f"{page.why} {page.fix}".strip()}})
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
    "json": _format_json_findings,
    "sarif": _format_sarif_findings,
    "github": _format_github_findings,
}


def format_severity_counts(findings: Sequence[Finding]) -> str:
    """Return the counts by severity: ``2 errors, 1 warning``."""
    numbers = {noun: sum(finding.severity == severity for finding in findings) for severity, noun in _LEVELS.items()}
    return ", ".join(format_count(number, noun) for noun, number in numbers.items() if number)


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 preset``, ``2 presets``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
