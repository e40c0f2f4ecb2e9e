"""Confirmation prompts before an operation that affects others."""

from __future__ import annotations

import sys

from npuprof.report import Answer
from npuprof.report.output import print_note


def confirm_on_terminal(answer: Answer, form: str, question: str) -> bool:
    """Print an answer and a question; return whether the user confirmed.

    False without a terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stdout.write(str(answer.write_form(form)))
    sys.stdout.flush()
    for note in answer.notes:
        print_note(note)
    sys.stderr.write(f"npuprof: {question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


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
