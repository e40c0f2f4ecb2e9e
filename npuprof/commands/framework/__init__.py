"""What a verb is, and where verbs are found: a class whose fields are its parameters, declared as data, and whose body returns an answer.

A declaration imports no command-line framework, which would cost more than most verbs do: the plain form of a command
is parsed from the declaration, and the framework's commands are made from the same one where help, completion or a
mistake asks for them. The registry of verbs is the folder ``commands``: a module that has a ``VERB`` is one, and its name is the verb's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from npuprof import commands
from npuprof.model import Finding, NpuprofError, Record, did_you_mean
from npuprof.report import Answer
from npuprof.report.output import is_colour_wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    Choices = Sequence[str] | Callable[[], Iterable[str]]

#: A verb by its words: ``("show",)``, ``("git", "install")``.
Names = tuple[str, ...]

#: The groups of verbs in the order of the help, with their headings.
GROUPS = {
    "presets": "Presets", "output": "Output", "versions": "Versions", "team": "Team", "scripts": "Scripts", "runs": "Runs",
    "reference": "Reference",
}  # fmt: skip


class Parameter(Record):
    """One parameter of a verb.

    ``kind`` is ``argument`` (``arguments`` takes all words that are left), ``text``, ``many`` (a text that may be given
    again), ``number`` or ``flag``; ``flags`` are its spellings, ``metavar`` is what the help calls its value. ``choices``
    are the values it may have, or a function that knows them; ``{choices}`` in the help lists them, and ``noun`` is
    what an error calls a value that is none of them. ``least`` bounds a number.
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

    def list_choices(self) -> tuple[str, ...]:
        """Return the values it may have; none where it may have any."""
        return tuple(self.choices() if callable(self.choices) else self.choices)

    def describe(self) -> str:
        """Return the help with the choices filled in."""
        if "{choices}" not in self.help:
            return self.help
        *others, last = self.list_choices()
        return self.help.replace("{choices}", f"{', '.join(others)} or {last}" if others else last)

    def copy_default(self) -> Any:
        """Return the default, a new list where it is one."""
        return [] if self.kind in ("many", "arguments") else self.default

    def require_text(self, value: Any) -> None:
        """Raise NpuprofError (NP902) if an argument is empty, as an unset shell variable makes it."""
        if self.kind == "arguments" and self.metavar.startswith("CMD"):
            return
        if value == "" or (isinstance(value, list) and "" in value):
            shown = self.flags[0] if self.flags else self.metavar.rstrip(".")
            hint = "look at what the shell made of a variable"
            if self.flags:
                hint = f"give {shown} {self.metavar.rstrip('.')}" + ("" if self.required else ", or leave it out")
            raise NpuprofError([Finding("NP902", f"{shown} is empty", "An empty text names nothing.", hint)])

    def require_choice(self, value: Any) -> None:
        """Raise NpuprofError (NP902) if a value is none of the choices."""
        if value == self.default or not self.choices:
            return
        known = self.list_choices()
        if value not in known:
            what = f"unknown {self.noun} {value!r}" if self.noun else f"{self.flags[0]} {value!r} is unknown"
            more = "; npuprof help targets says what each is for" if self.noun == "target" else ""
            raise NpuprofError([Finding("NP902", what, "", did_you_mean(value, known, f"known are {', '.join(known)}{more}"))])


def argument(metavar: str, text: str, default: Any = None, required: bool = True) -> Any:
    """Declare a parameter that is known by its place."""
    return Parameter("argument", text, (), metavar, default, required and default is None)


def arguments(metavar: str, text: str, required: bool = False) -> Any:
    """Declare a parameter that takes all words that are left."""
    return Parameter("arguments", text, (), metavar, None, required)


def option(*flags: str, metavar: str, text: str, default: str | None = None, choices: Choices = (), noun: str = "") -> Any:
    """Declare a parameter with a flag and a value."""
    return Parameter("text", text, flags, metavar, default, False, choices, noun)


def required_option(*flags: str, metavar: str, text: str) -> Any:
    """Declare a parameter with a flag and a value that has to be given."""
    return Parameter("text", text, flags, metavar, None, True)


def many(*flags: str, metavar: str, text: str) -> Any:
    """Declare a parameter with a flag and a value that may be given again."""
    return Parameter("many", text, flags, metavar)


def number(*flags: str, metavar: str, text: str, least: int | None = None) -> Any:
    """Declare a parameter with a flag and a whole number, ``least`` or more."""
    return Parameter("number", text, flags, metavar, least=least)


def flag(*flags: str, text: str) -> Any:
    """Declare a parameter that is there or not."""
    return Parameter("flag", text, flags, "", False)


