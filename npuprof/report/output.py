"""Standard output and standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from npuprof.model import TYPE_CHECKING, Finding, Record, shorten_values
from npuprof.report.text import escape_controls, escape_terminal_text
from npuprof.system.files import build_write_error, show_notes_with

if TYPE_CHECKING:
    from typing import TypeVar

    from npuprof.report import Text

    Item = TypeVar("Item")


def track_items(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Yield items, and show on a terminal how many are done if it takes long.

    ``what`` is their plural noun.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from npuprof.report.terminal import progress_line, repeat_progress

    done = 0
    with progress_line() as show_progress:

        def show() -> None:
            show_progress(f"{done:,} of {len(items):,} {what}")

        with repeat_progress(show):
            for item in items:
                show()
                yield item
                done += 1


def write_answer(pieces: Iterable[bytes]) -> None:
    """Write an answer to standard output, piece by piece. Raises NpuprofError if that fails."""
    # text that was printed before must come before the bytes
    sys.stdout.flush()
    on_terminal = sys.stdout.isatty()
    for piece in chain(pieces, (b"",)):
        try:
            sys.stdout.buffer.write(piece)
            # a terminal shows each piece at once, other readers get blocks
            if on_terminal or not piece:
                sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:  # a full disk, or a closed stream
            raise build_write_error(
                f"standard output: {str(error.strerror).lower()}", "The output is incomplete."
            ) from None


def encode_pieces(
    text: Text, path: str | None, coloured: bool, prose: bool = False
) -> Iterator[bytes]:
    """Yield the pieces of an answer as UTF-8, with unchanged line endings.

    On a terminal, tables are formatted, ``prose`` is wrapped, and invisible characters are shown.
    Files and pipes get every byte.
    """
    if path is None and sys.stdout.isatty():
        from npuprof.report.wrapping import find_width, wrap_lines

        width = find_width()
        for piece in _encode_text(text, True, coloured):
            shown = escape_terminal_text(piece.decode(errors="surrogateescape"), coloured)
            yield _encode_names(wrap_lines(shown, width) if prose else shown)
    else:
        yield from _encode_text(text, False, coloured)


def _encode_text(text: Text, on_terminal: bool, coloured: bool) -> Iterator[bytes]:
    if isinstance(text, (str, bytes)):
        yield _encode_names(text) if isinstance(text, str) else text
    elif isinstance(text, dict):
        from npuprof.report.json_text import format_json_answer

        yield format_json_answer(text).encode()
    elif isinstance(text, Record):  # a table or a page; its module is imported where it is created
        yield _encode_names(
            text.format_terminal(coloured) if on_terminal else text.format_plain(coloured)
        )
    else:
        for piece in text:
            yield _encode_names(piece)


def _encode_names(text: str) -> bytes:
    """Return a text as UTF-8; undecodable bytes of file names are restored."""
    return text.encode(errors="surrogateescape")


def write_to_stderr(text: str) -> None:
    """Print a message to standard error, with control characters escaped."""
    # on a terminal, both streams are read together
    sys.stdout.flush()
    sys.stderr.write(f"{fit_to_stderr(text)}\n")


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings to standard error."""
    if findings:
        from npuprof.report.findings import format_findings

        write_to_stderr(
            format_findings(findings, is_colour_wanted("auto", sys.stderr)).rstrip("\n")
        )


def fit_to_stderr(text: str) -> str:
    """Return a text wrapped to the terminal of standard error, unchanged if that is none."""
    if not sys.stderr.isatty():
        return text
    from npuprof.report.wrapping import find_width, wrap_lines

    return wrap_lines(text, find_width())


def print_note(text: str) -> None:
    """Print a note.

    Lines after the first are indented, so that a name in it cannot pass for a new message.
    """
    lines = [escape_controls(shorten_values(line)) for line in text.split("\n  ")]
    write_to_stderr("npuprof: " + "\n  ".join(lines))


def is_colour_wanted(choice: str, stream: object = None) -> bool:
    """Return whether to colour a stream: ``always``, ``never``, or ``auto``.

    ``auto`` colours a terminal unless NO_COLOR is set.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0", "false"):
        return True
    if os.environ.get("TERM") == "dumb":
        return False
    target = stream if stream is not None else sys.stdout
    return bool(getattr(target, "isatty", lambda: False)())


def print_created_folders(created: list[str]) -> None:
    """Print the folders that ``make_folder`` created for a user's path: typos are noticed."""
    if created:
        print_note(f"made the folder {created[0]}")


show_notes_with(print_note)
