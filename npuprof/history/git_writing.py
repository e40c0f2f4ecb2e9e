"""Writes commits of preset files and annotated tags.

Existing commits and tags are never changed.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from npuprof.history.git_queries import find_git_path, join_paths, read_settings
from npuprof.model import Finding, NpuprofError, build_error
from npuprof.store.gitstore.objects import (
    Git,
    build_config_variables,
    build_git_environment,
    build_refusal_finding,
    require_no_links_out,
)
from npuprof.store.gitstore.repository import Repository
from npuprof.system import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import git  # importing GitPython starts a git: processes makes it the right one first

#: git's messages while another git works in the repository, and the delays before retries, in
#: seconds.
_LOCKED = (".lock': File exists", "cannot lock ref", "Unable to create '")
#: git's message for an existing name, for which a retry is pointless.
_TAKEN = "reference already exists"
_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0)


class ExpectedCommit(NamedTuple):
    """The expected commit: its parent, an empty string for the first commit, and its tree."""

    parent: str
    tree: str


def require_no_pending_merge(repository: Repository) -> None:
    """Raise NpuprofError during a merge or cherry-pick.

    Git would then commit everything or nothing.
    """
    for name, deed in (("MERGE_HEAD", "a merge"), ("CHERRY_PICK_HEAD", "a cherry-pick")):
        if repository.git.read_objects([name])[0] is not None:
            raise NpuprofError(
                build_refusal_finding(
                    f"cannot do a partial commit during {deed}.".encode(), repository.folder
                )
            )


def find_ignored_paths(repository: Repository, paths: Sequence[str]) -> dict[str, str]:
    """Return the ignored paths, each with the ignore rule: ``.gitignore:3``."""
    result = repository.git.try_command(
        "check-ignore", "--verbose", "-z", "--stdin", stdin=join_paths(paths)
    )
    words = os.fsdecode(result.output).split("\0")
    rows = zip(*[iter(words)] * 4, strict=False)
    return {
        path: f"{source}:{line}"
        for source, line, pattern, path in rows
        if not pattern.startswith("!")
    }


def commit_paths(
    repository: Repository,
    paths: Sequence[str],
    untracked: Sequence[str],
    message: str,
    expected: ExpectedCommit,
) -> str:
    """Commit exactly these paths as they are in the work tree, staged or not.

    Return the new commit's id.

    Raises NpuprofError with git's reason (a hook, no identity, a merge in progress), or if the
    commit would differ from the expected one; nothing is staged then.
    """
    commands = open_git_commands(repository)
    with (
        _hold_in_temporary_file(join_paths(paths)) as every,
        _hold_in_temporary_file(join_paths(untracked)) as new,
        _hold_in_temporary_file(message.encode(errors="surrogateescape")) as message_file,
        _hold_in_temporary_file(b"") as seen,
    ):
        commands.update_environment(GIT_EDITOR=_write_editor(seen, expected))
        if untracked:
            run_git_command(
                repository,
                commands.add,
                "--intent-to-add",
                f"--pathspec-from-file={new}",
                "--pathspec-file-nul",
            )
        try:
            words = (
                "--only",
                "--quiet",
                "--cleanup=verbatim",
                "--edit",
                "--no-status",
                "--no-verbose",
                f"--file={message_file}",
            )
            run_git_command(
                repository,
                commands.commit,
                *words,
                f"--pathspec-from-file={every}",
                "--pathspec-file-nul",
            )
        except NpuprofError as error:
            if untracked:
                back = (
                    "--cached",
                    "--quiet",
                    "--force",
                    "--ignore-unmatch",
                    f"--pathspec-from-file={new}",
                    "--pathspec-file-nul",
                )
                with suppress(NpuprofError):  # the first failure is the one to report
                    run_git_command(repository, commands.rm, *back)
            with open(seen, "rb") as file:
                is_other = file.read().strip() not in (
                    b"",
                    f"{expected.parent} {expected.tree}".strip().encode(),
                )
            if is_other:
                what = (
                    "nothing was committed: it would have been "
                    "another commit than the one that was checked"
                )
                why = "A hook has changed the files, or somebody else has committed meanwhile."
                raise build_error("NP025", what, why, "see git status, and commit again") from error
            raise
    return repository.resolve_commit("HEAD")


def _write_editor(seen: str, expected: ExpectedCommit) -> str:
    """Return a command that git starts as the message editor.

    It fails unless the commit is the expected one. The editor runs after the hook that may change
    the commit, as the last step before the message is final. The observed commit is written to the
    file ``seen``.
    """
    actual = '"$(git rev-parse --quiet --verify HEAD)" "$(git write-tree)"'
    file = shlex.quote(seen)
    wanted = shlex.quote(f"{expected.parent} {expected.tree}")
    return (
        f"judge_commit() {{ printf '%s %s\\n' {actual} > {file} "
        f'&& test "$(cat {file})" = {wanted}; }}; judge_commit'
    )


def create_tags(repository: Repository, target: str, messages: Mapping[str, str]) -> None:
    """Create annotated tags of a commit, all or none, by name and message.

    Raises NpuprofError if git rejects any.

    ``target`` is the id of the commit. git creates and signs the tags in an empty repository that
    shares the objects; then one transaction creates all refs.
    """
    for name in messages:
        if repository.git.read_objects([f"refs/tags/{name}"])[0] is not None:
            what = f"the tag {name} exists already"
            raise build_error(
                "NP026", what, "A released version never changes.", "release the next number"
            )
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
        commands = _open_git_beside(repository, folder, len(target))
        for name, message in messages.items():
            with _hold_in_temporary_file(message.encode(errors="surrogateescape")) as message_file:
                run_git_command(
                    repository,
                    commands.tag,
                    "--annotate",
                    "--cleanup=verbatim",
                    f"--file={message_file}",
                    "--",
                    name,
                    target,
                )
        scratch = Git(
            repository.git.folder,
            {"GIT_DIR": folder, "GIT_OBJECT_DIRECTORY": find_git_path(repository, "objects")},
        )
        listed = scratch.run_command(
            "for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags/"
        )
    # A transaction from start to commit is atomic: a killed process leaves no tags.
    _create_refs(repository, b"start\n" + listed + b"prepare\ncommit\n")
    repository.clear_versions()


def _create_refs(repository: Repository, transaction: bytes) -> None:
    """Create the refs of tags. Raises NpuprofError with git's reason."""

    def update_refs() -> tuple[str, str | None]:
        result = repository.git.writing().try_command("update-ref", "--stdin", stdin=transaction)
        return "", result.complaint.decode(errors="replace").strip() if result.code else None

    _repeat_while_locked(repository, update_refs)


