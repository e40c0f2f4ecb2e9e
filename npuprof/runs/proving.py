"""``verify SPEC LOG...``: the logged settings of a run, compared with its preset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from npuprof.catalog import build_finding
from npuprof.document import keys
from npuprof.hosting.reports import FORMATS
from npuprof.model import TYPE_CHECKING, Fields, Finding, build_error
from npuprof.report import Answer
from npuprof.report.tables import Table
from npuprof.report.text import count_rest, escape_controls, format_count
from npuprof.resolve.config import Config
from npuprof.runs.adapters import describe_names
from npuprof.runs.evidence import Evidence, Process
from npuprof.runs.log_values import (
    ABSENT,
    CANNOT_TELL,
    CHANGED,
    DEFAULT_OR_SET,
    IN_FORCE,
    NOT_IN_FORCE,
    STATES,
    TOO_LATE,
    Verdict,
)
from npuprof.runs.unknown_variables import explain_variable
from npuprof.runs.variable_verdicts import is_for_torch_npu, judge_variables
from npuprof.runs.verdicts import judge_process
from npuprof.system import group_pairs

if TYPE_CHECKING:
    from npuprof.report import Forms

SCHEMA = "npuprof.verdicts/1"
_HINTS = {
    CHANGED: (
        "look for code that sets it after the preset: a second NpuOptimizer, another field of the "
        "map, a default of the estimator"
    ),
    TOO_LATE: (
        "set it for the first session of the process, or for "
        "init_resource or initialize_system where they come first"
    ),
    ABSENT: "npuprof scan finds keys that are misspelt, and entries that are lost",
}


def require_options(config: Config) -> None:
    """Raise NpuprofError for a preset whose settings no run logs."""
    if not config.options and not (config.env and is_for_torch_npu(config)):
        why = (
            "Only session options, and variables of torch_npu, leave something in the log of a run."
        )
        raise build_error(
            "NP970",
            f"{config.name} sets no session option",
            why,
            "name a preset that has [options]",
        )


class _Proof:
    """The verdicts on a preset, by process.

    ``judged`` are the settings to verify, by key: options, and variables if the preset is for
    torch_npu or the logs have any.
    """

    def __init__(self, config: Config, evidence: Evidence) -> None:
        self.config = config
        self.files = evidence.files
        self.unknown = {name: explain_variable(name) for name in evidence.unknown}
        variables = (
            config.env
            if is_for_torch_npu(config) or any(process.variables for process in evidence.processes)
            else {}
        )
        self.judged = {
            **config.options,
            **{keys.format_full_key("env", name): value for name, value in variables.items()},
        }
        self.runs = [
            (
                process,
                [*judge_process(config.options, process), *judge_variables(variables, process)],
            )
            for process in evidence.processes
        ]
        self.states = [verdict.state for _, verdicts in self.runs for verdict in verdicts]

    def find_code(self) -> int:
        """Return the exit code.

        1 if a setting was not effective, 2 if nothing could be determined, else 0.
        """
        if any(state in NOT_IN_FORCE for state in self.states):
            return 1
        return 2 if {*self.states} <= {CANNOT_TELL} else 0

    def _group(self, number: int) -> list[tuple[Verdict, list[Process]]]:
        """Return the different verdicts on a setting, each with its processes."""
        # verdicts that only differ in the variable to set are one
        groups = group_pairs(
            (verdicts[number]._replace(tell=""), process) for process, verdicts in self.runs
        )
        return sorted(groups.items(), key=lambda pair: STATES.index(pair[0].state))

    def build_table(self) -> Table:
        """Return a row for each different verdict on a setting."""
        rows = []
        several = len(self.runs) > 1
        for number, (name, value) in enumerate(self.judged.items()):
            groups = self._group(number)
            for verdict, processes in groups:
                where = "all" if len(groups) == 1 else name_processes(processes)
                rows.append(
                    (name, verdict.state, *((where,) if several else ()), _describe(verdict, value))
                )
        tells = group_pairs(
            dict.fromkeys(
                (verdict.tell, verdict.setting) for _, verdicts in self.runs for verdict in verdicts
            )
        )
        after = "".join(
            f"{tell} would log next time: {', '.join(names)}\n"
            for tell, names in tells.items()
            if tell
        )
        header = ("setting", "verdict", *(("process",) if several else ()), "in the run")
        return Table(rows, after=f"\n{after}" if after else "", header=header)

    def summarize(self) -> Iterator[str]:
        """Yield notes about all processes, and about variables that vLLM calls unknown."""
        yield from self.unknown.values()
        if not self.runs:
            yield "nothing else in the log shows settings of the preset"
            return
        counts = ", ".join(
            f"{self.states.count(state)} {state}"
            for state in reversed(STATES)
            if state in self.states
        )
        adapters = ", ".join(
            dict.fromkeys(name for process, _ in self.runs if (name := describe_names(process)))
        )
        count = "1 process" if len(self.runs) == 1 else f"{len(self.runs)} processes"
        yield (
            f"{count} of "
            f"{format_count(self.files, 'file')}{f', adapter of {adapters}' if adapters else ''}: "
            f"{counts}"
        )
        if disagreeing := self._find_disagreeing():
            yield f"the processes do not agree on {', '.join(disagreeing)}"
        if others := self._list_others():
            where = (
                "[options]"
                if len(self.judged) == len(self.config.options)
                else "[options] and [env]"
            )
            yield (
                f"{format_count(len(others), 'setting')} outside {where} omitted: no adapter logs "
                f"them ({count_rest(others, 4)})"
            )

    def _find_disagreeing(self) -> list[str]:
        """Return the settings whose proven verdicts differ between processes."""
        names = []
        for number, name in enumerate(self.judged):
            effects = set()
            for _, verdicts in self.runs:
                state, texts = verdicts[number].state, verdicts[number].found
                if state == DEFAULT_OR_SET:
                    state = IN_FORCE  # the value itself is effective for both states
                if state != CANNOT_TELL:
                    effects.add((state, texts))
            if len(effects) > 1:
                names.append(name)
        return names

    def _list_others(self) -> list[str]:
        """Return the keys of settings that no adapter logs."""
        return [
            key
            for key in self.config.settings
            if key not in self.judged and keys.split_section_and_name(key)[0] != "options"
        ]

    def build_fields(self) -> Fields:
        """Return the verdicts as the fields of their JSON form."""
        return {
            "schema": SCHEMA,
            "preset": self.config.name,
            "digest": self.config.digest,
            "files": self.files,
            "counts": {state: self.states.count(state) for state in STATES},
            "processes": [
                {
                    "pid": process.pid,
                    "rank": int(process.rank) if process.rank.isdigit() else None,
                    "device": process.device or None,
                    "place": process.place,
                    "adapter": describe_names(process) or None,
                    "starts": len(process.epochs),
                    "verdicts": list(map(self._build_verdict_fields, verdicts)),
                }
                for process, verdicts in self.runs
            ],
            "disagree": self._find_disagreeing(),
            "left_out": self._list_others(),
            "unknown_variables": self.unknown,
        }

    def _build_verdict_fields(self, verdict: Verdict) -> Fields:
        return {
            "setting": verdict.setting,
            "state": verdict.state,
            "value": self.judged[verdict.setting],
            "found": list(verdict.found),
            "note": verdict.note or None,
            "tell": verdict.tell or None,
        }

    def build_findings(self) -> Iterator[Finding]:
        """Yield a finding for each setting that was not effective (NP971) or undecided (NP972)."""
        for number, (name, value) in enumerate(self.judged.items()):
            place = self.config.origin(name), name, (self.config.name,)
            for verdict, processes in self._group(number):
                where = name_processes(processes)
                description = escape_controls(_describe(verdict, value))
                if verdict.state in NOT_IN_FORCE:
                    what = f"{name} was {verdict.state} in {where}: {description}"
                    yield Finding("NP971", what, "", _HINTS[verdict.state], *place)
                elif verdict.state == CANNOT_TELL:
                    what = f"it is unknown whether {name} was effective in {where}"
                    if description:
                        what += f": {description}"
                    tells = dict.fromkeys(
                        verdicts[number].tell
                        for process, verdicts in self.runs
                        if process in processes
                    )
                    hint = (
                        f"let the next run have {' '.join(filter(None, tells))}"
                        if any(tells)
                        else ""
                    )
                    yield build_finding("NP972", what, "", hint, *place)


def answer_proof(config: Config, read: Callable[[], Evidence]) -> Answer:
    """Return the verdicts on a preset.

    Exit 1 if a setting was not effective, 2 if nothing could be determined, else 0.

    Raises NpuprofError as ``read`` does, and for a preset whose settings no run logs; unless vLLM
    may have written the log, before reading.
    """
    if not any(config.shared_sections[section] for section in ("env", "vllm", "vllm_ascend")):
        require_options(config)
    evidence = read()
    if not evidence.unknown:
        require_options(config)
    proof = _Proof(config, evidence)
    forms: Forms = {
        "text": proof.build_table,
        "json": proof.build_fields,
        "github": lambda: FORMATS["github"]([*proof.build_findings()]),
    }
    return Answer(forms, tuple(proof.summarize()), proof.find_code())


def name_process(process: Process) -> str:
    """Return the name of a process: its rank if known, its number, else its file."""
    name = f"pid {process.pid}" if process.pid is not None else os.path.basename(process.place)
    if process.pid is None and process.number > 1:
        name = f"{name} ({process.number})"
    if process.label:
        name = f"{name} of {escape_controls(process.label)}"
    return f"rank {process.rank} ({name})" if process.rank.isdigit() else name


def name_processes(processes: Sequence[Process]) -> str:
    """Return the names of processes; of many, only the first."""
    return count_rest([*map(name_process, processes)], 4)


def _describe(verdict: Verdict, value: Any) -> str:
    """Return a verdict as text, without texts that are cut forms of another one."""
    shown = []
    for text in verdict.found:
        if not text:
            shown.append("(empty)")
        elif not any(longer != text and longer.startswith(text) for longer in verdict.found):
            shown.append(text)
    expected = keys.format_short_value(value)
    if verdict.state in NOT_IN_FORCE:
        summary = f"{' and '.join(shown)}, not {expected}" if shown else f"not {expected}"
    elif verdict.state == CANNOT_TELL:
        texts = " and ".join(map(keys.format_short_value, shown))
        summary = f"the log has {texts}" if texts else ""
    else:
        summary = expected
    return "; ".join(part for part in (summary, verdict.note) if part)
