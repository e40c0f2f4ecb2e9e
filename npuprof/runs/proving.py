"""``verify SPEC LOG...``: the logged settings of a run, compared with its preset."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from npuprof.catalog import build_finding
from npuprof.document import keys
from npuprof.hosting.reports import FORMATS
from npuprof.model import Finding, NpuprofError
from npuprof.report import Answer
from npuprof.report.tables import Table
from npuprof.report.text import count_rest, escape_controls, format_count
from npuprof.runs.adapters import tell_names
from npuprof.runs.log_values import ABSENT, CANNOT_TELL, CHANGED, DEFAULT_OR_SET, IN_FORCE, NOT_IN_FORCE, STATES, TOO_LATE, Verdict
from npuprof.runs.variables import is_for_torch_npu, judge_variables
from npuprof.runs.verdicts import JudgedRun, judge_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.report import Forms
    from npuprof.resolve.config import Config
    from npuprof.runs.evidence import Evidence, Process

SCHEMA = "npuprof.verdicts/1"
_HINTS = {
    CHANGED: "look for code that sets it after the preset: a second NpuOptimizer, another field of the map, a default of the estimator",
    TOO_LATE: "set it for the first session of the process, or for init_resource or initialize_system where they come first",
    ABSENT: "npuprof scan finds keys that are misspelt, and entries that are lost",
}


def require_options(config: Config) -> None:
    """Raise NpuprofError for a preset whose settings no run logs."""
    if not config.options and not (config.env and is_for_torch_npu(config)):
        why = "Only session options, and variables of torch_npu, leave something in the log of a run."
        raise NpuprofError([Finding("NP970", f"{config.name} sets no session option", why, "name a preset that has [options]")])


def _list_judged(config: Config, evidence: Evidence) -> dict[str, Any]:
    """Return the settings to verify, by key: options, and variables if the preset is for torch_npu or the logs have any."""
    has_variables = is_for_torch_npu(config) or any(process.variables for process in evidence.processes)
    variables = {keys.format_full_key("env", name): value for name, value in config.env.items()} if has_variables else {}
    return {**config.options, **variables}


def _judge_run(config: Config, judged: Mapping[str, Any], process: Process) -> JudgedRun:
    verdicts = judge_process(config.options, process)
    return JudgedRun(process, verdicts + (judge_variables(config.env, process) if len(judged) > len(verdicts) else []))


def answer_proof(config: Config, read: Callable[[], Evidence]) -> Answer:
    """Return the verdicts on a preset. Exit 1 if a setting was not effective, 2 if nothing could be determined, else 0.

    Raises NpuprofError as ``read`` does, and, before reading, for a preset whose settings no run logs.
    """
    require_options(config)
    evidence = read()
    judged = _list_judged(config, evidence)
    runs = [_judge_run(config, judged, process) for process in evidence.processes]
    states = [verdict.state for run in runs for verdict in run.verdicts]
    code = 1 if any(state in NOT_IN_FORCE for state in states) else 2 if all(state == CANNOT_TELL for state in states) else 0
    forms: Forms = {
        "text": lambda: _build_table(judged, runs),
        "json": lambda: _build_fields(config, judged, evidence, runs),
        "github": lambda: FORMATS["github"](build_findings(config, judged, runs)),
    }
    return Answer(forms, tuple(_tell_summary(config, judged, evidence, runs)), code)


def name_process(process: Process) -> str:
    """Return the name of a process: its rank if known, its number, else its file."""
    name = f"pid {process.pid}" if process.pid is not None else os.path.basename(process.place)
    if process.pid is None and process.number > 1:
        name = f"{name} ({process.number})"
    if process.label:
        name = f"{name} of {escape_controls(process.label)}"
    return f"rank {process.rank} ({name})" if process.rank.isdigit() else name


def _group(runs: Sequence[JudgedRun], number: int) -> list[tuple[Verdict, list[Process]]]:
    """Return the different verdicts on a setting, each with its processes."""
    groups: dict[Verdict, list[Process]] = {}
    for run in runs:
        groups.setdefault(run.verdicts[number]._replace(tell=""), []).append(run.process)
    return sorted(groups.items(), key=lambda pair: STATES.index(pair[0].state))


def _build_table(judged: Mapping[str, Any], runs: Sequence[JudgedRun]) -> Table:
    rows: list[tuple[str, ...]] = []
    several = len(runs) > 1
    for number, (name, value) in enumerate(judged.items()):
        groups = _group(runs, number)
        for verdict, processes in groups:
            description = _describe(verdict, value)
            if several:
                where = "all" if len(groups) == 1 else name_processes(processes)
                rows.append((name, verdict.state, where, description))
            else:
                rows.append((name, verdict.state, description))
    tells: dict[str, list[str]] = {}
    for run in runs:
        for verdict in run.verdicts:
            if verdict.tell and verdict.setting not in tells.setdefault(verdict.tell, []):
                tells[verdict.tell].append(verdict.setting)
    after = "".join(f"{tell} would log next time: {', '.join(names)}\n" for tell, names in tells.items())
    header = ("setting", "verdict", "process", "in the run") if several else ("setting", "verdict", "in the run")
    return Table(rows, after=f"\n{after}" if after else "", header=header)


def name_processes(processes: Sequence[Process], most: int = 4) -> str:
    """Return the names of processes; of many, only the first."""
    names = [name_process(process) for process in processes]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _describe(verdict: Verdict, value: Any) -> str:
    texts = [text for text in verdict.found if not any(longer != text and longer.startswith(text) for longer in verdict.found if text)]
    shown = [text or "(empty)" for text in texts]
    wanted = keys.format_short_value(value)
    if verdict.state in NOT_IN_FORCE:
        summary = f"{' and '.join(shown)}, not {wanted}" if shown else f"not {wanted}"
    elif verdict.state == CANNOT_TELL:
        summary = f"the log has {' and '.join(keys.format_short_value(text) for text in shown)}" if shown else ""
    else:
        summary = wanted
    return "; ".join(part for part in (summary, verdict.note) if part)


def _tell_summary(config: Config, judged: Mapping[str, Any], evidence: Evidence, runs: Sequence[JudgedRun]) -> list[str]:
    states = [verdict.state for run in runs for verdict in run.verdicts]
    counts = ", ".join(f"{states.count(state)} {state}" for state in reversed(STATES) if state in states)
    adapters = ", ".join(dict.fromkeys(name for run in runs if (name := tell_names(run.process))))
    is_single = len(runs) == 1
    count = "1 process" if is_single else f"{len(runs)} processes"
    remarks = [f"{count} of {format_count(evidence.files, 'file')}{f', adapter of {adapters}' if adapters else ''}: {counts}"]
    disagreeing = _find_disagreeing(judged, runs)
    if disagreeing:
        remarks.append(f"the processes do not agree on {', '.join(disagreeing)}")
    if others := _list_others(config, judged):
        count = format_count(len(others), "setting")
        where = "[options]" if len(judged) == len(config.options) else "[options] and [env]"
        remarks.append(f"{count} outside {where} omitted: no adapter logs them ({count_rest(others, 4)})")
    return remarks


def _find_disagreeing(judged: Mapping[str, Any], runs: Sequence[JudgedRun]) -> list[str]:
    """Return the settings whose proven verdicts differ between processes."""
    names = []
    for number, name in enumerate(judged):
        verdicts = [run.verdicts[number] for run in runs if run.verdicts[number].state != CANNOT_TELL]
        proven = {
            (IN_FORCE if verdict.state == DEFAULT_OR_SET else verdict.state, verdict.found) for verdict in verdicts
        }  # the value itself for both
        if len(proven) > 1:
            names.append(name)
    return names


def _list_others(config: Config, judged: Mapping[str, Any]) -> list[str]:
    """Return the keys of settings that no adapter logs."""
    return [key for key in config.settings if key not in judged and keys.split_section_and_name(key)[0] != "options"]


def _build_fields(config: Config, judged: Mapping[str, Any], evidence: Evidence, runs: Sequence[JudgedRun]) -> dict[str, Any]:
    states = [verdict.state for run in runs for verdict in run.verdicts]
    return {
        "schema": SCHEMA,
        "preset": config.name,
        "digest": config.digest,
        "files": evidence.files,
        "counts": {state: states.count(state) for state in STATES},
        "processes": [
            {
                "pid": run.process.pid,
                "rank": int(run.process.rank) if run.process.rank.isdigit() else None,
                "device": run.process.device or None,
                "place": run.process.place,
                "adapter": tell_names(run.process) or None,
                "starts": len(run.process.epochs),
                "verdicts": [
                    {
                        "setting": verdict.setting, "state": verdict.state, "value": judged[verdict.setting],
                        "found": list(verdict.found), "note": verdict.note or None, "tell": verdict.tell or None,
                    }
                    for verdict in run.verdicts
                ],
            }
            for run in runs
        ],
        "disagree": _find_disagreeing(judged, runs),
        "left_out": _list_others(config, judged),
    }  # fmt: skip


def build_findings(config: Config, judged: Mapping[str, Any], runs: Sequence[JudgedRun]) -> list[Finding]:
    """Return a finding for each setting that was not effective (NP971), and for each undecided one (NP972)."""
    findings = []
    for number, (name, value) in enumerate(judged.items()):
        for verdict, processes in _group(runs, number):
            where = name_processes(processes)
            description = escape_controls(_describe(verdict, value))
            if verdict.state in NOT_IN_FORCE:
                what = f"{name} was {verdict.state} in {where}: {description}"
                findings.append(Finding("NP971", what, "", _HINTS[verdict.state], config.origin(name), name, (config.name,)))
            elif verdict.state == CANNOT_TELL:
                what = f"it is unknown whether {name} was effective in {where}" + (f": {description}" if description else "")
                tells = dict.fromkeys(run.verdicts[number].tell for run in runs if run.process in processes)
                hint = f"let the next run have {' '.join(filter(None, tells))}" if any(tells) else ""
                findings.append(build_finding("NP972", what, "", hint, config.origin(name), name, (config.name,)))
    return findings
