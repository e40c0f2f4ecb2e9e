"""``release``: an annotated tag for a preset, its number proposed from what changed since the last one."""

from __future__ import annotations

import re

from npuprof import checks
from npuprof.commands.parameters import STORE
from npuprof.commands.verb import Verb, argument, flag
from npuprof.compare import plain
from npuprof.history import writing
from npuprof.history.proposal import Proposal, propose_version
from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer
from npuprof.resolve.config import Config
from npuprof.store import revisions, spec
from npuprof.store.repository import Version, VersionNumber, format_version_number
from npuprof.store.revision import Revision
from npuprof.store.worktree import list_changed_paths

_NUMBER = re.compile(r"v?(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})", re.ASCII)


class Release(Verb):
    """Release a preset: an annotated tag NAME/vX.Y.Z.

    It is put at the last commit, and holds the digest and what changed since the last release.
    """

    group = "versions"

    spec: str = argument("NAME", "A preset of the store.")
    version: str | None = argument("VERSION", "The number; proposed from the changes if none is given.", required=False)
    dry_run: bool = flag("--dry-run", text="Say which number and why, tag nothing.")
    store: str | None = STORE

    def run(self) -> Answer:
        """Tag the last commit as a version of a preset, or with ``dry_run`` say which and why.

        Raises NpuprofError: the preset has errors or is not committed, nothing changed, the tag exists, the number goes back.
        """
        wanted = _parse_number(self.version) if self.version is not None else None
        workspace = spec.Workspace(self.store)
        name, revision = workspace.split_single_spec(self.spec, "release")
        if revision:
            what, hint = f"cannot release {self.spec!r}", f"npuprof release {name}"
            raise NpuprofError([Finding("NP026", what, "A release is made of the last commit.", hint)])
        repository = revisions.find_repository(workspace.store)
        head = repository.resolve_commit("HEAD")
        config = _resolve_committed(workspace, name, head)
        _refuse_errors(config)
        untold = _refuse_uncommitted(revisions.load_revision(workspace.store, head), config, self.dry_run)
        versions = repository.load_versions(name)
        last = versions[-1] if versions else None
        pair, proposal = propose_version(workspace, repository, config, head, last)
        number = _choose_number(name, wanted, proposal, last)
        tag = f"{name}/v{format_version_number(number)}"
        changes = plain.format_pair_text(pair) if pair else ""
        if self.dry_run:
            why = "".join(f"  {reason}\n" for reason in proposal.reasons)
            said = f"{proposal.step}: {format_version_number(proposal.number)} is next\n{why}{changes}digest {config.digest}\n"
            return Answer(f"{tag} at {head[:7]}\n{said}", notes=untold)
        body = f"{changes or proposal.reasons[0] + chr(10)}\nDigest: {config.digest}\n"
        writing.create_tag(repository, tag, head, f"{name} {format_version_number(number)}\n\n{body}")
        notes = []
        if wanted and proposal.step in ("major", "minor") and wanted < proposal.number:
            notes.append(f"the changes ask for {format_version_number(proposal.number)} ({proposal.step}): {proposal.reasons[0]}")
        return Answer(f"{tag}\n", (f"share it with git push origin {tag}",), notes=tuple(notes))


def _parse_number(version: str) -> VersionNumber:
    match = _NUMBER.fullmatch(version)
    if match is None:
        raise NpuprofError([Finding("NP026", f"{version!r} is not a version", "", "write three numbers: 1.2.0")])
    return int(match[1]), int(match[2]), int(match[3])


def _choose_number(name: str, wanted: VersionNumber | None, proposal: Proposal, last: Version | None) -> VersionNumber:
    """Return the number of the new version. Raises NpuprofError where it goes back, or nothing asks for one."""
    number = wanted or proposal.number
    if last and number <= last.number:
        shown = format_version_number(number)
        what = f"{name} {shown} is released already" if number == last.number else f"{shown} would go back: {name} is at {last.number_text}"
        hint = f"the next is {format_version_number(proposal.number)}"
        raise NpuprofError([Finding("NP026", what, "Version numbers only rise.", hint)])
    if proposal.step == "none" and wanted is None:
        what = f"nothing has changed in {name} since {last.number_text if last else 'ever'}"
        raise NpuprofError([Finding("NP026", what, "", "to release it all the same give the number")])
    return number


def _refuse_errors(config: Config) -> None:
    errors = [finding for finding in checks.check_config(config) if finding.severity == "error"]
    if errors:
        refused = Finding("NP026", f"{config.name} is not released: it has errors", "", "mend what is listed above")
        raise NpuprofError([*errors, refused])


def _resolve_committed(workspace: spec.Workspace, name: str, head: str) -> Config:
    """Return the preset as the last commit holds it. Raises NpuprofError."""
    committed = revisions.load_revision(workspace.store, head)
    if name not in committed.files:
        workspace.profile(name)  # says that there is none, and which are near
        raise NpuprofError([_build_uncommitted_finding(name, [name])])
    return workspace.resolver.resolve_profile(committed.profile(name), name)


def _refuse_uncommitted(committed: Revision, config: Config, dry_run: bool) -> tuple[str, ...]:
    """Raise NpuprofError where a file that takes part is not in the work tree as it is in the last commit.

    A dry run starts no filter: return what it therefore cannot tell.
    """
    repository = committed.repository
    members = [profile.name for profile in config.lineage if profile.document.revision == committed.commit]
    names = {repository.source_path(name): name for member in members for name in committed.trace_links(member)}
    changed = list_changed_paths(repository, runs_filters=not dry_run).changed
    dirty = [path for path in names if path in changed]
    untold = {path: asked for path in dirty if dry_run and (asked := repository.find_filter(path))}
    if known := [names[path] for path in dirty if path not in untold]:
        raise NpuprofError([_build_uncommitted_finding(config.name, known)])
    return tuple(
        f"{path} has the filter {asked!r}, a program, which is not run here: cannot tell whether it is committed as it is"
        for path, asked in untold.items()
    )


def _build_uncommitted_finding(name: str, dirty: list[str]) -> Finding:
    what = f"{name} is not released: {', '.join(dirty)} {'is' if len(dirty) == 1 else 'are'} not committed as it is"
    return Finding("NP026", what, "A version must be found again in the repository.", f"npuprof commit {' '.join(dirty)}")


VERB = Release
