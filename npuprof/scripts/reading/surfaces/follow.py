"""Calls of functions of other files of the tree: what such a function sets belongs to the script that calls it.

The function is read with the arguments of the call, as if its lines stood there; functions that it calls are followed on, so far
as they are of the tree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from npuprof.scripts.reading.found import Branch, Followed
from npuprof.scripts.reading.modules import Home, Module, Modules, list_functions, list_methods
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.surfaces import global_options
from npuprof.scripts.reading.surfaces.hot import SURFACES, find_hot_lines
from npuprof.scripts.reading.surfaces.methods import Entered, find_function, find_method
from npuprof.scripts.reading.surfaces.option_names import find_options_names
from npuprof.scripts.reading.surfaces.walk import Walk
from npuprof.scripts.reading.values.arguments import bind_call_arguments
from npuprof.scripts.reading.values.lineages import get_first_parameter
from npuprof.scripts.reading.values.scopes import Function, Scope
from npuprof.scripts.reading.values.terms import format_expression, name_callee

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.scripts.reading.surfaces.walk import Handler

    Mentions = Callable[[bytes], bool]

#: So many functions are entered one from within the other, and so many in all for one script.
_DEEPEST = 6
_MOST_FOLLOWED = 200
_WORD = re.compile(r"\w+")
_SETS_ATTRIBUTE = re.compile(r"[ \t]+(?:([A-Za-z_]\w*)(?:\.\w+)+[ \t]*=(?!=)|setattr\(([A-Za-z_]\w*)\b)")


def may_follow(path: str, data: bytes, modules: Modules, mentions: Mentions) -> bool:
    """Return whether a script names a function of its tree that can set something, without parsing the script."""
    called, options = _list_supplied_names(path, data, modules, mentions)
    return any(name.encode() in data for name in (*called, *options))


def open_walk(script: Script, data: bytes, handlers: tuple[Handler, ...], modules: Modules, mentions: Mentions) -> Walk:
    """Return the walk over a script whose calls are followed."""
    home = modules.open_home(script.path)
    called, options = _list_supplied_names(script.path, data, modules, mentions)
    if called:
        handlers = (*handlers, handle_statement)
    if options and global_options.handle_statement not in handlers:
        handlers = (*handlers, global_options.handle_statement)
    walk = Walk(script, find_hot_lines(script, called, options), handlers, home)
    if any(name.encode() in data for name in options):
        walk.facts["options handed"] = True  # other files have them too
    modules.rebound = _find_rebound_constants(home, walk)
    return walk


def _list_supplied_names(path: str, data: bytes, modules: Modules, mentions: Mentions) -> tuple[set[str], set[str]]:
    """Return the names under which a text calls functions of its tree that can set something, and those of options of TensorFlow 2."""
    called: set[str] = set()
    options: set[str] = set()
    for imported in modules.list_imported(path, data):
        if modules.supplies(imported, mentions) and (module := modules.load(imported)):
            _find_supplied(module, mentions)
            called |= {*(module.functions or ()), *module.classes, *(one.name for one in module.methods), *module.passed} - {"__init__"}
            options |= module.options
    if (not called and not options) or b" as " not in data:
        return called, options
    text = data.decode(errors="replace")
    return _add_second_names(called, text), _add_second_names(options, text)


def _add_second_names(names: set[str], text: str) -> set[str]:
    return names | {second for name in names for second in re.findall(rf"\b{name}\s+as\s+(\w+)", text)}


def _find_supplied(module: Module, mentions: Mentions) -> None:
    """Find the functions of a module that can set something, and its options, those that it imports too."""
    if module.functions is not None:
        return
    modules = module.home.modules
    module.functions = {}  # a circle adds nothing
    called, options = _list_supplied_names(module.path, modules.read(module.path), modules, mentions)
    module.hot = find_hot_lines(module.script, called, options)
    if options or "global_options" in module.script.text:
        module.hot = sorted({*module.hot, *_find_lines_on_parameters(module)})
    _select_setting(module, called)
    text = module.script.text
    words = set(_WORD.findall(text))
    module.passed = called if "import *" in text else called & words
    own = {name for name in find_options_names(text, options) if module.scope.list_bindings(name)}
    module.options = own | (options if "import *" in text else options & words)


def _find_lines_on_parameters(module: Module) -> Iterator[int]:
    """Yield the lines in which functions set an attribute of what they are given: that may be the options."""
    for function in list_functions(module).values():
        given = {arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
        for number in range(function.lineno, (function.end_lineno or function.lineno) + 1) if given else ():
            match = _SETS_ATTRIBUTE.match(module.script.lines[number - 1])
            if match and (match[1] or match[2]) in given:
                yield number


def _select_setting(module: Module, called: set[str]) -> None:
    """Choose the functions and methods of a module in whose lines something can be set, or that call such functions."""
    methods = list_methods(module)
    plain = list_functions(module)
    every = [*plain.values(), *methods]
    hot = set(module.hot)
    words = {function: _collect_words(module, function) for function in every}
    chosen = {
        function
        for function in every
        if not hot.isdisjoint(range(function.lineno, (function.end_lineno or function.lineno) + 1)) or words[function] & called
    }
    callers: dict[str, list[Function]] = {}
    names = {_name_called(function, methods) for function in every}
    for function in every:
        for word in words[function] & names:
            callers.setdefault(word, []).append(function)
    waiting = list(chosen)
    while waiting:
        for function in callers.get(_name_called(waiting.pop(), methods), ()):
            if function not in chosen:
                chosen.add(function)
                waiting.append(function)
    module.methods = frozenset(one for one in methods if one in chosen)
    module.functions = {name: function for name, function in plain.items() if function in chosen}
    classes = {methods[one].name for one in module.methods}
    for cls in dict.fromkeys(methods.values()):  # those above stand further up, or come from elsewhere
        if any(format_expression(base).rpartition(".")[2] in (*classes, *called) for base in cls.bases):
            classes.add(cls.name)
    module.classes = frozenset(classes)
    wanted = {*(one.name for one in chosen), *classes} - {"__init__"}
    module.hot = sorted(hot | {at for at, line in enumerate(module.script.lines, 1) if wanted & set(_WORD.findall(line))})


def _name_called(function: Function, methods: dict[Function, ast.ClassDef]) -> str:
    """Return the name in a call that enters a function: that of its class, if it is what makes objects."""
    return methods[function].name if function.name == "__init__" and function in methods else function.name


def _collect_words(module: Module, function: Function) -> set[str]:
    lines = module.script.lines[function.lineno : function.end_lineno]
    return {word for line in lines for word in _WORD.findall(line)}


def _find_rebound_constants(home: Home, walk: Walk) -> set[tuple[str, str]]:
    """Return the names of modules that a script gives other values: ``settings.PRECISION = ...``."""
    scope = walk.open_module()
    found: set[tuple[str, str]] = set()
    for text in scope.rebound:
        owner, dot, name = text.rpartition(".")
        if dot and name != "*" and scope.list_binding_kinds(owner.partition(".")[0]) == {"import"}:
            path = home.find_module(ast.parse(owner, mode="eval").body, scope)
            found |= {(path, name)} if path else set()
    return found


def handle_statement(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Follow the calls of one statement."""
    for expression in expressions:
        if isinstance(expression, (ast.Constant, ast.Name)) or not walk.is_hot(expression):
            continue
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and (entered := _find_entered(walk, node, statement, scope)):
                _follow_call(walk, node, entered, scope, branches)


