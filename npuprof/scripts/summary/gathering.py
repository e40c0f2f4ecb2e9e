"""One script after the other into counts: what it holds, what of it a preset carries, what is left out and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof.document.keys import format_key_segment, format_short_value
from npuprof.model import Context, Finding
from npuprof.resolve.digests import compute_digest
from npuprof.scripts.draft import Draft, Note
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import ImportedFile
from npuprof.scripts.summary.upgrade import Touched, list_touched

#: How reasons begin that go on with an expression of the script, and what they have in common.
_REASONS = (
    ("depends on ", "depends on the run"),
    ("only if ", "stands under a condition"),
    ("never runs", "never runs"),
    ("the key is computed", "the key is computed"),
    ("the name is computed", "the key is computed"),
    ("stored in ", "stored in a field that the adapter does not read"),
)


class Configuration:
    """Settings that one script or several have alike."""

    __slots__ = ("drafts", "settings")

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.drafts: list[str] = []


class LeftOut:
    """Settings that are in no preset for one reason: how many, in which files, where the first one is."""

    __slots__ = ("count", "files", "place")

    def __init__(self, place: str) -> None:
        self.count = 0
        self.files: dict[str, None] = {}
        self.place = place


class Survey:
    """What has been gathered so far; ``since`` and ``context`` say which releases an upgrade lies between."""

    def __init__(self, context: Context | None = None, since: str = "") -> None:
        self.context = context or Context()
        self.since = since
        self.files = 0
        self.unread = 0
        self.with_settings: dict[str, int] = {}
        self.carried = self.commented = self.presets = self.drafts = 0
        self.surfaces: dict[str, dict[str, int]] = {}
        self.values: dict[str, dict[str, set[str]]] = {}
        self.configurations: dict[str, Configuration] = {}
        self.left_out: dict[str, LeftOut] = {}
        self.findings: list[Finding] = []
        self.touched: dict[Touched, dict[str, None]] = {}

    @property
    def left_out_count(self) -> int:
        """How many settings are in no preset."""
        return sum(one.count for one in self.left_out.values())

    def add_script(self, imported: ImportedFile, folders: Sequence[str] = ()) -> None:
        """Count what one script holds; files that it names may lie below the folders."""
        live = [one for one in imported.found if not one.commented]
        self.commented += len(imported.found) - len(live)
        if not live:
            return
        self.with_settings[imported.file] = len(live)
        for one in live:
            files = self.surfaces.setdefault(one.surface, {})
            files[imported.file] = files.get(imported.file, 0) + 1
            if one.key and not one.reason and not one.dead:
                shown = format_short_value(one.value)
                self.values.setdefault(one.key, {}).setdefault(shown, set()).add(imported.file)
        drafts = [draft for draft in build_drafts(imported, None, folders) if draft.settings or draft.notes]
        for draft in drafts:
            self._add_draft(draft, draft.file if len(drafts) == 1 else f"{draft.file}: {draft.name}")

    def _add_draft(self, draft: Draft, name: str) -> None:
        self.drafts += 1
        self.carried += len(draft.settings)
        for note in draft.notes:
            self._add_note(note)
        if self.context.cann:
            for touched in list_touched(draft, self.context.cann, self.since):
                self.touched.setdefault(touched, {})[name] = None
        if draft.settings:
            self.presets += 1
            mark = compute_digest(draft.settings)
            self.configurations.setdefault(mark, Configuration(draft.settings)).drafts.append(name)

    def _add_note(self, note: Note) -> None:
        reason = name_reason(note.why)
        row = self.left_out.setdefault(reason, LeftOut(note.found.file_line))
        row.count += 1
        row.files[note.found.file] = None


def name_reason(why: str) -> str:
    """Return a reason without what it says of one setting only."""
    known = next((said for start, said in _REASONS if why.startswith(start)), "")
    return known or why.partition(": ")[0]


def list_settings(configuration: Configuration) -> tuple[str, ...]:
    """Return the settings of a configuration as people read them."""
    return tuple(
        f"{format_key_segment(key) if '.' not in key else key} = {format_short_value(value)}"
        for key, value in configuration.settings.items()
    )
