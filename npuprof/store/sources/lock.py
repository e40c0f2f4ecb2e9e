"""``npuprof.lock``: the locked commits of a repository's sources, as text and values."""

from __future__ import annotations

import re
from itertools import starmap
from typing import Any

from npuprof.document import Document, parse_document
from npuprof.document.keys import format_key_segment, format_toml_value
from npuprof.model import Finding, NpuprofError, Origin, Path, Place, Record, TomlTable, build_error
from npuprof.store import LOCK_FILE, read_revision, strip_revision
from npuprof.store.urls import find_url_fault, mark_texts
from npuprof.store.versions import parse_version_range, parse_version_request, parse_version_text

_HEAD = (
    "# Which commits the sources of npuprof.toml are at. Written by npuprof source; change it "
    "with npuprof source update.\n"
)
_DIGEST = r"sha256:[0-9a-f]{64}"
#: The strings of an entry in order, with their patterns; an empty string is omitted.
_FORMS = {
    "url": ".+",
    "path": ".*",
    "rev": "[^:]+",
    "tag": ".*",
    "commit": "[0-9a-f]{40}|[0-9a-f]{64}",
    "digest": _DIGEST,
    "releases": rf"|(?:0|[1-9]\d{{0,8}}) {_DIGEST}",
    "copy": f"|{_DIGEST}",
    "yanked": ".*",
}
_PIN = re.compile(
    r"(?P<version>\S+) (?P<commit>[0-9a-f]{40}|[0-9a-f]{64})(?: yanked: (?P<yanked>.+))?"
)


class LockedVersion(Record):
    """The target of a reference with an @ to a source's preset: version number and commit.

    ``version`` is ``-`` if the target is not a version; ``yanked`` is why it was yanked.
    """

    version: str
    commit: str
    yanked: str = ""

    def format_shown(self, name: str) -> str:
        """Return the version of a preset for display, ``base/v1.2.0``.

        The short commit id if it is not a version.
        """
        return f"{name}/v{self.version}" if self.version != "-" else self.commit[:7]

    def __str__(self) -> str:
        return f"{self.version} {self.commit}{f' yanked: {self.yanked}' if self.yanked else ''}"


def find_locked_version(versions: dict[str, LockedVersion], reference: str) -> LockedVersion | None:
    """Return the locked version of a reference, by spelling or complete number.

    None for none, or for several commits. The lock decides: a tag in this machine's mirror may have
    moved or be missing.
    """
    if reference in versions:
        return versions[reference]
    name = strip_revision(reference)
    number = parse_version_text(read_revision(reference))
    if number is None:
        return None
    pins = [
        pin
        for spelled, pin in versions.items()
        if strip_revision(spelled) == name and parse_version_text(pin.version) == number
    ]
    return pins[0] if len({pin.commit for pin in pins}) == 1 else None


class LockedSource(Record):
    """The lock entry of a source.

    ``digest`` is the digest of its store; ``tag`` is empty if it is not a store version. ``copy``
    is the digest of the file list of its vendored copy, an empty string if there is none.
    ``versions`` are the references with an @ to presets of the source, from this repository and
    from the source itself; ``yanked`` is why the version was yanked. ``releases`` is the number of
    version tags in the commit's history, and their digest.
    """

    name: str
    url: str
    path: str
    rev: str
    commit: str
    digest: str
    tag: str = ""
    yanked: str = ""
    versions: dict[str, LockedVersion] = {}
    copy: str = ""
    releases: str = ""
    is_sealed: bool = True  #: whether npuprof wrote all of it, by its checksums

    @property
    def shown(self) -> str:
        """The version or commit for display: ``2.1.3`` or ``abc1234``."""
        return self.tag.removeprefix("v") or self.commit[:7]


class Lock(Record):
    """All lock entries, by source name."""

    document: Document | None = None
    sources: dict[str, LockedSource] = {}

    def find_origin(self, name: str, key: str) -> Origin | None:
        """Return the location of a source's entry in the lock.

        None if the lock has no text or no entry.
        """
        if self.document is None or key not in self.document.data.get("sources", {}).get(name, ()):
            return None
        return Origin(self.document, ("sources", name, key))


class NewerLockError(NpuprofError):
    """Raised for a lock of a newer npuprof, which an older one must not overwrite."""


def parse_lock(source: str, raw: bytes, revision: str | None = None) -> Lock:
    """Return the parsed text of a lock.

    Raises NpuprofError (NP044) for manual edits and merge conflicts.
    """
    _reject_conflict_markers(source, raw)
    hint = "restore it (git checkout npuprof.lock), or recreate it: npuprof source update"
    try:
        document = parse_document(LOCK_FILE, source, raw, revision)
    except NpuprofError as error:  # TOML syntax advice is useless here: nobody writes this file
        raise NpuprofError([finding._replace(hint=hint) for finding in error.findings]) from None
    faulty: list[Path] = []
    form = document.data.get("version", 1 if not document.data else None)
    if type(form) is not int or form < 1:  # True is an int, too
        faulty.append(("version",) if "version" in document.data else ())
    elif form > 1:
        raise _build_newer_error(document, form)
    entries = document.data.get("sources", {})
    locked_sources = {}
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        if _is_entry(entry):
            locked_sources[name] = _read_entry(name, entry)
        else:
            faulty.append(("sources", name))
    if faulty:
        what = f"{source} is not as npuprof writes it"
        why = "It is written by npuprof; by hand it is hard to get right."
        raise NpuprofError(
            [
                Finding("NP044", what, why, hint, Origin(document, path), ".".join(path))
                for path in faulty
            ]
        )
    return Lock(document, locked_sources)


