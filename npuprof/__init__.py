"""npuprof: presets for Huawei Ascend NPUs.

The library behind the command; everything here is loaded when it is first used.

    import npuprof

    store = npuprof.open_store()
    config = store.resolve("bert-training", product="atlas-a2-training")
    npuprof.check(config)
    npuprof.render(config, "session")
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.changes import Change
    from npuprof.library import TARGETS, Library, apply, check, diff, env, loads, open_store, render
    from npuprof.model import Finding, NpuprofError, Origin
    from npuprof.model import __version__ as __version__
    from npuprof.resolve.config import Config

__all__ = [
    "TARGETS",
    "Change",
    "Config",
    "Finding",
    "Library",
    "NpuprofError",
    "Origin",
    "apply",
    "check",
    "diff",
    "env",
    "loads",
    "open_store",
    "render",
]

_HOMES = {
    "__version__": "model",
    "Change": "compare.changes",
    "Config": "resolve.config",
    "NpuprofError": "model",
    "Finding": "model",
    "Origin": "model",
}


def __getattr__(name: str) -> object:
    if name not in (*__all__, "__version__"):
        raise AttributeError(f"module 'npuprof' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"npuprof.{_HOMES.get(name, 'library')}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
