"""``commit``: the profile files of a store, checked first, with a message made from what they change."""

from __future__ import annotations

import gc

from npuprof import checks
from npuprof.compare import plain, survey
from npuprof.compare.folds import fold_changes, format_change_sentence
from npuprof.history import writing
from npuprof.model import Context, Finding, NpuprofError
from npuprof.report import format_count, output
from npuprof.store import revisions, spec
from npuprof.store.revisions import Revision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH = 72


def commit_presets(names: Sequence[str], subject: str | None, dry_run: bool, store: str | None) -> int:
    """Commit the store's profile files, or those of the presets named, and nothing else.

    Exit 1 where there is nothing to commit. Raises NpuprofError where any preset has errors, or git refuses.
    """
    gc.freeze()
    gc.disable()
    workspace = spec.Workspace(store)
    repository = revisions.find_repository(workspace.store)
    changed, untracked = writing.list_changed_paths(repository)
    if names:
        wanted = {repository.source_path(_known(workspace, repository, name)) for name in names}
        changed = [path for path in changed if path in wanted]
        untracked = [path for path in untracked if path in wanted]
    if not changed:
        output.write_to_stderr("npuprof: no profile file differs from the last commit")
        return 1
    _sound(workspace)
    head = repository.git.read_objects(["HEAD"])[0]
    before = revisions.load_revision(workspace.store, head[0]) if head else Revision(repository, "", {})
    found = survey.compare_store_states(before, workspace.store, ("HEAD", "work tree"), Context())
    if names:
        found = found._replace(pairs=tuple(pair for pair in found.pairs if pair.is_touched))
    message = f"{subject or headline(found, changed, repository.prefix)}\n\n{plain.format_survey_text(found)}"
    if dry_run:
        output.write_answer(message)
        return 0
    made = writing.commit_paths(repository, changed, untracked, message)
    output.write_answer(f"{made[:7]} {message.partition(chr(10))[0]}\n")
    return 0


def _known(workspace: spec.Workspace, repository: revisions.Repository, name: str) -> str:
    plain_name = workspace.profile(name).name if name.endswith(".toml") else name
    head = repository.git.read_objects(["HEAD"])[0]
    if plain_name not in workspace.store.names() and not (head and plain_name in repository.list_profile_files(head[0])):
        workspace.store.profile(plain_name)  # says that there is none, and which are near
    return plain_name


def _sound(workspace: spec.Workspace) -> None:
    """Raise NpuprofError with every error of the store, if there is any."""
    found: list[Finding] = []
    for name in workspace.store.names():
        try:
            found += [finding for finding in checks.check_config(workspace.resolve_spec(name)) if finding.severity == "error"]
        except NpuprofError as error:
            found += [finding._replace(profiles=finding.profiles or (name,)) for finding in error.findings]
    if found:
        why = "What is committed reaches everybody."
        refused = Finding("NP025", "error", "nothing was committed: the store has errors", why, "mend what is listed above")
        raise NpuprofError([*checks.fold_findings(found), refused])


def headline(found: survey.Survey, paths: Sequence[str], prefix: str) -> str:
    """Return one line that says what a survey found, at most 72 characters long."""
    touched = found.touched_pairs
    for words in _candidates(touched):
        line = "; ".join(words)
        if words and len(line) <= _WIDTH:
            return line
    if touched:
        keys = {change.setting or change.key for pair in touched for change in pair.changes}
        return f"Change {format_count(len(keys), 'setting')} in {format_count(len(touched), 'preset')}"
    names = [path.removeprefix(prefix).removesuffix(".toml") for path in paths]
    line = f"Reword {', '.join(names)}"
    return line if len(line) <= _WIDTH else f"Reword {format_count(len(names), 'preset')}"


def _candidates(touched: Sequence[survey.Pair]) -> list[list[str]]:
    named = {
        verb: ", ".join(pair.name for pair in touched if pair.status == status)
        for verb, status in (("Add", "added"), ("Remove", "removed"))
    }
    whole = [f"{verb} {names}" for verb, names in named.items() if names]
    if mended := ", ".join(pair.name for pair in touched if pair.valid == (False, True) and not pair.changes):
        whole.append(f"Mend {mended}")
    whole += [f"Rename {pair.was} to {pair.name}" for pair in touched if pair.was]
    folded = fold_changes(touched)
    long, short = [], []
    for fold in folded:
        reach = fold.presets[0] if len(fold.presets) == 1 else f"{len(fold.presets)} presets"
        long.append(f"{reach}: {fold.change.sign + ' ' if fold.change.kind != 'changed' else ''}{format_change_sentence(fold.change)}")
        short.append(f"{reach}: {fold.change.key}")
    presets = len({name for fold in folded for name in fold.presets})
    settings = len({fold.change.setting or fold.change.key for fold in folded})
    summed = [f"Change {format_count(settings, 'setting')} in {format_count(presets, 'preset')}"] if len(folded) > 1 else []
    return [whole + long, whole + short, whole + summed]
