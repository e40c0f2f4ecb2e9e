"""``npuprof.lock``: at which commits a repository has its sources, as text and as values."""

from __future__ import annotations

import re
from typing import Any

from npuprof.document import Document, parse_document
from npuprof.document.keys import format_key_segment, format_toml_value
from npuprof.document.secrets import hide_secrets
from npuprof.model import Finding, NpuprofError, Origin, Path, Place, Record
from npuprof.store.layout import LOCK_FILE
from npuprof.store.sources.urls import find_url_fault, mark_texts
from npuprof.store.versions import parse_version_range, parse_version_text
from npuprof.system.patterns import lazy_pattern

FILE = LOCK_FILE
_HEAD = "# Which commits the sources of npuprof.toml are at. Written by npuprof source; change it with npuprof source update.\n"
_TEXTS = ("url", "path", "rev", "tag", "commit", "digest", "releases", "copy", "yanked")
_OPTIONAL = ("tag", "path", "releases", "copy", "yanked")
_COMMIT = lazy_pattern(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DIGEST = lazy_pattern(r"sha256:[0-9a-f]{64}")
_RELEASES = lazy_pattern(r"(0|[1-9]\d{0,8}) sha256:[0-9a-f]{64}")
_PIN = lazy_pattern(r"(\S+) ([0-9a-f]{40}|[0-9a-f]{64})(?: yanked: (.+))?")


class LockedVersion(Record):
    """What a reference with an @ to a source's preset is: the number of the version, its commit, and why it was yanked, if it was."""

    version: str
    commit: str
    yanked: str = ""

    def format_shown(self, name: str) -> str:
        """Return the version of a preset as it is shown, ``base/v1.2.0``; the short id of its commit if it is no version."""
        return f"{name}/v{self.version}" if self.version != "-" else self.commit[:7]

    def __str__(self) -> str:
        return f"{self.version} {self.commit}{f' yanked: {self.yanked}' if self.yanked else ''}"


def find_locked_version(versions: dict[str, LockedVersion], reference: str) -> LockedVersion | None:
    """Return the locked version that a reference names, as it is spelled or by its whole number; None for none, or for several commits.

    A version is what was locked: the tag of this machine's mirror may have moved, or may never have been fetched.
    """
    if (pin := versions.get(reference)) is not None:
        return pin
    name, _, wanted = reference.partition("@")
    if (number := parse_version_text(wanted.strip("\"'"))) is None:
        return None
    pins = [pin for spelled, pin in versions.items() if spelled.partition("@")[0] == name and parse_version_text(pin.version) == number]
    return pins[0] if len({pin.commit for pin in pins}) == 1 else None


#: The doubt about an entry without a seal.
UNSEALED = "no seals"


class LockedSource(Record):
    """What a source is locked to. ``digest`` is that of its store there; ``tag`` is empty where it is no version of the store.

    ``copy`` is the digest of the list of files of its copy in this repository, an empty text where there is none;
    ``versions`` are the references with an @ that this repository's presets make to presets of the source, and those that the
    source's own presets make to one another; ``yanked`` is why nobody should use the version any more. ``releases`` says how many
    version tags led to the commit, and their digest.
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
    doubt: str = ""  #: what of it npuprof did not write, by its seals; UNSEALED without them, an empty text if it wrote all

    @property
    def is_unsealed(self) -> bool:
        """Whether the entry has no seal: an older npuprof wrote it, or somebody took the seal out."""
        return self.doubt == UNSEALED

    @property
    def shown(self) -> str:
        """The version, or the commit, as users see it: ``2.1.3`` or ``abc1234``."""
        return self.tag.removeprefix("v") or self.commit[:7]


class Lock(Record):
    """All that is locked, by the names of the sources."""

    document: Document | None = None
    sources: dict[str, LockedSource] = {}

    def find_origin(self, name: str, key: str) -> Origin | None:
        """Return where the lock says something of a source, None where it was not read from a text that does."""
        entries = self.document.data.get("sources", {}) if self.document is not None else {}
        return Origin(self.document, ("sources", name, key)) if self.document is not None and key in entries.get(name, ()) else None


class NewerLockError(NpuprofError):
    """The lock was written by a newer npuprof: what it says may not be written over by one that cannot read it."""


def parse_lock(source: str, raw: bytes, revision: str | None = None) -> Lock:
    """Return what the text of a lock says. Raises NpuprofError (NP044) where it was edited by hand, or merged with conflicts."""
    if re.search(rb"^(<{7}|={7}|>{7})", raw, re.MULTILINE):
        way = "npuprof source update writes it anew, and shows what differs from HEAD; or take one side: git checkout --ours npuprof.lock"
        line = next(number for number, text in enumerate(raw.split(b"\n"), 1) if text.startswith((b"<<<<<<<", b"=======", b">>>>>>>")))
        raise NpuprofError([Finding("NP044", f"{source} holds the marks of a merge", "", way, where=Place(source, line, 1))])
    hint = "restore it (git checkout npuprof.lock), or write it anew: npuprof source update"
    try:
        document = parse_document(FILE, source, raw, revision)
    except NpuprofError as error:  # how TOML is written is of no use here: nobody writes this file
        raise NpuprofError([finding._replace(hint=hint) for finding in error.findings]) from None
    problems: list[Finding] = []

    def add(message: str, path: Path) -> None:
        why = "It is written by npuprof; by hand it is hard to get right."
        shown = [hide_secrets(FILE, text) for text in (message, ".".join(map(str, path)))]
        problems.append(Finding("NP044", shown[0], why, hint, Origin(document, path), shown[1]))

    form = document.data.get("version")
    if type(form) is int and form > 1:
        what = f"the lock has the form {form}, which this npuprof does not know"
        way = "install the npuprof that your team uses; where all use this one: git rm npuprof.lock, then npuprof source update"
        raise NewerLockError([Finding("NP044", what, "A newer npuprof wrote it.", way, Origin(document, ("version",)))])
    if form is None and document.data:
        add("the lock does not say its form, version = 1", ())
    elif document.data and (type(form) is not int or form != 1):
        add(f"the lock has the form {format_toml_value(form)}, which this npuprof does not know", ("version",))
    listed = document.data.get("sources", {})
    locked_sources: dict[str, LockedSource] = {}
    for name, entry in listed.items() if isinstance(listed, dict) else ():
        path = ("sources", name)
        if fault := _find_entry_fault(entry):
            add(f"the lock of {name!r} {fault}", path)
            continue
        pins = entry.get("versions", {}).items()
        versions = {reference: pin for reference, text in pins if (pin := parse_locked_version(text))}
        texts = {key: entry.get(key, "") for key in _TEXTS}
        locked = LockedSource(name, **texts, versions=versions)
        locked_sources[name] = locked._replace(doubt=_find_doubt(locked, entry))
    if problems:
        raise NpuprofError(problems)
    return Lock(document, locked_sources)


def parse_locked_version(text: str) -> LockedVersion | None:
    """Return the version that a text writes as ``LockedVersion`` does, None where it writes none."""
    match = _PIN.fullmatch(text)
    return LockedVersion(match[1], match[2], match[3] or "") if match else None


def _find_doubt(locked: LockedSource, entry: dict[str, Any]) -> str:
    """Return what of an entry is not as npuprof wrote it, by its seals; UNSEALED if it has none."""
    if "seal" not in entry or not locked.releases:
        return UNSEALED
    if entry["seal"] != mark_texts(locked.tag, locked.commit):
        return f"{locked.tag or locked.rev} is {locked.commit[:12]}"
    seals = entry.get("seals")
    for reference, pin in locked.versions.items():
        if not isinstance(seals, dict) or seals.get(reference) != mark_texts(reference, pin.version, pin.commit):
            return f"{reference} is {pin.version if pin.version != '-' else 'no version'}, at {pin.commit[:12]}"
    return ""


def _find_entry_fault(entry: Any) -> str:
    if not isinstance(entry, dict):
        return "is no table"
    for key in _TEXTS:
        if not isinstance(entry.get(key, "" if key in _OPTIONAL else None), str):
            return f"has no {key}" if key not in entry else f"has a {key} that is no text"
    url_fault, versions = find_url_fault(entry["url"]), entry.get("versions", {})
    wanted, number = parse_version_range(entry["rev"]), parse_version_text(entry.get("tag", ""))
    is_outside = wanted is not None and (number is None or not wanted.accepts(number))
    are_digests = _DIGEST.fullmatch(entry["digest"]) and _DIGEST.fullmatch(entry.get("copy") or entry["digest"])
    are_pins = isinstance(versions, dict) and all(isinstance(text, str) and _PIN.fullmatch(text) for text in versions.values())
    faults = (
        (url_fault, f"has a url that is none: {url_fault}"),
        (":" in entry["rev"], "has a rev that is none"),
        (not _COMMIT.fullmatch(entry["commit"]), "has a commit that is no full id"),
        (is_outside, f"contradicts itself: {entry.get('tag') or 'no version'} is not in {entry['rev']!r}"),
        (not are_digests, "has a digest that is none"),
        ("releases" in entry and not _RELEASES.fullmatch(entry["releases"]), "has releases that are none"),
        (not are_pins, "has versions that are none"),
    )
    return next((text for is_fault, text in faults if is_fault), "")


def format_lock(sources: dict[str, LockedSource]) -> str:
    """Return the text of a lock: a table a source, by name, so that merges meet only where both sides changed one."""
    parts = [f"{_HEAD}version = 1\n"]
    for name in sorted(sources):
        locked = sources[name]
        texts = {key: text for key in _TEXTS if (text := getattr(locked, key))}
        texts["seal"] = mark_texts(locked.tag, locked.commit)
        parts.append(_format_table(f"sources.{format_key_segment(name)}", texts))
        if locked.versions:
            pins = sorted(locked.versions.items())
            parts.append(_format_table(f"sources.{format_key_segment(name)}.versions", {key: str(pin) for key, pin in pins}))
            seals = {key: mark_texts(key, pin.version, pin.commit) for key, pin in pins}
            parts.append(_format_table(f"sources.{format_key_segment(name)}.seals", seals))
    return "\n".join(parts)


def _format_table(place: str, texts: dict[str, str]) -> str:
    return "\n".join([f"[{place}]", *(f"{format_key_segment(key)} = {format_toml_value(text)}" for key, text in texts.items()), ""])
