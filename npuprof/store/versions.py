"""Released versions: their numbers, and the content of their annotated tags ``NAME/vX.Y.Z``.

The last paragraph of a tag's message is its record, one fact per line::

    Digest: HEX                           of the effective values without a selected context
    Preset-Digest: HEX                    of the layers with all their overrides
    Digest-Form: 3                        the number of the form of both
    Parent: base@1 1.4.0 COMMIT           a pinned parent as written, its version, or -, and its
        commit
    Parent: root@2 2.0.1 COMMIT by base@1.4.0         the same for a parent of that parent
    Parent: team:base 2.1.3 COMMIT        a preset of a source: the version of the store, or of the
        preset, and its commit

Blanks in a reference are percent-encoded, ``%20``. A tag of an older npuprof has only a ``Digest``,
in form 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from operator import attrgetter

from npuprof.document.profile import FORM
from npuprof.model import Record, has_only_digits
from npuprof.store import strip_revision
from npuprof.system import decode_safely, join_lines

# Strings, compiled on first use: many commands import this, few read versions.
_PART = r"(?:0|[1-9]\d{0,8})"

#: An identifier of a pre-release, by semantic versioning 2.0.0, item 9.
_IDENTIFIER = r"(?:0|[1-9]\d{0,17}|\d*[A-Za-z-][0-9A-Za-z-]*)"

_PRE = rf"(?:-(?P<pre>{_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"

#: A complete number with a pre-release part, as users write it.
_PRE_RELEASE = rf"v?(?P<number>\d{{1,9}}(?:\.\d{{1,9}}){{2}}){_PRE}"

_TAG = rf"refs/tags/(?P<name>.+)/v(?P<number>{_PART}\.{_PART}\.{_PART}){_PRE}"

_TAGGER = r"^tagger .*> (?P<seconds>-?\d{1,18}) (?P<zone>[+-]\d{4})$"

_LINE = r"(?P<name>Digest|Preset-Digest|Digest-Form|Parent):[ \t]*(?P<value>.*?)[ \t]*"

#: The values of a record's facts, but for parents.
_VALUES = {
    "Digest": r"[0-9a-f]{64}",
    "Preset-Digest": r"[0-9a-f]{64}",
    "Digest-Form": r"[1-9]\d{0,5}",
}

_BOUND = (
    r"\s*(?P<operator>\^|~|>=|<=|==|=|>|<|)\s*"
    r"v?(?P<parts>\d{1,9}(?:\.\d{1,9}){0,2})(?:-(?P<pre>[0-9A-Za-z.-]+))?\s*"
)

_PARENT = (
    r"(?P<reference>\S+[@:]\S+) (?P<version>\S+) (?P<commit>[0-9a-f]{40}|[0-9a-f]{64})"
    r"(?: by (?P<view>\S+@\S+))?"
)

#: The suffix of a tag that marks the version before it as yanked: ``base/v1.2.0.yanked``.
YANKED = ".yanked"

#: The number of a released version without its pre-release part: 1.2.0. A tuple, as it is sorted.
VersionNumber = tuple[int, int, int]

#: The sort key of versions by semantic versioning: a pre-release comes before its release, and
#: numeric identifiers before others.
VersionOrder = tuple[VersionNumber, bool, tuple[tuple[bool, int, str], ...]]


class VersionText(Record):
    """A complete number as written: ``1.2.0``, or a pre-release ``2.0.0-rc.1``."""

    number: VersionNumber
    pre: str = ""

    @property
    def order(self) -> VersionOrder:
        """The sort key."""
        identifiers = []
        for text in self.pre.split(".") if self.pre else ():
            is_number = text.isdigit()
            identifiers.append((not is_number, int(text) if is_number else 0, text))
        return self.number, not self.pre, tuple(identifiers)

    def __lt__(self, other: VersionText) -> bool:
        return self.order < other.order

    def __str__(self) -> str:
        return ".".join(map(str, self.number)) + (f"-{self.pre}" if self.pre else "")


class VersionRequest(Record):
    """A possible version after an @: a complete number, or a prefix (``1``, ``1.2``)."""

    parts: tuple[int, ...]
    pre: str = ""

    @property
    def is_range(self) -> bool:
        """Whether it selects the newest of several versions."""
        return len(self.parts) < 3

    def accepts(self, version: VersionText) -> bool:
        """Return whether it selects a version; a pre-release only by its complete number."""
        return version.number[: len(self.parts)] == self.parts and version.pre == self.pre


class TagRef(Record):
    """A tag with the name of a version, and its object id, unread."""

    name: str
    text: VersionText
    oid: str

    @property
    def tag(self) -> str:
        """``base/training/v1.2.0``."""
        return f"{self.name}/v{self.text}"

    @property
    def sort_key(self) -> tuple[str, VersionOrder]:
        """By preset name, then by number."""
        return self.name, self.text.order


class ParentRecord(Record):
    """A pinned parent at the release of its dependent.

    ``view`` is the version (``base@1.4.0``) whose file refers to it, empty for the dependent's own
    commit; ``version`` is empty if the reference is not a version.
    """

    view: str
    reference: str
    version: str
    commit: str

    @property
    def name(self) -> str:
        """The name of the parent."""
        return strip_revision(self.reference)

    @property
    def own_view(self) -> str:
        """The parent in the form in which its own parents refer to it."""
        return f"{self.name}@{self.version or self.commit}"

    def __str__(self) -> str:
        from urllib.parse import quote

        reference = quote(self.reference, safe="/@:+~^.,={}()!$&'*?<>|[]\"#")
        by = f" by {self.view}" if self.view else ""
        return f"Parent: {reference} {self.version or '-'} {self.commit}{by}"


class ReleaseRecord(Record):
    """The record of a tag; missing facts are empty strings and None, ``faults`` invalid lines."""

    digest: str
    preset_digest: str
    form: int | None
    parents: tuple[ParentRecord, ...]
    faults: tuple[str, ...] = ()

    @property
    def known_form(self) -> int:
        """The form of its digests: 1 for a tag without a number, the current without digests."""
        return self.form or (1 if self.digest else FORM)

    def find_parent(self, view: str, reference: str) -> ParentRecord | None:
        """Return the target of a reference at the release, seen from a view.

        None if it is not recorded.
        """
        for parent in self.parents:
            if parent.view == view and parent.reference == reference:
                return parent
        return None

    def __str__(self) -> str:
        lines = [
            f"Digest: {self.digest}",
            f"Preset-Digest: {self.preset_digest}",
            f"Digest-Form: {self.form}",
        ]
        return join_lines((*lines, *map(str, self.parents)))


class Version(Record):
    """A released version: an annotated tag ``NAME/vX.Y.Z``.

    ``commit`` is the tag's target (possibly another tag). ``inner`` is the tag's internal name,
    ``pre`` the pre-release part.
    """

    name: str
    number: VersionNumber
    tag: str
    commit: str
    date: str = ""
    message: str = ""
    pre: str = ""
    inner: str = ""

    @property
    def text(self) -> VersionText:
        """The complete number."""
        return VersionText(self.number, self.pre)

    @property
    def number_text(self) -> str:
        """``1.2.0``."""
        return str(self.text)

    @property
    def tag_name(self) -> str:
        """``base/training/v1.2.0``; for the whole store ``v1.2.0``."""
        return f"{self.name}/v{self.text}" if self.name else f"v{self.text}"

    @property
    def record(self) -> ReleaseRecord:
        """The tag's record."""
        return parse_release_record(self.message)

    @property
    def digest(self) -> str:
        """The digest in the tag, or an empty string."""
        return self.record.digest

    @property
    def faults(self) -> list[str]:
        """The faults of the tag itself."""
        faults = []
        if self.inner not in ("", self.tag_name):
            faults.append(f"it is the tag {self.inner} under another name")
        return [*faults, *self.record.faults]


