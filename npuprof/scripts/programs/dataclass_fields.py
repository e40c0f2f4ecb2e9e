"""Arguments that programs make of the fields of dataclasses."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any

from npuprof.model import Record
from npuprof.scripts.programs.parsers import ANY_NUMBER, ParserArgument
from npuprof.scripts.python.calls import find_class
from npuprof.scripts.python.constants import fold_expression
from npuprof.scripts.python.expressions import Unknown, get_last_name, write_source
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.steps import count_steps

_DEEPEST = 12
_PLAIN = ("int", "float", "str", "bool")
_BASES = frozenset(("object", "ABC", "Protocol", "Generic"))

#: Arguments, and the reasons why there may be others.
Found = tuple[list[ParserArgument], list[str]]


class Field(Record):
    """A field of a dataclass: its name, annotation, value, and the scope of its class."""

    name: str
    annotation: ast.expr
    value: ast.expr | None
    scope: Scope
    line: int

    @property
    def where(self) -> str:
        """The definition as ``path:line``."""
        return f"{self.scope.file}:{self.line}"

    def find_option(self, name: str) -> ast.expr | None:
        """Return an argument of ``field(...)``, in which the value is one."""
        if not isinstance(self.value, ast.Call) or get_last_name(self.value.func) != "field":
            return self.value if name == "default" else None
        return next((each.value for each in self.value.keywords if each.arg == name), None)

    @property
    def default(self) -> Any:
        """The constant default, ``...`` without one."""
        node = self.find_option("default")
        with suppress(Unknown):
            return fold_expression(node, self.scope) if node is not None else ...
        return ...


class _Type(Record):
    kind: str = ""
    choices: tuple[Any, ...] = ()
    is_list: bool = False
    is_optional: bool = False


def list_fields(node: ast.expr, scope: Scope) -> tuple[dict[str, Field], list[str]]:
    """Return the fields of a dataclass and of its bases, and what of it is not in the tree."""
    cls = find_class(node, scope)
    if cls is None:
        return {}, [f"{write_source(node) or 'a class'} is not in the tree"]
    return _list_class_fields(cls, 0)


def _list_class_fields(cls: Scope, depth: int) -> tuple[dict[str, Field], list[str]]:
    count_steps(10)
    fields: dict[str, Field] = {}
    gaps: list[str] = []
    assert isinstance(cls.node, ast.ClassDef)
    for base in reversed(cls.node.bases):
        name = get_last_name(base.value if isinstance(base, ast.Subscript) else base)
        inner = find_class(base, cls.outer or cls)
        if inner is not None and depth < _DEEPEST:
            found, missing = _list_class_fields(inner, depth + 1)
            fields |= found
            gaps += missing
        elif name not in _BASES:
            gaps.append(f"{name or 'a class'} is not in the tree")
    if not any("dataclass" in write_source(each) for each in cls.node.decorator_list):
        return fields, gaps
    for item in cls.node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            field = Field(item.target.id, item.annotation, item.value, cls, item.lineno)
            fields.pop(field.name, None)
            annotation = write_source(item.annotation)
            init = field.find_option("init")
            is_field = not (isinstance(init, ast.Constant) and init.value is False)
            if is_field and "ClassVar" not in annotation:
                fields[field.name] = field
    return fields, gaps


def list_field_arguments(node: ast.expr, scope: Scope) -> Found:
    """Return the arguments that HfArgumentParser makes of a dataclass."""
    fields, gaps = list_fields(node, scope)
    arguments = []
    for field in fields.values():
        read = _read_type(field.annotation, field.scope)
        metadata = write_source(field.find_option("metadata") or ast.Constant(""))
        if "aliases" in metadata or "HfArg" in write_source(field.value or ast.Constant("")):
            gaps.append(f"{field.name} has other names")
        flags = _spell(f"--{field.name}")
        if read.kind == "bool":
            if field.default is True:
                flags += _spell(f"--no_{field.name}")
            arguments.append(ParserArgument(flags, field.where, nargs="?", default=field.default))
        else:
            arguments.append(_build_argument(flags, field, read, "+"))
    return arguments, gaps


def list_factory_arguments(factory: ast.Call, scope: Scope) -> Found:
    """Return the arguments that Megatron's ArgumentGroupFactory makes of a dataclass."""
    if not factory.args:
        return [], ["the class of a group of arguments is not known"]
    excluded: Any = ()
    for each in (*factory.args[1:], *(each.value for each in factory.keywords)):
        try:
            excluded = fold_expression(each, scope) or ()
        except Unknown:
            return [], ["the fields that are no arguments are computed"]
    fields, gaps = list_fields(factory.args[0], scope)
    arguments = []
    for field in fields.values():
        if field.name in excluded:
            continue
        name = field.name.replace("_", "-")
        read = _read_type(field.annotation, field.scope)
        flags: tuple[str, ...] = (f"--{name}",)
        given = _read_metadata(field)
        if given is None:
            gaps.append(f"the metadata of {field.name} are computed")
        elif "arg_names" in given:
            flags = tuple(given["arg_names"])
        elif read.kind == "bool" and field.default is not False and not given:
            flags = f"--no-{name}", f"--disable-{name}"
        argument = _build_argument(flags, field, read, "+")
        if given or given is None:  # they may have another action
            argument = argument._replace(kind="", choices=(), nargs=ANY_NUMBER)
        arguments.append(argument)
    return arguments, gaps


