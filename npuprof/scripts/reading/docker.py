"""Dockerfiles: ``ENV`` holds for what runs in the image; what a ``RUN`` line exports is gone when the line is."""

from __future__ import annotations

import re

from npuprof.model import Finding
from npuprof.scripts.reading.found import FoundSetting, ImportedFile, Site
from npuprof.scripts.reading.quoting import DOCKER, read_word
from npuprof.scripts.reading.shell import find_shell_settings
from npuprof.scripts.reading.variables import Parts, build_variable_setting, decode_text

_SKIPPED = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)++")
#: One instruction with the lines it goes on in; comments may stand between them.
_INSTRUCTION = re.compile(r"[ \t]*([A-Za-z]+)(?=[ \t\\]|\n|\Z)((?:[^\\\n]|\\(?![ \t]*\n)|\\[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*+)*+)|[^\n]+")
_GAP = re.compile(r"(?:[ \t]|\\[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*+)++")
_NAME = re.compile(r"([A-Za-z_][\w.-]*+)(=?)")
_FROM = re.compile(r"(?:--\S+[ \t]+)*(\S+)(?:[ \t]+[Aa][Ss][ \t]+(\S+))?")
_HEREDOC = re.compile(r"<<-?[ \t]*[\"']?([A-Za-z_]\w*)[\"']?")
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_ONLY_HEREDOC = re.compile(r"(?:[ \t]*--\S+)*[ \t]*<<\S+[ \t]*\n")
_FLAGS = re.compile(r"(?:[ \t]*--\S+)*[ \t]*")


class _Stage:
    """One ``FROM``: what its own lines set, None where that is not known, and its settings."""

    def __init__(self, name: str, base: _Stage | None) -> None:
        self.name = name
        self.base = base
        self.own: dict[str, str | None] = {}
        self.found: list[FoundSetting] = []

    def look_up(self, name: str) -> str | None:
        """Return what a variable holds here, None where that is not known."""
        stage: _Stage | None = self
        while stage is not None:
            if name in stage.own:
                return stage.own[name]
            stage = stage.base
        return None


def import_dockerfile(path: str, data: bytes) -> ImportedFile:
    """Return what a Dockerfile sets for the image of its last stage, and what it sets otherwise."""
    problems: list[Finding] = []
    text = decode_text(path, data, problems, "No builder of images reads it as it stands.")
    if text is None:
        return ImportedFile(path, problems=tuple(problems))
    stages = [_Stage("", None)]
    named: dict[str, _Stage] = {}
    others: list[FoundSetting] = []
    sites: list[Site] = []
    at, line, counted = 0, 1, 0
    while at < len(text):
        if skipped := _SKIPPED.match(text, at):
            at = skipped.end()
            continue
        match = _INSTRUCTION.match(text, at)
        if match is None:
            at += 1
            continue
        line += text.count("\n", counted, at)
        counted = at
        word, begin, at = (match[1] or "").upper(), match.start(2), match.end()
        if word == "FROM" and (given := _FROM.match(text, _skip_gap(text, begin))):
            stages.append(_Stage((given[2] or str(len(stages) - 1)).lower(), named.get(given[1].lower())))
            named[stages[-1].name] = stages[-1]
        elif word == "ARG" and (name := _NAME.match(text, _skip_gap(text, begin))):
            stages[-1].own.setdefault(name[1], None)
        elif word == "ENV":
            _read_env(path, text, (begin, at), (line, counted), stages[-1])
        elif word in ("RUN", "CMD", "ENTRYPOINT"):
            end = _find_heredoc_end(text, match[2], at)
            begin = at + 1 if end > at and _ONLY_HEREDOC.match(text, begin) else begin
            flags = _FLAGS.match(text, begin)
            begin = flags.end() if flags else begin
            first = line + text.count("\n", counted, begin), begin - text.rfind("\n", 0, begin)
            reason = f"holds for this {word} line only, not for what else runs in the image"
            found, places = find_shell_settings(path, text[begin:end], first, reason)
            others += found
            sites += places
            at = end
    last: _Stage | None = stages[-1]
    built = set()
    while last is not None:
        built.add(id(last))
        others += last.found
        last = last.base
    others += [_place_elsewhere(one, stage) for stage in stages if id(stage) not in built for one in stage.found]
    return ImportedFile(path, tuple(sorted(others, key=lambda one: (one.line, one.column))), tuple(sites), tuple(problems), {"text": text})


