"""Which adapters may have written what is there of a process: the early ones have the same titles, and other defaults."""

from __future__ import annotations

from functools import cache

from npuprof.catalog.wire import NO_KEY, Wire, load_generations, load_wires
from npuprof.runs.evidence import Epoch, Process

#: How many keys that an adapter always writes a log lacks at least that is not of it: a single line may have been lost.
_ENOUGH = 2


def find_names(process: Process, epoch: Epoch) -> tuple[str, ...]:
    """Return the names of the early adapters that it may have been, none where it was the newest, or nothing tells."""
    generation = next((one for one in load_generations() if one.name == process.generation), None)
    if generation is None:
        is_single = epoch.has("single init", "single session") and not epoch.has("init", "session")
        return tuple(one.name for one in load_generations() if one.single) if is_single else ()
    if not generation.also:
        return ()
    names = (generation.name, *generation.also)
    maps = [(stage, found) for one in process.epochs for stage in ("init", "session") for found in one.maps.get(stage, ())]
    keys = {key for _, found in maps for key in found.values}
    wires = load_wires()
    knowing = [_list_writing(wire) for wire in wires.values() if not keys.isdisjoint(wire.init.keys() | wire.session.keys())]
    whole = {stage for stage, found in maps if found.whole and not found.engine}
    if process.pid is not None:  # the logger of TensorFlow names neither process nor thread
        names = tuple(name for name in names if (name >= generation.threads_since) == process.threaded)
    known = tuple(name for name in names if all(name in one for one in knowing))
    return tuple(name for name in known if len(_list_always(name, frozenset(whole)) - keys) < _ENOUGH) or known


def tell_names(process: Process) -> str:
    """Return which adapter it was, or the oldest and the newest that it may have been; empty where nothing tells."""
    if not process.epochs or process.tf2:
        return process.generation
    found = [find_names(process, epoch) for epoch in process.epochs]
    names = sorted(set.intersection(*map(set, found)) or set().union(*found))
    return " to ".join(dict.fromkeys((names[0], names[-1]))) if names else process.generation


def hands_on_nothing(wire: Wire, process: Process, epoch: Epoch) -> bool:
    """Return whether none of the adapters that it may have been tells anybody what was set: the text that stands there is never another."""
    names = find_names(process, epoch) or ((process.generation,) if process.generation else ())
    return bool(names) and not any(name in wire.logged_by for name in names)


@cache
def _list_writing(wire: Wire) -> frozenset[str]:
    """Return the adapters that write the keys of an option: those, too, that write them for one that needs it."""
    needing = (one.logged_by for one in load_wires().values() if wire.name in one.needs)
    return frozenset(wire.logged_by).union(*needing)


@cache
def _list_always(name: str, stages: frozenset[str]) -> frozenset[str]:
    """Return the keys of the engine that the blocks of these stages have whatever is set, where an adapter wrote them."""
    wires = [wire for wire in load_wires().values() if name in wire.logged_by]
    texts = [item for wire in wires for stage in stages for item in wire.keys(stage).items()]
    return frozenset(key for key, unset in texts if unset != NO_KEY and key.startswith("ge."))
