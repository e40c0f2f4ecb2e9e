"""What Python sources read: environment variables, and keys of a section of settings.

The sources are not executed. ``ast`` finds the reads, and follows names and sections through
assignments, calls of the project's own functions, and the fields of its configuration classes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

#: Calls that leave a section what it is.
_COPIES = {"dict", "copy", "deepcopy", "set", "list", "cast", "MappingProxyType", "keys"}
_DEPRECATES = re.compile(r"deprecat|(?:will be|has been|been) removed|\bremove\b")
_NAMES = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_KINDS = {"bool", "int", "float", "str"}
_DEFINITION = re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)
_CONSTANT = re.compile(r"^[ ]{0,4}(_*[A-Z][A-Z0-9_]+)\b(?:\s*:[^=\n]+)?\s*=", re.MULTILINE)
#: How deep calls are followed, and how many functions a name may have to be followed.
_MOST_STEPS = 12
_MOST_DEFINITIONS = 4


#: The ``literal`` of a default that is no constant.
COMPUTED = "?"


@dataclass(frozen=True)
class Read:
    """One read of a variable (section ``env``) or of a key of the settings.

    ``literal`` is the default as Python writes it, ``COMPUTED`` for any other expression, empty
    without one. ``default`` is the same as text.
    """

    section: str
    name: str
    file: str
    kind: str = ""
    default: str = ""
    choices: tuple[str, ...] = ()
    literal: str = ""


@dataclass(frozen=True)
class Section:
    """The value that a user wrote at a path of the settings, without some of its keys."""

    path: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Parameter:
    """The unknown value of a parameter; of ``function``, if that passes it on as a name."""

    function: str


@dataclass(frozen=True)
class Key:
    """Any key of a section, in a loop over its items."""

    section: Section


@dataclass(eq=False)
class Mapping:
    """A dictionary, list or set of the source: its texts, each with its values and source."""

    values: dict[str, set[Value]] = field(default_factory=dict)
    sources: dict[str, ast.expr | None] = field(default_factory=dict)


@dataclass(eq=False)
class Closure:
    """A function that is defined in another one, with the names it sees there."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    names: dict[str, set[Value]]


Value = str | Section | Parameter | Key | Mapping | Closure
Names = dict[str, set[Value]]


@dataclass
class Definition:
    """A function or a class of the project."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    module: Module
    owner: ast.ClassDef | None = None


class Module:
    """One parsed file: its definitions and its constants."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path, self.tree = path, tree
        self.definitions: dict[str, list[Definition]] = {}
        self.constants: dict[str, list[ast.expr]] = {}
        self._collect(tree.body, None)

    def _collect(self, body: Iterable[ast.stmt], owner: ast.ClassDef | None) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.definitions.setdefault(node.name, []).append(Definition(node, self, owner))
            elif isinstance(node, ast.ClassDef):
                self.definitions.setdefault(node.name, []).append(Definition(node, self, owner))
                self._collect(node.body, node)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self.constants.setdefault(target.id, []).append(node.value)
            elif isinstance(node, ast.If | ast.Try | ast.With):
                self._collect(
                    [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)], owner
                )


_PARSED: dict[tuple[str, str], Module | None] = {}


def _parse(path: str, text: str) -> Module | None:
    """Return the module of a file, None if it cannot be parsed; equal files are parsed once."""
    known = (path, text)
    if known not in _PARSED:
        try:
            _PARSED[known] = Module(path, ast.parse(text))
        except (SyntaxError, ValueError):
            _PARSED[known] = None
    return _PARSED[known]


