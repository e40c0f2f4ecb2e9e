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

from npuprof.history.git_queries import find_git_path, join_paths, read_settings
from npuprof.model import TYPE_CHECKING, Finding, NpuprofError, Record, build_error
from npuprof.store.gitstore.objects import (
    Git,
    build_config_variables,
    build_git_environment,
    build_refusal_finding,
    require_no_links_out,
)
from npuprof.store.gitstore.repository import Repository
from npuprof.system import decode_safely, processes

if TYPE_CHECKING:
    import git  # importing GitPython starts a git: processes makes it the right one first

#: git's messages while another git works in the repository.
_LOCKED = (".lock': File exists", "cannot lock ref", "Unable to create '")
#: git's message for an existing name, for which a retry is pointless.
_TAKEN = "reference already exists"
#: The delays before retries, in seconds.
_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0)


#: An identity as ``git var`` prints it.
_IDENTITY = re.compile(r"(?P<name>.*) <(?P<email>.*)> (?P<date>.*)")
#: git's messages for a name that another tag has, of ``update-ref`` and of ``tag``.
_TAKEN_TAG = re.compile(
    r"'refs/tags/(?P<ref>[^']+)': reference already exists|tag '(?P<tag>[^']+)' already exists"
)


class ExpectedCommit(Record):
    """The expected commit: its parent, an empty string for the first commit, and its tree."""

    parent: str
    tree: str


def require_no_pending_merge(repository: Repository) -> None:
    """Raise NpuprofError during a merge or cherry-pick.

    Git would then commit everything or nothing.
    """
    for ref, operation in (("MERGE_HEAD", "a merge"), ("CHERRY_PICK_HEAD", "a cherry-pick")):
        if repository.git.read_object(ref):
            message = f"cannot do a partial commit during {operation}."
            raise NpuprofError(build_refusal_finding(message.encode(), repository.folder))


def find_ignored_paths(repository: Repository, paths: Sequence[str]) -> dict[str, str]:
    """Return the ignored paths, each with the ignore rule: ``.gitignore:3``."""
    result = repository.git.try_command(
        "check-ignore", "--verbose", "-z", "--stdin", stdin=join_paths(paths)
    )
    fields = os.fsdecode(result.output).split("\0")
    # Four fields for each path: the file of the rule, its line, its pattern, and the path.
    rules = zip(*[iter(fields)] * 4, strict=False)
    return {
        path: f"{source}:{line}"
        for source, line, pattern, path in rules
        # git also lists paths that a later rule includes again
        if not pattern.startswith("!")
    }


def commit_paths(
    repository: Repository,
    paths: Sequence[str],
    untracked: Sequence[str],
    message: str,
    expected: ExpectedCommit,
) -> str:
    """Commit exactly these paths as they are in the work tree, staged or not; return the commit.

    Raises NpuprofError with git's reason (a hook, no identity, a merge in progress), or if the
    commit would differ from the expected one; nothing is staged then.
    """
    commands = open_git_commands(repository)
    with (
        _write_temporary_file(join_paths(paths)) as path_file,
        _write_temporary_file(join_paths(untracked)) as untracked_file,
        _write_temporary_file(message.encode(errors="surrogateescape")) as message_file,
        _write_temporary_file(b"") as seen_file,
    ):
        all_paths = (f"--pathspec-from-file={path_file}", "--pathspec-file-nul")
        untracked_paths = (f"--pathspec-from-file={untracked_file}", "--pathspec-file-nul")
        commands.update_environment(GIT_EDITOR=_write_editor(seen_file, expected))
        if untracked:
            # git commit --only accepts no path that git does not know
            run_git_command(repository, commands.add, "--intent-to-add", *untracked_paths)
        arguments = (
            "--only",
            "--quiet",
            # a line that begins with "#" would be dropped as a comment
            "--cleanup=verbatim",
            "--edit",
            "--no-status",
            "--no-verbose",
            f"--file={message_file}",
        )
        try:
            run_git_command(repository, commands.commit, *arguments, *all_paths)
        except NpuprofError as error:
            if untracked:
                unstage = ("--cached", "--quiet", "--force", "--ignore-unmatch", *untracked_paths)
                with suppress(NpuprofError):  # the first failure is the one to report
                    run_git_command(repository, commands.rm, *unstage)
            if _has_seen_other_commit(seen_file, expected):
                what = (
                    "nothing was committed: it would have been "
                    "another commit than the one that was checked"
                )
                why = "A hook has changed the files, or somebody else has committed meanwhile."
                raise build_error("NP025", what, why, "see git status, and commit again") from error
            raise
    return repository.resolve_commit("HEAD")


def _has_seen_other_commit(seen_file: str, expected: ExpectedCommit) -> bool:
    """Return whether the message editor has seen another commit than the expected one.

    The file is empty if git failed before it started the editor.
    """
    with open(seen_file, "rb") as file:
        seen = file.read().strip()
    # git prints no commit before the first one, so that the parent is empty
    return seen not in (b"", f"{expected.parent} {expected.tree}".strip().encode())


