"""What to try after a command line that cannot be parsed: the nearest name, the replacement of a removed one, or the usage of the verb."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npuprof.commands.framework.registry import load_verb
from npuprof.commands.framework.removed import OTHER_VERBS, VERBS, describe_replacement
from npuprof.commands.framework.verb import Parameter, Verb
from npuprof.model import find_nearest_names


def suggest_flag(error: Exception, words: list[str]) -> None:
    """Let an error on an unknown flag name the nearest ones of the verb."""
    found, name = load_verb(words), getattr(error, "option_name", "")
    if found is None or not hasattr(error, "possibilities"):
        return
    flags = [flag for parameter in found[1].parameters.values() for flag in parameter.flags]
    bare = {flag.lstrip("-"): flag for flag in flags if flag.startswith("--")}  # the dashes would be half of a short name
    error.possibilities = [bare[near] for near in find_nearest_names(name.lstrip("-"), bare)]


def suggest_verb(word: str, verbs: Sequence[str]) -> str:
    """Return ``Did you mean 'show'?``, with the verbs that a word begins or misspells; an empty text if there is none."""
    if word in VERBS or (word in OTHER_VERBS and "show" in verbs):
        return ""
    similar = [verb for verb in verbs if len(word) > 1 and verb.startswith(word)] or find_nearest_names(word, verbs, 1)
    return f"Did you mean {' or '.join(map(repr, similar))}?" if similar else ""


def explain_usage(error: Exception, words: list[str]) -> Iterator[str]:
    """Yield what to try after an error of usage."""
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
    return f"{parameter.flags[0]} {parameter.metavar}" if parameter.flags else parameter.metavar.rstrip(".")


def _describe_parameters(called: str, verb: type[Verb]) -> str:
    """Return in a line which arguments and flags a verb takes."""
    places = [parameter.metavar for parameter in verb.parameters.values() if not parameter.flags]
    flags = [parameter.flags[0] for parameter in verb.parameters.values() if parameter.flags]
    return f"{called} takes {' '.join(places) or 'no arguments'}" + (f", and {', '.join(flags)}." if flags else ".")
