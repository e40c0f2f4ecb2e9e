"""``npuprof.lock``: the locked commits of a repository's sources, as text and values."""

from __future__ import annotations

import re
from typing import Any

from npuprof.document import Document, parse_document
from npuprof.document.keys import format_key_segment, format_toml_value
from npuprof.model import Finding, NpuprofError, Origin, Path, Place, Record, build_error
from npuprof.store import LOCK_FILE, read_revision
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
_PIN = re.compile(r"(\S+) ([0-9a-f]{40}|[0-9a-f]{64})(?: yanked: (.+))?")


class LockedVersion(Record):
    """The target of a reference with an @ to a source's preset: its version number, its commit, and
    why it was yanked, if it was.
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

    None for none, or for several commits.

    The lock decides: a tag in this machine's mirror may have moved or be missing.
    """
    if (pin := versions.get(reference)) is not None:
        return pin
    name = reference.partition("@")[0]
    if (number := parse_version_text(read_revision(reference))) is None:
        return None
    pins = [
        pin
        for spelled, pin in versions.items()
        if spelled.partition("@")[0] == name and parse_version_text(pin.version) == number
    ]
    return pins[0] if len({pin.commit for pin in pins}) == 1 else None


class LockedSource(Record):
    """The lock entry of a source.

    ``digest`` is the digest of its store; ``tag`` is empty if it is not a store version.

    ``copy`` is the digest of the file list of its vendored copy, an empty string if there is none;
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
        """Return the place of a source's entry in the lock.

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
    marks = (b"<<<<<<<", b"=======", b">>>>>>>")
    if line := next(
        (number for number, text in enumerate(raw.split(b"\n"), 1) if text.startswith(marks)), 0
    ):
        way = (
            "npuprof source update recreates it and shows the differences from HEAD; or take one "
            "side: git checkout --ours npuprof.lock"
        )
        raise build_error(
            "NP044", f"{source} contains conflict markers", "", way, where=Place(source, line, 1)
        )
    hint = "restore it (git checkout npuprof.lock), or recreate it: npuprof source update"
    try:
        document = parse_document(LOCK_FILE, source, raw, revision)
    except NpuprofError as error:  # TOML syntax advice is useless here: nobody writes this file
        raise NpuprofError([finding._replace(hint=hint) for finding in error.findings]) from None
    form = document.data.get("version", 1 if not document.data else None)
    if type(form) is int and form > 1:
        what = f"the lock has the form {form}, which this npuprof does not know"
        way = (
            "install the npuprof that your team uses; where all use this one: git rm "
            "npuprof.lock, then npuprof source update"
        )
        raise NewerLockError(
            [
                Finding(
                    "NP044", what, "A newer npuprof wrote it.", way, Origin(document, ("version",))
                )
            ]
        )
    entries = document.data.get("sources", {})
    faulty: list[Path] = (
        []
        if type(form) is int and form == 1
        else [("version",) if "version" in document.data else ()]
    )
    locked_sources = {}
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        if _is_entry(entry):
            locked_sources[name] = _read_entry(name, entry)
        else:
            faulty.append(("sources", name))
    if faulty:
        what, why = (
            f"{source} is not as npuprof writes it",
            "It is written by npuprof; by hand it is hard to get right.",
        )
        raise NpuprofError(
            [
                Finding("NP044", what, why, hint, Origin(document, path), ".".join(path))
                for path in faulty
            ]
        )
    return Lock(document, locked_sources)


def parse_locked_version(text: str) -> LockedVersion | None:
    """Return the version in a text in ``LockedVersion`` form, None if it is invalid."""
    match = _PIN.fullmatch(text)
    return LockedVersion(match[1], match[2], match[3] or "") if match else None


def _read_entry(name: str, entry: dict[str, Any]) -> LockedSource:
    pins = {
        reference: parse_locked_version(text)
        for reference, text in entry.get("versions", {}).items()
    }
    versions = {reference: pin for reference, pin in pins.items() if pin}
    locked = LockedSource(name, **{key: entry.get(key, "") for key in _FORMS}, versions=versions)
    seals = {"seal": entry.get("seal"), "seals": entry.get("seals", {})}
    return locked._replace(is_sealed=bool(locked.releases) and seals == _seal(locked))


def _seal(locked: LockedSource) -> dict[str, Any]:
    """Return the checksums of an entry, which reveal manual edits and merges of versions."""
    seals = {
        reference: mark_texts(reference, pin.version, pin.commit)
        for reference, pin in sorted(locked.versions.items())
    }
    return {"seal": mark_texts(locked.tag, locked.commit), "seals": seals}


def _is_entry(entry: Any) -> bool:
    """Return whether a source's table has the form that npuprof writes, without its checksums."""
    if not isinstance(entry, dict) or not all(
        isinstance(entry.get(key, ""), str) for key in _FORMS
    ):
        return False
    versions = entry.get("versions", {})
    if not isinstance(versions, dict) or not all(_is_pin(*pin) for pin in versions.items()):
        return False
    if not all(
        re.fullmatch(form, entry.get(key, "")) for key, form in _FORMS.items()
    ) or find_url_fault(entry["url"]):
        return False
    tag = entry.get("tag", "")
    wanted, number = parse_version_range(entry["rev"]), parse_version_text(tag)
    is_named = (
        not tag or tag == f"v{number}"
    )  # another spelling would name another tag, which the remote need not have
    return is_named and (wanted is None or (number is not None and wanted.accepts(number)))


def _is_pin(reference: str, text: object) -> bool:
    """Return whether the text of a pin is a version that its reference accepts, in its only
    spelling, or a commit without one.
    """
    pin = parse_locked_version(text) if isinstance(text, str) else None
    if pin is None:
        return False
    wanted = read_revision(reference)
    request = parse_version_request(wanted)
    if pin.version == "-":
        return request is None or (
            "." not in wanted and len(wanted) > 3
        )  # a revision, also if its id has digits only
    number = parse_version_text(pin.version)
    return (
        number is not None
        and str(number) == pin.version
        and (request is None or request.accepts(number))
    )


def format_lock(sources: dict[str, LockedSource]) -> str:
    """Return the text of a lock: a table per source, by name, so that merges conflict only if both
    sides changed one source.
    """
    parts = [f"{_HEAD}version = 1\n"]
    for name in sorted(sources):
        locked = sources[name]
        texts, seals = (
            {key: text for key in _FORMS if (text := getattr(locked, key))},
            _seal(locked),
        )
        if locked.is_sealed:  # manual edits are not sealed with npuprof's entries
            texts["seal"] = seals["seal"]
        parts.append(_format_table(f"sources.{format_key_segment(name)}", texts))
        if locked.versions:
            pins = {key: str(pin) for key, pin in sorted(locked.versions.items())}
            parts.append(_format_table(f"sources.{format_key_segment(name)}.versions", pins))
            if locked.is_sealed:
                parts.append(
                    _format_table(f"sources.{format_key_segment(name)}.seals", seals["seals"])
                )
    return "\n".join(parts)


def _format_table(place: str, texts: dict[str, str]) -> str:
    return "\n".join(
        [
            f"[{place}]",
            *(
                f"{format_key_segment(key)} = {format_toml_value(text)}"
                for key, text in texts.items()
            ),
            "",
        ]
    )
