"""A report as the fields of JSON: every row, every name."""

from __future__ import annotations

from typing import Any

from npuprof.scripts.summary.parts import Report, Weighty


def build_report_fields(report: Report, asked: dict[str, Any]) -> dict[str, Any]:
    """Return a report as the fields of its JSON form; ``asked`` is what it was asked for."""
    tables = {table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows] for table in report.tables}
    return {
        "schema": report.schema, **asked, "counts": report.counts, "first": [_build_weighty_fields(one) for one in report.weighty],
        "others": report.others, **tables,
    }  # fmt: skip


def _build_weighty_fields(one: Weighty) -> dict[str, Any]:
    return {
        "code": one.code, "severity": one.severity, "key": one.key or None, "message": one.message, "why": one.why or None,
        "hint": one.hint or None, "risk": list(one.risk), "first": one.place or None, "places": one.places, "files": list(one.files),
    }  # fmt: skip
