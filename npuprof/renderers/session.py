"""TensorFlow 1.15: a ConfigProto whose NpuOptimizer carries the options in its parameter map."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import Option
from npuprof.model import NpuprofError
from npuprof.renderers import Rendered, Target
from npuprof.renderers.common import document, fits, left_out, not_carried, section, sidecars, unfit, wire
from npuprof.renderers.python import HERE, literal, statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from npuprof.model import Finding
    from npuprof.resolve.config import Config

_TF = "import tensorflow as tf\n"
_REWRITER = "from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig\n"
#: Rendered lines that find the NpuOptimizer of a ``config`` or add it, and that switch off what must not rewrite it.
FIND = """\
    rewrite_options = config.graph_options.rewrite_options
    for custom_op in rewrite_options.custom_optimizers:
        if custom_op.name == "NpuOptimizer":
            break
    else:
        custom_op = rewrite_options.custom_optimizers.add()
        custom_op.name = "NpuOptimizer"
"""
OFF = """\
    rewrite_options.remapping = RewriterConfig.OFF
    rewrite_options.memory_optimization = RewriterConfig.OFF
"""
_HEAD = '''\
def session_config(config=None):
    """{doc}"""
    if config is None:
        config = tf.compat.v1.ConfigProto()
'''
_TAIL = "    return {result}\n"
_INLINE_HEAD = """\
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
"""
_INLINE_TAIL = """\
config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
"""


def parameters(config: Config, names: Iterable[str] | None, indent: str, target: str) -> str:
    """Return the parameter-map lines of options, of all where ``names`` is None, in the catalogue's order.

    Raises NpuprofError for options that no protobuf field can hold.
    """
    known: dict[str, str] = config.memo.setdefault(f"parameters{len(indent)}", {})
    options = section(config, "options")
    wanted = options if names is None else names
    lost: list[str] = []
    for name in wanted:
        if name not in known:
            option = catalog.option(name)
            if option is None or option.field is None:
                lost.append(name)
            else:
                known[name] = _parameter(config, option, options[name], indent, target)
    if lost:
        raise not_carried(config, lost, target)
    return "".join([known[name] for name in wanted])


def _parameter(config: Config, option: Option, value: Any, indent: str, target: str) -> str:
    if isinstance(value, (dict, list)):
        files = sidecars(config)
        if option.name in files:
            argument = f"os.path.join({HERE}, {literal(files[option.name][0])})"
            return _lines(statement(f"{_head(option)}tf.compat.as_bytes(", argument, ")", indent))
        value = wire(option.name, value)
    if not fits(option, value):
        raise NpuprofError([unfit(config, option.name, target)])
    return _line(option.name, value, indent)


@lru_cache(4096, typed=True)
def _line(name: str, value: str | int, indent: str) -> str:
    """Return the line of one option; many presets have many in common."""
    option = catalog.option(name)
    assert option is not None
    if option.field == "s":
        return _lines(statement(f"{_head(option)}tf.compat.as_bytes(", literal(value), ")", indent))
    return f"{indent}{_head(option)}{literal(value)}\n"


def _head(option: Option) -> str:
    return f'custom_op.parameter_map["{option.name}"].{option.field} = '


def _lines(lines: list[str]) -> str:
    return "".join([f"{line}\n" for line in lines])


def imports(standard: Iterable[str] = (), bridge: tuple[str, ...] = ()) -> str:
    """Return the import lines of a module that builds a ConfigProto; ``bridge`` names what npu_init has."""
    head = "".join(f"import {name}\n" for name in sorted(standard))
    middle = f"from npu_bridge.npu_init import {', '.join(bridge)}\n" if bridge else ""
    return (f"{head}\n" if head else "") + _TF + middle + _REWRITER


def builder(doc: str, lines: str, remarks: Iterable[str] = (), result: str = "config") -> str:
    """Return the source of ``session_config(config=None)`` around parameter-map lines."""
    comments = "".join(f"    # {remark}\n" for remark in remarks)
    return _HEAD.format(doc=doc) + FIND + lines + comments + OFF + _TAIL.format(result=result)


def bare(lines: str, remarks: Iterable[str] = (), files: bool = False) -> str:
    """Return the lines to paste, for a ``config`` at hand; ``files`` tells whether they look for sidecar files."""
    head = "import os\n\n" if files else ""
    return head + _INLINE_HEAD + lines + "".join(f"# {remark}\n" for remark in remarks) + _INLINE_TAIL


def _companions(config: Config) -> tuple[list[str], tuple[Finding, ...]]:
    if not {"experimental_accelerate_train_mode", "iterations_per_loop"} & config.settings.keys():
        return [], ()
    from npuprof.renderers.quirks import companions

    return companions(config, "session")


def session(config: Config, inline: bool) -> Rendered:
    """Return the module with ``session_config(config=None)``, or the bare lines for a ``config`` at hand."""
    files = dict(sidecars(config).values())
    remarks, findings = _companions(config)
    lines = parameters(config, None, "" if inline else "    ", "session")
    if inline:
        body = bare(lines, remarks, bool(files))
    else:
        doc = "Set the options in a tf.ConfigProto, a new one if none is given; return it."
        body = f"\n{imports(('os',) if files else ())}\n\n{builder(doc, lines, remarks)}"
    return Rendered(document(config, "session", body), files, left_out(config, "env", "estimator", "atc"), findings)


TARGETS = {
    "session": Target("TF 1.15: tf.ConfigProto with NpuOptimizer", "session.py", session),
}
