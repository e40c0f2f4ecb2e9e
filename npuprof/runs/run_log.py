"""The log of a run that is to be proven: switched on before it, and read behind it. Standard error is a part of it."""

from __future__ import annotations

import os
from collections.abc import Callable

from npuprof.model import Finding, NpuprofError
from npuprof.report import output
from npuprof.report.findings import format_findings
from npuprof.resolve.config import Config
from npuprof.runs import recording
from npuprof.runs.evidence import Evidence
from npuprof.runs.evidence.reading import read_with_progress
from npuprof.runs.loglevels import plan_log
from npuprof.runs.proving import answer_proof
from npuprof.runs.stderr_capture import StderrCopy
from npuprof.system.tree import Tree

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
        """Tell on standard error what it proves of the preset; return the exit code that verify has for it."""
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
    """Tell something behind the end of the command, whose code counts, also where nobody reads any more."""
    try:
        way(text)
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)  # what is still to be written goes nowhere, and is no error
        os.close(null)
