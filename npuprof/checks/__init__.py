"""What is wrong or doubtful with a resolved profile.

A check is a function from a view of one config to findings; the modules beside this one each hold a family.
Rules between options are data (``catalog/rules.toml``), the pages of all other codes are ``pages.toml``.
"""

from __future__ import annotations

from npuprof.checks import rules, scope, screen, settings, sharing
from npuprof.checks.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from npuprof.model import Finding
    from npuprof.resolve.config import Config

#: The families that look at settings and nothing else; ``screen`` knows where they have nothing to say.
_SETTING_CHECKS = (settings.check_settings, rules.check_rules, scope.check_scope, sharing.check_frozen_settings)
_PROFILE_CHECKS = (scope.check_profile_claims, sharing.check_locked_keys, sharing.check_dead_steps)


def check_config(config: Config, notes: bool = True, everywhere: bool = True) -> list[Finding]:
    """Return every finding of one config, family by family; without ``notes`` only errors and warnings.

    A product family that an override treats apart is judged with that override. With ``everywhere``, the profile's
    other overrides are looked at as well, each where it matches.
    """
    view = View(config)
    found: list[Finding] = []
    if notes or not screen.is_config_clean(view):
        from npuprof.checks import elsewhere  # most profiles need none of it

        apart = elsewhere.find_overridden_families(config)
        found += _run_setting_checks(View(config, apart) if apart else view)
        for family in apart:
            there = elsewhere.resolve_in_context(config, config.context._replace(product=family))
            found += [finding for finding in _run_setting_checks(View(there)) if finding not in found] if there else []
    found += [finding for family in _PROFILE_CHECKS for finding in family(view)]
    if everywhere and config.lineage and config.lineage[-1].overrides:
        from npuprof.checks import elsewhere

        for there, index in elsewhere.resolve_inactive_overrides(config):
            more = [finding for finding in _run_setting_checks(View(there)) if elsewhere.is_in_override(finding, there, index)]
            found += [finding for finding in more if finding not in found]
    return found if notes else [finding for finding in found if finding.severity != "info"]


def _run_setting_checks(view: View) -> list[Finding]:
    return [finding for family in _SETTING_CHECKS for finding in family(view)]


def identify_finding(finding: Finding) -> tuple[str, str, str]:
    """Return what two findings share that are the same fault, wherever it stands."""
    return finding.code, finding.key, finding.message


def fold_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with equal ones folded: one for each fault, naming all profiles that show it.

    Sorted by place; the profile that wrote the fault stands first.
    """
    folded: dict[tuple[object, ...], tuple[Finding, set[str]]] = {}
    for finding in findings:
        origin = finding.origin
        place = (origin.document.source, origin.path) if origin else finding.where
        mark = (finding.code, place, finding.key, finding.message)
        folded.setdefault(mark, (finding, set()))[1].update(finding.profiles)
    return sorted((_put_author_first(finding, names) for finding, names in folded.values()), key=_finding_sort_key)


def _put_author_first(finding: Finding, names: set[str]) -> Finding:
    author = finding.origin.profile if finding.origin else None
    others = sorted(name for name in names if name != author)
    return finding._replace(profiles=(author, *others) if author in names else tuple(others))


def _finding_sort_key(finding: Finding) -> tuple[object, ...]:
    return finding.path or "", finding.line, finding.column, finding.code, finding.message
