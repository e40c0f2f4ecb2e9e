"""Records of a program's parser and of its arguments."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from npuprof.model import Record

#: A number of values that is not known.
ANY_NUMBER = ...
#: The gap of a parser with the arguments of all known releases of a library.
NO_RELEASE = "the release of a library is not known"
#: The gap of a parser whose class may change dashes before it parses them, as that of vLLM does.
OTHER_CLASS = "there is another class of parsers"


class ParserArgument(Record):
    """An argument with all its flags, and its definition as ``path:line``.

    ``kind`` is ``int``, ``float`` or ``str``, empty for other types. ``nargs`` is as in argparse, 0
    for a flag without value.
    """

    flags: tuple[str, ...]
    where: str
    kind: str = ""
    choices: tuple[Any, ...] = ()
    nargs: Any = ANY_NUMBER


class Parser(Record):
    """The parser of a program in ``path``, read from ``files``.

    It is complete unless there are ``gaps``, the reasons why it may have other arguments. With
    ``abbreviated``, it takes the beginning of a flag.
    """

    path: str
    arguments: tuple[ParserArgument, ...]
    gaps: tuple[str, ...] = ()
    abbreviated: bool = True
    files: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether it has all arguments of the program."""
        return not self.gaps

    @cached_property
    def has_positional(self) -> bool:
        """Whether it has an argument without flag."""
        return any(not each.flags[0].startswith("-") for each in self.arguments)

    @cached_property
    def keys(self) -> dict[str, ParserArgument]:
        """The arguments by the names that defaults have."""
        return {flag[2:].replace("-", "_"): each for flag, each in self.flags.items()}

    @cached_property
    def flags(self) -> dict[str, ParserArgument]:
        """The arguments by flag; values of several definitions that differ are not judged."""
        found: dict[str, ParserArgument] = {}
        for argument in self.arguments:
            for flag in argument.flags if argument.flags[0].startswith("-") else ():
                other = found.setdefault(flag, argument)
                if argument._replace(flags=other.flags, where=other.where) != other:
                    found[flag] = ParserArgument(other.flags, other.where)
        return found
