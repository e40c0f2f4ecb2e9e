"""The content of the ``scan --statistics`` report for all formats.

A fault in many places is one finding; silent changes of results come before stops.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from npuprof.catalog import code_pages, find_record, record_names
from npuprof.catalog.releases import format_releases
from npuprof.catalog.risks import find_unit_and_risk
from npuprof.checks.view import RELEASE_CODES
from npuprof.document.keys import split_section_and_name
from npuprof.model import SEVERITIES, Fields, Finding, Record, find_nearest_names
from npuprof.report.findings import strip_lines
from npuprof.report.text import format_count
from npuprof.scripts.grouping import group_by
from npuprof.scripts.reading.file_kinds import KINDS, detect_named_kind
from npuprof.scripts.summary.setting_counts import KINDS as EFFECTS
from npuprof.scripts.summary.setting_counts import Survey

#: The number of findings listed first.
MOST_WEIGHTY = 5
#: Codes of obsolete settings.
_DEPRECATED = ("NP501", "NP502")
#: Codes of names that nothing reads, and of code that fails or is not read.
_NAMES = {
    *RELEASE_CODES,
    "NP207",
    "NP801",
    "NP802",
    "NP803",
    "NP808",
    "NP813",
    "NP814",
    "NP815",
} - {"NP404"}
#: What findings are about, most important first.
TOPICS = (
    "Names and syntax",
    "Values",
    "Contradictions, and settings that are lost",
    "In documents",
    "In tests",
    "Deprecated",
    "Notes",
)
#: Folders whose files may be wrong on purpose.
_TESTS = {"test", "tests", "testdata", "fixtures"}
_LINE = re.compile(r"\bline \d+")
_NOT_ASKED = (
    "pass --cann RELEASE to see the effects of an upgrade, and --from RELEASE for changed defaults"
)


class Table(Record):
    """One table: its ``name`` in JSON, its title, its columns, its rows, most important first.

    A cell is a number, a text or a tuple of names. In text output, the first ``inline`` columns
    share a line, and only the first ``most`` rows are shown. ``note`` is printed below.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    inline: int = 3
    most: int = 10
    note: str = ""


class Weighty(Record):
    """A fault at several locations: its most common message, the risk, the count, the files.

    ``first`` is the first location with that message, before the others in ``locations``.
    ``wordings`` counts the different messages, ``topic`` is a position in ``TOPICS``.
    """

    code: str
    severity: str
    certainty: str
    key: str
    message: str
    why: str
    hint: str
    risk: tuple[str, ...]
    first: str
    places: int
    files: tuple[str, ...]
    wordings: int
    topic: int
    locations: tuple[str, ...]


class Report(Record):
    """A report: counts by name, important findings, tables and notes.

    ``others`` is the number of other findings.
    """

    counts: dict[str, int]
    weighty: list[Weighty]
    others: int
    tables: list[Table]
    notes: tuple[str, ...]


def build_findings_report(survey: Survey, accepted: int) -> Report:
    """Return the report of findings by kind.

    ``accepted`` is the number of accepted findings, which are omitted.
    """
    groups = group_findings(survey.findings, survey.folders)
    faults = [group for group in groups if group.severity != "info"]
    severities = Counter(finding.severity for finding in survey.findings)
    counts = {
        "files": survey.files,
        "files_with_settings": len(survey.with_settings),
        "files_unread": survey.unread,
        "files_with_findings": len({name for group in faults for name in group.files}),
        "errors": severities["error"],
        "warnings": severities["warning"],
        "notes": severities["info"],
        "accepted": accepted,
    }
    tables = [
        _list_mistakes(faults),
        _list_deprecated(groups),
        list_worst_files(survey.findings),
        _list_surfaces(survey),
        _list_releases(survey),
        *_list_upgrade(survey),
    ]
    return Report(
        counts,
        faults[:MOST_WEIGHTY],
        sum(group.places for group in faults[MOST_WEIGHTY:]),
        tables,
        () if survey.upgrade.releases else (_NOT_ASKED,),
    )


def _list_surfaces(survey: Survey) -> Table:
    rows = [(len(files), files.total(), surface) for surface, files in survey.surfaces.items()]
    rows.sort(key=lambda row: (-row[0], row[2]))
    return Table("surfaces", "Where it is set", ("files", "settings", "surface"), rows)


def _list_releases(survey: Survey) -> Table:
    """Return the table of the pinned releases that files were judged for."""
    rows = [
        (number, f"{pin.axis} {pin.release}", pin.written, f"{pin.file}:{pin.line}")
        for pin, number in survey.releases.items()
    ]
    columns = ("files", "release", "written", "where")
    return Table("releases", "Releases that files pin", columns, rows, inline=4)


def _list_mistakes(faults: list[Weighty]) -> Table:
    known = code_pages.load_pages()
    ordered = []  # each row after the values that sort it
    live = (fault for fault in faults if fault.code not in _DEPRECATED)
    for (severity, code), same in group_by(live, attrgetter("severity", "code")).items():
        title = known[code].title if code in known else same[0].message
        files = len(set().union(*(fault.files for fault in same)))
        places = sum(fault.places for fault in same)
        settings = tuple(dict.fromkeys(fault.key for fault in same if fault.key))
        order = SEVERITIES.index(severity), -files, -places, code
        ordered.append((order, (severity, places, files, code, title, settings)))
    columns = ("severity", "places", "files", "code", "kind", "settings")
    rows = [row for _, row in sorted(ordered)]
    return Table("mistakes", "Likely mistakes, by kind", columns, rows, inline=5)


