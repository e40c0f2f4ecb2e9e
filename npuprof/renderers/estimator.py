"""TensorFlow 1.15 estimators: NPURunConfig with its nested config objects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.document.keys import format_toml_value
from npuprof.model import Finding, NpuprofError, TomlTable
from npuprof.renderers import (
    Rendered,
    Target,
    build_render_finding,
    build_setting_finding,
    build_uncarried_finding,
    build_unfit_finding,
    collect_sidecars,
    encode_fitting_value,
    finish_code,
    reject_lost_options,
)
from npuprof.renderers.python_source import SCRIPT_FOLDER, format_call, format_literal
from npuprof.renderers.session import find_companion_lines, format_parameter_map
from npuprof.report import format_option
from npuprof.resolve.config import Config

#: Options by their path below NPURunConfig.
Paths = dict[tuple[str, ...], str]
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
{notes}{call}
'''
_INLINE = """\
{os}from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

{parameters}session_config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
session_config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
{notes}{call}
"""


@cache
def _class_names() -> dict[str, str]:
    """Return the class of each object argument, by the last name of the argument."""
    names: dict[str, str] = {}
    for name, config_class in catalog.load_config_classes().items():
        names.setdefault(config_class.taken_as, name)
    return names


@cache
def _dynamic_arguments() -> tuple[str, ...]:
    """Return the required arguments of DynamicInputConfig.

    Only the last, which old releases lack, may be 0.
    """
    return catalog.load_config_classes()["DynamicInputConfig"].positional


def render_estimator(config: Config, inline: bool) -> Rendered:
    """Return the module with ``run_config(session_config=None)``, or the bare lines."""
    paths, session_options = _collect_run_arguments(config)
    notes, findings = find_companion_lines(config)
    indent = "" if inline else "    "
    used = sorted({_class_names()[part] for path in paths for part in path[:-1]})
    arguments = ["session_config=session_config", *_list_arguments(config, paths)]
    head = "config = NPURunConfig("
    if not inline:
        arguments.append("**more")
        head = "return NPURunConfig("
    call = format_call((head, arguments, ")"), indent)
    body = (_INLINE if inline else _MODULE).format(
        os="import os\n\n" if collect_sidecars(config) else "",
        imports=_format_config_imports(["NPURunConfig", *used]),
        parameters=_format_session_entry(config, session_options, inline),
        notes="".join(f"{indent}# {note}\n" for note in notes),
        call="\n".join(call),
    )
    findings = (
        *findings,
        *_check_estimator_defaults(config),
        *_check_session_options(config, session_options),
    )
    return finish_code(config, "estimator", body, *findings)


def write_arguments_onto(config: Config, onto: str) -> Rendered:
    """Return only a table of the arguments, for an existing call: ``NPURunConfig(..., **onto)``."""
    paths, session_options = _collect_run_arguments(config)
    reject_lost_options(config, dict.fromkeys(session_options, ""), "estimator")
    lines = ["import os", ""] if collect_sidecars(config) else []
    lines += format_call((f"{onto} = dict(", _list_arguments(config, paths), ")"))
    return finish_code(config, "estimator", "\n".join([*lines, ""]))


def _collect_run_arguments(config: Config) -> tuple[Paths, list[str]]:
    """Return the options by path below NPURunConfig, and those that only session_config supports.

    Raises NpuprofError for options that NPUEstimator drops.
    """
    names_by_path = {}
    session_options = []
    lost = {}
    options = config.shared_sections["options"]
    *sizes, hybrid = _dynamic_arguments()
    # no object accepts hybrid mode without the sizes
    is_hybrid_alone = options.get(hybrid) == 0 and options.keys().isdisjoint(sizes)
    for name, value in options.items():
        option = catalog.find_option(name)
        if option is None:
            lost[name] = ""
        elif "run_config" in option.not_carried and not option.is_always("run_config", value):
            lost[name] = option.not_carried["run_config"]
        elif "run_config" in option.spelling and not (is_hybrid_alone and name == hybrid):
            names_by_path[tuple(option.spelling["run_config"].split("."))] = name
        elif option.field is None or option.states.endswith("."):
            lost[name] = ""
        else:
            session_options.append(name)
    reject_lost_options(config, lost, "estimator")
    return names_by_path, session_options


def _build_argument_tree(config: Config, arguments: Paths) -> TomlTable:
    """Return the arguments nested like the classes, each leaf the name of its option."""
    tree: TomlTable = {}
    for path, name in arguments.items():
        table = tree
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = name
    dynamic = tree.get("dynamic_input_config")
    if dynamic is not None:
        *required, hybrid = _dynamic_arguments()
        missing = [name for name in required if name not in dynamic]
        if missing:
            key = next(iter(dynamic.values()))
            why = (
                "DynamicInputConfig takes four arguments, and "
                "NPUEstimator drops all of them where one is None."
            )
            what = f"{key} also needs {', '.join(missing)}"
            raise NpuprofError(
                build_setting_finding(config, "NP908", key, what, why, "set them as well")
            )
        names = [*required, hybrid]
        # releases without the argument raise TypeError for it
        if hybrid not in dynamic and _find_hybrid_mode_states(config) == {"."}:
            names = required
        tree["dynamic_input_config"] = {name: dynamic.get(name) for name in names}
    return tree


def _find_hybrid_mode_states(config: Config) -> set[str]:
    """Return the states of DynamicInputConfig's fourth argument in the releases: ``Y.?``."""
    option = catalog.find_option(_dynamic_arguments()[-1])
    covered = releases.list_covered_releases(config.context.cann, config.cann)
    return {option.states[releases.release_index(name)] for name in covered} if option else set()


