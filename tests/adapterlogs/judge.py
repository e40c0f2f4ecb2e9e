"""Judges what a reader says of a run against the truth: nothing false, and how much of what can be proven is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from adapterlogs.cases import Case
from adapterlogs.truth import ABSENT, CHANGED, DEFAULT, IN_FORCE, LATE, UNKNOWN, Truth, merge

AGAINST = (CHANGED, LATE, ABSENT)


class Said(NamedTuple):
    """A verdict of a reader: the process it speaks of (None: it cannot tell which), the setting, the word."""

    pid: int | None
    name: str
    verdict: str


@dataclass
class Report:
    """What is false, and of the verdicts that the evidence proves, how many were told."""

    faults: list[str] = field(default_factory=list)
    told: int = 0
    tellable: int = 0
    missed: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """How much of what can be proven is told."""
        return self.told / self.tellable if self.tellable else 1.0

    def add(self, other: Report) -> None:
        """Take the counts of another report."""
        self.faults += other.faults
        self.missed += other.missed
        self.told += other.told
        self.tellable += other.tellable


def _find_fault(truth: Truth, said: Said, *, several: bool) -> str:
    if several and said.verdict == IN_FORCE and set(truth.holds) != {True}:
        return "was not in force in every process"
    return truth.find_fault(said.verdict)


def judge(case: Case, said: Iterable[Said], code: int | None = None) -> Report:
    """Return what is false about the verdicts of a reader, and how much of what can be proven they tell."""
    report, truths = Report(), case.truths
    words: dict[tuple[int, str], str] = {}
    verdicts = list(said)
    for each in verdicts:
        if each.pid is not None and each.pid not in truths:
            report.faults.append(f"seed {case.seed}: process {each.pid}: there was none")
            continue
        several = each.pid is None and len(truths) > 1
        pids = list(truths) if each.pid is None else [each.pid]
        found = merge({pid: truths[pid][each.name] for pid in pids}) if len(pids) > 1 else truths[pids[0]][each.name]
        words.update(((pid, each.name), each.verdict) for pid in pids)
        if fault := _find_fault(found, each, several=several):
            report.faults.append(
                f"seed {case.seed}: {each.pid} {each.name} = {case.preset[each.name]!r}: {each.verdict!r} {fault}: {found}"
            )
    for pid, settings in truths.items():
        for name, found in settings.items():
            if not found.told or (case.shared and len(truths) > 1):
                continue
            report.tellable += 1
            word = words.get((pid, name), "no word")
            if word in found.list_right():
                report.told += 1
            else:
                report.missed.append(f"seed {case.seed}: {pid} {name} = {case.preset[name]!r}: {word!r}, not {found.list_right()}")
    if code is not None and verdicts:
        every = {each.verdict for each in verdicts}
        wanted = 1 if every & set(AGAINST) else 0 if every & {IN_FORCE, DEFAULT} else 2
        if code != wanted:
            report.faults.append(f"seed {case.seed}: exit code {code} for {sorted(every)}")
    return report


def tell_all(case: Case) -> list[Said]:
    """Return what a reader would say that tells what can be proven, and nothing else."""
    return [
        Said(pid, name, sorted(found.list_right())[0] if found.told else UNKNOWN)
        for pid, settings in case.truths.items()
        for name, found in settings.items()
    ]
