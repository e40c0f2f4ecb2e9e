"""Three-way merge of profiles as text: ours with what theirs brings, and conflicts marked where they clash."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from npuprof import edit
from npuprof.catalog import values
from npuprof.edit.merge import Merge
from npuprof.edit.paths import MISSING, PathChange
from npuprof.edit.sequences import find_differing_runs
from npuprof.edit.statements import Statements, find_line_ending, set_line_endings, split_lines
from npuprof.model import Path, Record


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
    merge = Merge(tomllib.loads(base), tomllib.loads(ours), tomllib.loads(theirs), forced)
    clean = _merge_comments(base, ours, theirs, edit.apply_changes(ours, merge.steps, theirs))
    text = clean
    if merge.clashes:
        order = sorted(merge.clashes, key=lambda clash: _removal_sort_key(clash.path, clash.theirs))
        rival = edit.apply_changes(clean, [PathChange(clash.path, clash.theirs, clash.there) for clash in order], theirs)
        text = format_conflicts(clean, rival, size)
    return Merged(text, merge, tomllib.loads(clean), clean)


def _removal_sort_key(path: Path, value: Any) -> tuple[bool, int]:
    """Sort what takes an override away behind all else, the last of them first, so that no index shifts."""
    gone = value is MISSING and len(path) == 2 and isinstance(path[-1], int)
    return gone, -path[-1] if gone else 0


def _merge_comments(base: str, ours: str, theirs: str, result: str) -> str:
    """Take over what theirs did to the comments beside and above a statement that ours left alone."""
    before, mine, other = (_index_comments(Statements(set_line_endings(text, "\n"))) for text in (base, ours, theirs))
    newline = find_line_ending(result)
    rows = Statements(result)
    for path, remark in _index_comments(rows).items():
        if path in other and other[path] != remark == before.get(path) == mine.get(path):
            row, (above, beside) = rows.at[path], other[path]
            row.comments = "".join(f"{row.indent}{line}{newline}" for line in above)
            row.text = row.text[: row.end].rstrip(" \t") + beside + row.text[len(row.text.rstrip("\r\n")) :]
    return str(rows)


def _index_comments(rows: Statements) -> dict[Path, tuple[list[str], str]]:
    """Return the comment lines above each statement, and what follows it; those of overrides differ in number from side to side."""
    return {
        row.path: ([line.strip() for line in split_lines(row.comments)], row.text[row.end :].rstrip("\r\n"))
        for row in rows
        if row.path[0] != "override"
    }


def format_conflicts(ours: str, theirs: str, size: int = 7) -> str:
    """Return two texts as one: lines that differ stand between conflict markers, ours first."""
    newline = find_line_ending(ours)
    mine, other = (split_lines(text + newline * bool(text and text[-1] != "\n")) for text in (ours, theirs))
    found: list[str] = []
    done = 0
    for first, last, start, end in find_differing_runs(mine, other):
        found += [*mine[done:first], "<" * size + f" ours{newline}", *mine[first:last], "=" * size + newline]
        found += [*other[start:end], ">" * size + f" theirs{newline}"]
        done = last
    return "".join(found + mine[done:])


def split_conflicts(text: str) -> tuple[str, str] | None:
    """Return the two texts that conflict markers stand between, None where there are no whole conflicts.

    The markers may be longer than usual: git writes such into a base that it merged itself.
    """
    found: tuple[list[str], list[str]] = ([], [])
    state = ""
    whole = 0
    for line in split_lines(text):
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
