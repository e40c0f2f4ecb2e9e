"""What a record leaves out: values whose names say that they log somebody in, and credentials in addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuprof.catalog import find_option
from npuprof.catalog.execution import is_known_variable
from npuprof.document.secrets import TOKEN_ANYWHERE, hide_credentials
from npuprof.runs.records import HIDDEN

_SECRET_NAME = re.compile(
    r"token(?!iz)|passw|passphrase|passcode|secret|credential|cookie|auth(?!or)|(?:api|access|private|signing|account|encryption|license)[-_]?key"
    r"|(?<![a-z])(?:pass|pwd|pin|pat|pw)(?![a-z])|[-_]key$",
    re.IGNORECASE,
)

#: What an argument contains that is more than a name and a value.
_SIGNS = " \t\n\"'{"


def is_secret_name(name: str) -> bool:
    """Return whether a name is that of something that logs somebody in; names of the catalogue are not."""
    return _SECRET_NAME.search(name) is not None and not is_known_variable(name) and find_option(name) is None


def hide_text(name: str, text: str) -> str:
    """Return the value of a variable or a setting as a record may contain it."""
    if is_secret_name(name) or (text.lstrip().startswith("{") and is_secret_name(text)):
        return HIDDEN
    return hide_credentials(TOKEN_ANYWHERE.sub(HIDDEN, text))


def hide_arguments(words: Sequence[str]) -> list[str]:
    """Return arguments of a command as a record may contain them: without what is behind a name of something secret.

    An argument with blanks, quotes or braces, such as a script for ``sh -c`` or JSON, is left out whole if it contains such a name.
    """
    return [_hide_argument(word, before) for before, word in zip(["", *words], words, strict=False)]


def _hide_argument(word: str, before: str) -> str:
    name, is_assigned, value = word.partition("=")
    if before.startswith("-") and "=" not in before and not word.startswith("-") and is_secret_name(before):
        return HIDDEN
    if any(sign in word for sign in _SIGNS) and is_secret_name(word):
        return HIDDEN
    if is_assigned and "://" not in name:
        return f"{name}={hide_text(name, value)}"
    return hide_text("", word)
