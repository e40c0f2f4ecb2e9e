"""Stores of profiles: the names of presets, sources and files.

``folder`` reads a store's files, ``gitstore`` its revisions.
"""

from __future__ import annotations

from functools import lru_cache

#: The files next to the store's folder: the project file, which also lists presets outside the
#: store, and the lock of its sources.
FILE, LOCK_FILE = "npuprof.toml", "npuprof.lock"

#: The folder of vendored releases in a store; no preset can be in it, because of the leading dot.
RELEASED = ".released"

#: Characters besides letters and digits in a source's name; ``/`` precedes a source of a source.
_JOINTS = {ord(char): None for char in "-_/"}

#: The store that npuprof ships; also the prefix of its presets.
BUILTIN = "builtin:"

_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def is_source_reference(text: str) -> bool:
    """Return whether a spec or reference names a preset of a source: ``team:base/training@2``."""
    source, colon, _ = strip_revision(text).partition(":")
    return (
        bool(colon)
        # the shipped store is no source: no lock and no mirror
        and source != "builtin"
        and source.isascii()
        and source.translate(_JOINTS).isalnum()
    )


def read_revision(reference: str) -> str:
    """Return the revision after the @ of a reference, without its quotes.

    An empty string if there is none.
    """
    return reference.partition("@")[2].strip("\"'")


def strip_revision(reference: str) -> str:
    """Return a reference without its revision: ``NAME`` of ``NAME@1.2``."""
    return reference.partition("@")[0]


@lru_cache(1 << 15)  # asked of a name wherever it comes from
def is_profile_name(name: str) -> bool:
    """Return whether a text is a valid profile name."""
    return all(
        part and part[0] not in ".-" and _ALLOWED.issuperset(part) for part in name.split("/")
    ) and not name.endswith(".toml")
