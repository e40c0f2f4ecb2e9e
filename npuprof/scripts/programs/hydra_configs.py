"""The keys of a program's Hydra configuration, by its YAML files and their defaults lists."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from npuprof.model import Finding, Record
from npuprof.scripts.python.constants import fold_expression
from npuprof.scripts.python.expressions import Unknown, write_source
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.python.module import Module
from npuprof.scripts.reading.trees import Node, parse_yaml
from npuprof.scripts.steps import count_steps

_HEADER = re.compile(r"^\s*#\s*@package[ \t]+(\S+)", re.MULTILINE)
_REFERENCE = re.compile(r"\$\{([\w/@.]+)\}")
_GLOBAL = "_global_"
_MOST_FILES = 500


class HydraKey(Record):
    """A key of a configuration: its definition as ``path:line``, and whether its value is plain.

    A plain value is no table, no list, not null, not missing, and no interpolation.
    """

    where: str
    is_plain: bool
    is_list: bool = False


class HydraConfig(Record):
    """The keys of a configuration by dotted name, and its groups.

    It is complete unless there are ``gaps``.
    """

    path: str
    keys: dict[str, HydraKey]
    groups: frozenset[str] = frozenset()
    gaps: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether it has all keys."""
        return not self.gaps


def read_hydra_config(
    path: str, modules: Modules, overrides: Mapping[str, Any]
) -> HydraConfig | None:
    """Return the configuration of the program in a file, None if it has none of Hydra.

    ``overrides`` are those of the command line with plain values, by name with prefix.
    """
    if b"hydra.main" not in modules.read(path):
        return None
    module = modules.load(path)
    decorators = module.index.list_of(ast.FunctionDef) if module else []
    calls = [
        each
        for function in decorators
        for each in function.decorator_list
        if isinstance(each, ast.Call) and write_source(each.func) == "hydra.main"
    ]
    if module is None or len(calls) != 1:
        return None
    options = _fold_options(calls[0], module)
    folder = overrides.get("--config-path", options.get("config_path"))
    name = overrides.get("--config-name", options.get("config_name"))
    if not isinstance(folder, str) or not isinstance(name, str) or "://" in folder:
        return None
    folder = posixpath.normpath(posixpath.join(posixpath.dirname(path), folder))
    composer = _Composer(folder, modules.read, overrides)
    texts = map(modules.read, (path, *modules.list_imported(path)))
    if any(b"ConfigStore" in text for text in texts):
        composer.gaps["the program registers configurations itself"] = None
    if "--config-dir" in overrides:
        composer.gaps["--config-dir adds configurations"] = None
    composer.compose(re.sub(r"\.ya?ml$", "", name), "")
    for group, chosen in overrides.items():
        if group.startswith("+") and "." not in group and composer.has(group[1:], chosen):
            composer.compose(f"{group[1:]}/{chosen}", group[1:].replace("/", "."))
    return HydraConfig(
        f"{folder}/{name}", composer.keys, frozenset(composer.groups), tuple(composer.gaps)
    )


def _fold_options(call: ast.Call, module: Module) -> dict[str, Any]:
    options = {}
    names = ("config_path", "config_name")
    for name, node in (
        *zip(names, call.args, strict=False),
        *((each.arg or "", each.value) for each in call.keywords),
    ):
        try:
            options[name] = fold_expression(node, module.scope)
        except Unknown:
            options[name] = ...
    return options


