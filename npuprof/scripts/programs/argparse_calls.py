"""Reads the parser of a program: all arguments in its files, and how it parses them."""

from __future__ import annotations

import ast
import re
from argparse import REMAINDER, ArgumentParser
from collections.abc import Iterable, Sequence, Set
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from npuprof.scripts.programs.dataclass_fields import LIBRARIES, ClassReader
from npuprof.scripts.programs.parsers import ANY_NUMBER, OTHER_CLASS, Parser, ParserArgument
from npuprof.scripts.python.builtin_calls import resolve_function_name
from npuprof.scripts.python.calls import Entered, find_class, find_class_of_method, find_entered
from npuprof.scripts.python.constants import fold_or
from npuprof.scripts.python.expressions import (
    find_root,
    get_last_name,
    list_nodes,
    list_parts,
    name_callee,
    write_source,
)
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.python.loops import (
    follow_name,
    unroll_loop,
)
from npuprof.scripts.python.module import Module
from npuprof.scripts.python.scopes import Binding, Scope, iterate_statements, statement_blocks
from npuprof.scripts.python.statements import DEFINITIONS, is_main_test
from npuprof.scripts.steps import count_steps
from npuprof.scripts.words import split_words
from npuprof.system import decode_safely

#: What a file or function contains that has to do with a parser.
_PARSING = (
    *(b"add_argument", b"parse_args", b"parse_known", b"ArgumentParser", b"ArgumentGroupFactory"),
    *(b"TrlParser", b"tyro.cli", b"draccus"),
)
#: What changes the arguments before they are parsed, or the functions that parse them.
_CHANGING = re.compile(
    rb"sys\.argv(?:\[[^\]\n]*\])?\s*\+?=[^=]|sys\.argv\.(?:append|extend|insert|pop|remove)\("
    rb"|del sys\.argv|SystemExit|[A-Z]\w*\.parse_args\s*=[^=]"
    rb"|^\s*(?:import|from)\s+mindspeed\w*[.\s]",
    re.MULTILINE,
)
_CHANGES = (b"sys.argv", b"SystemExit", b".parse_args", b"mindspeed")
#: Methods of parsers: those that return a part of one, that reject unknown arguments, and others.
_PARTS = ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser")
_STRICT = (
    "parse_args",
    "parse_intermixed_args",
    "parse_args_into_dataclasses",
    "parse_args_and_config",
)
_PARSING_METHODS = (*_STRICT, "parse_known_args", "parse_known_intermixed_args")
_METHODS = (*_PARTS, *_PARSING_METHODS, "add_argument")
#: Other attributes of a parser, which change no arguments.
_HARMLESS = re.compile(
    r"print_|format_|error|exit|[gs]et_default|_(?:group_)?actions|prog|usage"
    r"|parse(?:_yaml_file|_json_file|_dict)?\Z"
)
#: A flag that is computed of a name, and the name of a file.
_COMPUTED = re.compile(r"add_argument\((?:'--' \+ \w+|f'--\{\w+\}'|'--\{\}'\.format\(\w+\))[,)]")
_YAML_FILE = re.compile(rb"""['"]([\w./-]+\.ya?ml)['"]""")
#: A key of a table at the top of a YAML file.
_KEY = re.compile(rb"""^['"]?([\w.-]+)['"]?[ ]*:""", re.MULTILINE)
#: Functions to which a parser may be passed.
_BUILTINS = ("isinstance", "print", "type", "str", "build_group", "add_config_arguments")
#: The arguments that calls add: those of DeepSpeed, and a command.
_ADDED = {
    "add_config_arguments": (
        *("--deepspeed", "--deepspeed_config", "--deepspeed_mpi"),
        *("--deepscale", "--deepscale_config"),
    ),
    "add_subparsers": ("command",),
}
_LAST_NAMES = frozenset(("ArgumentParser", *(name.rpartition(".")[2] for name in LIBRARIES)))
_SWITCHES = ("store_true", "store_false", "store_const", "append_const", "count", "help", "version")
#: The constant value of an expression in a scope, ``...`` for others.
_fold = partial(fold_or, ...)


