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
from npuprof.runs.family import Family
from npuprof.runs.loglevels import list_log_states, plan_log
from npuprof.runs.proving import answer_proof, name_processes
from npuprof.runs.stderr_capture import KeptErrors
from npuprof.system.tree import Tree

_ERRORS = "stderr.log"


class RunLog:
    """Where a run that has an environment writes what it uses: ``variables`` switch that on, ``folder`` is where its log goes.

    What it writes to ``errors``, in place of its standard error, is shown and kept; ``look`` is called while it runs. ``top`` is the folder
    of all such logs. What there is to say of it is told. Raises NpuprofError where its folder cannot be made.
    """

    def __init__(self, config: Config, environment: dict[str, str], top: str) -> None:
        self._config = config
        name = f"{recording.name_file(config.name)}.{os.uname().nodename}.{os.getpid()}"
        self._own = os.path.join(os.path.abspath(top), name)
        plan = plan_log(environment, self._own)
        self.variables, self.folder = plan.variables, plan.folder
        self._made = output.make_folder(self._own)
        self._before = {} if plan.own else list_log_states(plan.folder)
        self._family = None if plan.own else Family()  # others may write where the user lets logs go
        for note in plan.notes:
            output.tell_remark(note)
        output.tell_remark(f"the log of this run goes to {plan.folder}")
        self._kept = self._keep_errors()

    @property
    def errors(self) -> int | None:
        """What is to be its standard error; None where that is not kept."""
        return self._kept.stream if self._kept else None

    @property
    def look(self) -> Callable[[int], float] | None:
        """What looks for its processes, where that is needed."""
        return self._family.look if self._family else None

    def _keep_errors(self) -> KeptErrors | None:
        try:
            return KeptErrors(os.path.join(self._own, _ERRORS))
        except OSError as error:
            output.tell_remark(f"its standard error is not kept: {output.describe_os_error(error, self._own)}")
            return None

    def close(self, started: bool = True) -> None:
        """End what is kept of it; nothing stays of what is empty and will be."""
        if self._kept is not None:
            self._kept.settle()
            if not self._kept.is_whole:
                _tell(f"its standard error is not whole in {self._kept.path}")
            elif self._kept.is_open:
                _tell(f"somebody whom it has left behind may write on to its standard error, which is kept in {self._kept.path}")
            elif not os.path.getsize(self._kept.path):
                Tree(self._own).remove_file(_ERRORS)
            elif self._family:
                _tell(f"its standard error is kept in {self._kept.path}")
        if self._family or not started:
            output.remove_folders(self._made)

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
        """Return what the run has left. Raises NpuprofError where that is nothing."""
        logs = [path for path, state in list_log_states(self.folder).items() if self._before.get(path) != state]
        kept = [self._kept.path] if self._kept and self._family and os.path.exists(self._kept.path) else []
        evidence = read_with_progress([*logs, *kept]) if logs or kept else None
        if evidence is None or not evidence.processes:
            what = f"the run has left no log in {self.folder}, and on its standard error no adapter has told an option"
            why = "Nothing is proven of it, neither for the preset nor against it."
            hint = "look whether it made a session on a device, whether somebody it started still runs, and what was told above of its log"
            raise NpuprofError([Finding("NP970", what, why, hint)])
        return self._select_processes(evidence, kept) if self._family else evidence

    def _select_processes(self, evidence: Evidence, kept: list[str]) -> Evidence:
        """Return what evidence says of this run, and remarks whom it leaves out. Raises NpuprofError where it says nothing of it."""
        pids = self._family.pids if self._family else set()
        own = [process for process in evidence.processes if process.pid in pids or process.place in kept]
        others = [process for process in evidence.processes if process not in own]
        if not own:
            what = f"cannot tell which log is of this run: its folder has that of {name_processes(others)}, not seen among its processes"
            why = "Others write into the same folder, or the command ran in a container, on another host, or for a moment only."
            hint = "unset ASCEND_PROCESS_LOG_PATH, so that the run gets a folder of its own; npuprof verify judges a log that you name"
            raise NpuprofError([Finding("NP970", what, why, hint)])
        if not others:
            return evidence
        left = f"left out, as not seen among the processes of this run: {name_processes(others)}"
        return evidence._replace(processes=own, remarks=(*evidence.remarks, left))


def _tell(text: str, way: Callable[[str], None] = output.tell_remark) -> None:
    """Tell something behind the end of the command, whose code counts, also where nobody reads any more."""
    try:
        way(text)
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)  # what is still to be written goes nowhere, and is no error
        os.close(null)
