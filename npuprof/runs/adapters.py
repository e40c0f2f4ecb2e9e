"""Which adapters may have written what is there of a process: the early ones have the same titles, and other defaults."""

from __future__ import annotations

from npuprof.catalog.wire import load_generations, load_wires
from npuprof.runs.evidence import Epoch, Process


def find_names(process: Process, epoch: Epoch) -> tuple[str, ...]:
    """Return the names of the early adapters that it may have been, none where it was the newest, or nothing tells."""
    generation = next((one for one in load_generations() if one.name == process.generation), None)
    if generation is None:
        is_single = epoch.has("single init", "single session") and not epoch.has("init", "session")
        return tuple(one.name for one in load_generations() if one.single) if is_single else ()
    if not generation.also:
        return ()
    names = (generation.name, *generation.also)
    keys = {key for one in process.epochs for stage in ("init", "session") for found in one.maps.get(stage, ()) for key in found.values}
    knowing = [wire.logged_by for wire in load_wires().values() if not keys.isdisjoint(wire.init.keys() | wire.session.keys())]
    return tuple(
        name for name in names if (name >= generation.threads_since) == process.threaded and all(name in known for known in knowing)
    )
