"""Flags that several commands take: one of a few words, and how findings are to be handed out."""

from __future__ import annotations

import sys

from npuprof import report
from npuprof.model import SEVERITIES, Finding, NpuprofError, Record
from npuprof.report import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Form(Record):
    """How ``check``, its support matrix and ``scan`` hand out what they find, as their flags say it."""

    format: str
    severity: str | None
    strict: bool
    path: str | None
    color: str

    def known(self) -> Form:
        """Return the form itself. Raises NpuprofError (NP902) where a flag's value is none of the known ones."""
        one_of("--format", self.format, ("text", *report.FORMATS))
        one_of("--color", self.color, ("auto", "always", "never"))
        if self.severity:
            one_of("--severity", self.severity, SEVERITIES)
        return self

    @property
    def least(self) -> str:
        """The least severity that is told; a machine gets everything unless it asks for less."""
        return self.severity or ("info" if self.format == "json" else "warning")

    def told(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings that are severe enough to be told."""
        return [finding for finding in findings if SEVERITIES.index(finding.severity) <= SEVERITIES.index(self.least)]

    def text(self, findings: Sequence[Finding]) -> str:
        """Return findings as people read them, coloured where they go to a terminal."""
        return report.format_findings(findings, output.is_colour_wanted(self.color, sys.stdout if self.path is None else None))

    def hand_out(self, findings: Sequence[Finding], closing: str) -> None:
        """Answer with findings; people are told the closing line too. Raises NpuprofError where a file cannot be written."""
        if self.format == "text":
            output.write_answer(self.text(findings), self.path)
            output.write_to_stderr(f"npuprof: {closing}")
        else:
            output.write_answer(report.FORMATS[self.format](findings), self.path)

    def code(self, findings: Sequence[Finding]) -> int:
        """Return the exit code: 1 where a finding stands in the way, 0 otherwise."""
        bad = ("error", "warning") if self.strict else ("error",)
        return 1 if any(finding.severity in bad for finding in findings) else 0


def one_of(flag: str, value: str, known: Sequence[str]) -> None:
    """Raise NpuprofError where a flag's value is none of the known ones."""
    if value not in known:
        from npuprof.model import did_you_mean

        hint = did_you_mean(value, known, f"known are {', '.join(known)}")
        raise NpuprofError([Finding("NP902", "error", f"{flag} {value!r} is unknown", "", hint)])
