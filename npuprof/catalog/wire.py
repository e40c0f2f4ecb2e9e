"""The log and dump output of adapters and the graph engine for each option, from ``wire.toml``.

That file documents the fields.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from npuprof.catalog import load_built_part
from npuprof.model import Record, TomlTable

#: The stages with separate maps, in the order in which the engine receives them.
STAGES = ("init", "session", "graph")
#: The text of a missing key.
NO_KEY = "-"
_MODES = {"true": "1", "false": "0", "auto": "2"}


class Generation(Record):
    """Adapters that write the same lines; the fields are those of ``wire.toml``."""

    name: str
    source: tuple[str, ...]
    also: tuple[str, ...] = ()
    init: str = ""
    session: str = ""
    graph: str = ""
    per: str = "start"
    threads_since: str = ""
    single: bool = False
    tf2: bool = False
    maps: int = 2


class Wire(Record):
    """The output for one option; the fields are those of ``wire.toml``."""

    name: str
    proves: str
    form: str
    source: tuple[str, ...]
    key_forms: dict[str, str] = {}
    init: dict[str, str] = {}
    session: dict[str, str] = {}
    graph: dict[str, str] = {}
    unset: str | None = None
    unset_in: dict[str, str] = {}
    lines: dict[str, str] = {}
    single: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    operator: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    overridden_by: str = ""
    any_operator: str = ""
    scenarios: dict[str, str] = {}
    forced: str = ""
    forced_by: dict[str, str] = {}
    logged_by: tuple[str, ...] = ()
    tf2: dict[str, str] = {}
    tf2_logged_by: tuple[str, ...] = ()

    def keys(self, stage: str) -> dict[str, str]:
        """Return the keys of a stage, each with its text if the option is not set."""
        texts: dict[str, str] = getattr(self, stage)
        return texts


@cache
def load_generations() -> tuple[Generation, ...]:
    """Return the generations of the adapter, newest first."""
    return tuple(Generation(**row) for row in load_built_part("wire")["generation"])


@cache
def load_wires() -> dict[str, Wire]:
    """Return the output of all options, by name."""
    rows: dict[str, TomlTable] = load_built_part("wire")
    return {name: Wire(name, **row) for name, row in rows.items() if name != "generation"}


def find_wire(name: str) -> Wire | None:
    """Return the output of an option, None if unknown."""
    return load_wires().get(name)


def write_text(form: str, value: Any) -> str | None:
    """Return a value in an output form, None if it has none."""
    if form in ("text", "folder"):
        return value if isinstance(value, str) else None
    if form == "flag":
        return str(int(value)) if isinstance(value, bool) else None
    if form == "word":
        return str(value).lower() if isinstance(value, bool) else None
    if form == "mode":
        return _MODES.get(value) if isinstance(value, str) else None
    return str(value) if type(value) is int else None


@cache
def list_standing_keys(generation: str, stage: str) -> tuple[str, ...]:
    """Return the keys that a stage's block always has, in byte order.

    If several adapters share the title of a block, the keys are common to all of them; early ones
    have only the engine's keys.
    """
    generation_row = next(row for row in load_generations() if row.name == generation)
    names = {generation_row.name, *generation_row.also}
    keys = {
        key
        for wire in load_wires().values()
        if names <= set(wire.logged_by)
        for key, unset in wire.keys(stage).items()
        if unset != NO_KEY and (not generation_row.also or key.startswith("ge."))
    }
    return tuple(sorted(keys, key=str.encode))


@cache
def list_tf2_standing_keys(generation: str) -> dict[str, bool]:
    """Return the keys that the block of a TensorFlow 2 adapter always has, in byte order.

    The value is set if only sessions have the key, so that only adapters with a single map write it
    there.
    """
    row = next(row for row in load_generations() if row.name == generation)
    names = {name.removeprefix("TF 2 ") for name in (row.name, *row.also)}
    stages = ("global", "session") if row.maps == 1 else ("global",)
    keys = {}
    for wire in load_wires().values():
        stage = next((stage for stage in stages if stage in wire.tf2), "")
        if stage and "unset" in wire.tf2 and names <= set(wire.tf2_logged_by):
            keys[wire.tf2[stage]] = stage == "session"
    return dict(sorted(keys.items()))


@cache
def load_known_keys() -> dict[str, frozenset[str]]:
    """Return the option keys of each stage.

    ``tf1`` are those that TF 2 never sends.
    """
    wires = load_wires().values()
    known = {
        stage: frozenset(key for wire in wires for key in wire.keys(stage)) for stage in STAGES
    }
    sent = {wire.tf2.get(stage_name) for wire in wires for stage_name in ("global", "session")}
    known["tf1"] = (known["init"] | known["session"]) - sent
    return known


@cache
def load_single_names() -> dict[str, str]:
    """Return the option for each name in the single lines of early adapters."""
    return {name: wire.name for wire in load_wires().values() for name in (wire.name, *wire.single)}


@cache
def load_line_fields(stage: str) -> frozenset[str]:
    """Return the names of options in the fields of a line."""
    return frozenset(wire.lines[stage] for wire in load_wires().values() if stage in wire.lines)


@cache
def load_attribute_names() -> frozenset[str]:
    """Return the graph dump attributes that contain an option."""
    return frozenset(
        name for wire in load_wires().values() for name in (*wire.node, *wire.operator)
    )
