"""The ``[[rule]]`` and ``[[ignore]]`` tables of npuprof.toml, read with all that is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from npuprof import catalog
from npuprof.catalog import written_condition
from npuprof.catalog.pages import find_acceptance_fault
from npuprof.document import Document
from npuprof.document.policy import Condition, Ignore, TeamRule
from npuprof.model import SECTIONS, SEVERITIES, Origin, Path, did_you_mean
from npuprof.store.layout import find_glob_fault
from npuprof.system.patterns import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: Takes a fault: the message, the place, what to try, and why.
    Add = Callable[[str, Path, str, str], None]

#: The keys of a ``[[rule]]`` and of an ``[[ignore]]``: what a value must be, and an example.
KEYS = {
    "code": ("a text", 'code = "TEAM-1"'), "when": ("a text", "when = \"scenario == 'training'\""),
    "require": ("a text", 'require = "deterministic == 1"'), "message": ("a text", 'message = "training is repeatable"'),
    "severity": ("a text", 'severity = "warning"'), "presets": ("a list of texts", 'presets = ["production/*"]'),
}  # fmt: skip
IGNORE_KEYS = {"code": ("a text", 'code = "NP378"'), "reason": ("a text", 'reason = "one device only"'), "presets": KEYS["presets"]}
_CODE = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)


def read_rule(document: Document, path: Path, good: dict[str, Any], add: Add) -> TeamRule | None:
    """Return the rule of a table, None if its condition is at fault; ``add`` takes all faults, ``good`` are the keys of the right kind."""
    if "code" in good and (fault := find_code_fault(good["code"])):
        add(f"code = {good['code']!r}: {fault}", (*path, "code"), f"write {KEYS['code'][1]}", "")
    if "severity" in good and good["severity"] not in SEVERITIES:
        hint = did_you_mean(good["severity"], SEVERITIES, f"known are {', '.join(SEVERITIES)}")
        add(f"severity = {good['severity']!r} is unknown", (*path, "severity"), hint, "")
    if "message" in good and not (good["message"].strip() and good["message"].isprintable()):
        add("message must be one line of text", (*path, "message"), f"write {KEYS['message'][1]}", "")
    _check_globs(path, good, add)
    when, require = (_read_condition(good[name], (*path, name), add) if name in good else None for name in ("when", "require"))
    return require and TeamRule(
        good.get("code", ""), require, when, good.get("message", ""), good.get("severity", "error"),
        tuple(good.get("presets", ())), Origin(document, path),
    )  # fmt: skip


def read_ignore(document: Document, path: Path, good: dict[str, Any], add: Add) -> Ignore:
    """Return what a table accepts; ``add`` takes all faults, ``good`` are the keys of the right kind."""
    if "code" in good and (fault := find_acceptance_fault(good["code"])):
        add(f"code = {good['code']!r}: {fault}", (*path, "code"), f"write {IGNORE_KEYS['code'][1]}", "")
    if "reason" in good and not good["reason"].strip():
        add("the reason is empty", (*path, "reason"), f"write {IGNORE_KEYS['reason'][1]}", "Who reads it later has to know why.")
    _check_globs(path, good, add)
    if "presets" in good and not good["presets"]:
        add("presets is empty, so nothing is accepted", (*path, "presets"), f"write {KEYS['presets'][1]}", "")
    return Ignore(good.get("code", ""), good.get("reason", ""), Origin(document, path), tuple(good.get("presets", ())))


def _check_globs(path: Path, good: dict[str, Any], add: Add) -> None:
    for index, pattern in enumerate(good.get("presets", ())):
        if fault := find_name_glob_fault(pattern):
            add(f"presets: {pattern!r} {fault}", (*path, "presets", index), f"write {KEYS['presets'][1]}", "")


def _read_condition(text: str, where: Path, add: Add) -> Condition | None:
    try:
        tree = written_condition.read_condition(text)
    except written_condition.ConditionError as error:
        add(error.what, where, error.hint, written_condition.LANGUAGE)
        return None
    unknown = [name for name in written_condition.find_unknown_names(tree) if name != "product"]
    for name in unknown:
        hint = did_you_mean(name, (*catalog.record_names(), *SECTIONS), "npuprof options lists all; variables are env.NAME")
        add(f"{name!r} is no setting", where, hint, "What no preset can hold would be unset in all of them.")
    return None if unknown else (text, tree)


def find_code_fault(code: str) -> str:
    """Return why a team's rule cannot have a code, an empty text where it can."""
    if _CODE.fullmatch(code) is None:
        return "a code is a letter with letters, digits, '-' and '_' after it"
    return "codes that begin with NP are npuprof's own" if code[:2].upper() == "NP" else ""


def find_name_glob_fault(pattern: str) -> str:
    """Return why a text is no glob of names of presets, an empty text where it is one."""
    if pattern.endswith(".toml"):
        return "is the name of a file: the name of a preset has no .toml"
    plain = f"{pattern[:-2]}*" if pattern == "**" or pattern.endswith("/**") else pattern
    return find_glob_fault(f"{plain}.toml") if plain else "means no preset"
