"""``commit``: check the changed presets and commit them with a generated message."""

from __future__ import annotations

from npuprof import checks
from npuprof.commands.framework import arguments, flag, option
from npuprof.commands.framework.parameters import StoreVerb
from npuprof.compare import plain, survey
from npuprof.compare.folds import write_headline
from npuprof.compare.survey import Survey
from npuprof.edit.paths import find_at_path
from npuprof.history import writing
from npuprof.history.proposed import load_last_commit, propose_commit
from npuprof.history.writing import ExpectedCommit
from npuprof.model import Context, Finding, NpuprofError
from npuprof.report import Answer
from npuprof.resolve.lineages import is_of_source
from npuprof.store import spec
from npuprof.store.gitstore.revisions import ProposedRevision
from npuprof.store.worktree import ChangedPaths, list_changed_beside, list_changed_paths
from npuprof.system.locks import lock_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.survey import Survey
    from npuprof.store.gitstore.revisions import Revision, StoreRepository
    from npuprof.store.layout import Layout


class Commit(StoreVerb):
    """Commit preset files.

    Checks the presets first and writes the message from their changes. Also commits npuprof.toml, npuprof.lock and vendored
    sources if they changed, but no other files. With NAME, it includes these only if the preset depends on them. Exits with 1 if
    nothing has changed.
    """

    group = "versions"
    usage_hint = "npuprof commit takes every preset that differs, or those that are named; -m TEXT is the message."

    names: list[str] = arguments("NAME...", "Presets to commit [default: all that changed]")
    message: str | None = option(
        "--message", "-m", metavar="TEXT", text="Use TEXT as the first line of the message [default: a summary of the changes]"
    )
    dry_run: bool = flag("--dry-run", text="Show the message without committing")

    def run(self) -> Answer:
        """Commit the store's preset files, or those of the named presets; return the commit and its subject.

        The committed tree is the one that was checked: if a hook changes it, or another commit is made meanwhile, nothing is
        committed. Exit 1 if there is nothing to commit. Raises NpuprofError if the tree has errors that the last commit lacks,
        if a vendored copy was edited, or if git fails.
        """
        workspace = spec.Workspace(self.store)
        repository = workspace.store.repository
        if not self.dry_run:
            repository = repository.with_git(repository.git.with_filters())
        writing.require_no_pending_merge(repository)
        with lock_folders([] if self.dry_run else [repository.top]):
            return self._commit_changes(workspace, repository)

    def _commit_changes(self, workspace: spec.Workspace, repository: StoreRepository) -> Answer:
        head = load_last_commit(repository)
        paths = self._choose_files(workspace, repository, head)
        with propose_commit(repository, head.commit, paths.changed) as after:
            if not paths.changed or _is_same_tree(repository, head, after):
                return Answer(None, ("no profile file differs from the last commit",), 1)
            message = self._judge_change(workspace, head, paths.changed, after)
        if self.dry_run:
            return Answer(message)
        commit = writing.commit_paths(repository, *paths, message, ExpectedCommit(head.commit, after.commit))
        return Answer(f"{commit[:7]} {message.partition(chr(10))[0]}\n")

    def _choose_files(self, workspace: spec.Workspace, repository: StoreRepository, head: Revision) -> ChangedPaths:
        """Return the files to commit. Raises NpuprofError for an unknown name, and for presets that git ignores."""
        layout, project_files = head.layout, ChangedPaths([], [])
        if not self.names or any(_needs_project_files(workspace, head, name) for name in self.names):
            copies = [source.vendor for source in workspace.store.project.sources.values() if source.vendor]
            project_files = list_changed_beside(repository, copies)
            if layout.project_file in project_files.changed:  # files that it lists now and those it listed before
                layout = layout._replace(globs=tuple(dict.fromkeys((*layout.globs, *workspace.store.layout.globs))))
        changed, untracked = list_changed_paths(repository, layout)
        if self.names:
            wanted = {_find_path(workspace, head, layout, name) for name in self.names}
            ignored = writing.find_ignored_paths(repository, sorted(wanted.difference(changed)))
            if ignored:
                raise NpuprofError([_build_ignored_finding(path, by) for path, by in ignored.items()])
            changed = [path for path in changed if path in wanted]
            untracked = [path for path in untracked if path in wanted]
        every = (dict.fromkeys((*changed, *project_files.changed)), dict.fromkeys((*untracked, *project_files.untracked)))
        return ChangedPaths(*map(list, every))

    def _judge_change(self, workspace: spec.Workspace, head: Revision, changed: list[str], after: ProposedRevision) -> str:
        """Return the commit message. Raises NpuprofError with the errors that the commit would add."""
        changes = survey.compare_store_states(head, after, ("HEAD", "the commit"), Context())
        _require_no_new_errors(workspace, after, changes, _find_edits(workspace, after))
        names = [after.layout.name_of(path) or path for path in changed]
        headline = self.message or write_headline(changes, names)
        return f"{headline}\n\n{plain.format_survey_text(changes)}"


