"""How programs parse the text of a variable or flag: spellings that they accept beyond the
documented ones.
"""

from __future__ import annotations

import re

from npuprof.catalog import load_built_part
from npuprof.catalog.records import Flag, Variable
from npuprof.model import Record, has_only_digits
from npuprof.system import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOT_FOUND = "not found"
#: The blanks that a reader ignores, by ``blanks`` of ``readers.toml``.
_BLANKS = {
    "all": " ",
    "around": r"^\s+|\s+$|(?<=[,;:~|])\s+|\s+(?=[,;:~|])",
    "behind": r"(?<=[,:])\s+",
}
_SHELL_WORD = lazy_pattern(r"^~[\w.-]*(?=/|$)|\$(?:[A-Za-z_]\w*|\{[^{}]*\}|\([^()]*\))", re.ASCII)


class Reading(Record):
    """How a framework reads a switch: ``others`` is the result for a text that is neither ``on``
    nor ``off``.

    Fields as in ``reads.toml``.
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
        word = text.lower() if self.any_case else text
        return "on" if word in self.on else "off" if word in self.off else self.others

    def find_word(self, wanted: str, choices: tuple[str, ...] = ()) -> str | None:
        """Return a text that means ``on`` or ``off``, a documented one if possible.

        None if there is none.
        """
        texts = (*choices, *getattr(self, wanted), "1", "0")
        return next((text for text in texts if text and self.read_switch(text) == wanted), None)


def find_reading(variable: Variable) -> Reading:
    """Return how a framework reads a variable; unknown without ``reads``."""
    return Reading(**load_built_part("reads")[variable.reads]) if variable.reads else Reading()


def find_habits(record: Variable | Flag) -> dict[str, Any]:
    """Return what the reader of a variable or flag ignores, from ``readers.toml``.

    Empty if the reader is unknown.
    """
    readers: dict[str, dict[str, Any]] = load_built_part("readers") if record.reader else {}
    return readers.get(record.reader, {})


def is_documented(record: Variable | Flag, text: str) -> bool:
    """Return whether a text is one of the record's values, or has its format."""
    if record.choices:
        taken = {
            *map(str, record.choices),
            *(record.tolerated if isinstance(record, Variable) else ()),
        }
        return taken.issuperset(_split(record, text))
    return not record.pattern or re.fullmatch(record.pattern, text) is not None


def find_spelling(record: Variable | Flag, text: str) -> str:
    """Return the documented spelling of a text.

    The text itself if the reader takes it literally or rejects it.
    """
    return text if is_documented(record, text) else _respell(record, text, find_habits(record))


def may_be_taken(record: Variable | Flag, text: str) -> bool:
    """Return whether it is unknown if a text is accepted: only its letter case is undocumented, and
    its reader is unknown.
    """
    return record.reader == NOT_FOUND and is_documented(
        record, _respell(record, text, {"any_case": True})
    )


def is_taken(record: Variable | Flag, text: str) -> bool:
    """Return whether the reader accepts a text, if the record lists accepted values."""
    return bool(record.choices or record.pattern) and is_documented(
        record, find_spelling(record, text)
    )


def _split(record: Variable | Flag, text: str) -> list[str]:
    return text.split(record.separator) if record.separator else [text]


def _respell(record: Variable | Flag, text: str, reader: dict[str, Any]) -> str:
    plain = re.sub(_BLANKS[reader["blanks"]], "", text) if "blanks" in reader else text
    if "trailing" in reader:
        plain = plain.removesuffix(reader["trailing"])
    spellings = [plain]
    if record.choices:
        known = (
            {str(choice).lower(): str(choice) for choice in record.choices}
            if "any_case" in reader
            else {}
        )
        parts = [known.get(part.lower(), part) for part in _split(record, plain)]
        if "number" in reader:
            parts = [
                str(int(part)) if re.fullmatch(r"[0-9]{1,10}", part, re.ASCII) else part
                for part in parts
            ]
        spellings = [record.separator.join(parts)]
    elif "any_case" in reader:
        spellings += [plain.lower(), plain.upper()]
    return next((spelling for spelling in spellings if is_documented(record, spelling)), text)


def find_shell_word(path: str) -> str:
    """Return the part of a path that a shell would expand: ``$HOME``, ``${HOME}``, ``$(pwd)``, a
    leading ``~``; else empty.
    """
    match = _SHELL_WORD.search(path) if "$" in path or path[:1] == "~" else None
    return match[0] if match else ""
