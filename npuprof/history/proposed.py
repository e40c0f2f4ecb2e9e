"""The tree of a proposed commit, written by git outside the repository's index and objects."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from npuprof.history.git_queries import find_git_path, join_paths
from npuprof.store.gitstore.objects import Git
from npuprof.store.gitstore.revisions import ProposedRevision, Revision, StoreRepository
from npuprof.system import find_real_folder
from npuprof.system.tree import Tree


def load_last_commit(repository: StoreRepository) -> Revision:
    """Return the store at the last commit; empty if there is none yet."""
    head = repository.git.read_object("HEAD")
    return Revision(repository, head.oid) if head else Revision(repository, "", {})


@contextmanager
def propose_commit(
    repository: StoreRepository, head: str, paths: Sequence[str]
) -> Iterator[ProposedRevision]:
    """Yield the store as a commit after ``head`` with these paths of the work tree has it.

    Filters and line endings are git's: the files are added to a copy of the index of the last
    commit. The repository is not modified. Raises NpuprofError with git's reason.
    """
    with _open_beside(repository, find_git_path(repository, "index")) as scratch:
        scratch.run_command("read-tree", *(("-m", "-i", head) if head else ("--empty",)))
        scratch.run_command(
            "update-index",
            "--add",
            "--remove",
            # a file may have become a folder, or the other way round
            "--replace",
            "-z",
            "--stdin",
            stdin=join_paths(paths),
        )
        yield _write_tree(repository, scratch, staged=False)


@contextmanager
def propose_index(repository: StoreRepository) -> Iterator[ProposedRevision]:
    """Yield the store as the next commit would contain it: the staged content.

    In a hook, what git is about to commit.

    The repository is not modified. Raises NpuprofError with git's reason, as for an index with
    conflicts.
    """
    with _open_beside(repository, _find_index(repository)) as scratch:
        yield _write_tree(repository, scratch, staged=True)


def _write_tree(repository: StoreRepository, scratch: Git, staged: bool) -> ProposedRevision:
    tree = scratch.run_command("write-tree").strip().decode()
    return ProposedRevision(repository.with_git(scratch), tree, staged)


@contextmanager
def _open_beside(repository: StoreRepository, index: str) -> Iterator[Git]:
    """Yield git for a repository, with a copy of an index and a separate object folder."""
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
        tree = Tree(folder)
        tree.make_folder("objects")
        with suppress(FileNotFoundError):
            # git's cached file times avoid rehashing; they are valid relative to the index's own
            # time.
            tree.copy_in(index, "index")
        scratch = repository.git.beside(
            {
                "GIT_INDEX_FILE": os.path.join(folder, "index"),
                "GIT_OBJECT_DIRECTORY": os.path.join(folder, "objects"),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quote_alternate(
                    find_git_path(repository, "objects")
                ),
            },
        )
        with closing(scratch):
            yield scratch


def _find_index(repository: StoreRepository) -> str:
    """Return the index of a repository.

    It is the one that git passes to a hook, if that belongs to this repository.
    """
    own = find_git_path(repository, "index")
    named = os.path.abspath(os.environ.get("GIT_INDEX_FILE") or own)
    return (
        named
        # git commit passes a temporary index next to the real one
        if find_real_folder(named) == find_real_folder(own)
        else own
    )


def _quote_alternate(path: str) -> str:
    """Return a path quoted for git's list of alternates, as it may contain the separator."""
    shown = path.replace("\\", "\\\\").replace('"', '\\"')
    more = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "")
    return f'"{shown}"' + (os.pathsep + more if more else "")
