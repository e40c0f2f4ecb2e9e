"""Units of systemd: ``Environment=`` of what they start."""

from __future__ import annotations

import re

from npuprof.model import Finding
from npuprof.scripts.reading.found import FoundSetting, ImportedFile
from npuprof.scripts.reading.quoting import UNIT, read_word
from npuprof.scripts.reading.variables import Parts, build_variable_setting, decode_text

_LINE = re.compile(r"^[ \t]*(Environment)[ \t]*=((?:[^\\\n]|\\[^\n]|\\\n(?:[ \t]*[#;][^\n]*\n)*+)*+)", re.MULTILINE)
_GAP = re.compile(r"(?:\s|\\\n(?:[ \t]*[#;][^\n]*\n)*+)++")
_NAME = re.compile(r"([A-Za-z_]\w*)=")


def import_unit(path: str, data: bytes) -> ImportedFile:
    """Return what a unit sets; an empty ``Environment=`` takes back what stands before it."""
    problems: list[Finding] = []
    text = decode_text(path, data, problems, "systemd does not read it as it stands.")
    if text is None:
        return ImportedFile(path, problems=tuple(problems))
    found: list[FoundSetting] = []
    line, counted = 1, 0
    for match in _LINE.finditer(text):
        if not match[2].strip():
            found.clear()
        at = match.start(2)
        while at < match.end():
            gap = _GAP.match(text, at)
            at = gap.end() if gap else at
            parts, end = read_word(text, at, UNIT)
            if not parts or end <= at:
                break
            line += text.count("\n", counted, at)
            counted = at
            name, value = _split_assignment(parts)
            one = build_variable_setting(path, (line, at - text.rfind("\n", 0, at)), name, value) if name else None
            found += [one] if one else []
            at = end
    return ImportedFile(path, tuple(found), (), tuple(problems), {"text": text})


def _split_assignment(parts: Parts) -> tuple[str, Parts]:
    """Return the name and the value of a word; one that is filled in as a whole still says its name."""
    head = parts[0]
    match = _NAME.match(head) if isinstance(head, str) else _NAME.match(head[0].lstrip("'\""))
    if match is None:
        return "", ()
    return match[1], (head[match.end() :], *parts[1:]) if isinstance(head, str) else ((head[0],),)
