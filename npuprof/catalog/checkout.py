"""The catalogue in a checkout: rebuilt from the TOML records after each change. Wheels do not contain this module.

Parsing the records takes ten times as long as most commands, so the result is cached in ``_built``. Each cached file
begins with a fingerprint of the records; a file with another fingerprint is ignored.
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
    """Return one part of the built form, up to date with the records."""
    state = _describe_records()
    try:
        with open(os.path.join(_KEPT, name), "rb") as file:
            if marshal.load(file) == state:  # noqa: S302 - we wrote it
                return marshal.load(file)  # noqa: S302
    except (OSError, EOFError, ValueError, TypeError):
        pass  # missing or incomplete
    from npuprof.catalog.build import build_parts

    parts = build_parts()
    _keep_parts(state, parts)
    return parts[name]


@cache
def _describe_records() -> str:
    """Return a fingerprint of the records, of the code that reads them, and of the targets."""
    lines = [sys.implementation.cache_tag or sys.version]
    frameworks = os.path.join(_HERE, "frameworks")
    for folder in (
        _HERE,
        os.path.join(_HERE, "options"),
        *(os.path.join(frameworks, name) for name in sorted(os.listdir(frameworks))),
        os.path.join(os.path.dirname(_HERE), "renderers"),
    ):
        for file in sorted(os.scandir(folder), key=lambda file: file.name):
            if file.name.endswith((".toml", ".py")):
                status = file.stat()
                lines.append(f"{file.path} {status.st_mtime_ns} {status.st_size}")
    return "\n".join(lines)


def _keep_parts(state: str, parts: dict[str, Any]) -> None:
    """Cache parts for the next process; if the folder is read-only, the next process rebuilds them."""
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
