"""The log of ``run --prove``: how it is enabled, copied and verified.

The adapter for TensorFlow 2 logs its options only to standard error. ``tee`` copies it in a
separate session, so that signals for the command do not end the copy, and continues until all
writers have closed it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from npuprof.model import NpuprofError, build_error
from npuprof.report import output
from npuprof.report.findings import format_findings
from npuprof.resolve.config import Config
from npuprof.runs import recording
from npuprof.runs.evidence import Evidence
from npuprof.runs.evidence.evidence_files import read_with_progress
from npuprof.runs.proving import answer_proof
from npuprof.runs.variable_verdicts import choose_log_modules, is_for_torch_npu
from npuprof.system import decode_safely
from npuprof.system.files import describe_os_error, make_folder, remove_folders
from npuprof.system.processes import DEVNULL, start_user_command
from npuprof.system.tree import Tree

_STDERR = 2
#: The time in seconds for tee to finish before another process is assumed to have the pipe open.
_PATIENCE = 2.0


class StderrCopy:
    """A copy of a command's ``stream``.

    It is shown on standard error and appended to the file at ``path``.

    After ``settle``, ``is_complete`` is set if the file is complete, and ``is_open`` if a process
    may still write to it. Raises OSError if the file or tee fails, or this process has no standard
    error.
    """

    def __init__(self, path: str) -> None:
        # raises OSError if standard error is closed
        os.fstat(_STDERR)
        self.path = path
        self.is_complete = self.is_open = False
        folder, name = os.path.split(path)
        copy = Tree(folder).open_file(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        read, self.stream = os.pipe()
        try:
            words = ("tee", "-a", f"/dev/fd/{copy}")
            self._tee = start_user_command(
                words,
                stdin=read,
                stdout=_STDERR,
                stderr=DEVNULL,
                pass_fds=(copy,),
                start_new_session=True,
            )
        except OSError:
            os.close(self.stream)
            raise
        finally:
            os.close(read)
            os.close(copy)

    def settle(self) -> None:
        """Wait until the command's output is shown and copied."""
        # tee sees the end only if no writer is left
        os.close(self.stream)
        until = time.monotonic() + _PATIENCE
        while self._tee.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        self.is_open = self._tee.returncode is None
        self.is_complete = self._tee.returncode in (0, None)


_LEVELS = "ASCEND_MODULE_LOG_LEVEL"
_FOLDER = "ASCEND_PROCESS_LOG_PATH"
#: The logged modules with proof, adapter and engine, with their minimum log levels.
_WANTED = {"FMK": "FMK=1", "GE": "GE=1"}


def plan_log(
    environment: Mapping[str, str], folder: str, name: str, config: Config | None = None
) -> dict[str, str]:
    """Return the variables that enable the log of a run.

    The log goes into a folder, or into NAME below the environment's log folder.

    Log levels in the environment stay. If torch_npu reads the config, it logs its variables to
    standard error.
    """
    levels = environment.get(_LEVELS) or ""
    known = {item.partition("=")[0] for item in levels.split(":")}
    missing = [
        item
        for module, item in _WANTED.items()
        if module not in known and (config is None or config.options)
    ]
    path = os.path.join(environment[_FOLDER], name) if environment.get(_FOLDER) else folder
    torch = (
        {"TORCH_NPU_LOGS": choose_log_modules(environment)}
        if config is not None and is_for_torch_npu(config)
        else {}
    )
    levels = ":".join(filter(None, [levels, *missing]))
    return {_FOLDER: os.path.abspath(path), **({_LEVELS: levels} if levels else {}), **torch}


_ERRORS = "stderr.log"


class RunLog:
    """The log of a run.

    ``variables`` enable it, ``folder`` is the run's own, with a copy of standard error.

    ``top`` is the parent of log folders unless ASCEND_PROCESS_LOG_PATH is set. Raises NpuprofError
    if the folder cannot be created.
    """

    def __init__(self, config: Config, environment: dict[str, str], top: str) -> None:
        self._config = config
        name = f"{recording.name_file(config.name)}.{os.uname().nodename}.{os.getpid()}"
        self.variables = plan_log(environment, os.path.join(top, name), name, config)
        self.folder = self.variables[_FOLDER]
        self._created = make_folder(self.folder)
        output.print_note(f"the log of this run goes to {self.folder}")
        self._stderr: StderrCopy | None = None
        try:
            self._stderr = StderrCopy(os.path.join(self.folder, _ERRORS))
        except OSError as error:
            output.print_note(
                f"its standard error is not kept: {describe_os_error(error, self.folder)}"
            )

    @property
    def errors(self) -> int | None:
        """The descriptor for the command's standard error; None if it is not copied."""
        return self._stderr.stream if self._stderr else None

    def close(self, started: bool = True) -> None:
        """End the copy of standard error; remove the folder of a command that was not started."""
        if self._stderr is not None:
            self._stderr.settle()
            if not self._stderr.is_complete:
                _tell(f"its standard error is not complete in {self._stderr.path}")
            elif self._stderr.is_open:
                _tell(
                    "a process that the command left running may still write to its standard "
                    f"error, {self._stderr.path}"
                )
            elif not os.path.getsize(self._stderr.path):
                Tree(self.folder).remove_file(_ERRORS)
        if not started:
            remove_folders(self._created)

    def prove(self) -> int:
        """Print the verdicts on the preset to standard error; return the exit code of verify."""
        try:
            answer = answer_proof(self._config, self._read)
            text = answer.write_form("text")
        except NpuprofError as error:
            _tell(format_findings(error.findings).rstrip("\n"), output.write_to_stderr)
            return 2
        shown = b"".join(output.encode_pieces(text or "", "-", False))
        _tell(decode_safely(shown).rstrip("\n"), output.write_to_stderr)
        for note in answer.notes:
            _tell(note)
        return answer.code

    def _read(self) -> Evidence:
        """Return the content of the run's logs.

        Raises NpuprofError if they contain nothing of an adapter or the engine.
        """
        logs = sorted(
            os.path.join(folder, name)
            for folder, _, names in os.walk(self.folder)
            for name in names
        )
        evidence = read_with_progress(logs) if logs else None
        if evidence is None or not evidence.processes:
            what = (
                f"the run has left no log in {self.folder}, and its "
                "standard error contains no options of an adapter"
            )
            why = "Nothing is proven of it, neither for the preset nor against it."
            hint = (
                "check that the command creates a session on a device, here and not in a "
                "container; npuprof doctor checks the log variables"
            )
            if not self._config.options:
                hint = (
                    "check that the command imports torch_npu, and that its release writes the "
                    "variables down: TORCH_NPU_LOGS=env"
                )
            raise build_error("NP970", what, why, hint)
        return evidence


def _tell(text: str, way: Callable[[str], None] = output.print_note) -> None:
    """Print a note after the command has ended.

    A closed stderr is ignored, as the command's exit code counts.
    """
    try:
        way(text)
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)  # discard further output without errors
        os.close(null)
