"""What goes with a migrated store: the rules of the team in npuprof.toml, what baselines know, and the scripts that are out of date."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from npuprof import checks, edit
from npuprof.document.policy import Policy
from npuprof.edit.migration import MadeStep
from npuprof.edit.migration_rules import DueRule, build_rule_findings, find_due_rules
from npuprof.edit.paths import PathChange
from npuprof.edit.preset_file import BOM, format_difference
from npuprof.edit.renaming import replace_strings
from npuprof.model import Finding, NpuprofError, Record
from npuprof.report.output import read_file_content
from npuprof.report.writing import Wanted
from npuprof.resolve.config import Config
from npuprof.store import Folder
from npuprof.store.sources.beside import read_project

#: Which presets break which rules.
_Verdicts = set[tuple[str, str]]


class MovedProject(Record):
    """The rules of a team beside a migrated store: npuprof.toml as it shall be, what was rewritten in it, and what is left to decide."""

    wanted: tuple[Wanted, ...]
    difference: str
    made: list[DueRule]
    left: list[Finding]
    text: str = ""


def migrate_rules(
    home: Folder,
    made: Mapping[str, Iterable[MadeStep]],
    before: Mapping[str, Config],
    resolve: Callable[[str], dict[str, Config]],
    release: str,
) -> MovedProject:
    """Return what becomes of the rules that read what was migrated. ``resolve`` gives the presets as they will be, beside a text.

    A rule is rewritten where it binds and breaks in the presets that it binds and breaks now; else it is told with what to write.
    Raises NpuprofError.
    """
    said = read_project(home).document
    due = find_due_rules(home.load_policy(), made, release)
    rewritten = [one for one in due if one.texts and said is not None and one.rule.origin is not None and one.rule.origin.document is said]
    reasons = {id(one): one.hindrance or ("it is a rule of a source" if one not in rewritten else "") for one in due}
    if said is None or not rewritten:
        return MovedProject((), "", [], _list_left(due, reasons, release))
    now = _judge_rules(before.values())
    changed = _judge_rules(resolve(_write_rules(said.text, rewritten)).values())
    for one in rewritten:
        if other := sorted(name for code, name in now ^ changed if code == one.rule.code):
            verdict = "broken" if (one.rule.code, other[0]) in changed else "kept"
            more = f" (and in {len(other) - 1} more)" if other[1:] else ""
            reasons[id(one)] = f"rewritten, it would be {verdict} in {other[0]}{more}, which is otherwise now"
    kept = [one for one in rewritten if not reasons[id(one)]]
    if not kept:
        return MovedProject((), "", [], _list_left(due, reasons, release))
    text = _write_rules(said.text, kept)
    raw = read_file_content(home.project_file)
    mark = BOM if raw.startswith(BOM) else b""
    wanted = Wanted(os.path.relpath(home.project_file), mark + text.encode(), raw)
    left = [one for one in due if one not in kept]
    return MovedProject((wanted,), format_difference(said.source, said.text, text), kept, _list_left(left, reasons, release), text)


def _write_rules(text: str, rules: Sequence[DueRule]) -> str:
    """Return npuprof.toml with conditions rewritten; their quotes stay, unless they would need an escape then. Raises NpuprofError."""
    places = {(*one.rule.origin.path, name): new for one in rules if one.rule.origin for name, new in one.texts.items()}
    try:
        return replace_strings(text, places)
    except NpuprofError:
        return edit.apply_changes(text, [PathChange(path, new) for path, new in places.items()])


def _judge_rules(configs: Iterable[Config]) -> _Verdicts:
    """Return which presets break which rules of a team."""
    found: _Verdicts = set()
    for config in configs:
        codes = {rule.code for rule in (config.policy or Policy()).rules}
        found |= {(finding.code, config.name) for finding in checks.check_config(config, notes=False) if finding.code in codes}
    return found


def _list_left(due: Iterable[DueRule], reasons: Mapping[int, str], release: str) -> list[Finding]:
    return [finding for one in due for finding in build_rule_findings(one, release, reasons[id(one)])]
