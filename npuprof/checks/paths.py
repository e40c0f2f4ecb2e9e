"""What is wrong with a path, whichever section it stands in."""

from __future__ import annotations

import re

from npuprof.catalog.paths import find_shell_word
from npuprof.checks.view import Fault
from npuprof.document.keys import format_short_value


def find_path_faults(key: str, path: str, characters: str = "") -> list[Fault]:
    """Return what is wrong with a path: what nothing expands, and characters beyond those of the manual, if it names any."""
    if word := find_shell_word(path):
        what = f"{key} = {format_short_value(path)} holds {word}, which nothing expands"
        why = "A shell replaces it in a line that is typed; rendered code and exports hand the path on as it is."
        return [Fault("NP211", what, why, "write the path out, or one from the current folder on")]
    if characters and (odd := re.sub(f"[{characters}]+", "", path)):
        listed = ", ".join(dict.fromkeys(map(format_short_value, odd)))
        what = f"{key} = {format_short_value(path)} holds {listed}"
        why = "The manual lets such a path be made of letters, digits, '_', '-', '.', Chinese characters and the '/' between them."
        return [Fault("NP203", what, why, "rename the folder or the file")]
    return []
