"""Edits of the personal layer over a preset, which is created if it is missing.

The layer is checked together with the preset.
"""

from __future__ import annotations

import os
from typing import Any

from npuprof.document.profile import Profile
from npuprof.edit.changed import build_opener, find_faults
from npuprof.edit.preset_file import (
    ChangeText,
    PresetFile,
    answer_shared_edit,
    describe_write,
    format_difference,
    require_no_new_errors,
)
from npuprof.model import Finding, build_error
from npuprof.report import Answer
from npuprof.store import personal_layers, spec
from npuprof.system import writing
from npuprof.system.files import make_folder
from npuprof.system.locks import lock_folders
from npuprof.system.writing import PlannedWrite


def answer_edit(
    verb: Any, workspace: spec.Workspace, change_text: ChangeText, notes: list[str]
) -> Answer:
    """Edit the file of a verb's spec, or the personal layer over it. Raises NpuprofError."""
    answer = _answer_personal_edit if verb.personal else answer_shared_edit
    return answer(verb.spec, workspace, change_text, verb.dry_run, verb.no_check, notes)


def _answer_personal_edit(
    reference: str,
    workspace: spec.Workspace,
    change_text: ChangeText,
    dry_run: bool,
    no_check: bool,
    notes: list[str],
) -> Answer:
    """Edit the personal layer over a preset.

    ``change_text`` gets its file and the settings of the preset. Raises NpuprofError.
    """
    shared = workspace.profile(reference)
    # a composed spec has several layers, and a preset of a revision none
    if personal_layers.list_shared_presets(shared) != [shared]:
        what = f"there is no personal layer over {reference!r}"
        raise build_error(
            "NP920", what, "It lies over one preset of the work tree.", "name a preset of the store"
        )
    path = personal_layers.find_personal_file(shared)
    raw = writing.read_known_file(path)
    file = PresetFile(path, raw or b"", personal_layers.parse_layer(shared, path, raw or b""))
    new = change_text(file, dict(workspace.resolve_spec(reference).settings))
    changed = new != file.text
    if changed and not no_check:
        open_store = build_opener(workspace.store)

        def find_faults_with(layer: Profile) -> list[Finding]:
            context = workspace.resolver.context
            return find_faults(lambda: open_store(context).resolve_spec(reference, layers=[layer]))

        require_no_new_errors(
            find_faults_with(file.profile), find_faults_with(file.parse_changed(new))
        )
    if changed and not dry_run:
        make_folder(os.path.dirname(path))
        with lock_folders([os.path.dirname(path)]):
            writing.write_planned_files([PlannedWrite(path, new.encode(), raw)])
    done = describe_write(changed, dry_run)
    effect = f"{done} {path}, which show, explain, env and run apply over {shared.name}"
    # "a/" and "b/" stand before the path: a leading slash would double theirs
    difference = format_difference(path.lstrip(os.sep), file.text if raw is not None else None, new)
    return Answer(difference, (effect, *notes))
