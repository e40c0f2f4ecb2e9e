"""Whether a text in a log may be what is left of a wanted one: programs between a process and a file shorten, wrap and spoil lines."""

from __future__ import annotations

import re

from npuprof.runs.evidence import Text

#: What stands where something was left out or could not be read.
_HOLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffd\udc80-\udcff]|\.\.\.|\.\.$|…|\W*truncated\W*$")
#: What no value has that somebody wrote, and how often one is spoilt at most of which the rest can be trusted.
_SPOILT, _MOST_SPOILT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\udc80-\udcff]"), 2
#: What a program shows at the end of a line that it has shortened.
_MARKS = ">$~+\\|"
#: What a program writes that cannot write a character.
_STANDS_FOR = r"(?:[?\ufffd\udc80-\udcff\x00-\x1f\x7f-\xff]|\\x\w\w|\\u\w{4}|#\d{3}|\\\d{3})+"
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
#: What is no part of a text, but of another line.
_OF_LINES = re.compile(r"\.cc:\d+\]|TF_ADAPTER|\s[\w.]+: |, value: ")
_BLANKS = re.compile(r"\s+")
#: What stands for a byte that could not be read. So long is a text of which a byte in so many may be another by mistake.
_STAND_INS = frozenset((*b"?", *range(32), 127, 254, 255))
_LONG, _FEW = 16, 50


def begins(wanted: str, text: str) -> bool:
    """Return whether a wanted text begins with one, of which the last character may be half there."""
    return wanted.encode("utf-8", "surrogateescape").startswith(text.encode("utf-8", "surrogateescape"))


def may_be_cut(wanted: str, text: str) -> bool:
    """Return whether a text that ends where its line was cut may be the beginning of a wanted one."""
    if (hole := _HOLE.search(text)) is not None:
        return wanted.startswith(text[: hole.start()])
    return begins(wanted, text) or (text[-1:] in _MARKS and begins(wanted, text[:-1]))


def may_be_left(wanted: str, found: Text) -> bool:
    """Return whether a text that is not the wanted one may be what somebody has made of it."""
    text = found.text
    if len(_SPOILT.findall(text)) > _MOST_SPOILT:
        return True
    if wanted.startswith(f"{text}\n") or _BLANKS.sub(" ", wanted) == _BLANKS.sub(" ", text):
        return True  # its other lines are lost, which have no heads; or blanks of it
    if holes := list(_HOLE.finditer(text)):
        if _frames(wanted, text[: holes[0].start()], text[holes[-1].end() :]):
            return True
    elif found.edge and may_be_cut(wanted, text):
        return True
    if _is_spoilt_in_place(wanted, text):
        return True
    if not wanted.isascii() and re.fullmatch(_STANDS_FOR.join(map(re.escape, _NOT_ASCII.split(wanted))), text):
        return True
    return bool(found.more.strip()) and _is_broken_up(wanted, text + found.more)


def is_spoilt(text: str) -> bool:
    """Return whether a text has what no value has that somebody wrote."""
    return _SPOILT.search(text) is not None


def may_go_on(text: str) -> bool:
    """Return whether a text opens a bracket that it does not close: its other lines, which have no heads, may be lost."""
    return any(text.count(opening) > text.count(closing) for opening, closing in ("{}", "[]"))


def resembles(wanted: str, text: str) -> bool:
    """Return whether a text is a wanted one without a piece, or with something else in it."""
    first, last = _count_shared(wanted, text), _count_shared(wanted[::-1], text[::-1])
    if first + last >= min(len(wanted), len(text)):
        return True
    if len(text) >= _LONG and len(_list_differing(wanted, text)) <= 1 + len(text) // _FEW:
        return True
    return _OF_LINES.search(text) is not None or (first > 0 and any(mark in text and mark not in wanted for mark in " ]"))


def _list_differing(wanted: str, text: str) -> list[int]:
    """Return the bytes of a text that are not those of the wanted one, all of them where it is longer."""
    one, other = wanted.encode("utf-8", "surrogateescape"), text.encode("utf-8", "surrogateescape")
    return [byte for place, byte in enumerate(other) if one[place : place + 1] != bytes((byte,))]


def _is_spoilt_in_place(wanted: str, text: str) -> bool:
    """Return whether bytes of a text stand for those that could not be read, and all others are the wanted ones."""
    return len(text) >= _LONG and set(_list_differing(wanted, text)) <= _STAND_INS and _count_bytes(wanted) == _count_bytes(text)


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _count_shared(one: str, other: str) -> int:
    """Return how many characters two texts have in common before they differ."""
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other)))


def _frames(wanted: str, first: str, last: str) -> bool:
    return len(first) + len(last) <= len(wanted) and wanted.startswith(first) and wanted.endswith(last)


def _is_broken_up(wanted: str, whole: str) -> bool:
    """Return whether a text over several lines has the wanted one with an end of a line, or the words of another program, in it."""
    squeezed, goal = _BLANKS.sub("", whole), _BLANKS.sub("", wanted)
    if squeezed.startswith(goal):
        return True
    shared = _count_shared(whole, wanted)
    return shared > 0 and any(whole.rstrip().endswith(wanted[place:]) for place in range(1, shared + 1))
