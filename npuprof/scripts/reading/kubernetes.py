"""Variables that Kubernetes gives to containers: their ``env``, and the ConfigMaps of the same file."""

from __future__ import annotations

import re
from collections import Counter

from npuprof.document.keys import format_short_value
from npuprof.scripts.reading.found import FoundSetting
from npuprof.scripts.reading.trees import Node, iterate_tables
from npuprof.scripts.reading.variables import Parts, build_variable_setting

_NAME = re.compile(r"[A-Za-z_]\w*")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
_NO_TEXT = "is no text: Kubernetes refuses it, it has to stand in quotes"


class _Maps:
    """The ConfigMaps of a file by name, their settings, how many containers take each, and how many say a variable of it themselves."""

    def __init__(self) -> None:
        self.data: dict[str, dict[str, Node]] = {}
        self.found: dict[str, list[FoundSetting]] = {}
        self.referred: set[tuple[str, str]] = set()
        self.taken: Counter[str] = Counter()
        self.overruled: Counter[tuple[str, str]] = Counter()


def find_container_settings(path: str, documents: list[Node]) -> tuple[list[FoundSetting], set[int]]:
    """Return the variables of containers and ConfigMaps, and the tables that hold them."""
    tables = list(iterate_tables(documents))
    handled: set[int] = set()
    maps = _Maps()
    for table in tables:
        data = table.find("data")
        if table.text("kind") == "ConfigMap" and data is not None and data.pairs is not None:
            handled.add(id(data))
            _read_map(path, table.text("metadata", "name"), data, maps)
    containers: list[tuple[str, list[FoundSetting]]] = []
    read: dict[int, list[FoundSetting]] = {}
    taken: dict[int, frozenset[str]] = {}
    pairs: Counter[tuple[int, int]] = Counter()
    first = {id(one): one.text("name") for table in tables for one in _list_init_containers(table)}
    early: list[FoundSetting] = []
    for table in sorted(tables, key=lambda table: id(table) in first):
        env, sources = table.find("env"), table.find("envFrom")
        if env is not None and env.items is not None and id(env) not in read:  # a list that many share is read once
            entries = [entry for entry in env.items if entry.pairs is not None and entry.text("name")]
            handled |= {id(entry) for entry in entries}
            read[id(env)] = _read_entries(path, entries, maps)
            if id(table) in first:
                why = f"holds for the init container {first[id(table)]} only, which ends before the others start"
                early += [one._replace(value=None, kind="", reason=one.reason or why) for one in read[id(env)]]
            else:
                containers.append((table.text("name") or "a container", read[id(env)]))
        if sources is not None and sources.items is not None and id(table) not in first:
            if id(sources) not in taken:
                taken[id(sources)] = _list_taken_maps(sources.items)
                own = {one.name for one in read.get(id(env), ())}
                prefixed = [one for one in _read_prefixed(path, sources.items, maps) if one.name not in own]
                containers.append((table.text("name") or "a container", prefixed))
            pairs[id(env), id(sources)] += 1
    for (number, source), times in pairs.items():
        _count_taken(read.get(number, []), taken[source], times, maps)
    if not read and not maps.taken:
        containers += [(f"the ConfigMap {name}", found) for name, found in maps.found.items()]
        return _tell_apart(containers), handled
    rest = early
    for name, found in maps.found.items():
        used = [one for one in found if maps.overruled[name, one.name] < maps.taken[name]]
        containers.append((f"the ConfigMap {name}", used))
        in_use = {id(one) for one in used}
        rest += [
            one._replace(value=None, kind="", reason=one.reason or _explain_unused(name, one.name, maps))
            for one in found
            if id(one) not in in_use
        ]
    return sorted([*_tell_apart(containers), *rest], key=lambda one: (one.line, one.column)), handled


def _list_init_containers(pod: Node) -> list[Node]:
    """Return the containers that end before those of the pod start; one that is always started again runs beside them."""
    listed = pod.find("initContainers")
    return [one for one in (listed.items if listed is not None else None) or () if one.text("restartPolicy") != "Always"]


def _read_prefixed(path: str, sources: list[Node], maps: _Maps) -> list[FoundSetting]:
    """Return the variables that a container takes of ConfigMaps under names with something before them."""
    found: dict[str, FoundSetting] = {}
    for one in sources:
        prefix, name = one.text("prefix"), one.text("configMapRef", "name")
        for key, value in maps.data.get(name, {}).items() if prefix else ():
            maps.referred.add((name, key))
            if setting := _build_setting(path, value, f"{prefix}{key}", value, (str(value.value),)):
                found[setting.name] = setting
    return list(found.values())


