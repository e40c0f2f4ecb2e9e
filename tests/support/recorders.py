"""Stand-ins for the adapter's modules: they take its arguments and record them.

The tables in ``tables/`` are the adapter's own: every argument of NPURunConfig and its helpers with
its default, and every leaf of the options of TF 2 with the values its class takes.
"""

from __future__ import annotations

import sys
import types
from ast import literal_eval
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from npuprof import catalog

_REQUIRED = object()


def read_table(name: str) -> Iterator[list[str]]:
    """Yield the rows of a file of ``tables/``: cells between bars.

    The last cells may be missing; lines with ``#`` are comments.
    """
    width = 0
    for line in (Path(__file__).parent / "tables" / name).read_text().splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        width = width or len(cells)
        if not line.startswith("#"):
            yield cells + [""] * (width - len(cells))


#: For each class its arguments: default, the key NPUEstimator writes ("" for none), the protobuf
#: field.
ARGUMENTS: dict[str, dict[str, tuple[Any, str, str]]] = {}
for _class, _argument, _default, _key, _field in read_table("arguments.txt"):
    ARGUMENTS.setdefault(_class, {})[_argument] = (
        _REQUIRED if _default == "!" else literal_eval(_default),
        _key.replace("=", _argument),
        _field,
    )
NESTED = {
    "profiling_config": "ProfilingConfig",
    "dump_config": "DumpConfig",
    "memory_config": "MemoryConfig",
    "dynamic_input_config": "DynamicInputConfig",
    "experimental_config": "ExperimentalConfig",
    "graph_memory_optimize_config": "GraphMemoryOptimizeConfig",
}
#: For each leaf of the options of TF 2 the values its class takes (None: any) and its default.
LEAVES: dict[str, tuple[tuple[Any, ...] | None, Any]] = {
    leaf: (tuple(literal_eval(taken)) if taken else None, literal_eval(default))
    for leaf, taken, default in read_table("leaves.txt")
}


def _add_later_options() -> None:
    """Let the stand-ins take options of the catalogue that the tables do not contain yet."""
    for option in filter(None, map(catalog.find_option, catalog.record_names())):
        group, _, argument = option.spelling.get("run_config", "").rpartition(".")
        if argument:
            ARGUMENTS[NESTED[group.rpartition(".")[2]] if group else "NPURunConfig"].setdefault(
                argument, (None, option.name, option.field or "")
            )
        if path := option.spelling.get("global_options"):
            LEAVES.setdefault(path, (option.choices or None, None))


#: What the tables above say themselves, for those who compare the catalogue with them.
ADAPTERS_OWN = (
    {(kind, argument) for kind, table in ARGUMENTS.items() for argument in table},
    set(LEAVES),
)
_add_later_options()


class RefusedError(Exception):
    """What the real class would raise."""


def _recorder(name: str) -> type:
    table = ARGUMENTS[name]

    def init(self: Any, **arguments: Any) -> None:
        unknown = [argument for argument in arguments if argument not in table]
        missing = [
            argument
            for argument, (default, _, _) in table.items()
            if default is _REQUIRED and argument not in arguments
        ]
        if unknown or missing:
            raise TypeError(f"{name}: unexpected {unknown}, missing {missing}")
        for argument, (default, _, _) in table.items():
            setattr(self, argument, arguments.get(argument, default))
            kind = NESTED.get(argument)
            if kind and argument in arguments and type(arguments[argument]).__name__ != kind:
                raise ValueError(f"{argument} must be a {kind}")
        self.given = arguments
        _check(self, name)

    return type(name, (), {"__init__": init})


def _check(made: Any, name: str) -> None:
    """Raise what the constructors of the adapter raise."""
    if name == "NPURunConfig":
        if (
            type(made.iterations_per_loop) is not int
            or type(made.jit_compile) is not str
            or type(made.graph_run_mode) is not int
        ):
            raise TypeError(name)
        if type(made.mix_compile_mode) is not bool or type(made.enable_exception_dump) is not int:
            raise TypeError(name)
        if (
            made.iterations_per_loop < 1
            or not 0 <= made.graph_run_mode <= 1
            or made.enable_exception_dump < 0
        ):
            raise ValueError(name)
        if made.mix_compile_mode and made.iterations_per_loop != 1:
            raise ValueError("mix_compile_mode with iterations_per_loop")
        if type(made.horovod_mode) is not bool:
            raise ValueError("horovod_mode")
    if name == "GraphMemoryOptimizeConfig":
        for value in (made.recompute, made.graph_slice):
            if value not in (None, "auto", "manual"):
                raise ValueError(name)


