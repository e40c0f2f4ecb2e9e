"""One edit of many presets that satisfy a condition.

The edits are checked and shown together, and either all or none are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from npuprof import checks, edit
from npuprof.catalog import values
from npuprof.edit.assignments import locate_key
from npuprof.edit.changed import ChangedStore, build_opener, resolve_all, resolve_apart
from npuprof.edit.conditions import Conditions
from npuprof.edit.lists import find_changes, parse_list_change
from npuprof.edit.paths import MISSING, find_at_path
from npuprof.edit.preset_file import (
    PresetFile,
    describe_shadowing_overrides,
    format_difference,
    read_preset_file,
    require_no_new_errors,
    require_writable_store,
)
from npuprof.model import LIST_OPS, Finding, NpuprofError, build_error
from npuprof.report import Answer
from npuprof.report.asking import answer_refusal, confirm_on_terminal
from npuprof.report.text import count_rest, format_count
from npuprof.resolve.config import Config
from npuprof.store import assignment_arguments
from npuprof.store.spec import Workspace
from npuprof.system import writing
from npuprof.system.locks import lock_folders


class Bulk:
    """An edit of all presets that satisfy a condition.

    Parents come first: values that a preset then inherits are not written into it.
    """

    def __init__(
        self,
        workspace: Workspace,
        where: Sequence[str],
        assignments: Sequence[str],
        appended: Sequence[str],
    ) -> None:
        self._conditions = Conditions(where, workspace.declared_axes)
        self._workspace = workspace
        self._assignments = assignments
        self._appended = appended
        self._home = workspace.store
        self._changed_store = ChangedStore(self._home)
        self._before: dict[str, Config] = {}
        self._files: list[tuple[PresetFile, str]] = []
        self._notes: list[str] = []

    def answer(self, dry_run: bool, yes: bool, no_check: bool) -> Answer:
        """Return the changes as a unified diff, and write them if the user agrees, else exit 1.

        Raises NpuprofError.
        """
        require_writable_store(self._home)
        with lock_folders([self._home.root]):
            problems: list[Finding] = []
            self._before = resolve_all(self._workspace, problems)
            if problems and not no_check:
                raise NpuprofError(problems)
            matched = self._select()
            # parents first: their dependents then inherit the value and need none of their own
            for name in sorted(matched, key=lambda name: (len(self._before[name].lineage), name)):
                self._change_preset(name)
            after = self._resolve_changed()
            if not no_check:
                self._require_no_new_errors(after)
            notes = [*dict.fromkeys(self._notes), *self._describe_other_presets(matched, after)]
            count = (
                f"{format_count(len(self._files), 'file')} of "
                f"{format_count(len(matched), 'preset')} that met the condition"
            )
            difference = "".join(
                format_difference(file.source, file.text, text) for file, text in self._files
            )
            answer = Answer(difference, tuple(notes), problems=problems)
            if not self._files or dry_run:
                done = "would write" if self._files else "nothing to change:"
                return answer._replace(notes=(f"{done} {count}", *notes))
            if not yes and not confirm_on_terminal(answer, "text", f"write {count}?"):
                return answer_refusal(answer, "written", shown=True)
            writing.write_planned_files([file.build_wanted(text) for file, text in self._files])
        shown = answer if yes else Answer()  # the question has already shown it
        return shown._replace(notes=(f"wrote {count}", *shown.notes))

    def _select(self) -> list[str]:
        """Return the presets that satisfy the condition. Raises NpuprofError if none can."""
        matched = [name for name, config in self._before.items() if self._conditions.accept(config)]
        self._conditions.require_known_names()
        if not matched:
            hint = "npuprof list --where shows the presets that satisfy a condition"
            raise build_error("NP013", "no preset meets the condition", "", hint)
        return matched

    def _change_preset(self, name: str) -> None:
        """Apply the changes to the text of a preset, except values that it will inherit."""
        file = read_preset_file(self._home, name)
        profile = self._changed_store.profile(name)
        data = deepcopy(profile.document.data)
        config = resolve_apart(profile)
        missing = [text for text in self._assignments if not _is_inherited(config, data, text)]
        text = edit.apply_changes(
            file.text, find_changes(profile, data, missing, self._appended, self._notes)
        )
        if text != file.text:
            self._notes += describe_shadowing_overrides(file.profile, file.parse_changed(text))
            self._files.append((file, text))
            self._changed_store.set_text(name, file.source, text)

    def _resolve_changed(self) -> dict[str, Config | NpuprofError]:
        """Return the presets affected by the changed files, resolved."""
        changed = {file.profile.name for file, _ in self._files}
        resolver = build_opener(self._changed_store)(self._workspace.resolver.context).resolver
        resolved: dict[str, Config | NpuprofError] = {}
        for name, config in self._before.items():
            if changed.intersection(member.key for member in config.lineage):
                try:
                    resolved[name] = resolver.resolve_profile(self._changed_store.profile(name))
                except NpuprofError as error:
                    resolved[name] = error
        return resolved

    def _require_no_new_errors(self, after: dict[str, Config | NpuprofError]) -> None:
        """Raise NpuprofError for new errors in any preset, and print new warnings."""
        known = [finding for name in after for finding in checks.check_config(self._before[name])]
        findings = [
            finding
            for config in after.values()
            for finding in (
                config.findings if isinstance(config, NpuprofError) else checks.check_config(config)
            )
        ]
        require_no_new_errors(known, checks.fold_findings(findings))

    def _describe_other_presets(
        self, matched: Sequence[str], after: dict[str, Config | NpuprofError]
    ) -> list[str]:
        """Return a note on presets that inherit a change without satisfying the condition."""
        others = [
            name
            for name, config in after.items()
            if name not in matched
            and isinstance(config, Config)
            and config.digest != self._before[name].digest
        ]
        if not others:
            return []
        count = format_count(len(others), "preset")
        return [f"{count} that did not meet it inherit the change: {count_rest(others, 5)}"]


def _is_inherited(config: Config, data: dict[str, object], text: str) -> bool:
    """Return whether ``KEY=VALUE``, or a parent, is already inherited."""
    list_change = parse_list_change(text)
    if list_change:
        if not list_change.adds or list_change.key != "profile.extends":
            return False
        return {*list_change.text.split(",")} <= {member.name for member in config.lineage[:-1]}
    name, equals, raw = text.partition("=")
    if not equals:
        return False
    path, key = locate_key(name.strip())
    if not key or path[0] in LIST_OPS or find_at_path(data, path) is not MISSING:
        return False  # set by the preset itself, or no setting
    is_set, value = values.find_setting_value(config.settings, key, path[2:])
    if not is_set:
        return False
    whole = key if len(path) == 2 else ""
    assigned = assignment_arguments.parse_assigned_value(whole, raw.strip())
    return values.is_equivalent_setting(whole, value, assigned)
