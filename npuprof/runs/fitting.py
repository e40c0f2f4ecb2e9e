"""Finds the presets that fit a run's logs: no contradictions, and the most proven settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import starmap
from typing import Any

from npuprof.model import NpuprofError, Record
from npuprof.report.output import track_items
from npuprof.resolve.config import Config
from npuprof.runs.evidence import Evidence
from npuprof.runs.index import Index
from npuprof.runs.log_values import CANNOT_TELL, IN_FORCE, NOT_IN_FORCE
from npuprof.runs.verdicts import judge_process


class Fit(Record):
    """A preset that fits a run.

    It has the numbers of its settings that were effective in all processes, and of undecided ones.
    """

    name: str
    config: Config
    in_force: int
    unknown: int
    total: int


def find_fits(
    evidence: Evidence,
    current: Iterator[tuple[str, Config]],
    index: Index | None,
    load: Callable[[str, str], Config],
) -> list[Fit]:
    """Return the best fitting presets: the current ones and, with an index, those of all commits.

    ``load`` returns a preset at a commit, or raises NpuprofError.
    """
    known = {}

    def judge(option: str, value: Any) -> set[str]:
        """Return the verdicts on a setting of all processes; cached by value."""
        key = json.dumps([option, value], default=str, sort_keys=True)
        if key not in known:
            known[key] = {
                verdict.state
                for process in evidence.processes
                for verdict in judge_process({option: value}, process)
            }
        return known[key]

    seen = set()
    fits = []

    def try_preset(name: str, config: Config) -> None:
        """Add a preset unless the logs contradict it, or prove none of its settings."""
        if (name, config.digest) in seen:
            return
        seen.add((name, config.digest))
        states = list(starmap(judge, config.options.items()))
        in_force = sum(state == {IN_FORCE} for state in states)
        if in_force and all(state.isdisjoint(NOT_IN_FORCE) for state in states):
            fits.append(
                Fit(
                    name,
                    config,
                    in_force,
                    sum(CANNOT_TELL in state for state in states),
                    len(states),
                )
            )

    for name, config in current:
        try_preset(name, config)
    for state in track_items(
        index.states if index is not None else (), "states of the presets compared"
    ):
        for name, digests in state.changed.items():
            # before the preset is loaded, since resolving it at a commit is expensive
            if digests is not None and digests.resolved and (name, digests.resolved[0]) not in seen:
                with suppress(NpuprofError):
                    try_preset(name, load(name, state.commits[0]))
    most = max((fit.in_force for fit in fits), default=0)
    return [fit for fit in fits if fit.in_force == most]
