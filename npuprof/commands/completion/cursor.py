"""The parameter under the cursor, and the hint for values without candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from npuprof.commands.framework import Parameter, Verb, load_verb
from npuprof.document import keys
from npuprof.document.profile import PROFILE_KEYS
from npuprof.model import Record

#: The ``Parameter.complete`` of values that may be files.
_WITH_FILES = frozenset(("", "source", "spec", "store", "topic", "values"))
#: A completion candidate, and its description.
Candidate = tuple[str, str]


def offer(texts: Iterable[str], before: str = "") -> Iterator[Candidate]:
    """Return texts without descriptions as candidates, each after a text that is typed already."""
    return ((before + text, "") for text in texts)


def first_sentence(text: str) -> str:
    """Return the description of a candidate: the first sentence of a help text."""
    return text.partition(". ")[0].rstrip(".")[:72]


class Cursor(Record):
    """The cursor in a command line: its verb, its parameter, and the arguments before it.

    The parameter is None if a flag or nothing is expected. ``current`` is the beginning of its
    value, ``prefix`` the text before it in the same argument.
    """

    verb: type[Verb]
    parameter: Parameter | None
    arguments: list[str]
    current: str
    prefix: str = ""

    @property
    def store(self) -> str | None:
        """The store that the command line selects."""
        rest = iter(self.arguments)
        for argument in rest:
            flag, equals, value = argument.partition("=")
            if flag == "--store":
                return value if equals else next(rest, None)
        return None

    @property
    def positional(self) -> list[str]:
        """The arguments that are neither flags nor values of flags."""
        positional = []
        rest = iter(self.arguments)
        for argument in rest:
            if not argument.startswith("-") or argument == "-":
                positional.append(argument)
            elif (parameter := self.verb.spellings.get(argument)) and parameter.kind != "flag":
                next(rest, None)
        return positional


def find_cursor(arguments: Sequence[str], current: str) -> Cursor | None:
    """Return the cursor after some arguments; None if no verb is named yet."""
    loaded = load_verb(list(arguments))
    if loaded is None:
        return None
    verb = loaded.verb
    arguments = loaded.arguments
    spelling, equals, value = current.partition("=")
    # --flag=VALUE is one argument, of which only the value is completed
    if equals and spelling.startswith("--") and spelling in verb.spellings:
        return Cursor(verb, verb.spellings[spelling], arguments, value, f"{spelling}=")
    flag = verb.spellings.get(arguments[-1]) if arguments else None
    cursor = Cursor(verb, flag, arguments, current)
    if flag is not None and flag.kind != "flag":  # its value is expected
        return cursor
    declared = [parameter for parameter in verb.parameters.values() if not parameter.flags]
    used = len(cursor.positional)
    if current.startswith("-") or not declared:
        return cursor._replace(parameter=None)
    if used < len(declared):
        return cursor._replace(parameter=declared[used])
    last = declared[-1]
    # only the last parameter can take more than one argument
    return cursor._replace(parameter=last if last.kind == "arguments" else None)


def describe_expected_value(arguments: Sequence[str], current: str) -> str:
    """Return a short description of the value at a cursor without candidates.

    Empty if it may be a file.
    """
    cursor = find_cursor(arguments, current)
    if cursor is None or cursor.verb.takes_any_word:
        return ""
    parameter = cursor.parameter
    if parameter is None:
        return "a flag" if current.startswith("-") else "no more words"
    if parameter.complete == "assignment":
        return _describe_value(cursor.current.partition("=")[0])
    if parameter.choices:
        return f"one of {', '.join(parameter.list_choices())}"
    if parameter.complete in _WITH_FILES and parameter.kind != "number":
        return ""
    return parameter.metavar.rstrip(".,")


def find_key_record(key: str) -> Any:
    """Return the record of a key, or None."""
    from npuprof import catalog

    section, name = catalog.find_record_place(*(keys.parse_key(key) or (key, ())))
    return None if section == "estimator" else catalog.find_record(section, name)


def _describe_value(key: str) -> str:
    """Return a short description of a key's value; empty if it is a path."""
    section, _, name = key.rpartition(".")
    record = find_key_record(key)
    if record is None:
        known = PROFILE_KEYS.get(name) if section == "profile" else None
        return known.kind if known is not None else "a value"
    if record.kind.startswith("path"):
        return ""
    if record.kind not in ("int", "float"):
        return "a text"
    noun = "a whole number" if record.kind == "int" else "a number"
    low = getattr(record, "minimum", None)
    high = getattr(record, "maximum", None)
    if low is None and high is None:
        return noun
    return f"{noun}, {keys.format_range(low, high)}"
