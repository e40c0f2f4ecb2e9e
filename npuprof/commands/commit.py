"""``commit``: check the changed presets and commit them with a generated message."""

from __future__ import annotations

from itertools import starmap

from npuprof import checks
from npuprof.commands.framework import arguments, flag, option
from npuprof.commands.framework.parameters import StoreVerb
from npuprof.compare import survey, text_changes
from npuprof.compare.folds import write_headline
from npuprof.compare.survey import Survey
from npuprof.edit.paths import find_at_path
from npuprof.history import git_writing
from npuprof.history.git_writing import ExpectedCommit
from npuprof.history.proposed import load_last_commit, propose_commit
from npuprof.model import Context, Finding, NpuprofError, select_errors
from npuprof.report import Answer
from npuprof.resolve.lineages import is_of_source
from npuprof.store import spec
from npuprof.store.gitstore.revisions import ProposedRevision, StoreRepository
from npuprof.store.layout import Layout
from npuprof.store.worktree import ChangedPaths, list_changed_beside, list_changed_paths
from npuprof.system.locks import lock_folders


class Commit(StoreVerb):
    """Commit preset files.

    Checks the presets first and writes the message from their changes. Also commits npuprof.toml,
    npuprof.lock and vendored sources if they changed, but no other files. With NAME, it includes
    these only if the preset depends on them. Exits with 1 if nothing has changed.
    """

    group = "versions"
    usage_hint = (
        "npuprof commit takes every preset that differs, "
        "or those that are named; -m TEXT is the message."
    )

    names = arguments("NAME...", "Presets to commit [default: all that changed]", "spec")
    message = option(
        "--message",
        "-m",
        metavar="TEXT",
        text="Use TEXT as the first line of the message [default: a summary of the changes]",
        complete="nothing",
    )
    dry_run = flag("--dry-run", text="Show the message without committing")

    def run(self) -> Answer:
        """Commit the store's preset files, or those of the named presets.

        Return the commit and its subject.

        The committed tree is the one that was checked: if a hook changes it, or another commit is
        made meanwhile, nothing is committed. Exit 1 if there is nothing to commit. Raises
        NpuprofError if the tree has errors that the last commit lacks, if a vendored copy was
        edited, or if git fails.
        """
        workspace = spec.Workspace(self.store)
        repository = workspace.store.repository
        if not self.dry_run:
            # the commit itself runs the user's filters, and must find the same content
            repository = repository.with_git(repository.git.with_filters())
        git_writing.require_no_pending_merge(repository)
        # another npuprof must not write a preset between the check and the commit
        with lock_folders([] if self.dry_run else [repository.top]):
            return self._commit_changes(_Changes(workspace, repository))

    def _commit_changes(self, changes: _Changes) -> Answer:
        paths = changes.choose_files(self.names)
        with propose_commit(changes.repository, changes.head.commit, paths.changed) as after:
            if not paths.changed or changes.is_same_tree(after):
                return Answer(None, ("no preset differs from the last commit",), 1)
            found = survey.compare_store_states(
                changes.head, after, ("HEAD", "the commit"), Context(), is_brief=True
            )
            changes.require_no_new_errors(after, found)
            names = [after.layout.name_of(path) or path for path in paths.changed]
            message = (
                f"{self.message or write_headline(found, names)}\n\n"
                f"{text_changes.format_survey_text(found)}"
            )
        if self.dry_run:
            return Answer(message)
        commit = git_writing.commit_paths(
            changes.repository,
            paths.changed,
            paths.untracked,
            message,
            ExpectedCommit(changes.head.commit, after.commit),
        )
        is_detached = changes.repository.git.try_command("symbolic-ref", "--quiet", "HEAD").code
        note = "HEAD is detached: no branch has this commit; keep it: git switch -c BRANCH"
        return Answer(
            f"{commit[:7]} {message.partition(chr(10))[0]}\n", (note,) * bool(is_detached)
        )


