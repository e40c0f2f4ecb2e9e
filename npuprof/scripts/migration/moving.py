"""One script moved to another release: the literals changed, the result read again and held against what was planned."""

from __future__ import annotations

import io
import os
import re
import tokenize
from collections.abc import Callable, Sequence
from typing import Any

from npuprof.edit.migration import MadeStep
from npuprof.model import Context, Finding, NpuprofError, Place, Record
from npuprof.scripts.blocks import find_blocks
from npuprof.scripts.lint import check_script
from npuprof.scripts.migration.flags import ShellScript
from npuprof.scripts.migration.literals import PythonScript
from npuprof.scripts.migration.places import Change, Places, StuckError
from npuprof.scripts.migration.planning import DueStep, check_changed_defaults, find_homes, plan_script
from npuprof.scripts.migration.readers import Readers
from npuprof.scripts.migration.shifting import Shift
from npuprof.scripts.reading import FoundSetting, ImportedFile, import_script
from npuprof.scripts.reading.files import KINDS, detect_script_kind

_NUMBERS = re.compile(r"@\d+")


class MovedScript(Record):
    """A script that was moved: its bytes before and after, the steps that were made with their lines, and what is left to decide."""

    path: str
    before: bytes
    after: bytes
    made: tuple[tuple[int, MadeStep], ...] = ()
    left: tuple[Finding, ...] = ()


class _Unit(Record):
    """The steps for one option of a script, which are made all or not at all, and the changes that make them."""

    due: list[DueStep]
    changes: list[Change]


class _Text:
    """A script as text that can be written back byte by byte. Raises StuckError, SyntaxError and ValueError."""

    def __init__(self, path: str, data: bytes, find_reader: Callable[[str], str]) -> None:
        kind = detect_script_kind(path, data) or "python"
        if not KINDS[kind].holds_blocks:
            raise StuckError("only Python and shell scripts are written anew")
        self.encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0] if kind == "python" else "utf-8"
        text = data.decode(self.encoding)
        if text.encode(self.encoding) != data:
            raise StuckError("the file would not be the same after it is written back")
        self._is_python = kind == "python"
        self.script: PythonScript | ShellScript = PythonScript(text, find_reader) if kind == "python" else ShellScript(text)

    def build_shift(self, changes: Sequence[Change]) -> Shift:
        """Return what leads from places of the text to those after changes, and back."""
        made = sorted(set(changes))
        after = Places(self._replace_text(made), self._is_python)
        return Shift(self.script.places, after, made)

    def apply(self, changes: Sequence[Change]) -> bytes:
        """Return the bytes of the file with changes. Raises StuckError where two of them are about one place."""
        return self._replace_text(sorted(set(changes))).encode(self.encoding)  # one literal may give several settings

    def _replace_text(self, changes: Sequence[Change]) -> str:
        text = self.script.places.text
        pieces, at = [], 0
        for change in changes:
            if change.start < at:
                raise StuckError("two settings are written in one place")
            pieces += [text[at : change.start], change.text]
            at = change.end
        return "".join([*pieces, text[at:]])


def move_script(
    path: str, data: bytes, context: Context, since: str = "", readers: Readers | None = None, written: bool = False
) -> MovedScript:
    """Return a script moved to the release of a context, nothing written; ``readers`` know who else may read its names.

    Places are those of the file as it is, or as it will be where it is to be ``written``.
    """

    def find_reader(name: str) -> str:
        return os.path.relpath(found) if readers is not None and (found := readers.find_reader(path, name)) else ""

    imported = import_script(path, data)
    release = str(context.cann)
    if not imported.found:
        return MovedScript(path, data, data, left=imported.problems)
    before = context._replace(cann=since or None)
    text: list[_Text] = []  # made where there is something to change: most scripts have nothing

    def load_text() -> _Text:
        text[:] = text or [_Text(path, data, find_reader)]
        return text[0]

    try:
        blocks = [(block.first + 1, block.last + 1, block.spec) for block in find_blocks(path, data)]
        plan = plan_script(imported, release, lambda name: load_text().script.find_use(name), blocks)
        units, left = _list_units(load_text(), plan.due, find_homes(imported)) if plan.due else ([], [])
        made, after, result = _prove(imported, data, load_text(), units) if units else ([], data, imported)
    except (StuckError, SyntaxError, ValueError, RecursionError, MemoryError, NpuprofError) as error:
        return _leave_script(imported, data, context, before, error)
    done = {id(due) for unit in made for due in unit.due}
    unproven = "what it is changed to could not be proven to set the same"
    left += [due.build_finding(unproven) for unit in units for due in unit.due if id(due) not in done]
    asked = [*plan.findings, *left]
    news = check_changed_defaults(result, since, release)
    news += _list_brought(imported, result, context, before, {finding.key for finding in [*asked, *news]})
    rows = [((due.setting.line, due.setting.column), _build_made(due)) for unit in made for due in unit.due]
    if made:
        shift = load_text().build_shift([change for unit in made for change in unit.changes])
        asked = [shift.move_finding(one, to_new=True) for one in asked] if written else asked
        news = news if written else [shift.move_finding(one, to_new=False) for one in news]
        rows = [(shift.find_new(*place), step) for place, step in rows] if written else rows
    rows.sort(key=lambda row: row[0])
    told = sorted([*asked, *news], key=_find_place)
    return MovedScript(path, data, after, tuple((line, step) for (line, _), step in rows), tuple(told))


