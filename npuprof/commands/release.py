"""``release``: an annotated tag for a preset, its number proposed from what changed since the last one."""

from __future__ import annotations

import re

from npuprof import checks
from npuprof.commands.log import one_preset
from npuprof.compare import plain, survey
from npuprof.compare.folds import format_change_sentence
from npuprof.history import writing
from npuprof.model import Finding, NpuprofError, Record
from npuprof.report import output
from npuprof.store import revisions, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.compare.changes import Change
    from npuprof.compare.survey import Pair
    from npuprof.resolve.config import Config
    from npuprof.store.revisions import Repository, Version

_NUMBER = re.compile(r"v?(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})", re.ASCII)


class Proposal(Record):
    """The next number, how big a step it is (``major``, ``minor``, ``patch``, ``first``, ``none``), and why."""

    number: tuple[int, int, int]
    step: str
    reasons: tuple[str, ...]


def release_preset(asked: str, version: str | None, dry_run: bool, store: str | None) -> int:
    """Tag the last commit as a version of a preset, or with ``dry_run`` say which and why.

    Raises NpuprofError: the preset has errors or is not committed, nothing changed, the tag exists, the number goes back.
    """
    wanted = _number(version) if version is not None else None
    workspace = spec.Workspace(store)
    name, revision = one_preset(workspace, asked, "release")
    if revision:
        what = f"cannot release {asked!r}"
        raise NpuprofError([Finding("NP026", "error", what, "A release is made of the last commit.", f"npuprof release {name}")])
    repository = revisions.find_repository(workspace.store)
    config = workspace.resolve_spec(name)
    errors = [finding for finding in checks.check_config(config) if finding.severity == "error"]
    if errors:
        raise NpuprofError([*errors, Finding("NP026", "error", f"{name} is not released: it has errors", "", "mend what is listed above")])
    head = repository.resolve_commit("HEAD")
    _committed(workspace, config, head)
    versions = repository.load_versions(name)
    last = versions[-1] if versions else None
    pair, proposal = propose(workspace, repository, config, head, last)
    number = wanted or proposal.number
    if last and number <= last.number:
        same = number == last.number
        what = f"{name} {_text(number)} is released already" if same else f"{_text(number)} would go back: {name} is at {last.number_text}"
        raise NpuprofError([Finding("NP026", "error", what, "Version numbers only rise.", f"the next is {_text(proposal.number)}")])
    if proposal.step == "none" and wanted is None:
        what = f"nothing has changed in {name} since {last.number_text if last else 'ever'}"
        raise NpuprofError([Finding("NP026", "error", what, "", "to release it all the same give the number")])
    tag = f"{name}/v{_text(number)}"
    why = "".join(f"  {reason}\n" for reason in proposal.reasons)
    if dry_run:
        body = plain.format_pair_text(pair) if pair else ""
        output.write_answer(f"{tag} at {head[:7]}\n{proposal.step}: {_text(proposal.number)} is next\n{why}{body}digest {config.digest}\n")
        return 0
    changes = plain.format_pair_text(pair) if pair else ""
    writing.create_tag(
        repository, tag, head, f"{name} {_text(number)}\n\n{changes or proposal.reasons[0] + chr(10)}\nDigest: {config.digest}\n"
    )
    if wanted and proposal.step in ("major", "minor") and wanted < proposal.number:
        output.write_to_stderr(f"npuprof: the changes ask for {_text(proposal.number)} ({proposal.step}): {proposal.reasons[0]}")
    output.write_answer(f"{tag}\n")
    output.write_to_stderr(f"npuprof: share it with git push origin {tag}")
    return 0


def _text(number: tuple[int, int, int]) -> str:
    return ".".join(map(str, number))


def _number(version: str) -> tuple[int, int, int]:
    match = _NUMBER.fullmatch(version)
    if match is None:
        raise NpuprofError([Finding("NP026", "error", f"{version!r} is not a version", "", "write three numbers: 1.2.0")])
    return int(match[1]), int(match[2]), int(match[3])


def _committed(workspace: spec.Workspace, config: Config, head: str) -> None:
    """Raise NpuprofError where a file that takes part is not in the last commit as it is in the work tree."""
    tree = survey.WorkTree(workspace.store)
    files = revisions.find_repository(workspace.store).list_profile_files(head)
    dirty = [
        profile.name
        for profile in config.lineage
        if profile.document.revision is None and not (profile.name in files and tree.is_same_blob(profile.name, files[profile.name][1]))
    ]
    if dirty:
        what = f"{config.name} is not released: {', '.join(dirty)} {'is' if len(dirty) == 1 else 'are'} not committed as it is"
        raise NpuprofError([Finding("NP026", "error", what, "A version must be found again in the repository.", "npuprof commit")])


def propose(
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
    breaking = [reason for change in pair.changes if (reason := _breaks(change))]
    if breaking:
        return pair, Proposal((major + 1, 0, 0), "major", tuple(breaking))
    if pair.changes:
        return pair, Proposal(
            (major, minor + 1, 0), "minor", tuple(f"changed: {format_change_sentence(change)}" for change in pair.changes)
        )
    if _texts(before.lineage) != _texts(config.lineage):
        return pair, Proposal((major, minor, patch + 1), "patch", ("only the text changed, no resolved value",))
    return pair, Proposal((major, minor, patch + 1), "none", (f"nothing has changed since {last.number_text}",))


def _breaks(change: Change) -> str:
    if "numerics" in change.risk:
        return f"may change numerics: {format_change_sentence(change)}"
    if change.kind == "removed" and not change.element:
        return f"a key is gone: {change.key}"
    return ""


def _texts(lineage: Sequence[object]) -> list[str]:
    return [profile.document.text.replace("\r\n", "\n") for profile in lineage]  # type: ignore[attr-defined]
