"""Repositories that many tests begin with: built once a process, then copied.

What is built may hold the address of a repository. So that the address is the same in every copy,
it leads through a link to the folder of the test that runs.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
_RETURNED: dict[str, Any] = {}


@cache
def find_folder() -> Path:
    """Return the folder of this process's templates; it goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="npuprof-templates-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not where a test forked
        shutil.rmtree(folder, ignore_errors=True)


def link_to(folder: Path) -> Path:
    """Return a path that is the same for every test, and leads to the folder of this one."""
    link = find_folder() / "here"
    link.unlink(missing_ok=True)
    link.symlink_to(folder)
    return link


def _copy_tree(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, copy_function=_replace_file)


def _replace_file(source: str, target: str) -> None:
    """Copy a file; git's objects are read-only, so one that exists cannot be overwritten."""
    Path(target).unlink(missing_ok=True)
    shutil.copy2(source, target)


def copy_empty_repository(target: Path, *flags: str) -> None:
    """Make what ``git init`` makes."""
    kept = find_folder() / " ".join(["init", *flags])
    if not kept.exists():
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(
            ["git", "init", "-q", "-b", "main", *flags, str(kept)], check=True, env=environ
        )
    _copy_tree(kept, target)


def copy_built(name: str, target: Path, build: Callable[[Path], T]) -> T:
    """Have in a folder what ``build`` makes in an empty one, which it is given.

    Return what it returned.

    It is called once in a process. The link leads to its folder meanwhile, and to ``target``
    afterwards.
    """
    kept = find_folder() / name
    if name not in _RETURNED:
        kept.mkdir()
        link_to(kept)
        _RETURNED[name] = build(kept)
    _copy_tree(kept, target)
    link_to(target)
    returned: T = _RETURNED[name]
    return returned
