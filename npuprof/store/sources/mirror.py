"""What of a source is on this machine: its mirror, and the texts of presets that were read from it before, by commit."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from npuprof.model import Finding, NpuprofError, Origin
from npuprof.report.output import read_plain_file
from npuprof.resolve.digests import load_sha256
from npuprof.store.around import is_own_folder
from npuprof.store.problems import SYNC
from npuprof.store.sources.urls import mark_texts, normalize_url
from npuprof.system import find_user_folder
from npuprof.system.tree import make_tree

_SEAL = b"\n# npuprof sha256:"

#: Where a mirror keeps the commits that locks name.
LOCKED = "refs/npuprof/locked/"

#: Hints that are of use to anybody; all others are commands for the repository itself.
_KEPT = ("released are", "did you mean")


def find_cache_folder() -> str:
    """Return npuprof's folder in the user's cache, whether or not it is there."""
    return find_user_folder("cache")


def name_mirror(url: str) -> str:
    """Return the folder of an address's mirror below npuprof's in a cache: the same one on every machine."""
    plain = normalize_url(url)
    tail = re.split(r"[/:]", plain.rstrip("/"))[-1].removesuffix(".git")
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", tail).strip("-")[:40] or "source"
    return os.path.join("sources", f"{readable}-{mark_texts(plain)}.git")


def find_mirror_folder(url: str) -> str:
    """Return the folder of an address's mirror in the user's cache, whether or not it is there."""
    return os.path.join(find_cache_folder(), name_mirror(url))


def require_own_cache() -> None:
    """Raise NpuprofError (NP053) where the folder of all mirrors, or the one above, belongs to somebody else."""
    require_own_folder(find_cache_folder())
    require_own_folder(os.path.join(find_cache_folder(), "sources"))


def require_own_folder(folder: str) -> None:
    """Raise NpuprofError (NP053) where a folder of the cache belongs to somebody else."""
    from npuprof.store.sources.failures import build_foreign_error

    if not is_own_folder(os.path.realpath(folder)):
        raise build_foreign_error(folder)


def build_unfetched_finding(name: str, what: str) -> Finding:
    """Return that presets of a source cannot be read here, as they are not on this machine."""
    why = "Nothing but source add, sync and update touches the network."
    return Finding("NP043", f"the source {name!r} cannot be read: {what}", why, f"fetch what the lock names: {SYNC}")


def build_later_finding(source: str, reference: str, version: str, asked: Origin | None = None) -> Finding:
    """Return that a version of a preset is not in the history of the commit that a source is at."""
    what = f"{source}:{reference} is no version that the locked commit has: {version} was released later, or elsewhere"
    why = "A source is seen as it was at its locked commit."
    return Finding("NP047", what, why, f"lock a newer one: npuprof source update {source.partition('/')[0]}", asked)


class TextCache:
    """Texts of one store at one commit, kept in the user's cache: what is there needs no git. It may be lost at any time."""

    def __init__(self, url: str, path: str, commit: str) -> None:
        self._folder = os.path.join(find_cache_folder(), "presets", f"{mark_texts(normalize_url(url), path)}-{commit}")
        self._is_ours: bool | None = None

    def read_text(self, name: str) -> bytes | None:
        """Return a text that was kept, None where there is none or it is not whole."""
        try:
            raw = read_plain_file(os.path.join(self._folder, name))
        except (OSError, ValueError):
            return None
        if self._is_ours is None:
            self._is_ours = _is_owned(self._folder)
        if not self._is_ours:
            return None
        text, seal, digest = raw.rpartition(_SEAL)
        return text if seal and _seal_text(name, text) == digest else None

    def keep_text(self, name: str, text: bytes) -> None:
        """Keep a text; where that cannot be, it is read from the mirror again."""
        with suppress(OSError, NpuprofError):
            tree = make_tree(self._folder, 0o700)
            tree.make_folder(os.path.dirname(name), 0o700)
            tree.write_file(name, text + _SEAL + _seal_text(name, text))


def _is_owned(folder: str) -> bool:
    """Return whether texts in a folder are the user's own: anybody can seal one."""
    return all(map(is_own_folder, (find_cache_folder(), os.path.dirname(folder), folder)))


def _seal_text(name: str, text: bytes) -> bytes:
    """Return the digest of a text and its name: where file names have no case, two presets may meet in one file."""
    return str(load_sha256()(name.encode(errors="surrogateescape") + b"\n" + text).hexdigest()).encode()


def name_source_in_error(error: NpuprofError, source: str) -> NpuprofError:
    """Return an error about a version of a preset as one about that of a source's preset."""
    newer = f"leave the @ off; npuprof source update {source.partition('/')[0]} takes what is newer there"
    return NpuprofError([
        finding._replace(message=f"{source}: {finding.message}", hint=finding.hint if finding.hint.startswith(_KEPT) else newer)
        if finding.code == "NP011"
        else finding
        for finding in error.findings
    ])  # fmt: skip
