"""Markdown: the fenced shell blocks of READMEs and runbooks, from which users copy commands."""

from __future__ import annotations

import re

from npuprof.scripts.reading.shell_scripts import import_shell_script
from npuprof.scripts.script_records import ImportedFile

#: A fenced block in a shell language: its indentation, fence and text.
_BLOCK = re.compile(
    r"^(?P<indent>[ \t>]*)(?P<fence>```+|~~~+)[ "
    r"\t]*\{?\.?(?:bash|sh|shell|zsh|console|shell-session|shellscript)\b[^\n]*\n"
    r"(?P<text>.*?)^[ \t>]*(?P=fence)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_PROMPT = re.compile(r"^[ \t]*[$#] (?=\S)", re.MULTILINE)
_QUOTED = re.compile(r"^[ \t]*>", re.MULTILINE)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def import_markdown(path: str, text: str) -> ImportedFile:
    """Return the content of a Markdown file's shell blocks, each as a separate script."""
    parts = []
    for match in _BLOCK.finditer(text):
        # blanks keep the columns
        block = _QUOTED.sub(_blank, match["text"]) if ">" in match["indent"] else match["text"]
        # blank lines keep the line numbers of the file
        line = text.count("\n", 0, match.start("text"))
        parts.append(import_shell_script(path, "\n" * line + _PROMPT.sub(_blank, block)))
    settings = tuple(
        # readers run the blocks that they need, so each has its own variables
        setting
        if any(site.scope == setting.scope for site in part.sites)
        else setting._replace(scope=f"{setting.scope}#{number}")
        for number, part in enumerate(parts)
        for setting in part.settings
    )
    sites = tuple(site for part in parts for site in part.sites)
    # examples in a text may be incomplete
    problems = tuple(
        problem._replace(severity="info") for part in parts for problem in part.problems
    )
    notes = tuple(note for part in parts for note in part.other_records)
    return ImportedFile(path, settings, sites, problems, text, notes)
