"""The file that an index of history is kept in, in the user's cache: sealed, the user's own, and of this repository as it is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from npuprof.catalog import load_built_part
from npuprof.model import NpuprofError, __version__
from npuprof.report.locks import lock_folders
from npuprof.report.output import read_plain_file
from npuprof.resolve.digests import FORM, load_sha256
from npuprof.runs.indexed import Digests, Index, State
from npuprof.store.around import is_own_folder
from npuprof.store.gitstore.repository import Repository
from npuprof.store.sources.mirror import find_cache_folder
from npuprof.system.tree import make_tree

_SCHEMA = "npuprof.index/3"  # 1 resolved what a pinned parent extends at the wrong commit, 2 was kept with presets that git lacked
_SEAL = b"# npuprof sha256:"
#: No index is longer, in bytes.
_LARGEST = 512 * 1024 * 1024


def find_path(repository: Repository) -> str:
    """Return where the index of a store is kept."""
    mark = load_sha256()(os.fsencode(f"{os.path.realpath(repository.top)}\n{repository.prefix}")).hexdigest()[:16]
    return os.path.join(find_cache_folder(), "history", f"{os.path.basename(repository.top) or 'root'}-{mark}.index")


def describe(repository: Repository) -> dict[str, Any]:
    """Return what an index has to be of to be right: this npuprof, its catalogue, this repository with these tags."""
    tags = repository.git.run_command("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags/")
    catalogue = repr(load_built_part("options")).encode()
    return {
        "schema": _SCHEMA,
        "npuprof": __version__,
        "form": FORM,
        "catalogue": str(load_sha256()(catalogue).hexdigest()),
        "store": repository.prefix,
        "tags": str(load_sha256()(tags).hexdigest()),
    }


def _is_ours(path: str) -> bool:
    """Return whether what is in the cache is this user's own: anybody can write an index that fits."""
    folder = os.path.dirname(path)
    return all(is_own_folder(one) for one in (find_cache_folder(), folder) if os.path.lexists(one)) and not os.path.islink(path)


def read_index(path: str, head: dict[str, Any], repository: Repository) -> Index | None:
    """Return the index that is kept; None where there is none that is whole, ours, and of this repository as it is."""
    try:
        if not _is_ours(path) or os.stat(path).st_uid != os.geteuid():
            return None
        raw = read_plain_file(path, _LARGEST)
    except (OSError, ValueError):
        return None
    body, seal, digest = raw.rpartition(_SEAL)
    if not seal or load_sha256()(body).hexdigest().encode() != digest.strip():
        return None
    try:
        lines = body.decode().splitlines()
        kept = json.loads(lines[0])
        index = Index(repository)
        index.moving = kept.pop("moving")
        index.absent = set(kept.pop("absent"))
        if kept.pop("tags") != head["tags"] and index.moving:
            return None
        if kept != {name: value for name, value in head.items() if name != "tags"}:
            return None
        for line in lines[1:]:
            key, commits, changed = json.loads(line)
            index.states.append(State(key, commits, {name: _read_digests(row) for name, row in changed.items()}))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return None
    return index


def _read_digests(row: Any) -> Digests | None:
    return None if row is None else Digests(str(row[0]), tuple(map(str, row[1:])))


def keep_index(path: str, head: dict[str, Any], index: Index) -> None:
    """Keep an index for the next time; where that cannot be, or something of it is missing, it is built again then."""
    if index.untold or index.lacking or not _is_ours(path):
        return
    body = b"".join(_list_lines(head, index))
    folder = os.path.dirname(path)
    with suppress(OSError, NpuprofError):
        tree = make_tree(folder, 0o700)
        if not _is_ours(path):
            return
        with lock_folders([folder]):  # which takes away what killed ones have left there
            tree.write_file(os.path.basename(path), body + _SEAL + load_sha256()(body).hexdigest().encode() + b"\n", 0o600)


def _list_lines(head: dict[str, Any], index: Index) -> Iterable[bytes]:
    yield json.dumps({**head, "moving": index.moving, "absent": sorted(index.absent)}).encode() + b"\n"
    for state in index.states:
        changed = {name: [one.preset, *one.resolved] if one is not None else None for name, one in state.changed.items()}
        yield json.dumps([state.key, state.commits, changed], ensure_ascii=True).encode() + b"\n"
