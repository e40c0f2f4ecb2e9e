"""The report of ``scan --statistics``, the same in every form: its counts, the findings that matter, and its tables.

One fault in many places is one finding, and what changes results silently comes before what stops a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from npuprof.catalog import find_record, find_unit_and_risk, pages, record_names
from npuprof.document.keys import split_section_and_name
from npuprof.model import SEVERITIES, Finding, Record, find_nearest_names
from npuprof.report.findings import strip_lines
from npuprof.report.text import format_count
from npuprof.scripts.grouping import group_by
from npuprof.scripts.summary.survey import KINDS, Survey

#: So many findings are listed before all others.
MOST_WEIGHTY = 5
#: What says that a setting has had its day.
_DEPRECATED = ("NP501", "NP502")
_NOT_ASKED = "what an upgrade would touch is told with --cann RELEASE, and with --from RELEASE which defaults changed on the way"


class Table(Record):
    """One table: its ``name`` in JSON, its title, the names of its columns, its rows, the weightiest first.

    A cell is a number, a text or a tuple of names. As text, the first ``inline`` columns share a line. A person is shown the first
    ``most`` rows. ``remark`` comes below them.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    inline: int = 3
    most: int = 10
    remark: str = ""


class Weighty(Record):
    """A fault of several places as one: what is said of most of them, what is at risk, the first place, how many there are, the files.

    ``wordings`` counts what is said in other words of other places.
    """

    code: str
    severity: str
    key: str
    message: str
    why: str
    hint: str
    risk: tuple[str, ...]
    first: str
    places: int
    files: tuple[str, ...]
    wordings: int = 0


class Report(Record):
    """A report: counts by name, the findings that matter, in how many places others are, tables, remarks."""

    counts: dict[str, int]
    weighty: list[Weighty]
    others: int
    tables: list[Table]
    remarks: tuple[str, ...] = ()


def build_findings_report(survey: Survey, accepted: int) -> Report:
    """Return what is wrong with the settings of scripts, by kind; ``accepted`` is the number of accepted findings, which are left out."""
    groups = group_findings(survey.findings)
    faults = [group for group in groups if group.severity != "info"]
    severities = Counter(finding.severity for finding in survey.findings)
    counts = {
        "files": survey.files, "files_with_settings": len(survey.with_settings), "files_unread": survey.unread,
        "files_with_findings": len({name for group in faults for name in group.files}),
        "errors": severities["error"], "warnings": severities["warning"], "notes": severities["info"], "accepted": accepted,
    }  # fmt: skip
    tables = [_list_mistakes(faults), _list_deprecated(groups), _list_worst_files(survey), _list_surfaces(survey), *_list_upgrade(survey)]
    others = sum(group.places for group in faults[MOST_WEIGHTY:])
    return Report(counts, faults[:MOST_WEIGHTY], others, tables, () if survey.context.cann else (_NOT_ASKED,))


def _list_surfaces(survey: Survey) -> Table:
    rows = [(len(files), sum(files.values()), surface) for surface, files in survey.surfaces.items()]
    return Table("surfaces", "Where it is set", ("files", "settings", "surface"), sorted(rows, key=lambda row: (-row[0], row[2])))


def _list_mistakes(faults: list[Weighty]) -> Table:
    known = pages.load_pages()
    rows = []
    live = (fault for fault in faults if fault.code not in _DEPRECATED)
    for (severity, code), same in group_by(live, attrgetter("severity", "code")).items():
        title = known[code].title if code in known else same[0].message
        files = len({name for fault in same for name in fault.files})
        settings = tuple(dict.fromkeys(fault.key for fault in same if fault.key))
        rows.append((severity, sum(fault.places for fault in same), files, code, title, settings))
    rows.sort(key=lambda row: (SEVERITIES.index(row[0]), -row[2], -row[1], row[3]))
    return Table("mistakes", "Likely mistakes, by kind", ("severity", "places", "files", "code", "kind", "settings"), rows, 5)


def _list_deprecated(groups: list[Weighty]) -> Table:
    rows = [(len(group.files), group.places, group.message, group.hint, group.first) for group in groups if group.code in _DEPRECATED]
    rows.sort(key=lambda row: (-row[0], -row[1], row[2]))
    return Table("deprecated", "Deprecated, or without effect", ("files", "places", "what", "try", "first"), rows)


def _list_worst_files(survey: Survey) -> Table:
    counts = Counter((finding.path or "", finding.severity) for finding in survey.findings if finding.severity != "info")
    rows = [(counts[name, "error"], counts[name, "warning"], name) for name in {name for name, _ in counts}]
    rows.sort(key=lambda row: (-row[0], -row[1], row[2]))
    return Table("worst_files", "Files with the most findings", ("errors", "warnings", "file"), rows, most=5)


def _list_upgrade(survey: Survey) -> list[Table]:
    """Return what the release asked for would touch; nothing where none was asked for."""
    if not survey.context.cann:
        return []
    rows = [(touched.kind, len(names), touched.what, touched.hint, tuple(names)) for touched, names in survey.touched.items()]
    rows.sort(key=lambda row: (KINDS.index(row[0]), -row[1], row[2]))
    reached = {name for touched, names in survey.touched.items() if touched.kind != "default" for name in names}
    remark = f"It touches settings of {len(reached)} of {format_count(survey.drafts, 'script')}; changed defaults are not counted"
    title = f"What CANN {survey.context.cann} would touch{f', coming from {survey.since}' if survey.since else ''}"
    return [Table("upgrade", title, ("kind", "scripts", "what", "try", "names"), rows, most=20, remark=remark)]


def group_findings(findings: Iterable[Finding]) -> list[Weighty]:
    """Return findings by what they say of which setting, the weightiest first.

    Errors come before warnings, then what puts numerics at risk, then what most scripts have.
    """
    return sorted(map(_fold_group, group_by(findings, attrgetter("severity", "code", "key")).values()), key=_weigh)


def _fold_group(group: list[Finding]) -> Weighty:
    wordings = Counter(strip_lines(finding.message) for finding in group)
    usual = wordings.most_common(1)[0][0]
    first = next(finding for finding in group if strip_lines(finding.message) == usual)
    files = tuple(dict.fromkeys(finding.path or "" for finding in group))
    fields = (first.code, first.severity, first.key, first.message, first.why, first.hint)
    return Weighty(*fields, _find_risk(first.key), first.place, len(group), files, len(wordings) - 1)


def _find_risk(key: str) -> tuple[str, ...]:
    """Return what a setting puts at risk; of a misspelt option, what the one that is meant does: it is not in force."""
    if key and find_record(*split_section_and_name(key)) is None:
        key = next(iter(find_nearest_names(key, record_names("options"), 1)), "")
    return find_unit_and_risk(key)[1] if key else ()


def _weigh(group: Weighty) -> tuple[int, bool, int, int, str, str]:
    return SEVERITIES.index(group.severity), "numerics" not in group.risk, -len(group.files), -group.places, group.code, group.key


def build_report_fields(report: Report, asked: dict[str, Any]) -> dict[str, Any]:
    """Return a report as the fields of its JSON form; ``asked`` is what it was asked for."""
    shown = Weighty._fields[:-1]
    first = [{name: value if (value := getattr(group, name)) != "" else None for name in shown} for group in report.weighty]
    tables = {table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows] for table in report.tables}
    return {"schema": "npuprof.scan-statistics/1", **asked, "counts": report.counts, "first": first, "others": report.others, **tables}
