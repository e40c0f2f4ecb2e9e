"""``run``: run a command in the environment of a preset."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import sys

from npuprof.catalog import record_names
from npuprof.commands.framework import arguments, flag, option
from npuprof.commands.framework.parameters import (
    NO_CHECK,
    NO_PERSONAL,
    SPEC,
    STRICT_SECTIONS,
    TRUST,
    ResolvingVerb,
)
from npuprof.commands.resolving import print_omitted_count, resolve_checked
from npuprof.model import TRUST_CODES, Finding, NpuprofError, build_error
from npuprof.renderers import ARGUMENT_SECTIONS, ARGUMENTS, find_left_out_sections
from npuprof.renderers.environment import (
    collect_env_variables,
    describe_kept_variables,
    list_unset_variables,
)
from npuprof.renderers.process import (
    build_fact_finder,
    sidecar_cache_folder,
    strip_environment,
    write_sidecars,
)
from npuprof.report import Answer, output
from npuprof.report.output import print_findings
from npuprof.resolve.config import Config
from npuprof.runs import recording
from npuprof.runs.environment_conflicts import find_interference
from npuprof.runs.supervisor import require_lone_thread
from npuprof.runs.watching import WatchedCommand
from npuprof.system import processes


class Run(ResolvingVerb):
    """Run a command with a preset.

    npuprof run NAME -- python train.py

    Exits with the command's exit code. With --prove, exits with the code of the verification if the
    command succeeds.
    """

    group = "runs"
    usage_hint = (
        "Put the command after --, with its options: npuprof run NAME -- python train.py --epochs 3"
    )

    refusal = "the command was not started"
    spec = SPEC
    command = arguments("CMD...", "Command to run, with its arguments, after --")
    no_personal = NO_PERSONAL
    no_check = NO_CHECK
    strict = STRICT_SECTIONS
    trust = TRUST
    record = option(
        "--record",
        metavar="DIR",
        text="Write a run record to DIR, with the requested values and the exit status",
    )
    record_args = flag(
        "--record-args",
        text=(
            "Include the command's arguments in the record; "
            "only those with secret names are redacted"
        ),
    )
    prove = flag(
        "--prove", text="Enable the run log and verify afterwards which settings were effective"
    )

    def run(self) -> Answer:
        """Replace this process with the command, which then handles signals and sets the exit code.

        Returns only on failure: 127 for a missing command, 126 for one that cannot be started. With
        ``record`` or ``prove`` the command is a child process whose exit code is passed on; if it
        is 0, the result of the verification counts. Raises NpuprofError, also in a program with
        other threads.
        """
        if not self.command:
            hint = "write it after --: npuprof run NAME -- python train.py"
            raise build_error("NP914", "no command to run", "", hint)
        try:
            config = resolve_checked(
                self, "env", self.no_check, TRUST_CODES, not self.no_personal, False
            )  # rejected below, or trusted
        except NpuprofError as error:
            raise _explain_missing_preset(self.spec, self.command, error) from None
        command = self._fill_command(config)
        folder = sidecar_cache_folder(config)
        variables, notes = collect_env_variables(
            config, build_fact_finder(os.environ), folder, self.trust
        )
        write_sidecars(config, folder)
        removed, unchanged = list_unset_variables(config, self.trust)
        for note in (*notes, *describe_kept_variables(unchanged, os.environ)):
            output.print_note(note)
        environment = strip_environment(os.environ, removed)
        complete = {**environment, **variables}
        if not self.no_check:
            _warn_of_host_variables(config, complete)
        # fork and wait are unsafe next to other threads
        require_lone_thread()
        if self.record is None and not self.prove:
            return _become_command(command, complete)
        return self._watch_command(config, command, variables, environment)

    def _fill_command(self, config: Config) -> list[str]:
        """Return the command with the preset's arguments; sections that it omits are reported.

        Raises NpuprofError if there are no arguments, or unfit ones.
        """
        has_place = ARGUMENTS in self.command
        written = ("env", "options", *(ARGUMENT_SECTIONS if has_place else ()))
        print_omitted_count(find_left_out_sections(config, written), self.strict)
        if not has_place:
            return self.command
        if not any(config.shared_sections[section] for section in ARGUMENT_SECTIONS):
            what = f"{config.name} has no arguments for {ARGUMENTS}"
            hint = f"set them in {' or '.join(f'[{section}]' for section in ARGUMENT_SECTIONS)}"
            raise build_error("NP914", what, "", f"{hint}, or omit {ARGUMENTS}")
        from npuprof.renderers.arguments import fill_command

        return fill_command(config, self.command)

    def _watch_command(
        self, config: Config, command: list[str], variables: dict[str, str], rest: dict[str, str]
    ) -> Answer:
        """Run the command as a child, record it, and verify its settings.

        Raises NpuprofError if it was not started.
        """
        if self.record is not None:
            recording.require_folder(self.record)
            if self.record_args:
                output.print_note(
                    "the record contains the arguments of the command; only those with a name of "
                    "something secret are redacted"
                )
        request = {
            "spec": self.spec,
            "with": self.mixin,
            "set": recording.hide_arguments(self.set_),
            "unset": self.unset,
            "cann": self.cann,
            "product": self.product,
            "store": self.store,
            "no_personal": self.no_personal,
            "no_check": self.no_check,
            "trust": self.trust,
            "framework": self.frameworks,
            **({"axis": self.axes} if self.axes else {}),
        }
        watched = WatchedCommand(config, request, command, variables, rest, self.record_args)
        return watched.run(self.record, self.prove, _explain_start)


def _warn_of_host_variables(config: Config, environment: dict[str, str]) -> None:
    """Print warnings about host variables that override settings of a preset."""
    if any(name in environment and name not in config.env for name in record_names("env")):
        print_findings(
            [
                finding
                for finding in find_interference(config, environment)
                if finding.severity == "warning" and finding.key in config.settings
            ]
        )


def _explain_missing_preset(spec: str, command: list[str], error: NpuprofError) -> NpuprofError:
    """Return an error, with a hint if the command line has a command in place of the preset."""
    if (
        error.findings[0].code != "NP008"
        or error.findings[0].origin is not None
        # only a program suggests that the preset was left out
        or shutil.which(spec) is None
    ):
        return error
    what = f"no preset is named before the command {spec!r}"
    why = "The first word of npuprof run is the preset."
    return build_error("NP008", what, why, f"npuprof run NAME -- {shlex.join([spec, *command])}")


def _become_command(command: list[str], environment: dict[str, str]) -> Answer:
    """Replace this process with the command; if it cannot be started, continue and report why."""
    try:
        # exec drops what Python has not written yet
        sys.stdout.flush()
        sys.stderr.flush()
        # Python ignores these signals, and the command would inherit that.
        with processes.handle_signals(signal.SIG_DFL, (signal.SIGPIPE, signal.SIGXFSZ)):
            processes.exec_user_command(command, environment)
    except OSError as error:
        return _explain_start(command[0], error)


def _explain_start(program: str, error: OSError) -> Answer:
    """Return why a program could not be started, with the shell's exit code for it."""
    missing = error.errno == errno.ENOENT and not os.path.exists(program)
    what = (
        f"cannot run {program}: "
        f"{'there is no such command' if missing else str(error.strerror).lower()}"
    )
    hint = (
        "check its name and PATH"
        if missing
        else f"chmod +x {program}, or write its interpreter before it"
    )
    if os.path.isdir(program):
        what, hint = f"cannot run {program}: it is a folder", "name a program"
    elif not missing and not os.path.dirname(program):  # a shell searches only PATH for it
        what = f"cannot run {program}: it is a file here, and not in PATH"
        hint = f"write ./{program}"
        # a Python file is rarely executable
        hint = f"write -- python {program}" if program.endswith(".py") else hint
    return Answer(code=127 if missing else 126, problems=(Finding("NP915", what, "", hint),))


VERB = Run
