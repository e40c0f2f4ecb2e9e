"""The nouns that cross module borders: where a value stands, who set it, what is wrong with it, and what was meant.

They are records, not dataclasses: importing ``dataclasses`` alone costs as much as everything
that ``npuprof render`` does after it has read its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Protocol, Self, dataclass_transform

TYPE_CHECKING = False
if TYPE_CHECKING:

    class SourceText(Protocol):
        """A text that values come from: its name, the path to cite, the commit it was read at, what it holds."""

        name: str
        source: str
        text: str
        data: dict[str, Any]
        revision: str | None

        def locate_path(self, path: Path) -> tuple[int, int]:
            """Return line and column of a key or list element, from 1; (0, 0) where there is no text."""


#: The version of npuprof. It stands here because the package itself offers the library, which lies above all other rooms.
__version__ = "0.2.0"

#: A key below a document or a setting: table keys as ``str``, list positions as ``int``.
Path = tuple[Any, ...]

#: A value as TOML holds it: text, a number, a truth value, a date, a list or a table; and a table of such values.
TomlValue = Any
TomlTable = dict[str, TomlValue]

#: Sections of a framework's own settings, by its own names; nothing is converted between them and others.
FRAMEWORK_SECTIONS = ("torch_npu", "vllm_ascend", "vllm")
SECTIONS = ("options", "env", "estimator", "atc", *FRAMEWORK_SECTIONS)
SCENARIOS = ("training", "online-inference", "offline-inference")
#: How many bytes an argument of a command or a variable of the environment may have, its name included: Linux starts no program with more.
LONGEST_WORD = 131_071
SEVERITIES = ("error", "warning", "info")


def is_utf8(text: str) -> bool:
    """Return whether a text can be written as UTF-8: it holds no half of a character, and no byte that was none."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


@dataclass_transform(frozen_default=True)
class Record:
    """A value with named fields, given by position or by name; class attributes are the defaults. Raises TypeError for any other fields.

    Two records are equal when they are of one class and all their fields are, ``1`` and ``true`` being two values. A record can be
    hashed whatever it holds: equal ones have one hash, in this process and in another they were pickled for.
    """

    _fields: tuple[str, ...] = ()
    _required: frozenset[str] = frozenset()
    _least: int = 0  #: how many values have all that is required among them

    def __init_subclass__(cls) -> None:
        cls._fields = (*cls._fields, *cls.__annotations__)
        cls._required = frozenset(cls._fields).difference(*(base.__dict__ for base in cls.__mro__))
        cls._least = max((place for place, name in enumerate(cls._fields, 1) if name in cls._required), default=0)

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self.__dict__
        fields.update(zip(self._fields, values))  # noqa: B905 - saying so doubles what most records take to make
        if not named and self._least <= len(values) <= len(self._fields):  # as most are made
            return
        fields.update(named)
        if len(fields) != len(values) + len(named) or not self._required <= fields.keys() <= {*self._fields}:
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
            if mine is not theirs and not _is_same_value(mine, theirs):
                return False
        return True

    def __hash__(self) -> int:
        return hash((type(self), *[_hash_value(getattr(self, name)) for name in self._fields]))

    def __repr__(self) -> str:
        fields = {name: value for name, value in self._asdict().items() if value is not getattr(type(self), name, self)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields.items())})"

    def _asdict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}

    def _replace(self, **changes: Any) -> Self:
        if not changes.keys() <= {*self._fields}:
            raise TypeError(_explain_fields(type(self)))
        new = object.__new__(type(self))
        new.__dict__.update({**self.__dict__, **changes})
        return new


def _explain_fields(cls: type[Record]) -> str:
    return f"{cls.__name__} takes {', '.join(cls._fields)}, and needs {', '.join(sorted(cls._required)) or 'none of them'}"


