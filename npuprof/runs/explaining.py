"""Why evidence says nothing of a setting, and what would let the next run tell."""

from __future__ import annotations

from npuprof.catalog.wire import Wire
from npuprof.runs.evidence import Epoch, Process

#: What would show the blocks of the adapter next time, what keeps the beginning of a log, what dumps graphs.
BLOCKS, KEEP, DUMPS = "ASCEND_MODULE_LOG_LEVEL=FMK=1", "ASCEND_HOST_LOG_FILE_NUM=1000", "PRINT_MODEL=1"


def explain_missing(wire: Wire, epoch: Epoch, process: Process) -> str:
    """Return why an epoch has no line of an option, empty where nothing says why."""
    if wire.init and epoch.late and not epoch.has("init"):
        return f"{epoch.late}; its start is not in the log"
    if epoch.has("init") and wire.init and not wire.lines:
        return "the block has no line of it: it never came, or the line was lost"
    if epoch.has("session") and wire.session:
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
