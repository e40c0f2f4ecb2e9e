"""Where the text of a profile comes from: commit and state of the repository around it, or the source it was fetched from."""

from __future__ import annotations

import os
from typing import Any

from npuprof.document.profile import Profile
from npuprof.document.secrets import hide_credentials
from npuprof.model import NpuprofError
from npuprof.store import Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.gitstore.repository import Repository


def find_place(member: Profile) -> dict[str, Any]:
    """Return what is known of where a profile was read: ``commit``, ``dirty``, ``repository`` and ``source``, as far as there is any."""
    home = member.home
    if member.document.revision:
        return {"commit": member.document.revision, "dirty": False, **_describe_source(home)}
    if isinstance(home, Folder) and home.label == "builtin:":
        return {"commit": None, "dirty": False, "source": "builtin:"}
    if not isinstance(home, Folder) or not home.in_work_tree:
        return {"commit": getattr(home, "commit", None), "dirty": False, **_describe_source(home)}
    repository = _find_repository(home)
    if repository is None or member.key != member.name:
        return {"commit": None, "dirty": None}
    path = os.path.relpath(os.path.realpath(home.profile_path(member.name)), repository.top)
    head, kept = repository.git.read_objects(["HEAD", f"HEAD:{path}"])
    if head is None:
        return {"commit": None, "dirty": True, "repository": repository.top}
    same = kept is not None and _read_plainly(kept.content) == _read_plainly(member.document.text.encode())
    return {"commit": head.oid, "dirty": not same, "repository": repository.top}


def _read_plainly(text: bytes) -> bytes:
    """Return a text without what a checkout may change of it: a mark at its beginning, and the ends of its lines."""
    return text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


def _find_repository(home: Folder) -> Repository | None:
    from npuprof.store.gitstore import revisions
    from npuprof.system.tree import find_repository_top

    if not find_repository_top(os.path.realpath(home.root)) and "GIT_DIR" not in os.environ:
        return None
    try:
        return revisions.find_repository(home)
    except NpuprofError:  # git is missing, or refuses the folder: what runs does not depend on it
        return None


def _describe_source(home: object) -> dict[str, Any]:
    locked = getattr(home, "locked", None)
    if locked is None:
        return {}
    found = {
        "name": locked.name,
        "url": hide_credentials(locked.url),
        "version": getattr(home, "version", "") or None,
        "commit": getattr(home, "commit", None),
    }
    return {"source": found}
