"""``run --record`` and ``run --prove``: a command that is watched to its end, and what is kept and told of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from npuprof.model import Finding, NpuprofError
from npuprof.report import output
from npuprof.report.answer import Answer
from npuprof.resolve.config import Config
from npuprof.runs import parenting, recording
from npuprof.runs.family import Family
from npuprof.runs.loglevels import list_log_states, plan_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.runs.loglevels import LogPlan


class Watched:
    """A command to be run as a child: with which preset, what was asked for, and what of the environment the preset brought."""

    def __init__(
        self, config: Config, asked: Mapping[str, Any], command: Sequence[str], given: dict[str, str], rest: dict[str, str]
    ) -> None:
        self._config = config
        self._asked = asked
        self._command = command
        self._given = given
        self._environment = {**rest, **given}

    def run(self, folder: str | None, proving: bool, explain: Callable[[str, OSError], Answer]) -> Answer:
        """Run the command, end as it does, and keep a record in a folder if one is named; prove afterwards what it used if wanted.

        Ends with the code of the command where that is not 0, else with that of the proof. Raises NpuprofError where nothing was started.
        """
        plan = self._plan_log(folder) if proving else None
        before = list_log_states(plan.folder) if plan is not None else {}
        recorder = self._start_record(folder) if folder is not None else None
        family = Family() if plan is not None and not plan.own else None  # others may write where the user lets logs go
        look = family.look if family is not None else None
        ending = parenting.run_command(self._command, self._environment, recorder.tell_started if recorder else _ignore, look)
        now = {"end": recording.tell_time()}
        if ending.error is not None:
            answer = explain(self._command[0], ending.error)
            if recorder:
                recorder.finish(state="not started", exit={"code": answer.code, "signal": None}, **now)
            return answer
        name = recording.name_signal(ending.signal)
        if recorder:
            recorder.finish(state="ended", exit={"code": None if name else ending.code, "signal": name}, **now)
        ending.release()
        proof = self._prove(plan, before, family) if plan is not None else 0
        if recorder and plan is not None:
            recorder.finish(proof={"code": proof, "log": plan.folder})
        if ending.signal:
            parenting.die_of(ending.signal)
            return Answer(code=128 + ending.signal)
        return Answer(code=ending.code or proof)

    def _start_record(self, folder: str) -> recording.Recorder:
        recorder = recording.Recorder(
            folder, recording.build_fields(self._config, self._asked, self._command, self._given, self._environment)
        )
        recorder.start()
        return recorder

    def _plan_log(self, folder: str | None) -> LogPlan:
        """Switch the log on; where it goes is told, and what is in the way of it."""
        top = os.path.join(folder, "logs") if folder is not None else os.path.join(_find_state(), "logs")
        name = recording.name_file(self._config.name)
        plan = plan_log(self._environment, os.path.join(top, f"{name}.{os.uname().nodename}.{os.getpid()}"))
        if plan.own:
            output.make_folder(plan.folder)
        self._environment |= plan.variables
        for note in plan.notes:
            output.tell_remark(note)
        output.tell_remark(f"the log of this run goes to {plan.folder}")
        return plan

    def _prove(self, plan: LogPlan, before: Mapping[str, tuple[int, int]], family: Family | None) -> int:
        """Tell on standard error what the log proves of the preset; return the exit code that verify has for it."""
        from npuprof.commands.parts.proving import answer_proof

        logs = [path for path, state in list_log_states(plan.folder).items() if before.get(path) != state]
        try:
            if not logs:
                what, why = f"the run has left no log in {plan.folder}", "Nothing is proven of it, neither for the preset nor against it."
                hint = "look whether it made a session on a device, and what was told above of its log"
                raise NpuprofError([Finding("NP970", what, why, hint)])
            answer = answer_proof(self._config, [plan.folder] if plan.own else logs, family.pids if family is not None else None)
            text = answer.write_form("text")
        except NpuprofError as error:
            from npuprof.report.findings import format_findings

            output.write_to_stderr(format_findings(error.findings).rstrip("\n"))
            return 2
        shown = text if isinstance(text, str) else b"".join(output.encode_pieces(text or "", "-", False)).decode(errors="replace")
        output.write_to_stderr(shown.rstrip("\n"))
        for remark in answer.remarks:
            output.tell_remark(remark)
        return answer.code


def _ignore(pid: int) -> None:
    """Stands for what tells the process id to a record."""


def _find_state() -> str:
    """Return the folder of what this user's npuprof keeps."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # as the XDG specification wants it
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "npuprof")
