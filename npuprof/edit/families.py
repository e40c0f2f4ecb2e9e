"""Which keys get another name in presets that build on each other: in all places that name them, or in none.

A preset that clears, locks or overrules a key of a parent does so by its name. Where every layer does the same as before
under the new name, and none does anything else with that name, every preset resolves to the same, in every context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.document.profile import PROFILE_KEYS, Profile
from npuprof.edit.migration_steps import Step, does_step_fit
from npuprof.model import Path, Record
from npuprof.resolve.config import Config

#: What keeps a preset from giving a key its new name, by its key and the option's name; an empty text where nothing does.
Plan = dict[str, dict[str, str]]
Ways = tuple[Step, ...]


class Mention(Record):
    """A place where a preset names an option, and in which block; what it does there is ``set``, ``unset``, ``locked`` or ``append``."""

    kind: str
    base: Path
    path: Path


def plan_renames(configs: Iterable[Config], steps: Iterable[Step], is_movable: Callable[[Profile], bool]) -> Plan:
    """Return which options can get their new names, for every preset that takes part in one of some configs.

    Only presets that are ``movable`` can be changed. A preset that names no such option, or whose family never sets it, is not in it.
    """
    plan: Plan = {}
    listed = list(configs)
    groups: dict[tuple[str, str, str], list[Step]] = {}
    for step in steps:
        if step.action in ("rename", "modes") and step.loss != "decide":
            groups.setdefault((step.option, step.to, step.action), []).append(step)
    for ways in groups.values():
        for members, hindrance in _judge_families(listed, tuple(ways), is_movable):
            for key, name in members.items():
                where, reason = hindrance
                shown = reason if not reason or where in ("", name) else f"{where}: {reason}"
                plan.setdefault(key, {})[ways[0].option] = shown
    return plan


def list_mentions(profile: Profile, option: str) -> list[Mention]:
    """Return every place where a preset names an option."""
    if not (profile.touches(option) or option in map(_read_option, profile.locked)):
        return []
    data = profile.document.data
    blocks: list[tuple[Path, Any]] = [((), data), *((("override", n), block) for n, block in enumerate(data.get("override", [])))]
    mentions = []
    for base, block in blocks:
        options, appended = block.get("options"), block.get("append")
        if isinstance(options, dict) and option in options:
            mentions.append(Mention("set", base, (*base, "options", option)))
        if isinstance(appended, dict) and option in (appended.get("options") or {}):
            mentions.append(Mention("append", base, (*base, "append", "options", option)))
    mentions += [mention._replace(kind="append") if below else mention for mention, below in _list_names(profile, option)]
    return mentions


def list_named_places(profile: Profile, option: str) -> list[Mention]:
    """Return the places in lists of names, ``unset`` and ``locked``, where a preset names an option as a whole."""
    return [mention for mention, below in _list_names(profile, option) if not below]


def _list_names(profile: Profile, option: str) -> Iterator[tuple[Mention, bool]]:
    """Yield the places in lists of names that name an option, and whether each means only a part of its value."""
    lists: list[tuple[str, Path, Path, Any]] = [
        (name, (), ("profile", name), profile.table.get(name)) for name, key in PROFILE_KEYS.items() if key.names_settings
    ]
    blocks = profile.document.data.get("override", [])
    lists += [("unset", ("override", n), ("override", n, "unset"), block.get("unset")) for n, block in enumerate(blocks)]
    for kind, base, path, names in lists:
        for index, name in enumerate(names if isinstance(names, list) else ()):
            parsed = keys.parse_key(name) if isinstance(name, str) else None
            if parsed is not None and parsed[0] == option:
                yield Mention(kind, base, (*path, index)), bool(parsed[1])


def _read_option(name: str) -> str:
    parsed = keys.parse_key(name)
    return parsed[0] if parsed else ""


def _judge_families(
    configs: list[Config], ways: Ways, is_movable: Callable[[Profile], bool]
) -> Iterable[tuple[dict[str, str], tuple[str, str]]]:
    """Yield the groups of presets that set an option: their names by key, and what keeps the option from its new name in which preset."""
    olds = (ways[0].option, "optypelist_for_implmode") if ways[0].action == "modes" else (ways[0].option,)
    mentions: dict[str, list[Mention]] = {}
    news: dict[str, list[Mention]] = {}
    families: list[tuple[dict[str, Profile], list[Config]]] = []
    for config in configs:
        for member in config.lineage:
            if member.key not in mentions:
                mentions[member.key] = [mention for old in olds for mention in list_mentions(member, old)]
                news[member.key] = list_mentions(member, ways[0].to)
        own = {member.key: member for member in config.lineage if mentions[member.key]}
        if not own:
            continue
        users = [config]
        apart = []
        for family in families:
            if any(key in family[0] for key in own):
                own = family[0] | own
                users = family[1] + users
            else:
                apart.append(family)
        families = [*apart, (own, users)]
    for members, users in families:
        if any(mention.kind == "set" for key in members for mention in mentions[key]):
            hindrances = _Family(ways, members, users, mentions, news).list_hindrances(is_movable)
            yield {key: member.name for key, member in members.items()}, next(hindrances, ("", ""))


class _Family:
    """Presets that name an option, and the configs they take part in."""

    def __init__(
        self,
        ways: Ways,
        members: dict[str, Profile],
        configs: list[Config],
        mentions: Mapping[str, list[Mention]],
        news: Mapping[str, list[Mention]],
    ) -> None:
        self.ways, self.members, self.configs, self.mentions, self.news = ways, members, configs, mentions, news
        self.to = ways[0].to

    def list_hindrances(self, is_movable: Callable[[Profile], bool]) -> Iterator[tuple[str, str]]:
        """Yield what keeps a key from its new name, after the preset in which that is; the gravest comes first."""
        yield from (("", describe_fixed_parent(member)) for member in self.members.values() if not is_movable(member))
        yield from self._judge_forms()
        for config in self.configs:
            for member in config.lineage:
                for mention in self.mentions[member.key] if member.key in self.members else ():
                    if reason := self._judge_value(member, mention, config):
                        yield member.name, f"{_name_block(mention.base)} {reason}"
        for config in self.configs:
            yield from self._judge_new_names(config)

    def _judge_forms(self) -> Iterator[tuple[str, str]]:
        """Yield the presets that change a part of the value; ``modes`` joins two options, which one preset has to set."""
        is_joined = self.ways[0].action == "modes"
        if is_joined and len(self.members) > 1:
            yield "", f"{' and '.join(sorted(member.name for member in self.members.values())[:2])} have a part of it each"
        for key, member in self.members.items():
            for mention in self.mentions[key]:
                if mention.kind == "append" or (is_joined and mention.kind != "set"):
                    does = "changes a part of it" if mention.kind == "append" else f"has it in {mention.kind}"
                    yield member.name, f"{_name_block(mention.base)} {does}"

    def _judge_value(self, member: Profile, mention: Mention, config: Config) -> str:
        """Return why a value has no counterpart under the new name in a config, or an empty text."""
        data = member.document.data
        block = data["override"][mention.base[1]] if mention.base else data
        table = block.get("options", {})
        option = self.ways[0].option
        if mention.kind != "set":
            return ""
        if self.to in table:
            return f"sets {self.to} as well"
        if option not in table:
            return f"changes {mention.path[-1]} alone" if mention.base else ""
        if any(does_step_fit(way, mention.base, table, data, config) for way in self.ways):
            return ""
        return f"gives it {format_short_value(table[option])}, for which {self.to} has no word"

    def _judge_new_names(self, config: Config) -> Iterator[tuple[str, str]]:
        """Yield who does something with the new name that would mean something else once the old one is gone."""
        setter: Profile | None = None  # of the new name, with nothing of the old one below
        below = False
        for member in config.lineage:
            olds = self.mentions[member.key]
            for mention in self.news[member.key]:
                if mention.kind in ("unset", "locked") and any((old.kind, old.base) == (mention.kind, mention.base) for old in olds):
                    continue  # both names are treated alike
                if below or olds or mention.kind != "set" or mention.base:
                    yield member.name, f"{_name_block(mention.base)} {_DOES[mention.kind]} {self.to} as well"
                setter = member
            if setter is not None and any(mention.kind != "set" or mention.base for mention in olds):
                yield member.name, f"it inherits {self.to} already, from {setter.name}"
            below = below or bool(olds)


_DOES = {"set": "sets", "unset": "clears", "locked": "locks", "append": "changes a part of"}


def _name_block(base: Path) -> str:
    return "an override" if base else "the preset"


def describe_fixed_parent(member: Profile) -> str:
    """Return what keeps a key of a parent that is not changed along: it is fixed at a version, or has to be migrated first."""
    name, _, commit = member.key.partition("@")
    if commit:
        return f"{name} is fixed at a version here, and sets it there: migrate and release {name}, then move the pin"
    return f"{member.name} sets it too and has to be migrated first"
