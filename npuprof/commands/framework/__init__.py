"""The Verb class and the registry of verbs.

A verb's fields are its parameters, declared as data; its body returns an answer.

Declarations import no command-line framework, which would take longer than most verbs. Plain
commands are parsed from the declaration; Typer commands are built from it for help, completion and
usage errors. The registry is the folder ``commands``: each module with a ``VERB`` is a verb, named
after the module.
"""

# a declaration is of the type of its value until Verb has replaced it
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import starmap

from npuprof import commands
from npuprof.model import (
    TYPE_CHECKING,
    Fields,
    Record,
    build_usage_error,
    did_you_mean,
    has_only_digits,
)
from npuprof.report import Answer
from npuprof.report.output import is_colour_wanted
from npuprof.system import group_pairs, load_built_part

if TYPE_CHECKING:
    from typing import Any, ClassVar

    Choices = Sequence[str] | Callable[[], Iterable[str]]

#: The name of a verb as typed: ``("show",)``, ``("git", "install")``.
Names = tuple[str, ...]


class LoadedVerb(Record):
    """The verb that a command line names, its name as typed, and the arguments after it."""

    names: Names
    verb: type[Verb]
    arguments: list[str]


class IndexedVerb(Record):
    """A verb in the index: the position of its group, its name, and the first line of its help."""

    group: int
    names: Names
    purpose: str
    hidden: bool


#: The groups of verbs in the order of the help, with their headings.
GROUPS = {
    "presets": "Presets",
    "output": "Output",
    "versions": "Versions",
    "team": "Team",
    "scripts": "Scripts",
    "runs": "Runs",
    "reference": "Reference",
}


class Parameter(Record):
    """One parameter of a verb.

    ``kind`` is ``argument`` (``arguments`` takes all remaining ones), ``text``, ``many`` (a
    repeatable text), ``number`` or ``flag``; ``flags`` are its spellings, ``metavar`` is the name
    of its value in the help. ``choices`` are its valid values, or a function that returns them;
    ``{choices}`` in the help lists them, and ``noun`` is the word for a value in error messages.
    ``least`` is the minimum of a number, ``implied`` the value of an option that is the last
    argument or is followed by another flag. ``complete`` names what completes its values, in
    ``COMPLETERS`` of ``completion.offering``; by default shells complete files.
    """

    kind: str
    help: str
    flags: tuple[str, ...] = ()
    metavar: str = ""
    default: Any = None
    required: bool = False
    choices: Choices = ()
    noun: str = ""
    least: int | None = None
    implied: str = ""
    complete: str = ""

    def list_choices(self) -> tuple[str, ...]:
        """Return the valid values; empty if any value is valid."""
        return tuple(self.choices() if callable(self.choices) else self.choices)

    def describe(self) -> str:
        """Return the help with the choices filled in."""
        if "{choices}" not in self.help:
            return self.help
        *others, last = self.list_choices()
        return self.help.replace("{choices}", f"{', '.join(others)} or {last}" if others else last)

    def copy_default(self) -> Any:
        """Return the default; a new list if it is a list."""
        return [] if self.kind in ("many", "arguments") else self.default

    def require_text(self, value: Any) -> None:
        """Raise NpuprofError (NP902) for an empty argument, as from an unset shell variable."""
        # an empty argument of the user's own command is passed on
        if self.kind == "arguments" and self.metavar.startswith("CMD"):
            return
        if value == "" or (isinstance(value, list) and "" in value):
            shown = self.flags[0] if self.flags else self.metavar.rstrip(".")
            hint = "check how the shell expanded a variable"
            if self.flags:
                hint = f"give {shown} {self.metavar.rstrip('.')}" + (
                    "" if self.required else ", or omit it"
                )
            raise build_usage_error(f"{shown} is empty", hint, "An empty text names nothing.")

    def require_choice(self, value: Any) -> None:
        """Raise NpuprofError (NP902) for a value that is not one of the choices."""
        # the default need not be a choice: None means that the option was omitted
        if value == self.default or not self.choices:
            return
        known = self.list_choices()
        if value not in known:
            what = (
                f"unknown {self.noun} {value!r}"
                if self.noun
                else f"{self.flags[0]} {value!r} is unknown"
            )
            more = "; npuprof help targets describes each" if self.noun == "target" else ""
            raise build_usage_error(
                what, did_you_mean(value, known, f"known are {', '.join(known)}{more}")
            )


