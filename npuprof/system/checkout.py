"""The built forms of packages in a checkout: built again after each change.

Wheels contain the built forms and not this module.

Building takes ten times as long as most commands, so the result is cached in ``_built`` of the
package. Each cached file begins with a fingerprint of the package; a file with another fingerprint
is ignored.
"""

from __future__ import annotations

import marshal
import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_TOP = os.path.dirname(os.path.dirname(__file__))


def load_part(package: str, name: str) -> Any:
    """Return one part of the built form of a package, up to date with its files."""
    state = _describe_files(package)
    folder = os.path.join(_TOP, package, "_built")
    try:
        with open(os.path.join(folder, f"{name}.marshal"), "rb") as file:
            if marshal.load(file) == state:  # noqa: S302 - we wrote it
                return marshal.load(file)  # noqa: S302
    except (OSError, EOFError, ValueError, TypeError):
        pass  # missing or incomplete
    with suppress(OSError):  # if the folder is read-only, the next process builds them again
        write_parts(package, folder, marshal.dumps(state))
    return build_parts(package)[name]


@cache
def build_parts(package: str) -> dict[str, Any]:
    """Return every part of the built form of a package by name: marshallable values."""
    parts: dict[str, Any] = import_module(f"npuprof.{package}.build").build_parts()
    return parts


def write_parts(package: str, folder: str, state: bytes = b"") -> None:
    """Write the built form of a package, each part after ``state``.

    Every supported Python reads its format.
    """
    os.makedirs(folder, exist_ok=True)
    for name, part in build_parts(package).items():
        path = os.path.join(folder, f"{name}.marshal")
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "wb") as file:
            file.write(state + marshal.dumps(part, 2))  # later versions depend on reference counts
        os.replace(temporary, path)


def import_attributes(package: str, attribute: str) -> Iterator[tuple[str, Any]]:
    """Import all modules of a package.

    Yield the names of those that have an attribute, with its value.
    """
    from pkgutil import iter_modules

    for _, name, _ in iter_modules(import_module(package).__path__):
        names = vars(import_module(f"{package}.{name}"))
        if attribute in names:
            yield name, names[attribute]


@cache
def _describe_files(package: str) -> list[Any]:
    """Return a fingerprint of the files of a package, and of model.py, which names sections."""
    paths = [os.path.join(_TOP, "model.py")]
    for folder, _, names in os.walk(os.path.join(_TOP, package)):
        paths += (os.path.join(folder, name) for name in names if name.endswith((".toml", ".py")))
    states = [(path, os.stat(path)) for path in sorted(paths)]
    return [
        sys.implementation.cache_tag or sys.version,
        *((path, state.st_mtime_ns, state.st_size) for path, state in states),
    ]
