"""Baselines: files of known findings, compared with the current ones.

Moved files are recognised.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from npuprof.model import Finding, Place, Record, build_error
from npuprof.report.findings import strip_lines
from npuprof.system import group_pairs, writing

#: A possible name in a message; one with an @ has a revision, where the old name stays valid.
_NAME = re.compile(r"[\w./@-]*[\w/@-]")
_SCHEMA = "npuprof.baseline/1"
#: A possible file in a message; files are cited relative to the current folder.
_FILE = re.compile(r"[^\s()'\",;:]+\.\w+")


class BaselineKey(NamedTuple):  # a tuple: baselines are sorted and count thousands of keys
    """The identity of a finding between runs; ``path`` is relative to the baseline."""

    path: str
    code: str
    key: str
    message: str


class Baseline(Record):
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
        known = _parse_baseline(raw)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        what = f"{file} is not a baseline"
        why = "An unreadable baseline would hide no findings, or all of them."
        hint = "restore it, or remove and recreate it"
        raise build_error("NP015", what, why, hint, where=Place(file)) from None
    return Baseline(file, raw, known)


def _parse_baseline(raw: bytes) -> Counter[BaselineKey]:
    """Return the findings in a baseline with their counts.

    Raises ValueError, LookupError, TypeError or AttributeError if it is not a baseline.
    """
    data = json.loads(raw)
    if data["schema"] != _SCHEMA:
        raise ValueError
    known: Counter[BaselineKey] = Counter()
    for row in data["findings"]:
        key = BaselineKey(*(row[name] for name in BaselineKey._fields))
        count = row.get("count", 1)
        is_text = all(isinstance(text, str) for text in key)
        if type(count) is not int or count < 1 or not is_text:
            raise ValueError
        known[key] += count
    return known


def build_baseline_key(finding: Finding, file: str) -> BaselineKey:
    """Return the identity of a finding in the baseline ``file``.

    Its path, and paths in its message, are relative to the baseline's folder, so that the identity
    is the same from every current folder. Files of revisions keep their names.
    """
    path = _find_path(finding)
    # without line numbers: an edit above a finding would make it new
    message = strip_lines(finding)
    if finding.origin is None or not finding.origin.revision:
        folder = os.path.dirname(os.path.abspath(file))
        if path:
            path = os.path.relpath(os.path.abspath(path), folder)
        # in the baseline's own folder, paths in messages are relative to it already
        if folder != os.getcwd():
            message = _FILE.sub(lambda match: _relate_path(match[0], folder), message)
    return BaselineKey(path, finding.code, finding.key, message)


def _find_path(finding: Finding) -> str:
    """Return the file of a finding without its revision; empty if there is none."""
    if finding.where is None and finding.origin is not None:
        # not finding.path, which begins with the commit of a revision
        return finding.origin.file
    return finding.path or ""


def write_baseline(baseline: Baseline, counts: Counter[BaselineKey]) -> None:
    """Write a baseline atomically.

    Raises NpuprofError if that fails, or if another program has changed the file.
    """
    rows = [
        key._asdict() if count == 1 else {**key._asdict(), "count": count}
        for key, count in sorted(counts.items())
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
    if path.endswith(".toml") or os.path.isfile(path):
        return os.path.relpath(os.path.abspath(path), folder)
    return path


def count_findings(findings: Sequence[Finding], file: str) -> Counter[BaselineKey]:
    """Return the number of occurrences of each finding."""
    return Counter(build_baseline_key(finding, file) for finding in findings)


class BaselineComparison(Record):
    """The result of a comparison with a baseline.

    ``new`` are findings that it lacks, ``known`` those that it has, under their current names,
    ``gone`` are fixed. ``moved`` maps missing files to the files that now have their findings.
    """

    new: list[Finding]
    known: Counter[BaselineKey]
    gone: Counter[BaselineKey]
    moved: dict[str, str]


def compare_with_baseline(
    findings: Sequence[Finding], baseline: Baseline, is_judged: Callable[[BaselineKey], bool]
) -> BaselineComparison:
    """Return the new and known findings, and the fixed ones among the keys that were checked.

    A missing file is matched with the file that now has its findings, so that a rename creates no
    new findings.
    """
    remaining = Counter(baseline.known)
    unknown = []
    for finding in findings:
        key = build_baseline_key(finding, baseline.file)
        if remaining[key]:
            remaining[key] -= 1
        else:
            unknown.append((key, finding))
    # a Counter keeps the keys of findings that were all found, with the count 0
    remaining = +remaining
    known = Counter(baseline.known)
    moved = {}
    new = []
    old_keys = _match_moved_keys([key for key, _ in unknown], remaining, baseline)
    for (key, finding), old in zip(unknown, old_keys, strict=True):
        if old is None:
            new.append(finding)
            continue
        if old.path != key.path:
            moved[old.path] = key.path
        remaining[old] -= 1
        known.subtract([old])
        known[key] += 1
    gone = Counter({key: count for key, count in remaining.items() if count and is_judged(key)})
    return BaselineComparison(new, +known - gone, gone, moved)


def _match_moved_keys(
    unknown: Sequence[BaselineKey], remaining: Counter[BaselineKey], baseline: Baseline
) -> list[BaselineKey | None]:
    """Return for each key the one that is equal apart from the names of missing and new files.

    None if there is none.

    ``remaining`` is what was not found. A file that the baseline names is not new.
    """
    folder = os.path.dirname(os.path.abspath(baseline.file))
    missing = {
        path
        for path in {key.path for key in remaining}
        if path and not os.path.lexists(os.path.join(folder, path))
    }
    if not missing:
        return [None] * len(unknown)
    new_paths = {key.path for key in unknown if key.path} - {key.path for key in baseline.known}
    moved = missing | new_paths
    names = {name for path in moved for name in _list_names(path)}

    def drop_names(key: BaselineKey) -> BaselineKey:
        message = _NAME.sub(lambda match: "\0" if match[0] in names else match[0], key.message)
        return key._replace(path="" if key.path in moved else key.path, message=message)

    # in reverse order, as the last one of a group is taken first
    candidates = group_pairs(
        (drop_names(key), key) for key in sorted(remaining.elements(), reverse=True)
    )
    matches = []
    for key in unknown:
        same = candidates.get(drop_names(key))
        matches.append(same.pop() if same else None)
    return matches


def _list_names(path: str) -> list[str]:
    """Return the names of a file in messages: its path, and its preset name below any folder."""
    parts = path.removesuffix(".toml").split("/")
    return [path, *("/".join(parts[first:]) for first in range(len(parts)))]


def build_gone_findings(gone: Counter[BaselineKey], file: str) -> list[Finding]:
    """Return a note for each finding of a baseline that no longer occurs."""
    why = "The baseline would hide it, should it come back."
    hint = f"take it out: --baseline {file} --write-baseline"
    findings = []
    for key in sorted(gone):
        what = f"{key.path}: {key.code} is in the baseline, and found no longer: {key.message}"
        findings.append(Finding("NP707", what, why, hint, where=Place(file), severity="info"))
    return findings
