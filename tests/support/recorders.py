"""Stand-ins for the adapter's modules: they take exactly the arguments of the real ones, and keep what they were given.

The tables are the adapter's own: every argument of NPURunConfig and its helpers with its default, and every leaf of the
options of TF 2 with the values its class takes.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from npuprof import catalog

_REQUIRED = object()

#: For each class its arguments: default, the key NPUEstimator writes ("" for none), the protobuf field.
ARGUMENTS: dict[str, dict[str, tuple[Any, str, str]]] = {
    "NPURunConfig": {
        "iterations_per_loop": (1, "iterations_per_loop", "i"),
        "profiling_config": (None, "", ""),
        "model_dir": (None, "", ""),
        "tf_random_seed": (None, "", ""),
        "save_summary_steps": (0, "", ""),
        "save_checkpoints_steps": (None, "", ""),
        "save_checkpoints_secs": (None, "", ""),
        "session_config": (None, "", ""),
        "keep_checkpoint_max": (5, "", ""),
        "keep_checkpoint_every_n_hours": (10000, "", ""),
        "log_step_count_steps": (100, "", ""),
        "distribute": (None, "", ""),
        "enable_data_pre_proc": (True, "enable_data_pre_proc", "b"),
        "precision_mode": (None, "precision_mode", "s"),
        "enable_reduce_precision": (False, "enable_reduce_precision", "b"),
        "variable_format_optimize": (None, "variable_format_optimize", "b"),
        "mix_compile_mode": (False, "mix_compile_mode", "b"),
        "hcom_parallel": (True, "hcom_parallel", "b"),
        "graph_memory_max_size": (None, "graph_memory_max_size", "s"),
        "variable_memory_max_size": (None, "variable_memory_max_size", "s"),
        "dump_config": (None, "", ""),
        "stream_max_parallel_num": (None, "stream_max_parallel_num", "s"),
        "is_tailing_optimization": (False, "is_tailing_optimization", "b"),
        "horovod_mode": (False, "", ""),
        "graph_run_mode": (1, "graph_run_mode", "i"),
        "op_debug_level": (None, "op_debug_level", "i"),
        "enable_scope_fusion_passes": (None, "enable_scope_fusion_passes", "s"),
        "enable_exception_dump": (2, "enable_exception_dump", "i"),
        "op_select_implmode": (None, "op_select_implmode", "s"),
        "optypelist_for_implmode": (None, "optypelist_for_implmode", "s"),
        "dynamic_input_config": (None, "", ""),
        "aoe_mode": (None, "aoe_mode", "s"),
        "work_path": (None, "work_path", "s"),
        "buffer_optimize": ("l2_optimize", "buffer_optimize", "s"),
        "enable_small_channel": (0, "enable_small_channel", "i"),
        "fusion_switch_file": (None, "fusion_switch_file", "s"),
        "enable_compress_weight": (False, "enable_compress_weight", "b"),
        "compress_weight_conf": (None, "compress_weight_conf", "s"),
        "op_compiler_cache_mode": (None, "op_compiler_cache_mode", "s"),
        "op_compiler_cache_dir": (None, "op_compiler_cache_dir", "s"),
        "debug_dir": (None, "debug_dir", "s"),
        "hcom_multi_mode": (False, "hcom_multi_mode", "b"),
        "dynamic_input": (None, "dynamic_input", "b"),
        "dynamic_graph_execute_mode": ("dynamic_execute", "dynamic_graph_execute_mode", "s"),
        "dynamic_inputs_shape_range": (None, "dynamic_inputs_shape_range", "s"),
        "train_distribute": (None, "", ""),
        "eval_distribute": (None, "", ""),
        "local_rank_id": (None, "local_rank_id", "i"),
        "local_device_list": (None, "local_device_list", "s"),
        "session_device_id": (None, "session_device_id", "i"),
        "distribute_config": (None, "distribute_config", "s"),
        "modify_mixlist": (None, "modify_mixlist", "s"),
        "op_precision_mode": (None, "op_precision_mode", "s"),
        "device_type": ("default_device_type", "device_type", "s"),
        "soc_config": (None, "soc_config", "s"),
        "hccl_timeout": (None, "hccl_timeout", "i"),
        "op_wait_timeout": (None, "op_wait_timeout", "i"),
        "op_execute_timeout": (None, "op_execute_timeout", "i"),
        "HCCL_algorithm": (None, "HCCL_algorithm", "s"),
        "customize_dtypes": (None, "customize_dtypes", "s"),
        "op_debug_config": (None, "op_debug_config", "s"),
        "memory_config": (None, "", ""),
        "experimental_config": (None, "", ""),
        "topo_sorting_mode": (None, "topo_sorting_mode", "i"),
        "aoe_config_file": (None, "aoe_config_file", "s"),
        "insert_op_file": (None, "insert_op_file", "s"),
        "stream_sync_timeout": (-1, "stream_sync_timeout", "i"),
        "event_sync_timeout": (-1, "event_sync_timeout", "i"),
        "external_weight": (False, "external_weight", "b"),
        "deterministic": (0, "deterministic", "i"),
        "frozen_variable": (False, "frozen_variable", "b"),
        "variable_placement": ("Device", "variable_placement", "s"),
        "jit_compile": ("auto", "jit_compile", "s"),
        "precision_mode_v2": (None, "precision_mode_v2", "s"),
        "ac_parallel_enable": (None, "ac_parallel_enable", "s"),
        "quant_dumpable": (None, "quant_dumpable", "s"),
        "input_fusion_size": (131072, "input_fusion_size", "i"),
        "compile_dynamic_mode": (None, "compile_dynamic_mode", "b"),
        "graph_max_parallel_model_num": (1, "graph_max_parallel_model_num", "i"),
        "export_compile_stat": (1, "export_compile_stat", "i"),
        "aicore_num": (None, "aicore_num", "s"),
        "oo_constant_folding": (True, "oo_constant_folding", "b"),
        "input_batch_cpy": (False, "input_batch_cpy", "b"),
        "shape_generalization_mode": ("STRICT", "shape_generalization_mode", "s"),
        "all_tensor_not_empty": (False, "all_tensor_not_empty", "b"),
        "auto_multistream_parallel_mode": (None, "auto_multistream_parallel_mode", "s"),
        "oo_level": ("O3", "oo_level", "s"),
        "optimization_switch": (None, "optimization_switch", "s"),
    },
    "ProfilingConfig": {
        "enable_profiling": (False, "profiling_mode", "b"),
        "profiling_options": (None, "profiling_options", "s"),
    },
    "MemoryConfig": {
        "atomic_clean_policy": (0, "atomic_clean_policy", "i"),
        "static_memory_policy": (0, "static_memory_policy", "i"),
        "memory_optimization_policy": (None, "memory_optimization_policy", "s"),
        "variable_use_1g_huge_page": (0, "variable_use_1g_huge_page", "i"),
    },
    "DumpConfig": {
        "enable_dump": (False, "enable_dump", "b"),
        "dump_path": (None, "dump_path", "s"),
        "dump_step": (None, "dump_step", "s"),
        "dump_mode": ("output", "dump_mode", "s"),
        "enable_dump_debug": (False, "enable_dump_debug", "b"),
        "dump_debug_mode": ("all", "dump_debug_mode", "s"),
        "dump_data": ("tensor", "dump_data", "s"),
        "dump_layer": (None, "dump_layer", "s"),
    },
    "ExperimentalConfig": {
        "logical_device_cluster_deploy_mode": ("LB", "experimental_logical_device_cluster_deploy_mode", "s"),
        "logical_device_id": (None, "experimental_logical_device_id", "s"),
        "model_deploy_mode": (None, "experimental_model_deploy_mode", "s"),
        "model_deploy_devicelist": (None, "experimental_model_deploy_devicelist", "s"),
        "graph_memory_optimize_config": (None, "", ""),
        "enable_graph_parallel": (None, "enable_graph_parallel", "b"),
        "graph_parallel_option_path": (None, "graph_parallel_option_path", "s"),
        "graph_compiler_cache_dir": (None, "graph_compiler_cache_dir", "s"),
        "resource_config_path": (None, "resource_config_path", "s"),
        "accelerate_train_mode": (None, "experimental_accelerate_train_mode", "s"),
    },
    "GraphMemoryOptimizeConfig": {
        "recompute": (None, "", ""),
        "graph_slice": (None, "graph_slice", "s"),
    },
    "DynamicInputConfig": {
        "input_shape": (_REQUIRED, "input_shape", "s"),
        "dynamic_dims": (_REQUIRED, "dynamic_dims", "s"),
        "dynamic_node_type": (_REQUIRED, "dynamic_node_type", "i"),
        "compile_hybrid_mode": (_REQUIRED, "compile_hybrid_mode", "i"),
    },
}
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
    "graph_run_mode": ((0, 1), 1),
    "deterministic": ((0, 1), 0),
    "memory_config.atomic_clean_policy": ((0, 1), 0),
    "memory_config.static_memory_policy": ((0, 1, 2, 3, 4), 0),
    "memory_config.variable_use_1g_huge_page": ((0, 1, 2), 0),
    "external_weight": ((True, False), False),
    "input_fusion_size": (None, 131072),
    "input_batch_cpy": ((True, False), False),
    "ac_parallel_enable": (("0", "1"), None),
    "compile_dynamic_mode": ((True, False), False),
    "all_tensor_not_empty": ((True, False), False),
    "op_debug_config": (None, None),
    "enable_exception_dump": ((0, 1, 2), 2),
    "debug_dir": (None, None),
    "export_compile_stat": ((0, 1, 2), 1),
    "stream_sync_timeout": (None, -1),
    "event_sync_timeout": (None, -1),
    "precision_mode_v2": (("fp16", "origin", "cube_fp16in_fp32out", "mixed_float16", "mixed_bfloat16", "cube_hif8", "mixed_hif8"), None),
    "precision_mode": (
        (
            "force_fp32",
            "allow_fp32_to_fp16",
            "force_fp16",
            "must_keep_origin_dtype",
            "allow_mix_precision",
            "cube_fp16in_fp32out",
            "allow_mix_precision_fp16",
            "allow_mix_precision_bf16",
            "allow_fp32_to_bf16",
        ),
        None,
    ),
    "modify_mixlist": (None, None),
    "customize_dtypes": (None, None),
    "dump_config.enable_dump": ((True, False), False),
    "dump_config.dump_path": (None, None),
    "dump_config.dump_step": (None, None),
    "dump_config.dump_mode": (("input", "output", "all"), "output"),
    "dump_config.enable_dump_debug": ((True, False), False),
    "dump_config.dump_debug_mode": (("aicore_overflow", "atomic_overflow", "all"), "all"),
    "dump_config.dump_data": (("tensor", "stats"), "tensor"),
    "dump_config.dump_layer": (None, None),
    "fusion_switch_file": (None, None),
    "quant_dumpable": (("0", "1"), None),
    "hcom_parallel": ((True, False), True),
    "enable_small_channel": ((True, False), False),
    "op_precision_mode": (None, None),
    "stream_max_parallel_num": (None, None),
    "is_tailing_optimization": ((True, False), False),
    "enable_scope_fusion_passes": (None, None),
    "op_compiler_cache_mode": (("enable", "disable", "force"), "enable"),
    "op_compiler_cache_dir": (None, None),
    "aicore_num": (None, None),
    "oo_constant_folding": ((True, False), True),
    "profiling_config.enable_profiling": ((True, False), False),
    "profiling_config.profiling_options": (
        None,
        '{"output":".\\/","training_trace":"on","task_time":"on","hccl":"on","aicpu":"on","aic_metrics":"PipeUtilization","msproftx":"off"}',
    ),
    "aoe_config.aoe_mode": (("1", "2", "4"), None),
    "aoe_config.work_path": (None, "./"),
    "aoe_config.aoe_config_file": (None, None),
    "graph_compiler_cache_dir": (None, None),
    "jit_compile": (("true", "false", "auto"), "auto"),
    "shape_generalization_mode": (("STRICT", "FULL", "ADAPTIVE"), "STRICT"),
    "auto_multistream_parallel_mode": (None, None),
    "op_select_implmode": (("high_performance", "high_precision"), None),
    "optypelist_for_implmode": (None, None),
    "variable_format_optimize": ((True, False), None),
    "op_debug_level": ((0, 1, 2, 3, 4), None),
    "graph_memory_max_size": (None, None),
    "variable_memory_max_size": (None, None),
    "hcom_multi_mode": (None, None),
    "graph_exec_timeout": (None, None),
    "topo_sorting_mode": ((0, 1), None),
    "overflow_flag": ((0, 1), 1),
    "execute_times": (None, -1),
    "oo_level": (("O0", "O1", "O2", "O3"), "O3"),
    "optimization_switch": (None, None),
    "experimental.multi_branches_config.input_shape": (None, None),
    "experimental.multi_branches_config.dynamic_node_type": (("0",), None),
    "experimental.multi_branches_config.dynamic_dims": (None, None),
    "experimental.logical_device_deploy_config.logical_device_cluster_deploy_mode": (("LB", "SINGLE"), "LB"),
    "experimental.logical_device_deploy_config.logical_device_id": (None, None),
    "experimental.model_deploy_config.model_deploy_mode": (None, None),
    "experimental.model_deploy_config.model_deploy_devicelist": (None, None),
    "experimental.graph_memory_optimize_config.recompute": (("auto", "manual"), None),
    "experimental.graph_memory_optimize_config.graph_slice": (("auto",), None),
    "experimental.resource_config_path": (None, None),
    "experimental.graph_parallel_option_path": (None, None),
    "experimental.enable_graph_parallel": ((True, False), False),
}


def _add_later_options() -> None:
    """Let the stand-ins take what the catalogue has learnt since: options that the tables above do not name yet."""
    for option in filter(None, map(catalog.find_option, catalog.record_names())):
        group, _, argument = option.spelling.get("run_config", "").rpartition(".")
        if argument:
            ARGUMENTS[NESTED[group.rpartition(".")[2]] if group else "NPURunConfig"].setdefault(
                argument, (None, option.name, option.field or "")
            )
        if path := option.spelling.get("global_options"):
            LEAVES.setdefault(path, (option.choices or None, None))


#: What the tables above say themselves, for those who compare the catalogue with them.
ADAPTERS_OWN = ({(kind, argument) for kind, table in ARGUMENTS.items() for argument in table}, set(LEAVES))
_add_later_options()


class RefusedError(Exception):
    """What the real class would raise."""


def _recorder(name: str) -> type:
    table = ARGUMENTS[name]

    def init(self: Any, **given: Any) -> None:
        unknown = [argument for argument in given if argument not in table]
        missing = [argument for argument, (default, _, _) in table.items() if default is _REQUIRED and argument not in given]
        if unknown or missing:
            raise TypeError(f"{name}: unexpected {unknown}, missing {missing}")
        for argument, (default, _, _) in table.items():
            setattr(self, argument, given.get(argument, default))
            kind = NESTED.get(argument)
            if kind and argument in given and type(given[argument]).__name__ != kind:
                raise ValueError(f"{argument} must be a {kind}")
        self.given = given
        _check(self, name)

    return type(name, (), {"__init__": init})


def _check(made: Any, name: str) -> None:
    """Raise what the constructors of the adapter raise."""
    if name == "NPURunConfig":
        if type(made.iterations_per_loop) is not int or type(made.jit_compile) is not str or type(made.graph_run_mode) is not int:
            raise TypeError(name)
        if type(made.mix_compile_mode) is not bool or type(made.enable_exception_dump) is not int:
            raise TypeError(name)
        if made.iterations_per_loop < 1 or not 0 <= made.graph_run_mode <= 1 or made.enable_exception_dump < 0:
            raise ValueError(name)
        if made.mix_compile_mode and made.iterations_per_loop != 1:
            raise ValueError("mix_compile_mode with iterations_per_loop")
        if type(made.horovod_mode) is not bool:
            raise ValueError("horovod_mode")
    if name == "GraphMemoryOptimizeConfig":
        for value in (made.recompute, made.graph_slice):
            if value not in (None, "auto", "manual"):
                raise ValueError(name)


def written(config: Any) -> dict[str, Any]:
    """Return the parameter map that NPUEstimator writes for the arguments that were given, key to value.

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
    if dynamic is not None and None in (dynamic.input_shape, dynamic.dynamic_dims, dynamic.dynamic_node_type, dynamic.compile_hybrid_mode):
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
    """``npu.global_options()``: unknown names raise, values outside of the choices raise, groups cannot be assigned."""

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
        if choices is not None and not any(type(value) is type(choice) and value == choice for choice in choices):
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
        return next(given for called, given in reversed(self.calls) if called == name)


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
        "model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs", "session_config",
        "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps", "train_distribute", "device_fn", "protocol",
        "eval_distribute", "experimental_distribute", "experimental_max_worker_delay_secs", "session_creation_timeout_secs",
    )  # fmt: skip

    def __init__(self, **given: Any) -> None:
        unknown = [name for name in given if name not in self.FIELDS]
        if unknown:
            raise TypeError(f"RunConfig: unexpected {unknown}")
        self.given = given

    @property
    def session_config(self) -> Any:
        """The ConfigProto, None where none was given."""
        return self.given.get("session_config")

    def replace(self, **given: Any) -> RunConfig:
        """Return a copy with other values."""
        return RunConfig(**{**self.given, **given})


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
    for function in (npu_config_proto, npu_run_config_init, set_keras_session_npu_config, init_resource, shutdown_resource, close_session):
        setattr(npu_init, function.__name__, function)
    npu_init.npu_ops = types.SimpleNamespace(initialize_system=lambda name=None: "initialize", shutdown_system=lambda name=None: "shutdown")  # type: ignore[attr-defined]
    npu_config = types.ModuleType("npu_bridge.estimator.npu.npu_config")
    for name in ARGUMENTS:
        setattr(npu_config, name, _recorder(name))
    packages = ("npu_bridge", "npu_bridge.estimator", "npu_bridge.estimator.npu")
    return {**{name: types.ModuleType(name) for name in packages}, npu_init.__name__: npu_init, npu_config.__name__: npu_config}


