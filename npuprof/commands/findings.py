"""How verbs that judge (``check``, ``scan``) hand out what they find: least severity, format, exit code."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.commands.verb import Verb
from npuprof.model import SEVERITIES, Finding
from npuprof.report import findings as written
from npuprof.report.answer import Answer

#: What ``--format`` may say for findings.
FORMATS = ("text", *written.FORMATS)


class JudgingVerb(Verb):
    """A verb whose answer is findings."""

    severity: str | None = None
    strict: bool = False

    @property
    def least_severity(self) -> str:
        """The least severity that is told; a machine gets everything unless it asks for less."""
        return self.severity or ("info" if self.format == "json" else "warning")

    def select_told(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings that are severe enough to be told."""
        return [finding for finding in findings if SEVERITIES.index(finding.severity) <= SEVERITIES.index(self.least_severity)]

    def decide_code(self, findings: Sequence[Finding], unread: int = 0) -> int:
        """Return the exit code: 2 where something could not be read, 1 where a finding stands in the way, 0 otherwise."""
        bad = ("error", "warning") if self.strict else ("error",)
        return 2 if unread else 1 if any(finding.severity in bad for finding in findings) else 0

    def answer_findings(self, told: Sequence[Finding], code: int, remark: str) -> Answer:
        """Return findings as an answer; people are told the remark too."""
        if self.format == "text":
            return Answer(written.format_findings(told, self.coloured), (remark,), code)
        return Answer(written.FORMATS[self.format](told), code=code)
