"""Edits of profile texts that keep comments, order, layout and line endings.

Statements are kept, removed and inserted as text; inside a value, tomlkit makes the change. The
result is parsed and compared with the same changes to plain data: an edit with a different result
is rejected.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from npuprof.document import keys, parse_toml_text
from npuprof.edit.paths import PathChange, is_same_document
from npuprof.edit.text_draft import Draft
from npuprof.edit.toml_statements import find_line_ending
from npuprof.model import NpuprofError, Path, build_error

__all__ = ["PathChange", "apply_changes"]


def apply_changes(text: str, changes: Iterable[PathChange]) -> str:
    """Return the text of a profile with changes applied.

    Raises NpuprofError (NP921) for a change that is impossible.

    ``text`` is valid TOML; its line endings are kept, and new lines use the most common one.
    """
    requested = list(changes)
    newline = find_line_ending(text)
    complete = text if text.endswith("\n") or not text else text + newline
    draft = Draft(complete, parse_toml_text(text), requested, newline)
    result = str(draft)
    if complete != text:
        last_line_before = complete[text.rfind("\n") + 1 :]
        last_line_after = result[result.rfind("\n", 0, -1) + 1 :]
        if last_line_after == last_line_before:  # an untouched last line stays without an end
            result = result.removesuffix(newline)
    with suppress(ValueError, RecursionError):
        if is_same_document(parse_toml_text(result), draft.data):
            return result
    if len(requested) > 1:  # one by one, so that the error names the failing change
        for change in requested:
            text = apply_changes(text, [change])
        return text
    raise _build_edit_error(requested[0].path if requested else ())


def _build_edit_error(path: Path) -> NpuprofError:
    shown = keys.format_path(path) or "the file"
    what = f"cannot edit {shown}: the edited text does not parse to the requested values"
    why = (
        "An edit is parsed again before it is written; this one "
        "would have changed another value, or not the requested one."
    )
    return build_error("NP921", what, why, "make this change by hand", key=shown)
