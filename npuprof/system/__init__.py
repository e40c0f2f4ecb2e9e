"""What npuprof asks of the system and of Python: processes, files, a user's folders, and patterns compiled when they are first used."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, AnyStr, cast


class _LazyPattern:
    def __init__(self, text: Any, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, method)
        return method


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what ``re.compile`` would, compiled when one of its methods is first asked for. Functions of ``re`` do not take it."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))


@contextmanager
def pause_collection() -> Iterator[None]:
    """Collect no garbage meanwhile: for work that keeps nearly all objects it makes, which a collector goes through for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
