"""What to try after a command line that cannot be parsed: the nearest name, the replacement of a removed one, or what the verb takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npuprof.commands.framework.registry import load_verb
from npuprof.commands.framework.removed import describe_replacement, find_verbs_meant
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
    """Return ``Did you mean 'show'?``, with the verbs that a word means, begins or misspells; an empty text if there is none."""
    meant = find_verbs_meant(word, verbs)
    if meant is None:
        most = max(1, min(2, len(word) // 3))
        edits = {verb: 0 if verb.startswith(word) else count_edits(word, verb) for verb in verbs if len(word) > 1}
        nearest = min(edits.values(), default=0)
        meant = [verb for verb, count in edits.items() if count == nearest <= most]
    return f"Did you mean {' or '.join(map(repr, meant))}?" if meant else ""


def count_edits(one: str, other: str) -> int:
    """Return how many letters are added, dropped, replaced, or swapped with the next one, between two words."""
    rows = [list(range(len(other) + 1))]
    for place, letter in enumerate(one, 1):
        row = [place]
        for column, there in enumerate(other, 1):
            row.append(min(rows[-1][column] + 1, row[-1] + 1, rows[-1][column - 1] + (letter != there)))
            if min(place, column) > 1 and one[place - 2 : place] == other[column - 2 : column][::-1]:
                row[-1] = min(row[-1], rows[-2][column - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


def explain_usage(error: Exception, words: list[str]) -> Iterator[str]:
    """Yield what to try after an error of usage."""
    if replacement := describe_replacement(words, getattr(error, "option_name", "") or ""):
        yield replacement
        return
    found = load_verb(words)
    if found is None:
        return
    names, verb, _ = found
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
