"""The setup and progress of ``bisect`` and ``sweep``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from npuprof.checks import require_exportable
from npuprof.model import build_error
from npuprof.renderers.environment import collect_env_variables
from npuprof.renderers.process import build_fact_finder, sidecar_cache_folder
from npuprof.resolve.config import Config
from npuprof.trials.journal import Journal
from npuprof.trials.running import CODE, Setup, identify_files, parse_devices, parse_timeout


def build_setup(options: Any, metrics: dict[str, str]) -> Setup:
    """Return the setup of runs. Raises NpuprofError for invalid values, or without a command."""
    if not options.command:
        raise build_error(
            "NP914",
            "no command to run",
            "",
            f"write it after --: {options.usage_hint.partition(': ')[2]}",
        )
    devices = parse_devices(options.devices) if options.devices is not None else ()
    # a device has one run at a time
    jobs = min(options.jobs or len(devices) or 1, len(devices) or sys.maxsize)
    if options.to is not None and not any(CODE in word for word in options.command):
        what = f"--to {options.to} without {CODE} in the command"
        raise build_error("NP914", what, "", f"write it as in -- python {CODE}, or omit --to")
    return Setup(
        tuple(options.command),
        options.to or "session",
        jobs,
        devices,
        parse_timeout(options.timeout),
        options.max_runs,
        metrics,
    )


def build_fit(
    setup: Setup, trusting: bool = True, checking: bool = True
) -> Callable[[Config], None]:
    """Return a function that rejects configs.

    It raises NpuprofError if the checks reject a config, or it needs trust or cannot be rendered.
    """

    def fit(config: Config) -> None:
        if checking:
            require_exportable(config)
        # only for its errors: a value that needs trust is found before the first run
        collect_env_variables(
            config, build_fact_finder(os.environ), sidecar_cache_folder(config), trusting
        )
        setup.render_code(config)
        setup.fill_command(config, "")

    return fit


def warn_of_newer_files(command: Sequence[str], journal: Journal) -> tuple[str, ...]:
    """Return a note for each file of a command that is newer than some stored results."""
    results = [result for results in journal.results.values() for result in results]
    return tuple(
        f"{word} has changed since {changed} of the {len(results)} runs that are kept "
        "were made; --fresh forgets them"
        for word, identity in identify_files(command).items()
        if (changed := sum(result.files.get(word, identity) != identity for result in results))
    )
