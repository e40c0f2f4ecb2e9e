"""References with an @ that the presets of a source make: what those to presets of their own store mean is locked as well."""

from __future__ import annotations

from contextlib import suppress

from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import NpuprofError
from npuprof.store.revision import Revision


def is_own_reference(reference: str) -> bool:
    """Return whether a reference in ``extends`` names a preset of the same store at a version or a revision."""
    name, at, _ = reference.partition("@")
    return bool(at) and ":" not in name


def is_own_name(reference: str) -> bool:
    """Return whether a reference in ``extends`` names a preset of the same store at the same commit."""
    return "@" not in reference and ":" not in reference


def list_versioned_references(there: Revision) -> set[str]:
    """Return the references with an @ that the presets of a store make, as far as they can be read. Raises NpuprofError."""
    names = there.names()
    there.load_texts(names)
    found: set[str] = set()
    for name in names:
        with suppress(NpuprofError):  # told where the preset is read
            raw = there.read_profile_text(name)
            if b"@" in raw or b"\\u" in raw or b"\\x" in raw.lower():  # an @ may be escaped
                found.update(reference for reference in Profile(parse_document(name, name, raw)).extends if "@" in reference)
    return found