def _open_git_beside(repository: Repository, folder: str, length: int) -> git.Git:
    """Return git in a new, empty repository with another one's objects, identity and signing."""
    kind = ["--object-format=sha256"] if length == 64 else []
    repository.git.run_command("init", "--quiet", "--bare", "--template=", *kind, folder)
    person = repository.git.run_command("var", "GIT_COMMITTER_IDENT").decode(
        errors="surrogateescape"
    )
    named = re.match(r"(.*) <(.*)> (.*)", person)
    assert named is not None, "git writes it so"
    known = read_settings(repository, r"^(tag|gpg|user)\.")
    variables = {
        "GIT_DIR": folder,
        "GIT_OBJECT_DIRECTORY": find_git_path(repository, "objects"),
        **build_config_variables(known),
    }
    variables |= {
        "GIT_COMMITTER_NAME": named[1],
        "GIT_COMMITTER_EMAIL": named[2],
        "GIT_COMMITTER_DATE": f"@{named[3]}",
    }
    commands = open_git_commands(repository)
    commands.update_environment(**variables)
    return commands


def open_git_commands(repository: Repository) -> git.Git:
    """Return git at the top of the repository as its user runs it, with hooks and signing.

    Raises NpuprofError (NP941) if it would write through links out of its folder.
    """
    require_no_links_out(repository.git.bare or repository.top)
    return processes.open_git_writer(repository.top)


def run_git_command(repository: Repository, command: Callable[..., object], *words: str) -> str:
    """Run a command and return its output. Raises NpuprofError with git's reason."""
    import git

    def run() -> tuple[str, str | None]:
        try:
            with processes.limit_environment(build_git_environment(repository.git.top)):
                return str(command(*words)), None
        except git.GitCommandError as error:
            streams = {"stderr": error.stderr, "stdout": error.stdout}
            complaints = (
                str(text).strip().removeprefix(f"{name}:").strip().strip("'")
                for name, text in streams.items()
            )
            return "", next(filter(None, complaints), "")
        except git.CommandError as error:
            raise NpuprofError(
                build_refusal_finding(str(error).encode(), repository.folder)
            ) from None

    return _repeat_while_locked(repository, run)


def _repeat_while_locked(
    repository: Repository, attempt: Callable[[], tuple[str, str | None]]
) -> str:
    """Return the output of a git command, repeated for a few seconds while another git has a lock.

    ``attempt`` returns the output, and git's error if it failed. Raises NpuprofError with that
    error.
    """
    for wait in (*_WAITS, None):
        output, complaint = attempt()
        if complaint is None:
            return output
        if wait is None or _TAKEN in complaint or not any(mark in complaint for mark in _LOCKED):
            raise NpuprofError(_explain_refusal(complaint, repository.folder))
        time.sleep(wait)
    raise AssertionError("the last try returns or raises")


def _explain_refusal(output: str, folder: str) -> Finding:
    """Return git's error message, with all other output of git and its hooks on one line.

    A name of a tag that another release took meanwhile has its own message.
    """
    taken = re.search(
        r"'refs/tags/([^']+)': reference already exists|tag '([^']+)' already exists", output
    )
    if taken is None:
        return build_refusal_finding(output.encode(), folder)._replace(
            why=" ".join(output.split()) if "\n" in output.strip() else ""
        )
    why = "Another release in this repository made it meanwhile; this one has made no tag."
    return Finding(
        "NP026",
        f"the tag {taken[1] or taken[2]} exists already",
        why,
        "run npuprof release again, which recomputes the plan",
    )


@contextmanager
def _hold_in_temporary_file(content: bytes) -> Iterator[str]:
    """Create a temporary file for a list of paths or a message.

    Command lines limit their length.
    """
    with tempfile.NamedTemporaryFile(prefix="npuprof-") as file:
        file.write(content)
        file.flush()
        yield file.name
