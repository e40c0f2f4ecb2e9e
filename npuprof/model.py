"""Core records of all packages: origins, findings, contexts, steps, errors, hints.

They are records, not dataclasses: importing ``dataclasses`` alone takes as long as
``npuprof render`` spends after reading its files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache

#: True for type checkers, which go by the name: importing ``typing`` for it takes too long.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any as Any
    from typing import Protocol, Self, TypeAlias, dataclass_transform

    class SourceText(Protocol):
        """The text that values come from: name, path to cite, commit, and content."""

        name: str
        source: str
        text: str
        revision: str | None

        @property
        def data(self) -> Fields:
            """The content, parsed."""

        def locate_path(self, path: Path) -> tuple[int, int]:
            """Return line and column of a key or list element, from 1.

            (0, 0) if there is no text.
            """

        def locate_line(self, path: Path) -> int:
            """Return that line."""

else:
    #: The type of anything, for annotations, which are not evaluated.
    Any = object

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        """Return a decorator that changes nothing, in place of the one of ``typing``.

        Type checkers see the real one; importing ``typing`` takes too long.
        """
        return lambda decorated: decorated


#: The version of npuprof. It is defined here because the package itself exports the library, which
#: imports every other package.
__version__ = "0.2.0"

#: A key below a document or a setting: table keys as ``str``, list positions as ``int``.
Path = tuple["Any", ...]

#: A TOML value: string, number, boolean, date, list or table; and a table of such values.
TomlValue: TypeAlias = "Any"
TomlTable = dict[str, TomlValue]

#: Values by axis, such as those of the declared axes.
Axes = dict[str, tuple[str, ...]]
#: The fields of a record or of a JSON object by name.
Fields = dict[str, "Any"]


def _list_framework_sections() -> tuple[str, ...]:
    """Return the frameworks that presets have a section for, by name.

    They are the folders of ``catalog/frameworks`` with a section.
    """
    folder = os.path.join(os.path.dirname(__file__), "catalog", "frameworks")
    names = sorted(
        os.listdir(folder), key=lambda name: f"{name}~"
    )  # vllm_ascend before vllm: hints name the first that a text starts with
    return tuple(
        name for name in names if os.path.exists(os.path.join(folder, name, "section.toml"))
    )


#: Sections with a framework's own settings and names. Values are never converted between these
#: sections and others.
FRAMEWORK_SECTIONS = _list_framework_sections()
SECTIONS = ("options", "env", "estimator", "atc", *FRAMEWORK_SECTIONS)
#: The tables of changes to inherited lists, in the order in which a layer applies them.
LIST_OPS = ("remove", "append")
SCENARIOS = ("training", "online-inference", "offline-inference")
#: The maximum size of a command argument or ``NAME=value`` variable, in bytes: Linux rejects larger
#: ones.
LONGEST_WORD = 131_071
SEVERITIES = ("error", "warning", "info")
#: Codes of findings about variables whose export needs trust, the most serious first.
TRUST_CODES = ("NP605", "NP608", "NP606")


def is_utf8(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8: it has no lone surrogates."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def has_only_digits(text: str) -> bool:
    """Return whether a text consists of ASCII digits.

    Compiling a pattern for that takes too long.
    """
    return text.isascii() and text.isdigit()


def is_variable_name(text: str) -> bool:
    """Return whether any shell takes a text as the name of a variable."""
    return text.isascii() and text.isidentifier()


@dataclass_transform(frozen_default=True)
class Record:
    """A value with named fields, set by position or by name; class attributes are the defaults.

    A class with ``kw_only`` has no fields by position. Raises TypeError for unknown fields.

    Two records are equal if they have the same class and equal fields; ``1`` and ``true`` differ.
    Records are hashable even if their fields are not. Equal records have the same hash, also in
    another process after unpickling.
    """

    _fields: tuple[str, ...] = ()
    _positional: tuple[str, ...] = ()
    _known: frozenset[str] = frozenset()
    _required: frozenset[str] = frozenset()
    _least: int = 0  #: the smallest number of positional values that covers all required fields

    def __init_subclass__(cls, kw_only: bool = False) -> None:
        cls._fields = (*cls._fields, *cls.__annotations__)
        cls._positional = () if kw_only else cls._fields
        cls._known = frozenset(cls._fields)
        cls._required = frozenset(
            [name for name in (*cls._required, *cls.__annotations__) if name not in cls.__dict__]
        )
        cls._least = max(
            (place for place, name in enumerate(cls._fields, 1) if name in cls._required), default=0
        )

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self.__dict__
        fields.update(zip(self._positional, values))  # noqa: B905 - strict= takes longer
        if not named and self._least <= len(values) <= len(self._positional):  # the common case
            return
        fields.update(named)
        if (
            len(fields) != len(values) + len(named)
            or not self._required <= fields.keys() <= self._known
        ):
            raise TypeError(_explain_fields(type(self)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return False
        for name in self._fields:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not theirs and not is_same_typed_value(mine, theirs):
                return False
        return True

    def __hash__(self) -> int:
        return hash((type(self), *[_hash_value(getattr(self, name)) for name in self._fields]))

    def __repr__(self) -> str:
        fields = {
            name: value
            for name, value in self._asdict().items()
            if not is_same_typed_value(value, getattr(type(self), name, self))
        }
        arguments = [f"{name}={value!r}" for name, value in fields.items()]
        return f"{type(self).__name__}({', '.join(arguments)})"

    def _asdict(self) -> Fields:
        return {name: getattr(self, name) for name in self._fields}

    def _replace(self, **changes: Any) -> Self:
        if not changes.keys() <= self._known:
            raise TypeError(_explain_fields(type(self)))
        new = object.__new__(type(self))
        fields = new.__dict__
        fields.update(self.__dict__)
        fields.update(changes)
        return new


def _explain_fields(cls: type[Record]) -> str:
    return (
        f"{cls.__name__} takes {', '.join(cls._fields)}, and needs "
        f"{', '.join(sorted(cls._required)) or 'none of them'}"
    )


def is_same_typed_value(one: Any, other: Any) -> bool:
    """Return whether two values, of settings or fields, are equal at any depth.

    ``1`` and ``true`` differ, NaN equals NaN, and the class of a table or list does not matter.
    """
    if one is other:
        return True
    if type(one) is str:  # nearly all leaves
        return bool(one == other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            map(is_same_typed_value, one.values(), map(other.get, one))
        )
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        alike = isinstance(one, list) is isinstance(other, list) and len(one) == len(other)
        return alike and all(map(is_same_typed_value, one, other))
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return type(one) is type(other) and (one == other or (one != one and other != other))
    return bool(one == other)


def _hash_value(value: Any) -> int:
    """Return a hash that equal field values share.

    An unhashable value gets the hash of its type.
    """
    if isinstance(value, dict):
        return hash(frozenset((name, _hash_value(item)) for name, item in value.items()))
    if isinstance(value, (list, tuple)):
        return hash(tuple(map(_hash_value, value)))
    if value != value:
        return 0
    try:
        return hash(value)
    except TypeError:
        return hash(type(value).__name__)


class Origin(Record):
    """The origin of a value: a path inside a document, and its layer of that document.

    ``layer`` is ``values``, ``remove``, ``append``, ``unset``, ``override 2``, or ``command line``.
    Line and column are counted from 1, in characters, and computed on first use.
    """

    document: SourceText
    path: Path = ()
    layer: str = "values"

    @property
    def profile(self) -> str:
        """The name of the profile."""
        return self.document.name

    @property
    def file(self) -> str:
        """The path to cite, or ``--set`` on the command line, ``set`` in Python.

        At a revision, it is relative to the repository root.
        """
        return self.document.source

    @property
    def revision(self) -> str | None:
        """The full id of the commit the document was read at, or None for the working tree."""
        return self.document.revision

    @property
    def line(self) -> int:
        """The line, from 1; 0 if there is no text (the command line)."""
        return self.document.locate_line(self.path)

    @property
    def column(self) -> int:
        """The column, from 1; 0 if there is no text."""
        return self.document.locate_path(self.path)[1]

    def locate_below(self, *path: str | int) -> Origin:
        """Return the origin of a part of the value: at a path below it."""
        return Origin(self.document, (*self.path, *path), self.layer)

    def __repr__(self) -> str:
        return f"<Origin {self}, {self.layer} of {self.profile}>"

    def __str__(self) -> str:
        document = self.document
        line = document.locate_line(self.path)
        place = f"{document.source}:{line}" if line else document.source
        return f"{document.revision[:7]}:{place}" if document.revision else place


class Place(Record):
    """A place in a file. Line and column are counted from 1; 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0


