"""Parses the ``[[rule]]`` and ``[[ignore]]`` tables of npuprof.toml, and reports all faults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from npuprof import catalog
from npuprof.catalog.axes import find_undeclared_values
from npuprof.catalog.code_pages import find_acceptance_fault
from npuprof.catalog.written_condition import (
    LANGUAGE,
    ConditionError,
    find_unknown_names,
    read_condition,
)
from npuprof.document.policy import Condition, Ignore, TeamRule
from npuprof.model import (
    SECTIONS,
    SEVERITIES,
    TYPE_CHECKING,
    Axes,
    Origin,
    Path,
    Record,
    TomlTable,
    did_you_mean,
)
from npuprof.store.layout import find_glob_fault, find_globs_fault
from npuprof.system import is_list_of

if TYPE_CHECKING:
    #: Records a fault: message, location, hint, and reason.
    Add = Callable[[str, Path, str, str], None]

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)


def read_rule(declared: Axes, origin: Origin, good: TomlTable, add: Add) -> TeamRule | None:
    """Return the rule of a table, None if its condition is invalid.

    ``add`` gets all faults, ``good`` are the valid keys.
    """
    conditions = {
        name: _read_condition(good[name], declared, (*origin.path, name), add)
        for name in ("when", "require")
        if name in good
    }
    require = conditions.get("require")
    if require is None:
        return None
    return TeamRule(
        good.get("code", ""),
        require,
        conditions.get("when"),
        good.get("message", ""),
        good.get("severity", "error"),
        tuple(good.get("presets", ())),
        origin,
        declared,
    )


def read_ignore(origin: Origin, good: TomlTable, _: Add) -> Ignore:
    """Return the accepted finding of a table; ``good`` are the valid keys."""
    presets = tuple(good.get("presets", ()))
    return Ignore(good.get("code", ""), good.get("reason", ""), origin, presets)


def _read_condition(text: str, declared: Axes, where: Path, add: Add) -> Condition | None:
    try:
        tree = read_condition(text)
    except ConditionError as error:
        add(error.what, where, error.hint, LANGUAGE)
        return None
    for finding in find_undeclared_values(tree, declared):
        add(finding.message, where, finding.hint, finding.why)
    unknown = find_unknown_names(tree, ("product", *declared))
    for name in unknown:
        hint = did_you_mean(
            name,
            (*catalog.record_names(), *SECTIONS, *declared),
            "npuprof options lists all; variables are env.NAME",
        )
        add(
            f"{name!r} is no setting",
            where,
            hint,
            "A key that no preset can contain would be unset in all of them.",
        )
    return None if unknown else (text, tree)


def find_line_fault(text: str) -> str:
    """Return why a text is not one line, an empty string if it is."""
    return "" if text.strip() and text.isprintable() else "it is not one line of text"


def _find_code_fault(code: str) -> str:
    """Return why a code is invalid for a team rule, an empty string if it is valid."""
    if _CODE.fullmatch(code) is None:
        return "a code is a letter with letters, digits, '-' and '_' after it"
    return "codes that begin with NP are npuprof's own" if code[:2].upper() == "NP" else ""


def find_name_glob_fault(pattern: str) -> str:
    """Return why a text is not a glob of preset names, an empty string if it is."""
    if pattern.endswith(".toml"):
        return "is the name of a file: the name of a preset has no .toml"
    # names have no .toml: "**" at the end stands for the last segment, too
    plain = f"{pattern[:-2]}*" if pattern == "**" or pattern.endswith("/**") else pattern
    return find_glob_fault(f"{plain}.toml") if plain else "means no preset"


class ProjectKey(Record):
    """A key of a table in npuprof.toml: its type, an example, and its meaning for editors.

    ``check`` finds faults of a value of that type.
    """

    kind: str
    example: str
    doc: str = ""
    check: Callable[[Any], str] | None = None
    is_required: bool = False

    def find_fault(self, value: object) -> str:
        """Return why a value is invalid, to follow the key; an empty string if it is valid."""
        if not _is_of_kind(self.kind, value):
            return f" must be {self.kind}"
        fault = self.check(value) if self.check else ""
        return f": {fault}" if fault else ""


def _is_of_kind(kind: str, value: object) -> bool:
    if kind == "a list of texts":
        return is_list_of(str, value)
    if kind == "a list of tables":
        return is_list_of(dict, value)
    if kind == "a number":
        return type(value) is int or (isinstance(value, float) and math.isfinite(value))
    return isinstance(value, {"a text": str, "true or false": bool, "a table": dict}[kind])


def _find_presets_fault(globs: list[str]) -> str:
    return find_globs_fault(globs, find_name_glob_fault)


def _find_accepted_presets_fault(globs: list[str]) -> str:
    if not globs:
        return "it is empty, so nothing is accepted"
    return _find_presets_fault(globs)


#: The keys of a ``[[rule]]``.
KEYS = {
    "code": ProjectKey(
        "a text",
        'code = "TEAM-1"',
        "Its name among findings.",
        _find_code_fault,
        is_required=True,
    ),
    "when": ProjectKey(
        "a text",
        "when = \"scenario == 'training'\"",
        "Where the rule applies; always by default.",
    ),
    "require": ProjectKey(
        "a text",
        'require = "deterministic == 1"',
        "The condition that must be true there; an unset value is not true.",
        is_required=True,
    ),
    "message": ProjectKey(
        "a text",
        'message = "training is repeatable"',
        "The message of a finding.",
        find_line_fault,
    ),
    "severity": ProjectKey(
        "a text",
        'severity = "warning"',
        "The severity of a finding; error if omitted.",
        lambda text: "" if text in SEVERITIES else f"known are {', '.join(SEVERITIES)}",
    ),
    "presets": ProjectKey(
        "a list of texts",
        'presets = ["production/*"]',
        "Globs of preset names; all presets if omitted.",
        _find_presets_fault,
    ),
}
#: The keys of an ``[[ignore]]``.
IGNORE_KEYS = {
    "code": ProjectKey(
        "a text",
        'code = "NP378"',
        "The code of the findings that are accepted.",
        find_acceptance_fault,
        is_required=True,
    ),
    "reason": ProjectKey(
        "a text",
        'reason = "one device only"',
        "Why they are.",
        lambda text: "" if text.strip() else "it is empty; who reads it later has to know why",
        is_required=True,
    ),
    "presets": ProjectKey(
        "a list of texts",
        'presets = ["production/*"]',
        "Globs of the names of the presets.",
        _find_accepted_presets_fault,
        is_required=True,
    ),
}
