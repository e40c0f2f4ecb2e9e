"""The words of a text; which of many texts it has is asked of its distinct words first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from string import ascii_letters, digits

#: Blanks for all characters outside of words: splitting is several times faster than a pattern.
_ONLY_WORDS = bytes(
    code if chr(code) in f"{ascii_letters}{digits}_" else ord(" ") for code in range(256)
)
#: The same, without brackets that begin arguments, and dots.
ONLY_CALLS = bytes(code if chr(code) in "(." else word for code, word in enumerate(_ONLY_WORDS))

#: A pattern, and texts of which each of its matches has one.
Search = tuple[list[bytes], re.Pattern[bytes]]


def split_words(data: bytes) -> list[bytes]:
    """Return the words of a text: letters, digits and underscores in ASCII."""
    return data.translate(_ONLY_WORDS).split()


@lru_cache(4)  # asked by several, one file after the other
def list_words(data: bytes) -> frozenset[bytes]:
    """Return the distinct words of a text."""
    return frozenset(split_words(data))


@lru_cache(4)
def join_words(data: bytes) -> bytes:
    """Return the distinct words of a text as one text, which is much shorter."""
    return b" ".join(list_words(data))


def has_any(data: bytes, texts: Iterable[bytes]) -> bool:
    """Return whether a text has any of some texts."""
    words = join_words(data)
    return any(_find_longest_word(text) in words and text in data for text in texts)


def build_search(text: str, rest: str = r"\b") -> Search:
    """Return a search for a word, or for a text that begins with one, and what follows."""
    start = re.escape(text)
    # a pattern that begins with its text is searched faster
    return [text.encode()], re.compile(rf"{start}(?<!\w{start}){rest}".encode())


def finds_any(data: bytes, searches: Iterable[Search]) -> bool:
    """Return whether any of some searches finds something in a text."""
    return any(has_any(data, texts) and pattern.search(data) for texts, pattern in searches)


@cache
def _find_longest_word(text: bytes) -> bytes:
    return max(split_words(text), key=len, default=b"")