def parse_version_text(text: str) -> VersionText | None:
    """Return a complete number as users write it, ``1.2.0``, ``v1.2.0`` or ``2.0.0-rc.1``.

    None if it is invalid.
    """
    request = parse_version_request(text)
    if request is None or request.is_range:
        return None
    # a tag with zeros in front has another name, so that the number has one spelling only
    number = text.removeprefix("v").partition("-")[0]
    if number != ".".join(map(str, request.parts)):  # like 01.2.3
        return None
    major, minor, patch = request.parts
    return VersionText((major, minor, patch), request.pre)


def _parse_parts(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def parse_version_request(text: str) -> VersionRequest | None:
    """Return the version request of a text after an @; None if it can only be a revision."""
    if "-" not in text:  # the common case, without compiling a pattern
        parts = text.removeprefix("v").split(".")
        is_plain = len(parts) <= 3 and all(
            has_only_digits(part) and len(part) <= 9 for part in parts
        )
        return VersionRequest(tuple(map(int, parts))) if is_plain else None
    match = re.fullmatch(_PRE_RELEASE, text, re.ASCII)
    if match is None:
        return None
    return VersionRequest(_parse_parts(match["number"]), match["pre"])


def parse_tag_ref(ref: str, oid: str) -> TagRef | None:
    """Return a tag with the name of a version; None for all others."""
    # after a pre-release, the mark would be part of it: "1.2.0-rc.1.yanked"
    match = None if ref.endswith(YANKED) else re.fullmatch(_TAG, ref, re.ASCII)
    if match is None:
        return None
    major, minor, patch = _parse_parts(match["number"])
    return TagRef(match["name"], VersionText((major, minor, patch), match["pre"] or ""), oid)


def parse_tag_object(ref: TagRef, raw: bytes) -> Version:
    """Return the version of an annotated tag, from its git object."""
    head, _, message = decode_safely(raw).partition("\n\n")
    headers = dict(line.partition(" ")[::2] for line in head.split("\n"))
    tagger = re.search(_TAGGER, head, re.MULTILINE)
    return Version(
        name=ref.name,
        number=ref.text.number,
        tag=ref.oid,
        commit=headers.get("object", ""),
        date=format_tag_date(int(tagger["seconds"]), tagger["zone"]) if tagger else "",
        message=message.rstrip("\n"),
        pre=ref.text.pre,
        inner=headers.get("tag", ""),
    )


@cache
def parse_release_record(message: str) -> ReleaseRecord:
    """Return the record in a tag's message: its last paragraph with any facts."""
    lines = _find_record_lines(message)
    texts: dict[str, str] = {}
    parents = []
    targets = set()
    faults = []
    for name, text in lines:
        parent = _parse_parent(text) if name == "Parent" else None
        if parent:
            if (parent.view, parent.reference) in targets:
                faults.append(f"{parent.reference} is recorded twice")
            targets.add((parent.view, parent.reference))
            parents.append(parent)
        elif name == "Parent" or not re.fullmatch(_VALUES[name], text, re.ASCII):
            faults.append(f"{name}: {text!r} cannot be understood")
        elif texts.setdefault(name, text) != text:
            faults.append(f"{name} is recorded twice")
    form = int(texts["Digest-Form"]) if "Digest-Form" in texts else None
    if "Preset-Digest" in texts and form is None:
        faults.append("Digest-Form is missing")
    if "Preset-Digest" not in texts and (form is not None or parents):
        faults.append("Preset-Digest is missing")
    if lines and "Digest" not in texts:
        faults.append("Digest is missing")
    return ReleaseRecord(
        texts.get("Digest", ""),
        texts.get("Preset-Digest", ""),
        form,
        tuple(parents),
        tuple(dict.fromkeys(faults)),
    )


def _parse_parent(text: str) -> ParentRecord | None:
    match = re.fullmatch(_PARENT, text)
    if match is None:
        return None
    version = match["version"] if match["version"] != "-" else ""
    reference = match["reference"]
    if "%" in reference:
        from urllib.parse import unquote

        reference = unquote(reference)
    return ParentRecord(match["view"] or "", reference, version, match["commit"])


def _find_record_lines(message: str) -> list[tuple[str, str]]:
    """Return the facts, name and value, of the last paragraph of a message that has any.

    A signature may follow it.
    """
    # git appends the signature of a tag to its message
    unsigned = re.split(r"^-----BEGIN ", message, maxsplit=1, flags=re.MULTILINE)[0]
    for paragraph in reversed(re.split(r"\n[ \t]*\n", unsigned.replace("\r\n", "\n"))):
        matches = [re.fullmatch(_LINE, line) for line in paragraph.split("\n")]
        # other text may stand in the paragraph, such as trailers of git
        if any(matches):
            return [(match["name"], match["value"]) for match in matches if match]
    return []


def select_newest(refs: Iterable[TagRef], request: VersionRequest) -> list[TagRef]:
    """Return the tags that a request selects, newest first."""
    return sorted(
        (ref for ref in refs if request.accepts(ref.text)),
        key=attrgetter("text.order"),
        reverse=True,
    )


def format_tag_date(stamp: int, zone: str) -> str:
    """Return a time as ``2026-01-31T12:00:00+01:00``, in the author's time zone."""
    from datetime import datetime, timedelta, timezone

    minutes = int(zone[1:3]) * 60 + int(zone[3:5])  # of +HHMM or -HHMM
    if zone.startswith("-"):
        minutes = -minutes
    try:
        return datetime.fromtimestamp(stamp, timezone(timedelta(minutes=minutes))).isoformat()
    # a tag may have a year or a time zone that Python cannot represent
    except (OverflowError, ValueError, OSError):
        return str(stamp)


def is_version_tag(tag: str) -> bool:
    """Return whether a tag names a version: ``v2.1.0`` of a store, ``base/v2.1.0`` of a preset."""
    _, _, number = tag.rpartition("/")
    return number.startswith("v") and parse_version_text(number) is not None


class Bound(Record):
    """One condition of a range: an operator, and the written parts of the version."""

    operator: str
    parts: tuple[int, ...]
    pre: str

    @property
    def text(self) -> VersionText:
        """The version, with zeros for missing parts."""
        major, minor, patch = (*self.parts, 0, 0)[:3]
        return VersionText((major, minor, patch), self.pre)

    def _end(self) -> VersionText:
        """Return the first version after the span of the bound."""
        major, minor, patch = self.text.number
        is_caret = self.operator == "^"  # up to the next change of the first part that is not 0
        if len(self.parts) == 1 or (is_caret and major):
            return VersionText((major + 1, 0, 0))
        if is_caret and not minor and len(self.parts) == 3:
            return VersionText((0, 0, patch + 1))
        return VersionText((major, minor + 1, 0))

    def accepts(self, version: VersionText) -> bool:
        """Return whether a version satisfies the condition."""
        order, bound = version.order, self.text.order
        is_complete = len(self.parts) == 3
        if self.operator in ("^", "~") or (self.operator in ("", "=", "==") and not is_complete):
            return bound <= order < self._end().order
        if self.operator == ">" and not is_complete:  # beyond all versions with this prefix
            return order >= self._end().order
        if self.operator == "<=" and not is_complete:  # up to all versions with this prefix
            return order < self._end().order
        if order == bound:
            return self.operator not in (">", "<")
        return self.operator.startswith(">" if order > bound else "<")


class VersionRange(Record):
    """A range of versions: all its bounds must be satisfied; without bounds, every version is."""

    bounds: tuple[Bound, ...] = ()

    def accepts(self, version: VersionText) -> bool:
        """Return whether a version is in the range.

        A pre-release is only if a bound has the same number.
        """
        if version.pre:
            # ^1.2 must not select 1.3.0-rc.1, which nobody asked for
            numbers = [bound.text.number for bound in self.bounds if bound.pre]
            if version.number not in numbers:
                return False
        return all(bound.accepts(version) for bound in self.bounds)

    @property
    def is_fixed(self) -> bool:
        """Whether it selects exactly one version."""
        return any(
            bound.operator in ("", "=", "==") and len(bound.parts) == 3 for bound in self.bounds
        )


def parse_version_range(text: str) -> VersionRange | None:
    """Return a range parsed; None if it can only be a revision."""
    if text.strip() == "*":
        return VersionRange()
    bounds = []
    for part in text.split(","):
        match = re.fullmatch(_BOUND, part, re.ASCII)
        if match is None:
            return None
        parts, pre = _parse_parts(match["parts"]), match["pre"] or ""
        if pre:
            written = f"{'.'.join(map(str, parts))}-{pre}"
            if len(parts) < 3 or parse_version_text(written) is None:
                return None
        bounds.append(Bound(match["operator"], parts, pre))
    return VersionRange(tuple(bounds))
