"""Three-way merge of comments, statement by statement, into a text whose values are merged already."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from npuprof.catalog import values
from npuprof.edit.inline import rewrite_value
from npuprof.edit.merge import index_override_blocks
from npuprof.edit.paths import MISSING
from npuprof.edit.sequences import find_differing_runs
from npuprof.edit.statements import (
    Statement,
    Statements,
    collect_comments,
    count_allowed_comments,
    count_needed_comments,
    find_line_ending,
    set_line_endings,
    split_lines,
)
from npuprof.model import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: A run of the base that a side changed, what it became, and whether theirs did it.
    Change = tuple[int, int, list[str], bool]

#: The path of the lines after the last statement.
_END: Path = ()


class TextLayout:
    """A text as its statements, by paths that mean the same in every version of it: overrides go by their match."""

    def __init__(self, text: str, plain: bool = True) -> None:
        self.newline = find_line_ending(text)
        self.statements = Statements(set_line_endings(text, "\n") if plain else text)
        marks = list(index_override_blocks(tomllib.loads(text).get("override", MISSING)) or ())
        self.rows: dict[Path, Statement] = {}
        for path, row in self.statements.at.items():
            by_match = len(path) > 1 and path[0] == "override" and isinstance(path[1], int) and path[1] < len(marks)
            self.rows[(path[0], marks[path[1]], *path[2:]) if by_match else path] = row
        self.paths = {id(row): path for path, row in self.rows.items()}
        self.rows[_END] = self.statements.last
        self.paths[id(self.statements.last)] = _END

    def __str__(self) -> str:
        return str(self.statements)


class CommentMerge:
    """The comments of three texts, merged into a fourth text, which has the merged values.

    ``text`` is the outcome. Where both sides changed a comment differently it has that of ours: ``clashes`` are the paths,
    and ``give_to_rival`` writes what theirs has there into another text. Of statements that are ``clashed`` already,
    the comments after and in the value of theirs belong there too.
    """

    def __init__(self, base: str, ours: str, theirs: str, result: str, clashed: Iterable[Path] = ()) -> None:
        self._clashed = frozenset(clashed)
        self._base, self._ours, self._theirs = TextLayout(base), TextLayout(ours), TextLayout(theirs)
        newline = find_line_ending(result)
        complete = result if result.endswith("\n") or not result else result + newline
        self._result = TextLayout(complete, plain=False)
        self._rivals: dict[Path, list[Callable[[Statement], None]]] = {}
        self._stray: dict[Path, list[str]] = {}  # paragraphs above statements that are gone, by the statement that follows now
        for side in (self._ours, self._theirs):
            self._collect_strays(side)
        for path, row in self._result.rows.items():
            self._merge_lead(path, row)
            there = self._theirs.rows.get(path)
            if there is not None and path:
                self._merge_remark(path, row, there)
                if not row.header and not there.header and not self._is_clashed(row):
                    self._merge_value(path, row, there)
        self._drop_surplus(collect_comments(str(self._result)) - count_allowed_comments(base, ours, theirs))
        self._result.statements.lift_schema_line(newline)
        self.clashes = [path for path in self._rivals if not self._is_clashed(self._result.rows[path])]
        self.text = str(self._result)
        if complete != result and self.text[self.text.rfind("\n", 0, -1) + 1 :] == complete[result.rfind("\n") + 1 :]:
            self.text = self.text.removesuffix(newline)

    def give_to_rival(self, text: str) -> str:
        """Return the text in which theirs wins, with the comments that theirs has where both changed one."""
        layout = TextLayout(text if text.endswith("\n") or not text else text + find_line_ending(text), plain=False)
        for path, row in layout.rows.items():
            there, mine = self._theirs.rows.get(path), self._result.rows.get(path)
            if path and there is not None and (mine is None or mine.text != row.text) and not (row.header or there.header):
                written = there.text[there.value : there.end]
                if values.is_same_typed_value(_parse_value(_read_value(row)), _parse_value(written)):
                    _write_value(row, written.replace("\n", layout.newline))
            for write in self._rivals.get(path, ()):
                write(row)
        return str(layout)

    def _is_clashed(self, row: Statement) -> bool:
        return any(row.path[:end] in self._clashed for end in range(1, len(row.path) + 1))

    # -- above a statement ----------------------------------------------------------------------------------------

    def _collect_strays(self, side: TextLayout) -> None:
        """Note the paragraphs that a side put above statements which the merge has no more: they belong to what follows."""
        carried: list[str] = []
        row = side.statements.first.following
        while True:
            path = side.paths[id(row)]
            if path in self._result.rows:
                if carried:
                    self._stray.setdefault(path, []).extend(carried)
                    carried = []
            else:
                before = self._base.rows.get(path)
                known = collect_comments(before.lead) if before is not None else {}
                apart = split_lines(row.lead.removesuffix(row.comments))
                if any(line.strip() not in known for line in apart if line.strip()):
                    carried += [line for line in apart if not line.strip() or line.strip() not in known]
            if row is side.statements.last:
                return
            row = row.following

    def _merge_lead(self, path: Path, row: Statement) -> None:
        before, there = self._base.rows.get(path), self._theirs.rows.get(path)
        now = _list_plain_lines(row.lead)
        below = split_lines(before.lead) if before is not None else []
        rival_lines = split_lines(there.lead) if there is not None else below
        if path in self._stray:
            present = collect_comments("".join((*now, *rival_lines)))
            new = [line for line in self._stray[path] if not line.strip() or line.strip() not in present]
            if any(line.strip() for line in new):
                now, below, rival_lines = ([*new, *lines] for lines in (now, below, rival_lines))
                row.lead = self._format_lines(now)
        if there is None or _list_comments(rival_lines) == _list_comments(below):
            return
        if _list_comments(now) == _list_comments(rival_lines):
            return
        fresh = before is None and path not in self._ours.rows
        if _list_comments(now) == _list_comments(below) or (fresh and set(_list_comments(now)) <= set(_list_comments(rival_lines))):
            row.lead = self._format_lines(rival_lines)
            return
        mine, rival = merge_lines(below, now, rival_lines)
        row.lead = self._format_lines(mine)
        if mine != rival:
            text = self._format_lines(rival)
            self._add_rival(path, lambda written: setattr(written, "lead", text))

    def _drop_surplus(self, surplus: Counter[str]) -> None:
        """Take out of the leads what one side removed, or what came in twice with a statement that was put in between."""
        for everywhere in (False, True):
            for path, row in self._result.rows.items() if surplus else ():
                mine = self._ours.rows.get(path)
                protected = collect_comments(mine.lead) if mine is not None and not everywhere else {}
                lines = split_lines(row.lead)
                for number, line in enumerate(lines):
                    comment = line.strip()
                    if surplus.get(comment, 0) > 0 and comment not in protected:
                        surplus[comment] -= 1
                        lines[number] = ""
                if "" in lines:
                    row.lead = "".join(lines)

    def _format_lines(self, lines: list[str]) -> str:
        return "".join(lines).replace("\n", self._result.newline)

    # -- after it, and in its value ------------------------------------------------------------------------------

    def _merge_remark(self, path: Path, row: Statement, there: Statement) -> None:
        before = self._base.rows.get(path)
        below = _read_remark(before) if before is not None else ""
        now, rival = _read_remark(row), _read_remark(there)
        if rival.strip() in (below.strip(), now.strip()):
            return
        if now.strip() in ("", below.strip()) and not self._is_clashed(row):
            _write_remark(row, rival)
        else:
            self._add_rival(path, lambda written: _write_remark(written, rival))

    def _merge_value(self, path: Path, row: Statement, there: Statement) -> None:
        """Let the value keep the comments that both sides have in it."""
        here, before = self._ours.rows.get(path), self._base.rows.get(path)
        now, rival = _read_value(row), _read_value(there)
        if "#" not in rival and "#" not in now:
            return
        below, mine = (_read_value(version) if version is not None and not version.header else "" for version in (before, here))
        needed = count_needed_comments(below, mine, rival)
        if needed == collect_comments(now):
            return
        complete = not needed - collect_comments(now)
        wanted = _parse_value(now)
        ways = [_join_lines(lines) for lines in merge_lines(*(split_lines(f"{text}\n") for text in (below, mine, rival)))]
        is_equal = [_says(way, wanted) for way in ways]
        if all(is_equal) and ways[0] != ways[1] and not complete:
            self._give_values(path, row, ways[0], ways[1])
            return
        for way in (ways[0] if ways[0] == ways[1] else "", rival, *self._rewrite_sides(mine, rival, wanted)):
            if way and _says(way, wanted) and not needed - collect_comments(way):
                _write_value(row, way.replace("\n", self._result.newline))
                return
        if not complete:
            self._give_values(path, row, mine or now, rival)

    def _rewrite_sides(self, mine: str, rival: str, wanted: Any) -> list[str]:
        """Return the values of both sides changed to the merged one."""
        return [rewrite_value(text, _parse_value(text), wanted) for text in (rival, mine) if text]

    def _give_values(self, path: Path, row: Statement, mine: str, rival: str) -> None:
        _write_value(row, mine.replace("\n", self._result.newline))
        self._add_rival(path, lambda written: _write_value(written, rival.replace("\n", self._result.newline)))

    def _add_rival(self, path: Path, write: Callable[[Statement], None]) -> None:
        self._rivals.setdefault(path, []).append(write)


def find_lost_places(text: str, lost: Mapping[str, int]) -> list[Path]:
    """Return the paths of the statements that have one of some comments above, after or in them."""
    return [row.path for row in Statements(text) if any(comment in lost for comment in collect_comments(row.comments + row.text))]


def _list_plain_lines(text: str) -> list[str]:
    return split_lines(text.replace("\r\n", "\n"))


def _list_comments(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


def _read_value(row: Statement) -> str:
    return row.text[row.value : row.end].replace("\r\n", "\n")


def _write_value(row: Statement, written: str) -> None:
    if not row.header:
        row.replace_value(written)


def _read_remark(row: Statement) -> str:
    return row.text[row.end :].rstrip("\r\n")


def _write_remark(row: Statement, remark: str) -> None:
    end = row.text[len(row.text.rstrip("\r\n")) :]
    row.text = row.text[: row.end].rstrip(" \t") + remark + end


def _parse_value(text: str) -> Any:
    return tomllib.loads(f"v = {text}\n")["v"]


def _says(text: str, value: Any) -> bool:
    try:
        return values.is_same_typed_value(_parse_value(text), value)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False


def _join_lines(lines: list[str]) -> str:
    return "".join(lines).removesuffix("\n")


def merge_lines(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the merged lines as ours would have them, and as theirs would: they differ where both changed one place differently."""
    base = _add_common_lines(base, ours, theirs)
    mine: list[str] = []
    rival: list[str] = []
    done = 0
    for group in _group_changes(base, ours, theirs):
        first, last = min(change[0] for change in group), max(change[1] for change in group)
        both = [_apply_changes(base, first, last, [change for change in group if change[3] is side]) for side in (False, True)]
        if first == last:
            both = [[*both[0], *(line for line in both[1] if not line.strip() or line not in both[0])]] * 2
        elif not any(change[2] for change in group) or len({change[3] for change in group}) == 1:
            both = [_apply_changes(base, first, last, group)] * 2
        mine += [*base[done:first], *both[0]]
        rival += [*base[done:first], *both[1]]
        done = last
    return [*mine, *base[done:]], [*rival, *base[done:]]


