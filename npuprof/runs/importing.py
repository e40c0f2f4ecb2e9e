"""``import EVIDENCE``: the preset of a run, of what its logs and graph dumps prove."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from npuprof.model import Finding, NpuprofError
from npuprof.report import output
from npuprof.report.answer import Answer
from npuprof.report.text import escape_controls, format_count
from npuprof.runs import imported
from npuprof.runs.evidence.places import is_evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.report.answer import Forms

SCHEMA = "npuprof.imported-run/1"


def is_all_evidence(paths: Sequence[str], others: dict[str, Any]) -> bool:
    """Return whether what is to be imported is evidence. Raises NpuprofError where only some of it is, or with flags for scripts."""
    found = [path for path in paths if _is_evidence(path)]
    if not found:
        return False
    if len(found) < len(paths):
        script = next(path for path in paths if path not in found)
        what = f"{found[0]} is the log of a run, and {script} is none"
        raise NpuprofError(
            [Finding("NP902", what, "A preset is made of scripts, or of what a run left behind.", "import one, then the other")]
        )
    if given := [flag for flag, value in others.items() if value]:
        what = f"{', '.join(given)} is for scripts, and {found[0]} is the log of a run"
        raise NpuprofError([Finding("NP902", what, "", "leave one of them out")])
    return True


def _is_evidence(path: str) -> bool:
    if path == "-":
        return True  # scripts are read by their paths, which their presets name
    if os.path.isdir(path):
        return is_evidence(path, None)
    try:
        head = output.peek_handed_over(path, 1 << 16) if output.is_handed_over(path) else output.read_plain_file(path, 4096, whole=False)
    except (OSError, ValueError):
        return False
    return (path.endswith((".log", ".pbtxt", ".log.gz")) or b"(" in head) and is_evidence(path, head)


def answer_import(paths: Sequence[str], path: str | None, write: Callable[[dict[str, str]], None] | None, strict: bool) -> Answer:
    """Return the preset of a run; ``write``, where there is one, is called with it if it goes to a file. Raises NpuprofError.

    Exit 1 where ``strict`` and something was not the same everywhere, or is not known.
    """
    from npuprof.runs.evidence.reading import read_told_evidence

    evidence = read_told_evidence(paths)
    run = imported.import_evidence(evidence)
    first = (
        "standard input"
        if paths[0] == "-"
        else "a pipe"
        if output.is_handed_over(paths[0])
        else os.path.basename(os.path.normpath(paths[0]))
    )
    label = first + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    if not run.settings and not run.differing:
        what = f"nothing that differs from a default is proven by {', '.join(paths[:3])}"
        hint = "let the run have ASCEND_MODULE_LOG_LEVEL=FMK=1:GE=1"
        raise NpuprofError([Finding("NP970", what, f"{len(run.unknown)} options are not known.", hint)])
    text = imported.format_preset(run, label)
    forms: Forms | None = {
        "toml": lambda: text,
        "text": lambda: _format_text(run),
        "json": lambda: {
            "schema": SCHEMA, "scenario": run.scenario or None, "options": run.settings, "differing": run.differing, "unknown": run.unknown,
        },
    }  # fmt: skip
    if write is not None and path is not None and path != "-" and not output.is_stream(path):
        write({path: text})
        forms = None
    processes = "1 process" if len(evidence.processes) == 1 else f"{len(evidence.processes)} processes"
    proven = f"{format_count(len(run.settings), 'setting')} of {processes} proven"
    remarks = [f"{proven}, {len(run.unknown)} not known; see the comments at the end"]
    if run.differing:
        remarks.append(f"not the same everywhere: {', '.join(run.differing)}")
    return Answer(forms, (*remarks, *evidence.remarks), 1 if strict and (run.differing or run.unknown) else 0)


def _format_text(run: imported.ImportedRun) -> str:
    from npuprof.document import keys

    lines = [f"in force: {name} = {keys.format_short_value(value)}" for name, value in run.settings.items()]
    lines += [f"{why.partition(':')[0]}: {name}: {why.partition(': ')[2]}" for name, why in run.differing.items()]
    lines += [f"not known: {name}: {why}" for name, why in run.unknown.items()]
    return "".join(f"{escape_controls(line)}\n" for line in lines)
