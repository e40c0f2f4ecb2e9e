"""Names of arguments in messages: options of the command, or arguments of the library's functions.

``in_python`` is passed from the border inwards: by the library to its workspaces, and from there to resolvers, which configs know.
"""

from __future__ import annotations

#: What an option of the command is called in Python, if that differs.
_ARGUMENTS = {"store": "path", "with": "mixins"}


def say_option(name: str, value: str | None = None, in_python: bool = False) -> str:
    """Return how an option is named, or given with a value: ``--store``, ``--store DIR``; in Python ``path``, ``path='DIR'``."""
    if in_python:
        argument = _ARGUMENTS.get(name, name)
        return argument if value is None else f"{argument}={value!r}"
    return f"--{name}" if value is None else f"--{name} {value}"


def say_switch(name: str, in_python: bool = False) -> str:
    """Return how an option without a value is given: ``--trust``; in Python ``trust=True``."""
    return f"{_ARGUMENTS.get(name, name)}=True" if in_python else f"--{name}"


def say_set(key: str, in_python: bool = False) -> str:
    """Return how a key is set for one call: ``--set KEY=...``; in Python ``set={KEY: ...}``."""
    return f"set={{{key!r}: ...}}" if in_python else f"--set {key}=..."
