"""``import LOG``: the preset of a run.

It has the settings that its logs and graph dumps prove for all processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from npuprof import catalog
from npuprof.catalog.wire import STAGES, Wire, load_wires
from npuprof.document import build_command_line_document, keys
from npuprof.document.profile import Profile
from npuprof.model import TYPE_CHECKING, Record, TomlTable, build_error, build_usage_error
from npuprof.renderers.flattened import format_tables
from npuprof.report import Answer
from npuprof.report.text import escape_controls, format_count
from npuprof.runs.evidence import Evidence, Process, Text
from npuprof.runs.evidence.evidence_files import read_logs
from npuprof.runs.evidence.log_locations import is_evidence
from npuprof.runs.log_values import (
    ABSENT,
    CANNOT_TELL,
    DEFAULT_OR_SET,
    EFFECTIVE,
    IN_FORCE,
    NOT_IN_FORCE,
    find_texts,
    is_unreadable,
    list_dumped,
)
from npuprof.runs.verdicts import judge_process
from npuprof.store.base import ComposedParts
from npuprof.system import drop_empty, group_pairs, join_lines
from npuprof.system.files import is_handed_over, is_stream, peek_handed_over, read_plain_file

if TYPE_CHECKING:
    from npuprof.report import Forms

_FLAGS = {"1": True, "0": False, "true": True, "false": False, "True": True, "False": False}
#: The values of texts, for forms with few texts.
_VALUES: dict[str, TomlTable] = {
    "flag": _FLAGS,
    "word": _FLAGS,
    "inverted": {"0": True, "1": False},
    "mode": {
        "1": "true",
        "0": "false",
        "2": "auto",
        "true": "true",
        "false": "false",
        "auto": "auto",
    },
}
_CLOSING = re.compile(r";?forbidden_close_pass:on$")


class ImportedRun(Record):
    """The settings of a run.

    ``settings`` are common to all processes, ``differing`` have their texts, ``unknown`` have
    reasons.

    All others are unset or have their defaults.
    """

    settings: TomlTable
    differing: dict[str, str]
    unknown: dict[str, str]
    scenario: str


def import_evidence(evidence: Evidence) -> ImportedRun:
    """Return the settings of a run that its logs prove.

    They are those that a verification would call effective.
    """
    settings = {}
    differing = {}
    unknown = {}
    for name, wire in load_wires().items():
        candidates = {"true": True} if wire.any_operator == "1" else {}
        for process in evidence.processes:
            for key, text in _find_texts(wire, process):
                value = _read_value(wire, key, text)
                if value is not None:
                    candidates.setdefault(keys.format_toml_value(value), value)
        states = {
            shown: _judge(name, value, evidence.processes) for shown, value in candidates.items()
        }
        partly = {shown: seen for shown, seen in states.items() if IN_FORCE in seen}
        proven = [shown for shown, seen in partly.items() if seen <= set(EFFECTIVE)]
        is_default = any(DEFAULT_OR_SET in seen for seen in states.values())
        if len(proven) == 1:
            settings[name] = candidates[proven[0]]
        elif partly:
            differing[name] = "differs between processes: " + ", ".join(partly)
            # undecided for the other processes
            if all(seen <= {IN_FORCE, CANNOT_TELL} for seen in partly.values()):
                differing[name] += ", not known of all processes"
        elif not is_default and not _is_unset(wire, evidence.processes):
            unknown[name] = _explain(wire, candidates, evidence.processes)
    return ImportedRun(settings, differing, unknown, _find_scenario(evidence.processes))


def _find_scenario(processes: Sequence[Process]) -> str:
    """Return the scenario of a run, empty if its logs do not contain it or disagree."""
    scenarios = {
        wire.scenarios.get(text.text, "")
        for wire in load_wires().values()
        for process in (processes if wire.scenarios else ())
        for _, text in _find_texts(wire, process)
    }
    return scenarios.pop() if len(scenarios) == 1 else ""


def _find_texts(wire: Wire, process: Process) -> Iterable[tuple[str, Text]]:
    """Yield the texts of an option in a process, each with its key."""
    if process.tf2:
        for epoch in process.epochs:
            for block in epoch.blocks("init"):
                for field, key in wire.tf2.items():
                    if field != "unset" and key in block.values:
                        yield key, block.values[key]
        if "leaf" in wire.tf2 and "global" not in wire.tf2:
            leaf = wire.tf2["leaf"]
            yield from ((leaf, text) for text in process.warned.get(leaf, ()))
        return
    for epoch in process.epochs:
        for stage in STAGES:
            # early adapters passed options of graphs to the session
            read = "graph" if stage == "session" and not (wire.init or wire.session) else stage
            for block in epoch.blocks(stage):
                yield from find_texts(wire, read, block.values).items()
        for stage, field in wire.lines.items():
            yield from ((field, text) for text in epoch.texts(field, stage))
        for text in epoch.texts(wire.name, "single init", "single session"):
            yield wire.name, text
    for _, texts in list_dumped(wire, process):
        yield from ((name.removeprefix("_"), text) for name, text in texts.items())


def _read_value(wire: Wire, key: str, text: Text) -> Any:
    """Return the value of a text, None if there is none or it is undecided."""
    if text.cut or is_unreadable(text.text):
        return None
    form = wire.key_forms.get(key, wire.form)
    shown = text.text
    if shown in ("", "None") or (text.followed and form in ("text", "folder", "closed")):
        return None
    if form in _VALUES:
        return _VALUES[form].get(shown)
    if form == "closed":
        return _CLOSING.sub("", shown) or None
    if form in ("number", "clamped"):
        return int(shown) if re.fullmatch(r"-?\d{1,18}", shown, re.ASCII) else None
    try:
        shown.encode()
    except UnicodeEncodeError:  # bytes that no preset can contain
        return None
    option = catalog.find_option(wire.name)
    known = option.surface_values.get("global_options") if option is not None else None
    value = {str(written): plain for plain, written in (known or {}).items()}.get(shown, shown)
    choices = [str(choice) for choice in option.choices] if option is not None else []
    # of a cut line, a choice may be the beginning of another one
    may_be_cut = value not in choices and any(choice.startswith(value) for choice in choices)
    return None if may_be_cut else value


def _judge(name: str, value: Any, processes: Sequence[Process]) -> set[str]:
    return {judge_process({name: value}, process)[0].state for process in processes}


def _is_unset(wire: Wire, processes: Sequence[Process]) -> bool:
    """Return whether the logs have texts of an option, all of them those of an unset option."""
    if (
        processes
        and all(process.tf2 for process in processes)
        and (not wire.tf2 or _judge(wire.name, _guess(wire), processes) == {ABSENT})
    ):
        return True
    has_texts = False
    for process in processes:
        unset = (
            {wire.tf2.get("unset")}
            if process.tf2
            else {wire.unset, *(text for stage in STAGES for text in wire.keys(stage).values())}
        )
        for _, text in _find_texts(wire, process):
            has_texts = True
            if text.cut or text.followed or text.text not in (*unset, "", "None"):
                return False
    return has_texts


def _explain(wire: Wire, candidates: TomlTable, processes: Sequence[Process]) -> str:
    value = next(iter(candidates.values()), _guess(wire))
    verdicts = [judge_process({wire.name: value}, process)[0] for process in processes]
    if candidates:
        note = next((verdict.note for verdict in verdicts if verdict.note), "not proven")
        return f"perhaps {keys.format_short_value(value)}: {note}"
    tell = next((verdict.tell for verdict in verdicts if verdict.tell), "")
    return f"{tell} would log it" if tell else "the log has no line of it that can be read"


def _guess(wire: Wire) -> Any:
    """Return any value of the option, to find out which variable would log it."""
    option = catalog.find_option(wire.name)
    if option is not None and option.choices:
        return option.choices[0]
    return {"flag": True, "word": True, "number": 7, "clamped": 7, "mode": "true"}.get(
        wire.form, "x"
    )


def _build_tables(run: ImportedRun, label: str) -> dict[str, TomlTable]:
    head = {"description": f"what was in force by {label}", "scenario": run.scenario}
    return {"profile": drop_empty(head), "options": run.settings}


def format_preset(run: ImportedRun, label: str) -> str:
    """Return the preset of a run as TOML, with unknown settings as comments."""
    lines = [format_tables(_build_tables(run, label)).removesuffix("\n")]
    if run.differing:
        lines += ["", "# Not the same in all processes, sessions or starts of the engine:"]
        lines += [
            f"#   {name}: {_comment(why.removeprefix('differs between processes: '))}"
            for name, why in run.differing.items()
        ]
    if run.unknown:
        lines += ["", "# Not known; all that is named nowhere was a default or not set:"]
        for why, names in group_pairs((why, name) for name, why in run.unknown.items()).items():
            lines += [f"#   {_comment(why)}:", *(f"#     {name}" for name in names)]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    # a control character would end the comment, or be invalid TOML
    return "".join(char if char.isprintable() else " " for char in text)


def build_profile(path: str, run: ImportedRun, evidence: Evidence) -> Profile:
    """Return the settings of a run as a profile."""
    document = build_command_line_document(
        path, _build_tables(run, "standard input" if path == "-" else path)
    )
    return Profile(document, f"evidence:{path}", ComposedParts({}, evidence))


def find_evidence(profile: Profile) -> Evidence | None:
    """Return the evidence of a profile, None if it was not created from logs."""
    content = profile.home and profile.home.content
    return content if isinstance(content, Evidence) else None


def compare_with_logs(options: Mapping[str, Any], evidence: Evidence) -> dict[str, bool]:
    """Return the options of a preset that a run does not contradict.

    Each has whether the run certainly has it.

    Default values count as well.
    """
    states = {name: _judge(name, value, evidence.processes) for name, value in options.items()}
    return {
        name: CANNOT_TELL not in seen
        for name, seen in states.items()
        if seen.isdisjoint(NOT_IN_FORCE)
    }


SCHEMA = "npuprof.imported-run/1"


def is_all_evidence(paths: Sequence[str], others: TomlTable) -> bool:
    """Return whether all inputs of an import are logs.

    Raises NpuprofError for a mix, and for flags of scripts.
    """
    logs = [path for path in paths if _is_evidence(path)]
    if not logs:
        return False
    if len(logs) < len(paths):
        script = next(path for path in paths if path not in logs)
        what = f"{logs[0]} is the log of a run, and {script} is none"
        raise build_usage_error(
            what,
            "import one, then the other",
            "import creates a preset from scripts or from run logs.",
        )
    if flags := [flag for flag, value in others.items() if value]:
        what = f"{', '.join(flags)} is for scripts, and {logs[0]} is the log of a run"
        raise build_usage_error(what, "omit one of them")
    return True


def _is_evidence(path: str) -> bool:
    if path == "-":
        return True  # scripts are read by path, as presets name them
    if os.path.isdir(path):
        return is_evidence(path, None)
    try:
        head = (
            peek_handed_over(path, 1 << 16)
            if is_handed_over(path)
            else read_plain_file(path, 4096, whole=False)
        )
    except (OSError, ValueError):
        return False
    return (path.endswith((".log", ".pbtxt", ".log.gz")) or b"(" in head) and is_evidence(
        path, head
    )


def answer_import(
    paths: Sequence[str],
    path: str | None,
    write: Callable[[dict[str, str]], None] | None,
    strict: bool,
) -> Answer:
    """Return the preset of a run; ``write``, if given, is called with it for output to a file.

    Raises NpuprofError.

    Exit 1 with ``strict`` if a setting differs between processes or is unknown.
    """
    evidence = read_logs(paths)
    run = import_evidence(evidence)
    if paths[0] == "-":
        first = "standard input"
    elif is_handed_over(paths[0]):
        first = "a pipe"
    else:
        first = os.path.basename(os.path.normpath(paths[0]))
    label = first + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    if not run.settings and not run.differing:
        what = f"nothing that differs from a default is proven by {', '.join(paths[:3])}"
        hint = "let the run have ASCEND_MODULE_LOG_LEVEL=FMK=1:GE=1"
        raise build_error("NP970", what, f"{len(run.unknown)} options are not known.", hint)
    text = format_preset(run, label)
    forms: Forms | None = {
        "toml": lambda: text,
        "text": lambda: _format_text(run),
        "json": lambda: {
            "schema": SCHEMA,
            "scenario": run.scenario or None,
            "options": run.settings,
            "differing": run.differing,
            "unknown": run.unknown,
        },
    }
    if write is not None and path is not None and path != "-" and not is_stream(path):
        write({path: text})
        forms = None
    processes = (
        "1 process" if len(evidence.processes) == 1 else f"{len(evidence.processes)} processes"
    )
    proven = f"{format_count(len(run.settings), 'setting')} of {processes} proven"
    notes = [f"{proven}, {len(run.unknown)} not known; see the comments at the end"]
    if run.differing:
        notes.append(f"differs between processes: {', '.join(run.differing)}")
    return Answer(forms, tuple(notes), 1 if strict and (run.differing or run.unknown) else 0)


def _format_text(run: ImportedRun) -> str:
    lines = [
        f"in force: {name} = {keys.format_short_value(value)}"
        for name, value in run.settings.items()
    ]
    for name, why in run.differing.items():
        summary, _, texts = why.partition(": ")
        lines.append(f"{summary}: {name}: {texts}")
    lines += [f"not known: {name}: {why}" for name, why in run.unknown.items()]
    return join_lines(map(escape_controls, lines))
