"""Values of Python as a preset can hold them: texts, numbers, truth values, and lists and tables of these."""

from __future__ import annotations

from typing import Any

from npuprof.model import is_utf8
from npuprof.scripts.python.terms import Unknown
from npuprof.scripts.records import HALF_CHARACTER


def make_plain(value: Any, around: str = "") -> Any:
    """Return a value, or what stands in a list or table (``around``), as a preset holds it. Raises Unknown where no preset can."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, str):
        if not is_utf8(value):
            raise Unknown(HALF_CHARACTER)
        return value
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [make_plain(item, "a list") for item in value]
    if isinstance(value, dict):
        for name in value:
            if not isinstance(name, str):
                raise Unknown(f"a table with the key {str(name)[:40]}, which is no text")
        return {make_plain(name): make_plain(item, "a table") for name, item in value.items()}
    if around and value is None:
        raise Unknown(f"{around} that holds None")
    raise Unknown(f"{f'{around} that holds ' if around else ''}a {type(value).__name__}{'' if around else ' is no value of an option'}")
