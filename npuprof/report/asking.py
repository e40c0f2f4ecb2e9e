"""Prompts: confirmations before an operation that affects others, and choices."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from npuprof.report import Answer
from npuprof.report.output import print_note


def confirm_on_terminal(answer: Answer, form: str, question: str) -> bool:
    """Print an answer and a question; return whether the user confirmed.

    False without a terminal.
    """
    if not _has_terminal():
        return False
    sys.stdout.write(str(answer.write_form(form)))
    sys.stdout.flush()
    for note in answer.notes:
        print_note(note)
    return _ask(f"{question} [y/N]") in ("y", "yes")


def choose_on_terminal(question: str, choices: Sequence[str]) -> str:
    """Print a question; return the chosen word, the first one by default or without a terminal."""
    listed = f"{question}: {', '.join(choices)} [{choices[0]}]"
    while _has_terminal():
        answer = _ask(listed) or choices[0]
        if answer in choices:
            return answer
    return choices[0]


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(question: str) -> str:
    sys.stderr.write(f"npuprof: {question} ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower()


def answer_refusal(answer: Answer, done: str, shown: bool) -> Answer:
    """Return an answer that reports why nothing was done.

    ``shown`` is set if the terminal already shows ``answer``.
    """
    is_terminal = sys.stdin.isatty()
    why = "there is no terminal to ask on, and --yes was not given"
    if is_terminal:
        why = "it takes a yes"
    forms = None if is_terminal and shown else answer.forms
    return Answer(forms, (*answer.notes, f"nothing was {done}: {why}"), 1)
