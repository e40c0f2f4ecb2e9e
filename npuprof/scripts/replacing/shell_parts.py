"""Replaceable exports and ``atc`` flags of a shell script: lines without reads in between."""

from __future__ import annotations

import re
from collections import defaultdict

from npuprof.renderers.atc import is_plain_flag
from npuprof.scripts.preset_draft import Draft
from npuprof.scripts.replacing.edits import Cut, Edit, Lines, build_refusal, choose_free_name
from npuprof.scripts.script_records import ScriptSetting, Site
from npuprof.system import decode_safely

#: A character of a word, or a quoted part of it; substitutions are not supported.
_CHARACTER = r"(?:[^\s;&|<>()'\"\\`#]|(?<=\S)#|\\.|'[^']*'|\"(?:[^\"\\`]|\\.)*\")"
_NAMED = rf"[A-Za-z_]\w*={_CHARACTER}*+"
_ASSIGNED = rf"(?:export[ \t]+)?{_NAMED}(?:[ \t]+{_NAMED})*+"
_EXPORT = re.compile(rf"[ \t]*(?P<assignments>{_ASSIGNED});?(?:[ \t]+(?P<comment>#[^\r]*)?)?\r?")
_NAME = re.compile(rf"([A-Za-z_]\w*)={_CHARACTER}*+")
#: A prefix of a command without its own effect, or a whole command that sets variables.
_LEADING = re.compile(rf"(?:{_ASSIGNED}[ \t]*)?")
#: A substitution without a nested one.
_SUBSTITUTION = re.compile(r"\$\((?P<dollar>[^()`]*)\)|`(?P<backticks>[^()`]*)`")
_SEPARATOR = re.compile(r"[;|&()]+")
#: Commands that neither read the block's variables nor start a program that does.
_QUIET = {
    "",
    "[",
    "basename",
    "cat",
    "cd",
    "chmod",
    "chown",
    "cp",
    "date",
    "dirname",
    "echo",
    "expr",
    "ls",
    "mkdir",
    "mv",
    "nproc",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rm",
    "sleep",
    "test",
    "touch",
    "true",
    "ulimit",
}
_CONTINUED = re.compile(rb"(?:\\|&&|\|\|?)[ \t]*\r?$")
#: Text before the command on its line that allows a block before that line.
_PREFIX = re.compile(
    r"[ \t]*(?:(?:nohup|time|sudo|command|exec|if|!|[A-Za-z_]\w*=\S*)[ \t]+)*(?:[\w./$\"{}-]*/)?"
)
_PROGRAM = re.compile(rf"{_CHARACTER}++")
_FLAG = re.compile(rf"--?[\w-]+(?:={_CHARACTER}*+|(?:[ \t]|\\\n)++(?!-){_CHARACTER}++)")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)+\Z")
#: The end of a command line.
_ENDED = re.compile(r"(?<!\\)\n")
#: A first line that names a shell with arrays, or syntax that only such a shell has.
_NAMES_BASH = re.compile(rb"#![^\n]*\b(?:bash|zsh)\b")
_BASH_SYNTAX = re.compile(
    rb"\[\[|\(\(|\w=\(|^[ \t]*(?:function|source|declare|local)[ \t]", re.MULTILINE
)


def plan_exports(path: str, data: bytes, draft: Draft, shell: str, has_flags: bool) -> Cut:
    """Return the replacement of a script's exports.

    Only [env] if the preset also ``has_flags`` for ATC. Raises NpuprofError (NP830) unless all
    lines are plain exports, and no line between them may read the variables.
    """
    lines = Lines(data)
    names_of_line = defaultdict(set)
    for setting in draft.carried:
        names_of_line[setting.line].add(setting.name)
    edits = [
        lines.build_cut(line, line, _read_export(path, lines, line, names))
        for line, names in sorted(names_of_line.items())
    ]
    mention = re.compile(rf"\b(?:{'|'.join(setting.name for setting in draft.carried)})\b")
    first, last = min(names_of_line), max(names_of_line)
    for line in range(first, last):
        text = decode_safely(lines.lines[line - 1]).strip()
        if line not in names_of_line and (obstacle := _find_obstacle(text, mention)):
            what = "the exports cannot become one block"
            raise build_refusal(path, what, f"Line {line} is between them: {obstacle}.", line)
    facts = {"target": "env", "shell": shell}
    if has_flags:
        facts["sections"] = "env"
    return lines.place_cut(first, facts, edits)


