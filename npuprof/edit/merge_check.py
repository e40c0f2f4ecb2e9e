"""Checks a merged preset: errors and warnings that neither side has alone."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from npuprof import catalog, checks
from npuprof.catalog.written_condition import list_team_reads
from npuprof.edit.changed import build_opener
from npuprof.edit.merge import Merged, find_setting_key
from npuprof.model import Context, Finding, NpuprofError, Path
from npuprof.store.folder import Folder
from npuprof.store.sources.lookups import Lookups

_DEEDS = {"error": "break", "warning": "bring the warning"}


class Unfit(NamedTuple):
    """Their changes that must become conflicts, and the findings caused by both sides together."""

    forced: list[Path]
    notes: list[str]


def find_unfit_changes(result: Merged, texts: Sequence[str], path: str) -> Unfit:
    """Return their changes that cause errors neither side has alone; new warnings become notes."""
    forced: list[Path] = []
    notes: list[str] = []
    home = _find_home(path)
    if home is None:
        return Unfit(forced, notes)
    before = [_find_faults(*home, text) for text in texts[1:]]
    now, resolved = _find_faults(*home, result.ours)
    if resolved and not all(whole for _, whole in before):
        return Unfit(forced, notes)  # a side that cannot be resolved may hide existing errors
    known = {_identify_fault(finding) for findings, _ in before for finding in findings}
    for finding in now:
        if finding.severity == "info" or _identify_fault(finding) in known:
            continue
        notes.append(
            f"together, both sides {_DEEDS[finding.severity]} {finding.code}: {finding.message}"
        )
        if finding.severity == "error":
            rule = next((rule for rule in catalog.load_rules() if rule.code == finding.code), None)
            reads = rule.reads if rule else _list_team_reads(*home, finding.code)
            concerned = {*reads, finding.key, finding.key.partition(".")[0]}
            forced += [
                taken for taken in result.taken if _concerns_setting(taken, concerned)
            ] or result.taken
    return Unfit(forced, notes)


def _list_team_reads(folder: Folder, name: str, code: str) -> tuple[str, ...]:
    """Return the settings that a team rule reads; empty if there is no such rule."""
    policy = Lookups().load_policy(folder)
    return next(
        (
            list_team_reads(rule)
            for rule in (policy.select(name).rules if policy else ())
            if rule.code == code
        ),
        (),
    )


def _concerns_setting(path: Path, concerned: set[str]) -> bool:
    return any(
        key in concerned for end in range(2, len(path) + 1) if (key := find_setting_key(path[:end]))
    )


def _find_home(path: str) -> tuple[Folder, str] | None:
    """Return the store of a work tree file, and its preset's name: ``$NPUPROF_STORE``, or the
    nearest parent store.
    """
    parts = path.split("/")
    variable = os.environ.get("NPUPROF_STORE")
    roots = [
        os.path.join(".", *parts[:depth], "profiles") for depth in range(len(parts) - 1, -1, -1)
    ]
    for root in [variable] if variable else roots:
        folder = Folder(root)
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
