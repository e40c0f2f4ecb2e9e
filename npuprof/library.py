"""The library: open a store, resolve, check, render, apply. The command line is a thin layer over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuprof import renderers
from npuprof.checks import check_config as _check
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError
from npuprof.resolve.config import Config
from npuprof.store import Folder, spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.changes import Change

#: The names that ``render`` takes.
TARGETS: tuple[str, ...] = tuple(renderers.MODULES)


class Library:
    """A store of profiles, opened; ``path`` is the folder, None for the one npuprof finds by itself."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self.store: Folder = spec.Workspace(path).store

    def names(self) -> list[str]:
        """Return the names of all profiles, sorted."""
        return self.store.names()

    def resolve(
        self,
        name: str,
        *,
        cann: str | None = None,
        product: str | None = None,
        target: str | None = None,
        mixins: Sequence[str] = (),
        set: Mapping[str, Any] | None = None,
        unset: Sequence[str] = (),
    ) -> Config:
        """Return the profile that a spec names, resolved.

        ``cann``, ``product`` and ``target`` decide which overrides match; ``mixins``, then ``set`` and
        ``unset`` come last. Raises NpuprofError with every problem, its place and a repair.
        """
        workspace = spec.Workspace(self._path, spec.build_context(cann, product, target))
        workspace.use_store(self.store)
        return workspace.resolve_spec(name, mixins, changes=spec.build_plain_steps(dict(set or {}), unset))


def open_store(path: str | None = None) -> Library:
    """Return the store in a folder; without one ``$NPUPROF_STORE``, else the nearest ``profiles/``.

    ``builtin:`` is the store npuprof ships. Raises NpuprofError where there is none.
    """
    return Library(None if path is None else str(path))


def loads(text: str, *, cann: str | None = None, product: str | None = None, store: Library | None = None) -> Config:
    """Return a profile given as TOML text, resolved; ``store`` is where its parents are. Raises NpuprofError."""
    home = store.store if store else None
    workspace = spec.Workspace(None, spec.build_context(cann, product))
    if home is not None:
        workspace.use_store(home)
    profile = Profile(parse_document("<text>", "<text>", text), key="text:", home=home)
    return workspace.resolver.resolve_profile(profile)


def check(config: Config) -> list[Finding]:
    """Return everything wrong or doubtful with a config: code, severity, message, path, line, column, hint."""
    return _check(config)


def diff(before: Config, after: Config) -> list[Change]:
    """Return what differs between two configs: key, kind, before, after, unit, risk, origins (before, after).

    Values are compared in their structured form and typed: ``true`` is not ``1``, ``2`` is not ``2.0``.
    """
    from npuprof.compare.changes import compare_configs

    return compare_configs(before, after)


def render(config: Config, target: str, inline: bool = False) -> str:
    """Return a config as the text of a target; ``TARGETS`` lists the names.

    Raises NpuprofError for values the target cannot carry. Sidecar files are not written: see the command.
    """
    if target not in renderers.MODULES:
        from npuprof.model import did_you_mean

        hint = did_you_mean(target, TARGETS, f"known are {', '.join(TARGETS)}")
        raise NpuprofError([Finding("NP902", f"unknown target {target!r}", "", hint)])
    return renderers.load_target(target).render(config, inline).text


def apply(config: Config, config_proto: Any, folder: str | None = None) -> Any:
    """Set a config's options in a ``tf.compat.v1.ConfigProto`` that the caller made; return it.

    Needs no TensorFlow import of its own. ``folder`` is where sidecar files are written, if there are any.
    Raises NpuprofError for options that cannot be carried.
    """
    from npuprof.renderers.process import fill_config_proto as fill

    renderers.load_target("session").refuse_offline(config)
    return fill(config, config_proto, folder)


__all__ = ["TARGETS", "Library", "apply", "check", "diff", "loads", "open_store", "render"]
