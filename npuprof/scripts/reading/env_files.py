"""Files that hold nothing but variables: dotenv, ``docker run --env-file``, systemd's ``EnvironmentFile=``, ``$GITHUB_ENV``.

They are named alike and read differently. What ``env`` has written says by its own quotes whom it is for; of other files only
what all readers take for the same is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from npuprof.model import Finding, Record
from npuprof.scripts.reading.found import ImportedFile
from npuprof.scripts.reading.shell import import_shell_script
from npuprof.scripts.reading.variables import Parts, build_variable_setting, decode_text

_STAMP = re.compile(r"^[ \t]*NPUPROF_DIGEST=(.)", re.MULTILINE)
_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*")
_PLAIN_NAME = re.compile(r"[ \t]*([A-Za-z_]\w*)(=|<<(?=\S))")
_BLANK = re.compile(r"[ \t]*(?:[#;][^\n]*)?(?:\n|\Z)")
_REST = re.compile(r"[^\n]*+")
_FILLED = re.compile(r"\$\{[^}\n]*+\}")
_DOUBTFUL = "programs that read such files take its backslashes differently"

#: Quotes, and what a backslash keeps in them: those of systemd, and those of python-dotenv, by the quote.
_UNIT_QUOTES = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL), re.compile(r'\\(["\\`$]|\n)')
_DOTENV_QUOTES = {
    "'": (re.compile(r"'((?:[^'\\]|\\.)*+)'", re.DOTALL), re.compile(r"\\([\\'])")),
    '"': (re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL), re.compile(r"""\\([\\'"abfnrtv])""")),
}
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}


class _Entry(Record):
    """One variable: where its name begins, what it holds, why that cannot be told."""

    at: int
    name: str
    parts: Parts
    end: int
    reason: str = ""


def import_env_file(path: str, data: bytes) -> ImportedFile:
    """Return what a file of variables holds; one that is no mere list of them is read as a shell script."""
    problems: list[Finding] = []
    text = decode_text(path, data, problems, "Nothing that reads variables takes it as it stands.")
    if text is None:
        return ImportedFile(path, problems=tuple(problems))
    stamp = _STAMP.search(text)
    read = _read_dotenv_entry if stamp is None else _DIALECTS.get(stamp[1], _read_plain_entry)
    found = []
    line, counted = 1, 0
    for entry in _iterate_entries(text, read, stamp is not None):
        if entry is None:
            return import_shell_script(path, data, plain=True)
        line += text.count("\n", counted, entry.at)
        counted = entry.at
        column = entry.at - text.rfind("\n", 0, entry.at)
        if one := build_variable_setting(path, (line, column), entry.name, entry.parts, (), entry.reason):
            found.append(one)
    return ImportedFile(path, tuple(found), (), tuple(problems), text)


def _iterate_entries(text: str, read: Callable[[str, int, bool], _Entry | None], ours: bool) -> Iterator[_Entry | None]:
    """Yield the variables of a text; None, and nothing more, where there is something else."""
    at, size = 0, len(text)
    while at < size:
        if (blank := _BLANK.match(text, at)) and blank.end() > at:
            at = blank.end()
            continue
        entry = read(text, at, ours)
        yield entry
        if entry is None:
            return
        at = entry.end


def _read_dotenv_entry(text: str, at: int, ours: bool) -> _Entry | None:
    head = _NAME.match(text, at)
    if head is None:
        return None
    parts: Parts = ()
    end = head.end()
    pattern, escape = _DOTENV_QUOTES.get(text[end : end + 1], _UNIT_QUOTES)
    if quoted := pattern.match(text, end):  # one pair of quotes at most, other than in a shell
        parts, end = (_unescape(quoted[1], escape),), quoted.end()
    written = text[head.end() : end]
    tail = _REST.match(text, end)
    assert tail is not None
    if not parts:
        written = re.sub(r"[ \t]+#.*", "", tail[0]).rstrip()
        parts = (written,)
        if written[:1] in ("'", '"'):
            return _Entry(head.start(1), head[1], parts, tail.end(), "its quotes are not closed")
        if written.startswith("#") and text[head.end() - 1] != "=" and not ours:
            return _Entry(head.start(1), head[1], (), tail.end(), "programs that read such files take the # behind it differently")
    elif (rest := tail[0].strip()) and not rest.startswith("#"):
        return None
    reason = ""
    if not ours and ("\\" in written or not written.startswith("'")):
        reason = _DOUBTFUL if "\\" in written else f"depends on {left[0]}" if (left := _OPEN.search(written)) else ""
    elif filled := _FILLED.search(written):
        reason = f"depends on {filled[0]}"
    return _Entry(head.start(1), head[1], parts, tail.end(), reason)


_OPEN = re.compile(r"\$(?:\{[^}\n]*+\}|\([^)\n]*+\)|[A-Za-z_]\w*+)|`[^`\n]*+`")


def _unescape(text: str, escape: re.Pattern[str]) -> str:
    return escape.sub(lambda found: _CONTROLS.get(found[1], found[1]), text)


def _read_unit_entry(text: str, at: int, ours: bool) -> _Entry | None:
    head = _NAME.match(text, at)
    if head is None:
        return None
    quoted = _UNIT_QUOTES[0].match(text, head.end())
    if quoted is None or text[quoted.end() : quoted.end() + 1] not in ("", "\n"):
        return None
    return _Entry(head.start(1), head[1], (_unescape(quoted[1], _UNIT_QUOTES[1]),), quoted.end())


def _read_plain_entry(text: str, at: int, ours: bool) -> _Entry | None:
    """Read a line of ``NAME=value`` without any quotes, or GitHub's ``NAME<<MARK`` with the lines up to the mark."""
    head = _PLAIN_NAME.match(text, at)
    if head is None:
        return None
    tail = _REST.match(text, head.end())
    assert tail is not None
    if head[2] == "=":
        return _Entry(head.start(1), head[1], (tail[0],), tail.end())
    begin = tail.end() + 1
    end = text.find(f"\n{tail[0]}\n", tail.end())
    if end < 0:
        return None
    return _Entry(head.start(1), head[1], (text[begin:end],), end + len(tail[0]) + 1)


#: Whom an export is for, by the quote that its own digest stands in.
_DIALECTS = {"'": _read_dotenv_entry, '"': _read_unit_entry}
