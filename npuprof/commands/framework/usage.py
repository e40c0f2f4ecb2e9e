"""Suggestions for an invalid command line.

They are a similar name, the replacement of a removed one, or the usage of the verb.
"""

from __future__ import annotations

import shlex
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
    verb: replacement
    for verbs, replacement in (
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
        ("version", "npuprof --version prints the version"),
        ("completion completions", "npuprof --install-completion installs it for this shell"),
        ("mv", "npuprof rename OLD NEW renames a preset with every reference"),
    )
    for verb in verbs.split()
}


def suggest_flag(error: Exception, arguments: list[str]) -> None:
    """Add similar flags of the verb to the error for an unknown flag."""
    loaded = load_verb(arguments)
    name = getattr(error, "option_name", "")
    # only Click's error for unknown options has them
    if loaded is None or not hasattr(error, "possibilities"):
        return
    # without the dashes, which would count as half of a short name
    bare = {flag.lstrip("-"): flag for flag in loaded.verb.spellings if flag.startswith("--")}
    error.possibilities = [bare[near] for near in find_nearest_names(name.lstrip("-"), bare)]


def suggest_verb(typed: str, verbs: Sequence[str]) -> str:
    """Return ``Did you mean 'show'?`` with the verbs that a name abbreviates or misspells.

    An empty string if there are none.
    """
    # explain_usage has a better answer than a similar name
    if typed in VERBS or (typed in OTHER_VERBS and "show" in verbs):
        return ""
    similar = [verb for verb in verbs if len(typed) > 1 and verb.startswith(typed)]
    similar = similar or find_nearest_names(typed, verbs, 1)
    if similar:
        return f"Did you mean {' or '.join(map(repr, similar))}?"
    if "show" in verbs:
        return "npuprof --help lists the commands."
    return f"Known are {', '.join(verbs)}."


def explain_usage(error: Exception, arguments: list[str]) -> Iterator[str]:
    """Yield suggestions after a usage error."""
    from npuprof.catalog.code_pages import suggest_page

    flag = getattr(error, "option_name", "") or ""
    replacement = describe_replacement(arguments, flag) or suggest_page(arguments[-1])
    if replacement:
        yield replacement
        return
    loaded = load_verb(arguments)
    if loaded is None:
        yield from _move_flags(flag, arguments)
        return
    verb = loaded.verb
    parameter = verb.parameters.get(getattr(getattr(error, "param", None), "name", None) or "")
    if not hasattr(error, "possibilities"):  # its value is missing or surplus
        parameter = parameter or verb.spellings.get(flag)
    if parameter is not None:
        yield f"{_format_parameter(parameter)}: {parameter.describe()}"
    if verb.usage_hint:
        yield verb.usage_hint
    elif parameter is None:
        yield _describe_parameters(" ".join(("npuprof", *loaded.names)), verb)


def _move_flags(flag: str, arguments: list[str]) -> Iterator[str]:
    """Yield the command line with the flags before a verb behind it, if that has them."""
    for at in range(1, len(arguments)):
        for family in (arguments[:1], []):
            loaded = load_verb([*family, *arguments[at:]])
            if loaded and flag in loaded.verb.spellings:
                words = [*loaded.names, *arguments[len(family) : at], *loaded.arguments]
                yield f"The flags of a verb come after it: npuprof {shlex.join(words)}"
                return
    if flag:
        yield "npuprof takes a command, or --version, or --help for a list of commands."


def _format_parameter(parameter: Parameter) -> str:
    if parameter.flags:
        return f"{parameter.flags[0]} {parameter.metavar}".rstrip()
    return parameter.metavar.rstrip(".")


def _describe_parameters(command: str, verb: type[Verb]) -> str:
    """Return the arguments and flags of a verb in one line."""
    parameters = verb.parameters.values()
    positional = [parameter.metavar for parameter in parameters if not parameter.flags]
    flags = [parameter.flags[0] for parameter in parameters if parameter.flags]
    end = f", and {', '.join(flags)}." if flags else "."
    return f"{command} takes {' '.join(positional) or 'no arguments'}{end}"


def describe_replacement(arguments: Sequence[str], flag: str) -> str:
    """Return the replacement for a verb of another tool, or a removed flag.

    An empty string if the command line has neither.
    """
    verb = arguments[0] if arguments else ""
    if verb in VERBS:
        return f"{verb} was removed in {_SINCE}: use {VERBS[verb]}"
    if (verb, flag) in FLAGS:
        return f"{flag} was removed in {_SINCE}: use {FLAGS[verb, flag]}"
    return f"{OTHER_VERBS[verb]}." if verb in OTHER_VERBS and not flag else ""
