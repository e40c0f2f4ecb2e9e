"""Three-way merge of profiles as text: ours with what theirs brings, and conflicts marked where they clash."""

from __future__ import annotations

import tomllib
from typing import Any

from npuprof import edit
from npuprof.catalog import values
from npuprof.edit import PathChange, layout
from npuprof.edit.merge import Merge, MergeStep
from npuprof.edit.paths import MISSING
from npuprof.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.model import Path


class Merged(Record):
    """The merged text; ``data`` is what it holds where there are no ``clashes``, ours where there are."""

    text: str
    merge: Merge
    data: dict[str, Any]
    ours: str


def merge_texts(base: str, ours: str, theirs: str, forced: Sequence[Path] = (), size: int = 7) -> Merged:
    """Merge three texts of valid TOML; ours lends the layout and the line endings.

    Raises NpuprofError where the change cannot be made to the text, TOMLDecodeError for text that is no TOML.
    """
    below, mine, other = (text.replace("\r\n", "\n") for text in (base, ours, theirs))
    merge = Merge(tomllib.loads(below), tomllib.loads(mine), tomllib.loads(other), forced)
    donor = layout.parse_statements(_end_with_newline(other))
    plain = {row.text.strip() for row in donor if row.kind == "comment"}

    def is_stale_comment(line: str) -> bool:
        return line not in plain

    def build_path_change(step: MergeStep, value: Any) -> PathChange:
        rows = donor if step.theirs == step.path else None
        return PathChange(step.path, value, _move_override_rows(donor, step) if rows is None else rows, is_stale_comment)

    clean = edit.apply_changes(mine, [build_path_change(step, step.value) for step in merge.steps])
    clean = _merge_comments(below, mine, other, clean)
    text = clean
    if merge.clashes:
        order = sorted(merge.clashes, key=lambda clash: _removal_sort_key(clash.path, clash.theirs))
        steps = [MergeStep(clash.path, clash.theirs, clash.there) for clash in order]
        rival = edit.apply_changes(clean, [build_path_change(step, step.value) for step in steps])
        text = format_conflicts(clean, rival, size)
    return Merged(layout.keep_line_endings(ours, text), merge, tomllib.loads(clean), clean)


def _removal_sort_key(path: Path, value: Any) -> tuple[bool, int]:
    """Sort what takes an override away behind all else, the last of them first, so that no index shifts."""
    gone = value is MISSING and len(path) == 2 and isinstance(path[-1], int)
    return gone, -path[-1] if gone else 0


def _end_with_newline(text: str) -> str:
    return text if text.endswith("\n") or not text else text + "\n"


def _move_override_rows(donor: list[layout.Statement], step: MergeStep) -> list[layout.Statement] | None:
    """Return the statements of their override as they would stand at its place in ours."""
    size = len(step.theirs)
    if step.value is MISSING or step.theirs[:1] != ("override",) or size < 2 or len(step.path) < 2:
        return None
    old, new = step.theirs[:2], step.path[:2]
    found = []
    for row in donor:
        path, table = (new + side[2:] if side[:2] == old else side if side[:1] != ("override",) else () for side in (row.path, row.table))
        found.append(layout.Statement(row.kind, row.text, path, table, row.value))
    return found


def _merge_comments(base: str, ours: str, theirs: str, result: str) -> str:
    """Take over what theirs did to the comments beside and above a statement that ours left alone."""
    before, mine, other = (_index_comments(text) for text in (base, ours, theirs))
    rows = layout.parse_statements(_end_with_newline(result))
    wanted = {
        path: remark for path, remark in other.items() if path in before and remark != before[path] and mine.get(path) == before[path]
    }
    done: list[layout.Statement] = []
    for index, row in enumerate(rows):
        if row.kind in ("header", "pair") and row.path in wanted and _find_row_comments(rows, index) == before[row.path]:
            above, beside = wanted[row.path]
            first = layout.find_lead_start(rows, index)
            del done[len(done) - (index - first) :]
            done += [layout.Statement("comment", f"{row.indent}{line}\n") for line in above]
            end = _find_value_end(row)
            row.text = row.text[:end].rstrip(" \t") + beside + "\n"
        done.append(row)
    text = layout.join_statements(done)
    return text if result.endswith("\n") else text.removesuffix("\n")


