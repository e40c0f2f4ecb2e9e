"""The index of the render targets: a command lists them without importing a renderer.

Wheels do not contain this module.
"""

from __future__ import annotations

from typing import Any

from npuprof.system.checkout import import_attributes


def build_parts() -> dict[str, Any]:
    """Return the index: the targets by name in the order of their places, with module, surface and
    sections.
    """
    tables = import_attributes("npuprof.renderers", "TARGETS")
    targets = [
        (target.place, name, module, target)
        for module, table in tables
        for name, target in table.items()
    ]
    return {
        "targets": {
            name: (module, target.surface, target.sections)
            for _, name, module, target in sorted(targets)
        }
    }
