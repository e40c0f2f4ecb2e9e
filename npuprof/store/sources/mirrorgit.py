"""git that reads the mirror of a source, or writes it: what is wrong with a mirror is told of its source, with the repair."""

from __future__ import annotations

from collections.abc import Iterable

from npuprof.model import Finding
from npuprof.store.git import Git
from npuprof.store.sources.failures import build_mirror_finding


class MirrorGit(Git):
    """git for a mirror; ``told`` names its source in messages."""

    def __init__(self, folder: str, told: str) -> None:
        self._told = told
        super().__init__(folder, bare=folder)

    def build_refusal(self, reason: bytes) -> Finding:
        """Return why git refused: whose the mirror is, what is in its way, else that it is damaged."""
        return build_mirror_finding(self._told, self.bare, reason.decode(errors="replace"))

    def explain_absence(self, oids: Iterable[str]) -> Finding:
        """Return that objects are not there: a mirror holds all that belongs to its commits."""
        return build_mirror_finding(self._told, self.bare, f"error: object {next(iter(oids), '')} is missing")
