"""One script after the other into counts: what it holds, what of it a preset carries, what is left out and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof.catalog.values import is_same_typed_value
from npuprof.document.keys import format_key_segment, format_short_value
from npuprof.model import Context, Finding
from npuprof.resolve.digests import compute_digest
from npuprof.scripts.draft import Draft, Note
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import FoundSetting, ImportedFile
from npuprof.scripts.reading.found import UNSET
from npuprof.scripts.summary.upgrade import Touched, list_touched

#: How reasons begin that go on with an expression of the script, and what they have in common.
_REASONS = (
    ("depends on ", "depends on the run"),
    ("only if ", "stands under a condition"),
    ("never runs", "never runs"),
    ("the key is computed", "the key is computed"),
    ("the name is computed", "the key is computed"),
    ("line ", "taken back further down"),
    ("stored in ", "stored in a field that the adapter does not read"),
)
#: Why the earlier of two settings is in no preset.
OVERRULED = "set again further down"


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
        live = [one for one in imported.found if not one.commented and one.reason != UNSET]  # what is None is not set
        self.commented += sum(one.commented for one in imported.found)
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
        self._count_settings(live, [note for draft in drafts for note in draft.notes])
        for draft in drafts:
            self._add_draft(draft, draft.file if len(drafts) == 1 else f"{draft.file}: {draft.name}")

    def _add_draft(self, draft: Draft, name: str) -> None:
        self.drafts += 1
        if self.context.cann:
            for touched in list_touched(draft, self.context.cann, self.since):
                self.touched.setdefault(touched, {})[name] = None
        if draft.settings:
            self.presets += 1
            mark = compute_digest(draft.settings)
            self.configurations.setdefault(mark, Configuration(draft.settings)).drafts.append(name)

    def _count_settings(self, live: Sequence[FoundSetting], notes: Sequence[Note]) -> None:
        """Count each setting once: it is in a preset, or left out for a reason, however many presets tell of it."""
        reasons = {id(note.found): OVERRULED if note.overruled else name_reason(note.why) for note in reversed(notes)}
        last: dict[tuple[str, str], FoundSetting] = {}
        for one in live:
            if id(one) not in reasons:
                last[one.scope, one.key] = one
        for one in live:
            reason = reasons.get(id(one), "")
            if not reason and not is_same_typed_value(last[one.scope, one.key].value, one.value):
                reason = OVERRULED
            if reason:
                self._leave_out(one, reason)
            else:
                self.carried += 1

    def _leave_out(self, one: FoundSetting, reason: str) -> None:
        row = self.left_out.setdefault(reason, LeftOut(one.file_line))
        row.count += 1
        row.files[one.file] = None


def name_reason(why: str) -> str:
    """Return a reason without what it says of one setting only."""
    known = "never runs" if why.endswith("so this never runs") else next((said for start, said in _REASONS if why.startswith(start)), "")
    return known or why.partition(": ")[0]


def list_settings(configuration: Configuration) -> tuple[str, ...]:
    """Return the settings of a configuration as people read them."""
    return tuple(
        f"{format_key_segment(key) if '.' not in key else key} = {format_short_value(value)}"
        for key, value in configuration.settings.items()
    )
