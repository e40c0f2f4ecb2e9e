"""The registry of verbs is the folder ``commands``: a module that has a ``VERB`` is one, and its name is the verb's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module

from npuprof import commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.commands.framework.verb import Verb

#: A verb by its words: ``("show",)``, ``("git", "install")``.
Names = tuple[str, ...]


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
    from npuprof.commands.framework.verb import GROUPS

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
    import re

    from npuprof.commands.framework.verb import GROUPS

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
