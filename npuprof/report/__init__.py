"""Answers of verbs as values, and the names of arguments in messages.

The modules format answers and findings.

``in_python`` is passed down from the library to workspaces and resolvers, and from there to
configs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from npuprof.model import TYPE_CHECKING, Fields, Finding, Record

if TYPE_CHECKING:
    from typing import TypeAlias

    from npuprof.report.tables import Markdown, Table

    #: The text of an answer: a string, bytes, a table, Markdown, pieces printed as they arrive, or
    #: the fields of a JSON answer.
    Text: TypeAlias = str | bytes | Table | Markdown | Iterable[str] | Fields
    #: A writer for each format of an answer; only the requested one is called.
    Forms = Mapping[str, Callable[[], Text]]

#: The Python names of command line options, if they differ.
_ARGUMENTS = {"store": "path", "with": "mixins"}


class Answer(Record):
    """The result of a verb.

    ``forms`` has a function for each value of ``--format``. Only the requested one is called; an
    iterator is printed as it arrives, ``None`` prints nothing. ``early_notes`` are printed before
    the answer, ``aside``, ``notes`` and ``problems`` after it; ``code`` is the exit code.
    """

    forms: Forms | str | bytes | Table | Markdown | None = None
    notes: tuple[str, ...] = ()
    code: int = 0
    early_notes: tuple[str, ...] = ()
    problems: Sequence[Finding] = ()
    aside: str = ""

    def write_form(self, name: str) -> Text | None:
        """Return the text in a format; the only form if the verb has no formats."""
        if isinstance(self.forms, Mapping):
            return self.forms[name]()
        return self.forms


def format_option(name: str, value: str | None = None, in_python: bool = False) -> str:
    """Return how messages name an option: ``--store``, ``--store DIR``.

    In Python ``path``, ``path='DIR'``.
    """
    if in_python:
        argument = _ARGUMENTS.get(name, name)
        return argument if value is None else f"{argument}={value!r}"
    return f"--{name}" if value is None else f"--{name} {value}"


def format_switch(name: str, in_python: bool) -> str:
    """Return how messages name a switch: ``--trust``; in Python ``trust=True``."""
    return f"{_ARGUMENTS.get(name, name)}=True" if in_python else f"--{name}"


def format_set_command(key: str, in_python: bool) -> str:
    """Return how messages set a key for one call: ``--set KEY=...``.

    In Python ``set={KEY: ...}``.
    """
    return f"set={{{key!r}: ...}}" if in_python else f"--set {key}=..."