def _add_common_lines(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Sequence[str]:
    """Return the base with what both sides have and it has not, so that no line comes in twice, at two places."""
    common: list[str] = []
    done = 0
    for first, last, _, _ in find_differing_runs(ours, theirs):
        common += ours[done:first]
        done = last
    common += ours[done:]
    lines: list[str] = []
    done = 0
    for first, last, start, end in find_differing_runs(base, common):
        lines += [*base[done:first], *(line for line in common[start:end] if line.strip()), *base[first:last]]
        done = last
    return [*lines, *base[done:]]


def _group_changes(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Iterator[list[Change]]:
    """Yield the changes of both sides in order, those together that meet."""
    changes: list[Change] = []
    for side, lines in enumerate((ours, theirs)):
        changes += [(first, last, list(lines[start:end]), bool(side)) for first, last, start, end in find_differing_runs(base, lines)]
    group: list[Change] = []
    for change in sorted(changes, key=lambda change: change[:2]):
        if group and not _do_changes_meet(group, change):
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _do_changes_meet(group: list[Change], change: Change) -> bool:
    """Return whether a change touches those before it; what is only put before or behind a place that changed does not."""
    first, last = group[0][0], max(member[1] for member in group)
    if change[0] == change[1] or first == last:
        return change[0] < last or (change[0] == last == first == change[1])
    return change[0] <= last


def _apply_changes(base: Sequence[str], first: int, last: int, changes: list[Change]) -> list[str]:
    """Return a run of the base with changes made."""
    result: list[str] = []
    for start, end, lines, _ in sorted(changes, key=lambda change: change[:2]):
        result += [*base[first:start], *lines]
        first = max(first, end)
    return [*result, *base[first:last]]
