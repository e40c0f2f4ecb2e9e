"""The report of ``scan --statistics``, the same in every form: its counts, the findings that matter, and its tables.

One fault in many places is one finding, and what changes results silently comes before what stops a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

from npuprof.catalog import find_record, pages, record_names
from npuprof.compare.changes import find_unit_and_risk
from npuprof.document.keys import split_section_and_name
from npuprof.model import SEVERITIES, Finding, Record, find_nearest_names
from npuprof.report.findings import strip_lines
from npuprof.report.text import format_count
from npuprof.scripts.summary.survey import KINDS, Survey

#: What is in a cell of a table: a number, a text, or names of which a person reads the first.
Cell: TypeAlias = "int | str | tuple[str, ...]"
#: So many findings are listed before all others.
MOST_WEIGHTY = 5
#: What says that a setting has had its day.
_DEPRECATED = ("NP501", "NP502")
_NOT_ASKED = "what an upgrade would touch is told with --cann RELEASE, and with --from RELEASE which defaults changed on the way"


class Table(Record):
    """One table: its ``name`` in JSON, its title, the names of its columns, its rows, the weightiest first.

    A person is shown the first ``most`` of them. ``remark`` comes below it.
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


def build_findings_report(survey: Survey, accepted: int) -> Report:
    """Return what is wrong with the settings of scripts, by kind; ``accepted`` is the number of accepted findings, which are left out."""
    groups = group_findings(survey.findings)
    found = dict.fromkeys(SEVERITIES, 0)
    for finding in survey.findings:
        found[finding.severity] += 1
    counts = {
        "files": survey.files, "files_with_settings": len(survey.with_settings), "files_unread": survey.unread,
        "files_with_findings": len({name for one in groups if one.severity != "info" for name in one.files}),
        "errors": found["error"], "warnings": found["warning"], "notes": found["info"], "accepted": accepted,
    }  # fmt: skip
    tables = [_list_mistakes(groups), _list_deprecated(groups), _list_worst_files(survey), _list_surfaces(survey), *_list_upgrade(survey)]
    listed = [one for one in groups if one.severity != "info"]
    remarks = () if survey.context.cann else (_NOT_ASKED,)
    others = sum(one.places for one in listed[MOST_WEIGHTY:])
    return Report("npuprof.scan-statistics/1", "What is wrong in the scripts", counts, listed[:MOST_WEIGHTY], others, tables, remarks)


def _list_surfaces(survey: Survey) -> Table:
    rows: list[tuple[Cell, ...]] = [(len(files), sum(files.values()), surface) for surface, files in survey.surfaces.items()]
    rows.sort(key=lambda row: (-_number(row[0]), str(row[2])))
    return Table("surfaces", "Where it is set", ("files", "settings", "surface"), rows)


def _list_mistakes(groups: list[Weighty]) -> Table:
    known = pages.load_pages()
    kinds: dict[tuple[str, str], list[Weighty]] = {}
    for one in groups:
        if one.severity != "info" and one.code not in _DEPRECATED:
            kinds.setdefault((one.severity, one.code), []).append(one)
    rows: list[tuple[Cell, ...]] = []
    for (severity, code), ones in kinds.items():
        title = known[code].title if code in known else ones[0].message
        files = len({name for one in ones for name in one.files})
        settings = tuple(dict.fromkeys(one.key for one in ones if one.key))
        rows.append((severity, sum(one.places for one in ones), files, code, title, settings))
    rows.sort(key=lambda row: (SEVERITIES.index(str(row[0])), -_number(row[2]), -_number(row[1]), str(row[3])))
    return Table("mistakes", "Likely mistakes, by kind", ("severity", "places", "files", "code", "kind", "settings"), rows)


def _list_deprecated(groups: list[Weighty]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (len(one.files), one.places, one.message, one.hint, one.place) for one in groups if one.code in _DEPRECATED
    ]
    rows.sort(key=lambda row: (-_number(row[0]), -_number(row[1]), str(row[2])))
    return Table("deprecated", "Deprecated, or without effect", ("files", "places", "what", "try", "first"), rows)


def _list_worst_files(survey: Survey) -> Table:
    found: dict[str, list[int]] = {}
    for finding in survey.findings:
        if finding.severity != "info":
            found.setdefault(finding.path or "", [0, 0])[finding.severity != "error"] += 1
    rows: list[tuple[Cell, ...]] = [(errors, warnings, name) for name, (errors, warnings) in found.items()]
    rows.sort(key=lambda row: (-_number(row[0]), -_number(row[1]), str(row[2])))
    return Table("worst_files", "Files with the most findings", ("errors", "warnings", "file"), rows, 5)


def _list_upgrade(survey: Survey) -> list[Table]:
    """Return what the release asked for would touch; nothing where none was asked for."""
    if not survey.context.cann:
        return []
    rows: list[tuple[Cell, ...]] = [(one.kind, len(names), one.what, one.hint, tuple(names)) for one, names in survey.touched.items()]
    rows.sort(key=lambda row: (KINDS.index(str(row[0])), -_number(row[1]), str(row[2])))
    reached = {name for one, names in survey.touched.items() if one.kind != "default" for name in names}
    count = f"{len(reached)} of {format_count(survey.drafts, 'script')}"
    remark = f"It touches settings of {count}; changed defaults are not counted"
    title = f"What CANN {survey.context.cann} would touch{f', coming from {survey.since}' if survey.since else ''}"
    return [Table("upgrade", title, ("kind", "scripts", "what", "try", "names"), rows, 20, remark)]


def _number(cell: Cell) -> int:
    return cell if isinstance(cell, int) else 0


def group_findings(findings: Iterable[Finding]) -> list[Weighty]:
    """Return findings by what they say of which setting, the weightiest first.

    Errors come before warnings, then what puts numerics at risk, then what most scripts have.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code, finding.key), []).append(finding)
    return sorted((_fold_group(group) for group in groups.values()), key=_weigh)


def _fold_group(group: list[Finding]) -> Weighty:
    said = Counter(strip_lines(finding.message) for finding in group)
    usual = max(said, key=said.__getitem__)  # of equals the first
    one = next(finding for finding in group if strip_lines(finding.message) == usual)
    files = tuple(dict.fromkeys(finding.path or "" for finding in group))
    risk = _find_risk(one.key)
    return Weighty(
        one.severity, one.code, one.key, one.message, one.why, one.hint, one.place, len(group), len(said) - 1, files, risk,
    )  # fmt: skip


def _find_risk(key: str) -> tuple[str, ...]:
    """Return what a setting puts at risk; of a misspelt option, what the one that is meant does: it is not in force."""
    if not key or find_record(*split_section_and_name(key)) is not None:
        return find_unit_and_risk(key)[1] if key else ()
    meant = find_nearest_names(key, record_names("options"), 1)
    return find_unit_and_risk(meant[0])[1] if meant else ()


def _weigh(one: Weighty) -> tuple[int, bool, int, int, str, str]:
    return SEVERITIES.index(one.severity), "numerics" not in one.risk, -len(one.files), -one.places, one.code, one.key


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
