"""Flags of an ``atc`` command line that a block can stand for: the command takes them from an array that the block makes.

A shell without arrays, and one that nobody names, takes them from a text, where blanks and patterns do not get in the way.
"""

from __future__ import annotations

import re

from npuprof.renderers.atc import is_plain_flag
from npuprof.scripts.draft import Draft
from npuprof.scripts.reading.found import Site
from npuprof.scripts.reading.shells.lexer import Command, Word, parse_shell_commands
from npuprof.scripts.replacing.cuts import Edit, Lines, Stand, build_refusal
from npuprof.scripts.replacing.python import list_left

_ARRAY = "ATC_FLAGS"
_WITH_ARRAYS = ("bash", "zsh")
#: A first line that runs the script by a shell without arrays, whatever the ending of its name says.
_WITHOUT_ARRAYS = re.compile(rb"#![^\n]*[/ \t](sh|dash|ash)(?=\s|$)")
#: What may stand before the command in its line, for a block to go before that line.
_PREFIX = re.compile(r"[ \t]*(?:(?:nohup|time|sudo|command|exec|if|!|[A-Za-z_]\w*=\S*)[ \t]+)*(?:[\w./$\"{}-]*/)?")
#: What only bash and its kin read; a script that holds it is run by one of them.
_OWN_SYNTAX = re.compile(
    rb"\[\[|\(\(|\w=\(|<<<|&>|^[ \t]*(?:function|source|declare|local|shopt)[ \t]|\$\'|\$\{\w+(?:/|\[|:\d)|BASH_", re.MULTILINE
)
_CONTINUED = re.compile(rb"(?:\\|&&|\|\|?)[ \t]*\r?$")


def plan_flags(path: str, data: bytes, draft: Draft, site: Site, shell: str) -> Stand:
    """Return the block for the flags of one command line. Raises NpuprofError (NP830) where that cannot be proven right."""
    what = "the flags of atc cannot be taken out"
    with_array = _has_arrays(path, data, shell)
    if not with_array:
        for one in draft.carried:
            if not is_plain_flag(f"{one.name}={one.written}"):
                why = "No shell with arrays is named, so the block would hand it on in a variable, and it holds a blank or a pattern."
                raise build_refusal(path, f"{one.name} cannot be taken out", why, one.line, "begin the script with #!/bin/bash")
        if b"IFS" in data:
            raise build_refusal(
                path, what, "The script sets IFS, so that a variable is not taken apart at blanks.", site.line, "use bash: #!/bin/bash"
            )
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise build_refusal(
            path, "the script is not UTF-8", "Its columns cannot be told for certain.", site.line, "save it as UTF-8"
        ) from None
    if "\r" in text:
        raise build_refusal(
            path, what, "The lines of the script end in carriage returns, which a shell takes for a part of them.", site.line
        )
    command, at = _find_command(path, text, site)
    lines = Lines(data)
    head = lines.lines[site.line - 1].decode()[: site.column - 1]
    if not _PREFIX.fullmatch(head):
        raise build_refusal(
            path,
            what,
            f"{head.strip()} stands before it in its line, and a block goes before a line.",
            site.line,
            "put atc in a line of its own",
        )
    first = site.line - 1
    if first and _CONTINUED.search(lines.lines[first - 1]):
        raise build_refusal(path, what, "The line goes on from the one before it.", site.line)
    array = _ARRAY
    while re.search(rf"\b{array}\b", text):
        array += "_"
    carried = {(one.line, one.column): one for one in draft.carried}
    edits: list[Edit] = []
    for place in range(at + 1, len(command)):
        word = command[place]
        if carried.pop((word.line, word.column), None) is not None:
            last = command[place + 1] if "=" not in word.text and place + 1 < len(command) else word
            edits.append(_cut_words(text, command[place - 1], last))
    if carried:
        one = next(iter(carried.values()))
        raise build_refusal(path, what, f"--{one.name.removeprefix('--')} comes from elsewhere.", one.line)
    end = len(text[: command[at].span[1]].encode())
    edits = _join_cuts([Edit(end, end, (f' "${{{array}[@]}}"' if with_array else f" ${array}").encode()), *edits])
    facts = {"target": "atc", "onto": array if with_array else f"${array}", "shell": shell}
    return Stand(lines.starts[first], lines.find_indent(site.line), facts, tuple(edits), list_left(draft))


def _has_arrays(path: str, data: bytes, shell: str) -> bool:
    """Return whether the shell that runs a script has arrays: by the first line, by what it is written in, or by the ending of its name."""
    if data.startswith(b"#!"):
        return not _WITHOUT_ARRAYS.match(data) and shell in _WITH_ARRAYS
    return path.lower().endswith((".bash", ".zsh")) or (shell in _WITH_ARRAYS and _OWN_SYNTAX.search(data) is not None)


def _find_command(path: str, text: str, site: Site) -> tuple[Command, int]:
    """Return the command, and which of its words names the program."""
    for command in parse_shell_commands(text):
        for number, word in enumerate(command):
            if (word.line, word.column) == (site.line, site.column):
                return command, number
    raise build_refusal(path, "the flags of atc cannot be taken out", "The command is not found again.", site.line)


def _cut_words(text: str, before: Word, last: Word) -> Edit:
    """Return the edit that takes words out, with the blanks and the end of the line before them."""
    start = len(text[: before.span[1]].encode())
    return Edit(start, start + len(text[before.span[1] : last.span[1]].encode()), b"")


def _join_cuts(edits: list[Edit]) -> list[Edit]:
    """Return edits of which none begins inside another: a flag with its value between two others is taken out once."""
    joined: list[Edit] = []
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if joined and edit.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(edit.end, joined[-1].end))
        else:
            joined.append(edit)
    return joined
