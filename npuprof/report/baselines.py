"""Baselines: files of known findings, compared with the current ones.

Moved files are recognised.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from npuprof.model import Finding, Place, build_error
from npuprof.report.findings import strip_lines
from npuprof.system import group_pairs, writing

#: A possible name in a message; one with an @ has a revision, where the old name stays valid.
_NAME = re.compile(r"[\w./@-]*[\w/@-]")
_SCHEMA = "npuprof.baseline/1"
#: A possible file in a message; files are cited relative to the current folder.
_FILE = re.compile(r"[^\s()'\",;:]+\.\w+")


class BaselineKey(NamedTuple):
    """The identity of a finding between runs: its file, relative to the baseline, its code, key and
    message.
    """

    path: str
    code: str
    key: str
    message: str


class Baseline(NamedTuple):
    """The findings in a baseline with their counts.

    ``raw`` is the file content, None if the file is missing.
    """

    file: str
    raw: bytes | None
    known: Counter[BaselineKey]


def read_baseline(file: str) -> Baseline:
    """Return the baseline in a file; an empty one if the file is missing.

    Raises NpuprofError if it is not a baseline.
    """
    raw = writing.read_known_file(file)
    if raw is None:
        return Baseline(file, None, Counter())
    try:
        data = json.loads(raw)
        if data["schema"] != _SCHEMA:
            raise ValueError
        rows = [
            (
                BaselineKey(*(_require_text(row[name]) for name in BaselineKey._fields)),
                row.get("count", 1),
            )
            for row in data["findings"]
        ]
        if any(type(count) is not int or count < 1 for _, count in rows):
            raise ValueError
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        what, why = (
            f"{file} is not a baseline",
            "An unreadable baseline would hide no findings, or all of them.",
        )
        raise build_error(
            "NP015", what, why, "restore it, or remove and recreate it", where=Place(file)
        ) from None
    known: Counter[BaselineKey] = Counter()
    for mark, count in rows:
        known[mark] += count
    return Baseline(file, raw, known)


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def mark_finding(finding: Finding, file: str) -> BaselineKey:
    """Return the identity of a finding in the baseline ``file``."""
    path = (
        finding.origin.file
        if finding.origin is not None and finding.where is None
        else finding.path or ""
    )
    revision = finding.origin.revision if finding.origin is not None else None
    folder, message = os.path.dirname(os.path.abspath(file)), strip_lines(finding.message)
    if path and not revision:
        path = os.path.relpath(os.path.abspath(path), folder)
    if not revision and folder != os.getcwd():
        message = _FILE.sub(lambda match: _relate_path(match[0], folder), message)
    return BaselineKey(path, finding.code, finding.key, message)


def write_baseline(baseline: Baseline, marks: Counter[BaselineKey]) -> None:
    """Write a baseline atomically.

    Raises NpuprofError if that fails, or if another program has changed the file.
    """
    rows = [
        {**mark._asdict(), **({"count": count} if count > 1 else {})}
        for mark, count in sorted(marks.items())
        if count > 0
    ]
    text = json.dumps({"schema": _SCHEMA, "findings": rows}, indent=2, ensure_ascii=False) + "\n"
    writing.write_planned_files(
        [writing.PlannedWrite(baseline.file, text.encode(errors="surrogateescape"), baseline.raw)]
    )


def _relate_path(path: str, folder: str) -> str:
    """Return a path relative to a folder.

    A name that is neither a preset nor an existing file stays unchanged.
    """
    return (
        os.path.relpath(os.path.abspath(path), folder)
        if path.endswith(".toml") or os.path.isfile(path)
        else path
    )


def count_marks(findings: Sequence[Finding], file: str) -> Counter[BaselineKey]:
    """Return the number of occurrences of each finding."""
    return Counter(mark_finding(finding, file) for finding in findings)


class Compared(NamedTuple):
    """The result of a comparison: new findings, known findings under their current names, and fixed
    ones.

    ``moved`` maps missing files to the files that now have their findings.
    """

    new: list[Finding]
    known: Counter[BaselineKey]
    gone: Counter[BaselineKey]
    moved: dict[str, str]


def compare_with_baseline(
    findings: Sequence[Finding], baseline: Baseline, is_judged: Callable[[BaselineKey], bool]
) -> Compared:
    """Return the new and known findings, and the fixed ones among the marks that were checked.

    A missing file is matched with the file that now has its findings, so that a rename creates no
    new findings.
    """
    left = Counter(baseline.known)
    unknown: list[tuple[BaselineKey, Finding]] = []
    for finding in findings:
        mark = mark_finding(finding, baseline.file)
        if left[mark]:
            left[mark] -= 1
        else:
            unknown.append((mark, finding))
    left = +left
    known = Counter(baseline.known)
    moved: dict[str, str] = {}
    new: list[Finding] = []
    for (mark, finding), old in zip(
        unknown, _match_moved_marks([mark for mark, _ in unknown], left, baseline), strict=True
    ):
        if old is None:
            new.append(finding)
            continue
        if old.path != mark.path:
            moved[old.path] = mark.path
        left[old] -= 1
        known.subtract([old])
        known[mark] += 1
    gone = Counter({mark: count for mark, count in left.items() if count and is_judged(mark)})
    return Compared(new, +known - gone, gone, moved)


def _match_moved_marks(
    unknown: Sequence[BaselineKey], remaining: Counter[BaselineKey], baseline: Baseline
) -> list[BaselineKey | None]:
    """Return for each mark the one that is equal apart from the names of missing and new files.

    None if there is none.

    ``remaining`` is what was not found. A file that the baseline names is not new.
    """
    folder = os.path.dirname(os.path.abspath(baseline.file))
    named = {mark.path for mark in baseline.known}
    missing = {
        path
        for path in {mark.path for mark in remaining}
        if path and not os.path.lexists(os.path.join(folder, path))
    }
    if not missing:
        return [None] * len(unknown)
    moved = missing | ({mark.path for mark in unknown if mark.path} - named)
    names = {name for path in moved for name in _list_names(path)}

    def drop_names(mark: BaselineKey) -> BaselineKey:
        message = _NAME.sub(lambda match: "\0" if match[0] in names else match[0], mark.message)
        return mark._replace(path="" if mark.path in moved else mark.path, message=message)

    waiting = group_pairs(
        (drop_names(mark), mark) for mark in sorted(remaining.elements(), reverse=True)
    )
    candidates = [waiting.get(drop_names(mark)) for mark in unknown]
    return [former.pop() if former else None for former in candidates]


def _list_names(path: str) -> list[str]:
    """Return the names of a file in messages: its path, and its preset name in a store at any
    parent folder.
    """
    parts = path.removesuffix(".toml").split("/")
    return [path, *("/".join(parts[first:]) for first in range(len(parts)))]


def build_gone_findings(gone: Counter[BaselineKey], file: str) -> list[Finding]:
    """Return a note for each finding of a baseline that no longer occurs."""
    why, hint = (
        "The baseline would hide it, should it come back.",
        f"take it out: --baseline {file} --write-baseline",
    )
    return [
        Finding(
            "NP707",
            f"{mark.path}: {mark.code} is in the baseline, and found no longer: {mark.message}",
            why,
            hint,
            where=Place(file),
            severity="info",
        )
        for mark in sorted(gone)
    ]
