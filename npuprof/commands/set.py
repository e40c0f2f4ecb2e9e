"""``set``: values in a preset's own file, its comments, order and layout kept."""

from __future__ import annotations

from copy import deepcopy

from npuprof.commands.parameters import DRY_RUN, EDITED, PERSONAL, STORE, WRITE_ANYWAY
from npuprof.commands.verb import Verb, arguments
from npuprof.report.answer import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.edit.preset_file import PresetFile


class Set(Verb):
    """Set values in a preset's file; comments, order and layout stay."""

    group = "edit"
    undoable = True

    spec: str = EDITED
    assignments: list[str] = arguments("KEY=VALUE...", "What to set; profile.KEY reaches [profile].", required=True)
    dry_run: bool = DRY_RUN
    no_check: bool = WRITE_ANYWAY
    personal: bool = PERSONAL
    store: str | None = STORE

    def run(self) -> Answer:
        """Return the change as a unified diff, written unless it is a dry run. Raises NpuprofError, and writes nothing then."""
        if self.personal:
            from npuprof.edit.personal import answer_personal_edit

            return answer_personal_edit(self.spec, self.store, lambda file, _: self._change_text(file), self.dry_run, self.no_check)
        from npuprof.edit.preset_file import answer_edit

        return answer_edit(self.spec, self.store, self._change_text, self.dry_run, self.no_check)

    def _change_text(self, file: PresetFile) -> str:
        from npuprof import edit
        from npuprof.edit.assignments import parse_assignment

        data = deepcopy(file.profile.document.data)
        found = [parse_assignment(data, text) for text in self.assignments]
        return edit.apply_changes(file.text, [change for change in found if change is not None])


VERB = Set
