"""Which findings a verb that judges tells: by code, and without those of a baseline."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from npuprof.model import Finding, NpuprofError, Place, did_you_mean
from npuprof.report import writing
from npuprof.report.findings import strip_lines

_SCHEMA = "npuprof.baseline/1"


class Mark(NamedTuple):
    """What makes a finding the same next time: its file, from the folder of the baseline, its code, its key and its message."""

    path: str
    code: str
    key: str
    message: str


class Baseline(NamedTuple):
    """The findings that stood when a baseline was written, each as often as it did; ``raw`` is the file, None where there is none."""

    file: str
    raw: bytes | None
    known: Counter[Mark]


class Compared(NamedTuple):
    """The findings that a baseline has not, how many it has, and what of it is gone."""

    new: list[Finding]
    known: Counter[Mark]
    gone: Counter[Mark]


class Codes(NamedTuple):
    """Codes that a user named: whole ones, and how others begin."""

    whole: frozenset[str]
    beginnings: tuple[str, ...]

    def name(self, code: str) -> bool:
        """Return whether a code is among them."""
        return code in self.whole or code.startswith(self.beginnings)


def read_codes(given: Sequence[str], flag: str, store: str | None = None) -> Codes:
    """Return the codes, or beginnings of codes, that a user wrote, with commas or one by one; ``store`` is the one he named.

    Raises NpuprofError for one that is none.
    """
    wanted = [code.strip() for text in given for code in text.split(",") if code.strip()]
    if not given:
        return Codes(frozenset(), ())
    from npuprof.catalog import pages
    from npuprof.commands.rule import load_team_pages

    known = [*pages.load_pages(), *(page.code for page in load_team_pages(store))]
    problems = [
        Finding("NP902", f"{flag}: there is no code {code!r}", "", did_you_mean(code, known, "npuprof rule lists all codes"))
        for code in wanted or [""]
        if not code or not any(one.startswith(code) for one in known)
    ]
    if problems:
        raise NpuprofError(problems)
    return Codes(frozenset(wanted).intersection(known), tuple(code for code in wanted if code not in known))


def read_baseline(file: str) -> Baseline:
    """Return the findings that a file holds; none where there is no file. Raises NpuprofError where it is no baseline."""
    raw = writing.read_known_file(file)
    if raw is None:
        return Baseline(file, None, Counter())
    try:
        said = json.loads(raw)
        if said["schema"] != _SCHEMA:
            raise ValueError(f"its schema is {said['schema']!r}")
        rows = [(Mark(*(_require_text(row[name]) for name in Mark._fields)), row.get("count", 1)) for row in said["findings"]]
        if any(type(count) is not int or count < 1 for _, count in rows):
            raise ValueError("a count is no whole number from 1 on")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        what, why = f"{file} is no baseline: {reason}", "What cannot be read would hide nothing, or everything."
        raise NpuprofError([Finding("NP015", what, why, "restore it, or remove it and write it anew", where=Place(file))]) from None
    known: Counter[Mark] = Counter()
    for mark, count in rows:
        known[mark] += count
    return Baseline(file, raw, known)


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def compare_with_baseline(findings: Sequence[Finding], baseline: Baseline, is_judged: Callable[[Mark], bool]) -> Compared:
    """Return what is new among findings, what is known, and what is gone of those marks that were judged."""
    left = Counter(baseline.known)
    new: list[Finding] = []
    for finding in findings:
        mark = mark_finding(finding, baseline.file)
        if left[mark]:
            left[mark] -= 1
        else:
            new.append(finding)
    gone = Counter({mark: count for mark, count in left.items() if count and is_judged(mark)})
    return Compared(new, baseline.known - gone, gone)


def mark_finding(finding: Finding, file: str) -> Mark:
    """Return what makes a finding the same next time, in a baseline in a file."""
    path = finding.origin.file if finding.origin is not None and finding.where is None else finding.path or ""
    revision = finding.origin.revision if finding.origin is not None else None
    if path and not revision:
        path = os.path.relpath(os.path.abspath(path), os.path.dirname(os.path.abspath(file)))
    return Mark(path, finding.code, finding.key, strip_lines(finding.message))


def write_baseline(baseline: Baseline, marks: Counter[Mark]) -> None:
    """Write a baseline, whole or not at all. Raises NpuprofError where it cannot be, or somebody else has meanwhile."""
    rows = [{**mark._asdict(), **({"count": count} if count > 1 else {})} for mark, count in sorted(marks.items()) if count > 0]
    text = json.dumps({"schema": _SCHEMA, "findings": rows}, indent=2, ensure_ascii=False) + "\n"
    writing.write_wanted_files([writing.Wanted(baseline.file, text.encode(errors="surrogateescape"), baseline.raw)])


def count_marks(findings: Sequence[Finding], file: str) -> Counter[Mark]:
    """Return how often each finding stands among some."""
    return Counter(mark_finding(finding, file) for finding in findings)


def build_gone_findings(gone: Counter[Mark], file: str) -> list[Finding]:
    """Return a note for everything in a baseline that is found no longer."""
    why, hint = "The baseline would hide it, should it come back.", f"take it out: --baseline {file} --write-baseline"
    return [
        Finding("NP707", f"{mark.path}: {mark.code} is in the baseline, and found no longer: {mark.message}", why, hint, where=Place(file))
        for mark in sorted(gone)
    ]
