"""Applies safe fixes to the texts of presets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from npuprof import document, edit
from npuprof.checks import is_fixable
from npuprof.checks.frameworks import find_spelling_faults
from npuprof.document import Document
from npuprof.document.profile import Profile
from npuprof.edit.paths import MISSING, PathChange, find_at_path
from npuprof.edit.preset_file import choose_cited_path, encode_like
from npuprof.model import Finding, NpuprofError, Path, Record
from npuprof.system.files import read_file_content
from npuprof.system.writing import PlannedWrite


class FixedDocument(Record):
    """A document before and after its fixes, and their number."""

    old: Document
    new: Document
    count: int


def fix_documents(
    findings: Iterable[Finding], find_file: Callable[[Document], str]
) -> dict[str, FixedDocument]:
    """Return the documents with at least one fix, by file path.

    ``find_file`` returns the path of a document's file, an empty string if it must not be changed.
    """
    documents: dict[str, Document] = {}
    fixable = defaultdict(list)
    for finding in findings:
        read = finding.origin.document if finding.origin and is_fixable(finding) else None
        # the first document of a file stays: all its findings cite the same text
        if isinstance(read, Document) and (path := find_file(read)):
            documents.setdefault(path, read)
            fixable[path].append(finding)
    fixed = {path: _fix_document(documents[path], faults) for path, faults in fixable.items()}
    return {path: change for path, change in fixed.items() if change.count}


def build_fixed_file(path: str, old: Document, new: Document) -> PlannedWrite:
    """Return the file of a fixed document."""
    raw = read_file_content(path)
    return PlannedWrite(
        choose_cited_path(path, old.source), encode_like(raw, new.text), encode_like(raw, old.text)
    )


def _fix_document(old: Document, findings: Sequence[Finding]) -> FixedDocument:
    """Return a document with as many faults fixed as possible in one pass.

    Of two fixes at the same path, or one above the other, only the first is applied: the next run
    reports the other one again.
    """
    changes = []
    changed: set[Path] = set()
    above_changed = set()
    for finding in findings:
        change = _build_change(old, finding)
        if change is None or change.path in above_changed:
            continue
        above = {change.path[:end] for end in range(len(change.path))}
        if change.path in changed or above & changed:
            continue
        changes.append(change)
        changed.add(change.path)
        above_changed |= above
    text, count = _apply_most(old.text, changes)
    return FixedDocument(old, document.parse_document(old.name, old.source, text), count)


def _apply_most(text: str, changes: Sequence[PathChange]) -> tuple[str, int]:
    """Return a text with all possible changes applied, and their number; others stay findings."""
    with suppress(NpuprofError):
        return edit.apply_changes(text, changes), len(changes)
    count = 0
    for change in changes:
        with suppress(NpuprofError):
            # one impossible change must not prevent the others
            text, count = edit.apply_changes(text, [change]), count + 1
    return text, count


def _build_change(old: Document, finding: Finding) -> PathChange | None:
    """Return a finding's fix as a change of the document, None if its place is missing."""
    if finding.fix is None or finding.origin is None:
        return None
    path = finding.origin.path
    name = finding.fix.name
    if path[-1:] == (0,) and isinstance(find_at_path(old.data, path[:-1]), str):
        path = path[:-1]  # a single text is a list of one element
    if "." in name:  # the path goes on below a quoted key with dots
        end = next((at for at, part in enumerate(path, 1) if "." in str(part)), 0)
        path = path[:end]
    value = find_at_path(old.data, path) if path else MISSING
    if value is MISSING:
        return None
    if not name:
        return PathChange(path, finding.fix.value)
    for renamed in ((name,), name.split(".")):
        if find_at_path(old.data, (*path[:-1], *renamed)) is not MISSING:
            return None  # a rename must not overwrite a value
    return PathChange(path, value, name)


def find_respellings(profile: Profile, data: Any) -> list[PathChange]:
    """Return the changes that write the arguments of a profile as npuprof does.

    They are applied to ``data``.
    """
    changes = [
        change
        for fault in find_spelling_faults(profile)
        if (change := _build_change(profile.document, fault))
    ]
    for change in changes:
        change.make(data)
    return changes