def _read_export(path: str, lines: Lines, line: int, names: set[str]) -> list[bytes]:
    """Return the comment of an export line.

    Raises NpuprofError if the line does more than set the preset's variables.
    """
    what = f"the line that sets {min(names)} cannot be taken out"
    match = _EXPORT.fullmatch(lines.lines[line - 1].decode(errors="surrogateescape"))
    if match is None or (line > 1 and _CONTINUED.search(lines.lines[line - 2])):
        why = (
            "It is not a plain export: it does more, shares "
            "its line, or continues on the next line."
        )
        raise build_refusal(path, what, why, line)
    if more := set(_NAME.findall(match["assignments"])) - names:
        why = f"It sets {min(more)} too, which is not in the preset."
        raise build_refusal(path, what, why, line)
    return [match["comment"].encode(errors="surrogateescape")] if match["comment"] else []


def _find_obstacle(text: str, mention: re.Pattern[str]) -> str:
    """Return why exports cannot move past a remaining line, empty if they can.

    They can if it sets other variables, or runs quiet commands.
    """
    if text.startswith("#"):
        return ""
    if mention.search(text):
        return "it reads or sets one of the variables"
    if _EXPORT.fullmatch(text):
        return ""
    commands = []
    while match := _SUBSTITUTION.search(text):
        commands += _SEPARATOR.split(match["dollar"] or match["backticks"] or "")
        text = f"{text[: match.start()]}{text[match.end() :]}"
    commands += _SEPARATOR.split(text)
    for command in commands:
        arguments = _LEADING.sub("", command.strip(), count=1).split()
        if arguments and arguments[0] not in _QUIET:
            return f"it has the command {arguments[0]}"
    return ""


def plan_flags(path: str, data: bytes, draft: Draft, site: Site, shell: str) -> Cut:
    """Return the replacement of one ``atc`` command line's flags.

    They are in an array, or in a string for shells without arrays. Raises NpuprofError (NP830) for
    a flag that is not literal in the command, or whose value needs an array.
    """
    text = data.decode(errors="surrogateescape")
    lines = Lines(data)
    _check_command(path, text, lines, site)
    if data.startswith(b"#!"):
        with_array = _NAMES_BASH.match(data) is not None
    else:
        with_array = _BASH_SYNTAX.search(data) is not None
    program = _PROGRAM.match(text, _find_offset(text, site.line, site.column))
    begin = program.end() if program else 0
    edits = [_cut_flag(path, text, setting, begin, with_array) for setting in draft.carried]
    array = choose_free_name("ATC_FLAGS", text)
    end = _count_bytes(text[:begin])
    edits.append(Edit(end, end, (f' "${{{array}[@]}}"' if with_array else f" ${array}").encode()))
    facts = {"target": "atc", "onto": array if with_array else f"${array}", "shell": shell}
    return lines.place_cut(site.line, facts, edits)


def _check_command(path: str, text: str, lines: Lines, site: Site) -> None:
    """Raise NpuprofError if no block can precede the command's line."""
    head = text[_find_offset(text, site.line, 1) : _find_offset(text, site.line, site.column)]
    hint = ""
    if "\r" in text:
        why = (
            "The lines of the script end in carriage "
            "returns, which a shell takes for a part of them."
        )
    elif not _PREFIX.fullmatch(head):
        why = f"{head.strip()} precedes it on its line, and a block needs its own lines."
        hint = "put atc on a separate line"
    elif site.line > 1 and _CONTINUED.search(lines.lines[site.line - 2]):
        why = "The line goes on from the one before it."
    else:
        return
    raise build_refusal(path, "the flags of atc cannot be taken out", why, site.line, hint)


def _cut_flag(path: str, text: str, setting: ScriptSetting, begin: int, with_array: bool) -> Edit:
    """Return the edit that removes a flag with its value and separator.

    ``begin`` is the end of the program.
    """
    if not with_array and not is_plain_flag(f"{setting.name}={setting.assigned.written}"):
        why = (
            "No shell with arrays is named, so the block would pass it in a variable, but it "
            "contains a blank or a pattern."
        )
        what = f"{setting.name} cannot be taken out"
        hint = "begin the script with #!/bin/bash"
        raise build_refusal(path, what, why, setting.line, hint)
    start = _find_offset(text, setting.line, setting.column)
    match = _FLAG.match(text, start)
    if match is None or start < begin or _ENDED.search(text, begin, start):
        what = "the flags of atc cannot be taken out"
        why = f"--{setting.name.removeprefix('--')} is not written out in the command."
        raise build_refusal(path, what, why, setting.line)
    return Edit(_count_bytes(_BLANKS.sub("", text[:start])), _count_bytes(text[: match.end()]), b"")


def _find_offset(text: str, line: int, column: int) -> int:
    """Return the offset of a line and column, both from 1, in a text."""
    return sum(len(part) + 1 for part in text.split("\n", line - 1)[: line - 1]) + column - 1


def _count_bytes(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))
