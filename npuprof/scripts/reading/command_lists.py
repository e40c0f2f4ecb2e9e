"""Command lines of programs in Python: lists and texts that are passed to a call.

``Popen(["vllm", "serve", ...])``, ``Server(model, server_args)``. A list is followed from its
assignment through ``append``, ``extend`` and ``+=`` to the call.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import takewhile, zip_longest
from operator import attrgetter

from npuprof import catalog
from npuprof.catalog.programs import Program, load_programs
from npuprof.model import Record
from npuprof.scripts.python.atc_calls import RUNNERS, build_argument
from npuprof.scripts.python.calls import find_entered
from npuprof.scripts.python.environ import holds_variables, report_table
from npuprof.scripts.python.expressions import format_expression, name_callee
from npuprof.scripts.python.loops import bind_call_arguments, follow_name
from npuprof.scripts.python.returned_values import find_only_return
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.reading.program_arguments import find_start, mentions_program, read_arguments
from npuprof.scripts.reading.variable_files import build_variable_setting
from npuprof.scripts.script_records import Branches, are_exclusive
from npuprof.scripts.shell_lexer import Word, parse_shell_commands
from npuprof.scripts.steps import count_steps

#: Calls that start nothing: they compare, parse or change a list.
_QUIET = re.compile(
    r"(?i)(?:assert|parse|add_argument|check|verify|strip|filter|validate).*"
    r"|append|extend|index|remove|insert|join|debug|info|warning|error"
)
#: A model's name or path.
_MODEL = re.compile(r"[\w.~-]*(?:/[\w.-]+)+(?<!\.py)(?<!\.sh)")
#: What precedes the name of a module in ``sys.argv``.
_MODULE = Word(0, 0, ("-m",))
#: The maximum length of a chain of names and lists.
_DEEPEST = 8
#: Longer lists are no command lines.
_MOST_ITEMS = 300
_BEFORE = ("export", "env", "exec", "nohup")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_UNKNOWN_NAME = re.compile(r"\W+")


class CommandList(Record):
    """The arguments that a list has under conditions; each may have more conditions."""

    items: tuple[tuple[Word, Branches], ...]
    branches: Branches


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    match call:
        case ast.Call(ast.Attribute(changed, "append" | "extend"), [value]):
            _extend(visitor, changed, value, scope)
    name = name_callee(call)
    if not name or hasattr(builtins, name) or _QUIET.fullmatch(name):
        return
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    starts = [start for value in values for start in _iterate_starts(visitor, call, value, scope)]
    if not starts:
        return
    visitor.launch = call
    first = len(visitor.settings)
    for value in values:
        if holds_variables(value, scope):
            report_table(visitor, value, scope)
    new: dict[tuple[str, int, int], str] = {}
    for program, arguments in starts:
        if program is None:
            _report_text(visitor, arguments.items[0][0])
        else:
            new |= _report_arguments(visitor, program, arguments)
    visitor.launches |= new
    command = f"line {call.lineno}"
    own = [setting._replace(command=command) for setting in visitor.settings[first:]]
    visitor.settings[first:] = own


def _iterate_starts(
    visitor: Visitor, call: ast.Call, value: ast.expr, scope: Scope
) -> Iterator[tuple[Program | None, CommandList]]:
    """Yield the programs that an argument of a call starts; None with a text for a shell."""
    here = visitor.branches
    is_runner = name_callee(call) in RUNNERS
    if is_runner and (text := _fold_text(visitor, value, scope)) is not None:
        yield None, CommandList(((text, here),), here)
    for found in _list_versions(visitor, value, scope, 0):
        words = [word for word, _ in found.items]
        started = find_start(words) or find_start([_MODULE, *words])
        shell = [item for item in found.items if _is_shell_text(item[0])]
        if shell:
            yield None, found._replace(items=tuple(shell))
        elif started is not None:
            program, arguments = started
            yield program, found._replace(items=found.items[len(words) - len(arguments) :])
        elif words and not is_runner and (marked := _find_marked(words)) is not None:
            is_open = words[0].text.startswith("-") and "--model" not in map(_get_text, words)
            model = _find_model(visitor, call, scope) if is_open else None
            items = [(model, here), *found.items] if model else found.items
            yield marked, found._replace(items=tuple(items))


_get_text = attrgetter("text")


def _find_model(visitor: Visitor, call: ast.Call, scope: Scope) -> Word | None:
    """Return the model that a call is passed next to the flags, as an argument."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "model"]
    words = [build_argument(visitor, value, scope) for value in (*named, *call.args[:1])]
    return next((word for word in words if _MODEL.fullmatch(word.text)), None)


