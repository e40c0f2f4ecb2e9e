"""Slips in the text of scripts that start programs: variables that are unset or unused, and lines.

A text without comments is searched, with an empty line before its first one. So patterns of lines
begin with the end of the line above: a search for a fixed character is several times faster.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise

from npuprof.catalog import build_finding
from npuprof.model import LIKELY, Finding, Place
from npuprof.scripts.grouping import group_by
from npuprof.scripts.reading.shells.slips import USE, find_near_command
from npuprof.scripts.script_records import UnusedVariable, find_position
from npuprof.scripts.shell_lexer import Command

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
#: A path that begins with a name in capitals.
_BARE = re.compile(r"""\n[ \t]*(?:export[ \t]+)?\w+=["']?([A-Z][A-Z0-9_]{3,})/""")
#: A place for results that is the script itself.
_ITSELF = re.compile(r"""\n[ \t]*(\w+)=["']?\$0["']?(?=\s)""")
_COMMENT = re.compile(r"\n[ \t]*#.*")
#: Commands that use a place without writing anything there.
_ABOUT = re.compile(r"\n[ \t]*(?:mkdir|chmod|chown|rm|ls|echo|touch)\b.*")
#: A name, the end of a flag behind a dash, or of an override behind a dot.
_MENTION = re.compile(r"[-.]\w+|\w+")
#: The use of a variable without a default.
_UNSET = re.compile(rf"{USE.pattern}\b(?!:?[-=+?])")
#: A test of a variable in capitals, which is the caller's if nothing sets it.
_TESTED = re.compile(r"(?:\[|\bcase) [^\n$]*\$\{?([A-Z]\w*)")
#: What gives a variable no default: the brace, or the dash, is at the wrong place.
_NO_DEFAULT = re.compile(r"\{\$(\w+):-|\$\{(\w+):(?=[ ]*['\"]\D|(?:True|False)\b|[ ]\d{3,}\})")
#: What git leaves where two versions conflict, or an option of a job of Slurm.
_LINE = re.compile(r"\n(?:(?:<{7}|>{7}) |(#SBATCH) )")
#: Arithmetic in single parentheses.
_NO_ARITHMETIC = re.compile(r"\$\([ ]*(\$\{?\w+\}?|\d+) [-+*/%] (\$\{?\w+\}?|\d+)[ ]*\)(?!\))")
#: The command of a $( ).
_INNER = re.compile(r"\$\(([a-z]{3,}\d?)[ )](?!=)")
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
    r"""(?i:PATH|DIR|FILE)\w{0,40}=\S{0,80}?(?:\$\(\w+[ ])?"?\$\{?(\d)\b
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
#: Variables with arguments, or a place for results, and those that a caller may set.
_PASSED = re.compile(r"\w+_ARGS|\w*(?:SAVE|LOAD|CHECKPOINT|CKPT)\w*")
_OF_CALLER = re.compile(r"EXTRA|OTHER|USER|ADDITIONAL|SRUN")
#: Why slips with variables matter.
_WHY = {
    "NP844": "$0 is the path of the script, $1 its first argument, and $( ) runs a command.",
    "NP845": "The shell puts nothing, or the name itself, in its place.",
}

#: The offset of a slip, its code, what is wrong, and what to do.
_Slip = tuple[int, str, str, str]


class ScriptText:
    """The text of a script, and the variables that it sets and uses."""

    def __init__(self, path: str, text: str, commands: Sequence[Command], has_unread: bool) -> None:
        self._path = path
        self._text = f"\n{text}"
        self._commands = commands
        self._own = [each for each in commands if not (each.file or each.is_inner)]
        self._has_unread = has_unread
        #: the text without comments
        self._code = _COMMENT.sub(lambda match: f"\n{' ' * (len(match[0]) - 1)}", self._text)
        others = (f"\n{each.text}" for each in commands if each.file)
        self._all_code = "\n".join({self._code, *others})
        self._mentioned = Counter(_MENTION.findall(self._all_code))
        #: the variables that lines of their own set, with the offsets of these lines
        self._assigned: dict[str, list[int]] = {}
        # texts and here-documents have such lines too
        starts = {each[0].span[0] + 1 for each in self._own}
        for match in _ASSIGNMENT.finditer(self._code):
            at = match.start(1)
            self._assigned.setdefault(match[1], []).extend([at] if at in starts else [])

    def find_slips(self) -> tuple[list[UnusedVariable], list[Finding]]:
        """Return the variables that nothing uses and that may be flags, and the slips."""
        unused = self._list_unused()
        reported = [
            each
            for each in unused
            if _PASSED.fullmatch(each.name)
            or _OPTION.match(self._code, self._assigned[each.name][-1] - 1)
        ]
        slips = [
            *_find_fixed_slips(self._code, self._assigned.keys()),
            *_find_role_slips(self._code),
            *_find_repeated_arguments(self._code),
            *self._find_unset(unused),
        ]
        findings = [*map(build_unused_finding, reported), *dict.fromkeys(self._find_lines())]
        findings += [
            build_finding(code, what, _WHY[code], hint, where=self._find_place(at), **LIKELY)
            for at, code, what, hint in slips
        ]
        return [each for each in unused if each not in reported], findings

    def _find_place(self, at: int) -> Place:
        line, column = find_position(self._code, at)
        return Place(self._path, line - 1, column)

    def _list_unused(self) -> list[UnusedVariable]:
        if self._has_unread or _GETS_ANY.search(self._text):
            return []
        about = Counter(_MENTION.findall("".join(_ABOUT.findall(self._all_code))))
        return [
            UnusedVariable(name, self._find_place(at[-1]))
            for name, at in self._assigned.items()
            if at
            and self._mentioned[name] - about[name] == len(at)
            and not _COMPUTED.match(self._code, at[-1])
        ]

    def _find_lines(self) -> Iterator[Finding]:
        """Yield conflicts of git, and options of Slurm that sbatch does not read."""
        documents = [each.document.span for each in self._own if each.document]
        for match in _LINE.finditer(self._text):
            at = match.start()  # in the script, which has no empty line before it
            document = documents[bisect(documents, (at, len(self._text))) - 1 :][:1]
            if any(start <= at < end for start, end in document):
                continue
            if not match[1]:
                what, why = "git left a conflict here", "The shell stops at it."
                where, hint = self._find_place(at + 1), "keep one of the two versions"
                yield build_finding("NP844", what, why, hint, where=where)
            elif self._is_below_command(at):
                what, why = "sbatch ignores #SBATCH behind a command", "It reads those above only."
                where = Place(self._path, *self._own[0][0].position)
                hint = "move the command below them"
                yield build_finding("NP844", what, why, hint, where=where)

    def _is_below_command(self, at: int) -> bool:
        """Return whether a line is below a command, and not in a word of one."""
        words = (word for each in self._own for word in (*each, *each.redirected))
        is_in_word = any(word.span[0] < at < word.span[1] for word in words)
        first = self._own[0][0].span[0]
        # a note of an older job repeats an option: its first letters
        is_repeated = self._text[at : at + 15] in self._text[:first]
        return at >= first and not (is_in_word or is_repeated)

    def _find_unset(self, unused: Sequence[UnusedVariable]) -> Iterator[_Slip]:
        """Yield the variables that nothing sets, if another name is near or they are its own."""
        used = Counter(_UNSET.findall(self._all_code))
        # others are set, or have a default
        unset = {
            match[1]: match.start()
            for match in USE.finditer(self._code)
            if used[match[1]] >= self._mentioned[match[1]]
        }
        if not unset:
            return
        sets_any = self._has_unread or any(
            match[1] not in self._assigned for match in _SETS_ANY.finditer(self._all_code)
        )
        expanded = _list_expanded(self._commands)
        places = {name: place for place, name in enumerate(self._assigned)}
        by_letters = group_by(self._assigned, _sort_letters)
        tested = _TESTED.findall(self._code)
        names = [each.name for each in unused[:_MOST_UNUSED]]
        for name, at in unset.items():
            if sets_any:  # what sets others hardly means a slip for one of these
                # an option may set what has its name
                is_free = name in expanded and not self._mentioned[f"-{name}"]
                near = [*places][:_MOST_UNUSED] if is_free else []
                alike = get_close_matches(name, near, 1, _VERY_ALIKE)
            else:
                alike = get_close_matches(name, names, _MOST_UNUSED, _ALIKE)
                alike += by_letters.get(_sort_letters(name), ()) if name not in tested else ()
                if name in expanded and (kind := _KIND.search(name)):
                    alike += [each for each in names if each.endswith(kind[0])]
            is_own = name in expanded and name.islower() and not name.endswith("_proxy")
            is_own |= name.endswith("_ARGS") and not _OF_CALLER.search(name)
            if alike or (is_own and not sets_any):
                hint = f"set {name}, or remove it"
                if alike:
                    hint = f"did you mean ${min(alike, key=places.__getitem__)}?"
                yield at, "NP845", f"nothing sets ${name}", hint


def _find_fixed_slips(code: str, assigned: Collection[str]) -> Iterator[_Slip]:
    """Yield slips of a fixed form."""
    for match in _BARE.finditer(code):
        if (name := match[1]) in assigned:
            yield match.start(1), "NP845", f"{name} is no variable here", f"write ${name}"
    for match in _NO_DEFAULT.finditer(code):
        name = match[1] or match[2]
        what = f"{match[0]} gives {name} no default"
        yield match.start(), "NP845", what, f"write ${{{name}:-VALUE}}"
    for match in _NO_ARITHMETIC.finditer(code):
        what = f"the shell runs {match[1]} as a command"
        yield match.start(), "NP844", what, f"write $({match[0][1:]})"
    for match in _INNER.finditer(code):
        if meant := find_near_command(match[1], code):
            what = f"the shell has no command {match[1]}"
            yield match.start(1), "NP844", what, f"did you mean {meant}?"
    for match in _ITSELF.finditer(code):
        if _PASSED.fullmatch(match[1]):
            what = f"{match[1]} is the script itself"
            yield match.start(1), "NP844", what, "write $1 for the first argument"
    stops = _STOPS_AT_ANY.search(code) and "set +e" not in code
    for match in _SEARCH.finditer(code) if stops else ():
        what = f"the script stops here if {match[1]} would be empty"
        yield match.start(1), "NP844", what, "write || true behind the command"


def _find_role_slips(code: str) -> Iterator[_Slip]:
    """Yield arguments of the script, or of one of its functions, that are a path and a number."""
    bounds = (0, *(match.start() for match in _DEFINED.finditer(code)), len(code))
    for start, end in pairwise(bounds):
        roles = [*_ROLE.finditer(code, start, end)]
        paths = {match[1] for match in roles if match[1]}
        for match in roles:
            number = match[2] or match[3]
            if number in paths:
                what = f"${number} is a number here, and a path elsewhere"
                yield match.start(), "NP844", what, "correct the number behind $"


def _find_repeated_arguments(code: str) -> Iterator[_Slip]:
    """Yield an argument of the script that is the value of two variables."""
    taken: list[str] = []
    for match in _POSITIONAL.finditer(code):
        number = int(match[2])
        name = match[1].replace("_", "").lower()
        if len(taken) > 2 and 0 < number <= len(taken) and name not in taken:
            what = f"${number} is already the value of another variable"
            hint = f"write ${len(taken) + 1}, if that is meant"
            if not all(map(_DEVICE.search, (name, taken[number - 1]))):
                yield match.start(1), "NP844", what, hint
        if number != len(taken) + 1:
            return  # only those in order count
        taken.append(name)


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
            if not isinstance(part, str) and (use := USE.match(part[0]))
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
