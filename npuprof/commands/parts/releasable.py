"""Whether presets can be released as they are: what stands against it is told before there is a tag."""

from __future__ import annotations

from npuprof.commands.parts.sharing import NothingNewError
from npuprof.model import Finding, NpuprofError
from npuprof.resolve.config import Config
from npuprof.store.spec import Workspace
from npuprof.store.versions import VersionText

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.history.proposal import Proposal
    from npuprof.store.gitstore.repository import Repository
    from npuprof.store.gitstore.revisions import Revision
    from npuprof.store.versions import Version


def refuse_changed_last(workspace: Workspace, last: Version) -> None:
    """Raise NpuprofError where the last version is not what its tag holds: what has changed since cannot be told."""
    from npuprof.store import parents
    from npuprof.store.gitstore import revisions

    if parents.is_changed_release(revisions.load_release(workspace.store, last), last):
        found = parents.build_changed_finding(last)
        raise NpuprofError([found._replace(hint=f"{found.hint}; to release all the same give the number")])


def refuse_number(repository: Repository, name: str, number: VersionText, proposal: Proposal, earlier: list[Version]) -> None:
    """Raise NpuprofError where a number is taken anywhere, or does not rise on this line of releases."""
    from npuprof.history.releasing import find_last_release

    last = find_last_release(earlier)
    same = [version for version in earlier if version.pre and version.number == number.number] if number.pre else []
    below = max((version for version in (last, *same) if version), key=lambda version: version.text.order, default=None)
    what, why, tag = "", "Version numbers only rise.", f"{name}/v{number}"
    there = any(version.text == number for version in repository.load_versions(name))
    if not there and any(ref.text == number for ref in repository.list_tag_refs(name)):
        what, why = f"the tag {tag} exists already, and is no release", "A release is an annotated tag, and this one is not."
        raise NpuprofError([Finding("NP026", what, why, f"delete it with git tag -d {tag}, or give another number")])
    if there:
        what, why = f"{name} {number} is released already: the tag {tag} exists already", "A released version never changes."
    elif below and number.order <= below.text.order:
        what = f"{number} would go back: {name} is at {below.number_text}"
    if what:
        finding = Finding("NP026", what, why, f"the next is {VersionText(proposal.number)}")
        raise NothingNewError(finding, name, str(number)) if there else NpuprofError([finding])


def refuse_errors(config: Config) -> None:
    """Raise NpuprofError for a preset with errors."""
    from npuprof import checks

    errors = [finding for finding in checks.check_config(config) if finding.severity == "error"]
    if errors:
        refused = Finding("NP026", f"{config.name} is not released: it has errors", "", "mend what is listed above")
        raise NpuprofError([*errors, refused])


def resolve_committed(workspace: Workspace, name: str, head: str) -> Config:
    """Return the preset as the last commit holds it. Raises NpuprofError."""
    from npuprof.store.gitstore import revisions

    committed = revisions.load_revision(workspace.store, head)
    if name not in committed.files:
        workspace.profile(name)  # says that there is none, and which are near
        raise NpuprofError([_build_uncommitted_finding(name, [name])])
    return workspace.resolver.resolve_profile(committed.profile(name), name)


def refuse_uncommitted(committed: Revision, configs: list[Config], dry_run: bool) -> tuple[str, ...]:
    """Raise NpuprofError where a file that takes part is not in the work tree as it is in the last commit.

    A dry run starts no filter: return what it therefore cannot tell.
    """
    from npuprof.store.worktree import list_changed_paths

    repository = committed.repository
    revised = [profile.name for config in configs for profile in config.lineage if profile.document.revision == committed.commit]
    members = dict.fromkeys(revised)
    names = {committed.source_path(name): name for member in members for name in committed.trace_links(member)}
    asked = repository if dry_run else repository.with_git(repository.git.with_filters())
    changed = list_changed_paths(asked, committed.layout).changed
    dirty = [path for path in names if path in changed]
    untold = repository.find_filters(dirty) if dry_run else {}
    if known := [names[path] for path in dirty if path not in untold]:
        raise NpuprofError([_build_uncommitted_finding(configs[0].name if len(configs) == 1 else "the store", known)])
    return tuple(
        f"{path} has the filter {name!r}, a program, which is not run here: cannot tell whether it is committed as it is"
        for path, name in untold.items()
    )


def _build_uncommitted_finding(name: str, dirty: list[str]) -> Finding:
    what = f"{name} is not released: {', '.join(dirty)} {'is' if len(dirty) == 1 else 'are'} not committed as it is"
    return Finding("NP026", what, "A version must be found again in the repository.", f"npuprof commit {' '.join(dirty)}")
