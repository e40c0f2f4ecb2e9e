"""The index of the verbs: help and completion list them without importing them.

Wheels do not contain this module.
"""

from __future__ import annotations

from pkgutil import iter_modules
from typing import Any

from npuprof import commands
from npuprof.commands import framework
from npuprof.system.checkout import import_attributes


def build_parts() -> dict[str, Any]:
    """Return the fields of ``IndexedVerb`` for each verb, sorted.

    The packages below ``commands`` have the verbs of two words.
    """
    top = commands.__name__
    groups = [*framework.GROUPS, ""]
    packages = [f".{module.name}" for module in iter_modules(commands.__path__) if module.ispkg]
    # The framework needs Typer, which the environment that builds wheels does not have.
    packages.remove(framework.__name__.removeprefix(top))
    verbs = []
    for family in ("", *packages):
        for module_name, verb in import_attributes(f"{top}{family}", "VERB"):
            names = f"{family}.{module_name}".strip("._").replace("_", "-").split(".")
            purpose = (verb.__doc__ or "").partition("\n")[0]
            verbs.append((groups.index(verb.group), tuple(names), purpose, verb.hidden))
    return {"verbs": sorted(verbs)}