def _is_shell_text(word: Word) -> bool:
    """Return whether a word of a list is a command for a shell that starts a program."""
    text = word.text
    is_text = " " in text and not word.open_part and not text.startswith(("-", "{"))
    return is_text and mentions_program(text.encode(errors="replace"))


def _find_marked(words: Sequence[Word]) -> Program | None:
    """Return the program whose own flags are in a list of arguments, each with its value."""
    if not words[0].text.startswith("-") and not _MODEL.fullmatch(words[0].text):
        return None  # of another program
    for program in load_programs():
        names = {program.spell_argument(word.text.partition("=")[0][2:]) for word in words}
        if names.isdisjoint((*program.marks, *program.tables)):
            continue
        for word, following in zip_longest(words, words[1:]):
            known = program.flags.get(word.text)
            record = known and catalog.find_setting(program.section, known[0])
            has_value = following is not None and not following.text.startswith("--")
            # a list of names, not of arguments
            if record and record.kind != "bool" and not has_value:
                return None
        return program
    return None


# -- lists ----------------------------------------------------------------------------------------


def _list_versions(visitor: Visitor, node: ast.expr, scope: Scope, depth: int) -> list[CommandList]:
    """Return the lists that an expression may be, without those of other branches."""
    count_steps()
    here = visitor.branches
    if depth > _DEEPEST:
        return []
    match node:
        case ast.List(items) | ast.Tuple(items) if len(items) <= _MOST_ITEMS:
            parts = [_list_part(visitor, item, scope, depth) for item in items]
            return reduce(_join, parts, [CommandList((), here)])
        case ast.BinOp(left, ast.Add(), right):
            first = _list_versions(visitor, left, scope, depth + 1)
            return _join(first, _list_part(visitor, right, scope, depth)) if first else []
        case ast.Call(ast.Name("list" | "tuple"), [inner]) | ast.Call(
            ast.Attribute(inner, "copy"), []
        ):
            return _list_versions(visitor, inner, scope, depth + 1)
        case ast.Call():
            entered = find_entered(node, ast.Expr(node), scope)
            function = entered.function if entered else None
            if not entered or not isinstance(function, ast.FunctionDef):
                return []
            inside = Scope(function, entered.scope)
            bound = bind_call_arguments(function, inside, entered.call, scope)
            returned = find_only_return(function)
            inside = inside.with_bound(bound or {})
            return _list_versions(visitor, returned, inside, depth + 1) if returned else []
        case ast.Name() | ast.Attribute():
            known = _find_lists(visitor, node, scope)
            if known is not None:
                return [found for found in known if not are_exclusive(found.branches, here)]
            written, home = follow_name(node, scope)
            return _list_versions(visitor, written, home, depth + 1) if written is not node else []
    return []


def _list_part(visitor: Visitor, node: ast.expr, scope: Scope, depth: int) -> list[CommandList]:
    """Return the lists that are added to another one; an unknown list is one unknown argument."""
    inner = node.value if isinstance(node, ast.Starred) else node
    if versions := _list_versions(visitor, inner, scope, depth + 1):
        return versions
    here = visitor.branches
    return [CommandList(((build_argument(visitor, node, scope), here),), here)]


def _join(first: Sequence[CommandList], second: Sequence[CommandList]) -> list[CommandList]:
    """Return each list of the first ones with each of the second ones that may follow it."""
    joined = [
        CommandList((*before.items, *after.items), before.branches)
        for before in first
        for after in second
        if not are_exclusive(before.branches, after.branches)
        and len(before.items) + len(after.items) <= _MOST_ITEMS
    ]
    count_steps(len(joined))
    return joined[:_DEEPEST]


def _name_list(node: ast.expr, scope: Scope) -> tuple[str, Scope]:
    name, home = scope.name_outside(format_expression(node))
    # an attribute is the object's, in all its methods
    return name, home.outer if "." in name and home.outer is not None else home


