"""TensorFlow 1.15: a ConfigProto whose NpuOptimizer carries the options in its parameter map."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from npuprof import catalog
from npuprof.catalog import Option
from npuprof.model import Any, Finding, Record
from npuprof.renderers import (
    Rendered,
    Target,
    add_render_header,
    build_render_finding,
    collect_sidecars,
    encode_fitting_value,
    finish_code,
    fits_proto_field,
    reject_lost_options,
)
from npuprof.renderers.python_source import SCRIPT_FOLDER, format_literal, format_statement
from npuprof.resolve.config import Config
from npuprof.system import lazy_pattern

#: The line that makes the loop on the device in a script with its own session.
SESSION_LOOP = "train_op = util.set_iteration_per_loop(sess, train_op, {count})"
_TF = "import tensorflow as tf\n"
_REWRITER = "from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig\n"
#: Rendered lines that find or add the NpuOptimizer of a ``config``, and disable conflicting
#: rewriters.
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
#: The entry at the start of a line; strings are written on one line, so none starts like that.
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


def format_parameter_map(
    config: Config, names: Iterable[str] | None, indent: str, target: str
) -> str:
    """Return the parameter-map lines of options (all if ``names`` is None), in catalogue order.

    The lines of all options are formatted once for all targets. Raises NpuprofError for options
    without a protobuf field.
    """
    memo_key = f"parameter map {indent!r}" if names is None else ""
    if memo_key in config.memo:
        return str(config.memo[memo_key])
    options = config.shared_sections["options"]
    sidecars = collect_sidecars(config)
    lines = []
    lost = {}
    for name in options if names is None else names:
        option = catalog.find_option(name)
        if option is None or option.field is None:
            lost[name] = ""
        elif name in sidecars:
            path = f"os.path.join({SCRIPT_FOLDER}, {format_literal(sidecars[name][0])})"
            lines.append(_format_parameter(option, path, indent))
        else:
            value = options[name]
            # lists and tables have no hash, which the cache needs
            is_plain = type(value) in (str, int, bool)
            text = _format_plain_parameter(name, value, indent) if is_plain else ""
            if not text:
                encoded = encode_fitting_value(config, option, value, target)
                text = _format_parameter(option, format_literal(encoded), indent)
            lines.append(text)
    reject_lost_options(config, lost, target)
    text = "".join(lines)
    if memo_key:
        config.memo[memo_key] = text
    return text


# most presets inherit most values; True and 1 differ by their type only
@lru_cache(4096, typed=True)
def _format_plain_parameter(name: str, value: Any, indent: str) -> str:
    """Return the lines of an option, an empty string if the value does not fit its field."""
    option = catalog.find_option(name)
    if option is None or not fits_proto_field(option, value):
        return ""
    return _format_parameter(option, format_literal(value), indent)


def _format_parameter(option: Option, argument: str, indent: str) -> str:
    head = f'custom_op.parameter_map["{option.name}"].{option.field} = '
    if option.field != "s":
        return f"{indent}{head}{argument}\n"
    lines = format_statement(f"{head}tf.compat.as_bytes(", argument, ")", indent)
    return "".join([f"{line}\n" for line in lines])


def format_session_imports(standard: Iterable[str], bridge: tuple[str, ...] = ()) -> str:
    """Return the import lines of a module that builds a ConfigProto.

    ``bridge`` are the names from npu_init.
    """
    head = "".join(f"import {name}\n" for name in sorted(standard))
    middle = f"from npu_bridge.npu_init import {', '.join(bridge)}\n" if bridge else ""
    return (f"{head}\n" if head else "") + _TF + middle + _REWRITER


def find_companion_lines(
    config: Config, loop: str = "", trains: bool = True
) -> tuple[list[str], tuple[Finding, ...]]:
    """Return comments and findings about lines that the script needs besides the rendered code.

    ``trains`` is set if the rendered session is the training session, ``loop`` is the line that
    makes the loop on the device, empty if none is needed.
    """
    notes = []
    findings = []
    mode = config.settings.get("experimental_accelerate_train_mode")
    if mode is not None and trains:
        parts = mode if isinstance(mode, list) else str(mode).split("|")
        if parts[1:2] == ["loss"]:
            hook = "TellMeStepOrLossHook(loss=..., final_loss=...)"
            pair = "LOSS_NOW and TARGET_LOSS"
        else:
            hook = "TellMeStepOrLossHook(step=..., total_step=...)"
            pair = "STEP_NOW and TOTAL_STEP"
        notes += ["The script has to train with this hook, or acceleration never ends:", hook]
        findings.append(
            build_render_finding(
                config,
                "NP905",
                "experimental_accelerate_train_mode",
                f"the script has to add {hook} to its hooks",
                f"The adapter splits the training by {pair}, which nothing else keeps current.",
                f"hooks.append({hook}), or set {pair} in os.environ at every step",
            )
        )
    count = config.settings.get("iterations_per_loop", 1)
    if loop and type(count) is int and count > 1:
        line = loop.format(count=count)
        notes += ["The loop on the device needs this in the script as well:", line]
        findings.append(
            build_render_finding(
                config,
                "NP906",
                "iterations_per_loop",
                f"iterations_per_loop = {count} needs a change of the script as well",
                "The option alone does not move the loop to the device.",
                f"add {line}",
            )
        )
    return notes, tuple(findings)


def write_session_onto(config: Config, onto: str) -> Rendered:
    """Return only the parameter-map lines, for an existing optimizer entry."""
    # a function: backslashes in a replacement text would be escapes
    lines = _ENTRY.sub(lambda _: f"{onto}.", format_parameter_map(config, None, "", "session"))
    imports = "import os\n\n" if collect_sidecars(config) else ""
    return finish_code(config, "session", imports + lines)


class Shape(Record):
    """One target around ``session_config``: its imports, its own functions, and the lines to paste.

    ``bridge`` are the names that it imports from npu_init, ``standard`` the modules of Python.
    ``doc`` and ``result`` belong to ``session_config``. ``trains`` is set if the session is the
    training session, ``loop`` is the line that makes the loop on the device.
    """

    bridge: tuple[str, ...] = ()
    functions: str = ""
    inline: str = ""
    doc: str = "Set the options in a tf.ConfigProto, a new one if none is given; return it."
    result: str = "config"
    standard: tuple[str, ...] = ()
    trains: bool = True
    loop: str = ""


def render_shape(
    config: Config, target: str, shape: Shape, inline: bool, names: list[str] | None = None
) -> Rendered:
    """Return the module with ``session_config(config=None)``, or bare lines for a ``config``.

    ``names`` are the options to set, all if None.
    """
    files = {
        file: text
        for name, (file, text) in collect_sidecars(config).items()
        if names is None or name in names
    }
    notes, findings = find_companion_lines(config, shape.loop, shape.trains)
    indent = "" if inline else "    "
    lines = format_parameter_map(config, names, indent, target)
    lines += "".join(f"{indent}# {note}\n" for note in notes)
    if inline:
        imports = ("import os\n\n" if files else "") + _REWRITER
        body = f"{imports}\n{_INLINE_HEAD}{lines}{_INLINE_TAIL}{shape.inline}"
    else:
        standard = {*shape.standard, "os"} if files else shape.standard
        imports = format_session_imports(standard, shape.bridge)
        head = _HEAD.format(doc=shape.doc)
        tail = _TAIL.format(result=shape.result)
        function = f"{head}{FIND_OPTIMIZER}{lines}{SWITCH_REWRITES_OFF}{tail}"
        body = f"\n{imports}\n\n{function}{shape.functions}"
    return Rendered(add_render_header(config, target, body, files), files, findings=findings)


def render_session(config: Config, inline: bool) -> Rendered:
    """Return the module with ``session_config(config=None)``, or bare lines for a ``config``."""
    return render_shape(config, "session", Shape(loop=SESSION_LOOP), inline)


TARGETS = {
    "session": Target(
        place=10,
        summary=(
            "TF 1.15: `tf.ConfigProto` with `NpuOptimizer`, remapping and memory_optimization off"
        ),
        file="session.py",
        write=render_session,
        surface="session",
        renames=True,
        write_onto=write_session_onto,
    ),
}
