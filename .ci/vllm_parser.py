"""Print what a release of vLLM accepts, as JSON with a line for each argument, field and variable.

Run ``python .ci/vllm_parser.py FOLDER`` with the folder of an unpacked source package. The parser
of ``vllm serve`` is built as the package's own documentation builds it, without PyTorch: missing
modules are replaced by mocks. Needs ``PACKAGES``. Configuration classes are read by ``ast``; the
readers of variables are called with a few texts. Help texts are left out.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import re
import runpy
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout, suppress
from enum import Enum
from pathlib import Path
from typing import Any
from unittest.mock import patch

CATALOGUE = Path(__file__).resolve().parent.parent / "npuprof" / "catalog"
#: What a Python must have to build the parser; neither torch nor transformers.
PACKAGES = [
    "pydantic",
    "regex",
    "packaging",
    "numpy",
    "psutil",
    "fastapi",
    "pyyaml",
    "msgspec",
    "cloudpickle",
    "tqdm",
    "requests",
    "cachetools",
    "blake3",
    "mkdocs-gen-files",
]
#: Kinds by the name of the function that converts the text of an argument.
_KINDS = {
    "human_readable_int": "size",
    "human_readable_int_or_auto": "size",
    "loads": "json",
    "parse_dataclass": "json",
    "union_dict_and_str": "json",
}
#: Texts that tell the ways of reading apart.
PROBES = (
    "0", "1", "7", "-1", "true", "True", "TRUE", "false", "False", "on", "off", "yes", "no", "y",
    "t", "f", "word",
)  # fmt: skip
#: Defaults that differ from machine to machine or from start to start.
_MACHINE = re.compile(r"^/|[0-9a-f]{32}")
_BOUNDS = ("gt", "ge", "lt", "le")


def build_parser(folder: Path) -> Any:
    """Return the parser of ``vllm serve``, built as the hook of the documentation does."""
    (hook,) = folder.glob("docs/mkdocs/*/generate_argparse.py")
    text = re.split(r"(?m)^\w+ = auto_mock\(", hook.read_text("utf-8"), maxsplit=1)[0]
    names: dict[str, Any] = {"__file__": str(hook.resolve()), "__name__": "hook"}
    exec(compile(text, str(hook), "exec"), names)  # noqa: S102 - the package's own recipe
    mock = names["auto_mock"]
    found = folder.glob("vllm/entrypoints/**/cli_args.py")
    module = next(
        path for path in sorted(found) if "def make_arg_parser" in path.read_text("utf-8")
    )
    package = ".".join(module.relative_to(folder).parent.parts)
    make = mock(package, "cli_args").make_arg_parser
    parser = mock("vllm.utils.argparse_utils", "FlexibleArgumentParser")(add_json_tip=False)
    while True:
        try:
            with patch("vllm.config.DeviceConfig.__post_init__"):
                return make(parser)
        except ModuleNotFoundError as error:
            sys.modules[str(error.name)] = names["PydanticMagicMock"](name=error.name)
            parser = mock("vllm.utils.argparse_utils", "FlexibleArgumentParser")(add_json_tip=False)


def find_kind(convert: Any) -> tuple[str, bool]:
    """Return the kind of an argument by its conversion, and whether ``None`` is a value."""
    inner = getattr(convert, "__closure__", None)
    if convert.__name__ in ("_optional_type", "_parse_type") and inner:
        kind, _ = find_kind(inner[0].cell_contents)
        return kind, convert.__name__ == "_optional_type"
    name = convert.__name__
    return _KINDS.get(name, name if name in ("int", "float") else "str"), False


def simplify(value: Any) -> Any:
    """Return a default as JSON has it; None for objects, whose content is in the fields."""
    if isinstance(value, Enum):
        return simplify(value.value)
    if isinstance(value, list | tuple | set):
        items = [simplify(item) for item in value]
        return sorted(items, key=str) if isinstance(value, set) else items
    if isinstance(value, dict):
        return {str(key): simplify(item) for key, item in value.items()}
    return value if isinstance(value, str | int | float | bool) else None


def describe_action(action: argparse.Action) -> dict[str, Any]:
    """Return what the parser says of one argument."""
    row: dict[str, Any] = {"flags": action.option_strings}
    if isinstance(action, argparse.BooleanOptionalAction) or action.nargs == 0:
        row["kind"] = "bool"
    elif action.type is not None:
        row["kind"], optional = find_kind(action.type)
        row |= {"optional": True} if optional else {}
    else:
        row["kind"] = "str"
    if isinstance(action, argparse._AppendAction):  # noqa: SLF001 - public nowhere
        row["repeated"] = True
    if action.nargs not in (None, 0):
        row["nargs"] = action.nargs
    if action.choices is not None:
        row["choices"] = [str(each) for each in action.choices]
    if action.default is not argparse.SUPPRESS and (value := simplify(action.default)) is not None:
        row["default"] = value
    return row


class Classes:
    """The configuration classes of a package, and the literals and enums they are typed with."""

    def __init__(self, folder: Path) -> None:
        self.nodes: dict[str, ast.ClassDef] = {}
        self.aliases: dict[str, ast.expr] = {}
        texts = [path.read_text("utf-8") for path in sorted(folder.glob("vllm/config/**/*.py"))]
        imported = {name for text in texts for name in re.findall(r"\bvllm(?:\.\w+)+", text)}
        for name in sorted(imported):
            stem = folder / name.replace(".", "/")
            if not stem.is_relative_to(folder / "vllm/config"):
                paths = (stem.with_suffix(".py"), stem / "__init__.py")
                texts += [path.read_text("utf-8") for path in paths if path.is_file()]
        for text in texts:
            self._collect(ast.parse(text).body)

    def _collect(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                self.nodes.setdefault(node.name, node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
                self.aliases.setdefault(ast.unparse(node.targets[0]), node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                is_alias = "TypeAlias" in ast.unparse(node.annotation)
                self.aliases |= {node.target.id: node.value} if is_alias and node.value else {}

    def list_fields(self, name: str) -> Iterator[ast.AnnAssign]:
        """Yield the fields of a class and of those it extends."""
        node = self.nodes[name]
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self.nodes:
                yield from self.list_fields(base.id)
        for item in node.body:
            if (
                isinstance(item, ast.AnnAssign)
                and isinstance(item.target, ast.Name)
                and not item.target.id.startswith("_")
                and not re.match(r"ClassVar|InitVar", ast.unparse(item.annotation))
            ):
                yield item

    def is_class(self, name: str) -> bool:
        """Return whether a name is that of a configuration class."""
        node = self.nodes.get(name)
        return node is not None and any(isinstance(each, ast.AnnAssign) for each in node.body)

    def list_values(self, name: str) -> list[str | int]:
        """Return the texts of an enum, or its names and numbers; empty for other classes."""
        node = self.nodes.get(name)
        if node is None or not any("Enum" in ast.unparse(base) for base in node.bases):
            return []
        found: list[str | int] = []
        for item in node.body:
            if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
                value = None
                with suppress(ValueError):
                    value = ast.literal_eval(item.value)
                # a value may be the path of a class
                is_word = isinstance(value, str) and re.fullmatch("[^.]+", value)
                found.append(str(value) if is_word else item.targets[0].id)
                if isinstance(value, int):
                    found.append(value)
        return found

    def describe_type(self, node: ast.expr) -> list[dict[str, Any]]:
        """Return the alternatives of a type: kinds, with choices, items or the class."""
        match node:
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self.describe_type(left) + self.describe_type(right)
            case ast.Constant(value=None):
                return [{"kind": "none"}]
            case ast.Constant(value=str() as text):
                return self.describe_type(ast.parse(text, mode="eval").body)
            case ast.Subscript(value=base, slice=inner):
                return self._describe_subscript(ast.unparse(base).rpartition(".")[2], inner)
        name = ast.unparse(node).rpartition(".")[2]
        if name in ("bool", "int", "float", "str"):
            return [{"kind": name}]
        if name in self.aliases:
            return self.describe_type(self.aliases[name])
        if name in ("dict", "Mapping"):
            return [{"kind": "json"}]
        if name in ("list", "tuple", "set", "Sequence"):
            return [{"kind": "list"}]
        if values := self.list_values(name):
            kind = "str" if all(isinstance(value, str) for value in values) else "any"
            return [{"kind": kind, "choices": values}]
        return [{"kind": "json", "class": name}] if self.is_class(name) else [{"kind": "any"}]

    def _describe_subscript(self, base: str, inner: ast.expr) -> list[dict[str, Any]]:
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if base == "Literal":
            values: list[Any] = []
            for part in parts:
                if isinstance(part, ast.Constant):
                    values.append(part.value)
                else:
                    for each in self.describe_type(part):
                        values += each.get("choices", [])
            kinds = {type(value).__name__ for value in values}
            return [{"kind": kinds.pop() if len(kinds) == 1 else "str", "choices": values}]
        if base in ("Optional", "Union"):
            rows = [each for part in parts for each in self.describe_type(part)]
            return rows + ([{"kind": "none"}] if base == "Optional" else [])
        if base in ("Annotated", "SkipValidation"):
            return self.describe_type(parts[0]) if base == "Annotated" else [{"kind": "any"}]
        if base in ("list", "tuple", "set", "Sequence", "List"):
            return [{"kind": "list", "items": self.describe_type(parts[0])}]
        if base in ("dict", "Mapping", "Dict"):
            return [{"kind": "json"}]
        return [{"kind": "any"}]

    def describe_field(self, item: ast.AnnAssign) -> dict[str, Any]:
        """Return kind, choices, class, bounds and default of a field."""
        rows = self.describe_type(item.annotation)
        kinds = list(dict.fromkeys(row["kind"] for row in rows if row["kind"] != "none"))
        result: dict[str, Any] = {"kind": "|".join(kinds)}
        plain = [row for row in rows if row["kind"] != "none"]
        if all("choices" in row for row in plain) and plain:
            result["choices"] = [value for row in plain for value in row["choices"]]
        if items := next((row["items"] for row in rows if "items" in row), None):
            result["items"] = "|".join(dict.fromkeys(row["kind"] for row in items))
        named = [row.get("class") for row in plain if row["kind"] == "json"]
        if len(named) == 1 and named[0]:
            result["class"] = named[0]
        if any(row["kind"] == "none" for row in rows):
            result["optional"] = True
        result |= find_bounds(item)
        default = item.value
        if isinstance(default, ast.Call) and ast.unparse(default.func).endswith("ield"):
            given = {word.arg: word.value for word in default.keywords}
            if given.get("init") and ast.unparse(given["init"]) == "False":
                return {}
            default = given.get("default") or (default.args[0] if default.args else None)
        if default is not None:
            with suppress(ValueError, TypeError, MemoryError, SyntaxError):
                value = ast.literal_eval(default)
                result |= {"default": value} if value is not None else {}
        return result


def find_bounds(item: ast.AnnAssign) -> dict[str, Any]:
    """Return the bounds that ``Field(...)`` sets, as the value or inside ``Annotated``."""
    bounds: dict[str, Any] = {}
    for node in ast.walk(item):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Field":
            for word in node.keywords:
                if word.arg in _BOUNDS:
                    with suppress(ValueError):
                        bounds[word.arg] = ast.literal_eval(word.value)
    return bounds


def find_origins(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the class and the field that each argument of the engine is made from, by flag."""
    text = (folder / "vllm/engine/arg_utils.py").read_text("utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    tables: dict[str, str] = {}
    rows: dict[str, tuple[str, str]] = {}
    origins: dict[str, tuple[str, str]] = {}

    def find_row(given: ast.AST) -> tuple[str, str] | None:
        for node in ast.walk(given):
            match node:
                case ast.Subscript(
                    value=ast.Name(id=table), slice=ast.Constant(value=str() as field)
                ) if table in tables:
                    return tables[table], field
                case ast.Name(id=name) if name in rows:
                    return rows[name]
        return None

    for node in nodes:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=table)],
                value=ast.Call(func=ast.Name(id="get_kwargs"), args=[ast.Name(id=name)]),
            ):
                tables[table] = name
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                row := find_row(value)
            ) is not None:
                rows[name] = row
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".add_argument"):
            for word in node.keywords:
                # ``**TABLE["field"]``, or a table around it with another default
                if word.arg is None and (row := find_row(word.value)) is not None:
                    origins |= {
                        str(flag.value): row
                        for flag in node.args
                        if isinstance(flag, ast.Constant) and str(flag.value).startswith("--")
                    }
    return origins


