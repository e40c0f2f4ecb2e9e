"""Whether a text in a log may be a damaged copy of a wanted one: programs between a process and a file shorten, wrap and garble lines."""

from __future__ import annotations

import re

from npuprof.runs.evidence import Text

#: What is in a text from which something was left out, or that could not be read.
_HOLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffd\udc80-\udcff]|\.\.\.|\.\.$|…|\W*truncated\W*$")
#: What no value has that somebody wrote.
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\udc80-\udcff]")
#: What a program shows at the end of a line that it has shortened.
_MARKS = ">$~+\\|"
_ASCII = re.compile(r"[\x00-\x7f]*")
_BLANKS = re.compile(r"\s+")


def begins(wanted: str, text: str) -> bool:
    """Return whether a wanted text begins with one, of which the last character may be half there."""
    return wanted.encode("utf-8", "surrogateescape").startswith(text.encode("utf-8", "surrogateescape"))


def may_be_cut(wanted: str, text: str) -> bool:
    """Return whether a text that ends where its line was cut may be the beginning of a wanted one."""
    if (hole := _HOLE.search(text)) is not None:
        return wanted.startswith(text[: hole.start()])
    return begins(wanted, text) or (text[-1:] in _MARKS and begins(wanted, text[:-1]))


def may_be_left(wanted: str, found: Text) -> bool:
    """Return whether a text that is not the wanted one may be a damaged copy of it.

    Damage is not undone: a text with a hole, or with other lines behind it that it may begin, says nothing.
    """
    text = found.text
    if _HOLE.search(text) or any(text.count(char) > wanted.count(char) for char in "?\t"):
        return True
    if wanted.startswith(f"{text}\n") or _BLANKS.sub(" ", wanted) == _BLANKS.sub(" ", text):
        return True  # its other lines, which have no heads, or some of its blanks are lost
    if found.edge and may_be_cut(wanted, text):
        return True
    if not wanted.isascii() and (match := _ASCII.match(wanted)) is not None and text.startswith(match[0]):
        return True  # a program that cannot write a character writes something else
    return bool(found.more.strip()) and wanted.lstrip()[:1] == f"{text}{found.more}".lstrip()[:1]


def is_spoilt(text: str) -> bool:
    """Return whether a text has what no value has that somebody wrote."""
    return _UNREADABLE.search(text) is not None


def may_go_on(text: str) -> bool:
    """Return whether a text opens a bracket that it does not close: its other lines, which have no heads, may be lost."""
    return any(text.count(opening) > text.count(closing) for opening, closing in ("{}", "[]"))
