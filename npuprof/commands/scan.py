"""``scan``: lint the settings in scripts, file by file."""

from __future__ import annotations

import os

from npuprof.catalog import build_finding
from npuprof.catalog.releases import list_selected
from npuprof.checks.lifetimes import build_newer_findings
from npuprof.commands.finding_options import FORMATS, JudgingVerb, describe_accepted
from npuprof.commands.framework import arguments, flag, option
from npuprof.commands.framework.parameters import (
    BASELINE,
    FROM,
    IGNORE,
    PROGRAMS,
    SELECT,
    SEVERITY,
    STRICT,
    WRITE_BASELINE,
    ContextVerb,
    PrintingVerb,
    formats,
)
from npuprof.edit.migration_steps import find_earlier_releases
from npuprof.edit.moves import Upgrade
from npuprof.model import Context, Place, build_usage_error
from npuprof.report import Answer
from npuprof.report.baselines import BaselineKey
from npuprof.report.findings import format_severity_counts
from npuprof.report.text import format_count
from npuprof.scripts.pinned_releases import describe_pins
from npuprof.scripts.reading.file_kinds import STDIN, describe_kinds
from npuprof.scripts.scanning import scan_scripts
from npuprof.scripts.summary.forms import format_groups, format_report, format_report_page
from npuprof.scripts.summary.report import build_findings_report, build_report_fields
from npuprof.scripts.summary.setting_counts import Survey
from npuprof.system.files import REPLACED, read_input

#: The maximum number of findings of folders that are not grouped.
_MOST_SINGLE = 20


class Scan(PrintingVerb, ContextVerb, JudgingVerb):
    """Lint the settings in scripts.

    Reports misspelt keys, wrong fields, bad values, conflicts, settings that a release does not
    support, and stale blocks. Scripts are parsed, never executed. Exits with 1 if there are errors.
    """

    usage_hint = (
        "npuprof scan train.py; scan edits no script: fix it by hand, or write a block with "
        "npuprof inject train.py bert-training."
    )
    group = "scripts"
    prose = True

    paths = arguments(
        "PATH...",
        f"Files and folders to scan: {describe_kinds()}, or - for stdin [default: .]",
    )
    stdin_name = option(
        "--stdin-filename",
        metavar="NAME",
        text="Read stdin as the file NAME, which need not exist [default: guess its kind]",
    )
    as_folder = flag(
        "--as-folder",
        text="Treat files as in a folder: skip those of other kinds, as in a pre-commit hook",
    )
    since = FROM
    programs = PROGRAMS
    statistics = flag(
        "--statistics",
        text="Summarise all files: the most important findings first, then counts by kind",
    )
    docs = flag("--docs", text="Also read the shell blocks of Markdown files below folders")
    everything = flag(
        "--all", text="List each finding, and the names of all settings that are not known"
    )
    format = formats(*FORMATS, "html")
    severity = SEVERITY
    strict = STRICT
    select = SELECT
    ignore = IGNORE
    baseline = BASELINE
    write_baseline = WRITE_BASELINE

    def run(self) -> Answer:
        """Return the findings. Exit 2 if a named file could not be read, 1 for errors, else 0."""
        name = self.stdin_name or STDIN
        if self.stdin_name:
            self.paths = self.paths or ["-"]
            if "-" not in self.paths or os.path.isdir(name):
                raise build_usage_error(
                    "--stdin-filename names the file whose text is in standard input",
                    "npuprof scan - --stdin-filename run.sh",
                )
        if "-" not in self.paths:
            return self._scan()
        self.paths = [name if path == "-" else path for path in self.paths]
        REPLACED[os.path.abspath(name)] = read_input()
        try:
            return self._scan()
        finally:
            REPLACED.clear()

    def _scan(self) -> Answer:
        self.require_known_choice()
        context = self.build_context()
        survey = self._begin_survey(context)
        scanned = scan_scripts(
            self.paths or ["."],
            context,
            self.store,
            survey,
            self.docs,
            self.programs,
            self.as_folder,
        )
        findings = [*build_newer_findings(context), *scanned.findings]
        findings += survey.list_changed_defaults() if survey and not self.statistics else ()
        unread = scanned.unread
        accepted = scanned.accepted
        for path in self.paths:
            if path.endswith(".toml") and (path == self.stdin_name or os.path.isfile(path)):
                what = f"{path} is not a script and was skipped"
                hint = f"for a preset: npuprof check {path}"
                findings.append(
                    build_finding("NP801", what, "scan reads scripts.", hint, where=Place(path))
                )

        def is_judged(mark: BaselineKey) -> bool:
            path = os.path.join(os.path.dirname(self.baseline or ""), mark.path)
            # a finding in a file that no longer exists is gone; one in an unscanned file is unknown
            return os.path.abspath(path) in scanned.seen or not os.path.lexists(path)

        settled = self.apply_baseline(findings, unread, is_judged)
        findings = settled.findings
        code = self.decide_code(findings, unread)
        if survey is not None and self.statistics:
            survey.findings = findings
            return self._answer_statistics(survey, accepted, code)
        shown = self.filter_by_severity(findings)
        listed = {finding.severity for finding in shown}
        hidden = [finding for finding in findings if finding.severity not in listed]
        more = f" ({format_severity_counts(hidden)} with --severity info)" if hidden else ""
        found_now = format_severity_counts(shown) or scanned.coverage.describe_clean()
        covered = scanned.coverage.describe("--all", self.everything)
        note = (
            f"{format_count(scanned.files, 'file')} scanned: "
            f"{found_now}{describe_accepted(accepted)}{settled.note}{more}; "
            f"{covered}{describe_pins(scanned.releases)}{scanned.coverage.describe_unjudged()}"
        )
        # a misspelt folder would otherwise look clean
        if not scanned.files and not findings:
            note += (
                f"; there is no script in {', '.join(self.paths) or 'this folder'} (.py, .ipynb, "
                ".sh); npuprof check looks at presets"
            )
        is_grouped = scanned.folders and len(shown) > _MOST_SINGLE and not self.everything
        if self.format == "text" and is_grouped:
            return Answer(format_groups(shown, scanned.folders, self.coloured), (note,), code)
        covered_fields = scanned.coverage.format_fields()
        pinned = [{**pin._asdict(), "files": count} for pin, count in scanned.releases.items()]
        return self.answer_findings(shown, code, note, accepted, covered_fields, pinned)

    def _begin_survey(self, context: Context) -> Survey | None:
        """Return the counter for ``--statistics``, None without it.

        Raises NpuprofError for conflicting flags.
        """
        others = {
            f"--format {self.format}": self.format not in ("text", "json", "html"),
            "--severity": self.severity,
        }
        flags = " and ".join(name for name, value in others.items() if value)
        if flags and self.statistics:
            raise build_usage_error(
                f"--statistics cannot be combined with {flags}", f"omit --statistics, or {flags}"
            )
        since = find_earlier_releases(self.since, context)
        upgrade = Upgrade(list_selected(context.list_named()), since)
        return Survey(context, upgrade) if self.statistics or since else None

    def _answer_statistics(self, survey: Survey, accepted: int, code: int) -> Answer:
        report = build_findings_report(survey, accepted)
        return Answer(
            {
                "text": lambda: format_report(report, self.coloured),
                "json": lambda: build_report_fields(
                    report, {"cann": survey.context.cann, "from": survey.upgrade.since.get("cann")}
                ),
                "html": lambda: format_report_page(report),
            },
            report.notes,
            code,
        )


VERB = Scan
