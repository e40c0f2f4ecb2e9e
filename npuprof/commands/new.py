"""``new``: a preset that was not there."""

from __future__ import annotations

import os
from typing import Any

from npuprof import document
from npuprof.commands.parameters import DRY_RUN, STORE, WRITE_ANYWAY
from npuprof.commands.verb import Verb, argument, flag, many, option
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer
from npuprof.store import is_profile_name, spec


class New(Verb):
    """Write a new preset."""

    group = "edit"
    undoable = True

    name: str = argument("NAME", "The name of the new preset.")
    extends: list[str] = many("--extends", metavar="NAME", text="A preset it extends; may be repeated, later wins.")
    description: str | None = option("--description", metavar="TEXT", text="When to use it.")
    scenario: str | None = option("--scenario", metavar="NAME", text="training, online-inference or offline-inference.")
    abstract: bool = flag("--abstract", text="It is only there to be extended.")
    set_: list[str] = many("--set", metavar="KEY=VALUE", text="Set a value; may be repeated.")
    dry_run: bool = DRY_RUN
    no_check: bool = WRITE_ANYWAY
    store: str | None = STORE

    def run(self) -> Answer:
        """Return the new file as a unified diff, written unless it is a dry run. Raises NpuprofError, and writes nothing then."""
        from npuprof.edit.preset_file import choose_cited_path, format_difference, judge_change, refuse_builtin
        from npuprof.report import writing
        from npuprof.report.locks import lock_folders
        from npuprof.report.writing import Wanted

        home = spec.Workspace(self.store).store
        refuse_builtin(home)
        if not is_profile_name(self.name):
            home.profile(self.name)  # says what a name is
        path = home.profile_path(self.name)
        folder = home.folder_of(self.name)
        _refuse_outside(folder, path, self.name)
        source = home.cite_file(f"{self.name}.toml")
        text = self._write_text()
        if not self.no_check:
            judge_change(self.store, None, Profile(document.parse_document(self.name, source, text), home=home))
        with lock_folders([home.root]):
            if os.path.lexists(path):
                what, hint = f"{source} exists already", "choose another name, or change it with set"
                raise NpuprofError([Finding("NP923", what, "Nothing is overwritten.", hint)])
            if not self.dry_run:
                writing.make_folder_below(os.path.dirname(path), folder)
                writing.write_wanted_files([Wanted(choose_cited_path(path, source), text.encode(), None, folder)])
        return Answer(format_difference(source, None, text), (f"{'would write' if self.dry_run else 'wrote'} {source}",))

    def _write_text(self) -> str:
        from npuprof import edit
        from npuprof.edit import PathChange
        from npuprof.edit.assignments import parse_assignment

        table: dict[str, Any] = {"description": self.description, "scenario": self.scenario, "abstract": self.abstract or None}
        table = {key: value for key, value in {**table, "extends": self.extends or None}.items() if value is not None}
        data: dict[str, Any] = {"profile": table}
        changes = [PathChange(("profile", key), value) for key, value in table.items()]
        changes += [change for text in self.set_ if (change := parse_assignment(data, text))]
        return edit.apply_changes("[profile]\n", changes)


def _refuse_outside(root: str, path: str, name: str) -> None:
    real = os.path.realpath(root).rstrip(os.sep) + os.sep
    if not os.path.realpath(path).startswith(real):
        why = "A store is shared as it is; what lies outside it would be missing elsewhere."
        raise NpuprofError([Finding("NP005", f"{name!r} leads out of the store", why, "choose another name")])


VERB = New
