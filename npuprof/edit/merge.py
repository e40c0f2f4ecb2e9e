"""Three-way merge of presets by statement: changes of one side are taken, all others are conflicts.

A statement is a table header or a ``key = value``, with the comments before it. Lists that both
sides changed are merged by element. No value or comment of either side is lost: it is in the
result, or in a conflict.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
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
from npuprof.model import LIST_OPS, SECTIONS, Path, Record, TomlTable, is_same_typed_value
from npuprof.system import is_list_of


class Pair(Record):
    """A piece of text in our and their version, equal unless there is a conflict."""

    ours: str
    theirs: str

    @property
    def is_equal(self) -> bool:
        """Whether both sides have the same text."""
        return self.ours == self.theirs


#: The paths of the schema line, and of the lines after the last statement.
_HEAD: Path = ("#:schema",)
_END: Path = ()


class Merged(Record):
    """A merge: its text, our version of that text, its conflicts, and the paths taken from theirs.

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
    our_version = "".join(pair.ours for pair in merge.pairs)
    their_version = "".join(pair.theirs for pair in merge.pairs)
    # each version must contain exactly the statements that were merged
    if (
        merge.is_undecided
        or _list_paths(our_version) != merge.list_paths("ours")
        or _list_paths(their_version) != merge.list_paths("theirs")
    ):
        return Merged(
            format_conflicts(mine, rival, size).replace("\n", newline),
            ours,
            ("conflict: both sides changed which tables and overrides there are",),
            is_undecided=True,
        )
    text = "".join(_format_pairs(merge.pairs, size))
    return Merged(
        text.replace("\n", newline),
        our_version.replace("\n", newline),
        tuple(merge.conflicts),
        tuple(merge.taken),
    )


