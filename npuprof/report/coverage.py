"""How many settings were found and checked, and which of them the catalogue does not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof.model import Record
from npuprof.report.text import count_rest, escape_controls, format_count

_SHOWN = 5


class Coverage(Record):
    """Some settings: how many were ``checked``, are ``dynamic``, or pass through ``unchecked``, and the name of each ``unknown`` one."""

    checked: int = 0
    dynamic: int = 0
    unknown: Sequence[str] = ()
    unchecked: int = 0

    @property
    def settings(self) -> int:
        """How many settings were found."""
        return self.checked + self.dynamic + len(self.unknown) + self.unchecked

    def format_fields(self) -> dict[str, Any]:
        """Return the counts as fields of a JSON answer."""
        names = sorted(set(self.unknown))
        counts = {"settings": self.settings, "checked": self.checked, "dynamic": self.dynamic, "unknown": len(self.unknown)}
        return {**counts, **({"unchecked": self.unchecked} if self.unchecked else {}), "names": names}

    def describe(self, flag: str = "", everything: bool = False) -> str:
        """Return the counts in words. Names of unknown settings are cut, unless ``everything`` is asked for by a ``flag``."""
        names = [escape_controls(name) for name in sorted(set(self.unknown))]
        hint = f"; {flag} lists them" if flag and len(names) > _SHOWN and not everything else ""
        unknown = f"{len(self.unknown)} unknown ({count_rest(names, len(names) if everything else _SHOWN)}){hint}" if names else ""
        parts = [f"{self.checked} checked", f"{self.dynamic} dynamic" if self.dynamic else "", unknown]
        parts += [f"{self.unchecked} passed through unchecked" if self.unchecked else ""]
        return f"{format_count(self.settings, 'setting')}: {', '.join(filter(None, parts))}" if self.settings else "no settings"
