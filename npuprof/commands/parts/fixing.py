"""What hints are certain of, written into presets: new texts are judged before any file is written, and all are, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from npuprof import document, edit
from npuprof.commands.parts.findings import Outcome, can_be_mended
from npuprof.commands.parts.judged import JudgedStore
from npuprof.document import Document
from npuprof.edit.paths import MISSING, PathChange, find_at_path
from npuprof.edit.preset_file import BOM, choose_cited_path, format_difference, refuse_builtin
from npuprof.model import Finding, NpuprofError, Path
from npuprof.report import output, writing
from npuprof.report.writing import Wanted
from npuprof.store import Folder

#: A text that was mended may show what its faults hid; so often it is looked at again.
_MOST_ROUNDS = 5


class Mended(NamedTuple):
    """Texts by the paths of their files, as they are and as they shall be; how many findings that mends, and what is left."""

    before: dict[str, Document]
    after: dict[str, Document]
    number: int
    outcome: Outcome

    def format_difference(self) -> str:
        """Return what changes as a unified diff."""
        return "".join(format_difference(old.source, old.text, self.after[path].text) for path, old in self.before.items())

    def write_files(self) -> None:
        """Write all files, or none. Raises NpuprofError where one cannot be written, or was written by somebody else."""
        writing.write_wanted_files([_build_wanted(path, old, self.after[path]) for path, old in self.before.items()])


def mend_presets(open_store: Callable[[], JudgedStore], judge: Callable[[JudgedStore], Outcome]) -> Mended:
    """Return what mends the findings whose hints are certain; nothing is written. Raises NpuprofError."""
    judged = open_store()
    home = judged.home
    if not isinstance(home, Folder) or not home.in_work_tree:
        what = f"{home.label} is read as it is, and cannot be mended"
        raise NpuprofError([Finding("NP920", what, "", "do it in a work tree of that repository")])
    refuse_builtin(home)
    outcome = judge(judged)
    before: dict[str, Document] = {}
    after: dict[str, Document] = {}
    number = 0
    for _ in range(_MOST_ROUNDS):
        changed: dict[str, Document] = {}
        for path, (old, findings) in _collect_fixable(outcome).items():
            new, made = _fix_document(old, findings)
            if made:
                before.setdefault(path, old)
                changed[path] = new
                number += made
        if not changed:
            break
        after |= changed
        judged = open_store()
        for new in after.values():
            judged.lay_over(new)
        outcome = judge(judged)
    return Mended(before, after, number, outcome)


def count_mendable(outcome: Outcome) -> int:
    """Return how many findings can be mended for certain; what shows only once these are gone is not counted."""
    return sum(_fix_document(old, findings)[1] for old, findings in _collect_fixable(outcome).values())


def _collect_fixable(outcome: Outcome) -> dict[str, tuple[Document, list[Finding]]]:
    """Return the findings that can be mended by the path of their file, with what that holds."""
    found: dict[str, tuple[Document, list[Finding]]] = {}
    for finding in outcome.settled.findings:
        read = finding.origin.document if finding.origin and can_be_mended(finding) else None
        if isinstance(read, Document) and (path := _find_file(read, outcome.judged)):
            found.setdefault(path, (read, []))[1].append(finding)
    return found


def _find_file(document: Document, judged: JudgedStore) -> str:
    """Return the path of the file that a document was read from, as it can be written; an empty text where it is none of this store."""
    name = document.name
    if not document.text:
        return ""
    if name.endswith(".toml"):
        return name  # such a file needs no store
    home = judged.home
    if not isinstance(home, Folder):
        return ""
    return home.profile_path(name) if home.cite_file(f"{name}.toml") == document.source else ""


def _fix_document(old: Document, findings: Sequence[Finding]) -> tuple[Document, int]:
    """Return a document with as many of its faults mended as can be at once, and their number."""
    changes: list[PathChange] = []
    taken: set[Path] = set()
    above: set[Path] = set()
    for finding in findings:
        change = _build_change(old, finding)
        if change is None or change.path in above or any(change.path[:end] in taken for end in range(len(change.path) + 1)):
            continue  # it is told again once the other is made
        changes.append(change)
        taken.add(change.path)
        above |= {change.path[:end] for end in range(len(change.path))}
    text, made = _apply_most(old.text, changes)
    return document.parse_document(old.name, old.source, text), made


def _apply_most(text: str, changes: Sequence[PathChange]) -> tuple[str, int]:
    """Return a text with all changes made that can be, and their number; one that cannot stays a finding."""
    if not changes:
        return text, 0
    try:
        return edit.apply_changes(text, list(changes)), len(changes)
    except NpuprofError:
        if len(changes) == 1:
            return text, 0
    middle = len(changes) // 2
    text, first = _apply_most(text, changes[:middle])
    text, second = _apply_most(text, changes[middle:])
    return text, first + second


def _build_change(old: Document, finding: Finding) -> PathChange | None:
    """Return what a finding's fix does to the document, None where its place does not stand in it."""
    if finding.fix is None or finding.origin is None:
        return None
    path, name = finding.origin.path, finding.fix.name
    if path[-1:] == (0,) and isinstance(find_at_path(old.data, path[:-1]), str):
        path = path[:-1]  # a text by itself is a list of one
    there = find_at_path(old.data, path)
    if there is MISSING:
        return None
    if not name:
        return PathChange(path, finding.fix.value)
    return PathChange(path, there, (), name) if find_at_path(old.data, (*path[:-1], name)) is MISSING else None


def _build_wanted(path: str, old: Document, new: Document) -> Wanted:
    mark = BOM if output.read_file_content(path).startswith(BOM) else b""
    return Wanted(choose_cited_path(path, old.source), mark + new.text.encode(), mark + old.text.encode())
