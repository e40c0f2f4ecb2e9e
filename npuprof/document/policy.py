"""Team policy for findings: the rules and accepted findings of ``npuprof.toml``."""

from __future__ import annotations

from npuprof.model import Any, Axes, Origin, Record, TomlTable

#: The condition of a team rule: its text and its parsed form, nested tuples.
Condition = tuple[str, "Any"]


class TeamRule(Record):
    """A team rule.

    A preset breaks it if ``when`` (default: always) is true and ``require`` is false or unknown.

    ``presets`` are globs of the preset names that the rule covers; none means all. ``axes`` are the
    declared axes that it may read.
    """

    code: str
    require: Condition
    when: Condition | None
    message: str
    severity: str
    presets: tuple[str, ...]
    origin: Origin
    axes: Axes

    @property
    def title(self) -> str:
        """The rule in one line: its message, else its condition."""
        return self.message.rstrip(".。") or f"{self.require[0]} is required"

    def describe(self) -> str:
        """Return the condition of the rule, with the file and line that define it."""
        file = f" in {self.origin.file}" if self.origin else ""
        required, _ = self.require
        scope = f" where {self.when[0]}" if self.when else ""
        return f"{self.code}{file} requires {required}{scope}"


class Ignore(Record):
    """An accepted finding with its reason.

    In npuprof.toml, ``presets`` are globs of the names it applies to.
    """

    code: str
    reason: str
    origin: Origin
    presets: tuple[str, ...] = ()


class Policy(Record):
    """The rules and accepted findings of a store, or of one of its presets.

    ``variables`` are the variables that the store declares, by name.
    """

    rules: tuple[TeamRule, ...] = ()
    ignores: tuple[Ignore, ...] = ()
    variables: TomlTable = {}

    def select(self, name: str) -> Policy:
        """Return the policy of the preset with a name."""
        return Policy(
            tuple(rule for rule in self.rules if is_name_meant(rule.presets, name)),
            tuple(ignore for ignore in self.ignores if is_name_meant(ignore.presets, name)),
            self.variables,
        )

    def join(self, other: Policy) -> Policy:
        """Return the union of two policies, without duplicates."""
        return Policy(
            (*self.rules, *(rule for rule in other.rules if rule not in self.rules)),
            (*self.ignores, *(ignore for ignore in other.ignores if ignore not in self.ignores)),
            self.variables | other.variables,
        )


def is_name_meant(globs: tuple[str, ...], name: str) -> bool:
    """Return whether globs match a preset name; no globs match every name.

    ``*`` matches within a segment, ``**`` any number of segments.
    """
    return not globs or any(_matches(pattern.split("/"), name.split("/")) for pattern in globs)


def _matches(pattern: list[str], parts: list[str]) -> bool:
    """Return whether the segments of a glob match those of a name.

    All positions in the pattern that the segments so far can reach are followed at once.
    """
    from fnmatch import fnmatchcase  # few rules use globs

    # no backtracking: a pattern with many "**" would take exponential time
    positions = _skip_empty_matches(pattern, {0})
    for part in parts:
        reached = set()
        for position in positions:
            if position == len(pattern):
                continue
            if pattern[position] == "**":
                reached.add(position)
            elif fnmatchcase(part, pattern[position]):
                reached.add(position + 1)
        positions = _skip_empty_matches(pattern, reached)
    return len(pattern) in positions


def _skip_empty_matches(pattern: list[str], positions: set[int]) -> set[int]:
    """Return positions in a pattern, plus those after each ``**`` that matches no segments."""
    reached = set(positions)
    for position in positions:
        while position < len(pattern) and pattern[position] == "**":
            position += 1
            reached.add(position)
    return reached
