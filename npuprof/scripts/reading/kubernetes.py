"""Variables that Kubernetes gives to containers: their ``env``, and the ConfigMaps of the same file."""

from __future__ import annotations

import re

from npuprof.document.keys import format_short_value
from npuprof.scripts.reading.found import FoundSetting
from npuprof.scripts.reading.trees import Node, iterate_tables
from npuprof.scripts.reading.variables import Parts, build_variable_setting

_NAME = re.compile(r"[A-Za-z_]\w*")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
_NO_TEXT = "is no text: Kubernetes refuses it, it has to stand in quotes"


class _Maps:
    """The ConfigMaps of a file by name, their settings, and which of them some container takes."""

    def __init__(self) -> None:
        self.data: dict[str, dict[str, Node]] = {}
        self.found: dict[str, list[FoundSetting]] = {}
        self.taken: set[str] = set()


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
    read: set[int] = set()
    for table in tables:
        env, sources = table.find("env"), table.find("envFrom")
        entries = [entry for entry in (env.items or [] if env else []) if entry.pairs is not None and entry.text("name")]
        if not entries and (sources is None or sources.items is None):
            continue
        handled |= {id(entry) for entry in entries}
        found = _read_sources(sources, maps) if sources is not None and id(sources) not in read else []
        if env is not None and id(env) not in read:
            own = _read_entries(path, entries, maps)
            names = {one.name for one in own}
            found = [one for one in found if one.name not in names] + own
        read |= {id(node) for node in (env, sources) if node is not None}
        containers.append((table.text("name") or "a container", found))
    if not containers:
        containers = list(maps.found.items())
        return _tell_apart(containers, "the ConfigMap "), handled
    result = _tell_apart(containers, "")
    told = {(one.line, one.column) for one in result}
    for name, found in maps.found.items():
        why = (
            "another value takes its place in the container"
            if name in maps.taken
            else f"no container of this file takes the ConfigMap {name}"
        )
        result += [one._replace(value=None, kind="", reason=one.reason or why) for one in found if (one.line, one.column) not in told]
    return sorted(result, key=lambda one: (one.line, one.column)), handled


def _read_map(path: str, name: str, data: Node, maps: _Maps) -> None:
    held = maps.data.setdefault(name, {})
    for key, value in data.pairs or ():
        if isinstance(key.value, str) and value.is_plain and _NAME.fullmatch(key.value):
            held[key.value] = value
            if one := _build_setting(path, key, key.value, value, (str(value.value),)):
                maps.found.setdefault(name, []).append(one)


def _build_setting(path: str, at: Node, name: str, value: Node, parts: Parts, reason: str = "") -> FoundSetting | None:
    return build_variable_setting(path, (at.line, at.column), name, parts, (), reason or ("" if value.is_text else _NO_TEXT))


def _read_sources(sources: Node, maps: _Maps) -> list[FoundSetting]:
    """Return what a container takes over as a whole; what another file holds is not known here."""
    found: dict[str, FoundSetting] = {}
    for source in sources.items or ():
        name = source.text("configMapRef", "name")
        if name in maps.data and not source.text("prefix"):
            maps.taken.add(name)
            found |= {one.name: one for one in maps.found.get(name, ())}
    return list(found.values())


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
                maps.taken.add(map_name)
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


def _tell_apart(groups: list[tuple[str, list[FoundSetting]]], noun: str) -> list[FoundSetting]:
    """Return settings of several containers, each once; where they differ none of them is in force for the file."""
    by_key: dict[str, dict[tuple[str, str], tuple[str, FoundSetting]]] = {}
    for name, found in groups:
        for one in found:
            by_key.setdefault(one.key or one.name, {}).setdefault((repr(one.value), one.reason), (name, one))
    result: list[FoundSetting] = []
    for held in by_key.values():
        said = ", ".join(f"{noun}{name} says {format_short_value(one.written)}" for name, one in held.values() if one.written is not None)
        for _, one in held.values():
            result.append(one._replace(value=None, kind="", reason=one.reason or f"containers differ: {said}") if len(held) > 1 else one)
    return sorted(result, key=lambda one: (one.line, one.column))
