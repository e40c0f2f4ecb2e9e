"""The keys of a program's Hydra configuration, by its YAML files and their defaults lists."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from npuprof.model import Finding, Record
from npuprof.scripts.python.constants import fold_or
from npuprof.scripts.python.expressions import write_source
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.reading.trees import Node, parse_yaml
from npuprof.scripts.script_records import remove_script_folder
from npuprof.scripts.steps import count_steps

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


class HydraConfig(Record):
    """The keys of a configuration by dotted name, and its groups.

    ``gaps`` are why keys may be missing.
    """

    path: str
    keys: dict[str, HydraKey]
    groups: frozenset[str] = frozenset()
    gaps: tuple[str, ...] = ()


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
    folder = posixpath.normpath(posixpath.join(posixpath.dirname(path), folder))
    composer = _Composer(folder, modules.read, overrides)
    added = (
        f"{folder}/{key.lstrip('+').partition('@')[0]}/{value}.yaml"
        for key, value in overrides.items()
        if key.startswith("+")
    )
    # one of its own name may have more keys; those of other names are in no file of defaults
    registered = re.compile(rf"['\"]{re.escape(name.removesuffix('.yaml'))}['\"]".encode())
    if (
        "--config-dir" in overrides
        or any(map(modules.read, added))
        or any(keyword.arg == "schema" for keyword in calls[0].keywords)
        or any(
            b"ConfigStore" in data and registered.search(data)
            for data in map(modules.read, (path, *modules.list_imported(path)))
        )
    ):
        composer.gaps["there are other configurations"] = None
    composer.compose(name.removesuffix(".yaml"), "")
    return HydraConfig(
        f"{folder}/{name}", composer.keys, frozenset(composer.groups), tuple(composer.gaps)
    )


class _Composer:
    def __init__(
        self, folder: str, read: Callable[[str], bytes], overrides: Mapping[str, Any]
    ) -> None:
        self._folder = folder
        self._read = read
        self._overrides = dict(overrides)
        self.keys: dict[str, HydraKey] = {}
        self.groups: dict[str, str] = {}
        self.gaps: dict[str, None] = {}

    def _locate(self, config: str) -> str:
        return posixpath.normpath(f"{self._folder}/{config}.yaml")

    def compose(self, config: str, package: str) -> None:
        """Add the keys of a configuration and of its defaults, all of them below a package."""
        path = self._locate(config)
        text = self._read(path).decode(errors="replace")
        problems: list[Finding] = []
        documents = parse_yaml(path, text, problems) if text else None
        if not documents or problems:
            self.gaps[f"{path} is not read"] = None
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
            is_open = value.value is None or "${" in str(value.value) or value.value == "???"
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
            self.gaps[f"{written} has no package"] = None
        if names is None:
            group, *names = posixpath.split(target)
        else:
            key = f"{_join(base, target)}{'@' if given else ''}{given}"
            names = [self._overrides[key]] if key in self._overrides else names
            self.groups[key] = str(names[0] if names else "")
        for name in names:
            config = _join(base, posixpath.join(group, self._fill_in(name)))
            text = self._read(self._locate(config)).decode(errors="replace")
            header = _HEADER.search(text)
            inner = given or group.lstrip("/").replace("/", ".")
            full = f"{package}.{inner}".strip(".")
            if header and not given:
                full = header[1].removeprefix("_global_").lstrip(".")
                if full.startswith("_"):
                    self.gaps[f"{config} has a package"] = None
            if text or not is_optional:
                self.compose(config, full)

    def _fill_in(self, name: Any) -> str:
        """Return the name of an option, in which the names of other groups' options may be."""
        return _REFERENCE.sub(lambda match: self.groups.get(match[1], match[0]), str(name))


def _join(base: str, target: str) -> str:
    """Return a path in the folder of configurations, relative to a configuration's folder."""
    return posixpath.normpath(posixpath.join("/", base, target)).lstrip("/")


def _list_default(item: Node) -> Iterator[tuple[str, list[Any] | None]]:
    """Yield the entries of an item of a defaults list: a group with its options, or a file."""
    if item.is_plain:
        yield str(item.value), None
    for key, value in item.pairs or ():
        names = [value] if value.items is None else value.items
        yield str(key.value), [each.value for each in names if each.value is not None]
