"""Container variables: Kubernetes ``env`` and ConfigMaps, ``environment`` of a Compose service."""

from __future__ import annotations

import re
from collections.abc import Iterable

from npuprof.document.keys import format_short_value
from npuprof.scripts.reading.trees import Node, iterate_tables
from npuprof.scripts.reading.variable_files import (
    Parts,
    build_variable_setting,
    leave_out,
    split_references,
)
from npuprof.scripts.script_records import OTHER, ScriptSetting

_NAME = re.compile(r"[A-Za-z_]\w*")
_REFERENCE = re.compile(r"\$\$|(\$\([A-Za-z_][\w.-]*\))")
_COMPOSE_REFERENCE = re.compile(r"\$\$|(\$(?:[A-Za-z_]\w*|\{[^}]*\}))")
_NO_TEXT = "is not a string: Kubernetes rejects it without quotes"

#: Settings with the name of their container or ConfigMap.
Group = tuple[str, list[ScriptSetting]]


def find_container_settings(
    path: str, documents: list[Node]
) -> tuple[list[ScriptSetting], set[int]]:
    """Return the variables of containers, ConfigMaps and services, and their tables."""
    tables = list(iterate_tables(documents))
    early = {
        id(container)
        for table in _find_owners(tables, "initContainers")
        for container in _list_items(table, "initContainers")
    }
    maps = [table for table in tables if table.text("kind") == "ConfigMap" and table.find("data")]
    containers = _find_owners(tables, "env")
    sources = [
        source
        for table in _find_owners(tables, "envFrom")
        for source in _list_items(table, "envFrom")
    ]
    taken = {source.text("configMapRef", "name") for source in sources if not source.text("prefix")}
    groups = [_read_container(path, table, id(table) in early) for table in containers]
    groups += [_read_map(path, table, taken if containers or sources else None) for table in maps]
    tops = filter(None, (document.find("services") for document in documents))
    services = [pair for top in tops for pair in top.pairs or () if pair[1].find("environment")]
    groups += [_read_service(path, name, service) for name, service in services]
    jobs = [table for table in tables if (variables := table.find("env_vars")) and variables.pairs]
    groups += [_read_service(path, Node(0, 0, "runtime_env"), table, "env_vars") for table in jobs]
    owners = [
        *((service, "environment") for _, service in services),
        *((table, "env_vars") for table in jobs),
    ]
    handled = {
        id(table.find(name)) for table, name in [*owners, *((table, "data") for table in maps)]
    }
    return _compare_groups(groups), handled


def _find_owners(tables: list[Node], name: str) -> list[Node]:
    """Return the tables with a list of that name; of those that share one, the last."""
    return list(
        {
            id(listed): table
            for table in tables
            if (listed := table.find(name)) is not None and listed.items
        }.values()
    )


def _list_items(table: Node, name: str) -> list[Node]:
    """Return the tables in a list."""
    listed = table.find(name)
    return (
        [item for item in listed.items or () if item.pairs is not None]
        if listed is not None
        else []
    )


def _read_container(path: str, table: Node, is_early: bool) -> Group:
    """Return the ``env`` of a container.

    That of an init container applies only to it, unless it always restarts.
    """
    name = table.text("name") or "a container"
    settings = {}
    for entry in filter(lambda item: item.text("name"), _list_items(table, "env")):
        parts, reason = _read_value(entry)
        setting = build_variable_setting(
            path, (entry.line, entry.column), entry.text("name"), parts, reason
        )
        settings[setting.name] = setting
    if not is_early or table.text("restartPolicy") == "Always":
        return name, list(settings.values())
    return "", [
        leave_out(setting, f"applies to the init container {name} only")
        for setting in settings.values()
    ]


def _read_value(entry: Node) -> tuple[Parts, str]:
    """Return the value of a variable, and why it is unknown."""
    value, source = entry.find("value"), entry.find("valueFrom")
    if source is not None:
        return (), "is filled in when the container starts"
    if value is None or not value.is_text:
        return ("",), _NO_TEXT if value is not None and value.is_plain else ""
    return split_references(value.value, _REFERENCE), ""


def _read_service(path: str, name: Node, service: Node, key: str = "environment") -> Group:
    """Return the variables of a Compose service, or of Ray.

    One without a value is inherited from the caller.
    """
    variables = service.find(key) or Node(0, 0)
    texts = [
        (item, *str(item.value).partition("=")) for item in variables.items or () if item.is_text
    ]
    texts += [
        (key, str(key.value), "" if value.value is None else "=", str(value.value))
        for key, value in variables.pairs or ()
    ]
    built = []
    for at, variable, equals, text in texts:
        parts = split_references(text, _COMPOSE_REFERENCE) if equals else ((variable,),)
        built.append(build_variable_setting(path, (at.line, at.column), variable, parts))
    return f"the service {name.value}", built


def _read_map(path: str, table: Node, taken: set[str] | None) -> Group:
    """Return the variables of a ConfigMap.

    ``taken`` are those used by containers as a whole, None in a file without containers.
    """
    name, data = table.text("metadata", "name"), table.find("data")
    settings = []
    for key, value in (data.pairs or ()) if data is not None else ():
        if isinstance(key.value, str) and value.is_plain and _NAME.fullmatch(key.value):
            reason = "" if value.is_text else _NO_TEXT
            settings.append(
                build_variable_setting(
                    path, (key.line, key.column), key.value, (str(value.value),), reason
                )
            )
    if taken is None or name in taken:
        return f"the ConfigMap {name}", settings
    return "", [
        leave_out(setting, f"no container of this file takes the ConfigMap {name}")
        for setting in settings
    ]


def _compare_groups(groups: Iterable[Group]) -> list[ScriptSetting]:
    """Return the settings of several containers without duplicates.

    If they differ, none applies to the file.
    """
    by_key: dict[str, dict[tuple[str, str], tuple[str, ScriptSetting]]] = {}
    result = [
        setting
        for name, settings in groups
        for setting in settings
        if not name or setting.surface == OTHER
    ]
    for name, settings in groups:
        for setting in (member for member in settings if name and member.surface != OTHER):
            by_key.setdefault(setting.key or setting.name, {}).setdefault(
                (repr(setting.value), setting.reason), (name, setting)
            )
    for several in by_key.values():
        texts = ((name, setting.assigned.written) for name, setting in several.values())
        shown = ", ".join(
            f"{name} says {format_short_value(text)}" for name, text in texts if text is not None
        )
        result += [
            leave_out(setting, f"containers differ: {shown}") if len(several) > 1 else setting
            for _, setting in several.values()
        ]
    return sorted(result, key=lambda setting: (setting.line, setting.column))
