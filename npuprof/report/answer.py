"""What a verb found, as a value: how each format writes it, what is said beside it, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from npuprof.model import Finding, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from npuprof.report.tables import Markdown, Table

    #: What a form of an answer is: text, bytes, a table, Markdown, pieces printed as they come, or the fields of a JSON answer.
    Text: TypeAlias = str | bytes | Table | Markdown | Iterable[str] | dict[str, Any]
    #: How each format writes an answer; only the one that was asked for is called.
    Forms = Mapping[str, Callable[[], Text]]


class Answer(Record):
    """What a verb found.

    ``forms`` has a function for each value of ``--format``; only the one that was asked for is called, and its text is
    printed as it comes where it is an iterator. ``None`` is an answer without text. ``notes`` are told before it,
    ``aside``, ``remarks`` and ``problems`` after it; ``code`` is the exit code.
    """

    forms: Forms | str | bytes | Table | Markdown | None = None
    remarks: tuple[str, ...] = ()
    code: int = 0
    notes: tuple[str, ...] = ()
    problems: Sequence[Finding] = ()
    aside: str = ""

    def write_form(self, name: str) -> Text | None:
        """Return the text of one format; the only one there is where a verb has no formats."""
        if isinstance(self.forms, Mapping):
            return self.forms[name]()
        return self.forms
