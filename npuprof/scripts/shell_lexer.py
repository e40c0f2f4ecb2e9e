"""Splits shell text into commands and words by its quoting rules, without expansion.

A word is what POSIX calls so: a command name, an argument or an assignment, with its quotes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby

from npuprof.scripts.script_records import find_line_starts
from npuprof.scripts.steps import count_steps

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\\\r?\n|\#[^\n]*)|(?P<newline>\n)
    |<<(?!<)-?[ \t]*(?:'(?P<raw>[^'\n]+)'|"(?P<quoted>[^"\n]+)"|\\?(?P<plain>[\w.!@%+:-]+))
    |(?P<redirection>&>>?|<<<|<[&>]?(?!\()|>[>&|]?(?!\())
    |(?P<separator>;;&?|;&|&&|\|[|&]|[;&|()])""",
    re.VERBOSE,
)
#: The file descriptor before a redirection.
_DESCRIPTOR = re.compile(r"[0-9]+|\{\w+\}")
#: The patterns of a case arm, after blanks and comments.
_ARM = re.compile(
    r"""(?:\s|\\\n|\#[^\n]*\n)*(?=[^\s\#])(?!esac\b)\(?(?:[^()\n'"]|'[^']*'|"[^"]*")*\)"""
)
#: The first characters of tokens other than words.
_SPECIAL = frozenset(" \t\r\\#\n<>&;|()")
#: A complete word of plain characters, which may end with one variable or quoted text.
_PLAIN = re.compile(
    r"(?=[^ \t\r\n;&|()<>])(?P<start>[^ \t\r\n;&|()<>'\"\\$`]*+)"
    r"(?:(?P<variable>\$[A-Za-z_]\w*|\$\{\w+\})|\"(?P<quoted>[^\"\\$`]*)\")?"
    r"(?=[ \t\r\n;&|()<>]|\Z)"
)
#: Parts of a word outside quotes, and inside double quotes; expansions are matched before.
_PIECE = re.compile(
    r"'(?P<quoted>[^']*)'?|\\(?:\n|(?P<escaped>[^\n]?))|(?P<ansi>\$'(?:[^'\\]|\\.)*'?)"
    r"|(?P<plain>\$|[^ \t\r\n;&|()<>'\"\\$`]+)",
    re.DOTALL,
)
# inside double quotes, a backslash only escapes these four characters
_QUOTED_PIECE = re.compile(r"\\(?:\n|(?P<escaped>[$`\"\\]))|(?P<plain>\\|\$|[^\"\\$`]+)")
_EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])|`[^`]*(?P<end>`?)")
_INNER_SHELL = re.compile(r"(?:(?:ba|z|k|da)?sh\s+-\w*c|su\s+-c|ssh|eval)\s")
#: Where a text may name one; patterns that begin with a letter are searched for faster.
_MAY_HOLD_INNER = re.compile(r"(?:sh\s+-\w*c|su\s+-c|ssh|eval)\s|sh\b[^\n]*<<")
#: Commands that run their here-document: a shell, or ssh with a host alone.
_RUNS_DOCUMENT = re.compile(
    r"(?:.*[ /])?(?:(?:ba|z|k|da)?sh(?: [-+]\S*)*(?: -s .*)?"
    r"|ssh(?: -[bcDEeFIiJLlmOopQRSWw] \S+| -\S+)* [^- ]\S*)",
    re.DOTALL,
)
_SEVERAL_WORDS = re.compile(r"[\s;]")
#: The closing delimiter of an expansion, a quote or the "in" of a case, and those inside it.
_CLOSING = {"(": ")", "{": "}", "[": "]", '"': '"', "n": "esac"}
_INSIDE = {
    ")": re.compile(
        r"""\\.|'[^']*'?|["()]|\$\{|(?<=\s)\#[^\n]*|(?<=[\s;(])case\s+\S+\s+in\b
        |(?<!<)<<-?[ \t]*['"\\]?(?P<document>[A-Za-z_]\w*)""",
        re.DOTALL | re.VERBOSE,
    ),
    "esac": re.compile(r"""\\.|'[^']*'?|"|\$[({]|(?<=\s)\#[^\n]*|\besac\b""", re.DOTALL),
    "}": re.compile(r"\\.|[{}]|\$\(", re.DOTALL),
    "]": re.compile(r"\\.|[\[\]]|\$[({]", re.DOTALL),
    '"': re.compile(r"""\\.|"|\$[({]""", re.DOTALL),
}
_ESCAPED = re.compile(r'\\([$`"\\])')
_FUNCTION = re.compile(r"[ \t]*\([ \t]*\)")
Part = str | tuple[str]
#: A sourced file, and the position of the source command in the script.
Origin = tuple[str, tuple[int, int] | tuple[()]]


class Word:
    """One word: ``parts`` are literal texts and, as one-tuples, expansions.

    ``span`` is its start and end in the text, beyond the end of the text for an unclosed quote.
    ``items`` are the words of an array: ``NAME=(...)``. ``text`` is the word with its expansions as
    written, ``keyword`` the same, or empty if it is quoted, ``open_part`` the first expansion, or
    empty. A word of a sourced file has it as its ``origin``.
    """

    __slots__ = (
        "_value",
        "column",
        "items",
        "keyword",
        "line",
        "open_part",
        "origin",
        "parts",
        "quoted",
        "span",
        "text",
    )

    def __init__(
        self,
        line: int,
        column: int,
        parts: tuple[Part, ...],
        quoted: bool = False,
        span: tuple[int, int] = (0, 0),
        items: tuple[Word, ...] = (),
        origin: Origin | None = None,
    ) -> None:
        self.line = line
        self.column = column
        self.parts = parts
        self.quoted = quoted
        self.span = span
        self.items = items
        self.origin = origin
        self._value: Word | None = None
        if len(parts) == 1 and isinstance(parts[0], str):  # nearly all words
            self.text, self.open_part = parts[0], ""
        else:
            self.text = "".join([part if isinstance(part, str) else part[0] for part in parts])
            self.open_part = next((part[0] for part in parts if not isinstance(part, str)), "")
            if not self.open_part:
                self.parts = (self.text,)
        self.keyword = "" if quoted else self.text

    @property
    def position(self) -> tuple[int, int]:
        """Its line and column."""
        return self.line, self.column

    def with_parts(self, *parts: Part) -> Word:
        """Return the word with other parts."""
        return Word(self.line, self.column, parts, self.quoted, self.span, self.items, self.origin)

    def with_position(self, line: int, column: int) -> Word:
        """Return the word at another position."""
        return Word(line, column, self.parts, self.quoted, self.span, self.items)

    @property
    def value(self) -> Word:
        """The word after its first ``=``, which must be in its literal start."""
        if self._value is None:
            self._value = self.cut_prefix(self.text.index("=") + 1)
        return self._value

    def cut_prefix(self, count: int) -> Word:
        """Return the word after the first ``count`` characters of its literal start."""
        head = self.parts[0] if self.parts else ""
        assert isinstance(head, str)
        return self.with_parts(head[count:], *self.parts[1:])


def join_assignment(text: str, first: Word, last: Word) -> str:
    """Return the words of a command without the blanks around their first ``=``."""
    return re.sub(r"\s*=\s*", "=", text[first.span[0] : last.span[1]], count=1)


class Command(list[Word]):
    """The words of one simple command; ``join`` is a preceding ``&&`` or ``||``.

    ``shells`` are the offsets of the parentheses around it, ``function`` names the function that it
    begins. An ``is_piped`` command gets the output of another, an ``is_forked`` one is before a
    pipe or in the background, an ``opens_arm`` one is the first of a case arm. ``redirected`` are
    the targets of redirections. ``text`` is the script, or the text of a separate shell for an
    ``is_inner`` command. ``document`` is its here-document, quoted if the shell expands nothing in
    it. For sourced files, ``files`` are the files around the command and ``call`` is the line and
    column of the source command in the script.
    """

    join = ""
    shells: tuple[int, ...] = ()
    is_piped = False
    is_forked = False
    opens_arm = False
    redirected: tuple[Word, ...] = ()
    is_inner = False
    function = ""
    text = ""
    document: Word | None = None
    files: tuple[str, ...] = ()
    call: tuple[int, int] | tuple[()] = ()

    @property
    def file(self) -> str:
        """The sourced file of the command, empty for the script itself."""
        return self.files[-1] if self.files else ""

    def read_text(self, word: Word) -> tuple[str, int]:
        """Return a word or the here-document as another program receives it, and its column."""
        written = self.text[slice(*word.span)]
        if word is self.document:
            return written if word.quoted else _ESCAPED.sub(r"\1", written), word.column
        # the shell takes these backslashes away before it passes the text on
        text = _ESCAPED.sub(r"\1", written[1:-1]) if written[:1] == '"' else written.strip("'")
        return text, word.column + 1

    def copy_with(self, words: list[Word]) -> Command:
        """Return the command with other words."""
        copy = Command(words)
        copy.__dict__.update(self.__dict__)
        return copy


def parse_shell_commands(text: str, line: int = 1, column: int = 1) -> Iterator[Command]:
    """Yield the simple commands of a script, words only; comments and here-documents are skipped.

    The text begins at a line and a column of its file.
    """
    commands = _Lexer(text, line, column).iterate_commands()
    if not _MAY_HOLD_INNER.search(text):
        # the pattern costs less than looking for nested shells in each command
        return commands
    return (inner for command in commands for inner in _add_inner(command))


def _add_inner(command: Command, with_document: bool = True) -> Iterator[Command]:
    """Yield a command, and the commands of a nested shell's text, as in parentheses.

    Nested shells are ``bash -c TEXT``, ``ssh HOST TEXT``, ``bash <<EOF`` and their like.
    """
    yield command
    if command and command[0].keyword == "eval":
        for argument in command[1:2]:  # those behind it are its arguments
            if not argument.open_part:  # the shell itself runs it
                column = argument.column + argument.quoted
                yield from parse_shell_commands(argument.text, argument.line, column)
    document = command.document if with_document else None
    if document is not None and _RUNS_DOCUMENT.fullmatch(" ".join(word.text for word in command)):
        yield from _enclose(command, document)
    is_remote = False
    for shell, flag, argument in zip(command, command[1:], command[2:], strict=False):
        if not (is_remote or shell.text.endswith(("sh", "su", "eval"))):
            continue
        _, _, name = shell.text.rpartition("/")
        is_remote |= name == "ssh"
        is_remote_text = (
            is_remote
            and argument.quoted
            and flag.text != "-o"
            # one quoted word of ssh, such as a host or a path, is not a command line
            and _SEVERAL_WORDS.search(argument.text)
        )
        if is_remote_text or _INNER_SHELL.fullmatch(f"{name} {flag.text} "):
            yield from _enclose(command, argument)


def _enclose(command: Command, word: Word) -> Iterator[Command]:
    """Yield the commands of a nested shell's text between braces."""
    text, column = command.read_text(word)
    if command[0].text == "xargs":
        text = text.replace("{}", "$@")  # an argument of the run
    yield command.copy_with([Word(*word.position, ("{",), span=word.span)])
    for outer in _Lexer(text, word.line, column).iterate_commands():
        # one level: each document may contain the next one
        for inner in _add_inner(outer, with_document=word is not command.document):
            inner.shells, inner.is_inner = (*command.shells, -word.span[0]), True
            yield inner
    yield command.copy_with([Word(*word.position, ("}",), span=word.span)])


class _Lexer:
    def __init__(self, text: str, line: int, column: int) -> None:
        self.text = text
        self.at = 0
        self.first = line, column
        self.lines = find_line_starts(text)
        #: the here-documents that begin on the next line: commands, delimiters, quoted or not
        self.delimiters: list[tuple[Command, str, bool]] = []
        self.command = Command()
        self.join = ""
        self.shells: tuple[int, ...] = ()
        self.is_piped = self.opens_arm = self.is_target = False

    def iterate_commands(self) -> Iterator[Command]:
        text, size = self.text, len(self.text)
        while self.at < size:
            if text[self.at] == " ":  # a third of all tokens
                self.at += 1
                continue
            token = _TOKEN.match(text, self.at) if text[self.at] in _SPECIAL else None
            if token is None or (token[0] == "(" and self._begins_array()):
                self._add_word()
                command = self.command
                is_case = len(command) > 2 and command[-3].keyword == "case"
                is_head = is_case and command[-1].keyword == "in"
                ended = bool(command.function) or (is_head and self._skip_patterns())
            else:
                self.at = token.end()
                ended = self._read_token(token)
            if ended and self.command:
                yield self._end_command()
        if self.command:
            yield self._end_command()

    def _end_command(self) -> Command:
        count_steps(5 * len(self.command))
        command, self.command = self.command, Command()
        return command

    def _read_token(self, token: re.Match[str]) -> bool:
        """Return whether a token ends the command before it."""
        kind, text = token.lastgroup, token[0]
        self.is_target = kind == "redirection" or (kind == "blank" and self.is_target)
        if kind in ("raw", "quoted", "plain"):
            is_quoted = kind != "plain" or "\\" in text
            self.delimiters.append((self.command, token[kind], is_quoted))
        elif kind == "newline":
            self._skip_documents()
            if self.command:  # a line may end after "&&" or "|": the next command still has it
                self.join, self.is_piped = "", False
        elif kind == "separator":
            self.join = text if text in ("&&", "||") else ""
            self.is_piped = text in ("|", "|&")
            if self.command:  # what follows "( )" is about no simple command
                self.command.is_forked = self.is_piped or text == "&"
            if text == "(":
                count_steps(len(self.shells))  # copied for each
                self.shells = (*self.shells, token.start())
            elif text == ")":
                self.shells = self.shells[:-1]
            elif text in (";;", ";&", ";;&"):
                self._skip_patterns()
        return kind in ("newline", "separator")

    def _skip_patterns(self) -> bool:
        """Return whether a case arm begins here, and pass over its patterns."""
        match = None if self.delimiters else _ARM.match(self.text, self.at)
        self.at = match.end() if match else self.at
        self.opens_arm |= match is not None
        return match is not None

    def _begins_array(self) -> bool:
        """Return whether the bracket here directly follows ``NAME=``."""
        last = self.command[-1] if self.command else None
        return last is not None and last.span[1] == self.at and last.keyword.endswith("=")

    def _add_word(self) -> None:
        """Add the word or the array that begins here to the command."""
        command = self.command
        if self.text[self.at] == "(":
            name, items = command[-1], self._parse_array()
            command[-1] = Word(
                *name.position, name.parts, name.quoted, (name.span[0], self.at), items
            )
            return
        word = self._parse_word()
        start, end = word.span
        following = self.text[end : end + 1]
        if following == "<" and word.keyword.endswith("="):
            word = word.with_parts(*word.parts, ("<",))  # a placeholder: NAME=<PATH>
        is_number = following in ("<", ">")
        if self.is_target or (is_number and _DESCRIPTOR.fullmatch(self.text[start:end])):
            count_steps(len(command.redirected))
            command.redirected = (*command.redirected, word)
            self.is_target = False
            return
        if not command:
            command.join, command.shells, command.text = self.join, self.shells, self.text
            command.is_piped, command.opens_arm = self.is_piped, self.opens_arm
            self.opens_arm = False
        command.append(word)
        is_named = len(command) == 2 and command[0].keyword == "function"
        is_first = len(command) == 1 and not word.keyword.endswith("=")
        brackets = _FUNCTION.match(self.text, self.at) if is_named or is_first else None
        if is_named or brackets:
            command.function = command[-1].text
        self.at = brackets.end() if brackets else self.at

    def _parse_array(self) -> tuple[Word, ...]:
        self.at += 1
        items = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            if token := _TOKEN.match(self.text, self.at):
                self.at = token.end()
            else:
                items.append(self._parse_word())
        self.at += 1
        return tuple(items)

    def _skip_documents(self) -> None:
        for command, delimiter, is_quoted in self.delimiters:
            end = self._search_end(delimiter, self.at)
            first = self.at
            # a shell also takes the rest of the file if the delimiter is missing
            self.at = end.end() if end else len(self.text)
            command.document = self._place_word((), is_quoted, first)
            command.document.span = first, end.start() if end else self.at
        self.delimiters = []

    def _search_end(self, delimiter: str, at: int) -> re.Match[str] | None:
        """Search for the last line of a here-document."""
        last_line = re.compile(rf"^[ \t]*{re.escape(delimiter)}[ \t\r]*$\n?", re.MULTILINE)
        return last_line.search(self.text, at)

    def _parse_word(self) -> Word:
        if plain := _PLAIN.match(self.text, self.at):  # nearly all words
            first, self.at = self.at, plain.end()
            start, variable, quoted_text = plain.groups()
            if variable:
                parts = (start, (variable,)) if start else ((variable,),)
                return self._place_word(parts, False, first)
            is_quoted = quoted_text is not None
            return self._place_word((start + (quoted_text or ""),), is_quoted, first)
        first, quoted = self.at, False
        pieces: list[Part] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "$`<>" and self._parse_expansion(pieces):
                continue
            if char == '"':
                quoted = True
                self._parse_double_quotes(pieces)
            elif match := _PIECE.match(self.text, self.at):
                quoted |= match[0][0] == "'"
                if match["ansi"]:  # its escapes are not decoded
                    pieces.append((match["ansi"],))
                elif match[0] != "\\\n":
                    pieces.append(match["quoted"] or match["escaped"] or match["plain"] or "")
                in_quotes = match["quoted"]
                is_unclosed = in_quotes is not None and len(match[0]) == 1 + len(in_quotes)
                self.at = match.end() + is_unclosed
            else:
                break
        return self._place_word(_join_pieces(pieces), quoted, first)

    def _place_word(self, parts: tuple[Part, ...], quoted: bool, first: int) -> Word:
        """Return the word that begins at an offset and ends here."""
        passed = bisect_right(self.lines, first) - 1
        column = first - self.lines[passed] + (1 if passed else self.first[1])
        return Word(self.first[0] + passed, column, parts, quoted, (first, self.at))

    def _parse_double_quotes(self, pieces: list[Part]) -> None:
        self.at += 1
        pieces.append("")
        while self.at < len(self.text) and self.text[self.at] != '"':
            if self.text[self.at] in "$`" and self._parse_expansion(pieces):
                continue
            if match := _QUOTED_PIECE.match(self.text, self.at):
                pieces.append(match["escaped"] or match["plain"] or "")
                self.at = match.end()
        self.at += 1

    def _parse_expansion(self, pieces: list[Part]) -> bool:
        """Add the expansion that begins here with ``$``, a backtick, ``<(`` or ``>(``.

        Return whether there is one.
        """
        first = self.at
        if self.text.startswith(("$(", "${", "$[", "<(", ">("), first):
            self.at = self._find_closing(first + 1)
        elif match := _EXPANSION.match(self.text, first):
            self.at = match.end() + (match["end"] == "")
        else:
            return False
        pieces.append((self.text[first : self.at],))
        return True

    def _find_closing(self, at: int) -> int:
        """Return the end of the brackets that begin at an offset.

        It is beyond the end of the text if they are unclosed.
        """
        closing = [_CLOSING[self.text[at]]]  # of the brackets and quotes around, innermost last
        at += 1
        while closing:
            count_steps()
            match = _INSIDE[closing[-1]].search(self.text, at)
            if match is None:
                return len(self.text) + 1
            at = match.end()
            if match.lastgroup:
                if end := self._search_end(match["document"], at):  # else it is a shift
                    at = end.end()
                else:
                    count_steps((len(self.text) - at) // 1000)
            elif match[0] == closing[-1]:
                closing.pop()
            elif match[0][0] not in "\\'#":
                closing.append(_CLOSING[match[0][-1]])
        return at


def _join_pieces(pieces: list[Part]) -> tuple[Part, ...]:
    """Return pieces with adjacent literals merged."""
    # each piece is copied once: a long word may have an escape for each character
    joined: list[Part] = []
    for kind, group in groupby(pieces, type):
        joined += ["".join(map(str, group))] if kind is str else group  # noqa: B031 - one of the two is used
    return tuple(joined) or ("",)
