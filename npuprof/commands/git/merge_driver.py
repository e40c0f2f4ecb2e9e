"""``git merge-driver``: merge presets by key and list element.

Never fails a merge that git can do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from npuprof.commands.framework import Verb, argument
from npuprof.document import parse_document, parse_toml_text
from npuprof.document.secrets import hide_secrets
from npuprof.edit.merge import Merged, format_conflicts, merge_texts, split_conflicts
from npuprof.edit.merge_check import find_unfit_changes
from npuprof.edit.paths import is_same_document
from npuprof.edit.preset_file import encode_like
from npuprof.model import NpuprofError, Path, Record, build_usage_error, has_only_digits
from npuprof.report import Answer
from npuprof.store import LOCK_FILE
from npuprof.store.gitstore.objects import Git, require_plain_file
from npuprof.system import writing
from npuprof.system.files import read_file_content


class MergeDriver(Verb):
    """Merge two versions of a preset into ours."""

    group = "team"
    hidden = True
    takes_any_word = True

    base = argument("base", "Common ancestor of both sides")
    ours = argument("ours", "This side, overwritten with the result")
    theirs = argument("theirs", "Other side")
    path = argument("path", "Path of the preset")
    size = argument("size", "Length of conflict markers", default="7")

    def run(self) -> Answer:
        """Merge a preset; the result replaces ``ours``. Exit 1 if it has conflicts."""
        size = _read_mark_size(self.size)
        files = (self.base, self.ours, self.theirs)
        # first: it is the answer if anything below fails
        by_line = _merge_as_text(self.ours, self.base, self.theirs, size)
        texts = []
        try:
            raws = [read_file_content(file) for file in files]
            texts = [_read_side(self.path, raw) for raw in raws]
            result, notes = _merge_sides(texts, by_line, self.path, size)
        except Exception as error:  # git gets a merge in any case
            reason = str(error) or type(error).__name__
            if isinstance(error, NpuprofError):
                reason = error.findings[0].message
            is_broken_by_line_merge = (
                bool(texts)
                and by_line.raw is not None
                and not by_line.code
                and _read_merged(self.path, by_line.raw) is None
            )
            # with an invalid preset as the result, the user would have no conflict markers to
            # resolve
            if not is_broken_by_line_merge:
                if by_line.raw is not None:
                    writing.write_files_atomically({self.ours: by_line.raw})
                note = f"{self.path} is merged as text: {reason}"
                return Answer(None, (note,), 1 if by_line.code else 0)
            notes = [f"conflict: its lines merge into an invalid preset: {reason}"]
            _, ours, theirs = texts
            result = Merged(format_conflicts(ours, theirs, size), ours, tuple(notes))
        writing.write_files_atomically({self.ours: encode_like(raws[1], result.text)})
        return Answer(
            None,
            tuple(f"{self.path}: {hide_secrets(self.path, note)}" for note in notes),
            1 if result.conflicts else 0,
        )


def _read_mark_size(text: str) -> int:
    """Return the length of conflict markers from git.

    Raises NpuprofError (NP902) for an invalid number.
    """
    if has_only_digits(text) and len(text) <= 4 and int(text):
        return int(text)
    raise build_usage_error(
        f"marks cannot be {text!r} characters long", "pass the %L of git, usually 7"
    )


class LineMerge(Record):
    """git's line merge: the number of conflicts, and the text; None if git fails."""

    code: int
    raw: bytes | None


def _read_side(path: str, raw: bytes) -> str:
    """Return the text of one side, which must be TOML; empty for a missing file."""
    return parse_document(path, path, raw).text


def _merge_sides(
    texts: Sequence[str], by_line: LineMerge, path: str, size: int
) -> tuple[Merged, list[str]]:
    """Merge by line if that gives the same values as a merge by key, else by key.

    Return the result and its notes.
    """
    base, ours, theirs = texts
    torn = _list_torn_entries(path, texts)
    result = merge_texts(base, ours, theirs, torn, size)
    line_text = (
        None if torn or by_line.code or by_line.raw is None else _read_merged(path, by_line.raw)
    )
    if line_text is not None and (result.is_undecided or _is_same_in_sides(line_text, result.text)):
        result = Merged(line_text, line_text, (), result.taken)
    unfit = find_unfit_changes(result, texts, path)
    if unfit.forced:
        result = merge_texts(base, ours, theirs, [*torn, *unfit.forced], size)
    return result, [*unfit.notes, *result.conflicts]


def _is_same_in_sides(line_text: str, text: str) -> bool:
    """Return whether a text sets the values of each side of another one with conflicts."""
    expected = parse_toml_text(line_text)
    sides = split_conflicts(text) or (text,)
    return all(is_same_document(parse_toml_text(side), expected) for side in sides)


def _list_torn_entries(path: str, texts: Sequence[str]) -> list[Path]:
    """Return the entries of a lock whose fields must come from one side.

    Both sides changed them differently.

    Only references to single versions that both sides added to an entry are merged.
    """
    if os.path.basename(path) != LOCK_FILE:
        return []
    base, ours, theirs = (parse_toml_text(text).get("sources", {}) for text in texts)
    joined = {"versions": None, "seals": None}
    return [
        ("sources", name)
        for name in ours.keys() & theirs.keys()
        if base.get(name) not in (ours[name], theirs[name])
        and {**ours[name], **joined} != {**theirs[name], **joined}
    ]


def _read_merged(path: str, raw: bytes) -> str | None:
    try:
        return _read_side(path, raw)
    except NpuprofError:
        return None


def _merge_as_text(ours: str, base: str, theirs: str, size: int) -> LineMerge:
    """Return git's own merge of three files, and its number of conflicts; None if git fails."""
    labels = ["-L", "ours", "-L", "base", "-L", "theirs"]
    files = [os.path.abspath(name) for name in (ours, base, theirs)]
    # git would wait for a pipe forever
    for file in files:
        require_plain_file(file)
    result = Git(os.getcwd()).try_command(
        "merge-file", "-p", f"--marker-size={size}", *labels, *files
    )
    # git merge-file exits with the number of conflicts, and with 255 for an error
    return LineMerge(result.code, None if result.code >= 128 else result.output)


VERB = MergeDriver
