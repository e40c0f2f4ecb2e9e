"""Renames a preset: its file, its dependents, and npuprof.toml."""

from __future__ import annotations

import os
from collections.abc import Iterator
from shlex import quote

from npuprof import document
from npuprof.document.profile import Profile
from npuprof.edit import reference_renaming
from npuprof.edit.changed import ChangedStore
from npuprof.edit.preset_file import (
    PresetFile,
    encode_like,
    format_difference,
    locate_new_file,
    read_preset_file,
    require_free_name,
    require_writable_store,
)
from npuprof.edit.schemaline import move_schema_line
from npuprof.model import Finding, NpuprofError, build_error
from npuprof.report.text import escape_controls
from npuprof.store.folder import Folder
from npuprof.store.personal_layers import find_personal_file
from npuprof.system.files import read_file_content
from npuprof.system.writing import PlannedWrite


class Moved:
    """A preset and the files that refer to it, before and after the rename.

    ``changed`` is the renamed store.

    Raises NpuprofError if the preset is not a movable file, or the new name is invalid.
    """

    def __init__(self, home: Folder, old: str, new: str) -> None:
        require_writable_store(home)
        if old not in home.names():
            home.profile(old)  # raises an error that names similar presets
        self.home = home
        self.old_name = old
        self.name = new
        self.old = read_preset_file(home, old)
        if os.path.islink(self.old.path):
            what = f"{self.old.source} is a link"
            why = "A name that leads to another file is moved by hand."
            raise build_error("NP920", what, why, "move the link with git mv")
        if home.is_outside(old) or home.is_outside(new):
            what = f"{old!r} or {new!r} lies outside the store"
            why = "A glob of npuprof.toml names the file."
            raise build_error(
                "NP920",
                what,
                why,
                "move the file with git mv, and change the presets that extend it",
            )
        self.new = locate_new_file(home, new)
        require_free_name(home, new, besides=old)
        self.new.require_absent()
        self.text = move_schema_line(self.old.text, self.old.path, self.new.path)
        self.changed = ChangedStore(home, {new: (self.new.source, self.text)}, old)
        self._files: list[tuple[PresetFile, str]] = []
        self._pins: list[str] = []
        self._project, self._project_difference = _plan_project_file(home, old, new)

    def read_referrers(self) -> list[Finding]:
        """Read the files that may refer to the preset; return findings for unreadable presets.

        Raises NpuprofError.
        """
        unread: list[Finding] = []
        for name in self.home.names():
            if name == self.old_name:
                continue
            try:
                read = self.home.profile(name).document
            except NpuprofError as error:
                unread += error.findings
                continue
            renamed = reference_renaming.rename_references(read, self.old_name, self.name)
            if renamed != read.text:
                self._files.append((read_preset_file(self.home, name), renamed))
                # at once, while its data are cached
                self.changed.set_text(name, read.source, renamed)
            self._pins += [
                f"{origin} keeps {name}"
                for origin, name in reference_renaming.list_pinned_references(read, self.old_name)
            ]
        return unread

    def list_wanted(self) -> list[PlannedWrite]:
        """Return the new files, without scripts."""
        # a new file would follow the umask
        mode = os.stat(self.old.path).st_mode & 0o7777
        return [
            self.new.build_wanted(self.old.build_wanted(self.text).content or b"", mode),
            PlannedWrite(self.old.path, None, self.old.raw),
            *(file.build_wanted(renamed) for file, renamed in self._files),
            *self._project,
        ]

    def format_difference(self) -> str:
        """Return the changes in git's format."""
        old = escape_controls(self.old.source.lstrip(os.sep))
        new = escape_controls(self.new.source.lstrip(os.sep))
        shown = [
            format_difference(file.source, file.text, renamed) for file, renamed in self._files
        ]
        similarity = "similarity index 100%\n" if self.text == self.old.text else ""
        rename = f"diff --git a/{old} b/{new}\n{similarity}rename from {old}\nrename to {new}\n"
        text_change = format_difference(old, self.old.text, self.text)
        text_change = text_change.replace(f"+++ b/{old}\n", f"+++ b/{new}\n", 1)
        # the rename is last: git reads text after its header as a part of it
        return "".join([*shown, self._project_difference, rename, text_change])

    def list_notes(self) -> Iterator[str]:
        """Yield notes on places that keep the old name."""
        if self._pins:
            yield f"a revision has the preset under the name it had then: {'; '.join(self._pins)}"
        layer = find_personal_file(self.old.profile)
        if os.path.exists(layer):
            renamed = Profile(
                document.parse_document(self.name, self.new.source, self.old.text), home=self.home
            )
            yield (
                f"your personal layer over it stays where it is: mv {quote(layer)} "
                f"{quote(find_personal_file(renamed))}"
            )


def _plan_project_file(home: Folder, old: str, new: str) -> tuple[list[PlannedWrite], str]:
    """Return the new npuprof.toml, and its change in git's format.

    Empty if it does not name the preset.
    """
    project = home.project.document
    if project is None or not home.project_file:
        return [], ""
    text = reference_renaming.rename_in_project(project, old, new)
    if text == project.text:
        return [], ""
    raw = read_file_content(home.project_file)
    new_file = PlannedWrite(os.path.relpath(home.project_file), encode_like(raw, text), raw)
    return [new_file], format_difference(project.source, project.text, text)
