"""Coverage: how many settings were found and checked, which are unknown, what was not judged."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.model import Fields, Record
from npuprof.report.text import count_rest, escape_controls, format_count

_SHOWN = 5


class Unjudged(Record):
    """Lines of a surface that were seen and not judged, in a number of files.

    ``places`` are the lines where they are known: ``FILE:LINE``.
    """

    surface: str
    lines: int
    files: int = 1
    places: Sequence[str] = ()


class Coverage(Record):
    """Counts of settings; ``unknown`` are names, no program gets ``lost`` ones."""

    checked: int = 0
    dynamic: int = 0
    unknown: Sequence[str] = ()
    lost: int = 0
    unjudged: Sequence[Unjudged] = ()

    @property
    def settings(self) -> int:
        """The number of settings found."""
        return self.checked + self.dynamic + len(self.unknown) + self.lost

    def format_fields(self) -> Fields:
        """Return the counts as fields of a JSON answer."""
        fields: Fields = {
            "settings": self.settings,
            "checked": self.checked,
            "dynamic": self.dynamic,
            "unknown": len(self.unknown),
        }
        if self.lost:
            fields["lost"] = self.lost
        if self.unjudged:
            fields["not_judged"] = [
                {name: value for name, value in seen._asdict().items() if value != ()}
                for seen in self.unjudged
            ]
        return {**fields, "names": sorted(set(self.unknown))}

    def describe(self, flag: str = "", everything: bool = False) -> str:
        """Return the counts as text.

        Unknown names are cut, with a reference to ``flag``, unless ``everything`` is set.
        """
        if not self.settings:
            return "no settings"
        parts = [f"{self.checked} checked"]
        if self.dynamic:
            parts.append(f"{self.dynamic} dynamic")
        if self.unknown:
            names = [escape_controls(name) for name in sorted(set(self.unknown))]
            shown = len(names) if everything else _SHOWN
            hint = f"; {flag} lists them" if flag and len(names) > shown else ""
            parts.append(f"{len(self.unknown)} unknown ({count_rest(names, shown)}){hint}")
        if self.lost:
            parts.append(f"{self.lost} lost")
        return f"{format_count(self.settings, 'setting')}: {', '.join(parts)}"

    def describe_unjudged(self) -> str:
        """Return what was seen and not judged as a line of a note; empty if there is nothing."""
        parts = []
        for seen in self.unjudged:
            lines = f"{seen.lines:,} {'line' if seen.lines == 1 else 'lines'} of {seen.surface}"
            parts.append(f"{lines} in {format_count(seen.files, 'file')}")
        return f"\n  not judged: {', '.join(parts)}" if parts else ""

    def describe_clean(self) -> str:
        """Return what it means that there are no findings."""
        if not self.checked:
            return "nothing was checked"
        return f"no findings in {format_count(self.checked, 'checked setting')}"