def _place_elsewhere(one: FoundSetting, stage: _Stage) -> FoundSetting:
    reason = f"stands in the stage {stage.name or 'before FROM'}, on which the last stage is not built"
    return one._replace(value=None, kind="", reason=one.reason or reason)


def _skip_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


def _read_env(path: str, text: str, span: tuple[int, int], start: tuple[int, int], stage: _Stage) -> None:
    line, counted = start
    made: dict[str, str | None] = {}  # a line does not see what it sets itself
    at = _skip_gap(text, span[0])
    while at < span[1] and (name := _NAME.match(text, at)):
        if name[2]:
            parts, end = _read_value(text, name.end(), span[1], stage)
        else:
            parts, end = _read_old_value(text, _skip_gap(text, name.end()), span[1], stage)
        line += text.count("\n", counted, at)
        counted = at
        left = any(not isinstance(part, str) for part in parts)
        made[name[1]] = None if left else "".join(part for part in parts if isinstance(part, str))
        if one := build_variable_setting(path, (line, at - text.rfind("\n", 0, at)), name[1], parts):
            stage.found.append(one)
        at = _skip_gap(text, end)
        if at == end:
            break
    stage.own |= made


def _read_value(text: str, at: int, end: int, stage: _Stage) -> tuple[Parts, int]:
    """Return a value with what the file itself has set before filled in; it may go on in the next line."""
    parts: list[str | tuple[str]] = []
    while at < end:
        more, stop = read_word(text, at, DOCKER)
        parts += [_fill(part, stage) for part in more]
        at = min(stop, end)
        gap = _GAP.match(text, at)
        if gap is None or gap[0][0] != "\\":
            break
        at = gap.end()
        if gap[0][-1] in " \t":  # what the next line begins with parts it from this
            return tuple(parts), gap.start()
    return tuple(parts), at


def _read_old_value(text: str, at: int, end: int, stage: _Stage) -> tuple[Parts, int]:
    """Return the value of ``ENV NAME value``, which goes to the end of the line."""
    parts: list[str | tuple[str]] = []
    while at < end:
        more, stop = read_word(text, at, DOCKER)
        parts += [_fill(part, stage) for part in more]
        gap = _GAP.match(text, stop)
        if not more and gap is None:
            break
        at = stop
        if gap and gap.end() < end:
            parts.append(re.sub(r"\\[ \t]*\n(?:[ \t]*#[^\n]*\n)*", "", gap[0]))
        at = gap.end() if gap else at
    return tuple(parts), end


def _fill(part: str | tuple[str], stage: _Stage) -> str | tuple[str]:
    """Return a part with the variables filled in that the file itself has set; as it is where one of them is not known."""
    if isinstance(part, str):
        return part
    names = [match[1] or match[2] for match in _REFERENCE.finditer(part[0])]
    known = {name: stage.look_up(name) for name in names}
    if None in known.values() or part[0].count("$") != len(names) or "\\" in part[0]:
        return part
    inner = part[0][1:-1] if part[0].startswith('"') else part[0]
    return _REFERENCE.sub(lambda match: known[match[1] or match[2]] or "", inner)


def _find_heredoc_end(text: str, instruction: str, at: int) -> int:
    """Return where the texts end that stand below an instruction."""
    for mark in _HEREDOC.finditer(instruction):
        end = re.compile(rf"^\t*{re.escape(mark[1])}[ \t]*$", re.MULTILINE).search(text, at)
        at = end.end() if end else len(text)
    return at
