"""Stand-ins for the vendor's classes that only judge: what they take and what they refuse, apart from the catalogue.

The tables were made from the adapter's sources and pages, not from the catalogue: an option's protobuf field, the values the adapter
knows, the ends of its range and its documented format; for arguments also what NPUEstimator does with None.
"""

from __future__ import annotations

import json
import re
from typing import Any

from support.recorders import ADAPTERS_OWN, ARGUMENTS, LEAVES, NESTED

#: For each option the adapter reads: its protobuf field, its values (none: any of the type), the lowest and the highest, its format.
SESSION: dict[str, tuple[str, tuple[Any, ...], int | None, int | None, str]] = {
    "graph_run_mode": ("i", (0, 1), None, None, ""),
    "session_device_id": ("i", (), 0, None, ""),
    "deterministic": ("i", (0, 1), None, None, ""),
    "atomic_clean_policy": ("i", (0, 1), None, None, ""),
    "static_memory_policy": ("i", (0, 2, 3, 4), None, None, ""),
    "variable_use_1g_huge_page": ("i", (0, 1, 2), None, None, ""),
    "external_weight": ("b", (), None, None, ""),
    "input_fusion_size": ("i", (), 0, 33554432, ""),
    "input_batch_cpy": ("b", (), None, None, ""),
    "input_shape": ("s", (), None, None, "^[^:;,\\s]+:(?:-1|[0-9]+)(?:,(?:-1|[0-9]+))*(?:;[^:;,\\s]+:(?:-1|[0-9]+)(?:,(?:-1|[0-9]+))*)*$"),
    "dynamic_dims": ("s", (), None, None, "^[0-9]+(?:,[0-9]+)*(?:;[0-9]+(?:,[0-9]+)*)+$"),
    "dynamic_node_type": ("i", (0, 1), None, None, ""),
    "compile_hybrid_mode": ("i", (0, 1), None, None, ""),
    "ac_parallel_enable": ("s", ("0", "1"), None, None, ""),
    "compile_dynamic_mode": ("b", (), None, None, ""),
    "all_tensor_not_empty": ("b", (), None, None, ""),
    "mix_compile_mode": ("b", (), None, None, ""),
    "in_out_pair_flag": ("b", (), None, None, ""),
    "in_out_pair": (
        "s",
        (),
        None,
        None,
        "^\\[\\[\\['[^',\\[\\]]+'(?:, ?'[^',\\[\\]]+')*\\], ?\\['[^',\\[\\]]+'(?:, ?'[^',\\[\\]]+')*\\]\\]\\]$",
    ),
    "enable_exception_dump": ("i", (0, 1, 2), None, None, ""),
    "op_debug_config": ("s", (), None, None, ""),
    "debug_dir": ("s", (), None, None, ""),
    "export_compile_stat": ("i", (0, 1, 2), None, None, ""),
    "precision_mode_v2": (
        "s",
        ("fp16", "origin", "cube_fp16in_fp32out", "mixed_float16", "mixed_bfloat16", "mixed_hif8", "cube_hif8"),
        None,
        None,
        "",
    ),
    "precision_mode": (
        "s",
        (
            "allow_fp32_to_fp16",
            "force_fp16",
            "force_fp32",
            "cube_fp16in_fp32out",
            "must_keep_origin_dtype",
            "allow_mix_precision",
            "allow_mix_precision_fp16",
            "allow_mix_precision_bf16",
            "allow_fp32_to_bf16",
        ),
        None,
        None,
        "",
    ),
    "modify_mixlist": ("s", (), None, None, ""),
    "customize_dtypes": ("s", (), None, None, ""),
    "enable_dump": ("b", (), None, None, ""),
    "dump_mode": ("s", ("input", "output", "all"), None, None, ""),
    "enable_dump_debug": ("b", (), None, None, ""),
    "dump_debug_mode": ("s", ("aicore_overflow", "atomic_overflow", "all"), None, None, ""),
    "dump_path": ("s", (), None, None, ""),
    "dump_step": ("s", (), None, None, "^[0-9]+(?:-[0-9]+)?(?:\\|[0-9]+(?:-[0-9]+)?){0,99}$"),
    "dump_data": ("s", ("tensor", "stats"), None, None, ""),
    "dump_layer": ("s", (), None, None, "^\\S+(?: \\S+)*$"),
    "quant_dumpable": ("s", ("0", "1"), None, None, ""),
    "fusion_switch_file": ("s", (), None, None, ""),
    "buffer_optimize": ("s", ("l2_optimize", "off_optimize"), None, None, ""),
    "use_off_line": ("b", (), None, None, ""),
    "iterations_per_loop": ("i", (), 1, None, ""),
    "hcom_parallel": ("b", (), None, None, ""),
    "enable_small_channel": ("i", (0, 1), None, None, ""),
    "op_precision_mode": ("s", (), None, None, ""),
    "enable_scope_fusion_passes": ("s", (), None, None, "^[A-Za-z0-9_]+(?:,[A-Za-z0-9_]+)*$"),
    "stream_max_parallel_num": ("s", (), None, None, "^[A-Za-z_][A-Za-z0-9_]*:[1-9][0-9]*(?:,[A-Za-z_][A-Za-z0-9_]*:[1-9][0-9]*)*$"),
    "is_tailing_optimization": ("b", (), None, None, ""),
    "variable_placement": ("s", ("Device", "Host"), None, None, ""),
    "frozen_variable": ("b", (), None, None, ""),
    "graph_max_parallel_model_num": ("i", (), 1, 2147483647, ""),
    "profiling_mode": ("b", (), None, None, ""),
    "profiling_options": ("s", (), None, None, ".json"),
    "aoe_mode": ("s", ("1", "2", "4"), None, None, ""),
    "work_path": ("s", (), None, None, ""),
    "aoe_config_file": ("s", (), None, None, ""),
    "op_compiler_cache_mode": ("s", ("enable", "force", "disable"), None, None, ""),
    "op_compiler_cache_dir": ("s", (), None, None, ""),
    "aicore_num": ("s", (), None, None, "^[1-9][0-9]*\\|[1-9][0-9]*$"),
    "oo_constant_folding": ("b", (), None, None, ""),
    "local_rank_id": ("i", (), 0, 7, ""),
    "local_device_list": ("s", (), None, None, "^[0-9]+(?:,[0-9]+)*$"),
    "hccl_timeout": ("i", (), 0, 2147483647, ""),
    "op_wait_timeout": ("i", (), None, None, ""),
    "op_execute_timeout": ("i", (), None, None, ""),
    "stream_sync_timeout": ("i", (), -1, 2147483647, ""),
    "event_sync_timeout": ("i", (), -1, 2147483647, ""),
    "graph_compiler_cache_dir": ("s", (), None, None, ""),
    "jit_compile": ("s", ("auto", "true", "false"), None, None, ""),
    "shape_generalization_mode": ("s", ("STRICT", "FULL", "ADAPTIVE"), None, None, ""),
    "experimental_accelerate_train_mode": (
        "s",
        (),
        None,
        None,
        "^fast1?\\|(?:step\\|(?:0\\.[2-8][0-9]*|0\\.90*)|loss\\|(?:1\\.0[1-9][0-9]*|1\\.[1-4][0-9]*|1\\.50*))$",
    ),
    "auto_multistream_parallel_mode": ("s", (), None, None, "^(?:cv|(?:LoadBalance|MainStream):(?:[1-9]|[1-5][0-9]|6[0-4]))$"),
    "op_debug_level": ("i", (0, 1, 2, 3, 4), None, None, ""),
    "enable_data_pre_proc": ("b", (), None, None, ""),
    "variable_format_optimize": ("b", (), None, None, ""),
    "op_select_implmode": (
        "s",
        ("high_precision", "high_performance", "high_precision_for_all", "high_performance_for_all"),
        None,
        None,
        "",
    ),
    "optypelist_for_implmode": ("s", (), None, None, "^[A-Za-z0-9_]+(?:,[A-Za-z0-9_]+)*$"),
    "dynamic_input": ("b", (), None, None, ""),
    "dynamic_graph_execute_mode": ("s", ("dynamic_execute", "lazy_recompile"), None, None, ""),
    "dynamic_inputs_shape_range": (
        "s",
        (),
        None,
        None,
        "^(?:getnext|data):(?:\\[\\]|\\[ *(?:-1|[0-9]+(?:~[0-9]+)?) *(?:, *(?:-1|[0-9]+(?:~[0-9]+)?) *)*\\])(?:,("
        "?:\\[\\]|\\[ *(?:-1|[0-9]+(?:~[0-9]+)?) *(?:, *(?:-1|[0-9]+(?:~[0-9]+)?) *)*\\]))*(?:;(?:getnext|data):("
        "?:\\[\\]|\\[ *(?:-1|[0-9]+(?:~[0-9]+)?) *(?:, *(?:-1|[0-9]+(?:~[0-9]+)?) *)*\\])(?:,(?:\\[\\]|\\[ *(?:-1|[0"
        "-9]+(?:~[0-9]+)?) *(?:, *(?:-1|[0-9]+(?:~[0-9]+)?) *)*\\]))*)?$",
    ),
    "graph_memory_max_size": ("s", (), None, None, "^[0-9]+$"),
    "variable_memory_max_size": ("s", (), None, None, "^[0-9]+$"),
    "auto_tune_mode": ("s", (), None, None, ""),
    "hcom_multi_mode": ("b", (), None, None, ""),
    "enable_compress_weight": ("b", (), None, None, ""),
    "compress_weight_conf": ("s", (), None, None, ""),
    "device_type": ("s", (), None, None, ""),
    "soc_config": ("s", (), None, None, ""),
    "HCCL_algorithm": ("s", (), None, None, ""),
    "graph_exec_timeout": ("i", (), None, None, ""),
    "memory_optimization_policy": ("s", (), None, None, ""),
    "experimental_logical_device_cluster_deploy_mode": ("s", (), None, None, ""),
    "experimental_logical_device_id": ("s", (), None, None, ""),
    "experimental_model_deploy_mode": ("s", (), None, None, ""),
    "experimental_model_deploy_devicelist": ("s", (), None, None, ""),
    "topo_sorting_mode": ("i", (), 0, 3, ""),
    "insert_op_file": ("s", (), None, None, ""),
    "resource_config_path": ("s", (), None, None, ""),
    "graph_parallel_option_path": ("s", (), None, None, ""),
    "enable_graph_parallel": ("b", (), None, None, ""),
    "graph_slice": ("s", ("auto", "manual"), None, None, ""),
    "oo_level": ("s", ("O1", "O3"), None, None, ""),
    "optimization_switch": ("s", (), None, None, ""),
    "distribute_config": ("s", (), None, None, ""),
    "job": ("s", (), None, None, ""),
    "task_index": ("i", (), 0, None, ""),
    "lower_functional_ops": ("b", (), None, None, ""),
    "const_input": ("s", (), None, None, r"[^\s,]+(?:,[^\s,]+)*"),
}

