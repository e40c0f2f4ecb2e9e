"""Released versions: their numbers, and the content of their annotated tags ``NAME/vX.Y.Z``.

The last paragraph of a tag's message is its record, one fact per line::

    Digest: HEX                           of the effective values without a selected context
    Preset-Digest: HEX                    of the layers with all their overrides
    Digest-Form: 2                        the number of the form of both
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

from npuprof.model import Record, has_only_digits

# Strings, compiled on first use: many commands import this, few read versions.
_PART = r"(0|[1-9]\d{0,8})"

_WORD = r"(?:0|[1-9]\d{0,17}|\d*[A-Za-z-][0-9A-Za-z-]*)"

_PRE = rf"(?:-({_WORD}(?:\.{_WORD})*))?"

_ASKED = rf"v?(\d{{1,9}})(?:\.(\d{{1,9}})(?:\.(\d{{1,9}}){_PRE})?)?"

_TAG = rf"refs/tags/(.+)/v{_PART}\.{_PART}\.{_PART}{_PRE}"

_TAGGER = r"^tagger .*> (-?\d{1,18}) ([+-]\d{4})$"

_LINE = r"(Digest|Preset-Digest|Digest-Form|Parent):[ \t]*(.*?)[ \t]*"

_HEX = r"[0-9a-f]{64}"

_BOUND = r"\s*(\^|~|>=|<=|==|=|>|<|)\s*v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z.-]+))?\s*"

_PARENT = r"(\S+[@:]\S+) (\S+) ([0-9a-f]{40}|[0-9a-f]{64})(?: by (\S+@\S+))?"

#: The suffix of a tag that marks the version before it as yanked: ``base/v1.2.0.yanked``.
YANKED = ".yanked"

#: The number of a released version without its pre-release part: 1.2.0.
VersionNumber = tuple[int, int, int]

#: The sort key of versions by semantic versioning: a pre-release comes before its release.
VersionOrder = tuple[VersionNumber, bool, tuple[tuple[bool, int, str], ...]]


class VersionText(Record):
    """A complete number as written: ``1.2.0``, or a pre-release ``2.0.0-rc.1``."""

    number: VersionNumber
    pre: str = ""

    @property
    def order(self) -> VersionOrder:
        """The sort key."""
        words = self.pre.split(".") if self.pre else []
        return (
            self.number,
            not self.pre,
            tuple((not word.isdigit(), int(word) if word.isdigit() else 0, word) for word in words),
        )

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
        return self.reference.partition("@")[0]

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
    """The record of a tag; missing facts are empty strings and None.

    ``faults`` are invalid lines.
    """

    digest: str = ""
    preset_digest: str = ""
    form: int | None = None
    parents: tuple[ParentRecord, ...] = ()
    faults: tuple[str, ...] = ()

    def find_parent(self, view: str, reference: str) -> ParentRecord | None:
        """Return the target of a reference at the release, seen from a view.

        None if it is not recorded.
        """
        return next(
            (
                parent
                for parent in self.parents
                if (parent.view, parent.reference) == (view, reference)
            ),
            None,
        )

    def __str__(self) -> str:
        lines = [
            f"Digest: {self.digest}",
            f"Preset-Digest: {self.preset_digest}",
            f"Digest-Form: {self.form}",
        ]
        return "".join(f"{line}\n" for line in (*lines, *map(str, self.parents)))


class Version(Record):
    """A released version: an annotated tag ``NAME/vX.Y.Z``.

    ``commit`` is the tag's target (possibly another tag).

    ``inner`` is the tag's internal name, ``pre`` the pre-release part.
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
        renamed = (
            [f"it is the tag {self.inner} under another name"]
            if self.inner not in ("", self.tag_name)
            else []
        )
        return [*renamed, *self.record.faults]


def parse_version_text(text: str) -> VersionText | None:
    """Return a complete number as users write it, ``1.2.0``, ``v1.2.0`` or ``2.0.0-rc.1``.

    None if it is invalid.
    """
    request = parse_version_request(text)
    number = text.removeprefix("v").partition("-")[0]
    if (
        request is None or request.is_range or number != ".".join(map(str, request.parts))
    ):  # 01 is no number
        return None
    major, minor, patch = request.parts
    return VersionText((major, minor, patch), request.pre)


def parse_version_request(text: str) -> VersionRequest | None:
    """Return the version request of a text after an @; None if it can only be a revision."""
    if "-" not in text:
        parts = text.removeprefix("v").split(".")
        is_plain = len(parts) <= 3 and all(
            has_only_digits(part) and len(part) <= 9 for part in parts
        )
        return VersionRequest(tuple(map(int, parts))) if is_plain else None
    match = re.fullmatch(_ASKED, text, re.ASCII)
    return (
        VersionRequest(
            tuple(int(part) for part in match.groups()[:3] if part is not None), match[4] or ""
        )
        if match
        else None
    )


def parse_tag_ref(ref: str, oid: str) -> TagRef | None:
    """Return a tag with the name of a version; None for all others."""
    match = None if ref.endswith(YANKED) else re.fullmatch(_TAG, ref, re.ASCII)
    return (
        TagRef(
            match[1],
            VersionText((int(match[2]), int(match[3]), int(match[4])), match[5] or ""),
            oid,
        )
        if match
        else None
    )


