"""Presets as a config group of Hydra: with ``npuprof://`` on its search path, ``npu=bert-training`` is a choice like any other.

What a preset sets is there below ``npu`` (``npu.options.precision_mode_v2``) and can be overridden on Hydra's command line;
``resolve_config`` makes of the result a config again, checked and with its digest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.utils import to_absolute_path
from omegaconf import OmegaConf

from npuprof.library import Library, open_store
from npuprof.model import SECTIONS, NpuprofError
from npuprof.resolve.config import Config

#: The config group that presets are in.
GROUP = "npu"


class NpuprofSource(ConfigSource):
    """``npuprof://STORE`` on Hydra's search path; without STORE it is the store that the command finds."""

    _opened: Library | None = None

    @staticmethod
    def scheme() -> str:
        """Return what such an entry of the search path begins with."""
        return "npuprof"

    @property
    def _store(self) -> Library:
        if self._opened is None:
            self._opened = open_store(self.path or None)
        return self._opened

    def available(self) -> bool:
        """Return whether there is a store."""
        try:
            return bool(self._store.names())
        except NpuprofError:
            return False

    def load_config(self, config_path: str) -> ConfigResult:
        """Return a preset, resolved, as a config. Raises ConfigLoadError with every problem, its place and a repair."""
        name = _find_name(config_path) or ""
        try:
            found = build_config(self._store.resolve(name), self.path)
        except NpuprofError as error:
            raise ConfigLoadError(f"npuprof: {error}") from None
        return ConfigResult(provider=self.provider, path=f"npuprof://{self.path}", config=OmegaConf.create(found), header={"package": None})

    def is_group(self, config_path: str) -> bool:
        """Return whether presets lie below a path."""
        name = _find_name(config_path)
        if name is None:
            return config_path == ""
        return not name or any(one.startswith(f"{name}/") for one in self._store)

    def is_config(self, config_path: str) -> bool:
        """Return whether a path is that of a preset, at a revision or version if it names one."""
        name = _find_name(config_path)
        return name is not None and name.partition("@")[0] in self._store

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return what there is to choose below a path."""
        name = _find_name(config_path)
        if name is None:
            return [GROUP] if config_path == "" and results_filter != ObjectType.CONFIG else []
        start = f"{name}/" if name else ""
        below = [one.removeprefix(start) for one in self._store if one.startswith(start)]
        groups = {one.partition("/")[0] for one in below if "/" in one} if results_filter != ObjectType.CONFIG else set()
        configs = {one for one in below if "/" not in one} if results_filter != ObjectType.GROUP else set()
        return sorted(groups | configs)


def _find_name(config_path: str) -> str | None:
    """Return the preset, or the folder of presets, that a path of Hydra means; None outside the group."""
    path = config_path.removesuffix(".yaml")
    if path == GROUP:
        return ""
    return path.removeprefix(f"{GROUP}/") if path.startswith(f"{GROUP}/") else None


def build_config(config: Config, store: str = "") -> dict[str, Any]:
    """Return a config as plain data for Hydra: its sections, and what it was made of."""
    sections = {section: found for section in SECTIONS if (found := config.section(section))}
    known = {"preset": config.name, "store": store}  # no digest: it would be told of what is overridden later
    whole: dict[str, Any] = {**{key: value for key, value in known.items() if value}, **sections}
    return {key: _escape(value) for key, value in whole.items()}


def resolve_config(node: Mapping[str, Any], *, cann: str | None = None, product: str | None = None) -> Config:
    """Return the preset that Hydra chose (``cfg.npu``), with what was changed of it there. Raises NpuprofError."""
    plain: Any = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else dict(node)
    asked = str(plain.get("store") or "")
    store = open_store(to_absolute_path(asked) if asked and asked != "builtin:" else asked or None)  # the job may have left its folder
    base = store.resolve(plain["preset"])
    given = {_join(section, name): value for section in SECTIONS for name, value in (plain.get(section) or {}).items() if value is not None}
    known = {_join(section, name): value for section in SECTIONS for name, value in base.section(section).items()}
    changed = {key: value for key, value in given.items() if key not in known or not _is_same(known[key], value)}
    gone = [key for key in known if key not in given]
    return store.resolve(plain["preset"], cann=cann, product=product, set=changed, unset=gone)


def _join(section: str, name: str) -> str:
    from npuprof.document.keys import format_full_key

    return format_full_key(section, name)


def _is_same(one: Any, other: Any) -> bool:
    from npuprof.catalog.values import is_same_typed_value

    return is_same_typed_value(one, other)


def _escape(value: Any) -> Any:
    """Return a value in which no text is an interpolation of OmegaConf."""
    if isinstance(value, dict):
        return {name: _escape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_escape(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"(\\*)\$\{", lambda match: match[1] * 2 + r"\${", value)
    return value if isinstance(value, (bool, int, float)) else str(value)


def register() -> None:
    """Make the source known to Hydra, where its search for plugins does not find it."""
    Plugins.instance().register(NpuprofSource)
