"""The list of a copy's files with their SHA-256: of a vendored source, or of vendored releases."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property

from npuprof.model import Record, build_error
from npuprof.resolve.digests import digest_bytes
from npuprof.system import decode_safely
from npuprof.system.tree import is_plain_name

#: The file with the list: a path and a SHA-256 per line. The lock contains its digest.
MANIFEST = ".digests"

#: A complete list as npuprof writes it.
_LINES = re.compile(r"(?:[^\0-\x1f\x7f\ufffd]+ [0-9a-f]{64}\n)*")


def parse_manifest(raw: bytes) -> dict[str, set[str]]:
    """Return the digests of each listed file by path.

    While a copy is replaced, those of the old and the new one.
    """
    listed = defaultdict(set)
    for line in raw.decode(errors="surrogateescape").splitlines():
        path, _, digest = line.rpartition(" ")
        if is_plain_name(path):
            listed[path].add(digest)
    return listed


def format_manifest(listed: Mapping[str, Iterable[str]]) -> bytes:
    """Return the list of files with these digests, sorted."""
    return "".join(
        sorted(f"{path} {digest}\n" for path, digests in listed.items() for digest in digests)
    ).encode(errors="surrogateescape")


def build_manifest(files: Mapping[str, bytes]) -> bytes:
    """Return the list of the files of a copy."""
    return format_manifest({path: [digest_bytes(text)] for path, text in files.items()})


def digest_manifest(raw: bytes) -> str:
    """Return the digest of a list, as in a lock."""
    return f"sha256:{digest_bytes(raw)}"


def find_equal_text(raw: bytes | None, digests: Iterable[str]) -> bytes | None:
    """Return a text with one of the digests, as it is or with its line endings restored.

    None if it differs.
    """
    known = {*digests}
    # git may check files out with CRLF; the digest is of the text as copied
    for text in () if raw is None else (raw, raw.replace(b"\r\n", b"\n")):
        if digest_bytes(text) in known:
            return text
    return None


class Proof(Record):
    """The expected files of a copy, by the list whose digest is in the lock.

    Each file can be verified alone. ``label`` names the source in messages, ``top`` is the folder
    of the copy, ``read`` returns the current list.
    """

    label: str
    top: str
    digest: str
    read: Callable[[], bytes | None]

    @cached_property
    def listed(self) -> dict[str, set[str]]:
        """The digest of each file by path, relative to the copy.

        Raises NpuprofError if the list is missing or differs from the lock.
        """
        if not self.digest:
            what = f"npuprof.lock does not list the files of the copy of the source {self.label!r}"
            raise build_error(
                "NP044", what, "It is unknown whether it was edited.", advise_copy(self.label)
            )
        raw = self._require_equal(MANIFEST, self.read(), {self.digest.removeprefix("sha256:")})
        if _LINES.fullmatch(decode_safely(raw)) is None:
            what = f"{self.top}/{MANIFEST} is not a list of files and their digests"
            why = "npuprof writes one file with its SHA-256 a line."
            raise build_error("NP044", what, why, advise_copy(self.label))
        return parse_manifest(raw)

    def require(self, path: str, raw: bytes | None) -> bytes | None:
        """Return the content of a file with its original line endings; None if there is none.

        Raises NpuprofError (NP049) if it differs from the copied one.
        """
        expected = self.listed.get(path, set())
        # a file that was never copied is not missing
        if raw is None and not expected:
            return None
        return self._require_equal(path, raw, expected)

    def _require_equal(self, path: str, raw: bytes | None, expected: Collection[str]) -> bytes:
        """Return the content of a file with one of the digests.

        The message has both digests, so that another edit gets another message.
        """
        text = find_equal_text(raw, expected)
        if text is not None:
            return text
        file = f"{self.top}/{path}"
        current = digest_bytes(raw.replace(b"\r\n", b"\n"))[:7] if raw is not None else "missing"
        copied = next(iter(expected), "")[:7] or "not copied"
        what = (
            f"the copy of the source {self.label!r} does not match npuprof.lock: {file} is "
            f"{current}, and was {copied}"
        )
        why = "It was edited; presets of a source are changed where they come from."
        hint = (
            f"take it back (git restore {file}), or remove it (rm -f {file}) and "
            f"{advise_copy(self.label)}"
        )
        raise build_error("NP049", what, why, hint)


def advise_copy(name: str) -> str:
    """Return the hint for a changed copy.

    ``name`` is that of the source, or of one of its own sources.
    """
    return f"copy it again: npuprof source vendor {name.partition('/')[0]}"
