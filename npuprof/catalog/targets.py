"""The names of the render targets: the values of ``--to``, and of ``target`` in an override's match."""

from __future__ import annotations

from npuprof.catalog import load_built_part

_BUILT = load_built_part("axes")["targets"]
_ROWS: dict[str, tuple[str, str]] = _BUILT["rows"]

#: The module of ``renderers`` for each target, collected at build time so that a command imports only the one it needs.
MODULES = {name: module for name, (module, _) in _ROWS.items()}

#: Valid values of ``match = { target = ... }``: all exports of the environment are one target.
NAMES = (*MODULES, "env")

#: The surface of each target, as in ``spelling``; empty for the session's surface and for targets without one.
SURFACES = {name: surface for name, (_, surface) in _ROWS.items()}

#: The index of the first release in which each surface may read an option; surfaces that exist in all releases are omitted.
FIRST_RELEASES: dict[str, int] = _BUILT["first"]

#: The targets that accept other values of an option than a session, by option name.
NARROW: dict[str, tuple[str, ...]] = _BUILT["narrow"]