#: Arguments that are stored without asking whether they are None.
STORED = {
    "NPURunConfig": [
        "deterministic",
        "device_type",
        "enable_compress_weight",
        "enable_data_pre_proc",
        "enable_exception_dump",
        "enable_reduce_precision",
        "enable_small_channel",
        "event_sync_timeout",
        "external_weight",
        "frozen_variable",
        "graph_run_mode",
        "hcom_multi_mode",
        "hcom_parallel",
        "input_fusion_size",
        "is_tailing_optimization",
        "iterations_per_loop",
        "jit_compile",
        "mix_compile_mode",
        "stream_sync_timeout",
        "variable_placement",
    ],
    "ProfilingConfig": ["enable_profiling"],
    "MemoryConfig": ["atomic_clean_policy"],
    "DumpConfig": ["enable_dump", "enable_dump_debug", "dump_debug_mode"],
}
#: Arguments whose type the class itself looks at, exactly; those that become text by ``str()``; those RunConfig compares with 0.
EXACT = {"mix_compile_mode": bool, "horovod_mode": bool, "jit_compile": str}
TEXTS = ("graph_memory_max_size", "variable_memory_max_size")
NUMBERS = {
    "save_summary_steps": 0, "save_checkpoints_steps": 0, "save_checkpoints_secs": 0, "keep_checkpoint_max": 0,
    "keep_checkpoint_every_n_hours": 1, "log_step_count_steps": 1,
}  # fmt: skip
#: Attributes of TF 2 whose class takes None beside its choices.
NONE_TOO = ("topo_sorting_mode",)
#: What the C++ lets pass beyond the documented values: a negative graph_run_mode is not rejected, 1 counts as 2.
LET_PASS: dict[str, tuple[Any, ...]] = {"graph_run_mode": (-1,), "static_memory_policy": (1,), "aicore_num": ("1",)}
#: The adapter aborts, because the estimator always writes enable_compress_weight beside it.
ABORTS = ("compress_weight_conf",)