class _Layout:
    """A text as statements, by paths that are stable across versions.

    Overrides are identified by their match, not by their index.
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
        if path[:1] != ("override",) or len(path) == 1 or not self.marks:
            return path
        return ("override", self.marks[path[1]], *path[2:])

    def list_blocks(self) -> dict[Path, str]:
        """Return the texts of the override blocks, by path."""
        blocks = defaultdict[Path, str](str)
        for path, row in self.rows.items():
            if path[:1] == ("override",):
                blocks[path[:2]] += row.text
        return blocks


def _mark_override_blocks(blocks: Any) -> list[str]:
    """Return the identity of each override block: its match, and the number of equal ones before.

    Empty for invalid blocks.
    """
    if not is_list_of(dict, blocks):
        return []
    counts: Counter[str] = Counter()
    marks = []
    for block in blocks:
        match = block.get("match")
        if isinstance(match, dict):
            match = dict(sorted(match.items()))
        shown = keys.format_toml_value(match)
        marks.append(f"{shown} {counts[shown]}")
        counts[shown] += 1
    return marks


class _Merge:
    """The merge of three layouts: ``pairs`` are the pieces of its text."""

    def __init__(
        self, base: _Layout, ours: _Layout, theirs: _Layout, forced: Iterable[Path]
    ) -> None:
        self._ours = ours
        self._theirs = theirs
        self._sides = base, ours, theirs
        before, mine, rival = (side.list_blocks() for side in self._sides)
        self._forced = {
            *forced,
            # the override blocks that one side removed and the other changed
            *(
                path
                for path, text in before.items()
                if (path in mine) is not (path in rival) and text != mine.get(path, rival.get(path))
            ),
        }
        self.conflicts: list[str] = []
        self.taken: list[Path] = []
        self.is_undecided = _are_blocks_moved(base, ours, theirs) or any(
            isinstance(part, int) for path in ours.rows for part in path
        )
        self._leads: dict[Path, Pair] = {}
        self._texts: dict[Path, Pair] = {}
        for path in {**ours.rows, **theirs.rows}:
            self._merge_row(path, *(side.rows.get(path) for side in self._sides))
        self._restore_used_headers()
        self._order = list(self._arrange_paths())
        self.pairs = [
            piece for path in self._order for piece in (self._leads[path], self._texts[path])
        ]

    def list_paths(self, side: str) -> list[Path]:
        """Return the paths of the statements in the version of ``ours`` or ``theirs``."""
        return [path for path in self._order if getattr(self._texts[path], side)]

    def _merge_row(
        self, path: Path, before: Statement | None, mine: Statement | None, rival: Statement | None
    ) -> None:
        """Merge a statement as it was before, as we have it, and as they have it."""
        present = mine or rival
        assert present, "a side has it"
        is_forced = any(path[:end] in self._forced for end in range(1, len(path) + 1))
        # removed on one side and changed on the other, or its comments: neither can be taken
        # silently
        if is_forced or (
            before
            and not (mine and rival)
            and (
                present.text != before.text
                or not {*_list_comments(present.lead)} <= {*_list_comments(before.lead)}
            )
        ):
            self._leads[path] = Pair(mine.lead if mine else "", rival.lead if rival else "")
            self._texts[path] = Pair(mine.text if mine else "", rival.text if rival else "")
            if not self._texts[path].is_equal:
                self._add_conflict(path)
        elif mine is None or rival is None:
            is_added = before is None
            lead, text = (present.lead, present.text) if is_added else ("", "")
            self._leads[path], self._texts[path] = Pair(lead, lead), Pair(text, text)
            if (mine is None) is is_added:  # they added it, or they removed it
                self.taken.append(path)
        else:
            self._leads[path] = _merge_lead(before.lead if before else "", mine.lead, rival.lead)
            self._texts[path] = self._merge_text(path, before, mine, rival)
            if self._texts[path].ours != mine.text:
                self.taken.append(path)
        if not self._leads[path].is_equal and self._texts[path].is_equal:
            self.conflicts.append(f"conflict in the comments of {_format_location(path)}")

    def _add_conflict(self, path: Path) -> None:
        """Record a conflict between the values at a path, else between their comments."""
        location = _format_location(path)
        ours = _format_side(self._ours.values.get(path, MISSING))
        theirs = _format_side(self._theirs.values.get(path, MISSING))
        what = f"{location}: here {ours}, there {theirs}"
        if ours == theirs:
            what = f"the comments of {location}"
        self.conflicts.append(f"conflict in {what}")

    def _merge_text(
        self, path: Path, before: Statement | None, mine: Statement, rival: Statement
    ) -> Pair:
        """Return our and their version of a statement that both sides have."""
        if rival.text in (mine.text, before.text if before else None):
            return Pair(mine.text, mine.text)
        # a table written as a header here and as dotted keys there cannot be merged by line
        if mine.header != rival.header or mine.table != rival.table:
            self.is_undecided = True
        if before and mine.text == before.text:
            return Pair(rival.text, rival.text)
        merged = MISSING
        if not mine.header:
            merged = merge_values(path, *(side.values.get(path, MISSING) for side in self._sides))
        if merged is not MISSING:
            text = self._write_merged_value(path, merged, before, mine, rival)
            if text:
                return Pair(text, text)
        self._add_conflict(path)
        return Pair(mine.text, rival.text)

    def _write_merged_value(
        self, path: Path, merged: Any, before: Statement | None, mine: Statement, rival: Statement
    ) -> str:
        """Return a statement with a merged value; empty if it would lose a comment."""
        lines = _merge_lines(before.text, mine.text, rival.text) if before else ""
        if _does_set(lines, mine, merged):
            return lines
        known = collect_comments(before.text) if before else Counter()
        our_comments = collect_comments(mine.text)
        their_comments = collect_comments(rival.text)
        # only one text is kept, so that at most one side may have changed its comments
        if their_comments in (known, our_comments):
            row, side, kept = mine, self._ours, our_comments
        elif our_comments == known:
            row, side, kept = rival, self._theirs, their_comments
        else:
            return ""  # both sides changed the comments
        value = rewrite_value(row.text[row.value : row.end], side.values[path], merged)
        text = row.text[: row.value] + value + row.text[row.end :]
        return text if collect_comments(text) == kept else ""

    def _restore_used_headers(self) -> None:
        """Restore the headers of tables that have statements, on each side."""
        for path, text in list(self._texts.items()):
            row = self._ours.rows.get(path) or self._theirs.rows[path]
            header = self._ours.rows.get(row.table) or self._theirs.rows.get(row.table)
            if row.header or header is None or not header.header:
                continue
            shown = self._texts[row.table]
            used_by_us, used_by_them = shown.ours or text.ours, shown.theirs or text.theirs
            if (used_by_us and not shown.ours) or (used_by_them and not shown.theirs):
                self._leads[row.table], self._texts[row.table] = (
                    Pair(part if used_by_us else "", part if used_by_them else "")
                    for part in (header.lead, header.text)
                )

    def _arrange_paths(self) -> Iterator[Path]:
        """Yield our paths in order, with new paths of theirs after their predecessors there."""
        order = self._ours.order
        indices = {path: index for index, path in enumerate(order)}
        added = defaultdict(list)  # by the index of the predecessor in ``order``
        index = 0
        table = _END
        for path, row in self._theirs.rows.items():
            if path in indices:
                index = indices[path]
                table = row.table
                continue
            if not row.header and row.table != table and row.table in indices:
                index = indices[row.table]
            while self._is_before(order[index + 1], row):
                index += 1
            table = row.table
            added[index].append(path)
        for index, path in enumerate(order):
            yield path
            yield from added.get(index, ())

    def _is_before(self, path: Path, row: Statement) -> bool:
        """Return whether a new statement of theirs belongs after our statement at ``path``.

        Our own new statements come first, and a new table comes after all pairs of another one.
        """
        if path == _END:
            return False
        following = self._ours.rows[path]
        if following.header is row.header:
            return following.path not in self._theirs.rows
        return row.header


def _are_blocks_moved(base: _Layout, ours: _Layout, theirs: _Layout) -> bool:
    """Return whether they changed the override blocks and have the common ones in another order.

    The order of overrides matters: the last one that matches wins.
    """
    common = {*ours.marks} & {*theirs.marks}
    our_order, their_order = (
        [mark for mark in side.marks if mark in common] for side in (ours, theirs)
    )
    return our_order != their_order and theirs.marks != base.marks


def _list_comments(lead: str) -> list[str]:
    return [line.strip() for line in split_lines(lead) if line.strip()]


def _merge_lead(before: str, mine: str, rival: str) -> Pair:
    """Return our and their version of the comments before a statement."""
    known, our_comments, their_comments = map(_list_comments, (before, mine, rival))
    if mine == before or (our_comments == known and their_comments != known):
        return Pair(rival, rival)
    if their_comments in (known, our_comments):
        return Pair(mine, mine)
    merged = _merge_lines(before, mine, rival)
    return Pair(merged, merged) if merged else Pair(mine, rival)


def _merge_lines(before: str, mine: str, rival: str) -> str:
    """Return merged lines; empty if both sides changed one place."""
    lines = merge_ordered_lists(split_lines(before), split_lines(mine), split_lines(rival))
    return "" if lines is MISSING else "".join(lines)


def _does_set(text: str, row: Statement, value: Any) -> bool:
    """Return whether a text is a statement with another one's key and a given value."""
    try:
        return text[: row.value] == row.text[: row.value] and is_same_typed_value(
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


def _format_side(value: Any) -> str:
    return "gone" if value is MISSING else keys.format_short_value(value)


def _format_location(path: Path) -> str:
    if path[:1] == ("override",) and len(path) > 1:
        match, _, _ = str(path[1]).rpartition(" ")  # without the number of equal ones
        return keys.format_key_path(f"override {match}", path[2:])
    return keys.format_path(path) or "the end of the file"


# -- values ---------------------------------------------------------------------------------------


def merge_values(path: Path, base: Any, ours: Any, theirs: Any) -> Any:
    """Return the merge of two values, tables by key and lists by element.

    MISSING for a conflict.
    """
    key = find_setting_key(path)
    if is_same_typed_value(ours, theirs) or is_same_typed_value(theirs, base):
        return ours
    if is_same_typed_value(ours, base):
        return theirs
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return _merge_tables(path, base if isinstance(base, dict) else {}, ours, theirs)
    if key:  # equivalent values in two forms, such as a list as text
        is_same = partial(values.is_equivalent_setting, key)
        if is_same(ours, theirs) or is_same(theirs, base):
            return ours
        if is_same(ours, base):
            return theirs
    if isinstance(ours, list) and isinstance(theirs, list):
        merge_lists = merge_unordered_lists if _is_unordered_list(path) else merge_ordered_lists
        return merge_lists(base if isinstance(base, list) else [], ours, theirs)
    return MISSING


def _merge_tables(path: Path, base: TomlTable, ours: TomlTable, theirs: TomlTable) -> Any:
    merged = {}
    for name in {**ours, **theirs}:
        before, mine, rival = (side.get(name, MISSING) for side in (base, ours, theirs))
        value = merge_values((*path, name), before, mine, rival)
        if value is not MISSING:
            merged[name] = value
        elif not (is_same_typed_value(before, mine) or is_same_typed_value(before, rival)):
            return MISSING  # removed on one side and changed on the other
    return merged


def find_setting_key(path: Path) -> str:
    """Return the full key of the setting at a document path, or an empty string."""
    if path[:1] and path[0] in LIST_OPS:
        path = path[1:]
    elif path[:1] == ("override",):
        path = path[2:]
    return keys.format_full_key(*path) if len(path) == 2 and path[0] in SECTIONS else ""


def _is_unordered_list(path: Path) -> bool:
    if path[0] == "profile" or path[-1] == "unset":
        key = PROFILE_KEYS.get(path[-1])
        return path[:2] == ("profile", "axes") or bool(key and key.unordered)
    if path[0] == "override":
        path = path[2:]
    if path[:1] == ("remove",):
        return True
    if path[:1] == ("append",):
        path = path[1:]
    if len(path) < 2 or path[0] not in SECTIONS:
        return path[:1] == ("match",)
    return values.is_unordered(keys.format_full_key(*path[:2]))


def merge_unordered_lists(base: list[Any], ours: list[Any], theirs: list[Any]) -> list[Any]:
    """Merge lists as sets: ours without their removals, then their additions."""
    remaining = values.subtract_lists(ours, values.subtract_lists(base, theirs))
    return remaining + values.subtract_lists(theirs, [*base, *ours])


def merge_ordered_lists(base: list[Any], ours: list[Any], theirs: list[Any]) -> Any:
    """Merge ordered lists; MISSING if both sides changed one place, or moved one element."""
    base_ids, our_ids, their_ids = (
        [values.identify_value(item) for item in side] for side in (base, ours, theirs)
    )
    # the replaced part of the base as (start, end): the new elements
    our_changes, their_changes = (
        {
            (run.old_start, run.old_end): side[run.new_start : run.new_end]
            for run in find_differing_runs(base_ids, ids)
        }
        for side, ids in ((ours, our_ids), (theirs, their_ids))
    )
    merged = []
    done = 0
    for replaced in sorted({*our_changes, *their_changes}):
        start, end = replaced
        mine = our_changes.get(replaced)
        rival = their_changes.get(replaced)
        # two changes of overlapping parts have no order
        if start < done or (
            mine is not None and rival is not None and not is_same_typed_value(mine, rival)
        ):
            return MISSING
        merged += base[done:start]
        merged += mine if mine is not None else rival or []
        done = end
    merged += base[done:]
    surplus = Counter(map(values.identify_value, merged)) - (Counter(our_ids) | Counter(their_ids))
    return MISSING if surplus else merged  # an element that one side moved would be there twice


# -- conflict markers -----------------------------------------------------------------------------


def _format_pairs(pairs: Sequence[Pair], size: int) -> Iterator[str]:
    """Yield pieces of a text; differing ones between conflict markers, ours first."""
    present = (pair for pair in pairs if pair.ours or pair.theirs)
    for is_equal, group in groupby(present, key=attrgetter("is_equal")):
        adjacent = list(group)
        mine = "".join(pair.ours for pair in adjacent)
        if is_equal:
            yield mine
        else:
            rival = "".join(pair.theirs for pair in adjacent)
            yield f"{'<' * size} ours\n{mine}{'=' * size}\n{rival}{'>' * size} theirs\n"


def format_conflicts(ours: str, theirs: str, size: int = 7) -> str:
    """Return two texts as one, with differing lines between conflict markers, ours first."""
    newline = find_line_ending(ours)
    mine, rival = (split_lines(normalize_line_endings(text)) for text in (ours, theirs))
    pairs = []
    done = 0
    for run in find_differing_runs(mine, rival):
        common = "".join(mine[done : run.old_start])
        replaced = "".join(mine[run.old_start : run.old_end])
        pairs += [Pair(common, common), Pair(replaced, "".join(rival[run.new_start : run.new_end]))]
        done = run.old_end
    rest = "".join(mine[done:])
    pairs.append(Pair(rest, rest))
    return "".join(_format_pairs(pairs, size)).replace("\n", newline)


def split_conflicts(text: str) -> tuple[str, str] | None:
    """Return the two sides of a text with conflict markers, None if it has no complete conflict.

    The markers may be longer than usual: git writes longer ones into a base that it merged itself.
    """
    ours = []
    theirs = []
    part = ""  # of a conflict
    conflicts = 0
    for line in split_lines(text):
        marker, _, label = line.rstrip("\r\n").partition(" ")
        # a run of "=" may also underline text in a string: the parts must come in order
        kind = marker[:1] if len(marker) >= 7 and marker == marker[:1] * len(marker) else ""
        if not part and kind == "<" and label:
            part = "ours"
        elif part == "ours" and kind == "|" and label:
            part = "base"
        elif part in ("ours", "base") and kind == "=" and not label:
            part = "theirs"
        elif part == "theirs" and kind == ">" and label:
            part = ""
            conflicts += 1
        else:
            if part in ("", "ours"):
                ours.append(line)
            if part in ("", "theirs"):
                theirs.append(line)
    return ("".join(ours), "".join(theirs)) if conflicts and not part else None
