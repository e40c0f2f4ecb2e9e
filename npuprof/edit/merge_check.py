"""Whether a merged preset is fit: errors and warnings that neither side has alone, and orders that nobody chose."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from typing import NamedTuple

from npuprof import catalog, checks, edit
from npuprof.catalog.written_condition import list_team_reads
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.edit.merge import find_setting_key, merge_ordered_lists
from npuprof.edit.paths import find_at_path
from npuprof.model import Finding, NpuprofError, Origin, Path
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.store import Folder, is_profile_name
from npuprof.store.spec import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import Policy
    from npuprof.edit.mergetext import Merged

_DEEDS = {"error": "break", "warning": "bring the warning"}


class Unfit(NamedTuple):
    """The changes of theirs that have to clash, and what both sides bring about together."""

    forced: list[Path]
    remarks: list[str]


def find_unfit_changes(result: Merged, texts: Sequence[str], path: str) -> Unfit:
    """Return the changes of theirs that bring errors neither side has alone, or an order nobody chose; tell new warnings."""
    forced: list[Path] = []
    remarks: list[str] = []
    home = _find_home(path, result.ours)
    if home is None:
        return Unfit(forced, remarks)
    folder, name = home
    if result.merge.guessed and not _fits_any_order(result, texts, folder, name):
        forced.append(("profile", "extends"))
    before = [_find_faults(folder, name, text) for text in texts[1:]]
    now, resolved = _find_faults(folder, name, result.ours)
    if resolved and not all(whole for _, whole in before):
        return Unfit(forced, remarks)  # what a side cannot be resolved for may hide errors that it has already
    known = {_identify_fault(finding) for findings, _ in before for finding in findings}
    for finding in now:
        if finding.severity == "info" or _identify_fault(finding) in known:
            continue
        remarks.append(f"together, both sides {_DEEDS[finding.severity]} {finding.code}: {finding.message}")
        if finding.severity == "error":
            rule = next((rule for rule in catalog.load_rules() if rule.code == finding.code), None)
            reads = rule.reads if rule else _list_team_reads(folder, name, finding.code)
            concerned = {*reads, finding.key, finding.key.partition(".")[0]}
            steps = [step.path for step in result.merge.steps]
            forced += [step for step in steps if _concerns_setting(step, concerned)] or steps
    return Unfit(forced, remarks)


def _list_team_reads(folder: Folder, name: str, code: str) -> tuple[str, ...]:
    """Return the settings that a rule of the team looks at; none where there is no such rule."""
    policy = folder.find_policy(name)
    return next((list_team_reads(rule) for rule in (policy.rules if policy else ()) if rule.code == code), ())


def _concerns_setting(path: Path, concerned: set[str]) -> bool:
    return any(find_setting_key(path[:end]) in concerned for end in range(2, len(path) + 1) if find_setting_key(path[:end]))


def _fits_any_order(result: Merged, texts: Sequence[str], folder: Folder, name: str) -> bool:
    """Return whether parents that both sides added give the same preset whichever come first."""
    below, mine, other = (tomllib.loads(text).get("profile", {}).get("extends", []) for text in texts)
    swapped, _ = merge_ordered_lists(below, other, mine)
    try:
        one = _resolve_text(folder, name, result.ours)
        two = _resolve_text(folder, name, edit.apply_changes(result.ours, [edit.PathChange(("profile", "extends"), swapped)]))
    except NpuprofError:
        return False
    return one.digest == two.digest


def _find_home(path: str, text: str) -> tuple[Folder, str] | None:
    """Return the store a file of the work tree belongs to, and the name of its preset.

    That is a folder ``profiles``, else the store beside an ``npuprof.toml`` that names the file, else ``$NPUPROF_STORE``, else the
    nearest folder above that holds what the preset extends.
    """
    parts = path.split("/")
    for depth in range(len(parts) - 1, 0, -1):
        name = "/".join(parts[depth:]).removesuffix(".toml")
        if parts[depth - 1] == "profiles" and is_profile_name(name):
            return Folder(os.path.join(*parts[:depth])), name
    given = os.environ.get("NPUPROF_STORE")
    for depth in range(len(parts) - 1, -1, -1):
        folder = Folder(given or os.path.join(".", *parts[:depth], "profiles"))
        folder.is_implied = True
        if folder.project_file and (name := folder.locate_file(os.path.abspath(path))):
            return folder, name
    roots = [given] if given else [os.path.join(".", *parts[:depth]) for depth in range(len(parts) - 1, -1, -1)]
    parents = find_at_path(tomllib.loads(text), ("profile", "extends"))
    parents = parents if isinstance(parents, list) else []
    for root in roots:
        name = os.path.relpath(path, root).removesuffix(".toml")
        if is_profile_name(name) and all(os.path.isfile(os.path.join(root, f"{parent}.toml")) for parent in parents):
            return Folder(root), name
    return None


class _Overlay:
    """A store in which one preset has another text."""

    def __init__(self, folder: Folder, name: str, text: str) -> None:
        self.label = folder.label
        self._folder = folder
        self._name = name
        self._own = Profile(parse_document(name, f"{name}.toml", text), home=self)

    def names(self) -> list[str]:
        return sorted({self._name, *self._folder.names()})

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        return self._own if name == self._name else self._folder.profile(name, asked)

    def find_policy(self, name: str) -> Policy | None:
        return self._folder.find_policy(name)


def _resolve_text(folder: Folder, name: str, text: str) -> Config:
    store = _Overlay(folder, name, text)

    def lookup(reference: str, referrer: Profile | None, index: int) -> Profile:
        if "@" in reference or ":" in reference:
            workspace = Workspace()
            workspace.use_store(folder)
            return workspace.find_extended_profile(reference, referrer, index)
        return store.profile(reference, referrer.origin("profile", "extends", index) if referrer else None)

    return Resolver(lookup).resolve_profile(store.profile(name))


def _find_faults(folder: Folder, name: str, text: str) -> tuple[list[Finding], bool]:
    """Return what is wrong with a preset, and whether it could be resolved."""
    try:
        return checks.check_config(_resolve_text(folder, name, text)), True
    except NpuprofError as error:
        return list(error.findings), False


def _identify_fault(finding: Finding) -> tuple[str, str, str]:
    """Return what makes a finding the same on both sides: numbers of overrides differ from side to side."""
    return finding.code, re.sub(r"\[\d+\]", "[]", finding.key), finding.message
