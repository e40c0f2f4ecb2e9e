"""``set``: values in a preset's own file, its comments, order and layout kept."""

from __future__ import annotations

from copy import deepcopy

from npuprof import edit
from npuprof.commands.parameters import DRY_RUN, EDITED, STORE, WRITE_ANYWAY
from npuprof.commands.verb import Verb, arguments
from npuprof.edit.assignments import parse_assignment
from npuprof.edit.preset_file import PresetFile, answer_edit
from npuprof.report.answer import Answer


class Set(Verb):
    """Set values in a preset's file; comments, order and layout stay."""

    group = "edit"

    spec: str = EDITED
    assignments: list[str] = arguments("KEY=VALUE...", "What to set; profile.KEY reaches [profile].", required=True)
    dry_run: bool = DRY_RUN
    no_check: bool = WRITE_ANYWAY
    store: str | None = STORE

    def run(self) -> Answer:
        """Return the change as a unified diff, written unless it is a dry run. Raises NpuprofError, and writes nothing then."""
        return answer_edit(self.spec, self.store, self._change_text, self.dry_run, self.no_check)

    def _change_text(self, file: PresetFile) -> str:
        data = deepcopy(file.profile.document.data)
        found = [parse_assignment(data, text) for text in self.assignments]
        return edit.apply_changes(file.text, [change for change in found if change is not None])


VERB = Set
