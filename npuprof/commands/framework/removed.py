"""Words that are no verbs or flags, each with what to type: those that a release removed, and those of other tools."""

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

#: Verbs of other tools, with what does the same here.
OTHER_VERBS = {
    word: replacement
    for words, replacement in (
        ("remove delete rm", "git rm profiles/NAME.toml deletes a preset, npuprof unset NAME KEY takes a value out of one"),
        ("apply use activate switch", "npuprof run NAME -- COMMAND runs with a preset, npuprof inject FILE NAME writes it into a script"),
        ("get cat view info", "npuprof show NAME prints a preset, npuprof explain NAME KEY one value and its origin"),
        ("export exports", "npuprof env NAME prints exports for a shell, npuprof render NAME code"),
        ("edit update add create save", "npuprof set NAME KEY=VALUE changes a preset, npuprof new NAME makes one"),
        ("validate lint", "npuprof check validates presets, npuprof scan FILE reads scripts"),
        ("history versions", "npuprof log NAME lists the commits that changed a preset"),
        ("tag publish push", "npuprof release NAME makes a version of a preset, and --push sends it"),
        ("compare", "npuprof diff A B compares two presets, npuprof diff --rev BRANCH the store with a branch"),
        ("upgrade", "npuprof migrate NAME --cann RELEASE rewrites a preset for a release"),
        ("ls", "npuprof list lists the presets"),
        ("mv", "npuprof rename OLD NEW renames a preset with every reference"),
    )
    for word in words.split()
}


def describe_replacement(words: Sequence[str], flag: str = "") -> str:
    """Return what to type instead of a verb that is none here, or of a removed flag; an empty text if a command line names neither."""
    verb = words[0] if words else ""
    if verb in VERBS:
        return f"{verb} was removed in {_SINCE}: use {VERBS[verb]}"
    if (verb, flag) in FLAGS:
        return f"{flag} was removed in {_SINCE}: use {FLAGS[verb, flag]}"
    return f"{OTHER_VERBS[verb]}." if verb in OTHER_VERBS and not flag else ""
