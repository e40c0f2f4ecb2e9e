"""Records of what training programs accept: the arguments of Megatron-LM, the keys of verl.

``upstream.py`` passes the files of one release by path, and writes what this returns. Nothing is
imported or run: the arguments of Megatron-LM, MindSpeed and MindSpeed-LLM are their
``add_argument`` calls and the classes of ``ArgumentGroupFactory``, the keys of verl are the files
of its configuration.
"""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

Row = dict[str, Any]
Files = dict[str, str]

_TYPES = {"int", "float", "str"}
_SWITCHES = {"store_true", "store_false", "store_const"}


def _parse(files: Files, pattern: str) -> dict[str, ast.Module]:
    """Return the syntax trees of the files that have a pattern."""
    trees = {}
    for path, text in files.items():
        if path.endswith(".py") and re.search(pattern, text):
            try:
                trees[path] = ast.parse(text)
            except SyntaxError:
                continue
    return trees


def _read_literal(node: ast.expr | None, constants: dict[str, ast.expr]) -> Any:
    """Return the value of an expression; raise ValueError if it is not a literal."""
    if isinstance(node, ast.Name) and node.id in constants:
        node = constants[node.id]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "range":
        return list(range(*(_read_literal(bound, {}) for bound in node.args)))
    try:
        return ast.literal_eval(node) if node else None
    except (TypeError, SyntaxError):
        raise ValueError from None


def _list_constants(tree: ast.Module) -> dict[str, ast.expr]:
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def read_argument(call: ast.Call, constants: dict[str, ast.expr]) -> Row | None:
    """Return the form of an argument by its ``add_argument`` call; None if its name is computed."""
    flags = [node.value for node in call.args if isinstance(node, ast.Constant)]
    if not flags or len(flags) < len(call.args) or not all(str(f).startswith("-") for f in flags):
        return None
    flags.sort(key=lambda flag: not flag.startswith("--"))
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    row: Row = {"kind": "str", "flags": flags}
    if None in given:
        return row | {"kind": "any"}
    if "type" in given:
        name = ast.unparse(given["type"])
        # bool is true for any text but the empty one
        row["kind"] = name if name in _TYPES else "any"
    action = ast.unparse(given["action"]).strip("'\"") if "action" in given else "store"
    if action in _SWITCHES:
        return row | {"kind": "bool"}
    if action.endswith("BooleanOptionalAction"):
        opposite = f"--no-{flags[0].removeprefix('--')}"
        return row | {"kind": "bool", "flags": [*flags, opposite]}
    if action in ("append", "extend"):
        row["repeated"] = True
    elif action != "store":
        return row | {"kind": "any"}
    if "choices" in given:
        try:
            choices = [*_read_literal(given["choices"], constants)]
            row["choices"] = [each for each in choices if each is not None]  # no text is None
        except (ValueError, TypeError):
            row["kind"] = "any"
    if "nargs" in given:
        try:
            row["nargs"] = _read_literal(given["nargs"], constants)
        except ValueError:
            return {"kind": "any", "flags": flags}
        if row["nargs"] == 1:
            row["nargs"] = "+"
    return row


def _list_calls(files: Files) -> Iterator[Row]:
    """Yield the form of each argument of the parsers in some files."""
    for tree in _parse(files, r"add_argument\b").values():
        constants = _list_constants(tree)
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "add_argument"
                and (row := read_argument(node, constants))
            ):
                yield row