class Project:
    """The Python files of one release.

    ``root`` is the name of the attribute or parameter that has the section of the settings.
    """

    def __init__(self, files: dict[str, str], root: str = "") -> None:
        self.files, self.root = files, root
        self.reads: set[Read] = set()
        self.deprecated: set[str] = set()
        self.wrappers: set[str] = set()
        self.attributes: dict[tuple[str, str], set[Value]] = {}
        self.where: dict[str, list[str]] = {}
        self.assigned: dict[str, list[str]] = {}
        for path, text in files.items():
            for name in set(_DEFINITION.findall(text)):
                self.where.setdefault(name, []).append(path)
            for name in set(_CONSTANT.findall(text)):
                self.assigned.setdefault(name, []).append(path)
        self._returned: dict[tuple[int, frozenset[tuple[str, str]]], set[Value]] = {}
        self._depth = 0

    def collect(self) -> None:
        """Fill ``reads`` and ``deprecated``."""
        words = ["environ", "getenv", "env_name", *([self.root] if self.root else [])]
        for _ in range(4):
            before = len(self.wrappers), sum(map(len, self.attributes.values()))
            self._returned.clear()
            needed = re.compile("|".join(map(re.escape, words + sorted(self.wrappers))))
            for path, text in self.files.items():
                if needed.search(text) and (module := _parse(path, text)):
                    _Scope(self, module, None, {}).run(module.tree.body)
                    for definitions in module.definitions.values():
                        for definition in definitions:
                            if not isinstance(definition.node, ast.ClassDef):
                                self.call(definition, {}, "")
            if before == (len(self.wrappers), sum(map(len, self.attributes.values()))):
                break

    def find(self, name: str) -> Iterator[Definition]:
        """Yield the definitions of a name."""
        for path in self.where.get(name, ()):
            if module := _parse(path, self.files[path]):
                yield from module.definitions.get(name, ())

    def call(self, definition: Definition, names: Names, caller: str) -> set[Value]:
        """Return what a function returns, with its parameters bound to values."""
        node = definition.node
        assert not isinstance(node, ast.ClassDef)
        wrapper = (
            definition.owner.name if definition.owner and node.name == "__init__" else node.name
        )
        arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        inner: Names = {each.arg: set[Value]({Parameter(wrapper)}) for each in arguments}
        if node.args.kwarg:
            inner[node.args.kwarg.arg] = set()
        inner |= names
        bound = (id(node), frozenset((k, _identify(v)) for k, v in names.items() if v))
        if bound in self._returned or self._depth > _MOST_STEPS:
            return self._returned.get(bound, set())
        self._returned[bound] = set()
        self._depth += 1
        scope = _Scope(self, definition.module, definition.owner, inner)
        scope.run(node.body)
        self._depth -= 1
        self._returned[bound] = scope.returned
        return scope.returned

    def add(self, read: Read) -> None:
        """Add a read, unless its name is none."""
        if re.fullmatch(r"[A-Za-z_][\w.-]*", read.name):
            self.reads.add(read)

    def read_fields(self, node: ast.ClassDef, module: Module, section: Section) -> None:
        """Add the fields of a configuration class as keys of a section."""
        for each in node.body:
            if not (isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)):
                continue
            name = each.target.id
            if (
                name in section.without
                or name.startswith("_")
                or "init=False" in _unparse(each.value)
            ):
                continue
            if "ClassVar" in (kind := ast.unparse(each.annotation)):
                continue
            path = (*section.path, name)
            self.add(_describe("settings", ".".join(path), module.path, each.value, kind))
            self.read_class(each.annotation, Section(path))

    def read_class(self, annotation: ast.expr, section: Section) -> None:
        """Add the fields of the configuration classes that an annotation names."""
        for name in set(re.findall(r"\w+", ast.unparse(annotation))):
            for inner in self.find(name):
                if isinstance(inner.node, ast.ClassDef) and inner.node.decorator_list:
                    self.read_fields(inner.node, inner.module, section)


def _unparse(node: ast.expr | None) -> str:
    return ast.unparse(node) if node is not None else ""