class Fix(Record):
    """The edit of a safe hint: a new value for a setting, or a new ``name`` for its key."""

    value: TomlValue = None
    name: str = ""


#: Longer words, quoted texts and lists are cut in messages and hints; shorter ones may be a path or
#: a line to paste.
_LONGEST_IN_MESSAGE = 200
_LONGEST_IN_HINT = 2000
_LONGEST_IN_TALK = 400
_SHORTENED = 77
_LONGEST_TEXT = 6000


def shorten_values(text: str, longest: int = _LONGEST_IN_TALK) -> str:
    """Return a message with long words, quoted texts and bracketed lists cut.

    It ends after 6,000 characters.
    """
    if len(text) <= longest:
        return text
    return _cut_values(text, longest)


@lru_cache(256)  # a command that renders many presets builds the same messages again and again
def _cut_values(text: str, longest: int) -> str:
    more = f"{{{longest},}}"
    long_value = rf"""(?<!\w)"[^"]{more}"|(?<!\w)'[^']{more}'|\[[^\[\]]{more}\]|\S{more}"""
    text = re.sub(long_value, lambda match: match[0][:_SHORTENED] + "...", text)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


#: The fields of a likely finding: an error that is not certain is a warning.
LIKELY = {"severity": "warning", "certainty": "likely"}


