"""Groups the settings of a file by configuration: an object of a script with everything set in it.

Two objects are two configurations, even if they have much in common. An NPURunConfig includes the session config passed
to it.
"""

from __future__ import annotations

from operator import attrgetter

from npuprof.model import Record
from npuprof.scripts.grouping import group_by
from npuprof.scripts.python.nested_configs import GivenSession
from npuprof.scripts.python.optimizer_entries import AddedEntry
from npuprof.scripts.records import ImportedFile, ScriptSetting, Site


class ConfigGroup(Record):
    """The settings of one scope: ``scope`` is the visitor's name of the object (``main:custom_op@12``).

    ``entry`` is the record that adds it to a session config, if any.
    """

    scope: str
    surface: str
    settings: tuple[ScriptSetting, ...]
    site: Site | None = None
    entry: AddedEntry | None = None

    @property
    def function(self) -> str:
        """The dotted name of the function that creates the object; empty for the module and for the whole process."""
        name = self.scope.rpartition(":")[0] if self.surface != "session" else self.scope.partition(":")[0]
        return "" if name.startswith("<") or self.surface in ("atc", "env", "global_options") else name.partition("@")[0]

    @property
    def line(self) -> int:
        """The first line of the object."""
        return self.site.line if self.site else min(setting.line for setting in self.settings)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names that distinguish the object in its file: its function and its config, or the model that it writes."""
        if self.surface == "atc":
            texts = {setting.key: setting.value for setting in self.settings if isinstance(setting.value, str) and not setting.reason}
            return tuple(texts[key] for key in ("atc.output", "atc.model") if texts.get(key))[:1]
        owner, _, name = self.function.rpartition(".")
        if name.startswith("__"):  # every class has such methods
            name = owner.rpartition(".")[2] or name
        return name, self.entry.config.rpartition(".")[2] if self.entry else ""


def list_config_groups(imported: ImportedFile) -> list[ConfigGroup]:
    """Return the objects of a file, each with its settings in execution order."""
    sites = {site.scope: site for site in imported.sites}
    entries = {entry.site: entry for entry in imported.list_remarks(AddedEntry) if entry.site}
    live = sorted((setting for setting in imported.found if not setting.commented), key=attrgetter("order"))
    groups = group_by(live, attrgetter("scope")).items()
    return [ConfigGroup(scope, same[0].surface, tuple(same), sites.get(scope), entries.get(scope)) for scope, same in groups]


def find_given_sessions(imported: ImportedFile, groups: list[ConfigGroup]) -> dict[str, ConfigGroup]:
    """Return, for the scope of each NPURunConfig, the session configuration passed to it."""
    sessions = [group for group in groups if group.surface == "session"]
    result = {}
    for given in imported.list_remarks(GivenSession):
        line = next((group.line for group in groups if group.scope == given.scope), given.line)
        named = [group for group in sessions if group.entry is not None and group.entry.config == given.expression]
        own = [group for group in named if group.entry is not None and group.entry.scope == given.seen] or named
        before = [group for group in own if group.line <= line]
        if own:  # the last one above, or the first one below
            result[given.scope] = before[-1] if before else own[0]
    return result