def _read_metadata(field: Field) -> dict[str, Any] | None:
    """Return what the metadata of a field say of its argument, None if that is not written."""
    node = field.find_option("metadata")
    if node is None:
        return {}
    if not isinstance(node, ast.Dict):
        return None
    found: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or (
            key.value == "argparse_meta" and not isinstance(value, ast.Dict)
        ):
            return None
        if key.value == "argparse_meta" and isinstance(value, ast.Dict):
            for name, inner in zip(value.keys, value.values, strict=True):
                if not isinstance(name, ast.Constant):
                    return None
                option = str(name.value)
                found[option] = ...
                with suppress(Unknown):
                    found[option] = fold_expression(inner, field.scope)
            if found.get("arg_names", ()) is ...:
                return None
    return found


def list_dotted_arguments(
    node: ast.expr, scope: Scope, separators: str, prefix: str = "", depth: int = 0
) -> Found:
    """Return the arguments of tyro or draccus: fields of nested dataclasses have dotted names.

    ``separators`` are what stands for an underscore.
    """
    fields, gaps = list_fields(node, scope)
    arguments: list[ParserArgument] = []
    for field in fields.values():
        inner = find_class(field.annotation, field.scope)
        if inner is not None and not _is_enumeration(inner) and depth < _DEEPEST:
            found, missing = list_dotted_arguments(
                field.annotation, field.scope, separators, f"{prefix}{field.name}.", depth + 1
            )
            arguments += found
            gaps += missing
            if not found:
                gaps.append(f"the type of {field.name} is not read")
            continue
        name = f"{prefix}{field.name}"
        flags = [f"--{name.replace('_', mark)}" for mark in separators]
        read = _read_type(field.annotation, field.scope)
        if not read.kind and not read.choices:
            gaps.append(f"the type of {field.name} is not read")
        if read.kind == "bool" and "-" in separators:
            flags += [f"--{prefix}no_{field.name}".replace("_", mark) for mark in separators]
        argument = _build_argument(tuple(dict.fromkeys(flags)), field, read, ANY_NUMBER)
        arguments.append(argument._replace(nargs=ANY_NUMBER) if read.kind == "bool" else argument)
    return arguments, gaps


def _build_argument(
    flags: tuple[str, ...], field: Field, read: _Type, of_list: str
) -> ParserArgument:
    if read.kind == "bool":
        return ParserArgument(flags, field.where, nargs=0, default=field.default)
    nargs = of_list if read.is_list else None if read.kind else ANY_NUMBER
    return ParserArgument(flags, field.where, read.kind, read.choices, nargs, field.default)


def _spell(flag: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((flag, f"--{flag[2:].replace('_', '-')}")))


def _read_type(node: ast.expr, scope: Scope) -> _Type:
    """Return what an annotation says of values; without ``kind`` for one that is not followed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        with suppress(SyntaxError, ValueError):
            return _read_type(ast.parse(node.value, mode="eval").body, scope)
    match node:
        case ast.Name(name) if name in _PLAIN:
            return _Type(name)
        case ast.BinOp(first, ast.BitOr(), ast.Constant(None)):
            return _read_type(first, scope)._replace(is_optional=True)
        case ast.Subscript(outer, inner):
            name = get_last_name(outer)
            if name == "Optional":
                return _read_type(inner, scope)._replace(is_optional=True)
            if name in ("List", "list") and not isinstance(inner, ast.Tuple):
                return _read_type(inner, scope)._replace(is_list=True)
            if name == "Literal":
                items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                values = tuple(item.value for item in items if isinstance(item, ast.Constant))
                kinds = {type(value).__name__ for value in values}
                if len(values) == len(items) and len(kinds) == 1:
                    return _Type(kinds.pop(), values)
    return _Type()


def _is_enumeration(cls: Scope) -> bool:
    """Return whether a class is an enumeration."""
    assert isinstance(cls.node, ast.ClassDef)
    return any("Enum" in write_source(base) for base in cls.node.bases)
