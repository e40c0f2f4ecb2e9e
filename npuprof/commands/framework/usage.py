"""What is said to a command line that cannot be read: which flag, verb or word is meant, and what the verb takes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from npuprof.commands.framework.elsewhere import FLAGS_ELSEWHERE, VERBS_ELSEWHERE, VERBS_OF_FAMILIES
from npuprof.commands.framework.places import list_placed_words
from npuprof.commands.framework.registry import list_verb_names, load_verb
from npuprof.commands.framework.verb import Parameter, Verb
from npuprof.model import find_nearest_names

#: What stands behind a preset and an @, where no word is meant but that.
_VERSION = r"v?\d+(\.\d+)*\S*|HEAD\S*"
#: What other tools tell their version by.
_VERSION_FLAGS = ("-v", "-V", "-version", "--ver", "--Version")
#: How many words before a verb are looked at.
_MOST_BEFORE = 5
#: What to say of a word that is missing, by its name in the help.
_MISSING = {
    "SPEC": "Name a preset: npuprof list shows them.",
    "NAME": "Name the preset to make: team/bert-training.",
    "KEY": "Name a key: npuprof show SPEC and npuprof options list them.",
    "KEY=VALUE": "Write what to set: hccl_timeout=600",
    "RELEASE": "Name a CANN release: 9.0.0",
}


def suggest_flag(error: Exception, words: list[str]) -> None:
    """Let an error on an unknown option name the one of the verb that does what is meant, where other tools call it so."""
    found, name = load_verb(words), getattr(error, "option_name", "")
    if found is None or not hasattr(error, "possibilities"):
        return
    flags = [flag for parameter in found[1].parameters.values() for flag in parameter.flags]
    meant = [flag for flag, others in FLAGS_ELSEWHERE.items() if flag in flags and name in others.split()]
    if name == "--set" and "assignments" in found[1].parameters:
        meant = ["KEY=VALUE, without a flag"]
    sections = [flag for flag in ("--env", "--atc", "--options") if name == flag and "assignments" in found[1].parameters]
    meant += [f"{sections[0][2:]}.NAME=VALUE, without a flag"] if sections else []
    short = [flag for flag in flags if len(name) == 2 and flag.startswith(f"-{name}")]
    meant += short[:1] if len(short) == 1 else ["--number"] if name[1:].isdigit() and "--number" in flags else []
    bare = {flag.lstrip("-"): flag for flag in flags if flag.startswith("--")}  # the dashes would be half of a short name
    error.possibilities = meant[:1] or [bare[near] for near in find_nearest_names(name.lstrip("-"), bare)]


def explain_usage(error: Exception, words: list[str]) -> Iterator[str]:
    """Yield what to try after an error of usage."""
    found = load_verb(words)
    if found is None:
        if moved := _move_flags_behind(words):
            yield f"Flags stand behind the verb: npuprof {moved}"
            return
        if words and words[0] in _VERSION_FLAGS:
            yield "What is meant may be: npuprof --version"
            return
        plain = [word for word in words if not word.startswith("-")]
        told = list(_explain_unknown_verb(plain))
        yield from told or _explain_preset_as_verb(plain, error)
        return
    names, verb, rest = found
    flag = _find_misplaced_choice(error, verb, rest)
    if flag:
        yield f"What is meant may be: {flag}"
        return
    called = " ".join(("npuprof", *names))
    parameter = verb.parameters.get(getattr(getattr(error, "param", None), "name", None) or "")
    if parameter is not None and parameter.kind == "argument" and (taker := _find_taker(verb, rest)):
        yield taker
    elif parameter is not None and parameter.metavar == "NAME" and names[0] == "source" and "url" not in verb.parameters:
        yield "Name a source: npuprof source list shows them."
    elif parameter is not None and names[0] != "source" and (hint := _MISSING.get(parameter.metavar.rstrip("."))):
        yield (_explain_missing_key(verb, rest) if parameter.metavar == "KEY" else "") or hint
    elif parameter is not None and parameter.required and not verb.usage_hint:
        yield f"{_show_parameter(parameter)}: {parameter.describe()}"
    elif (waiting := _find_flag(verb, error)) is not None and "requires an argument" in str(error):
        yield f"{_show_parameter(waiting)}: {waiting.describe()}"
    elif version := _join_version(verb, rest):
        yield f"What is meant may be: {called} {version}"
    elif mended := _give_flag_its_value(error, verb, rest) or _quote_condition(error, verb, rest):
        yield f"What is meant may be: {called} {mended}"
    elif key := _find_key_behind_preset(error, verb, rest):
        yield f"One value is told by npuprof explain {key}"
    elif presets := _find_two_presets(error, verb, rest):
        yield f"Two presets are compared by npuprof diff {' '.join(presets)}; {'+'.join(presets)} is the second laid over the first."
    elif verb.usage_hint:
        yield verb.usage_hint
    elif getattr(error, "possibilities", None) == [] or "unexpected extra argument" in str(error):
        yield _tell_one_at_a_time(called, verb, rest) or _describe_what_it_takes(called, verb)


def _move_flags_behind(words: Sequence[str]) -> str:
    """Return a command line with the flags that stand before its verb behind it; empty where that is not what is wrong."""
    from shlex import join

    for place in range(1, min(len(words), _MOST_BEFORE)):
        if words[0].startswith("--") and (found := load_verb(list(words[place:]))) is not None:
            flags = {flag for parameter in found[1].parameters.values() for flag in parameter.flags}
            return join([*words[place:], *words[:place]]) if words[0].partition("=")[0] in flags else ""
    return ""


def _find_key_behind_preset(error: Exception, verb: type[Verb], rest: Sequence[str]) -> str:
    """Return the preset and the key that a verb was given which takes no key."""
    places = list_placed_words(verb, rest)
    takes = [parameter.metavar for parameter in verb.parameters.values() if not parameter.flags]
    if takes != ["SPEC"] or len(places) != 2 or "unexpected extra argument" not in str(error):
        return ""
    return " ".join(places) if _is_catalogued(places[1]) else ""


def _explain_missing_key(verb: type[Verb], rest: Sequence[str]) -> str:
    """Return what to type where one word stands for a preset and a key: it may be the key. Empty where none stands there."""
    places = list_placed_words(verb, rest)
    if len(places) != 1:
        return ""
    called = places[0]
    return (
        f"{called} is a key: npuprof option {called} tells what it is, npuprof explain SPEC {called} what it is in a preset."
        if _is_catalogued(called)
        else f"Name a key: npuprof show {called} and npuprof options list them."
    )


def _is_catalogued(word: str) -> bool:
    from npuprof import catalog
    from npuprof.document import keys

    return catalog.find_record(*keys.split_section_and_name(word)) is not None


def _find_two_presets(error: Exception, verb: type[Verb], rest: Sequence[str]) -> list[str]:
    """Return the two presets that a verb was given which takes one."""
    if verb.undoable or verb.usage_hint:
        return []
    takes = [parameter.metavar for parameter in verb.parameters.values() if not parameter.flags]
    places = list_placed_words(verb, rest)
    if takes != ["SPEC"] or len(places) != 2 or "unexpected extra argument" not in str(error):
        return []
    return [] if _is_catalogued(places[1]) else places


def _explain_unknown_verb(words: Sequence[str]) -> Iterator[str]:
    """Yield which verb is meant by the names of other tools; of a family all there are."""
    first, second = (*words, "", "")[:2]
    table = VERBS_OF_FAMILIES.get(first, {}) if second else VERBS_ELSEWHERE
    asked = second or first
    if second and not table:
        table, asked = VERBS_ELSEWHERE, first
    meant = next((verb for verb, others in table.items() if asked in others.split()), None)
    if meant:
        yield f"What is meant may be: npuprof {meant}"
    elif second and first in VERBS_OF_FAMILIES:
        known = [names[1] for names, _ in list_verb_names() if names[0] == first and len(names) > 1]
        yield f"npuprof {first} has {', '.join(known)}."


def _explain_preset_as_verb(words: Sequence[str], error: Exception) -> Iterator[str]:
    """Yield what shows a preset that stands where a verb does."""
    if len(words) != 1 or getattr(error, "possibilities", None):
        return
    from npuprof.model import NpuprofError
    from npuprof.store import find_store

    try:
        known = words[0] in find_store(None, os.environ).names()
    except NpuprofError:
        known = False
    if known or re.search(r"\.toml$|^builtin:|/", words[0]):
        yield f"A verb stands first: npuprof show {words[0]}"


def _find_misplaced_choice(error: Exception, verb: type[Verb], rest: Sequence[str]) -> str:
    """Return the flag with its value where the value stands without it."""
    for word in rest:
        for parameter in verb.parameters.values():
            if f"({word})" in str(error) and parameter.flags and word in parameter.list_choices():
                return f"{parameter.flags[0]} {word}"
    return ""


def _find_flag(verb: type[Verb], error: Exception) -> Parameter | None:
    name = getattr(error, "option_name", "")
    return next((parameter for parameter in verb.parameters.values() if name and name in parameter.flags), None)


def _join_version(verb: type[Verb], rest: Sequence[str]) -> str:
    """Return a preset and its version as one word, where a verb that takes the two so was given them apart."""
    joins = any("@" in parameter.metavar for parameter in verb.parameters.values() if not parameter.flags)
    places = list_placed_words(verb, rest)
    takes = [parameter.metavar for parameter in verb.parameters.values() if not parameter.flags]
    if not (joins or takes == ["SPEC"]):
        return ""
    if re.search(r" @|@ ", typed := " ".join(places)):
        return re.sub(r" *@ *", "@", typed)
    if len(places) != 2 or "@" in typed:
        return ""
    versions = [bool(re.fullmatch(_VERSION, word)) if joins else _is_version_alone(word) for word in places]
    if versions[0] == versions[1]:
        return ""
    name, version = places if versions[1] else places[::-1]
    return f"{name}@{version}"


def _is_version_alone(word: str) -> bool:
    """Return whether a word that may be a preset as well can be nothing but a version, or a commit of the branch."""
    from npuprof.store.versions import find_bare_version

    return bool(find_bare_version(word) or re.fullmatch(r"HEAD([~^]\S*)?", word))


def _find_taker(verb: type[Verb], rest: Sequence[str]) -> str:
    """Return that a flag has taken the only word for its value, where a word is missing; empty where none has."""
    if list_placed_words(verb, rest):
        return ""
    taking = {spelling: parameter for parameter in verb.parameters.values() if parameter.kind != "flag" for spelling in parameter.flags}
    for flag, word in pairwise(rest):
        if flag in taking:
            return f"{word} was taken for the {taking[flag].metavar} of {flag}, which stands behind it."
    return ""


def _give_flag_its_value(error: Exception, verb: type[Verb], rest: Sequence[str]) -> str:
    """Return the words with the name of a flag and its value as a flag, or without a second value of one; empty where that is not it."""
    if "unexpected extra argument" not in str(error):
        return ""
    from shlex import join

    chosen = {
        parameter.flags[0]: parameter.list_choices() for parameter in verb.parameters.values() if parameter.flags and parameter.choices
    }
    for place, word in enumerate(rest[:-1]):
        if rest[place + 1] in chosen.get(f"--{word}", ()):
            return join([*rest[:place], f"--{word}", *rest[place + 1 :]])
    for word in list_placed_words(verb, rest):
        flag = next((flag for flag, values in chosen.items() if word in values and flag in rest), "")
        if flag:
            return join(one for place, one in enumerate(rest) if one != word or rest[place - 1] == flag)
    return ""


def _quote_condition(error: Exception, verb: type[Verb], rest: Sequence[str]) -> str:
    """Return the words with a condition as one of them, where the shell has parted it and taken its quotes; empty where there is none."""
    if "--where" not in rest or "unexpected extra argument" not in str(error):
        return ""
    from shlex import join

    from npuprof.catalog.written_condition import ConditionError, read_condition

    first = list(rest).index("--where") + 1
    last = next((place for place, word in enumerate(rest) if place > first and word.startswith("-")), len(rest))
    text = " ".join(rest[first:last])
    try:
        read_condition(text)
    except ConditionError as odd:
        found = re.match(r"write '(.*)'", odd.hint)
        if found is None or not set(re.findall(r"\w+", text)) & set(re.findall(r"\w+", found[1])):
            return ""
        text = found[1]
    return join([*rest[:first], text, *rest[last:]])


def _show_parameter(parameter: Parameter) -> str:
    return f"{parameter.flags[0]} {parameter.metavar}" if parameter.flags else parameter.metavar.rstrip(".")


def _tell_one_at_a_time(called: str, verb: type[Verb], rest: Sequence[str]) -> str:
    """Return that a verb which takes one word takes one only, where it was given several of its kind; empty where that is not it."""
    takes = [parameter for parameter in verb.parameters.values() if not parameter.flags]
    places = list_placed_words(verb, rest)
    if len(takes) != 1 or len(places) < 2 or takes[0].metavar not in ("KEY", "CODE"):
        return ""
    return f"One {takes[0].metavar} at a time: {called} {places[0]}, then {called} {places[1]}"


def _describe_what_it_takes(called: str, verb: type[Verb]) -> str:
    """Return in a line which words and flags a verb takes."""
    places = [parameter.metavar for parameter in verb.parameters.values() if not parameter.flags]
    flags = [parameter.flags[0] for parameter in verb.parameters.values() if parameter.flags]
    return f"{called} takes {' '.join(places) or 'no words'}" + (f", and {', '.join(flags)}." if flags else ".")
