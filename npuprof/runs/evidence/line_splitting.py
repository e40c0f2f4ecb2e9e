"""Splits bytes into lines: a log may have gigabytes of which few lines matter.

At most ``_PIECE`` bytes and one incomplete line of ``_LONGEST`` bytes are in memory.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import Protocol

from npuprof.runs.evidence.log_locations import Readable

_PIECE = 1 << 17  # fits into a processor cache
_LONGEST = 1 << 18


#: Text in every line about options or a start, from any writer. Each alternative begins with two
#: rare characters of its text and looks back from there: the search is faster in other text.
SAYING = re.compile(
    rb"p(?:t(?<=opt)ion(?:s?(?:[:\r\n]| IS |\Z)| [\w.]+:)|u(?<=npu)_(?:wrapper\.cpp|attrs\.cc)"
    rb"|i(?<=jit_compi)le: |h(?<=graph)_max_parallel_model_num :)"
    rb"|G(?:EInitialize|ePlugin|eOp initialize)|OMPartition subgraph_"
    rb"|v(?: (?<=get env )\w+ = |L(?<=Unknown vL)LM environment)"
    rb"|m(?:a(?<=session_ma)nager\.cc|o(?<=accelerate train mo)de :)"
)
#: The same, and text in every adapter line: any of these ends a block.
ENDING = re.compile(rb"TF_ADAPTER|" + SAYING.pattern)


class Reader(Protocol):
    """A consumer of lines: of those that match ``wants``, or of any next line if that is None."""

    wants: re.Pattern[bytes] | None

    def take(self, raw: bytes, ended: bool) -> None:
        """Take a line without its newline, which the last line of a file may lack."""


def scan_stream(
    stream: Readable, reader: Reader, tell: Callable[[int], None], most: int | None
) -> None:
    """Pass the relevant lines of a stream to a reader; at most ``most`` bytes are read."""
    rest = b""
    for piece in read_pieces(stream, most):
        tell(len(piece))
        lines, newline, rest = (rest + piece).rpartition(b"\n")
        # a text without line ends must not fill the memory
        rest = rest[-_LONGEST:]
        _scan_lines(lines + newline, reader)
    _scan_lines(rest, reader)


def _scan_lines(data: bytes, reader: Reader) -> None:
    """Pass the relevant lines of complete lines, or of the last line of a stream, to a reader."""
    start = 0
    while start < len(data):
        if reader.wants is not None:
            hit = reader.wants.search(data, start)
            if hit is None:
                return
            start = max(data.rfind(b"\n", start, hit.start()) + 1, start)
        end = data.find(b"\n", start)
        reader.take(data[start : end if end >= 0 else None].rstrip(b"\r"), end >= 0)
        start = end + 1 if end >= 0 else len(data)


def read_pieces(stream: Readable, most: int | None) -> Iterator[bytes]:
    """Yield the pieces of a stream, at most ``most`` bytes."""
    remaining = sys.maxsize if most is None else most
    while remaining > 0 and (piece := stream.read(min(_PIECE, remaining))):
        remaining -= len(piece)
        yield piece