class ParserReader:
    """Reads the parsers of the programs of a tree; what their files have in common is read once."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self.can_parse = cache(lambda path: _can_parse(b"", modules.read(path), False))
        self.find_change = cache(self._find_change)
        self.list_given = cache(self._list_given)

    def read(self, path: str) -> Parser | None:
        """Return the parser of the program in a file, None if it parses no arguments.

        It has the arguments of all files that the program imports.
        """
        # an imported file may parse them where it is imported
        files = (path, *self.modules.list_imported(path))
        can_parse = any(map(self.can_parse, files)) or self.modules.list_supplied(path, _can_parse)
        module = self.modules.load(path) if can_parse else None
        if module is None:
            return None
        self.modules.begin_script(module.index)
        return _Program(module, self).read()

    def _find_change(self, path: str) -> str:
        """Return what in a file may change the arguments or their parsing, empty for nothing."""
        data = self.modules.read(path)
        # a search for a fixed text is faster than the pattern
        match = _CHANGING.search(data) if any(text in data for text in _CHANGES) else None
        return decode_safely(match[0]).strip() if match else ""

    def _list_given(self, path: str, name: str) -> frozenset[str]:
        """Return the last names that calls in a file give a parameter."""
        data = self.modules.read(path)
        if name.encode() not in data:
            return frozenset()
        found = re.findall(rf"[(,]\s*{name}\s*=\s*(?:\w+\.)*(\w+)".encode(), data)
        return frozenset(map(bytes.decode, found))


def _can_parse(_: bytes, part: bytes, __: bool) -> bool:
    return any(name in part for name in _PARSING)


class _Program:
    def __init__(self, main: Module, reader: ParserReader) -> None:
        self._path = main.path
        self._reader = reader
        self._modules = modules = reader.modules
        self._files = {main.path}
        self._reached: set[ast.AST] = set()
        self._arguments: list[ParserArgument] = []
        self._gaps: list[str] = []
        #: how the files name parsers and their parts
        self._names: set[str] = set()
        #: the main file, and those of the others that have to do with a parser
        self._parts = [main]
        #: words of which a function has one that has to do with a parser
        self._words: set[bytes] = set()
        self._list_lines = cache(lambda path: modules.read(path).split(b"\n"))
        #: the YAML files whose keys may be arguments
        self._configs: set[str] = set()
        #: the functions that parse the arguments that they know, before others are parsed
        self._partial: set[ast.AST] = set()
        #: of each call that parses: 0 if it may ignore unknown arguments, 1 if it rejects them,
        #: 2 if it does so in any run of a function
        self._strictness: list[int] = []
        self._abbreviated = False

    def read(self) -> Parser | None:
        """Return the parser that the program uses, None if it uses none."""
        waiting = [self._path]
        for file in waiting:  # also over those that are added
            count_steps(10)
            if change := self._reader.find_change(file):
                self._gaps.append(f"{file} has {change!r}")
            if file != self._path and self._reader.can_parse(file):
                if module := self._modules.load(file):
                    self._parts.append(module)
                else:
                    self._gaps.append(f"{file} is not read")
            added = [each for each in self._modules.list_imported(file) if each not in self._files]
            self._files.update(added)
            waiting += added
        for module in self._parts:
            self._name_parsers(module)
            self._reach(module.scope)
        names = (*self._names, *_METHODS, *LIBRARIES)
        self._words = {name.rpartition(".")[2].encode() for name in names}
        for module in self._parts:
            self._collect(module.tree.body, module.scope)
        if not self._strictness:
            return None
        if max(self._strictness) <= bool(self._partial):
            self._gaps.append("the parser may ignore unknown arguments")
        self._arguments.append(ParserArgument(("--help", "-h"), self._path, nargs=0))
        return Parser(
            self._path,
            tuple(dict.fromkeys(self._arguments)),
            tuple(dict.fromkeys(self._gaps)),
            self._abbreviated,
            (*(module.path for module in self._parts), *sorted(self._configs)),
        )

    def _add_gap(self, reason: str, node: ast.stmt | ast.expr, scope: Scope) -> None:
        self._gaps.append(f"{reason} ({scope.file}:{node.lineno})")

    # parsers

    def _name_parsers(self, module: Module) -> None:
        """Collect the names of a file's parsers."""
        for call in module.index.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
                self._names.add(write_source(call.func.value))
        for statement in module.index.list_of(ast.Assign):
            if _creates_parser(statement.value, module.scope):
                self._names.update(map(write_source, statement.targets))

    def _makes_parser(self, node: ast.expr, scope: Scope) -> bool:
        """Return whether a call returns a parser that the files make, or a part of one."""
        return isinstance(node, ast.Call) and (
            _creates_parser(node, scope)
            or self._find_entered(node, scope) is not None
            or any(self._is_parser(each, scope) for each in node.args)
        )

    def _is_parser(self, node: ast.AST, scope: Scope) -> bool:
        return (
            isinstance(node, (ast.Name, ast.Attribute))
            and write_source(node) in self._names
            and not any(each.kind == "import" for each in _list_bindings(node, scope))
            and not _is_other_object(node, scope)
        )

    def _is_made(self, node: ast.expr, scope: Scope) -> bool:
        """Return whether an expression is a parser that the files make."""
        if isinstance(node, ast.Attribute):
            name = write_source(node)
            values = [
                (value, each.scope)
                for each in self._parts
                for value in each.index.attributes.get(name, ())
            ]
        else:
            values = [(each.node, scope) for each in _list_bindings(node, scope)]
            if any(_is_direct(each, scope) for each, _ in values):  # instead of a parameter
                values = [each for each in values if not isinstance(each[0], ast.arg)]
        return all(self._makes_parser(*each) for each in values or [(node, scope)])

    # functions

    def _reach(self, scope: Scope) -> None:
        """Find the functions that the program calls and that have to do with a parser."""
        self._reached.add(scope.node)
        for statement in iterate_statements(
            each
            for each in scope.node.body
            if scope.file == self._path or not is_main_test(getattr(each, "test", None))
        ):
            for node in _list_expressions(statement):
                entered = self._find_entered(node, scope)
                if entered and entered.function not in self._reached:
                    self._reach(Scope(entered.function, entered.scope))

    def _find_entered(self, node: ast.AST, scope: Scope) -> Entered | None:
        """Return the called function, if it is in the files and has to do with a parser."""
        if not isinstance(node, ast.Call):
            return None
        module = self._modules.load(scope.file)
        supplied = self._modules.list_supplied(scope.file, _can_parse)
        # names are compared before anything is resolved
        if not module or name_callee(node) not in module.list_callable(supplied):
            return None
        entered = find_entered(node, ast.Expr(node), scope)
        if entered and entered.name in self._modules.list_setters(entered.scope.file, _can_parse):
            return entered
        return None

    def _is_given(self, node: ast.expr, scope: Scope, names: Set[str]) -> bool:
        """Return whether all files give a parameter only itself and some other names."""
        name = write_source(node)
        allowed = {name, *names}
        return any(each.kind == "parameter" for each in _list_bindings(node, scope)) and all(
            self._reader.list_given(file, name) <= allowed for file in self._files
        )

    @cached_property
    def _defined(self) -> set[str]:
        """The names of the functions and classes of all files, and of none."""
        return {"None"}.union(*map(self._modules.list_defined, self._files))

    # arguments

    def _collect(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        """Collect what statements do with parsers, also those in functions and classes."""
        for statement in body:
            inside = [scope]
            match statement:
                case ast.ClassDef("ArgumentGroupFactory"):
                    continue  # its arguments are read where it is called
                case ast.ClassDef(_, bases) if any(map(_is_foreign, bases)):
                    # its methods may give it to other functions
                    self._names.add("self")
                    self._words.add(b"self")
                    # a text, or methods beside those of the base
                    if len(bases) > 1 or not all(
                        isinstance(each, ast.Expr) or _is_added(getattr(each, "name", "_"))
                        for each in statement.body
                    ):
                        self._add_gap(OTHER_CLASS, statement, scope)
                case ast.Assign(targets, value) if any(
                    self._is_parser(each, scope) for each in targets
                ):
                    is_choice = isinstance(value, (ast.BoolOp, ast.IfExp))
                    for part in list_parts(value) if is_choice else [value]:
                        if isinstance(part, ast.Call) and not self._makes_parser(part, scope):
                            self._add_gap("the parser is not followed", statement, scope)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    text = b"\n".join(
                        self._list_lines(scope.file)[statement.lineno - 1 : statement.end_lineno]
                    )
                    if self._words.isdisjoint(split_words(text)) and b"ArgumentParser" not in text:
                        continue
                    inside = [Scope(statement, scope)]
                case ast.For(target, iterated):
                    bound = unroll_loop(target, iterated, scope)
                    inside = [scope.with_bound(names) for names in bound] or inside
                case ast.If(test) if is_main_test(test) and scope.file != self._path:
                    continue
            for each in inside:
                for block in statement_blocks(statement):
                    self._collect(block, each)
            followed = set[ast.AST]()
            nodes = _list_expressions(statement)
            count_steps(len(nodes))
            for node in nodes:
                match node:
                    case ast.Call(function, _, keywords):
                        followed.add(function)
                        followed.update(each.value for each in keywords if each.arg == "parents")
                        self._read_call(node, scope)
                    case ast.Attribute(owner, name) if self._is_parser(owner, scope):
                        is_method = node in followed and name in _METHODS
                        if not (is_method or _HARMLESS.match(name) or _is_added(name)):
                            self._add_gap(f"{name} of the parser is not followed", node, scope)
                    case ast.List() | ast.Tuple() | ast.Dict() if node not in followed:
                        if any(self._is_parser(part, scope) for part in list_parts(node)):
                            self._add_gap("the parser is stored", node, scope)

    def _read_call(self, node: ast.Call, scope: Scope) -> None:
        name = get_last_name(node.func)
        values = [*node.args, *(each.value for each in node.keywords)]
        if library := LIBRARIES.get(_resolve_name(node.func, scope) or name, ""):
            self._read_class(values, scope, library)
        where = f"{scope.file}:{node.lineno}"
        self._arguments += [ParserArgument((flag,), where) for flag in _ADDED.get(name, ())]
        if name == "add_argument":
            self._read_argument(node, scope)
        elif name not in _PARTS[:3] and _creates_parser(node, scope):
            self._read_options(node, scope)
        elif _is_foreign(node.func):
            self._add_gap(OTHER_CLASS, node, scope)
        elif isinstance(node.func, ast.Attribute) and (
            name in _PARSING_METHODS
            # of classes that also read files of arguments
            or (name == "parse" and self._is_parser(node.func.value, scope))
        ):
            self._read_parsing(node, node.func, scope)
        elif (
            any(self._is_parser(each, scope) for each in values)
            and name not in _BUILTINS
            and not self._find_entered(node, scope)
            and not self._is_given(node.func, scope, self._defined)
        ):
            self._add_gap(f"{name}() gets the parser", node, scope)

    def _read_class(self, values: Sequence[ast.expr], scope: Scope, library: str) -> None:
        """Read the arguments that a library makes of a class, or of several."""
        reader = ClassReader(library, self._arguments, self._gaps)
        for value in values[:1]:
            named, home = follow_name(value, scope)
            for each in named.elts if isinstance(named, (ast.Tuple, ast.List)) else [named]:
                reader.read(each, home)
        if library in ("tyro", "draccus") and scope.node in self._reached:
            self._strictness.append(2)
        if not values or (len(values) > 1 and library != "megatron"):
            self._gaps.append(f"{library} may have other options")

    def _read_options(self, node: ast.Call, scope: Scope) -> None:
        """Read the options with which a parser is created."""
        abbreviated = True
        for keyword in node.keywords:
            if keyword.arg == "allow_abbrev":
                abbreviated = _fold(keyword.value, scope) is not False
            elif keyword.arg in (None, "prefix_chars"):
                self._add_gap("the parser may have other prefixes", node, scope)
            elif keyword.arg == "parents" and not all(
                self._is_parser(each, scope) for each in list_parts(keyword.value)
            ):
                self._add_gap("a parent of the parser is not followed", node, scope)
        self._abbreviated |= abbreviated and scope.node in self._reached

    def _read_parsing(self, node: ast.Call, method: ast.Attribute, scope: Scope) -> None:
        """Note how a parser reads the command line."""
        if scope.node not in self._reached:
            return
        self._strictness.append(0)
        if method.attr == "parse_args_and_config":
            self._arguments.append(ParserArgument(("--config",), f"{scope.file}:{node.lineno}"))
        options = {each.arg: each.value for each in node.keywords}
        given = options.get("args", *node.args[:1])
        if method.attr not in _STRICT or "return_remaining_strings" in options:
            if _is_direct(node, scope):
                self._partial.add(scope.node)
            elif not self._is_off(node, scope):
                self._add_gap("the parser may ignore unknown arguments", node, scope)
        elif not self._is_made(method.value, scope):
            self._add_gap("the parser is not followed", node, scope)
        elif given and not (
            write_source(given) == "sys.argv[1:]"
            or (isinstance(given, ast.Name) and scope.node in self._partial)
            or self._is_given(given, scope, {"None"})
        ):
            self._add_gap("other arguments than the program's are parsed", node, scope)
        else:
            self._strictness.append(1 + _is_direct(node, scope))

    def _is_off(self, node: ast.Call, scope: Scope) -> bool:
        """Return whether a call is only made with a parameter that is never true."""
        module = self._modules.load(scope.file)
        return any(
            self._is_given(each.test, scope, {"False"})
            and any(node in list_nodes(inner) for inner in each.body)
            for each in (module.index.list_of(ast.If) if module else ())
            if isinstance(each.test, ast.Name)
        )

    def _list_keys(self, path: str) -> list[ParserArgument]:
        """Return the keys of YAML files that a file names, and of the others beside them.

        The command line may name one of these.
        """
        read = self._modules.read
        for name in _YAML_FILE.findall(read(path)):
            for program in (path, self._path):
                file = Path(program).parent / name.decode()
                if read(str(file)):
                    self._configs.update(map(str, file.parent.glob("*.y*ml")))
        return [
            ParserArgument((f"--{key.decode()}",), file)
            for file in sorted(self._configs)
            for key in _KEY.findall(read(file))
        ]

    def _read_argument(self, node: ast.Call, scope: Scope) -> None:
        flags = [_fold(each, scope) for each in node.args]
        if not flags or not all(isinstance(flag, str) and flag for flag in flags):
            added = self._list_keys(scope.file) if _COMPUTED.search(write_source(node)) else []
            self._arguments += added
            if not added:
                self._add_gap("the name of an argument is computed", node, scope)
            return
        options = {each.arg: each.value for each in node.keywords}
        action = _fold(options.get("action", ast.Constant("store")), scope)
        if "BooleanOptionalAction" in write_source(options.get("action", node.func)):
            flags += [f"--no-{flag[2:]}" for flag in flags if flag.startswith("--")]
            action = "store_true"
        flags.sort(key=lambda flag: not flag.startswith("--"))
        kind, choices = "", None
        nargs: Any = ANY_NUMBER
        if action in _SWITCHES:
            nargs = 0
        elif action in ("store", "append", "extend") and None not in options:
            nargs = _fold(options.get("nargs", ast.Constant(None)), scope)
            if get_last_name(options.get("nargs", node)) == "REMAINDER" or nargs == REMAINDER:
                self._add_gap("an argument takes all words that follow", node, scope)
            named = write_source(options.get("type", ast.Name("str")))
            if named in ("int", "float", "str") and scope.resolve_name(named) is None:
                kind, choices = named, _fold(options.get("choices", ast.Tuple([])), scope)
        choices = tuple(choices) if isinstance(choices, (list, tuple, dict)) else ()
        where = f"{scope.file}:{node.lineno}"
        self._arguments.append(ParserArgument(tuple(flags), where, kind, choices, nargs))


def _list_expressions(statement: ast.stmt) -> list[ast.AST]:
    """Return the nodes of a statement outside of its blocks, outermost first."""
    inner = (ast.stmt, ast.ExceptHandler, ast.match_case)
    parts = [] if isinstance(statement, DEFINITIONS) else list_parts(statement)
    return [node for part in parts if not isinstance(part, inner) for node in list_nodes(part)]


def _is_foreign(node: ast.expr) -> bool:
    """Return whether a class may be one of parsers, by its name."""
    return get_last_name(node).endswith(("ArgumentParser", "ArgParser", "Tap"))


def _is_added(name: str) -> bool:
    """Return whether a class of parsers may have a name beside those of its base."""
    return not (name.startswith(("_", "parse_args")) or hasattr(ArgumentParser, name))


def _is_other_object(node: ast.expr, scope: Scope) -> bool:
    """Return whether an expression is the object of a method, in a class of no parsers."""
    cls, name = find_class_of_method(scope)
    return write_source(node) == name and not any(map(_is_foreign, _list_bases(cls)))


def _list_bases(cls: Scope | None) -> list[ast.expr]:
    return cls.node.bases if cls and isinstance(cls.node, ast.ClassDef) else []


def _is_direct(node: ast.AST, scope: Scope) -> bool:
    """Return whether a function evaluates an expression under no condition."""
    return any(getattr(each, "value", None) is node for each in scope.node.body)


def _list_bindings(node: ast.expr, scope: Scope) -> list[Binding]:
    """Return the bindings of the first name of an expression."""
    root = find_root(node)
    return scope.find_binding(root.id)[1] if isinstance(root, ast.Name) else []


def _resolve_name(function: ast.expr, scope: Scope) -> str:
    """Return the dotted name of a library's function, most of those of others as empty.

    A class of the tree counts as its base.
    """
    if "Parser" in get_last_name(function) and (cls := find_class(function, scope)):
        function, scope = next(iter(_list_bases(cls)), function), cls
    names = {get_last_name(function)}
    for each in _list_bindings(function, scope):
        if each.kind == "import":
            names.update(alias.name.rpartition(".")[2] for alias in each.node.names if alias.asname)
    return "" if names.isdisjoint(_LAST_NAMES) else resolve_function_name(function, scope)


def _creates_parser(node: ast.expr, scope: Scope) -> bool:
    """Return whether a call creates a parser, or a part of one."""
    if not isinstance(node, ast.Call):
        return False
    name = _resolve_name(node.func, scope)
    is_class = name == "argparse.ArgumentParser" or LIBRARIES.get(name) == "transformers"
    return is_class or get_last_name(node.func) in _PARTS
