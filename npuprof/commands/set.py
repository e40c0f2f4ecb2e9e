"""``set``: set values in a preset, or in all presets that satisfy a condition.

Comments and layout stay.
"""

from __future__ import annotations

import os
from copy import deepcopy

from npuprof.commands.framework import arguments, flag, many, optional_argument
from npuprof.commands.framework.parameters import DRY_RUN, PERSONAL, WRITE_ANYWAY, StoreVerb
from npuprof.model import TYPE_CHECKING, TomlTable, build_usage_error
from npuprof.report import Answer
from npuprof.store.spec import Workspace

if TYPE_CHECKING:
    from npuprof.edit.preset_file import PresetFile


class Set(StoreVerb):
    """Set values in a preset.

    Comments, order and layout of the file are kept. KEY+=VALUE appends to a list and KEY-=VALUE
    removes from it, as in profile.extends+=mixins/x. With --where, omit SPEC: all presets that meet
    the condition are edited, unless they inherit the values.
    """

    usage_hint = "npuprof set bert-training hccl_timeout=600"
    group = "presets"

    spec = optional_argument(
        "SPEC", "Preset to edit: NAME, a path ending in .toml, or - for stdin", "spec"
    )
    assignments = arguments(
        "KEY=VALUE...", "Values to set; profile.KEY sets a key of [profile]", "assignment"
    )
    append = many(
        "--append",
        metavar="KEY=VALUE",
        text="Append to a list, set here or inherited; can be repeated",
        complete="assignment",
    )
    where = many(
        "--where",
        metavar="COND",
        text="Edit all presets whose resolved values meet COND, as in npuprof list --where",
        complete="condition",
    )
    yes = flag("--yes", "-y", text="Write without asking (with --where)")
    dry_run = DRY_RUN
    no_check = WRITE_ANYWAY
    personal = PERSONAL

    def run(self) -> Answer:
        """Return the change as a unified diff, and write it unless it is a dry run.

        Raises NpuprofError, and then writes nothing.
        """
        from npuprof import edit
        from npuprof.edit.lists import find_changes
        from npuprof.edit.personal_edits import answer_edit

        self._require_clear_arguments()
        workspace = Workspace(self.store)
        if self.where:
            from npuprof.edit.bulk import Bulk

            typed = [*([self.spec] if self.spec else []), *self.assignments]
            answer = Bulk(workspace, self.where, typed, self.append).answer(
                self.dry_run, self.yes, self.no_check
            )
            self._trust_typed(workspace, typed, answer)
            return answer
        assert self.spec is not None, "it was looked at"
        notes: list[str] = []

        def change_text(file: PresetFile, below: TomlTable | None) -> str:
            data = deepcopy(file.profile.document.data)
            return edit.apply_changes(
                file.text,
                find_changes(file.profile, data, self.assignments, self.append, notes, below),
            )

        answer = answer_edit(self, workspace, change_text, notes)
        if not self.personal:
            self._trust_typed(workspace, self.assignments, answer)
        return answer

    def _trust_typed(self, workspace: Workspace, typed: list[str], answer: Answer) -> None:
        """Trust the store with what the user has typed.

        Raises NpuprofError if that cannot be saved.
        """
        if (
            self.dry_run
            # what was not written needs no trust
            or answer.code
            or not any("." in text for text in typed)
        ):
            return
        from npuprof.renderers.trusting import trust_typed

        if self.where:
            trust_typed(workspace.store, typed)
        # a file outside of a store has no store to trust
        elif self.spec != "-" and not (
            profile := workspace.profile(self.spec or "")
        ).key.startswith("file:"):
            trust_typed(profile.home, typed)

    def _require_clear_arguments(self) -> None:
        """Raise NpuprofError (NP902) for conflicting or missing arguments."""
        spec = self.spec or ""
        # npuprof set KEY=VALUE without a preset: the first argument would be its name
        is_assignment = "=" in spec and not self.append and not os.path.exists(spec)
        if not self.where and (self.spec is None or is_assignment):
            raise build_usage_error(
                "which preset is to be changed?",
                f"npuprof set NAME {self.spec or 'KEY=VALUE'}, or choose presets with --where",
            )
        if not (self.assignments or self.append or (self.where and self.spec)):
            where = "where the condition is true" if self.where else f"in {self.spec}"
            raise build_usage_error(
                f"what is to be set {where}?",
                "say KEY=VALUE, as in hccl_timeout=600",
            )
        if self.where and self.personal:
            raise build_usage_error(
                "--where and --personal do not go together",
                "a personal layer lies over one preset: name it",
            )
        if self.where and spec and "=" not in spec:
            raise build_usage_error(
                f"--where chooses the presets, and {self.spec!r} names one",
                "omit one of them",
            )
        if not self.where and self.yes:
            raise build_usage_error(
                "--yes has no place without --where",
                "one preset is changed without asking",
            )


VERB = Set