def _is_same_value(one: Any, other: Any) -> bool:
    """Return whether two values of fields are the same: typed, at any depth, and no number is the same as no number."""
    if isinstance(one, (bool, int, float)) and isinstance(other, (bool, int, float)):
        return type(one) is type(other) and (one == other or (one != one and other != other))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        alike = isinstance(one, list) is isinstance(other, list) and len(one) == len(other)
        return alike and all(map(_is_same_value, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same_value(value, other[name]) for name, value in one.items())
    return bool(one == other)


def _hash_value(value: Any) -> int:
    """Return a hash that values have in common which are the same; what cannot be hashed has that of its kind."""
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
    """Who set a value: a path inside a document, and the layer of that document it belongs to.

    ``layer`` is ``values``, ``append``, ``unset``, ``override 2``, or ``command line``. Line and column are
    counted from 1, in characters, and found only when somebody asks.
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
        """The path to cite, or ``--set``, in Python ``set``; at a revision from the top of the repository."""
        return self.document.source

    @property
    def revision(self) -> str | None:
        """The full id of the commit the document was read at, or None for the working tree."""
        return self.document.revision

    @property
    def line(self) -> int:
        """The line, from 1; 0 where there is no text (the command line)."""
        return self.document.locate_path(self.path)[0]

    @property
    def column(self) -> int:
        """The column, from 1; 0 where there is no text."""
        return self.document.locate_path(self.path)[1]

    def __repr__(self) -> str:
        return f"<Origin {self}, {self.layer} of {self.profile}>"

    def __str__(self) -> str:
        line = self.line
        place = f"{self.file}:{line}" if line else self.file
        return f"{self.revision[:7]}:{place}" if self.revision else place


class Place(Record):
    """Where something stands in a file; line and column are counted from 1, 0 where there is none."""

    file: str
    line: int = 0
    column: int = 0


class Fix(Record):
    """The change that a hint is certain of: another value for what a finding points at, or another ``name`` for its key."""

    value: TomlValue = None
    name: str = ""


#: Longer words, quoted texts and lists in a message or a hint are cut; shorter ones may be a path, or a line to be pasted.
_LONGEST_IN_MESSAGE = 200
_LONGEST_IN_HINT = 2000
_LONGEST_IN_TALK = 400
_SHORTENED = 77
_LONGEST_TEXT = 6000


def shorten_values(text: str, longest: int = _LONGEST_IN_TALK) -> str:
    """Return a message with long values cut to their first characters: words, quoted texts, lists in brackets, and all after 6,000."""
    if len(text) <= longest:
        return text
    long_value = rf"""(?<!\w)"[^"]{{{longest},}}"|(?<!\w)'[^']{{{longest},}}'|\[[^\[\]]{{{longest},}}\]|\S{{{longest},}}"""
    text = re.sub(long_value, lambda match: match[0][:_SHORTENED] + "...", text)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


class Finding(Record):
    """One thing wrong or doubtful: what, where, why, and what to try.

    ``code`` is stable and has a page (``npuprof rule CODE``); ``severity`` is ``error``, ``warning`` or ``info``.
    ``profiles`` names the profiles that show the fault, the one that wrote it first; ``fix`` is what the hint says, where that
    can only be meant. Long values in ``message``, ``why`` and ``hint`` are cut.
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

    def __init__(
        self, code: str, message: str, why: str = "", hint: str = "", origin: Origin | None = None, key: str = "",
        profiles: tuple[str, ...] = (), where: Place | None = None, severity: str = "error", fix: Fix | None = None,
    ) -> None:  # fmt: skip
        message, why = shorten_values(message, _LONGEST_IN_MESSAGE), shorten_values(why, _LONGEST_IN_HINT)
        super().__init__(code, message, why, shorten_values(hint, _LONGEST_IN_HINT), origin, key, profiles, where, severity, fix)

    @property
    def path(self) -> str | None:
        """The file, or None."""
        if self.where:
            return self.where.file
        if self.origin is None:
            return None
        revision = self.origin.revision
        return f"{revision[:7]}:{self.origin.file}" if revision else self.origin.file

    @property
    def position(self) -> tuple[int, int]:
        """Line and column, from 1; 0 where there is none."""
        if self.where:
            return self.where.line, self.where.column
        return self.origin.document.locate_path(self.origin.path) if self.origin else (0, 0)

    @property
    def line(self) -> int:
        """The line, from 1; 0 where there is none."""
        return self.position[0]

    @property
    def column(self) -> int:
        """The column, from 1; 0 where there is none."""
        return self.position[1]

    @property
    def place(self) -> str:
        """``path:line:col``, as much of it as there is."""
        path = self.path
        return ":".join([path, *(str(number) for number in self.position if number)]) if path else ""

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.severity} {self.code}: {self.message}{hint}"


class Context(Record):
    """What a resolution is asked for: a CANN release, a product, a render target, releases of frameworks. None means not asked."""

    cann: str | None = None
    product: str | None = None
    target: str | None = None
    versions: tuple[tuple[str, str], ...] = ()

    def find_value(self, axis: str) -> str | None:
        """Return what is asked for on an axis: ``cann``, ``product``, ``target`` or a framework."""
        return dict(self.versions).get(axis) or {"cann": self.cann, "product": self.product, "target": self.target}.get(axis)

    def describe(self) -> str:
        """Return what was asked for beside the target: ``cann 9.0.0, product atlas-a2, torch_npu 7.3.0``, or ``any``."""
        asked = ("cann", self.cann), ("product", self.product), *self.versions
        return ", ".join(f"{name} {value}" for name, value in asked if value) or "any"

    def build_fields(self) -> dict[str, Any]:
        """Return what was asked for as the fields of a JSON object."""
        fields = {**self._asdict(), "versions": dict(self.versions)}
        return {name: value for name, value in fields.items() if value}


class Step:
    """One thing a layer does to a setting: ``op`` is ``set``, ``append`` or ``unset``.

    ``key`` is the full key (``precision_mode``, ``env.JOB_ID``), ``tail`` the path below it (unset only),
    ``path`` where it stands in the document.
    """

    __slots__ = ("key", "op", "path", "tail", "value")

    def __init__(self, op: str, key: str, value: Any, path: Path, tail: tuple[str, ...] = ()) -> None:
        self.op = op
        self.key = key
        self.value = value
        self.path = path
        self.tail = tail

    def __reduce__(self) -> tuple[Any, ...]:
        return Step, (self.op, self.key, self.value, self.path, self.tail)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Step) and _is_same_value(self.__reduce__()[1], other.__reduce__()[1]))

    def __hash__(self) -> int:
        return hash((self.op, self.key, self.path, self.tail))

    def __repr__(self) -> str:
        return f"Step{self.__reduce__()[1]!r}"


class Event(Record):
    """One step that touched a setting, in the order of resolution."""

    step: Step
    origin: Origin


class NpuprofError(Exception):
    """npuprof could not answer, and the user can do something about it.

    ``findings`` holds every problem met, each with its place and a repair; the text of the exception is
    their short form. Everything else that is raised is a bug in npuprof.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        super().__init__()
        self._given = findings
        self._findings: tuple[Finding, ...] | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The problems; worked out when somebody asks, as their places take time to find."""
        if self._findings is None:
            self._findings = tuple(_tell_once(self._given))
        return self._findings

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.findings,)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))

    def __repr__(self) -> str:
        return f"NpuprofError({str(self)!r})"


def _tell_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings; those that are about no place, as that a source is not here, are one however many presets ran into it."""
    placeless: list[Finding] = []
    for finding in findings:
        if finding.origin is None and finding.where is None:
            if finding in placeless:
                continue
            placeless.append(finding)
        yield finding


