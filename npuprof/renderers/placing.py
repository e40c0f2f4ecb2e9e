"""Writes rendered code and its sidecar files to a folder.

Files not written by npuprof are not overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from npuprof.model import Finding, NpuprofError, Place, Record, raise_any
from npuprof.renderers import Rendered
from npuprof.renderers.stamp import (
    compare_rendered,
    is_listed_sidecar,
    judge_found_text,
    read_listed_sidecars,
)
from npuprof.report import output
from npuprof.system import writing
from npuprof.system.files import remove_folders
from npuprof.system.locks import lock_folders
from npuprof.system.writing import PlannedWrite


class Placed(Record):
    """Rendered code and the file for it; links may not lead out of ``below``, if that is set.

    With ``force``, files that npuprof did not write are overwritten.
    """

    code: str
    rendered: Rendered
    below: str
    force: bool


def write_rendered_files(path: str, file: str, rendered: Rendered, force: bool) -> list[str]:
    """Write code and its sidecar files, to a file if the path looks like one, else into a folder.

    Return their paths. Raises NpuprofError as ``write_all_rendered``.
    """
    if _is_file_path(path):
        return write_all_rendered([Placed(path, rendered, "", force)])
    return write_all_rendered([Placed(os.path.join(path, file), rendered, path, force)])


def write_all_rendered(placed: Sequence[Placed]) -> list[str]:
    """Write code with its sidecar files, all or none; return the paths.

    Raises NpuprofError, and then writes nothing; also for an existing file that npuprof did not
    write (NP940).
    """
    new_folders = []
    try:
        for entry in placed:
            folder = os.path.dirname(entry.code) or "."
            new_folders += writing.make_folder_below(folder, entry.below or folder)
        names = [entry.code for entry in placed]
        names += [os.path.realpath(name) for name in names]
        planned = []
        findings: list[Finding] = []
        with lock_folders(os.path.dirname(name) or "." for name in names):
            # the code file before those beside it, in the answer
            for entry in reversed(placed):
                try:
                    planned += _plan_files(entry.code, entry.below, entry.rendered, entry.force)
                except NpuprofError as error:
                    findings = [*error.findings, *findings]
            raise_any(findings)
            writing.write_planned_files(planned)
    # also after Ctrl-C, new folders must not stay behind empty
    except BaseException:
        remove_folders(new_folders)
        raise
    output.print_created_folders(new_folders)
    return [entry.path for entry in reversed(planned)]


def _is_file_path(path: str) -> bool:
    """Return whether a path is or looks like a file: a new one has a suffix."""
    if os.path.isdir(path) or path.endswith(os.sep):
        return False
    return bool(os.path.splitext(path)[1]) or os.path.isfile(path)


def _plan_files(code: str, below: str, rendered: Rendered, force: bool) -> list[PlannedWrite]:
    """Return the files to write.

    Raises NpuprofError with each file that must not be overwritten.
    """
    writing.find_target(code, below)
    existing = writing.read_known_file(code)
    text = "" if existing is None else existing.decode(errors="replace")
    findings = []
    is_ours = compare_rendered(text, rendered.text).current or judge_found_text(text).current
    if existing is not None and not force and not is_ours:
        why = "It has no header of npuprof, or its text is not the one below the header."
        findings.append(_build_edited_finding(code, why))
    sidecars, sidecar_findings = plan_sidecars(
        os.path.dirname(code), rendered.sidecars, read_listed_sidecars(text), force
    )
    findings += sidecar_findings
    raise_any(findings)
    return [*sidecars, PlannedWrite(code, rendered.text.encode(), existing, below)]


def plan_sidecars(
    folder: str, sidecars: Mapping[str, str], listed: Collection[tuple[str, str]], force: bool
) -> tuple[list[PlannedWrite], list[Finding]]:
    """Return the sidecar files to write, and findings for existing ones that users changed.

    ``listed`` are names and hashes of the sidecar files that the existing code lists. Raises
    NpuprofError for an unreadable file or a link out of the folder.
    """
    planned = []
    findings = []
    for name, text in sidecars.items():
        path = os.path.join(folder, name)
        writing.find_target(path, folder or ".")
        existing = writing.read_known_file(path)
        existing_text = (existing or b"").decode(errors="replace")
        is_ours = (
            existing in (None, text.encode())
            or is_listed_sidecar(name, existing_text, listed)
            or judge_found_text(existing_text).current
        )
        if not is_ours and not force:
            why = (
                "The code that is there does not list it as it is: somebody wrote or edited it, "
                "or other code needs it so."
            )
            findings.append(_build_edited_finding(path, why))
        planned.append(PlannedWrite(path, text.encode(), existing, folder or "."))
    return planned, findings


def _build_edited_finding(path: str, why: str) -> Finding:
    what = f"{path} was edited by hand, or was not written by npuprof, and is left as it is"
    return Finding(
        "NP940",
        what,
        f"{why} Nothing was written.",
        "name another place, or write over it with --force",
        where=Place(path),
    )
