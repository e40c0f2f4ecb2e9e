"""Slips in scripts that start programs: cut commands, and variables that are unset or unused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from npuprof.catalog import build_finding
from npuprof.model import LIKELY, Finding, Place
from npuprof.scripts.python.environ import is_ascend_variable
from npuprof.scripts.script_records import find_position
from npuprof.scripts.shell_lexer import Command, Word, join_assignment
from npuprof.scripts.steps import count_steps

#: The minimum similarity of a variable that nothing sets and one that nothing uses.
_ALIKE = 0.85
#: A flag, or an override of Hydra: neither is a command.
_ARGUMENT = re.compile(r"--|[+~]*[A-Za-z_]\w*(?:\.\w+)+=")
_PYTHON = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun|deepspeed|accelerate)")
#: A path to a Python file, and a flag with a path behind it.
_PATH = re.compile(r"[\w./-]+/[\w.-]+|[\w.-]+\.py")
_JOINED_PATH = re.compile(r"--\w[\w-]*\.{0,2}/[\w./-]+")
#: A path that begins with a name in capitals.
_BARE = re.compile(r"""^[ \t]*(?:export[ \t]+)?\w+=["']?([A-Z][A-Z0-9_]{3,})/""", re.MULTILINE)
#: A place for results that is the script itself.
_ITSELF = re.compile(r"""^[ \t]*(\w+)=["']?\$0["']?\s""", re.MULTILINE)
_COMMENT = re.compile(r"(?m)^[ \t]*#.*")
#: Commands that use a place without writing anything there.
_ABOUT = re.compile(r"(?m)^[ \t]*(?:mkdir|chmod|chown|rm|ls|echo|touch)\b.*")
_USE = re.compile(r"\$\{?([A-Za-z_]\w*)")
#: The same, without a default.
_UNSET = re.compile(rf"{_USE.pattern}\b(?!:?[-=+?])")
#: What gives a variable no default: the brace, or the dash, is at the wrong place.
_NO_DEFAULT = re.compile(r"\{\$(\w+):-|\$\{(\w+):(?=['\"]\D|(?:True|False)\b)")
#: What git leaves where two versions conflict.
_CONFLICT = re.compile(r"^(?:<{7}|>{7}) .*", re.MULTILINE)
#: Arithmetic in single parentheses.
_NO_ARITHMETIC = re.compile(r"\$\([ ]*(\$\{?\w+\}?|\d+) [-+*/%] (\$\{?\w+\}?|\d+)[ ]*\)(?!\))")
#: Words of a shell that begin or end a branch or a loop.
_KEYWORDS = ("else", "elif", "fi", "then", "done", "esac")
#: An assignment in a line of its own, so that the command of the line does not get it.
_ASSIGNMENT = re.compile(
    r"^[ \t]*([A-Za-z_]\w*)\+?=(?!(?:\"\"|'')?\s|(?:\"[^\"]*\"|'[^']*'|[^\s\"'])*+[ \t]+[^#\s])",
    re.MULTILINE,
)
#: Variables with arguments, or a place for results, and those that a caller may set.
_PASSED = re.compile(r"\w+_ARGS|\w*(?:SAVE|LOAD|CHECKPOINT|CKPT)\w*")
_OF_CALLER = re.compile(r"EXTRA|OTHER|USER|ADDITIONAL")
#: Why slips with variables matter.
_WHY = {
    "NP843": "The program runs without it.",
    "NP844": "$0 is the path of the script, $1 its first argument, and $( ) runs a command.",
    "NP845": "The shell puts nothing, or the name itself, in its place.",
}

#: A word, what is wrong with it, why, what to do, and how certain that is.
_WordSlip = tuple[Word, str, str, str, dict[str, str]]


def find_command_slips(path: str, commands: Sequence[Command]) -> Iterator[Finding]:
    """Yield the commands of a script that a shell cuts or takes for others."""
    used = set(_USE.findall("\n".join({command.text for command in commands})))
    above: list[Word] = []
    for command in commands:
        words = command[1:] if command[0].keyword == "export" else []
        # an export of a variable of Ascend software is reported with its name
        is_export = bool(words) and not is_ascend_variable(words[0].text)
        first, *others = words or command
        value = others[0].keyword if others else ""
        where = Place(command.file or path, *first.position)
        is_cut = bool(above) and above[-1].line < first.line and not _is_flag(above[0])
        if is_cut and _is_flag(first):
            what = f"the shell runs {first.text} as a command"
            why = f"The command above it ends with line {above[-1].line}."
            hint = "end that line and those below it with a backslash"
            yield build_finding("NP844", what, why, hint, where=where)
        is_used = is_export or first.text in used
        if value.startswith("=") and not command.shells and is_used:
            what = f"{first.text} {value} sets no variable"
            why = "The shell reports an error and goes on."
            hint = f"write {join_assignment(command.text, command[0], command[-1])}"
            yield build_finding("NP813", what, why, hint, where=where)
        for before, word in pairwise(command):
            is_text = command[0].text in ("echo", "printf", "for", "select")
            if word.keyword in _KEYWORDS and before.line < word.line and not is_text:
                what = f"{word.text} is an argument: the backslash above joins the lines"
                where = Place(command.file or path, *word.position)
                hint = "remove that backslash"
                yield build_finding("NP844", what, "The branch is lost.", hint, where=where)
        document = command.document
        if document and not document.quoted and command.text.endswith("\\\n", 0, document.span[1]):
            what = "the text for this command has no end: a backslash joins its last lines"
            why = "The shell takes all lines that follow for it."
            yield build_finding("NP844", what, why, "remove that backslash", where=where)
        for word, what, why, hint, how in _find_word_slips(command):
            where = Place(command.file or path, *word.position)
            yield build_finding("NP844", what, why, hint, where=where, **how)
        above = command


