"""Reads the parser of argparse that a program builds, from its first statement on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from npuprof.scripts.programs.dataclass_fields import (
    list_dotted_arguments,
    list_factory_arguments,
    list_field_arguments,
)
from npuprof.scripts.programs.parsers import ANY_NUMBER, Parser, ParserArgument
from npuprof.scripts.python.builtin_calls import resolve_function_name
from npuprof.scripts.python.calls import (
    Entered,
    find_class,
    find_class_of_method,
    find_entered,
    get_first_parameter,
    list_class_line,
)
from npuprof.scripts.python.constants import fold_expression
from npuprof.scripts.python.expressions import (
    Unknown,
    get_last_name,
    list_nodes,
    list_parts,
    write_source,
)
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.python.loops import (
    Scoped,
    follow_name,
    iterate_keywords,
    pair_call_arguments,
    unroll_loop,
)
from npuprof.scripts.python.scopes import Scope, iterate_statements
from npuprof.scripts.python.statements import DEFINITIONS, FUNCTIONS
from npuprof.scripts.python.visitor import fold_test
from npuprof.scripts.steps import count_steps

#: What a file or function contains that has to do with a parser.
_PARSING = re.compile(
    rb"add_argument|parse_args|parse_known|Argument(?:Parser|GroupFactory)|tyro\.cli|draccus"
)
#: What changes the arguments before they are parsed, or the functions that parse them.
_CHANGING = re.compile(
    rb"sys\.argv(?:\[[^\]\n]*\])?\s*=[^=]|sys\.argv\.(?:append|extend|insert|pop|remove)\("
    rb"|del sys\.argv|\.parse_args\s*=[^=]|SystemExit"
    rb"|^\s*(?:import|from)\s+mindspeed\w*[.\s]",
    re.MULTILINE,
)
#: Methods that return a part of the parser: its arguments are the parser's.
_PARTS = ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser")
#: Methods that parse arguments; an unknown one is an error for the first two.
_STRICT = ("parse_args", "parse_intermixed_args", "parse_args_into_dataclasses")
_LOOSE = ("parse_known_args", "parse_known_intermixed_args")
#: Methods that change no arguments.
_HARMLESS = frozenset(
    [
        "set_defaults",
        "get_default",
        "print_help",
        "print_usage",
        "format_help",
        "format_usage",
        "error",
        "exit",
    ]
)
#: Attributes of a parser that are only read.
_READ = frozenset(("_actions", "_group_actions", "prog", "description", "usage"))
#: Functions to which a parser may be passed.
_BUILTINS = frozenset(("isinstance", "print", "type", "id", "repr", "str"))
#: Methods that a parser class may have beside those of argparse.
_OVERRIDDEN = frozenset(("error", "exit", "print_help", "format_help", "format_usage"))
#: Functions that read the command line into a class, and what replaces an underscore in names.
_TYPED = {"tyro.cli": "-_", "draccus.parse": "_"}
_PARSER = "argparse.ArgumentParser"
_SWITCHES = ("store_true", "store_false", "store_const", "append_const", "count", "help", "version")
_DEEPEST = 40
#: The most imported modules whose statements are followed.
_MOST_MODULES = 300

Line = tuple[str, int]


class _Builder:
    """A parser as far as its program is read."""

    def __init__(self) -> None:
        self.arguments: list[ParserArgument] = []
        self.parents: list[_Builder] = []
        self.abbreviated = True
        #: whether it certainly rejects unknown arguments, and whether it may accept some
        self.is_strict, self.is_loose = False, False
        #: whether the function that makes it is followed
        self.is_followed = False

    def list_arguments(self) -> Iterator[ParserArgument]:
        """Yield its arguments and those of its parents."""
        yield from self.arguments
        for parent in self.parents:
            if parent is not self:
                yield from parent.list_arguments()


Builders = frozenset[_Builder]
_NONE: Builders = frozenset()


def read_parser(path: str, modules: Modules) -> Parser | None:
    """Return the parser of the program in a file, None if it parses no arguments.

    The modules must not be those of another scan.
    """
    if not _has_parser(modules, path):
        return None
    module = modules.load(path)
    if module is None:
        return None
    modules.begin_script(module.index)
    return _Reader(path, modules).read()


def _can_parse(_: bytes, part: bytes) -> bool:
    return _PARSING.search(part) is not None


def _has_parser(modules: Modules, path: str) -> bool:
    data = modules.read(path)
    return _can_parse(data, data) or bool(modules.list_supplied(path, _can_parse))


class _Reader:
    def __init__(self, path: str, modules: Modules) -> None:
        self._path = path
        self._modules = modules
        self._builders: dict[ast.AST, _Builder] = {}
        self._gaps: dict[str, None] = {}
        self._files: dict[str, None] = {}
        self._values: dict[tuple[int, str], tuple[Scope, Builders]] = {}
        self._open: set[Any] = set()
        self._cycles = 0
        self._entered: dict[Any, list[Any]] = {}
        self._depth = 0

    def read(self) -> Parser | None:
        """Return the parser that the program uses, None if it uses none."""
        for file in self._list_modules():
            is_main = file == self._path
            module = self._modules.load(file)
            if module is None:
                continue
            self._note_file(file)
            name = ast.Constant("__main__" if is_main else "module")
            module.scope.bound["__name__"] = name, Scope(module.tree)
            self._walk(module.tree.body, module.scope, is_main)
        used = [each for each in self._builders.values() if each.is_strict or each.is_loose]
        if not used:
            return None
        strict = [each for each in used if each.is_strict]
        if len(strict) != 1 or len(used) != 1:
            self._add_gap("several parsers read the command line" if len(used) > 1 else "")
            if not strict:
                self._add_gap("the parser may ignore unknown arguments")
        chosen = strict if len(strict) == 1 else used
        if not all(each.is_followed for each in chosen):
            self._add_gap("the function that makes the parser is not followed")
        arguments = [found for each in chosen for found in each.list_arguments()]
        return Parser(
            self._path,
            tuple(dict.fromkeys(arguments)),
            tuple(self._gaps),
            any(each.abbreviated for each in chosen),
            tuple(self._files),
        )

    def _list_modules(self) -> list[str]:
        """Return the imported modules that may build a parser when loaded, and the file."""
        seen = {self._path: None}
        for file in seen.copy():
            seen.update(dict.fromkeys(self._modules.list_imported(file)))
        waiting = list(seen)
        while waiting:
            for file in self._modules.list_imported(waiting.pop()):
                count_steps(10)
                if file not in seen:
                    seen[file] = None
                    waiting.append(file)
        found = [
            file
            for file in seen
            if file != self._path and b"ArgumentParser(" in self._modules.read(file)
        ]
        if len(found) > _MOST_MODULES:
            self._add_gap("it imports too many modules")
        return [*found[:_MOST_MODULES][::-1], self._path]

    def _note_file(self, file: str) -> None:
        if file in self._files:
            return
        self._files[file] = None
        if match := _CHANGING.search(self._modules.read(file)):
            written = " ".join(match[0].decode(errors="replace").split())
            self._add_gap(f"{file} has {written!r}")

    def _add_gap(
        self, reason: str, node: ast.AST | None = None, scope: Scope | None = None
    ) -> None:
        if reason:
            place = f" ({scope.file}:{getattr(node, 'lineno', 0)})" if scope and node else ""
            self._gaps[f"{reason}{place}"] = None

    # statements

    def _walk(self, body: Iterable[ast.stmt], scope: Scope, certain: bool) -> None:
        """Follow statements; ``certain`` if they run whenever the program does."""
        for statement in body:
            count_steps()
            match statement:
                case ast.If(test, body, orelse):
                    self._visit(test, scope, statement, certain)
                    truth = fold_test(test, _bind_parameters(statement, scope))
                    if truth is not False:
                        self._walk(body, scope, certain and bool(truth))
                    if not truth:
                        self._walk(orelse, scope, certain and truth is False)
                case ast.For(target, iterated, body, orelse):
                    self._visit(iterated, scope, statement, certain)
                    for names in unroll_loop(target, iterated, scope) or [{}]:
                        self._walk(body, scope.with_bound(names), False)
                    self._walk(orelse, scope, False)
                case ast.While(test, body, orelse):
                    self._visit(test, scope, statement, certain)
                    self._walk([*body, *orelse], scope, False)
                case ast.With(items, body):
                    for item in items:
                        self._visit(item.context_expr, scope, statement, certain)
                    self._walk(body, scope, certain)
                case ast.Try(body, handlers, orelse, finalbody):
                    self._walk(body, scope, certain)
                    for handler in handlers:
                        self._walk(handler.body, scope, False)
                    self._walk([*orelse, *finalbody], scope, certain)
                case _ if not isinstance(statement, DEFINITIONS):
                    self._visit_statement(statement, scope, certain)

    def _visit_statement(self, statement: ast.stmt, scope: Scope, certain: bool) -> None:
        match statement:
            case ast.Assign(targets, value):
                kept = all(map(self._keeps, targets))
            case ast.AnnAssign(target, _, ast.expr() as value):
                kept = self._keeps(target)
            case ast.Return(ast.expr() as value) | ast.Expr(ast.expr() as value):
                kept = True
            case _:
                for part in list_parts(statement):
                    self._visit(part, scope, statement, certain)
                return
        for part in _list_choices(value) if kept else [value]:
            # another name for the parser is followed, see _evaluate
            if not (kept and isinstance(part, (ast.Name, ast.Attribute))):
                self._visit(part, scope, statement, certain and part is value)
        if isinstance(value, ast.Call) and not kept and self._evaluate(value, scope):
            self._add_gap("the parser is stored", value, scope)

    def _keeps(self, target: ast.expr) -> bool:
        """Return whether what is assigned to a target is found there again."""
        match target:
            case ast.Name() | ast.Attribute(ast.Name("self")):
                return True
        return False

    def _visit(self, node: ast.AST, scope: Scope, statement: ast.stmt, certain: bool) -> None:
        """Follow the calls in an expression, and note a parser that is used in another way."""
        count_steps()
        if isinstance(node, ast.Call):
            self._visit_call(node, scope, statement, certain)
        elif isinstance(node, (ast.Name, ast.Attribute)) and self._evaluate(node, scope):
            self._add_gap("the parser is stored", node, scope)
        elif isinstance(node, ast.Attribute) and node.attr in _READ:
            return
        else:
            if isinstance(node, ast.Compare):  # with None
                return
            is_lazy = isinstance(node, (ast.Lambda, ast.IfExp, ast.BoolOp))
            for part in list_parts(node):
                self._visit(part, scope, statement, certain and not is_lazy)

    def _visit_call(self, node: ast.Call, scope: Scope, statement: ast.stmt, certain: bool) -> None:
        function, home = self._follow(node.func, scope)
        if isinstance(function, ast.Constant):
            return  # a parameter without value
        if isinstance(function, ast.IfExp):
            for call, where in _split_call(node, function, home, scope):
                self._visit(call, where, statement, False)
            return
        named = [keyword.value for keyword in node.keywords if keyword.arg != "parents"]
        arguments = [
            each.value if isinstance(each, ast.Starred) else each for each in (*node.args, *named)
        ]
        passed: list[ast.expr] = []
        if isinstance(function, ast.Attribute):
            builders = self._evaluate(function.value, home)
            if isinstance(function.value, ast.Call) or not builders:
                self._visit(function.value, home, statement, certain)
            self._use(builders, function.attr, node, scope, certain)
            if self._add_factory(function, home, node, scope):
                return
        else:
            builders = _NONE
        if not builders:
            passed = [each for each in arguments if self._evaluate(each, scope)]
        for each in arguments:
            if each not in passed or isinstance(each, ast.Call):
                self._visit(each, scope, statement, certain)
        if builders:
            return
        created = self._evaluate(node, scope)
        if node in self._builders:
            for builder in created:
                builder.is_followed = True
            return
        if self._add_typed(node, resolve_function_name(function, home), scope, certain):
            return
        entered = find_entered(
            ast.copy_location(ast.Call(function, node.args, node.keywords), node), statement, home
        )
        name = get_last_name(function)
        if entered is None:
            if passed and name not in _BUILTINS:
                self._add_gap(f"{name or 'a function'}() gets the parser", node, scope)
            elif name in ("add_argument", *_STRICT, *_LOOSE):
                self._add_gap(f"{write_source(function)}() is not followed", node, scope)
        elif passed or self._is_relevant(entered):
            if self._add_wrapped(entered, certain):
                return
            self._enter(entered, scope, certain, passed)

    def _follow(self, node: ast.expr, scope: Scope) -> Scoped:
        """Return the argument of a parameter, with its scope; another expression as it is."""
        for _ in range(_DEEPEST):
            if not isinstance(node, ast.Name):
                break
            home, _bindings = scope.find_binding(node.id)
            if node.id not in home.bound:
                break
            node, scope = home.bound[node.id]
        return node, scope

    def _is_relevant(self, entered: Entered) -> bool:
        """Return whether a function may have to do with a parser."""
        supplied = self._modules.list_supplied(entered.scope.file, _can_parse)
        names = {entered.function.name}
        scope: Scope | None = entered.scope
        while scope is not None and not isinstance(scope.node, ast.Module):
            names.add(scope.node.name)
            scope = scope.outer
        return not supplied.isdisjoint(map(str.encode, names))

    def _enter(
        self, entered: Entered, where: Scope, certain: bool, passed: Sequence[ast.expr]
    ) -> None:
        inside = self._open_function(entered, where)
        names = tuple(sorted((name, id(value)) for name, (value, _) in inside.bound.items()))
        key = entered.function, names, certain
        if key in self._entered or self._depth > _DEEPEST:
            return
        self._entered[key] = [value for value, _ in inside.bound.values()]  # keeps their ids
        given = {id(value) for value, _ in inside.bound.values()}
        if any(id(value) not in given for value in passed):
            self._add_gap(f"{entered.function.name}() gets the parser", entered.call, where)
        self._note_file(inside.file)
        self._depth += 1
        try:
            self._walk(entered.function.body, inside, certain)
        finally:
            self._depth -= 1

    def _open_function(self, entered: Entered, where: Scope) -> Scope:
        """Return the scope of a called function, with its arguments.

        Parameters that are assigned again are there under a name that no script has.
        """
        inside = Scope(entered.function, entered.scope)
        bound = pair_call_arguments(entered.function, inside, entered.call, where) or {}
        if entered.owner is not None:
            bound = {get_first_parameter(entered.function): entered.owner, **bound}
        return inside.with_bound(
            {
                name if inside.list_binding_kinds(name) == {"parameter"} else f"={name}": value
                for name, value in bound.items()
            }
        )

    # values

    def _evaluate(self, node: ast.AST, scope: Scope) -> Builders:
        """Return the parsers that an expression may be, or whose parts it is."""
        count_steps()
        match node:
            case ast.Name(name):
                return self._evaluate_name(name, scope)
            case ast.Attribute():
                return self._evaluate_attribute(node, scope)
            case ast.Call() if self._depth < _DEEPEST:
                self._depth += 1
                try:
                    return self._evaluate_call(node, scope)
                finally:
                    self._depth -= 1
            case ast.IfExp(_, first, second):
                return self._evaluate(first, scope) | self._evaluate(second, scope)
            case ast.BoolOp(_, values):
                return _NONE.union(*(self._evaluate(value, scope) for value in values))
        return _NONE

    def _evaluate_name(self, name: str, scope: Scope) -> Builders:
        resolved = scope.resolve_name(name)
        if resolved is None:
            return _NONE
        home, bindings = resolved
        if not bindings:
            return self._evaluate(*home.bound[name]) if name in home.bound else _NONE
        name = bindings[0].name
        values = [(binding.node, home) for binding in bindings if binding.kind == "assign"]
        if f"={name}" in home.bound:
            values.append(home.bound[f"={name}"])
        return self._unite((id(home), name), home, values)

    def _evaluate_attribute(self, node: ast.Attribute, scope: Scope) -> Builders:
        if found := scope.resolve(node):
            home, bindings = found
            values = [(binding.node, home) for binding in bindings if binding.kind == "assign"]
            return self._unite((id(home), node.attr), home, values)
        cls, name = find_class_of_method(scope)
        if cls is None or not isinstance(node.value, ast.Name) or node.value.id != name:
            return _NONE
        values = [
            (value, inside)
            for each in list_class_line(cls) or [cls]
            for inside, value in _list_attribute_values(each, node.attr)
        ]
        return self._unite((id(cls.node), node.attr), cls, values)

    def _unite(self, key: tuple[int, str], home: Scope, values: list[Scoped]) -> Builders:
        """Return the parsers of all values of a name."""
        if key in self._values:
            return self._values[key][1]
        if key in self._open:
            self._cycles += 1
            return _NONE
        cycles = self._cycles
        self._open.add(key)
        try:
            found = _NONE.union(*(self._evaluate(*value) for value in values))
        finally:
            self._open.discard(key)
        # inside a cycle, nothing is found until its first name is complete
        if found or not self._open or cycles == self._cycles:
            self._values[key] = home, found  # the scope keeps its id
        return found

    def _evaluate_call(self, node: ast.Call, scope: Scope) -> Builders:
        count_steps(100)  # a call of a call doubles the work
        if node in self._builders:
            return frozenset((self._builders[node],))
        function, home = self._follow(node.func, scope)
        if isinstance(function, ast.IfExp):
            arms = _split_call(node, function, home, scope)
            return _NONE.union(*(self._evaluate(*arm) for arm in arms))
        if isinstance(function, ast.Attribute) and (found := self._evaluate(function.value, home)):
            return found if function.attr in _PARTS else _NONE
        if get_last_name(function) == "build_group":
            return self._evaluate(node.args[0], scope) if node.args else _NONE
        if self._creates_parser(function, home):
            builder = self._builders[node] = _Builder()
            self._read_options(builder, node, scope)
            return frozenset((builder,))
        call = ast.copy_location(ast.Call(function, node.args, node.keywords), node)
        entered = find_entered(call, ast.Expr(call), home)
        if entered is None or entered.function.name == "__init__":
            return _NONE
        passed = any(self._evaluate(each, scope) for each in node.args)
        if not passed and not self._is_relevant(entered):
            return _NONE
        inside = self._open_function(entered, scope)
        key = entered.function
        if key in self._open:
            self._cycles += 1
            return _NONE
        self._open.add(key)
        try:
            return _NONE.union(
                *(
                    self._evaluate(statement.value, inside)
                    for statement in iterate_statements(entered.function.body)
                    if isinstance(statement, ast.Return) and statement.value is not None
                )
            )
        finally:
            self._open.discard(key)

    def _creates_parser(self, function: ast.expr, scope: Scope) -> bool:
        name = resolve_function_name(function, scope)
        if name == _PARSER:
            return True
        cls = find_class(function, scope)
        if cls is None or not isinstance(cls.node, ast.ClassDef):
            is_parser = name.endswith(("ArgumentParser", "ArgParser", "Parser.from_parser"))
            if is_parser and not name.endswith("HfArgumentParser"):
                self._add_gap(f"{name} is not in the tree", function, scope)
            return is_parser
        if not any(self._creates_parser(base, cls.outer or cls) for base in cls.node.bases):
            return False
        methods = {each.name for each in cls.node.body if isinstance(each, FUNCTIONS)}
        if methods - _OVERRIDDEN:
            self._add_gap(f"{cls.node.name} has its own methods", cls.node, cls)
        return True

    # arguments

    def _read_options(self, builder: _Builder, node: ast.Call, scope: Scope) -> None:
        """Read the arguments with which a parser is created."""
        if get_last_name(node.func) == "HfArgumentParser" and node.args:
            classes, home = follow_name(node.args[0], scope)
            items = classes.elts if isinstance(classes, (ast.Tuple, ast.List)) else [classes]
            for item in items:
                self._add_fields(builder, list_field_arguments(item, home))
        for keyword in iterate_keywords(node, scope):
            if keyword.name == "parents":
                items = keyword.value.elts if isinstance(keyword.value, ast.List) else []
                parents = [self._evaluate(item, keyword.scope) for item in items]
                builder.parents += [each for found in parents for each in found]
                if not items or not all(parents):
                    self._add_gap("a parent of the parser is not followed", node, scope)
            elif keyword.name == "allow_abbrev":
                builder.abbreviated = _fold(keyword.value, keyword.scope) is not False
            elif keyword.name in ("", "prefix_chars"):
                self._add_gap("the parser has other prefixes", node, scope)
        builder.arguments.append(ParserArgument(("--help", "-h"), _locate(node, scope), nargs=0))

    def _add_fields(self, builder: _Builder, found: tuple[list[ParserArgument], list[str]]) -> None:
        arguments, gaps = found
        builder.arguments += arguments
        for gap in gaps:
            self._add_gap(gap)

    def _add_factory(
        self, function: ast.Attribute, home: Scope, node: ast.Call, scope: Scope
    ) -> bool:
        """Add the arguments of Megatron's factory; return whether it is one."""
        if function.attr != "build_group":
            return False
        factory, where = follow_name(function.value, home)
        if not isinstance(factory, ast.Call) or "ArgumentGroupFactory" not in write_source(factory):
            return False
        found = list_factory_arguments(factory, where)
        for builder in self._evaluate(node.args[0], scope) if node.args else ():
            self._add_fields(builder, found)
        return True

    def _add_typed(self, node: ast.Call, name: str, scope: Scope, certain: bool) -> bool:
        """Add the parser that a library makes of a class; return whether a call is one's."""
        if name not in _TYPED:
            return False
        named = [each.value for each in node.keywords if each.arg == "config_class"]
        classes = [*node.args, *named]
        if len(classes) != 1 or len(node.args) + len(node.keywords) != 1:
            self._add_gap(f"{name}() has other arguments", node, scope)
        for each in classes[:1]:
            self._add_class(node, each, scope, _TYPED[name], certain)
        return True

    def _add_class(
        self, node: ast.AST, cls: ast.expr, scope: Scope, separators: str, certain: bool
    ) -> None:
        builder = self._builders.setdefault(node, _Builder())
        builder.is_followed = True
        builder.is_strict |= certain
        builder.is_loose |= not certain
        found, gaps = list_dotted_arguments(*self._follow(cls, scope), separators)
        if separators == "_":  # draccus reads values as YAML
            found = [each._replace(kind="", choices=(), nargs=ANY_NUMBER) for each in found]
            found.append(ParserArgument(("--config_path",), _locate(node, scope)))
        self._add_fields(builder, (found, gaps))
        builder.arguments.append(ParserArgument(("--help", "-h"), _locate(node, scope), nargs=0))

    def _add_wrapped(self, entered: Entered, certain: bool) -> bool:
        """Add the parser of a function that draccus calls; return whether it is one."""
        wraps = [write_source(each) for each in entered.function.decorator_list]
        parameters = entered.function.args.args
        if not any(each.startswith("draccus.wrap(") for each in wraps) or not parameters:
            return False
        if parameters[0].annotation is None or "draccus.wrap()" not in wraps:
            self._add_gap("the class of the configuration is not known", entered.function)
        else:
            annotation = parameters[0].annotation
            self._add_class(entered.function, annotation, entered.scope, "_", certain)
        return True

    def _use(
        self, builders: Builders, method: str, node: ast.Call, scope: Scope, certain: bool
    ) -> None:
        """Note the call of a method of a parser, or of a part of one."""
        if not builders:
            return
        if method == "add_argument":
            arguments = list(filter(None, (self._read_argument(node, scope),)))
            for builder in builders:
                builder.arguments += arguments
        elif method == "add_parser":
            for builder in builders:
                self._read_options(builder, node, scope)
                builder.abbreviated = True
        elif method in (*_STRICT, *_LOOSE):
            if not self._reads_command_line(node, scope):
                self._add_gap("other arguments than the program's are parsed", node, scope)
            is_strict = method in _STRICT and not any(
                keyword.arg == "return_remaining_strings" for keyword in node.keywords
            )
            for builder in builders:
                builder.is_strict |= is_strict and certain
                builder.is_loose |= not (is_strict and certain)
        elif method not in _PARTS and method not in _HARMLESS:
            self._add_gap(f"{method}() of the parser is not followed", node, scope)

    def _reads_command_line(self, node: ast.Call, scope: Scope) -> bool:
        named = [keyword.value for keyword in node.keywords if keyword.arg == "args"]
        first = (*node.args, *named)[:1]
        if not first:
            return True
        value, home = self._follow(first[0], scope)
        return write_source(value) == "sys.argv[1:]" or _fold(value, home, "") is None

    def _read_argument(self, node: ast.Call, scope: Scope) -> ParserArgument | None:
        flags: list[Any] = []
        for each in node.args:
            starred = isinstance(each, ast.Starred)
            found = _fold(each.value if isinstance(each, ast.Starred) else each, scope)
            flags += found if starred and isinstance(found, (list, tuple)) else [found]
        options = {keyword.name: keyword for keyword in iterate_keywords(node, scope)}
        if not flags and "dest" in options:
            flags = [_fold(options["dest"].value, scope)]
        if not flags or not all(isinstance(flag, str) and flag for flag in flags):
            self._add_gap("the name of an argument is computed", node, scope)
            return None

        def fold(name: str, otherwise: Any = None) -> Any:
            keyword = options.get(name)
            return _fold(keyword.value, keyword.scope, otherwise) if keyword else None

        action = fold("action", "") if "action" in options else "store"
        if "action" in options and "BooleanOptionalAction" in write_source(options["action"].value):
            flags += [f"--no-{flag[2:]}" for flag in flags if flag.startswith("--")]
            action = "store_true"
        long = [flag for flag in flags if flag.startswith("--")]
        argument = ParserArgument(
            tuple(dict.fromkeys((*long, *flags))), _locate(node, scope), default=fold("default")
        )
        if action in _SWITCHES:
            return argument._replace(nargs=0)
        if action not in ("store", "append", "extend") or "" in options:
            return argument._replace(nargs=ANY_NUMBER)
        kind = "str"
        if "type" in options:
            kind = write_source(options["type"].value)
            _, bindings = scope.resolve_name(kind) or (scope, [])
            kind = kind if kind in ("int", "float", "str") and not bindings else ""
        choices = fold("choices")
        return argument._replace(
            kind=kind,
            nargs=fold("nargs", ANY_NUMBER),
            choices=tuple(choices) if kind and isinstance(choices, (list, tuple, dict)) else (),
        )


