"""TensorFlow 1.15: a ConfigProto whose NpuOptimizer carries the options in its parameter map."""

from __future__ import annotations

from npuprof import catalog
from npuprof.errors import NpuprofError
from npuprof.renderers import Rendered, Target
from npuprof.renderers.common import document, fits, left_out, not_carried, sidecars, unfit, wire
from npuprof.renderers.python import HERE, literal, statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from npuprof.config import Config
    from npuprof.model import Finding

_TF = "import tensorflow as tf\n"
_REWRITER = "from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig\n"
_HEAD = '''\
def session_config(config=None):
    """{doc}"""
    if config is None:
        config = tf.compat.v1.ConfigProto()
    rewrite_options = config.graph_options.rewrite_options
    for custom_op in rewrite_options.custom_optimizers:
        if custom_op.name == "NpuOptimizer":
            break
    else:
        custom_op = rewrite_options.custom_optimizers.add()
        custom_op.name = "NpuOptimizer"
'''
_TAIL = """\
    rewrite_options.remapping = RewriterConfig.OFF
    rewrite_options.memory_optimization = RewriterConfig.OFF
    return {result}
"""
_INLINE_HEAD = """\
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
"""
_INLINE_TAIL = """\
config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
"""


def parameters(config: Config, names: Iterable[str], indent: str, target: str) -> str:
    """Return the parameter-map lines of options, in the order of ``names``.

    Raises NpuprofError for options that no protobuf field can hold.
    """
    files = sidecars(config)
    options = config.options
    lines: list[str] = []
    lost: list[str] = []
    for name in names:
        option = catalog.option(name)
        if option is None or option.field is None:
            lost.append(name)
            continue
        value = wire(name, options[name])
        if not fits(option, value):
            raise NpuprofError([unfit(config, name, target)])
        head = f"custom_op.parameter_map[{literal(name)}].{option.field} = "
        if name in files:
            lines += statement(f"{head}tf.compat.as_bytes(", f"os.path.join({HERE}, {literal(files[name][0])})", ")", indent)
        elif option.field == "s":
            lines += statement(f"{head}tf.compat.as_bytes(", literal(value), ")", indent)
        else:
            lines.append(f"{indent}{head}{literal(value)}")
    if lost:
        raise not_carried(config, lost, target)
    return "".join(f"{line}\n" for line in lines)


def imports(standard: Iterable[str] = (), bridge: tuple[str, ...] = ()) -> str:
    """Return the import lines of a module that builds a ConfigProto; ``bridge`` names what npu_init has."""
    head = "".join(f"import {name}\n" for name in sorted(standard))
    middle = f"from npu_bridge.npu_init import {', '.join(bridge)}\n" if bridge else ""
    return (f"{head}\n" if head else "") + _TF + middle + _REWRITER


def builder(doc: str, lines: str, remarks: Iterable[str] = (), result: str = "config") -> str:
    """Return the source of ``session_config(config=None)`` around parameter-map lines."""
    comments = "".join(f"    # {remark}\n" for remark in remarks)
    return _HEAD.format(doc=doc) + lines + comments + _TAIL.format(result=result)


def bare(lines: str, remarks: Iterable[str] = ()) -> str:
    """Return the lines to paste, for a ``config`` at hand."""
    return _INLINE_HEAD + lines + "".join(f"# {remark}\n" for remark in remarks) + _INLINE_TAIL


def _companions(config: Config) -> tuple[list[str], tuple[Finding, ...]]:
    if not {"experimental_accelerate_train_mode", "iterations_per_loop"} & config.settings.keys():
        return [], ()
    from npuprof.renderers.quirks import companions

    return companions(config, "session")


def session(config: Config, inline: bool) -> Rendered:
    """Return the module with ``session_config(config=None)``, or the bare lines for a ``config`` at hand."""
    files = dict(sidecars(config).values())
    remarks, findings = _companions(config)
    lines = parameters(config, config.options, "" if inline else "    ", "session")
    if inline:
        body = bare(lines, remarks)
    else:
        doc = "Set the options in a tf.ConfigProto, a new one if none is given; return it."
        body = f"\n{imports(('os',) if files else ())}\n\n{builder(doc, lines, remarks)}"
    return Rendered(document(config, "session", body), files, left_out(config, "env", "estimator", "atc"), findings)


TARGETS = {
    "session": Target("TF 1.15: tf.ConfigProto with NpuOptimizer", "session.py", session),
}
