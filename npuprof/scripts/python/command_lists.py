"""Command lines of programs in Python: lists and texts that are passed to a call.

``Popen(["vllm", "serve", ...])``, ``Server(model, server_args)``. A list is followed from its
assignment through ``append``, ``extend`` and ``+=`` to the call.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from npuprof import catalog
from npuprof.catalog.programs import Program, load_programs
from npuprof.model import Record
from npuprof.scripts.python.atc_calls import RUNNERS, build_argument
from npuprof.scripts.python.calls import find_entered
from npuprof.scripts.python.environ import holds_variables, report_table
from npuprof.scripts.python.expressions import format_expression, name_callee
from npuprof.scripts.python.loops import follow_name
from npuprof.scripts.python.returned_values import find_only_return, find_returned_value
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.reading.program_arguments import find_start, mentions_program, read_arguments
from npuprof.scripts.script_records import OTHER, Branches, ScriptSetting, are_exclusive
from npuprof.scripts.shell_lexer import Word
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
_MODEL_KEYWORDS = ("model", "model_name", "model_path")
#: The maximum length of a chain of names and lists.
_DEEPEST = 8
_UNKNOWN_NAME = re.compile(r"\W+")


class Item(Record):
    """An argument of a list, and the conditions under which the list has it."""

    word: Word
    branches: Branches


class CommandList(Record):
    """A list of arguments that a variable has under conditions."""

    items: tuple[Item, ...]
    branches: Branches


class _Start(Record):
    """A started program, its arguments and its conditions; or else a ``text`` for a shell."""

    program: Program | None = None
    arguments: tuple[Item, ...] = ()
    branches: Branches = ()
    text: Word | None = None


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    _read_change(visitor, call, scope)
    starts = list(_iterate_starts(visitor, call, scope))
    if not starts:
        return
    visitor.launch = call
    first = len(visitor.settings)
    for value in (*call.args, *(keyword.value for keyword in call.keywords)):
        if holds_variables(value, scope):
            report_table(visitor, value, scope)
    own = [setting._replace(command=_name_command(call)) for setting in visitor.settings[first:]]
    visitor.settings[first:] = own
    new: dict[tuple[str, int, int], str] = {}
    for start in starts:
        if start.text is not None:
            _report_text(visitor, call, start.text)
        elif start.program is not None:
            new |= _report_arguments(visitor, call, start.program, start)
    visitor.launches |= new


def _name_command(call: ast.Call) -> str:
    return f"line {call.lineno}"


def _iterate_starts(visitor: Visitor, call: ast.Call, scope: Scope) -> Iterator[_Start]:
    """Yield the command lines that a call is passed."""
    name = name_callee(call)
    if not name or hasattr(builtins, name) or _QUIET.fullmatch(name):
        return
    is_runner = name in RUNNERS
    values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg)]
    for value in values:
        if is_runner and (text := _fold_text(visitor, value, scope)) is not None:
            yield _Start(text=text)
            continue
        for found in _list_versions(visitor, value, scope, 0):
            words = [item.word for item in found.items]
            if shell := next((word for word in words if _is_shell_text(word)), None):
                yield _Start(text=shell)
            elif (started := find_start(words) or find_start([_MODULE, *words])) is not None:
                program, arguments = started
                rest = len(words) - len(arguments)
                yield _Start(program, found.items[rest:], found.branches)
            elif not is_runner and (marked := _find_marked(words)) is not None:
                model = _find_model(visitor, call, scope) if words[0].text.startswith("-") else []
                has_model = any(word.text.startswith("--model") for word in words)
                items = found.items if has_model else (*model, *found.items)
                yield _Start(marked, tuple(items), found.branches)


def _find_model(visitor: Visitor, call: ast.Call, scope: Scope) -> list[Item]:
    """Return the model that a call is passed next to the flags, as an argument."""
    named = [keyword.value for keyword in call.keywords if keyword.arg in _MODEL_KEYWORDS]
    for value in (*named, *call.args[:1]):
        text, _ = visitor.evaluate_expression(value, scope)
        if isinstance(text, str) and _MODEL.fullmatch(text):
            return [Item(build_argument(visitor, value, scope), visitor.branches)]
    return []


def _is_shell_text(word: Word) -> bool:
    """Return whether a word of a list is a command for a shell that starts a program."""
    text = word.text
    return " " in text and not text.startswith(("-", "{")) and mentions_program(text.encode())


def _find_marked(words: Sequence[Word]) -> Program | None:
    """Return the program whose own flags are in a list of arguments, each with its value."""
    if words and not words[0].text.startswith("-") and not _MODEL.fullmatch(words[0].text):
        return None  # of another program
    flags = [word.text.partition("=")[0] for word in words if word.text.startswith("--")]
    for program in load_programs():
        names = {program.spell_argument(flag[2:]) for flag in flags}
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
        case ast.List(items) | ast.Tuple(items):
            versions = [CommandList((), here)]
            for item in items:
                if isinstance(item, ast.Starred):
                    added = _list_versions(visitor, item.value, scope, depth + 1)
                else:
                    added = []
                word = build_argument(visitor, item, scope)
                versions = _join(versions, added or [CommandList((Item(word, here),), here)])
            return versions
        case ast.BinOp(left, ast.Add(), right):
            first = _list_versions(visitor, left, scope, depth + 1)
            second = _list_versions(visitor, right, scope, depth + 1)
            unknown = CommandList((Item(build_argument(visitor, right, scope), here),), here)
            return _join(first, second or [unknown]) if first else []
        case ast.Call(ast.Name("list" | "tuple"), [inner]) | ast.Call(
            ast.Attribute(inner, "copy"), []
        ):
            return _list_versions(visitor, inner, scope, depth + 1)
        case ast.Call():
            returned = find_returned_value(node, scope)
            entered = None if returned else find_entered(node, ast.Expr(node), scope)
            if entered and isinstance(entered.function, ast.FunctionDef):
                value = find_only_return(entered.function)
                returned = (value, Scope(entered.function, entered.scope)) if value else None
            return _list_versions(visitor, *returned, depth + 1) if returned else []
        case ast.Name() | ast.Attribute():
            known = _find_lists(visitor, node, scope)
            if known is not None:
                return [found for found in known if not are_exclusive(found.branches, here)]
            written, home = follow_name(node, scope)
            return _list_versions(visitor, written, home, depth + 1) if written is not node else []
    return []


def _join(first: Sequence[CommandList], second: Sequence[CommandList]) -> list[CommandList]:
    """Return each list of the first ones with each of the second ones that may follow it."""
    joined = [
        CommandList((*before.items, *after.items), before.branches)
        for before in first
        for after in second
        if not are_exclusive(before.branches, after.branches)
    ]
    count_steps(sum(len(found.items) for found in joined))
    return joined[:_DEEPEST]


def _name_list(node: ast.expr, scope: Scope) -> tuple[str, Scope]:
    name, home = scope.name_outside(format_expression(node))
    if "." in name and home.outer is not None:  # of the object, for all its methods
        home = home.outer
    return name, home


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
    here = visitor.branches
    before = visitor.lists.get((home.name, name), [])
    versions = _list_versions(visitor, value, scope, 0)
    if before or versions:
        kept = [found for found in before if are_exclusive(found.branches, here)]
        visitor.lists[home.name, name] = [*kept, *versions]


def _read_statement(visitor: Visitor, statement: ast.stmt, scope: Scope) -> None:
    match statement:
        case ast.AugAssign(target, ast.Add(), value):
            _extend(visitor, target, value, scope)
        case ast.Assign([ast.Attribute(ast.Name("sys"), "argv")], value):
            call = ast.copy_location(ast.Call(ast.Name("run"), [value], []), statement)
            _read_call(visitor, call, scope)


def _read_change(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    match call:
        case ast.Call(ast.Attribute(changed, "extend"), [value]):
            _extend(visitor, changed, value, scope)
        case ast.Call(ast.Attribute(changed, "append"), [value]):
            _extend(visitor, changed, ast.List([value], ast.Load()), scope)


def _extend(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    known = _find_lists(visitor, target, scope)
    if not known or visitor.dead:
        return
    here = visitor.branches
    added = _list_versions(visitor, value, scope, 0)
    if not added:
        added = [CommandList((Item(build_argument(visitor, value, scope), here),), here)]
    extended: list[CommandList] = []
    for found in known:
        is_other = are_exclusive(found.branches, here)
        extended += [found] if is_other else _join([found], added)
    known[:] = extended


# -- reports --------------------------------------------------------------------------------------


def _report_arguments(
    visitor: Visitor, call: ast.Call, program: Program, start: _Start
) -> dict[tuple[str, int, int], str]:
    """Report the arguments of a program, those of a known launch as parts of it.

    Return the scope of the launch by the file and position of its arguments.
    """
    path = visitor.module.path
    words = [item.word for item in start.arguments]
    branches = {(item.word.line, item.word.column): item.branches for item in start.arguments}
    known = (visitor.launches.get((path, *place)) for place in branches)
    scope = next(filter(None, known), "")
    before = visitor.branches
    for setting in read_arguments(path, program, words, ""):
        scope = scope or setting.scope
        place = setting.line, setting.column
        # a helper may be passed the list that it starts the program with
        if (path, *place) not in visitor.launches:
            every = dict.fromkeys((*start.branches, *branches.get(place, ())))
            more = [branch for branch in every if branch not in before]
            placed = setting._replace(scope=scope, command=_name_command(call))
            visitor.add_read(placed, more)
    return dict.fromkeys(((path, *place) for place in branches), scope)


def _fold_text(visitor: Visitor, node: ast.expr, scope: Scope) -> Word | None:
    """Return a text that is passed to a shell as a word, if it starts a known program.

    Unknown parts of an f-string become expansions.
    """
    written, home = follow_name(node, scope)
    if isinstance(written, ast.JoinedStr):
        text = "".join(_fold_part(visitor, part, home) for part in written.values)
    else:
        folded, _ = visitor.evaluate_expression(written, home)
        text = folded if isinstance(folded, str) else ""
    if not mentions_program(text.encode(errors="replace")):
        return None
    return Word(*visitor.locate(written), (text,), quoted=True)


def _fold_part(visitor: Visitor, part: ast.expr, scope: Scope) -> str:
    inner = part.value if isinstance(part, ast.FormattedValue) else part
    value, reason = visitor.evaluate_expression(inner, scope)
    if not reason:
        return str(value)
    return f"${{{_UNKNOWN_NAME.sub('_', format_expression(inner)).strip('_') or '_'}}}"


def _report_text(visitor: Visitor, call: ast.Call, text: Word) -> None:
    """Report what a shell's text sets and starts, at the place of the text."""
    from npuprof.scripts.reading.shell_scripts import find_shell_settings

    settings, _ = find_shell_settings(visitor.module.path, text.text, (text.line, text.column), "")
    for setting in settings:
        placed = setting.with_location(line=text.line, column=text.column)
        visitor.add_read(_place(placed, call, text.line), setting.branches)


def _place(setting: ScriptSetting, call: ast.Call, line: int) -> ScriptSetting:
    if setting.surface in ("env", OTHER):
        return setting._replace(command=_name_command(call), scope="<process>:os.environ")
    return setting._replace(command=_name_command(call), scope=f"{setting.surface}@{line}")


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