class Finding(Record):
    """A problem that npuprof reports: what is wrong, where, why, and how to fix it.

    ``code`` is stable and has a page (``npuprof rule CODE``); ``severity`` is ``error``,
    ``warning`` or ``info``. ``profiles`` names the affected profiles, starting with the one that
    contains the fault. ``fix`` is the edit that the hint describes, if only one is possible.
    ``certainty`` is ``certain``, or ``likely`` if code or a release that is not known may make a
    script right. Long values in ``message``, ``why`` and ``hint`` are cut.
    """

    code: str
    message: str
    why: str = ""
    hint: str = ""
    origin: Origin | None = None
    key: str = ""
    profiles: tuple[str, ...] = ()
    where: Place | None = None
    severity: str = "error"
    fix: Fix | None = None
    certainty: str = "certain"

    if not TYPE_CHECKING:

        def __init__(self, *values: Any, **named: Any) -> None:
            super().__init__(*values, **named)
            self.__dict__.update(
                message=shorten_values(self.message, _LONGEST_IN_MESSAGE),
                why=shorten_values(self.why, _LONGEST_IN_HINT),
                hint=shorten_values(self.hint, _LONGEST_IN_HINT),
            )

    @property
    def path(self) -> str | None:
        """The file, or None."""
        if self.where:
            return self.where.file
        if self.origin is None:
            return None
        document = self.origin.document
        return (
            f"{document.revision[:7]}:{document.source}" if document.revision else document.source
        )

    @property
    def position(self) -> tuple[int, int]:
        """Line and column, from 1; 0 if unknown."""
        if self.where:
            return self.where.line, self.where.column
        return self.origin.document.locate_path(self.origin.path) if self.origin else (0, 0)

    @property
    def line(self) -> int:
        """The line, from 1; 0 if unknown."""
        return self.position[0]

    @property
    def column(self) -> int:
        """The column, from 1; 0 if unknown."""
        return self.position[1]

    @property
    def place(self) -> str:
        """The place as ``path:line:col``, without the parts that are unknown."""
        path = self.path
        return (
            ":".join([path, *(str(number) for number in self.position if number)]) if path else ""
        )

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.severity} {self.code}: {self.message}{hint}"


