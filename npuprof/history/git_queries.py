"""Questions to git of several modules: paths in its folder, settings, long lists of paths."""

from __future__ import annotations

import os
from collections.abc import Iterable

from npuprof.store.gitstore.repository import Repository


def find_git_path(repository: Repository, name: str) -> str:
    """Return the path of a file in the git folder."""
    path = os.fsdecode(repository.git.run_command("rev-parse", "--git-path", name).rstrip(b"\n"))
    return os.path.join(repository.top, path)


def read_settings(repository: Repository, pattern: str) -> list[tuple[str, str]]:
    """Return the settings whose names match a pattern, with their values, in git's order."""
    output = os.fsdecode(repository.git.try_command("config", "-z", "--get-regexp", pattern).output)
    # git -z separates name and value by a line end, as values may contain "="
    entries = (entry.partition("\n") for entry in filter(None, output.split("\0")))
    return [(name, value) for name, _, value in entries]


def join_paths(paths: Iterable[str]) -> bytes:
    """Return paths as git reads them with ``-z``: each ends with NUL."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
