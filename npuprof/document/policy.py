"""Team policy for findings: the rules and accepted findings of ``npuprof.toml``."""

from __future__ import annotations

from npuprof.model import Origin, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The condition of a team rule: its text and its parsed form, nested tuples.
Condition = tuple[str, "Any"]


class TeamRule(Record):
    """A team rule.

    A preset breaks it if ``when`` (default: always) is true and ``require`` is false or unknown.

    ``presets`` are globs of the preset names that the rule covers; none means all.
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
        """The rule in one line: its message, else its condition."""
        return self.message.rstrip(".。") or f"{self.require[0]} is required"

    def describe(self) -> str:
        """Return the condition of the rule, with the file and line that define it."""
        place = f" in {self.origin.file}" if self.origin else ""
        return (
            f"{self.code}{place} requires "
            f"{self.require[0]}{f' where {self.when[0]}' if self.when else ''}"
        )


class Ignore(Record):
    """An accepted finding with its reason.

    In npuprof.toml, ``presets`` are globs of the names it applies to.
    """

    code: str
    reason: str
    origin: Origin
    presets: tuple[str, ...] = ()


class Policy(Record):
    """The rules and accepted findings of a store, or of one of its presets."""

    rules: tuple[TeamRule, ...] = ()
    ignores: tuple[Ignore, ...] = ()

    def select(self, name: str) -> Policy:
        """Return the policy of the preset with a name."""
        return Policy(
            tuple(rule for rule in self.rules if is_name_meant(rule.presets, name)),
            tuple(one for one in self.ignores if is_name_meant(one.presets, name)),
        )

    def join(self, other: Policy) -> Policy:
        """Return the union of two policies, without duplicates."""
        return Policy(
            (*self.rules, *(rule for rule in other.rules if rule not in self.rules)),
            (*self.ignores, *(one for one in other.ignores if one not in self.ignores)),
        )


def is_name_meant(globs: tuple[str, ...], name: str) -> bool:
    """Return whether globs match a preset name; no globs match every name.

    ``*`` matches within a segment, ``**`` any number of segments.
    """
    return not globs or any(_matches(pattern.split("/"), name.split("/")) for pattern in globs)


def _matches(pattern: list[str], parts: list[str]) -> bool:
    from fnmatch import fnmatchcase  # few rules use globs

    places = _skip(pattern, {0})
    for part in parts:
        stay = {place for place in places if pattern[place : place + 1] == ["**"]}
        go = {
            place + 1
            for place in places - stay
            if place < len(pattern) and fnmatchcase(part, pattern[place])
        }
        places = _skip(pattern, stay | go)
    return len(pattern) in places


def _skip(pattern: list[str], places: set[int]) -> set[int]:
    """Return positions in a pattern, plus those after each ``**`` that matches no segments."""
    found = set(places)
    for place in places:
        while pattern[place : place + 1] == ["**"]:
            place += 1
            found.add(place)
    return found
