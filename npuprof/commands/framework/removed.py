"""Verbs and flags that an earlier release had, each with its replacement: named for one release, then forgotten."""

from __future__ import annotations

from collections.abc import Sequence

#: The release that removed them.
_SINCE = "0.2.0"
#: Verbs, by their words.
VERBS: dict[tuple[str, ...], str] = {
    ("undo",): "git restore PATH, or npuprof restore NAME@HEAD --force",
}
#: Flags, by the words of their verb.
FLAGS: dict[tuple[str, ...], str] = {
    ("import", "--summary"): "npuprof scan PATH --statistics",
    ("import", "--cann"): "npuprof scan PATH --statistics --cann RELEASE",
    ("import", "--from"): "npuprof scan PATH --statistics --from RELEASE --cann RELEASE",
}


def describe_replacement(words: Sequence[str], flag: str = "") -> str:
    """Return what replaces a removed verb, or a removed flag of a verb; an empty text if a command line names neither."""
    for length in (1, 2):
        verb = tuple(words[:length])
        if verb in VERBS:
            return f"{' '.join(verb)} was removed in {_SINCE}: use {VERBS[verb]}"
        if flag and (*verb, flag) in FLAGS:
            return f"{flag} was removed in {_SINCE}: use {FLAGS[(*verb, flag)]}"
    return ""