class _Composer:
    def __init__(
        self, folder: str, read: Callable[[str], bytes], overrides: Mapping[str, Any]
    ) -> None:
        self._folder = folder
        self._read = read
        self._overrides = overrides
        self._composed: set[tuple[str, str]] = set()
        self.keys: dict[str, HydraKey] = {}
        self.groups: dict[str, str] = {}
        self.gaps: dict[str, None] = {}

    def has(self, group: str, name: Any) -> bool:
        """Return whether a group has an option."""
        return bool(isinstance(name, str) and self._read(self._locate(f"{group}/{name}")))

    def _locate(self, config: str) -> str:
        return posixpath.normpath(f"{self._folder}/{config}.yaml")

    def compose(self, config: str, package: str) -> None:
        """Add the keys of a configuration and of its defaults, all of them below a package."""
        if (config, package) in self._composed:
            return
        self._composed.add((config, package))
        path = self._locate(config)
        text = self._read(path).decode(errors="replace")
        problems: list[Finding] = []
        documents = parse_yaml(path, text, problems) if text else None
        if not documents or problems or len(self._composed) > _MOST_FILES:
            self.gaps[f"{path} is not read"] = None
            return
        root = documents[0]
        parts = package.split(".") if package else []
        for count in range(len(parts)):
            name = ".".join(parts[: count + 1])
            self.keys[name] = HydraKey(f"{path}:1", is_plain=False)
        self._add_keys(root, f"{package}." if package else "", path, is_root=True)
        defaults = root.find("defaults")
        for item in defaults.items or () if defaults else ():
            self._add_default(item, posixpath.dirname(config), package)

    def _add_keys(self, table: Node, prefix: str, path: str, is_root: bool = False) -> None:
        for key, value in table.pairs or ():
            count_steps(10)
            if is_root and key.value == "defaults":
                continue
            name = f"{prefix}{key.value}"
            is_open = value.value is None or "${" in str(value.value) or value.value == "???"
            before = self.keys.get(name)
            is_plain = value.is_plain and not is_open and (before is None or before.is_plain)
            is_list = value.items is not None or (before is not None and before.is_list)
            self.keys[name] = HydraKey(f"{path}:{key.line}", is_plain, is_list)
            self._add_keys(value, f"{name}.", path)

    def _add_default(self, item: Node, base: str, package: str) -> None:
        for written, names in _list_default(item):
            target, _, given = written.removeprefix("optional ").partition("@")
            target = target.removeprefix("override ").strip()
            if target == "_self_" or target.lstrip("/").startswith("hydra/"):
                continue
            group = target if names is not None else posixpath.dirname(target)
            inner = given or group.lstrip("/").replace("/", ".")
            if not given and ".." in target:
                self.gaps[f"{written} has no package"] = None
            if names is not None:
                key = f"{_join(base, target)}{'@' if given else ''}{given}"
                self.groups[key] = str(names[0] if names else "")
                if key in self._overrides:
                    names = [self._overrides[key]]
                    self.groups[key] = str(names[0])
            for name in names if names is not None else [posixpath.basename(target)]:
                chosen = self._fill_in(name)
                config = _join(base, target if names is None else f"{target}/{chosen}")
                if written.startswith("optional ") and not self._read(self._locate(config)):
                    continue
                header = _HEADER.search(self._read(self._locate(config)).decode(errors="replace"))
                own = header[1] if header and not given else inner
                own = own.replace("_group_", group.strip("/").replace("/", "."))
                own = own.replace("_here_", "").replace("_name_", chosen.replace("/", "."))
                full = f"{package}.{own}".strip(".")
                if _GLOBAL in full:
                    full = full.rpartition(_GLOBAL)[2].strip(".")
                self.compose(config, full)

    def _fill_in(self, name: Any) -> str:
        """Return the name of an option, in which the names of other groups' options may be."""

        def find(match: re.Match[str]) -> str:
            return self.groups.get(match[1], match[0])

        return _REFERENCE.sub(find, str(name))


def _join(base: str, target: str) -> str:
    """Return a path in the folder of configurations, relative to a configuration's folder."""
    return posixpath.normpath(posixpath.join("/", base, target)).lstrip("/")


def _list_default(item: Node) -> Iterator[tuple[str, list[Any] | None]]:
    """Yield the entries of an item of a defaults list: a group with its options, or a file."""
    if item.is_plain:
        yield str(item.value), None
    for key, value in item.pairs or ():
        names = [each.value for each in value.items] if value.items is not None else [value.value]
        yield str(key.value), [name for name in names if name is not None]
