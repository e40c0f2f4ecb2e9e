"""Markdown: the fenced blocks of READMEs and runbooks, from which users copy commands.

Shell blocks are scripts; of manifests in YAML, only the arguments of programs are read, and of JSON
only config files of programs and their parts.
"""

from __future__ import annotations

import re

from npuprof.catalog.programs import find_program
from npuprof.scripts.reading.config_files import (
    find_config_parts,
    mentions_config_file,
    read_config_table,
)
from npuprof.scripts.reading.configs import import_yaml
from npuprof.scripts.reading.shell_scripts import import_shell_script, mentions_setting
from npuprof.scripts.script_records import ImportedFile

#: A fenced block in a shell language, or of data: its indentation, fence and text.
_BLOCK = re.compile(
    r"^(?P<indent>[ \t>]*)(?P<fence>```+|~~~+)[ "
    r"\t]*\{?\.?(?:bash|sh|shell|zsh|console|shell-session|shellscript|(?P<yaml>ya?ml)"
    r"|(?P<json>json\w*|(?=[ \t]*\n)))(?!\w)[^\n]*\n"
    r"(?P<text>.*?)^[ \t>]*(?P=fence)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_PROMPT = re.compile(r"^[ \t]*[$#] (?=\S)", re.MULTILINE)
#: A word to be replaced, which a shell would take for two redirections.
_PLACEHOLDER = re.compile(r"(?<=[ \t])<(?P<name>[A-Za-z][\w-]*)>(?=\s)")
_QUOTED = re.compile(r"^[ \t]*>", re.MULTILINE)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def import_yaml_page(path: str, text: str) -> ImportedFile:
    """Return the content of a YAML file, with the launches in Markdown in its texts."""
    imported = import_yaml(path, text)
    guide = import_markdown(path, text)
    return imported._replace(settings=imported.settings + guide.settings)


def mentions_guide(data: bytes) -> bool:
    """Return whether a guide can contain settings."""
    return mentions_setting(data) or mentions_config_file(data, in_guide=True)


def import_markdown(path: str, text: str) -> ImportedFile:
    """Return the content of a Markdown file's shell blocks, each as a separate script."""
    parts = []
    for match in _BLOCK.finditer(text):
        # blanks keep the columns
        block = _QUOTED.sub(_blank, match["text"]) if ">" in match["indent"] else match["text"]
        # a reference, as long as the placeholder, to a variable that nobody sets
        block = _PLACEHOLDER.sub(lambda match: f"${match['name'].replace('-', '_')}_", block)
        # blank lines keep the line numbers of the file
        line = text.count("\n", 0, match.start("text"))
        placed = "\n" * line + block
        if match["json"] is not None:
            # each a config file of a program, or a part of one
            tables = find_config_parts(placed)
            parts += [read_config_table(path, section, table) for section, table in tables]
        elif match["yaml"]:
            settings = import_yaml(path, placed).settings
            kept = (setting for setting in settings if find_program(setting.surface))
            parts.append(ImportedFile(path, tuple(kept)))
        else:
            parts.append(import_shell_script(path, _PROMPT.sub(_blank, placed), is_part=True))
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
