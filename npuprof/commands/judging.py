"""Output options of verbs that report findings (``check``, ``scan``): minimum severity, format, exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from npuprof.commands.framework import Verb
from npuprof.model import SEVERITIES, Finding, NpuprofError, Record, build_error, build_usage_error, did_you_mean
from npuprof.report import Answer
from npuprof.report import findings as written

#: The values of ``--format`` for findings.
FORMATS = ("text", "json", *written.WITH_PLAIN_PATHS)
#: The maximum number of files in a note.
_SHOWN = 5


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from npuprof.report.baselines import Mark


class Settled(Record):
    """The findings after filtering by codes and baseline; ``remark`` is a note about the baseline."""

    findings: list[Finding]
    remark: str = ""


class JudgingVerb(Verb):
    """A verb whose answer is findings."""

    severity: str | None = None
    strict: bool = False
    select: list[str] = []
    ignore: list[str] = []
    baseline: str | None = None
    write_baseline: bool = False
    store: str | None = None

    def refuse_odd_choice(self) -> None:
        """Raise NpuprofError for unknown codes, and for writing a baseline without naming it; before any work."""
        if self.select or self.ignore:
            read_codes(self.select, "--select", self.store)
            read_codes(self.ignore, "--ignore", self.store)
        if self.write_baseline and not self.baseline:
            raise build_usage_error("--write-baseline needs to know where", "name the file: --baseline npuprof-baseline.json")

    def settle_findings(self, findings: Sequence[Finding], unread: int, is_judged: Callable[[Mark], bool]) -> Settled:
        """Return the findings with selected codes that are not in the baseline; update the baseline if requested.

        ``is_judged`` returns whether a finding of the baseline would have been found again. Raises NpuprofError if the baseline
        is unusable.
        """
        if not (self.select or self.ignore or self.baseline):
            return Settled(list(findings))
        from npuprof.report import baselines

        wanted, unwanted = read_codes(self.select, "--select", self.store), read_codes(self.ignore, "--ignore", self.store)
        selected = [finding for finding in findings if (not self.select or wanted.name(finding.code)) and not unwanted.name(finding.code)]
        if not self.baseline:
            return Settled(selected)
        known = baselines.read_baseline(self.baseline)
        serious = [finding for finding in selected if finding.severity != "info"]

        def is_asked(mark: Mark) -> bool:
            return is_judged(mark) and (not self.select or wanted.name(mark.code)) and not unwanted.name(mark.code)

        if self.write_baseline and unread:
            what = f"{self.baseline} was not written: not everything could be read"
            raise NpuprofError(
                [
                    *(finding for finding in serious if finding.severity == "error"),
                    Finding("NP015", what, "", "fix the errors listed above"),
                ]
            )
        if self.write_baseline and known.raw is None:
            marks = baselines.count_marks(serious, self.baseline)
            baselines.write_baseline(known, marks)
            return Settled([finding for finding in selected if finding.severity == "info"], f", wrote {self.baseline} with {marks.total()}")
        if known.raw is None:
            what = f"there is no baseline {self.baseline}"
            raise build_error("NP015", what, "", f"write it: --baseline {self.baseline} --write-baseline")
        compared = baselines.compare_with_baseline(serious, known, is_asked)
        if self.write_baseline:
            baselines.write_baseline(known, compared.known)
        new = {id(finding) for finding in compared.new}
        counted = compared.known.total()
        gone = f", {compared.gone.total()} {'taken out of' if self.write_baseline else 'gone from'} it" if compared.gone else ""
        notes = [] if self.write_baseline else baselines.build_gone_findings(compared.gone, self.baseline)
        shown = [finding for finding in selected if finding.severity == "info" or id(finding) in new]
        return Settled([*shown, *notes], f", {counted} in the baseline{gone}{_describe_moved(compared.moved)}")

    @property
    def least_severity(self) -> str:
        """The minimum severity; machine formats include everything unless a severity is requested."""
        return self.severity or ("info" if self.format == "json" else "warning")

    def select_told(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings of at least the minimum severity."""
        return [finding for finding in findings if SEVERITIES.index(finding.severity) <= SEVERITIES.index(self.least_severity)]

    def decide_code(self, findings: Sequence[Finding], unread: int = 0) -> int:
        """Return the exit code: 2 if something could not be read, 1 for findings that fail the check, else 0."""
        bad = ("error", "warning") if self.strict else ("error",)
        return 2 if unread else 1 if any(finding.severity in bad for finding in findings) else 0

    def answer_findings(
        self, findings: Sequence[Finding], code: int, remark: str, accepted: int = 0, coverage: Mapping[str, Any] | None = None
    ) -> Answer:
        """Return findings as an answer: text with a note, machine formats with the number of accepted findings and the coverage."""
        if self.format == "text":
            listed = written.format_findings(findings, self.coloured)
            return Answer(f"{listed}\n" if listed else "", (remark,), code)
        if self.format == "json":
            return Answer(written.format_json_findings(findings, accepted, coverage), code=code)
        from npuprof.hosting import reports

        return Answer(reports.FORMATS[self.format](findings), code=code)


def _describe_moved(moved: Mapping[str, str]) -> str:
    """Return the moved files of a baseline as the end of a sentence; empty if there are none."""
    listed = [f"{now} as {was}" for was, now in moved.items()]
    more = f" and {len(listed) - _SHOWN} more" if listed[_SHOWN:] else ""
    return f", which knows {', '.join(listed[:_SHOWN])}{more}" if listed else ""


def describe_accepted(number: int) -> str:
    """Return the number of accepted findings as the end of a sentence; empty for none."""
    return f", {number} accepted" if number else ""


class Codes(Record):
    """Selected codes: complete ones, and prefixes."""

    whole: frozenset[str]
    beginnings: tuple[str, ...]

    def name(self, code: str) -> bool:
        """Return whether a code is selected."""
        return code in self.whole or code.startswith(self.beginnings)


def read_codes(texts: Sequence[str], flag: str, store: str | None = None) -> Codes:
    """Return the codes and prefixes from a user's arguments, separated by commas or not; ``store`` is the user's ``--store``.

    Raises NpuprofError for an unknown one.
    """
    wanted = [code.strip() for text in texts for code in text.split(",") if code.strip()]
    if not texts:
        return Codes(frozenset(), ())
    from npuprof.catalog import pages
    from npuprof.commands.rule import load_team_pages

    known = [*pages.load_pages(), *(page.code for page in load_team_pages(store))]
    problems = [
        Finding("NP902", f"{flag}: there is no code {code!r}", "", did_you_mean(code, known, "npuprof rule lists all codes"))
        for code in wanted or [""]
        if not code or not any(known_code.startswith(code) for known_code in known)
    ]
    if problems:
        raise NpuprofError(problems)
    return Codes(frozenset(wanted).intersection(known), tuple(code for code in wanted if code not in known))