class Verb:
    """A verb of the command line; its module names it, its docstring is its help.

    ``group`` is where the help lists it. ``hidden`` verbs are called by programs, ``usage_hint`` is said beside an
    error of usage, ``takes_any_word`` lets words that look like flags be arguments. On a terminal the text of ``prose`` is
    wrapped at the ends of words.
    """

    parameters: ClassVar[dict[str, Parameter]] = {}
    group: ClassVar[str] = ""
    hidden: ClassVar[bool] = False
    usage_hint: ClassVar[str] = ""
    takes_any_word: ClassVar[bool] = False
    prose: ClassVar[bool] = False

    format: str = ""
    output: str | None = None
    color: str = "never"

    def __init_subclass__(cls) -> None:
        declared = {name: value for name, value in vars(cls).items() if isinstance(value, Parameter)}
        cls.parameters = {**cls.parameters, **declared}

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Take what was given; what was not has its default. Raises NpuprofError (NP902) for a value that is no choice."""
        for name, parameter in self.parameters.items():
            value = given.get(name)
            setattr(self, name, parameter.copy_default() if value is None else value)
        for name, parameter in self.parameters.items():
            if not self.hidden:
                parameter.require_text(given.get(name))
            parameter.require_choice(getattr(self, name))

    @property
    def coloured(self) -> bool:
        """Whether the answer goes to a terminal that shows colours, or colours were asked for."""
        return self.output is None and is_colour_wanted(self.color)

    def run(self) -> Answer:
        """Do what the verb is for. Raises NpuprofError where it could not answer."""
        raise NotImplementedError


def parse_plain_words(verb: type[Verb], words: Sequence[str]) -> dict[str, Any] | None:
    """Return what words give to the parameters of a verb, None where they are unusual and the framework has to look."""
    by_flag = {spelling: name for name, parameter in verb.parameters.items() for spelling in parameter.flags}
    given: dict[str, Any] = {}
    places: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            places += rest
            break
        spelling, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        name = by_flag.get(spelling)
        if name is None:
            if word.startswith("-") and word != "-":
                return None
            places.append(word)
        elif verb.parameters[name].kind == "flag":
            if equals:
                return None
            given[name] = True
        else:
            taken = value if equals else next(rest, None)
            if taken is None or (not equals and taken.startswith("-") and taken != "-"):
                return None
            if not _take_value(verb.parameters[name], name, taken, given):
                return None
    return given if _take_places(verb, places, given) else None


def _take_value(parameter: Parameter, name: str, value: str, given: dict[str, Any]) -> bool:
    """Give a value to a parameter; return whether it is a plain one."""
    if parameter.kind == "many":
        given.setdefault(name, []).append(value)
        return True
    if name in given:
        return False  # it may be refused
    if parameter.kind == "number":
        if not (value.isascii() and value.isdigit()) or len(value) > 9 or int(value) < (parameter.least or 0):
            return False
        given[name] = int(value)
    else:
        given[name] = value
    return True


def _take_places(verb: type[Verb], places: list[str], given: dict[str, Any]) -> bool:
    """Give words to the parameters that are known by their places; return whether all fit and none is missing."""
    left = list(places)
    for name, parameter in verb.parameters.items():
        if parameter.kind == "arguments":
            given[name], left = left, []
        elif parameter.kind == "argument" and left:
            given[name] = left.pop(0)
        if parameter.required and not given.get(name):
            return False
    return not left


def load_verb(words: Sequence[str]) -> tuple[Names, type[Verb], list[str]] | None:
    """Return the verb that a command line names, its names, and the words after them; None where there is no such verb."""
    module = commands.__name__
    for place, word in enumerate(words[:2]):
        if not word.isascii() or not word.replace("-", "").isalpha() or word != word.lower():
            return None
        module = f"{module}.{word.replace('-', '_')}"
        found = _load_module(module)
        if found is not None:
            return tuple(words[: place + 1]), found, list(words[place + 1 :])
    return None


def _load_module(name: str) -> type[Verb] | None:
    """Return the verb of a module; ``import`` is in ``import_``, since Python keeps the word for itself."""
    for module in (name, f"{name}_"):
        try:
            loaded = import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise
            continue
        verb: type[Verb] | None = getattr(loaded, "VERB", None)
        return verb
    return None


def list_verb_names() -> Iterator[tuple[Names, str]]:
    """Yield the names of all verbs that users call, group by group, with the first line of their help.

    They are read in their files, and none is imported.
    """
    for _, names, purpose, hidden in _read_verbs():
        if not hidden:
            yield names, purpose


def list_groups() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the heading of each group of verbs, with the first words of its verbs."""
    words: dict[int, dict[str, None]] = {}
    for place, names, _, _ in _read_verbs():
        words.setdefault(place, {})[names[0]] = None
    yield from ((heading, tuple(words.get(place, ()))) for place, heading in enumerate(GROUPS.values()))


def list_verbs() -> Iterator[tuple[Names, type[Verb]]]:
    """Yield all verbs with their names, group by group."""
    for _, names, _, _ in _read_verbs():
        found = load_verb(names)
        if found is not None:
            yield names, found[1]


def describe_family(name: str) -> str:
    """Return what verbs of two words have in common, by the first of them."""
    return str(import_module(f"{commands.__name__}.{name}").__doc__)


@cache
def _read_verbs() -> list[tuple[int, Names, str, bool]]:
    """Return the place of its group, the names, the first line of the help of each verb, and whether users do not call it, sorted."""
    verbs = []
    top = os.path.dirname(commands.__file__)
    for below in ("", "git", "source"):
        for name in sorted(os.listdir(os.path.join(top, below))):
            if not name.endswith(".py"):
                continue
            with open(os.path.join(top, below, name), encoding="utf-8") as file:
                text = file.read()
            if "\nVERB = " in text:
                purpose = re.search(r'^class \w+\([\w.]*Verb\):\n    """(.*?)(?:"""|\n)', text, re.MULTILINE)
                group = re.search(r'^    group = "(\w+)"$', text, re.MULTILINE)
                place = [*GROUPS].index(group[1]) if group and group[1] in GROUPS else len(GROUPS)
                word = name.removesuffix(".py").rstrip("_").replace("_", "-")
                verbs.append((place, (below, word) if below else (word,), purpose[1] if purpose else "", "\n    hidden = True" in text))
    return sorted(verbs)