def _needs_project_files(workspace: spec.Workspace, head: Revision, name: str) -> bool:
    """Return whether the commit of a preset must include npuprof.toml and the lock, because the preset depends on them."""
    try:
        profile = workspace.profile(name)
        if workspace.store.is_outside(profile.name) and not head.layout.takes(profile.name):
            return True
        return any(is_of_source(member) for member in workspace.resolver.lineages.find_lineage(profile))
    except NpuprofError:
        return False  # reported when the commit is checked


def _is_same_tree(repository: StoreRepository, head: Revision, after: ProposedRevision) -> bool:
    """Return whether a commit would change nothing."""
    if not head.commit:
        return not after.files
    tree = repository.git.read_objects([f"{head.commit}^{{tree}}"])[0]
    return tree is not None and tree.oid == after.commit


def _find_path(workspace: spec.Workspace, head: Revision, layout: Layout, name: str) -> str:
    """Return the path, relative to the repository, of a preset that exists or existed in the last commit. Raises NpuprofError.

    ``layout`` is the layout of the store in the new commit.
    """
    home = workspace.store
    plain_name = workspace.profile(name).name if name.endswith(".toml") else name
    if plain_name in home.names():
        return layout.path_of(plain_name, home.is_outside(plain_name))
    if plain_name not in head.files:
        workspace.profile(plain_name)  # raises an error that names similar presets
    return head.source_path(plain_name)


def _build_ignored_finding(path: str, by: str) -> Finding:
    what = f"nothing was committed: git ignores {path}"
    return Finding("NP025", what, f"{by} says so.", f"take that line out, or let git know the file all the same: git add -f {path}")


def _find_edits(workspace: spec.Workspace, after: ProposedRevision) -> list[Finding]:
    """Return the vendored copies that differ from the lock in a commit, except earlier differences that no preset reads."""
    try:
        edits = workspace.lookups.find_edited_copies(after)
        if edits and not workspace.lookups.find_edited_copies(workspace.store):
            return [edit._replace(hint="in the work tree it is whole: commit it with the rest, npuprof commit") for edit in edits]
    except NpuprofError:
        return []  # reported when a preset is read
    return edits


def _require_no_new_errors(workspace: spec.Workspace, after: ProposedRevision, changes: Survey, edits: list[Finding]) -> None:
    """Raise NpuprofError with every error that the last commit lacks, and with edits of vendored copies."""
    errors = [
        _explain_parent_left_out(workspace, after, finding)._replace(profiles=finding.profiles or (pair.name,))
        for pair in changes.pairs
        for finding in pair.broken
        if finding.severity == "error"
    ]
    if errors or edits:
        what = "nothing was committed: the commit would have errors that the last one has not"
        refused = Finding("NP025", what, "A commit with errors would break everybody's presets.", "fix the errors listed above")
        raise NpuprofError([*checks.fold_findings(edits + errors), refused])


def _explain_parent_left_out(workspace: spec.Workspace, after: ProposedRevision, finding: Finding) -> Finding:
    """Return a finding about a missing parent with a hint to commit it, if it exists in the work tree."""
    origin = finding.origin
    if finding.code != "NP101" or origin is None:
        return finding
    parent = find_at_path(origin.document.data, origin.path)
    if parent not in workspace.store.names() or parent in after.files:
        return finding
    hint = f"commit both: npuprof commit {parent} {origin.profile}; if git ignores {parent}, git add -f its file first"
    return finding._replace(why="It is in the work tree only.", hint=hint)


VERB = Commit
