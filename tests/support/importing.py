"""Write scripts down and read them, for the tests of import, scan and inject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from npuprof.model import Context, Finding
from npuprof.scripts.lint import check_script
from npuprof.scripts.reading import ImportedFile, ScriptSetting, import_script

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
import tensorflow as tf
from npu_bridge.npu_init import *
config = tf.ConfigProto()
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
"""
TAIL = """\
config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
config.graph_options.rewrite_options.memory_optimization = RewriterConfig.OFF
sess = tf.Session(config=config)
"""


def imported(text: str | bytes, name: str = "x.py") -> ImportedFile:
    return import_script(name, text if isinstance(text, bytes) else text.encode())


def settings(text: str | bytes, name: str = "x.py") -> dict[str, Any]:
    """Return the values found, by key; where there is none in force, the reason."""
    found = [
        (setting, setting.reason or (setting.unused if setting.surface == "env" else ""))
        for setting in imported(text, name).settings
        if not setting.commented
    ]
    return {setting.key or "?": f"<{why}>" if why else setting.value for setting, why in found}


def import_setting(text: str, name: str = "x.py") -> ScriptSetting:
    (setting,) = [found for found in imported(text, name).settings if not found.commented]
    return setting


def findings(text: str | bytes, name: str = "x.py", **context: str) -> list[Finding]:
    return check_script(imported(text, name), Context(**context))


def find_release_faults(
    text: str, framework: str, release: str, name: str = "x.py"
) -> list[Finding]:
    """Return the findings for a release of a framework."""
    return check_script(imported(text, name), Context(versions=((framework, release),)))


def locate_findings(lines: str, **context: str) -> list[tuple[str, int]]:
    """Return code and line of the findings in a script with these lines in the middle.

    Lines are counted in ``lines``; notes are left out.
    """
    text = f"{HEAD}{lines}{TAIL}"
    return [
        (f.code, f.line - HEAD.count("\n"))
        for f in findings(text, **context)
        if f.severity != "info"
    ]


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
