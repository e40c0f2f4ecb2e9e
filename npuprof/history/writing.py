"""What npuprof writes to a repository: commits of profile files, and annotated tags. Nothing is ever moved or rewritten."""

from __future__ import annotations

import os
from typing import Any

from npuprof.errors import NpuprofError
from npuprof.history.git import environment, refusal
from npuprof.model import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.history.repository import Repository


def status(repository: Repository) -> tuple[list[str], list[str]]:
    """Return the paths (from the top) of the store's TOML files that differ from the last commit, and of those the untracked."""
    listed = repository.git.run("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--", ".")
    changed, untracked = [], []
    for record in os.fsdecode(listed).split("\0"):
        path = record[3:]
        if path.endswith(".toml") and path.startswith(repository.prefix):
            changed.append(path)
            if record.startswith("??"):
                untracked.append(path)
    return sorted(changed), sorted(untracked)


def commit(repository: Repository, paths: Sequence[str], untracked: Sequence[str], message: str) -> str:
    """Commit these paths as they are in the work tree, and nothing else, staged or not; return the new commit's id.

    Raises NpuprofError with git's reason (a hook, no identity, a merge under way); nothing is staged then.
    """
    git = _git(repository)
    with _listed(paths) as every, _listed(untracked) as new:
        if untracked:
            _do(repository, git.add, "--intent-to-add", f"--pathspec-from-file={new}", "--pathspec-file-nul")
        try:
            words = ("--only", "--quiet", "--cleanup=verbatim", f"--message={message}")
            _do(repository, git.commit, *words, f"--pathspec-from-file={every}", "--pathspec-file-nul")
        except NpuprofError:
            if untracked:
                git.rm("--cached", "--quiet", "--force", f"--pathspec-from-file={new}", "--pathspec-file-nul")
            raise
    return repository.commit("HEAD")


def tag(repository: Repository, name: str, target: str, message: str) -> None:
    """Make an annotated tag. Raises NpuprofError where it exists or git refuses the name."""
    if repository.git.read([f"refs/tags/{name}"])[0] is not None:
        what = f"the tag {name} exists already"
        raise NpuprofError([Finding("NP026", "error", what, "A released version never changes.", "release the next number")])
    _do(repository, _git(repository).tag, "--annotate", "--cleanup=verbatim", f"--message={message}", "--", name, target)
    repository.forget()


def _git(repository: Repository) -> Any:
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git

    opened = git.Repo(repository.folder, search_parent_directories=True)
    ours = environment(repository.folder)
    opened.git.update_environment(**{**ours, "GIT_LITERAL_PATHSPECS": "1"})
    return opened.git


def _do(repository: Repository, command: Any, *words: str) -> None:
    import git

    try:
        command(*words)
    except git.GitCommandError as error:
        said = str(error.stderr).strip().removeprefix("stderr:").strip().strip("'")
        said = said or str(error.stdout).strip().removeprefix("stdout:").strip().strip("'")
        raise NpuprofError([refusal(said.encode(), repository.folder)._replace(why=_rest(said))]) from None


def _rest(said: str) -> str:
    """Return what else git and its hooks said, on one line."""
    return " ".join(said.split()) if "\n" in said.strip() else ""


class _listed:  # noqa: N801 - a context manager
    """A temporary file that lists paths, each ended by NUL."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def __enter__(self) -> str:
        import tempfile

        handle, self._name = tempfile.mkstemp(prefix="npuprof-")
        with os.fdopen(handle, "wb") as file:
            file.write(b"".join(os.fsencode(path) + b"\0" for path in self._paths))
        return self._name

    def __exit__(self, *_: object) -> None:
        os.unlink(self._name)
