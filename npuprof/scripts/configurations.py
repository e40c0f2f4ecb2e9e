"""Which settings of one file are in force together: an object of a script, all that is laid on it, and the parts it is given.

Two objects are two configurations, however much they have in common. What belongs to one of them is only what the text shows
to be its own: an attribute of the same class, the entry that was added to the same session config, the session config that a
NPURunConfig is given, the nested objects of the only NPURunConfig.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from npuprof.model import Record
from npuprof.scripts.reading.found import Branch, FoundSetting, ImportedFile, Site
from npuprof.scripts.reading.rehearsal.variants import Variant
from npuprof.scripts.reading.surfaces.entries import AddedEntry, LaidOn
from npuprof.scripts.reading.surfaces.nested import GivenSession
from npuprof.scripts.reading.surfaces.view import unite_runs

_MADE = re.compile(r"@\d+$")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
_ASSIGNED = re.compile(r"^[ \t]*([A-Za-z_]\w*)[ \t]*=(?!=)[ \t]*(.+)$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z]\w*")
_WHOLE = "NPURunConfig"
#: Words of a condition that tell nothing, and how many others may stand in a name.
_VAGUE = frozenset(("args", "flags", "self", "cfg", "config", "params", "opt", "opts", "hparams", "is", "and", "none"))
_MOST_WORDS = 4


class Group(Record):
    """The settings of one scope: ``scope`` is the object, in the words of the walk (``main:custom_op@12``)."""

    scope: str
    surface: str
    found: tuple[FoundSetting, ...]
    site: Site | None = None

    @property
    def function(self) -> str:
        """The dotted name of the function that makes the object; empty for the module and for the whole process."""
        name = self.scope.rpartition(":")[0] if self.surface != "session" else self.scope.partition(":")[0]
        return "" if name.startswith("<") or self.surface in ("atc", "env", "global_options") else name

    @property
    def caller(self) -> str:
        """The dotted name of the function of the script itself: where another file makes the object, the one that calls it there."""
        return self.function.partition("@")[0]

    @property
    def root(self) -> str:
        """The expression that stands for the object where it is used."""
        return _MADE.sub("", self.scope.partition(":")[2])

    @property
    def is_fragment(self) -> bool:
        """Whether the object is made elsewhere, so that these settings are laid on it."""
        return self.surface == "session" and not _MADE.search(self.scope)

    @property
    def is_part(self) -> bool:
        """Whether it is a nested object that no NPURunConfig in sight is given."""
        return self.surface == "run_config" and _WHOLE not in self.scope and self.site is None

    @property
    def line(self) -> int:
        """The line where it begins."""
        return self.site.line if self.site else min(one.line for one in self.found)


class Layout:
    """The objects of one file, and which belongs to which."""

    def __init__(self, imported: ImportedFile) -> None:
        self._facts = imported.facts
        self.variants: list[Variant] = imported.facts.get("variants", [])
        sites = {site.scope: site for site in imported.sites}
        found: dict[str, list[FoundSetting]] = {}
        for one in imported.found:
            if not one.commented:
                found.setdefault(one.scope, []).append(one)
        self.groups = [Group(scope, ones[0].surface, tuple(ones), sites.get(scope)) for scope, ones in found.items()]
        self.groups += [
            Group(scope, "session", (), site)  # what others set in it belongs together
            for scope, site in sites.items()
            if site.surface == "session" and scope not in found and _MADE.search(scope)
        ]
        self._laid: dict[str, list[LaidOn]] = {}
        for one in self._facts.get("laid on", ()):
            self._laid.setdefault(one.scope, []).append(one)
        self._entries: dict[str, AddedEntry] = {entry.site: entry for entry in self._facts.get("added entries", ()) if entry.site}
        self._wholes = [group for group in self.groups if group.surface == "run_config" and not group.is_part]
        self._made: dict[str, list[Group]] = {}  #: the session objects by what stands for them, for their config, and for their function
        for group in self.groups:
            if group.surface == "session" and not group.is_fragment:
                entry = self._entries.get(group.scope)
                told = {group.root, f"{group.function.rpartition('.')[2]}(", *([f"config {entry.config}"] if entry else [])}
                told |= {f"{name}(" for name in (group.site.made_by if group.site else ())}
                for name in told:
                    self._made.setdefault(name, []).append(group)
        self._classes: dict[str, tuple[tuple[str, ...], bool]] = {name: tuple(more) for name, *more in self._facts.get("classes", ())}
        self._runs: dict[str, tuple[tuple[Branch, ...], ...]] = dict(self._facts.get("runs", ()))
        self.groups = [self._stand_under_runs(self._stand_under_tests(group)) for group in self.groups]

    def find_home(self, group: Group) -> Group | None:
        """Return the group that makes the object which these settings are laid on, None where the text does not show it."""
        if laid := self._laid.get(group.scope):
            return self._find_laid(laid) if len(laid) == 1 or not all(one.tests for one in laid) else None
        if group.is_fragment:
            same = [other for other in self._made.get(group.root, ()) if _is_same_object(group, other)]
            config = group.root.partition(".graph_options.")
            if not same and config[1]:
                same = self._select_seen(config[0], group.function)
            if not same:
                same = self._list_made_by(self._find_assigned(config[0], group.line))
            return _find_nearest(same, group.line)
        if group.is_part:
            return self._wholes[0] if len(self._wholes) == 1 else None
        return None

    def _find_laid(self, calls: list[LaidOn]) -> Group | None:
        """Return the one object that all calls hand to a function which sets more in it; None where they hand several, or may not run."""
        found: dict[str, Group] = {}
        for one in calls:
            known = [group for group in self._made.get(one.expression, ()) if one.seen in (group.function, "") or not group.function]
            home = _find_nearest(known, one.line) if one.certain else None
            if home is None:
                return None
            found[home.scope] = home
        return next(iter(found.values())) if len(found) == 1 else None

    def _stand_under_tests(self, group: Group) -> Group:
        """Return the settings of a function that is called once, under tests, under these, but for those its object is made under."""
        calls = self._laid.get(group.scope, [])
        if len(calls) != 1 or not calls[0].tests:
            return group
        home = self._find_laid(calls)
        made = [text for _, _, text in home.site.branches] if home is not None and home.site is not None else []
        tests = list(calls[0].tests)
        while tests and made and tests[0][2] == made[0]:
            tests, made = tests[1:], made[1:]
        return group._replace(found=tuple(one._replace(branches=(*tests, *one.branches)) for one in group.found))

    def _stand_under_runs(self, group: Group) -> Group:
        """Return the settings of a function that runs only under tests, under these, but for those its object is made under."""
        runs = self._runs.get(group.scope)
        home = self.find_home(group) if runs is not None and group.is_fragment and group.scope not in self._laid else None
        if runs is None or home is None or home.function == group.function:
            return group
        if not runs:
            return group._replace(found=tuple(one._replace(dead=True) for one in group.found))
        made = self._runs.get(home.scope) or ((),)
        if home.site is not None:
            made = tuple((*tests, *home.site.branches) for tests in made)
        left = [_leave_out(tests, made) for tests in runs]
        tests = unite_runs(left)
        return group._replace(found=tuple(one._replace(branches=(*tests, *one.branches)) for one in group.found))

    def list_wholes(self) -> list[str]:
        """Return the scopes of the NPURunConfigs."""
        return [group.scope for group in self._wholes]

    def list_inherited(self) -> dict[str, tuple[list[list[Group]], bool]]:
        """Return, for the scope of each object that a class makes, what the classes made of that one lay on it, a list for each of them.

        With it comes whether something has the object as the class makes it: its own objects, or a class that lays nothing on it.
        """
        found: dict[str, tuple[list[list[Group]], bool]] = {}
        for home in self.groups:
            heirs, used = self._classes.get(home.function.rpartition(".")[0], ((), False))
            if home.is_fragment or not heirs or not home.root.startswith("self."):
                continue
            laid = {
                heir: [one for one in self.groups if one.is_fragment and one.root == home.root and one.function.rpartition(".")[0] == heir]
                for heir in heirs
            }
            own = {one.function.rpartition(".")[2] for one in self.groups if one.is_fragment and self.find_home(one) is home}
            again = {one.function.rpartition(".")[2] for ones in laid.values() for one in ones}
            if own.isdisjoint(again):  # what a method sets that is written anew does not count for that class
                found[home.scope] = [ones for ones in laid.values() if ones], used or not all(laid.values())
        return found

    def find_given_sessions(self) -> dict[str, Group]:
        """Return, for the scope of each NPURunConfig, the session configuration that it is given."""
        found: dict[str, Group] = {}
        handed: tuple[GivenSession, ...] = tuple(self._facts.get("estimator", ()))
        for one in handed:
            scope = f"{one.function or '<module>'}:{_WHOLE}@{one.line}@{one.line}"
            line = one.line
            if "@" in one.function:  # the call of a function of another file
                line = next((group.line for group in self._wholes if group.scope == scope), line)
            given = self._find_session(one.expression, line, one.seen)
            if given is None and one.expression.isidentifier() and "@" not in one.seen:  # a function of the script gives it its value
                given = self._find_session(self._find_assigned(one.expression, line), line, one.seen)
            if given is not None:
                found[scope] = given
        return found

    def _find_session(self, expression: str, line: int, function: str) -> Group | None:
        fitting = [group for name in _NAME.findall(expression) for group in self._select_seen(name, function)]
        return _find_nearest(fitting or self._list_made_by(expression), line)

    def _list_made_by(self, expression: str) -> list[Group]:
        """Return the session objects that the functions make which are called in an expression."""
        return [group for name in _CALL.findall(expression) for group in self._made.get(f"{name}(", ())]

    def _find_assigned(self, name: str, line: int) -> str:
        """Return what a name was given last above a line, as text."""
        lines = self._assigned.get(name, [])
        at = bisect_right(lines, line, key=lambda pair: pair[0])
        return lines[at - 1][1] if at else ""

    def _select_seen(self, config: str, function: str) -> list[Group]:
        """Return the session objects added to a config that a function sees by that name: its own, else those around it."""
        known = [(self._entries[group.scope].scope, group) for group in self._made.get(f"config {config}", ())]
        own = [group for scope, group in known if scope == function]
        around = [group for scope, group in known if not scope or function.startswith(f"{scope}.") or "." in config]
        return own or around

    @cached_property
    def _assigned(self) -> dict[str, list[tuple[int, str]]]:
        """What each name is given, with the number of the line."""
        text: str = self._facts.get("text", "")
        found: dict[str, list[tuple[int, str]]] = {}
        line, at = 1, 0
        for match in _ASSIGNED.finditer(text):
            line += text.count("\n", at, match.start())
            at = match.start()
            found.setdefault(match[1], []).append((line, match[2]))
        return found

    def describe_object(self, group: Group) -> tuple[str, ...]:
        """Return what tells an object from others of its file: its function, its config, its condition, or what it writes."""
        if group.surface == "atc":
            texts = {one.key: one.value for one in group.found if isinstance(one.value, str) and not one.reason}
            return tuple(texts[key] for key in ("atc.output", "atc.model") if texts.get(key))[:1]
        owner, _, name = group.caller.rpartition(".")
        if name.startswith("__"):  # a method that every class has says nothing, its class does
            name = owner.rpartition(".")[2] or name
        entry = self._entries.get(group.scope)
        tests = " ".join(text for _, _, text in group.site.branches) if group.site else ""
        words = [word for word in _WORD.findall(tests) if word.lower() not in _VAGUE]
        return name, entry.config.rpartition(".")[2] if entry else "", "-".join(words) if len(words) <= _MOST_WORDS else ""


def _leave_out(tests: tuple[Branch, ...], made: tuple[tuple[Branch, ...], ...]) -> tuple[Branch, ...]:
    """Return the tests without those under which an object is always made."""
    return tuple(test for test in tests if not all(any(test[2] == other[2] for other in others) for others in made))


def _find_nearest(groups: list[Group], line: int) -> Group | None:
    """Return the last one above a line, or the first one below."""
    before = [one for one in groups if one.line <= line]
    return before[-1] if before else groups[0] if groups else None


def _is_same_object(group: Group, other: Group) -> bool:
    """Return whether two functions of one class, or of the module, speak of one object: an attribute, or a name of the module."""
    owner = group.function.rpartition(".")[0]
    if "." in group.root:
        return bool(owner) and owner == other.function.rpartition(".")[0]
    return not other.function or f"{group.function}.".startswith(f"{other.function}.")