def _find_lists(visitor: Visitor, node: ast.expr, scope: Scope) -> list[CommandList] | None:
    """Return the lists of a variable so far, None if none was seen."""
    name, home = _name_list(node, scope)
    around: Scope | None = home
    while around is not None:
        if (found := visitor.lists.get((around.name, name))) is not None:
            return found
        around = around.outer
    return None


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    """Record the list that a variable is assigned, instead of those in the same branches."""
    if visitor.dead or not isinstance(target, (ast.Name, ast.Attribute)):
        return
    name, home = _name_list(target, scope)
    before = visitor.lists.get((home.name, name), [])
    versions = _list_versions(visitor, value, scope, 0)
    if before or versions:
        kept = [found for found in before if are_exclusive(found.branches, visitor.branches)]
        visitor.lists[home.name, name] = [*kept, *versions][:_DEEPEST]


def _read_statement(visitor: Visitor, statement: ast.stmt, scope: Scope) -> None:
    match statement:
        case ast.AugAssign(target, ast.Add(), value):
            _extend(visitor, target, value, scope)
        case ast.Assign([ast.Attribute(ast.Name("sys"), "argv")], value):
            call = ast.copy_location(ast.Call(ast.Name("run"), [value], []), statement)
            _read_call(visitor, call, scope)


def _extend(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    known = _find_lists(visitor, target, scope)
    if known and not visitor.dead:
        added = _list_part(visitor, value, scope, 0)
        others = [found for found in known if are_exclusive(found.branches, visitor.branches)]
        known[:] = [*others, *_join([found for found in known if found not in others], added)]


# -- reports --------------------------------------------------------------------------------------


def _report_arguments(
    visitor: Visitor, program: Program, arguments: CommandList
) -> dict[tuple[str, int, int], str]:
    """Report the arguments of a program, those of a known launch as parts of it.

    Return the scope of the launch by the file and position of its arguments.
    """
    path = visitor.module.path
    branches = {(path, word.line, word.column): more for word, more in arguments.items}
    scope = next(filter(None, map(visitor.launches.get, branches)), "")
    for setting in read_arguments(path, program, [word for word, _ in arguments.items], ""):
        scope = scope or setting.scope
        place = path, setting.line, setting.column
        # a helper may be passed the list that it starts the program with
        if place not in visitor.launches:
            more = (*arguments.branches, *branches.get(place, ()))
            visitor.add_read(setting._replace(scope=scope), more)
    return dict.fromkeys(branches, scope)


def _fold_text(visitor: Visitor, node: ast.expr, scope: Scope) -> Word | None:
    """Return a text that is passed to a shell as a word, if it starts a known program.

    Unknown parts of an f-string become expansions.
    """
    written, home = follow_name(node, scope)
    text = ""
    for part in written.values if isinstance(written, ast.JoinedStr) else [written]:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        value, reason = visitor.evaluate_expression(inner, home)
        name = _UNKNOWN_NAME.sub("_", format_expression(inner)) if reason else ""
        text += f"${{{name}}}" if reason else str(value)
    if not isinstance(written, ast.List) and mentions_program(text.encode(errors="replace")):
        return Word(*visitor.locate(written), (text,), quoted=True)
    return None


def _report_text(visitor: Visitor, text: Word) -> None:
    """Report what a shell's text sets and starts, at the place of the text."""
    path = visitor.module.path
    place = text.line, text.column
    for command in parse_shell_commands(text.text):
        words = [word.with_position(*place) for word in command]
        for word in takewhile(_may_precede, words):
            if "=" in word.text:
                name = word.text.partition("=")[0]
                setting = build_variable_setting(path, place, name, word.value.parts)
                visitor.add_read(setting._replace(scope="<process>:os.environ"))
        if (started := find_start(words)) is not None:
            for setting in read_arguments(path, *started, ""):
                visitor.add_read(setting)


def _may_precede(word: Word) -> bool:
    """Return whether a word sets a variable, or may precede one that does."""
    return word.keyword in _BEFORE or _ASSIGNMENT.match(word.text) is not None


def _list_markers() -> tuple[str, ...]:
    """Return texts of which a file with such a command line has one."""
    markers = []
    for program in load_programs():
        markers += [f"--{mark}" for mark in program.marks]
        for start in program.starts:
            last = start.split()[-1]
            markers += [start.removeprefix("-m "), f'"{last}"', f"'{last}'"]
    return tuple(markers)


#: Reads command lines.
SURFACE = Surface(_list_markers(), _read_call, _read_assignment, _read_statement)