def _describe(section: str, name: str, file: str, default: ast.expr | None, kind: str = "") -> Read:
    """Return a read with its kind and its default, as far as the source has them."""
    text, choices = "", tuple[str, ...]()
    if isinstance(default, ast.Call) and _unparse(default.func).endswith("ield"):
        given = {each.arg: each.value for each in default.keywords}
        default = given.get("default", given.get("default_factory"))
    if isinstance(default, ast.Constant | ast.UnaryOp | ast.List | ast.Dict | ast.Tuple):
        value = default.value if isinstance(default, ast.Constant) else _unparse(default)
        text = "" if value is None else str(value)
        if not kind and section == "settings" and type(value).__name__ in _KINDS:
            kind = type(value).__name__ if isinstance(default, ast.Constant) else ""
    if found := re.match(r"Literal\[(.*?)\]", kind):
        values = [v.strip() for v in found[1].split(",")]
        choices = tuple(value.strip("'\"") for value in values)
        kind = "str" if values[0][:1] in "'\"" else "int"
    kind = kind.removesuffix(" | None").removeprefix("Optional[").removesuffix("]")
    kind = {"list": "list", "dict": "json", "tuple": "list"}.get(re.split(r"\W", kind)[0], kind)
    kind = kind if kind in _KINDS | {"list", "json"} else ""
    return Read(section, name, file, kind, text, choices, _write_literal(default))


def _write_literal(default: ast.expr | None) -> str:
    try:
        value = None if default is None else ast.literal_eval(default)
    except ValueError:
        return COMPUTED
    return "" if value is None else repr(value)


