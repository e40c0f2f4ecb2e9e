"""Why a script gives no preset: what is in it, and why that is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from npuprof.report.text import format_count
from npuprof.scripts.draft import Draft, Note
from npuprof.scripts.reading.found import ImportedFile


def explain_nothing(imported: ImportedFile, drafts: Sequence[Draft], is_named: bool, users: str = "") -> str:
    """Return why no setting of a file is carried over; empty where some are, or for a file of a folder that has none.

    ``users`` says which scripts have what the functions of the file set.
    """
    notes = [note for draft in drafts for note in draft.notes]
    live = sum(not setting.commented for setting in imported.found)
    faults = [problem.message for problem in imported.problems if problem.severity != "info"]
    has_entry = any(site.surface == "session" for site in imported.sites)
    reasons = (
        _sum_up(notes) if notes else "",
        str(imported.facts.get("passed over", "")),
        f"{format_count(live, 'setting')}, all of them None, which leaves them unset" if live else "",
        f"{format_count(len(imported.found), 'setting')}, commented out" if imported.found else "",
        *faults[:1],
        "an optimizer entry without a setting" if has_entry else "no setting in it" if is_named else "",
    )
    return "" if any(draft.settings for draft in drafts) else users or next(filter(None, reasons), "")


def _sum_up(notes: Sequence[Note]) -> str:
    count = Counter(map(_classify, notes))
    rows = sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))
    kinds = rows[0][0] if len(rows) == 1 else ", ".join(f"{number} {kind}" for kind, number in rows)
    return f"{format_count(len(notes), 'setting')}: {kinds}"


def _classify(note: Note) -> str:
    """Return the reason of a note without what is special about its place."""
    if note.why.startswith("never runs"):
        return "never run"
    if note.condition:
        return "only under a condition"
    return "known to the run alone" if note.found.reason else note.why
