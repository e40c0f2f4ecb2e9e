"""Variables that launchers pass to programs: ``--export`` of Slurm, ``-e`` of docker and others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from npuprof.catalog import load_built_part
from npuprof.scripts.reading.shells.known_variables import list_assignments
from npuprof.scripts.script_records import find_position
from npuprof.scripts.shell_lexer import Command, Word


class PassedVariable(NamedTuple):
    """A variable that a launcher passes to a program; ``argument`` is where it is written."""

    name: str
    argument: Word
    value: Word


#: Launchers, with their flags for variables, and what follows each.
LAUNCHERS: dict[str, dict[str, str]] = load_built_part("launchers")["passing"]
#: A pattern of programs that use devices, or start others that do.
STARTERS = (
    r"(?:torchrun|accelerate|deepspeed|msrun|mpi(?:run|exec)|horovodrun|srun|vllm|swift|sglang"
    r"|lmdeploy|llamafactory-cli|mindie\w+)"
)

_DIRECTIVE = re.compile(r"^#SBATCH[ \t][^\n]*?--export(?:=|[ \t]+)([^\s\"']+)", re.MULTILINE)
_VARIABLE = re.compile(r"(?:(?<=^)|(?<=,))(?P<name>[A-Za-z_]\w*)=(?P<value>[^,]*)")


def find_directive_exports(text: str, commands: Sequence[Command]) -> Iterator[PassedVariable]:
    """Yield the variables of ``#SBATCH`` lines before the first command."""
    end = commands[0][0].span[0] if commands else len(text)
    for match in _DIRECTIVE.finditer(text, 0, end):
        yield from _split_list(Word(*find_position(text, match.start(1)), (match[1],)))


def find_passed_variables(launcher: str, arguments: Sequence[Word]) -> Iterator[PassedVariable]:
    """Yield the variables in a launcher's arguments."""
    # ssh HOST X=Y CMD; the value of -o is no variable
    for before, argument in pairwise(arguments) if launcher == "ssh" else ():
        if before.text != "-o" and not re.search(r"\s", argument.text):
            yield from split_assignment(argument)
    if launcher in ("kubectl", "oc") and [word.text for word in arguments[:2]] == ["set", "env"]:
        for argument in arguments[2:]:
            yield from split_assignment(argument)
    flags = LAUNCHERS[launcher]
    for index, argument in enumerate(arguments):
        flag = next((flag for flag in flags if _has_flag(argument.text, flag)), "")
        values = arguments[index + 1 : index + 3]
        if not flag:
            continue
        if argument.text != flag:  # the rest of the argument is the value
            start = len(flag) + argument.text.startswith(f"{flag}=")
            value = argument.cut_prefix(start)
            values = [value.with_position(argument.line, argument.column + start)]
        if flags[flag] != "pair":
            for value in values[:1]:
                yield from _READERS[flags[flag]](value)
        elif len(values) == 2:
            name, value = values
            yield PassedVariable(name.text, name, value)


def _has_flag(text: str, flag: str) -> bool:
    """Return whether an argument is a flag: ``--env X=Y``, ``--env=X=Y``, ``-eX=Y``."""
    return text == flag or text.startswith(flag if len(flag) == 2 else f"{flag}=")


def split_assignment(argument: Word) -> Iterator[PassedVariable]:
    """Yield the variable of an argument ``NAME=VALUE``; none for any other argument."""
    for name, _ in list_assignments([argument]):
        yield PassedVariable(name, argument, argument.cut_prefix(len(name) + 1))


def _split_json(argument: Word) -> Iterator[PassedVariable]:
    """Yield the ``env_vars`` of a Ray runtime environment."""
    try:
        variables = json.loads(argument.text)["env_vars"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    for name, value in variables:
        if isinstance(value, str):
            yield PassedVariable(name, argument, argument.with_parts(value))


def _split_list(argument: Word) -> Iterator[PassedVariable]:
    """Yield the variables of a list ``A=1,B=2``."""
    for match in _VARIABLE.finditer(argument.text):
        place = Word(argument.line, argument.column + match.start(), (match[0],))
        value = match["value"]
        has_expansion = "$" in value or "`" in value
        yield PassedVariable(
            match["name"], place, place.with_parts((value,) if has_expansion else value)
        )


_READERS = {"assignment": split_assignment, "list": _split_list, "json": _split_json}
