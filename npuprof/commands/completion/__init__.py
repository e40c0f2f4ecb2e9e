"""Shell completion: presets, keys, values, targets, revisions, verbs and flags, for four shells.

The shells call npuprof through the functions that ``--install-completion`` installs; the output is
one word per line, or code that the function evaluates. Only words of harmless characters are
offered: names in a repository may be malicious.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence

from npuprof.commands.completion.cursor import (
    Candidate,
    describe_wanted_words,
    find_place,
    first_sentence,
    offer,
)
from npuprof.commands.framework import list_families, list_verb_names
from npuprof.model import NpuprofError
from npuprof.system import lazy_pattern

_HARMLESS = lazy_pattern(r"[A-Za-z0-9_./@+=:,~^-]+")
#: Characters that may split words in bash, by its COMP_WORDBREAKS: only the part after the last of
#: them is completed.
_BREAKS = "=:@"
#: The break character that readline keeps at the start of the completed part.
_KEPT_BREAK = "@"


def answer_shell(instruction: str, environ: Mapping[str, str]) -> int:
    """Print completions for a shell (``complete_bash``); return the exit code.

    Errors offer nothing.
    """
    shell, current = instruction.removeprefix("complete_"), ""
    wanted, prefix_length = "", 0
    try:
        words, current, prefix_length = _read_words(shell, environ)
        candidates = [
            item
            for item in find_candidates(words, current)
            if item[0].startswith(current) and _HARMLESS.fullmatch(item[0])
        ]
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
    """Return the words before the cursor without the command, the word to complete, and how much of
    it the shell keeps.

    Raises ValueError.
    """
    if shell == "bash":
        typed = environ.get("COMP_WORDS", "")
        words = (
            [_unquote(word) for word in typed.split("\n")] if "\n" in typed else _split(typed)
        )  # separated by the function's IFS
        place = int(environ.get("COMP_CWORD", "0"))
        merged, prefix_length = _merge_broken_words(
            [*words[:place], words[place] if place < len(words) else ""]
        )
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
    """Return the words as typed, joining the parts that bash split, and the length of the last word
    before the completed part.

    COMP_WORDBREAKS is configurable, and quoted text is not split: so the parts decide, not the
    text.
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


def _format_candidates(
    shell: str, candidates: Sequence[Candidate], current: str, prefix_length: int
) -> str:
    if shell == "bash":
        if len(candidates) == 1 and candidates[0][0].endswith("="):  # bash would append a blank
            candidates = [*candidates, (f"{candidates[0][0]}VALUE", "")]
        return "".join(f"{word[prefix_length:]}\n" for word, _ in candidates)
    if shell == "zsh":
        if not candidates:
            return "compset -P '*='; _files" if "=" in current else "_files"
        if all(word.endswith("=") for word, _ in candidates):
            return "compadd -S '' -- " + " ".join(f"'{word}'" for word, _ in candidates)
        rows = [
            f'"{_escape_zsh(word)}":"{_escape_zsh(text)}"' if text else f'"{_escape_zsh(word)}"'
            for word, text in candidates
        ]
        return "_arguments '*: :((" + "\n".join(rows) + "))'"
    if shell == "fish":
        return "\n".join(f"{word}\t{text}" if text else word for word, text in candidates)
    return "\n".join(f"{word}:::{text or ' '}" for word, text in candidates)


def _format_baseline_change_words(shell: str, wanted: str, rest: str) -> str:
    """Return output that prevents file completion and shows the hint ``wanted``.

    ``rest`` is the part to complete.
    """
    if shell == "zsh":
        return f"_message -r '{_escape_zsh(wanted)}'"
    if (
        shell == "bash"
        # bash offers file names if there are no candidates, and inserts the common prefix of
        # several
    ):
        shown = rest or re.sub(r"[^A-Z0-9]+", "-", wanted.upper()).strip("-")
        return f"{shown}\n{shown}...\n" if rest else f"{shown}\n...\n"
    return ""


def _escape_zsh(text: str) -> str:
    plain = re.sub(r"[^\w ./@+=:,~^()<>|*%;-]", " ", text)
    return plain.replace(":", r"\\:").replace("(", "[").replace(")", "]")


def find_candidates(words: Sequence[str], current: str) -> Iterator[Candidate]:
    """Yield the candidates after some words; not only those that begin with ``current``.

    Raises NpuprofError.
    """
    place = find_place(words, current)
    if place is None:
        listed = {
            names[-1]: purpose for names, purpose in list_verb_names() if [*names[:-1]] == [*words]
        }
        if not words:
            listed |= {**list_families(), "--help": "", "--version": ""}
        yield from ((name, first_sentence(purpose)) for name, purpose in listed.items())
        return
    parameter = place.parameter
    if parameter is None:
        if current.startswith("-"):
            flags = place.verb.spellings.items()
            yield from (
                (flag, first_sentence(option.describe()))
                for flag, option in flags
                if flag.startswith("--")
            )
            yield "--help", "Show the help"
    elif parameter.choices:
        yield from offer(parameter.list_choices(), place.prefix)
    elif parameter.complete:
        from npuprof.commands.completion.offering import (
            COMPLETERS,
        )  # not needed for flags and verbs

        yield from (
            (place.prefix + word, text) for word, text in COMPLETERS[parameter.complete](place)
        )
