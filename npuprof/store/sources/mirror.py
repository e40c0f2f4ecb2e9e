"""The local data of a source: its mirror, and cached preset texts by commit."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cached_property

from npuprof.model import Finding, NpuprofError, build_error
from npuprof.resolve.digests import digest_bytes
from npuprof.store.problems import SYNC
from npuprof.store.sources.failures import build_foreign_error
from npuprof.store.urls import mark_texts, normalize_url
from npuprof.system import find_user_folder
from npuprof.system.files import read_plain_file
from npuprof.system.folder_owner import is_own_folder
from npuprof.system.tree import make_tree

_SEAL = b"\n# npuprof sha256:"

#: The prefix of refs for locked commits in a mirror.
LOCKED = "refs/npuprof/locked/"

#: Hints that help any user; all others are commands for the repository itself.
_GENERAL_HINTS = ("released are", "did you mean")


def find_cache_folder() -> str:
    """Return npuprof's cache folder, whether or not it exists."""
    return find_user_folder("cache")


def name_mirror(url: str) -> str:
    """Return the mirror folder of a URL below npuprof's cache folder: the same on every machine."""
    plain = normalize_url(url)
    tail = re.split(r"[/:]", plain.rstrip("/"))[-1].removesuffix(".git")
    # only for people: the checksum of the whole URL makes the name unique
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", tail).strip("-")[:40] or "source"
    return os.path.join("sources", f"{readable}-{mark_texts(plain)}.git")


def find_mirror_folder(url: str) -> str:
    """Return the mirror folder of a URL in the user's cache, whether or not it exists."""
    return os.path.join(find_cache_folder(), name_mirror(url))


def require_own_cache() -> None:
    """Raise NpuprofError (NP053) if the folder of all mirrors, or its parent, has another owner."""
    require_own_folder(find_cache_folder())
    require_own_folder(os.path.join(find_cache_folder(), "sources"))


def require_own_folder(folder: str) -> None:
    """Raise NpuprofError (NP053) if a cache folder has another owner."""
    if not is_own_folder(os.path.realpath(folder)):
        raise build_foreign_error(folder)


def build_unfetched_finding(name: str, what: str) -> Finding:
    """Return the finding for presets of a source that is not on this machine."""
    why = "Nothing but source add, sync and update touches the network."
    hint = f"fetch the locked commits: {SYNC}"
    return Finding("NP043", f"the source {name!r} cannot be read: {what}", why, hint)


def build_later_error(source: str, reference: str, version: str, hint: str = "") -> NpuprofError:
    """Return the error for a preset version outside the history of a source's locked commit."""
    what = (
        f"{source}:{reference} is not a version in the history of the locked commit: {version} "
        "was released later, or elsewhere"
    )
    hint = hint or f"lock a newer one: npuprof source update {source.partition('/')[0]}"
    return build_error("NP047", what, "A source is seen as it was at its locked commit.", hint)


class TextCache:
    """Cached texts of one store at one commit, which need no git.

    The cache may be deleted at any time.
    """

    def __init__(self, url: str, path: str, commit: str) -> None:
        self._folder = os.path.join(
            find_cache_folder(), "presets", f"{mark_texts(normalize_url(url), path)}-{commit}"
        )

    def read_text(self, name: str) -> bytes | None:
        """Return a cached text, None if it is missing or incomplete."""
        try:
            raw = read_plain_file(os.path.join(self._folder, name))
        except (OSError, ValueError):
            return None
        text, seal, digest = raw.rpartition(_SEAL)
        # a killed process or a full disk may leave a part of a text
        return text if self._is_ours and seal and _seal_text(name, text) == digest else None

    @cached_property
    def _is_ours(self) -> bool:
        """Whether the folder's texts are the user's own, as anybody can compute their checksums."""
        return all(
            map(is_own_folder, (find_cache_folder(), os.path.dirname(self._folder), self._folder))
        )

    def write_text_once(self, name: str, text: bytes) -> None:
        """Cache a text; if that fails, it is read from the mirror again."""
        with suppress(OSError, NpuprofError):
            tree = make_tree(self._folder, 0o700)
            tree.make_folder(os.path.dirname(name), 0o700)
            tree.write_file(name, text + _SEAL + _seal_text(name, text))


def _seal_text(name: str, text: bytes) -> bytes:
    """Return the digest of a text and its name.

    On case-insensitive file systems, two presets may share a file.
    """
    return digest_bytes(name.encode(errors="surrogateescape") + b"\n" + text).encode()


def name_source_in_error(error: NpuprofError, source: str) -> NpuprofError:
    """Return an error about a preset version as one about a source's preset."""
    newer = f"omit the @; npuprof source update {source.partition('/')[0]} locks the newer version"
    findings = []
    for finding in error.findings:
        if finding.code == "NP011":
            # other hints are commands in the work tree of the source, which the user does not have
            hint = finding.hint if finding.hint.startswith(_GENERAL_HINTS) else newer
            finding = finding._replace(message=f"{source}: {finding.message}", hint=hint)
        findings.append(finding)
    return NpuprofError(findings)
