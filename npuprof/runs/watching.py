"""``run --record`` and ``run --prove``: a command that is watched to its end, and what is kept and reported of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from npuprof.report.answer import Answer
from npuprof.resolve.config import Config
from npuprof.runs import recording, supervisor
from npuprof.system.folders import find_user_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.runs.run_log import RunLog


class Watched:
    """A command to be run as a child: with which preset, what was asked for, and what of the environment the preset brought."""

    def __init__(
        self,
        config: Config,
        asked: Mapping[str, Any],
        command: Sequence[str],
        given: dict[str, str],
        rest: dict[str, str],
        with_arguments: bool = False,
    ) -> None:
        self._with_arguments = with_arguments
        self._config = config
        self._asked = asked
        self._command = command
        self._given = given
        self._environment = {**rest, **given}

    def run(self, folder: str | None, proving: bool, explain: Callable[[str, OSError], Answer]) -> Answer:
        """Run the command, end as it does, and keep a record in a folder if one is named; prove afterwards what it used if wanted.

        Ends with the code of the command where that is not 0, else with that of the proof. Raises NpuprofError where nothing was started.
        """
        log = self._open_log(folder) if proving else None
        recorder = self._start_record(folder) if folder is not None else None
        started = recorder.tell_started if recorder else _ignore
        ending = supervisor.run_command(self._command, self._environment, started, log.errors if log else None)
        now = {"end": recording.tell_time()}
        if ending.error is not None:
            answer = explain(self._command[0], ending.error)
            if recorder:
                recorder.finish(state="not started", exit={"code": answer.code, "signal": None}, **now)
            if log:
                log.close(started=False)
            return answer
        name = recording.name_signal(ending.signal)
        if recorder:
            recorder.finish(state="ended", exit={"code": None if name else ending.code, "signal": name}, **now)
        ending.release()
        proof = 0
        if log:
            log.close()
            proof = log.prove()
        if recorder and log:
            recorder.finish(proof={"code": proof, "log": log.folder})
        if ending.signal:
            supervisor.die_of(ending.signal)
            return Answer(code=128 + ending.signal)
        return Answer(code=ending.code or proof)

    def _open_log(self, folder: str | None) -> RunLog:
        """Switch the log on: beside the record, or in the folder of what is kept of this user's runs."""
        from npuprof.runs.proving import require_options
        from npuprof.runs.run_log import RunLog

        require_options(self._config)
        log = RunLog(self._config, self._environment, os.path.join(find_user_folder("state") if folder is None else folder, "logs"))
        self._environment |= log.variables
        return log

    def _start_record(self, folder: str) -> recording.Recorder:
        recorder = recording.Recorder(
            folder, recording.build_fields(self._config, self._asked, self._command, self._given, self._environment, self._with_arguments)
        )
        recorder.start()
        return recorder


def _ignore(pid: int) -> None:
    """Stands for what tells the process id to a record."""
