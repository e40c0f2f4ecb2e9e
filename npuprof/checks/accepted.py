"""Accepted findings: entries of ``ignore``, each with a reason.

They are in a preset, or in npuprof.toml for presets that match a glob. An entry of a preset covers
values set by the preset or its ancestors, also in dependents. Values set by a dependent, a mix-in,
a consumer of a source or the command line are still reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import values
from npuprof.catalog.code_pages import find_acceptance_fault
from npuprof.catalog.written_condition import list_team_reads
from npuprof.document import keys
from npuprof.document.policy import Ignore, TeamRule, is_name_meant
from npuprof.document.profile import Profile
from npuprof.model import (
    TRUST_CODES,
    TYPE_CHECKING,
    Finding,
    NpuprofError,
    Path,
    Record,
    did_you_mean,
)
from npuprof.resolve.config import Config
from npuprof.system import list_items

if TYPE_CHECKING:
    from npuprof.model import SourceText


class Accepted(Record):
    """An accepted finding, the entry that accepts it, and the effective value of its setting.

    None if it has none.
    """

    finding: Finding
    ignore: Ignore
    value: Any

    @property
    def order(self) -> tuple[object, ...]:
        """Its position in a list: findings about execution first, then by place."""
        finding = self.finding
        rank = TRUST_CODES.index(finding.code) if finding.code in TRUST_CODES else len(TRUST_CODES)
        return rank, finding.path or "", finding.position, finding.code, finding.message


class Acceptance:
    """The entries that accept findings in a preset, from its whole lineage.

    The first entry for a code and value counts.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._by_code: dict[str, dict[str, tuple[Profile, Ignore]]] = {}
        self._reached: dict[str, set[SourceText]] = {}
        for member, ignore in _collect_ignores(config):
            if not find_acceptance_fault(ignore.code):
                self._by_code.setdefault(ignore.code, {}).setdefault(member.key, (member, ignore))

    def __bool__(self) -> bool:
        return bool(self._by_code)

    def accept_finding(self, config: Config, finding: Finding) -> Accepted | None:
        """Return a finding of the config, or of its preset in some context, as accepted.

        None if no entry accepts it.
        """
        ignores = self._by_code.get(finding.code)
        if not ignores:
            return None
        documents = list(_list_documents(config, finding))
        for member, ignore in ignores.values():
            if self._list_reached(member).issuperset(documents):
                return Accepted(finding, ignore, config.settings.get(finding.key))
        return None

    def _list_reached(self, member: Profile) -> set[SourceText]:
        """Return the documents of a member and its ancestors, whose values its entries cover."""
        if member.key not in self._reached:
            self._reached[member.key] = {
                member.document,
                *(ancestor.document for ancestor in self._config.list_ancestors(member)),
            }
        return self._reached[member.key]


def _collect_ignores(config: Config) -> Iterator[tuple[Profile, Ignore]]:
    """Yield the entries for a preset, each with the member of its lineage that it applies to.

    An entry of npuprof.toml applies to each member that its glob matches.
    """
    own = config.profile
    for member in config.lineage:
        yield from ((member, ignore) for ignore in member.ignores)
        policy = config.policy if member is own else None
        if member is not own:
            with suppress(NpuprofError):  # reported when that store is checked
                policy = config.resolver.lookups.find_policy(member)
        if policy:
            yield from ((member, ignore) for ignore in policy.ignores)


def _list_documents(config: Config, finding: Finding) -> Iterator[SourceText]:
    """Yield the documents that set or unset the subject of a finding."""
    reads = _list_rule_reads(config, finding.code)
    parsed = keys.parse_key_path(finding.key) if finding.key else None
    if reads is not None:
        for key in reads:
            yield from _list_setters(config, key, ())
    elif parsed is not None and config.history(parsed[0]):
        yield from _list_setters(config, *parsed)
    elif finding.origin is not None:
        yield finding.origin.document


