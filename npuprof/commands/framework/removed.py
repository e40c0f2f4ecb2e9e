"""Words that are no verbs or flags, each with what to type: those of an earlier release, and those that people try."""

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

#: Words that people try, with the verbs that are meant: among the words, or in a text.
_MEANT = {
    word: (words, verbs)
    for words, verbs in (
        ("remove delete rm", "git rm profiles/NAME.toml deletes a preset, npuprof unset NAME KEY takes a value out of one"),
        ("apply use activate switch", "npuprof run NAME -- COMMAND runs with a preset, npuprof inject FILE NAME writes it into a script"),
        ("get cat view", "npuprof show NAME prints a preset, npuprof explain NAME KEY one value and its origin"),
        ("export exports", "npuprof env NAME prints exports for a shell, npuprof render NAME code"),
        ("edit update add", "npuprof set NAME KEY=VALUE changes a preset, npuprof new NAME makes one"),
        ("validate lint", "npuprof check validates presets, npuprof scan FILE reads scripts"),
        ("history versions", "npuprof log NAME lists the commits that changed a preset"),
        ("tag publish", "npuprof release NAME makes a version of a preset"),
        ("compare", "npuprof diff A B compares two presets, npuprof diff --rev BRANCH the store with a branch"),
        ("ls list", ""),
        ("mv rename", ""),
    )
    for word in words.split()
}


def find_verbs_meant(word: str, verbs: Sequence[str]) -> list[str] | None:
    """Return which verbs a word means that people try; None if it is no such word."""
    if word in VERBS:
        return []
    return [verb for verb in verbs if verb in _MEANT[word][0].split()] if word in _MEANT else None


def describe_replacement(words: Sequence[str], flag: str = "") -> str:
    """Return what replaces a removed verb, or a removed flag of a verb; an empty text if a command line names neither."""
    verb = words[0] if words else ""
    if verb in VERBS:
        return f"{verb} was removed in {_SINCE}: use {VERBS[verb]}"
    if (verb, flag) in FLAGS:
        return f"{flag} was removed in {_SINCE}: use {FLAGS[verb, flag]}"
    meant = _MEANT[verb][1] if verb in _MEANT and not flag else ""
    return meant and f"{meant}."
