"""Slips in scripts that start programs: cut commands, and variables that are unset or unused."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import dropwhile, pairwise, zip_longest

from npuprof.catalog import build_finding
from npuprof.model import LIKELY, Finding, Place
from npuprof.scripts.grouping import group_by
from npuprof.scripts.python.environ import is_ascend_variable
from npuprof.scripts.reading.shells.known_variables import list_assignments
from npuprof.scripts.script_records import UnusedVariable, find_position
from npuprof.scripts.shell_lexer import Command, Word, join_assignment

#: The minimum similarity of a variable that nothing sets and one that nothing uses.
_ALIKE = 0.85
#: The same for one that nothing sets and one that is set.
_VERY_ALIKE = 0.9
#: A command that may set any name: export "$KEY=$VALUE", eval "$(FILE)". A name may be a command.
_SETS_ANY = re.compile(
    r"""(?<![-\w./])(?:
        (?:export|declare|typeset|local|readonly|printf)(?:[ \t]+-\w+)*[ \t]+["']?[$`]
    |eval[ \t]+["']?(?:`|\$(?:\{?([A-Za-z_]\w*+)(?!\}?["'\\]*=))?|export|declare))""",
    re.VERBOSE,
)
#: What passes any variable: set -a exports it, ${!NAME} has its name in another one.
_GETS_ANY = re.compile(
    r"#!(?<=\n#!).* -\w*a|set(?<!\wset) -\w*a|allexport(?<!\wallexport)|compgen(?<!\wcompgen)|\$\{!"
)
#: As many unused variables are compared with each.
_MOST_UNUSED = 100
#: A flag, or an override of Hydra: neither is a command.
_ARGUMENT = re.compile(r"--\w|[+~]*[A-Za-z_]\w*(?:\.\w+)+=")
_PYTHON = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun|deepspeed|accelerate)")
#: A path to a Python file, and a flag with a path behind it.
_PATH = re.compile(r"[\w./-]+/[\w.-]+|[\w.-]+\.py")
_JOINED_PATH = re.compile(r"--\w[\w-]*\.{0,2}/[\w./-]+")
#: A path that begins with a name in capitals. Patterns of lines begin with the end of the one
#: above: a search for a fixed character is several times faster.
_BARE = re.compile(r"""\n[ \t]*(?:export[ \t]+)?\w+=["']?([A-Z][A-Z0-9_]{3,})/""")
#: A place for results that is the script itself.
_ITSELF = re.compile(r"""\n[ \t]*(\w+)=["']?\$0["']?(?=\s)""")
_COMMENT = re.compile(r"\n[ \t]*#.*")
#: Commands that use a place without writing anything there.
_ABOUT = re.compile(r"\n[ \t]*(?:mkdir|chmod|chown|rm|ls|echo|touch)\b.*")
#: A name, the end of a flag behind a dash, or of an override behind a dot.
_MENTION = re.compile(r"[-.]\w+|\w+")
_USE = re.compile(r"\$(?<!\\\$)\{?([A-Za-z_]\w*)")
#: The same, without a default.
_UNSET = re.compile(rf"{_USE.pattern}\b(?!:?[-=+?])")
#: What gives a variable no default: the brace, or the dash, is at the wrong place.
_NO_DEFAULT = re.compile(r"\{\$(\w+):-|\$\{(\w+):(?=[ ]*['\"]\D|(?:True|False)\b|[ ]\d{3,}\})")
#: What git leaves where two versions conflict, or an option of a job of Slurm.
_LINE = re.compile(r"\n(?:(?:<{7}|>{7}) |(#SBATCH) )")
#: Arithmetic in single parentheses.
_NO_ARITHMETIC = re.compile(r"\$\([ ]*(\$\{?\w+\}?|\d+) [-+*/%] (\$\{?\w+\}?|\d+)[ ]*\)(?!\))")
#: The command of a $( ).
_INNER = re.compile(r"\$\(([a-z]{3,}\d?)[ )](?!=)")
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
#: An assignment in a line of its own, so that the command of the line does not get it.
_ASSIGNMENT = re.compile(
    r"\n[ \t]*([A-Za-z_]\w*)\+?=(?!(?:\"\"|'')?\s|(?:\"[^\"]*\"|'[^']*'|[^\s\"'])*+[ \t]+[^#\s])"
)
#: A number of processes, which scripts compute, and what launchers have without a flag.
_COMPUTED = re.compile(
    r"\w+=[\"']?\$\(\(|(?i:MASTER_(?:ADDR|PORT)|NNODES|(?:\w+_)?RANK|WORLD_SIZE)="
)
#: An argument of a script in a variable, at the top of the script.
_POSITIONAL = re.compile(
    r"""\n(?:export[ \t]+)?(\w+)=["']?\$\{?(\d+)(?:\}|\b)["']?[ \t]*(?:#|$)""", re.MULTILINE
)
#: An argument of a script as a path, and as a number.
_ROLE = re.compile(
    r"""(?i:PATH|DIR|FILE)\w*=\S*?(?:\$\(\w+[ ])?"?\$\{?(\d)\b
    |\$\{?(\d)\}?[ ]-(?:eq|ne|[lg][te])\b|[ ](?:-np?|--\w*(?:num|size))[ =]\$\{?(\d)\b""",
    re.VERBOSE,
)
_DEFINED = re.compile(r"\n(?:function |[\w-]+ ?\(\))")
#: A command that may find nothing, and a test whether it did.
_SEARCH = re.compile(
    r"""\n[ \t]*(\w+)=(?:\$\(|`)grep [^|\n`]*[)`][ \t]*(?:#.*)?\n\s*if \[{1,2} -[nz] "?\$\{?\1\b"""
)
_STOPS_AT_ANY = re.compile(r"\A\n#!.* -\w*e|\nset .*-\w*e")
#: What a path leads to, by the end of a name.
_KIND = re.compile("_(?:PATH|DIR|FILE)$")
#: Names of one device: several programs read it, each by its own name.
_DEVICE = re.compile(r"device(?!t)|rank|gpu")
#: The value of an option of the script.
_OPTION = re.compile(r"[ \t]\w+=\"?\$\{?2\b")
#: An assignment to a name that no variable can have.
_HYPHENS = re.compile(r"[A-Za-z_]\w*(?:-\w+)+=.*")
#: Variables with arguments, or a place for results, and those that a caller may set.
_PASSED = re.compile(r"\w+_ARGS|\w*(?:SAVE|LOAD|CHECKPOINT|CKPT)\w*")
_OF_CALLER = re.compile(r"EXTRA|OTHER|USER|ADDITIONAL")
#: Why slips with variables matter.
_WHY = {
    "NP844": "$0 is the path of the script, $1 its first argument, and $( ) runs a command.",
    "NP845": "The shell puts nothing, or the name itself, in its place.",
}

#: A code, a word, what is wrong with it, why, what to do, and how certain that is.
_Slip = tuple[str, Word, str, str, str, dict[str, str]]
#: The end of a command, as a flag.
_END = Word(0, 0, ("--",))


def find_command_slips(path: str, commands: Sequence[Command]) -> Iterator[Finding]:
    """Yield the commands of a script that a shell cuts or takes for others."""
    used = set(_USE.findall("\n".join({command.text for command in commands})))
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
        hinted = _find_near(word.text, command.text) if kind == "near" else word.text
        if hinted:
            what, why, hint, how = _MEANINGS[kind]
            yield "NP844", word, what.format(word.text), why, hint.format(hinted), how
    names = {name for name, _ in list_assignments(command)}
    if len(names) == len(command) and (command.is_piped or command.is_forked) and names & used:
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


def _find_near(name: str, text: str) -> str:
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


def find_variable_slips(
    path: str, text: str, commands: Sequence[Command], has_unread: bool
) -> tuple[list[UnusedVariable], list[Finding]]:
    """Return the variables that a script sets in lines of their own and never uses, and slips.

    Slips are variables that it uses and never sets, and their like.
    """
    # without comments, and with an empty line before the first one
    code = _COMMENT.sub(lambda match: f"\n{' ' * (len(match[0]) - 1)}", f"\n{text}")
    joined = "\n".join({code, *(f"\n{each.text}" for each in commands if each.file)})
    mentioned = Counter(_MENTION.findall(joined))
    about = Counter(_MENTION.findall("".join(_ABOUT.findall(joined))))
    own = [each for each in commands if not (each.file or each.is_inner)]
    # texts and here-documents have such lines too
    starts = {each[0].span[0] + 1 for each in own}
    assigned: dict[str, list[int]] = {}
    for match in _ASSIGNMENT.finditer(code):
        at = match.start(1)
        assigned.setdefault(match[1], []).extend([at] if at in starts else [])

    def find_place(at: int) -> Place:
        line, column = find_position(code, at)
        return Place(path, line - 1, column)

    unused = [
        UnusedVariable(name, find_place(at[-1]))
        for name, at in assigned.items()
        if at and mentioned[name] - about[name] == len(at) and not _COMPUTED.match(code, at[-1])
    ]
    if has_unread or _GETS_ANY.search(f"\n{text}"):
        unused = []
    reported = [
        each
        for each in unused
        if _PASSED.fullmatch(each.name) or _OPTION.match(code, assigned[each.name][-1] - 1)
    ]
    findings = [*map(build_unused_finding, reported)]
    documents = [each.document.span for each in own if each.document]
    for match in _LINE.finditer(f"\n{text}"):
        at = match.start()  # in the script, which has no empty line before it
        start, end = documents[bisect(documents, (at, len(code))) - 1] if documents else (0, 0)
        where, what, why = find_place(at + 1), "git left a conflict here", "The shell stops at it."
        hint = "keep one of the two versions"
        if match[1]:
            first = own[0][0]
            words = (word for each in own for word in (*each, *each.redirected))
            if at < first.span[0] or any(word.span[0] < at < word.span[1] for word in words):
                continue
            what, why = "sbatch ignores #SBATCH behind a command", "It reads those above only."
            where, hint = Place(path, *first.position), "move the command below them"
        line = build_finding("NP844", what, why, hint, where=where)
        if not start <= at < end and line not in findings:
            findings.append(line)
    found = [
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
    for match in _INNER.finditer(code):
        if meant := _find_near(match[1], code):
            what = f"the shell has no command {match[1]}"
            found.append((match.start(1), "NP844", what, f"did you mean {meant}?"))
    for match in _ITSELF.finditer(code):
        if _PASSED.fullmatch(match[1]):
            what = f"{match[1]} is the script itself"
            found.append((match.start(1), "NP844", what, "write $1 for the first argument"))
    for match in _SEARCH.finditer(code) if _STOPS_AT_ANY.search(code) else ():
        what = f"the script stops here if {match[1]} would be empty"
        found.append((match.start(1), "NP844", what, "write || true behind the command"))
    bounds = (0, *(match.start() for match in _DEFINED.finditer(code)), len(code))
    for start, end in pairwise(bounds):
        roles = [*_ROLE.finditer(code, start, end)]
        paths = {match[1] for match in roles if match[1]}
        for match in roles:
            number = match[2] or match[3]
            if number in paths:
                what = f"${number} is a number here, and a path elsewhere"
                found.append((match.start(), "NP844", what, "correct the number behind $"))
    taken: list[str] = []
    for match in _POSITIONAL.finditer(code):
        number = int(match[2])
        name = match[1].replace("_", "").lower()
        if len(taken) > 2 and 0 < number <= len(taken) and name not in taken:
            what = f"${number} is already the value of another variable"
            hint = f"write ${len(taken) + 1}, if that is meant"
            if not all(map(_DEVICE.search, (name, taken[number - 1]))):
                found.append((match.start(1), "NP844", what, hint))
        if number != len(taken) + 1:
            break  # only those in order count
        taken.append(name)
    used = Counter(_UNSET.findall(joined))
    # others are set, or have a default
    unset = {
        match[1]: match.start()
        for match in _USE.finditer(code)
        if used[match[1]] >= mentioned[match[1]]
    }
    if unset:
        sets_any = has_unread or any(
            match[1] not in assigned for match in _SETS_ANY.finditer(joined)
        )
        expanded = _list_expanded(commands)
        places = {name: place for place, name in enumerate(assigned)}
        by_letters = group_by(assigned, _sort_letters)
        names = [each.name for each in unused[:_MOST_UNUSED]]
        for name, at in unset.items():
            if sets_any:  # what sets others hardly means a slip for one of these
                # an option may set what has its name
                is_free = name in expanded and not mentioned[f"-{name}"]
                near = [*places][:_MOST_UNUSED] if is_free else []
                alike = get_close_matches(name, near, 1, _VERY_ALIKE)
            else:
                alike = get_close_matches(name, names, _MOST_UNUSED, _ALIKE)
                alike += by_letters.get(_sort_letters(name), ())
                if name in expanded and (kind := _KIND.search(name)):
                    alike += [each for each in names if each.endswith(kind[0])]
            is_own = name in expanded and name.islower() and not name.endswith("_proxy")
            is_own |= name.endswith("_ARGS") and not _OF_CALLER.search(name)
            if alike or (is_own and not sets_any):
                hint = f"set {name}, or remove it"
                if alike:
                    hint = f"did you mean ${min(alike, key=places.__getitem__)}?"
                found.append((at, "NP845", f"nothing sets ${name}", hint))
    findings += [
        build_finding(rule, what, _WHY[rule], hint, where=find_place(at), **LIKELY)
        for at, rule, what, hint in found
    ]
    return [each for each in unused if each not in reported], findings


def _list_expanded(commands: Sequence[Command]) -> set[str]:
    """Return the variables that commands of a script expand and that it does not test."""
    expanded: set[str] = set()
    tested: set[str] = set()
    for command in commands:
        words = [each for word in command for each in (word, *word.items)]
        names = {
            use[1]
            for word in words
            for part in word.parts
            # a quote in $( ) is not read
            if not isinstance(part, str) and (use := _USE.match(part[0]))
        }
        # what a script tests, its caller may set
        is_test = any(word.keyword in ("[", "[[", "test", "case") for word in command)
        expanded |= set() if command.is_inner or is_test else names
        tested |= names if is_test else set()
    return expanded - tested


def build_unused_finding(variable: UnusedVariable, why: str = "") -> Finding:
    """Return the finding of a variable that no command gets."""
    what = f"{variable.name} is set, and no command gets it"
    why = f"The program runs without it.{why}"
    return build_finding("NP843", what, why, "pass or remove it", where=variable.where, **LIKELY)


def _sort_letters(name: str) -> str:
    return "".join(sorted(name.replace("_", "").lower()))
