"""A config as the NPURunConfig of the adapter that is installed: what the target ``estimator`` writes, called at once."""

from __future__ import annotations

from typing import Any

from npuprof.library import render
from npuprof.resolve.config import Config


def build_run_config(config: Config, session_config: Any = None, *, check: bool = True, **more: Any) -> Any:
    """Return an ``NPURunConfig`` with what a config sets; ``more`` are arguments that only the script can give (``model_dir``).

    A ``session_config`` is filled as the estimator needs it. The adapter (``npu_bridge``) and TensorFlow have to be installed.

    Raises NpuprofError as ``npuprof.render`` does, ImportError where there is no adapter, and TypeError for an argument that
    the config sets as well.
    """
    module: dict[str, Any] = {"__name__": "npuprof_run_config"}
    exec(compile(render(config, "estimator", check=check), f"<npuprof: {config.name}>", "exec"), module)  # noqa: S102 (our own text)
    return module["run_config"](session_config, **more)
