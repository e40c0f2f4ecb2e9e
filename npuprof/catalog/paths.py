"""What only a shell makes something else of, where it stands in a path."""

from __future__ import annotations

import re

from npuprof.system.patterns import lazy_pattern

_SHELL_WORD = lazy_pattern(r"^~[\w.-]*(?=/|$)|\$(?:[A-Za-z_]\w*|\{[^{}]*\}|\([^()]*\))", re.ASCII)


def find_shell_word(path: str) -> str:
    """Return what a shell would replace in a path: ``$HOME``, ``${HOME}``, ``$(pwd)``, ``~`` at its start; empty where nothing."""
    found = _SHELL_WORD.search(path)
    return found[0] if found else ""
