"""Scripts of the shells with a syntax of their own, fish, csh and PowerShell: the variables they give to what they start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from npuprof.model import Finding, Record
from npuprof.scripts.reading.found import Branch, FoundSetting, ImportedFile
from npuprof.scripts.reading.quoting import FISH, PWSH, TCSH, Piece, read_word
from npuprof.scripts.reading.shell import MOST_BRANCHES, build_depth_finding
from npuprof.scripts.reading.variables import Parts, build_variable_setting, decode_text

_GAP = re.compile(r"(?:[ \t\r]|\\\n)++")
_REST = re.compile(r"[^\n]++")
_QUOTES = ("'", '"', "`")
_COMMENT = re.compile(r"#[^\n]*+")


class Dialect(Record):
    """How a shell is read: ``pieces`` of its words, ``opens`` and ``closes`` what stands under a condition, ``assign`` finds variables."""

    pieces: tuple[Piece, ...]
    opens: tuple[str, ...]
    closes: tuple[str, ...]
    assign: Callable[[list[Parts]], tuple[str, list[Parts]] | None]
    join: str = " "


def _find_fish_assignment(words: list[Parts]) -> tuple[str, list[Parts]] | None:
    flags = ""
    place = 1
    while place < len(words) and (text := _literal(words[place])).startswith("-"):
        flags += "x" if text == "--export" else "" if text.startswith("--") else text
        place += 1
    if _literal(words[0]) != "set" or "x" not in flags or "e" in flags or place >= len(words):
        return None
    return _literal(words[place]), words[place + 1 :]


def _find_csh_assignment(words: list[Parts]) -> tuple[str, list[Parts]] | None:
    return (_literal(words[1]), words[2:3]) if _literal(words[0]) == "setenv" and len(words) > 1 else None


_DIALECTS = {
    "fish": Dialect(FISH, ("if", "for", "while", "switch", "function", "begin"), ("end",), _find_fish_assignment),
    "csh": Dialect(TCSH, ("if", "foreach", "while", "switch"), ("endif", "end", "endsw"), _find_csh_assignment),
}


def import_fish_script(path: str, data: bytes) -> ImportedFile:
    """Return what a fish script exports."""
    return _import_words(path, data, _DIALECTS["fish"])


def import_csh_script(path: str, data: bytes) -> ImportedFile:
    """Return what a csh or tcsh script exports."""
    return _import_words(path, data, _DIALECTS["csh"])


def _import_words(path: str, data: bytes, dialect: Dialect) -> ImportedFile:
    problems: list[Finding] = []
    text = decode_text(path, data, problems)
    if text is None:
        return ImportedFile(path, problems=tuple(problems))
    found: list[FoundSetting] = []
    branches: list[Branch] = []
    for at, words, asked in _iterate_commands(text, dialect.pieces):
        first = _literal(words[0])
        if first in dialect.closes and branches:
            branches.pop()
        elif first in ("else", "case") and branches:
            branches[-1] = _turn_over(branches[-1], words)
        elif first in dialect.opens and (first != "if" or dialect.closes == ("end",) or _literal(words[-1]) == "then"):
            branches.append((at[0], 0, _show_words(words[1:] if first == "if" else words)))
            if len(branches) > MOST_BRANCHES:
                problems.append(build_depth_finding(path, *at))
                break
        else:
            own = tuple(branches)
            if asked or first in ("and", "or"):
                own += ((at[0], 0, "what stands before it says so"),)
                words = words[1:] if first in ("and", "or") else words
            elif first == "if":  # of csh, in one line
                own += ((at[0], 0, _show_words(words[1:2])),)
                words = words[2:]
            if words and (given := dialect.assign(words)):
                one = build_variable_setting(path, at, given[0], _join_words(given[0], given[1]), own)
                found += [one] if one else []
    return ImportedFile(path, tuple(found), (), tuple(problems), {"text": text})


def _turn_over(branch: Branch, words: list[Parts]) -> Branch:
    """Return the next arm of a branch, which ``else`` or ``case`` begins."""
    number, arm, test = branch
    if _literal(words[0]) == "case":
        return number, arm + 1, _show_words(words)
    if len(words) > 1:
        return number, arm + 1, _show_words(words[2:])
    return number, -arm - 1, f"not ({test})"


def _show_words(words: list[Parts]) -> str:
    shown = " ".join("".join(part if isinstance(part, str) else part[0] for part in word) for word in words[:20])
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _iterate_commands(text: str, pieces: tuple[Piece, ...]) -> Iterator[tuple[tuple[int, int], list[Parts], bool]]:
    """Yield the commands of a script: where each begins, its words, and whether it is run only as the one before it went."""
    at, line, counted, size = 0, 1, 0, len(text)
    words: list[Parts] = []
    place, asked = (1, 1), False
    while at < size:
        if gap := _GAP.match(text, at):
            at = gap.end()
        elif text[at] == "#" and (comment := _COMMENT.match(text, at)):
            at = comment.end()
        else:
            parts, end = read_word(text, at, pieces)
            if text[end : end + 1] in _QUOTES and (unclosed := _REST.match(text, end)):  # the shell looks for its end in the lines below
                parts, end = (*parts, (unclosed[0],)), unclosed.end()
            if parts:
                if not words:
                    line += text.count("\n", counted, at)
                    counted = at
                    place = line, at - text.rfind("\n", 0, at)
                words.append(parts)
            else:
                if words:
                    yield place, words, asked
                    words, asked = [], False
                asked = asked or text.startswith(("&&", "||"), at)
            at = max(end, at + (not parts))
    if words:
        yield place, words, asked


def _join_words(name: str, words: list[Parts]) -> Parts:
    """Return several words as the one text that a program gets."""
    between = ":" if name.endswith("PATH") else " "
    joined: list[str | tuple[str]] = []
    for word in words:
        joined += [between, *word] if joined else list(word)
    return tuple(joined)


def _literal(word: Parts) -> str:
    return "".join(part for part in word if isinstance(part, str)) if all(isinstance(part, str) for part in word) else ""


_ASSIGN = re.compile(r"(?<![\w.])(?:\$env:(\w+)|\$\{env:(\w+)\})[ \t]*=(?!=)[ \t]*", re.IGNORECASE)
_TOKEN = re.compile(
    rf"(?P<comment>#[^\n]*+|<#.*?(?:#>|\Z))|(?P<here>@(?P<mark>['\"])[ \t]*\n.*?(?:\n(?P=mark)@|\Z))|(?P<set>{_ASSIGN.pattern})"
    r"|(?P<quoted>['\u2018-\u201b](?:[^'\u2018-\u201b])*+['\u2018-\u201b]|[\"\u201c-\u201e](?:[^\"\u201c-\u201e`]|`.)*+[\"\u201c-\u201e])"
    r"|(?P<open>\{)|(?P<close>\})|(?P<escape>`.)",
    re.DOTALL | re.IGNORECASE,
)
_BLOCK = re.compile(r"[^\n;{}]{0,200}")
_PWSH_END = re.compile(r"[ \t\r]*(?:[;\n#}]|\Z)")


def import_pwsh_script(path: str, data: bytes) -> ImportedFile:
    """Return what a PowerShell script exports."""
    problems: list[Finding] = []
    text = decode_text(path, data, problems)
    if text is None:
        return ImportedFile(path, problems=tuple(problems))
    found: list[FoundSetting] = []
    branches: list[Branch] = []
    at, line, counted = 0, 1, 0
    while token := _TOKEN.search(text, at):
        at = token.end()
        line += text.count("\n", counted, token.start())
        counted = token.start()
        if token["open"]:
            head = re.split(r"[\n;{}]", text[max(0, counted - 80) : counted])[-1]
            branches.append((line, 0, head.strip() or "a block"))
            if len(branches) > MOST_BRANCHES:
                problems.append(build_depth_finding(path, line))
                break
        elif token["close"] and branches:
            branches.pop()
        elif token["set"]:
            parts, end = read_word(text, at, PWSH)
            rest = _BLOCK.match(text, end)
            if not parts or not _PWSH_END.match(text, end):
                parts = ((text[at : rest.end() if rest else end].strip() or "nothing",),)
            column = counted - text.rfind("\n", 0, counted)
            name = next(filter(None, _ASSIGN.match(token["set"]).groups()))  # type: ignore[union-attr]
            one = build_variable_setting(path, (line, column), name, parts, tuple(branches))
            found += [one] if one else []
            at = max(end, at)
    return ImportedFile(path, tuple(found), (), tuple(problems), {"text": text})
