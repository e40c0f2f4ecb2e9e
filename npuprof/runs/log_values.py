"""Comparison of an option's logged texts with an expected value: same, other or unsure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from npuprof import catalog
from npuprof.catalog import values
from npuprof.catalog.wire import NO_KEY, STAGES, Wire, write_text
from npuprof.model import Record
from npuprof.runs.evidence import Map, Process, Text, Values

#: The results of comparing a text with the expected one.
SAME, OTHER, UNSURE = "same", "other", "unsure"

#: The largest ``input_fusion_size`` in bytes: the adapter (``npu_attrs.cc``) bounds greater values.
_LARGEST_FUSION = 33554432
_FLAGS = {"true": "1", "True": "1", "false": "0", "False": "0"}
#: Forms whose texts contain no line break, so that a line without a head never continues them.
_UNBROKEN_FORMS = frozenset(("flag", "number", "mode", "word", "clamped", "inverted"))
_CLOSING = "forbidden_close_pass:on"
#: Bytes that no intended value contains.
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\udc80-\udcff]")
#: Marks of an omitted or unwritable part of a text.
_HOLE = re.compile(rf"{_UNREADABLE.pattern}|\ufffd|\.\.\.|\.\.$|…|\W*truncated\W*$")


class ExpectedSetting:
    """A preset's value as logged texts.

    ``plain`` is None if no log has its text; ``why`` is the reason then. ``unset`` are the texts of
    an unset option.
    """

    def __init__(self, wire: Wire, value: Any, tf2: bool = False) -> None:
        self.wire = wire
        self.value = value
        self.tf2 = tf2
        self.why = ""
        self.plain = self._write(value)
        self.unset = self._list_unset_texts()

    def _list_unset_texts(self) -> set[str]:
        wire = self.wire
        if self.tf2:
            return {wire.tf2["unset"]} if "unset" in wire.tf2 else set()
        texts = {wire.unset} if wire.unset is not None else set()
        return texts | {
            text
            for stage in STAGES
            for key, text in wire.keys(stage).items()
            if text != NO_KEY and key not in wire.key_forms
        }

    def _write(self, value: Any) -> str | None:
        """Return the text of a value, or None, and set ``why``."""
        name = self.wire.name
        encoded = values.encode_field_value(name, value)
        if isinstance(encoded, (dict, list)):
            self.why = (
                "the preset has the content of a file, of which only the path is written down"
            )
            return None
        if self.tf2:
            option = catalog.find_option(name)
            fits, written = option.write_on("global_options", encoded) if option else (False, None)
            if not fits:
                self.why = "global_options() cannot have this value"
                return None
            return str(int(written)) if isinstance(written, bool) else str(written)
        is_clamped = self.wire.form == "clamped" and isinstance(encoded, int)
        if is_clamped and not 0 <= encoded <= _LARGEST_FUSION:
            self.why = (
                f"the adapter bounds it to 0 to {_LARGEST_FUSION}, "
                "so that many values have the same text"
            )
            return None
        return write_text(self.wire.form, encoded)

    def judge(self, key: str, shown: Text) -> str:
        """Return the result of comparing a key's text with the value."""
        form = self.wire.key_forms.get(key, self.wire.form)
        spellings = self._spell(form)
        flags = _FLAGS if form in ("flag", "inverted") else {}
        text = flags.get(shown.text, shown.text)
        # the session adapter's format: init_resource passes Python's text of a value
        if shown.text == "None" and "None" not in spellings:
            text = ""
        is_missing = shown.text and not text  # None
        if not spellings or _is_unclosed(text) or (is_missing and self.is_default(())):
            return UNSURE
        is_unbroken = form in _UNBROKEN_FORMS
        is_open = shown.cut or (shown.followed and not is_unbroken)
        if not is_open and self._is_same(text, spellings, form):
            return SAME
        hole = _HOLE.search(shown.text)
        if hole is not None and not is_open:
            return UNSURE
        # the real path of a folder differs if the expected one contains a link
        if form == "folder" and text and text not in self.unset:
            return UNSURE
        if not is_open and (is_unbroken or self.is_unset(key, shown.text) or self._is_choice(text)):
            return OTHER
        start = shown.text[: hole.start()] if hole is not None else shown.text
        all_spellings = [*spellings, *(name for name, flag in flags.items() if flag in spellings)]
        return UNSURE if any(_begins(spelling, start) for spelling in all_spellings) else OTHER

    def _is_choice(self, text: str) -> bool:
        """Return whether a text is a choice: complete, even if another choice begins with it."""
        option = catalog.find_option(self.wire.name)
        return option is not None and text in map(str, option.choices)

    def is_unset(self, key: str, text: str) -> bool:
        """Return whether a text is that of an unset option."""
        if self.tf2:
            texts = {self.wire.tf2.get("unset")}
        else:
            texts = {self.wire.keys(stage).get(key) for stage in STAGES}
        return text in texts or text in ("", "None") or (key not in texts and text in self.unset)

    def is_default(self, generation: tuple[str, ...]) -> bool:
        """Return whether a candidate adapter logs the value like an unset option."""
        if self.plain is None:
            return False
        old = [self.wire.unset_in[name] for name in generation if name in self.wire.unset_in]
        texts = set(old) if old and len(old) == len(generation) else self.unset | set(old)
        if not texts and not self.tf2:
            return self.plain == ""
        if self.plain in texts:
            return True
        value = self.value
        if not isinstance(value, str):
            return False
        if not self.tf2 and value in texts:
            return True
        return any(values.is_equivalent_setting(self.wire.name, value, text) for text in texts)

    def _spell(self, form: str) -> tuple[str, ...]:
        """Return the texts of the value in a form, none if no log has its text."""
        if self.plain is None:
            return ()
        if self.tf2:
            if isinstance(self.value, (dict, list)) or self.wire.form not in ("mode", "word"):
                return (self.plain,)
            other = write_text(self.wire.form, self.value)
            return (self.plain,) if other is None else (self.plain, other)
        if form == self.wire.form:
            return (self.plain,)
        if form == "inverted":
            return ("0" if self.value is True else "1",)
        assert form == "closed"
        return (f"{self.plain};{_CLOSING}" if self.plain else _CLOSING,)

    def _is_same(self, text: str, spellings: tuple[str, ...], form: str) -> bool:
        if text in spellings:
            return True
        if form == "folder":
            # without its slash, the root folder is empty, as is a missing text
            return text.rstrip("/") == spellings[0].rstrip("/") != ""
        if form == "text" and isinstance(self.value, (str, dict, list)) and text:
            return values.is_equivalent_setting(self.wire.name, self.value, text)
        return False