def _index_comments(text: str) -> dict[Path, tuple[tuple[str, ...], str]]:
    rows = layout.parse_statements(_end_with_newline(text))
    return {
        row.path: _find_row_comments(rows, index)
        for index, row in enumerate(rows)
        if row.kind in ("header", "pair") and row.path[:1] != ("override",)  # their numbers differ from side to side
    }


def _find_row_comments(rows: list[layout.Statement], index: int) -> tuple[tuple[str, ...], str]:
    """Return the comment lines above a statement, and what follows its value."""
    row = rows[index]
    above = tuple(line.text.strip() for line in rows[layout.find_lead_start(rows, index) : index])
    return above, row.text[_find_value_end(row) :].rstrip("\n")


def _find_value_end(row: layout.Statement) -> int:
    """Return where the value of a pair ends, or the brackets of a header."""
    if row.kind == "pair":
        return row.value[1]
    try:
        tomllib.loads(row.text)
    except tomllib.TOMLDecodeError:
        return len(row.text.rstrip())
    place = row.text.rfind("]")
    while True:  # a comment may hold brackets too
        shorter = row.text.rfind("]", 0, place)
        if shorter < 0:
            return place + 1
        try:
            tomllib.loads(row.text[: shorter + 1])
        except tomllib.TOMLDecodeError:
            return place + 1
        place = shorter


def format_conflicts(ours: str, theirs: str, size: int = 7) -> str:
    """Return two texts as one: lines that differ stand between conflict markers, ours first."""
    from difflib import SequenceMatcher

    mine, other = _end_with_newline(ours).splitlines(keepends=True), _end_with_newline(theirs).splitlines(keepends=True)
    found: list[str] = []
    for tag, first, last, start, end in SequenceMatcher(None, mine, other, False).get_opcodes():
        if tag == "equal":
            found += mine[first:last]
        else:
            found += ["<" * size + " ours\n", *mine[first:last], "=" * size + "\n", *other[start:end], ">" * size + " theirs\n"]
    return "".join(found)


def split_conflicts(text: str) -> tuple[str, str] | None:
    """Return the two texts that conflict markers stand between, None where there are no whole conflicts.

    The markers may be longer than usual: git writes such into a base that it merged itself.
    """
    found: tuple[list[str], list[str]] = ([], [])
    state = ""
    whole = 0
    for line in text.splitlines(keepends=True):
        mark, _, label = line.rstrip("\r\n").partition(" ")
        kind = mark[:1] if len(mark) >= 7 and mark == mark[:1] * len(mark) else ""
        if not state and kind == "<" and label:
            state = "ours"
        elif state == "ours" and kind == "|" and label:
            state = "base"
        elif state in ("ours", "base") and kind == "=" and not label:
            state = "theirs"
        elif state == "theirs" and kind == ">" and label:
            state, whole = "", whole + 1
        elif state != "base":
            for side in (0, 1) if not state else (state == "theirs",):
                found[side].append(line)
    return ("".join(found[0]), "".join(found[1])) if whole and not state else None


def keep_agreed_values(left: str, right: str) -> str:
    """Return the first text without what the second does not hold alike."""
    gone: list[Path] = []
    waiting: list[tuple[Path, Any, Any]] = [((), tomllib.loads(left), tomllib.loads(right))]
    while waiting:
        path, one, two = waiting.pop()
        if isinstance(one, dict) and isinstance(two, dict):
            waiting += [((*path, name), item, two.get(name, MISSING)) for name, item in one.items()]
        elif two is MISSING or not values.is_same_typed_value(one, two):
            gone.append(path)
    return edit.apply_changes(left, [PathChange(path, MISSING) for path in gone])
