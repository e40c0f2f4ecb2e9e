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
    """Return the index: index of the group, words, first help line and hidden flag of each verb,
    sorted.

    The packages below ``commands`` have the verbs of two words.
    """
    top, groups = commands.__name__, [*framework.GROUPS, ""]
    verbs = []
    for family in (
        "",
        *(f".{name}" for _, name, is_package in iter_modules(commands.__path__) if is_package),
    ):
        if (
            f"{top}{family}" == framework.__name__
        ):  # needs Typer, which the environment that builds wheels does not have
            continue
        for module, verb in import_attributes(f"{top}{family}", "VERB"):
            names = f"{family}.{module}".strip("._").replace("_", "-").split(".")
            verbs.append(
                (
                    groups.index(verb.group),
                    tuple(names),
                    (verb.__doc__ or "").partition("\n")[0],
                    verb.hidden,
                )
            )
    return {"verbs": sorted(verbs)}
