"""``unset``: remove values from a preset, and clear inherited values."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

from npuprof.commands.framework import arguments, flag
from npuprof.commands.framework.parameters import DRY_RUN, EDITED, PERSONAL, WRITE_ANYWAY, StoreVerb
from npuprof.document import keys
from npuprof.model import NpuprofError, build_error
from npuprof.report import Answer
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.edit.preset_file import PresetFile


class Unset(StoreVerb):
    """Remove values from a preset.

    Inherited values are cleared by an entry in the unset list of [profile].
    """

    group = "presets"

    spec = EDITED
    keys = arguments("KEY...", "Keys to remove", "key", required=True)
    own = flag(
        "--own",
        text=(
            "Remove only the preset's own value or unset entry, "
            "so that the inherited value is effective again"
        ),
    )
    dry_run = DRY_RUN
    no_check = WRITE_ANYWAY
    personal = PERSONAL

    def run(self) -> Answer:
        """Return the change as a unified diff, and write it unless it is a dry run.

        Raises NpuprofError, and then writes nothing.
        """
        from npuprof.edit.personal_edits import answer_edit

        notes: list[str] = []
        change_text = partial(self._change_text, notes)
        return answer_edit(
            self.spec,
            spec.Workspace(self.store),
            change_text,
            self.personal,
            self.dry_run,
            self.no_check,
            notes,
        )

    def _change_text(self, notes: list[str], file: PresetFile, below: dict[str, Any] | None) -> str:
        from npuprof import edit
        from npuprof.edit.assignments import (
            build_nothing_finding,
            collect_cleared_keys,
            find_inherited_keys,
            find_removals,
            format_written_key,
        )
        from npuprof.edit.paths import MISSING, PathChange, find_at_path

        data = deepcopy(file.profile.document.data)
        removals = {
            text: list(find_removals(file.profile, data, text, notes)) for text in self.keys
        }
        changes = [change for removed in removals.values() for change in removed]
        freed = collect_cleared_keys(data, self.keys) if self.own else []
        if freed:
            changes.append(
                PathChange(("profile", "unset"), find_at_path(data, ("profile", "unset")))
            )
            notes.extend(
                f"removed {name} from 'unset' in {file.profile.document.source}" for name in freed
            )
        # in a personal layer, its own value is removed and the value below is effective again
        wanted = (
            self.keys
            if below is None
            else [text for text, removed in removals.items() if not removed]
        )
        inherited = [] if self.own else find_inherited_keys(file.profile, data, wanted, below)
        cleared = find_at_path(data, ("profile", "unset"))
        listed = list(cleared) if isinstance(cleared, list) else []
        added = [
            name for name in dict.fromkeys(map(format_written_key, inherited)) if name not in listed
        ]
        notes.extend(f"{name} is inherited: added to 'unset'" for name in added)
        if added and cleared is not MISSING and not isinstance(cleared, list):
            what = (
                f"profile.unset is {keys.format_short_value(cleared)}, and no list that could "
                f"have {', '.join(added)} in it"
            )
            raise build_error(
                "NP920",
                what,
                "A name in that list clears an inherited value.",
                "make it a list of keys",
            )
        if added:
            changes.append(PathChange(("profile", "unset"), [*listed, *added]))
        if self.dry_run:
            notes[:] = [
                f"would remove {said[len('removed ') :]}" if said.startswith("removed ") else said
                for said in notes
            ]
        touched = {*map(format_written_key, [*inherited, *freed]), *listed}
        idle = [
            text
            for text, removed in removals.items()
            if not removed and format_written_key(text) not in touched
        ]
        if idle or not changes:
            name = self.spec if self.personal else file.profile.name
            raise NpuprofError(
                [
                    build_nothing_finding(file.profile, text, name, self.own)
                    for text in idle or self.keys
                ]
            )
        return edit.apply_changes(file.text, changes)


VERB = Unset
