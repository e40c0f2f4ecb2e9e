"""The checkout of a job: often only the last commit, while a comparison needs the merge base."""

from __future__ import annotations

import re

from npuprof.model import build_error
from npuprof.store.gitstore.objects import Git, find_first_error, require_no_links_out
from npuprof.store.gitstore.repository import Repository, shorten_commit
from npuprof.store.sources.transport import UPLOAD, build_program_variables
from npuprof.system import decode_safely
from npuprof.system.processes import NETWORK

_PATIENCE = 60  # seconds
#: Fetching must work as for the job's checkout, possibly over http. git aborts slow transfers.
_FETCHING = {
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:file",
    "GIT_HTTP_LOW_SPEED_LIMIT": "1",
    "GIT_HTTP_LOW_SPEED_TIME": f"{_PATIENCE}",
}
_FLAGS = (
    "--progress",
    "--tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    UPLOAD,
)


def complete_checkout(folder: str, base: str, head: str, hint: str) -> None:
    """Fetch the commits that a comparison needs.

    Raises NpuprofError (NP061) with ``hint`` if that fails.
    """
    if _has_both(folder, base, head):
        return
    shallow = Repository(folder).is_shallow()
    complaint = _fetch_rest(folder, base, head, shallow)
    if _has_both(folder, base, head):
        return
    missing = [_shorten(name) for name in (base, head) if not Repository(folder).has_commit(name)]
    lacks = " and ".join(missing) or f"a common ancestor of {_shorten(base)} and {_shorten(head)}"
    kind = "the checkout is shallow" if shallow else "the checkout does not do"
    why = (
        f"The rest could not be fetched: {complaint}."
        if complaint
        else "A comparison begins at the commit that the branch left."
    )
    raise build_error("NP061", f"{kind}: it lacks {lacks}", why, hint)


def _has_both(folder: str, base: str, head: str) -> bool:
    """Return whether both commits and their merge base exist.

    Opened anew: an open git does not see a fetch.
    """
    repository = Repository(folder)
    if not (repository.has_commit(base) and repository.has_commit(head)):
        return False
    return repository.git.try_command("merge-base", base, head).code == 0


def _fetch_rest(folder: str, base: str, head: str, shallow: bool) -> str:
    """Fetch from the checkout's remote; return git's error, empty on success."""
    require_no_links_out(Git(folder).top)
    git = Git(
        folder, {**build_program_variables(Git(folder), _PATIENCE), **_FETCHING}, profile=NETWORK
    )
    deeper = ["--unshallow"] if shallow else []
    complaint = ""
    commits = [] if base.startswith("refs/") else [base, head]
    for requested in (commits, []):  # all refs: some servers do not serve commits by id
        result = git.try_command("fetch", *_FLAGS, *deeper, "--", "origin", *requested)
        if not result.code:
            if _has_both(folder, base, head):
                return ""
            deeper = []  # the checkout is complete now: git rejects the flag
        complaint = complaint or find_first_error(decode_safely(result.complaint))
    # a job's remote may contain its token
    return re.sub(r"://[^/@\s]*@", "://", complaint.rstrip("."))


def _shorten(name: str) -> str:
    """Return a commit's id shortened for display; branch names unchanged."""
    return shorten_commit(name) if re.fullmatch(r"[0-9a-f]{40,64}", name) else name
