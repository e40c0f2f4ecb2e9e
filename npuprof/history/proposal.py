"""The number of the next version of a preset, proposed from what changed since the last one."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.compare import survey
from npuprof.compare.changes import Change
from npuprof.compare.folds import format_change_sentence
from npuprof.compare.survey import Pair
from npuprof.document.profile import Profile
from npuprof.model import NpuprofError, Record
from npuprof.resolve.config import Config
from npuprof.store import revisions, spec
from npuprof.store.repository import Repository, Version, VersionNumber


class Proposal(Record):
    """The next number, how big a step it is (``major``, ``minor``, ``patch``, ``first``, ``none``), and why."""

    number: VersionNumber
    step: str
    reasons: tuple[str, ...]


def propose_version(
    workspace: spec.Workspace, repository: Repository, config: Config, head: str, last: Version | None
) -> tuple[Pair | None, Proposal]:
    """Return what changed since the last version, and the number that follows from it."""
    if last is None:
        return None, Proposal((1, 0, 0), "first", ("the first release",))
    major, minor, patch = last.number
    start = repository.resolve_commit(last.commit)
    try:
        before = workspace.resolver.resolve_profile(revisions.load_revision(workspace.store, start).profile(config.name))
    except NpuprofError as error:
        return None, Proposal((major + 1, 0, 0), "major", (f"{last.number_text} cannot be resolved: {error.findings[0].message}",))
    pair = survey.build_preset_pair(before, config)
    breaking = [reason for change in pair.changes if (reason := _explain_break(change))]
    if breaking:
        return pair, Proposal((major + 1, 0, 0), "major", tuple(breaking))
    if pair.changes:
        return pair, Proposal(
            (major, minor + 1, 0), "minor", tuple(f"changed: {format_change_sentence(change)}" for change in pair.changes)
        )
    if _collect_texts(before.lineage) != _collect_texts(config.lineage):
        return pair, Proposal((major, minor, patch + 1), "patch", ("only the text changed, no resolved value",))
    return pair, Proposal((major, minor, patch + 1), "none", (f"nothing has changed since {last.number_text}",))


def _explain_break(change: Change) -> str:
    if "numerics" in change.risk:
        return f"may change numerics: {format_change_sentence(change)}"
    if change.kind == "removed" and not change.element:
        return f"a key is gone: {change.key}"
    return ""


def _collect_texts(lineage: Sequence[Profile]) -> list[str]:
    return [profile.document.text.replace("\r\n", "\n") for profile in lineage]
