"""Detects settings of a script without effect.

A setting has no effect in an uncalled function, in a configuration already used by a session, and
in an unused configuration. Uncertain cases are not reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter

from npuprof import catalog
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
    + r"|__dict__|sys\.modules\b(?<!\wsys.modules)|import_module\b(?<!\wimport_module)"
    r"|Fire\b(?<!\wFire)|getattr\((?<!\wgetattr\()[^,()]+,\s*(?![\"'\s])"
)
#: Names that tools call: those of programs, tests, and special methods.
_CALLED_BY_TOOLS = re.compile(r"main$|test|__")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)*")
_STARTS = ("Session", "Estimator", "RunConfig", "app.run", "npu.open")


def mark_without_effect(
    module: Module,
    settings: Iterable[ScriptSetting],
    notes: Iterable[Record],
    is_named_elsewhere: Callable[[str], bool],
) -> tuple[list[ScriptSetting], list[IdleConfig]]:
    """Return the settings of a script, those without effect with the reason, and unused configs.

    Args:
        module: The script.
        settings: Its settings, in text order.
        notes: Its other records, such as optimizer entries.
        is_named_elsewhere: Whether another file that may import the script contains a name.

    """
    marked = list(settings)
    added = [note for note in notes if isinstance(note, AddedEntry) and note.file == module.path]
    if not added and not any(map(_is_judged, marked)):
        return marked, []
    # a function may be called, and a configuration used, by a computed name
    is_open = _COMPUTED_NAMES.search(module.script.text) is not None
    uncalled = {} if is_open else _find_uncalled(module, is_named_elsewhere)
    marked = [_mark(setting, uncalled.get(setting.position[0], "")) for setting in marked]
    calls = Calls(module.index, added)
    idle = []
    if not is_open:
        unused = _list_idle(calls, is_named_elsewhere)
        idle = [config for config in unused if config.line not in uncalled]
    reasons = {
        scope: f"{GOES_NOWHERE} of line {config.line}" for config in idle for scope in config.scopes
    }
    marked = [
        _mark(setting, reasons.get(setting.scope) or _find_lateness(setting, calls))
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
    if not _is_script(module.tree, index.definitions):
        return {}
    candidates = list(_iterate_candidates(index.definitions))
    if not candidates:
        return {}
    mentions = _collect_mentions(index, {node.name for node in candidates})
    reasons: dict[int, str] = {}
    before = -1
    while len(reasons) > before:  # functions called only by uncalled ones are uncalled too
        before = len(reasons)
        for node in candidates:
            if node.lineno in reasons:
                continue
            lines = list_lines(node)
            is_called = any(
                line not in lines and line not in reasons for line in mentions[node.name]
            )
            # last, as it reads other files of the tree
            if not is_called and not is_named_elsewhere(node.name):
                is_class = isinstance(node, ast.ClassDef)
                label = f"the class {node.name}" if is_class else f"{node.name}()"
                reasons |= dict.fromkeys(lines, f"{label} is used nowhere, so this never runs")
    return reasons


def _iterate_candidates(definitions: list[Definition]) -> Iterator[Definition]:
    """Yield the functions and classes that are reachable only by name, outermost first."""
    classes = (node for node in definitions if isinstance(node, ast.ClassDef))
    methods = {statement for node in classes for statement in node.body}
    for node in definitions:
        if node in methods or node.decorator_list or _CALLED_BY_TOOLS.match(node.name):
            continue
        # a base class or a decorator may register it
        bases = [*node.bases, *node.keywords] if isinstance(node, ast.ClassDef) else []
        if all(getattr(base, "id", "") == "object" for base in bases):
            yield node


def _collect_mentions(index: NodeIndex, names: set[str]) -> dict[str, list[int]]:
    """Return the lines that mention each of the names: in code, in an import, or as a string."""
    mentions: dict[str, list[int]] = {name: [] for name in names}
    for node in (*index.list_of(ast.Name), *index.list_of(ast.Attribute)):
        if (name := get_last_name(node)) in names:
            mentions[name].append(node.lineno)
    texts = [(alias.name, alias.lineno) for alias in index.list_of(ast.alias)]
    constants = index.list_of(ast.Constant)
    texts += [(node.value, node.lineno) for node in constants if isinstance(node.value, str)]
    for text, line in texts:
        # as in "module:function" of an entry point
        if _DOTTED.fullmatch(text):
            for name in names.intersection(re.split(r"[.:]", text)):
                mentions[name].append(line)
    return mentions


def _is_script(tree: ast.Module, definitions: list[Definition]) -> bool:
    """Return whether a module runs by itself.

    It tests __name__, calls its functions, or starts a session.
    """
    names = {node.name for node in definitions}
    statements = [statement for statement in tree.body if not isinstance(statement, DEFINITIONS)]
    return any(
        isinstance(statement, ast.If) and is_main_test(statement.test) for statement in statements
    ) or any(
        isinstance(node, ast.Call)
        and (name_callee(node) in names or write_source(node.func).endswith(_STARTS))
        for statement in statements
        for node in list_nodes(statement)
    )


def _list_idle(calls: Calls, is_named_elsewhere: Callable[[str], bool]) -> list[IdleConfig]:
    """Return the unused configurations, each with a session that has none or another one."""
    if not calls.sessions:
        return []
    session = min(calls.sessions, key=attrgetter("lineno"))
    idle = []
    for uses in dict.fromkeys(calls.uses.values()):
        name, *containers = uses.names
        if uses.is_open or uses.takers or containers or is_named_elsewhere(name):
            continue
        session_name = write_source(session.func)
        idle.append(IdleConfig(uses.line, name, tuple(uses.sites), session_name, session.lineno))
    return idle


def _find_lateness(setting: ScriptSetting, calls: Calls) -> str:
    """Return the call that used a setting's configuration before.

    Empty if that is not certain, or if a later call uses it.
    """
    around = calls.list_around(setting.position)
    variable = catalog.find_variable(setting.name) if setting.surface == "env" else None
    for call in calls.list_named(variable.read_by_calls if variable else ()):
        if calls.has_run(call, around):
            return f"{TOO_LATE}{name_callee(call)}() ran (line {call.lineno})"
    uses = calls.uses.get(setting.scope)
    if setting.surface == "global_options":
        takers = calls.openings
    elif setting.surface == "env":
        takers = calls.of_process
    else:
        takers = uses.takers if uses is not None and not uses.is_open else []
    last = max(takers, key=find_start, default=None)
    line, _ = setting.position
    if last is None or last.lineno > line:
        return ""
    creation_line = uses.line if uses is not None else 0
    for node in around:
        if not isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            continue
        if creation_line < node.lineno <= last.lineno:
            return ""  # the next iteration uses it again
    if not all(calls.has_run(call, around) for call in takers):
        return ""
    name = name_callee(last)
    if name in TRAINING:
        event = f"{name}() ran"
    else:
        event = "npu.open()" if name == "open" else "the session was made"
    return f"{TOO_LATE}{event} (line {last.lineno})"
