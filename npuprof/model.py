"""The nouns that cross module borders: where a value stands, who set it, and what is wrong with it.

They are records, not dataclasses: importing ``dataclasses`` alone costs as much as everything
that ``npuprof render`` does after it has read its files.
"""

from __future__ import annotations

from typing import Any

from npuprof.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document import Document

#: A key below a document or a setting: table keys as ``str``, list positions as ``int``.
Path = tuple[Any, ...]

SECTIONS = ("options", "env", "estimator", "atc")
SCENARIOS = ("training", "online-inference", "offline-inference")
SEVERITIES = ("error", "warning", "info")


class Origin(Record):
    """Who set a value: a path inside a document, and the layer of that document it belongs to.

    ``layer`` is ``values``, ``append``, ``unset``, ``override 2``, or ``command line``. Line and column are
    counted from 1, in characters, and found only when somebody asks.
    """

    document: Document
    path: Path = ()
    layer: str = "values"

    @property
    def profile(self) -> str:
        """The name of the profile."""
        return self.document.name

    @property
    def file(self) -> str:
        """The path to cite, or ``--set``; at a revision from the top of the repository."""
        return self.document.source

    @property
    def revision(self) -> str | None:
        """The full id of the commit the document was read at, or None for the working tree."""
        return self.document.revision

    @property
    def line(self) -> int:
        """The line, from 1; 0 where there is no text (the command line)."""
        return self.document.position(self.path)[0]

    @property
    def column(self) -> int:
        """The column, from 1; 0 where there is no text."""
        return self.document.position(self.path)[1]

    def __str__(self) -> str:
        line = self.line
        place = f"{self.file}:{line}" if line else self.file
        return f"{self.revision[:7]}:{place}" if self.revision else place


class Finding(Record):
    """One thing wrong or doubtful: what, where, why, and what to try.

    ``code`` is stable and has a page (``npuprof rule CODE``). ``profiles`` names the profiles that show the
    fault, the one that wrote it first.
    """

    code: str
    severity: str
    message: str
    why: str = ""
    hint: str = ""
    origin: Origin | None = None
    key: str = ""
    profiles: tuple[str, ...] = ()
    where: tuple[str, int, int] | None = None

    @property
    def path(self) -> str | None:
        """The file, or None."""
        if self.where:
            return self.where[0]
        if self.origin is None:
            return None
        revision = self.origin.revision
        return f"{revision[:7]}:{self.origin.file}" if revision else self.origin.file

    @property
    def line(self) -> int:
        """The line, from 1; 0 where there is none."""
        if self.where:
            return self.where[1]
        return self.origin.line if self.origin else 0

    @property
    def column(self) -> int:
        """The column, from 1; 0 where there is none."""
        if self.where:
            return self.where[2]
        return self.origin.column if self.origin else 0

    @property
    def place(self) -> str:
        """``path:line:col``, as much of it as there is."""
        parts = [self.path or "", *(str(n) for n in (self.line, self.column) if n)]
        return ":".join(parts) if self.path else ""

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.severity} {self.code}: {self.message}{hint}"


class Context(Record):
    """What a resolution is asked for: a CANN release, a product, a render target. None means not asked."""

    cann: str | None = None
    product: str | None = None
    target: str | None = None


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


class Event(Record):
    """One step that touched a setting, in the order of resolution."""

    step: Step
    origin: Origin
