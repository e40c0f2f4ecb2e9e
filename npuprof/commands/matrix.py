"""``check`` for several releases or products at once: which preset works where."""

from __future__ import annotations

from typing import Any

from npuprof import checks, report
from npuprof.commands.flags import Form
from npuprof.model import Context, Finding, NpuprofError, Record
from npuprof.report import output
from npuprof.store import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: What a preset says of itself, not of whether it would work: shown apart.
_MEANT = ("NP406", "NP407")


class Cell(Record):
    """One preset on one release and product: what the checks found there."""

    context: Context
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> list[Finding]:
        """The findings that stand in the way."""
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        """The findings that do not."""
        return [finding for finding in self.findings if finding.severity == "warning" and finding.code not in _MEANT]

    @property
    def meant(self) -> bool:
        """Whether the preset names the release and the product."""
        return all(finding.code not in _MEANT for finding in self.findings)

    @property
    def text(self) -> str:
        """The cell as people read it."""
        if self.errors:
            codes = dict.fromkeys(finding.code for finding in self.errors)
            return " ".join([*codes])
        shown = f"ok, {report.format_count(len(self.warnings), 'warning')}" if self.warnings else "ok"
        return shown if self.meant else f"({shown})"


def support(
    specs: Sequence[str],
    store: str | None,
    canns: Sequence[str],
    products: Sequence[str],
    format_: str,
    severity: str | None,
    strict: bool,
    path: str | None,
    color: str,
) -> int:
    """Check presets for every release with every product, and print a table.

    Exit 2 where a preset could not be resolved, 1 where one has errors somewhere, 0 otherwise.
    """
    form = Form(format_, severity, strict, path, color).known()
    contexts = list(dict.fromkeys(_contexts(canns, products)))
    names = list(specs) or spec.Workspace(store).store.names()
    table: dict[str, list[Cell]] = {name: [] for name in names}
    unresolved: list[Finding] = []
    for context in contexts:
        workspace = spec.Workspace(store, context)
        for name in names:
            try:
                table[name].append(Cell(context, tuple(checks.check_config(workspace.resolve_spec(name)))))
            except NpuprofError as error:
                unresolved += error.findings
                table[name].append(Cell(context, error.findings))
    everything = checks.fold_findings(finding for cells in table.values() for cell in cells for finding in cell.findings)
    told = form.told(everything)
    if format_ == "text":
        output.write_answer(_text(table, contexts) + (form.text(told) if severity else ""), path)
        hint = "" if severity else "; --severity warning lists the findings"
        where = f"{report.format_count(len(names), 'preset')} on {report.format_count(len(contexts), 'platform')}"
        output.write_to_stderr(f"npuprof: {where}: {report.format_severity_counts(everything) or 'nothing found'}{hint}")
    elif format_ == "json":
        output.write_answer(report.format_json_answer(_json(table, everything)), path)
    else:
        output.write_answer(report.FORMATS[format_](told), path)
    return 2 if unresolved else form.code(everything)


def _contexts(canns: Sequence[str], products: Sequence[str]) -> list[Context]:
    problems: list[Finding] = []
    found: list[Context] = []
    for cann in canns or (None,):
        for product in products or (None,):
            try:
                found.append(spec.build_context(cann, product))
            except NpuprofError as error:
                problems += [finding for finding in error.findings if finding not in problems]
    if problems:
        raise NpuprofError(problems)
    return found


def _title(context: Context) -> str:
    return " ".join(filter(None, (context.cann, context.product)))


def _text(table: dict[str, list[Cell]], contexts: Sequence[Context]) -> str:
    rows = [["", *map(_title, contexts)], *([name, *(cell.text for cell in cells)] for name, cells in table.items())]
    rows = [[report.escape_controls(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if any(not cell.meant for cells in table.values() for cell in cells):
        lines.append("\n(in brackets: works, but the preset does not name that release or product)")
    return "".join(f"{line}\n" for line in lines)


def _json(table: dict[str, list[Cell]], everything: list[Finding]) -> dict[str, Any]:
    return {
        "schema": "npuprof.support/1",
        "presets": [
            {
                "name": name,
                "platforms": [
                    {
                        "cann": cell.context.cann, "product": cell.context.product, "supported": not cell.errors,
                        "meant": cell.meant, "errors": len(cell.errors), "warnings": len(cell.warnings),
                        "codes": sorted({finding.code for finding in (*cell.errors, *cell.warnings)}),
                    }
                    for cell in cells
                ],
            }
            for name, cells in table.items()
        ],
        "findings": [report.build_finding_dict(finding) for finding in everything],
    }  # fmt: skip
