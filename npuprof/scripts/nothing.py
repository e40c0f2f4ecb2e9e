"""Why a script gives no preset: what it holds, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.report.text import format_count
from npuprof.scripts.draft import Draft, Note
from npuprof.scripts.reading.found import ImportedFile


def explain_nothing(imported: ImportedFile, drafts: Sequence[Draft], is_named: bool, users: str = "") -> str:
    """Return why no setting of a file is carried over; empty where some are, or where nobody expects any of a file of a folder.

    ``users`` says which scripts have what the functions of the file set.
    """
    if any(draft.settings for draft in drafts):
        return ""
    if users:
        return users
    notes = [note for draft in drafts for note in draft.notes]
    if notes:
        return _sum_up(notes)
    if passed := imported.facts.get("passed over", ""):
        return str(passed)
    if live := [one for one in imported.found if not one.commented]:
        return f"{format_count(len(live), 'setting')}, all of them None, which leaves them unset"
    if imported.found:
        return f"{format_count(len(imported.found), 'setting')}, commented out"
    if faults := [problem for problem in imported.problems if problem.severity != "info"]:
        return faults[0].message
    if any(site.surface == "session" for site in imported.sites):
        return "an optimizer entry without a setting"
    return "no setting in it" if is_named else ""


def _sum_up(notes: Sequence[Note]) -> str:
    count: dict[str, int] = {}
    for note in notes:
        kind = _classify(note)
        count[kind] = count.get(kind, 0) + 1
    total = f"{format_count(len(notes), 'setting')}"
    if len(count) == 1:
        return f"{total}: {next(iter(count))}"
    return f"{total}: {', '.join(f'{number} {kind}' for kind, number in sorted(count.items(), key=lambda pair: (-pair[1], pair[0])))}"


def _classify(note: Note) -> str:
    """Return the reason of a note without what is special about its place."""
    if note.why.startswith("never runs"):
        return "never run"
    if note.why.startswith("only if "):
        return "only under a condition"
    if note.found.reason:
        return "known to the run alone"
    return note.why
