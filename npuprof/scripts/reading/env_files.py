"""Files of variables: dotenv, ``docker run --env-file``, ``EnvironmentFile=``, ``$GITHUB_ENV``.

These formats share names and differ in syntax. The quotes in npuprof's own exports show the format;
for other files, only values that all readers parse equally are known.
"""

from __future__ import annotations

import re

from npuprof.catalog import build_finding
from npuprof.model import Place, Record
from npuprof.scripts.reading.shell_scripts import import_shell_script
from npuprof.scripts.reading.variable_files import build_variable_setting
from npuprof.scripts.script_records import ImportedFile


class _Entry(Record):
    """One variable of a file: its name, at ``start``, its value, and the end of its line.

    ``reason`` is why the value is uncertain. Some readers take its ``comment`` for a part of it.
    """

    name: str
    start: int
    value: str
    end: int
    reason: str = ""
    comment: str = ""


class Quotes(Record):
    """A quoted value, and its backslash escapes."""

    pattern: re.Pattern[str]
    escape: re.Pattern[str]


#: The variable by which an export is recognized; the quote of its value shows the format.
_EXPORT = re.compile(r"^[ \t]*NPUPROF_DIGEST=(?P<quote>.)", re.MULTILINE)
_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*")
_PLAIN_NAME = re.compile(r"[ \t]*(?P<name>[A-Za-z_]\w*)(?P<operator>=|<<(?=\S))")
_BLANK = re.compile(r"[ \t]*(?:[#;][^\n]*)?(?:\n|\Z)")
_COMMENT = re.compile(r"[ \t]+#.*|[ \t]+$")
_EXPANSION = re.compile(r"\$(?:\{[^}\n]*+\}|\([^)\n]*+\)|[A-Za-z_]\w*+)|`[^`\n]*+`")
_BRACED = re.compile(r"\$\{[^}\n]*+\}")
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}
#: The format of an export, by the quote around its digest: systemd, or python-dotenv and similar
#: readers.
_UNIT = {'"': Quotes(re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL), re.compile(r'\\(["\\`$]|\n)'))}
_DOTENV = {
    "'": Quotes(re.compile(r"'((?:[^'\\]|\\.)*+)'", re.DOTALL), re.compile(r"\\([\\'])")),
    '"': Quotes(
        re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL), re.compile(r"""\\([\\'"abfnrtv])""")
    ),
}


def import_env_file(path: str, text: str) -> ImportedFile:
    """Return the content of a variables file.

    One that is not a plain list of them is read as a shell script.
    """
    export = _EXPORT.search(text)
    quote = export["quote"] if export else ""
    settings = []
    problems = []
    at, line, counted = 0, 1, 0  # lines are counted up to an offset, once
    while at < len(text):
        if (blank := _BLANK.match(text, at)) and blank.end() > at:
            at = blank.end()
            continue
        if export is None:
            entry = _read_quoted_entry(text, at, _DOTENV, is_export=False)
        elif quote in _DOTENV:
            quotes = _UNIT if quote in _UNIT else _DOTENV
            entry = _read_quoted_entry(text, at, quotes, is_export=True)
        else:
            entry = _read_plain_entry(text, at)
        if entry is None:
            return import_shell_script(path, text, plain=True)
        line += text.count("\n", counted, entry.start)
        counted, at = entry.start, entry.end
        position = line, entry.start - text.rfind("\n", 0, entry.start)
        settings.append(
            build_variable_setting(path, position, entry.name, (entry.value,), entry.reason)
        )
        if entry.comment and settings[-1].surface == "env":
            what = (
                f"{entry.name}: the comment {entry.comment} is a part of the value for some readers"
            )
            why = "docker --env-file and systemd keep it; dotenv, Compose and shells remove it."
            where, hint = Place(path, *position), "write it on a line of its own"
            problems.append(build_finding("NP840", what, why, hint, where=where))
    return ImportedFile(path, tuple(settings), problems=tuple(problems), text=text)


def _find_line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _read_quoted_entry(
    text: str, at: int, quotes: dict[str, Quotes], is_export: bool
) -> _Entry | None:
    """Return a ``NAME=value`` line with at most one pair of non-shell quotes.

    None for any other line.
    """
    head = _NAME.match(text, at)
    if head is None:
        return None
    name, start = head["name"], head.start("name")
    begin = head.end()
    quote = text[begin : begin + 1]
    quoted = quotes[quote].pattern.match(text, begin) if quote in quotes else None
    if quoted is None:
        end = _find_line_end(text, begin)
        comment = _COMMENT.search(text, begin, end)
        value = text[begin : comment.start() if comment else end]
        is_open = quote in quotes
        caveat = "its quotes are not closed" if is_open else _find_caveat(value, quotes, is_export)
        return _Entry(name, start, value, end, caveat, comment[0].strip() if comment else "")
    end = _find_line_end(text, quoted.end())
    # a shell would join the text after a closing quote to the value
    if text[quoted.end() : end].strip()[:1] not in ("", "#"):
        return None
    value = quotes[quote].escape.sub(lambda match: _CONTROLS.get(match[1], match[1]), quoted[1])
    return _Entry(name, start, value, end, _find_caveat(quoted[0], quotes, is_export))


def _find_caveat(written: str, quotes: dict[str, Quotes], is_export: bool) -> str:
    """Return why programs may read a text differently, empty if all agree."""
    if not is_export and ("\\" in written or written.startswith("#")):
        return "programs that read such files take its backslashes, or # behind it, differently"
    if is_export:  # python-dotenv expands variables in both kinds of quotes
        expansion = _BRACED.search(written) if quotes is _DOTENV else None
    else:
        expansion = _EXPANSION.search(written) if not written.startswith("'") else None
    return f"depends on {expansion[0]}" if expansion else ""


def _read_plain_entry(text: str, at: int) -> _Entry | None:
    """Return an unquoted ``NAME=value`` line, or GitHub's ``NAME<<DELIMITER`` with its lines."""
    head = _PLAIN_NAME.match(text, at)
    if head is None:
        return None
    name, start = head["name"], head.start("name")
    end = _find_line_end(text, head.end())
    rest = text[head.end() : end]
    if head["operator"] == "=":
        return _Entry(name, start, rest, end)
    # GitHub's delimiter is a line of its own
    last = text.find(f"\n{rest}\n", end)
    if last < 0:
        return None
    return _Entry(name, start, text[end + 1 : last], last + len(rest) + 1)