#: Longer words are no slips of a name.
_LONGEST_NAME = 200
#: How many names are compared for the hints of one piece of work; whoever reads thousands of slips looks at the first of them.
_HINT_BUDGET = 100_000
_hint_budget = _HINT_BUDGET


class _NameIndex:
    """Names in lower case with the characters of each as bits, one for the first ``a``, one for the second, and so on."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names: dict[str, str] = {}
        for name in names:
            if len(name) <= _LONGEST_NAME:
                self.names.setdefault(name.lower(), name)
        self._bits: dict[tuple[str, int], int] = {}
        self._marks = sorted((len(name), name, self._collect_bits(name, True)) for name in self.names)

    def list_candidates(self, word: str, likeness: float) -> list[str]:
        """Return the names that have enough characters in common with a word, in whatever order."""
        from bisect import bisect_left

        size, mark = len(word), self._collect_bits(word, False)
        bounds = size * likeness / (2 - likeness), size * (2 - likeness) / likeness  # whatever the characters are
        first, last = bisect_left(self._marks, (int(bounds[0]),)), bisect_left(self._marks, (int(bounds[1]) + 1,))
        return [
            name for length, name, bits in self._marks[first:last] if 2 * (bits & mark).bit_count() >= likeness * (length + size)
        ]  # fmt: skip

    def _collect_bits(self, text: str, new: bool) -> int:
        mask, counts = 0, dict[str, int]()
        for char in text:
            counts[char] = count = counts.get(char, 0) + 1
            bit = self._bits.setdefault((char, count), len(self._bits)) if new else self._bits.get((char, count))
            if bit is not None:
                mask |= 1 << bit
        return mask


@lru_cache(16)
def _index_names(names: tuple[str, ...]) -> _NameIndex:
    return _NameIndex(names)


def find_nearest_names(word: str, names: Iterable[str], count: int = 3, likeness: float = 0.72) -> list[str]:
    """Return up to ``count`` of ``names`` that look like ``word``, nearest first; case counts for little.

    ``likeness``, up to 1, says how near is near: as ``difflib.SequenceMatcher.ratio`` counts.
    """
    if len(word) > _LONGEST_NAME:
        return []
    index = _index_names(tuple(names))
    candidates = index.list_candidates(word.lower(), likeness)
    if not candidates:
        return []
    import difflib

    return [index.names[match] for match in difflib.get_close_matches(word.lower(), candidates, count, likeness)]


def suggest_name(word: str, names: Iterable[str], otherwise: str = "") -> tuple[str, Fix | None]:
    """Return the hint that says which name was meant, and the change it is where the two differ in case, dashes and underlines only."""
    known = tuple(names)
    same = find_same_name(word, known)
    return (f"write {same}", Fix(None, same)) if same else (did_you_mean(word, known, otherwise), None)


def find_same_name(word: str, names: Iterable[str]) -> str:
    """Return the one name that differs in case, dashes and underlines only, else an empty text."""
    plain = _fold_name(word)
    same = [name for name in names if _fold_name(name) == plain]
    return same[0] if len(same) == 1 and same[0] != word else ""


def _fold_name(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def did_you_mean(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """Return ``did you mean 'a' or 'b'?``, or ``otherwise`` where nothing is near, or enough names have been compared."""
    global _hint_budget
    known = tuple(names) if _hint_budget > 0 else ()
    _hint_budget -= len(known)
    similar = find_nearest_names(word, known)
    return f"did you mean {' or '.join(repr(name) for name in similar)}?" if similar else otherwise


def renew_hints() -> None:
    """Begin a piece of work that may compare names for its hints anew: a command, a preset that is read or judged."""
    global _hint_budget
    _hint_budget = _HINT_BUDGET
