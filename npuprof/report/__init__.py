"""What verbs say: answers as values, and how messages name arguments. The modules write answers and findings in every format.

``in_python`` is passed from the border inwards: by the library to its workspaces, and from there to resolvers, which configs know.
"""

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

#: What an option of the command is called in Python, if that differs.
_ARGUMENTS = {"store": "path", "with": "mixins"}


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


def say_option(name: str, value: str | None = None, in_python: bool = False) -> str:
    """Return how an option is named, or given with a value: ``--store``, ``--store DIR``; in Python ``path``, ``path='DIR'``."""
    if in_python:
        argument = _ARGUMENTS.get(name, name)
        return argument if value is None else f"{argument}={value!r}"
    return f"--{name}" if value is None else f"--{name} {value}"


def say_switch(name: str, in_python: bool = False) -> str:
    """Return how an option without a value is given: ``--trust``; in Python ``trust=True``."""
    return f"{_ARGUMENTS.get(name, name)}=True" if in_python else f"--{name}"


def say_set(key: str, in_python: bool = False) -> str:
    """Return how a key is set for one call: ``--set KEY=...``; in Python ``set={KEY: ...}``."""
    return f"set={{{key!r}: ...}}" if in_python else f"--set {key}=..."
