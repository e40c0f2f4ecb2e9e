"""What stands before the lines of a log: launchers name a rank, a host or a container there, and who keeps lines when they got each.

There are more of them than can be listed, and people write their own. So a label is told by what follows: the head of a line. It is of
names, numbers, brackets and the signs between, and does not end within a word, for then it is the rest of a line that was cut.
"""

from __future__ import annotations

import re
from functools import lru_cache

from npuprof.system.patterns import lazy_pattern

#: As short as possible, so that what follows is the first head of the line.
LABEL = rb"((?:[\w./@,=+*#<>()\[\]|: \t-]{0,119}?[:|>\]) \t])??)"
#: What stands in heads alone: a label that has it is what is left of another line.
HEAD_PARTS = rb"\[TF_ADAPTER\]|\b(?:FMK|GE)\(\d|\(\d+,[\w.]+\):\d{4}-|wrapper\.cpp:\d|\]   [\w.]+:|graph engine opt"
_REST = lazy_pattern(HEAD_PARTS + rb"|\[[A-Z]{4,8}\] ?$|(?:^|\s)\d{4}-\d\d-\d\d $|\.\d{6}: (?:[IWEF] )?$", re.ASCII)
_TIME = (
    rb"(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d(?: \d{4})?"
    rb"|(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|(?<![\d.])\d+\.\d+(?![\d.])|\d+:\d\d(?=\D)|\d{8}T\d{4,6}Z?|\d{9,}"
)
#: What differs from line to line of one writer: a time, the number of the line.
_VARYING = lazy_pattern(rb" *(?:" + _TIME + rb")|^ *\d+(?=[\t ]|:$)|(?<=[\w.]:)\d+(?=:$)", re.ASCII)
_PLACE = "\0"
#: What names differ in, and how far they are padded.
_NAME, _BLANKS = re.compile(r"[\w.-]+", re.ASCII), re.compile(r"[ \t]+")


def is_rest(label: bytes) -> bool:
    """Return whether a label is what is left of a line that was cut, and runs into the next one."""
    return bool(label) and _REST.search(label) is not None


def name_writer(label: bytes) -> str:
    """Return a label as it is on all lines of one writer."""
    return _VARYING.sub(_PLACE.encode(), label).decode("ascii", "replace") if label else ""


@lru_cache(maxsize=256)
def find_form(writer: str) -> str:
    """Return what the labels of one launcher have in common, whoever they name."""
    return _BLANKS.sub(" ", _NAME.sub("x", writer))


def show_writer(writer: str) -> str:
    """Return a label as a name of who wrote lines, empty where it names nobody."""
    return writer.replace(_PLACE, "").strip(" \t|:")


def strip_label(writer: str, raw: bytes) -> bytes | None:
    """Return a line without the label that a writer has on each, None where it has another."""
    if not writer:
        return raw
    match = _compile_label(writer).match(raw)
    return raw[match.end() :] if match is not None else None


@lru_cache(maxsize=256)
def _compile_label(writer: str) -> re.Pattern[bytes]:
    return re.compile((rb" *(?:" + _TIME + rb"|\d+)").join(re.escape(part.encode()) for part in writer.split(_PLACE)), re.ASCII)