class Context(Record):
    """The context of a resolution: CANN release, product, render target, framework releases.

    None means any. ``newer`` are axes with the requested release, if that is newer than all known
    ones: the newest of these represents it. ``axes`` are the values of axes that npuprof.toml
    declares, sorted.
    """

    cann: str | None = None
    product: str | None = None
    target: str | None = None
    versions: tuple[tuple[str, str], ...] = ()
    newer: tuple[tuple[str, str], ...] = ()
    axes: tuple[tuple[str, str], ...] = ()

    def __hash__(self) -> int:  # faster than hashing all fields of a record
        return hash((self.cann, self.product, self.target, self.versions, self.newer, self.axes))

    def find_value(self, axis: str) -> str | None:
        """Return the requested value of an axis.

        It is CANN, the product, the target, a framework or a declared axis.
        """
        return dict((*self.versions, *self.axes)).get(axis) or {
            "cann": self.cann,
            "product": self.product,
            "target": self.target,
        }.get(axis)

    def list_named(self) -> dict[str, str]:
        """Return the requested releases by axis, CANN's first."""
        return ({"cann": self.cann} if self.cann else {}) | dict(self.versions)

    def describe(self) -> str:
        """Return the context without its target, ``any`` if nothing is requested.

        An example is ``cann 9.0.0, product atlas-a2, torch_npu 7.3.0``.
        """
        requested = ("cann", self.cann), ("product", self.product), *self.versions, *self.axes
        return ", ".join(f"{name} {value}" for name, value in requested if value) or "any"

    def build_fields(self) -> Fields:
        """Return the context as the fields of a JSON object."""
        tables = {name: dict(getattr(self, name)) for name in ("versions", "newer", "axes")}
        return {name: value for name, value in {**self._asdict(), **tables}.items() if value}


class Step:
    """One operation of a layer on a setting: ``op`` is ``set``, ``unset`` or of LIST_OPS.

    ``key`` is the full key (``precision_mode``, ``env.JOB_ID``), ``tail`` the path below it (unset
    only), ``path`` its path in the document.
    """

    __slots__ = ("key", "op", "path", "tail", "value")

    def __init__(
        self, op: str, key: str, value: Any, path: Path, tail: tuple[str, ...] = ()
    ) -> None:
        self.op = op
        self.key = key
        self.value = value
        self.path = path
        self.tail = tail

    def __reduce__(self) -> tuple[Any, ...]:
        return Step, (self.op, self.key, self.value, self.path, self.tail)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Step)
            and is_same_typed_value(self.__reduce__()[1], other.__reduce__()[1])
        )

    def __hash__(self) -> int:
        return hash((self.op, self.key, self.path, self.tail))

    def __repr__(self) -> str:
        return f"Step{self.__reduce__()[1]!r}"


class Event(Record):
    """A step that changed a setting, in resolution order."""

    step: Step
    origin: Origin


class NpuprofError(Exception):
    """An error that the user can fix, with its findings.

    ``findings`` lists every problem, each with its place and a hint; the text of the exception is
    their short form. Any other exception is a bug in npuprof.
    """

    def __init__(self, findings: Finding | Iterable[Finding]) -> None:
        super().__init__()
        self._given = (findings,) if isinstance(findings, Finding) else findings
        self._findings: tuple[Finding, ...] | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The problems, computed on first use because locating them takes time."""
        if self._findings is None:
            self._findings = tuple(_tell_once(self._given))
        return self._findings

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.findings,)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))

    def __repr__(self) -> str:
        return f"NpuprofError({str(self)!r})"


def raise_any(findings: Finding | Collection[Finding] | None) -> None:
    """Raise NpuprofError if there are findings."""
    if findings:
        raise NpuprofError(findings)


def select_errors(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that are errors."""
    return [finding for finding in findings if finding.severity == "error"]


def build_error(
    code: str,
    message: str,
    why: str = "",
    hint: str = "",
    origin: Origin | None = None,
    key: str = "",
    profiles: tuple[str, ...] = (),
    where: Place | None = None,
) -> NpuprofError:
    """Return an error with a single finding."""
    return NpuprofError(Finding(code, message, why, hint, origin, key, profiles, where))


def build_usage_error(message: str, hint: str, why: str = "") -> NpuprofError:
    """Return an error about the arguments of a command (NP902)."""
    return build_error("NP902", message, why, hint)


