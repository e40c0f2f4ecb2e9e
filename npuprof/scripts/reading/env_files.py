"""Files of variables: dotenv, ``docker run --env-file``, ``EnvironmentFile=``, ``$GITHUB_ENV``.

These formats share names and differ in syntax. The quotes in npuprof's own exports show the format;
for other files, only values that all readers parse equally are known.
"""

from __future__ import annotations

import re

from npuprof.scripts.reading.shell_scripts import import_shell_script
from npuprof.scripts.reading.variable_files import build_variable_setting
from npuprof.scripts.script_records import ImportedFile

#: A variable's name and value, the end of its line, and why the value is uncertain.
Entry = tuple[re.Match[str], str, int, str]
#: A quoted value, and its backslash escapes.
Quotes = tuple[re.Pattern[str], re.Pattern[str]]

_STAMP = re.compile(r"^[ \t]*NPUPROF_DIGEST=(.)", re.MULTILINE)
_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*")
_PLAIN_NAME = re.compile(r"[ \t]*([A-Za-z_]\w*)(=|<<(?=\S))")
_BLANK = re.compile(r"[ \t]*(?:[#;][^\n]*)?(?:\n|\Z)")
_COMMENT = re.compile(r"[ \t]+#.*|[ \t]+$")
_OPEN = re.compile(r"\$(?:\{[^}\n]*+\}|\([^)\n]*+\)|[A-Za-z_]\w*+)|`[^`\n]*+`")
_FILLED = re.compile(r"\$\{[^}\n]*+\}")
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}
#: The format of an export, by the quote around its digest: systemd, or python-dotenv and similar
#: readers.
_UNIT: dict[str, Quotes] = {
    '"': (re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL), re.compile(r'\\(["\\`$]|\n)'))
}
_DOTENV: dict[str, Quotes] = {
    "'": (re.compile(r"'((?:[^'\\]|\\.)*+)'", re.DOTALL), re.compile(r"\\([\\'])")),
    '"': (re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL), re.compile(r"""\\([\\'"abfnrtv])""")),
}


def import_env_file(path: str, text: str) -> ImportedFile:
    """Return the content of a variables file.

    One that is not a plain list of them is read as a shell script.
    """
    stamp = _STAMP.search(text)
    settings = []
    at, line, counted = 0, 1, 0
    while at < len(text):
        if (blank := _BLANK.match(text, at)) and blank.end() > at:
            at = blank.end()
            continue
        if stamp is None or stamp[1] in _DOTENV:
            entry = _read_quoted_entry(
                text, at, _UNIT if stamp and stamp[1] in _UNIT else _DOTENV, stamp is not None
            )
        else:
            entry = _read_plain_entry(text, at)
        if entry is None:
            return import_shell_script(path, text, plain=True)
        head, value, at, reason = entry
        line, counted = line + text.count("\n", counted, head.start(1)), head.start(1)
        place = line, counted - text.rfind("\n", 0, counted)
        settings.append(build_variable_setting(path, place, head[1], (value,), reason))
    return ImportedFile(path, tuple(settings), text=text)


def _find_line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _read_quoted_entry(
    text: str, at: int, quotes: dict[str, Quotes], is_export: bool
) -> Entry | None:
    """Return a ``NAME=value`` line with at most one pair of non-shell quotes.

    None for any other line.
    """
    head = _NAME.match(text, at)
    if head is None:
        return None
    begin = head.end()
    pattern, escape = quotes.get(text[begin : begin + 1], (None, None))
    quoted = pattern.match(text, begin) if pattern else None
    if quoted is None or escape is None:
        end = _find_line_end(text, begin)
        written = value = _COMMENT.sub("", text[begin:end])
    else:
        end = _find_line_end(text, quoted.end())
        if text[quoted.end() : end].strip()[:1] not in ("", "#"):
            return None
        written, value = (
            quoted[0],
            escape.sub(lambda found: _CONTROLS.get(found[1], found[1]), quoted[1]),
        )
    if pattern and quoted is None:
        return head, value, end, "its quotes are not closed"
    return head, value, end, _find_doubt(written, quotes, is_export)


def _find_doubt(written: str, quotes: dict[str, Quotes], is_export: bool) -> str:
    """Return why programs may read a text differently, empty if all agree."""
    if not is_export and ("\\" in written or written.startswith("#")):
        return "programs that read such files take its backslashes, or # behind it, differently"
    if is_export:  # python-dotenv expands variables in both kinds of quotes
        open_part = _FILLED.search(written) if quotes is _DOTENV else None
    else:
        open_part = _OPEN.search(written) if not written.startswith("'") else None
    return f"depends on {open_part[0]}" if open_part else ""


def _read_plain_entry(text: str, at: int) -> Entry | None:
    """Return an unquoted ``NAME=value`` line, or GitHub's ``NAME<<DELIMITER`` with its lines."""
    head = _PLAIN_NAME.match(text, at)
    if head is None:
        return None
    end = _find_line_end(text, head.end())
    rest = text[head.end() : end]
    if head[2] == "=":
        return head, rest, end, ""
    last = text.find(f"\n{rest}\n", end)
    return None if last < 0 else (head, text[end + 1 : last], last + len(rest) + 1, "")
