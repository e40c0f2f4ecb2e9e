"""Arguments in messages, as whoever reads them gives them: options of the command, or arguments of the library's functions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar
    from typing import ParamSpec, TypeVar

    Given = ParamSpec("Given")
    Returned = TypeVar("Returned")

#: Whether it is the library that speaks. The command does without: every verb imports this, and nearly none of them says anything.
_in_python: ContextVar[bool] | None = None
#: What an option of the command is called in Python, where that is another name.
_ARGUMENTS = {"store": "path", "with": "mixins"}


def speak_python(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Return a function of the library, whose messages name its own arguments."""
    import functools
    from contextvars import ContextVar

    global _in_python
    asked = _in_python = _in_python or ContextVar("in_python", default=False)

    @functools.wraps(function)
    def speaking(*given: Given.args, **named: Given.kwargs) -> Returned:
        before = asked.set(True)
        try:
            return function(*given, **named)
        finally:
            asked.reset(before)

    return speaking


def _speaks_python() -> bool:
    return _in_python is not None and _in_python.get()


def say_option(name: str, value: str | None = None) -> str:
    """Return how an option with a value is named, or given: ``--store``, ``--store DIR``."""
    if _speaks_python():
        argument = _ARGUMENTS.get(name, name)
        return argument if value is None else f"{argument}={value!r}"
    return f"--{name}" if value is None else f"--{name} {value}"


def say_switch(name: str) -> str:
    """Return how an option without a value is given: ``--trust``."""
    return f"{_ARGUMENTS.get(name, name)}=True" if _speaks_python() else f"--{name}"


def say_set(key: str) -> str:
    """Return how a key is set for once."""
    return f"set={{{key!r}: ...}}" if _speaks_python() else f"--set {key}=..."
