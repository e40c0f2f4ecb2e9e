"""A copy of a source's store inside the repository that uses it: read in place of the mirror, so that nothing has to be fetched."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from npuprof.model import Finding, NpuprofError, Record
from npuprof.report.output import read_plain_file
from npuprof.resolve.digests import load_sha256
from npuprof.store import Folder, ReadOnceStore, is_profile_name
from npuprof.system import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.gitstore.revisions import Revision
    from npuprof.store.sources.lock import LockedSource, LockedVersion

#: Below this folder of a copy lie the stores at the commits of versions that are referred to.
VERSIONS = ".versions"
#: Below this folder of a copy lie the sources of the source, and theirs, each store at each commit once.
NESTED = ".sources"
#: Says what the presets of a copied store mean by each reference with an @ to a preset of their own store: no tags come with it.
REFERENCES = ".references"
#: Says which commit a copy is of.
MARK = ".commit"
#: Lists all other files of a copy, each with the SHA-256 of its content; the lock holds that of the list.
MANIFEST = ".digests"
#: The list of a copy: a path and a SHA-256 a line.
_LINES = lazy_pattern(r"(?:[^\0-\x1f\x7f\ufffd]+ [0-9a-f]{64}\n)*")
#: What lies beside a store and says where its presets come from, and which rules bind them; a dot stands before the names in a copy.
PROJECT_FILES = ("npuprof.toml", "npuprof.lock")


class Proof:
    """What the files of a copy have to be, so that one of them is read without the others: the list that the lock holds the digest of.

    ``label`` names the source in messages, ``top`` is the folder of the copy, ``read`` returns the list as it is there.
    """

    def __init__(self, label: str, top: str, digest: str, read: Callable[[], bytes | None]) -> None:
        self.label = label
        self._top = top
        self._digest = digest
        self._read = read
        self._lines: bytes | None = None

    def load_lines(self) -> bytes:
        """Return the list, a line a file. Raises NpuprofError where there is none, or it is not the one that was locked."""
        if self._lines is None:
            if not self._digest:
                what = f"npuprof.lock does not say what is in the copy of the source {self.label!r}"
                raise NpuprofError([Finding("NP044", what, "Whether it was edited cannot be told.", advise_copy(self.label))])
            lines = find_equal_text(self._read(), self._digest.removeprefix("sha256:"))
            if lines is None:
                raise NpuprofError([self._build_finding(MANIFEST, self._read(), self._digest.removeprefix("sha256:"))])
            if not _LINES.fullmatch(lines.decode(errors="replace")):
                what = f"{self._top}/{MANIFEST} is not a list of files and their digests"
                raise NpuprofError([Finding("NP044", what, "npuprof writes one file with its SHA-256 a line.", advise_copy(self.label))])
            self._lines = lines
        return self._lines

    def list_paths(self) -> list[str]:
        """Return the paths of the files, from the folder of the copy. Raises NpuprofError."""
        return [line.partition(b" ")[0].decode() for line in self.load_lines().splitlines()]

    def require(self, path: str, raw: bytes | None) -> bytes | None:
        """Return what a file holds, with the line ends that were copied; None where there is none.

        Raises NpuprofError (NP049) where it is not what was copied.
        """
        lines, mark = b"\n" + self.load_lines(), f"\n{path} ".encode(errors="surrogateescape")
        start = lines.find(mark)
        if start < 0 and raw is None:
            return None
        wanted = lines[start + len(mark) : lines.find(b"\n", start + len(mark))].decode() if start >= 0 else ""
        text = find_equal_text(raw, wanted)
        if text is None:
            raise NpuprofError([self._build_finding(path, raw, wanted)])
        return text

    def _build_finding(self, path: str, raw: bytes | None, wanted: str) -> Finding:
        """Return that a file of the copy is not what was copied; who edits it once more gets another message."""
        file = f"{self._top}/{path}"
        there = load_sha256()(raw.replace(b"\r\n", b"\n")).hexdigest()[:7] if raw is not None else "missing"
        what = (
            f"the copy of the source {self.label!r} is not what npuprof.lock says: {file} is {there}, and was {wanted[:7] or 'not copied'}"
        )
        why = "It was edited; presets of a source are changed where they come from."
        hint = f"take it back (git restore {file}), or remove it (rm -f {file}) and {advise_copy(self.label)}"
        return Finding("NP049", what, why, hint)


def find_equal_text(raw: bytes | None, digest: str) -> bytes | None:
    """Return a text that has a digest, as it is or as it was before git gave its lines other ends; None where it has not."""
    for text in () if raw is None else (raw, raw.replace(b"\r\n", b"\n")):
        if load_sha256()(text).hexdigest() == digest:
            return text
    return None


def format_manifest(files: Mapping[str, bytes]) -> bytes:
    """Return the list of the files of a copy."""
    return "".join(f"{path} {load_sha256()(files[path]).hexdigest()}\n" for path in sorted(files)).encode()


def digest_manifest(lines: bytes) -> str:
    """Return the digest of the list of a copy, as a lock holds it."""
    return f"sha256:{load_sha256()(lines).hexdigest()}"


def advise_copy(name: str) -> str:
    """Return what to do about a copy that is not what was copied; ``name`` is that of the source, or of one of its own sources."""
    return f"copy it anew: npuprof source vendor {name.partition('/')[0]}"


class VendoredCopy:
    """A copied store: in a folder of the work tree, or in one as a commit has it. Texts are read by name, None where there is none.

    With a ``proof`` each is what was copied; ``place`` is the folder of the store in the copy, with a ``/`` behind it.
    """

    def __init__(self, folder: str, revision: Revision | None = None) -> None:
        self._folder = folder
        self._revision = None if revision is None else _open_below(revision, folder)
        self._there: ReadOnceStore = self._revision or _open_folder(folder)
        self.proof: Proof | None = None
        self.place = ""

    def read_commit(self) -> str:
        """Return the commit that was copied, an empty text where nobody says so."""
        return (self.read_unproven(MARK) or b"").decode(errors="replace").strip()

    def read_file(self, name: str) -> bytes | None:
        """Return one of the ``PROJECT_FILES`` that lay beside the store, None where there was none. Raises NpuprofError."""
        return self._read_beside(f".{name}")

    def read_references(self) -> dict[str, LockedVersion]:
        """Return what references with an @ to presets of the store itself mean, as far as they were copied with it.

        Raises NpuprofError.
        """
        from npuprof.store.sources.lock import parse_locked_version

        listed = (self._read_beside(REFERENCES) or b"").decode(errors="replace")
        pairs = (line.rpartition(" = ")[::2] for line in listed.splitlines())
        return {reference: version for reference, text in pairs if (version := parse_locked_version(text))}

    def list_faults(self) -> list[Finding]:
        """Return which files of the whole copy are not what was copied. Raises NpuprofError where nobody can say."""
        assert self.proof is not None, "it is asked of the copy that a repository names"
        paths = self.proof.list_paths()
        others = {*(f"{name}.toml" for name in self.names()), *(f".{name}" for name in PROJECT_FILES), REFERENCES}
        paths += sorted(others.difference(paths))
        faults: list[Finding] = []
        for path, raw in zip(paths, self._read_files(paths), strict=True):
            try:
                self.proof.require(path, raw)
            except NpuprofError as error:
                faults += error.findings
        return faults

    def read_unproven(self, name: str) -> bytes | None:
        """Return a file of the copy, by its path in it, as it is there; None where there is none."""
        return self._read_files([name])[0]

    def _read_beside(self, name: str) -> bytes | None:
        return self._prove(name, self.read_unproven(name))

    def _prove(self, path: str, raw: bytes | None) -> bytes | None:
        return raw if self.proof is None else self.proof.require(f"{self.place}{path}", raw)

    def _read_files(self, paths: Sequence[str]) -> list[bytes | None]:
        if self._revision is not None:
            prefix = f"{self._revision.commit}:{self._revision.repository.prefix}"
            return self._revision.repository.git.read_files([f"{prefix}{path}" for path in paths])
        return [_read_below(self._folder, path) for path in paths]

    def names(self) -> list[str]:
        """Return the names of the presets. Raises NpuprofError where the folder cannot be read."""
        return self._there.names()

    def read_text(self, name: str) -> bytes | None:
        """Return the text of a preset, None where there is none; a link out of the copy is none. Raises NpuprofError."""
        return self._read_beside(f"{name}.toml") if is_profile_name(name) else None


def _read_below(folder: str, path: str) -> bytes | None:
    full = os.path.join(folder, path)
    if not os.path.realpath(full).startswith(os.path.realpath(folder) + os.sep):
        return None
    try:
        return read_plain_file(full)
    except OSError:
        return None


class CopyPlace(Record):
    """Where the copy of a source lies: in ``folder`` below ``top``, that of the copy which this repository names; there, at a ``version``.

    ``open_folder`` opens the folder of a copy, ``proof`` says what the files have to be.
    """

    open_folder: Callable[[str], VendoredCopy]
    top: str
    folder: str = ""
    version: str = ""
    proof: Proof | None = None

    def open(self) -> VendoredCopy:
        """Return the copy. Raises NpuprofError where it is not to be read."""
        version = name_version_folder(self.version) if self.version else ""
        below = [part for part in (self.folder, version) if part]
        vendored = self.open_folder("/".join([self.top, *below]))
        vendored.proof, vendored.place = self.proof, "".join(f"{part}/" for part in below)
        return vendored

    def find_version(self, commit: str) -> CopyPlace:
        """Return where the store lies at the commit of a version that is referred to."""
        return self._replace(version=commit)

    def find_nested(self, locked: LockedSource) -> CopyPlace:
        """Return where a source of the source lies."""
        return self._replace(folder=name_nested_folder(locked), version="")


def name_version_folder(commit: str) -> str:
    """Return the folder, in the copy of a source, of its store at another commit."""
    return f"{VERSIONS}/{commit}"


def name_nested_folder(locked: LockedSource) -> str:
    """Return the folder, in the copy that a repository names, of a source of the source: one for a store at a commit, whoever names it."""
    from npuprof.store.sources.urls import mark_texts, normalize_url

    return f"{NESTED}/{mark_texts(normalize_url(locked.url), locked.path)}-{locked.commit}"


def find_copy_folder(base: str, folder: str) -> str:
    """Return the path of a copy, ``folder`` below that of npuprof.toml. Raises NpuprofError (NP941) if a link is on the way."""
    path = os.path.join(base, folder)
    real, top = os.path.realpath(path), os.path.realpath(base)
    parts = os.path.normpath(folder).split(os.sep)
    if real == os.path.join(top, *parts) and not {"..", ".git"}.intersection(part.lower() for part in parts):
        return path
    what = f"{folder} leads to {real}"
    why = "The folder of a copy is part of this repository and is reached through no link; nothing was read or written."
    raise NpuprofError([Finding("NP941", what, why, "remove the link, or name another folder: npuprof source vendor NAME --into FOLDER")])


def _open_below(revision: Revision, folder: str) -> Revision:
    from npuprof.store.gitstore.revisions import Revision

    repository = revision.repository.with_store_prefix(f"{folder}/")
    repository.is_source = True
    return Revision(repository, revision.commit)


def _open_folder(folder: str) -> Folder:
    store = Folder(folder)
    store.is_source = True
    return store
