"""The owner of a repository's folder, as git checks it before it reads the folder."""

from __future__ import annotations

import os


def is_own_folder(folder: str) -> bool:
    """Return whether git would accept the owner of a repository's folder.

    It belongs to this user, or is in safe.directory.
    """
    # git's variable for its own tests: with it, git goes by safe.directory alone, too
    if os.environ.get("GIT_TEST_ASSUME_DIFFERENT_OWNER", "0") in ("", "0") and _is_owned(folder):
        return True
    from npuprof.system import processes

    arguments = ["config", "--type=path", "-z", "--get-all", "safe.directory"]
    # a hook's GIT_DIR would select a repository, whose settings would be read
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GIT_DIR")}
    environ |= processes.READ.variables
    try:
        # outside any repository, whose own settings do not count
        output, _ = processes.finish(processes.start_git(arguments, os.sep, environ))
    except OSError:
        return False
    is_safe = False
    for pattern in os.fsdecode(output).split("\0")[:-1]:
        if not pattern:  # resets the list
            is_safe = False
        elif _matches(pattern, os.path.realpath(folder)):
            is_safe = True
    return is_safe


def _matches(pattern: str, folder: str) -> bool:
    """Return whether a value of safe.directory includes a folder: ``*``, ``ABOVE/*``, or itself."""
    if pattern == "*" or os.path.realpath(pattern) == folder:
        return True
    above = os.path.realpath(pattern.removesuffix("/*"))
    return pattern.endswith("/*") and folder.startswith(above + os.sep)


def _is_owned(folder: str) -> bool:
    user = os.geteuid()
    owner = os.lstat(folder).st_uid
    # git accepts the clones of the user who called sudo, too
    return owner == user or (user == 0 and str(owner) == os.environ.get("SUDO_UID"))
