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

#: The keys of a ``[[rule]]``, what they take, and examples.
KEYS = {
    "code": "a text", "when": "a text", "require": "a text", "message": "a text", "severity": "a text", "presets": "a list of texts",
}  # fmt: skip
EXAMPLES = {
    "code": 'code = "TEAM-1"', "when": "when = \"scenario == 'training'\"", "require": 'require = "deterministic == 1"',
    "message": 'message = "training is repeatable"', "severity": 'severity = "warning"', "presets": 'presets = ["production/*"]',
}  # fmt: skip
IGNORE_KEYS = {"code": "a text", "reason": "a text", "presets": "a list of texts"}
IGNORE_EXAMPLES = {**EXAMPLES, "code": 'code = "NP378"', "reason": 'reason = "one device only"'}
_CODE = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)


def read_rule(document: Document, path: Path, table: dict[str, Any], good: dict[str, Any], add: Add) -> TeamRule | None:
    """Return the rule of a table, None where something is wrong with it, which ``add`` takes.

    ``table`` is the table as it stands, ``good`` those of its keys that are of the right kind.
    """
    faults = 0

    def tell(message: str, where: Path, hint: str, why: str = "") -> None:
        nonlocal faults
        faults += 1
        add(message, where, hint, why)

    for name in ("code", "require"):
        if name not in table:
            tell(f"a rule has no {name}", path, f"write {EXAMPLES[name]}")
    if "code" in good and (fault := find_code_fault(good["code"])):
        tell(f"code = {good['code']!r}: {fault}", (*path, "code"), f"write {EXAMPLES['code']}")
    if "severity" in good and good["severity"] not in SEVERITIES:
        hint = did_you_mean(good["severity"], SEVERITIES, f"known are {', '.join(SEVERITIES)}")
        tell(f"severity = {good['severity']!r} is unknown", (*path, "severity"), hint)
    if "message" in good and not (good["message"].strip() and good["message"].isprintable()):
        tell("message must be one line of text", (*path, "message"), f"write {EXAMPLES['message']}")
    for index, pattern in enumerate(good.get("presets", ())):
        if fault := find_name_glob_fault(pattern):
            tell(f"presets: {pattern!r} {fault}", (*path, "presets", index), f"write {EXAMPLES['presets']}")
    conditions = {name: _read_condition(good[name], (*path, name), tell) for name in ("when", "require") if name in good}
    require = conditions.get("require")
    if faults or require is None or len(good) < len(table):
        return None
    return TeamRule(
        good["code"], require, conditions.get("when"), good.get("message", ""), good.get("severity", "error"),
        tuple(good.get("presets", ())), Origin(document, path),
    )  # fmt: skip


def read_ignore(document: Document, path: Path, table: dict[str, Any], good: dict[str, Any], add: Add) -> Ignore | None:
    """Return what a table accepts, None where something is wrong with it, which ``add`` takes; as ``read_rule`` does."""
    missing = [name for name in IGNORE_KEYS if name not in table]
    faults: list[tuple[str, Path, str, str]] = [
        (f"an ignore has no {name}", path, f"write {IGNORE_EXAMPLES[name]}", "") for name in missing
    ]
    if "code" in good and (fault := find_acceptance_fault(good["code"])):
        faults.append((f"code = {good['code']!r}: {fault}", (*path, "code"), f"write {IGNORE_EXAMPLES['code']}", ""))
    if "reason" in good and not good["reason"].strip():
        faults.append(
            ("the reason is empty", (*path, "reason"), f"write {IGNORE_EXAMPLES['reason']}", "Who reads it later has to know why.")
        )
    for index, pattern in enumerate(good.get("presets", ())):
        if fault := find_name_glob_fault(pattern):
            faults.append((f"presets: {pattern!r} {fault}", (*path, "presets", index), f"write {EXAMPLES['presets']}", ""))
    if "presets" in good and not good["presets"]:
        faults.append(("presets is empty, so nothing is accepted", (*path, "presets"), f"write {EXAMPLES['presets']}", ""))
    for one in faults:
        add(*one)
    if faults or len(good) < len(table):
        return None
    return Ignore(good["code"], good["reason"], Origin(document, path), tuple(good["presets"]))


def _read_condition(text: str, where: Path, tell: Callable[[str, Path, str, str], None]) -> Condition | None:
    try:
        tree = written_condition.read_condition(text)
    except written_condition.ConditionError as error:
        tell(error.what, where, error.hint, written_condition.LANGUAGE)
        return None
    unknown = [name for name in written_condition.find_unknown_names(tree) if name != "product"]
    for name in unknown:
        hint = did_you_mean(name, (*catalog.record_names(), *SECTIONS), "npuprof options lists all; variables are env.NAME")
        tell(f"{name!r} is no setting", where, hint, "What no preset can hold would be unset in all of them.")
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
