"""Parser of a log line: its label, its head and its message.

The head is that of plog or of the TensorFlow logger, the message the adapter's or the engine's.

Launchers prepend a rank, host or container to lines, and log collectors a time. There are too many
such labels to list, and users add their own, so a label is recognised by the head after it. It
consists of names, numbers, brackets and punctuation, and does not end inside a word; otherwise it
is the rest of a cut line.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from npuprof.model import Record

#: Lazy, so that the first head of the line follows.
LABEL = rb"(?P<label>(?:[\w./@,=+*#<>()\[\]|: \t-]{0,119}?[:|>\]) \t])??)"
#: Text that occurs only in heads: a label that contains it is the rest of another line. Each
#: alternative begins with one character, so that searches skip other text quickly.
HEAD_PARTS = (
    rb"\[TF_ADAPTER\]|F(?<!\wF)MK\(\d|G(?<!\wG)E\(\d|\(\d+,[\w.]+\):\d{4}-|wrapper\.cpp:\d"
    rb"|\]   [\w.]+:|graph engine opt"
)
_REST = re.compile(
    HEAD_PARTS + rb"|\[[A-Z]{4,8}\] ?$|(?:^|\s)\d{4}-\d\d-\d\d $|\.\d{6}: (?:[IWEF] )?$", re.ASCII
)
_TIME = (
    rb"(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d(?: \d{4})?"
    rb"|(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|(?<![\d.])\d+\.\d+(?![\d.])|\d+:\d\d(?=\D)|\d{8}T\d{4,6}Z?|\d{9,}"
)
#: Parts of a label that vary between lines of one writer: a time, a line number.
_VARYING = re.compile(rb" *(?:" + _TIME + rb")|^ *\d+(?=[\t ]|:$)|(?<=[\w.]:)\d+(?=:$)", re.ASCII)
#: Takes the place of a varying part in a writer's identity.
_VARIABLE_PART = "\0"


def name_writer(label: bytes) -> str:
    """Return a label without its varying parts, as an identity of its writer."""
    return _VARYING.sub(_VARIABLE_PART.encode(), label).decode("ascii", "replace") if label else ""


def show_writer(writer: str) -> str:
    """Return the writer's name in a label, empty if there is none."""
    return writer.replace(_VARIABLE_PART, "").strip(" \t|:")


#: The maximum length of a plog line in bytes; cut lines have this length, without a mark.
LONGEST_LINE = 1022
_PLOG = re.compile(
    LABEL + rb"\[(?P<level>\w+)\] ?(?P<module>\w+)\((?P<pid>\d+),[^)]*\): ?[\d:.-]{19,29} ?",
    re.ASCII,
)
_TENSORFLOW = re.compile(
    LABEL + rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: (?P<level>[IWEF]) (?P<file>[\w./-]+):\d+\] ?",
    re.ASCII,
)
_ADAPTER = re.compile(
    rb"(?:\[[^\]]*\])?\[TF_ADAPTER\] ?\[(?P<file>[^\]:]+):\d+\](?P<thread>\d*) ?", re.ASCII
)
_ENGINE = re.compile(
    rb"(?:\[[\w:]+\] ?)?\[[^\]:]+:\d+\](?P<thread>\d+) (?P<function>\w+):", re.ASCII
)
#: The head of a second line inside one: the first writer was interrupted.
_SECOND_HEAD = re.compile(rb"\[[A-Z]{4,8}\] ?\w+\(\d+,[^)]*\):\d{4}-", re.ASCII)
#: Heads of torch_npu and torch's logger on standard error, with the rank in different places.
_TORCH_HEAD = (
    rb"(?:\[rank(?P<rank>\d+)\]:)?[VIWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} (?P<pid>\d+)"
    rb"(?: [^\]\n]*?:\d+)?\]"
)
_VARIABLE = re.compile(
    LABEL
    + _TORCH_HEAD
    + rb" (?:\[rank:(?P<later_rank>\d+)\] )?(?:\[[^\]]*\] )*get env (?P<name>\w+) = (?P<text>.*)",
    re.ASCII | re.DOTALL,
)
_ANY_SECOND = re.compile(
    _TORCH_HEAD
    + rb"|\[[A-Z]{4,8}\] ?\w+\(\d+,[^)]*\):\d{4}-|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] ",
    re.ASCII,
)
_SECOND_TIME = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] ", re.ASCII)
#: Longer digit sequences are not process numbers.
_LONGEST_PID = 19
#: The prefix of adapter warnings through the TensorFlow logger, whose source file may lack its
#: folder.
_WARNING = b"[warning][tf_adapter]"
#: Colours and other terminal control sequences.
_TERMINAL = re.compile(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*\x07|[()][A-Z0-9])")
#: Text in vLLM's lines about variables that are not its own.
UNKNOWN = b"Unknown vLLM environment variable"
_HEAD_PART = re.compile(HEAD_PARTS, re.ASCII)
#: The beginning of a head that is cut.
_CUT_HEAD = re.compile(rb"\d{1,4}(?:-[\d-]*(?: [\d:.]+(?:: [IWEF](?: [\w./]*)?)?)?)?", re.ASCII)


