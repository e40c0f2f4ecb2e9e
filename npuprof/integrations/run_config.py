"""A config as an NPURunConfig of the adapter: renders the target ``estimator`` and calls it."""

from __future__ import annotations

from typing import Any

from npuprof.library import render
from npuprof.resolve.config import Config


def build_run_config(
    config: Config, session_config: Any = None, *, check: bool = True, **more: Any
) -> Any:
    """Return an ``NPURunConfig`` with the settings of a config.

    ``more`` are the script's own arguments (``model_dir``).

    A ``session_config`` is filled as the estimator needs it. The adapter (``npu_bridge``) and
    TensorFlow must be installed.

    Raises NpuprofError as ``npuprof.render`` does, ImportError if the adapter is missing, and
    TypeError for an argument that the config sets too.
    """
    module: dict[str, Any] = {"__name__": "npuprof_run_config"}
    source = render(config, "estimator", check=check)
    exec(compile(source, f"<npuprof: {config.name}>", "exec"), module)  # noqa: S102
    return module["run_config"](session_config, **more)
