"""Compares logged texts of an option with an expected value (same, other, unsure), and
derives verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from npuprof import catalog
from npuprof.catalog import values
from npuprof.catalog.wire import NO_KEY, STAGES, Wire, write_text
from npuprof.renderers import encode_field_value
from npuprof.runs.evidence import Map, Process, Text, Values

#: The result of comparing a text with the expected one.
SAME, OTHER, UNSURE = "same", "other", "unsure"

_LARGEST_FUSION = 33554432
_FLAGS = {"true": "1", "True": "1", "false": "0", "False": "0"}
#: Forms whose lines cannot continue on a line without a head.
_ONE_WORD = frozenset(("flag", "number", "mode", "word", "clamped", "inverted"))
_CLOSING = "forbidden_close_pass:on"
#: Bytes that no intended value contains.
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\udc80-\udcff]")
#: Marks of an omitted or unwritable part of a text.
_HOLE = re.compile(rf"{_UNREADABLE.pattern}|\ufffd|\.\.\.|\.\.$|…|\W*truncated\W*$")


class ExpectedSetting:
    """A preset's value as logged texts.

    ``plain`` is None if it has none, and ``why`` is the reason.
    """

    def __init__(self, wire: Wire, value: Any, tf2: bool = False) -> None:
        self.wire = wire
        self.value = value
        self.tf2 = tf2
        self.why = ""
        self.plain = self._write(value)
        if tf2:
            self.unset = {wire.tf2["unset"]} if "unset" in wire.tf2 else set()
        else:
            known = [item for stage in STAGES for item in wire.keys(stage).items()]
            self.unset = {
                text for key, text in known if text != NO_KEY and key not in wire.key_forms
            }
            self.unset |= {wire.unset} if wire.unset is not None else set()

    def _write(self, value: Any) -> str | None:
        name = self.wire.name
        encoded = encode_field_value(name, value)
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
        if (
            self.wire.form == "clamped"
            and isinstance(encoded, int)
            and not 0 <= encoded <= _LARGEST_FUSION
        ):
            self.why = (
                f"the adapter bounds it to 0 to {_LARGEST_FUSION}, "
                "so that many values have the same text"
            )
            return None
        return write_text(self.wire.form, encoded)

    def judge(self, key: str, shown: Text) -> str:
        """Return the result of comparing a key's text with the value."""
        form = self.wire.key_forms.get(key, self.wire.form)
        spellings, flags = self._spell(form), _FLAGS if form in ("flag", "inverted") else {}
        # the session adapter's format: init_resource passes Python's text of a value
        text = (
            ""
            if shown.text == "None" and "None" not in spellings
            else flags.get(shown.text, shown.text)
        )
        if (
            not spellings or _is_unclosed(text) or (shown.text and not text and self.is_default(()))
        ):  # unset may equal the default
            return UNSURE
        is_word = form in _ONE_WORD
        is_open = shown.cut or (shown.followed and not is_word)
        if not is_open and self._is_same(text, spellings, form):
            return SAME
        hole = _HOLE.search(shown.text)
        start = shown.text[: hole.start()] if is_open and hole is not None else shown.text
        option = catalog.find_option(self.wire.name)
        is_choice = option is not None and text in map(
            str, option.choices
        )  # complete even if another value begins with it
        is_whole = not is_open and (is_word or self.is_unset(key, shown.text) or is_choice)
        spelled = [*spellings, *(word for word, flag in flags.items() if flag in spellings)]
        may_be = not is_whole and any(_begins(spelling, start) for spelling in spelled)
        may_lead_there = (
            form == "folder" and text and text not in self.unset
        )  # the real path, if the expected one contains a link
        return UNSURE if may_be or may_lead_there or (hole is not None and not is_open) else OTHER

    def is_unset(self, key: str, text: str) -> bool:
        """Return whether a text is that of an unset option."""
        texts = (
            {self.wire.tf2.get("unset")}
            if self.tf2
            else {self.wire.keys(stage).get(key) for stage in STAGES}
        )
        return text in texts or text in ("", "None") or (key not in texts and text in self.unset)

    def is_default(self, generation: tuple[str, ...]) -> bool:
        """Return whether a candidate adapter logs the value like an unset option."""
        if self.plain is None:
            return False
        old = [self.wire.unset_in[name] for name in generation if name in self.wire.unset_in]
        texts = set(old) if old and len(old) == len(generation) else self.unset | set(old)
        if not texts and not self.tf2:
            return self.plain == ""
        spelled = (
            set()
            if self.tf2
            else {write_text("text", self.value)}
            if isinstance(self.value, str)
            else set()
        )
        return bool(({self.plain} | spelled) & texts) or any(
            isinstance(self.value, str)
            and values.is_equivalent_setting(self.wire.name, self.value, text)
            for text in texts
        )

    def _spell(self, form: str) -> tuple[str, ...]:
        if self.plain is None:
            return ()
        if self.tf2:
            more = (
                write_text(self.wire.form, self.value)
                if not isinstance(self.value, (dict, list))
                else None
            )
            return (
                (self.plain,)
                if more is None or self.wire.form not in ("mode", "word")
                else (self.plain, more)
            )
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
            return text.rstrip("/") == spellings[0].rstrip("/") != ""
        if form == "text" and isinstance(self.value, (str, dict, list)) and text:
            return values.is_equivalent_setting(self.wire.name, self.value, text)
        return False


