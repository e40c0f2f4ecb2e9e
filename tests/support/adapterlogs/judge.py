"""Judges what a reader says of a run against the truth: nothing false, and how much of what can be proven is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from support.adapterlogs.cases import Case
from support.adapterlogs.truth import ABSENT, CHANGED, DEFAULT, IN_FORCE, LATE, UNKNOWN, Truth, merge

AGAINST = (CHANGED, LATE, ABSENT)


class Said(NamedTuple):
    """A verdict of a reader: the process it speaks of (None: it cannot tell which), the setting, the word; where it was read, if said."""

    pid: int | None
    name: str
    verdict: str
    place: str = ""


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


def _find_processes(case: Case, said: Said) -> list[int]:
    """Return the processes that a verdict may speak of: all of its number, or the one whose folder or file it names."""
    if case.hosts:
        named = [pid for number, pid in enumerate(case.pids) if f"host-{number}" in said.place]
        return named if len(named) == 1 else list(case.pids)
    if said.pid is None:
        named = [pid for pid in case.pids if str(pid) in Path(said.place).name]
        return named if len(named) == 1 else [pid for pid in case.pids if pid in case.seen] or list(case.pids)
    return [pid for pid in case.pids if pid == said.pid]


def _find_faults(case: Case, said: list[Said]) -> list[tuple[Said, str, Truth]]:
    """Return what is false about what is said of one setting by entries that may speak of the same processes."""
    pids = _find_processes(case, said[0])
    truths = [case.find(pid, said[0].name, case.preset[said[0].name]) for pid in pids]
    found: list[tuple[Said, str, Truth]] = []
    if len(said) > 1:  # in some order they are these processes
        for order in permutations(truths, len(said)):
            tried = [(each, _find_fault(truth, each, several=False), truth) for each, truth in zip(said, order, strict=True)]
            if not any(fault for _, fault, _ in tried):
                return []
            found = found or [(each, fault, truth) for each, fault, truth in tried if fault]
        if len(said) <= len(truths):
            return found
    joined = said[0].pid is None and case.title.startswith("TF 1")  # as well one process with several sessions
    truth = merge(truths) if len(truths) > 1 else truths[0]
    several = len(truths) > 1 and not joined
    return [(each, fault, truth) for each in said if (fault := _find_fault(truth, each, several=several))]


def judge(case: Case, said: Iterable[Said], code: int | None = None) -> Report:
    """Return what is false about the verdicts of a reader, and how much of what can be proven they tell."""
    report, truths = Report(), case.truths
    words: dict[tuple[int, str], set[str]] = {}
    verdicts = list(said)
    grouped: dict[tuple[tuple[int, ...], str], list[Said]] = {}
    for each in verdicts:
        pids = _find_processes(case, each)
        if not pids:
            report.faults.append(f"seed {case.seed}: process {each.pid}: there was none")
            continue
        grouped.setdefault((tuple(pids), each.name), []).append(each)
        for pid in pids:
            words.setdefault((pid, each.name), set()).add(each.verdict)
    for group in grouped.values():
        for each, fault, found in _find_faults(case, group):
            report.faults.append(
                f"seed {case.seed}: {each.pid} {each.name} = {case.preset[each.name]!r}: {each.verdict!r} {fault}: {found}"
            )
    for pid, settings in truths.items():
        for name, found in settings.items():
            if not found.told or ((case.shared or case.hosts) and len(truths) > 1):
                continue
            report.tellable += 1
            heard = words.get((pid, name), set())
            if heard & found.list_right():
                report.told += 1
            else:
                report.missed.append(
                    f"seed {case.seed}: {pid} {name} = {case.preset[name]!r}: {sorted(heard)}, not {sorted(found.list_right())}"
                )
    if code is not None and verdicts:
        every = {each.verdict for each in verdicts}
        wanted = 1 if every & set(AGAINST) else 0 if every & {IN_FORCE, DEFAULT} else 2
        if code != wanted:
            report.faults.append(f"seed {case.seed}: exit code {code} for {sorted(every)}")
    return report


def tell_all(case: Case) -> list[Said]:
    """Return what a reader would say that tells what can be proven, and nothing else."""
    return [
        Said(pid, name, sorted(found.list_right())[0] if found.told else UNKNOWN, f"host-{number}")
        for number, (pid, settings) in enumerate(case.truths.items())
        for name, found in settings.items()
    ]
