"""Whether a setting arrived at all: what an empty text proves, and what a warning of the adapter does.

An option that came in another field of the map than the adapter reads is 0, false or an empty text there. Of a text, empty may mean
either; a number or a switch has a text whatever came, and none only where nothing did.
"""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.catalog.wire import NO_KEY, Wire, load_generations
from npuprof.runs.evidence import Epoch, Process
from npuprof.runs.evidence.adapter_log import GLOBAL

EMPTY = "as where nobody set it: the key never came, or came empty, or as another type"
NEVER_CAME = "its line is empty, which it is only where the key never came"
#: Forms of which every value has a text.
_ALWAYS_WRITTEN = frozenset(("flag", "number", "mode", "word"))


def is_empty(wire: Wire, texts: Sequence[str]) -> bool:
    """Return whether the texts that stand where nobody set an option are empty ones; None is what init_resource was not given."""
    return tuple(texts) == ("",) and not wire.needs


def never_came(wire: Wire, process: Process) -> bool:
    """Return whether a text that nobody set, or a map without the key, proves that the key never came.

    What only the engine gets may have come too late; and what init_resource was given no session shows. The beginning has to be there:
    an adapter that writes the block of init options with each operator does not show that it is.
    """
    if wire.form not in _ALWAYS_WRITTEN or wire.key_forms or not (wire.session or (wire.graph and not wire.init)):
        return False
    if (
        process.pid is None or process.generation != load_generations()[0].name or process.torn or process.crowded
    ):  # what comes later may have it
        return False
    if any(one.crowded or one.doubtful or _lacks_line(wire, one) or _is_in_single_line(wire, one) for one in process.epochs):
        return False
    return all(one.has("init") and one.late != GLOBAL and not _is_of_resource(one) for one in process.epochs)


def _lacks_line(wire: Wire, epoch: Epoch) -> bool:
    """Return whether one of the lines is lost that the adapter always writes of an option: what is left may be a rest, too."""
    for stage in ("init", "session"):
        always = {key for key, text in wire.keys(stage).items() if text != NO_KEY}
        maps = [one.values.keys() for one in epoch.maps.get(stage, ()) if not one.engine or len(always) > 1]
        if always and (not maps or not all(always <= keys for keys in maps)):
            return True
    return False


def _is_in_single_line(wire: Wire, epoch: Epoch) -> bool:
    """Return whether a line of its own has a text of an option: that of a session whose block is lost, maybe."""
    singles = [one.values for stage in ("single init", "single session") for one in epoch.maps.get(stage, ())]
    return any(values[wire.name].text for values in singles if wire.name in values)


def _is_of_resource(epoch: Epoch) -> bool:
    """Return whether init_resource started the engine: it writes None for what it was not given."""
    return any(text.text == "None" for one in epoch.maps.get("init", ()) for text in one.values.values())


#: What would show the blocks of the adapter next time, what keeps the beginning of a log, what dumps graphs.
BLOCKS, KEEP, DUMPS = "ASCEND_MODULE_LOG_LEVEL=FMK=1", "ASCEND_HOST_LOG_FILE_NUM=1000", "PRINT_MODEL=1"


def explain_missing(wire: Wire, epoch: Epoch, process: Process) -> str:
    """Return why an epoch has no line of an option, empty where nothing says why."""
    if wire.init and epoch.late and not epoch.has("init"):
        return f"{epoch.late}; its start is not in the log"
    if (epoch.has("init") and wire.init and not wire.lines) or (epoch.has("session") and wire.session):
        return "the block has no line of it: it never came, or the line was lost"
    return ""


def explain_needs(wire: Wire) -> str:
    """Return without what an option is not read, empty where it always is."""
    return f"it is read only where {' or '.join(wire.needs)} is on" if wire.needs else ""


def find_teller(wire: Wire, process: Process) -> str:
    """Return the variable that would let the next run tell."""
    if wire.proves in ("dump", "nothing"):
        return DUMPS if wire.node else ""
    if any(epoch.has("init", "session") for epoch in process.epochs):
        has = any(epoch.has("init") for epoch in process.epochs) if wire.init else True
        return DUMPS if has else KEEP
    if any(epoch.has("single init") for epoch in process.epochs):  # the start is there: an adapter that writes no blocks
        return DUMPS if wire.node else ""
    return KEEP if process.informed else BLOCKS
