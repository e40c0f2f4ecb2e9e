"""Which settings of one file are in force together: an object of a script, all that is set in it, and the parts it is given.

Two objects are two configurations, however much they have in common. What belongs to one of them is only what the text shows
to be its own: an attribute of the same class, the entry that was added to the same session config, the session config that a
NPURunConfig is given.
"""

from __future__ import annotations

import re

from npuprof.model import Record
from npuprof.scripts.reading.found import FoundSetting, ImportedFile, Site
from npuprof.scripts.reading.surfaces.entries import AddedEntry
from npuprof.scripts.reading.surfaces.nested import GivenSession

_MADE = re.compile(r"@\d+$")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
_RUN_CONFIG = "NPURunConfig"


class Group(Record):
    """The settings of one scope: ``scope`` is the object as the walk names it (``main:custom_op@12``)."""

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
        """The dotted name of the function of the script itself, where a function of another file makes the object."""
        return self.function.partition("@")[0]

    @property
    def root(self) -> str:
        """The expression that names the object where it is used."""
        return _MADE.sub("", self.scope.partition(":")[2])

    @property
    def is_fragment(self) -> bool:
        """Whether the object is made elsewhere."""
        return self.surface == "session" and not _MADE.search(self.scope)

    @property
    def line(self) -> int:
        """The line where it begins."""
        return self.site.line if self.site else min(setting.line for setting in self.found)


class Layout:
    """The objects of one file, and which belongs to which."""

    def __init__(self, imported: ImportedFile) -> None:
        self._sessions = imported.list_remarks(GivenSession)
        self._entries = {entry.site: entry for entry in imported.list_remarks(AddedEntry) if entry.site}
        self.groups = _list_groups(imported)
        self.run_configs = [group for group in self.groups if group.surface == "run_config"]
        self._made: dict[str, list[Group]] = {}  #: the session objects by their name, by their config, and by their function
        for group in self.groups:
            if group.surface == "session" and not group.is_fragment:
                for name in self._list_names(group):
                    self._made.setdefault(name, []).append(group)

    def _list_names(self, group: Group) -> set[str]:
        entry = self._entries.get(group.scope)
        makers = (group.function.rpartition(".")[2], *(group.site.made_by if group.site else ()))
        return {group.root, *(f"{name}(" for name in makers), *([f"config {entry.config}"] if entry else [])}

    def find_home(self, group: Group) -> Group | None:
        """Return the group of the object that these settings are set in, None where the text does not show it."""
        same = [other for other in self._made.get(group.root, ()) if _is_same_object(group, other)] if group.is_fragment else []
        config, of_config, _ = group.root.partition(".graph_options.")
        if not same and of_config and group.is_fragment:
            same = self._select_seen(config, group.function)
        return _find_nearest(same, group.line)

    def find_given_sessions(self) -> dict[str, Group]:
        """Return, for the scope of each NPURunConfig, the session configuration that it is given."""
        found: dict[str, Group] = {}
        for one in self._sessions:
            scope = f"{one.function or '<module>'}:{_RUN_CONFIG}@{one.line}@{one.line}"
            line = one.line
            if "@" in one.function:  # the call of a function of another file
                line = next((group.line for group in self.run_configs if group.scope == scope), line)
            if given := self._find_session(one.expression, line, one.seen):
                found[scope] = given
        return found

    def _find_session(self, expression: str, line: int, function: str) -> Group | None:
        fitting = [group for name in _NAME.findall(expression) for group in self._select_seen(name, function)]
        made = [group for name in _CALL.findall(expression) for group in self._made.get(f"{name}(", ())]
        return _find_nearest(fitting or made, line)

    def _select_seen(self, config: str, function: str) -> list[Group]:
        """Return the session objects added to a config that a function sees by that name: its own, else those around it."""
        known = [(self._entries[group.scope].scope, group) for group in self._made.get(f"config {config}", ())]
        own = [group for scope, group in known if scope == function]
        around = [group for scope, group in known if not scope or function.startswith(f"{scope}.") or "." in config]
        return own or around

    def describe_object(self, group: Group) -> tuple[str, ...]:
        """Return names that distinguish an object from others of its file: its function and its config, or the model it writes."""
        if group.surface == "atc":
            texts = {setting.key: setting.value for setting in group.found if isinstance(setting.value, str) and not setting.reason}
            return tuple(texts[key] for key in ("atc.output", "atc.model") if texts.get(key))[:1]
        owner, _, name = group.caller.rpartition(".")
        if name.startswith("__"):  # every class has such a method
            name = owner.rpartition(".")[2] or name
        entry = self._entries.get(group.scope)
        return name, entry.config.rpartition(".")[2] if entry else ""


def _list_groups(imported: ImportedFile) -> list[Group]:
    sites = {site.scope: site for site in imported.sites}
    found: dict[str, list[FoundSetting]] = {}
    for setting in sorted(imported.found, key=lambda one: one.order):  # as they run
        if not setting.commented:
            found.setdefault(setting.scope, []).append(setting)
    groups = [Group(scope, settings[0].surface, tuple(settings), sites.get(scope)) for scope, settings in found.items()]
    empty = (site for scope, site in sites.items() if site.surface == "session" and scope not in found and _MADE.search(scope))
    return [*groups, *(Group(site.scope, "session", (), site) for site in empty)]  # what others set in these belongs together


def _find_nearest(groups: list[Group], line: int) -> Group | None:
    """Return the last one above a line, or the first one below."""
    before = [group for group in groups if group.line <= line]
    return before[-1] if before else groups[0] if groups else None


def _is_same_object(group: Group, other: Group) -> bool:
    """Return whether two functions of one class, or of the module, mean one object: an attribute, or a name of the module."""
    owner = group.function.rpartition(".")[0]
    if "." in group.root:
        return bool(owner) and owner == other.function.rpartition(".")[0]
    return not other.function or f"{group.function}.".startswith(f"{other.function}.")
