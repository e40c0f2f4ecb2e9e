"""Files that a script names for an option: found beside it, never outside of the folders in question, and judged as a preset's own."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from npuprof.catalog.shapes import Structure
from npuprof.catalog.values import find_structure
from npuprof.document import keys
from npuprof.model import Finding, Path, Place
from npuprof.report import output
from npuprof.scripts.reading.found import FoundSetting, ImportedFile


def find_sidecar_structure(one: FoundSetting) -> Structure | None:
    """Return the form of the file that a setting names, None where it names none."""
    structure = find_structure(one.key) if one.key and not one.reason and isinstance(one.value, str) else None
    return structure if structure is not None and structure.file else None


def find_sidecar(script: str, named: str, folders: Sequence[str] = ()) -> str | None:
    """Return the path of the file that a script names, None where there is none below the folders.

    What is no absolute path is looked for beside the script, then in the folders. Links count as what they lead to.
    """
    home = os.path.dirname(script)
    if not named or "\0" in named:
        return None
    inside = [os.path.realpath(folder) for folder in (home or ".", *folders)]
    for folder in dict.fromkeys((home, *folders)):
        path = os.path.normpath(os.path.join(folder, named))
        real = os.path.realpath(path)
        if os.path.isfile(path) and any(real.startswith(os.path.join(top, "")) for top in inside):
            return path
    return None


def read_sidecar(path: str) -> str | None:
    """Return the text of a file, None where it cannot be read or holds none."""
    try:
        return output.read_plain_file(path).decode("utf-8-sig")
    except (OSError, ValueError):
        return None


def check_sidecars(imported: ImportedFile, folders: Sequence[str] = ()) -> list[Finding]:
    """Return what is wrong with the files that the settings of a script name, as far as they are there."""
    result: list[Finding] = []
    for one in imported.found:
        structure = find_sidecar_structure(one) if not one.commented and not one.dead else None
        path = find_sidecar(one.file, one.value, folders) if structure else None
        if structure is None or path is None:
            continue
        text = read_sidecar(path)
        named = f"{one.file_line} names it for {one.name}."
        if text is None:
            what = f"{os.path.basename(path)} is not a file of text"
            result.append(Finding("NP821", what, named, "name another file, or write it anew", key=one.key, where=Place(path)))
        else:
            result += _check_sidecar_text(structure, path, text, one.key, named)
    return list({(finding.where, finding.message): finding for finding in result}.values())


def _check_sidecar_text(structure: Structure, path: str, text: str, key: str, named: str) -> list[Finding]:
    name = os.path.basename(path)
    value = structure.parse(text)
    if value is None:
        line, column, why = _locate_misfit(structure, text)
        what = f"{name} is not in the format of {key}"
        return [Finding("NP821", what, f"{why}{named}", f"write {structure.shape}", key=key, where=Place(path, line, column))]
    return [
        Finding(
            "NP821",
            f"{name}: {keys.format_key_path('', tail).lstrip('.') or key}: {message}",
            named,
            hint,
            key=key,
            where=Place(path, *_locate_part(text, tail)),
        )
        for tail, message, hint in structure.faults(value)
    ]


def _locate_misfit(structure: Structure, text: str) -> tuple[int, int, str]:
    """Return line and column from where on a text does not fit its form, and why, as far as that can be told."""
    if text.lstrip().startswith(("{", "[")):
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            return error.lineno, error.colno, f"{error.msg}; CANN reads plain JSON, without comments. "
        except RecursionError:
            return 1, 1, ""
    lines = text.removesuffix("\n").split("\n")
    good = next((line for line in lines if structure.parse(f"{line}\n") is not None), "")
    for number, line in enumerate(lines, 1):
        if structure.parse(f"{line}\n") is None and structure.parse(f"{good}\n{line}\n") is None:
            return number, 1, "" if line.strip() and not line.startswith("#") else "It takes no comments and no empty lines. "
    return 1, 1, ""


def _locate_part(text: str, tail: Path) -> tuple[int, int]:
    """Return line and column of what a path leads to: its names are looked for one after the other; the first line where none is."""
    at = 0
    value: Any = None
    for part in tail:
        if isinstance(part, str) and (found := text.find(part, at)) >= 0:
            at = found
            value = part
    before = text[:at]
    return (before.count("\n") + 1, at - before.rfind("\n")) if value is not None else (1, 1)
