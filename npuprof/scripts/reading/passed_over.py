"""What a script that gives no setting says of Ascend all the same, in ways that no importer follows: named, so that nobody misses it."""

from __future__ import annotations

import re

from npuprof.scripts.python.optimizer_entries import NamedEntry
from npuprof.scripts.python.terms import cut_text
from npuprof.scripts.records import ImportedFile

#: A line of Python that names what takes settings, and more than asks for it.
_NAMED = re.compile(
    r"^[ \t]*(?!#|from\b|import\b|print\b|[^\n]*isinstance)([^#\n]*?\b(NPURunConfig\b|parameter_map(?=\[))[^\n]*)", re.MULTILINE
)
#: A conversion with flags, behind quotes or in an expansion, where no comment stands before it.
_ATC = re.compile(r"^((?![ \t]*#).*?(?<![\w./-])(?:[\w./-]*/)?atc(?![\w./-])[^#\n]*?--\w+[^\n]*)", re.MULTILINE)


def find_passed_over(imported: ImportedFile) -> str:
    """Return what is passed over in a file without settings, with its line; empty where nothing of Ascend is set there."""
    names: dict[str, dict[str, int]] = {}
    for entry in imported.list_own_remarks(NamedEntry):
        names.setdefault(entry.site, {}).setdefault(entry.name, entry.line)
    for site, given in names.items():
        if site and len(given) > 1 and "NpuOptimizer" in given:
            which = " or ".join(f"{name} (line {line})" for name, line in given.items())
            return f"the optimizer entry is named {which}, as the run decides"
    text = imported.text
    if not imported.sites and (match := _NAMED.search(text)):
        return f"{match[2]} in line {_count_line(text, match)} is not followed: {cut_text(match[1])}"
    if "atc" in text and not any(site.surface == "atc" for site in imported.sites) and (match := _ATC.search(text)):
        return f"atc is run in line {_count_line(text, match)} in a way that is not followed: {cut_text(match[1])}"
    return ""


def _count_line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start(1)) + 1
