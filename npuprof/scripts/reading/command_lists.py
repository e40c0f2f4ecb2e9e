"""Command lines of programs in Python: lists and texts that are passed to a call.

``Popen(["vllm", "serve", ...])``, ``os.system("atc ...")``, ``Server(model, server_args)``. A list
is followed from its assignment through ``append``, ``extend`` and ``+=`` to the call.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from itertools import dropwhile

from npuprof.catalog.programs import load_programs
from npuprof.scripts.atc_flags import read_flags
from npuprof.scripts.python.environ import RUNNERS, holds_variables, report_table
from npuprof.scripts.python.expressions import format_expression, list_nodes, name_callee
from npuprof.scripts.python.loops import follow_name
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.reading.program_arguments import find_start, mentions_program, read_arguments
from npuprof.scripts.reading.recipes import find_list_program
from npuprof.scripts.reading.shells.arrival import PREFIXES
from npuprof.scripts.reading.variable_files import build_variable_setting
from npuprof.scripts.script_records import Branches, are_exclusive
from npuprof.scripts.shell_lexer import Part, Word, parse_shell_commands
from npuprof.scripts.steps import count_steps

#: Calls that start nothing: they compare, parse or change a list.
_QUIET = re.compile(
    r"(?i)(?:assert|parse|add_argument|check|verify|strip|filter|validate).*"
    r"|append|extend|index|remove|insert|join|debug|info|warning|error"
)
#: A model's name or path.
_MODEL = re.compile(r"[\w.~-]*(?:/[\w.-]+)+(?<!\.py)(?<!\.sh)")
#: The maximum length of a chain of names and lists.
_DEEPEST = 8
#: The rest of a longer list is ignored.
_MOST_ITEMS = 300
_ATC = re.compile(r"(?:[^\s;&|]*/)?atc")
_ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]*)=")
_NO_NAME = re.compile(r"\W+")

#: An argument, and the conditions under which the list has it.
Item = tuple[Word, Branches]
#: The scopes of launches by the file and position of their arguments.
Launches = dict[tuple[str, int, int], str]


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    match call:
        case ast.Call(ast.Attribute(changed, "append" | "extend"), [value]):
            _extend(visitor, changed, value, scope)
    name = name_callee(call)
    if name in RUNNERS and call.args:
        _read_conversion(visitor, call, scope)
    if not name or hasattr(builtins, name) or _QUIET.fullmatch(name):
        return
    first = len(visitor.settings)
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    launches: Launches = {}
    for value in values:
        if holds_variables(value, scope):
            report_table(visitor, value, scope)
    for value in values:
        launches |= _read_value(visitor, call, value, scope)
    if not launches:
        del visitor.settings[first:]  # variables of something else
        return
    visitor.launches |= launches
    visitor.launch = call
    visitor.settings[first:] = [
        setting._replace(command=f"line {call.lineno}") for setting in visitor.settings[first:]
    ]


def _read_value(visitor: Visitor, call: ast.Call, value: ast.expr, scope: Scope) -> Launches:
    """Report the launches in an argument of a call: a text for a shell, or a list."""
    path, here = visitor.module.path, visitor.branches
    is_runner = name_callee(call) in RUNNERS
    items = _list_items(visitor, value, scope)
    if items is None:
        items = [(_build_argument(visitor, *follow_name(value, scope)), here)] if is_runner else []
    launches: Launches = {}
    for word, _ in items:
        launches |= _read_text(visitor, word)
    if launches or not items:
        return launches
    # a call may be passed the model next to the flags, as an argument
    named_model = [keyword.value for keyword in call.keywords if keyword.arg == "model"]
    passed = () if is_runner else (*named_model, *call.args[:1])
    others = [_build_argument(visitor, argument, scope) for argument in passed]
    model = next((word for word in others if _MODEL.fullmatch(word.text)), None)
    text = visitor.module.script.text if model else ""
    named = [program.section for program in load_programs() if program.section in text]
    started = set[Item]()
    for chosen in _iterate_arms(items):
        words = [word for word, _ in chosen]
        program, arguments = find_list_program(words, named) or (None, words)
        begin = len(words) - len(arguments)
        first = chosen[max(begin - 1, 0)]
        if program is None or first in started or (is_runner and not begin):
            continue
        started.add(first)
        if begin:  # all of it has the conditions of the start
            chosen = [(word, (*first[1], *more)) for word, more in chosen[begin:]]
        elif (
            model
            and words[0].text.startswith("-")
            and "--model" not in [word.text for word in words]
        ):
            chosen = [(model, here), *chosen]
        branches = {(path, *word.position): more for word, more in chosen}
        known = next(filter(None, map(visitor.launches.get, branches)), "")
        for setting in read_arguments(path, program, [word for word, _ in chosen]):
            known = known or setting.scope
            place = path, setting.line, setting.column
            # a helper may be passed the list that it starts the program with
            if place not in visitor.launches:
                visitor.add_read(setting._replace(scope=known), branches.get(place, ()))
        launches |= dict.fromkeys(branches, known)
    return launches


# -- atc ------------------------------------------------------------------------------------------


def _read_conversion(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    """Report the flags of ``atc`` if a call runs it, or that its command is not followed."""
    node = call.args[0]
    text = _build_argument(visitor, *follow_name(node, scope))
    for items in _iterate_arms(_list_items(visitor, node, scope) or [(text, ())]):
        words = [word for word, _ in items]
        if len(words) == 1 and not words[0].open_part:
            for command in parse_shell_commands(words[0].text):
                inner = list(dropwhile(lambda word: word.text in PREFIXES, command))
                if inner and _ATC.fullmatch(inner[0].text):
                    words = [word.with_position(*visitor.locate(node)) for word in inner]
                    break
        program, *arguments = words
        if arguments and _ATC.fullmatch(program.text):
            site = visitor.new_site(scope, "atc", "atc", call)
            branches = {word.position: more for word, more in items}
            for setting in read_flags(visitor.module.path, arguments, site):
                visitor.add_read(setting, branches.get((setting.line, setting.column), ()))
        # a helper's own scan reports its lines
        elif program.open_part and visitor.module is visitor.main and _names_atc(node, scope, 0):
            what = f"atc is run here in a way that is not followed: {format_expression(call)}"
            visitor.main.script.add_script_problem(
                what, "Its flags are not checked.", "", *visitor.locate(call), severity="info"
            )


def _names_atc(node: ast.AST, scope: Scope, depth: int) -> bool:
    """Return whether an expression contains a text that begins with ``atc``.

    Names in it stand for their values.
    """
    for part in list_nodes(node):
        match part:
            case ast.Constant(str(text)):
                first_word, *_ = text.split() or [""]
                if _ATC.fullmatch(first_word):
                    return True
            case ast.Name(name) if depth < _DEEPEST:
                home, bindings = scope.resolve_name(name) or (scope, [])
                for binding in bindings:
                    is_value = binding.kind in ("assign", "change")
                    if is_value and _names_atc(binding.node, home, depth + 1):
                        return True
    return False


# -- lists ----------------------------------------------------------------------------------------


def _list_items(
    visitor: Visitor, node: ast.expr, scope: Scope, depth: int = 0
) -> list[Item] | None:
    """Return the items of a list, without those of other branches; None for an unknown list."""
    count_steps()
    if depth > _DEEPEST:
        return None
    match node:
        case ast.List(parts) | ast.Tuple(parts):
            listed = parts[:_MOST_ITEMS]
            return [item for part in listed for item in _list_part(visitor, part, scope, depth)]
        case ast.BinOp(left, ast.Add(), right):
            first = _list_items(visitor, left, scope, depth + 1)
            return None if first is None else first + _list_part(visitor, right, scope, depth)
        case ast.Starred(inner):
            return _list_items(visitor, inner, scope, depth + 1)
        case ast.Call(ast.Attribute(ast.Constant(" "), "join"), [inner]):
            joined = _list_items(visitor, inner, scope, depth + 1)
            # a shell splits "--port 80" and takes quotes away
            pieces = [piece for item, _ in joined or () for piece in (*item.parts, " ")]
            return joined and [(joined[0][0].with_parts(*pieces), visitor.branches)]
        case ast.Name() | ast.Attribute() | ast.Call():
            known = visitor.lists.get(_name_list(node, scope))
            if known is not None:
                count_steps(len(known))
                here = visitor.branches
                return [item for item in known[:_MOST_ITEMS] if not are_exclusive(item[1], here)]
            written, home = follow_name(node, scope)
            return _list_items(visitor, written, home, depth + 1) if written is not node else None
    return None


def _iterate_arms(items: list[Item]) -> Iterator[list[Item]]:
    """Yield the items of a list in each arm of an ``if``, which may have one of its own."""
    for arm in dict.fromkeys(branches for _, branches in items):
        count_steps(len(items))
        yield [item for item in items if not are_exclusive(item[1], arm)]


def _list_part(visitor: Visitor, node: ast.expr, scope: Scope, depth: int = 0) -> list[Item]:
    """Return the items that are added to a list; an unknown list is one unknown argument."""
    items = _list_items(visitor, node, scope, depth + 1)
    return [(_build_argument(visitor, node, scope), visitor.branches)] if items is None else items


def _build_argument(visitor: Visitor, item: ast.expr, scope: Scope) -> Word:
    """Return an element of a command line as a word, with what is known of it."""
    parts: list[Part] = []
    text = ""
    pieces = [item]
    while pieces:
        piece = pieces.pop()
        value, reason = visitor.evaluate_expression(piece, scope)
        match piece:
            case _ if not reason:
                text += str(value)
            case ast.BinOp(left, ast.Add(), right):
                pieces += right, left
            case ast.JoinedStr(values):
                pieces += reversed(values)
            case ast.FormattedValue(inner, -1, None):
                pieces.append(inner)
            case _:
                parts += text, (format_expression(piece),)
                text = ""
    return Word(*visitor.locate(item), tuple(filter(None, (*parts, text))) or ("",), quoted=True)


def _name_list(node: ast.expr, scope: Scope) -> tuple[str, str]:
    """Return the key in ``Visitor.lists`` of a variable, or of what a function returns."""
    if isinstance(node, ast.Call):
        return "()", name_callee(node)
    name, home = scope.name_outside(format_expression(node))
    # an attribute is the object's, in all its methods
    home = home.outer or home if "." in name else home.find_binding(name)[0]
    return home.name, name


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    """Record the list that a variable is assigned, instead of that in the same branches."""
    if visitor.dead or not isinstance(target, (ast.Name, ast.Attribute, ast.Call)):
        return
    key = _name_list(target, scope)
    before = visitor.lists.get(key)
    items = _list_items(visitor, value, scope)
    if before is not None or items is not None:
        here = visitor.branches
        kept = [item for item in before or () if are_exclusive(item[1], here)]
        new = [(word, tuple(dict.fromkeys((*here, *more)))) for word, more in items or ()]
        visitor.lists[key] = [*kept, *new]


def _read_statement(visitor: Visitor, statement: ast.stmt, scope: Scope) -> None:
    match statement:
        case ast.AugAssign(target, ast.Add(), value):
            _extend(visitor, target, value, scope)
        case ast.Return(ast.expr() as value):
            call = ast.Call(ast.Name(getattr(scope.node, "name", "")), [], [])
            _read_assignment(visitor, call, value, scope)


def _extend(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    known = visitor.lists.get(_name_list(target, scope))
    if known is not None and not visitor.dead:
        known += _list_part(visitor, value, scope)


# -- reports --------------------------------------------------------------------------------------


def _read_text(visitor: Visitor, word: Word) -> Launches:
    """Report what a text sets and starts in a shell, at the place of the text."""
    text = "".join(
        part if isinstance(part, str) else f"${{{_NO_NAME.sub('_', part[0])}}}"
        for part in word.parts
    )
    if " " not in text or text[0] in "-{" or not mentions_program(text.encode(errors="replace")):
        return {}
    path, place = visitor.module.path, word.position
    for command in parse_shell_commands(text):
        words = [inner.with_position(*place) for inner in command]
        for inner in words:
            if match := _ASSIGNMENT.match(inner.text):
                variable = build_variable_setting(path, place, match[1], inner.value.parts)
                visitor.add_read(variable)
        if started := find_start(words):
            for setting in read_arguments(path, *started):
                visitor.add_read(setting)
    return {(path, *place): ""}


#: What may be around a word of a command, which may be part of other words.
_AROUND = ("  ", "''", '""', ' "', " '")
#: Texts of which a file with a command line has one.
MARKERS = tuple(
    marker
    for program in load_programs()
    for marker in (
        *program.marks,
        *(start.split()[-1].join(around) for start in program.starts for around in _AROUND),
    )
)
#: Texts of which a file that runs ``atc`` has one.
ATC_MARKERS = ("atc ", 'atc"', "atc'")
#: Reads command lines.
SURFACE = Surface((*MARKERS, *ATC_MARKERS), _read_call, _read_assignment, _read_statement)
