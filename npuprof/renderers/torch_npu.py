"""torch_npu: one call or assignment a setting, in the order of the catalogue, then one ``set_option`` for the keys of its own table."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.model import NpuprofError
from npuprof.renderers import Rendered, Target, config_section
from npuprof.renderers.common import build_setting_finding, finish_code
from npuprof.renderers.python import WIDTH, format_call, format_literal
from npuprof.resolve.config import Config

_MODULE = '''\

import torch
import torch_npu


def configure_npu():
    """Set the options of torch_npu; call it once a process, before the first use of an NPU."""
{lines}
'''
_INLINE = "import torch\nimport torch_npu\n\n{lines}\n"


def render_torch_npu(config: Config, inline: bool) -> Rendered:
    """Return the module with ``configure_npu()``, or the bare lines. Raises NpuprofError for a setting that torch_npu does not have."""
    indent = "" if inline else "    "
    lines: list[str] = []
    options: dict[str, Any] = {}
    for name, value in _list_ordered_settings(config):
        setting = catalog.find_setting("torch_npu", name)
        assert setting is not None
        if not setting.call:
            options[name] = value
            continue
        head, tail = setting.call.split("{}")
        written = str(value) if head.endswith(".") else format_literal(value)
        lines += format_call((head, written, tail), indent) if tail else [f"{indent}{head}{written}"]
    if options:
        lines += _format_option_call(options, indent)
    form = _INLINE if inline else _MODULE
    return finish_code(config, "torch-npu", form.format(lines="\n".join(lines or [f"{indent}pass"])))


def _list_ordered_settings(config: Config) -> list[tuple[str, Any]]:
    """Return the settings by their paths, in the order of the catalogue. Raises NpuprofError for one that it lacks."""
    section = config_section(config, "torch_npu").items()
    settings = {
        ".".join((name, *path)): value for name, table in section for path, value in catalog.list_settings("torch_npu", name, table)
    }
    known = catalog.record_names("torch_npu")
    why, hint = "torch_npu ignores attributes that it does not know.", "npuprof check says what to write"
    if unknown := [name for name in settings if name not in known]:
        raise NpuprofError([
            build_setting_finding(config, "NP901", f"torch_npu.{name}", f"{name} cannot be carried by the target torch-npu", why, hint)
            for name in unknown
        ])  # fmt: skip
    return [(name, settings[name]) for name in known if name in settings]


def _format_option_call(options: dict[str, Any], indent: str) -> list[str]:
    """Return the call of ``set_option``, a line for each key where they do not fit into one."""
    pairs = [f"{format_literal(name)}: {format_literal(value)}" for name, value in options.items()]
    line = f"{indent}torch.npu.set_option({{{', '.join(pairs)}}})"
    if len(line) <= WIDTH:
        return [line]
    return [f"{indent}torch.npu.set_option(", *format_call(("{", pairs, "}"), f"{indent}    "), f"{indent})"]


TARGETS = {
    "torch-npu": Target(
        82,
        "a module of torch_npu calls, for `[torch_npu]`",
        "npu_settings.py",
        render_torch_npu,
        sections=("torch_npu",),
        takes_options=False,
    ),
}
