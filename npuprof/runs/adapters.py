"""The adapter releases that may have written a log, and what missing or empty texts mean there.

Early adapters share titles and differ in defaults. If an option arrives in the wrong field of the
map, they log 0, false or an empty text. For texts, empty is ambiguous; numbers and switches always
have a text if they were set.
"""

from __future__ import annotations

from npuprof.catalog.wire import Wire, load_generations
from npuprof.runs.evidence import Epoch, Process


def find_names(process: Process, epoch: Epoch) -> tuple[str, ...]:
    """Return the early adapters that may have written an epoch.

    Empty for the newest, or if nothing identifies it.
    """
    generation = process.generation
    if generation is None:
        if not epoch.has("single init", "single session") or epoch.has("init", "session"):
            return ()
        # single lines without blocks: several adapters write them alike
        return tuple(candidate.name for candidate in load_generations() if candidate.single)
    if not generation.also:
        return ()
    names = (generation.name, *generation.also)
    if process.pid is None:  # the TensorFlow logger names neither process nor thread
        return names
    return tuple(name for name in names if (name >= generation.threads_since) == process.threaded)


def describe_names(process: Process) -> str:
    """Return the adapter of a process, or the oldest and newest candidate.

    Empty if nothing identifies it.
    """
    candidates = []
    if process.epochs and not process.tf2:
        candidates = sorted(find_names(process, process.epochs[-1]))
    if candidates:
        return " to ".join(dict.fromkeys((candidates[0], candidates[-1])))
    return process.generation.name if process.generation else ""


def passes_no_options(wire: Wire, process: Process, epoch: Epoch) -> bool:
    """Return whether no candidate adapter passes the option on.

    Its logged text is then independent of the setting.
    """
    names = find_names(process, epoch)
    if not names and process.generation:
        names = (process.generation.name,)
    return bool(names) and not any(name in wire.logged_by for name in names)


#: What a log shows for an option without a value.
EMPTY = "as if it were unset: the key is missing, empty, or of another type"


#: Forms in which every value has a text.
_ALWAYS_WRITTEN = frozenset(("flag", "number", "mode", "word"))


def logs_unset_options(wire: Wire, process: Process) -> bool:
    """Return whether an empty text, or a map without the key, shows that no value arrived.

    For text options, empty may be the value; an engine option may have arrived too late; early
    adapters do not log the start.
    """
    is_newest = process.pid is not None and process.generation == load_generations()[0]
    return (
        is_newest
        and wire.form in _ALWAYS_WRITTEN
        and not wire.key_forms
        and bool(wire.session or (wire.graph and not wire.init))
    )


#: Variables that make the next run log the adapter's blocks, keep the start of the log, and dump
#: graphs.
BLOCKS = "ASCEND_MODULE_LOG_LEVEL=FMK=1"
KEEP = "ASCEND_HOST_LOG_FILE_NUM=1000"
DUMPS = "PRINT_MODEL=1"


def explain_missing(wire: Wire, epoch: Epoch) -> str:
    """Return why an epoch has no line of an option, empty if unknown."""
    if wire.init and epoch.late and not epoch.has("init"):
        return f"{epoch.late}; its start is not in the log"
    in_init_block = wire.init and not wire.lines and epoch.has("init")
    if in_init_block or (wire.session and epoch.has("session")):
        return "the block has no line of it: it never came, or the line was lost"
    return ""


def find_logging_switch(wire: Wire, process: Process) -> str:
    """Return the variable that makes the next run log the option."""
    if wire.proves in ("dump", "nothing"):
        return DUMPS if wire.node else ""
    has_start = any(epoch.has("init") for epoch in process.epochs)
    if has_start or any(epoch.has("session") for epoch in process.epochs):
        # blocks are logged: without the one of the start, its file was rotated away
        return KEEP if wire.init and not has_start else DUMPS
    # the start is logged: an adapter that writes no blocks
    if any(epoch.has("single init") for epoch in process.epochs):
        return DUMPS if wire.node else ""
    return KEEP if process.informed else BLOCKS