def _list_choices(node: ast.expr) -> list[ast.expr]:
    """Return the expressions of which another one has the value."""
    match node:
        case ast.BoolOp(_, values):
            return [each for value in values for each in _list_choices(value)]
        case ast.IfExp(test, first, second):
            return [test, *_list_choices(first), *_list_choices(second)]
    return [node]


def _bind_parameters(statement: ast.stmt, scope: Scope) -> Scope:
    """Return a scope with the parameters that are assigned again in or after a statement only."""
    return scope.with_bound(
        {
            name[1:]: value
            for name, value in scope.bound.items()
            if name.startswith("=")
            and all(
                getattr(binding.node, "lineno", 0) >= statement.lineno
                for binding in scope.list_bindings(name[1:])
                if binding.kind != "parameter"
            )
        }
    )


def _split_call(node: ast.Call, function: ast.IfExp, home: Scope, scope: Scope) -> list[Scoped]:
    """Return the calls of both functions of a conditional expression."""
    return [
        (
            ast.copy_location(ast.Call(ast.Name("=called"), node.args, node.keywords), node),
            scope.with_bound({"=called": (arm, home)}),
        )
        for arm in (function.body, function.orelse)
    ]


def _fold(node: ast.expr, scope: Scope, otherwise: Any = ...) -> Any:
    """Return the constant value of an expression, else ``otherwise``."""
    with suppress(Unknown):
        return fold_expression(node, scope)
    return otherwise


def _locate(node: ast.AST, scope: Scope) -> str:
    return f"{scope.file}:{getattr(node, 'lineno', 0)}"


def _list_attribute_values(cls: Scope, name: str) -> Iterator[tuple[Scope, ast.expr]]:
    """Yield the values that the methods of a class assign to an attribute of its objects."""
    for method in cls.node.body:
        if not isinstance(method, FUNCTIONS):
            continue
        for node in list_nodes(method):
            if isinstance(node, ast.Assign) and f"self.{name}" in map(write_source, node.targets):
                yield Scope(method, cls), node.value
