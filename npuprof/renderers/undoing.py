"""What an export into a shell overwrites, kept beside it so that undoing the export can bring it back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npuprof.model import LONGEST_WORD, is_utf8
from npuprof.renderers.shell import Shell, format_clear_lines, format_export_lines

#: Holds the values that variables had before the first export, as a JSON object.
BEFORE = "NPUPROF_BEFORE"


def format_values_before(names: Iterable[str], environ: Mapping[str, str]) -> str:
    """Return what ``NPUPROF_BEFORE`` has to hold where variables are exported into an environment, an empty text for nothing.

    While an export is in force nobody can tell what of the values there is its own, so what it has kept stays as it is.
    """
    if environ.get("NPUPROF_DIGEST"):
        return environ.get(BEFORE, "")
    found = {name: environ[name] for name in names if name in environ and not name.startswith("NPUPROF_") and is_utf8(environ[name])}
    if not found:
        return ""
    import json

    text = json.dumps(found, sort_keys=True)
    return text if len(text) + len(BEFORE) + 1 <= LONGEST_WORD else ""


def format_undo_lines(shell: Shell, names: Iterable[str], environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the lines that undo an export, and remarks: variables get the values that they had before it, as far as that is known."""
    known = _read_values_before(environ)
    refused = {name: reason for name, text in known.items() if (reason := shell.refuses(text)) and text}
    restored = {name: text for name, text in known.items() if name not in refused and (text or not shell.refuses(text))}
    cleared = [name for name in dict.fromkeys((*names, *refused, *((BEFORE,) if BEFORE in environ else ()))) if name not in restored]
    notes = [f"{name} is unset, not restored: {reason}" for name, reason in refused.items()]
    return format_clear_lines(shell, cleared) + format_export_lines(shell, restored), notes


def _read_values_before(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what was kept; nothing where somebody else wrote it."""
    if not environ.get(BEFORE):
        return {}
    import json

    try:
        found = json.loads(environ[BEFORE])
    except (ValueError, RecursionError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {name: text for name, text in pairs if isinstance(text, str) and name.isascii() and name.isidentifier() and "\0" not in text}