def _list_factories(files: Files) -> Iterator[Row]:
    """Yield the form of each argument of an ``ArgumentGroupFactory``: the fields of a class."""
    users = _parse(files, r"\bArgumentGroupFactory\(")
    trees = _parse(files, "dataclass") if users else {}
    classes = {
        node.name: node
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    for tree in users.values():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            constants = _list_names(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "ArgumentGroupFactory":
                    given = {keyword.arg: keyword.value for keyword in node.keywords}
                    excluded = set(_read_literal(given.get("exclude"), constants) or ())
                    for name, field in _list_fields(classes, ast.unparse(node.args[0])):
                        if name not in excluded:
                            yield _read_field(name, field)


def _list_names(function: ast.FunctionDef) -> dict[str, ast.expr]:
    return {
        target.id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _list_fields(
    classes: dict[str, ast.ClassDef], name: str
) -> Iterator[tuple[str, ast.AnnAssign]]:
    """Yield the fields of a dataclass and of the classes that it extends, by name."""
    found: dict[str, ast.AnnAssign] = {}
    waiting = [name]
    while waiting:
        node = classes.pop(waiting.pop(0).rpartition(".")[2], None)
        if node is None:
            continue
        waiting += [ast.unparse(base) for base in node.bases]
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                found.setdefault(field.target.id, field)
    yield from found.items()


def _read_field(name: str, field: ast.AnnAssign) -> Row:
    """Return the form of the argument that Megatron-LM makes of a field.

    A switch that is on gets the flags that turn it off. ``argparse_meta`` of a field counts more.
    """
    flag = name.replace("_", "-")
    given = _list_keywords(field.value)
    default = ast.unparse(given.get("default", field.value)) if field.value else ""
    meta = _find_metadata(given.get("metadata"))
    row = _read_annotation(field.annotation)
    flags = [f"--{flag}"]
    if row["kind"] == "bool" and default != "False":
        flags = [f"--no-{flag}", f"--disable-{flag}"]
    if "arg_names" in meta:
        flags = list(_read_literal(meta.pop("arg_names"), {}))
    return {"kind": "any", "flags": flags} if meta else {**row, "flags": flags}


def _find_metadata(node: ast.expr | None) -> dict[str, ast.expr]:
    """Return the arguments of ``add_argument`` in the metadata of a field."""
    for key, value in (
        zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
    ):
        if key and ast.unparse(key).strip("'\"") == "argparse_meta" and isinstance(value, ast.Dict):
            names = [ast.unparse(name).strip("'\"") for name in value.keys if name]
            return dict(zip(names, value.values, strict=True))
    return {}


def _list_keywords(value: ast.expr | None) -> dict[str | None, ast.expr]:
    calls = value.keywords if isinstance(value, ast.Call) else ()
    return {keyword.arg: keyword.value for keyword in calls}


def _read_annotation(node: ast.expr) -> Row:
    """Return the kind of a field, its choices, and whether it takes several values."""
    if isinstance(node, ast.BinOp) and ast.unparse(node.right) == "None":
        return _read_annotation(node.left)
    if isinstance(node, ast.Subscript):
        outer = ast.unparse(node.value).rpartition(".")[2]
        if outer == "Optional":
            return _read_annotation(node.slice)
        if outer in ("list", "List"):
            row = _read_annotation(node.slice)
            return {"kind": row["kind"] if row["kind"] in _TYPES else "any", "nargs": "+"}
        if outer == "Literal":
            choices = list(_as_tuple(_read_literal(node.slice, {})))
            return {"kind": type(choices[0]).__name__, "choices": choices}
    name = ast.unparse(node).strip("'\"")
    return {"kind": name if name in _TYPES or name == "bool" else "any"}


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _list_changed(files: Files) -> set[str]:
    """Return the names of arguments, and of their fields, in files that change a parser's."""
    changed: set[str] = set()
    for tree in _parse(files, r"\b_actions\b|choices_value").values():
        ignored = {
            id(word)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "add_argument"
            for word in node.args
        }
        compared = {
            id(word)
            for node in ast.walk(tree)
            if isinstance(node, ast.Compare)
            for word in (node.left, *node.comparators)
        }
        changed |= {
            node.value.removeprefix("--").replace("_", "-")
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in ignored
            and (node.value.startswith("--") or id(node) in compared)
        }
    return changed


def _merge(forms: list[Row]) -> Row:
    """Return what is certain of an argument that several calls define."""
    kinds = {form["kind"] for form in forms}
    row: Row = {"kind": kinds.pop() if len(kinds) == 1 else "any"}
    row["flags"] = list(dict.fromkeys(flag for form in forms for flag in form["flags"]))
    choices = {repr(sorted(form.get("choices", ()), key=str)) for form in forms}
    if len(choices) == 1 and row["kind"] != "any" and forms[0].get("choices"):
        row["choices"] = forms[0]["choices"]
    repeats = [
        {name: form[name] for name in ("nargs", "repeated") if name in form} for form in forms
    ]
    if all(each == repeats[0] for each in repeats):
        return row | repeats[0]
    return {"kind": "any", "flags": row["flags"]}


def read_megatron(files: Files) -> Row:
    """Return the record of Megatron-LM, MindSpeed and MindSpeed-LLM in one release."""
    found: dict[str, list[Row]] = {}
    for row in (*_list_calls(files), *_list_factories(files)):
        found.setdefault(row["flags"][0].removeprefix("--"), []).append(row)
    changed = _list_changed(files)
    arguments = {}
    for name, forms in sorted(found.items()):
        row = _merge(forms)
        if name.replace("_", "-") in changed:
            row = {"kind": "any", "flags": row["flags"]}
        arguments[name] = row
    return {"arguments": arguments, "classes": {}, "variables": {}}


def _read_yaml(text: str) -> Any:
    """Return a file of Hydra's configuration, with its numbers."""
    from omegaconf import OmegaConf

    return OmegaConf.to_container(OmegaConf.create(text or "{}"), resolve=False)


def _list_leaves(table: Row, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if name == "_target_" or (not path and name in ("defaults", "hydra")):
            continue
        if isinstance(value, dict) and value:
            yield from _list_leaves(value, (*path, str(name)))
        else:
            yield ".".join((*path, str(name))), value


class _Groups:
    """The files of a configuration, where Hydra would place them.

    Where another key selects a file of a group, each is taken.
    """

    def __init__(self, files: dict[str, Row], texts: Files) -> None:
        self.files = files
        self.texts = texts
        self.leaves: list[tuple[str, Any]] = []
        self.groups: dict[str, list[str]] = {}
        self._seen: set[tuple[str, str]] = set()

    def place(self, name: str, package: str = "") -> None:
        """Add a file, and the groups of its ``defaults``, below a package."""
        if "@package _global_" in self.texts[name]:
            package = ""
        if (name, package) in self._seen:
            return
        self._seen.add((name, package))
        start = f"{package}." if package else ""
        self.leaves += [(start + leaf, value) for leaf, value in _list_leaves(self.files[name])]
        folder = PurePosixPath(name).parent
        for entry in self.files[name].get("defaults", ()):
            if isinstance(entry, str):
                if entry != "_self_" and f"{folder / entry}" in self.files:
                    self.place(f"{folder / entry}", package)
                continue
            for written, selected in entry.items():
                group, at, inner = str(written).removeprefix("override ").partition("@")
                parts = [part for part in (folder / group).parts if part != "/"]
                while ".." in parts:
                    del parts[parts.index("..") - 1 : parts.index("..") + 1]
                below = f"{start}{inner if at else '.'.join(parts)}"
                place = "/".join(parts)
                listed = selected if isinstance(selected, list) else [selected]
                patterns = [re.sub(r"\$\{\w+\}", "*", str(each)) for each in listed]
                options = {
                    path.rpartition("/")[2]
                    for path in self.files
                    if path.rpartition("/")[0] == place
                }
                self.groups[f"{place}@{below}" if at else place] = sorted(options) * (not at)
                if at:
                    options = {name for each in patterns for name in fnmatch.filter(options, each)}
                for option in options:
                    self.place(f"{place}/{option}", below)


def read_verl(files: Files) -> Row:
    """Return the record of verl's configuration in one release.

    A key is ``always`` there if each generated configuration has a value that is not null.
    """
    head = "verl/trainer/config/"
    texts = {
        path.removeprefix(head).removesuffix(".yaml"): text
        for path, text in files.items()
        if path.startswith(head) and path.endswith(".yaml")
    }
    tables = {name: _read_yaml(text) for name, text in texts.items()}
    groups = _Groups(tables, texts)
    for name in tables:
        if "/" not in name:
            groups.place(name)
    whole = [name for name in tables if name.startswith("_generated_")]
    whole = whole or [name for name in tables if re.fullmatch(r"ppo(_megatron)?_trainer", name)]
    composed = [dict(_list_leaves(tables[name])) for name in whole]
    values: dict[str, list[Any]] = {}
    for name, value in groups.leaves:
        values.setdefault(name, []).append(value)
    arguments = {name: _describe_key(name, found, composed) for name, found in values.items()}
    for name, options in groups.groups.items():
        if any(key.startswith(f"{name}.") for key in values):
            continue  # a table with the name of its group
        arguments[name] = {"kind": "str", "choices": options} if options else {"kind": "any"}
    return {"arguments": dict(sorted(arguments.items())), "classes": {}, "variables": {}}


def _describe_key(name: str, values: list[Any], composed: list[Row]) -> Row:
    kinds = {_find_kind(value) for value in values}
    row: Row = {"kind": kinds.pop() if len(kinds) == 1 else "any"}
    own = [table.get(name) for table in composed]
    if own and all(value is not None and value != "???" for value in own):
        row["always"] = True
        if all(repr(value) == repr(own[0]) for value in own) and _is_plain(own[0]):
            row["default"] = own[0]
    return row


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) or (isinstance(value, str) and "$" not in value)


def _find_kind(value: Any) -> str:
    """Return the kind of a key by its default: a whole number may stand for any number."""
    if isinstance(value, bool):
        return "bool"
    return "float" if isinstance(value, (int, float)) else "any"


#: What reads the files of a release, by framework.
READERS: dict[str, Callable[[Files], Row]] = {"megatron": read_megatron, "verl": read_verl}
