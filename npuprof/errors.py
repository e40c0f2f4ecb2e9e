"""The one exception that means: the user can repair this."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuprof.model import Finding


class NpuprofError(Exception):
    """npuprof could not answer, and the user can do something about it.

    ``findings`` holds every problem met, each with its place and a repair; the text of the exception is
    their short form. Everything else that is raised is a bug in npuprof.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))