class Line(NamedTuple):  # a tuple, because logs have millions of lines
    """A relevant line of the adapter or engine.

    ``writer`` is ``adapter``, ``engine`` or ``tf2``, ``origin`` the source file or function.

    ``glued`` is set if another line runs into it, ``ended`` unless it is the last of a file and
    lacks its newline.
    """

    writer: str
    before: str
    pid: int | None
    thread: str
    origin: str
    text: str
    size: int
    level: str = ""
    glued: bool = False
    ended: bool = True

    @property
    def is_cut(self) -> bool:
        """Whether its text may go on: it has the maximum length, or ends the file."""
        return self.size >= LONGEST_LINE or not self.ended


def parse_line(raw: bytes) -> Line | None:
    """Return a parsed line, None if neither an adapter nor the engine wrote it."""
    match = None
    # searching for bytes is faster than the pattern, and few lines have them
    if b"FMK(" in raw or b"GE(" in raw:
        match = _match_head(_PLOG, raw)
        if match is not None:
            return _parse_plog(match, raw)
    if b"npu_wrapper.cpp" in raw or b"tf_adapter" in raw:
        match = _match_head(_TENSORFLOW, raw)
    if match is None:
        return None
    file = match["file"].decode("ascii", "replace")
    if file.endswith("npu_wrapper.cpp"):
        writer = "tf2"
    elif "tf_adapter/" in file or raw.startswith(_WARNING, match.end()):
        writer = "adapter"
    else:
        return None
    second = _SECOND_TIME.search(raw, match.end())
    text = decode_text(raw[match.end() : second.start() if second is not None else len(raw)])
    return Line(
        writer,
        name_writer(match["label"]),
        None,
        "",
        os.path.basename(file),
        text,
        0,
        match["level"].decode(),
        second is not None,
    )


class ReadVariable(Record):
    """A variable that torch_npu read.

    ``cut`` is set if its text may continue.
    """

    before: str
    pid: int
    rank: str
    name: str
    text: str
    cut: bool


def parse_variable(raw: bytes, ended: bool) -> ReadVariable | None:
    """Return the variable of a line ``get env NAME = VALUE``, None for any other line."""
    match = _match_head(_VARIABLE, raw) if b"get env " in raw else None
    if match is None or len(match["pid"]) >= _LONGEST_PID:
        return None
    raw_text = match["text"]
    second = _ANY_SECOND.search(raw_text)
    return ReadVariable(
        before=name_writer(match["label"]),
        pid=int(match["pid"]),
        rank=(match["rank"] or match["later_rank"] or b"").decode(),
        name=match["name"].decode(),
        text=decode_text(raw_text[: second.start() if second is not None else None]),
        cut=second is not None or not ended,
    )


def _parse_plog(match: re.Match[bytes], raw: bytes) -> Line | None:
    start = match.end()
    size = len(raw) - match.start("level") + 1  # from the bracket on, without the label
    second = _SECOND_HEAD.search(raw, start)
    if second is not None:
        # the first writer was interrupted, so its text counts as cut
        raw, size = raw[: second.start()], LONGEST_LINE
    if match["module"] == b"GE":
        writer, head = "engine", _ENGINE.match(raw, start)
    elif match["module"] == b"FMK":
        writer, head = "adapter", _ADAPTER.match(raw, start)
    else:
        return None
    if head is None:
        return None
    if writer == "engine":
        origin = head["function"].decode()
    else:
        origin = os.path.basename(head["file"].decode("ascii", "replace"))
    return Line(
        writer,
        name_writer(match["label"]),
        int(match["pid"]) if len(match["pid"]) < _LONGEST_PID else -1,
        head["thread"].decode(),
        origin,
        decode_text(raw[head.end() :]),
        size,
        match["level"].decode(),
        second is not None,
    )


def _match_head(head: re.Pattern[bytes], raw: bytes) -> re.Match[bytes] | None:
    """Return the match of a head.

    None if its label is the rest of a cut line that runs into the next one.
    """
    match = head.match(raw)
    if match is None:
        return None
    label = match["label"]
    return None if label and _REST.search(label) else match


def strip_colours(raw: bytes) -> bytes:
    """Return a line without colour sequences."""
    return _TERMINAL.sub(b"", raw) if b"\x1b" in raw else raw


def has_head(raw: bytes) -> bool:
    """Return whether a line begins with a head of plog or the TensorFlow logger.

    The head may be that of any module.
    """
    return _PLOG.match(raw) is not None or _TENSORFLOW.match(raw) is not None


def is_remnant(raw: bytes) -> bool:
    """Return whether a meaningless line is the rest of one or two adapter lines."""
    is_part = _HEAD_PART.search(raw) or _CUT_HEAD.fullmatch(raw)
    return (is_part is not None and _match_head(_PLOG, raw) is None) or (
        b"FMK(" in raw and b"_logger" in raw and b"ADAPTER" not in raw
    )


def decode_text(raw: bytes) -> str:
    """Return a text with undecodable bytes preserved."""
    return raw.decode("utf-8", "surrogateescape")
