"""Switching the log of a run on, so that it can be proven afterwards what it used: which level, and into which folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress

from npuprof.model import Record

_LEVELS = "ASCEND_MODULE_LOG_LEVEL"
_FOLDER = "ASCEND_PROCESS_LOG_PATH"
_QUIET = "TF_CPP_MIN_LOG_LEVEL"
_SCREENS = ("ASCEND_LOG_PRINT_TO_STDOUT", "ASCEND_SLOG_PRINT_TO_STDOUT")
#: The modules whose lines prove something, the adapter and the engine, and the least detail at which they are written.
_MODULES = ("FMK", "GE")
_INFO = 1
_ITEM = re.compile(r"([A-Z][A-Z0-9_]*)=([0-4])")


class LogPlan(Record):
    """The variables that switch a log on, the folder that it goes to, whether that is this run's alone, and what there is to say."""

    variables: dict[str, str]
    folder: str
    own: bool
    notes: tuple[str, ...]


def plan_log(environment: Mapping[str, str], folder: str) -> LogPlan:
    """Return how the log of a run is switched on that has an environment; what the user says there stays."""
    notes: list[str] = []
    variables: dict[str, str] = {}
    levels = _plan_levels(environment.get(_LEVELS), notes)
    if levels is not None:
        variables[_LEVELS] = levels
    own = not environment.get(_FOLDER)
    if own:
        variables[_FOLDER] = os.path.abspath(folder)
    else:
        notes.append(
            f"{_FOLDER} is set: the log goes to {environment[_FOLDER]}, of which what the processes of this run write is looked at"
        )
    screens = [name for name in _SCREENS if environment.get(name) == "1"]
    notes += [f"{name}=1 prints the log and saves none: nothing will be proven; unset it" for name in screens]
    if environment.get(_QUIET, "0") not in ("", "0"):
        notes.append(f"{_QUIET}={environment[_QUIET]} hides what the adapter for TensorFlow 2 writes of its options; unset it to prove any")
    return LogPlan(variables, variables.get(_FOLDER, environment.get(_FOLDER, "")), own, tuple(notes))


def _plan_levels(said: str | None, notes: list[str]) -> str | None:
    """Return the levels of modules that are needed beside those that are said; None where those are enough."""
    wanted = [f"{module}={_INFO}" for module in _MODULES]
    if not said:
        return ":".join(wanted)
    items = [_ITEM.fullmatch(item) for item in said.split(":")]
    if not all(items):
        notes.append(f"{_LEVELS}={said!r} has an item that is none, which voids all of it: {':'.join(wanted)} in its place")
        return ":".join(wanted)
    known = {match[1]: int(match[2]) for match in items if match is not None}
    quiet = [module for module in _MODULES if known.get(module, _INFO) > _INFO]
    if quiet:
        notes.append(f"{_LEVELS}={said} leaves {' and '.join(quiet)} without detail: little will be proven; {':'.join(wanted)} would tell")
    missing = [item for module, item in zip(_MODULES, wanted, strict=True) if module not in known]
    return ":".join([said, *missing]) if missing else None


def list_log_states(folder: str) -> dict[str, tuple[int, int]]:
    """Return the files below a folder, sorted, each with what changes when it is written: no clock of this or another machine counts."""
    found = {}
    for where, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(where, name)
            with suppress(OSError):
                known = os.stat(path)
                found[path] = (known.st_size, known.st_mtime_ns)
    return found
