"""Parts of a file that a shell runs for themselves: what they export is gone with them, what they convert is not."""

from __future__ import annotations

from npuprof.scripts.reading.found import FoundSetting, Site
from npuprof.scripts.reading.shell import read_shell_text


def find_shell_settings(path: str, text: str, at: tuple[int, int], reason: str) -> tuple[list[FoundSetting], list[Site]]:
    """Return the settings of a part that begins at a line and column of the file; for variables there is a ``reason`` not to keep them."""
    line, column = at
    found, sites, _ = read_shell_text(path, text)
    settings = []
    for one in found:
        where = one.line + line - 1, one.column + (column - 1 if one.line == 1 else 0)
        scope = f"{one.scope}+{line}" if one.surface == "atc" else one.scope
        settings.append(one._replace(line=where[0], column=where[1], scope=scope))
        if one.surface == "env" and one.key:
            settings[-1] = settings[-1]._replace(value=None, kind="", reason=one.reason or reason)
    moved = [
        site._replace(line=site.line + line - 1, column=site.column + (column - 1 if site.line == 1 else 0), scope=f"{site.scope}+{line}")
        for site in sites
    ]
    return settings, moved
