"""A text under edit: removed statements, changed values, and places for new statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from npuprof import catalog
from npuprof.document import keys
from npuprof.edit.inline import format_long_value, rewrite_value
from npuprof.edit.paths import MISSING, PathChange
from npuprof.edit.schemaline import measure_schema_head
from npuprof.edit.toml_statements import (
    Statement,
    Statements,
    collect_comments,
    ends_with_blank,
    starts_with_blank,
)
from npuprof.model import LIST_OPS, Path, TomlTable, is_same_typed_value
from npuprof.system import is_list_of, list_items

_MAX_LINE_WIDTH = 123


class Draft:
    """The statements of a text, edited to match ``data``."""

    def __init__(
        self, text: str, data: TomlTable, changes: Iterable[PathChange], newline: str
    ) -> None:
        self.data = deepcopy(data)
        self._changes: dict[Path, PathChange] = {}
        for change in changes:
            change.make(self.data)
            self._changes[change.path] = change
        self._newline = newline
        self._targets = {each.source: each.path for each in self._changes.values() if each.source}
        # the comments above and behind a value by its new path
        self._carried: dict[Path, tuple[str, str]] = {}
        self._rows = Statements(text)
        self._missing: list[tuple[Path, Any]] = []
        self._fit_value((), data, self.data)
        self._first_headers: dict[Path, Statement] = {}  # at or below a path
        self._last_headers: dict[Path, Statement] = {}
        self._last_pairs: dict[Path, Statement] = {}  # in a table
        self._last_dotted: dict[Path, Statement] = {}  # with a key that leads through a path
        for row in self._rows:
            self._index_statement(row)
        for path, value in self._missing:
            self._add_value(path, value)
        for path, (above, behind) in self._carried.items():
            row = _find_closest(self._rows.at, path) or self._rows.last
            if behind and row.path == path:
                row.text = f"{row.text.rstrip()} {behind}{newline}"
            elif behind:
                above += f"{behind}{newline}"
            row.lead += above

    def __str__(self) -> str:
        return str(self._rows)

    # -- existing statements ----------------------------------------------------------------------

    def _fit_value(self, path: Path, old: Any, new: Any) -> bool:
        """Change the statements at a path from ``old`` to ``new``.

        Return whether any of them is left.

        Values without a statement are recorded as missing.
        """
        if is_same_typed_value(old, new):
            return True
        row = self._rows.at.get(path)
        if row and not row.header and new is not MISSING:
            self._replace_value(row, rewrite_value(row.text[row.value : row.end], old, new))
            return True
        noted = len(self._missing)
        if isinstance(old, dict) and isinstance(new, dict):
            is_left = self._fit_table(path, old, new)
        elif (*path, 0) in self._rows.at and is_list_of(dict, new):
            is_left = self._fit_blocks(path, old, new)
        else:
            self._cut_statements(path, old, replaced=new is not MISSING)
            if new is not MISSING:
                self._missing.append((path, new))
            return False
        section_depth = 2 if path and path[0] in LIST_OPS else 1
        if not is_left and len(path) > section_depth:
            # removing its last dotted key removed the table: add it again as a whole
            self._missing[noted:] = [(path, new)]
        return is_left

    def _fit_table(self, path: Path, old: TomlTable, new: TomlTable) -> bool:
        """Change the statements of a table to match ``new``; return whether any of them is left."""
        is_left = path in self._rows.at
        known = set(old)
        for name, item in old.items():
            row = self._rows.at.get((*path, name))
            change = self._changes.get((*path, name))
            new_name = change.name if change else ""
            is_renamed = bool(new_name) and new_name in new and new_name not in known
            if is_renamed and row and not row.header:
                row.rename_key(new_name)
                if not is_same_typed_value(item, new[new_name]):
                    self._replace_value(row, keys.format_toml_value(new[new_name]))
                known.add(new_name)
                is_left = True
            elif self._fit_value((*path, name), item, new.get(name, MISSING)):
                is_left = True
        self._missing += [((*path, name), item) for name, item in new.items() if name not in known]
        return is_left

    def _fit_blocks(self, path: Path, old: list[Any], new: list[Any]) -> bool:
        """Change the tables of an array to match ``new``.

        Additional tables are recorded as missing.
        """
        removed = {change.path for change in self._changes.values() if change.value is MISSING}
        remaining = [index for index in range(len(old)) if (*path, index) not in removed]
        remaining = remaining[: len(new)]
        for index in {*range(len(old))}.difference(remaining):
            self._cut_statements((*path, index), old[index])
        for index, block in zip(remaining, new, strict=False):
            self._fit_value((*path, index), old[index], block)
        for index, block in enumerate(new[len(remaining) :], len(old)):
            self._missing.append(((*path, index), block))
        return bool(remaining)

    def _replace_value(self, row: Statement, written: str) -> None:
        """Replace a value; comments inside the old value move above the statement."""
        self._lift_comments(row, row.text[row.value : row.end], written)
        row.replace_value(written)

    def _lift_comments(self, row: Statement, text: str, remaining: str = "") -> None:
        lost = collect_comments(text) - collect_comments(remaining) if "#" in text else ()
        row.lead += "".join(f"{row.indent}{comment}{self._newline}" for comment in lost)

    def _cut_statements(self, path: Path, old: Any, replaced: bool = False) -> None:
        """Remove the statements at and below a path; the comments above them stay.

        If they are replaced, the comments after and inside them stay too.
        """
        gone = list(self._rows.find_statements(path, old))
        for row in gone:
            if target := self._targets.get(row.path):
                self._carried[target] = row.comments, row.text[row.end :].strip()
                row.lead = row.lead.removesuffix(row.comments)
            # comments after a value that is replaced still concern it
            if replaced:
                self._lift_comments(row, row.text[row.value :])
            elif not row.header and row.table[: len(path)] == path:
                row.lead = row.lead[: measure_schema_head(row.lead)]
        for row in gone:
            self._rows.remove(row)

    # -- new statements ---------------------------------------------------------------------------

    def _index_statement(self, row: Statement) -> None:
        """Record a statement as the last one at and above its path, and maybe as the first."""
        for end in range(len(row.table) + 1, len(row.path)):
            self._last_dotted[row.path[:end]] = row
        if row.header:
            for end in range(1, len(row.path) + 1):
                self._first_headers.setdefault(row.path[:end], row)
                self._last_headers[row.path[:end]] = row
        else:
            self._last_pairs[row.table] = row

    def _add_value(self, path: Path, value: Any) -> None:
        """Add a value after the last pair of its table, or as a separate table."""
        if len(path) == 1 and (
            isinstance(value, dict) if path[0] in LIST_OPS else value and is_list_of(dict, value)
        ):
            for part, item in list_items(value):
                self._add_value((*path, part), item)
        elif isinstance(path[-1], int):
            self._add_tables(self._make_table(path, value))
        else:
            depth = self._measure_existing_path(path)
            is_table = isinstance(value, dict)
            section_depth = 2 if path[0] in LIST_OPS and (len(path) > 2 or is_table) else 1
            is_in_table = (
                depth >= section_depth
                or path[:depth] in self._rows.at
                or (len(path) <= section_depth and not is_table)
            )
            for part in reversed(path[depth + 1 if is_in_table else section_depth :]):
                value = {part: value}
            if is_in_table:
                self._add_pair(path[:depth], path[depth], value)
            else:
                self._add_tables(self._make_table(path[:section_depth], value))

    def _measure_existing_path(self, path: Path) -> int:
        """Return the length of the longest parent path that a header or a dotted key has."""
        depth = len(path) - 1
        while depth and not (
            path[:depth] in self._first_headers or path[:depth] in self._last_dotted
        ):
            depth -= 1
        return depth

    def _add_pair(self, parent: Path, name: Any, value: Any) -> None:
        """Add a pair after the last one of its table."""
        head = self._rows.at.get(parent)
        if head or not parent:
            last = self._last_pairs.get(parent) or head or self._rows.first
        elif parent in self._last_dotted:
            last = self._last_dotted[parent]
        else:  # a table with subtables but no header
            self._add_tables(self._make_table(parent, {name: value}))
            return
        table = parent if head else last.table
        text = self._format_pair(last.indent, (*parent[len(table) :], name), value)
        row = Statement(text, (*parent, name), table)
        self._rows.insert(row, last)
        self._index_statement(row)

    def _add_tables(self, rows: list[Statement]) -> None:
        """Insert tables, with blank lines around them.

        They come before their sub-tables, else after similar tables, else at the position of their
        section.
        """
        path = rows[0].path
        closest = _find_closest(self._last_headers, path)
        if path in self._first_headers or closest is None:
            below = self._first_headers.get(path) or self._find_later_section(path)
            lower = below.comments if below.header else ""
        else:
            below = self._last_pairs.get(closest.path, closest).following
            lower = below.lead
        upper = below.lead.removesuffix(lower)
        is_at_start = not upper and below.preceding is self._rows.first
        is_below_schema_line = upper and len(upper) == measure_schema_head(upper)
        # no blank line at the top of a file, or between the schema line and the first table
        if not is_at_start and not is_below_schema_line and not ends_with_blank(upper):
            upper += self._newline
        is_at_end = not lower and below is self._rows.last
        if not is_at_end and not starts_with_blank(lower):
            lower = self._newline + lower
        rows[0].lead = upper + rows[0].lead
        below.lead = lower
        for row in rows:
            self._rows.insert(row, below.preceding)
            self._index_statement(row)

    def _find_later_section(self, path: Path) -> Statement:
        """Return the first header of a later section, or the end."""
        options, *others = catalog.load_sections()
        order = ("profile", options, *LIST_OPS, *others, "override")
        if path[0] not in order:
            return self._rows.last
        earlier = order[: order.index(path[0]) + 1]
        return next(
            (row for row in self._rows if row.header and row.path[0] not in earlier),
            self._rows.last,
        )

    def _make_table(self, path: Path, value: TomlTable) -> list[Statement]:
        """Return the statements of a table, or of one table of an array: a header and its pairs."""
        header = f"[{_format_dotted_key(path)}]"
        if isinstance(path[-1], int):
            header = f"[{header}]"
        return [
            Statement(header + self._newline, path, path, True),
            *(
                Statement(self._format_pair("", (name,), item), (*path, name), path)
                for name, item in value.items()
            ),
        ]

    def _format_pair(self, indent: str, key: Path, value: Any) -> str:
        """Return a statement: on one line, or a long list with one element per line."""
        start = f"{indent}{_format_dotted_key(key)} = "
        text = keys.format_toml_value(value)
        if len(start) + len(text) > _MAX_LINE_WIDTH:
            text = format_long_value(value, indent)
        return f"{start}{text}\n".replace("\n", self._newline)


def _find_closest(rows: Mapping[Path, Statement], path: Path) -> Statement | None:
    """Return the statement of the longest beginning of a path that has one, None without any."""
    beginnings = (path[:end] for end in range(len(path), 0, -1))
    return next(filter(None, map(rows.get, beginnings)), None)


def _format_dotted_key(path: Path) -> str:
    """Return the names of a path as a TOML key, without the index of an array of tables."""
    return ".".join(keys.format_key_segment(part) for part in path if isinstance(part, str))