def record_arguments(folder: Path, classes: Classes) -> dict[str, dict[str, Any]]:
    """Return the rows of all arguments by their name without dashes."""
    origins = find_origins(folder)
    rows: dict[str, dict[str, Any]] = {}
    for action in build_parser(folder)._actions:  # noqa: SLF001 - public nowhere
        flags = [each for each in action.option_strings if each.startswith("--")]
        if not flags or "--help" in flags:
            continue
        row = describe_action(action)
        owner, name = next((origins[each] for each in flags if each in origins), ("", ""))
        if owner in classes.nodes:
            for item in classes.list_fields(owner):
                if isinstance(item.target, ast.Name) and item.target.id == name:
                    field = classes.describe_field(item)
                    row |= {key: field[key] for key in (*_BOUNDS, "class") if key in field}
                    if row["kind"] == "str" and "choices" in field:  # of an enum
                        row.setdefault("choices", [str(value) for value in field["choices"]])
        camel = "".join(part.capitalize() for part in action.dest.split("_"))
        for name in (camel, camel.replace("Kv", "KV").replace("Ec", "EC").replace("Eplb", "EPLB")):
            if row["kind"] == "json" and classes.is_class(name):
                row.setdefault("class", name)
        rows[flags[0].removeprefix("--")] = row
    return rows


