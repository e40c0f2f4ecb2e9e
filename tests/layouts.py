"""Profiles as people write them, made by chance: comments, blank lines, dotted keys, tables in every form."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from npuprof.document import keys
from npuprof.edit import PathChange, apply_changes
from npuprof.edit.paths import MISSING, assign_at_path, find_at_path

NAMES = ["a", "b", "c", "d", "e f", "g"]
INNER = ["k1", "k2", "k-3", "k 4"]


def value(dice: random.Random, depth: int = 0) -> Any:
    """Return a value; tables and lists no deeper than two levels."""
    kind = dice.randrange(8 if depth < 2 else 5)
    if kind < 3:
        return [dice.randrange(5), dice.choice([True, False]), dice.choice([1.5, 2.0])][kind]
    if kind < 5:
        return dice.choice(["a", "b#", "it's", 'q"', "é\n", "c:\\x", "[x]", "a = 1"])
    if kind == 5:
        return [value(dice, depth + 1) for _ in range(dice.randrange(4))]
    if kind == 6:
        return [dice.choice("ABCDE") for _ in range(dice.randrange(5))]
    return {dice.choice(INNER): value(dice, depth + 1) for _ in range(dice.randrange(3))}


def written(dice: random.Random, value: Any, indent: str = "") -> str:
    """Return a value as TOML, lists now and then with a line and a comment for each element."""
    if not isinstance(value, list) or not value or dice.random() < 0.5:
        return keys.format_toml_value(value)
    text = "[\n"
    for place, item in enumerate(value):
        if dice.random() < 0.2:
            text += f"{indent}    {remark(dice)}\n"
        comma = "," if place < len(value) - 1 or dice.random() < 0.5 else ""
        beside = f" {remark(dice)}" if dice.random() < 0.3 else ""
        text += f"{indent}    {written(dice, item, indent + '    ')}{comma}{beside}\n"
    return f"{text}{indent}]"


def remark(dice: random.Random) -> str:
    """Return a comment that occurs nowhere else."""
    return f"# c{dice.randrange(10**9)} [x] = \"'"


def profile(dice: random.Random) -> str:
    """Return the text of a profile."""
    text = f"{remark(dice)}\n\n" if dice.random() < 0.3 else ""
    for section in ("profile", "options", "append.options", "env", "atc"):
        if dice.random() < 0.3:
            continue
        if dice.random() < 0.3:
            text += f"{remark(dice)}\n"
        text += f"[{section}]{dice.choice(['', '', '  ' + remark(dice)])}\n"
        tables = []
        for name in dice.sample(NAMES, dice.randrange(5)):
            item = value(dice)
            if isinstance(item, dict) and item and dice.random() < 0.6:
                if dice.random() < 0.5:
                    tables.append((name, item))
                else:
                    text += "".join(
                        f"{keys.format_key_segment(name)}.{keys.format_key_segment(inner)} = {written(dice, below)}\n"
                        for inner, below in item.items()
                    )
                continue
            text += dice.choice(["", "", "\n", f"{remark(dice)}\n"])
            text += f"{keys.format_key_segment(name)} = {written(dice, item)}{dice.choice(['', '', '  ' + remark(dice)])}\n"
        for name, item in tables:
            pairs = "".join(f"{keys.format_key_segment(inner)} = {written(dice, below)}\n" for inner, below in item.items())
            text += f"\n[{section}.{keys.format_key_segment(name)}]\n{pairs}"
        if dice.random() < 0.8:
            text += "\n"
    for number in range(dice.randrange(3)):
        text += f'[[override]]\nmatch = {{ product = "p{number}" }}\n'
        text += dice.choice(["options = { a = 1 }\n\n", f"[override.options]\na = 2 {remark(dice)}\n"])
    return text


def paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every key; those of list elements only where they are overrides."""
    if isinstance(data, dict):
        for name, item in data.items():
            yield (*path, name)
            yield from paths(item, (*path, name))
    elif isinstance(data, list) and path == ("override",):
        for place, item in enumerate(data):
            yield from paths(item, (*path, place))


def changes(dice: random.Random, data: dict[str, Any], most: int = 4) -> list[PathChange]:
    """Return some changes to a document and make them in ``data``."""
    found: list[PathChange] = []
    for _ in range(dice.randrange(most)):
        known = [path for path in paths(data) if len(path) > 1 + (path[0] == "append")]
        if known and dice.random() < 0.7:
            path = dice.choice(known)
            if dice.random() < 0.2:
                path = (*path, dice.choice(["n1", "n 2"]))
        else:
            path = (dice.choice(["profile", "options", "env", "estimator"]), dice.choice(["a", "zz", "y y"]))
        if any(
            not isinstance(find_at_path(data, path[:end]), dict)
            for end in range(1, len(path))
            if find_at_path(data, path[:end]) is not MISSING and path[end - 1] != "override"
        ):
            continue
        new = MISSING if dice.random() < 0.25 else value(dice)
        old = find_at_path(data, path)
        if isinstance(old, list) and dice.random() < 0.8:
            new = list(old)
            for _ in range(dice.randrange(1, 3)):
                act = dice.random()
                if act < 0.5 or not new:
                    new.insert(dice.randrange(len(new) + 1), dice.choice([f"N{dice.randrange(4)}", 7, [1]]))
                elif act < 0.8:
                    new.pop(dice.randrange(len(new)))
                else:
                    new[dice.randrange(len(new))] = f"M{dice.randrange(3)}"
        assign_at_path(data, path, new)
        found.append(PathChange(path, new))
    return found


def changed(dice: random.Random, text: str) -> str:
    """Return a profile after a few changes, and now and then one more override."""
    import tomllib

    text = apply_changes(text, changes(dice, tomllib.loads(text)))
    if dice.random() < 0.2:
        text = (
            text.rstrip("\n") + f'\n\n[[override]]\nmatch = {{ product = "p{dice.randrange(4)}" }}\nenv = {{ B = {dice.randrange(3)} }}\n'
        )
    return text