def _tell_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings without duplicates.

    Findings without a place, such as a missing source, are yielded once for all presets.
    """
    placeless = []
    for finding in findings:
        if finding.origin is None and finding.where is None:
            if finding in placeless:
                continue
            placeless.append(finding)
        yield finding


#: Longer words are not treated as misspelt names.
_LONGEST_NAME = 200
#: How many names are compared for all hints of one operation; nobody reads the hints of thousands
#: of typos.
_HINT_BUDGET = 100_000
_hint_budget = _HINT_BUDGET

#: The lowest ratio of ``difflib.SequenceMatcher`` at which names resemble each other.
_LIKENESS = 0.72


class _NameIndex:
    """An index of names in lower case.

    The characters of each name are bits: one for the first ``a``, one for the second, and so on.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names: dict[str, str] = {}
        for name in names:
            if len(name) <= _LONGEST_NAME:
                self.names.setdefault(name.lower(), name)
        self._bits: dict[tuple[str, int], int] = {}
        self._marks = [(name, self._collect_bits(name, True)) for name in self.names]

    def rank_candidates(self, word: str) -> list[tuple[float, str]]:
        """Return names that share enough characters with a word, the most alike ones first.

        Before each is its ratio of ``difflib.SequenceMatcher`` if characters had no order, which
        is never below the true one.
        """
        word_bits = self._collect_bits(word, False)
        ranked = [
            (ratio, name)
            for name, bits in self._marks
            if (ratio := 2 * (bits & word_bits).bit_count() / (len(name) + len(word))) >= _LIKENESS
        ]
        return sorted(ranked, reverse=True)

    def _collect_bits(self, text: str, is_indexed: bool) -> int:
        """Return the characters of a text as bits.

        Characters of no name get a bit only for an indexed text.
        """
        mask, counts = 0, dict[str, int]()
        for char in text:
            counts[char] = count = counts.get(char, 0) + 1
            if is_indexed:
                bit: int | None = self._bits.setdefault((char, count), len(self._bits))
            else:
                bit = self._bits.get((char, count))
            if bit is not None:
                mask |= 1 << bit
        return mask


@lru_cache(16)
def _index_names(names: tuple[str, ...]) -> _NameIndex:
    return _NameIndex(names)


def find_nearest_names(
    word: str, names: Iterable[str], count: int = 3, likeness: float = _LIKENESS
) -> list[str]:
    """Return up to ``count`` of ``names`` that resemble ``word``, best match first.

    ``likeness`` is the lowest ratio, at least the usual one. Letter case counts little.
    """
    if not 0 < len(word) <= _LONGEST_NAME:
        return []
    index = _index_names(tuple(names))
    word = word.lower()
    candidates = index.rank_candidates(word)
    if not candidates:
        return []
    from difflib import SequenceMatcher

    found = [(likeness, "")] * count
    matcher = SequenceMatcher(b=word)
    for highest, name in candidates:
        if highest < found[-1][0]:
            break
        matcher.set_seq1(name)
        found = sorted([*found, (matcher.ratio(), name)], reverse=True)[:count]
    return [index.names[name] for _, name in found if name]


def find_change_kind(before: Any, after: Any) -> str:
    """Return the kind of a change between two values, None if unset."""
    if before is None:
        return "added"
    return "removed" if after is None else "changed"


def suggest_name(word: str, names: Iterable[str], otherwise: str) -> tuple[str, Fix | None]:
    """Return the did-you-mean hint for a name, and a fix if only its spelling differs.

    Spelling is case, dashes and underscores.
    """
    known = tuple(names)
    plain = _fold_name(word)
    same = [name for name in known if _fold_name(name) == plain]
    if len(same) == 1 and same[0] != word:
        return f"write {same[0]}", Fix(None, same[0])
    return did_you_mean(word, known, otherwise), None


def _fold_name(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def did_you_mean(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """Return ``did you mean 'a' or 'b'?``, or ``otherwise`` if no name is similar.

    It is also returned if the comparison budget is spent.
    """
    global _hint_budget
    known = tuple(names) if _hint_budget > 0 else ()
    _hint_budget -= len(known)
    similar = find_nearest_names(word, known)
    return f"did you mean {' or '.join(repr(name) for name in similar)}?" if similar else otherwise


#: Reads that failed since the start of the command, by message: a command that goes on without them
#: reports them.
failed_reads: dict[str, Finding] = {}


def fail_read(finding: Finding) -> NpuprofError:
    """Return the error for a read that failed, to be raised.

    If it is caught, the command reports it as a warning.
    """
    failed_reads[finding.message] = finding
    return NpuprofError(finding)


def renew_hints() -> None:
    """Reset the comparison budget of hints.

    A command starts with it, and so does each preset that is read or checked.
    """
    global _hint_budget
    _hint_budget = _HINT_BUDGET
