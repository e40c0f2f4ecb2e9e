"""Three-way merge of profiles as text: ours with what theirs brings, and conflicts marked where they clash."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from npuprof import edit
from npuprof.catalog import values
from npuprof.edit.merge import Merge, match_override_blocks
from npuprof.edit.mergecomments import CommentMerge, find_lost_places
from npuprof.edit.paths import MISSING, PathChange, find_at_path
from npuprof.edit.sequences import find_differing_runs
from npuprof.edit.statements import collect_comments, count_needed_comments, find_line_ending, split_lines
from npuprof.model import Path, Record


class Merged(Record):
    """The merged text; ``data`` is its content if there are no ``clashes``, else that of ours.

    ``apart`` are the statements whose comments both sides changed, each differently: they are in conflict as well.
    """

    text: str
    merge: Merge
    data: dict[str, Any]
    ours: str
    apart: tuple[Path, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing in it is in conflict."""
        return not self.merge.clashes and not self.apart


def merge_texts(base: str, ours: str, theirs: str, forced: Sequence[Path] = (), size: int = 7) -> Merged:
    """Merge three texts of valid TOML; ours lends the layout and the line endings.

    A comment that would be lost with its statement puts the statement in conflict. Raises NpuprofError where the change
    cannot be made to the text, TOMLDecodeError for text that is no TOML.
    """
    result = _merge_once(base, ours, theirs, forced, size)
    lost = find_lost_comments((base, ours, theirs), result.text)
    if lost and (more := _find_losing_paths(result.merge, ours, theirs, lost)):
        result = _merge_once(base, ours, theirs, [*forced, *more], size)
    return result


def _merge_once(base: str, ours: str, theirs: str, forced: Sequence[Path], size: int) -> Merged:
    merge = Merge(tomllib.loads(base), tomllib.loads(ours), tomllib.loads(theirs), forced)
    merged = edit.apply_changes(ours, merge.steps, theirs)
    comments = CommentMerge(base, ours, theirs, merged, [clash.path for clash in merge.clashes])
    text = clean = comments.text
    if merge.clashes or comments.clashes:
        order = sorted(merge.clashes, key=lambda clash: _removal_sort_key(clash.path, clash.theirs))
        rival = edit.apply_changes(clean, [PathChange(clash.path, clash.theirs, clash.there) for clash in order], theirs)
        text = format_conflicts(clean, comments.give_to_rival(rival), size)
    return Merged(text, merge, tomllib.loads(clean), clean, tuple(comments.clashes))


def _removal_sort_key(path: Path, value: Any) -> tuple[bool, int]:
    """Sort what takes an override away behind all else, the last of them first, so that no index shifts."""
    gone = value is MISSING and len(path) == 2 and isinstance(path[-1], int)
    return gone, -path[-1] if gone else 0


def find_lost_comments(texts: Sequence[str], result: str) -> Counter[str]:
    """Return the comments of two sides that are missing in a merge and its conflicts, though the other side kept them."""
    mine, rival = map(collect_comments, split_conflicts(result) or (result, result))
    return count_needed_comments(*texts) - (mine | rival)


def _find_losing_paths(merge: Merge, ours: str, theirs: str, lost: Counter[str]) -> list[Path]:
    """Return what has to clash, so that statements which one side took out or replaced keep the comments the other one gave them."""
    paths: list[Path] = []
    for path in find_lost_places(ours, lost):
        paths += [step.path for step in merge.steps if path[: len(step.path)] == step.path]
    data, blocks = tomllib.loads(ours), match_override_blocks(tomllib.loads(theirs), tomllib.loads(ours))
    for path in find_lost_places(theirs, lost):
        if path[0] == "override" and len(path) > 1:
            if path[1] not in blocks:
                continue
            path = ("override", blocks[path[1]], *path[2:])
        missing = (path[:end] for end in range(1, len(path) + 1) if find_at_path(data, path[:end]) is MISSING)
        paths += [first] if (first := next(missing, ())) else []
    return paths


def format_conflicts(ours: str, theirs: str, size: int = 7) -> str:
    """Return two texts as one: lines that differ are between conflict markers, ours first."""
    newline = find_line_ending(ours)
    mine, rival = (split_lines(text + newline * bool(text and text[-1] != "\n")) for text in (ours, theirs))
    lines: list[str] = []
    done = 0
    for first, last, start, end in find_differing_runs(mine, rival):
        lines += [*mine[done:first], "<" * size + f" ours{newline}", *mine[first:last], "=" * size + newline]
        lines += [*rival[start:end], ">" * size + f" theirs{newline}"]
        done = last
    return "".join(lines + mine[done:])


def split_conflicts(text: str) -> tuple[str, str] | None:
    """Return the two sides of a text with conflict markers, None if it has no complete conflict.

    The markers may be longer than usual: git writes such into a base that it merged itself.
    """
    sides: tuple[list[str], list[str]] = ([], [])
    state = ""
    conflicts = 0
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
            state, conflicts = "", conflicts + 1
        elif state != "base":
            for side in (0, 1) if not state else (state == "theirs",):
                sides[side].append(line)
    return ("".join(sides[0]), "".join(sides[1])) if conflicts and not state else None


def keep_agreed_values(text: str, counterpart: str) -> str:
    """Return the first text without what the second does not hold alike."""
    gone: list[Path] = []
    waiting: list[tuple[Path, Any, Any]] = [((), tomllib.loads(text), tomllib.loads(counterpart))]
    while waiting:
        path, value, rival = waiting.pop()
        if isinstance(value, dict) and isinstance(rival, dict):
            waiting += [((*path, name), item, rival.get(name, MISSING)) for name, item in value.items()]
        elif rival is MISSING or not values.is_same_typed_value(value, rival):
            gone.append(path)
    return edit.apply_changes(text, [PathChange(path, MISSING) for path in gone])
