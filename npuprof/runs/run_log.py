"""The log of a run with ``--prove``: which variables switch it on, the copy of standard error, and its verification at the end.

The adapter for TensorFlow 2 writes its options to standard error only. ``tee`` copies it in a session of its own, so that no signal for
the command ends the copy, and goes on as long as any process can write.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from npuprof.model import Finding, NpuprofError, Record
from npuprof.report import output
from npuprof.report.findings import format_findings
from npuprof.resolve.config import Config
from npuprof.runs import recording
from npuprof.runs.evidence import Evidence
from npuprof.runs.evidence.reading import read_with_progress
from npuprof.runs.proving import answer_proof
from npuprof.system.patterns import lazy_pattern
from npuprof.system.processes import DEVNULL, start_user_command
from npuprof.system.tree import Tree

_STDERR = 2
#: How long tee may take to show what was written, in seconds, before a process that still has the pipe is assumed.
_PATIENCE = 2.0


class StderrCopy:
    """What a command writes to ``stream`` is shown on our standard error and appended to the file at ``path``.

    After ``settle``, ``is_complete`` is whether nothing is missing from the file, and ``is_open`` whether a process may still write to it.
    Raises OSError if the file or tee cannot be used, or this process has no standard error.
    """

    def __init__(self, path: str) -> None:
        os.fstat(_STDERR)
        self.path = path
        self.is_complete = self.is_open = False
        folder, name = os.path.split(path)
        copy = Tree(folder).open_file(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        read, self.stream = os.pipe()
        try:
            words = ("tee", "-a", f"/dev/fd/{copy}")
            self._tee = start_user_command(words, stdin=read, stdout=_STDERR, stderr=DEVNULL, pass_fds=(copy,), start_new_session=True)
        except OSError:
            os.close(self.stream)
            raise
        finally:
            os.close(read)
            os.close(copy)

    def settle(self) -> None:
        """Wait until all that the command has written is shown and copied."""
        os.close(self.stream)
        until = time.monotonic() + _PATIENCE
        while self._tee.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        self.is_open = self._tee.returncode is None
        self.is_complete = self._tee.returncode in (0, None)


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


def _plan_levels(levels: str | None, notes: list[str]) -> str | None:
    """Return the module levels that add the needed ones to those that are set; None if those are enough."""
    wanted = [f"{module}={_INFO}" for module in _MODULES]
    if not levels:
        return ":".join(wanted)
    items = [_ITEM.fullmatch(item) for item in levels.split(":")]
    if not all(items):
        notes.append(f"{_LEVELS}={levels!r} has an item that is none, which voids all of it: {':'.join(wanted)} in its place")
        return ":".join(wanted)
    known = {match[1]: int(match[2]) for match in items if match is not None}
    quiet = [module for module in _MODULES if known.get(module, _INFO) > _INFO]
    if quiet:
        notes.append(
            f"{_LEVELS}={levels} leaves {' and '.join(quiet)} without detail: little will be proven; {':'.join(wanted)} would tell"
        )
    missing = [item for module, item in zip(_MODULES, wanted, strict=True) if module not in known]
    return ":".join([levels, *missing]) if missing else None


_ERRORS = "stderr.log"


class RunLog:
    """The log of a run: ``variables`` switch it on, ``folder`` is the run's own. Standard error is copied there as well.

    ``top`` is the folder of such logs unless ASCEND_PROCESS_LOG_PATH names one. Raises NpuprofError if the folder cannot be created.
    """

    def __init__(self, config: Config, environment: dict[str, str], top: str) -> None:
        self._config = config
        name = f"{recording.name_file(config.name)}.{os.uname().nodename}.{os.getpid()}"
        plan = plan_log(environment, os.path.join(top, name), name)
        self.variables, self.folder = plan.variables, plan.folder
        self._created = output.make_folder(self.folder)
        for note in plan.notes:
            output.tell_remark(note)
        output.tell_remark(f"the log of this run goes to {self.folder}")
        self._stderr = self._copy_stderr()

    @property
    def errors(self) -> int | None:
        """The descriptor that the command gets as its standard error; None if that is not copied."""
        return self._stderr.stream if self._stderr else None

    def _copy_stderr(self) -> StderrCopy | None:
        try:
            return StderrCopy(os.path.join(self.folder, _ERRORS))
        except OSError as error:
            output.tell_remark(f"its standard error is not kept: {output.describe_os_error(error, self.folder)}")
            return None

    def close(self, started: bool = True) -> None:
        """End the copy of standard error; remove the folder of a command that was not started."""
        if self._stderr is not None:
            self._stderr.settle()
            if not self._stderr.is_complete:
                _tell(f"its standard error is not complete in {self._stderr.path}")
            elif self._stderr.is_open:
                _tell(f"a process that the command left running may still write to its standard error, {self._stderr.path}")
            elif not os.path.getsize(self._stderr.path):
                Tree(self.folder).remove_file(_ERRORS)
        if not started:
            output.remove_folders(self._created)

    def prove(self) -> int:
        """Print the verdicts on the preset to standard error; return the exit code of verify."""
        try:
            answer = answer_proof(self._config, self._read)
            text = answer.write_form("text")
        except NpuprofError as error:
            _tell(format_findings(error.findings).rstrip("\n"), output.write_to_stderr)
            return 2
        shown = text if isinstance(text, str) else b"".join(output.encode_pieces(text or "", "-", False)).decode(errors="replace")
        _tell(shown.rstrip("\n"), output.write_to_stderr)
        for remark in answer.remarks:
            _tell(remark)
        return answer.code

    def _read(self) -> Evidence:
        """Return what the logs of the run contain. Raises NpuprofError if they contain nothing of an adapter or the engine."""
        logs = sorted(os.path.join(folder, name) for folder, _, names in os.walk(self.folder) for name in names)
        evidence = read_with_progress(logs) if logs else None
        if evidence is None or not evidence.processes:
            what = f"the run has left no log in {self.folder}, and on its standard error no adapter has told an option"
            why = "Nothing is proven of it, neither for the preset nor against it."
            hint = "check that the command creates a session on a device, here and not in a container, and see the notes on its log above"
            raise NpuprofError([Finding("NP970", what, why, hint)])
        return evidence


def _tell(text: str, way: Callable[[str], None] = output.tell_remark) -> None:
    """Print a note after the command has ended; a closed stderr is no error, for the exit code of the command counts."""
    try:
        way(text)
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)  # what is still to be written goes nowhere, and is no error
        os.close(null)
