"""What a report is made of: counts, the findings that matter, and tables, the same in every form."""

from __future__ import annotations

from typing import TypeAlias

from npuprof.model import Record

#: What a cell of a table holds: a number, a text, or names of which a person reads the first.
Cell: TypeAlias = "int | str | tuple[str, ...]"


class Table(Record):
    """One table: its ``name`` in JSON, its title, the names of its columns, its rows, the weightiest first.

    A person is shown the first ``most`` of them. ``remark`` stands below it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    most: int = 10
    remark: str = ""

    @property
    def hidden(self) -> int:
        """How many rows a person is not shown."""
        return max(0, len(self.rows) - self.most)


class Weighty(Record):
    """A fault of several places as one: what is said of most of them, where the first one is, and what is at risk.

    ``wordings`` counts what is said in other words of other places; ``files`` are those that have the fault.
    """

    severity: str
    code: str
    key: str
    message: str
    why: str
    hint: str
    place: str
    places: int
    wordings: int
    files: tuple[str, ...]
    risk: tuple[str, ...] = ()


class Report(Record):
    """A report: its ``schema`` in JSON, its title, counts by name, the findings that matter, how many others there are, tables, remarks."""

    schema: str
    title: str
    counts: dict[str, int]
    weighty: list[Weighty]
    others: int
    tables: list[Table]
    remarks: tuple[str, ...] = ()
