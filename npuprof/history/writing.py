"""What npuprof writes to a repository: commits of profile files, and annotated tags. Nothing is ever moved or rewritten."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from npuprof.model import Finding, NpuprofError
from npuprof.store.git import Git, build_git_environment, build_refusal_finding, list_settings, take_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import git

    from npuprof.store.repository import Repository


#: What git says while another one works in the repository, and for how many seconds to wait before each new try.
_LOCKED = (".lock': File exists", "cannot lock ref", "Unable to create '")
_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0)


class ExpectedCommit(NamedTuple):
    """What a commit is made of: the commit it comes after, an empty text where it is the first, and its tree."""

    parent: str
    tree: str


class CommitDiffersError(Exception):
    """A commit would be another than the one that was asked for: ``found``."""

    def __init__(self, found: ExpectedCommit) -> None:
        super().__init__()
        self.found = found


def refuse_unfinished_deed(repository: Repository) -> None:
    """Raise NpuprofError where git would commit everything or nothing: a merge or a cherry-pick is under way."""
    for name, deed in (("MERGE_HEAD", "a merge"), ("CHERRY_PICK_HEAD", "a cherry-pick")):
        if repository.git.read_objects([name])[0] is not None:
            raise NpuprofError([build_refusal_finding(f"cannot do a partial commit during {deed}.".encode(), repository.folder)])


def find_ignored_paths(repository: Repository, paths: Sequence[str]) -> dict[str, str]:
    """Return which of some paths git ignores, and the line that says so: ``.gitignore:3``."""
    listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
    result = repository.git.try_command("check-ignore", "--verbose", "-z", "--stdin", stdin=listed)
    words = os.fsdecode(result.output).split("\0")
    rows = zip(*[iter(words)] * 4, strict=False)
    return {path: f"{source}:{line}" for source, line, pattern, path in rows if not pattern.startswith("!")}


def commit_paths(repository: Repository, paths: Sequence[str], untracked: Sequence[str], message: str, expected: ExpectedCommit) -> str:
    """Commit these paths as they are in the work tree, and nothing else, staged or not; return the new commit's id.

    Raises NpuprofError with git's reason (a hook, no identity, a merge under way), CommitDiffersError where the commit
    would be another than the expected one; nothing is staged then.
    """
    commands = _open_git_commands(repository)
    with (
        _write_path_list(paths) as every,
        _write_path_list(untracked) as new,
        _hold_in_temporary_file(message.encode(errors="surrogateescape")) as said,
        _hold_in_temporary_file(b"") as seen,
    ):
        commands.update_environment(GIT_EDITOR=_write_editor(seen, expected))
        if untracked:
            _run_git_command(repository, commands.add, "--intent-to-add", f"--pathspec-from-file={new}", "--pathspec-file-nul")
        try:
            words = ("--only", "--quiet", "--cleanup=verbatim", "--edit", "--no-status", "--no-verbose", f"--file={said}")
            _run_git_command(repository, commands.commit, *words, f"--pathspec-from-file={every}", "--pathspec-file-nul")
        except NpuprofError as error:
            if untracked:
                back = ("--cached", "--quiet", "--force", "--ignore-unmatch", f"--pathspec-from-file={new}", "--pathspec-file-nul")
                with suppress(NpuprofError):  # the reason of the first failure is the one to tell
                    _run_git_command(repository, commands.rm, *back)
            found = _read_seen_commit(seen)
            if found is not None and found != expected:
                raise CommitDiffersError(found) from error
            raise
    return repository.resolve_commit("HEAD")


def _write_editor(seen: str, expected: ExpectedCommit) -> str:
    """Return a command for git to start as the editor of the message: it agrees only to the expected commit.

    That is after the hook that may change what is committed, and the last that git asks before the message is final. What
    it finds goes to the file ``seen``.
    """
    import shlex

    found = '"$(git rev-parse --quiet --verify HEAD)" "$(git write-tree)"'
    file = shlex.quote(seen)
    wanted = shlex.quote(f"{expected.parent} {expected.tree}")
    return f"judge_commit() {{ printf '%s %s\\n' {found} > {file} && test \"$(cat {file})\" = {wanted}; }}; judge_commit"


def _read_seen_commit(seen: str) -> ExpectedCommit | None:
    """Return what git was about to commit, None where it did not come so far."""
    with open(seen, encoding="ascii") as file:
        parent, _, tree = file.read().rstrip("\n").partition(" ")
    return ExpectedCommit(parent, tree) if tree else None


def create_tag(repository: Repository, name: str, target: str, message: str) -> None:
    """Make an annotated tag. Raises NpuprofError where it exists or git refuses the name."""
    if repository.git.read_objects([f"refs/tags/{name}"])[0] is not None:
        what = f"the tag {name} exists already"
        raise NpuprofError([Finding("NP026", what, "A released version never changes.", "release the next number")])
    with _hold_in_temporary_file(message.encode(errors="surrogateescape")) as said:
        _run_git_command(
            repository, _open_git_commands(repository).tag, "--annotate", "--cleanup=verbatim", f"--file={said}", "--", name, target
        )
    repository.clear_versions()


def create_tags(repository: Repository, target: str, messages: Mapping[str, str]) -> None:
    """Make annotated tags of a commit, all or none, by their names and messages. Raises NpuprofError where git refuses any.

    git writes and signs them as it would any other, but below a folder of their own beside the repository, whose objects
    alone are shared; then one transaction gives all of them their names.
    """
    import tempfile

    for name in messages:
        if repository.git.read_objects([f"refs/tags/{name}"])[0] is not None:
            what = f"the tag {name} exists already"
            raise NpuprofError([Finding("NP026", what, "A released version never changes.", "release the next number")])
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
        commands = _open_git_beside(repository, folder, len(target))
        for name, message in messages.items():
            with _hold_in_temporary_file(message.encode(errors="surrogateescape")) as said:
                _run_git_command(repository, commands.tag, "--annotate", "--cleanup=verbatim", f"--file={said}", "--", name, target)
        made = Git(repository.git.folder, {"GIT_DIR": folder, "GIT_OBJECT_DIRECTORY": _find_objects(repository)})
        listed = made.run_command("for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags/")
    # What begins with start and ends before commit changes nothing: being killed leaves none of the tags.
    repository.git.run_command("update-ref", "--stdin", stdin=b"start\n" + listed + b"prepare\ncommit\n")
    repository.clear_versions()


def _open_git_beside(repository: Repository, folder: str, length: int) -> git.Git:
    """Return git in a new, empty repository that has the objects of another, and who writes and signs there."""
    kind = ["--object-format=sha256"] if length == 64 else []
    repository.git.run_command("init", "--quiet", "--bare", "--template=", *kind, folder)
    person = repository.git.run_command("var", "GIT_COMMITTER_IDENT").decode(errors="surrogateescape")
    named = re.match(r"(.*) <(.*)> (.*)", person)
    assert named is not None, "git writes it so"
    listed = repository.git.try_command("config", "-z", "--get-regexp", r"^(tag|gpg|user)\.").output.decode(errors="surrogateescape")
    known = [entry.partition("\n")[::2] for entry in listed.split("\0") if entry]
    given = {"GIT_DIR": folder, "GIT_OBJECT_DIRECTORY": _find_objects(repository), "GIT_CONFIG_COUNT": str(len(known))}
    for place, (key, value) in enumerate(known):
        given |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
    given |= {"GIT_COMMITTER_NAME": named[1], "GIT_COMMITTER_EMAIL": named[2], "GIT_COMMITTER_DATE": f"@{named[3]}"}
    commands = _open_git_commands(repository)
    commands.update_environment(**given)
    return commands


def _find_objects(repository: Repository) -> str:
    found = os.fsdecode(repository.git.run_command("rev-parse", "--git-path", "objects").rstrip(b"\n"))
    return os.path.join(repository.top, found)


def find_remote(repository: Repository) -> str:
    """Return where a push goes: what the branch, or the repository, says; else origin. Raises NpuprofError where there is no remote."""
    said = repository.git.try_command("config", "-z", "--get-regexp", r"^(branch\..*\.(pushremote|remote)|remote\.pushdefault)$").output
    known = dict(entry.partition("\n")[::2] for entry in os.fsdecode(said).split("\0") if entry)
    branch = os.fsdecode(repository.git.try_command("symbolic-ref", "--quiet", "--short", "HEAD").output).strip()
    remotes = os.fsdecode(repository.git.run_command("remote")).splitlines()
    for key in (f"branch.{branch}.pushremote", "remote.pushdefault", f"branch.{branch}.remote"):
        if known.get(key):
            return known[key]
    if not remotes:
        hint = "name one: git remote add origin URL"
        raise NpuprofError([Finding("NP026", "there is no remote to push to", "", hint)])
    return "origin" if "origin" in remotes else remotes[0]


def push_tags(repository: Repository, remote: str, tags: Sequence[str]) -> Finding | None:
    """Push these tags and nothing else, all or none; return why that failed, None where it did not. The tags stay here anyway."""
    refs = [f"refs/tags/{tag}:refs/tags/{tag}" for tag in tags]
    try:
        _run_git_command(repository, _open_git_commands(repository).push, "--atomic", "--no-follow-tags", "--", remote, *refs)
    except NpuprofError as error:
        told = error.findings[0]
        why = told.why or told.message.removeprefix("git could not answer: ")
        what = f"the tags are made, and {remote} did not take them"
        return Finding("NP026", what, why, f"push them again: {format_push_command(remote, tags)}")
    return None


def format_push_command(remote: str, tags: Sequence[str]) -> str:
    """Return what pushes tags, to type."""
    return f"git push --atomic {remote} {' '.join(tags)}" if len(tags) > 1 else f"git push {remote} {tags[0]}"


def _open_git_commands(repository: Repository) -> git.Git:
    """Return git in the top of the repository, as its user would start it there: its hooks, filters and signer run.

    It discovers the repository itself; GitPython's own search would take a store that looks like a repository for one.
    """
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git

    commands = git.Git(repository.top)
    commands.set_persistent_git_options(c=list_settings())
    commands.update_environment(GIT_TERMINAL_PROMPT="0", GIT_LITERAL_PATHSPECS="1")
    return commands


def _run_git_command(repository: Repository, command: Callable[..., object], *words: str) -> None:
    """Run a command; wait for a moment while another git holds a lock. Raises NpuprofError with git's reason."""
    import time

    import git

    for wait in (*_WAITS, None):
        try:
            with take_environment(build_git_environment(repository.git.top)):
                command(*words)
            return
        except git.GitCommandError as error:
            said = str(error.stderr).strip().removeprefix("stderr:").strip().strip("'")
            said = said or str(error.stdout).strip().removeprefix("stdout:").strip().strip("'")
            if wait is None or not any(mark in said for mark in _LOCKED):
                why = _format_git_output(said)
                raise NpuprofError([build_refusal_finding(said.encode(), repository.folder)._replace(why=why)]) from None
            time.sleep(wait)
        except git.CommandError as error:
            raise NpuprofError([build_refusal_finding(str(error).encode(), repository.folder)]) from None


def _format_git_output(said: str) -> str:
    """Return what else git and its hooks said, on one line."""
    return " ".join(said.split()) if "\n" in said.strip() else ""


def _write_path_list(paths: Sequence[str]) -> AbstractContextManager[str]:
    """Make a temporary file that lists paths, each ended by NUL."""
    return _hold_in_temporary_file(b"".join(os.fsencode(path) + b"\0" for path in paths))


@contextmanager
def _hold_in_temporary_file(content: bytes) -> Iterator[str]:
    """Make a temporary file: a command line does not hold any number of paths, nor any length of message."""
    import tempfile

    handle, name = tempfile.mkstemp(prefix="npuprof-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        yield name
    finally:
        os.unlink(name)
