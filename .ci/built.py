"""The built forms of packages in a wheel: the catalogue, render targets, and verbs."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuiltFormHook(BuildHookInterface):
    """Adds ``_built`` to each package with a module ``build``.

    Editable installs build it themselves.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files before hatchling collects the files of the wheel."""
        self.made = TemporaryDirectory()
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from npuprof.system.checkout import write_parts

        for module in Path(self.root, "npuprof").glob("*/build.py"):
            package = module.parent.name
            write_parts(package, f"{self.made.name}/{package}")
            build_data["force_include"][f"{self.made.name}/{package}"] = f"npuprof/{package}/_built"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files after they were added to the wheel."""
        self.made.cleanup()
