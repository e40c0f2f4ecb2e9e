"""Counts the settings of scripts, and those that another release changes.

They are removed, renamed, or have another meaning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from npuprof import catalog
from npuprof.catalog import build_finding, condition, releases
from npuprof.checks.changed_defaults import OMITTED, list_changed_defaults
from npuprof.checks.scope import find_scope_faults
from npuprof.checks.view import Scope
from npuprof.document.keys import find_key_path, format_short_value
from npuprof.edit import migration
from npuprof.edit.migration_steps import UNSET_VALUES, Step, load_migration_steps
from npuprof.edit.moves import Upgrade, list_settings
from npuprof.edit.paths import assign_at_path
from npuprof.model import Context, Finding, Place, Record, TomlTable
from npuprof.scripts.pinned_releases import Pin
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.preset_draft import Draft
from npuprof.scripts.reading import ImportedFile
from npuprof.scripts.script_records import UNSET

#: The effect of a release on a setting, by finding code.
_KINDS = {
    "NP404": "gone",
    "NP405": "not known",
    "NP408": "value not known",
    "NP501": "deprecated",
    "NP502": "without effect",
}
#: The effects, worst first.
KINDS = (
    "gone",
    "value not known",
    "decide",
    "rename",
    "new value",
    "drop",
    "without effect",
    "deprecated",
    "default",
    "not known",
)
_ACTIONS = {"rename": "rename", "modes": "rename", "set": "new value", "drop": "drop"}


class Touched(Record):
    """One effect of a release on a setting, equal in all scripts that have it."""

    kind: str
    key: str
    what: str
    hint: str


class Survey:
    """The counts so far, and what the releases of an upgrade change."""

    def __init__(self, context: Context, upgrade: Upgrade) -> None:
        self.context = context
        self.upgrade = upgrade
        self.files = 0
        self.unread = 0
        self.with_settings: set[str] = set()
        self.drafts = 0
        self.surfaces = defaultdict[str, Counter[str]](Counter)
        self.findings: list[Finding] = []
        self.folders: Sequence[str] = ()
        self.releases: Mapping[Pin, int] = {}
        self.touched = defaultdict[Touched, dict[str, None]](dict)

    def list_changed_defaults(self) -> Iterator[Finding]:
        """Yield the defaults that change and that a script does not set, for each script."""
        for touched, names in self.touched.items():
            for name in names if touched.kind == "default" else ():
                where = Place(name.partition(": ")[0])
                yield build_finding(
                    "NP512", touched.what, OMITTED, touched.hint, key=touched.key, where=where
                )

    def add_script(self, imported: ImportedFile, folders: Sequence[str]) -> None:
        """Count the settings of a script; files that it names may be below ``folders``."""
        live = [
            setting
            for setting in imported.settings
            if not setting.commented and setting.reason != UNSET
        ]  # None means unset
        if not live:
            return
        drafts = build_drafts(imported, folders)
        self.drafts += len(drafts)
        self.with_settings.add(imported.file)
        for setting in live:
            self.surfaces[setting.surface][imported.file] += 1
        for draft in drafts:
            name = draft.file if len(drafts) == 1 else f"{draft.file}: {draft.name}"
            for touched in list_touched(draft, self.upgrade):
                self.touched[touched][name] = None


def list_touched(draft: Draft, upgrade: Upgrade) -> Iterator[Touched]:
    """Yield the effects of the releases of an upgrade on a draft's settings."""
    # settings omitted from the preset count too
    left = {
        note.setting.key: note.setting.value
        for note in draft.notes
        if note.setting.key and not note.setting.reason and not note.setting.dead
    }
    settings = {**left, **draft.settings}
    yield from _list_moved(settings, upgrade)
    release = upgrade.releases.get(releases.CANN, "")
    since = upgrade.since.get(releases.CANN, "")
    if not release:
        return
    stepped = set()
    for step in load_migration_steps(release):
        if step.option in settings and step.option not in stepped and _is_step_due(step, settings):
            stepped.add(step.option)
            is_meant = not step.scenarios or draft.scenario in step.scenarios
            is_sure = is_meant and step.loss != "decide"
            kind = _ACTIONS.get(step.action, "decide") if is_sure else "decide"
            what = f"{step.option} = {format_short_value(settings[step.option])}: {step.why}"
            yield Touched(kind, step.option, what, step.decide)
    scope = Scope(draft.scenario, (release,), ())
    for key, value in settings.items():
        if key in stepped or (draft.surfaces == {"atc"} and catalog.find_option(key)):
            continue  # the adapter's releases do not apply to ATC
        for fault in find_scope_faults(scope, key, value):
            if fault.code in _KINDS:
                yield Touched(_KINDS[fault.code], key, fault.message, fault.hint)
    if since and draft.surfaces - {"env", "atc"}:
        for row in migration.list_changed_defaults(since, release, draft.surfaces):
            if row.option not in settings and row.unless not in settings:
                finding = row.build_finding()
                yield Touched("default", row.option, finding.message, finding.hint)


def _list_moved(settings: TomlTable, upgrade: Upgrade) -> Iterator[Touched]:
    """Yield the defaults that releases of frameworks change."""
    data: TomlTable = {}
    for key, value in settings.items():
        assign_at_path(data, find_key_path(key), value)
    # the findings of the scan say what is not read
    axes = {setting.lifetime.axis for setting in list_settings(data, upgrade)} - {releases.CANN}
    for axis in axes & upgrade.since.keys():
        since, release = upgrade.since[axis], upgrade.releases[axis]
        for change in list_changed_defaults(axis, since, release):
            if change.concerns(data):
                yield Touched("default", change.key, change.message, change.hint)


def _is_step_due(step: Step, settings: TomlTable) -> bool:
    known = UNSET_VALUES | settings
    return (
        condition.evaluate_condition(
            step.when, lambda path: (path[0] in settings, known.get(path[0]))
        )
        is True
    )
