"""Bytes to lines: a log may have gigabytes of which a few lines are wanted, so that most of it is only searched for a few words.

What is held at a time is ``_PIECE`` and a line that it ends in, of at most ``_LONGEST``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Protocol

from npuprof.runs.evidence.places import Readable

_PIECE = 1 << 17  # what a processor has near at hand while it is searched for one word after the other
_LONGEST = 1 << 18
#: What stands in every line of interest: of any writer, and of the adapter where that wrote anything at all. The longer, the sooner found.
_OPTION = b"option"
_WORDS = (_OPTION, b"GEInitialize")
#: How a word that others say as well stands in the lines that are wanted, also where they end behind it.
_STANDS = {_OPTION: re.compile(rb"options?(?:[:\r\n]| IS |\Z)|option [\w.]+:")}
_ADAPTER_WORDS = (
    b"GePlugin",
    b"GeOp initialize",
    b"session_manager.cc",
    b"OMPartition subgraph_",
    b"jit_compile: ",
    b"graph_max_parallel_model_num :",
    b"accelerate train mode :",
    b" is deprecated",
    b"npu_attrs.cc",
)
_ADAPTER_SIGNS = (b"TF_ADAPTER", b"tf_adapter")
#: The file of all lines of TensorFlow 2: one that stands in no block shows that lines are lost.
_TF2_WORD = b"npu_wrapper.cpp"


class Reader(Protocol):
    """A consumer of lines. It is ``attentive`` if it takes any next line; ``torn`` if a stream ended within a line."""

    attentive: bool
    torn: bool

    def take(self, raw: bytes, ended: bool) -> None:
        """Take a line without its end; of the last one of a file that may be missing."""

    def pass_over(self, data: bytes, place: int) -> int:
        """Return the place after the lines that it does not want, though it is attentive."""


def scan_stream(stream: Readable, reader: Reader, tell: Callable[[int], None], most: int | None = None) -> None:
    """Give a reader the lines of a stream that it may want; no more than ``most`` bytes are read."""
    rest = b""
    for piece in read_pieces(stream, most):
        tell(len(piece))
        end = piece.rfind(b"\n") + 1
        if not end:
            rest += piece
            rest = rest[-_LONGEST:]
            continue
        _scan_lines(rest + piece[:end] if rest else piece[:end], reader)
        rest = piece[end:][-_LONGEST:]
    reader.torn = bool(rest)
    if rest:
        _scan_lines(rest, reader)


def read_pieces(stream: Readable, most: int | None) -> Iterator[bytes]:
    """Yield what a stream has, piece by piece, and no more than ``most`` bytes."""
    remaining = most
    while remaining is None or remaining > 0:
        piece = stream.read(_PIECE if remaining is None else min(_PIECE, remaining))
        if not piece:
            return
        if remaining is not None:
            remaining -= len(piece)
        yield piece


def _scan_lines(data: bytes, reader: Reader) -> None:
    """Give a reader the lines of whole lines that it may want."""
    words: tuple[bytes, ...] = _WORDS
    if any(sign in data for sign in _ADAPTER_SIGNS):
        words += _ADAPTER_WORDS
    if _TF2_WORD in data:
        words += (_TF2_WORD,)
    ahead = Ahead(data, words)
    size, place = len(data), 0
    while place < size:
        if not reader.attentive:
            hit = ahead.find(place)
            if hit is None:
                return
            place = max(data.rfind(b"\n", place, hit) + 1, place)
        elif (end := reader.pass_over(data, place)) > place:
            place = end
            continue
        end = data.find(b"\n", place)
        ended = end >= 0
        line = data[place : end if ended else size]
        reader.take(line.rstrip(b"\r") if line.endswith(b"\r") else line, ended)
        place = end + 1 if ended else size


class Ahead:
    """Where the first of several words is next: what was looked through for one of them is not looked through again."""

    def __init__(self, data: bytes, words: tuple[bytes, ...]) -> None:
        self._data = data
        self._hits = dict.fromkeys(words, -1)  # where one is, if that is known
        self._before = dict.fromkeys(words, 0)  # before which place none is

    def find(self, place: int) -> int | None:
        """Return where the first one from a place on is, None where none is; places only grow."""
        data, hits, nearest = self._data, self._hits, len(self._data)
        for word, hit in hits.items():
            if hit < place:
                start = max(place, self._before[word])
                if start >= nearest:
                    continue
                hit = data.find(word, start, nearest + len(word) - 1)
                if hit >= 0 and word in _STANDS:
                    hit = self._pass_over(word, hit, nearest + len(word) - 1)
                hits[word] = hit
                if hit < 0:
                    self._before[word] = nearest
                    continue
            nearest = min(nearest, hit)
        return nearest if nearest < len(data) else None

    def _pass_over(self, word: bytes, hit: int, end: int) -> int:
        """Return the next place of a word, from a hit on, in the form that it has in wanted lines; -1 if there is none."""
        stands = _STANDS[word]
        while hit >= 0 and stands.match(self._data, hit) is None:
            hit = self._data.find(word, hit + len(word), end)
        return hit
