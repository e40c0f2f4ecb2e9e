"""Presets full of comments, made by chance, and what people do to them; every comment occurs once in all versions."""

from __future__ import annotations

import random
import re

COMMENT = re.compile(r"# c\d+[^\n\r]*")


class Author:
    """Somebody who writes and changes presets, line by line, and leaves comments everywhere."""

    def __init__(self, dice: random.Random, name: str = "") -> None:
        self.dice = dice
        self._name = name

    def comment(self) -> str:
        """Return a comment that occurs nowhere else."""
        return f"# c{self.dice.randrange(10**9)}{self._name} " + self.dice.choice(["why", 'it\'s "so"', "[x] = 1", "see # 7", "é"])

    def maybe(self, chance: float) -> bool:
        return self.dice.random() < chance

    def _write_pair(self, name: str) -> list[str]:
        lines = [self.comment() for _ in range(self.dice.choice([0, 0, 1, 2]))]
        beside = f"  {self.comment()}" if self.maybe(0.3) else ""
        if self.maybe(0.3):
            lines.append(f"{name} = [{beside}")
            for _ in range(self.dice.randrange(1, 5)):
                lines += self._write_element()
            return [*lines, "]" + (f" {self.comment()}" if self.maybe(0.3) else "")]
        return [*lines, f"{name} = {self.dice.randrange(100)}{beside}"]

    def _write_element(self) -> list[str]:
        lines = [f"    {self.comment()}"] if self.maybe(0.2) else []
        return [*lines, f'    "e{self.dice.randrange(10**6)}",' + (f" {self.comment()}" if self.maybe(0.4) else "")]

    def write(self) -> list[str]:
        """Return the lines of a preset."""
        lines = [self.comment(), self.comment(), ""] if self.maybe(0.5) else []
        for table in ("profile.x", "options", "options.deep", "env"):
            if self.maybe(0.2):
                continue
            lines += [self.comment()] * self.maybe(0.3) + [f"[{table}]" + (f" {self.comment()}" if self.maybe(0.2) else "")]
            for number in range(self.dice.randrange(5)):
                lines += [""] * self.maybe(0.2) + self._write_pair(f"k{number}")
            lines += [""] + ([self.comment(), ""] if self.maybe(0.3) else [])
        for product in "ab":
            if self.maybe(0.3):
                lines += [self.comment()] * self.maybe(0.5) + ["[[override]]", f'match = {{ product = "{product}" }}']
                lines += [*self._write_pair("options.k0"), ""]
        return lines + ([self.comment()] if self.maybe(0.3) else [])

    def change(self, lines: list[str], most: int = 5) -> list[str]:
        """Return the lines after a few changes of one person."""
        lines = list(lines)
        acts = [self._say_something, self._edit_comment, self._drop_comment, self._set, self._add, self._add_element, self._drop]
        for _ in range(self.dice.randrange(1, most)):
            self.dice.choice([*acts, self._say_something, self._edit_comment])(lines)
        return lines

    def _pick(self, lines: list[str], pattern: str) -> int | None:
        found = [place for place, line in enumerate(lines) if re.search(pattern, line)]
        return self.dice.choice(found) if found else None

    def _find_gaps(self, lines: list[str]) -> list[int]:
        """Return where a line can go that is no element of a list."""
        gaps, inside = [0], False
        for place, line in enumerate(lines, 1):
            inside = bool(re.match(r"[\w.]+ = \[($| )", line)) or (inside and not line.startswith("]"))
            gaps += [] if inside else [place]
        return gaps

    def _say_something(self, lines: list[str]) -> None:
        place = self.dice.choice([*self._find_gaps(lines), 0])
        lines[place:place] = self.dice.choice(
            [["", self.comment(), ""], [self.comment(), ""], [self.comment()], [self.comment(), self.comment()]]
        )

    def _edit_comment(self, lines: list[str]) -> None:
        place = self._pick(lines, COMMENT.pattern)
        if place is not None:
            lines[place] = COMMENT.sub(lambda _: self.comment(), lines[place])

    def _drop_comment(self, lines: list[str]) -> None:
        place = self._pick(lines, r"^\s*# c")
        if place is not None:
            del lines[place]

    def _set(self, lines: list[str]) -> None:
        place = self._pick(lines, r"^[\w.]+ = \d")
        if place is not None:
            lines[place] = re.sub(r"= \d+", f"= {self.dice.randrange(100, 200)}", lines[place], count=1)

    def _add(self, lines: list[str]) -> None:
        place = self._pick(lines, r"^\[(options|env)")
        if place is not None:
            gaps = [
                gap for gap in self._find_gaps(lines) if gap > place and not any(line.startswith("[") for line in lines[place + 1 : gap])
            ]
            gap = self.dice.choice(gaps)
            lines[gap:gap] = self._write_pair(f"n{self._name}{self.dice.randrange(10**6)}")

    def _add_element(self, lines: list[str]) -> None:
        place = self._pick(lines, r"^    \"")
        if place is not None:
            lines[place + 1 : place + 1] = self._write_element()

    def _drop(self, lines: list[str]) -> None:
        place = self._pick(lines, r"^[\w.]+ = \d|^    \"")
        if place is not None:
            del lines[place]
            while self.maybe(0.5) and place and re.match(r"\s*# c", lines[place - 1]):
                place -= 1
                del lines[place]


def make_versions(seed: int, most: int = 5) -> tuple[str, str, str]:
    """Return a preset, and what two people made of it, each with fewer changes than ``most``."""
    dice = random.Random(seed)
    base = Author(dice).write()
    ending = "\r\n" if dice.random() < 0.1 else "\n"
    sides = (base, Author(dice, "o").change(base, most), Author(dice, "t").change(base, most))
    first, second, third = (ending.join([*lines, ""]) for lines in sides)
    return first, second, third


def find_lost(base: str, ours: str, theirs: str, result: str) -> list[str]:
    """Return the comments of either side that are not in a result although the other side did not take them away."""
    below, mine, other = (set(COMMENT.findall(text)) for text in (base, ours, theirs))
    needed = (mine - below) | (other - below) | (mine & other)
    return sorted(comment for comment in needed if comment not in result)
