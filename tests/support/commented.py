"""Presets full of comments, made by chance, and what two people do to them; every comment occurs once in all versions."""

from __future__ import annotations

import random
import re
import tomllib

from npuprof.edit import apply_changes
from support import layouts

COMMENT = re.compile(r"# c\d+[^\n\r]*")


def change(dice: random.Random, text: str, most: int) -> str:
    """Return a preset after fewer than ``most`` changes of one person, and as many to its comments."""
    steps = [step for step in layouts.changes(dice, tomllib.loads(text)) if step.path[0] != "override"]  # which its match names
    lines = apply_changes(text, steps).split("\n")
    for _ in range(dice.randrange(1, most)):
        commented = [place for place, line in enumerate(lines) if COMMENT.search(line)]
        act = dice.random()
        if act < 0.4 or not commented:
            lines.insert(_find_gap(dice, lines), layouts.remark(dice))
        elif act < 0.8:
            place = dice.choice(commented)
            lines[place] = COMMENT.sub(layouts.remark(dice).replace("\\", ""), lines[place], count=1)
        else:
            place = dice.choice(commented)
            lines[place] = COMMENT.sub("", lines[place], count=1).rstrip()
    return "\n".join(lines)


def _find_gap(dice: random.Random, lines: list[str]) -> int:
    """Return where a line can be inserted that is no element of a list."""
    gaps, inside = [0], False
    for place, line in enumerate(lines, 1):
        inside = line.endswith(" = [") or (inside and line != "]")
        gaps += [] if inside else [place]
    return dice.choice(gaps)


def make_versions(seed: int, most: int = 5) -> tuple[str, str, str]:
    """Return a preset, and what two people made of it."""
    dice = random.Random(seed)
    base = layouts.profile(dice)
    ending = "\r\n" if dice.random() < 0.1 else "\n"
    first, second, third = (text.replace("\n", ending) for text in (base, change(dice, base, most), change(dice, base, most)))
    return first, second, third


def find_lost(base: str, ours: str, theirs: str, result: str) -> list[str]:
    """Return the comments of either side that are not in a result although the other side did not take them away."""
    below, mine, other = (set(COMMENT.findall(text)) for text in (base, ours, theirs))
    needed = (mine - below) | (other - below) | (mine & other)
    return sorted(comment for comment in needed if comment not in result)