class _Changes:
    """The changes of a work tree since the last commit of its repository, ``head``."""

    def __init__(self, workspace: spec.Workspace, repository: StoreRepository) -> None:
        self._workspace = workspace
        self._home = workspace.store
        self.repository = repository
        self.head = load_last_commit(repository)

    def choose_files(self, names: list[str]) -> ChangedPaths:
        """Return the files to commit.

        Raises NpuprofError for an unknown name, and for presets that git ignores.
        """
        layout = self.head.layout
        project_files = ChangedPaths([], [])
        if not names or any(map(self._needs_project_files, names)):
            copies = [
                source.vendor for source in self._home.project.sources.values() if source.vendor
            ]
            project_files = list_changed_beside(self.repository, copies)
            if layout.project_file in project_files.changed:
                # the files that it lists now, and those that it listed before
                globs = dict.fromkeys((*layout.globs, *self._home.layout.globs))
                layout = layout._replace(globs=tuple(globs))
        paths = list_changed_paths(self.repository, layout)
        changed = paths.changed
        untracked = paths.untracked
        if names:
            selected = {self._find_path(layout, name) for name in names}
            ignored = git_writing.find_ignored_paths(
                self.repository, sorted(selected.difference(changed))
            )
            if ignored:
                raise NpuprofError(list(starmap(_build_ignored_finding, ignored.items())))
            changed = [path for path in changed if path in selected]
            untracked = [path for path in untracked if path in selected]
        return ChangedPaths(
            list(dict.fromkeys((*changed, *project_files.changed))),
            list(dict.fromkeys((*untracked, *project_files.untracked))),
        )

    def _needs_project_files(self, name: str) -> bool:
        """Return whether the commit of a preset must include npuprof.toml and the lock.

        It must if the preset depends on them.
        """
        try:
            profile = self._workspace.profile(name)
            if self._home.is_outside(profile.name) and not self.head.layout.takes(profile.name):
                return True
            return any(map(is_of_source, self._workspace.resolver.lineages.find_lineage(profile)))
        except NpuprofError:
            return False  # reported when the commit is checked

    def _find_path(self, layout: Layout, name: str) -> str:
        """Return the path of a current or committed preset, relative to the repository.

        Raises NpuprofError.

        ``layout`` is the layout of the store in the new commit.
        """
        plain_name = self._workspace.profile(name).name if name.endswith(".toml") else name
        if plain_name in self._home.names():
            return layout.path_of(plain_name, self._home.is_outside(plain_name))
        if plain_name not in self.head.files:
            self._workspace.profile(plain_name)  # raises an error that names similar presets
        return self.head.source_path(plain_name)

    def is_same_tree(self, after: ProposedRevision) -> bool:
        """Return whether a commit would change nothing."""
        if not self.head.commit:
            return not after.files
        tree = self.repository.git.read_object(f"{self.head.commit}^{{tree}}")
        # a ProposedRevision has the id of a tree
        return tree is not None and tree.oid == after.commit

    def require_no_new_errors(self, after: ProposedRevision, found: Survey) -> None:
        """Raise NpuprofError for new errors, and for edits of vendored copies."""
        errors = [
            self._explain_parent_left_out(after, finding)._replace(
                profiles=finding.profiles or (pair.name,)
            )
            for pair in found.pairs
            for finding in select_errors(pair.broken)
        ]
        if findings := [*self._find_edits(after), *errors]:
            what = "nothing was committed: the commit would have errors that the last one has not"
            refused = Finding(
                "NP025",
                what,
                "A commit with errors would break everybody's presets.",
                "fix the errors listed above",
            )
            raise NpuprofError([*checks.fold_findings(findings), refused])

    def _find_edits(self, after: ProposedRevision) -> list[Finding]:
        """Return findings about vendored copies that differ from the lock in a commit.

        Earlier differences that no preset reads are omitted.
        """
        try:
            edits = self._workspace.lookups.find_edited_copies(after)
            # only a part of the copy is in the commit
            if edits and not self._workspace.lookups.find_edited_copies(self._home):
                return [
                    edit._replace(
                        hint="in the work tree it is whole: commit it with the rest, npuprof commit"
                    )
                    for edit in edits
                ]
        except NpuprofError:
            return []  # reported when a preset is read
        return edits

    def _explain_parent_left_out(self, after: ProposedRevision, finding: Finding) -> Finding:
        """Return a finding, with another hint for a missing parent that is only uncommitted."""
        origin = finding.origin
        if finding.code != "NP101" or origin is None:
            return finding
        parent = find_at_path(origin.document.data, origin.path)
        if parent not in self._home.names() or parent in after.files:
            return finding
        hint = (
            f"commit both: npuprof commit {parent} {origin.profile}; "
            f"if git ignores {parent}, git add -f its file first"
        )
        return finding._replace(why="It is in the work tree only.", hint=hint)


def _build_ignored_finding(path: str, by: str) -> Finding:
    what = f"nothing was committed: git ignores {path}"
    return Finding(
        "NP025",
        what,
        f"{by} says so.",
        f"take that line out, or let git know the file all the same: git add -f {path}",
    )


VERB = Commit
