"""``copy``: copy a preset under a new name."""

from __future__ import annotations

import os

from npuprof.commands.framework import argument
from npuprof.commands.framework.parameters import DRY_RUN, WRITE_ANYWAY, StoreVerb
from npuprof.edit.preset_file import answer_new_preset, locate_new_file
from npuprof.edit.schemaline import move_schema_line
from npuprof.model import build_error
from npuprof.report import Answer
from npuprof.store import is_source_reference, spec


class Copy(StoreVerb):
    """Copy a preset under a new name.

    Comments are kept. Existing references still point to the original.
    """

    usage_hint = (
        "npuprof copy bert-training team/bert; npuprof new "
        "NAME --extends PARENT makes one that follows another."
    )
    group = "presets"

    spec = argument("SPEC", "Preset to copy: NAME, NAME@REV, or a path ending in .toml", "spec")
    name = argument("NEW", "Name of the new preset", "nothing")
    dry_run = DRY_RUN
    no_check = WRITE_ANYWAY

    def run(self) -> Answer:
        """Return the new file as a unified diff, and write it unless it is a dry run.

        Raises NpuprofError, and then writes nothing.
        """
        if is_source_reference(self.spec) or ("+" in self.spec and not os.path.isfile(self.spec)):
            what = f"{self.spec!r} is not a preset file of this store"
            why = "The names in its text would refer to something else here."
            raise build_error(
                "NP920",
                what,
                why,
                f"npuprof new {self.name} --extends with its name makes one that follows it",
            )
        workspace = spec.Workspace(self.store)
        home = workspace.store
        old = workspace.profile(self.spec)
        file = locate_new_file(home, self.name)
        # the line names the schema by a path relative to the file
        is_file = os.path.isfile(self.spec) or self.spec.endswith(".toml")
        text = move_schema_line(
            old.document.text, self.spec if is_file else home.profile_path(old.name), file.path
        )
        answer = answer_new_preset(home, self.name, file, text, self.dry_run, self.no_check)
        notes = list(answer.notes)
        if "description" in old.table:
            notes.append(
                f"its description is that of {self.spec}: npuprof set {self.name} "
                "profile.description=TEXT"
            )
        return answer._replace(notes=tuple(notes))


VERB = Copy
