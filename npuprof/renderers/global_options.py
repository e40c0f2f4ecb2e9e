"""TensorFlow 2: npu.global_options(), assigned leaf by leaf, then npu.open()."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from npuprof import catalog
from npuprof.model import Finding, NpuprofError
from npuprof.renderers import Rendered, Target
from npuprof.renderers.common import document, elsewhere, fits, left_out, not_carried, section, sidecars, unfit, wire
from npuprof.renderers.python import HERE, assignment, literal, statement
from npuprof.renderers.quirks import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config

_MODULE = '''\

{os}import npu_device as npu


def global_options(options=None):
    """Set the options in npu.global_options(), before npu.open(); return it."""
    if options is None:
        options = npu.global_options()
{lines}    return options


def open_npu(device_id=None):
    """Open the NPU with the options and make it the default device; once a process, before tensors."""
    global_options()
    return npu.open(device_id).as_default()
'''
_INLINE = """\
{os}options = npu.global_options()
{lines}npu.open().as_default()
"""


def global_options(config: Config, inline: bool) -> Rendered:
    """Return the module with ``global_options(options=None)`` and ``open_npu``, or the bare lines."""
    indent = "" if inline else "    "
    files = sidecars(config)
    lines: list[str] = []
    findings: list[Finding] = []
    lost: dict[str, str] = {}
    for name, value in section(config, "options").items():
        option = catalog.option(name)
        if option is None or "global_options" not in option.spelling:
            lost[name] = _INSTEAD.get(name, "")
            continue
        if name in files:
            target = f"options.{option.spelling['global_options']}"
            lines += statement(f"{target} = os.path.join(", f"{HERE}, {literal(files[name][0])}", ")", indent)
            continue
        wired = wire(name, value)
        if not fits(option, wired):
            raise NpuprofError([unfit(config, name, "global-options")])
        carried, written = elsewhere(option, wired, "global_options")
        if not carried:
            lost[name] = (
                f"There the adapter of TF 2 takes {' or '.join(map(literal, option.surface_values['global_options'].values()))} only."
            )
            continue
        lines += _line(name, written, indent)
        findings += _doubts(config, name, written)
    if lost:
        raise not_carried(config, list(lost), "global-options", lost)
    shape: dict[str, Any] = {"lines": "".join(f"{line}\n" for line in lines), "os": "import os\n\n" if files else ""}
    body = (_INLINE if inline else _MODULE).format(**shape)
    notes = left_out(config, "env", "estimator", "atc")
    return Rendered(document(config, "global-options", body), dict(files.values()), notes, tuple(findings))


@lru_cache(4096, typed=True)
def _line(name: str, value: str | int, indent: str) -> list[str]:
    option = catalog.option(name)
    assert option is not None
    if name == "optimization_switch" and not str(value).endswith(";"):
        value = f"{value};"  # the adapter appends a switch of its own without a separator
    return assignment(f"options.{option.spelling['global_options']}", literal(value), indent)


_INSTEAD = {
    "iterations_per_loop": "In TF 2 the script calls npu.set_npu_loop_size, or NPU_LOOP_SIZE is set.",
    "session_device_id": "In TF 2 the device is an argument of npu.open, or ASCEND_DEVICE_ID.",
    "hccl_timeout": "TF 2 has no such option; HCCL_EXEC_TIMEOUT in the environment does the same.",
}


def _doubts(config: Config, name: str, value: Any) -> list[Finding]:
    """Return what the adapter of TF 2 makes of a value that its class lets pass."""
    if name == "oo_level" and value not in ("O1", "O3"):
        what = f"oo_level = {literal(value)} passes the class, and GE refuses it when the NPU is opened"
        return [finding(config, "NP910", "warning", name, what, "GE knows O1 and O3 only.", 'write "O1" or "O3"')]
    return []


TARGETS = {
    "global-options": Target("TF 2: npu.global_options() and npu.open()", "global_options.py", global_options),
}
