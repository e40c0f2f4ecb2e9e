"""``git merge-driver``: merge presets by key and list element. It never fails a merge that git could do."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from typing import NamedTuple

from npuprof.catalog import values
from npuprof.commands.framework.verb import Verb, argument
from npuprof.document import keys, parse_document
from npuprof.document.secrets import hide_secrets
from npuprof.edit.merge import is_merge_of_both
from npuprof.edit.merge_check import find_unfit_changes
from npuprof.edit.mergetext import find_lost_comments, format_conflicts, keep_agreed_values, merge_texts, split_conflicts
from npuprof.edit.paths import MISSING
from npuprof.model import Finding, NpuprofError, Path, TomlTable
from npuprof.report import output, writing
from npuprof.report.answer import Answer
from npuprof.store.gitstore.objects import Git, require_plain_file
from npuprof.store.sources.lock import FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.edit.merge import Clash

_BOM = b"\xef\xbb\xbf"


class MergeDriver(Verb):
    """Merge two versions of a preset into ours."""

    group = "team"
    hidden = True
    takes_any_word = True

    base: str = argument("base", "Common ancestor of both sides")
    ours: str = argument("ours", "This side, overwritten with the result")
    theirs: str = argument("theirs", "Other side")
    path: str = argument("path", "Path of the preset")
    size: str = argument("size", "Length of conflict markers", default="7")

    def run(self) -> Answer:
        """Merge a preset; the result replaces ``ours``. Exit 1 where conflicts are left in it."""
        size, files = _read_mark_size(self.size), (self.base, self.ours, self.theirs)
        by_line = _merge_as_text(self.ours, self.base, self.theirs, size)
        texts: list[str] = []
        try:
            base, *sides = map(output.read_file_content, files)
            texts = [_read_base(self.path, base), *(_read_side(self.path, side) for side in sides)]
            outcome = _merge_sides(texts, by_line, self.path, size)
        except Exception as error:  # whatever it is, git still gets a merge
            reason = error.findings[0].message if isinstance(error, NpuprofError) else str(error) or type(error).__name__
            if not texts or by_line.raw is None or by_line.code or _read_merged(self.path, by_line.raw) is not None:
                if by_line.raw is not None:
                    writing.write_files_atomically({self.ours: by_line.raw})
                return Answer(None, (f"{self.path} is merged as text: {reason}",), 1 if by_line.code else 0)
            outcome = Outcome(
                format_conflicts(texts[1], texts[2], size), True, [f"conflict: its lines merge into what is no preset: {reason}"]
            )
        bom = _BOM if sides[0].startswith(_BOM) else b""
        writing.write_files_atomically({self.ours: bom + outcome.text.encode()})
        return Answer(
            None, tuple(f"{self.path}: {hide_secrets(self.path, remark)}" for remark in outcome.remarks), 1 if outcome.conflicts else 0
        )


def _read_mark_size(text: str) -> int:
    """Return how long marks are, as git says it. Raises NpuprofError (NP902) for what is no such number."""
    if text.isascii() and text.isdigit() and len(text) <= 4 and int(text):
        return int(text)
    raise NpuprofError([Finding("NP902", f"marks cannot be {text!r} characters long", "", "give what git gives as %L, mostly 7")])


class LineMerge(NamedTuple):
    """What git makes of the lines: how many conflicts, and the text; None where it has no answer."""

    code: int
    raw: bytes | None


class Outcome(NamedTuple):
    """What goes into the file, whether conflicts are in it, and what is said of it."""

    text: str
    conflicts: bool
    remarks: list[str]


def _describe_clash(clash: Clash) -> str:
    shown = ["gone" if value is MISSING else keys.format_short_value(value) for value in (clash.ours, clash.theirs)]
    if MISSING in (clash.ours, clash.theirs):
        sides = (clash.ours, clash.theirs)
        changed = [value is not MISSING and values.is_same_typed_value(clash.base, value) for value in sides]
        shown = ["with another comment" if comment else text for comment, text in zip(changed, shown, strict=True)]
    return f"conflict in {_format_place(clash.path)}: here {shown[0]}, there {shown[1]}"


def _format_place(path: Path) -> str:
    return keys.format_key_path("", path).lstrip(".") or "the end of the file"


def _read_base(path: str, raw: bytes) -> str:
    """Return the text of the base; of one that git merged itself, and left conflicts in, what its sides agree on."""
    pair = split_conflicts(raw.decode())
    return keep_agreed_values(*(_read_side(path, side.encode()) for side in pair)) if pair else _read_side(path, raw)


def _read_side(path: str, raw: bytes) -> str:
    """Return the text of one side, which has to be TOML; an empty one stands for a file that was not there."""
    return parse_document(path, path, raw).text


def _merge_sides(texts: Sequence[str], by_line: LineMerge, path: str, size: int) -> Outcome:
    """Merge by line where that sets what a merge by key would set, else by key; what would be lost in that is a conflict."""
    base, ours, theirs = texts
    torn = _list_torn_fields(path, texts)
    result = merge_texts(base, ours, theirs, torn, size)
    line_text = None if torn or by_line.code or by_line.raw is None else _read_merged(path, by_line.raw)
    if line_text is not None and not is_merge_of_both(*map(tomllib.loads, (line_text, *texts))):
        line_text = None
    unfit = find_unfit_changes(result if line_text is None else result._replace(ours=line_text), texts, path)
    if unfit.forced:
        result = merge_texts(base, ours, theirs, [*torn, *unfit.forced], size)
    elif line_text is not None:
        return Outcome(line_text, False, unfit.remarks)
    remarks = [*unfit.remarks, *map(_describe_clash, result.merge.clashes)]
    remarks += [f"conflict in the comments of {_format_place(place)}" for place in result.apart]
    if find_lost_comments(texts, result.text):
        remarks = [*unfit.remarks, "conflict: a comment of one side has no place in the merge by key"]
        return Outcome(_keep_both_sides(texts, by_line, path, size), True, remarks)
    return Outcome(result.text, not result.is_clean, remarks)


def _list_torn_fields(path: str, texts: Sequence[str]) -> list[Path]:
    """Return the fields of a lock's entries that both sides changed otherwise: they belong together, and none may come from each side.

    Only references to single versions that both sides added to one entry are joined.
    """
    if os.path.basename(path) != FILE:
        return []
    base, ours, theirs = (entries if isinstance(entries := tomllib.loads(text).get("sources"), dict) else {} for text in texts)
    fields: list[Path] = []
    for name, mine in ours.items():
        their_entry, before = theirs.get(name), base.get(name)
        if isinstance(mine, dict) and isinstance(their_entry, dict) and before not in (mine, their_entry) and _is_torn(mine, their_entry):
            fields += [("sources", name, field) for field in {**mine, **their_entry}]
    return fields


def _is_torn(mine: TomlTable, theirs: TomlTable) -> bool:
    joined = {"versions": None, "seals": None}
    return {**mine, **joined} != {**theirs, **joined}


def _keep_both_sides(texts: Sequence[str], by_line: LineMerge, path: str, size: int) -> str:
    """Return a conflict that holds all that both sides say: git's own where either side of it can be read, else all that differs."""
    if by_line.code and by_line.raw is not None:
        text = by_line.raw.decode(errors="replace")
        pair = split_conflicts(text)
        if pair and all(_read_merged(path, side.encode()) is not None for side in pair) and not find_lost_comments(texts, text):
            return text
    return format_conflicts(texts[1], texts[2], size)


def _read_merged(path: str, raw: bytes) -> str | None:
    try:
        return _read_side(path, raw)
    except NpuprofError:
        return None


def _merge_as_text(ours: str, base: str, theirs: str, size: int) -> LineMerge:
    """Return git's own merge of three files, and how many conflicts are in it; None where it has no answer."""
    names = [word for label in ("ours", "base", "theirs") for word in ("-L", label)]
    files = [os.path.abspath(name) for name in (ours, base, theirs)]
    for file in files:
        require_plain_file(file)
    code, text, _ = Git(os.getcwd()).try_command("merge-file", "-p", f"--marker-size={size}", *names, *files)
    return LineMerge(code, None if code >= 128 else text)


VERB = MergeDriver
