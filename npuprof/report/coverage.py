"""Coverage: the number of settings that were found and checked, and the names unknown to the
catalogue.
"""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.model import Record
from npuprof.report.text import count_rest, escape_controls, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHOWN = 5


class Coverage(Record):
    """Counts of settings: ``checked``, ``dynamic``, ``unchecked`` (passed through), and the names
    of ``unknown`` ones.
    """

    checked: int = 0
    dynamic: int = 0
    unknown: Sequence[str] = ()
    unchecked: int = 0

    @property
    def settings(self) -> int:
        """The number of settings found."""
        return self.checked + self.dynamic + len(self.unknown) + self.unchecked

    def format_fields(self) -> dict[str, Any]:
        """Return the counts as fields of a JSON answer."""
        names = sorted(set(self.unknown))
        counts = {
            "settings": self.settings,
            "checked": self.checked,
            "dynamic": self.dynamic,
            "unknown": len(self.unknown),
        }
        return {
            **counts,
            **({"unchecked": self.unchecked} if self.unchecked else {}),
            "names": names,
        }

    def describe(self, flag: str = "", everything: bool = False) -> str:
        """Return the counts as text.

        Unknown names are cut, with a reference to ``flag``, unless ``everything`` is set.
        """
        names = [escape_controls(name) for name in sorted(set(self.unknown))]
        hint = f"; {flag} lists them" if flag and len(names) > _SHOWN and not everything else ""
        unknown = (
            (
                f"{len(self.unknown)} unknown "
                f"({count_rest(names, len(names) if everything else _SHOWN)}){hint}"
            )
            if names
            else ""
        )
        parts = [
            f"{self.checked} checked",
            f"{self.dynamic} dynamic" if self.dynamic else "",
            unknown,
        ]
        parts += [f"{self.unchecked} passed through unchecked" if self.unchecked else ""]
        return (
            f"{format_count(self.settings, 'setting')}: {', '.join(filter(None, parts))}"
            if self.settings
            else "no settings"
        )
