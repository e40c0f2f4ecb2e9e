"""The built form where the TOML records are at hand: made of them anew after each change. No wheel carries this module.

Reading the records takes ten times as long as most commands, so what was made is kept in ``_built`` beside them. Each
file there begins with what the records looked like when it was made; of another state, it is as good as missing.
"""

from __future__ import annotations

import marshal
import os
import sys
from functools import cache
from typing import Any

_HERE = os.path.dirname(__file__)
_KEPT = os.path.join(_HERE, "_built")


@cache
def load_part(name: str) -> Any:
    """Return one part of the built form, as the records are now."""
    state = _describe_records()
    try:
        with open(os.path.join(_KEPT, name), "rb") as file:
            if marshal.load(file) == state:  # noqa: S302 - we wrote it
                return marshal.load(file)  # noqa: S302
    except (OSError, EOFError, ValueError, TypeError):
        pass  # not there, or not whole
    from npuprof.catalog.build import build_parts

    parts = build_parts()
    _keep_parts(state, parts)
    return parts[name]


@cache
def _describe_records() -> str:
    """Return what tells one state of the records, of the code that reads them, and of the targets, from another."""
    lines = [sys.implementation.cache_tag or sys.version]
    for name in (os.curdir, "options", "env", "settings", os.path.join(os.pardir, "renderers")):
        folder = os.path.join(_HERE, name)
        for file in sorted(os.scandir(folder), key=lambda file: file.name):
            if file.name.endswith((".toml", ".py")):
                status = file.stat()
                lines.append(f"{file.path} {status.st_mtime_ns} {status.st_size}")
    return "\n".join(lines)


def _keep_parts(state: str, parts: dict[str, Any]) -> None:
    """Keep parts for the next process; where nothing can be written, it makes them itself."""
    try:
        os.makedirs(_KEPT, exist_ok=True)
        for name, part in parts.items():
            path = os.path.join(_KEPT, name)
            temporary = f"{path}.{os.getpid()}"
            with open(temporary, "wb") as file:
                marshal.dump(state, file)
                marshal.dump(part, file)
            os.replace(temporary, path)
    except OSError:
        return