def _find_entered(walk: Walk, call: ast.Call, statement: ast.stmt, scope: Scope) -> Entered | None:
    """Return the function of another file that a call enters, from within such a function one of its own file too."""
    home = scope.home
    if not isinstance(home, Home):
        return None
    entered = find_function(call, scope) or find_method(call, statement, scope)
    if entered is None or (entered.scope.home is home and walk.caller is None) or not isinstance(entered.scope.home, Home):
        return None
    module = home.modules.load(entered.scope.home.path)
    if module is None:
        return None
    known = (module.functions or {}).get(entered.function.name) is entered.function or entered.function in module.methods
    return entered._replace(module=module) if known else None


def _follow_call(walk: Walk, call: ast.Call, entered: Entered, scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Read what a call sets, and add it to what the walk has found."""
    module, function = entered.module, entered.function
    assert module is not None
    mark = module.path, function.lineno
    if mark in walk.stack or len(walk.stack) >= _DEEPEST:
        return
    if walk.follows >= _MOST_FOLLOWED:
        if walk.caller is None:
            walk.add_fact("unfollowed", (call.lineno, name_callee(call)))
        return
    walk.follows += 1
    before = len(walk.sites)
    outer = module.scope.with_label(f"{scope.name}@{call.lineno}.{call.col_offset}", _list_own_rebound(module))
    if isinstance(entered.scope.node, ast.ClassDef):
        outer = Scope(entered.scope.node, outer)
    inside = Scope(function, outer)
    bound = bind_call_arguments(function, inside, entered.call, scope) or {}
    if entered.owner is not None:
        bound[get_first_parameter(function)] = entered.owner
    called = Walk(module.script, module.hot, _choose_handlers(module), module.home)
    called.stack = (*walk.stack, mark)
    called.walk_called(function, inside.with_bound(bound) if bound else inside, branches, walk)
    place = call.lineno, walk.script.column(call.lineno, call.col_offset)
    for name, site in list(islice(walk.sites.items(), before, None)):
        walk.sites[name] = site._replace(line=place[0], column=place[1], made_by=(*site.made_by, function.name))
    walk.found += [one._replace(call=place) for one in called.found]
    if any(not one.commented for one in called.found):
        walk.functions.setdefault(mark, Followed(module.path, function.lineno, function.end_lineno or function.lineno, function.name))


def _list_own_rebound(module: Module) -> Iterable[str]:
    return (name for path, name in module.home.modules.rebound if path == module.path)


def _choose_handlers(module: Module) -> tuple[Handler, ...]:
    text = module.script.text
    chosen = [surface for surface in SURFACES if any(word in text for word in surface.HOT)]
    if module.options and global_options not in chosen:
        chosen.append(global_options)
    return (*(surface.handle_statement for surface in chosen), handle_statement)
