"""A second resolver, slow and plain, written from section 3 of the contract only; it shares no code with npuprof.

It reads presets as tables and knows just enough of structured forms for the settings that the tests draw.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from typing import Any

SECTIONS = ("options", "env", "estimator", "atc")
FAMILIES = {"atlas-a2": ("atlas-a2-training", "atlas-a2-inference"), "atlas-a3": ("atlas-a3-training", "atlas-a3-inference")}
RELEASES = {"8.0.0": 80, "9.0.0": 90}


class RefusedError(Exception):
    """There is no result; ``args[0]`` is the code of the finding."""


def find_scenario(presets: dict[str, Any], name: str) -> str | None:
    """Return what a preset is for: its own word, else that of all it extends, which have to agree."""
    profile = presets[name].get("profile", {})
    if "scenario" in profile:
        return str(profile["scenario"])
    found = {scenario for parent in profile.get("extends", []) if (scenario := find_scenario(presets, parent))}
    if len(found) > 1:
        raise RefusedError("NP108")
    return found.pop() if found else None


def resolve(texts: dict[str, str], name: str, product: str | None = None, cann: str | None = None) -> dict[str, Any]:
    """Return the settings of a preset: ``(section, name)`` to value."""
    presets = {key: tomllib.loads(text) for key, text in texts.items()}
    order = linearise(presets, name, ())[::-1]
    scenario = find_scenario(presets, name)
    job = {"product": product, "cann": cann, "scenario": scenario, "target": None}
    settings: dict[tuple[str, str], Any] = {}
    for layer in order:
        preset = presets[layer]
        take(settings, preset, preset.get("profile", {}).get("unset", []))
        for block in preset.get("override", []):
            if all(meets(fact, wanted, job[fact]) for fact, wanted in block["match"].items()):
                take(settings, block, block.get("unset", []))
    return settings


def linearise(presets: dict[str, Any], name: str, above: tuple[str, ...]) -> list[str]:
    """Return the profile and its ancestors, the strongest first: the textbook's C3 merge."""
    if name in above:
        raise RefusedError("NP102")
    if name not in presets:
        raise RefusedError("NP101" if above else "NP008")
    parents = presets[name].get("profile", {}).get("extends", [])[::-1]
    if len(set(parents)) < len(parents):
        raise RefusedError("NP104")
    todo = [linearise(presets, parent, (*above, name)) for parent in parents] + [parents]
    order = [name]
    while todo := [line for line in todo if line]:
        for line in todo:
            if not any(line[0] in other[1:] for other in todo):
                break
        else:
            raise RefusedError("NP103")
        head = line[0]
        order.append(head)
        todo = [other[1:] if other[0] == head else other for other in todo]
    return order


def meets(fact: str, wanted: Any, found: str | None) -> bool:
    """Return whether one key of a match holds."""
    if found is None:
        return False
    patterns = wanted if isinstance(wanted, list) else [wanted]
    if fact == "product":
        return any(found == pattern or found in FAMILIES.get(pattern, ()) for pattern in patterns)
    if fact == "cann":
        limits = [re.fullmatch(r"(>=|<)(\d+)\.0", pattern) for pattern in patterns]
        return any(limit and (RELEASES[found] >= int(limit[2]) * 10) == (limit[1] == ">=") for limit in limits)
    return found in patterns


def take(settings: dict[tuple[str, str], Any], table: dict[str, Any], unset: list[str]) -> None:
    """Apply one layer: its unset, its values, its append."""
    for written in unset:
        section, path = "options", written.split(".")
        if path[0] in SECTIONS:
            section, *path = path
        clear(settings, (section, path[0]), path[1:])
    for section in SECTIONS:
        for name, value in table.get(section, {}).items():
            old = settings.get((section, name))
            both = isinstance(value, dict) and isinstance(form(section, name, old), dict)
            settings[section, name] = merged(form(section, name, old), value) if both else copy.deepcopy(value)
    for section in SECTIONS:
        for name, value in table.get("append", {}).get(section, {}).items():
            old, new = (form(section, name, item) for item in (settings.get((section, name)), value))
            settings[section, name] = appended(old, new)


def clear(settings: dict[tuple[str, str], Any], key: tuple[str, str], path: list[str]) -> None:
    """Remove what a path names, and the tables it leaves empty."""
    if key not in settings:
        return
    if not path:
        del settings[key]
        return
    value = copy.deepcopy(form(*key, settings[key]))
    chain = [value]
    for part in path[:-1]:
        if not isinstance(chain[-1], dict) or part not in chain[-1]:
            return
        chain.append(chain[-1][part])
    if not isinstance(chain[-1], dict) or path[-1] not in chain[-1]:
        return
    del chain[-1][path[-1]]
    for depth in range(len(chain) - 1, 0, -1):
        if not chain[depth]:
            del chain[depth - 1][path[depth - 1]]
    settings[key] = value
    if not value:
        del settings[key]


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return one table laid over another."""
    result = copy.deepcopy(old)
    for name, item in new.items():
        both = isinstance(item, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], item) if both else copy.deepcopy(item)
    return result


def appended(old: Any, new: Any) -> Any:
    """Return lists with lists added."""
    if isinstance(new, dict):
        if old is not None and not isinstance(old, dict):
            raise RefusedError("NP106")
        return {**(old or {}), **{name: appended((old or {}).get(name), item) for name, item in new.items()}}
    if not isinstance(new, list) or (old is not None and not isinstance(old, list)):
        raise RefusedError("NP106")
    return [*(old or []), *new]


def form(section: str, name: str, value: Any) -> Any:
    """Return the structured form of a text, where there is one."""
    if section != "options" or not isinstance(value, str):
        return value
    if name == "dump_step" and re.fullmatch(r"\d+(-\d+)?(\|\d+(-\d+)?)*", value):
        return [part if "-" in part else int(part) for part in value.split("|")]
    if name == "profiling_options":
        try:
            parsed = json.loads(value)
        except ValueError:
            return value
        return parsed if isinstance(parsed, dict) else value
    return value
