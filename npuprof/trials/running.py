"""Runs trials: the environment of ``run``, a fresh rendered file, devices, concurrency.

Each result is stored at once.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from npuprof.catalog.launchers import list_single_process_facts
from npuprof.model import Record, build_error, build_usage_error
from npuprof.renderers import load_target
from npuprof.renderers.arguments import fill_command
from npuprof.renderers.environment import collect_env_variables, list_unset_variables
from npuprof.renderers.process import (
    build_fact_finder,
    sidecar_cache_folder,
    strip_environment,
    write_sidecars,
)
from npuprof.report.text import format_count
from npuprof.resolve.config import Config
from npuprof.system.files import describe_os_error
from npuprof.system.processes import handle_signals
from npuprof.system.tree import Tree
from npuprof.trials.journal import Journal, Result, require_writable
from npuprof.trials.metrics import read_metrics
from npuprof.trials.outcomes import build_result
from npuprof.trials.process_groups import Ended, Pool

#: The placeholder in a command for the path of the rendered file.
CODE = "{code}"
_NEEDED = "A run needs it; known results are kept."


class Setup(Record):
    """The setup of runs.

    It is the command, the target of the rendered file, devices, and limits of concurrency, time and
    number.
    """

    command: tuple[str, ...]
    target: str
    jobs: int
    devices: tuple[str, ...]
    timeout: float | None
    most: int | None
    metrics: dict[str, str]

    def render_code(self, config: Config) -> dict[str, str]:
        """Return the rendered file of a config and its sidecar files, by name.

        None if the command needs no file. Raises NpuprofError.
        """
        if not any(CODE in word for word in self.command):
            return {}
        target = load_target(self.target)
        rendered = target.render(config)
        return {target.file: rendered.text, **rendered.sidecars}

    def fill_command(self, config: Config, folder: str) -> list[str]:
        """Return the command with a config's arguments, for a rendered file in a folder.

        Raises NpuprofError.
        """
        path = os.path.join(folder, load_target(self.target).file)
        return fill_command(config, [word.replace(CODE, path) for word in self.command])


class Runner:
    """Makes requested runs without a stored result, concurrently, until there are none."""

    def __init__(self, setup: Setup, journal: Journal, judge: Callable[[Result], object]) -> None:
        """Create a runner.

        ``judge`` raises NpuprofError for a result that makes further runs pointless.

        Such a result is not stored, so that a fixed command can resume.
        """
        self.setup = setup
        self.journal = journal
        self._judge = judge
        self.made = 0
        self.notes: set[str] = set()
        self._pool = Pool()
        self._files = identify_files(setup.command)
        self._started: dict[str, tuple[Config, str]] = {}
        self._free = list(setup.devices)
        self._number = sum(map(len, journal.results.values()))

    @property
    def running(self) -> int:
        """The number of active runs."""
        return len(self._pool)

    def drive(
        self, list_pending: Callable[[], Sequence[Config]], watch: Callable[[], None]
    ) -> bool:
        """Make runs until none is requested, or no more are allowed; return whether all were made.

        Raises NpuprofError.

        ``list_pending`` returns the configs to run, including active ones, once per run.
        """
        # like Ctrl-C: active runs are ended, and results are kept
        with handle_signals(signal.default_int_handler, (signal.SIGTERM, signal.SIGHUP)):
            try:
                return self._drive(list_pending, watch)
            except KeyboardInterrupt:
                count = format_count(sum(map(len, self.journal.results.values())), "run")
                sys.stderr.write(
                    f"\nnpuprof: stopped; the results of {count} are "
                    "kept: the same command goes on from there\n"
                )
                raise
            finally:
                self._pool.stop()
                self._started.clear()
                self._free = list(self.setup.devices)

    def _drive(
        self, list_pending: Callable[[], Sequence[Config]], watch: Callable[[], None]
    ) -> bool:
        while pending := list_pending()[: self.setup.jobs]:
            running = Counter(config.digest for config, _ in self._started.values())
            for config in pending:
                if running[config.digest]:
                    running[config.digest] -= 1
                elif len(self._pool) < self.setup.jobs:
                    self._start(config)
            # no run may be started any more: --max-runs is reached
            if not self._pool:
                return False
            ended: list[tuple[str, Ended]] = []
            while not ended:
                watch()
                ended = list(self._pool.wait())
            for name, how in ended:
                self._finish(name, how)
        return True

    def _start(self, config: Config) -> None:
        if self.setup.most is not None and self.made >= self.setup.most:
            return
        device = self._free.pop(0) if self.setup.devices else ""
        self._number += 1
        name = f"{self._number:04}-{config.digest[:12]}"
        environment = self._build_environment(config, device)
        command = self._write_code(name, config)
        tree, path = self.journal.tree, f"logs/{name}.log"
        with require_writable(tree.find_path(path), _NEEDED):
            log = tree.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self._pool.start(name, command, environment, log, self.setup.timeout)
        except OSError as error:
            what = f"cannot run {command[0]}: {describe_os_error(error)}"
            raise build_error(
                "NP915", what, "", "check its name and PATH, and that it may be executed"
            ) from None
        finally:
            os.close(log)
        self.made += 1
        self._started[name] = config, device

    def _build_environment(self, config: Config, device: str) -> dict[str, str]:
        """Return the environment that ``npuprof run`` would pass to a command."""
        outer = {**os.environ, **(list_single_process_facts(device) if device else {})}
        folder = sidecar_cache_folder(config)
        # trust was checked for the ends
        variables, notes = collect_env_variables(config, build_fact_finder(outer), folder, True)
        write_sidecars(config, folder)
        self.notes.update(notes)
        return strip_environment(outer, list_unset_variables(config, True)[0]) | variables

    def _write_code(self, name: str, config: Config) -> list[str]:
        if texts := self.setup.render_code(config):
            self.journal.tree.remove_folder(f"code/{name}")
            write_texts(
                self.journal.tree, {f"code/{name}/{file}": text for file, text in texts.items()}
            )
        folder = os.path.abspath(os.path.join(self.journal.folder, "code", name))
        return self.setup.fill_command(config, folder)

    def _finish(self, name: str, how: Ended) -> None:
        config, device = self._started.pop(name)
        self._free += [device] if device else []
        # a file of code per run would fill the disk
        self.journal.tree.remove_folder(f"code/{name}")
        log = f"logs/{name}.log"
        metrics = read_metrics(self.journal.tree, log, self.setup.metrics)
        result = build_result(
            config.digest, how, metrics, os.path.join(self.journal.folder, log), device
        )._replace(files=self._files)
        # before it is stored: a run that stops everything is made again
        self._judge(result)
        self.journal.add(result)


def identify_files(command: Sequence[str]) -> dict[str, str]:
    """Return size and time of each file named by a command."""
    identities = {}
    for argument in command:
        if os.path.isfile(argument):
            status = os.stat(argument)
            identities[argument] = f"{status.st_size}-{status.st_mtime_ns}"
    return identities


def parse_devices(text: str) -> tuple[str, ...]:
    """Return devices from ``0-3,6``. Raises NpuprofError."""
    devices: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(?P<first>[0-9]{1,4})(?:-(?P<last>[0-9]{1,4}))?\s*", part)
        numbers = range(0)
        if match:
            first = int(match["first"])
            numbers = range(first, int(match["last"] or first) + 1)
        if not numbers:
            raise build_usage_error(
                f"--devices {text!r} names no devices", "write them as in 0-7, or 0,2,4"
            )
        devices += numbers
    return tuple(map(str, dict.fromkeys(devices)))


def write_texts(tree: Tree, files: Mapping[str, str]) -> None:
    """Write the files of runs, by path below a journal's folder. Raises NpuprofError."""
    for name, text in files.items():
        with require_writable(tree.find_path(name), _NEEDED):
            tree.write_files({name: text.encode(errors="surrogateescape")})


def parse_timeout(text: str | None) -> float | None:
    """Return a time limit: ``90``, ``90s``, ``15m``, ``2h``. Raises NpuprofError."""
    if text is None:
        return None
    units = {"s": 1, "m": 60, "h": 3600}
    try:
        seconds = float(text[:-1]) * units[text[-1]] if text[-1:] in units else float(text)
        if not 0 < seconds < 1e9:
            raise ValueError
    except ValueError:
        raise build_usage_error(
            f"--timeout {text!r} is not a time", "write it as in 90, 15m or 2h"
        ) from None
    return seconds
