"""Suggestions for an invalid command line: a similar name, the replacement of a removed one, or the
usage of the verb.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npuprof.commands.framework import Parameter, Verb, load_verb
from npuprof.model import find_nearest_names

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
    ("sweep", "--front"): "npuprof sweep --format csv, and a program that plots",
    ("import", "--from"): "npuprof scan PATH --statistics --from RELEASE --cann RELEASE",
}

#: Verbs of other tools, with their equivalents.
OTHER_VERBS = {
    word: replacement
    for words, replacement in (
        (
            "remove delete rm",
            (
                "git rm profiles/NAME.toml deletes a preset, "
                "npuprof unset NAME KEY takes a value out of one"
            ),
        ),
        (
            "apply use activate switch",
            (
                "npuprof run NAME -- COMMAND runs with a preset, "
                "npuprof inject FILE NAME writes it into a script"
            ),
        ),
        (
            "get cat view info",
            "npuprof show NAME prints a preset, npuprof explain NAME KEY one value and its origin",
        ),
        ("export exports", "npuprof env NAME prints exports for a shell, npuprof render NAME code"),
        (
            "edit update add create save",
            "npuprof set NAME KEY=VALUE changes a preset, npuprof new NAME makes one",
        ),
        ("validate lint", "npuprof check validates presets, npuprof scan FILE reads scripts"),
        ("history versions", "npuprof log NAME lists the commits that changed a preset"),
        (
            "tag publish push",
            "npuprof release NAME makes a version of a preset, and --push sends it",
        ),
        (
            "compare",
            (
                "npuprof diff A B compares two presets, npuprof "
                "diff --rev BRANCH the store with a branch"
            ),
        ),
        ("upgrade", "npuprof migrate NAME --cann RELEASE rewrites a preset for a release"),
        ("ls", "npuprof list lists the presets"),
        ("mv", "npuprof rename OLD NEW renames a preset with every reference"),
    )
    for word in words.split()
}


def suggest_flag(error: Exception, words: list[str]) -> None:
    """Add similar flags of the verb to the error for an unknown flag."""
    found, name = load_verb(words), getattr(error, "option_name", "")
    if found is None or not hasattr(error, "possibilities"):
        return
    bare = {
        flag.lstrip("-"): flag for flag in found[1].spellings if flag.startswith("--")
    }  # dashes would count as half of a short name
    error.possibilities = [bare[near] for near in find_nearest_names(name.lstrip("-"), bare)]


def suggest_verb(word: str, verbs: Sequence[str]) -> str:
    """Return ``Did you mean 'show'?`` with the verbs that a word abbreviates or misspells.

    An empty string if there are none.
    """
    if word in VERBS or (word in OTHER_VERBS and "show" in verbs):
        return ""
    similar = [
        verb for verb in verbs if len(word) > 1 and verb.startswith(word)
    ] or find_nearest_names(word, verbs, 1)
    return f"Did you mean {' or '.join(map(repr, similar))}?" if similar else ""


def explain_usage(error: Exception, words: list[str]) -> Iterator[str]:
    """Yield suggestions after a usage error."""
    if replacement := describe_replacement(words, getattr(error, "option_name", "") or ""):
        yield replacement
        return
    loaded = load_verb(words)
    if loaded is None:
        return
    names, verb, _ = loaded
    parameter = verb.parameters.get(getattr(getattr(error, "param", None), "name", None) or "")
    if parameter is not None and parameter.required:
        yield f"{_format_parameter(parameter)}: {parameter.describe()}"
    if verb.usage_hint:
        yield verb.usage_hint
    elif parameter is None:
        yield _describe_parameters(" ".join(("npuprof", *names)), verb)


def _format_parameter(parameter: Parameter) -> str:
    return (
        f"{parameter.flags[0]} {parameter.metavar}"
        if parameter.flags
        else parameter.metavar.rstrip(".")
    )


def _describe_parameters(called: str, verb: type[Verb]) -> str:
    """Return the arguments and flags of a verb in one line."""
    places = [parameter.metavar for parameter in verb.parameters.values() if not parameter.flags]
    flags = [parameter.flags[0] for parameter in verb.parameters.values() if parameter.flags]
    return f"{called} takes {' '.join(places) or 'no arguments'}" + (
        f", and {', '.join(flags)}." if flags else "."
    )


def describe_replacement(words: Sequence[str], flag: str = "") -> str:
    """Return the replacement for a verb of another tool, or a removed flag.

    An empty string if the command line has neither.
    """
    verb = words[0] if words else ""
    if verb in VERBS:
        return f"{verb} was removed in {_SINCE}: use {VERBS[verb]}"
    if (verb, flag) in FLAGS:
        return f"{flag} was removed in {_SINCE}: use {FLAGS[verb, flag]}"
    return f"{OTHER_VERBS[verb]}." if verb in OTHER_VERBS and not flag else ""
