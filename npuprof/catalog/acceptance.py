"""Which findings can be accepted, and which stand whatever anybody says."""

from __future__ import annotations

from npuprof.catalog import load_built_part

#: Findings that nobody may accept for others.
_NEVER = {
    "NP105": "whoever locked the value relies on it",
    "NP413": "a target refuses it",
    "NP607": "npuprof itself reads it",
}


def find_acceptance_fault(code: str) -> str:
    """Return why a code cannot be accepted, an empty text where it can; codes of teams always can."""
    if code in _NEVER:
        return f"it cannot be accepted: {_NEVER[code]}"
    if not code.startswith("NP"):
        return "" if code.isprintable() and code else "it is no code"
    if code not in load_built_part("severities"):
        return "there is no such code"
    if code[2:] < "2" and len(code) == 5:
        return "it cannot be accepted: what cannot be read or resolved has no values"
    return "it cannot be accepted: a target or a command refuses it" if code.startswith("NP9") else ""
