"""Three-way merge of presets by statement: changes of one side are taken, all others are conflicts.

A statement is a table header or a ``key = value``, with the comments before it. Lists that both
sides changed are merged by element. No value or comment of either side is lost: it is in the
result, or in a conflict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from npuprof.catalog import values
from npuprof.document import keys, parse_toml_text, parse_toml_value
from npuprof.document.profile import PROFILE_KEYS
from npuprof.edit.inline import rewrite_value
from npuprof.edit.paths import MISSING, find_at_path
from npuprof.edit.schemaline import measure_schema_head
from npuprof.edit.sequences import find_differing_runs
from npuprof.edit.toml_statements import (
    Statement,
    Statements,
    collect_comments,
    find_line_ending,
    normalize_line_endings,
    split_lines,
)
from npuprof.model import SECTIONS, Path, Record

#: A piece of text in our and their version, equal unless there is a conflict.
Pair = tuple[str, str]
#: The paths of the schema line, and of the lines after the last statement.
_HEAD: Path = ("#:schema",)
_END: Path = ()


class Merged(Record):
    """The merged text with its conflicts, our version of the text, the conflicts, and the paths
    taken from theirs.

    ``is_undecided`` is set if the statements of both sides do not fit together: every difference is
    a conflict.
    """

    text: str
    ours: str
    conflicts: tuple[str, ...]
    taken: tuple[Path, ...] = ()
    is_undecided: bool = False


def merge_texts(
    base: str, ours: str, theirs: str, forced: Iterable[Path] = (), size: int = 7
) -> Merged:
    """Merge three valid TOML texts, with our line endings.

    Differences at or below ``forced`` paths are conflicts.
    """
    newline = find_line_ending(ours)
    below, mine, rival = (normalize_line_endings(text) for text in (base, ours, theirs))
    merge = _Merge(_Layout(below), _Layout(mine), _Layout(rival), forced)
    sides = ["".join(pair[side] for pair in merge.pairs) for side in (0, 1)]
    if merge.is_undecided or any(
        _list_paths(text) != merge.list_paths(side) for side, text in enumerate(sides)
    ):
        conflicts = ("conflict: both sides changed which tables and overrides there are",)
        return Merged(
            format_conflicts(mine, rival, size).replace("\n", newline),
            ours,
            conflicts,
            is_undecided=True,
        )
    text = "".join(_format_pairs(merge.pairs, size))
    return Merged(
        text.replace("\n", newline),
        sides[0].replace("\n", newline),
        tuple(merge.conflicts),
        tuple(merge.taken),
    )


class _Layout:
    """A text as statements, by paths that are stable across versions: overrides are identified by
    their match.
    """

    def __init__(self, text: str) -> None:
        head = measure_schema_head(text)
        data = parse_toml_text(text)
        statements = Statements(text[head:])
        self.marks = _mark_override_blocks(data.get("override"))
        self.rows = {_HEAD: Statement(text[:head], _HEAD)}
        self.values: dict[Path, Any] = {}
        for row in statements:
            value = find_at_path(data, row.path)
            row.path, row.table = self._mark_path(row.path), self._mark_path(row.table)
            self.rows[row.path], self.values[row.path] = row, value
        self.rows[_END] = statements.last
        self.order = list(self.rows)

    def _mark_path(self, path: Path) -> Path:
        return (
            ("override", self.marks[path[1]], *path[2:])
            if path[0:1] == ("override",) and path[1:] and self.marks
            else path
        )

    def list_blocks(self) -> dict[Path, str]:
        """Return the texts of the override blocks, by path."""
        blocks: dict[Path, str] = {}
        for path, row in self.rows.items():
            if path[:1] == ("override",):
                blocks[path[:2]] = blocks.get(path[:2], "") + row.text
        return blocks


def _mark_override_blocks(blocks: Any) -> list[str]:
    """Return the identity of each override block: its match, and the number of equal ones before.

    Empty for invalid blocks.
    """
    counts: Counter[str] = Counter()
    marks = []
    for block in (
        blocks
        if isinstance(blocks, list) and all(isinstance(block, dict) for block in blocks)
        else ()
    ):
        match = block.get("match")
        mark = keys.format_toml_value(
            dict(sorted(match.items())) if isinstance(match, dict) else match
        )
        marks.append(f"{mark} {counts[mark]}")
        counts[mark] += 1
    return marks


class _Merge:
    """The merge of three layouts: ``pairs`` are the pieces of its text."""

    def __init__(
        self, base: _Layout, ours: _Layout, theirs: _Layout, forced: Iterable[Path]
    ) -> None:
        self._base, self._ours, self._theirs = base, ours, theirs
        self._forced = {
            *forced,
            *_list_torn_blocks(*(side.list_blocks() for side in (base, ours, theirs))),
        }
        self.conflicts: list[str] = []
        self.taken: list[Path] = []
        self.is_undecided = _are_blocks_moved(base, ours, theirs) or any(
            isinstance(part, int) for path in ours.rows for part in path
        )
        self._leads: dict[Path, Pair] = {}
        self._texts: dict[Path, Pair] = {}
        for path in {**ours.rows, **theirs.rows}:
            self._merge_row(path, *(side.rows.get(path) for side in (base, ours, theirs)))
        self._keep_used_headers()
        self._order = list(self._arrange())
        self.pairs = [
            pair for path in self._order for pair in (self._leads[path], self._texts[path])
        ]

    def list_paths(self, side: int) -> list[Path]:
        """Return the paths of the statements in our (0) or their (1) version."""
        return [path for path in self._order if self._texts[path][side]]

    def _merge_row(
        self, path: Path, before: Statement | None, mine: Statement | None, rival: Statement | None
    ) -> None:
        present = mine or rival
        assert present is not None, "a side has it"
        is_forced = any(path[:end] in self._forced for end in range(1, len(path) + 1))
        if is_forced or (
            before is not None and (mine is None or rival is None) and _is_changed(before, present)
        ):
            self._leads[path] = mine.lead if mine else "", rival.lead if rival else ""
            self._texts[path] = mine.text if mine else "", rival.text if rival else ""
            if self._texts[path][0] != self._texts[path][1]:
                self._note_conflict(path)
        elif mine is None or rival is None:
            lead, text = (present.lead, present.text) if before is None else ("", "")
            self._leads[path], self._texts[path] = (lead, lead), (text, text)
            self.taken += [path] if (mine is None) is (before is None) else []
        else:
            self._leads[path] = _merge_lead(before.lead if before else "", mine.lead, rival.lead)
            self._texts[path] = self._merge_text(path, before, mine, rival)
            self.taken += [path] if self._texts[path][0] != mine.text else []
        if (
            self._leads[path][0] != self._leads[path][1]
            and self._texts[path][0] == self._texts[path][1]
        ):
            self.conflicts.append(f"conflict in the comments of {_format_place(path)}")

    def _note_conflict(self, path: Path) -> None:
        sides = self._ours.values.get(path, MISSING), self._theirs.values.get(path, MISSING)
        shown = ["gone" if value is MISSING else keys.format_short_value(value) for value in sides]
        what = f"{_format_place(path)}: here {shown[0]}, there {shown[1]}"
        self.conflicts.append(
            "conflict in "
            f"{what if shown[0] != shown[1] else f'the comments of {_format_place(path)}'}"
        )

    def _merge_text(
        self, path: Path, before: Statement | None, mine: Statement, rival: Statement
    ) -> Pair:
        """Return our and their version of a statement that both sides have."""
        if rival.text in (mine.text, before.text if before else None):
            return mine.text, mine.text
        if (mine.header, mine.table) != (rival.header, rival.table):
            self.is_undecided = True
        if before is not None and mine.text == before.text:
            return rival.text, rival.text
        merged = (
            MISSING
            if mine.header
            else merge_values(
                path,
                *(
                    side.values.get(path, MISSING)
                    for side in (self._base, self._ours, self._theirs)
                ),
            )
        )
        known, here, there = (
            collect_comments(row.text) if row else Counter() for row in (before, mine, rival)
        )
        lines = _merge_lines(before.text, mine.text, rival.text) if before else ""
        if merged is not MISSING and _does_set(lines, mine, merged):
            return lines, lines
        if merged is not MISSING:
            written = [
                _write_value(row, side.values[path], merged)
                for row, side in ((mine, self._ours), (rival, self._theirs))
            ]
            source = 0 if there in (known, here) else 1 if here == known else -1
            if source >= 0 and collect_comments(written[source]) == (here, there)[source]:
                return written[source], written[source]
        self._note_conflict(path)
        return mine.text, rival.text

    def _keep_used_headers(self) -> None:
        """Keep the headers of non-empty tables, on each side."""
        for path, text in list(self._texts.items()):
            row = self._ours.rows.get(path) or self._theirs.rows[path]
            header = self._ours.rows.get(row.table) or self._theirs.rows.get(row.table)
            if not row.header and header is not None and header.header:
                shown = self._texts[row.table]
                used = bool(shown[0] or text[0]), bool(shown[1] or text[1])
                if used != (bool(shown[0]), bool(shown[1])):
                    self._leads[row.table] = header.lead * used[0], header.lead * used[1]
                    self._texts[row.table] = header.text * used[0], header.text * used[1]

    def _arrange(self) -> Iterator[Path]:
        """Yield our paths in order, with new paths of theirs after their predecessors there."""
        order, theirs = self._ours.order, self._theirs.rows
        place = {path: number for number, path in enumerate(order)}
        added: dict[int, list[Path]] = {}
        number, table = 0, _END
        for path, row in theirs.items():
            if path in place:
                number, table = place[path], row.table
                continue
            if not row.header and row.table != table and row.table in place:
                number = place[row.table]
            while (following := self._ours.rows[order[number + 1]]) is not self._ours.rows[
                _END
            ] and (following.path not in theirs if following.header is row.header else row.header):
                number += 1
            table = row.table
            added.setdefault(number, []).append(path)
        for number, path in enumerate(order):
            yield path
            yield from added.get(number, ())


def _list_torn_blocks(
    base: dict[Path, str], ours: dict[Path, str], theirs: dict[Path, str]
) -> list[Path]:
    """Return the override blocks that one side removed and the other changed."""
    return [
        path
        for path, text in base.items()
        if (path in ours) is not (path in theirs) and text != ours.get(path, theirs.get(path))
    ]


def _are_blocks_moved(base: _Layout, ours: _Layout, theirs: _Layout) -> bool:
    """Return whether theirs has reordered the override blocks and also added or removed some: their
    order matters.
    """
    common = {*ours.marks} & {*theirs.marks}
    mine, rival = ([mark for mark in side.marks if mark in common] for side in (ours, theirs))
    return mine != rival and theirs.marks != base.marks


def _is_changed(before: Statement, row: Statement) -> bool:
    """Return whether a side changed a statement or its comments."""
    return row.text != before.text or not {*_list_comments(row.lead)} <= {
        *_list_comments(before.lead)
    }


def _list_comments(lead: str) -> list[str]:
    return [line.strip() for line in split_lines(lead) if line.strip()]


def _merge_lead(before: str, mine: str, rival: str) -> Pair:
    """Return our and their version of the comments before a statement."""
    known, here, there = map(_list_comments, (before, mine, rival))
    if mine == before or (here == known and there != known):
        return rival, rival
    if there in (known, here):
        return mine, mine
    merged = _merge_lines(before, mine, rival)
    return (merged, merged) if merged else (mine, rival)


def _merge_lines(before: str, mine: str, rival: str) -> str:
    """Return merged lines; empty if both sides changed one place."""
    lines = merge_ordered_lists(split_lines(before), split_lines(mine), split_lines(rival))
    return "" if lines is MISSING else "".join(lines)


def _write_value(row: Statement, old: Any, new: Any) -> str:
    return (
        row.text[: row.value]
        + rewrite_value(row.text[row.value : row.end], old, new)
        + row.text[row.end :]
    )


def _does_set(text: str, row: Statement, value: Any) -> bool:
    """Return whether a text is a statement with another one's key and a given value."""
    try:
        is_same_key = text[: row.value] == row.text[: row.value]
        return is_same_key and values.is_same_typed_value(
            parse_toml_value(text[row.value :]), value
        )
    except ValueError:
        return False


