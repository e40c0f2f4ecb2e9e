"""The report of ``scan --statistics``: its counts, the findings that matter, and its tables."""

from __future__ import annotations

from npuprof.catalog import pages
from npuprof.model import SEVERITIES
from npuprof.report.text import format_count
from npuprof.scripts.summary.gathering import Survey
from npuprof.scripts.summary.parts import Cell, Report, Table, Weighty
from npuprof.scripts.summary.ranking import MOST_WEIGHTY, group_findings
from npuprof.scripts.summary.upgrade import KINDS

#: What says that a setting has had its day.
_DEPRECATED = ("NP501", "NP502")
_NOT_ASKED = "what an upgrade would touch is told with --cann RELEASE, and with --from RELEASE which defaults changed on the way"


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
    tables = [_tell_mistakes(groups), _tell_deprecated(groups), _tell_worst_files(survey), _tell_surfaces(survey), *_tell_upgrade(survey)]
    told = [one for one in groups if one.severity != "info"]
    remarks = () if survey.context.cann else (_NOT_ASKED,)
    others = sum(one.places for one in told[MOST_WEIGHTY:])
    return Report("npuprof.scan-statistics/1", "What is wrong in the scripts", counts, told[:MOST_WEIGHTY], others, tables, remarks)


def _tell_surfaces(survey: Survey) -> Table:
    rows: list[tuple[Cell, ...]] = [(len(files), sum(files.values()), surface) for surface, files in survey.surfaces.items()]
    rows.sort(key=lambda row: (-_number(row[0]), str(row[2])))
    return Table("surfaces", "Where it is set", ("files", "settings", "surface"), rows)


def _tell_mistakes(groups: list[Weighty]) -> Table:
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


def _tell_deprecated(groups: list[Weighty]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (len(one.files), one.places, one.message, one.hint, one.place) for one in groups if one.code in _DEPRECATED
    ]
    rows.sort(key=lambda row: (-_number(row[0]), -_number(row[1]), str(row[2])))
    return Table("deprecated", "Deprecated, or without effect", ("files", "places", "what", "try", "first"), rows)


def _tell_worst_files(survey: Survey) -> Table:
    found: dict[str, list[int]] = {}
    for finding in survey.findings:
        if finding.severity != "info":
            found.setdefault(finding.path or "", [0, 0])[finding.severity != "error"] += 1
    rows: list[tuple[Cell, ...]] = [(errors, warnings, name) for name, (errors, warnings) in found.items()]
    rows.sort(key=lambda row: (-_number(row[0]), -_number(row[1]), str(row[2])))
    return Table("worst_files", "Files with the most findings", ("errors", "warnings", "file"), rows, 5)


def _tell_upgrade(survey: Survey) -> list[Table]:
    """Return what the release asked for would touch; nothing where none was asked for."""
    if not survey.context.cann:
        return []
    rows: list[tuple[Cell, ...]] = [(one.kind, len(names), one.what, one.hint, tuple(names)) for one, names in survey.touched.items()]
    rows.sort(key=lambda row: (KINDS.index(str(row[0])), -_number(row[1]), str(row[2])))
    held = {name for one, names in survey.touched.items() if one.kind != "default" for name in names}
    reached = f"{len(held)} of {format_count(survey.drafts, 'script')}"
    remark = f"It touches settings of {reached}; changed defaults are not counted"
    title = f"What CANN {survey.context.cann} would touch{f', coming from {survey.since}' if survey.since else ''}"
    return [Table("upgrade", title, ("kind", "scripts", "what", "try", "names"), rows, 20, remark)]


def _number(cell: Cell) -> int:
    return cell if isinstance(cell, int) else 0