def _declare(*fields: Any, **named: Any) -> Any:
    """Return a parameter with these fields.

    ``Verb`` replaces it by a value, so the functions below have the type of the value.
    """
    return Parameter(*fields, **named)


def argument(metavar: str, text: str, complete: str = "", default: str | None = None) -> str:
    """Declare a positional parameter, required unless it has a default."""
    return _declare("argument", text, (), metavar, default, default is None, complete=complete)


def optional_argument(metavar: str, text: str, complete: str = "") -> str | None:
    """Declare a positional parameter that may be missing."""
    return _declare("argument", text, (), metavar, complete=complete)


def arguments(metavar: str, text: str, complete: str = "", required: bool = False) -> list[str]:
    """Declare a parameter that takes all remaining arguments."""
    return _declare("arguments", text, (), metavar, required=required, complete=complete)


def option(*flags: str, metavar: str, text: str, **more: Any) -> str | None:
    """Declare an option with a value; ``more`` are other fields of ``Parameter``."""
    return _declare("text", text, flags, metavar, **more)


def option_with_default(
    *flags: str, metavar: str, text: str, default: str, choices: Choices = ()
) -> str:
    """Declare an option that always has a value."""
    return _declare("text", text, flags, metavar, default, choices=choices)


def required_option(*flags: str, metavar: str, text: str, complete: str) -> str:
    """Declare a required option with a value."""
    return _declare("text", text, flags, metavar, required=True, complete=complete)


def many(*flags: str, metavar: str, text: str, complete: str = "") -> list[str]:
    """Declare a repeatable option with a value."""
    return _declare("many", text, flags, metavar, complete=complete)


def number(*flags: str, metavar: str, text: str, least: int | None = None) -> int | None:
    """Declare an option with an integer value, ``least`` or more."""
    return _declare("number", text, flags, metavar, least=least)


def flag(*flags: str, text: str) -> bool:
    """Declare a switch."""
    return _declare("flag", text, flags, default=False)