def _list_paths(text: str) -> list[Path]:
    """Return the paths of the statements of a text; empty if it is invalid."""
    try:
        return [path for path, row in _Layout(text).rows.items() if row.text]
    except ValueError:
        return [("not valid",)]


def _format_place(path: Path) -> str:
    head = (
        f"override {str(path[1]).rpartition(' ')[0]}"
        if path[:1] == ("override",) and len(path) > 1
        else ""
    )
    return (
        keys.format_key_path(head, path[2:] if head else path).lstrip(".") or "the end of the file"
    )


# -- values ---------------------------------------------------------------------------------------


def merge_values(path: Path, base: Any, ours: Any, theirs: Any) -> Any:
    """Return the merge of two values, tables by key and lists by element.

    MISSING for a conflict.
    """
    key = find_setting_key(path)
    if values.is_same_typed_value(ours, theirs) or values.is_same_typed_value(theirs, base):
        return ours
    if values.is_same_typed_value(ours, base):
        return theirs
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return _merge_tables(path, base if isinstance(base, dict) else {}, ours, theirs)
    if key and MISSING not in (ours, theirs) and values.is_equivalent_setting(key, ours, theirs):
        return ours  # equivalent values in two forms
    if isinstance(ours, list) and isinstance(theirs, list):
        merge_lists = merge_unordered_lists if _is_unordered_list(path) else merge_ordered_lists
        return merge_lists(base if isinstance(base, list) else [], ours, theirs)
    return MISSING


