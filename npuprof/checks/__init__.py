"""What is wrong or doubtful with a resolved profile.

A check is a function from a view of one config to findings; the modules beside this one each hold a family.
Rules between options are data (``catalog/rules.toml``), the pages of all other codes are ``pages.toml``.
"""

from __future__ import annotations

from npuprof.checks import rules, scope, settings, sharing
from npuprof.checks.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from npuprof.config import Config
    from npuprof.model import Finding

_FAMILIES = (settings.findings, rules.findings, scope.findings, sharing.findings)


def check(config: Config) -> list[Finding]:
    """Return every finding of one config, family by family."""
    view = View(config)
    return [finding for family in _FAMILIES for finding in family(view)]


def gather(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with equal ones folded: one for each fault, naming all profiles that show it.

    Sorted by place; the profile that wrote the fault stands first.
    """
    folded: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        origin = finding.origin
        place = (origin.document.source, origin.path) if origin else finding.where
        mark = (finding.code, place, finding.key, finding.message)
        known = folded.get(mark)
        if known is None:
            folded[mark] = finding
        else:
            folded[mark] = known._replace(profiles=tuple(dict.fromkeys((*known.profiles, *finding.profiles))))
    return sorted((_author_first(finding) for finding in folded.values()), key=_place)


def _author_first(finding: Finding) -> Finding:
    author = finding.origin.profile if finding.origin else None
    others = sorted(name for name in finding.profiles if name != author)
    return finding._replace(profiles=(author, *others) if author in finding.profiles else tuple(others))


def _place(finding: Finding) -> tuple[object, ...]:
    return finding.path or "", finding.line, finding.column, finding.code, finding.message