def _leave_script(imported: ImportedFile, data: bytes, context: Context, before: Context, error: Exception) -> MovedScript:
    """Return a script that nothing can be changed in, with what would be due."""
    hindrance = str(error) if isinstance(error, StuckError) else "the file cannot be changed as it stands"
    hindrance = "Python 3 does not read the file as it stands" if isinstance(error, SyntaxError) else hindrance
    plan = plan_script(imported, str(context.cann), lambda _: 0)
    told = [*plan.findings, *(due.build_finding(hindrance) for due in plan.due)]
    brought = _list_brought(imported, imported, context, before, {finding.key for finding in told})
    problems = error.findings if isinstance(error, NpuprofError) else ()
    return MovedScript(imported.file, data, data, left=tuple(sorted([*imported.problems, *problems, *told, *brought], key=_find_place)))


def _list_units(text: _Text, due: list[DueStep], homes: dict[str, str]) -> tuple[list[_Unit], list[Finding]]:
    """Return the steps with the changes that make them, by option; those of one configuration are made all, or are findings."""
    stuck: dict[tuple[str, str], str] = {}
    changes: dict[int, list[Change]] = {}
    for one in due:
        try:
            changes[id(one)] = text.script.list_changes(one)
        except StuckError as error:
            stuck.setdefault((homes.get(one.setting.scope, one.setting.scope), one.setting.key), str(error))
    units: dict[str, _Unit] = {}
    left: list[Finding] = []
    for one in due:
        hindrance = stuck.get((homes.get(one.setting.scope, one.setting.scope), one.setting.key))
        if hindrance is not None:
            left.append(one.build_finding(hindrance))
            continue
        unit = units.setdefault(one.setting.key, _Unit([], []))
        unit.due.append(one)
        unit.changes.extend(changes[id(one)])
    return list(units.values()), left


def _prove(imported: ImportedFile, data: bytes, text: _Text, units: list[_Unit]) -> tuple[list[_Unit], bytes, ImportedFile]:
    """Return the units after which a script sets what was planned, its bytes with them, and what those hold."""
    chosen = units
    for _ in range(2):
        if not chosen:
            break
        if (proven := _apply_units(imported, text, chosen)) is not None:
            return chosen, *proven
        chosen = [unit for unit in units if len(units) > 1 and _apply_units(imported, text, [unit]) is not None]
    return [], data, imported


def _apply_units(imported: ImportedFile, text: _Text, units: list[_Unit]) -> tuple[bytes, ImportedFile] | None:
    """Return a script with some steps made, and what it holds; None unless each other setting is as it was, and there is no new fault."""
    try:
        after = text.apply([change for unit in units for change in unit.changes])
    except StuckError:
        return None
    steps = {id(due.setting): due for unit in units for due in unit.due}
    wanted = [mark for one in imported.found if (mark := _mark_planned(one, steps.get(id(one)))) is not None]
    result = import_script(imported.file, after)
    same = len(imported.problems) == len(result.problems) and len(imported.sites) == len(result.sites)
    return (after, result) if same and wanted == [_mark_setting(one) for one in result.found] else None


def _mark_setting(one: FoundSetting) -> tuple[Any, ...]:
    """Return what makes a setting what it is, wherever its line has gone."""
    return (
        one.surface, one.key, one.field, type(one.value), one.value, one.reason, one.condition, _NUMBERS.sub("", one.scope), one.commented,
        one.dead, one.made, one.function,
    )  # fmt: skip


def _mark_planned(one: FoundSetting, due: DueStep | None) -> tuple[Any, ...] | None:
    """Return the mark of a setting after its step, None where it is gone."""
    if due is None:
        return _mark_setting(one)
    if due.step.action == "drop":
        return None
    from npuprof import catalog

    option = catalog.find_option(due.key)
    field = option.field if one.surface == "session" and option is not None else one.field
    return _mark_setting(one._replace(key=due.key, value=due.value, field=field))


def _list_brought(before: ImportedFile, after: ImportedFile, asked: Context, known: Context, told: set[str]) -> list[Finding]:
    """Return what the release brings against a script, of settings that nothing is told of yet."""
    there = {(finding.code, finding.key, finding.message) for finding in check_script(before, known)}
    return [
        finding
        for finding in check_script(after, asked)
        if finding.severity != "info" and (finding.code, finding.key, finding.message) not in there and finding.key not in told
    ]


def _build_made(due: DueStep) -> MadeStep:
    return MadeStep(due.step, ("options", due.setting.key), due.setting.value, due.value)


def _find_place(finding: Finding) -> tuple[int, int]:
    return (finding.line, finding.column) if isinstance(finding.where, Place) else (0, 0)
