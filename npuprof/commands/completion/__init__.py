"""Shell completion: presets, keys, values, targets, revisions, verbs and flags, for four shells.

The shells call npuprof through the functions that ``--install-completion`` installs; the output is one word per line,
or code that the function evaluates. Only words of harmless characters are offered: names in a repository may be
malicious.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence

from npuprof.commands.completion.places import Candidate, describe_wanted_words, find_key_record, find_place, list_placed_words, offer
from npuprof.commands.framework import Parameter, Verb, list_verb_names
from npuprof.document.keys import format_plain_value
from npuprof.document.profile import PROFILE_KEYS, RELEASES
from npuprof.model import SCENARIOS, SECTIONS, NpuprofError
from npuprof.system import lazy_pattern

_HARMLESS = lazy_pattern(r"[A-Za-z0-9_./@+=:,~^-]+")
#: Characters that may split words in bash, by its COMP_WORDBREAKS: only the part after the last of them is completed.
_BREAKS = "=:@"
#: The break character that readline keeps at the start of the completed part.
_KEPT_BREAK = "@"


def answer_shell(instruction: str, environ: Mapping[str, str]) -> int:
    """Print completions for a shell (``complete_bash``); return the exit code. Errors offer nothing."""
    shell, current = instruction.removeprefix("complete_"), ""
    wanted, prefix_length = "", 0
    try:
        words, current, prefix_length = _read_words(shell, environ)
        candidates = [item for item in find_candidates(words, current) if item[0].startswith(current) and _HARMLESS.fullmatch(item[0])]
        wanted = "" if candidates else describe_wanted_words(words, current)
    except (NpuprofError, ValueError, OSError):
        candidates = []
    candidates = list(dict(candidates).items())
    if environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if candidates or wanted else 1  # fish offers file names if npuprof fails
    sys.stdout.write(
        _format_baseline_change_words(shell, wanted, current[prefix_length:])
        if wanted
        else _format_candidates(shell, candidates, current, prefix_length)
    )
    return 0


def _read_words(shell: str, environ: Mapping[str, str]) -> tuple[list[str], str, int]:
    """Return the words before the cursor without the command, the word to complete, and how much of it the shell keeps.

    Raises ValueError.
    """
    if shell == "bash":
        typed = environ.get("COMP_WORDS", "")
        words = [_unquote(word) for word in typed.split("\n")] if "\n" in typed else _split(typed)  # separated by the function's IFS
        place = int(environ.get("COMP_CWORD", "0"))
        merged, prefix_length = _merge_broken_words([*words[:place], words[place] if place < len(words) else ""])
        return merged[1:-1], merged[-1], prefix_length
    line = environ.get("_TYPER_COMPLETE_ARGS", "")
    words = _split(line)[1:]
    if shell in ("pwsh", "powershell"):
        current = environ.get("_TYPER_COMPLETE_WORD_TO_COMPLETE", "")
        return (words[:-1] if current else words), current, 0
    return (words[:-1], words[-1], 0) if words and not line.endswith(" ") else (words, "", 0)


def _split(line: str) -> list[str]:
    """Return the words of a line that may end inside quotes."""
    for end in ("", "'", '"'):
        try:
            return shlex.split(line + end)
        except ValueError:
            continue
    return line.split()


def _unquote(word: str) -> str:
    """Return a word without shell quoting; its quotes may be unclosed."""
    return "".join(_split(word)[:1]) if word[:1] in ("'", '"') else word


def _merge_broken_words(words: Sequence[str]) -> tuple[list[str], int]:
    """Return the words as typed, joining the parts that bash split, and the length of the last word before the completed part.

    COMP_WORDBREAKS is configurable, and quoted text is not split: so the parts decide, not the text.
    """
    merged: list[str] = []
    joined, prefix_length = False, 0
    for place, word in enumerate(words):
        broken = bool(word) and not word.strip(_BREAKS)
        if merged and place > 1 and (broken or joined):
            prefix_length = len(merged[-1]) if not broken else len(merged[-1]) + len(word)
            merged[-1] += word
            if merged[-1][prefix_length - 1] == _KEPT_BREAK:
                prefix_length -= 1
        else:
            prefix_length = 0
            merged.append(word)
        joined = broken
    return merged, prefix_length


def _format_candidates(shell: str, candidates: Sequence[Candidate], current: str, prefix_length: int) -> str:
    if shell == "bash":
        if len(candidates) == 1 and candidates[0][0].endswith("="):  # bash would append a blank
            candidates = [*candidates, (f"{candidates[0][0]}VALUE", "")]
        return "".join(f"{word[prefix_length:]}\n" for word, _ in candidates)
    if shell == "zsh":
        if not candidates:
            return "compset -P '*='; _files" if "=" in current else "_files"
        if all(word.endswith("=") for word, _ in candidates):
            return "compadd -S '' -- " + " ".join(f"'{word}'" for word, _ in candidates)
        rows = [f'"{_escape_zsh(word)}":"{_escape_zsh(text)}"' if text else f'"{_escape_zsh(word)}"' for word, text in candidates]
        return "_arguments '*: :((" + "\n".join(rows) + "))'"
    if shell == "fish":
        return "\n".join(f"{word}\t{text}" if text else word for word, text in candidates)
    return "\n".join(f"{word}:::{text or ' '}" for word, text in candidates)


def _format_baseline_change_words(shell: str, wanted: str, rest: str) -> str:
    """Return output that prevents file completion and shows the hint ``wanted``; ``rest`` is the part to complete."""
    if shell == "zsh":
        return f"_message -r '{_escape_zsh(wanted)}'"
    if shell == "bash":  # bash offers file names if there are no candidates, and inserts the common prefix of several
        shown = rest or re.sub(r"[^A-Z0-9]+", "-", wanted.upper()).strip("-")
        return f"{shown}\n{shown}...\n" if rest else f"{shown}\n...\n"
    return ""


def _escape_zsh(text: str) -> str:
    plain = re.sub(r"[^\w ./@+=:,~^()<>|*%;-]", " ", text)
    return plain.replace(":", r"\\:").replace("(", "[").replace(")", "]")


def find_candidates(words: Sequence[str], current: str) -> Iterator[Candidate]:
    """Yield the candidates after some words; not only those that begin with ``current``. Raises NpuprofError."""
    place = find_place(words, current)
    if place is None:
        for names, purpose in list_verb_names():
            if [*names[:-1]] == [*words]:
                yield names[-1], _first_sentence(purpose)
        groups = ("git", "Set up git to merge and diff presets"), ("source", "Use presets from other repositories")
        yield from (*groups, ("--help", ""), ("--version", "")) if not words else ()
        return
    verb, parameter, prefix = place.verb, place.parameter, place.prefix
    if parameter is not None:
        yield from ((prefix + word, text) for word, text in _find_values(parameter, verb, place.given, current[len(prefix) :]))
    elif current.startswith("-"):
        yield from ((flag, _first_sentence(option.describe())) for flag, option in verb.spellings.items() if flag.startswith("--"))
        yield "--help", "Show the help"


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")[:72]


def _find_values(parameter: Parameter, verb: type[Verb], words: Sequence[str], current: str) -> Iterator[Candidate]:
    """Yield the values of a parameter."""
    if parameter.choices:
        yield from offer(parameter.list_choices())
        return
    from npuprof.commands.completion import offering  # not needed for flags and verbs

    kind = parameter.metavar.rstrip(".,")
    placed = list_placed_words(verb, words)
    if "--extends" in parameter.flags or kind in ("SPEC", "GOOD", "BAD") or (kind == "NAME" and verb.group == "versions"):
        yield from offering.find_specs(_read_store(words), current)
    elif kind == "NAME" and verb.__module__.startswith("npuprof.commands.source.") and "url" not in verb.parameters:
        yield from offer(offering.list_sources(_read_store(words)))
    elif kind in ("KEY=VALUE", "KEY=V1,V2"):
        yield from _find_assignments(current)
    elif kind == "KEY":
        yield from _list_keys(_read_store(words), placed[0] if placed else "")
    elif kind == "RELEASE":
        from npuprof.catalog.releases import load_releases

        yield from offer(reversed(load_releases()))
    elif kind == "NAME=RELEASE":
        from npuprof.catalog.releases import list_frameworks, load_releases

        name, equals, _ = current.partition("=")
        yield from offer(reversed(load_releases(name)), f"{name}=") if equals else offer(f"{framework}=" for framework in list_frameworks())
    elif kind == "PRODUCT":
        from npuprof.catalog import products

        yield from ((name, str(products.load_products().get(name, {}).get("title", ""))) for name in products.product_names())
    elif kind == "CODE":
        from npuprof.catalog.pages import load_pages

        yield from ((code, page.title) for code, page in load_pages().items())
        from npuprof.commands.rule import load_team_pages

        yield from ((page.code, page.title) for page in load_team_pages())
    elif kind == "TOPIC":
        from npuprof.docs import load_topics

        yield from ((topic.name, topic.title) for topic in load_topics())
        yield from ((names[0], _first_sentence(purpose)) for names, purpose in list_verb_names())
    elif kind in ("REV", "REVS"):
        before = current[: current.rfind("..") + 2] if ".." in current and kind == "REVS" else ""
        yield from offer(("HEAD", *offering.list_refs(_read_store(words))), before)
    elif kind == "NAME@VERSION":
        listed = (word for word, _ in offering.find_specs(_read_store(words), current))
        yield from offer(word for word in listed if "@" not in word or re.search(r"@v?\d[^/@]*$", word))
    elif kind == "VERSION" and placed:
        yield from offering.list_next_versions(_read_store(words), placed[0])
    elif kind == "COND" and re.fullmatch(r"[\w.]*", current):
        yield from _list_catalogue()
    elif kind in ("DIR", "STORE") and "store" in (parameter.flags or ("store",))[0]:
        yield from offering.find_stores(current)


def _read_store(words: Sequence[str]) -> str | None:
    """Return the store that a command line selects."""
    for place, word in enumerate(words):
        if word.startswith("--store="):
            return word.removeprefix("--store=")
        if word == "--store" and place + 1 < len(words):
            return words[place + 1]
    return None


def _find_assignments(current: str) -> Iterator[Candidate]:
    """Yield keys followed by ``=``, or after it the documented values."""
    from npuprof import catalog

    key, equals, _ = current.partition("=")
    if not equals:
        yield from offer(f"{word}=" for listed in (_list_catalogue(), _list_profile_keys()) for word, _ in listed)
        return
    record = find_key_record(key)
    if key == "profile.scenario":
        yield from offer(SCENARIOS, f"{key}=")
    if record is not None:
        boolean = (
            ("true", "false")
            if getattr(record, "field", "") == "b" or (isinstance(record, catalog.Setting) and record.kind == "bool")
            else ()
        )
        if not record.choices and not boolean and isinstance(record.default, (int, float, str)) and record.default != "":
            yield f"{key}={record.default}", "the default"
        choices = (*record.choices, *boolean)
        yield from offer(map(format_plain_value, choices), f"{key}=")


def _list_keys(store: str | None, name: str) -> Iterator[Candidate]:
    """Yield the keys that a preset sets, then those of the catalogue."""
    from npuprof.store.folder import find_store

    if name:
        try:
            profile = find_store(store, os.environ).profile(name.partition("@")[0].partition("+")[0])
            yield from offer(step.key for step in profile.steps)
        except NpuprofError:
            pass
        yield from _list_profile_keys()
    yield from _list_catalogue()


def _list_catalogue() -> Iterator[Candidate]:
    from npuprof import catalog

    for section in SECTIONS:
        yield from offer(catalog.record_names(section), "" if section == "options" else f"{section}.")


def _list_profile_keys() -> Iterator[Candidate]:
    from npuprof.catalog.releases import list_frameworks

    plain = {name: key for name, key in PROFILE_KEYS.items() if key.kind != RELEASES}
    yield from ((f"profile.{name}", _first_sentence(key.help)) for name, key in plain.items())
    yield from ((f"profile.versions.{name}", f"Releases of {name} it is meant for") for name in list_frameworks())
