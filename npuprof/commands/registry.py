"""The registry of verbs is this folder: a module that has a ``VERB`` is one, and its name is the verb's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.commands.verb import Verb

#: A verb by its words: ``("show",)``, ``("git", "install")``.
Names = tuple[str, ...]


def load_verb(words: Sequence[str]) -> tuple[Names, type[Verb], list[str]] | None:
    """Return the verb that a command line names, its names, and the words after them; None where there is no such verb."""
    module = __package__
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
    """Yield the names of all verbs that users call, with the first line of their help: read in their files, none is imported."""
    import re

    top = os.path.dirname(__file__)
    for below in ("", "git", "source"):
        for name in sorted(os.listdir(os.path.join(top, below))):
            if not name.endswith(".py"):
                continue
            with open(os.path.join(top, below, name), encoding="utf-8") as file:
                text = file.read()
            if "\nVERB = " in text and "\n    hidden = True" not in text:
                purpose = re.search(r'^class \w+\([\w.]*Verb\):\n    """(.*?)(?:"""|\n)', text, re.MULTILINE)
                word = name.removesuffix(".py").rstrip("_").replace("_", "-")
                yield (below, word) if below else (word,), purpose[1] if purpose else ""


def list_verbs() -> Iterator[tuple[Names, type[Verb]]]:
    """Yield all verbs with their names, group by group."""
    from pkgutil import walk_packages

    from npuprof.commands.verb import GROUPS

    found: list[tuple[int, Names, type[Verb]]] = []
    for module in walk_packages([os.path.dirname(__file__)], f"{__package__}."):
        verb = getattr(import_module(module.name), "VERB", None)
        if verb is not None:
            names = tuple(part.rstrip("_").replace("_", "-") for part in module.name.split(".")[2:])
            found.append((GROUPS.index(verb.group) if verb.group in GROUPS else len(GROUPS), names, verb))
    for _, names, verb in sorted(found, key=lambda row: row[:2]):
        yield names, verb