def find_forcing(wire: Wire, values: Values) -> str:
    """Return the key of another option in a map that forces the value of this one.

    Empty if there is none.
    """
    return next(
        (key for key, text in wire.forced_by.items() if key in values and values[key].text == text),
        "",
    )


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


def _begins(expected: str, text: str) -> bool:
    """Return whether an expected text starts with another one, up to an incomplete or hard-to-encode
    character.
    """
    if expected.encode("utf-8", "surrogateescape").startswith(
        text.encode("utf-8", "surrogateescape")
    ):
        return True
    return not expected.isascii() and text.startswith(
        re.split(r"[^\x00-\x7f]", expected, maxsplit=1)[0]
    )


def is_unreadable(text: str) -> bool:
    """Return whether a text contains bytes that no intended value has."""
    return _UNREADABLE.search(text) is not None


def _is_unclosed(text: str) -> bool:
    """Return whether a text has an unclosed bracket: its continuation lines, which have no heads,
    may be lost.
    """
    return any(text.count(opening) > text.count(closing) for opening, closing in ("{}", "[]"))


IN_FORCE, CHANGED, TOO_LATE, ABSENT = "in force", "changed", "too late", "absent"
DEFAULT_OR_SET, CANNOT_TELL = "default or set", "cannot tell"
#: All states, worst first.
STATES = (CHANGED, TOO_LATE, ABSENT, CANNOT_TELL, DEFAULT_OR_SET, IN_FORCE)
NOT_IN_FORCE = (CHANGED, TOO_LATE, ABSENT)


class Verdict(NamedTuple):
    """A verdict on a setting: its state, the texts ``found`` instead of the expected one, the reason,
    and the variable that would log it.
    """

    setting: str
    state: str
    found: tuple[str, ...] = ()
    note: str = ""
    tell: str = ""


class Outcome(NamedTuple):
    """The outcome for an expected text at one place: ``unset`` if the text is that of an
    unset option.
    """

    says: str
    texts: tuple[str, ...] = ()
    note: str = ""
    unset: bool = False
    engine: bool = False


def judge_text(expected: ExpectedSetting, key: str, text: Text) -> Outcome:
    """Return the outcome of a key's text for an expected value."""
    says = expected.judge(key, text)
    note = ""
    if says == UNSURE:
        note = (
            "the log has the real path"
            if expected.wire.form == "folder"
            else "its line may be cut, or go on in the next ones"
        )
        note = (
            "init_resource was not given it, so that the engine has a default of its own"
            if text.text == "None"
            else note
        )
    named = f"{key} = " if key in expected.wire.key_forms else ""
    return Outcome(
        says,
        () if says == SAME else (f"{named}{text.text}",),
        note,
        expected.is_unset(key, text.text),
    )


def join_outcomes(known: list[Outcome]) -> Outcome:
    """Return the joint outcome of several places: unsure unless all are equal."""
    says = {outcome.says for outcome in known}
    texts = tuple(dict.fromkeys(text for outcome in known for text in outcome.texts))
    note = next((outcome.note for outcome in known if outcome.note), "")
    return Outcome(
        says.pop() if len(says) == 1 else UNSURE,
        texts,
        note,
        all(outcome.unset for outcome in known),
    )


def merge(outcomes: list[Outcome], of: Map) -> Outcome:
    """Return the joint outcome of an option's lines in a block; unsure lines do not count."""
    joined = join_outcomes([outcome for outcome in outcomes if outcome.says != UNSURE] or outcomes)
    return joined._replace(unset=all(outcome.unset for outcome in outcomes), engine=of.engine)
