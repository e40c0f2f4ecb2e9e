"""Checks a merged preset: errors and warnings that neither side has alone."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from npuprof import catalog, checks
from npuprof.catalog.written_condition import list_team_reads
from npuprof.edit.changed import build_opener
from npuprof.edit.merge import Merged, find_setting_key
from npuprof.model import Context, Finding, NpuprofError, Path, Record
from npuprof.store.folder import Folder
from npuprof.store.sources.lookups import Lookups

_EFFECTS = {"error": "break", "warning": "bring the warning"}


class Unfit(Record):
    """Their changes that must become conflicts, and the findings caused by both sides together."""

    forced: list[Path]
    notes: list[str]


def find_unfit_changes(result: Merged, texts: Sequence[str], path: str) -> Unfit:
    """Return their changes that cause errors neither side has alone; new warnings become notes.

    ``texts`` are the base, ours and theirs.
    """
    unfit = Unfit([], [])
    home = _find_home(path)
    if home is None:
        return unfit
    known: set[tuple[str, str, str]] = set()
    are_sides_resolved = True
    for text in texts[1:]:
        findings, is_resolved = _find_faults(*home, text)
        known.update(map(_identify_fault, findings))
        are_sides_resolved &= is_resolved
    now, is_merge_resolved = _find_faults(*home, result.ours)
    if is_merge_resolved and not are_sides_resolved:
        return unfit  # a side that cannot be resolved may hide existing errors
    for finding in now:
        if finding.severity == "info" or _identify_fault(finding) in known:
            continue
        unfit.notes.append(
            f"together, both sides {_EFFECTS[finding.severity]} {finding.code}: {finding.message}"
        )
        if finding.severity == "error":
            section = finding.key.split(".")[0]
            keys = {*_list_read_keys(*home, finding.code), finding.key, section} - {""}
            concerned = [
                taken
                for taken in result.taken
                if any(find_setting_key(taken[:end]) in keys for end in range(2, len(taken) + 1))
            ]
            # without a known culprit, all of their changes become conflicts
            unfit.forced.extend(concerned or result.taken)
    return unfit


def _list_read_keys(folder: Folder, name: str, code: str) -> tuple[str, ...]:
    """Return the settings that a rule of the catalogue or the team reads; empty for other codes."""
    for rule in catalog.load_rules():
        if rule.code == code:
            return rule.reads
    policy = Lookups().load_policy(folder)
    for team_rule in policy.select(name).rules if policy else ():
        if team_rule.code == code:
            return list_team_reads(team_rule)
    return ()


def _find_home(path: str) -> tuple[Folder, str] | None:
    """Return the store of a work tree file, and its preset's name.

    The store is ``$NPUPROF_STORE``, else the nearest one above the file.
    """
    variable = os.environ.get("NPUPROF_STORE")
    if variable:
        roots = [variable]
    else:
        parts = path.split("/")
        depths = range(len(parts) - 1, -1, -1)
        # git starts merge drivers at the top of the work tree
        roots = [os.path.join(".", *parts[:depth], "profiles") for depth in depths]
    for root in roots:
        folder = Folder(root)
        # the folder need not exist: git may be merging the whole store in
        folder.is_implied = True
        if name := folder.locate_file(os.path.abspath(path)):
            return folder, name
    return None


def _find_faults(folder: Folder, name: str, text: str) -> tuple[list[Finding], bool]:
    """Return the findings of a preset, and whether it could be resolved."""
    try:
        workspace = build_opener(folder, {name: (f"{name}.toml", text)})(Context())
        return checks.check_config(
            workspace.resolver.resolve_profile(workspace.store.profile(name))
        ), True
    except NpuprofError as error:
        return list(error.findings), False


def _identify_fault(finding: Finding) -> tuple[str, str, str]:
    """Return the identity of a finding on both sides; override numbers may differ."""
    return finding.code, re.sub(r"\[\d+\]", "[]", finding.key), finding.message