def parse_tag_object(ref: TagRef, raw: bytes) -> Version:
    """Return the version of an annotated tag, from its git object."""
    head, _, message = raw.decode(errors="replace").partition("\n\n")
    fields = dict(line.partition(" ")[::2] for line in head.split("\n"))
    tagger = re.search(_TAGGER, head, re.MULTILINE)
    date = format_tag_date(int(tagger[1]), tagger[2]) if tagger else ""
    commit, name = fields.get("object", ""), fields.get("tag", "")
    return Version(
        ref.name, ref.text.number, ref.oid, commit, date, message.rstrip("\n"), ref.text.pre, name
    )


@cache
def parse_release_record(message: str) -> ReleaseRecord:
    """Return the record in a tag's message: its last paragraph with any facts."""
    unsigned = re.split(r"^-----BEGIN ", message, maxsplit=1, flags=re.MULTILINE)[0]
    paragraphs = re.split(r"\n[ \t]*\n", unsigned.replace("\r\n", "\n"))
    lines = next(
        (
            record_lines
            for part in reversed(paragraphs)
            if (record_lines := _find_record_lines(part))
        ),
        [],
    )
    texts: dict[str, str] = {}
    parents: list[ParentRecord] = []
    faults: list[str] = []
    for name, text in lines:
        parent = re.fullmatch(_PARENT, text) if name == "Parent" else None
        fits = {"Parent": parent, "Digest-Form": re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII)}.get(
            name, re.fullmatch(_HEX, text)
        )
        if not fits:
            faults.append(f"{name}: {text!r} cannot be understood")
        elif parent:
            record = ParentRecord(
                parent[4] or "",
                _unquote(parent[1]),
                parent[2] if parent[2] != "-" else "",
                parent[3],
            )
            if any(
                (known.view, known.reference) == (record.view, record.reference)
                for known in parents
            ):
                faults.append(f"{record.reference} is recorded twice")
            parents.append(record)
        elif texts.setdefault(name, text) != text:
            faults.append(f"{name} is recorded twice")
    form = int(texts["Digest-Form"]) if "Digest-Form" in texts else None
    if texts.get("Preset-Digest") and form is None:
        faults.append("Digest-Form is missing")
    if not texts.get("Preset-Digest") and (form is not None or parents):
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


def _unquote(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)


def _find_record_lines(paragraph: str) -> list[tuple[str, str]]:
    return [
        (match[1], match[2])
        for line in paragraph.split("\n")
        if (match := re.fullmatch(_LINE, line))
    ]


def select_newest(refs: Iterable[TagRef], request: VersionRequest) -> list[TagRef]:
    """Return the tags that a request selects, newest first."""
    return sorted(
        (ref for ref in refs if request.accepts(ref.text)),
        key=lambda ref: ref.text.order,
        reverse=True,
    )


def format_tag_date(stamp: int, zone: str) -> str:
    """Return a time as ``2026-01-31T12:00:00+01:00``, in the author's time zone."""
    from datetime import datetime, timedelta, timezone

    minutes = int(f"{zone[0]}1") * (int(zone[1:3]) * 60 + int(zone[3:5]))
    try:
        return datetime.fromtimestamp(stamp, timezone(timedelta(minutes=minutes))).isoformat()
    except (OverflowError, ValueError, OSError):
        return str(stamp)


def is_version_tag(tag: str) -> bool:
    """Return whether a tag names a version: ``v2.1.0`` of a whole store,
    ``base/v2.1.0`` of a preset.
    """
    number = tag.rpartition("/")[2]
    return number.startswith("v") and parse_version_text(number) is not None


class Bound(Record):
    """One condition of a range: an operator, and the written parts of the version."""

    operator: str
    parts: tuple[int, ...]
    pre: str = ""

    @property
    def text(self) -> VersionText:
        """The version, with zeros for missing parts."""
        major, minor, patch = (*self.parts, 0, 0)[:3]
        return VersionText((major, minor, patch), self.pre)

    def _end(self) -> VersionText:
        """Return the first version after the span of the bound."""
        major, minor, patch = self.text.number
        count = len(self.parts)
        if self.operator == "^":
            if major or count == 1:
                return VersionText((major + 1, 0, 0))
            return (
                VersionText((0, minor + 1, 0))
                if minor or count == 2
                else VersionText((0, 0, patch + 1))
            )
        count = min(count, 2) if self.operator == "~" else count
        return VersionText((major + 1, 0, 0)) if count == 1 else VersionText((major, minor + 1, 0))

    def accepts(self, version: VersionText) -> bool:
        """Return whether a version satisfies the condition."""
        order, here = version.order, self.text.order
        is_whole = len(self.parts) == 3
        if self.operator in ("^", "~") or (self.operator in ("", "=", "==") and not is_whole):
            return here <= order < self._end().order
        if (
            self.operator in (">", "<=") and not is_whole
        ):  # beyond, or up to, all versions with this prefix
            return (order >= self._end().order) == (self.operator == ">")
        if order == here:
            return self.operator not in (">", "<")
        return self.operator.startswith(">" if order > here else "<")


class VersionRange(Record):
    """A range of versions: all its bounds must be satisfied; without bounds, every version is."""

    bounds: tuple[Bound, ...] = ()

    def accepts(self, version: VersionText) -> bool:
        """Return whether a version is in the range.

        A pre-release is only if a bound has the same number.
        """
        if version.pre and not any(
            bound.pre and bound.text.number == version.number for bound in self.bounds
        ):
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
        parts = tuple(int(number) for number in match.groups()[1:4] if number is not None)
        written = f"{'.'.join(map(str, (*parts, 0, 0)[:3]))}-{match[5]}"
        if match[5] and (len(parts) < 3 or parse_version_text(written) is None):
            return None
        bounds.append(Bound(match[1], parts, match[5] or ""))
    return VersionRange(tuple(bounds))