def _reject_conflict_markers(source: str, raw: bytes) -> None:
    for number, line in enumerate(raw.split(b"\n"), 1):
        # before the TOML is parsed, which would only report a syntax error in this line
        if line.startswith((b"<<<<<<<", b"=======", b">>>>>>>")):
            hint = (
                "npuprof source update recreates it and shows the differences from HEAD; or take "
                "one side: git checkout --ours npuprof.lock"
            )
            what = f"{source} contains conflict markers"
            raise build_error("NP044", what, "", hint, where=Place(source, number, 1))


def _build_newer_error(document: Document, form: int) -> NewerLockError:
    what = f"the lock has the form {form}, which this npuprof does not know"
    why = "A newer npuprof wrote it."
    hint = (
        "install the npuprof that your team uses; where all use this one: git rm npuprof.lock, "
        "then npuprof source update"
    )
    return NewerLockError([Finding("NP044", what, why, hint, Origin(document, ("version",)))])


def parse_locked_version(text: str) -> LockedVersion | None:
    """Return the version in a text in ``LockedVersion`` form, None if it is invalid."""
    match = _PIN.fullmatch(text)
    if match is None:
        return None
    return LockedVersion(match["version"], match["commit"], match["yanked"] or "")


def _read_entry(name: str, entry: TomlTable) -> LockedSource:
    versions = {
        reference: pin
        for reference, text in entry.get("versions", {}).items()
        if (pin := parse_locked_version(text))
    }
    locked = LockedSource(name, **{key: entry.get(key, "") for key in _FORMS}, versions=versions)
    seals = {"seal": entry.get("seal"), "seals": entry.get("seals", {})}
    return locked._replace(is_sealed=bool(locked.releases) and seals == _seal(locked))


def _seal(locked: LockedSource) -> TomlTable:
    """Return the checksums of an entry, which reveal manual edits and merges of versions."""
    seals = {
        reference: mark_texts(reference, pin.version, pin.commit)
        for reference, pin in sorted(locked.versions.items())
    }
    return {"seal": mark_texts(locked.tag, locked.commit), "seals": seals}


def _is_entry(entry: Any) -> bool:
    """Return whether a source's table has the form that npuprof writes, without its checksums."""
    if not isinstance(entry, dict):
        return False
    for key, form in _FORMS.items():
        text = entry.get(key, "")
        if not isinstance(text, str) or not re.fullmatch(form, text):
            return False
    versions = entry.get("versions", {})
    if not isinstance(versions, dict) or not all(starmap(_is_pin, versions.items())):
        return False
    # a merged or forged lock could name a local program or an option of git
    if find_url_fault(entry["url"]):
        return False
    tag = entry.get("tag", "")
    number = parse_version_text(tag)
    if tag and tag != f"v{number}":
        return False  # another spelling would name another tag, which the remote need not have
    accepted = parse_version_range(entry["rev"])
    return accepted is None or (number is not None and accepted.accepts(number))


def _is_pin(reference: str, text: object) -> bool:
    """Return whether the text of a pin is a version that its reference accepts, or a commit.

    A version has only one spelling.
    """
    pin = parse_locked_version(text) if isinstance(text, str) else None
    if pin is None:
        return False
    revision = read_revision(reference)
    request = parse_version_request(revision)
    if pin.version == "-":
        # the id of a commit may have digits only
        return request is None or ("." not in revision and len(revision) > 3)
    number = parse_version_text(pin.version)
    if number is None or str(number) != pin.version:
        return False
    return request is None or request.accepts(number)


def format_lock(sources: dict[str, LockedSource]) -> str:
    """Return the text of a lock: a table per source, by name.

    Merges then conflict only if both sides changed one source.
    """
    parts = [f"{_HEAD}version = 1\n"]
    for name in sorted(sources):
        locked = sources[name]
        table = f"sources.{format_key_segment(name)}"
        # the order of the table, so that a rewritten lock has no other differences
        texts = {key: text for key in _FORMS if (text := getattr(locked, key))}
        seals = _seal(locked)
        if locked.is_sealed:  # manual edits are not sealed with npuprof's entries
            texts["seal"] = seals["seal"]
        parts.append(_format_table(table, texts))
        if locked.versions:
            pins = {key: str(pin) for key, pin in sorted(locked.versions.items())}
            parts.append(_format_table(f"{table}.versions", pins))
            if locked.is_sealed:
                parts.append(_format_table(f"{table}.seals", seals["seals"]))
    return "\n".join(parts)


def _format_table(name: str, texts: dict[str, str]) -> str:
    lines = [
        f"{format_key_segment(key)} = {format_toml_value(text)}\n" for key, text in texts.items()
    ]
    return "".join([f"[{name}]\n", *lines])
