"""The words of verdicts, and what single places in evidence say."""

from __future__ import annotations

from typing import NamedTuple

from npuprof.runs.evidence import Map
from npuprof.runs.log_values import OTHER, SAME, UNSURE

IN_FORCE, CHANGED, TOO_LATE, ABSENT = "in force", "changed", "too late", "absent"
DEFAULT_OR_SET, CANNOT_TELL = "default or set", "cannot tell"
#: All of them, worst first.
STATES = (CHANGED, TOO_LATE, ABSENT, CANNOT_TELL, DEFAULT_OR_SET, IN_FORCE)
NOT_IN_FORCE = (CHANGED, TOO_LATE, ABSENT)


class Verdict(NamedTuple):
    """What is proven of a setting: its state, the texts that were ``found`` where they are not the wanted one, why, and what would tell."""

    setting: str
    state: str
    found: tuple[str, ...] = ()
    note: str = ""
    tell: str = ""


class Outcome(NamedTuple):
    """What one place says of a wanted text: ``unset`` if that is the text of an option that was not set."""

    says: str
    texts: tuple[str, ...] = ()
    note: str = ""
    unset: bool = False
    engine: bool = False


def merge(found: list[Outcome], of: Map) -> Outcome | None:
    """Return what the lines of one block say together of an option, None where there is none."""
    if not found:
        return None
    says = {one.says for one in found}
    texts = tuple(dict.fromkeys(text for one in found for text in one.texts))
    note = next((one.note for one in found if one.note), "")
    if OTHER in says and SAME not in says:
        state = OTHER
    elif SAME in says and OTHER not in says:
        state, note, texts = SAME, "", ()
    else:
        state = UNSURE
    return Outcome(state, texts, note, all(one.unset for one in found), of.engine)
