"""Applies safe fixes to the texts of presets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from npuprof import document, edit
from npuprof.checks import is_fixable
from npuprof.document import Document
from npuprof.edit.paths import MISSING, PathChange, find_at_path
from npuprof.edit.preset_file import choose_cited_path, encode_like
from npuprof.model import Finding, NpuprofError, Path
from npuprof.system.files import read_file_content
from npuprof.system.writing import PlannedWrite


def fix_documents(
    findings: Iterable[Finding], find_file: Callable[[Document], str]
) -> dict[str, tuple[Document, Document, int]]:
    """Return documents before and after their fixes, with the number of fixes, by file path.

    ``find_file`` returns the path of a document's file, an empty string if it must not be changed.
    """
    fixable: dict[str, tuple[Document, list[Finding]]] = {}
    for finding in findings:
        read = finding.origin.document if finding.origin and is_fixable(finding) else None
        if isinstance(read, Document) and (path := find_file(read)):
            fixable.setdefault(path, (read, []))[1].append(finding)
    fixed = {path: (old, *_fix_document(old, faults)) for path, (old, faults) in fixable.items()}
    return {path: change for path, change in fixed.items() if change[2]}


def build_fixed_file(path: str, old: Document, new: Document) -> PlannedWrite:
    """Return the file of a fixed document."""
    raw = read_file_content(path)
    return PlannedWrite(
        choose_cited_path(path, old.source), encode_like(raw, new.text), encode_like(raw, old.text)
    )


def _fix_document(old: Document, findings: Sequence[Finding]) -> tuple[Document, int]:
    """Return a document with as many faults fixed as possible in one pass, and their number."""
    changes = []
    taken: set[Path] = set()
    above: set[Path] = set()
    for finding in findings:
        change = _build_change(old, finding)
        if (
            change is None
            or change.path in above
            or any(change.path[:end] in taken for end in range(len(change.path) + 1))
        ):
            continue  # the next run reports it again
        changes.append(change)
        taken.add(change.path)
        above |= {change.path[:end] for end in range(len(change.path))}
    text, count = _apply_most(old.text, changes)
    return document.parse_document(old.name, old.source, text), count


def _apply_most(text: str, changes: Sequence[PathChange]) -> tuple[str, int]:
    """Return a text with all possible changes applied, and their number; others stay findings."""
    with suppress(NpuprofError):
        return edit.apply_changes(text, changes), len(changes)
    count = 0
    for change in changes:
        with suppress(NpuprofError):
            text, count = edit.apply_changes(text, [change]), count + 1
    return text, count


def _build_change(old: Document, finding: Finding) -> PathChange | None:
    """Return a finding's fix as a change of the document, None if its place is missing."""
    if finding.fix is None or finding.origin is None:
        return None
    path, name = finding.origin.path, finding.fix.name
    if path[-1:] == (0,) and isinstance(find_at_path(old.data, path[:-1]), str):
        path = path[:-1]  # a single text is a list of one element
    there = find_at_path(old.data, path)
    if there is MISSING:
        return None
    if not name:
        return PathChange(path, finding.fix.value)
    return (
        PathChange(path, there, name)
        if find_at_path(old.data, (*path[:-1], name)) is MISSING
        else None
    )
