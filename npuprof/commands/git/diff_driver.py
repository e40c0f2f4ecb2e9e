"""``git diff-driver``: print the changes between two versions of a preset file, for
``git diff``.
"""

from __future__ import annotations

import os
from difflib import diff_bytes, unified_diff
from io import BytesIO

from npuprof.commands.framework import Verb, arguments
from npuprof.commands.git.textconv import UNREADABLE
from npuprof.compare.changes import compare_documents
from npuprof.compare.text_changes import format_change_lines
from npuprof.document import parse_document
from npuprof.report import Answer
from npuprof.system.files import read_file_content


class DiffDriver(Verb):
    """Print the changes between two preset files."""

    group = "team"
    hidden = True
    takes_any_word = True

    words = arguments("words", "Arguments that git passes to a diff command")

    def run(self) -> Answer:
        """Return the changes by key, or by line if only the text differs.

        Raises NpuprofError for a missing file.
        """
        words = self.words
        if len(words) < 7:
            return Answer(f"* Unmerged path {words[0]}\n" if words else "")
        path, old, _, _, new = words[:5]
        before, after = (
            None if side == os.devnull else read_file_content(side) for side in (old, new)
        )
        named = words[7] if len(words) > 7 else path
        try:
            text = _format_changes(path, before, named, after)
        except UNREADABLE:
            text = ""
        body = text.encode() or _format_lines(
            f"a/{path}", before or b"", f"b/{named}", after or b""
        )
        return Answer(f"diff --npuprof a/{path} b/{named}\n".encode() + body)


def _format_changes(path: str, before: bytes | None, named: str, after: bytes | None) -> str:
    """Return the changes between two files as written, or nothing if only their text differs."""
    old = None if before is None else parse_document(path, path, before)
    new = None if after is None else parse_document(named, named, after)
    lines = [
        line for change in compare_documents(old, new) for line in format_change_lines(change, "  ")
    ]
    state = "new preset" if old is None else "removed" if new is None else ""
    return "".join(f"{line}\n" for line in ([f"  {state}"] if state else []) + lines)


def _format_lines(old: str, before: bytes, new: str, after: bytes) -> bytes:
    end = b"\n\\ No newline at end of file\n"
    lines = diff_bytes(
        unified_diff, [*BytesIO(before)], [*BytesIO(after)], old.encode(), new.encode()
    )
    return b"".join(line if line.endswith(b"\n") else line + end for line in lines)


VERB = DiffDriver
