"""The names of the render targets: what ``--to`` takes, and what an override may match."""

from __future__ import annotations

from npuprof.catalog import load_built_part

_BUILT = load_built_part("targets")
_ROWS: dict[str, tuple[str, str]] = _BUILT["rows"]

#: Which module of ``renderers`` holds a target, gathered when the built form is made: a command imports only the module it needs.
MODULES = {name: module for name, (module, _) in _ROWS.items()}

#: What ``match = { target = ... }`` may name: the exports of the environment are one target.
NAMES = (*MODULES, "env")

#: The surface that a target writes for, which is what a ``spelling`` names; empty where it is the session's, or none.
SURFACES = {name: surface for name, (_, surface) in _ROWS.items()}

#: The place of the first release in which an option may be read on a surface; surfaces that are as old as all releases are not in it.
FIRST_RELEASES: dict[str, int] = _BUILT["first"]

#: The targets that take other values of an option than a session does, by the names of such options.
NARROW: dict[str, tuple[str, ...]] = _BUILT["narrow"]
