"""Switching the log of a run on, so that it can be proven afterwards what it used: which level, and into which folder."""

from __future__ import annotations

import os
from collections.abc import Mapping

from npuprof.model import Record
from npuprof.system.patterns import lazy_pattern

_LEVELS = "ASCEND_MODULE_LOG_LEVEL"
_FOLDER = "ASCEND_PROCESS_LOG_PATH"
_QUIET = "TF_CPP_MIN_LOG_LEVEL"
_SCREENS = ("ASCEND_LOG_PRINT_TO_STDOUT", "ASCEND_SLOG_PRINT_TO_STDOUT")
#: The modules whose lines prove something, the adapter and the engine, and the least detail at which they are written.
_MODULES = ("FMK", "GE")
_INFO = 1
_ITEM = lazy_pattern(r"([A-Z][A-Z0-9_]*)=([0-4])")


class LogPlan(Record):
    """The variables that switch a log on, the folder of the log, and notes for the user."""

    variables: dict[str, str]
    folder: str
    notes: tuple[str, ...]


def plan_log(environment: Mapping[str, str], folder: str, name: str) -> LogPlan:
    """Return how to switch on the log of a run: into a folder, or into NAME below the folder that its environment has for logs."""
    notes: list[str] = []
    if environment.get(_FOLDER):
        folder = os.path.join(environment[_FOLDER], name)
    variables = {_FOLDER: os.path.abspath(folder)}
    levels = _plan_levels(environment.get(_LEVELS), notes)
    if levels is not None:
        variables[_LEVELS] = levels
    screens = [screen for screen in _SCREENS if environment.get(screen) == "1"]
    notes += [f"{screen}=1 prints the log and saves none: nothing will be proven; unset it" for screen in screens]
    if environment.get(_QUIET, "0") not in ("", "0"):
        notes.append(f"{_QUIET}={environment[_QUIET]} hides what the adapter for TensorFlow 2 writes of its options; unset it to prove any")
    return LogPlan(variables, variables[_FOLDER], tuple(notes))


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
