"""What a team says of the findings in its presets: rules of its own, and what it accepts."""

from __future__ import annotations

from typing import Any

from npuprof.model import Origin, Record

#: What a condition of a team reads: as text, and as nested tuples.
Condition = tuple[str, Any]


class TeamRule(Record):
    """A rule of a team: broken where ``when`` (if any) holds and ``require`` does not certainly hold.

    ``presets`` are globs of the names it binds, all where there are none.
    """

    code: str
    require: Condition
    when: Condition | None = None
    message: str = ""
    severity: str = "error"
    presets: tuple[str, ...] = ()
    origin: Origin | None = None

    @property
    def title(self) -> str:
        """What the rule says, in a line: in the words of the team, else what it requires."""
        return self.message.rstrip(".。") or f"{self.require[0]} is required"

    def describe(self) -> str:
        """Return what the rule requires, and where it stands."""
        place = f" in {self.origin.file}" if self.origin else ""
        return f"{self.code}{place} requires {self.require[0]}{f' where {self.when[0]}' if self.when else ''}"


class Ignore(Record):
    """A finding that is accepted, and why; in npuprof.toml ``presets`` are globs of the names it holds for."""

    code: str
    reason: str
    origin: Origin
    presets: tuple[str, ...] = ()


class Policy(Record):
    """What holds for the findings of presets: those of a store, or those of one preset of it."""

    rules: tuple[TeamRule, ...] = ()
    ignores: tuple[Ignore, ...] = ()

    def select(self, name: str) -> Policy:
        """Return what holds for the preset of a name."""
        return Policy(
            tuple(rule for rule in self.rules if is_name_meant(rule.presets, name)),
            tuple(one for one in self.ignores if is_name_meant(one.presets, name)),
        )

    def join(self, other: Policy) -> Policy:
        """Return both, what stands in both once."""
        return Policy(
            (*self.rules, *(rule for rule in other.rules if rule not in self.rules)),
            (*self.ignores, *(one for one in other.ignores if one not in self.ignores)),
        )


def is_name_meant(globs: tuple[str, ...], name: str) -> bool:
    """Return whether globs mean a preset; none means all. ``*`` stands for any text in a segment, ``**`` for any number of segments."""
    return not globs or any(_matches(pattern.split("/"), name.split("/")) for pattern in globs)


def _matches(pattern: list[str], parts: list[str]) -> bool:
    from fnmatch import fnmatchcase  # few rules have globs

    places = _skip(pattern, {0})
    for part in parts:
        stay = {place for place in places if pattern[place : place + 1] == ["**"]}
        go = {place + 1 for place in places - stay if place < len(pattern) and fnmatchcase(part, pattern[place])}
        places = _skip(pattern, stay | go)
    return len(pattern) in places


def _skip(pattern: list[str], places: set[int]) -> set[int]:
    """Return places in a pattern with those behind each ``**`` that means no segment at all."""
    found = set(places)
    for place in places:
        while pattern[place : place + 1] == ["**"]:
            place += 1
            found.add(place)
    return found
