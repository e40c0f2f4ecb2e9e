"""The one exception that means: the user can repair this."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from npuprof.model import Finding


class NpuprofError(Exception):
    """npuprof could not answer, and the user can do something about it.

    ``findings`` holds every problem met, each with its place and a repair; the text of the exception is
    their short form. Everything else that is raised is a bug in npuprof.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        super().__init__()
        self._given = findings
        self._findings: tuple[Finding, ...] | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The problems; worked out when somebody asks, as their places take time to find."""
        if self._findings is None:
            self._findings = tuple(self._given)
        return self._findings

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))
