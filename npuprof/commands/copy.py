"""``copy``: copy a preset under a new name."""

from __future__ import annotations

import os

from npuprof.commands.framework import argument, flag
from npuprof.commands.framework.parameters import DRY_RUN, WRITE_ANYWAY, StoreVerb
from npuprof.document.profile import Profile
from npuprof.edit import PathChange, apply_changes
from npuprof.edit.preset_file import answer_new_preset, locate_new_file
from npuprof.edit.schemaline import add_schema_line, move_schema_line
from npuprof.model import build_error, is_same_typed_value
from npuprof.renderers.one_file import flatten_config
from npuprof.report import Answer
from npuprof.store import is_source_reference, spec, strip_revision

_FLAT = "pass --flat to copy it as one file without parents"


class Copy(StoreVerb):
    """Copy a preset under a new name.

    Comments are kept. Existing references still point to the original. The parents of a preset that
    npuprof ships are copied too, if the store lacks them.
    """

    usage_hint = (
        "npuprof copy bert-training team/bert; npuprof new "
        "NAME --extends PARENT makes one that follows another."
    )
    group = "presets"

    spec = argument("SPEC", "Preset to copy: NAME, NAME@REV, or a path ending in .toml", "spec")
    name = argument("NEW", "Name of the new preset", "nothing")
    flat = flag("--flat", text="Write one file without parents, with the values of all layers")
    dry_run = DRY_RUN
    no_check = WRITE_ANYWAY

    def run(self) -> Answer:
        """Return the new files as unified diffs, and write them unless it is a dry run.

        Raises NpuprofError, and then writes nothing.
        """
        workspace = spec.Workspace(self.store)
        home = workspace.store
        file = locate_new_file(home, self.name)
        if self.flat:
            config = workspace.resolve_spec(self.spec)
            old = config.profile
            texts = {self.name: add_schema_line(flatten_config(config), file.path, home.root)}
        else:
            self._require_preset_file()
            old = workspace.profile(self.spec)
            if old.home is not None and old.home.is_shipped:
                texts = _collect_shipped_texts(workspace, old, self.name)
            else:
                # the line names the schema by a path relative to the file
                is_file = os.path.isfile(self.spec) or self.spec.endswith(".toml")
                path = self.spec if is_file else home.profile_path(old.name)
                texts = {self.name: move_schema_line(old.document.text, path, file.path)}
        answer = answer_new_preset(home, texts, self.dry_run, self.no_check)
        notes = list(answer.notes)
        if "description" in old.table:
            notes.append(
                f"its description is that of {self.spec}: npuprof set {self.name} "
                "profile.description=TEXT"
            )
        return answer._replace(notes=tuple(notes))

    def _require_preset_file(self) -> None:
        if is_source_reference(self.spec) or ("+" in self.spec and not os.path.isfile(self.spec)):
            what = f"{self.spec!r} is not a preset file of this store"
            why = "The names in its text would refer to something else here."
            hint = f"npuprof new {self.name} --extends {self.spec} makes one that follows it"
            raise build_error("NP920", what, why, f"{_FLAT}; {hint}")


def _collect_shipped_texts(
    workspace: spec.Workspace, old: Profile, new_name: str
) -> dict[str, str]:
    """Return the text of a shipped preset under its new name, after parents that the store lacks.

    Raises NpuprofError if the store has another preset of a parent's name.
    """
    home = workspace.store
    copied: dict[str, Profile] = {}
    *parents, _ = workspace.resolver.lineages.find_lineage(old)
    for parent in parents:
        name = parent.name
        known = copied.get(name) or (home.profile(name) if name in home.names() else None)
        if name != new_name and known is None:
            copied[name] = parent
        elif known is None or not is_same_typed_value(known.document.data, parent.document.data):
            what = f"{old.name} extends {name}, and {home.cite_file(f'{name}.toml')} is another one"
            why = "With that parent, the copy would resolve to other values."
            raise build_error("NP923", what, why, _FLAT)
    copied[new_name] = old
    return {
        name: add_schema_line(_drop_pins(profile), home.profile_path(name), home.root)
        for name, profile in copied.items()
    }


def _drop_pins(profile: Profile) -> str:
    """Return the text of a preset that extends the pinned parents as they are copied."""
    written, plain = [*profile.extends], [*map(strip_revision, profile.extends)]
    changes = [PathChange(("profile", "extends"), plain)] if plain != written else []
    return apply_changes(profile.document.text, changes)


VERB = Copy