def _list_setters(config: Config, key: str, tail: Path) -> Iterator[SourceText]:
    """Yield the documents that set a value, or the part of it at a path, or unset it last."""
    events = config.history(key)
    if key not in config.settings:
        yield from (event.origin.document for event in events[-1:])
        return
    leaf = config.traced_value(key)
    if tail:
        _, leaf = values.find_value(key, leaf, tail)
    leaves = list(_list_leaf_documents(leaf))
    yield from leaves or (event.origin.document for event in events)


def _list_leaf_documents(value: object) -> Iterator[SourceText]:
    if isinstance(value, values.Leaf):
        yield value.origin.document
    for _, item in list_items(value):
        yield from _list_leaf_documents(item)


def _list_rule_reads(config: Config, code: str) -> tuple[str, ...] | None:
    """Return the settings that a rule reads, None if the code is not a rule's."""
    known = _list_catalogue_reads().get(code)
    if known is not None:
        return known
    for rule in config.policy.rules if config.policy else ():
        if rule.code == code:
            return list_team_reads(rule)
    return None


@cache
def _list_catalogue_reads() -> dict[str, tuple[str, ...]]:
    shapes = ("dynamic_dims", "input_shape")
    return {
        **catalog.list_rule_reads(),
        **dict.fromkeys(("NP381", "NP382", "NP383"), shapes),
        "NP384": ("iterations_per_loop", "estimator.save_checkpoints_steps"),
        "NP3112": ("env.ASCEND_RT_VISIBLE_DEVICES", "env.ASCEND_VISIBLE_DEVICES"),
    }


def check_ignores(config: Config) -> Iterator[Finding]:
    """Yield the entries of the profile's own ``ignore`` whose codes cannot be accepted."""
    for ignore in config.profile.ignores:
        if fault := find_acceptance_fault(ignore.code):
            what, why = f"ignore names {ignore.code}: {fault}", "This finding is always reported."
            yield catalog.build_finding(
                "NP706",
                what,
                why,
                "take it out of ignore",
                ignore.origin,
                "profile.ignore",
                (config.name,),
            )


def find_idle_ignores(configs: Iterable[Config], accepted: Iterable[Accepted]) -> list[Finding]:
    """Return a note for each entry that accepts no finding in any config of a store."""
    used = {_identify_entry(item.ignore) for item in accepted}
    findings = {}
    for config in configs:
        own = config.profile
        for ignore in (*own.ignores, *(config.policy.ignores if config.policy else ())):
            identity = _identify_entry(ignore)
            if identity in used or find_acceptance_fault(ignore.code):
                continue
            what = f"{ignore.code} is accepted here ({ignore.reason}), and does not occur"
            why = "An unused entry hides the next finding of its kind."
            key = ".".join(part for part in ignore.origin.path if isinstance(part, str))
            # An entry of npuprof.toml belongs to no preset.
            profiles = () if ignore.presets else (own.name,)
            findings[identity] = catalog.build_finding(
                "NP705", what, why, "take it out", ignore.origin, key, profiles
            )
    return list(findings.values())


def find_idle_globs(tables: Iterable[Ignore | TeamRule], names: Iterable[str]) -> Iterator[Finding]:
    """Yield a note for every glob of npuprof.toml that matches no preset of a store."""
    known = list(names)
    why = (
        "A name that was misspelt, or whose preset was renamed or removed, binds "
        "nothing and looks as if it did."
    )
    otherwise = "npuprof list shows the names; * matches within a segment, ** whole segments"
    for table in tables:
        if table.origin is None:
            continue
        path = table.origin.path
        subject = f"what is accepted of {table.code}"
        if isinstance(table, TeamRule):
            subject = f"rule {table.code}"
        for index, glob in enumerate(table.presets):
            if any(is_name_meant((glob,), name) for name in known):
                continue
            what = f"presets: {glob!r} of {subject} means no preset"
            hint = did_you_mean(glob, known, otherwise)
            origin = table.origin._replace(path=(*path, "presets", index))
            yield catalog.build_finding("NP709", what, why, hint, origin, f"{path[0]}.presets")


def _identify_entry(ignore: Ignore) -> tuple[str, object]:
    return ignore.origin.document.source, ignore.origin.path
