"""Pushing the tags of versions: those just made, and those that a push before has not brought to the remote."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer
from npuprof.report.asking import answer_refusal, ask_on_terminal
from npuprof.report.text import format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.report.answer import Forms
    from npuprof.store.gitstore.repository import Repository


class NothingNewError(NpuprofError):
    """There is nothing new to release of a preset, or under a ``number`` that it has already."""

    def __init__(self, finding: Finding, name: str, number: str = "") -> None:
        super().__init__([finding])
        self.name = name
        self.number = number


def push_new_tags(repository: Repository, forms: Forms | str, tags: Sequence[str]) -> Answer:
    """Push tags to where the branch is pushed; return an answer that says so, or with exit code 2 why that failed."""
    from npuprof.history import pushing

    try:
        remote = pushing.find_remote(repository)
        fault = pushing.push_tags(repository, remote, tags)
    except NpuprofError as error:
        fault, remote = error.findings[0], ""
    return Answer(forms, code=2, problems=(fault,)) if fault else Answer(forms, (f"pushed {format_count(len(tags), 'tag')} to {remote}",))


def push_earlier_tags(repository: Repository, name: str | None, number: str, *, dry_run: bool, asks: bool, shown: bool) -> Answer | None:
    """Push the tags of versions that the remote lacks, of one preset if it is named; None where it has all of them.

    Raises NpuprofError where the remote cannot be asked, or has other tags of these names.
    """
    from npuprof.history import pushing

    head = repository.resolve_commit("HEAD")
    remote = pushing.find_remote(repository)
    missing, other = pushing.compare_remote_tags(repository, remote, head, name, number)
    if other:
        what = f"{remote} has {'another' if len(other) == 1 else 'others'}: {', '.join(other)}"
        raise NpuprofError([Finding("NP026", what, "A released version never changes.", pushing.advise_other_tags(other))])
    if not missing:
        return None
    forms: Forms = {
        "text": lambda: "".join(f"{tag}\n" for tag in missing),
        "markdown": lambda: "".join(["# Released before\n\n", *(f"- `{tag}`\n" for tag in missing)]),
        "json": lambda: {
            "schema": "npuprof.release/1", "dry_run": dry_run, "commit": head, "releases": [], "store": None, "unreleased": [],
            "unpushed": missing,
        },
    }  # fmt: skip
    lacks = f"nothing new is to be released; {remote} lacks {format_count(len(missing), 'tag')} of what was released before"
    answer = Answer(forms, (lacks,))
    if dry_run:
        return answer
    if asks and not ask_on_terminal(answer, "text", "push these tags?"):
        refused = answer_refusal(answer, "pushed", shown)
        return refused._replace(remarks=(*refused.remarks, f"share them with {pushing.format_push_command(remote, missing)}"))
    done = push_new_tags(repository, forms, missing)
    return done._replace(remarks=(lacks, *done.remarks))


def describe_unpushed_tags(repository: Repository, head: str) -> tuple[str, ...]:
    """Return how many versions of before the remote lacks, with the command: a push of them may have failed."""
    from npuprof.history import pushing

    try:
        remote = pushing.find_remote(repository)
        missing = pushing.compare_remote_tags(repository, remote, head).missing
    except NpuprofError:
        return ()
    if not missing:
        return ()
    return (f"{remote} lacks {format_count(len(missing), 'tag')} of before: {pushing.format_push_command(remote, missing)}",)


def write_push_command(repository: Repository, tags: Sequence[str]) -> str:
    """Return what pushes tags to where the branch is pushed, to type."""
    from npuprof.history import pushing

    try:
        remote = pushing.find_remote(repository)
    except NpuprofError:
        return f"{pushing.format_push_command('origin', tags)}, once there is a remote: git remote add origin URL"
    return pushing.format_push_command(remote, tags)
