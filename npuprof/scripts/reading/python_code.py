"""Python code in other files, such as the argument of ``python -c``."""

from __future__ import annotations

import re
from textwrap import dedent

from npuprof.scripts.python.reader import import_python, mentions_python_setting
from npuprof.scripts.reading.variable_files import leave_out
from npuprof.scripts.script_records import OTHER, Position, ScriptSetting

#: What a shell replaces in double quotes.
_EXPANDED = re.compile(r"[$`]")


def find_code_settings(
    path: str, text: str, position: Position, is_expanded: bool = False
) -> list[ScriptSetting]:
    """Return the settings of Python code in a file, which begins at a position.

    A shell expands variables in ``is_expanded`` code.
    """
    code = dedent(text)
    if not mentions_python_setting(code.encode(errors="replace")):
        return []
    line, column = position
    indent = text.partition("\n")[0].find(code.partition("\n")[0])
    settings = []
    for setting in import_python(
        path, ("\n" * (line - 1) + code).encode(errors="replace")
    ).settings:
        shift = indent + (column - 1 if setting.line == line else 0)
        setting = setting.with_location(column=setting.column + shift)
        # each process has its own <module> and <process>
        setting = setting._replace(scope=setting.scope.replace("<", f"<{line} ", 1))
        if is_expanded and _EXPANDED.search(str(setting.assigned.written)):
            setting = setting.with_value(value=None, reason="depends on the shell")
        if setting.surface in ("env", OTHER):
            setting = leave_out(setting, "applies to this Python process only")
        settings.append(setting)
    return settings
