"""Findings in the formats of services: SARIF, annotations of GitHub, the code-quality report of
GitLab.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from npuprof.catalog.code_pages import load_pages
from npuprof.model import Finding, __version__
from npuprof.report.findings import LEVELS, build_hint, strip_lines
from npuprof.report.json_text import format_json_answer
from npuprof.report.text import escape_controls

#: GitLab's severity names.
_GRAVITY = {"error": "critical", "warning": "minor", "info": "info"}


def _list_sentences(finding: Finding) -> list[str]:
    """Return the message, reason and hint of a finding."""
    hint = build_hint(finding)
    return [
        finding.message,
        *([f"Why: {finding.why}"] if finding.why else []),
        *([f"Try: {hint}"] if hint else []),
    ]


def _join_sentences(finding: Finding) -> str:
    return " ".join(part if part.endswith(".") else f"{part}." for part in _list_sentences(finding))


def _format_github_annotation(finding: Finding) -> str:
    level = {"error": "error", "warning": "warning", "info": "notice"}[finding.severity]
    places = {
        "file": finding.path,
        "line": finding.line or None,
        "col": finding.column or None,
        "title": f"npuprof {finding.code}",
    }
    shown = ",".join(
        f"{name}={_escape_github_text(str(value), property_=True)}"
        for name, value in places.items()
        if value
    )
    return f"::{level} {shown}::{_escape_github_text(chr(10).join(_list_sentences(finding)))}\n"


def _escape_github_text(text: str, property_: bool = False) -> str:
    for char, code in (
        ("%", "%25"),
        ("\r", "%0D"),
        ("\n", "%0A"),
        *(((":", "%3A"), (",", "%2C")) if property_ else ()),
    ):
        text = text.replace(char, code)
    return escape_controls(text)


def _format_sarif_findings(findings: Sequence[Finding]) -> str:
    codes = sorted({finding.code for finding in findings})
    described = []
    for code in codes:
        page = load_pages().get(code)
        example = next(finding for finding in findings if finding.code == code)
        title, text = (
            (page.title, f"{page.why} {page.fix}")
            if page
            else (example.why.rstrip("."), f"{example.why} Try: {example.hint}.")
        )
        described.append(
            {"id": code, "shortDescription": {"text": title}, "help": {"text": text.strip()}}
        )
    results = []
    for finding in findings:
        result: dict[str, Any] = {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": LEVELS[finding.severity],
            "message": {"text": _join_sentences(finding)},
        }
        if finding.path:
            from urllib.parse import quote

            location: dict[str, Any] = {
                "artifactLocation": {"uri": quote(finding.path, errors="surrogateescape")}
            }
            if finding.line:
                location["region"] = {"startLine": finding.line, "startColumn": finding.column or 1}
            result["locations"] = [{"physicalLocation": location}]
        results.append(result)
    driver = {"name": "npuprof", "version": __version__, "rules": described}
    return format_json_answer(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [
                {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
            ],
        }
    )


def _format_gitlab_findings(findings: Sequence[Finding]) -> str:
    """Return a code-quality report.

    Fingerprints omit line numbers, which change between pipelines.
    """
    seen: dict[str, int] = {}
    rows = []
    for finding in findings:
        path = posixpath.normpath(finding.path or "npuprof.toml")
        mark = "\0".join((path, finding.code, finding.key, strip_lines(finding.message)))
        seen[mark] = seen.get(mark, 0) + 1
        rows.append(
            {
                "description": _join_sentences(finding),
                "check_name": finding.code,
                "fingerprint": sha256(
                    f"{mark}\0{seen[mark]}".encode(errors="surrogateescape")
                ).hexdigest(),
                "severity": _GRAVITY[finding.severity],
                "location": {"path": path, "lines": {"begin": finding.line or 1}},
            }
        )
    return format_json_answer(rows)


#: The writers by ``--format``.
FORMATS: dict[str, Callable[[Sequence[Finding]], str]] = {
    "sarif": _format_sarif_findings,
    "github": lambda findings: "".join(map(_format_github_annotation, findings)),
    "gitlab": _format_gitlab_findings,
}