def _list_taken_maps(sources: list[Node]) -> frozenset[str]:
    """Return the ConfigMaps that a container takes as a whole."""
    return frozenset(name for one in sources if (name := one.text("configMapRef", "name")) and not one.text("prefix"))


def _count_taken(own: list[FoundSetting], taken: frozenset[str], times: int, maps: _Maps) -> None:
    """Count how often containers take a ConfigMap, and which of its variables they say themselves as well, which wins."""
    names = {one.name for one in own}
    for name in taken:
        maps.taken[name] += times
        held = maps.data.get(name, {})
        for variable in names if len(names) < len(held) else held:
            if variable in names and variable in held:
                maps.overruled[name, variable] += times


def _explain_unused(name: str, variable: str, maps: _Maps) -> str:
    if (name, variable) in maps.referred:
        return "a container takes it by itself, under the name that stands there"
    if maps.taken[name]:
        return "another value takes its place in the container"
    return f"no container of this file takes the ConfigMap {name}"


def _read_map(path: str, name: str, data: Node, maps: _Maps) -> None:
    held = maps.data.setdefault(name, {})
    for key, value in data.pairs or ():
        if isinstance(key.value, str) and value.is_plain and _NAME.fullmatch(key.value):
            held[key.value] = value
            if one := _build_setting(path, key, key.value, value, (str(value.value),)):
                maps.found.setdefault(name, []).append(one)


def _build_setting(path: str, at: Node, name: str, value: Node, parts: Parts, reason: str = "") -> FoundSetting | None:
    return build_variable_setting(path, (at.line, at.column), name, parts, (), reason or ("" if value.is_text else _NO_TEXT))


def _read_entries(path: str, entries: list[Node], maps: _Maps) -> list[FoundSetting]:
    found: dict[str, FoundSetting] = {}
    known: dict[str, str | None] = {}
    for entry in entries:
        name, value, source = entry.text("name"), entry.find("value"), entry.find("valueFrom")
        parts: Parts = ()
        reason = ""
        if source is not None:
            map_name, key = source.text("configMapKeyRef", "name"), source.text("configMapKeyRef", "key")
            held = maps.data.get(map_name, {}).get(key)
            if held is not None and held.is_text:
                maps.referred.add((map_name, key))
                value, parts = held, (held.value,)
            else:
                kind = next((key.value for key, _ in source.pairs or ()), "valueFrom")
                reason = f"is filled in when the container starts, from {kind}"
        elif value is not None and value.is_text:
            parts = _expand(value.value, known)
        elif value is not None and value.is_plain:
            reason = _NO_TEXT
        else:
            parts = ("",)
        known[name] = None if reason or any(isinstance(part, tuple) for part in parts) else "".join(map(str, parts))
        if one := _build_setting(path, entry, name, value or Node(0, 0, "", True), parts, reason):
            found[name] = one
    return list(found.values())


def _expand(text: str, known: dict[str, str | None]) -> Parts:
    """Return a value with what stands before it in the list filled in, as Kubernetes does."""
    parts: list[str | tuple[str]] = []
    at = 0
    for match in _REFERENCE.finditer(text):
        value = "$" if match[1] is None else known.get(match[1])
        parts += [text[at : match.start()], (match[0],) if value is None else value]
        at = match.end()
    return (*parts, text[at:])


def _tell_apart(groups: list[tuple[str, list[FoundSetting]]]) -> list[FoundSetting]:
    """Return settings of several containers, each once; where they differ none of them is in force for the file."""
    by_key: dict[str, dict[tuple[str, str], tuple[str, FoundSetting]]] = {}
    for name, found in groups:
        for one in found:
            by_key.setdefault(one.key or one.name, {}).setdefault((repr(one.value), one.reason), (name, one))
    result: list[FoundSetting] = []
    for held in by_key.values():
        said = ", ".join(f"{name} says {format_short_value(one.written)}" for name, one in held.values() if one.written is not None)
        for _, one in held.values():
            result.append(one._replace(value=None, kind="", reason=one.reason or f"containers differ: {said}") if len(held) > 1 else one)
    return sorted(result, key=lambda one: (one.line, one.column))
