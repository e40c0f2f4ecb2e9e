"""Detects settings of a script without effect.

A setting has no effect in an uncalled function, in a configuration already used by a session, and
in an unused configuration. Uncertain cases are not reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from npuprof.model import Record
from npuprof.scripts.python.expressions import get_last_name, list_nodes, name_callee, write_source
from npuprof.scripts.python.module import Module, NodeIndex
from npuprof.scripts.python.name_uses import TRAINING, Calls
from npuprof.scripts.python.optimizer_entries import AddedEntry
from npuprof.scripts.python.statements import (
    DEFINITIONS,
    Definition,
    find_start,
    is_main_test,
    list_lines,
)
from npuprof.scripts.script_records import GOES_NOWHERE, TOO_LATE, IdleConfig, ScriptSetting

#: Calls that look up functions by computed names; a method such as tensor.eval() does not count.
_COMPUTED_CALLS = ("globals(", "locals(", "vars(", "eval(", "exec(", "__import__(")
#: Where functions are looked up by computed names. Each part begins with letters, which are
#: searched for fast, and looks back then.
_COMPUTED_NAMES = re.compile(
    "|".join(rf"{re.escape(call)}(?<![\w.]{re.escape(call)})" for call in _COMPUTED_CALLS)
    + r"|__dict__|sys\.modules\b(?<!\wsys.modules)|import_module\b(?<!\wimport_module)|Fire\b(?<!\wFire)"
    r"|getattr\((?<!\wgetattr\()[^,()]+,\s*(?![\"'\s])"
)
_KEPT = re.compile(r"main$|test|__")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)*")
_STARTS = ("Session", "Estimator", "RunConfig", "app.run", "npu.open")


def mark_without_effect(
    module: Module,
    settings: Iterable[ScriptSetting],
    notes: Iterable[Record],
    is_named_elsewhere: Callable[[str], bool],
) -> tuple[list[ScriptSetting], list[IdleConfig]]:
    """Return the settings of a script, marking those without effect with the reason, and its unused
    configurations.

    Args:
        module: The script.
        settings: Its settings, in text order.
        notes: Its other records, such as optimizer entries.
        is_named_elsewhere: Whether another file that may import the script contains a name.

    """
    marked = list(settings)
    added = [note for note in notes if isinstance(note, AddedEntry) and note.file == module.path]
    if not (added or any(map(_is_judged, marked))):
        return marked, []
    is_open = _COMPUTED_NAMES.search(module.script.text) is not None
    uncalled = _find_uncalled(module, is_named_elsewhere) if not is_open else {}
    marked = [_mark(setting, uncalled.get(setting.position[0], "")) for setting in marked]
    calls = Calls(module.index, added)
    idle = [
        one
        for one in _list_idle(calls, is_named_elsewhere)
        if not is_open and one.line not in uncalled
    ]
    nowhere = {
        scope: f"{GOES_NOWHERE} of line {config.line}" for config in idle for scope in config.scopes
    }
    marked = [
        _mark(setting, nowhere.get(setting.scope) or _find_lateness(setting, calls))
        for setting in marked
    ]
    return marked, idle


def _is_judged(setting: ScriptSetting) -> bool:
    return bool(setting.key) and not (setting.dead or setting.unused)


def _mark(setting: ScriptSetting, reason: str) -> ScriptSetting:
    return setting._replace(unused=reason) if reason and _is_judged(setting) else setting


def _find_uncalled(module: Module, is_named_elsewhere: Callable[[str], bool]) -> dict[int, str]:
    """Return the lines of uncalled functions and classes, each with the reason.

    Empty for a module with definitions only, which other files use. Methods are not judged alone:
    other code may call them by name.
    """
    index = module.index
    candidates = (
        list(_iterate_candidates(index.definitions))
        if _is_script(module.tree, index.definitions)
        else []
    )
    mentions = _collect_mentions(index, {node.name for node in candidates}) if candidates else {}
    reasons: dict[int, str] = {}
    before = -1
    while len(reasons) > before:  # functions called only by uncalled ones are uncalled too
        before = len(reasons)
        for node in candidates:
            lines = list_lines(node)
            is_called = any(
                line not in lines and line not in reasons for line in mentions.get(node.name, ())
            )
            if node.lineno not in reasons and not is_called and not is_named_elsewhere(node.name):
                label = (
                    f"the class {node.name}" if isinstance(node, ast.ClassDef) else f"{node.name}()"
                )
                reasons |= dict.fromkeys(lines, f"{label} is used nowhere, so this never runs")
    return reasons


def _iterate_candidates(definitions: list[Definition]) -> Iterator[Definition]:
    """Yield the functions and classes that are reachable only by name, outermost first."""
    methods = {
        inner for node in definitions if isinstance(node, ast.ClassDef) for inner in node.body
    }
    for node in definitions:
        if node not in methods and not node.decorator_list and not _KEPT.match(node.name):
            bases = [*node.bases, *node.keywords] if isinstance(node, ast.ClassDef) else []
            if all(getattr(base, "id", "") == "object" for base in bases):
                yield node


def _collect_mentions(index: NodeIndex, names: set[str]) -> dict[str, list[int]]:
    """Return the lines that mention each of the names: in code, in an import, or as a string."""
    mentions: dict[str, list[int]] = {name: [] for name in names}
    for node in (*index.list_of(ast.Name), *index.list_of(ast.Attribute)):
        if (name := get_last_name(node)) in names:
            mentions[name].append(node.lineno)
    texts = (
        (node.value, node.lineno)
        for node in index.list_of(ast.Constant)
        if isinstance(node.value, str)
    )
    for text, line in (*((node.name, node.lineno) for node in index.list_of(ast.alias)), *texts):
        for part in names.intersection(re.split(r"[.:]", text)) if _DOTTED.fullmatch(text) else ():
            mentions[part].append(line)
    return mentions


def _is_script(tree: ast.Module, definitions: list[Definition]) -> bool:
    """Return whether a module runs by itself: it tests __name__, calls its functions, or starts a
    session.
    """
    names = {node.name for node in definitions}
    statements = [statement for statement in tree.body if not isinstance(statement, DEFINITIONS)]
    if any(
        isinstance(statement, ast.If) and is_main_test(statement.test) for statement in statements
    ):
        return True
    calls = [
        node
        for statement in statements
        for node in list_nodes(statement)
        if isinstance(node, ast.Call)
    ]
    return any(
        name_callee(call) in names or write_source(call.func).endswith(_STARTS) for call in calls
    )


def _list_idle(calls: Calls, is_named_elsewhere: Callable[[str], bool]) -> list[IdleConfig]:
    """Return the unused configurations, each with a session that has none or another one."""
    if not calls.sessions:
        return []
    session = min(calls.sessions, key=lambda call: call.lineno)
    own = [
        uses
        for uses in dict.fromkeys(calls.uses.values())
        if not uses.is_open and not uses.takers and len(uses.names) < 2
    ]
    idle = (uses for uses in own if not is_named_elsewhere(uses.names[0]))
    return [
        IdleConfig(
            one.line, one.names[0], tuple(one.sites), write_source(session.func), session.lineno
        )
        for one in idle
    ]


def _find_lateness(setting: ScriptSetting, calls: Calls) -> str:
    """Return the call that used a setting's configuration before, if that is certain and no later
    call uses it.
    """
    uses = calls.uses.get(setting.scope)
    takers = uses.takers if uses is not None and not uses.is_open else []
    takers = {"global_options": calls.openings, "env": calls.of_process}.get(
        setting.surface, takers
    )
    last = max(takers, key=find_start, default=None)
    if last is None or last.lineno > setting.position[0]:
        return ""
    around = calls.list_around(setting.position)
    made = uses.line if uses is not None else 0
    comes_again = any(
        isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and made < node.lineno <= last.lineno
        for node in around
    )
    if comes_again or not all(calls.has_run(call, around) for call in takers):
        return ""
    name = name_callee(last)
    what = (
        f"{name}() ran"
        if name in TRAINING
        else "npu.open()"
        if name == "open"
        else "the session was made"
    )
    return f"{TOO_LATE}{what} (line {last.lineno})"
