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
    """What one place says of a wanted text: ``unset`` where that is what stands there where nobody set it.

    One that says another text is ``weak`` where that may be what spoilt lines have left of the wanted one, and no other line says it too,
    and ``begun`` where it is the beginning of the wanted one, and no line of another key says it too: its line may be cut.
    """

    says: str
    texts: tuple[str, ...] = ()
    note: str = ""
    unset: bool = False
    engine: bool = False
    weak: bool = False
    begun: bool = False


def are_weak(found: list[Outcome]) -> bool:
    """Return whether places that say other texts are all weak, and no two of them say the same."""
    return all(one.weak for one in found) and len({one.texts for one in found}) == len(found)


def merge(found: list[Outcome], of: Map) -> Outcome | None:
    """Return what the lines of one block say together of an option, None where there is none."""
    if not found:
        return None
    says = {one.says for one in found}
    texts = tuple(dict.fromkeys(text for one in found for text in one.texts))
    note = next((one.note for one in found if one.note), "")
    if says == {OTHER}:
        said = OTHER
    elif SAME in says and OTHER not in says:
        said, note, texts = SAME, "", ()
    else:
        said = UNSURE
    begun = all(one.begun for one in found) and len({one.texts for one in found}) == len(found)
    return Outcome(said, texts, note, all(one.unset for one in found), of.engine, are_weak(found), begun)
