"""TensorFlow 1.15 estimators: NPURunConfig with its nested config objects."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.model import Finding, NpuprofError
from npuprof.renderers import Rendered, Target
from npuprof.renderers.common import document, fits, left_out, not_carried, section, sidecars, unfit, wire
from npuprof.renderers.python import HERE, call, literal
from npuprof.renderers.quirks import companions, finding
from npuprof.renderers.session import parameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config

_CLASSES = {
    "profiling_config": "ProfilingConfig",
    "dump_config": "DumpConfig",
    "memory_config": "MemoryConfig",
    "dynamic_input_config": "DynamicInputConfig",
    "experimental_config": "ExperimentalConfig",
    "graph_memory_optimize_config": "GraphMemoryOptimizeConfig",
}
#: What DynamicInputConfig cannot be made without; only the last, which old releases do not take, has a value that changes nothing.
_DYNAMIC = ("input_shape", "dynamic_dims", "dynamic_node_type", "compile_hybrid_mode")
_LAST = _DYNAMIC[-1]
_ALWAYS = "NPUEstimator writes it by itself in every run"
_LOST = {
    "job": f"{_ALWAYS}, from TF_CONFIG.",
    "task_index": f"{_ALWAYS}, from TF_CONFIG.",
    "use_off_line": f"{_ALWAYS}, as true.",
    "compress_weight_conf": "NPUEstimator always writes enable_compress_weight, and the adapter kills a process that has both.",
}
_BYTES = ("insert_op_file",)  # stored as it is given: text raises TypeError
_MODULE = '''\

{os}import tensorflow as tf
{imports}from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig


def run_config(session_config=None, **more):
    """Return an NPURunConfig; more of its arguments may be given, none of them twice."""
    if session_config is None:
        session_config = tf.compat.v1.ConfigProto()
    rewrite_options = session_config.graph_options.rewrite_options
{parameters}    rewrite_options.remapping = RewriterConfig.OFF
    rewrite_options.memory_optimization = RewriterConfig.OFF
{remarks}{call}
'''
_INLINE = """\
{os}{parameters}session_config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
session_config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
{remarks}{call}
"""


def estimator(config: Config, inline: bool) -> Rendered:
    """Return the module with ``run_config(session_config=None)``, or the bare lines."""
    arguments, beside = _arguments(config)
    remarks, findings = companions(config, "estimator")
    indent = "" if inline else "    "
    used = sorted({_CLASSES[part] for path in arguments for part in path[:-1]})
    given = ["session_config=session_config", *_nested(config, _tree(config, arguments)), *_own(config)]
    if not inline:
        given.append("**more")
    made = call(("config = NPURunConfig(" if inline else "return NPURunConfig(", given, ")"), indent)
    body = (_INLINE if inline else _MODULE).format(
        os="import os\n\n" if sidecars(config) else "",
        imports=_imports(["NPURunConfig", *used]),
        parameters=_session(config, beside, inline),
        remarks="".join(f"{indent}# {remark}\n" for remark in remarks),
        call="\n".join(made),
    )
    notes = left_out(config, "env", "atc")
    return Rendered(
        document(config, "estimator", body),
        dict(sidecars(config).values()),
        notes,
        (*findings, *_defaults(config), *_beside(config, beside)),
    )


def _arguments(config: Config) -> tuple[dict[tuple[str, ...], str], list[str]]:
    """Return the options by their path below NPURunConfig, and those only session_config can hold.

    Raises NpuprofError for options that NPUEstimator loses.
    """
    found: dict[tuple[str, ...], str] = {}
    beside: list[str] = []
    lost: list[str] = []
    for name, value in section(config, "options").items():
        option = catalog.option(name)
        if option is None or (name in _LOST and not (name == "use_off_line" and value is True)):
            lost.append(name)
        elif "run_config" in option.spelling:
            found[_path(option.spelling["run_config"])] = name
        elif option.field is None or option.states.endswith("."):
            lost.append(name)
        else:
            beside.append(name)
    if lost:
        raise not_carried(config, lost, "estimator", _LOST)
    return found, beside


def _tree(config: Config, arguments: dict[tuple[str, ...], str]) -> dict[str, Any]:
    """Return the arguments nested as the classes are, each leaf the name of its option."""
    tree: dict[str, Any] = {}
    for path, name in arguments.items():
        at = tree
        for part in path[:-1]:
            at = at.setdefault(part, {})
        at[path[-1]] = name
    dynamic = tree.get("dynamic_input_config")
    if dynamic is not None:
        missing = [name for name in _DYNAMIC[:3] if name not in dynamic]
        if missing:
            key = next(iter(dynamic.values()))
            why = "DynamicInputConfig takes four arguments, and NPUEstimator drops all of them where one is None."
            what = f"{key} needs {', '.join(missing)} beside it"
            raise NpuprofError([Finding("NP908", "error", what, why, "set them as well", config.origin(key), key, (config.name,))])
        taken = _DYNAMIC if _LAST in dynamic or not _all_before(config) else _DYNAMIC[:3]
        tree["dynamic_input_config"] = {name: dynamic.get(name) for name in taken}
    return tree


def _states(config: Config) -> set[str]:
    """Return whether DynamicInputConfig has its fourth argument in the releases in question: ``Y``, ``.`` or ``?``."""
    option = catalog.option(_LAST)
    asked = config.context.cann
    named = (asked,) if asked else releases.within(config.cann) or () if config.cann else ()
    return {option.states[releases.index(name)] for name in named} if option else set()


def _all_before(config: Config) -> bool:
    return _states(config) == {"."}


def _nested(config: Config, tree: dict[str, Any]) -> list[Any]:
    """Return the arguments as ``python.call`` takes them."""
    options = section(config, "options")
    return [
        (f"{argument}={_CLASSES[argument]}(", _nested(config, inner), ")")
        if isinstance(inner, dict)
        else f"{argument}=0"  # the one argument that has to be given although the preset does not
        if inner is None
        else _leaf(config, argument, inner, options[inner])
        for argument, inner in tree.items()
    ]


def _leaf(config: Config, argument: str, name: str, value: Any) -> Any:
    if isinstance(value, (dict, list)):
        files = sidecars(config)
        if name in files:
            return f"{argument}=os.path.join(", f"{HERE}, {literal(files[name][0])}", ")"
        value = wire(name, value)
    option = catalog.option(name)
    assert option is not None
    if not (fits(option, value) if option.field else isinstance(value, bool)):
        raise NpuprofError([unfit(config, name, "estimator")])
    return _argument(argument, name, value)


@lru_cache(4096, typed=True)
def _argument(argument: str, name: str, value: str | int) -> Any:
    if name in _BYTES:
        return f"{argument}=tf.compat.as_bytes(", literal(value), ")"
    return f"{argument}={literal(value)}"


@cache
def _path(spelling: str) -> tuple[str, ...]:
    return tuple(spelling.split("."))


def _own(config: Config) -> list[str]:
    """Return the arguments that stand below [estimator]."""
    lines = []
    for name, value in section(config, "estimator").items():
        record = catalog.argument(name)
        if record is None or record.kind == "object" or not isinstance(value, (str, int, float)):
            key = f"estimator.{name}"
            what = f"{key} cannot be carried by the target estimator"
            why = "NPURunConfig has no such argument." if record is None else "A preset cannot hold what the argument takes."
            hint = "give it to run_config() in the script" if record else "npuprof options lists what there is"
            raise NpuprofError([Finding("NP901", "error", what, why, hint, config.origin(key), key, (config.name,))])
        lines.append(f"{name}={literal(value)}")
    return lines


def _session(config: Config, beside: list[str], inline: bool) -> str:
    if not beside:
        return ""
    root = "session_config.graph_options.rewrite_options" if inline else "rewrite_options"
    indent = "" if inline else "    "
    head = f'{indent}custom_op = {root}.custom_optimizers.add()\n{indent}custom_op.name = "NpuOptimizer"\n'
    return head + parameters(config, beside, indent, "estimator")


def _imports(names: list[str]) -> str:
    module = "npu_bridge.estimator.npu.npu_config"
    if len(names) == 1:
        return f"from {module} import {names[0]}\n"
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in sorted(names)) + ")\n"


def _beside(config: Config, beside: list[str]) -> tuple[Finding, ...]:
    if not beside:
        return ()
    what = f"{', '.join(beside)} goes through session_config: NPURunConfig has no such argument"
    why = "NPUEstimator adds an entry of its own after it, whose values win for every key that both hold."
    return (finding(config, "NP909", "info", beside[0], what, why, ""),)


def _defaults(config: Config) -> tuple[Finding, ...]:
    found: list[Finding] = []
    if "enable_data_pre_proc" not in config.settings:
        what = "NPUEstimator sets enable_data_pre_proc = true, which a session leaves off"
        why = "It writes its own default for every argument that is not given."
        found.append(finding(config, "NP909", "info", "enable_data_pre_proc", what, why, "set enable_data_pre_proc if it matters"))
    if "dynamic_dims" in config.settings and _LAST not in config.settings and not _states(config) <= {"Y"} and not _all_before(config):
        what = f"DynamicInputConfig is given {_LAST}=0, which newer releases insist on and older ones do not take"
        why = "CANN 7.0.0 and before raise TypeError for a fourth argument, 9.0.0 and later for a missing one; those between are not known."
        hint = "render with --cann RELEASE; where the release raises TypeError, take the argument out"
        found.append(finding(config, "NP909", "info", "dynamic_dims", what, why, hint))
    if "env.AOE_MODE" in config.settings and "aoe_mode" not in config.settings:
        for name in ("work_path", "distribute_config"):
            if name in config.settings:
                what = f"{name} is lost: NPUEstimator passes it on only beside the argument aoe_mode"
                found.append(finding(config, "NP910", "warning", name, what, "AOE_MODE in the environment does not count.", "set aoe_mode"))
    return tuple(found)


TARGETS = {
    "estimator": Target("TF 1.15: NPURunConfig with its nested configs", "estimator.py", estimator),
}