def read_fields(config: Any) -> dict[str, Any]:
    """Return the parameter map that NPUEstimator writes for its arguments.

    Raises RefusedError where the estimator or the adapter behind it would not go on.
    """
    found: dict[str, Any] = {}
    _collect(config, found)
    if config.compress_weight_conf is not None:
        raise RefusedError("compress_weight_conf beside enable_compress_weight kills the process")
    if config.insert_op_file is not None and not isinstance(config.insert_op_file, bytes):
        raise RefusedError("insert_op_file is stored without conversion")
    if config.aoe_mode is None:
        found.pop("work_path", None)
        found.pop("distribute_config", None)
    if not found.get("profiling_mode", False):
        found.pop("profiling_options", None)
    dynamic = config.dynamic_input_config
    if dynamic is not None and None in (
        dynamic.input_shape,
        dynamic.dynamic_dims,
        dynamic.dynamic_node_type,
        dynamic.compile_hybrid_mode,
    ):
        for name in ("input_shape", "dynamic_dims", "dynamic_node_type", "compile_hybrid_mode"):
            found.pop(name, None)
    return found


def _collect(made: Any, found: dict[str, Any]) -> None:
    for argument, value in made.given.items():
        _, key, field = ARGUMENTS[type(made).__name__][argument]
        if argument in NESTED:
            if value is not None:
                _collect(value, found)
        elif key and value is not None:
            kinds = {"b": bool, "i": int, "s": (str, bytes)}[field]
            if not isinstance(value, kinds) or (field == "i" and isinstance(value, bool)):
                raise RefusedError(f"{argument} = {value!r} does not fit .{field}")
            found[key] = value.decode() if isinstance(value, bytes) else value


class Options:
    """``npu.global_options()``: unknown names, other values and assigned groups raise."""

    def __init__(self, prefix: str = "", assigned: dict[str, Any] | None = None) -> None:
        object.__setattr__(self, "_prefix", prefix)
        object.__setattr__(self, "assigned", {} if assigned is None else assigned)

    def __getattr__(self, name: str) -> Any:
        path = f"{self._prefix}{name}"
        if any(leaf.startswith(f"{path}.") for leaf in LEAVES):
            return Options(f"{path}.", self.assigned)
        raise AttributeError(path)

    def __setattr__(self, name: str, value: Any) -> None:
        path = f"{self._prefix}{name}"
        if path not in LEAVES:
            raise ValueError(f"no option {path}")
        choices = LEAVES[path][0]
        if choices is not None and not any(
            type(value) is type(choice) and value == choice for choice in choices
        ):
            raise ValueError(f"{path} = {value!r} is not in {choices}")
        self.assigned[path] = value


