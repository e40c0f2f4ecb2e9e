"""The support matrix: findings of presets for every release and product."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from npuprof.checks import check_config, fold_findings, identify_finding
from npuprof.checks.scope import MEANT_CODES
from npuprof.model import (
    TYPE_CHECKING,
    Context,
    Fields,
    Finding,
    NpuprofError,
    Record,
    select_errors,
)
from npuprof.report.findings import build_finding_dict
from npuprof.report.isolating import isolate_faults
from npuprof.report.tables import Table
from npuprof.report.text import format_count

if TYPE_CHECKING:
    from npuprof.checks.store import CheckedStore


class Cell(Record):
    """One preset on one release and product, with its findings."""

    context: Context
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> list[Finding]:
        """The errors."""
        return select_errors(self.findings)

    @property
    def warnings(self) -> list[Finding]:
        """The warnings."""
        return [
            finding
            for finding in self.findings
            if finding.severity == "warning" and finding.code not in MEANT_CODES
        ]

    @property
    def meant(self) -> bool:
        """Whether the preset supports the release and the product."""
        return all(finding.code not in MEANT_CODES for finding in self.findings)

    @property
    def text(self) -> str:
        """The text of the cell."""
        if self.errors:
            return " ".join(dict.fromkeys(finding.code for finding in self.errors))
        shown = f"ok, {format_count(len(self.warnings), 'warning')}" if self.warnings else "ok"
        return shown if self.meant else f"({shown})"


class SupportMatrix(Record):
    """Presets by name, each with a cell per platform; all findings without duplicates.

    The number of failed resolutions.
    """

    contexts: tuple[Context, ...]
    cells: dict[str, list[Cell]]
    findings: list[Finding]
    unresolved: int

    def filter_findings(self, selected: Sequence[Finding]) -> SupportMatrix:
        """Return the matrix reduced to these findings."""
        identities = set(map(identify_finding, selected))

        def filter_cell(cell: Cell) -> Cell:
            return cell._replace(
                findings=tuple(
                    finding
                    for finding in cell.findings
                    if finding.code in MEANT_CODES or identify_finding(finding) in identities
                )
            )

        cells = {name: list(map(filter_cell, row)) for name, row in self.cells.items()}
        return self._replace(cells=cells, findings=list(selected))

    def build_table(self, after: str) -> Table:
        """Return the matrix as a table, followed by a text."""
        rows = [["", *map(_format_platform, self.contexts)]]
        for name, row in self.cells.items():
            rows.append([name, *(cell.text for cell in row)])
        if not all(cell.meant for row in self.cells.values() for cell in row):
            after = (
                "\n(in brackets: works, but the preset does "
                f"not name that release or product)\n{after}"
            )
        return Table(rows, after=after, wrapping=len(self.contexts))

    def build_fields(self) -> Fields:
        """Return the matrix as the fields of its JSON form."""
        presets = [
            {"name": name, "platforms": [_build_cell_fields(cell) for cell in row]}
            for name, row in self.cells.items()
        ]
        findings = [build_finding_dict(finding) for finding in self.findings]
        return {"schema": "npuprof.support/1", "presets": presets, "findings": findings}


def build_support_matrix(
    names: Sequence[str], contexts: Sequence[Context], open_store: Callable[[Context], CheckedStore]
) -> SupportMatrix:
    """Check presets for every release and product. Raises NpuprofError."""
    cells: dict[str, list[Cell]] = {name: [] for name in names}
    unresolved = 0
    for context in contexts:
        store = open_store(context)
        for name in names:
            faults: list[Finding] = []
            try:
                with isolate_faults(store.cite_preset(name), faults, name):
                    findings = check_config(store.resolve_preset(name))
                    cells[name].append(Cell(context, tuple(findings)))
            except NpuprofError as error:
                faults += error.findings
            if faults:
                unresolved += 1
                cells[name].append(Cell(context, tuple(faults)))
    findings = fold_findings(
        finding for row in cells.values() for cell in row for finding in cell.findings
    )
    return SupportMatrix(tuple(contexts), cells, findings, unresolved)


def _format_platform(context: Context) -> str:
    """Return the release and product of a context as the head of a column."""
    named = [f"{name} {value}" for name, value in (*context.versions, *context.axes)]
    return " ".join(filter(None, (context.cann, context.product, *named)))


def _build_cell_fields(cell: Cell) -> Fields:
    return {
        "cann": cell.context.cann,
        "product": cell.context.product,
        "supported": not cell.errors,
        "meant": cell.meant,
        "errors": len(cell.errors),
        "warnings": len(cell.warnings),
        "codes": sorted({finding.code for finding in (*cell.errors, *cell.warnings)}),
    }
