"""Dockerfiles: ``ENV`` holds for what runs in the image; what a ``RUN`` line exports is gone when the line is."""

from __future__ import annotations

import re

from npuprof.model import Finding
from npuprof.scripts.reading.found import FoundSetting, ImportedFile, Site
from npuprof.scripts.reading.shell import find_shell_settings
from npuprof.scripts.reading.variables import Parts, build_variable_setting, decode_text

#: One instruction with the lines it goes on in; comments may stand between them.
_INSTRUCTION = re.compile(r"^[ \t]*([A-Za-z]+)(?=[ \t\\])((?:[^\\\n]|\\(?![ \t]*\n)|\\[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*+)*+)", re.MULTILINE)
#: Where an instruction goes on in the next line.
_GAP = r"\\[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*+"
_BLANKS = re.compile(rf"(?:[ \t]|{_GAP})*+")
_NAME = re.compile(r"([A-Za-z_][\w.-]*+)(=?)")
_FROM = re.compile(r"(?:--\S+[ \t]+)*(\S+)(?:[ \t]+[Aa][Ss][ \t]+(\S+))?")
_PIECE = re.compile(
    rf"{_GAP}|'([^']*)'|\"((?:[^\"\\$]|\\.)*)\"|\\(.)|([^\s'\"\\$]+)|(\$\w+|\$\{{[^}}\n]*\}}|\"(?:[^\"\\]|\\.)*\"|\$|['\"])|(\s)", re.DOTALL
)
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_ESCAPE = re.compile(rf"{_GAP}|\\([\"\\$])")
_FLAGS = re.compile(r"(?:[ \t]*--\S+)*[ \t]*")


class _Stage:
    """One ``FROM``: its name, the stages it is built on, what its lines set, and its settings; a value of None is not known."""

    def __init__(self, name: str, base: _Stage | None) -> None:
        self.name = name
        self.built: list[_Stage] = [*base.built, self] if base else [self]
        self.values: dict[str, str | None] = dict(base.values) if base else {}
        self.found: list[FoundSetting] = []


def import_dockerfile(path: str, data: bytes) -> ImportedFile:
    """Return what a Dockerfile sets for the image of its last stage, and what it sets otherwise."""
    problems: list[Finding] = []
    text = decode_text(path, data, problems, "No builder of images reads it as it stands.")
    if text is None:
        return ImportedFile(path, problems=tuple(problems))
    stages = [_Stage("", None)]
    named: dict[str, _Stage] = {}
    found: list[FoundSetting] = []
    sites: list[Site] = []
    for match in _INSTRUCTION.finditer(text):
        word, begin = match[1].upper(), _skip(text, match.start(2))
        if word == "FROM" and (given := _FROM.match(text, begin)):
            stages.append(_Stage((given[2] or str(len(stages) - 1)).lower(), named.get(given[1].lower())))
            named[stages[-1].name] = stages[-1]
        elif word == "ARG" and (name := _NAME.match(text, begin)):
            stages[-1].values.setdefault(name[1], None)
        elif word == "ENV":
            _read_env(path, text, begin, match.end(), stages[-1])
        elif word in ("RUN", "CMD", "ENTRYPOINT"):
            flags = _FLAGS.match(text, match.start(2))
            begin = flags.end() if flags else begin
            reason = f"holds for this {word} line only, not for what else runs in the image"
            settings, conversions = find_shell_settings(path, text[begin : match.end()], _find_place(text, begin), reason)
            found += settings
            sites += conversions
    for stage in stages:
        where = f"stands in the stage {stage.name or 'before FROM'}, on which the last stage is not built"
        kept = stage in stages[-1].built
        found += [one if kept else one._replace(value=None, kind="", reason=one.reason or where) for one in stage.found]
    found.sort(key=lambda setting: (setting.line, setting.column))
    return ImportedFile(path, tuple(found), tuple(sites), tuple(problems), text)


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _find_place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _read_env(path: str, text: str, at: int, end: int, stage: _Stage) -> None:
    """Read the variables of an ``ENV``: ``NAME=value ...``, or ``NAME value`` to the end of the line."""
    made: dict[str, str | None] = {}  # a line does not see what it sets itself
    while at < end and (name := _NAME.match(text, at)):
        parts, stop = _read_value(text, name.end() if name[2] else _skip(text, name.end()), end, stage, bool(name[2]))
        is_known = all(isinstance(part, str) for part in parts)
        made[name[1]] = "".join(part for part in parts if isinstance(part, str)) if is_known else None
        if setting := build_variable_setting(path, _find_place(text, at), name[1], parts):
            stage.found.append(setting)
        at = _skip(text, stop)
    stage.values |= made


def _read_value(text: str, at: int, end: int, stage: _Stage, ends_at_blank: bool) -> tuple[Parts, int]:
    """Return a value with what the file itself has set before filled in, and where it ends."""
    parts: list[str | tuple[str]] = []
    while at < end and not (ends_at_blank and text[at].isspace()):
        match = _PIECE.match(text, at, end)
        if match is None:
            break
        literal = next((match[number] for number in (1, 3, 4) if match[number] is not None), "")
        if match[2] is not None:
            literal = _ESCAPE.sub(lambda found: found[1] or "", match[2])
        if match[5]:
            filled = _fill(match[5], stage.values)
            parts.append((match[5],) if filled is None else filled)
        else:
            parts.append(match[6] or literal)
        at = match.end()
        if ends_at_blank and match[0][0] == "\\" and "\n" in match[0] and text[at : at + 1].isspace():
            break
    return tuple(parts), at


def _fill(text: str, values: dict[str, str | None]) -> str | None:
    """Return a text with the variables filled in that the file itself has set, None where one of them is not known."""
    inner = text[1:-1] if text[0] == '"' and len(text) > 1 else text
    names = [match[1] or match[2] for match in _REFERENCE.finditer(inner)]
    if not names or "\\" in inner or inner.count("$") != len(names) or any(values.get(name) is None for name in names):
        return None
    return _REFERENCE.sub(lambda match: values[match[1] or match[2]] or "", inner)
