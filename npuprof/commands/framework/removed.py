"""Verbs and flags that a release removed, each with its replacement."""

from __future__ import annotations

from collections.abc import Sequence

#: The release that removed them.
_SINCE = "0.2.0"
#: Verbs.
VERBS = {
    "undo": "git restore PATH, or npuprof restore NAME@HEAD --force",
}
#: Flags, by verb and flag.
FLAGS = {
    ("import", "--summary"): "npuprof scan PATH --statistics",
    ("import", "--cann"): "npuprof scan PATH --statistics --cann RELEASE",
    ("import", "--from"): "npuprof scan PATH --statistics --from RELEASE --cann RELEASE",
}


def describe_replacement(words: Sequence[str], flag: str = "") -> str:
    """Return what replaces a removed verb, or a removed flag of a verb; an empty text if a command line names neither."""
    verb = words[0] if words else ""
    if verb in VERBS:
        return f"{verb} was removed in {_SINCE}: use {VERBS[verb]}"
    if (verb, flag) in FLAGS:
        return f"{flag} was removed in {_SINCE}: use {FLAGS[verb, flag]}"
    return ""
