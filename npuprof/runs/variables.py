"""Verdicts on variables, by the lines that torch_npu writes with ``TORCH_NPU_LOGS=env``: what a process read of its environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from npuprof.catalog import find_variable
from npuprof.catalog.pairs import find_pairs_form
from npuprof.document import keys
from npuprof.renderers import config_section
from npuprof.renderers.environment import format_set_variable
from npuprof.runs.evidence import Process, Text
from npuprof.runs.log_values import ABSENT, CANNOT_TELL, CHANGED, IN_FORCE, NOT_IN_FORCE, OTHER, SAME, UNSURE, Verdict, is_unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config

#: What shows which variables are read next time.
SHOWN = "TORCH_NPU_LOGS=env"
#: What stands for a variable that is read and not set.
_UNSET = "(null)"


def is_for_torch_npu(config: Config) -> bool:
    """Return whether torch_npu reads a preset: its section or releases are there, or its variables and no session option."""
    if config_section(config, "torch_npu") or "torch_npu" in dict(config.versions):
        return True
    records = [find_variable(name) for name in config.env] if not config.options else []
    return any(record is not None and record.framework == "torch_npu" for record in records)


def judge_variables(env: Mapping[str, Any], process: Process) -> list[Verdict]:
    """Return the verdict on each variable of a preset, in the order of the variables."""
    verdicts = [_judge_variable(name, value, process.variables) for name, value in env.items()]
    note = "lines of this log are cut, or run into each other"
    return [
        verdict._replace(state=CANNOT_TELL, note=note) if process.spoilt and verdict.state in NOT_IN_FORCE else verdict
        for verdict in verdicts
    ]


def _judge_variable(name: str, value: Any, variables: Mapping[str, list[Text]]) -> Verdict:
    key, texts = keys.format_full_key("env", name), variables.get(name, ())
    wanted = format_set_variable(name, value)
    shown = tuple(dict.fromkeys(text.text for text in texts))
    if not texts:
        note = "no line of it: torch_npu logs a variable when it reads it" if variables else ""
        return Verdict(key, CANNOT_TELL, (), note, "" if variables else SHOWN)
    if wanted is None or "\n" in wanted:
        why = "each process has a value of its own" if wanted is None else "the log has one line of it"
        return Verdict(key, CANNOT_TELL, shown, why)
    says = {_judge_text(name, wanted, text) for text in texts}
    if says == {SAME}:
        return Verdict(key, IN_FORCE)
    if says == {OTHER}:
        return Verdict(key, ABSENT if shown == (_UNSET,) else CHANGED, shown)
    note = "its line is damaged, or may be cut" if UNSURE in says else "it was read with different values"
    return Verdict(key, CANNOT_TELL, shown, note)


def _judge_text(name: str, wanted: str, shown: Text) -> str:
    """Return what a text says of a wanted one; pairs are the same in any order."""
    if shown.cut:
        return UNSURE if wanted.startswith(shown.text) or shown.text.startswith(wanted) else OTHER
    if is_unreadable(shown.text):
        return SAME if shown.text == wanted else UNSURE
    form = find_pairs_form(name)
    pairs = form.parse(wanted) if form else None
    return SAME if shown.text == wanted or (form and pairs is not None and pairs == form.parse(shown.text)) else OTHER


def choose_log_modules(environment: Mapping[str, str]) -> str:
    """Return a value of TORCH_NPU_LOGS that shows the variables too; without one, torch reads what TORCH_LOGS has."""
    modules: Iterable[str] = (environment.get("TORCH_NPU_LOGS") or environment.get("TORCH_LOGS") or "").split(",")
    known = [module for module in modules if module]
    return ",".join(known if any(module.strip().lstrip("+") == "env" for module in known) else [*known, "env"])
