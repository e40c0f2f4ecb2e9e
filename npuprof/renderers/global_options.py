"""TensorFlow 2: npu.global_options(), assigned leaf by leaf, then npu.open()."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npuprof import catalog
from npuprof.catalog import Option
from npuprof.model import Finding
from npuprof.renderers import (
    Rendered,
    Target,
    build_render_finding,
    collect_sidecars,
    encode_fitting_value,
    finish_code,
    reject_lost_options,
)
from npuprof.renderers.python_source import (
    SCRIPT_FOLDER,
    format_assignment,
    format_literal,
    format_statement,
)
from npuprof.resolve.config import Config

_MODULE = '''\

{os}import npu_device as npu


def global_options(options=None):
    """Set the options in npu.global_options(), before npu.open(); return it."""
    if options is None:
        options = npu.global_options()
{lines}    return options


def open_npu(device_id=None):
    """Open the NPU with the options and make it the default device; \
once a process, before tensors."""
    global_options()
    return npu.open(device_id).as_default()
'''
_INLINE = """\
{os}options = npu.global_options()
{lines}npu.open().as_default()
"""
_ONTO = "{os}{lines}"


def render_global_options(config: Config, inline: bool) -> Rendered:
    """Return the module with ``global_options(options=None)`` and ``open_npu``, or bare lines."""
    lines, findings = _format_all_lines(config, "options", "" if inline else "    ")
    return _finish_text(config, _INLINE if inline else _MODULE, lines, findings)


def write_options_onto(config: Config, onto: str) -> Rendered:
    """Return only the assignments, for an existing options object."""
    return _finish_text(config, _ONTO, *_format_all_lines(config, onto, ""))


def _finish_text(config: Config, form: str, lines: list[str], findings: list[Finding]) -> Rendered:
    body = form.format(
        lines="".join(f"{line}\n" for line in lines),
        os="import os\n\n" if collect_sidecars(config) else "",
    )
    return finish_code(config, "global-options", body, *findings)


def _format_all_lines(config: Config, onto: str, indent: str) -> tuple[list[str], list[Finding]]:
    """Return the lines that set the options on an object, with findings.

    Raises NpuprofError for unsupported options.
    """
    files = collect_sidecars(config)
    lines = []
    findings: list[Finding] = []
    lost = {}
    for name, value in config.shared_sections["options"].items():
        option = catalog.find_option(name)
        if option is None or "global_options" not in option.spelling:
            lost[name] = option.not_carried.get("global_options", "") if option else ""
            continue
        target = f"{onto}.{option.spelling['global_options']}"
        if name in files:
            lines += format_statement(
                f"{target} = os.path.join(",
                f"{SCRIPT_FOLDER}, {format_literal(files[name][0])}",
                ")",
                indent,
            )
            continue
        encoded = encode_fitting_value(config, option, value, "global-options")
        carried, written = option.write_on("global_options", encoded)
        if not carried:
            accepted = map(format_literal, option.surface_values["global_options"].values())
            lost[name] = f"There the adapter of TF 2 takes {' or '.join(accepted)} only."
            continue
        end = option.closed_by.get("global_options", "")
        closed = written if str(written).endswith(end) else f"{written}{end}"
        lines += format_assignment(target, format_literal(closed), indent)
        findings += _check_adapter_value(config, option, written)
    reject_lost_options(config, lost, "global-options")
    return lines, findings


def _check_adapter_value(config: Config, option: Option, value: Any) -> Iterator[Finding]:
    """Yield how the TF 2 adapter changes a value that its class accepts."""
    known = option.engine_choices.get("global_options", (value,))
    if value not in known:
        what = (
            f"{option.name} = {format_literal(value)} passes the "
            "class, but GE rejects it when the NPU is opened"
        )
        why = f"GE knows {' and '.join(known)} only."
        hint = f"write {' or '.join(map(format_literal, known))}"
        yield build_render_finding(config, "NP910", option.name, what, why, hint)


TARGETS = {
    "global-options": Target(
        place=80,
        summary="TF 2: `npu.global_options()` and `npu.open()`",
        file="global_options.py",
        write=render_global_options,
        surface="global_options",
        write_onto=write_options_onto,
    ),
}
