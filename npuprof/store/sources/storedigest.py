"""The digest of a source's store: computed, cached with its texts, and compared with the lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from npuprof.model import Finding, NpuprofError
from npuprof.resolve.digests import digest_bytes
from npuprof.store.gitstore.revisions import Revision, StoreRepository
from npuprof.store.sources.lock import LockedSource
from npuprof.store.sources.manifest import digest_manifest
from npuprof.store.sources.mirror import TextCache

#: The name of the cached digest, next to the texts of a commit: no preset can have it.
_KEPT = ".digest"


def compute_kept_digest(repository: StoreRepository, url: str, path: str, commit: str) -> str:
    """Return the digest of a store at a commit, and cache it for readers without git.

    An empty string if there is no store. Raises NpuprofError.
    """
    revision = repository.load_revision(commit)
    names = revision.names()
    revision.load_texts(names)
    digest = digest_texts({name: _read_text(revision, name) for name in names})
    TextCache(url, path, commit).write_text_once(_KEPT, digest.encode())
    return digest


def load_store_digest(locked: LockedSource, open_revision: Callable[[], Revision]) -> str:
    """Return the digest of a source's locked store, opening the store unless it is cached.

    Raises NpuprofError.
    """
    digest = TextCache(locked.url, locked.path, locked.commit).read_text(_KEPT)
    if digest is not None:
        return digest.decode()
    repository = open_revision().repository
    return compute_kept_digest(repository, locked.url, locked.path, locked.commit)


def digest_texts(texts: Mapping[str, bytes]) -> str:
    """Return the digest of a store: SHA-256 of the names and texts of its presets, links followed.

    Empty without presets.
    """
    return _digest_files({name: digest_bytes(text) for name, text in texts.items()})


def digest_listed(listed: Mapping[str, Iterable[str]], folder: str) -> str:
    """Return the digest of the store in a vendored folder, by the list of the copy.

    No files are read.
    """
    files = {}
    for path, digests in listed.items():
        name = path.removeprefix(folder).removesuffix(".toml")
        if path.startswith(folder) and path.endswith(".toml") and not name.startswith("."):
            # a complete list has one digest for each file
            files[name] = next(iter(digests))
    return _digest_files(files)


def build_digest_finding(name: str, locked: LockedSource) -> Finding:
    """Return the finding for a source's store that differs from the lock."""
    above = name.rpartition("/")[0]
    lock = f"the lock of {above}" if above else "npuprof.lock"
    what = (
        f"the store of the source {name!r} at {locked.commit[:7]} does not match {lock}: its "
        "digest differs"
    )
    hint = f"restore the lock, or lock it again: npuprof source update {name.partition('/')[0]}"
    return Finding("NP049", what, "The lock was edited by hand, or merged wrongly.", hint)


def _digest_files(files: Mapping[str, str]) -> str:
    """Return the digest of presets, given the SHA-256 of each text by name."""
    lines = "".join(f"{name}.toml {files[name]}\n" for name in sorted(files))
    return digest_manifest(lines.encode(errors="surrogateescape")) if lines else ""


def _read_text(revision: Revision, name: str) -> bytes:
    try:
        return revision.read_profile_text(name)
    except NpuprofError:
        return b""  # a dangling link: reported when the preset is read
