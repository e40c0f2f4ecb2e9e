"""Container variables: Kubernetes ``env`` and ConfigMaps, ``environment`` of a Compose service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from npuprof.document.keys import format_short_value
from npuprof.scripts.grouping import group_by
from npuprof.scripts.reading.recipes import holds_variables
from npuprof.scripts.reading.trees import Node, iterate_tables, spell_segment
from npuprof.scripts.reading.variable_files import (
    Parts,
    build_variable_setting,
    leave_out,
    split_references,
)
from npuprof.scripts.script_records import OTHER, ScriptSetting

_NAME = re.compile(r"[A-Za-z_]\w*")
_REFERENCE = re.compile(r"\$\$|(\$\([A-Za-z_][\w.-]*\))")
_COMPOSE_REFERENCE = re.compile(
    r"\$\$|(\$(?:[A-Za-z_]\w*|\{(?:[^{}]|\{[^{}]*\})*+\}|\([A-Za-z_]\w*\))"
    r"|\{\{(?:[^{}]|\{(?!\{)|\}(?!\}))*+\}\})"
)
#: Keys of variables, whatever their names are.
_VARIABLES = ("env", "environment", "env_vars")
#: Names of tables that others include.
_HIDDEN = re.compile(r"x-|[._]")
_MAP = "the ConfigMap"
#: The reason for a number or a switch.
NO_STRING = "is not a string: Kubernetes rejects it without quotes"

#: Settings with the name of their container or ConfigMap, empty if they do not apply to the file.
Group = tuple[str, list[ScriptSetting]]


def find_container_settings(
    path: str, documents: list[Node], places: dict[int, str], launched: set[str]
) -> tuple[list[ScriptSetting], set[int]]:
    """Return the variables of containers, ConfigMaps, services and other tables, and their tables.

    ``places`` are the paths of tables by ``id``. Variables of a table apply to the launches in it
    and below it, whose paths are ``launched``.
    """
    every, tables = list(iterate_tables(documents)), []
    around = {place[: end.end()] for place in launched for end in re.finditer("/", place)}
    handled = set()  # tables of variables by ``id``, which are no tables of settings
    own = []  # tables of variables that are not compared with others, with their paths
    for table in every:
        place = places[id(table)]
        if place not in around:
            tables.append(table)
            continue
        for key, node in table.pairs or ():
            is_named = str(key.value).lower() in _VARIABLES and not node.is_plain
            if is_named or holds_variables(node, place in launched):
                handled.add(id(node))
                # tables that include it have its variables
                if not _HIDDEN.match(str(key.value)):
                    own.append((place, node))
    early = {id(container) for container in _list_all_items(tables, "initContainers")}
    containers = _find_owners(tables, "env")
    groups = [_read_container(path, table, id(table) in early) for table in containers]
    groups += [(table.text("name"), []) for table in _list_all_items(tables, "containers")]
    sources = _list_all_items(every, "envFrom")
    # under a prefix, its keys are other variables
    used_maps = {
        source.text("configMapRef", "name") for source in sources if not source.text("prefix")
    }
    for table in tables:
        if table.text("kind") == "ConfigMap" and table.find("data"):
            # in a file of ConfigMaps alone, the containers that use them are in other files
            is_used = containers or sources or launched
            groups.append(_read_map(path, table, used_maps if is_used else None))
            handled.add(id(table.find("data")))
    named = [
        (f"the service {name.value}", service.find("environment"))
        for document in documents
        if (services := document.find("services"))
        for name, service in services.pairs or ()
    ]
    runtime = (table.find("env_vars") for table in tables)
    named += [("the service runtime_env", node) for node in runtime if node and node.pairs]
    for name, variables in named:
        if variables and id(variables) not in handled:
            groups.append((name, _read_variables(path, variables)))
            handled.add(id(variables))
    handled |= {id(table.find("env")) for table in containers}
    for place, node in _list_variables(tables, places):
        if id(node) not in handled:
            handled.add(id(node))
            own.append((place, node))
    settings = _compare_groups(groups, bool(launched))
    for place, node in own:
        settings += [
            setting._replace(command=place, scope=f"<process>:{place}")
            for setting in _read_variables(path, node)
        ]
    is_template = not any(document.text("kind") for document in documents)
    for number, setting in enumerate(settings):
        if is_template and setting.reason == NO_STRING:  # a template may quote values
            settings[number] = setting.with_value(reason=NO_STRING.partition(":")[0])
    return settings, handled


def _list_variables(tables: list[Node], places: dict[int, str]) -> Iterator[tuple[str, Node]]:
    """Yield the tables and lists of variables with their paths.

    Those of several in a table are apart, such as the roles of a service.
    """
    for table in tables:
        place = places[id(table)]
        found = [(key, node) for key, node in table.pairs or () if holds_variables(node)]
        for key, node in found:
            yield place if len(found) == 1 else f"{place}{spell_segment(str(key.value))}/", node
        if not found and place.count("/") == 2 and holds_variables(table):
            yield place, table


def _list_all_items(tables: list[Node], name: str) -> list[Node]:
    """Return the tables in all lists of that name."""
    lists = (table.find(name) for table in _find_owners(tables, name))
    return [item for node in lists if node for item in node.items or () if item.pairs is not None]


def _find_owners(tables: list[Node], name: str) -> list[Node]:
    """Return the tables with a list of that name; of those that share one, the last."""
    owners = {}
    for table in tables:
        listed = table.find(name)
        # YAML anchors let several tables share a list
        if listed and listed.items:
            owners[id(listed)] = table
    return list(owners.values())


def _read_container(path: str, table: Node, is_early: bool) -> Group:
    """Return the ``env`` of a container.

    That of an init container applies only to it, unless it always restarts.
    """
    name = table.text("name") or "a container"
    settings = _read_variables(path, table.find("env") or table)
    if not is_early or table.text("restartPolicy") == "Always":
        return name, settings
    why = f"applies to the init container {name} only"
    return "", [leave_out(setting, why) for setting in settings]


def _read_value(entry: Node) -> tuple[Parts, str]:
    """Return the value of a variable, and why it is unknown."""
    value, source = entry.find("value"), entry.find("valueFrom")
    if source:
        # the file does not contain it: a field, a secret or a key of a ConfigMap
        return (), "is filled in when the container starts"
    if not value or value.value is None:
        return ("",), ""
    if not value.is_text:
        return (json.dumps(value.value, default=str),), NO_STRING
    return split_references(value.value, _REFERENCE), ""


def _read_variables(path: str, variables: Node) -> list[ScriptSetting]:
    """Return the variables of a table, or of a list of entries or assignments.

    One without a value is inherited from the caller.
    """
    settings = {}

    def add(node: Node, variable: str, parts: Parts, reason: str = "") -> None:
        settings[variable] = build_variable_setting(path, node.position, variable, parts, reason)

    pairs = list(variables.pairs or ())
    for item in variables.items or ():
        if item.is_text:
            variable, equals, text = str(item.value).partition("=")
            # Compose takes a variable without a value from its own environment
            parts = split_references(text, _COMPOSE_REFERENCE) if equals else ((variable,),)
            add(item, variable, parts)
        elif variable := item.text("name"):
            add(item, variable, *_read_value(item))
        else:
            pairs += item.pairs or ()
    for name, value in pairs:
        variable = str(name.value)
        reason = "is True or true: write it in quotes" if isinstance(value.value, bool) else ""
        is_given = value.value is not None
        parts = (
            split_references(str(value.value), _COMPOSE_REFERENCE) if is_given else ((variable,),)
        )
        add(name, variable, parts, reason)
    return list(settings.values())


def _read_map(path: str, table: Node, used_maps: set[str] | None) -> Group:
    """Return the variables of a ConfigMap.

    ``used_maps`` are those used by containers as a whole, None in a file without containers.
    """
    name, data = table.text("metadata", "name"), table.find("data") or table
    settings = []
    for key, value in data.pairs or ():
        # other keys are names of files
        if isinstance(key.value, str) and value.is_plain and _NAME.fullmatch(key.value):
            reason = "" if value.is_text or value.value is None else NO_STRING
            parts = (value.value if value.is_text else json.dumps(value.value, default=str),)
            settings.append(build_variable_setting(path, key.position, key.value, parts, reason))
    if used_maps is None or name in used_maps:
        return f"the ConfigMap {name}", settings
    return "", [
        leave_out(setting, f"no container of this file takes the ConfigMap {name}")
        for setting in settings
    ]


def _compare_groups(groups: Sequence[Group], has_launches: bool) -> list[ScriptSetting]:
    """Return the settings of several containers without duplicates.

    If they differ, none applies to the file. Those that some containers lack have the name of one
    that has them.
    """
    containers = {name for name, _ in groups if name and not name.startswith(_MAP)}
    every = [(name, setting) for name, settings in groups for setting in settings]
    # those that apply to no whole file cannot disagree with others
    applying = [item for item in every if item[0] and item[1].surface != OTHER]
    result = [setting for name, setting in every if not name or setting.surface == OTHER]
    for same in group_by(applying, lambda item: item[1].key or item[1].name).values():
        by_value = group_by(same, lambda item: (repr(item[1].value), item[1].reason))
        different = [first for first, *_ in by_value.values()]
        if len(different) == 1:
            name, setting = different[0]
            is_everywhere = containers <= {holder for holder, _ in same} and not has_launches
            is_shared = is_everywhere or name.startswith(_MAP)
            result.append(setting if is_shared else setting._replace(command=f"/ {name}"))
            continue
        shown = ", ".join(
            f"{name} says {format_short_value(setting.assigned.written)}"
            for name, setting in different
            if setting.assigned.written is not None
        )
        result += [leave_out(setting, f"containers differ: {shown}") for _, setting in different]
    return result
