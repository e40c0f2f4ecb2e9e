"""TensorFlow 1.15: a ConfigProto whose NpuOptimizer carries the options in its parameter map."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import Option
from npuprof.model import Finding, NpuprofError
from npuprof.renderers import Rendered, Target
from npuprof.renderers.common import (
    add_render_header,
    build_not_carried_error,
    build_unfit_finding,
    collect_sidecars,
    encode_field_value,
    fits_proto_field,
)
from npuprof.renderers.python import SCRIPT_FOLDER, format_literal, format_statement
from npuprof.renderers.sections import config_section
from npuprof.resolve.config import Config
from npuprof.system.patterns import lazy_pattern

_TF = "import tensorflow as tf\n"
_REWRITER = "from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig\n"
#: Rendered lines that find the NpuOptimizer of a ``config`` or add it, and that switch off what must not rewrite it.
FIND_OPTIMIZER = """\
    rewrite_options = config.graph_options.rewrite_options
    for custom_op in rewrite_options.custom_optimizers:
        if custom_op.name == "NpuOptimizer":
            break
    else:
        custom_op = rewrite_options.custom_optimizers.add()
        custom_op.name = "NpuOptimizer"
"""
SWITCH_REWRITES_OFF = """\
    rewrite_options.remapping = RewriterConfig.OFF
    rewrite_options.memory_optimization = RewriterConfig.OFF
"""
_HEAD = '''\
def session_config(config=None):
    """{doc}"""
    if config is None:
        config = tf.compat.v1.ConfigProto()
'''
#: The entry at the beginning of a line; texts are written on one line, so none can begin like that.
_ENTRY = lazy_pattern(r"^custom_op\.", re.MULTILINE)
_TAIL = "    return {result}\n"
_INLINE_HEAD = """\
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
"""
_INLINE_TAIL = """\
config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
"""


def format_parameter_map(config: Config, names: Iterable[str] | None, indent: str, target: str) -> str:
    """Return the parameter-map lines of options, of all where ``names`` is None, in the catalogue's order.

    Raises NpuprofError for options that no protobuf field can hold.
    """
    known: dict[str, str] = config.memo.setdefault(f"parameters{len(indent)}", {})
    options = config_section(config, "options")
    wanted = options if names is None else names
    lost: list[str] = []
    for name in wanted:
        if name not in known:
            option = catalog.find_option(name)
            if option is None or option.field is None:
                lost.append(name)
            else:
                known[name] = _format_parameter(config, option, options[name], indent, target)
    if lost:
        raise build_not_carried_error(config, lost, target)
    return "".join([known[name] for name in wanted])


def _format_parameter(config: Config, option: Option, value: Any, indent: str, target: str) -> str:
    if isinstance(value, (dict, list)):
        files = collect_sidecars(config)
        if option.name in files:
            argument = f"os.path.join({SCRIPT_FOLDER}, {format_literal(files[option.name][0])})"
            return _join_source_lines(format_statement(f"{_format_parameter_head(option)}tf.compat.as_bytes(", argument, ")", indent))
        value = encode_field_value(option.name, value)
    if not fits_proto_field(option, value):
        raise NpuprofError([build_unfit_finding(config, option.name, target)])
    return _format_parameter_line(option.name, value, indent)


@lru_cache(4096, typed=True)
def _format_parameter_line(name: str, value: str | int, indent: str) -> str:
    """Return the line of one option; many presets have many in common."""
    option = catalog.find_option(name)
    assert option is not None
    if option.field == "s":
        return _join_source_lines(
            format_statement(f"{_format_parameter_head(option)}tf.compat.as_bytes(", format_literal(value), ")", indent)
        )
    return f"{indent}{_format_parameter_head(option)}{format_literal(value)}\n"


def _format_parameter_head(option: Option) -> str:
    return f'custom_op.parameter_map["{option.name}"].{option.field} = '


def _join_source_lines(lines: list[str]) -> str:
    return "".join([f"{line}\n" for line in lines])


def format_session_imports(standard: Iterable[str] = (), bridge: tuple[str, ...] = ()) -> str:
    """Return the import lines of a module that builds a ConfigProto; ``bridge`` names what npu_init has."""
    head = "".join(f"import {name}\n" for name in sorted(standard))
    middle = f"from npu_bridge.npu_init import {', '.join(bridge)}\n" if bridge else ""
    return (f"{head}\n" if head else "") + _TF + middle + _REWRITER


def format_session_function(doc: str, lines: str, remarks: Iterable[str] = (), result: str = "config") -> str:
    """Return the source of ``session_config(config=None)`` around parameter-map lines."""
    comments = "".join(f"    # {remark}\n" for remark in remarks)
    return _HEAD.format(doc=doc) + FIND_OPTIMIZER + lines + comments + SWITCH_REWRITES_OFF + _TAIL.format(result=result)


def format_bare_session(lines: str, remarks: Iterable[str] = (), files: bool = False) -> str:
    """Return the lines to paste, for a ``config`` at hand; ``files`` tells whether they look for sidecar files."""
    head = "import os\n\n" if files else ""
    return f"{head}{_REWRITER}\n" + _INLINE_HEAD + lines + "".join(f"# {remark}\n" for remark in remarks) + _INLINE_TAIL


def write_session_onto(config: Config, onto: str) -> Rendered:
    """Return the parameter-map lines alone, for an optimizer entry that is there."""
    files = dict(collect_sidecars(config).values())
    lines = _ENTRY.sub(lambda _: f"{onto}.", format_parameter_map(config, None, "", "session"))
    return Rendered(add_render_header(config, "session", ("import os\n\n" if files else "") + lines, files), files)


def _find_session_companions(config: Config) -> tuple[list[str], tuple[Finding, ...]]:
    if not {"experimental_accelerate_train_mode", "iterations_per_loop"} & config.settings.keys():
        return [], ()
    from npuprof.renderers.quirks import SESSION_LOOP, find_companion_lines

    return find_companion_lines(config, SESSION_LOOP)


def render_session(config: Config, inline: bool) -> Rendered:
    """Return the module with ``session_config(config=None)``, or the bare lines for a ``config`` at hand."""
    files = dict(collect_sidecars(config).values())
    remarks, findings = _find_session_companions(config)
    lines = format_parameter_map(config, None, "" if inline else "    ", "session")
    if inline:
        body = format_bare_session(lines, remarks, bool(files))
    else:
        doc = "Set the options in a tf.ConfigProto, a new one if none is given; return it."
        body = f"\n{format_session_imports(('os',) if files else ())}\n\n{format_session_function(doc, lines, remarks)}"
    return Rendered(add_render_header(config, "session", body, files), files, findings=findings)


TARGETS = {
    "session": Target(
        10,
        "TF 1.15: `tf.ConfigProto` with `NpuOptimizer`, remapping and memory_optimization off",
        "session.py",
        render_session,
        "session",
        renames=True,
        write_onto=write_session_onto,
    ),
}
