"""TensorFlow 1.15: a ConfigProto whose NpuOptimizer carries the options in its parameter map."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.renderers import Rendered, Target
from npuprof.renderers.common import header, left_out, not_carried, sidecars, wire
from npuprof.renderers.python import literal, statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.config import Config

_HERE = "os.path.dirname(os.path.abspath(__file__))"

_MODULE = '''\
{imports}import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig


def session_config(config=None):
    """Set the options in a tf.ConfigProto, a new one if none is given; return it."""
    if config is None:
        config = tf.compat.v1.ConfigProto()
    rewrite_options = config.graph_options.rewrite_options
    for custom_op in rewrite_options.custom_optimizers:
        if custom_op.name == "NpuOptimizer":
            break
    else:
        custom_op = rewrite_options.custom_optimizers.add()
        custom_op.name = "NpuOptimizer"
{lines}    rewrite_options.remapping = RewriterConfig.OFF
    rewrite_options.memory_optimization = RewriterConfig.OFF
    return config
'''
_INLINE = """\
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
{lines}config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
"""


def assignments(config: Config, indent: str) -> list[str]:
    """Return the parameter-map lines of a config, in the catalogue's order.

    Raises NpuprofError for options that no protobuf field can hold.
    """
    files = sidecars(config)
    lines: list[str] = []
    lost: list[str] = []
    for name, value in config.options.items():
        option = catalog.option(name)
        if option is None or option.field is None:
            lost.append(name)
            continue
        head = f"custom_op.parameter_map[{literal(name)}].{option.field} = "
        if option.field == "s":
            lines += _bytes(head, _path(files[name][0]) if name in files else literal(wire(name, value)), indent)
        else:
            lines.append(f"{indent}{head}{literal(value)}")
    if lost:
        raise not_carried(config, lost, "session")
    return lines


def _path(file: str) -> str:
    return f"os.path.join({_HERE}, {literal(file)})"


def _bytes(head: str, argument: str, indent: str) -> list[str]:
    return statement(f"{head}tf.compat.as_bytes(", argument, ")", indent)


def session(config: Config, inline: bool) -> Rendered:
    """Return the module with ``session_config(config=None)``, or the bare lines for a ``config`` at hand."""
    files = dict(sidecars(config).values())
    lines = "".join(f"{line}\n" for line in assignments(config, "" if inline else "    "))
    shape: dict[str, Any] = {"lines": lines, "imports": "import os\n\n" if files else ""}
    body = (_INLINE if inline else _MODULE).format(**shape)
    gap = "" if inline else "\n"
    return Rendered("\n".join(header(config, "session")) + f"\n{gap}{body}", files, left_out(config, "env", "estimator", "atc"))


TARGETS = {
    "session": Target("TF 1.15: tf.ConfigProto with NpuOptimizer", "session.py", session),
}
