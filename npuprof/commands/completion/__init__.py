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
from contextlib import suppress

from npuprof.commands.completion.cursor import (
    Candidate,
    describe_expected_value,
    find_cursor,
    first_sentence,
    offer,
)
from npuprof.commands.framework import list_families, list_verb_names
from npuprof.model import NpuprofError, Record
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
    shell = instruction.removeprefix("complete_")
    hint = ""
    typed = _TypedLine([], "")
    candidates = {}
    # a message would be printed into the command line that is being typed
    with suppress(NpuprofError, ValueError, OSError):
        typed = _read_typed_line(shell, environ)
        candidates = {
            text: description
            for text, description in find_candidates(typed.arguments, typed.current)
            # zsh and fish evaluate the output: a name in a clone could be a command
            if text.startswith(typed.current) and _HARMLESS.fullmatch(text)
        }
        hint = "" if candidates else describe_expected_value(typed.arguments, typed.current)
    if environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if candidates or hint else 1  # fish offers file names if npuprof fails
    sys.stdout.write(
        _format_hint(shell, hint, typed.current[typed.prefix_length :])
        if hint
        else _format_candidates(shell, list(candidates.items()), typed)
    )
    return 0


class _TypedLine(Record):
    """A command line up to the cursor: the arguments before it, and the one to complete.

    Completion replaces ``current`` without its first ``prefix_length`` characters.
    """

    arguments: list[str]
    current: str
    prefix_length: int = 0


def _read_typed_line(shell: str, environ: Mapping[str, str]) -> _TypedLine:
    """Return the command line that a shell passes in the environment. Raises ValueError."""
    if shell == "bash":
        text = environ.get("COMP_WORDS", "")
        lines = text.split("\n")  # by the IFS of the function that asks
        parts = [_unquote(line) for line in lines] if len(lines) > 1 else _split(text)
        index = int(environ.get("COMP_CWORD", "0"))
        current = parts[index] if index < len(parts) else ""
        merged, prefix_length = _merge_broken_arguments([*parts[:index], current])
        return _TypedLine(merged[1:-1], merged[-1], prefix_length)
    line = environ.get("_TYPER_COMPLETE_ARGS", "")
    arguments = _split(line)[1:]
    if shell in ("pwsh", "powershell"):
        current = environ.get("_TYPER_COMPLETE_WORD_TO_COMPLETE", "")
        return _TypedLine(arguments[:-1] if current else arguments, current)
    if arguments and not line.endswith(" "):
        return _TypedLine(arguments[:-1], arguments[-1])
    return _TypedLine(arguments, "")


def _split(line: str) -> list[str]:
    """Return the arguments in a line that may end inside quotes."""
    # the cursor may be inside quotes, which are still open
    for end in ("", "'", '"'):
        try:
            return shlex.split(line + end)
        except ValueError:
            continue
    return line.split()


def _unquote(part: str) -> str:
    """Return an argument without shell quoting; its quotes may be unclosed."""
    return "".join(_split(part)[:1]) if part[:1] in ("'", '"') else part


def _merge_broken_arguments(parts: Sequence[str]) -> tuple[list[str], int]:
    """Return the arguments as typed, and the length of the last one before the completed part.

    bash splits arguments at break characters. COMP_WORDBREAKS is configurable, and quoted text is
    not split: so the parts decide, not the text.
    """
    merged: list[str] = []
    is_after_break = False
    prefix_length = 0
    for index, part in enumerate(parts):
        is_break = bool(part) and not part.strip(_BREAKS)
        # the first two parts are npuprof and the verb, which have no breaks
        if index > 1 and (is_break or is_after_break):
            prefix_length = len(merged[-1]) + (len(part) if is_break else 0)
            merged[-1] += part
            if merged[-1][prefix_length - 1] == _KEPT_BREAK:
                prefix_length -= 1
        else:
            prefix_length = 0
            merged.append(part)
        is_after_break = is_break
    return merged, prefix_length


def _format_candidates(shell: str, candidates: Sequence[Candidate], typed: _TypedLine) -> str:
    """Return the output that makes a shell offer candidates."""
    if shell == "bash":
        texts = [text for text, _ in candidates]
        if len(texts) == 1 and texts[0].endswith("="):  # bash would append a blank
            texts.append(f"{texts[0]}VALUE")
        return "".join(f"{text[typed.prefix_length :]}\n" for text in texts)
    if shell == "zsh":
        if not candidates:
            return "compset -P '*='; _files" if "=" in typed.current else "_files"
        # -S '' keeps zsh from adding a blank, so that the value can follow
        if all(text.endswith("=") for text, _ in candidates):
            return "compadd -S '' -- " + " ".join(f"'{text}'" for text, _ in candidates)
        rows = []
        for text, description in candidates:
            row = f'"{_escape_zsh(text)}"'
            rows.append(f'{row}:"{_escape_zsh(description)}"' if description else row)
        return "_arguments '*: :((" + "\n".join(rows) + "))'"
    if shell == "fish":
        return "\n".join(f"{text}\t{about}" if about else text for text, about in candidates)
    return "\n".join(f"{text}:::{about or ' '}" for text, about in candidates)


def _format_hint(shell: str, hint: str, rest: str) -> str:
    """Return output that prevents file completion and shows a hint.

    ``rest`` is the part to complete.
    """
    if shell == "zsh":
        return f"_message -r '{_escape_zsh(hint)}'"
    if shell == "bash":
        # bash offers file names without candidates, and inserts the common prefix of several:
        # the typed text, or nothing
        if rest:
            return f"{rest}\n{rest}...\n"
        placeholder = re.sub(r"[^A-Z0-9]+", "-", hint.upper()).strip("-")
        return f"{placeholder}\n...\n"
    return ""


def _escape_zsh(text: str) -> str:
    # the function that asks passes the text to eval
    plain = re.sub(r"[^\w ./@+=:,~^()<>|*%;-]", " ", text)
    return plain.replace(":", r"\\:").replace("(", "[").replace(")", "]")


def find_candidates(arguments: Sequence[str], current: str) -> Iterator[Candidate]:
    """Yield the candidates after some arguments; not only those that begin with ``current``.

    Raises NpuprofError.
    """
    cursor = find_cursor(arguments, current)
    if cursor is None:
        yield from _list_verbs_after(arguments)
        return
    parameter = cursor.parameter
    if parameter is None:
        if current.startswith("-"):
            for flag, option in cursor.verb.spellings.items():
                if flag.startswith("--"):
                    yield flag, first_sentence(option.describe())
            yield "--help", "Show the help"
    elif parameter.choices:
        yield from offer(parameter.list_choices(), cursor.prefix)
    elif parameter.complete:
        # not needed for flags and verbs
        from npuprof.commands.completion.offering import COMPLETERS

        for text, description in COMPLETERS[parameter.complete](cursor):
            yield cursor.prefix + text, description


def _list_verbs_after(arguments: Sequence[str]) -> Iterator[Candidate]:
    """Yield the verbs whose names begin with some arguments; without any, the global flags too."""
    purposes = {
        names[-1]: purpose for names, purpose in list_verb_names() if names[:-1] == tuple(arguments)
    }
    if not arguments:
        purposes |= {**list_families(), "--help": "", "--version": ""}
    for name, purpose in purposes.items():
        yield name, first_sentence(purpose)
