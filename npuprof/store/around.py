"""The repository around a store, as far as files tell of it: git itself is only asked where they do not."""

from __future__ import annotations

import os

from npuprof.report.output import UnfitFileError, read_plain_file
from npuprof.system.tree import find_repository_top


def has_release_tags(root: str) -> bool:
    """Return whether a store can have released versions: whether a repository around it has tags.

    git itself is only asked where this says so. Where a repository is kept in an unusual way, the answer is yes.
    """
    top = find_repository_top(os.path.realpath(root))
    if not top:
        return False
    git = os.path.join(top, ".git")
    try:
        if os.path.isfile(git) or os.path.isdir(os.path.join(git, "reftable")) or os.listdir(os.path.join(git, "refs", "tags")):
            return True
        return b" refs/tags/" in read_plain_file(os.path.join(git, "packed-refs"))
    except UnfitFileError:
        return True
    except OSError:
        return False


def has_sparse_checkout(root: str) -> bool:
    """Return whether git may keep files of a store out of the work tree: only then it is asked."""
    top = find_repository_top(os.path.realpath(root))
    git = os.path.join(top, ".git")
    return bool(top) and (os.path.isfile(git) or os.path.exists(os.path.join(git, "info", "sparse-checkout")))