class Verb:
    """A verb of the command line; its module is its name, its docstring its help.

    ``group`` is its section in the help. ``hidden`` verbs are called by programs, ``usage_hint`` is
    printed with a usage error, ``takes_any_word`` allows arguments that look like flags. On a
    terminal, the text of ``prose`` answers is wrapped.
    """

    parameters: ClassVar[dict[str, Parameter]] = {}
    spellings: ClassVar[dict[str, Parameter]] = {}
    group = ""
    hidden = False
    usage_hint = ""
    takes_any_word = False
    prose = False

    format = ""
    output: str | None = None
    color = "never"

    def __init_subclass__(cls) -> None:
        declared = [
            (name, value)
            for base in cls.__mro__
            for name, value in vars(base).items()
            if isinstance(value, Parameter)
        ]
        cls.parameters = {}
        for name, parameter in declared:
            cls.parameters.setdefault(name, parameter)  # a subclass overrides its bases
        cls.spellings = {
            spelling: parameter
            for parameter in cls.parameters.values()
            for spelling in parameter.flags
        }

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Set the parameters to values, or to their defaults.

        Raises NpuprofError (NP902) for an invalid choice.
        """
        for name, parameter in self.parameters.items():
            value = values.get(name)
            setattr(self, name, parameter.copy_default() if value is None else value)
            # hidden verbs are called by git, whose arguments may be empty
            if not self.hidden:
                parameter.require_text(value)
            parameter.require_choice(getattr(self, name))

    @property
    def coloured(self) -> bool:
        """Whether the output is coloured: on request, or on a terminal with colours."""
        return self.output is None and is_colour_wanted(self.color)

    def run(self) -> Answer:
        """Run the verb and return its answer. Raises NpuprofError."""
        raise NotImplementedError


def imply_values(verb: type[Verb], arguments: Sequence[str]) -> list[str]:
    """Return the arguments, with the implied value of each option that has no other."""
    implied = list(arguments)
    for index, argument in enumerate(arguments):
        parameter = verb.spellings.get(argument)
        has_value = index + 1 < len(arguments) and not arguments[index + 1].startswith("-")
        if parameter is not None and parameter.implied and not has_value:
            implied[index] = f"{argument}={parameter.implied}"
    return implied


def parse_plain_arguments(verb: type[Verb], arguments: Sequence[str]) -> Fields | None:
    """Return the parameters of a verb, by name, parsed from plain arguments.

    None if the arguments need the framework's parser.
    """
    by_flag = {
        spelling: name
        for name, parameter in verb.parameters.items()
        for spelling in parameter.flags
    }
    values = {}
    positional: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            positional += rest
            break
        spelling, equals, text = split_flag(argument)
        name = by_flag.get(spelling)
        if name is None:
            # an unknown flag, or one with its value attached, such as -n3
            if argument.startswith("-") and argument != "-":
                return None
            positional.append(argument)
        elif verb.parameters[name].kind == "flag":
            if equals:
                return None
            values[name] = True
        else:
            value = text if equals else next(rest, None)
            # a flag in place of the value is a usage error, which the framework reports
            if value is None or (not equals and value.startswith("-") and value != "-"):
                return None
            if not _set_value(verb.parameters[name], name, value, values):
                return None
    return values if _set_positional(verb, positional, values) else None


def split_flag(argument: str) -> tuple[str, str, str]:
    """Return the flag, the equals sign and the value of ``--flag=value``; other arguments whole."""
    return argument.partition("=") if argument.startswith("--") else (argument, "", "")


def _set_value(parameter: Parameter, name: str, value: str, values: Fields) -> bool:
    """Set a parameter in ``values``; return whether its value is plain."""
    if parameter.kind == "many":
        values.setdefault(name, []).append(value)
        return True
    if name in values:
        return False  # the framework's parser may reject it
    if parameter.kind == "number":
        if not has_only_digits(value) or len(value) > 9 or int(value) < (parameter.least or 0):
            return False
        values[name] = int(value)
    else:
        values[name] = value
    return True


def _set_positional(verb: type[Verb], positional: list[str], values: Fields) -> bool:
    """Set the positional parameters; return whether all arguments fit and none is missing."""
    rest = list(positional)
    for name, parameter in verb.parameters.items():
        if parameter.kind == "arguments":
            values[name], rest = rest, []
        elif parameter.kind == "argument" and rest:
            values[name] = rest.pop(0)
        # the framework names the missing argument
        if parameter.required and not values.get(name):
            return False
    return not rest


def load_verb(arguments: Sequence[str]) -> LoadedVerb | None:
    """Return the verb that a command line names; None if there is no such verb."""
    module = commands.__name__
    for length, name in enumerate(arguments[:2], 1):
        # only such names can be modules: others must not reach import_module
        if not name.isascii() or not name.replace("-", "").isalpha() or name != name.lower():
            return None
        module = f"{module}.{name.replace('-', '_')}"
        verb = _load_module(module)
        if verb is not None:
            return LoadedVerb(tuple(arguments[:length]), verb, list(arguments[length:]))
    return None


def _load_module(name: str) -> type[Verb] | None:
    """Return the verb of a module; ``import`` is in ``import_``, as it is a Python keyword."""
    for module in (name, f"{name}_"):
        try:
            loaded = import_module(module)
        except ModuleNotFoundError as error:
            # a missing dependency of a verb is an error; only a missing verb is not
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise
            continue
        verb: type[Verb] | None = getattr(loaded, "VERB", None)
        return verb
    return None


def list_verb_names() -> Iterator[tuple[Names, str]]:
    """Yield the names of all visible verbs, by group, with the first line of their help.

    No verb is imported.
    """
    for indexed in _load_index():
        if not indexed.hidden:
            yield indexed.names, indexed.purpose


def list_groups() -> dict[str, list[str]]:
    """Return the first words of the visible verbs by the heading of their group."""
    headings = [*GROUPS.values()]
    return group_pairs(
        (headings[indexed.group], indexed.names[0])
        for indexed in _load_index()
        if not indexed.hidden
    )


def list_verbs() -> Iterator[tuple[Names, type[Verb]]]:
    """Yield all verbs with their names, by group."""
    for indexed in _load_index():
        loaded = load_verb(indexed.names)
        if loaded is not None:
            yield loaded.names, loaded.verb


def list_families() -> dict[str, str]:
    """Return the descriptions that two-word verbs share, by their first words."""
    names = {
        names[0]: f"{commands.__name__}.{names[0]}"
        for names, _ in list_verb_names()
        if len(names) > 1
    }
    return {name: str(import_module(package).__doc__) for name, package in names.items()}


def _load_index() -> list[IndexedVerb]:
    """Return the index of all verbs, sorted by group and name."""
    return list(starmap(IndexedVerb, load_built_part("commands", "verbs")))