def _list_deprecated(groups: list[Weighty]) -> Table:
    deprecated = [group for group in groups if group.code in _DEPRECATED]
    deprecated.sort(key=lambda group: (-len(group.files), -group.places, group.message))
    rows = [
        (len(group.files), group.places, group.message, group.hint, group.first)
        for group in deprecated
    ]
    columns = ("files", "places", "what", "try", "first")
    return Table("deprecated", "Deprecated, or without effect", columns, rows)


def list_worst_files(findings: Sequence[Finding]) -> Table:
    """Return the table of the files with findings, those with most errors first."""
    counts = Counter(
        (finding.path or "", finding.severity) for finding in findings if finding.severity != "info"
    )
    names = {name for name, _ in counts}
    rows = [(counts[name, "error"], counts[name, "warning"], name) for name in names]
    rows.sort(key=lambda row: (-row[0], -row[1], row[2]))
    columns = ("errors", "warnings", "file")
    return Table("worst_files", "Files with the most findings", columns, rows, most=5)


def _list_upgrade(survey: Survey) -> list[Table]:
    """Return the tables of what the requested release changes; empty without a release."""
    if not survey.upgrade.releases:
        return []
    rows = [
        (touched.kind, len(names), touched.what, touched.hint, tuple(names))
        for touched, names in sorted(
            survey.touched.items(),
            key=lambda item: (EFFECTS.index(item[0].kind), -len(item[1]), item[0].what),
        )
    ]
    scripts = {name for kind, *_, names in rows if kind != "default" for name in names}
    note = (
        f"It touches settings of {len(scripts)} of {format_count(survey.drafts, 'script')}; "
        "changed defaults are not counted"
    )
    since = format_releases(survey.upgrade.since)
    coming = f", coming from {since}" if since else ""
    title = f"What {format_releases(survey.upgrade.releases)} would touch{coming}"
    columns = ("kind", "scripts", "what", "try", "names")
    return [Table("upgrade", title, columns, rows, most=20, note=note)]


def group_findings(
    findings: Iterable[Finding], folders: Sequence[str] = (), by_value: bool = False
) -> list[Weighty]:
    """Return findings of the same code and setting as groups, most important first.

    Topics come in their order, then errors before warnings, then risks for numerics, then the
    number of scripts. ``folders`` are those scanned. With ``by_value``, values are kept apart.
    """

    def find_group(finding: Finding) -> tuple[str | int, ...]:
        value = _LINE.sub("", strip_lines(finding)) if by_value else ""
        topic = _find_topic(finding, folders)
        return topic, finding.severity, finding.certainty, finding.code, finding.key, value

    return sorted(
        (_fold_group(group, folders) for group in group_by(findings, find_group).values()),
        key=lambda group: (
            group.topic,
            SEVERITIES.index(group.severity),
            "numerics" not in group.risk,
            -len(group.files),
            -group.places,
            group.code,
            group.key,
        ),
    )


def _find_topic(finding: Finding, folders: Sequence[str]) -> int:
    """Return the position of a finding in ``TOPICS``."""
    path = finding.path or ""
    if finding.severity == "info":
        return 6
    if finding.code in _DEPRECATED:
        return 5
    if is_in_tests(path, folders):
        return 4
    if (kind := KINDS.get(detect_named_kind(path))) and kind.docs:
        return 3
    if finding.code in _NAMES:
        return 0
    return 1 if finding.code.startswith(("NP2", "NP4")) else 2


def is_in_tests(path: str, folders: Iterable[str]) -> bool:
    """Return whether a file is in a folder for tests below the folder that is scanned."""
    below = (os.path.relpath(path, folder).split(os.sep) for folder in folders if path)
    inner = next((parts for parts in below if parts[0] != ".."), [""])
    return not _TESTS.isdisjoint(inner[:-1])


def _fold_group(group: list[Finding], folders: Sequence[str]) -> Weighty:
    wordings = Counter(map(strip_lines, group))
    usual = wordings.most_common(1)[0][0]
    first = next(finding for finding in group if strip_lines(finding) == usual)
    return Weighty(
        first.code,
        first.severity,
        first.certainty,
        first.key,
        first.message,
        first.why,
        first.hint,
        _find_risk(first.key),
        first.place,
        len(group),
        tuple(dict.fromkeys(finding.path or "" for finding in group)),
        len(wordings) - 1,
        _find_topic(first, folders),
        tuple(filter(None, dict.fromkeys(finding.place for finding in (first, *group)))),
    )


def _find_risk(key: str) -> tuple[str, ...]:
    """Return the risks of a setting.

    For a misspelt option those of the intended one, which is not effective.
    """
    if key and find_record(*split_section_and_name(key)) is None:
        key = next(iter(find_nearest_names(key, record_names("options"), 1)), "")
    return find_unit_and_risk(key)[1] if key else ()


def build_report_fields(report: Report, requested: Fields) -> Fields:
    """Return a report as the fields of its JSON form; ``requested`` is the request."""
    return {
        "schema": "npuprof.scan-statistics/1",
        **requested,
        "counts": report.counts,
        "first": [
            {
                name: None if value == "" else value
                for name, value in group._asdict().items()
                if name not in ("wordings", "topic", "locations")
            }
            for group in report.weighty
        ],
        "others": report.others,
        **{
            table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for table in report.tables
        },
    }
