"""Baselines: the findings that stood once, in a file, each with what makes it the same next time."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from npuprof.model import Finding, NpuprofError, Place
from npuprof.report import writing
from npuprof.report.findings import strip_lines
from npuprof.report.output import read_plain_file

#: What may be a name in a message; one with an @ means a revision, in which the old name stays.
NAME = re.compile(r"[\w./@-]*[\w/@-]")
#: A baseline says what it is in its first line but one.
_HEAD = 200
_SCHEMA = "npuprof.baseline/1"
#: What may be a file in a message: they are cited from where the user stands.
_FILE = re.compile(r"[^\s()'\",;:]+\.\w+")


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
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        if not isinstance(error, (ValueError, KeyError)):  # what Python says of it is about this code
            reason = "it is a file of another kind"
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


def mark_finding(finding: Finding, file: str) -> Mark:
    """Return what makes a finding the same next time, in a baseline in a file."""
    path = finding.origin.file if finding.origin is not None and finding.where is None else finding.path or ""
    revision = finding.origin.revision if finding.origin is not None else None
    folder, message = os.path.dirname(os.path.abspath(file)), strip_lines(finding.message)
    if path and not revision:
        path = os.path.relpath(os.path.abspath(path), folder)
    if not revision and folder != os.getcwd():
        message = _FILE.sub(lambda match: _relate_path(match[0], folder), message)
    return Mark(path, finding.code, finding.key, message)


def write_baseline(baseline: Baseline, marks: Counter[Mark]) -> None:
    """Write a baseline, whole or not at all. Raises NpuprofError where it cannot be, or somebody else has meanwhile."""
    writing.write_wanted_files([build_wanted_baseline(baseline, marks)])


def _relate_path(path: str, folder: str) -> str:
    """Return a path from a folder; a word that names no preset, and no file that is there, stays what it is."""
    return os.path.relpath(os.path.abspath(path), folder) if path.endswith(".toml") or os.path.isfile(path) else path


def build_wanted_baseline(baseline: Baseline, marks: Counter[Mark]) -> writing.Wanted:
    """Return the file of a baseline as it shall be with other marks."""
    rows = [{**mark._asdict(), **({"count": count} if count > 1 else {})} for mark, count in sorted(marks.items()) if count > 0]
    text = json.dumps({"schema": _SCHEMA, "findings": rows}, indent=2, ensure_ascii=False) + "\n"
    return writing.Wanted(baseline.file, text.encode(errors="surrogateescape"), baseline.raw)


def count_marks(findings: Sequence[Finding], file: str) -> Counter[Mark]:
    """Return how often each finding stands among some."""
    return Counter(mark_finding(finding, file) for finding in findings)


def plan_changed_baselines(
    files: Iterable[str], change: Callable[[Baseline], Counter[Mark]], problems: list[Finding]
) -> list[writing.Wanted]:
    """Return the baselines among some files as they shall be, with other marks; what is none after all goes to ``problems``."""
    found = []
    for path in files:
        try:
            if b'"npuprof.baseline/' not in read_plain_file(path, _HEAD, whole=False):
                continue
            known = read_baseline(path)
        except OSError:
            continue
        except NpuprofError as error:
            problems += [one._replace(severity="warning") for one in error.findings]
            continue
        marks = change(known)
        if marks != known.known:
            found.append(build_wanted_baseline(known, marks))
    return found


def rename_marks(known: Baseline, old: tuple[str, str], new: tuple[str, str], list_findings: Callable[[], list[Finding]]) -> Counter[Mark]:
    """Return what a baseline knows where a preset has another name; ``old`` and ``new`` are names and paths.

    ``list_findings`` judges the presets as they will be: what a message says of the preset follows only where one says it then.
    """
    folder = os.path.dirname(os.path.abspath(known.file))
    was, now = (os.path.relpath(os.path.abspath(path), folder) for _, path in (old, new))
    words = {old[0]: new[0], was: now}
    told: Counter[Mark] | None = None
    renamed: Counter[Mark] = Counter()
    for mark, count in known.known.items():
        here = mark._replace(path=now) if mark.path == was else mark
        said = here._replace(message=NAME.sub(lambda match: words.get(match[0], match[0]), here.message))
        if said != here:
            told = count_marks(list_findings(), known.file) if told is None else told
            here = said if said in told or said.code.startswith("NP8") else here  # (those are of scripts)
        renamed[here] += count
    return renamed


def carry_marks(known: Baseline, keys: Mapping[str, Mapping[str, str]], list_findings: Callable[[], list[Finding]]) -> Counter[Mark]:
    """Return what a baseline knows where keys of presets have new names; ``keys`` are those, old and new, by path.

    ``list_findings`` judges the presets as they will be: the finding of a code at an old key is the one of that code at the new key.
    """
    folder = os.path.dirname(os.path.abspath(known.file))
    names = {os.path.relpath(os.path.abspath(path), folder): changed for path, changed in keys.items()}
    due = [mark for mark in known.known if mark.key in names.get(mark.path, {})]
    if not due:
        return known.known
    told = count_marks(list_findings(), known.file)
    at: dict[tuple[str, str, str], list[Mark]] = {}
    for mark in told - known.known:
        at.setdefault((mark.path, mark.code, mark.key), []).append(mark)
    carried = Counter(known.known)
    for mark in due:
        found = at.get((mark.path, mark.code, names[mark.path][mark.key]))
        if found and mark not in told:
            carried[found.pop(0)] += carried.pop(mark)
    return carried