class Journal:
    """What rendered code did: the calls in order, by name."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def names(self) -> list[str]:
        """Return the names of the calls."""
        return [name for name, _ in self.calls]

    def last(self, name: str) -> Any:
        """Return what the last call of a name was given."""
        return next(arguments for called, arguments in reversed(self.calls) if called == name)


class Session:
    """A session that runs nothing."""

    def __init__(self, journal: Journal, config: Any) -> None:
        self.journal = journal
        self.config = config

    def run(self, operation: str) -> None:
        self.journal.calls.append(("run", operation))

    def close(self) -> None:
        self.journal.calls.append(("close", None))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class RunConfig:
    """tf.estimator.RunConfig: these arguments and no others."""

    FIELDS = (
        "model_dir",
        "tf_random_seed",
        "save_summary_steps",
        "save_checkpoints_steps",
        "save_checkpoints_secs",
        "session_config",
        "keep_checkpoint_max",
        "keep_checkpoint_every_n_hours",
        "log_step_count_steps",
        "train_distribute",
        "device_fn",
        "protocol",
        "eval_distribute",
        "experimental_distribute",
        "experimental_max_worker_delay_secs",
        "session_creation_timeout_secs",
    )

    def __init__(self, **arguments: Any) -> None:
        unknown = [name for name in arguments if name not in self.FIELDS]
        if unknown:
            raise TypeError(f"RunConfig: unexpected {unknown}")
        self.given = arguments

    @property
    def session_config(self) -> Any:
        """The ConfigProto, None where none was given."""
        return self.given.get("session_config")

    def replace(self, **changes: Any) -> RunConfig:
        """Return a copy with other values."""
        return RunConfig(**{**self.given, **changes})


def _bridge(journal: Journal, tf: Any) -> dict[str, types.ModuleType]:
    """Return the modules of npu_bridge that rendered code may import."""
    proto = tf.compat.v1.ConfigProto
    off = 2

    def npu_config_proto(config_proto: Any = None) -> Any:
        journal.calls.append(("npu_config_proto", config_proto))
        config = config_proto if isinstance(config_proto, proto) else proto()
        rewrite = config.graph_options.rewrite_options
        if not any(entry.name == "NpuOptimizer" for entry in rewrite.custom_optimizers):
            rewrite.custom_optimizers.add().name = "NpuOptimizer"
            rewrite.memory_optimization = off
        config.allow_soft_placement = True
        config.log_device_placement = False
        rewrite.remapping = off
        return config

    def npu_run_config_init(run_config: Any = None) -> Any:
        journal.calls.append(("npu_run_config_init", run_config))
        return run_config.replace(session_config=npu_config_proto(run_config.session_config))

    def set_keras_session_npu_config(config: Any = None) -> Session:
        journal.calls.append(("set_keras_session_npu_config", config))
        return Session(journal, npu_config_proto(config))

    def init_resource(config: Any = None) -> tuple[Session, str]:
        journal.calls.append(("init_resource", config))
        return Session(journal, npu_config_proto(config)), "shutdown"

    def shutdown_resource(sess: Session, npu_shutdown: str) -> None:
        journal.calls.append(("shutdown_resource", npu_shutdown))

    def close_session(sess: Session) -> None:
        journal.calls.append(("close_session", None))

    npu_init = types.ModuleType("npu_bridge.npu_init")
    for function in (
        npu_config_proto,
        npu_run_config_init,
        set_keras_session_npu_config,
        init_resource,
        shutdown_resource,
        close_session,
    ):
        setattr(npu_init, function.__name__, function)
    npu_init.npu_ops = types.SimpleNamespace(
        initialize_system=lambda name=None: "initialize",
        shutdown_system=lambda name=None: "shutdown",
    )  # type: ignore[attr-defined]
    npu_config = types.ModuleType("npu_bridge.estimator.npu.npu_config")
    for name in ARGUMENTS:
        setattr(npu_config, name, _recorder(name))
    packages = ("npu_bridge", "npu_bridge.estimator", "npu_bridge.estimator.npu")
    return {
        **{name: types.ModuleType(name) for name in packages},
        npu_init.__name__: npu_init,
        npu_config.__name__: npu_config,
    }


@contextmanager
def adapter(tf: Any) -> Iterator[Journal]:
    """Put the stand-ins where rendered code imports them, and TF 1's own names into TensorFlow."""
    journal = Journal()
    device = types.ModuleType("npu_device")
    options = Options()
    device.global_options = lambda: options  # type: ignore[attr-defined]

    def opened(device_id: int | None = None) -> Any:
        journal.calls.append(("open", dict(options.assigned)))
        return types.SimpleNamespace(
            as_default=lambda: journal.calls.append(("as_default", device_id))
        )

    device.open = opened  # type: ignore[attr-defined]
    modules = {**_bridge(journal, tf), "npu_device": device}
    before = {name: sys.modules.get(name) for name in (*modules, "tensorflow")}
    fake = types.ModuleType("tensorflow")
    fake.__path__ = tf.__path__
    v1 = types.SimpleNamespace(
        ConfigProto=tf.compat.v1.ConfigProto,
        Session=lambda config=None: _opened(journal, config),
        app=types.SimpleNamespace(run=lambda: sys.exit(0)),
    )
    compat = types.SimpleNamespace(as_bytes=tf.compat.as_bytes, v1=v1)
    estimator = types.SimpleNamespace(RunConfig=RunConfig)
    vars(fake).update(compat=compat, estimator=estimator)
    sys.modules.update({**modules, "tensorflow": fake})
    try:
        yield journal
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _opened(journal: Journal, config: Any) -> Session:
    journal.calls.append(("Session", config))
    return Session(journal, config)


def execute(
    source: str, file: str = "rendered.py", names: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Run rendered source as a module; return what it defines."""
    module: dict[str, Any] = {"__name__": "rendered", "__file__": file, **(names or {})}
    exec(compile(source, file, "exec", dont_inherit=True), module)
    return module


def parameter_map(config: Any) -> dict[str, tuple[str, Any]]:
    """Return the parameter map of the NpuOptimizer entries: key to field and value."""
    found: dict[str, tuple[str, Any]] = {}
    for entry in config.graph_options.rewrite_options.custom_optimizers:
        if entry.name == "NpuOptimizer":
            for key, value in entry.parameter_map.items():
                field = value.WhichOneof("value")
                found[key] = (field, getattr(value, field))
    return found
