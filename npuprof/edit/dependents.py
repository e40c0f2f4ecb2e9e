"""Dependents of a preset, and errors that an edit would cause in them."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress

from npuprof import checks
from npuprof.document.profile import Profile
from npuprof.edit.changed import build_opener, find_faults, select_new_findings
from npuprof.model import Finding, NpuprofError, raise_any, select_errors
from npuprof.report import output
from npuprof.report.isolating import isolate_faults
from npuprof.store import spec
from npuprof.store.folder import Folder


def require_valid_dependents(workspace: spec.Workspace, path: str, old: Profile, new: str) -> None:
    """Raise NpuprofError if an edit of a preset's file would add errors to its dependents."""
    try:
        home = workspace.store
    except NpuprofError:
        return  # a file outside a store has no dependents
    name = home.locate_file(os.path.abspath(path))
    if not name:
        return
    openers = build_opener(home), build_opener(home, {name: (old.document.source, new)})
    before, after = (opener(workspace.resolver.context) for opener in openers)
    brought = []
    for heir in find_dependents(home, name):
        # the state before is only needed if there are errors now
        if errors := _find_errors(after, heir):
            brought += select_new_findings(_find_errors(before, heir), errors)
    if brought:
        output.print_note(
            "nothing written: the change would add errors to "
            "presets that extend it; --no-check writes it anyway"
        )
        raise NpuprofError(checks.fold_findings(brought))


def find_dependents(home: Folder, name: str) -> list[str]:
    """Return the direct and indirect dependents of a preset; unreadable presets extend nothing.

    Raises NpuprofError after an internal error in a preset, which might be a dependent.
    """
    children = defaultdict(list)
    faults: list[Finding] = []
    for heir in home.names():
        with suppress(NpuprofError), isolate_faults(home.cite_file(f"{heir}.toml"), faults, heir):
            for parent in home.profile(heir).extends:
                children[parent].append(heir)
    raise_any(faults)
    dependents: set[str] = set()
    waiting = [name]
    while waiting:
        # presets may extend each other in a cycle, which is an error of its own
        heirs = {*children.get(waiting.pop(), ())} - dependents - {name}
        dependents |= heirs
        waiting += heirs
    return sorted(dependents)


def _find_errors(workspace: spec.Workspace, name: str) -> list[Finding]:
    return select_errors(
        find_faults(lambda: workspace.resolver.resolve_profile(workspace.store.profile(name)))
    )
