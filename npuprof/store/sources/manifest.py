"""The list of a copy's files with their SHA-256: of a vendored source, or of the vendored releases of a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npuprof.resolve.digests import load_sha256
from npuprof.system import lazy_pattern
from npuprof.system.tree import is_plain_name

#: The file with the list: a path and a SHA-256 per line. The lock contains its digest.
MANIFEST = ".digests"
#: The file with the commit of a copied source.
MARK = ".commit"

_LINES = lazy_pattern(r"(?:[^\0-\x1f\x7f\ufffd]+ [0-9a-f]{64}\n)*")


def parse_manifest(raw: bytes) -> dict[str, set[str]]:
    """Return the digests of each listed file by path; while a copy is replaced, those of the old and the new one."""
    listed: dict[str, set[str]] = {}
    for line in raw.decode(errors="surrogateescape").splitlines():
        path, _, digest = line.rpartition(" ")
        if is_plain_name(path):
            listed.setdefault(path, set()).add(digest)
    return listed


def is_manifest(raw: bytes) -> bool:
    """Return whether a text is a complete list as npuprof writes it."""
    return _LINES.fullmatch(raw.decode(errors="replace")) is not None


def format_manifest(listed: Mapping[str, Iterable[str]]) -> bytes:
    """Return the list of files with these digests, sorted."""
    return "".join(sorted(f"{path} {digest}\n" for path, digests in listed.items() for digest in digests)).encode(errors="surrogateescape")


def build_manifest(files: Mapping[str, bytes]) -> bytes:
    """Return the list of the files of a copy."""
    return format_manifest({path: [load_sha256()(text).hexdigest()] for path, text in files.items()})


def digest_manifest(raw: bytes) -> str:
    """Return the digest of a list, as in a lock."""
    return f"sha256:{load_sha256()(raw).hexdigest()}"


def find_equal_text(raw: bytes | None, digests: Iterable[str]) -> bytes | None:
    """Return a text with one of the digests, as it is or with its line endings restored; None if it differs."""
    known = {*digests}
    for text in () if raw is None else (raw, raw.replace(b"\r\n", b"\n")):
        if load_sha256()(text).hexdigest() in known:
            return text
    return None