def takes_field(field: str, value: Any) -> bool:
    """Return whether protobuf stores a value in a field: bytes, whole numbers and truth values; never None."""
    if field == "s":
        return isinstance(value, bytes)
    return isinstance(value, int) and -(2**63) <= value < 2**63


def takes_parameter(name: str, field: str, value: Any) -> bool:
    """Return whether a line ``parameter_map[name].field = value`` does what it says."""
    if name not in SESSION or SESSION[name][0] != field or not takes_field(field, value):
        return False
    return _is_known_value(name, value.decode() if isinstance(value, bytes) else value)


def _is_known_value(name: str, value: Any) -> bool:
    _, choices, low, high, form = SESSION[name]
    if choices:
        return value in choices or value in LET_PASS.get(name, ())
    if isinstance(value, str) and form and value not in LET_PASS.get(name, ()):
        return _is_json_object(value) if form == ".json" else re.fullmatch(form, value) is not None
    return not isinstance(value, int) or ((low is None or value >= low) and (high is None or value <= high))


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def takes_argument(cls: str, name: str, value: Any) -> bool:
    """Return whether a class of NPURunConfig, and NPUEstimator after it, go on with an argument."""
    if (cls, name) not in ADAPTERS_OWN[0]:
        return False
    _, key, field = ARGUMENTS[cls][name]
    if value is None:
        return name not in EXACT and name not in STORED.get(cls, ())
    if name in ABORTS or (name == "graph_run_mode" and value == -1):
        return False
    if (cls, name) == ("GraphMemoryOptimizeConfig", "recompute"):
        return value in ("auto", "manual")
    if name in EXACT and type(value) is not EXACT[name]:
        return False
    if name in NESTED or name == "session_config":
        return False  # whatever is not of the class
    if name in TEXTS and isinstance(value, (int, str)):
        return _is_known_value(name, str(value))
    if name in NUMBERS:
        return isinstance(value, (int, float)) and value > NUMBERS[name] - 1
    if name == "model_dir":
        return isinstance(value, str)
    if not key:
        return name != "tf_random_seed" or isinstance(value, int)
    if field == "s":
        if not isinstance(value, (bytes,) if name == "insert_op_file" else (str, bytes)):
            return False
        return key not in SESSION or _is_known_value(key, value.decode() if isinstance(value, bytes) else value)
    return takes_field(field, value) and (key not in SESSION or field == "b" or _is_known_value(key, value))


def takes_attribute(path: str, value: Any) -> bool:
    """Return whether ``global_options()`` takes a value: what Python calls equal to one of the choices, or anything without choices."""
    if path not in ADAPTERS_OWN[1]:
        return False
    choices = LEAVES[path][0]
    return choices is None or value in choices or (value is None and path in NONE_TOO)
