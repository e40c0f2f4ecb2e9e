"""Python code in other files, such as the argument of ``python -c``."""

from __future__ import annotations

import re
from textwrap import dedent

from npuprof.scripts.python.reader import import_python, mentions_python_setting
from npuprof.scripts.reading.variable_files import leave_out
from npuprof.scripts.script_records import Branch, Branches, Position, ScriptSetting, Site

#: What a shell replaces in double quotes.
_EXPANDED = re.compile(r"[$`]")


def find_code_settings(
    path: str, text: str, position: Position, is_expanded: bool = False
) -> tuple[list[ScriptSetting], list[Site]]:
    """Return the settings of Python code in a file, and its configurations.

    The code begins at a position of the file. A shell expands variables in ``is_expanded`` code.
    """
    code = dedent(text)
    if not mentions_python_setting(code.encode(errors="replace")):
        return [], []
    line, column = position
    indent = len(text.partition("\n")[0]) - len(code.partition("\n")[0])
    imported = import_python(path, ("\n" * (line - 1) + code).encode(errors="replace"))

    def rename(scope: str) -> str:  # each process has its own <module> and <process>
        return f"<{line} {scope[1:]}" if scope.startswith("<") else scope

    def number(branches: Branches) -> Branches:  # the file has other branches with these numbers
        return tuple(Branch(-(line << 20) - each.number, *each[1:]) for each in branches)

    settings = []
    for setting in imported.settings:
        shift = indent + (column - 1 if setting.line == line else 0)
        setting = setting.with_location(column=setting.column + shift)._replace(
            scope=rename(setting.scope), branches=number(setting.branches)
        )
        if is_expanded and _EXPANDED.search(str(setting.assigned.written)):
            setting = setting.with_value(value=None, reason="depends on the shell")
        if setting.surface in ("env", "other"):
            setting = leave_out(setting, "applies to this Python process only")
        settings.append(setting)
    sites = [
        site._replace(scope=rename(site.scope), branches=number(site.branches))
        for site in imported.sites
    ]
    return settings, sites
