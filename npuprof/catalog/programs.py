"""Programs that are started with arguments of a section, and how scripts spell that."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache

from npuprof.catalog import find_setting, list_flags, load_sections
from npuprof.model import Any, Record
from npuprof.system import lazy_pattern

_CAPITAL = lazy_pattern("(?<=[a-z])[A-Z]")
_SIZE = r"(\d+(?:\.\d+)?)([kKmMgGtT])"


class Program(Record):
    """A program with a ``[launch]`` table in the ``section.toml`` of its framework.

    ``starts`` are the words that start it, such as ``vllm serve``. ``calls`` are Python callables
    with their module that take the arguments as keywords. The ``spelling`` of arguments is with
    ``dashes`` or ``underscores``, and scripts may write either; or it is ``exact``. The ``syntax``
    is that of ``flags``, or of overrides of ``hydra``. ``positional`` is the argument without a
    flag, ``secret`` are arguments whose values are left out. ``config`` is the argument that names
    a file of arguments, ``marks`` are arguments of no other program: a file with two of them is
    such a file. ``tables`` are arguments whose value is a table with the keys of another
    section. With one of ``others``, another program takes the arguments.
    """

    section: str
    title: str
    starts: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    spelling: str = "dashes"
    syntax: str = "flags"
    positional: str = ""
    secret: tuple[str, ...] = ()
    config: str = ""
    marks: tuple[str, ...] = ()
    tables: dict[str, str] = {}
    others: tuple[str, ...] = ()

    def spell_argument(self, text: str) -> str:
        """Return the name of an argument as its section has it."""
        if self.spelling == "exact":
            return text
        return text.replace("_", "-") if self.spelling == "dashes" else text.replace("-", "_")

    def spell_field(self, text: str) -> str:
        """Return the name of an argument as its section has it; Helm values have maxModelLen."""
        return self.spell_argument(_CAPITAL.sub(r"_\g<0>", text).lower())

    @property
    def flags(self) -> dict[str, tuple[str, bool]]:
        """The argument of each flag of any release, and whether the flag switches it on."""
        return list_flags(self.section)

    def find_flag(self, written: str) -> tuple[str, bool] | None:
        """Return what ``flags`` has for a flag, or for all that begin like it, as argparse does."""
        if written in self.flags:
            return self.flags[written]
        found = self.list_starting(written)
        if len(found) > 1:  # others may be of later releases
            found = {
                name: on
                for name, on in found.items()
                if (record := find_setting(self.section, name)) and "." not in record.states
            }
        return found.popitem() if len(found) == 1 else None

    def list_starting(self, written: str) -> dict[str, bool]:
        """Return the arguments, as ``flags`` has them, whose flags begin like one."""
        return {name: on for flag, (name, on) in self.flags.items() if flag.startswith(written)}


def read_size(text: str) -> Any:
    """Return a number, such as 32k or 32K, as a text has it, else the text."""
    with suppress(ValueError):
        if not (match := re.fullmatch(_SIZE, text.strip())):
            return int(text)
        number, unit = match.groups()
        power = "kmgt".index(unit.lower()) + 1
        return int(float(number) * 1000**power) if unit.islower() else int(number) * 1024**power
    return text


@cache
def _index_programs() -> dict[str, Program]:
    return {
        section.name: Program(section.name, section.title, tables=section.tables, **section.launch)
        for section in load_sections().values()
        if section.launch
    }


def load_programs() -> tuple[Program, ...]:
    """Return the programs that scripts start by a name of their own."""
    return tuple(program for program in _index_programs().values() if program.starts)


@cache
def spell_key(key: str) -> str:
    """Return the only written form of a program's argument by full key; empty for others."""
    section, _, name = key.partition(".")
    program = find_program(section)
    return f"{section}.{program.spell_argument(name)}" if program else ""


def find_named_key(key: str) -> str:
    """Return the key for a name in a condition, which has no dashes."""
    section, _, name = key.partition(".")
    dashed = name.replace("_", "-")
    if find_program(section) and find_setting(section, dashed):
        return f"{section}.{dashed}"
    return spell_key(key) or key


def find_program(section: str) -> Program | None:
    """Return the program whose arguments are in a section, or None."""
    return _index_programs().get(section)


def spell_flag(name: str) -> str:
    """Return the flag of an argument whose name may lack its two dashes."""
    return name if name.startswith("-") else f"--{name}"
