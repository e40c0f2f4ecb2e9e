"""The index of the render targets: a command lists them without importing a renderer.

Wheels do not contain this module.
"""

from __future__ import annotations

from typing import Any

from npuprof.system.checkout import import_attributes


def build_parts() -> dict[str, Any]:
    """Return the rows of ``catalog.targets.TargetRow`` by name, in the order of their places."""
    rows = {}
    places = {}
    for module, targets in import_attributes("npuprof.renderers", "TARGETS"):
        for name, target in targets.items():
            places[name] = target.place
            rows[name] = (module, target.surface, target.sections)
    return {"targets": {name: rows[name] for name in sorted(rows, key=lambda n: (places[n], n))}}
