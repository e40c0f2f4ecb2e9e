"""Arguments in messages, as whoever reads them gives them: options of the command, or arguments of the library's functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

_IN_PYTHON: ContextVar[bool] = ContextVar("in_python", default=False)
#: What an option of the command is called in Python, where that is another name.
_ARGUMENTS = {"store": "path", "with": "mixins"}


def speak_python(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Return a function of the library, whose messages name its own arguments."""

    @functools.wraps(function)
    def speaking(*given: Given.args, **named: Given.kwargs) -> Returned:
        before = _IN_PYTHON.set(True)
        try:
            return function(*given, **named)
        finally:
            _IN_PYTHON.reset(before)

    return speaking


def say_option(name: str, value: str | None = None) -> str:
    """Return how an option with a value is named, or given: ``--store``, ``--store DIR``."""
    if _IN_PYTHON.get():
        argument = _ARGUMENTS.get(name, name)
        return argument if value is None else f"{argument}={value!r}"
    return f"--{name}" if value is None else f"--{name} {value}"


def say_switch(name: str) -> str:
    """Return how an option without a value is given: ``--trust``."""
    return f"{_ARGUMENTS.get(name, name)}=True" if _IN_PYTHON.get() else f"--{name}"


def say_set(key: str) -> str:
    """Return how a key is set for once."""
    return f"set={{{key!r}: ...}}" if _IN_PYTHON.get() else f"--set {key}=..."
