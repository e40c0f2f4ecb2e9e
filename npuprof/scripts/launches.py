"""The launches of a file, with the settings of each.

A launch is a start of a program, or a configuration object of a script.

Two objects are two launches, even if they have much in common. An NPURunConfig includes the session
config passed to it.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from itertools import accumulate
from operator import attrgetter

from npuprof.model import Record
from npuprof.scripts.grouping import group_by
from npuprof.scripts.python.nested_configs import GivenSession
from npuprof.scripts.python.optimizer_entries import AddedEntry
from npuprof.scripts.script_records import ImportedFile, ScriptSetting, Site, are_exclusive

#: The end of a part of the path of a table.
_SEPARATOR = re.compile(r"(?<=[/\0])")
#: Of the values of a variable, as many last ones may reach a launch.
_MOST_VALUES = 8


class Launch(Record):
    """One start of a program, or one configuration object.

    Its settings are in execution order, each with its location and its branches.

    ``scope`` is the reader's name for it (``vllm@7``, ``main:custom_op@12``), ``surface`` how
    scripts set it. ``settings`` are those of its command line, of its files, or of the object;
    variables of a process that starts nothing known are a launch of their own (``env``).
    ``environment`` are the variables set before it that may reach it; in a manifest, those of its
    table and the tables around it. ``site`` is its creation, ``entry`` the record that adds an
    object to a session config, if any.
    """

    scope: str
    surface: str
    settings: tuple[ScriptSetting, ...]
    environment: tuple[ScriptSetting, ...]
    site: Site | None = None
    entry: AddedEntry | None = None

    @property
    def function(self) -> str:
        """The dotted name of the function that creates the object.

        Empty for the module and for the whole process.
        """
        if self.surface in ("atc", "env", "global_options"):
            return ""
        split = str.partition if self.surface == "session" else str.rpartition
        name, *_ = split(self.scope, ":")
        return "" if name.startswith("<") else name.partition("@")[0]

    @property
    def sets_unknown_keys(self) -> bool:
        """Whether it sets a key that depends on the run: the file may not show all settings."""
        return any(not setting.key and not setting.dead for setting in self.settings)

    @property
    def line(self) -> int:
        """The first line of the object."""
        return self.site.line if self.site else min(setting.line for setting in self.settings)

    @property
    def place(self) -> str:
        """The path of its table in a YAML or JSON file, empty for others."""
        command = self.settings[0].command
        return command if command.startswith("/") else ""

    @property
    def labels(self) -> tuple[str, str]:
        """Names that distinguish the object in its file.

        They are its function and its config, the model that it writes, or its table.
        """
        if self.surface == "atc":
            texts = {
                setting.key: setting.value
                for setting in self.settings
                if isinstance(setting.value, str)
            }
            return texts.get("atc.output") or texts.get("atc.model", ""), ""
        if self.place:
            names: list[str] = []
            for part in self.place.partition("\0")[0].split("/")[2:-1]:
                number, _, name = part.partition(" ")
                is_number = number.isdecimal() and names
                names.append(name or (f"{names[-1]}-{int(number) + 1}" if is_number else part))
            return "".join(names[-1:]), "-".join(names[:-1])
        owner, _, name = self.function.rpartition(".")
        if name.startswith("__"):  # every class has such methods
            name = owner.rpartition(".")[2] or name
        return name, self.entry.config.rpartition(".")[2] if self.entry else ""


def list_launches(imported: ImportedFile) -> list[Launch]:
    """Return the launches of a file; what is commented out belongs to none."""
    sites = {site.scope: site for site in imported.sites}
    entries = {entry.site: entry for entry in imported.list_records(AddedEntry) if entry.site}
    live = [setting for setting in imported.settings if not setting.commented]
    live.sort(key=attrgetter("order"))
    groups = group_by(live, attrgetter("scope"))
    reaching = _find_environments(live, groups, imported.declarative)
    return [
        Launch(
            scope,
            same[0].surface,
            tuple(same),
            reaching.get(scope, ()),
            sites.get(scope),
            entries.get(scope),
        )
        for scope, same in groups.items()
    ]


def _find_environments(
    live: list[ScriptSetting], groups: dict[str, list[ScriptSetting]], declarative: bool
) -> dict[str, tuple[ScriptSetting, ...]]:
    """Return the variables set before the last setting of each launch.

    Without those of other branches, other commands, and other blocks of a manual. In a manifest,
    those of its table and of the tables around it; inner ones count.
    """
    if declarative:  # outer variables first
        live = sorted(live, key=lambda setting: (setting.surface != "env", len(setting.command)))
    # by identity: equal settings may be in two lines
    ends = {
        id(same[-1]): scope
        for scope, same in groups.items()
        if declarative or same[0].surface != "env"
    }
    # by block and command, and by name: the last ones, as many branches may set it
    variables: defaultdict[tuple[str, str], dict[str, deque[ScriptSetting]]] = defaultdict(dict)
    environments = {}
    for setting in live:
        *_, block = setting.scope.partition("#")
        if setting.surface == "env":
            of_command = variables[block, setting.command]
            of_command.setdefault(setting.name, deque(maxlen=_MOST_VALUES)).append(setting)
        if scope := ends.get(id(setting)):
            places = accumulate(_SEPARATOR.split(setting.command), initial="")
            every = [
                item
                for place in dict.fromkeys(places)
                for values in variables.get((block, place), {}).values()
                for item in values
                if not (item.branches and are_exclusive(item.branches, setting.branches))
            ]
            last = {item.name: item for item in every}
            environments[scope] = tuple(last.values() if declarative else every)
    return environments


def find_given_sessions(imported: ImportedFile, launches: list[Launch]) -> dict[str, Launch]:
    """Return, for the scope of each NPURunConfig, the session configuration passed to it."""
    passed = {}
    for record in imported.list_records(GivenSession):
        named = [
            (launch, launch.entry.scope)
            for launch in launches
            if launch.surface == "session"
            and launch.entry
            and launch.entry.config == record.expression
        ]
        own = [session for session, scope in named if scope == record.seen]
        candidates = own or [session for session, _ in named]
        of_config = (launch.line for launch in launches if launch.scope == record.scope)
        line = next(of_config, record.line)
        above = [session for session in candidates if session.line <= line]
        if candidates:
            passed[record.scope] = above[-1] if above else candidates[0]
    return passed