def record_classes(
    classes: Classes, arguments: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the fields of the classes behind the arguments, and of those inside."""
    waiting = [row["class"] for row in arguments.values() if "class" in row]
    rows: dict[str, dict[str, Any]] = {}
    while waiting:
        name = waiting.pop()
        if name in rows or not classes.is_class(name):
            continue
        rows[name] = {}
        for item in classes.list_fields(name):
            if field := classes.describe_field(item):
                rows[name][ast.unparse(item.target)] = field
                waiting += [field["class"]] if "class" in field else []
    return dict(sorted(rows.items()))


def read_text(row: dict[str, Any], text: str) -> bool | str:
    """Return whether a text is on by a row of ``reads.toml``, or what else comes of it."""
    folded = text.lower() if row.get("any_case") else text
    for state in ("on", "off"):
        if folded in [each.lower() if row.get("any_case") else each for each in row.get(state, [])]:
            return state == "on"
    if row.get("number") and re.fullmatch(r"-?[0-9]+", text):
        return int(text) != 0
    return {"on": True, "off": False}.get(row["others"], row["others"])


def probe(read: Callable[[], Any], name: str, text: str) -> Any:
    """Return what the reader of a variable makes of a text; ``fails`` if it raises an error."""
    with patch.dict(os.environ, {name: text}):
        try:
            return read()
        except Exception:
            return "fails"


def describe_variable(name: str, read: Callable[[], Any], ways: dict[str, Any]) -> dict[str, Any]:
    """Return kind, default and way of reading of a variable by what its reader does with texts."""
    answers = {text: probe(read, name, text) for text in PROBES}
    closed = inspect.getclosurevars(read).nonlocals if inspect.isfunction(read) else {}
    row: dict[str, Any] = {"kind": "str"}
    choices = closed.get("choices")
    if isinstance(choices, list | tuple) and not isinstance(
        probe(read, name, choices[0]), list | set
    ):
        row["choices"] = list(choices)
        row |= {} if closed.get("case_sensitive", True) else {"any_case": True}
    elif type(answers["7"]) is int:
        row["kind"] = "int"
    elif type(answers["7"]) is float:
        row["kind"] = "float"
    elif {type(answers[text]) for text in ("0", "1")} == {bool}:
        for way, each in ways.items():
            if all(read_text(each, text) == answer for text, answer in answers.items()):
                row |= {"kind": "bool", "parsed_as": way}
                break
    with suppress(Exception):
        default = read()
        if row["kind"] == "bool":
            row["default"] = str(int(default))
        elif isinstance(default, str | int | float) and not _MACHINE.search(str(default)):
            row |= {"default": str(default)} if default != "" else {}
    return row


def find_computed(text: str) -> set[str]:
    """Return the variables that ``envs.py`` reads with a default that is no constant."""
    computed = set()
    for call in ast.walk(ast.parse(text)):
        if not isinstance(call, ast.Call) or not call.args:
            continue
        defaults = [
            *call.args[1:2],
            *(each.value for each in call.keywords if each.arg == "default"),
        ]
        match call.args[0]:
            case ast.Constant(value=str(name)) if name.startswith("VLLM_"):
                if any(not isinstance(default, ast.Constant) for default in defaults):
                    computed.add(name)
    return computed


def record_variables(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the variables that ``envs.py`` describes, by running their readers."""
    path = folder / "vllm/envs.py"
    names, computed = runpy.run_path(str(path)), find_computed(path.read_text("utf-8"))
    text = (CATALOGUE / "reads.toml").read_text("utf-8")
    ways = {name: row for name, row in tomllib.loads(text).items() if "others" in row}
    with patch.dict(os.environ, {"HOME": "/home", "XDG_CACHE_HOME": "/home"}, clear=True):
        return {
            name: describe_variable(name, read, ways)
            | ({"computed": True} if name in computed else {})
            for name, read in sorted(names["environment_variables"].items())
            if name.startswith("VLLM_")
        }


def write_record(record: dict[str, Any]) -> str:
    """Return the JSON text of a record, with a line for each innermost row."""

    def write(value: Any, depth: int, indent: str) -> str:
        if depth == 0 or not value:
            return json.dumps(value, ensure_ascii=False)
        inner = f"{indent} "
        rows = (
            f"{inner}{json.dumps(key)}: {write(each, depth - 1, inner)}"
            for key, each in value.items()
        )
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"

    depths = {"classes": 2}
    parts = (
        f' "{name}": {write(value, depths.get(name, 1), " ")}' for name, value in record.items()
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def record(folder: Path) -> str:
    """Return the record of a release as text."""
    from vllm_judge import Judge  # needs what the package needs

    classes = Classes(folder)
    arguments = record_arguments(folder, classes)
    fields = record_classes(classes, arguments)
    Judge(folder).widen(arguments, fields)
    return write_record(
        {
            "arguments": arguments,
            "classes": fields,
            "variables": record_variables(folder),
        }
    )


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):  # the package logs
        written = record(Path(sys.argv[1]).resolve())
    sys.stdout.write(written)