def _merge_tables(
    path: Path, base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> Any:
    merged = {}
    for name in {**ours, **theirs}:
        three = [side.get(name, MISSING) for side in (base, ours, theirs)]
        value = merge_values((*path, name), *three)
        if value is not MISSING:
            merged[name] = value
        elif not any(values.is_same_typed_value(three[0], side) for side in three[1:]):
            return MISSING  # removed on one side and changed on the other
    return merged


def find_setting_key(path: Path) -> str:
    """Return the full key of the setting at a document path, or an empty string."""
    if path[:1] == ("append",):
        path = path[1:]
    elif path[:1] == ("override",):
        path = path[2:]
    return keys.format_full_key(path[0], path[1]) if len(path) == 2 and path[0] in SECTIONS else ""


def _is_unordered_list(path: Path) -> bool:
    if path[0] == "profile" or path[-1] == "unset":
        return (key := PROFILE_KEYS.get(path[-1])) is not None and key.unordered
    inner = path[1:] if path[0] == "append" else path[2:] if path[0] == "override" else path
    if len(inner) < 2 or inner[0] not in SECTIONS:
        return inner[:1] == ("match",)
    structure = values.find_structure(keys.format_full_key(inner[0], inner[1]))
    return structure is not None and structure.unordered


def _identify_value(value: Any) -> str:
    return keys.format_toml_value(value) if not isinstance(value, float) else f"float {value!r}"


def merge_unordered_lists(base: list[Any], ours: list[Any], theirs: list[Any]) -> list[Any]:
    """Merge lists as sets: ours without their removals, then their additions."""
    below, mine, rival = ({_identify_value(item) for item in side} for side in (base, ours, theirs))
    remaining = [
        item
        for item in ours
        if _identify_value(item) in rival or _identify_value(item) not in below
    ]
    return remaining + [
        item
        for item in theirs
        if _identify_value(item) not in mine and _identify_value(item) not in below
    ]


def merge_ordered_lists(base: list[Any], ours: list[Any], theirs: list[Any]) -> Any:
    """Merge ordered lists; MISSING if both sides changed one place, or moved one element."""
    marks = [[*map(_identify_value, side)] for side in (base, ours, theirs)]
    mine, rival = (
        {
            (first, last): side[start:end]
            for first, last, start, end in find_differing_runs(marks[0], other)
        }
        for side, other in ((ours, marks[1]), (theirs, marks[2]))
    )
    merged = []
    done = 0
    for run in sorted({*mine, *rival}):
        if run[0] < done or (
            run in mine and run in rival and not values.is_same_typed_value(mine[run], rival[run])
        ):
            return MISSING
        merged += [*base[done : run[0]], *(mine[run] if run in mine else rival[run])]
        done = run[1]
    merged += base[done:]
    return (
        MISSING
        if Counter(map(_identify_value, merged)) - (Counter(marks[1]) | Counter(marks[2]))
        else merged
    )


# -- conflict markers -----------------------------------------------------------------------------


def _format_pairs(pairs: Sequence[Pair], size: int) -> Iterator[str]:
    """Yield pieces of a text; differing ones between conflict markers, ours first."""
    for is_equal, group in groupby(
        (pair for pair in pairs if any(pair)), key=lambda pair: pair[0] == pair[1]
    ):
        mine, rival = map("".join, zip(*group, strict=True))
        yield (
            mine
            if is_equal
            else f"{'<' * size} ours\n{mine}{'=' * size}\n{rival}{'>' * size} theirs\n"
        )


def format_conflicts(ours: str, theirs: str, size: int = 7) -> str:
    """Return two texts as one, with differing lines between conflict markers, ours first."""
    newline = find_line_ending(ours)
    mine, rival = (split_lines(normalize_line_endings(text)) for text in (ours, theirs))
    pairs = []
    done = 0
    for first, last, start, end in find_differing_runs(mine, rival):
        pairs += [
            *((line, line) for line in mine[done:first]),
            ("".join(mine[first:last]), "".join(rival[start:end])),
        ]
        done = last
    pairs += [(line, line) for line in mine[done:]]
    return "".join(_format_pairs(pairs, size)).replace("\n", newline)


def split_conflicts(text: str) -> tuple[str, str] | None:
    """Return the two sides of a text with conflict markers, None if it has no complete conflict.

    The markers may be longer than usual: git writes longer ones into a base that it merged itself.
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
