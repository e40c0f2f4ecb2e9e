"""Scripts moved to another release: all that are named, and those in the folders that are; all files are written, or none."""

from __future__ import annotations

import os
from typing import Any

from npuprof.edit.preset_file import format_difference
from npuprof.model import Context, Finding, Record
from npuprof.report.findings import build_finding_dict, format_findings
from npuprof.report.text import escape_controls
from npuprof.report.writing import Wanted
from npuprof.scripts.files import find_script_files, read_script_files
from npuprof.scripts.migration.moving import MovedScript, move_script
from npuprof.scripts.migration.readers import Readers
from npuprof.scripts.reading import may_hold_settings
from npuprof.scripts.reading.files import find_file_faults


class ScriptMigration(Record):
    """What came of scripts: those of which there is something to say, faults of others, and how many named could not be read."""

    scripts: list[MovedScript]
    problems: list[Finding]
    unread: int
    folders: tuple[str, ...]

    @property
    def left(self) -> list[Finding]:
        """All that is left to decide."""
        return [*self.problems, *(finding for script in self.scripts for finding in script.left)]

    @property
    def changed(self) -> list[MovedScript]:
        """The scripts that change."""
        return [script for script in self.scripts if script.after != script.before]

    def list_wanted(self) -> list[Wanted]:
        """Return the files as they shall be: no link leads out of a folder that was named."""
        return [Wanted(one.path, one.after, one.before, self._find_folder(one.path)) for one in self.changed]

    def _find_folder(self, path: str) -> str:
        return next((folder for folder in self.folders if _is_below(path, folder)), "")

    def format_text(self, coloured: bool) -> str:
        """Return the steps with their lines, what changes as a unified diff, and what is left to decide."""
        steps = [
            f"{escape_controls(f'{one.path}:{line}: {made}')} ({made.step.why[0].lower()}{made.step.why[1:].rstrip('.')})\n"
            for one in self.scripts
            for line, made in one.made
        ]
        shown = [format_difference(one.path, _read_text(one.before), _read_text(one.after)) for one in self.changed]
        return "".join([*steps, *shown]) + format_findings(_fold_defaults(self.left), coloured)

    def build_fields(self, release: str, since: str) -> dict[str, Any]:
        """Return the fields of the JSON form."""
        return {
            "schema": "npuprof.migrate-scripts/1",
            "cann": release,
            "from": since or None,
            "files": [
                {
                    "path": one.path,
                    "changed": one.after != one.before,
                    "steps": [
                        {"rule": made.step.rule, "line": line, "option": made.step.option, "to": made.step.to or None,
                         "before": made.before, "after": made.after, "loss": made.step.loss, "why": made.step.why}
                        for line, made in one.made
                    ],
                    "findings": [build_finding_dict(finding) for finding in one.left],
                }
                for one in self.scripts
            ],
            "findings": [build_finding_dict(finding) for finding in self.problems],
        }  # fmt: skip


def _fold_defaults(findings: list[Finding]) -> list[Finding]:
    """Return findings with each default that changed told once, at the end, with the number of scripts that leave it out."""
    folded: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.code == "NP512":
            folded.setdefault(finding.key, []).append(finding)
    told = []
    for same in folded.values():
        count = len({one.where.file for one in same if one.where is not None})
        told.append(same[0]._replace(message=f"{same[0].message}; so in {count} scripts") if count > 1 else same[0])
    return [*(finding for finding in findings if finding.code != "NP512"), *told]


def _is_below(path: str, folder: str) -> bool:
    """Return whether a file was found in a folder, by the way the two are written."""
    if folder == os.curdir:
        return not os.path.isabs(path) and path.split(os.sep)[0] != os.pardir
    return path.startswith(os.path.join(folder, ""))


def migrate_scripts(paths: list[str], context: Context, since: str, written: bool = False) -> ScriptMigration:
    """Return scripts moved to a release, nothing written; places are those of the files as they will be where they are ``written``."""
    problems: list[Finding] = []
    scripts: list[MovedScript] = []
    unread = 0
    named = set(paths)
    folders = tuple(path for path in paths if os.path.isdir(path))
    readers = Readers(folders)
    for path, data in read_script_files(_leave_out_links(list(find_script_files(paths, problems)))):
        if isinstance(data, Finding):
            problems.append(data)
            unread += path in named
            continue
        if may_hold_settings(path, data):
            moved = move_script(path, data, context, since, readers, written)
            unread += path in named and any(one.code == "NP801" and one.severity == "warning" for one in moved.left)
            if moved.made or moved.left:
                scripts.append(moved)
        elif path in named:
            faults = find_file_faults(path, data)
            problems += faults
            unread += any(one.severity == "warning" for one in faults)
    return ScriptMigration(scripts, problems, unread, folders)


def _leave_out_links(files: list[str]) -> list[str]:
    """Return files without the links to others of them: each is read once, and written once."""
    kept: dict[str, str] = {}
    for file in files:
        full = os.path.realpath(file)
        if full not in kept or (os.path.islink(kept[full]) and not os.path.islink(file)):
            kept[full] = file
    return list(kept.values())


def _read_text(data: bytes) -> str:
    return data.decode(errors="replace").replace("\r\n", "\n")
