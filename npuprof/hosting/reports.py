"""Findings in the formats of services: SARIF, GitHub's annotations, GitLab's code quality."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256

from npuprof.catalog.code_pages import load_pages
from npuprof.hosting.installed import find_documentation
from npuprof.model import Fields, Finding, __version__
from npuprof.report.findings import LEVELS, build_hint, mark_likely, strip_lines
from npuprof.report.json_text import format_json_answer
from npuprof.report.text import escape_controls

#: GitLab's severity names.
_GRAVITY = {"error": "critical", "warning": "minor", "info": "info"}


def _list_sentences(finding: Finding) -> list[str]:
    """Return the message, reason and hint of a finding."""
    sentences = [mark_likely(finding.message, finding.certainty)]
    if finding.why:
        sentences.append(f"Why: {finding.why}")
    if hint := build_hint(finding):
        sentences.append(f"Try: {hint}")
    return sentences


def _join_sentences(finding: Finding) -> str:
    return " ".join(
        part if part.endswith((".", "?")) else f"{part}." for part in _list_sentences(finding)
    )


def _format_github_annotation(finding: Finding) -> str:
    level = {"error": "error", "warning": "warning", "info": "notice"}[finding.severity]
    properties = {
        "file": finding.path,
        "line": finding.line,
        "col": finding.column,
        "title": f"npuprof {finding.code}",
    }
    shown = ",".join(
        f"{name}={_escape_github_property(str(value))}"
        for name, value in properties.items()
        if value
    )
    text = _escape_github_text("\n".join(_list_sentences(finding)))
    return f"::{level} {shown}::{text}\n"


def _escape_github_text(text: str) -> str:
    # % first: it begins the codes of the others
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escape_controls(text)


def _escape_github_property(text: str) -> str:
    return _escape_github_text(text).replace(":", "%3A").replace(",", "%2C")


def _format_sarif_findings(findings: Sequence[Finding]) -> str:
    examples = {finding.code: finding for finding in reversed(findings)}
    codes = sorted(examples)
    rules = [_describe_sarif_rule(code, examples[code]) for code in codes]
    # what code scanning shows and filters by is a property of the rule
    likely = {finding.code for finding in findings if finding.certainty == "likely"}
    for rule in rules:
        rule["properties"] = {"precision": "medium" if rule["id"] in likely else "very-high"}
    results = [
        {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": LEVELS[finding.severity],
            "message": {"text": _join_sentences(finding)},
            "locations": [{"physicalLocation": _format_sarif_location(finding)}],
            "partialFingerprints": {"npuprof/v1": fingerprint},
            "properties": {"certainty": finding.certainty},
        }
        for finding, fingerprint in _fingerprint_findings(findings)
    ]
    driver = {"name": "npuprof", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return format_json_answer(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [run],
        }
    )


def _describe_sarif_rule(code: str, example: Finding) -> Fields:
    """Return the rule of a code; that of a team, which has no page, by one of its findings."""
    page = load_pages().get(code)
    if page:
        title = page.title
        text = f"{page.why} {page.fix}"
    else:
        title = example.why.rstrip(".")
        text = f"{example.why} Try: {example.hint}."
    rule = {"id": code, "shortDescription": {"text": title}, "help": {"text": text.strip()}}
    if page and (documentation := find_documentation()):
        # the page has no anchor for each code: a browser looks for the text
        name = "rules" if code.startswith("NP3") else "checks"
        rule["helpUri"] = f"{documentation}/reference/{name}.md#:~:text={code}"
    return rule


def _format_sarif_location(finding: Finding) -> Fields:
    from urllib.parse import quote

    uri = quote(_find_path(finding), errors="surrogateescape")
    location: Fields = {"artifactLocation": {"uri": uri}}
    if finding.line:
        location["region"] = {"startLine": finding.line, "startColumn": finding.column or 1}
    return location


def _fingerprint_findings(findings: Sequence[Finding]) -> Iterator[tuple[Finding, str]]:
    """Yield findings with fingerprints.

    These omit line numbers, which change between pipelines.
    """
    counts = Counter[str]()  # of equal findings, which need distinct fingerprints
    for finding in findings:
        identity = "\0".join((_find_path(finding), finding.code, finding.key, strip_lines(finding)))
        counts[identity] += 1
        identity = f"{identity}\0{counts[identity]}"
        yield finding, sha256(identity.encode(errors="surrogateescape")).hexdigest()


def _find_path(finding: Finding) -> str:
    """Return the path of a finding; services reject those without a file."""
    return posixpath.normpath(finding.path or "npuprof.toml")


def _format_gitlab_findings(findings: Sequence[Finding]) -> str:
    return format_json_answer(
        [
            {
                "description": _join_sentences(finding),
                "check_name": finding.code,
                "fingerprint": fingerprint,
                "severity": _GRAVITY[finding.severity],
                "location": {"path": _find_path(finding), "lines": {"begin": finding.line or 1}},
            }
            for finding, fingerprint in _fingerprint_findings(findings)
        ]
    )


#: The writers by ``--format``.
FORMATS: dict[str, Callable[[Sequence[Finding]], str]] = {
    "sarif": _format_sarif_findings,
    "github": lambda findings: "".join(map(_format_github_annotation, findings)),
    "gitlab": _format_gitlab_findings,
}
