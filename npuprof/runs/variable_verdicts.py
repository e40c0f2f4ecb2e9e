"""Verdicts on variables, from torch_npu's lines with ``TORCH_NPU_LOGS=env``.

The lines have the variables that a process read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from npuprof.catalog import find_variable, values
from npuprof.catalog.key_value_pairs import find_pairs_form
from npuprof.document import keys
from npuprof.resolve.config import Config
from npuprof.runs.evidence import Process, Text
from npuprof.runs.log_values import (
    ABSENT,
    CANNOT_TELL,
    CHANGED,
    IN_FORCE,
    NOT_IN_FORCE,
    OTHER,
    SAME,
    UNSURE,
    Verdict,
    is_unreadable,
)

#: Makes the next run log the variables it reads.
SHOWN = "TORCH_NPU_LOGS=env"
#: The text of a variable that is read but not set.
_UNSET = "(null)"


def is_for_torch_npu(config: Config) -> bool:
    """Return whether a preset is for torch_npu.

    It has its section or releases, or variables without session options.
    """
    if config.shared_sections["torch_npu"] or "torch_npu" in dict(config.versions):
        return True
    records = [find_variable(name) for name in config.env] if not config.options else []
    return any(record is not None and record.framework == "torch_npu" for record in records)


def judge_variables(env: Mapping[str, Any], process: Process) -> list[Verdict]:
    """Return the verdict on each variable of a preset, in order."""
    verdicts = [_judge_variable(name, value, process.variables) for name, value in env.items()]
    note = "lines of this log are cut, or run into each other"
    return [
        verdict._replace(state=CANNOT_TELL, note=note)
        if process.is_truncated and verdict.state in NOT_IN_FORCE
        else verdict
        for verdict in verdicts
    ]


def _judge_variable(name: str, value: Any, variables: Mapping[str, list[Text]]) -> Verdict:
    key, texts = keys.format_full_key("env", name), variables.get(name, ())
    expected = values.format_exported_text(name, value)
    shown = tuple(dict.fromkeys(text.text for text in texts))
    unknown = partial(Verdict, key, CANNOT_TELL, shown)
    if not texts:
        if variables:
            return unknown("no line of it: torch_npu logs a variable when it reads it")
        return unknown("", SHOWN)
    if expected is None:
        return unknown("each process has a value of its own")
    if "\n" in expected:
        return unknown("the log has one line of it")
    says = {_judge_text(name, expected, text) for text in texts}
    if says == {SAME}:
        return Verdict(key, IN_FORCE)
    if says == {OTHER}:
        return Verdict(key, ABSENT if shown == (_UNSET,) else CHANGED, shown)
    if UNSURE in says:
        return unknown("its line is damaged, or may be cut")
    return unknown("it was read with different values")


def _judge_text(name: str, expected: str, shown: Text) -> str:
    """Return the comparison of a text with the expected one; the order of pairs does not matter."""
    if shown.cut:
        # another line may have run into it, so that the text is longer
        is_start = expected.startswith(shown.text) or shown.text.startswith(expected)
        return UNSURE if is_start else OTHER
    if shown.text == expected:
        return SAME
    if is_unreadable(shown.text):
        return UNSURE
    form = find_pairs_form(name)
    pairs = form.parse(expected) if form else None
    return SAME if form and pairs is not None and pairs == form.parse(shown.text) else OTHER


def choose_log_modules(environment: Mapping[str, str]) -> str:
    """Return a value of TORCH_NPU_LOGS that also logs variables.

    Without one, torch reads TORCH_LOGS.
    """
    text = environment.get("TORCH_NPU_LOGS") or environment.get("TORCH_LOGS") or ""
    modules = [module for module in text.split(",") if module]
    # a plus sign in front of a module selects its level
    if not any(module.strip().lstrip("+") == "env" for module in modules):
        modules.append("env")
    return ",".join(modules)
