"""Which findings a verb that judges tells: those of the codes that a user names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from npuprof.model import Finding, NpuprofError, did_you_mean


class Codes(NamedTuple):
    """Codes that a user named: whole ones, and how others begin."""

    whole: frozenset[str]
    beginnings: tuple[str, ...]

    def name(self, code: str) -> bool:
        """Return whether a code is among them."""
        return code in self.whole or code.startswith(self.beginnings)


def read_codes(given: Sequence[str], flag: str, store: str | None = None) -> Codes:
    """Return the codes, or beginnings of codes, that a user wrote, with commas or one by one; ``store`` is the one he named.

    Raises NpuprofError for one that is none.
    """
    wanted = [code.strip() for text in given for code in text.split(",") if code.strip()]
    if not given:
        return Codes(frozenset(), ())
    from npuprof.catalog import pages
    from npuprof.commands.rule import load_team_pages

    known = [*pages.load_pages(), *(page.code for page in load_team_pages(store))]
    problems = [
        Finding("NP902", f"{flag}: there is no code {code!r}", "", did_you_mean(code, known, "npuprof rule lists all codes"))
        for code in wanted or [""]
        if not code or not any(one.startswith(code) for one in known)
    ]
    if problems:
        raise NpuprofError(problems)
    return Codes(frozenset(wanted).intersection(known), tuple(code for code in wanted if code not in known))
