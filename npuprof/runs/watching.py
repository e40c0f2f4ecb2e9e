"""``run --record`` and ``run --prove``: runs a command, and records and reports its result."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from npuprof.model import Record
from npuprof.report import Answer
from npuprof.resolve.config import Config
from npuprof.runs import recording, supervisor
from npuprof.runs.proving import require_options
from npuprof.runs.run_log import RunLog
from npuprof.system import find_user_folder
from npuprof.system.processes import name_signal


class WatchedCommand(Record):
    """A command to run as a child: the preset, the request, and the environment.

    ``variables`` are those of the preset.
    """

    config: Config
    request: Mapping[str, Any]
    command: Sequence[str]
    variables: dict[str, str]
    environment: dict[str, str]
    with_arguments: bool

    def run(
        self, folder: str | None, proving: bool, explain: Callable[[str, OSError], Answer]
    ) -> Answer:
        """Run the command and exit as it does.

        Optionally write a record to a folder and verify the used settings.

        Exits with the code of the command unless that is 0, else with that of the verification.
        Raises NpuprofError if nothing was started.
        """
        environment = {**self.environment, **self.variables}
        log = recorder = None
        if proving:
            require_options(self.config)
            # next to the record, or in the user's state folder
            place = find_user_folder("state") if folder is None else folder
            log = RunLog(self.config, environment, os.path.join(place, "logs"))
            environment |= log.variables
        if folder is not None:
            fields = recording.build_fields(
                self.config,
                self.request,
                self.command,
                self.variables,
                environment,
                self.with_arguments,
            )
            recorder = recording.Recorder(folder, fields)
            recorder.start()
        started = recorder.record_start if recorder else lambda pid: None
        ending = supervisor.run_command(
            self.command, environment, started, log.errors if log else None
        )
        end = recording.format_time()
        if ending.error is not None:
            answer = explain(self.command[0], ending.error)
            if recorder:
                recorder.finish(
                    state="not started", exit={"code": answer.code, "signal": None}, end=end
                )
            if log:
                log.close(started=False)
            return answer
        name = name_signal(ending.signal) if ending.signal else None
        if recorder:
            recorder.finish(
                state="ended", exit={"code": None if name else ending.code, "signal": name}, end=end
            )
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
