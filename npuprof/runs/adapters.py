"""Which releases of the adapter may have written the log of a process, and what follows from a missing or empty text of theirs.

Early adapters share titles and differ in defaults. An option that came in another field of the map than the adapter reads is 0, false or
an empty text there. Of a text, empty may mean either; a number or a switch has a text whatever came, and none only where nothing did.
"""

from __future__ import annotations

from functools import cache

from npuprof.catalog.wire import NO_KEY, Wire, load_generations, load_wires
from npuprof.runs.evidence import Epoch, Process

#: How many keys that an adapter always writes a log lacks at least that is not of it: a single line may have been lost.
_ENOUGH = 2


def find_names(process: Process, epoch: Epoch) -> tuple[str, ...]:
    """Return the early adapters that may have written an epoch; none if it was the newest, or nothing identifies it."""
    generation = next((candidate for candidate in load_generations() if candidate.name == process.generation), None)
    if generation is None:
        is_single = epoch.has("single init", "single session") and not epoch.has("init", "session")
        return tuple(candidate.name for candidate in load_generations() if candidate.single) if is_single else ()
    if not generation.also:
        return ()
    names = (generation.name, *generation.also)
    maps = [(stage, block) for any_epoch in process.epochs for stage in ("init", "session") for block in any_epoch.maps.get(stage, ())]
    keys = {key for _, block in maps for key in block.values}
    wires = load_wires()
    knowing = [_list_writing(wire) for wire in wires.values() if not keys.isdisjoint(wire.init.keys() | wire.session.keys())]
    whole_stages = {stage for stage, block in maps if block.whole and not block.engine}
    if process.pid is not None:  # the logger of TensorFlow names neither process nor thread
        names = tuple(name for name in names if (name >= generation.threads_since) == process.threaded)
    known = tuple(name for name in names if all(name in writing for writing in knowing))
    return tuple(name for name in known if len(_list_always(name, frozenset(whole_stages)) - keys) < _ENOUGH) or known


def tell_names(process: Process) -> str:
    """Return the adapter of a process, or the oldest and the newest candidate; empty if nothing identifies it."""
    if not process.epochs or process.tf2:
        return process.generation
    by_epoch = [find_names(process, epoch) for epoch in process.epochs]
    names = sorted(set.intersection(*map(set, by_epoch)) or set().union(*by_epoch))
    return " to ".join(dict.fromkeys((names[0], names[-1]))) if names else process.generation


def hands_on_nothing(wire: Wire, process: Process, epoch: Epoch) -> bool:
    """Return whether no candidate adapter passes the option on: its text in the log is the same whatever was set."""
    names = find_names(process, epoch) or ((process.generation,) if process.generation else ())
    return bool(names) and not any(name in wire.logged_by for name in names)


@cache
def _list_writing(wire: Wire) -> frozenset[str]:
    """Return the adapters that write the keys of an option: those, too, that write them for one that needs it."""
    needing = (dependent.logged_by for dependent in load_wires().values() if wire.name in dependent.needs)
    return frozenset(wire.logged_by).union(*needing)


@cache
def _list_always(name: str, stages: frozenset[str]) -> frozenset[str]:
    """Return the engine keys that the blocks of these stages of an adapter always have."""
    wires = [wire for wire in load_wires().values() if name in wire.logged_by]
    texts = [item for wire in wires for stage in stages for item in wire.keys(stage).items()]
    return frozenset(key for key, unset in texts if unset != NO_KEY and key.startswith("ge."))


EMPTY = "as where nobody set it: the key never came, or came empty, or as another type"


#: Forms of which every value has a text.
_ALWAYS_WRITTEN = frozenset(("flag", "number", "mode", "word"))


def shows_absence(wire: Wire, process: Process) -> bool:
    """Return whether an empty text, or a map without the key, shows that no value arrived.

    Of a text, empty may be the value; what only the engine is given may have come too late; early adapters do not show the beginning.
    """
    is_newest = process.pid is not None and process.generation == load_generations()[0].name
    return is_newest and wire.form in _ALWAYS_WRITTEN and not wire.key_forms and bool(wire.session or (wire.graph and not wire.init))


#: What would show the blocks of the adapter next time, what keeps the beginning of a log, what dumps graphs.
BLOCKS, KEEP, DUMPS = "ASCEND_MODULE_LOG_LEVEL=FMK=1", "ASCEND_HOST_LOG_FILE_NUM=1000", "PRINT_MODEL=1"


def explain_missing(wire: Wire, epoch: Epoch, process: Process) -> str:
    """Return why an epoch has no line of an option, empty where nothing says why."""
    if wire.init and epoch.late and not epoch.has("init"):
        return f"{epoch.late}; its start is not in the log"
    if (epoch.has("init") and wire.init and not wire.lines) or (epoch.has("session") and wire.session):
        return "the block has no line of it: it never came, or the line was lost"
    return ""


def find_teller(wire: Wire, process: Process) -> str:
    """Return the variable that makes the next run log the option."""
    if wire.proves in ("dump", "nothing"):
        return DUMPS if wire.node else ""
    if any(epoch.has("init", "session") for epoch in process.epochs):
        has = any(epoch.has("init") for epoch in process.epochs) if wire.init else True
        return DUMPS if has else KEEP
    if any(epoch.has("single init") for epoch in process.epochs):  # the start is there: an adapter that writes no blocks
        return DUMPS if wire.node else ""
    return KEEP if process.informed else BLOCKS
