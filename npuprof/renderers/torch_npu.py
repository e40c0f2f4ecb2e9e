"""torch_npu: a call or an assignment per setting, and one ``set_option`` for its option keys."""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.model import Record, raise_any
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
    for call in _list_calls(config):
        if not call.start:
            lines += _format_option_call(call.arguments, indent)
        elif call.tail:
            lines += format_call((call.start, ", ".join(call.arguments), call.tail), indent)
        else:
            target = call.start.removesuffix(" = ")
            lines += format_assignment(target, call.arguments[0], indent)
    form = _INLINE if inline else _MODULE
    body = form.format(lines="\n".join(lines or [f"{indent}pass"]))
    return Rendered(add_render_header(config, "torch-npu", body))


class _Call(Record):
    """The code of settings that one call or assignment sets.

    ``start`` is the code before the ``arguments``, ``tail`` the code after them: empty for an
    assignment. A pair for ``set_option`` has neither.
    """

    start: str
    arguments: list[str]
    tail: str


def _list_calls(config: Config) -> list[_Call]:
    """Return the calls in catalogue order, consecutive ones that differ in an argument joined."""
    calls: list[_Call] = []
    for name, value in _list_ordered_settings(config):
        call = _build_call(name, value)
        if calls and calls[-1].start == call.start and calls[-1].tail == call.tail:
            calls[-1].arguments.extend(call.arguments)
        else:
            calls.append(call)
    return calls


def _build_call(name: str, value: Any) -> _Call:
    setting = catalog.find_setting("torch_npu", name)
    assert setting is not None
    if not setting.call:
        return _Call("", [f"{format_literal(name)}: {format_literal(value)}"], "")
    head, _, tail = setting.call.partition("{}")
    if head.endswith("."):  # a member of an enumeration
        target, _, members = head.partition("= ")
        return _Call(f"{target}= ", [f"{members}{value}"], "")
    if setting.kind == "float" and isinstance(value, int):
        value = float(value)
    start, comma, keyword = head.rpartition(", ")
    if comma:
        return _Call(f"{start}{comma}", [f"{keyword}{format_literal(value)}"], tail)
    return _Call(head, [format_literal(value)], tail)


def _list_ordered_settings(config: Config) -> list[tuple[str, Any]]:
    """Return the settings by path, in catalogue order. Raises NpuprofError for unknown ones."""
    settings = {}
    findings = []
    for table_name, table in config.shared_sections["torch_npu"].items():
        for path, value in catalog.list_settings("torch_npu", table_name, table):
            name = ".".join((table_name, *path))
            settings[name] = value
            if not _is_writable(name, value):
                what = f"{name} cannot be carried by the target torch-npu"
                why = "torch_npu has no such setting, or no such value."
                hint = "npuprof check shows how to fix it"
                key, (top, *tail) = f"torch_npu.{name}", name.split(".")
                finding = build_setting_finding(config, "NP901", key, what, why, hint)
                origin = config.origin(f"torch_npu.{top}", tuple(tail))
                findings.append(finding._replace(origin=origin))
    raise_any(findings)
    known = catalog.record_names("torch_npu")
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
