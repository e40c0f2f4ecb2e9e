"""What was in force, and what the lines that are left can prove of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from support.adapterlogs import wire
from support.adapterlogs.process import Played, PlayedSession

IN_FORCE, CHANGED, LATE, ABSENT, DEFAULT, UNKNOWN = (
    "in force",
    "changed",
    "too late",
    "absent",
    "default or set",
    "cannot tell",
)
VERDICTS = (IN_FORCE, CHANGED, LATE, ABSENT, DEFAULT, UNKNOWN)
#: What shows the folder that a path leads to, not the path.
REAL_PATHS = ("dump_path", "work_path")


class Truth(NamedTuple):
    """The truth of a setting in a process.

    ``holds`` is, session by session, whether its value was in force (None: in one stage of two);
    ``same`` whether an unset option looks alike; ``present`` whether the script's map had a value
    of it that the adapter reads; ``read`` whether this adapter reads it; ``told`` whether the
    evidence proves it; ``sure`` whether it is known what an unset option looks like in this
    adapter: that was read for 2026 only.
    """

    holds: tuple[bool | None, ...]
    same: bool
    present: bool
    read: bool
    told: bool
    sure: bool

    def list_right(self) -> set[str]:
        """Return the verdicts that tell the truth, those that only say "cannot tell" apart."""
        if not self.read or False in self.holds:
            return {CHANGED, LATE} | (set() if self.present else {ABSENT})
        if not self.sure:
            return {IN_FORCE, DEFAULT}
        return {DEFAULT} if self.same else {IN_FORCE}

    def find_fault(self, verdict: str) -> str:
        """Return what is false about a verdict, or nothing."""
        if verdict not in VERDICTS:
            return "is no verdict"
        if verdict == IN_FORCE:
            if not self.read or not {True, None} & set(self.holds):
                return "was never in force"
            return "an unset option looks the same" if self.same and self.sure else ""
        if verdict in (CHANGED, LATE) and self.read and set(self.holds) == {True}:
            return "was in force all the time"
        if verdict == ABSENT and self.present and self.read:
            return "was there"
        if verdict == ABSENT and self.read and set(self.holds) == {True} and not self.same:
            return "was in force"
        if verdict == DEFAULT and self.read and set(self.holds) == {False}:
            return "another value was in force"
        return ""


def _list_stages(option: wire.Option, snapshot: str) -> dict[str, list[str]]:
    stages: dict[str, list[str]] = {}
    for key in wire.list_keys(option, snapshot):
        if key.stage in "is":
            stages.setdefault(key.stage, []).append(key.name)
    return stages


def _find_default(option: wire.Option) -> str:
    own = {"compile_dynamic_mode": "0", "shape_generalization_mode": "STRICT", "dynamic_input": "0"}
    texts = [key.unset for key in option.keys if key.stage == "p"] or [
        key.unset for key in option.keys
    ]
    return own.get(option.name) or next((text for text in texts if text is not None), "")


def _holds_in(
    session: PlayedSession, option: wire.Option, value: Any, snapshot: str
) -> tuple[bool | None, bool]:
    """Return whether a value was effective in a session, and whether unset looks the same."""
    needs = {
        name: (wire.list_options()[name].field, need)
        for name, need in wire.NEEDS.get(option.name, {}).items()
    }
    wanted = wire.build_maps({**needs, option.name: (option.field, value)}, snapshot)
    rest = {name: entry for name, entry in session.entries.items() if name != option.name}
    unset = wire.build_maps({**rest, **needs}, snapshot)
    stages = _list_stages(option, snapshot)
    if not stages:
        text, default = wire.write_value(option, value), _find_default(option)
        requested = session.maps.requested[option.name]
        return (default if requested is None else requested) == text, text == default
    found: list[bool | None] = []
    same = True
    for stage, keys in stages.items():
        place = "is".index(stage)
        want = {key: wanted[place].get(key) for key in keys}
        same = same and want == {key: unset[place].get(key) for key in keys}
        have = session.init if stage == "i" else session.maps.session
        found.append(all(have.get(key) == text for key, text in want.items()))
    if (
        option.name == "precision_mode"
        and session.init.get("ge.exec.precision_mode_v2", "None") != "None"
    ):
        return None, same  # both are handed over, and the newer one wins
    if (
        option.name == "jit_compile"
        and session.maps.requested["dynamic_input"] == "1"
        and snapshot == "g"
    ):
        return None, same  # the graph is told 1, whatever the session was
    if set(found) == {True} or set(found) == {False}:
        return found[0], same
    return None, same


def _is_shown(played: Played, session: int, what: str, whole: Collection[int]) -> bool:
    groups = [
        all(line in whole for line in group) for group in played.shown.get((session, what), ())
    ]
    every = (
        "b" <= played.snapshot < "g"
    )  # nothing tells the blocks of a session's GeOps from those of another session
    return bool(groups) and (all(groups) if every else any(groups))


def _arrives(entry: wire.Entry | None, option: wire.Option) -> bool:
    """Return whether the adapter reads a value from an entry of the map.

    An empty entry, or one in another field, counts as none.
    """
    return entry is not None and entry[0] == option.field and entry[1] != ""


def find_truth(
    played: Played, name: str, value: Any, whole: Collection[int], dumped: Collection[int]
) -> Truth:
    """Return the truth of a setting in a process of TF 1.

    ``dumped`` are the sessions whose graph was dumped whole.
    """
    option = wire.list_options()[name]
    found = [_holds_in(session, option, value, played.snapshot) for session in played.sessions]
    read = played.snapshot in option.read
    stages = _list_stages(option, played.snapshot)
    shown = True
    for session in range(len(played.sessions)):
        own = _is_shown(played, session, f"o:{name}", whole)
        blocks = (
            bool(stages)
            and played.snapshot > "a"
            and all(_is_shown(played, session, stage, whole) for stage in stages)
        )
        block = name in ("compile_hybrid_mode", "dynamic_node_type") and _is_shown(
            played, session, "g", whole
        )
        dump = bool(option.attributes) and "i" not in stages and session in dumped
        shown = shown and (own or blocks or block or dump)
    linked = name in REAL_PATHS and (
        str(value) in wire.LINKS or {holds for holds, _ in found} != {True}
    )
    mixed = len({holds for holds, _ in found}) > 1 or found[0][0] is None
    return Truth(
        holds=tuple(holds for holds, _ in found),
        same=any(same for _, same in found),
        present=any(_arrives(session.entries.get(name), option) for session in played.sessions),
        read=read,
        told=shown and read and not linked and not mixed,
        sure=played.snapshot == "g",
    )
