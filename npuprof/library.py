"""The Python library: open a store, then resolve, check, render, export or apply presets.

The command line is a thin layer over it.

Nothing here needs TensorFlow or an NPU. Errors that the user can fix are raised as
``NpuprofError``, whose ``findings`` say what is wrong, where, why, and how to fix it. Arguments of
the wrong type raise ``TypeError``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from npuprof import checks, renderers
from npuprof.checks.lifetimes import build_newer_findings
from npuprof.checks.store import StoreReport
from npuprof.compare.changes import compare_configs
from npuprof.compare.html_changes import Changes
from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import (
    Context,
    Finding,
    NpuprofError,
    build_error,
    build_usage_error,
    did_you_mean,
    is_utf8,
)
from npuprof.renderers.environment import collect_env_variables, list_unset_variables
from npuprof.renderers.outputs import check_store
from npuprof.renderers.process import (
    build_fact_finder,
    fill_config_proto,
    sidecar_cache_folder,
    strip_environment,
    write_sidecars,
)
from npuprof.resolve.config import Config
from npuprof.store import spec
from npuprof.store.assignment_arguments import build_plain_steps
from npuprof.store.checked import CheckedStore

#: The target names that ``render`` accepts.
TARGETS: tuple[str, ...] = tuple(renderers.load_target_index())


class Library:
    """A store of presets, opened by ``open_store``.

    Iteration yields the names, sorted; ``name in store`` and ``len(store)`` work. Each file is read
    once, on first use: open the store again to see changes on disk. Two stores are equal if they
    have the same folder.
    """

    __slots__ = ("_path", "store", "workspace")

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else _require_path("path", path)
        self.workspace = spec.Workspace(self._path, in_python=True)
        self.store = self.workspace.store
        if not (self.store.names() or self.store.stray_files()):
            hint = "name the folder with the presets; npuprof init creates one"
            raise build_error("NP010", f"there is no preset in {self.store.label}", "", hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_store, (
            self._path if self._path == "builtin:" else os.path.abspath(self.store.root),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Library) and os.path.realpath(self.store.root) == os.path.realpath(
            other.store.root
        )

    def __hash__(self) -> int:
        return hash(os.path.realpath(self.store.root))

    def names(self) -> list[str]:
        """Return the names of all presets, sorted: ``bert-training``, ``mixins/profiling``."""
        return self.store.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __dir__(self) -> list[str]:
        hidden = ("store", "workspace")
        return [
            name
            for name in super().__dir__()
            if name not in hidden and (not name.startswith("_") or name.startswith("__"))
        ]

    def __repr__(self) -> str:
        return f"npuprof.open_store({self._path or self.store.label!r})"

    def resolve(
        self,
        name: str | os.PathLike[str],
        *,
        cann: str | None = None,
        product: str | None = None,
        target: str | None = None,
        versions: Mapping[str, str] | None = None,
        axes: Mapping[str, str] | None = None,
        mixins: Sequence[str | os.PathLike[str]] = (),
        set: Mapping[str, Any] | None = None,
        unset: Sequence[str] = (),
    ) -> Config:
        """Return the preset of a spec, resolved.

        ``name`` is a spec as on the command line: a preset, ``preset@REVISION``,
        ``preset+overlay``, or the path of a TOML file. ``cann`` (a release, ``"9.0.0"``),
        ``product`` (a family, a line, or a soc_version), ``target`` (one of ``TARGETS``, or
        ``"env"``), ``versions`` (releases by framework, ``{"torch_npu": "7.3"}``) and ``axes``
        (values of axes of npuprof.toml, ``{"role": "decode"}``) decide which overrides match.
        ``mixins`` are composed over the preset in order; then come ``set``, values
        by key (``{"hccl_timeout": 600, "env.HCCL_ALGO": "..."}``, in the unit of the option), and
        ``unset``, a list of keys.

        Raises NpuprofError with every problem, its place and a hint; TypeError for arguments of the
        wrong type.
        """
        spec_text = os.fspath(name) if isinstance(name, os.PathLike) else name
        _require(
            isinstance(spec_text, str),
            f"name must be a str or a pathlib.Path, not {type(name).__name__}",
        )
        workspace = self.workspace.open_beside(
            _build_context(cann, product, target, versions, axes, self.workspace)
        )
        layers = _require_list("mixins", mixins)
        if any("-" in layer.split("+") for layer in (spec_text, *layers)):
            hint = "give its text to npuprof.loads"
            raise build_usage_error("'-' is standard input, which the library does not read", hint)
        return workspace.resolve_spec(spec_text, layers, changes=_build_changes(set, unset))


def open_store(path: str | os.PathLike[str] | None = None) -> Library:
    """Return the store in a folder.

    Without ``path``, the store is ``$NPUPROF_STORE``, else the nearest ``profiles/`` from the
    current folder upwards; ``"builtin:"`` is the store that npuprof ships. Raises NpuprofError if
    there is none.

    >>> store = open_store("builtin:")
    >>> "bert-training" in store
    True
    """
    return Library(path)


def loads(
    text: str,
    *,
    cann: str | None = None,
    product: str | None = None,
    target: str | None = None,
    versions: Mapping[str, str] | None = None,
    axes: Mapping[str, str] | None = None,
    set: Mapping[str, Any] | None = None,
    unset: Sequence[str] = (),
    store: Library | None = None,
) -> Config:
    """Return a preset given as TOML text, resolved.

    ``store`` has its parents and axes, the other arguments are as in ``Library.resolve``.

    Raises NpuprofError for an invalid preset, and for parents without a ``store``; TypeError for
    other types.

    >>> config = loads("options.hccl_timeout = 600")
    >>> config["hccl_timeout"], config.options, config.env
    (600, {'hccl_timeout': 600}, {})
    """
    _require(
        isinstance(text, str),
        f"text must be a str, not {type(text).__name__}: decode it first, as UTF-8",
    )
    _require(store is None or isinstance(store, Library), "store must be the result of open_store")
    _require(is_utf8(text), "text must be valid Unicode: it contains a lone surrogate")
    _require(not axes or store is not None, "axes need the store that declares them: store=...")
    workspace_of_axes = store.workspace if store is not None else None
    context = _build_context(cann, product, target, versions, axes, workspace_of_axes)
    workspace = (
        store.workspace.open_beside(context)
        if store is not None
        else spec.Workspace(None, context, in_python=True)
    )
    profile = Profile(
        parse_document("<text>", "<text>", text),
        key="text:",
        home=store.store if store is not None else None,
    )
    changes = _build_changes(set, unset)
    workspace.require_known_unset(profile, profile.name, changes)
    return workspace.resolver.resolve_profile(profile, changes=changes)


def check(config: Config | Library) -> list[Finding]:
    """Return all findings about a config, or about a store: those that ``npuprof check`` lists.

    Each finding has a code (``NP203``; ``npuprof rule NP203`` explains it), a severity (error,
    warning, info), message, path, line and column (from 1), why, hint, and the affected profiles.
    Presets of a store that cannot be resolved are findings too. Raises TypeError for other types.

    >>> [finding.code for finding in check(loads("options.hccl_timeot = 600"))]
    ['NP201']
    """
    if isinstance(config, Library):
        return check_opened_store(config).findings
    _require_config(config)
    return [*build_newer_findings(config.context), *checks.check_config(config)]


def check_opened_store(library: Library) -> StoreReport:
    """Return the report of a store, whose findings ``check`` lists.

    Of each preset and of other files.
    """
    return check_store(CheckedStore(spec.Workspace(in_python=True, opened=library.store)))


def diff(before: Config, after: Config) -> Changes:
    """Return the changes from one config to another, in catalogue order.

    Notebooks show the list as a table. Each change has key, kind (added, removed, changed), before
    and after (None if unset), unit, risk, and origins (before, after). Values are compared in their
    structured form and by type: ``true`` is not ``1``, ``2`` is not ``2.0``. Raises TypeError for
    other types.

    >>> before, after = (loads(f"options.hccl_timeout = {seconds}") for seconds in (1, 2))
    >>> [str(change.key) for change in diff(before, after)]
    ['hccl_timeout']
    """
    _require_config(before)
    _require_config(after)
    return Changes(compare_configs(before, after))


def render(
    config: Config, target: str, inline: bool = False, *, check: bool = True, strict: bool = False
) -> Any:
    """Return a config as the text of a target; ``TARGETS`` lists the names.

    The folder ``vllm`` is a dict of file names to texts.

    With ``inline``, only the lines to paste, without a function. A config that was resolved without
    a target is resolved for this one and, unless ``check=False``, checked first, as the command
    does. With ``strict``, a section that the target does not support is an error. Sidecar files are
    not written: ``npuprof render -o DIR`` writes them.

    Raises NpuprofError for errors of the check, for settings that the target does not support, and
    for a config that was resolved for another target; TypeError for other types.

    >>> print(render(loads("options.hccl_timeout = 600"), "session", inline=True).splitlines()[-1])
    config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
    """
    _require_config(config)
    _require(isinstance(target, str), f"target must be a str, not {type(target).__name__}")
    if target not in renderers.load_target_index():
        hint = did_you_mean(str(target), TARGETS, f"known are {', '.join(TARGETS)}")
        raise build_usage_error(f"unknown target {target!r}", hint)
    there = _resolve_for_target(config, target, check)
    row = renderers.load_target(target)
    rendered = row.render(there, inline)
    if strict and rendered.left_out:
        raise NpuprofError(rendered.left_out)
    return {row.file: rendered.text, **rendered.sidecars} if row.is_folder else rendered.text


def env(
    config: Config,
    environ: Mapping[str, str] | None = None,
    *,
    trust: bool = False,
    check: bool = True,
) -> dict[str, str]:
    """Return a config as environment variables: those that ``npuprof env`` exports in this process.

    With ``environ`` (``os.environ``), return that environment as ``npuprof run`` passes it to a
    command: with these variables, and without those that the preset unsets. Removing one that is
    unknown or affects execution needs ``trust``.

    Launcher facts (``{ launcher = "rank" }``) are read from the launcher's variables; sidecar files
    are written to npuprof's cache. Variables that need trust are rejected unless the store is
    trusted with them, or with ``trust``.

    Raises NpuprofError for errors of the check, unless ``check`` is false, for values that cannot
    be environment variables, and for a config that was resolved for another target; TypeError for
    other types.

    >>> env(loads("env.HCCL_CONNECT_TIMEOUT = 600"))["HCCL_CONNECT_TIMEOUT"]
    '600'
    """
    _require_config(config)
    _require(
        environ is None or isinstance(environ, Mapping),
        f"environ must be a mapping of texts, not {type(environ).__name__}",
    )
    there = _resolve_for_target(config, "env", check)
    facts = build_fact_finder(os.environ if environ is None else environ)
    variables, _ = collect_env_variables(there, facts, sidecar_cache_folder(there), trust)
    write_sidecars(there, sidecar_cache_folder(there))
    return (
        variables
        if environ is None
        else strip_environment(environ, list_unset_variables(there, trust)[0]) | variables
    )


def apply(
    config: Config,
    config_proto: Any,
    folder: str | os.PathLike[str] | None = None,
    *,
    check: bool = True,
) -> Any:
    """Set a config's options in the caller's ``tf.compat.v1.ConfigProto``; return it.

    The options are written as in the rendered session: into the parameter map of the single
    ``NpuOptimizer``, which is added if it is missing, each in the field of its type. ``folder`` is
    the place for sidecar files, by default npuprof's cache. A config that was resolved without a
    target is resolved for the session and, unless ``check=False``, checked first.

    Raises NpuprofError, before anything is changed, for errors of the check, for options without a
    field, and for a config for another target or for offline inference; TypeError for other types.
    """
    _require_config(config)
    _require(
        hasattr(config_proto, "graph_options"),
        f"config_proto must be a tf.compat.v1.ConfigProto, not {type(config_proto).__name__}",
    )
    home = None if folder is None else _require_path("folder", folder)
    there = _resolve_for_target(config, "session", check)
    renderers.load_target("session").reject_offline(there)
    return fill_config_proto(there, config_proto, home)


def _resolve_for_target(config: Config, target: str, checked: bool) -> Config:
    """Return a config resolved for a target.

    Raises NpuprofError for a config of another target, and, if ``checked``, for errors.
    """
    resolved_target = config.context.target
    if resolved_target not in (None, target):
        what = f"{config.name} was resolved for the target {resolved_target}, not for {target}"
        why, hint = (
            "Overrides for a target may differ.",
            f"resolve it with target={target!r}, or with none",
        )
        raise build_usage_error(what, hint, why)
    there = config
    if resolved_target is None:
        resolver = config.resolver.for_context(config.context._replace(target=target))
        there = resolver.resolve_members(config.lineage, config.name, config.claims, config.changes)
    if checked:
        checks.require_exportable(there)
    return there


def _build_context(
    cann: str | None,
    product: str | None,
    target: str | None,
    versions: Mapping[str, str] | None,
    axes: Mapping[str, str] | None,
    workspace: spec.Workspace | None,
) -> Context:
    for name, value in (("cann", cann), ("product", product), ("target", target)):
        _require(
            value is None or isinstance(value, str),
            f"{name} must be a str, not {type(value).__name__}",
        )
    for given, form in (
        (versions, 'versions must be a dict of releases by framework, {"torch_npu": "7.3"}'),
        (axes, 'axes must be a dict of values by axis, {"role": "decode"}'),
    ):
        good = given is None or (
            isinstance(given, Mapping)
            and all(isinstance(text, str) for item in given.items() for text in item)
        )
        _require(good, form)
    return spec.build_context(cann, product, target, versions or {}, axes or {}, workspace)


def _build_changes(values: Mapping[str, Any] | None, unset: Sequence[str]) -> Sequence[Any]:
    good = values is None or (
        isinstance(values, Mapping) and all(isinstance(key, str) for key in values)
    )
    _require(good, 'set must be a dict of values by key, each key a str: set={"hccl_timeout": 600}')
    return build_plain_steps(dict(values or {}), _require_list("unset", unset))


def _require_path(name: str, argument: object) -> str:
    path = os.fspath(argument) if isinstance(argument, os.PathLike) else argument
    _require(
        isinstance(path, str),
        f"{name} must be a str or a pathlib.Path, not {type(argument).__name__}",
    )
    if not path:
        raise build_error("NP010", f"{name} is empty", "", "name the folder with the presets")
    return str(path)


def _require_list(name: str, argument: Sequence[str | os.PathLike[str]]) -> list[str]:
    _require(
        not isinstance(argument, (str, bytes)),
        f"{name} must be a list of texts, not one text: {name}=[{argument!r}]",
    )
    try:
        texts = [os.fspath(item) if isinstance(item, os.PathLike) else item for item in argument]
    except TypeError:
        raise TypeError(f"{name} must be a list of texts, not {type(argument).__name__}") from None
    _require(all(isinstance(item, str) for item in texts), f"{name} must be a list of texts")
    return texts


def _require_config(config: object) -> None:
    _require(
        isinstance(config, Config),
        f"a Config is needed, as resolve and loads return it, not {type(config).__name__}",
    )


def _require(good: bool, what: str) -> None:
    if not good:
        raise TypeError(what)


__all__ = ["TARGETS", "Library", "apply", "check", "diff", "env", "loads", "open_store", "render"]
