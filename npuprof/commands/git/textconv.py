"""``git textconv``: print a preset file in normal form, which git compares instead of the file."""

from __future__ import annotations

from npuprof.commands.framework import Verb, argument
from npuprof.document import parse_document
from npuprof.edit.merge import format_conflicts, split_conflicts
from npuprof.edit.normal import format_normal_form
from npuprof.model import NpuprofError
from npuprof.report import Answer
from npuprof.system.files import read_file_content

#: Errors from a file that is not a preset: git still gets an answer.
UNREADABLE = (NpuprofError, ValueError, RecursionError, LookupError, TypeError, AttributeError)


class Textconv(Verb):
    """Print a preset file in normal form."""

    group = "team"
    hidden = True
    takes_any_word = True

    file = argument("file", "Preset file")

    def run(self) -> Answer:
        """Return the normal form of the file, or the file unchanged if it is invalid.

        Raises NpuprofError for a missing file.
        """
        raw = read_file_content(self.file)
        try:
            return Answer(_format_normal(self.file, raw))
        except UNREADABLE:
            return Answer(raw)


def _format_normal(path: str, raw: bytes) -> bytes:
    """Return the normal form of a file.

    Of a file with conflicts, both sides with conflict markers.
    """
    pair = split_conflicts(raw.decode())
    if pair is None:
        return format_normal_form(parse_document(path, path, raw).data).encode()
    ours, theirs = (format_normal_form(parse_document(path, path, side).data) for side in pair)
    return format_conflicts(ours, theirs).encode()


VERB = Textconv
