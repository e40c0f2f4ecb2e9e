"""Slips in the commands of scripts that start programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, pairwise, zip_longest

from npuprof.catalog import build_finding
from npuprof.model import LIKELY, Finding, Place
from npuprof.scripts.python.environ import is_ascend_variable
from npuprof.scripts.reading.shells.known_variables import list_assignments
from npuprof.scripts.shell_lexer import Command, Word, join_assignment

#: A variable that a text uses.
USE = re.compile(r"\$(?<!\\\$)\{?([A-Za-z_]\w*)")
#: A flag, or an override of Hydra: neither is a command.
_ARGUMENT = re.compile(r"--\w|[+~]*[A-Za-z_]\w*(?:\.\w+)+=")
_PYTHON = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun|deepspeed|accelerate)")
#: A path to a Python file, and a flag with a path behind it.
_PATH = re.compile(r"[\w./-]+/[\w.-]+|[\w.-]+\.py")
_JOINED_PATH = re.compile(r"--\w[\w-]*\.{0,2}/[\w./-]+")
#: A redirection alone between two pipes, or before one.
_NO_COMMAND = re.compile(r"(?:[|;&]|(?<!\\)\n)[\s\\]*<[ \t]*[^\s<>|&;()]+[\s\\]*\|[\s\\]*\Z")
#: A number that a test seems to compare: a descriptor is before a redirection, not behind it.
_COMPARED = re.compile(r"[ ][<>][ ]*(?:\d+|\$\{?\w+\}?)\Z")
#: It is searched in this many characters before its file.
_NEAR = 80
#: Words of a shell that begin or end a branch or a loop.
_KEYWORDS = ("else", "elif", "fi", "then", "done", "esac")
#: Slips in the words of a command, by kind. A word with quotes has one at its start here.
_WRONG = re.compile(
    r"""(?:if|elif|while|until|!)[ ](?P<test>"?\$[^\s=]+)[ ](?:==?|!=)[ ]
    |\w+=[ ](?P<sum>"?\$\S+)[ ][-+*/%][ ]
    |(?:(?:if|elif|while|until|!|then|else|do|time|nohup|exec|srun|[A-Za-z_]\w*=[^\s<[]*)[ ])*(?:
        let[ ]\S+[ ](?:\S+[ ])*?(?P<let>[-+*/%=<>]{1,3})(?:[ ]|\Z)
    |for[ ]\w+[ ]in[ ](?P<commas>[^\s"]+,)[ ](?:[^\s"]+,[ ])*[^\s"]*[^\s",]\Z
    |(?P<name>\$\{?[A-Za-z_]\w*\}?=)[^=~]
    |(?P<open>"?\[\[?[$!-]|"\[\[?\w)(?=.*\]\Z)
    |(?P<close>\[)[ ](?!(?:.*[ ])?"?\]\Z)
    |accelerate[ ](?P<accelerate>\S+\.py)(?:[ ]|\Z)
    |(?:\S*/)?(?:torchrun|deepspeed|accelerate[ ]launch|python\S*[ ]-m[ ]torch\.distributed\.\w+)
        (?:[ ](?!--no[-_]python)-[^\s=]++(?:=\S++|[ ][^-\s]\S*+)??)*?
        [ ](?P<python>python[\d.]*)[ ](?:-[mu]|\S+\.py)(?:[ ]|\Z)
    |(?:\S*/)?(?:python[\d.]*|torchrun|deepspeed|accelerate)[ ]
        (?:\S+[ ])*?(?P<dash>[\u2013\u2014])\w
    |(?P<near>[a-z]{3,}\d?)(?:[ ](?!=)|\Z)
    |(?P<text>"(?!\w+\+?=)[^ $]*\n)
    )""",
    re.VERBOSE | re.DOTALL,
)
_RUNS = "the shell runs {} as a command"
#: What each kind means, why that is wrong, what to write instead, and how certain that is.
_MEANINGS = {
    "test": (
        "the shell runs the value of {} as a command",
        "An if runs a command, and a test needs [ ].",
        "write [ {} ... ]",
        LIKELY,
    ),
    "sum": (_RUNS, "It computes in $(( )) only.", "write $((...))", LIKELY),
    "let": (
        "let takes {} as a whole expression",
        "It computes each word.",
        "remove the blanks",
        {},
    ),
    "commas": (
        "the comma of {} is part of the value",
        "Blanks separate values.",
        "remove it",
        LIKELY,
    ),
    "name": (_RUNS, "The name of a variable to set has no $.", "remove the $", LIKELY),
    "open": (_RUNS, "The command of a test is [ alone.", "write a blank behind [", {}),
    "close": ("this test has no ]", "It must be a word of its own.", "write a blank before ]", {}),
    "accelerate": ("accelerate has no command {}", "It stops.", "write accelerate launch {}", {}),
    "python": ("the launcher runs a script with the name {}", "It starts Python.", "remove {}", {}),
    "dash": ("{} begins with a long dash", "No flag does.", "write - or --", {}),
    "text": ("the shell runs this text as a command", "It is no comment.", "write #", LIKELY),
    "near": ("the shell has no command {}", "It goes on without it.", "did you mean {}?", LIKELY),
}
#: Common commands, and programs with a name close to one.
_COMMON = "accelerate bash date deepspeed echo exit export mkdir python3 sleep source torchrun wait"
_RARE = "bats bpython cython dash edit gate hash ipython jython late mate python python2 rmdir text"
#: An assignment to a name that no variable can have.
_HYPHENS = re.compile(r"[A-Za-z_]\w*(?:-\w+)+=.*")
#: A code, a word, what is wrong with it, why, what to do, and how certain that is.
_Slip = tuple[str, Word, str, str, str, dict[str, str]]
#: The end of a command, as a flag.
_END = Word(0, 0, ("--",))


def find_command_slips(path: str, commands: Sequence[Command]) -> Iterator[Finding]:
    """Yield the commands of a script that a shell cuts or takes for others."""
    used = set(USE.findall("\n".join({command.text for command in commands})))
    for above, command in pairwise((Command(), *commands)):
        for code, word, what, why, hint, how in _iterate_slips(command, above, used):
            where = Place(command.file or path, *word.position)
            yield build_finding(code, what, why, hint, where=where, **how)


def _iterate_slips(command: Command, above: Command, used: set[str]) -> Iterator[_Slip]:
    words = command[1:] if command[0].keyword == "export" else []
    first, *others = words or command
    is_below = bool(above) and above[-1].line < first.line
    if is_below and _is_flag(first) and not _is_flag(above[0]):
        what = f"the shell runs {first.text} as a command"
        why = f"The command above it ends with line {above[-1].line}."
        hint = "end that line and those below it with a backslash"
        yield "NP844", first, what, why, hint, {}
    value = others[0].keyword if others else ""
    if value.startswith("=") and not command.shells:
        # an export of a variable of Ascend software is reported with its name
        is_export = bool(words) and not is_ascend_variable(first.text)
        if is_export or first.text in used:
            what = f"{first.text} {value} sets no variable"
            why = "The shell reports an error and goes on."
            hint = f"write {join_assignment(command.text, command[0], command[-1])}"
            yield "NP813", first, what, why, hint, {}
    if not others and _HYPHENS.fullmatch(first.text):
        what, why = f"the shell runs {first.text} as a command", "A variable has no hyphens."
        yield "NP813", first, what, why, "write the name with underscores", {}
    line = " ".join(['"' * word.quoted + word.text.replace(" ", "_") for word in command])
    wrong = _WRONG.match(line)
    if wrong and not (command.shells and line[0] in '"$'):  # in (( )), such words are right
        kind = wrong.lastgroup or ""
        word = command[line.count(" ", 0, wrong.start(kind))]
        hinted = find_near_command(word.text, command.text) if kind == "near" else word.text
        if hinted:
            what, why, hint, how = _MEANINGS[kind]
            yield "NP844", word, what.format(word.text), why, hint.format(hinted), how
    is_apart = command.is_piped or command.is_forked
    names = {name for name, _ in list_assignments(command)} if is_apart else set()
    if len(names) == len(command) and names & used:
        what = f"{min(names)} is lost: a pipe or & sets it in a shell of its own"
        yield "NP844", first, what, "The script does not get it.", "put the pipe into $( )", {}
    for target in command.redirected[:1]:
        if command[-1].text == "]" and _COMPARED.search(
            command.text, first.span[0], min(target.span[1], command[-1].span[0])
        ):
            what, why = f"this test uses {target.text} as a file", "In [ ], < and > redirect."
            yield "NP844", target, what, why, "write -lt or -gt", {}
        if _NO_COMMAND.search(command.text, target.span[0] - _NEAR, first.span[0]):
            what, why = f"no command reads {target.text}", "The pipe gets nothing."
            yield "NP844", target, what, why, f"write cat {target.text}", {}
    is_text = command[0].text in ("echo", "printf", "for", "select")
    for before, word in pairwise(command):
        if before.line < word.line and word.keyword in _KEYWORDS and not is_text:
            what = f"{word.text} is an argument: the backslash above joins the lines"
            yield "NP844", word, what, "The branch is lost.", "remove that backslash", {}
    document = command.document
    if document and not document.quoted and command.text.endswith("\\\n", 0, document.span[1]):
        what = "the text for this command has no end: a backslash joins its last lines"
        why = "The shell takes all lines that follow for it."
        yield "NP844", first, what, why, "remove that backslash", {}
    yield from _find_word_slips(command)


def _shorten(name: str) -> set[str]:
    return {name[:at] + name[at + 1 :] for at in range(len(name))}


_SHORT = {short: name for name in _COMMON.split() for short in _shorten(name)}
_KNOWN = {*_COMMON.split(), *_RARE.split()}


def find_near_command(name: str, text: str) -> str:
    """Return the common command that a name is meant for, unless the text defines it."""
    near = {name, *_shorten(name)} & _SHORT.keys() if name not in _KNOWN else ()
    if not near or re.search(rf"\b{name}(?:=|[ ]*\()", text):
        return ""
    return _SHORT[min(near)]


def _find_word_slips(words: Sequence[Word]) -> Iterator[_Slip]:
    """Yield words that a program in Python cannot mean."""
    before: dict[str, str] = {}
    is_option, last = False, ""
    items = words[0].items  # of an array
    if len(words) < 2 and not items:  # half of all commands, most of them assignments
        return
    words = items or [
        *dropwhile(lambda word: not _PYTHON.fullmatch(word.text.partition("=")[0]), words)
    ]
    for word, following in zip_longest(words, words[1:], fillvalue=_END):
        name, is_joined, text = word.text.partition("=")
        value = text if is_joined else following.text
        is_start = _PYTHON.fullmatch(name) is not None
        is_option = is_start or (is_option and name.startswith("-"))  # of Python itself
        before = {} if name.endswith(".py") else before  # those were the launcher's
        if word.open_part:
            continue
        if word.text == "*" and not word.quoted and following.text.isdecimal():
            what, why = "the shell puts file names in the place of *", "It computes in $(( )) only."
            yield "NP844", word, what, why, "write $((A * B))", {}
        if is_option and word.text == "-m" and _PATH.fullmatch(value):
            module = value.removesuffix(".py").replace("/", ".")
            what, why = "python -m takes a module, not a path", "Python finds no such module."
            yield "NP844", following, what, why, f"write -m {module}", {}
        if not is_joined and _JOINED_PATH.fullmatch(name):
            what, why = f"there is neither = nor a blank in {name}", "All of it is the flag's name."
            yield "NP844", word, what, why, "write = before the path", {}
        is_unknown = not is_joined and following.open_part
        # an array may be for another program, which takes several
        has_value = name.startswith("--") and not (value.startswith("-") or is_unknown or items)
        is_next = name == last  # as of a list: --rate 6 --rate 12
        last = name if name.startswith("--") else last
        if has_value and before.setdefault(name, value).lower() != value.lower() and not is_next:
            what = f"{name} is given twice, and {before[name]} is lost"
            why = "Programs take the last value."
            yield "NP844", word, what, why, "remove one of them", LIKELY


def _is_flag(word: Word) -> bool:
    return _ARGUMENT.match(word.keyword) is not None
