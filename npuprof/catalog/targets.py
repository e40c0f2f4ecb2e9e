"""The render targets, the values of ``--to``, by their index; and what their surfaces restrict."""

from __future__ import annotations

from functools import cache

from npuprof.catalog import find_option, load_built_part
from npuprof.model import Record
from npuprof.system import load_built_part as load_part_of


class TargetRow(Record):
    """The fields of a ``renderers.Target`` that are indexed, and its module of ``renderers``.

    ``surface`` is named as in ``Option.spelling``; targets without a surface have none.
    """

    module: str
    surface: str
    sections: tuple[str, ...]


@cache
def load_target_index() -> dict[str, TargetRow]:
    """Return the render targets by name, in the order of their places.

    A command imports only the renderer that it needs.
    """
    return {name: TargetRow(*row) for name, row in load_part_of("renderers", "targets").items()}


@cache
def list_target_names() -> tuple[str, ...]:
    """Return the valid values of ``match = { target = ...

    }``: all exports of the environment are one target.
    """
    return (*load_target_index(), "env")


def find_surface(target: str | None) -> str:
    """Return the surface of a target; an empty string if it has none, and for ``env`` and None."""
    row = load_target_index().get(target or "")
    return row.surface if row else ""


def find_first_release(surface: str) -> int:
    """Return the index of the first release in which a surface may read an option."""
    first: dict[str, int] = load_built_part("axes")["first"]
    return first.get(surface, 0)


@cache
def list_narrow_targets(option: str) -> list[str]:
    """Return the targets that accept other values of an option than a session."""
    record = find_option(option)
    surfaces = (
        {*record.surface_values, *record.surface_range, *record.surface_states} if record else ()
    )
    return [name for name, row in load_target_index().items() if row.surface in surfaces]
