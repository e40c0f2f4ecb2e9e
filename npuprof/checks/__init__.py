"""Checks: the findings of a resolved profile.

A check is a function from a view of one config to findings; each module contains related checks.
Rules between options are data (``catalog/rules.toml``); the pages of all other codes are in
``pages.toml``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import starmap

from npuprof.catalog.targets import list_target_names
from npuprof.checks import scope, sharing
from npuprof.checks.judging import (
    add_conditions,
    check_other_targets,
    collect_faults,
    judge_view,
)
from npuprof.checks.view import View, has_framework_settings
from npuprof.model import (
    TYPE_CHECKING,
    Context,
    Finding,
    NpuprofError,
    Record,
    renew_hints,
    select_errors,
)
from npuprof.report import format_option
from npuprof.resolve import lineages
from npuprof.resolve.config import Config

if TYPE_CHECKING:
    from npuprof.checks.accepted import Accepted


class Verdict(Record):
    """The findings of a config, and its accepted findings."""

    findings: list[Finding]
    accepted: list[Accepted]


def check_config(config: Config, notes: bool = True, everywhere: bool = True) -> list[Finding]:
    """Return every finding of one config that is not accepted.

    Without ``notes``, only errors and warnings.

    Values and overrides are checked together: with ``everywhere`` in every context that the preset
    supports, else only in those that need no further selection.
    """
    return judge_config(config, notes, everywhere).findings


def judge_config(config: Config, notes: bool | None = True, everywhere: bool = True) -> Verdict:
    """Return every finding of one config, as ``check_config`` does, and its accepted findings.

    If ``notes`` is None, notes are only included if one may be accepted.
    """
    renew_hints()
    view = View(config)
    if notes is None:
        notes = view.acceptance is not None
    claims = view.sift_plain_findings(scope.check_profile_claims(view))
    if lineages.has_overrides(config.lineage):
        from npuprof.checks import context_checks

        findings = context_checks.check_contexts(view, notes, everywhere)
    else:
        found = judge_view(view, notes)
        if not view.requested.target:
            found += check_other_targets(view, list_target_names())
        findings = [add_conditions(item.finding, [item.conditions]) for item in found]
    findings += [*claims, *view.sift_plain_findings(_check_steps_and_parents(view))]
    if lineages.is_set_anywhere(config.lineage, "ignore"):
        from npuprof.checks.accepted import check_ignores

        findings += check_ignores(config)
    return Verdict(
        findings if notes else [finding for finding in findings if finding.severity != "info"],
        view.accepted,
    )


def _check_steps_and_parents(view: View) -> tuple[Finding, ...]:
    """Return the findings about steps and parents of a preset.

    Contexts with equal settings share them.
    """
    return view.config.remember(
        "steps and parents",
        lambda: (
            *sharing.check_dead_steps(view),
            *sharing.check_lost_protections(view),
            *sharing.check_parents(view),
            *_check_spellings(view),
        ),
    )


def _check_spellings(view: View) -> Iterable[Finding]:
    if not has_framework_settings(view.names):
        return ()
    from npuprof.checks.frameworks import check_spellings  # few presets have framework sections

    return check_spellings(view.config)


def check_before_export(config: Config) -> list[Finding]:
    """Return the errors and warnings of an export in the config's own context.

    For an abstract preset, first that it is abstract.
    """
    findings = fold_findings(check_config(config, notes=False, everywhere=False))
    if config.abstract:
        origin = config.profile.origin("profile", "abstract")
        why = "An abstract preset exists only to be extended, and may be incomplete."
        hint = (
            "extend it, or compose it with another preset: "
            f"{format_option('with', in_python=config.resolver.in_python)}"
        )
        findings.insert(
            0,
            Finding(
                "NP107",
                f"{config.name} is abstract",
                why,
                hint,
                origin,
                "profile.abstract",
                (config.name,),
            ),
        )
    return findings


def require_exportable(config: Config) -> list[Finding]:
    """Return the warnings of an exported config.

    Raises NpuprofError for errors and abstract presets.
    """
    findings = check_before_export(config)
    if select_errors(findings):
        raise NpuprofError(findings)
    return findings


def find_clean_contexts(
    config: Config, findings: Iterable[Finding], requested: tuple[Context, ...]
) -> tuple[tuple[str, ...] | None, ...]:
    """Return for each context whether a preset has neither errors nor warnings there.

    No context names a target. ``()`` means that it has none. If the preset does not support the
    context, return the codes that report it; if only a check can tell, None. ``findings`` are those
    of the preset in its own context.
    """
    view = View(config)
    if view.requested != Context() or view.acceptance is not None:
        return (None,) * len(requested)
    claimed = scope.list_claimed_values(config)
    states = scope.compare_contexts(view.scope, view.ranges, claimed, requested)
    is_clean = (
        all(finding.severity == "info" for finding in findings)
        and not has_framework_settings(view.names)
        and view.scenario in ("training", "online-inference")
        and not lineages.has_overrides(config.lineage)
    )
    if is_clean:
        return states
    # A context without faults of its own may share those of the preset: only a check can tell.
    return tuple([state or None for state in states])


def check_values(config: Config, notes: bool) -> list[Finding]:
    """Return the findings about each value of a config and about its claims.

    Needs no other data.
    """
    view = View(config)
    faults = collect_faults(view)
    findings = [
        view.build_finding(item.fault, item.key) for item in (*faults.plain, *faults.scoped)
    ]
    return [
        finding
        for finding in (*findings, *scope.check_profile_claims(view))
        if notes or finding.severity != "info"
    ]


def is_fixable(finding: Finding) -> bool:
    """Return whether a finding has a safe fix in a file of the work tree."""
    origin = finding.origin
    return (
        finding.fix is not None
        and origin is not None
        and origin.revision is None
        and origin.document.name != "-"
    )


def identify_finding(finding: Finding) -> tuple[str, str, str]:
    """Return the identity of a finding's fault, independent of its place."""
    return finding.code, finding.key, finding.message


def fold_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings without duplicates: one per fault, with all affected profiles.

    Sorted by place; the profile that contains the fault comes first.
    """
    folded: dict[tuple[object, ...], tuple[Finding, set[str]]] = {}
    for finding in findings:
        origin = finding.origin
        location = (origin.document.source, origin.path) if origin else finding.where
        identity = (finding.code, location, finding.key, finding.message)
        _, profiles = folded.setdefault(identity, (finding, set()))
        profiles.update(finding.profiles)
    return sorted(
        starmap(_put_author_first, folded.values()),
        key=_finding_sort_key,
    )


def _put_author_first(finding: Finding, names: set[str]) -> Finding:
    author = finding.origin.profile if finding.origin else None
    others = sorted(name for name in names if name != author)
    profiles = (author, *others) if author in names else tuple(others)
    return finding if profiles == finding.profiles else finding._replace(profiles=profiles)


def _finding_sort_key(finding: Finding) -> tuple[object, ...]:
    return finding.path or "", *finding.position, finding.code, finding.message
