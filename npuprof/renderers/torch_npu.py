"""torch_npu: one call or assignment per setting, in catalogue order, and one ``set_option`` for its
option keys.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Any

from npuprof import catalog
from npuprof.model import NpuprofError
from npuprof.renderers import Rendered, Target, add_render_header, build_setting_finding
from npuprof.renderers.python_source import WIDTH, format_assignment, format_call, format_literal
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
    """Return the module with ``configure_npu()``, or the bare lines.

    Raises NpuprofError for a setting unknown to torch_npu.
    """
    indent = "" if inline else "    "
    lines = []
    pieces = [_split_call(*pair) for pair in _list_ordered_settings(config)]
    for (start, tail), group in groupby(pieces, key=itemgetter(0, 2)):
        arguments = [argument for _, argument, _ in group]
        if not start:
            lines += _format_option_call(arguments, indent)
        elif tail:
            lines += format_call((start, ", ".join(arguments), tail), indent)
        else:
            lines += format_assignment(start.removesuffix(" = "), arguments[0], indent)
    form = _INLINE if inline else _MODULE
    return Rendered(
        add_render_header(
            config, "torch-npu", form.format(lines="\n".join(lines or [f"{indent}pass"]))
        )
    )


def _split_call(name: str, value: Any) -> tuple[str, str, str]:
    """Return the code of a setting: up to its last argument, that argument, the rest.

    For a ``set_option`` key only a pair.
    """
    setting = catalog.find_setting("torch_npu", name)
    assert setting is not None
    if not setting.call:
        return "", f"{format_literal(name)}: {format_literal(value)}", ""
    head, _, tail = setting.call.partition("{}")
    if head.endswith("."):
        head, _, members = head.partition("= ")
        return f"{head}= ", f"{members}{value}", ""
    written = format_literal(
        float(value) if setting.kind == "float" and isinstance(value, int) else value
    )
    start, comma, keyword = head.rpartition(", ")
    return (f"{start}{comma}", f"{keyword}{written}", tail) if comma else (head, written, tail)


def _list_ordered_settings(config: Config) -> list[tuple[str, Any]]:
    """Return the settings by path, in catalogue order. Raises NpuprofError for unknown ones."""
    section = config.shared_sections["torch_npu"].items()
    settings = {
        ".".join((name, *path)): value
        for name, table in section
        for path, value in catalog.list_settings("torch_npu", name, table)
    }
    known = catalog.record_names("torch_npu")
    why, hint = (
        "torch_npu has no such setting, or no such value.",
        "npuprof check shows how to fix it",
    )
    if unknown := [name for name, value in settings.items() if not _is_writable(name, value)]:
        raise NpuprofError(
            [
                build_setting_finding(
                    config,
                    "NP901",
                    f"torch_npu.{name}",
                    f"{name} cannot be carried by the target torch-npu",
                    why,
                    hint,
                )._replace(
                    origin=config.origin(
                        f"torch_npu.{name.partition('.')[0]}", tuple(name.split(".")[1:])
                    )
                )
                for name in unknown
            ]
        )
    return [(name, settings[name]) for name in known if name in settings]


def _is_writable(name: str, value: Any) -> bool:
    """Return whether code can contain a value: names are never taken from a preset."""
    setting = catalog.find_setting("torch_npu", name)
    return setting is not None and (not setting.call.endswith(".{}") or value in setting.choices)


def _format_option_call(pairs: list[str], indent: str) -> list[str]:
    """Return the call of ``set_option``, with one key per line if it does not fit on one."""
    line = f"{indent}torch.npu.set_option({{{', '.join(pairs)}}})"
    if len(line) <= WIDTH:
        return [line]
    return [
        f"{indent}torch.npu.set_option(",
        *format_call(("{", pairs, "}"), f"{indent}    "),
        f"{indent})",
    ]


TARGETS = {
    "torch-npu": Target(
        place=82,
        summary="a module of torch_npu calls, for `[torch_npu]`",
        file="npu_settings.py",
        write=render_torch_npu,
        sections=("torch_npu",),
    ),
}
