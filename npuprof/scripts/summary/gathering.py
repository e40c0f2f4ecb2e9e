"""Counts over many scripts: which surfaces they set, what is wrong in them, and what a release would touch."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.model import Context, Finding
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import ImportedFile
from npuprof.scripts.reading.found import UNSET
from npuprof.scripts.summary.upgrade import Touched, list_touched


class Survey:
    """Counts so far; an upgrade goes from the release ``since`` to that of ``context``."""

    def __init__(self, context: Context, since: str = "") -> None:
        self.context = context
        self.since = since
        self.files = 0
        self.unread = 0
        self.with_settings: set[str] = set()
        self.drafts = 0
        self.surfaces: dict[str, dict[str, int]] = {}
        self.findings: list[Finding] = []
        self.touched: dict[Touched, dict[str, None]] = {}

    def add_script(self, imported: ImportedFile, folders: Sequence[str] = ()) -> None:
        """Count the settings of a script; the files that it names may be below ``folders``."""
        live = [one for one in imported.found if not one.commented and one.reason != UNSET]  # what is None is not set
        if not live:
            return
        drafts = [draft for draft in build_drafts(imported, None, folders) if draft.settings or draft.notes]
        self.drafts += len(drafts)
        self.with_settings.add(imported.file)
        for one in live:
            files = self.surfaces.setdefault(one.surface, {})
            files[imported.file] = files.get(imported.file, 0) + 1
        if self.context.cann:
            for draft in drafts:
                name = draft.file if len(drafts) == 1 else f"{draft.file}: {draft.name}"
                for touched in list_touched(draft, self.context.cann, self.since):
                    self.touched.setdefault(touched, {})[name] = None
