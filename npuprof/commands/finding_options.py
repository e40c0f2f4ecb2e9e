"""Output options of verbs that report findings: minimum severity, format, exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from npuprof.checks import is_fixable
from npuprof.commands.framework import Verb
from npuprof.commands.framework.parameters import BASELINE, IGNORE, SELECT, SEVERITY, STORE, STRICT
from npuprof.model import (
    SEVERITIES,
    TYPE_CHECKING,
    Finding,
    NpuprofError,
    Record,
    build_error,
    build_usage_error,
    did_you_mean,
    raise_any,
    select_errors,
)
from npuprof.report import Answer
from npuprof.report import findings as written
from npuprof.report.findings import format_severity_counts
from npuprof.report.text import count_rest, format_count

#: The values of ``--format`` for findings.
FORMATS = ("text", "json", *written.WITH_PLAIN_PATHS)
#: The maximum number of files in a note.
_SHOWN = 5


if TYPE_CHECKING:
    from typing import Any

    from npuprof.checks.store import StoreReport
    from npuprof.report.baselines import BaselineKey
    from npuprof.store.checked import CheckedStore


class Filtered(Record):
    """The findings after filtering by codes and baseline.

    ``note`` is a note about the baseline.
    """

    findings: list[Finding]
    note: str = ""


class Outcome(Record):
    """The result of checking a store: the report, and its filtered findings."""

    checked: CheckedStore
    report: StoreReport
    settled: Filtered


class JudgingVerb(Verb):
    """A verb that reports findings, filtered by severity, code and baseline."""

    severity = SEVERITY
    strict = STRICT
    select = SELECT
    ignore = IGNORE
    baseline = BASELINE
    store = STORE
    write_baseline = False

    @property
    def least_severity(self) -> str:
        """The minimum severity of shown findings.

        JSON includes everything unless a severity is requested.
        """
        return self.severity or ("info" if self.format == "json" else "warning")

    def require_known_choice(self) -> None:
        """Raise NpuprofError for unknown codes, and for writing a baseline without naming it.

        Before any work.
        """
        self._read_codes()
        if self.write_baseline and not self.baseline:
            raise build_usage_error(
                "--write-baseline needs to know where",
                "name the file: --baseline npuprof-baseline.json",
            )

    def _read_codes(self) -> Callable[[str], bool]:
        """Return a function that returns whether a code is selected.

        Raises NpuprofError for unknown codes.
        """
        is_selected = read_codes(self.select, "--select", self.store)
        is_ignored = read_codes(self.ignore, "--ignore", self.store)
        return lambda code: (not self.select or is_selected(code)) and not is_ignored(code)

    def apply_baseline(
        self, findings: Sequence[Finding], unread: int, is_judged: Callable[[BaselineKey], bool]
    ) -> Filtered:
        """Return the findings with selected codes that are not in the baseline.

        Update the baseline if requested.

        ``is_judged`` returns whether a finding of the baseline would have been found again. Raises
        NpuprofError if the baseline is unusable.
        """
        is_selected = self._read_codes()
        selected = [finding for finding in findings if is_selected(finding.code)]
        if not self.baseline:
            return Filtered(selected)
        from npuprof.report import baselines

        known = baselines.read_baseline(self.baseline)
        # notes fail no job, and so need no baseline
        serious = [finding for finding in selected if finding.severity != "info"]
        # findings of unread files would be missing in it, or be taken out
        if self.write_baseline and unread:
            what = f"{self.baseline} was not written: not everything could be read"
            errors = select_errors(serious)
            raise NpuprofError([*errors, Finding("NP015", what, "", "fix the errors listed above")])
        if known.raw is None:
            if not self.write_baseline:
                import shlex

                what = f"there is no baseline {self.baseline}"
                named = shlex.quote(str(self.baseline))
                raise build_error(
                    "NP015", what, "", f"write it: --baseline {named} --write-baseline"
                )
            counts = baselines.count_findings(serious, self.baseline)
            baselines.write_baseline(known, counts)
            return Filtered(
                [finding for finding in selected if finding.severity == "info"],
                f", wrote {self.baseline} with {counts.total()}",
            )
        compared = baselines.compare_with_baseline(
            serious, known, lambda key: is_judged(key) and is_selected(key.code)
        )
        # by identity: equal findings may be known in one number and new beyond it
        new = {id(finding) for finding in compared.new}
        shown = [
            finding for finding in selected if finding.severity == "info" or id(finding) in new
        ]
        if self.write_baseline:
            baselines.write_baseline(known, compared.known)
        else:
            shown += baselines.build_gone_findings(compared.gone, self.baseline)
        note = f", {compared.known.total()} in the baseline"
        if compared.gone:
            gone = "taken out of" if self.write_baseline else "gone from"
            note += f", {compared.gone.total()} {gone} it"
        return Filtered(shown, f"{note}{_describe_moved(compared.moved)}")

    def filter_by_severity(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings of at least the minimum severity."""
        return [
            finding
            for finding in findings
            if SEVERITIES.index(finding.severity) <= SEVERITIES.index(self.least_severity)
        ]

    def decide_code(self, findings: Sequence[Finding], unread: int = 0) -> int:
        """Return the exit code: 2 if something was not read, 1 for certain errors, else 0."""
        if unread:
            return 2
        failing = ("error", "warning") if self.strict else ("error",)
        return int(
            any(
                finding.severity in failing and (self.strict or finding.certainty == "certain")
                for finding in findings
            )
        )

    def check_store(
        self,
        checked: CheckedStore,
        specs: Sequence[str] = (),
        progress: bool = False,
        programs: Sequence[str] = (),
        target: str | None = None,
    ) -> Outcome:
        """Return the filtered findings of a store, or of ``specs`` of it.

        Arguments are judged by the parsers in ``programs``, and all by ``target``, too.

        Raises NpuprofError if there is nothing to check.
        """
        from npuprof.renderers.outputs import check_store, judge_target

        report = check_store(checked, specs, self.least_severity == "info", progress)
        if programs:
            from npuprof.scripts.lint.program_faults import judge_presets

            report = judge_presets(checked, report, programs)
        if target:
            report = judge_target(report, target)
        unread = report.unresolved
        return Outcome(
            checked,
            report,
            self.apply_baseline(report.findings, unread, lambda _: report.is_whole and not unread),
        )

    def describe_outcome(self, outcome: Outcome, done: str = "") -> str:
        """Return the findings of a store, their scope and the next step in one line.

        ``done`` describes the applied fixes.
        """
        report = outcome.report
        findings = outcome.settled.findings
        more = "" if self.least_severity == "info" else " (--severity info shows notes as well)"
        if not done and any(map(is_fixable, findings)):
            from npuprof.edit.fixing import fix_documents

            fixable = sum(
                fixed.count for fixed in fix_documents(findings, outcome.checked.find_file).values()
            )
            more = f", --fix corrects at least {fixable}{more}" if fixable else more
        found_now = format_severity_counts(findings) or "no findings"
        result = f"{found_now}{describe_accepted(len(report.accepted))}{outcome.settled.note}{more}"
        result += (
            f"; {report.coverage.describe()}" if report.coverage.settings or not findings else ""
        )
        return f"{done}{format_count(report.count, 'preset')} checked: {result}"

    def answer_findings(
        self,
        findings: Sequence[Finding],
        code: int,
        note: str,
        accepted: int = 0,
        coverage: Mapping[str, Any] | None = None,
        releases: Sequence[Mapping[str, Any]] = (),
    ) -> Answer:
        """Return findings as an answer: text with a note, or a machine format.

        JSON also has the number of accepted findings, the coverage and the pinned releases.
        """
        notes = (note,) if note else ()
        if self.format == "text":
            listed = written.format_findings(findings, self.coloured)
            return Answer(f"{listed}\n" if listed else "", notes, code)
        if self.format == "concise":
            return Answer(written.format_concise_findings(findings), notes, code)
        if self.format == "json":
            return Answer(
                written.format_json_findings(findings, accepted, coverage, releases), code=code
            )
        if self.format == "html":
            from npuprof.hosting.findings_page import format_findings_page

            return Answer(format_findings_page(findings, note), notes, code)
        from npuprof.hosting import reports

        return Answer(reports.FORMATS[self.format](findings), code=code)


