"""Which findings matter: one fault in many places is one, and what changes results without a word comes before what stops a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from npuprof.catalog import find_record, record_names
from npuprof.compare.changes import find_unit_and_risk
from npuprof.document.keys import split_section_and_name
from npuprof.model import SEVERITIES, Finding, find_nearest_names
from npuprof.report.findings import strip_lines
from npuprof.scripts.summary.parts import Weighty

#: So many findings are told before all others.
MOST_WEIGHTY = 5


def group_findings(findings: Iterable[Finding]) -> list[Weighty]:
    """Return findings by what they say of which setting, the weightiest first.

    Errors come before warnings, then what puts numerics at risk, then what most scripts have.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code, finding.key), []).append(finding)
    return sorted((_fold_group(group) for group in groups.values()), key=_weigh)


def _fold_group(group: list[Finding]) -> Weighty:
    said = Counter(strip_lines(finding.message) for finding in group)
    usual = max(said, key=said.__getitem__)  # of equals the first
    one = next(finding for finding in group if strip_lines(finding.message) == usual)
    files = tuple(dict.fromkeys(finding.path or "" for finding in group))
    risk = _find_risk(one.key)
    return Weighty(
        one.severity, one.code, one.key, one.message, one.why, one.hint, one.place, len(group), len(said) - 1, files, risk,
    )  # fmt: skip


def _find_risk(key: str) -> tuple[str, ...]:
    """Return what a setting puts at risk; of a misspelt option, what the one that is meant does: it is not in force."""
    if not key or find_record(*split_section_and_name(key)) is not None:
        return find_unit_and_risk(key)[1] if key else ()
    meant = find_nearest_names(key, record_names("options"), 1)
    return find_unit_and_risk(meant[0])[1] if meant else ()


def _weigh(one: Weighty) -> tuple[int, bool, int, int, str, str]:
    return SEVERITIES.index(one.severity), "numerics" not in one.risk, -len(one.files), -one.places, one.code, one.key
