"""``source remove``: remove a source."""

from __future__ import annotations

import os

from npuprof.commands.framework import argument, flag
from npuprof.commands.framework.parameters import StoreVerb
from npuprof.model import Finding, raise_any
from npuprof.report import Answer
from npuprof.store import spec


class Remove(StoreVerb):
    """Remove a source.

    Removes its entries from npuprof.toml and npuprof.lock. A vendored copy stays.
    """

    group = "team"

    name = argument("NAME", "Source to remove", "source")
    force = flag("--force", text="Remove it even if presets still extend its presets")

    def run(self) -> Answer:
        """Write both files. Raises NpuprofError if presets still extend presets of the source."""
        files = spec.open_project_files(self.store)
        (source,) = files.select_sources([self.name])
        hint = "take it out of extends first, copy the preset in, or say --force"
        raise_any(
            [
                Finding(
                    "NP042",
                    f"{parent.preset} extends {parent.reference}",
                    "",
                    hint,
                    parent.origin,
                    "profile.extends",
                    (parent.preset,),
                )
                for parent in (files.iterate_references() if not self.force else ())
                if parent.reference.partition(":")[0] == source.name
            ]
        )
        remaining = {
            name: locked for name, locked in files.lock.sources.items() if name != source.name
        }
        written = files.write({source.name: None}, remaining)
        notes = [f"removed {source.name}: wrote {', '.join(written)}"]
        vendored = os.path.join(files.folder, source.vendor)
        if source.vendor and os.path.isdir(vendored):
            shown = os.path.relpath(vendored)
            notes.append(f"its copy in {shown} stays; nothing reads it any more: git rm -r {shown}")
        return Answer(None, tuple(notes))


VERB = Remove