class _Scope:
    """The statements of one module or function, with the values of its names."""

    def __init__(
        self, project: Project, module: Module, owner: ast.ClassDef | None, names: Names
    ) -> None:
        self.project, self.module, self.owner, self.names = project, module, owner, names
        self.returned: set[Value] = set()

    def run(self, body: Iterable[ast.stmt]) -> None:
        """Follow statements in their order; both branches of a condition."""
        for node in body:
            self.step(node)

    def step(self, node: ast.stmt) -> None:
        """Follow one statement."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if self.module.tree.body and node not in self.module.tree.body:
                    self.names[node.name] = {Closure(node, self.names)}
                    inner: Names = {}
                    for each in node.args.args:
                        inner[each.arg] = {Parameter(node.name)}
                    _Scope(self.project, self.module, self.owner, self.names | inner).run(node.body)
                for each in [*node.args.defaults, *node.args.kw_defaults, *node.decorator_list]:
                    self.value(each)
            case ast.ClassDef():
                for each in [*node.bases, *node.decorator_list]:
                    self.value(each)
                self.run(s for s in node.body if not isinstance(s, ast.FunctionDef))
            case ast.Assign():
                values = self.value(node.value)
                for target in node.targets:
                    self.assign(target, values)
            case ast.AnnAssign():
                if node.value is not None:
                    kind = _unparse(node.annotation)
                    self.assign(node.target, self.value(node.value, kind if kind in _KINDS else ""))
            case ast.For():
                values = self.value(node.iter)
                self.loop(node.target, node.iter, values)
                self.run(node.body + node.orelse)
            case ast.Return():
                self.returned |= self.value(node.value)
            case _:
                for child in ast.iter_child_nodes(node):
                    self.visit(child)

    def visit(self, node: ast.AST) -> None:
        """Follow a statement, an expression, or what they are in."""
        if isinstance(node, ast.stmt):
            self.step(node)
        elif isinstance(node, ast.expr):
            self.value(node)
        else:
            for child in ast.iter_child_nodes(node):
                self.visit(child)

    def loop(self, target: ast.expr, source: ast.expr, values: set[Value]) -> None:
        """Bind the names of a loop."""
        first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
        inside: set[Value] = set()
        for value in values:
            if isinstance(value, Section):
                inside.add(Key(value))
            elif isinstance(value, Mapping):
                inside |= set(value.values)
        self.assign(first, inside)

    def assign(self, target: ast.expr, values: set[Value]) -> None:
        """Bind a name or an attribute of the object to values."""
        if isinstance(target, ast.Name):
            old = {v for v in self.names.get(target.id, set()) if not isinstance(v, Parameter)}
            self.names[target.id] = old | values
        elif isinstance(target, ast.Attribute):
            if self.owner and _unparse(target.value) == "self":
                kept = {v for v in values if isinstance(v, str | Section | Mapping)}
                known = self.project.attributes.setdefault((self.owner.name, target.attr), set())
                texts = {_identify({v}) for v in known}
                known.update(v for v in kept if _identify({v}) not in texts)
        elif isinstance(target, ast.Subscript):
            self.value(target.value)
            self.value(target.slice)
        elif isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self.assign(each, set())

    def value(self, node: ast.expr | None, kind: str = "") -> set[Value]:
        """Return the values of an expression, and add what it reads."""
        match node:
            case None:
                return set()
            case ast.Constant():
                return {node.value} if isinstance(node.value, str) else set()
            case ast.Name():
                return self.name(node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.BoolOp():
                return set().union(*(self.value(each, kind) for each in node.values))
            case ast.IfExp():
                self.value(node.test)
                return self.value(node.body, kind) | self.value(node.orelse, kind)
            case ast.NamedExpr():
                values = self.value(node.value, kind)
                self.assign(node.target, values)
                return values
            case ast.JoinedStr():
                return self.text(node)
            case ast.BinOp():
                return self.binary(node)
            case ast.Dict():
                mapping = Mapping()
                for key, each in zip(node.keys, node.values, strict=True):
                    values = self.value(each)
                    for name in self.value(key) if key else ():
                        if isinstance(name, str):
                            mapping.values[name], mapping.sources[name] = values, each
                    if key is None:
                        for inner in values:
                            if isinstance(inner, Mapping):
                                mapping.values |= inner.values
                return {mapping}
            case ast.List() | ast.Tuple() | ast.Set():
                mapping = Mapping()
                for each in node.elts:
                    for name in self.value(each):
                        if isinstance(name, str):
                            mapping.values[name], mapping.sources[name] = set(), None
                return {mapping}
            case ast.DictComp() | ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self.comprehension(node)
            case ast.Compare():
                self.compare(node)
                return set()
            case ast.Subscript():
                if isinstance(node.ctx, ast.Load):
                    return self.read(node.value, node.slice, None, kind)
                return set()
            case ast.Call():
                return self.call(node, kind)
            case ast.Lambda():
                inner = _Scope(self.project, self.module, self.owner, dict(self.names))
                inner.value(node.body)
                return set()
            case ast.Await() | ast.Starred():
                return self.value(node.value)
        for child in ast.iter_child_nodes(node):
            self.visit(child)
        return set()

    def name(self, node: ast.Name) -> set[Value]:
        """Return the values of a name: of the function, of the module, of what it imports."""
        if node.id in self.names:
            values = self.names[node.id]
            if node.id == self.project.root and not any(isinstance(v, Section) for v in values):
                return {Section()} if all(isinstance(v, Parameter) for v in values) else values
            return values
        return self.constant(node.id, [self.module])

    def constant(self, name: str, modules: Iterable[Module] = ()) -> set[Value]:
        """Return the texts that constants of a name have: of some modules, or of all."""
        values: set[Value] = set()
        found = False
        for module in modules:
            for each in module.constants.get(name, ()):
                found = True
                if isinstance(each, ast.Constant | ast.Dict | ast.List | ast.Tuple | ast.Set):
                    values |= _Scope(self.project, module, None, {}).value(each)
        if found or not re.fullmatch(r"_*[A-Z][A-Z0-9_]+", name):
            return values
        paths = self.project.assigned.get(name, ())
        others = [m for p in paths if (m := _parse(p, self.project.files[p]))]
        for module in others:
            if module is not self.module and name in module.constants:
                values |= self.constant(name, [module])
        return values

    def attribute(self, node: ast.Attribute) -> set[Value]:
        """Return the values of an attribute."""
        owner = self.value(node.value)
        if self.project.root and node.attr == self.project.root:
            return {Section()}
        if self.owner and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            known = self.project.attributes.get((self.owner.name, node.attr), set())
            for each in self.owner.body:
                if isinstance(each, ast.Assign) and _unparse(each.targets[0]) == node.attr:
                    known = known | self.value(each.value)
            return known
        del owner
        return self.constant(node.attr)

    def text(self, node: ast.JoinedStr) -> set[Value]:
        """Return the texts that a formatted text can be."""
        texts = [""]
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                known = [v for v in self.value(part.value) if isinstance(v, str)] or ["\0"]
            else:
                known = [str(part.value)] if isinstance(part, ast.Constant) else [""]
            texts = [text + each for text in texts for each in known][:40]
        return set(texts)

    def binary(self, node: ast.BinOp) -> set[Value]:
        """Return the texts of a sum; the difference of a section and a list reads its names."""
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Sub):
            for section in (v for v in left if isinstance(v, Section)):
                for mapping in (v for v in right if isinstance(v, Mapping)):
                    self.read_keys(section, mapping)
        if isinstance(node.op, ast.Add):
            return {a + b for a in left for b in right if isinstance(a, str) and isinstance(b, str)}
        return {v for v in left if isinstance(v, str)} if isinstance(node.op, ast.Mod) else set()

    def comprehension(
        self, node: ast.DictComp | ast.ListComp | ast.SetComp | ast.GeneratorExp
    ) -> set[Value]:
        """Return the section that a copy of its items keeps; for others nothing."""
        names = dict(self.names)
        inner = _Scope(self.project, self.module, self.owner, names)
        kept: set[Value] = set()
        for each in node.generators:
            values = inner.value(each.iter)
            inner.loop(each.target, each.iter, values)
            without: set[str] = set()
            for test in each.ifs:
                if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn):
                    for mapping in inner.value(test.comparators[0]):
                        without |= set(mapping.values) if isinstance(mapping, Mapping) else set()
                else:
                    inner.value(test)
            kept |= {Section(v.path, v.without | without) for v in values if isinstance(v, Section)}
        if isinstance(node, ast.DictComp):
            inner.value(node.key)
            inner.value(node.value)
            return kept
        return inner.value(node.elt)

    def read_keys(self, section: Section, mapping: Mapping) -> None:
        """Add the names of a dictionary of the source as keys of a section."""
        for name, source in mapping.sources.items():
            path = ".".join((*section.path, name))
            self.project.add(_describe("settings", path, self.module.path, source))

    def compare(self, node: ast.Compare) -> None:
        """Add what ``name in section`` and ``name in os.environ`` read."""
        left = self.value(node.left)
        for operation, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operation, ast.In | ast.NotIn):
                self.read(right, node.left, None)
                for mapping in (v for v in self.value(right) if isinstance(v, Mapping)):
                    for key in (v for v in left if isinstance(v, Key)):
                        self.read_keys(key.section, mapping)
            else:
                self.value(right)

    def read(
        self, owner: ast.expr, key: ast.expr, default: ast.expr | None, kind: str = ""
    ) -> set[Value]:
        """Add the reads of a key of the environment or of a section; return its value."""
        names = self.value(key)
        if _is_environment(owner):
            for name in names:
                self.read_variable(name, default, kind)
            return set()
        result: set[Value] = set()
        for value in self.value(owner):
            if isinstance(value, Section):
                for name in names:
                    if isinstance(name, str) and "\0" not in name:
                        path = (*value.path, name)
                        self.project.add(
                            _describe("settings", ".".join(path), self.module.path, default, kind)
                        )
                        result.add(Section(path))
            elif isinstance(value, Mapping):
                for name in names:
                    result |= value.values.get(name, set()) if isinstance(name, str) else set()
        return result

    def read_variable(self, name: Value, default: ast.expr | None, kind: str) -> None:
        """Add the read of a variable; the function becomes a wrapper if the name is a parameter."""
        if isinstance(name, str) and "\0" not in name:
            if isinstance(default, ast.Name):
                given = [v for v in self.names.get(default.id, set()) if isinstance(v, str)]
                default = ast.Constant(given[0]) if len(given) == 1 else default
            self.project.add(_describe("env", name, self.module.path, default, kind))
        elif isinstance(name, Parameter) and name.function not in (
            "get",
            "__getattr__",
            "__init__",
        ):
            self.project.wrappers.add(name.function)

    def call(self, node: ast.Call, kind: str = "") -> set[Value]:
        """Return the values of a call, and add what it reads."""
        function = node.func
        called = function.attr if isinstance(function, ast.Attribute) else _unparse(function)
        keywords = {each.arg: each.value for each in node.keywords if each.arg}
        default = node.args[1] if len(node.args) > 1 else keywords.get("default")
        for name in ("env_name_default", "env_name_force"):
            for variable in self.value(keywords.get(name)):
                self.read_variable(variable, default, kind)
        if called in _KINDS and len(node.args) == 1:
            # ``bool(x)`` tests whether a text is empty, ``bool(int(x))`` reads a switch.
            if called == "bool" and not re.match(r"int\b", _unparse(node.args[0])):
                called = ""
            return self.value(node.args[0], kind or called) and set()
        if called == "getattr" and len(node.args) > 1:
            if self.project.root and self.project.root in self.value(node.args[1]):
                return {Section()}
            self.value(node.args[0])
            return self.value(node.args[2]) if len(node.args) > 2 else set()
        if called == "getenv" and (node.args or "key" in keywords):
            for name in self.value(node.args[0] if node.args else keywords["key"]):
                self.read_variable(name, default, kind)
            self.value(default)
            return set()
        if isinstance(function, ast.Attribute):
            if called in ("get", "pop", "setdefault", "__getitem__") and node.args:
                found = self.read(function.value, node.args[0], default, kind)
                return found | self.value(default)
            owner = self.value(function.value)
            if called in _COPIES | {"items"} and not node.args:
                return owner
            if called in ("upper", "lower", "strip", "format"):
                return {getattr_text(v, called) if isinstance(v, str) else v for v in owner}
            if called == "update":
                self.update(owner, node)
        if called in _COPIES and node.args:
            return set().union(*(self.value(each) for each in node.args))
        arguments = [self.value(each) for each in node.args]
        named = {each.arg: self.value(each.value) for each in node.keywords}
        self.find_deprecated(called, node.args, arguments)
        return self.follow(called, node, arguments, named)

    def update(self, owner: set[Value], node: ast.Call) -> None:
        """Add to a dictionary of the source what the argument of ``update`` has."""
        for mapping in (v for v in owner if isinstance(v, Mapping)):
            for value in self.value(node.args[0]) if node.args else ():
                if isinstance(value, Section):
                    self.read_keys(value, mapping)

    def follow(
        self,
        called: str,
        node: ast.Call,
        arguments: list[set[Value]],
        named: dict[str | None, set[Value]],
    ) -> set[Value]:
        """Return what functions of the project return for these values."""
        everything = [value for values in [*arguments, *named.values()] for value in values]
        sections = any(isinstance(v, Section | Mapping) and _has_section(v) for v in everything)
        closures = [v for v in self.name(ast.Name(called)) if isinstance(v, Closure)]
        if not (sections or closures or called in self.project.wrappers):
            return set()
        if called == "cls" and self.owner:
            called = self.owner.name
        result: set[Value] = set()
        for closure in closures:
            names = closure.names | _bind(closure.node, arguments, named, False)
            result |= self.project.call(
                Definition(closure.node, self.module, self.owner), names, ""
            )
        definitions = [] if closures else list(self.project.find(called))
        if self.owner and _unparse(node.func) in (f"self.{called}", f"cls.{called}"):
            definitions = [d for d in definitions if d.owner is self.owner] or definitions
        if len(definitions) > _MOST_DEFINITIONS:
            return set()
        for definition in definitions:
            if isinstance(definition.node, ast.ClassDef):
                self.construct(definition, arguments, named)
                continue
            names = _bind(definition.node, arguments, named, definition.owner is not None)
            for name in names.values():
                for value in name:
                    if isinstance(value, Parameter) and called in self.project.wrappers:
                        self.read_variable(value, None, "")
            result |= self.project.call(definition, names, called)
        return result

    def construct(
        self,
        definition: Definition,
        arguments: list[set[Value]],
        named: dict[str | None, set[Value]],
    ) -> None:
        """Add what the construction of a class reads of the sections that it is given."""
        node = definition.node
        assert isinstance(node, ast.ClassDef)
        start = next(
            (s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None
        )
        spread = named.get(None, set())
        if start is not None:
            names = _bind(start, arguments, named, True)
            for value in spread:
                if isinstance(value, Section):
                    self.spread(start, value, names, definition.module)
            self.project.call(Definition(start, definition.module, node), names, node.name)
            return
        for value in spread:
            if isinstance(value, Section):
                without = value.without | {name for name in named if name}
                self.project.read_fields(node, definition.module, Section(value.path, without))
        fields: dict[str, ast.expr] = {
            each.target.id: each.annotation
            for each in node.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        }
        given = {name: values for name, values in named.items() if name}
        for value in spread:
            given |= value.values if isinstance(value, Mapping) else {}
        for name, values in given.items():
            for value in values:
                if isinstance(value, Section) and name in fields:
                    self.project.read_class(fields[name], value)

    def spread(
        self, start: ast.FunctionDef, section: Section, names: Names, module: Module
    ) -> None:
        """Add the parameters of ``__init__`` as keys of the section that is passed with ``**``."""
        arguments = start.args.args[1:] + start.args.kwonlyargs
        defaults: list[ast.expr | None] = [None] * len(start.args.args[1:])
        if start.args.defaults:
            defaults[-len(start.args.defaults) :] = start.args.defaults
        for each, default in zip(arguments, defaults + list(start.args.kw_defaults), strict=True):
            path = (*section.path, each.arg)
            kind = _unparse(each.annotation)
            self.project.add(_describe("settings", ".".join(path), module.path, default, kind))
            names[each.arg] = {Section(path)}
        if start.args.kwarg:
            names[start.args.kwarg.arg] = {section}

    def find_deprecated(
        self, called: str, nodes: list[ast.expr], arguments: list[set[Value]]
    ) -> None:
        """Add the names that a message calls deprecated."""
        if not re.match(r"(?:warn|info|error|warning)(?:_once)?$|.*deprecat", called) or not nodes:
            return
        texts = {v for v in arguments[0] if isinstance(v, str)}
        for text in texts:
            filled, rest = text, list(arguments[1:])
            while "%s" in filled and rest:
                known = sorted(v for v in rest.pop(0) if isinstance(v, str))
                filled = filled.replace("%s", known[0] if len(known) == 1 else "\0", 1)
            for clause in re.split(r"[;,]\s|\.\s|\bbecause\b|\b[Uu]se\b|\binstead\b", filled):
                if _DEPRECATES.search(clause) and "\0" not in clause:
                    names = _NAMES.findall(clause.replace(f"{self.project.root}.", ""))
                    self.project.deprecated.update(name.rstrip(".") for name in names)


def _is_environment(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


def _identify(values: set[Value]) -> str:
    """Return a text that is the same for the same values."""
    texts = []
    for value in values:
        if isinstance(value, Mapping):
            inner = sorted(f"{name}:{_identify(each)}" for name, each in value.values.items())
            texts.append(f"{{{inner}}}"[:2000])
        else:
            texts.append(str(id(value.node)) if isinstance(value, Closure) else repr(value))
    return " ".join(sorted(texts))


def _has_section(value: Value) -> bool:
    if isinstance(value, Mapping):
        return any(isinstance(v, Section) for values in value.values.values() for v in values)
    return isinstance(value, Section)


def getattr_text(text: str, method: str) -> str:
    """Return a text as a method of texts changes it."""
    return {"upper": text.upper(), "lower": text.lower(), "strip": text.strip()}.get(method, text)


def _bind(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    arguments: list[set[Value]],
    named: dict[str | None, set[Value]],
    method: bool,
) -> Names:
    """Return the parameters of a function with the values of a call."""
    static = any(_unparse(each) == "staticmethod" for each in node.decorator_list)
    parameters = [each.arg for each in node.args.posonlyargs + node.args.args]
    if method and not static and parameters[:1] in (["self"], ["cls"]):
        parameters = parameters[1:]
    names: Names = {key: set() for key in parameters + [each.arg for each in node.args.kwonlyargs]}
    names |= dict(zip(parameters, arguments, strict=False))
    names |= {name: values for name, values in named.items() if name in names}
    defaults = node.args.defaults
    for name, default in zip(
        parameters[-len(defaults) :] if defaults else [], defaults, strict=False
    ):
        if not names[name] and isinstance(default, ast.Constant) and isinstance(default.value, str):
            names[name] = {default.value}
    return names
