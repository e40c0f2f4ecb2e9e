"""Renames of keys in presets that inherit from each other: in all places or none.

A preset that clears, locks or overrides a parent's key refers to it by name. If every layer does
the same under the new name, and no layer uses the new name otherwise, every preset resolves to the
same values in every context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.document.profile import Profile
from npuprof.edit.migration_steps import Step, does_step_fit
from npuprof.edit.moves import list_blocks, list_key_lists
from npuprof.edit.paths import MISSING, find_at_path
from npuprof.model import LIST_OPS, Path, Record
from npuprof.resolve.config import Config
from npuprof.system import group_pairs

#: Why a preset cannot rename a key, by preset key and option name; an empty string if it can.
Plan = dict[str, dict[str, str]]
#: The steps of one rename, one for each condition.
Ways = list[Step]


class Family(Record):
    """Related presets that name an option, by preset key, and the configs that contain them."""

    members: dict[str, Profile]
    users: list[Config]


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

    Only presets that satisfy ``is_movable`` can be changed. Presets that do not name such an
    option, or whose relatives never set it, are omitted.
    """
    plan: Plan = {}
    listed = list(configs)
    moves = (step for step in steps if step.action in ("rename", "modes") and step.loss != "decide")
    for ways in group_pairs(((step.option, step.to, step.action), step) for step in moves).values():
        mentions: dict[str, list[Mention]] = {}
        for family in _list_families(listed, ways, mentions):
            # nothing to rename: the option is only cleared or locked
            if not any(
                mention.kind == "set" for key in family.members for mention in mentions[key]
            ):
                continue
            hindrance = next(_list_hindrances(ways, family, mentions, is_movable), "")
            for key in family.members:
                plan.setdefault(key, {})[ways[0].option] = hindrance
    return plan


def list_mentions(profile: Profile, option: str) -> list[Mention]:
    """Return every place where a preset names an option."""
    data = profile.document.data
    mentions = []
    path = keys.find_key_path(option)
    if len(path) > 2 or profile.touches(option):
        for base, block in list_blocks(data).items():
            for inner in (path, *((op, *path) for op in LIST_OPS)):
                if find_at_path(block, inner) is not MISSING:
                    kind = "set" if inner is path else "append"
                    mentions.append(Mention(kind, base, (*base, *inner)))
    for base, list_path, names in list_key_lists(data):
        for index, name in enumerate(names):
            key, inner_path = keys.parse_key(name) or ("", ())
            if key == option:
                # the key of a part of the value cannot simply be renamed
                kind = "append" if inner_path else str(list_path[-1])
                mentions.append(Mention(kind, base, (*list_path, index)))
    return mentions


def _list_families(
    configs: list[Config], ways: Ways, mentions: dict[str, list[Mention]]
) -> list[Family]:
    """Return the groups of related presets that name an option, with their configs.

    Fills ``mentions``.
    """
    old_names = [ways[0].option]
    # the two options become one: whoever names either is concerned
    if ways[0].action == "modes":
        old_names.append("optypelist_for_implmode")
    families: list[Family] = []
    for config in configs:
        for member in config.lineage:
            if member.key not in mentions:
                mentions[member.key] = [
                    mention for name in old_names for mention in list_mentions(member, name)
                ]
        members = {member.key: member for member in config.lineage if mentions[member.key]}
        if not members:
            continue
        users = [config]
        unrelated = []
        for family in families:
            if members.keys() & family.members.keys():  # a common preset joins two families
                members, users = family.members | members, family.users + users
            else:
                unrelated.append(family)
        families = [*unrelated, Family(members, users)]
    return families


def _list_hindrances(
    ways: Ways,
    family: Family,
    mentions: dict[str, list[Mention]],
    is_movable: Callable[[Profile], bool],
) -> Iterator[str]:
    """Yield the reasons why an option cannot be renamed in a family, most important first.

    ``modes`` joins two options that one preset must set.
    """
    members = family.members.values()
    yield from (describe_fixed_parent(member) for member in members if not is_movable(member))
    if ways[0].action == "modes" and len(members) > 1:
        first_two = sorted(member.name for member in members)[:2]
        yield f"{' and '.join(first_two)} have a part of it each"
    for config in family.users:
        for member in config.lineage:
            for mention in mentions[member.key]:
                if reason := _judge_mention(ways, member, mention, config):
                    yield f"{member.name}: {_name_block(mention.base)} {reason}"
    for config in family.users:
        yield from _judge_new_names(config, ways[0].to, mentions)


def _judge_mention(ways: Ways, member: Profile, mention: Mention, config: Config) -> str:
    """Return why a preset's use of an option would change under the new name, or ""."""
    if mention.kind == "append":
        return "changes a part of it"
    if mention.kind != "set":
        return f"has it in {mention.kind}" if ways[0].action == "modes" else ""
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
            # both names would be set then, and after the rename only one of two values is left
            if below or olds or mention.kind != "set" or mention.base:
                yield (
                    f"{member.name}: {_name_block(mention.base)} {_DOES[mention.kind]} {to} as well"
                )
            setter = member
        if setter and any(mention.kind != "set" or mention.base for mention in olds):
            yield f"{member.name}: it inherits {to} already, from {setter.name}"
        below |= bool(olds)


_DOES = {"set": "sets", "unset": "clears", "locked": "locks", "append": "changes a part of"}


def _name_block(base: Path) -> str:
    return "an override" if base else "the preset"


def describe_fixed_parent(member: Profile) -> str:
    """Return why a parent's key cannot be changed: a pinned version, or a missing migration."""
    name, _, commit = member.key.partition("@")
    if commit:
        return (
            f"{name} is fixed at a version here, and sets it "
            f"there: migrate and release {name}, then move the pin"
        )
    return f"{member.name} sets it too and has to be migrated first"
