"""``unset``: remove values from a preset, and clear inherited values."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

from npuprof.commands.framework import arguments, flag
from npuprof.commands.framework.parameters import DRY_RUN, EDITED, PERSONAL, WRITE_ANYWAY, StoreVerb
from npuprof.document import keys
from npuprof.model import TYPE_CHECKING, NpuprofError, TomlTable, build_error
from npuprof.report import Answer
from npuprof.store import spec

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
        return answer_edit(self, spec.Workspace(self.store), change_text, notes)

    def _change_text(self, notes: list[str], file: PresetFile, below: TomlTable | None) -> str:
        """Return the text of a file without the keys, which are cleared if they are inherited.

        ``below`` are the settings below a personal layer. Raises NpuprofError for a key that is
        neither set nor inherited.
        """
        from npuprof import edit
        from npuprof.edit.assignments import (
            build_nothing_finding,
            collect_cleared_keys,
            find_inherited_keys,
            find_removals,
            format_written_key,
        )
        from npuprof.edit.fixing import find_respellings
        from npuprof.edit.paths import MISSING, PathChange, find_at_path

        data = deepcopy(file.profile.document.data)
        respelled = find_respellings(file.profile, data)
        unset_path = ("profile", "unset")
        removals = {
            text: list(find_removals(file.profile, data, text, notes)) for text in self.keys
        }
        not_removed = [text for text, removed in removals.items() if not removed]
        changes = respelled + [change for removed in removals.values() for change in removed]
        freed = collect_cleared_keys(data, self.keys) if self.own else []
        if freed:
            changes.append(PathChange(unset_path, find_at_path(data, unset_path)))
            notes.extend(
                f"removed {name} from 'unset' in {file.profile.document.source}" for name in freed
            )
        inherited = []
        if not self.own:
            # in a personal layer, its own value is removed and the value below is effective again
            to_clear = self.keys if below is None else not_removed
            inherited = find_inherited_keys(file.profile, data, to_clear, below)
        cleared = find_at_path(data, unset_path)
        listed = list(cleared) if isinstance(cleared, list) else []
        added = [
            name for name in dict.fromkeys(map(format_written_key, inherited)) if name not in listed
        ]
        notes.extend(f"{name} is inherited: added to 'unset'" for name in added)
        if added:
            # the file has a fault: replacing the value would hide what it was meant to be
            if cleared is not MISSING and not isinstance(cleared, list):
                raise _build_no_list_error(cleared, added)
            changes.append(PathChange(unset_path, [*listed, *added]))
        if self.dry_run:
            for index, note in enumerate(notes):
                if note.startswith("removed "):
                    notes[index] = f"would remove {note.removeprefix('removed ')}"
        touched = {*map(format_written_key, [*inherited, *freed]), *listed}
        idle = [text for text in not_removed if format_written_key(text) not in touched]
        # a key without effect is an error: it may be misspelt
        if idle or not changes:
            name = self.spec if self.personal else file.profile.name
            raise NpuprofError(
                [
                    build_nothing_finding(file.profile, text, name, self.own)
                    for text in idle or self.keys
                ]
            )
        return edit.apply_changes(file.text, changes)


def _build_no_list_error(cleared: Any, added: list[str]) -> NpuprofError:
    what = (
        f"profile.unset is {keys.format_short_value(cleared)}, and no list that could "
        f"have {', '.join(added)} in it"
    )
    why = "A name in that list clears an inherited value."
    return build_error("NP920", what, why, "make it a list of keys")


VERB = Unset
