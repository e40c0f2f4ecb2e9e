"""``git diff-driver``: print the changes between two versions of a preset for ``git diff``."""

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
from npuprof.system import join_lines
from npuprof.system.files import read_file_content


class DiffDriver(Verb):
    """Print the changes between two preset files."""

    group = "team"
    hidden = True
    takes_any_word = True

    arguments = arguments("words", "Arguments that git passes to a diff command")

    def run(self) -> Answer:
        """Return the changes by key, or by line if only the text differs.

        Raises NpuprofError for a missing file.
        """
        # git passes the path only if the index has conflicts there
        if len(self.arguments) < 7:
            return Answer(f"* Unmerged path {self.arguments[0]}\n" if self.arguments else "")
        # gitdiff-config: path old-file old-hex old-mode new-file new-hex new-mode [new-path]
        path, old, _, _, new, _, _, *renamed = self.arguments
        # git names /dev/null for a file that is missing on one side
        before, after = (
            None if side == os.devnull else read_file_content(side) for side in (old, new)
        )
        new_path = renamed[0] if renamed else path
        try:
            text = _format_changes(path, before, new_path, after)
        except UNREADABLE:
            text = ""
        # comments and layout are changes, too: git would show an empty difference
        body = text.encode() or _format_lines(
            f"a/{path}", before or b"", f"b/{new_path}", after or b""
        )
        return Answer(f"diff --npuprof a/{path} b/{new_path}\n".encode() + body)


def _format_changes(path: str, before: bytes | None, new_path: str, after: bytes | None) -> str:
    """Return the changes between two files as written, or nothing if only their text differs."""
    old = None if before is None else parse_document(path, path, before)
    new = None if after is None else parse_document(new_path, new_path, after)
    lines = []
    if old is None:
        lines.append("  new preset")
    elif new is None:
        lines.append("  removed")
    for change in compare_documents(old, new):
        lines += format_change_lines(change, "  ")
    return join_lines(lines)


def _format_lines(old: str, before: bytes, new: str, after: bytes) -> bytes:
    end = b"\n\\ No newline at end of file\n"
    lines = diff_bytes(
        unified_diff, [*BytesIO(before)], [*BytesIO(after)], old.encode(), new.encode()
    )
    return b"".join(line if line.endswith(b"\n") else line + end for line in lines)


VERB = DiffDriver
