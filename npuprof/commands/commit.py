"""``commit``: the profile files of a store, checked first, with a message made from what they change."""

from __future__ import annotations

from npuprof import checks
from npuprof.commands.parameters import STORE
from npuprof.commands.verb import Verb, arguments, flag, option
from npuprof.compare import plain, survey
from npuprof.history import writing
from npuprof.history.message import write_headline
from npuprof.model import Context, Finding, NpuprofError
from npuprof.report.answer import Answer
from npuprof.store import revisions, spec
from npuprof.store.revisions import Revision


class Commit(Verb):
    """Commit the profile files, once they are free of errors.

    Nothing else is committed; the message says what they change.
    """

    group = "versions"

    names: list[str] = arguments("NAME...", "Only the files of these presets.")
    message: str | None = option("--message", "-m", metavar="TEXT", text="The first line; what changed follows it.")
    dry_run: bool = flag("--dry-run", text="Show the message, commit nothing.")
    store: str | None = STORE

    def run(self) -> Answer:
        """Commit the store's profile files, or those of the presets named; return the commit and its first line.

        Exit 1 where there is nothing to commit. Raises NpuprofError where any preset has errors, or git refuses.
        """
        workspace = spec.Workspace(self.store)
        repository = revisions.find_repository(workspace.store)
        changed, untracked = writing.list_changed_paths(repository)
        if self.names:
            wanted = {repository.source_path(_find_name(workspace, repository, name)) for name in self.names}
            changed = [path for path in changed if path in wanted]
            untracked = [path for path in untracked if path in wanted]
        if not changed:
            return Answer(None, ("no profile file differs from the last commit",), 1)
        _refuse_errors(workspace)
        head = repository.git.read_objects(["HEAD"])[0]
        before = revisions.load_revision(workspace.store, head.oid) if head else Revision(repository, "", {})
        found = survey.compare_store_states(before, workspace.store, ("HEAD", "work tree"), Context())
        if self.names:
            found = found._replace(pairs=tuple(pair for pair in found.pairs if pair.is_touched))
        headline = self.message or write_headline(found, changed, repository.prefix)
        message = f"{headline}\n\n{plain.format_survey_text(found)}"
        if self.dry_run:
            return Answer(message)
        made = writing.commit_paths(repository, changed, untracked, message)
        return Answer(f"{made[:7]} {message.partition(chr(10))[0]}\n")


def _find_name(workspace: spec.Workspace, repository: revisions.Repository, name: str) -> str:
    """Return the name of a preset that is there, or was at the last commit. Raises NpuprofError."""
    plain_name = workspace.profile(name).name if name.endswith(".toml") else name
    head = repository.git.read_objects(["HEAD"])[0]
    if plain_name not in workspace.store.names() and not (head and plain_name in repository.list_profile_files(head.oid)):
        workspace.store.profile(plain_name)  # says that there is none, and which are near
    return plain_name


def _refuse_errors(workspace: spec.Workspace) -> None:
    """Raise NpuprofError with every error of the store, if there is any."""
    found: list[Finding] = []
    for name in workspace.store.names():
        try:
            found += [finding for finding in checks.check_config(workspace.resolve_spec(name)) if finding.severity == "error"]
        except NpuprofError as error:
            found += [finding._replace(profiles=finding.profiles or (name,)) for finding in error.findings]
    if found:
        why = "What is committed reaches everybody."
        refused = Finding("NP025", "nothing was committed: the store has errors", why, "mend what is listed above")
        raise NpuprofError([*checks.fold_findings(found), refused])


VERB = Commit