@contextmanager
def adapter(tf: Any) -> Iterator[Journal]:
    """Put the stand-ins where rendered code imports them, and TF 1's own names into TensorFlow."""
    journal = Journal()
    device = types.ModuleType("npu_device")
    options = Options()
    device.global_options = lambda: options  # type: ignore[attr-defined]

    def opened(device_id: int | None = None) -> Any:
        journal.calls.append(("open", dict(options.assigned)))
        return types.SimpleNamespace(as_default=lambda: journal.calls.append(("as_default", device_id)))

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
    fake.compat = types.SimpleNamespace(as_bytes=tf.compat.as_bytes, v1=v1)  # type: ignore[attr-defined]
    fake.estimator = types.SimpleNamespace(RunConfig=RunConfig)  # type: ignore[attr-defined]
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


def execute(source: str, file: str = "rendered.py", names: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Run rendered source as a module; return what it defines."""
    module: dict[str, Any] = {"__name__": "rendered", "__file__": file, **(names or {})}
    exec(compile(source, file, "exec", dont_inherit=True), module)
    return module


def parameter_map(config: Any) -> dict[str, tuple[str, Any]]:
    """Return the parameter map of the NpuOptimizer entries of a ConfigProto: key to field and value."""
    found: dict[str, tuple[str, Any]] = {}
    for entry in config.graph_options.rewrite_options.custom_optimizers:
        if entry.name == "NpuOptimizer":
            for key, value in entry.parameter_map.items():
                field = value.WhichOneof("value")
                found[key] = (field, getattr(value, field))
    return found
