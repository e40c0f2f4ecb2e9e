"""``migrate``: rewrite one preset, or all presets of a store, for another CANN release."""

from __future__ import annotations

import os
import shlex

from npuprof.commands.framework.parameters import COLOR, FROM, PRODUCT, STORE, WRITE_ANYWAY, formats
from npuprof.commands.framework.verb import Verb, arguments, flag, required_option
from npuprof.model import Context, Finding, NpuprofError
from npuprof.report.answer import Answer
from npuprof.report.text import format_count
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.report.answer import Forms


class Migrate(Verb):
    """Migrate presets to a CANN release.

    Applies the lossless steps and reports the rest as findings. Exits with 1 if a finding needs a decision. Scripts are not
    changed: npuprof scan --cann reports what a release breaks in them.
    """

    usage_hint = "npuprof migrate bert-training --cann 9.0.0, or npuprof migrate --all --cann 9.0.0 for the whole store"
    group = "presets"
    prose = True

    specs: list[str] = arguments("SPEC...", "Preset to migrate: NAME, a path ending in .toml, or - for stdin")
    everything: bool = flag("--all", text="Migrate all presets of the store, writing all files or none")
    cann: str = required_option("--cann", metavar="RELEASE", text="Migrate to this CANN release")
    since: str | None = FROM
    product: str | None = PRODUCT
    format: str = formats("text", "json")
    dry_run: bool = flag("--dry-run", text="Show the change without writing it")
    no_check: bool = WRITE_ANYWAY
    store: str | None = STORE
    color: str = COLOR
    _since = ""

    def run(self) -> Answer:
        """Return the changes and what is left to decide; what changes is written unless it is a dry run. Raises NpuprofError."""
        if self.everything == bool(self.specs):
            what = "a preset and --all are two ways" if self.everything else "which preset is to be moved?"
            raise NpuprofError([Finding("NP902", what, "", "name one, or say --all")])
        context = spec.build_context(self.cann, self.product)
        from npuprof.commands.parts.upgrading import find_earlier_release

        self._since = find_earlier_release(self.since, str(context.cann))
        if not self.specs:
            return self._migrate_all(context)
        for word in self.specs:
            self._reject_script(word)
        if len(self.specs) > 1:
            what = f"{' and '.join(self.specs[:2])} are two presets"
            raise NpuprofError([Finding("NP902", what, "One is moved at a time, or all in one plan.", "name one, or say --all")])
        return self._migrate_one(self.specs[0], context)

    def _reject_script(self, word: str) -> None:
        """Raise NpuprofError if a word is the path of a file or folder and not a preset."""
        if word == "-" or word.endswith(".toml") or not os.path.exists(word) or _is_preset(word, self.store):
            return
        hint = f"npuprof scan {shlex.quote(word)} --cann {self.cann} reports what that release breaks in scripts"
        raise NpuprofError([Finding("NP902", f"{word} is not a preset", "migrate rewrites presets, not scripts.", hint)])

    def _migrate_one(self, name: str, context: Context) -> Answer:
        from npuprof.commands.parts.migrating import migrate_file, plan_alongside, refuse_to_part_heirs
        from npuprof.edit.preset_file import open_for_edit
        from npuprof.report import writing

        with open_for_edit(name, self.store) as file:
            outcome = migrate_file(file, self.store, context, self._since)
            dry_run = self.dry_run or file.path == "-"
            changed = outcome.moved.text != file.text
            if changed and not self.no_check:
                refuse_to_part_heirs(outcome, file, self.store)
            along = plan_alongside(outcome, file, self.store)
            if changed and not dry_run:
                writing.write_wanted_files([file.build_wanted(outcome.moved.text), *along.baselines])
        done = "nothing to change in" if not changed else "would write" if dry_run else "wrote"
        written = " and ".join([file.source, *(os.path.normpath(one.path) for one in along.baselines)])
        todo = sum(finding.severity != "info" for finding in outcome.left)
        fields = {"schema": "npuprof.migrate/1", "preset": outcome.after.name, "cann": str(context.cann)}
        forms: Forms = {"text": lambda: outcome.format_text(self.coloured), "json": lambda: fields | outcome.build_fields()}
        told = self._tell_steps(context, len(outcome.moved.made), todo)
        return Answer(forms, (*told, f"{done} {written}", *along.remarks), 1 if todo else 0)

    def _migrate_all(self, context: Context) -> Answer:
        from npuprof.commands.parts.migrating import migrate_store
        from npuprof.report import writing
        from npuprof.report.locks import lock_folders

        with lock_folders([spec.Workspace(self.store).store.root]):
            plan = migrate_store(self.store, context, self._since)
            wanted = plan.list_wanted()
            if wanted and not self.dry_run:
                writing.write_wanted_files(wanted)
        done = "would write" if self.dry_run else "wrote"
        todo = sum(finding.severity != "info" for finding in plan.left)
        told = f"{done} {format_count(len(wanted), 'file')}" if wanted else "nothing to change in any preset"
        forms: Forms = {"text": lambda: plan.format_text(self.coloured), "json": lambda: plan.build_fields(str(context.cann))}
        steps = sum(len(outcome.moved.made) for outcome in plan.outcomes)
        return Answer(forms, (*self._tell_steps(context, steps, todo), told, *plan.remarks), 1 if todo else 0)

    def _tell_steps(self, context: Context, steps: int, todo: int) -> list[str]:
        told = f"CANN {context.cann}: {format_count(steps, 'step')} made, {todo or 'nothing'} left to decide"
        return [told] if self.format == "text" else []


def _is_preset(word: str, store: str | None) -> bool:
    try:
        return word in spec.Workspace(store).store.names()
    except NpuprofError:
        return False


VERB = Migrate