def _write_editor(seen: str, expected: ExpectedCommit) -> str:
    """Return a command that git starts as the message editor.

    It fails unless the commit is the expected one. The editor runs after the hook that may change
    the commit, as the last step before the message is final. The observed commit is written to the
    file ``seen``.
    """
    actual = '"$(git rev-parse --quiet --verify HEAD)" "$(git write-tree)"'
    file = shlex.quote(seen)
    planned = shlex.quote(f"{expected.parent} {expected.tree}")
    return (
        f"judge_commit() {{ printf '%s %s\\n' {actual} > {file} "
        f'&& test "$(cat {file})" = {planned}; }}; judge_commit'
    )


def create_tags(repository: Repository, target: str, messages: Mapping[str, str]) -> None:
    """Create annotated tags of a commit, all or none, by name and message.

    ``target`` is the id of the commit. git creates and signs the tags in an empty repository that
    shares the objects; then one transaction creates all refs. Raises NpuprofError if git rejects
    any.
    """
    for name in messages:
        # before any tag is signed, which may ask for a password; the transaction checks it again
        if repository.git.read_object(f"refs/tags/{name}"):
            what = f"the tag {name} exists already"
            raise build_error(
                "NP026", what, "A released version never changes.", "release the next number"
            )
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
        commands = _open_scratch_repository(repository, folder, len(target))
        for name, message in messages.items():
            with _write_temporary_file(message.encode(errors="surrogateescape")) as message_file:
                options = ("--annotate", "--cleanup=verbatim", f"--file={message_file}")
                run_git_command(repository, commands.tag, *options, "--", name, target)
        listed = Git(
            repository.git.folder,
            {"GIT_DIR": folder, "GIT_OBJECT_DIRECTORY": find_git_path(repository, "objects")},
        ).run_command("for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags/")

    def update_refs() -> tuple[str, str | None]:
        # A transaction from start to commit is atomic: a killed process leaves no tags.
        transaction = b"start\n" + listed + b"prepare\ncommit\n"
        result = repository.git.writing().try_command("update-ref", "--stdin", stdin=transaction)
        return "", decode_safely(result.complaint).strip() if result.code else None

    _repeat_while_locked(repository, update_refs)
    repository.clear_versions()


def _open_scratch_repository(repository: Repository, folder: str, length: int) -> git.Git:
    """Return git in a new, empty repository with another one's objects, identity and signing."""
    # objects of another hash function could not be shared
    object_format = ["--object-format=sha256"] if length == 64 else []
    repository.git.run_command("init", "--quiet", "--bare", "--template=", *object_format, folder)
    printed = repository.git.run_command("var", "GIT_COMMITTER_IDENT")
    identity = _IDENTITY.match(printed.decode(errors="surrogateescape"))
    assert identity, "git writes it so"
    variables = {
        "GIT_DIR": folder,
        "GIT_OBJECT_DIRECTORY": find_git_path(repository, "objects"),
        # the new repository has no configuration, and the tags are signed as the user's are
        **build_config_variables(read_settings(repository, r"^(tag|gpg|user)\.")),
        "GIT_COMMITTER_NAME": identity["name"],
        "GIT_COMMITTER_EMAIL": identity["email"],
        "GIT_COMMITTER_DATE": f"@{identity['date']}",
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


def run_git_command(repository: Repository, command: Callable[..., object], *arguments: str) -> str:
    """Run a command and return its output. Raises NpuprofError with git's reason."""
    import git  # after open_git_writer, which has chosen the git that GitPython starts

    def run() -> tuple[str, str | None]:
        try:
            with processes.limit_environment(build_git_environment(repository.git.top)):
                return str(command(*arguments)), None
        except git.GitCommandError as error:
            # GitPython writes ``stderr: '...'``.
            for name, text in (("stderr", error.stderr), ("stdout", error.stdout)):
                complaint = str(text).strip().removeprefix(f"{name}:").strip().strip("'")
                if complaint:
                    return "", complaint
            return "", ""
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
        # an existing name stays: waiting for it would not help
        if wait is None or _TAKEN in complaint or not any(mark in complaint for mark in _LOCKED):
            raise NpuprofError(_explain_refusal(complaint, repository.folder))
        time.sleep(wait)
    raise AssertionError("the last try returns or raises")


def _explain_refusal(output: str, folder: str) -> Finding:
    """Return git's error message, with all other output of git and its hooks on one line.

    A name of a tag that another release took meanwhile has its own message.
    """
    taken = _TAKEN_TAG.search(output)
    if taken is None:
        why = " ".join(output.split()) if "\n" in output.strip() else ""
        return build_refusal_finding(output.encode(), folder)._replace(why=why)
    why = "Another release in this repository made it meanwhile; this one has made no tag."
    return Finding(
        "NP026",
        f"the tag {taken['ref'] or taken['tag']} exists already",
        why,
        "run npuprof release again, which recomputes the plan",
    )


@contextmanager
def _write_temporary_file(content: bytes) -> Iterator[str]:
    """Create a temporary file for a list of paths or a message.

    Command lines limit their length.
    """
    with tempfile.NamedTemporaryFile(prefix="npuprof-") as file:
        file.write(content)
        # git opens the file by its name
        file.flush()
        yield file.name
