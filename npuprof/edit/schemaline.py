"""The line ``#:schema PATH`` at the top of a preset.

Editors (Taplo, Even Better TOML) find the schema of the preset by it.
"""

from __future__ import annotations

import os

from npuprof.system import lazy_pattern

#: Schema files next to a store for editors: of its presets, and of ``npuprof.toml``. No preset can
#: have these names.
PRESET_SCHEMA = ".schema.json"
PROJECT_SCHEMA = ".project.schema.json"
_LINE = lazy_pattern(r"(?<![^\n])#:schema[ \t]+(?P<path>\S[^\r\n]*?)[ \t]*(?=\r?\n|\Z)")
_HEAD = lazy_pattern(r"(?:[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z))*?(?=[ \t]*[^#\s]|\Z)")


def format_schema_line(path: str, root: str) -> str:
    """Return the schema line of a preset; its relative path is valid in every clone."""
    return f"#:schema {_relate(os.path.join(root, PRESET_SCHEMA), os.path.dirname(path))}\n"


def add_schema_line(text: str, path: str, root: str) -> str:
    """Return the text of a new preset with the schema line, if its store has a schema."""
    return (
        format_schema_line(path, root) + text
        if os.path.isfile(os.path.join(root, PRESET_SCHEMA))
        else text
    )


def move_schema_line(text: str, old: str, new: str) -> str:
    """Return the text of a moved preset with its schema line adjusted; URLs stay unchanged."""
    head = _HEAD.match(text)
    match = _LINE.search(text, 0, head.end()) if head else None
    # a URL or an absolute path stays valid in every folder
    if match is None or ":" in match["path"] or match["path"].startswith(("/", "~", "\\")):
        return text
    if os.path.dirname(os.path.abspath(old)) == os.path.dirname(os.path.abspath(new)):
        return text
    path = _relate(os.path.join(os.path.dirname(old), match["path"]), os.path.dirname(new))
    return text[: match.start("path")] + path + text[match.end("path") :]


def measure_schema_head(text: str) -> int:
    """Return the end of the schema line in the lines above the first statement.

    0 if there is none.
    """
    if "#:schema" not in text:
        return 0
    head = _HEAD.match(text)
    match = _LINE.search(text, 0, head.end()) if head else None
    return text.find("\n", match.end()) + 1 if match else 0


def _relate(path: str, folder: str) -> str:
    relative = os.path.relpath(os.path.abspath(path), os.path.abspath(folder or "."))
    relative = relative.replace(os.sep, "/")
    if relative.startswith(".") and not relative.startswith(PRESET_SCHEMA):
        return relative
    return f"./{relative}"
