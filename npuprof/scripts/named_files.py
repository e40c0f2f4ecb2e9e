"""Files that a script names for an option, checked like those of a preset.

They are searched in the script's folder or given ones, never outside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from npuprof import catalog
from npuprof.catalog.shapes import Structure
from npuprof.catalog.values import find_structure, find_value, load_form
from npuprof.checks.flags import find_flag_name
from npuprof.checks.scope import find_scope_faults
from npuprof.checks.setting_values import find_setting_faults
from npuprof.checks.view import Fault, build_asked_scope
from npuprof.document import keys
from npuprof.model import Context, Finding, Path, Place, Record
from npuprof.scripts.script_records import ImportedFile, Position, ScriptSetting, find_position
from npuprof.system import is_below, join_normal
from npuprof.system.files import read_plain_file


class Sidecar(Record):
    """A file that a setting names: its path, its text and its value.

    The text is empty for binary files, the value is None if invalid.
    """

    setting: ScriptSetting
    structure: Structure
    path: str
    text: str
    value: Any


def open_sidecar(setting: ScriptSetting, folders: Sequence[str]) -> Sidecar | None:
    """Return the file that a setting names.

    None if it names none, or none exists below the folders.
    """
    if not setting.key or setting.reason or not isinstance(setting.value, str):
        return None
    flag = catalog.find_flag(find_flag_name(setting.key))
    # an option of the same file may have another form
    form = flag.structure if flag else ""
    structure = load_form(form) if form else find_structure(setting.key)
    if structure is None or not structure.file:
        return None
    path = _find_file(setting.file, setting.value, folders)
    if path is None:
        return None
    try:
        # json rejects the byte order mark that some editors write
        text = read_plain_file(path).decode("utf-8-sig")
    except (OSError, ValueError):
        return Sidecar(setting, structure, path, "", None)
    return Sidecar(setting, structure, path, text, structure.parse(text))


def _find_file(script: str, named: str, folders: Sequence[str]) -> str | None:
    """Return the path of a file named by a script, None if it does not exist below the folders.

    A relative path is searched in the folder of the script, then in the others. Links count as
    their targets.
    """
    home = os.path.dirname(script)
    if "\0" in named:  # with NUL, the functions of os.path raise ValueError
        return None
    for folder in dict.fromkeys((home, *folders)):
        path = join_normal(folder, named)
        if os.path.isfile(path) and any(is_below(path, top) for top in (home or ".", *folders)):
            return path
    return None


def find_sidecars(imported: ImportedFile, folders: Sequence[str]) -> list[Sidecar]:
    """Return the existing files that the settings of a script name."""
    sidecars = (
        open_sidecar(setting, folders)
        for setting in imported.settings
        if not (setting.commented or setting.dead)
    )
    return [sidecar for sidecar in sidecars if sidecar is not None]


def attach_contents(imported: ImportedFile, sidecars: Sequence[Sidecar]) -> ImportedFile:
    """Return a script whose settings include the contents of the files they name.

    Some rules read them.
    """
    # by identity: equal settings may be in two lines
    contents = {
        id(sidecar.setting): sidecar.value
        for sidecar in sidecars
        if sidecar.value is not None and not sidecar.structure.faults(sidecar.value)
    }
    settings = tuple(
        setting.with_value(content=contents[id(setting)]) if id(setting) in contents else setting
        for setting in imported.settings
    )
    return imported._replace(settings=settings)


def check_sidecars(sidecars: Sequence[Sidecar], requested: Context) -> list[Finding]:
    """Return the faults of the files that settings name, each alone.

    They are those of that table in a preset.
    """
    findings = (finding for sidecar in sidecars for finding in _check_sidecar(sidecar, requested))
    # two settings may name the same file
    return list({(finding.where, finding.message): finding for finding in findings}.values())


def _check_sidecar(sidecar: Sidecar, requested: Context) -> Iterator[Finding]:
    """Yield the faults of one file: its format, ignored parts, and its values."""
    name, key = os.path.basename(sidecar.path), sidecar.setting.key
    named = f"{sidecar.setting.file_line} names it for {sidecar.setting.name}."
    if sidecar.value is None:
        what, hint = f"{name} is not in the format of {key}", f"write {sidecar.structure.shape}"
        yield Finding("NP821", what, named, hint, key=key, where=Place(sidecar.path, 1, 1))
        return
    list_ignored_parts = sidecar.structure.dropped
    for part in list_ignored_parts(sidecar.text) if list_ignored_parts else ():
        yield Finding(
            "NP821",
            f"{name}: {part.what}",
            f"CANN says nothing of it. {named}",
            part.hint,
            key=key,
            where=Place(sidecar.path, part.line, 1),
        )
    faults = sidecar.structure.faults(sidecar.value)
    for fault_inside in faults:
        path = keys.format_path(fault_inside.path) or key
        what = f"{path}: {fault_inside.what}"
        fault = Fault("NP821", what, named, fault_inside.hint, fault_inside.path)
        yield _build_finding(sidecar, fault)
    if faults or catalog.find_option(key) is None:  # the other checks need a valid value
        return
    for fault in (
        *find_setting_faults(key, sidecar.value),
        # the requested product or release may reject parts
        *find_scope_faults(build_asked_scope(requested), key, sidecar.value),
    ):
        # a fault without a path inside the file is one of the setting, which other checks report
        if fault.tail and fault.severity != "info":
            yield _build_finding(sidecar, fault._replace(why=f"{fault.why} {named}".lstrip()))


def _build_finding(sidecar: Sidecar, fault: Fault) -> Finding:
    """Return a fault as a finding at its line of the file."""
    place = Place(sidecar.path, *_locate_part(sidecar.text, sidecar.value, fault.tail))
    what = f"{os.path.basename(sidecar.path)}: {fault.message}"
    return fault._replace(message=what).place(key=sidecar.setting.key, where=place)


def _locate_part(text: str, value: Any, tail: Path) -> Position:
    """Return line and column of a path, searching its names in sequence.

    The first line if one is missing.
    """
    offset = 0
    for part in tail:
        _, value = find_value("", value, (part,))
        name = part if isinstance(part, str) else value  # an element of a list has no name
        if isinstance(name, str):
            offset = max(offset, text.find(name, offset))
    return find_position(text, offset)
