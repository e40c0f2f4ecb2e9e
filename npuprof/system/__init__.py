"""The interface to the operating system and Python: processes, files, folders, lazy patterns.

The user's folders for state, cache and configuration are independent of presets and clones: each is
at an absolute ``XDG_..._HOME``, else below an absolute ``HOME``, else below the account's home. A
user without any of these has none: ``~`` would otherwise be a folder of the current clone.
"""

from __future__ import annotations

import gc
import os
import re
from functools import cache
from itertools import chain, compress, count, repeat
from marshal import loads
from operator import ne

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, AnyStr, TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")
    Box = tuple[tuple[Value, ...], ...]

#: The variable with each shared folder, and the folder below home without it (XDG Base Directory).
_SHARED_FOLDERS = {
    "state": ("XDG_STATE_HOME", os.path.join(".local", "state")),
    "cache": ("XDG_CACHE_HOME", ".cache"),
    "config": ("XDG_CONFIG_HOME", ".config"),
}


class _LazyPattern:
    def __init__(self, text: Any, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, method)
        return method


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled when one of its methods is first used.

    Functions of ``re`` do not accept it.
    """
    return _LazyPattern(text, flags)  # type: ignore[return-value]


@cache
def load_built_part(package: str, name: str) -> Any:
    """Return one part of the built form of a package, without importing the package.

    That is a value of ``build_parts`` in the package's module ``build``.
    """
    try:
        from npuprof.system.checkout import load_part
    except ModuleNotFoundError:  # installed from a wheel
        top = os.path.dirname(os.path.dirname(__file__))
        path = os.path.join(top, package, "_built", f"{name}.marshal")
        raw = __spec__.loader.get_data(path)  # type: ignore[union-attr]
        return loads(raw)  # noqa: S302 - part of npuprof
    return load_part(package, name)


def group_pairs(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key; keys and values stay in order."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def find_folder(name: str) -> str:
    """Return the folder in the name of a preset, or in the first of a spec; empty at the top."""
    return os.path.dirname(name.partition("+")[0])


def count_common(left: Sequence[object], right: Sequence[object]) -> int:
    """Return the length of the common beginning of two sequences."""
    return next(compress(count(), map(ne, left, right)), min(len(left), len(right)))


def join_boxes(boxes: list[Box[Value]]) -> list[Box[Value]]:
    """Return boxes, merging those that differ in the values of one axis only.

    A box has the values of each axis.
    """
    axes = len(boxes[0]) if boxes else 0
    for axis in reversed(range(axes)):
        # the values of this axis, by those of all other axes
        by_rest = group_pairs(((*box[:axis], *box[axis + 1 :]), box[axis]) for box in boxes)
        boxes = [
            (*rest[:axis], tuple(chain.from_iterable(values)), *rest[axis:])
            for rest, values in by_rest.items()
        ]
    return boxes


def list_items(value: object) -> Iterable[tuple[Any, Any]]:
    """Return the values in a table or list, each with its key or position.

    None for any other value.
    """
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def drop_empty(fields: Mapping[Key, Value]) -> dict[Key, Value]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value}


def join_lines(lines: Iterable[object]) -> str:
    """Return lines as one text, each with its line end."""
    return "\n".join([*map(str, lines), ""])


def decode_safely(data: bytes) -> str:
    """Return bytes as text, with U+FFFD for what is not UTF-8."""
    return data.decode(errors="replace")


def find_real_folder(path: str) -> str:
    """Return the folder that contains a file, links followed."""
    return os.path.dirname(os.path.realpath(path))


def join_normal(*parts: str) -> str:
    """Return the parts of a path as one, normalized."""
    return os.path.normpath(os.path.join(*parts))


def is_list_of(kind: type | tuple[type, ...], value: object) -> bool:
    """Return whether a value is a list whose items are all of a type."""
    return isinstance(value, list) and all(map(isinstance, value, repeat(kind)))


def list_leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Return what the tables and lists of a value contain at any depth, each with its path."""
    if isinstance(value, (dict, list)):
        return [
            leaf for name, item in list_items(value) for leaf in list_leaves(item, (*path, name))
        ]
    return [(path, value)]


def map_leaves(change: Callable[[Any], Any], value: Any) -> Any:
    """Return a value in new tables and lists, each other value at any depth replaced."""
    if isinstance(value, dict):
        return {name: map_leaves(change, item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [map_leaves(change, item) for item in value]
    return change(value)


class PausedCollection:
    """A context that pauses garbage collection, for work that keeps nearly all its objects."""

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_enabled:
            # moves everything into the oldest generation: otherwise the next object would trigger a
            # full collection
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def find_home() -> str:
    """Return the home folder of the user, an empty string if there is none."""
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return ""
    return home if os.path.isabs(home) else ""


def expand_home(path: str) -> str:
    """Return a path with a leading ``~/`` expanded; unchanged without a home."""
    home = find_home() if path.startswith("~/") else ""
    return os.path.join(home, path[2:]) if home else path


def find_shared_folder(kind: str) -> str:
    """Return the base folder for ``state``, ``cache`` or ``config``.

    An empty string if there is none.
    """
    variable, below = _SHARED_FOLDERS[kind]
    base = os.environ.get(variable, "")
    if os.path.isabs(base):
        return base
    home = find_home()
    return os.path.join(home, below) if home else ""


def find_user_folder(kind: str) -> str:
    """Return npuprof's folder for ``state``, ``cache`` or ``config``.

    Without one, a path that cannot exist.
    """
    return os.path.join(find_shared_folder(kind) or os.devnull, "npuprof")


def find_repository_top(folder: str) -> str:
    """Return the nearest folder from ``folder`` upward that contains a ``.git``, or nothing.

    Links are resolved.
    """
    folder = os.path.realpath(folder)
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above
    return folder


def is_below(path: str, top: str) -> bool:
    """Return whether a path, with links resolved, is a folder or below it."""
    return f"{os.path.realpath(path)}{os.sep}".startswith(
        os.path.realpath(top).rstrip(os.sep) + os.sep
    )


def format_relative_path(path: str) -> str:
    """Return a path for display: relative if it is below the current folder."""
    full = os.path.abspath(path)
    current = os.getcwd()
    if full.startswith(current.rstrip(os.sep) + os.sep):
        return full[len(current) :].lstrip(os.sep)
    return full