def _describe_moved(moved: Mapping[str, str]) -> str:
    """Return the moved files of a baseline as the end of a sentence; empty if there are none."""
    listed = [f"{now} as {was}" for was, now in moved.items()]
    return f", which knows {count_rest(listed, _SHOWN)}" if listed else ""


def describe_accepted(number: int) -> str:
    """Return the number of accepted findings as the end of a sentence; empty for none."""
    return f", {number} accepted" if number else ""


def read_codes(texts: Sequence[str], flag: str, store: str | None) -> Callable[[str], bool]:
    """Return a function that returns whether a user's codes and prefixes include a code.

    Codes may be separated by commas.

    ``store`` is the user's ``--store``. Raises NpuprofError for an unknown one.
    """
    if not texts:
        return lambda _: False
    requested = [code.strip() for text in texts for code in text.split(",") if code.strip()]
    from npuprof.catalog import code_pages
    from npuprof.commands.rule import load_team_pages

    known = [*code_pages.load_pages(), *(page.code for page in load_team_pages(store))]
    problems = []
    # an option with commas only has no code, which is an error, too
    for code in requested or [""]:
        if not code or not any(known_code.startswith(code) for known_code in known):
            hint = did_you_mean(code, known, "npuprof rule lists all codes")
            problems.append(Finding("NP902", f"{flag}: there is no code {code!r}", "", hint))
    raise_any(problems)
    # a whole code is no prefix: the team rule TEAM-1 must not select TEAM-10
    prefixes = tuple(code for code in requested if code not in known)
    return lambda code: code in requested or code.startswith(prefixes)