def _build_nested_arguments(config: Config, tree: TomlTable) -> list[Any]:
    """Return the arguments in the form of ``python_source.format_call``."""
    options = config.shared_sections["options"]
    arguments: list[Any] = []
    for argument, inner in tree.items():
        if isinstance(inner, dict):
            head = f"{argument}={_class_names()[argument]}("
            arguments.append((head, _build_nested_arguments(config, inner), ")"))
        elif inner is None:  # hybrid mode is required even if the preset does not set it
            arguments.append(f"{argument}=0")
        else:
            arguments.append(_build_argument_leaf(config, argument, inner, options[inner]))
    return arguments


def _build_argument_leaf(config: Config, argument: str, name: str, value: Any) -> Any:
    files = collect_sidecars(config)
    if name in files:
        return (
            f"{argument}=os.path.join(",
            f"{SCRIPT_FOLDER}, {format_literal(files[name][0])}",
            ")",
        )
    option = catalog.find_option(name)
    assert option is not None
    if option.field:
        value = encode_fitting_value(config, option, value, "estimator")
    elif not isinstance(value, bool):
        raise NpuprofError(build_unfit_finding(config, name, "estimator"))
    if option.estimator_bytes:
        return f"{argument}=tf.compat.as_bytes(", format_literal(value), ")"
    return f"{argument}={format_literal(value)}"


def _list_arguments(config: Config, paths: Paths) -> list[Any]:
    """Return the arguments of options, by path below NPURunConfig, and those in [estimator]."""
    lines = _build_nested_arguments(config, _build_argument_tree(config, paths))
    for name, value in config.shared_sections["estimator"].items():
        record = catalog.find_argument(name)
        if record is None or record.kind == "object" or not isinstance(value, (str, int, float)):
            key = f"estimator.{name}"
            why = (
                "NPURunConfig has no such argument."
                if record is None
                else "A preset cannot contain the type of the argument."
            )
            hint = (
                "give it to run_config() in the script"
                if record
                else "npuprof options lists the options"
            )
            raise NpuprofError(build_uncarried_finding(config, key, "estimator", why, hint))
        lines.append(f"{name}={format_literal(value)}")
    return lines


def _format_session_entry(config: Config, session_options: list[str], inline: bool) -> str:
    if not session_options:
        return ""
    root = "session_config.graph_options.rewrite_options" if inline else "rewrite_options"
    indent = "" if inline else "    "
    head = (
        f"{indent}custom_op = {root}.custom_optimizers.add()\n"
        f'{indent}custom_op.name = "NpuOptimizer"\n'
    )
    return head + format_parameter_map(config, session_options, indent, "estimator")


def _format_config_imports(names: list[str]) -> str:
    module = "npu_bridge.estimator.npu.npu_config"
    if len(names) == 1:
        return f"from {module} import {names[0]}\n"
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in sorted(names)) + ")\n"


def _check_session_options(config: Config, session_options: list[str]) -> Iterator[Finding]:
    if session_options:
        what = (
            f"{', '.join(session_options)} goes through "
            "session_config: NPURunConfig has no such argument"
        )
        why = (
            "NPUEstimator adds an entry of its own after it, "
            "whose values win for every key that both hold."
        )
        yield build_render_finding(config, "NP909", session_options[0], what, why, "")


@cache
def _list_special_options() -> tuple[catalog.Option, ...]:
    """Return the options with a default of NPUEstimator, and those that need another argument."""
    return tuple(
        option
        for option in catalog.list_records(catalog.Option)
        if option.estimator_default is not None or option.needs_argument
    )


def _check_estimator_defaults(config: Config) -> Iterator[Finding]:
    for option in _list_special_options():
        if option.estimator_default is not None and option.name not in config.settings:
            what = (
                f"NPUEstimator sets {option.name} = "
                f"{format_toml_value(option.estimator_default)}, which a session leaves off"
            )
            why = "It writes its own default for every argument that is not given."
            yield build_render_finding(
                config, "NP909", option.name, what, why, f"set {option.name} if it matters"
            )
    _, dims, _, newest = _dynamic_arguments()
    if dims in config.settings and newest not in config.settings:
        yield from _check_hybrid_mode(config, dims, newest)
    for option in _list_special_options():
        needed = option.needs_argument
        if needed and option.name in config.settings and needed not in config.settings:
            for variable in catalog.load_equivalent_variables().get(needed, ()):
                if f"env.{variable}" in config.settings:
                    what = (
                        f"{option.name} is lost: NPUEstimator passes "
                        f"it on only with the argument {needed}"
                    )
                    why = f"{variable} in the environment does not count."
                    yield build_render_finding(
                        config, "NP910", option.name, what, why, f"set {needed}"
                    )


def _check_hybrid_mode(config: Config, dims: str, newest: str) -> Iterator[Finding]:
    """Yield the finding for a fourth argument of DynamicInputConfig that a release may reject."""
    states = _find_hybrid_mode_states(config)
    if not states <= {"Y"} and states != {"."}:
        what = (
            f"DynamicInputConfig is given {newest}=0, which newer "
            "releases insist on and older ones do not take"
        )
        why = (
            "CANN 7.0.0 and before raise TypeError for a fourth argument, 9.0.0 and later for a "
            "missing one; those between are not known."
        )
        release = format_option("cann", "RELEASE", config.resolver.in_python)
        hint = f"render with {release}; where the release raises TypeError, take the argument out"
        yield build_render_finding(config, "NP909", dims, what, why, hint)


TARGETS = {
    "estimator": Target(
        place=40,
        summary="TF 1.15: `NPURunConfig(...)` with its nested configs",
        file="estimator.py",
        write=render_estimator,
        surface="run_config",
        sections=("options", "estimator"),
        write_onto=write_arguments_onto,
    ),
}