def _find_word_slips(words: Sequence[Word]) -> Iterator[_WordSlip]:
    """Yield words that a program in Python cannot mean."""
    before: dict[str, str] = {}
    is_python = is_option = False
    for word, following in zip(words, (*words[1:], Word(0, 0, ("--",))), strict=True):
        name, is_joined, text = word.text.partition("=")
        value = text if is_joined else following.text
        is_start = _PYTHON.fullmatch(name) is not None
        is_python |= is_start
        is_option = is_start or (is_option and name.startswith("-"))  # of Python itself
        before = {} if name.endswith(".py") else before  # those were the launcher's
        if word.open_part or not is_python:
            continue
        if is_option and word.text == "-m" and _PATH.fullmatch(value):
            module = value.removesuffix(".py").replace("/", ".")
            what, why = "python -m takes a module, not a path", "Python finds no such module."
            yield following, what, why, f"write -m {module}", {}
        if not is_joined and _JOINED_PATH.fullmatch(name):
            what, why = f"there is neither = nor a blank in {name}", "All of it is the flag's name."
            yield word, what, why, "write = before the path", {}
        is_unknown = not is_joined and following.open_part
        has_value = name.startswith("--") and not (value.startswith("-") or is_unknown)
        if has_value and before.setdefault(name, value) != value:
            what = f"{name} is given twice, and {before[name]} is lost"
            yield word, what, "Programs take the last value.", "remove one of them", LIKELY


def _is_flag(word: Word) -> bool:
    return _ARGUMENT.match(word.keyword) is not None


def find_variable_slips(path: str, text: str, commands: Sequence[Command]) -> Iterator[Finding]:
    """Yield the variables that a script uses and never sets, or sets and never uses."""
    code = _COMMENT.sub(lambda match: " " * len(match[0]), text)
    joined = "\n".join({code, *(command.text for command in commands if command.file)})
    mentioned = Counter(re.findall(r"\w+", joined))
    assigned = {match[1]: match.start(1) for match in _ASSIGNMENT.finditer(code)}
    passed = Counter(re.findall(r"\w+", _ABOUT.sub("", joined)))
    unused = [name for name in assigned if passed[name] == 1]
    found = [
        (assigned[name], "NP843", f"{name} is set, and no command gets it", "pass or remove it")
        for name in filter(_PASSED.fullmatch, unused)
    ]
    found += [
        (match.start(1), "NP845", f"{match[1]} is no variable here", f"write ${match[1]}")
        for match in _BARE.finditer(code)
        if match[1] in assigned
    ]
    for match in _NO_DEFAULT.finditer(code):
        name = match[1] or match[2]
        what = f"{match[0]} gives {name} no default"
        found.append((match.start(), "NP845", what, f"write ${{{name}:-VALUE}}"))
    for match in _NO_ARITHMETIC.finditer(code):
        what = f"the shell runs {match[1]} as a command"
        found.append((match.start(), "NP844", what, f"write $({match[0][1:]})"))
    for match in _ITSELF.finditer(code):
        if _PASSED.fullmatch(match[1]):
            what = f"{match[1]} is the script itself"
            found.append((match.start(1), "NP844", what, "write $1 for the first argument"))
    used = Counter(_UNSET.findall(joined))
    for name, at in {match[1]: match.start() for match in _USE.finditer(code)}.items():
        count_steps(len(unused))
        if used[name] < mentioned[name]:
            continue  # it is set, or has a default
        similar = [each for each in assigned if _are_alike(each, name, each in unused)]
        if similar or (name.endswith("_ARGS") and not _OF_CALLER.search(name)):
            hint = f"did you mean ${similar[0]}?" if similar else f"set {name}, or remove it"
            found.append((at, "NP845", f"nothing sets ${name}", hint))
    for match in _CONFLICT.finditer(text):
        at = match.start()
        if any(each.document and at in range(*each.document.span) for each in commands):
            continue
        where = Place(path, *find_position(text, at))
        what, why = "git left a conflict here", "The shell stops at it."
        yield build_finding("NP844", what, why, "keep one of the two versions", where=where)
    for at, code, what, hint in found:
        where = Place(path, *find_position(text, at))
        yield build_finding(code, what, _WHY[code], hint, where=where, **LIKELY)


def _are_alike(name: str, other: str, is_unused: bool) -> bool:
    """Return whether names have the same letters, or one that is unused nearly the same."""
    ratio = SequenceMatcher(None, name, other).ratio() if is_unused else 0
    plain, other_plain = (sorted(each.replace("_", "").lower()) for each in (name, other))
    return ratio >= _ALIKE or plain == other_plain
