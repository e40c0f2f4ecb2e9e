"""Renames of keys in presets that inherit from each other: in all places or none.

A preset that clears, locks or overrides a parent's key refers to it by name. If every layer does
the same under the new name, and no layer uses the new name otherwise, every preset resolves to the
same values in every context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.document.profile import PROFILE_KEYS, Profile
from npuprof.edit.migration_steps import Step, does_step_fit
from npuprof.edit.paths import find_at_path
from npuprof.model import Path, Record
from npuprof.resolve.config import Config
from npuprof.system import group_pairs

#: Why a preset cannot rename a key, by preset key and option name; an empty string if it can.
Plan = dict[str, dict[str, str]]
Ways = tuple[Step, ...]
Family = tuple[dict[str, Profile], list[Config]]


class Mention(Record):
    """A place where a preset names an option, and its block.

    The operation is ``set``, ``unset``, ``locked`` or ``append``.
    """

    kind: str
    base: Path
    path: Path


def plan_renames(
    configs: Iterable[Config], steps: Iterable[Step], is_movable: Callable[[Profile], bool]
) -> Plan:
    """Return which options can be renamed, for every preset in the lineages of some configs.

    Only ``movable`` presets can be changed. Presets that do not name such an option, or whose
    relatives never set it, are omitted.
    """
    plan: Plan = {}
    listed = list(configs)
    moves = (step for step in steps if step.action in ("rename", "modes") and step.loss != "decide")
    groups = group_pairs(((step.option, step.to, step.action), step) for step in moves)
    for ways in groups.values():
        mentions: dict[str, list[Mention]] = {}
        for members, users in _list_families(listed, tuple(ways), mentions):
            if any(mention.kind == "set" for key in members for mention in mentions[key]):
                hindrance = next(
                    _list_hindrances(tuple(ways), members, users, mentions, is_movable), ""
                )
                for key in members:
                    plan.setdefault(key, {})[ways[0].option] = hindrance
    return plan


def list_mentions(profile: Profile, option: str) -> list[Mention]:
    """Return every place where a preset names an option."""
    data = profile.document.data
    blocks: list[tuple[Path, Any]] = [
        ((), data),
        *((("override", n), block) for n, block in enumerate(data.get("override", []))),
    ]
    mentions = []
    for base, block in blocks if profile.touches(option) else ():
        options, appended = block.get("options"), block.get("append")
        if isinstance(options, dict) and option in options:
            mentions.append(Mention("set", base, (*base, "options", option)))
        if isinstance(appended, dict) and option in (appended.get("options") or {}):
            mentions.append(Mention("append", base, (*base, "append", "options", option)))
    lists: list[tuple[str, Path, Path, Any]] = [
        (name, (), ("profile", name), profile.table.get(name))
        for name, key in PROFILE_KEYS.items()
        if key.names_settings
    ]
    lists += [("unset", base, (*base, "unset"), block.get("unset")) for base, block in blocks[1:]]
    for kind, base, path, names in lists:
        for index, name in enumerate(names or ()):
            parsed = keys.parse_key(name)
            if parsed is not None and parsed[0] == option:
                mentions.append(Mention("append" if parsed[1] else kind, base, (*path, index)))
    return mentions


def _list_families(
    configs: list[Config], ways: Ways, mentions: dict[str, list[Mention]]
) -> list[Family]:
    """Return the groups of related presets that name an option, with their configs.

    Fills ``mentions``.
    """
    olds = (
        (ways[0].option, "optypelist_for_implmode")
        if ways[0].action == "modes"
        else (ways[0].option,)
    )
    families: list[Family] = []
    for config in configs:
        for member in config.lineage:
            if member.key not in mentions:
                mentions[member.key] = [
                    mention for old in olds for mention in list_mentions(member, old)
                ]
        own, users = (
            {member.key: member for member in config.lineage if mentions[member.key]},
            [config],
        )
        apart: list[Family] = []
        for family in families if own else ():
            if own.keys() & family[0].keys():
                own, users = family[0] | own, family[1] + users
            else:
                apart.append(family)
        families = [*apart, (own, users)] if own else families
    return families


def _list_hindrances(
    ways: Ways,
    members: dict[str, Profile],
    users: list[Config],
    mentions: dict[str, list[Mention]],
    is_movable: Callable[[Profile], bool],
) -> Iterator[str]:
    """Yield the reasons why an option cannot be renamed in a group of presets, most
    important first.

    ``modes`` joins two options that one preset must set.
    """
    is_joined = ways[0].action == "modes"
    yield from (
        describe_fixed_parent(member) for member in members.values() if not is_movable(member)
    )
    if is_joined and len(members) > 1:
        yield (
            f"{' and '.join(sorted(member.name for member in members.values())[:2])} "
            "have a part of it each"
        )
    for config in users:
        for member in config.lineage:
            for mention in mentions[member.key]:
                if reason := _judge_mention(ways, member, mention, config, is_joined):
                    yield f"{member.name}: {_name_block(mention.base)} {reason}"
    for config in users:
        yield from _judge_new_names(config, ways[0].to, mentions)


def _judge_mention(
    ways: Ways, member: Profile, mention: Mention, config: Config, is_joined: bool
) -> str:
    """Return why a preset's use of an option would change under the new name, or an
    empty string.
    """
    if mention.kind == "append":
        return "changes a part of it"
    if mention.kind != "set":
        return f"has it in {mention.kind}" if is_joined else ""
    data = member.document.data
    table = find_at_path(data, mention.path[:-1])
    if ways[0].to in table:
        return f"sets {ways[0].to} as well"
    if ways[0].option not in table:
        return f"changes {mention.path[-1]} alone" if mention.base else ""
    if any(does_step_fit(way, mention.base, table, data, config) for way in ways):
        return ""
    return (
        f"gives it {format_short_value(table[ways[0].option])}, for which {ways[0].to} has no word"
    )


def _judge_new_names(config: Config, to: str, mentions: dict[str, list[Mention]]) -> Iterator[str]:
    """Yield the presets that use the new name in a way that would change without the old one."""
    setter: Profile | None = None  # of the new name, without the old one below
    below = False
    for member in config.lineage:
        olds = mentions[member.key]
        for mention in list_mentions(member, to):
            if mention.kind in ("unset", "locked") and any(
                (old.kind, old.base) == (mention.kind, mention.base) for old in olds
            ):
                continue  # both names have the same operations
            if below or olds or mention.kind != "set" or mention.base:
                yield (
                    f"{member.name}: {_name_block(mention.base)} {_DOES[mention.kind]} {to} as well"
                )
            setter = member
        if setter is not None and any(mention.kind != "set" or mention.base for mention in olds):
            yield f"{member.name}: it inherits {to} already, from {setter.name}"
        below = below or bool(olds)


_DOES = {"set": "sets", "unset": "clears", "locked": "locks", "append": "changes a part of"}


def _name_block(base: Path) -> str:
    return "an override" if base else "the preset"


def describe_fixed_parent(member: Profile) -> str:
    """Return why a parent's key cannot be changed: it is pinned to a version, or must be migrated
    first.
    """
    name, _, commit = member.key.partition("@")
    if commit:
        return (
            f"{name} is fixed at a version here, and sets it "
            f"there: migrate and release {name}, then move the pin"
        )
    return f"{member.name} sets it too and has to be migrated first"
