"""The owner of a repository's folder, as git checks it before it reads the folder."""

from __future__ import annotations

import os


def is_own_folder(folder: str) -> bool:
    """Return whether a repository's folder belongs to this user, or is in safe.directory, as git
    would check.
    """
    if os.environ.get("GIT_TEST_ASSUME_DIFFERENT_OWNER", "0") in ("", "0") and _is_owned(folder):
        return True
    from npuprof.system import processes

    # (outside any repository: its own settings do not count)
    words = ["config", "--type=path", "-z", "--get-all", "safe.directory"]
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GIT_DIR")}
    try:
        output = processes.finish(
            processes.start_git(words, os.sep, environ | {**processes.READ.variables})
        )[0]
    except OSError:
        return False
    safe = False
    for place in os.fsdecode(output).split("\0")[:-1]:
        beneath = place.endswith("/*") and os.path.realpath(folder).startswith(
            os.path.realpath(place[:-2]) + os.sep
        )
        safe = bool(place) and (
            safe or place == "*" or beneath or os.path.realpath(place) == os.path.realpath(folder)
        )
    return safe


def _is_owned(folder: str) -> bool:
    find_user = getattr(os, "geteuid", None)
    if find_user is None:
        return True  # the system has no such ownership
    user, owner = find_user(), os.lstat(folder).st_uid
    return owner == user or (user == 0 and str(owner) == os.environ.get("SUDO_UID"))