def find_forcing(wire: Wire, values: Values) -> str:
    """Return the key of another option in a map that forces the value of this one.

    Empty if there is none.
    """
    for key, text in wire.forced_by.items():
        if key in values and values[key].text == text:
            return key
    return ""


def list_dumped(wire: Wire, process: Process) -> Iterator[tuple[Map, dict[str, Text]]]:
    """Yield the graph dumps of a process, each with the texts of an option by attribute."""
    for kind, dump in process.dumps:
        names = wire.node if kind == "node" else wire.operator
        yield dump, {name: dump.values[name] for name in names if name in dump.values}


def find_texts(wire: Wire, stage: str, texts: Values) -> dict[str, Text]:
    """Return the texts of an option in a map: by the keys of its stage.

    For a graph, by those of all stages.
    """
    stages = STAGES if stage == "graph" else (stage,)
    keys = dict.fromkeys(key for name in stages for key in wire.keys(name))
    return {key: texts[key] for key in keys if key in texts}


def _begins(spelling: str, text: str) -> bool:
    """Return whether a spelling of a value starts with a text.

    The text may end with an incomplete or hard-to-encode character.
    """
    raw = spelling.encode("utf-8", "surrogateescape")
    if raw.startswith(text.encode("utf-8", "surrogateescape")):
        return True
    if spelling.isascii():
        return False
    ascii_start = re.split(r"[^\x00-\x7f]", spelling, maxsplit=1)[0]
    return text.startswith(ascii_start)


def is_unreadable(text: str) -> bool:
    """Return whether a text contains bytes that no intended value has."""
    return _UNREADABLE.search(text) is not None


def _is_unclosed(text: str) -> bool:
    """Return whether a text has an unclosed bracket.

    Its continuation lines, which have no heads, may be lost.
    """
    return any(text.count(opening) > text.count(closing) for opening, closing in ("{}", "[]"))


IN_FORCE, CHANGED, TOO_LATE, ABSENT = "in force", "changed", "too late", "absent"
DEFAULT_OR_SET, CANNOT_TELL = "default or set", "cannot tell"
#: All states, worst first.
STATES = (CHANGED, TOO_LATE, ABSENT, CANNOT_TELL, DEFAULT_OR_SET, IN_FORCE)
NOT_IN_FORCE = (CHANGED, TOO_LATE, ABSENT)
EFFECTIVE = (IN_FORCE, DEFAULT_OR_SET)


class Verdict(Record):
    """A verdict on a setting: its state and reason.

    ``found`` are the texts instead of the expected one, ``tell`` is the variable that would log it.
    """

    setting: str
    state: str
    found: tuple[str, ...] = ()
    note: str = ""
    tell: str = ""


class Outcome(Record):
    """The result of comparing texts with an expected value in one stage or block.

    ``unset`` if the text is that of an unset option, ``engine`` if the engine itself logged it.
    """

    says: str
    texts: tuple[str, ...]
    note: str = ""
    unset: bool = False
    engine: bool = False


def judge_text(expected: ExpectedSetting, key: str, text: Text) -> Outcome:
    """Return the outcome of a key's text for an expected value."""
    says = expected.judge(key, text)
    prefix = f"{key} = " if key in expected.wire.key_forms else ""
    return Outcome(
        says,
        () if says == SAME else (f"{prefix}{text.text}",),
        _explain_unsure(expected, text) if says == UNSURE else "",
        expected.is_unset(key, text.text),
    )


def _explain_unsure(expected: ExpectedSetting, text: Text) -> str:
    if text.text == "None":
        return "init_resource was not given it, so that the engine has a default of its own"
    if expected.wire.form == "folder":
        return "the log has the real path"
    return "its line may be cut, or go on in the next ones"


def join_outcomes(outcomes: list[Outcome]) -> Outcome:
    """Return the joint outcome: unsure unless all are equal, and for an empty list."""
    says = {outcome.says for outcome in outcomes}
    texts = dict.fromkeys(text for outcome in outcomes for text in outcome.texts)
    note = next((outcome.note for outcome in outcomes if outcome.note), "")
    return Outcome(
        says.pop() if len(says) == 1 else UNSURE,
        tuple(texts),
        note,
        all(outcome.unset for outcome in outcomes),
    )


def merge(outcomes: list[Outcome], block: Map) -> Outcome:
    """Return the joint outcome of an option's lines in a block; unsure lines do not count."""
    joined = join_outcomes([outcome for outcome in outcomes if outcome.says != UNSURE] or outcomes)
    return joined._replace(unset=all(outcome.unset for outcome in outcomes), engine=block.engine)
