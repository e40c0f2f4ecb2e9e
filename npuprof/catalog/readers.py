"""How programs parse the text of a variable or flag: undocumented spellings that they accept."""

from __future__ import annotations

import re

from npuprof.catalog import load_built_part
from npuprof.catalog.records import Entry, Variable
from npuprof.model import Record, TomlTable, has_only_digits
from npuprof.system import lazy_pattern

NOT_FOUND = "not found"
#: The blanks that a reader ignores, by ``blanks`` of ``readers.toml``.
_BLANKS = {
    "all": " ",
    "around": r"^\s+|\s+$|(?<=[,;:~|])\s+|\s+(?=[,;:~|])",
    "behind": r"(?<=[,:])\s+",
}
_SHELL_EXPANSION = lazy_pattern(
    r"^~[\w.-]*(?=/|$)|\$(?:[A-Za-z_]\w*|\{[^{}]*\}|\([^()]*\))", re.ASCII
)


class Reading(Record):
    """How a framework reads a switch, with the fields of ``reads.toml``.

    ``others`` is the result for a text that is neither ``on`` nor ``off``.
    """

    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    any_case: bool = False
    number: bool = False
    others: str = ""
    why: str = ""

    def read_switch(self, text: str) -> str:
        """Return the effect of a text on a switch: ``on``, ``off``, ``fails`` or ``ignored``."""
        if self.number and (
            has_only_digits(text) or re.fullmatch(r"\s*[+-]?[0-9]+", text, re.ASCII)
        ):
            return "on" if text.strip().lstrip("+-").strip("0") else "off"
        keyword = text.lower() if self.any_case else text
        if keyword in self.on:
            return "on"
        return "off" if keyword in self.off else self.others

    def find_text(self, state: str, choices: tuple[str, ...]) -> str | None:
        """Return a text that means ``on`` or ``off``, a documented one if possible.

        None if there is none.
        """
        texts = (*choices, *(self.on if state == "on" else self.off), "1", "0")
        return next((text for text in texts if text and self.read_switch(text) == state), None)


def find_reading(variable: Variable) -> Reading:
    """Return how a framework reads a variable; unknown without ``parsed_as``."""
    row = variable.parsed_as
    return Reading(**load_built_part("reads")[row]) if row else Reading()


def find_habits(record: Entry) -> TomlTable:
    """Return what the reader of a variable or flag ignores, from ``readers.toml``.

    Empty if the reader is unknown.
    """
    readers: dict[str, TomlTable] = load_built_part("readers") if record.reader else {}
    return readers.get(record.reader, {})


def is_documented(record: Entry, text: str) -> bool:
    """Return whether a text is one of the record's values, or has its format."""
    if record.choices:
        return {*map(str, record.choices), *record.tolerated}.issuperset(_split(record, text))
    return not record.pattern or re.fullmatch(record.pattern, text) is not None


def find_spelling(record: Entry, text: str) -> str:
    """Return the documented spelling of a text.

    The text itself if the reader takes it literally or rejects it.
    """
    return text if is_documented(record, text) else _respell(record, text, find_habits(record))


def may_be_taken(record: Entry, text: str) -> bool:
    """Return whether an unknown reader may accept a text: only its letter case is undocumented."""
    if record.reader != NOT_FOUND:
        return False
    return is_documented(record, _respell(record, text, {"any_case": True}))


def is_taken(record: Entry, text: str) -> bool:
    """Return whether the reader accepts a text, if the record lists accepted values."""
    return bool(record.choices or record.pattern) and is_documented(
        record, find_spelling(record, text)
    )


def _split(record: Entry, text: str) -> list[str]:
    return text.split(record.separator) if record.separator else [text]


def _respell(record: Entry, text: str, habits: TomlTable) -> str:
    """Return the documented spelling that a reader with some habits takes a text for.

    The text itself if there is none.
    """
    plain = re.sub(_BLANKS[habits["blanks"]], "", text) if "blanks" in habits else text
    if "trailing" in habits:
        plain = plain.removesuffix(habits["trailing"])
    spellings = [plain]
    if record.choices:
        spellings = [_respell_choices(record, plain, habits)]
    elif "any_case" in habits:
        spellings += [plain.lower(), plain.upper()]
    return next((spelling for spelling in spellings if is_documented(record, spelling)), text)


def _respell_choices(record: Entry, text: str, habits: TomlTable) -> str:
    name = habits.get("part_name", "")
    parts = [re.sub(rf"^{name}", "", part) for part in _split(record, text)]
    if "any_case" in habits:
        by_lower_case = {str(choice).lower(): str(choice) for choice in record.choices}
        parts = [by_lower_case.get(part.lower(), part) for part in parts]
    if "number" in habits:  # without leading zeros
        parts = [
            str(int(part)) if re.fullmatch(r"[0-9]{1,10}", part, re.ASCII) else part
            for part in parts
        ]
    return record.separator.join(parts)


def find_shell_expansion(path: str) -> str:
    """Return the part of a path that a shell would expand, empty if there is none.

    That is ``$HOME``, ``${HOME}``, ``$(pwd)``, or a leading ``~``.
    """
    match = _SHELL_EXPANSION.search(path) if "$" in path or path[:1] == "~" else None
    return match[0] if match else ""
