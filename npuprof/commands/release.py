"""``release``: an annotated tag for a preset, its number proposed from what changed since the last one."""

from __future__ import annotations

from npuprof.commands.parameters import STORE
from npuprof.commands.verb import Verb, argument, flag
from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer
from npuprof.resolve.config import Config
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.history.proposal import Proposal
    from npuprof.store.repository import Repository
    from npuprof.store.revision import Revision
    from npuprof.store.versions import Version, VersionText


class Release(Verb):
    """Release a preset: an annotated tag NAME/vX.Y.Z.

    It is put at the last commit, and holds what changed since the last release, both digests, and what every
    parent with an @ is.
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
        from npuprof.compare import plain
        from npuprof.history import writing
        from npuprof.history.proposal import propose_version
        from npuprof.history.releasing import build_release_record, find_last_release, list_earlier_versions
        from npuprof.store import revisions
        from npuprof.store.versions import VersionText

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
        earlier = list_earlier_versions(repository, name, head)
        last = find_last_release(earlier)
        if last and wanted is None:
            _refuse_changed_last(workspace, last)
        taken = frozenset(version.number for version in repository.load_versions(name) if not version.pre)
        pair, proposal = propose_version(workspace, config, last, taken)
        number = wanted or VersionText(proposal.number)
        _refuse_number(repository, name, number, proposal, earlier)
        if proposal.step == "none" and wanted is None:
            what = f"nothing has changed in {name} since {last.number_text if last else 'ever'}"
            raise NpuprofError([Finding("NP026", what, "", "to release it all the same give the number")])
        tag = f"{name}/v{number}"
        record = build_release_record(config)
        changes = plain.format_pair_text(pair) if pair else ""
        if self.dry_run:
            why = "".join(f"  {reason}\n" for reason in proposal.reasons)
            parents = "".join(f"{parent}\n" for parent in record.parents)
            said = f"{proposal.step}: {VersionText(proposal.number)} is next\n{why}{changes}digest {config.digest}\n{parents}"
            return Answer(f"{tag} at {head[:7]}\n{said}", notes=untold)
        body = changes or "".join(f"{reason}\n" for reason in proposal.reasons)
        writing.create_tag(repository, tag, head, f"{name} {number}\n\n{body}\n{record}")
        notes = []
        if wanted and proposal.step in ("major", "minor") and wanted.number < proposal.number:
            notes.append(f"the changes ask for {VersionText(proposal.number)} ({proposal.step}): {proposal.reasons[0]}")
        return Answer(f"{tag}\n", (f"share it with git push origin {tag}",), notes=tuple(notes))


def _parse_number(version: str) -> VersionText:
    from npuprof.store.versions import parse_version_text

    found = parse_version_text(version)
    if found is None:
        raise NpuprofError(
            [Finding("NP026", f"{version!r} is not a version", "", "write three numbers: 1.2.0, or 2.0.0-rc.1 before 2.0.0")]
        )
    return found


def _refuse_changed_last(workspace: spec.Workspace, last: Version) -> None:
    """Raise NpuprofError where the last version is not what its tag holds: what has changed since cannot be told."""
    from npuprof.store import parents, revisions

    if parents.is_changed_release(revisions.load_release(workspace.store, last), last):
        found = parents.build_changed_finding(last)
        raise NpuprofError([found._replace(hint=f"{found.hint}; to release all the same give the number")])


def _refuse_number(repository: Repository, name: str, number: VersionText, proposal: Proposal, earlier: list[Version]) -> None:
    """Raise NpuprofError where a number is taken anywhere, or does not rise on this line of releases."""
    from npuprof.history.releasing import find_last_release
    from npuprof.store.versions import VersionText

    last = find_last_release(earlier)
    same = [version for version in earlier if version.pre and version.number == number.number] if number.pre else []
    below = max((version for version in (last, *same) if version), key=lambda version: version.text.order, default=None)
    what, why = "", "Version numbers only rise."
    if any(ref.text == number for ref in repository.list_tag_refs(name)):
        what, why = f"{name} {number} is released already: the tag {name}/v{number} exists already", "A released version never changes."
    elif below and number.order <= below.text.order:
        what = f"{number} would go back: {name} is at {below.number_text}"
    if what:
        raise NpuprofError([Finding("NP026", what, why, f"the next is {VersionText(proposal.number)}")])


def _refuse_errors(config: Config) -> None:
    from npuprof import checks

    errors = [finding for finding in checks.check_config(config) if finding.severity == "error"]
    if errors:
        refused = Finding("NP026", f"{config.name} is not released: it has errors", "", "mend what is listed above")
        raise NpuprofError([*errors, refused])


def _resolve_committed(workspace: spec.Workspace, name: str, head: str) -> Config:
    """Return the preset as the last commit holds it. Raises NpuprofError."""
    from npuprof.store import revisions

    committed = revisions.load_revision(workspace.store, head)
    if name not in committed.files:
        workspace.profile(name)  # says that there is none, and which are near
        raise NpuprofError([_build_uncommitted_finding(name, [name])])
    return workspace.resolver.resolve_profile(committed.profile(name), name)


def _refuse_uncommitted(committed: Revision, config: Config, dry_run: bool) -> tuple[str, ...]:
    """Raise NpuprofError where a file that takes part is not in the work tree as it is in the last commit.

    A dry run starts no filter: return what it therefore cannot tell.
    """
    from npuprof.store.worktree import list_changed_paths

    repository = committed.repository
    members = [profile.name for profile in config.lineage if profile.document.revision == committed.commit]
    names = {committed.source_path(name): name for member in members for name in committed.trace_links(member)}
    changed = list_changed_paths(repository, committed.layout, runs_filters=not dry_run).changed
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
