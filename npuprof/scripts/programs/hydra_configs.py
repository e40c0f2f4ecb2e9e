"""The keys of a program's Hydra configuration, by its YAML files and their defaults lists."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from npuprof.model import Record
from npuprof.scripts.python.constants import fold_or
from npuprof.scripts.python.expressions import write_source
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading.trees import Node, parse_yaml
from npuprof.scripts.script_records import remove_script_folder
from npuprof.scripts.steps import count_steps
from npuprof.system import decode_safely, join_normal

_HEADER = re.compile(r"^\s*#\s*@package[ \t]+(\S+)", re.MULTILINE)
_REFERENCE = re.compile(r"\$\{([\w/@.]+)\}")
#: What gives a function its configuration: Hydra's, and that of NeMo.
_DECORATORS = re.compile(rb"hydra\.main|hydra_runner")


class HydraKey(Record):
    """A key of a configuration: its definition as ``path:line``, and whether its value is plain.

    A plain value is no table, no list, not null, not missing, and no interpolation.
    """

    where: str
    is_plain: bool = True
    is_list: bool = False


def read_hydra_config(
    path: str, modules: Modules, overrides: Mapping[str, Any]
) -> HydraConfig | None:
    """Return the configuration of the program in a file, None if it has none of Hydra.

    ``overrides`` are those of the command line with plain values, by name with prefix.
    """
    module = modules.load(path) if _DECORATORS.search(modules.read(path)) else None
    if module is None:
        return None
    calls = [
        each
        for function in module.index.list_of(ast.FunctionDef)
        for each in function.decorator_list
        if isinstance(each, ast.Call) and _DECORATORS.fullmatch(write_source(each.func).encode())
    ]
    if len(calls) != 1:
        return None
    options = {
        f"--{each.arg}".replace("_", "-"): fold_or(None, each.value, module.scope)
        for each in calls[0].keywords
    }
    options |= overrides
    folder, name = options.get("--config-path"), options.get("--config-name")
    if not isinstance(folder, str) or not isinstance(name, str) or "://" in folder:
        return None
    folder, _ = remove_script_folder(folder)
    folder = join_normal(posixpath.dirname(path), folder)
    added = (
        f"{folder}/{key.lstrip('+').partition('@')[0]}/{value}.yaml"
        for key, value in overrides.items()
        if key.startswith("+")
    )
    # one of its own name may have more keys; those of other names are in no file of defaults
    registered = re.compile(rf"['\"]{re.escape(name.removesuffix('.yaml'))}['\"]".encode())
    config = HydraConfig(folder, name, modules.read, overrides)
    config.is_complete = not (
        "--config-dir" in overrides
        or "--schema" in options
        or any(map(modules.read, added))
        or any(
            b"ConfigStore" in data and registered.search(data)
            for data in map(modules.read, (path, *modules.list_imported(path)))
        )
    )
    config.compose(name.removesuffix(".yaml"), "")
    return config


class HydraConfig:
    """The keys of a configuration by dotted name, and the chosen options of its groups.

    It ``is_complete`` unless there may be other keys.
    """

    def __init__(
        self, folder: str, name: str, read: Callable[[str], bytes], overrides: Mapping[str, Any]
    ) -> None:
        self.path = f"{folder}/{name}"
        self.keys: dict[str, HydraKey] = {}
        self.groups: dict[str, str] = {}
        self.is_complete = True
        self._folder = folder
        self._read = read
        self._overrides = dict(overrides)

    def _locate(self, config: str) -> str:
        return join_normal(self._folder, f"{config}.yaml")

    def compose(self, config: str, package: str) -> None:
        """Add the keys of a configuration and of its defaults, all of them below a package."""
        path = self._locate(config)
        text = decode_safely(self._read(path))
        documents = text and parse_yaml(path, text, [])
        if not documents:
            self.is_complete = False
            return
        prefix = ""
        for part in filter(None, package.split(".")):
            self.keys[f"{prefix}{part}"] = HydraKey(f"{path}:1", is_plain=False)
            prefix += f"{part}."
        self._add_keys(documents[0], prefix, path)
        defaults = documents[0].find("defaults")
        items = (defaults.items if defaults else None) or ()
        entries = [each for item in items for each in _list_default(item)]
        for written, names in entries:
            if written.startswith("override ") and names:
                self._overrides.setdefault(written.removeprefix("override ").strip(), names[0])
        for written, names in entries:
            self._add_default(written, names, posixpath.dirname(config), package)

    def _add_keys(self, table: Node, prefix: str, path: str) -> None:
        for key, value in table.pairs or ():
            count_steps(10)
            name = f"{prefix}{key.value}"
            # a table or list has no value, either
            is_open = value.value in (None, "???") or "${" in str(value.value)
            before = self.keys.get(name, HydraKey(""))
            is_plain = not is_open and before.is_plain
            is_list = value.items is not None or before.is_list
            self.keys[name] = HydraKey(f"{path}:{key.line}", is_plain, is_list)
            self._add_keys(value, f"{name}.", path)

    def _add_default(self, written: str, names: list[Any] | None, base: str, package: str) -> None:
        """Add the options of a group, or a file, that a defaults list names."""
        is_optional = written.startswith("optional ")
        target, _, given = written.removeprefix("optional ").strip().partition("@")
        if target == "_self_" or target.startswith("override ") or "hydra/" in target:
            return
        group = target
        if given.startswith("_") or (not given and ".." in target):
            self.is_complete = False
        if names is None:
            group, *names = posixpath.split(target)
        else:
            key = f"{_join(base, target)}{'@' if given else ''}{given}"
            names = [self._overrides[key]] if key in self._overrides else names
            self.groups[key] = str(names[0] if names else "")
        for name in names:
            config = _join(base, posixpath.join(group, self._fill_in(name)))
            text = decode_safely(self._read(self._locate(config)))
            header = _HEADER.search(text)
            inner = given or group.lstrip("/").replace("/", ".")
            full = f"{package}.{inner}".strip(".")
            if header and not given:
                full = header[1].removeprefix("_global_").lstrip(".")
                self.is_complete &= not full.startswith("_")
            if text or not is_optional:
                self.compose(config, full)

    def _fill_in(self, name: Any) -> str:
        """Return the name of an option, in which the names of other groups' options may be."""
        return _REFERENCE.sub(lambda match: self.groups.get(match[1], match[0]), str(name))


def _join(base: str, target: str) -> str:
    """Return a path in the folder of configurations, relative to a configuration's folder."""
    return join_normal("/", base, target).lstrip("/")


def _list_default(item: Node) -> Iterator[tuple[str, list[Any] | None]]:
    """Yield the entries of an item of a defaults list: a group with its options, or a file."""
    if item.is_plain:
        yield str(item.value), None
    for key, value in item.pairs or ():
        names = value.items or [value]
        yield str(key.value), [each.value for each in names if each.value is not None]
