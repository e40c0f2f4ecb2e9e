"""Puts lines into files: as a device keeps them, as a screen shows them, and as an unlucky day leaves them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from support.adapterlogs.stage import Line

LIMIT = 1022
#: What other programs say on the same screen or in the same file; some of it looks like ours.
FOREIGN = (
    b"step 100 loss 0.3211 examples/sec 512",
    b"precision_mode: force_fp16",
    b"Init options: ",
    b"INFO:tensorflow:Graph was finalized.",
    b"WARNING:tensorflow:From run.py:12: The name tf.Session is deprecated.",
    b"[INFO] 2026-07-24 10:11:12 trainer.py:88 hcom_parallel: 0",
    b"/usr/lib/python3.7/site.py:3: UserWarning: ge.exec.precision_mode: force_fp32",
    b"+ grep -n 'ge.deterministic: 1' train.log",
    b"",
)
#: Lines of other modules, with a head of their own.
MODULES = (
    ("HCCL", "INFO", "[hcom.cc:51]{} hcom_parallel: 0, precision_mode: force_fp16"),
    ("TBE", "INFO", "[te_fusion.cc:9]{} ge.exec.precision_mode: force_fp32"),
    ("RUNTIME", "WARNING", "[runtime.cc:77][INIT]{} device 0 opened"),
    ("FMK", "INFO", "[adapter_logger.cc:28][TF_ADAPTER] [tf_adapter/util/infershape_util.cc:66]{} The infershape of node x: 1"),
    ("GE", "INFO", "[graph_manager.cc:812]{} PreRun:precision_mode: force_fp16"),
)


class Damage(NamedTuple):
    """What befalls the lines of a run."""

    foreign: bool = False
    modules: bool = False
    junk: bool = False
    clock: bool = False
    drop: int = 0
    rotate: int = 0
    lost: int = 0
    tail: bool = False
    label: bool = False
    crlf: bool = False


class Process(NamedTuple):
    """What is put into files: a number that names the process, its program, its lines, when it began."""

    pid: int
    program: str
    lines: Sequence[Line]
    start: datetime


class Written(NamedTuple):
    """The paths to give to a reader, and for each process the lines that came through whole."""

    paths: list[Path]
    whole: list[set[int]]

    def list_seen(self, pids: Iterable[int]) -> frozenset[int]:
        """Return the processes of which a line came through."""
        return frozenset(pid for pid, whole in zip(pids, self.whole, strict=True) if whole)


class _Piece(NamedTuple):
    process: int
    line: int
    raw: bytes
    whole: bool


def write_line(process: Process, line: Line, at: datetime) -> tuple[bytes, bool]:
    """Return a line's bytes without newline, and whether nothing of it was cut away."""
    if line.kind == "screen":
        return f"{at:%Y-%m-%d %H:%M:%S.%f}: {line.text}".encode(), True
    stamp = f"{at:%Y-%m-%d-%H:%M:%S}.{at.microsecond // 1000:03}.{at.microsecond % 1000:03}"
    raw = f"[{line.level}] {line.module}({process.pid},{process.program}):{stamp} {line.text}".encode()
    return raw[:LIMIT], len(raw) <= LIMIT


def _stamp_lines(number: int, process: Process, damage: Damage, rng: random.Random) -> list[_Piece]:
    at, pieces = process.start, []
    for count, line in enumerate(process.lines):
        at += timedelta(microseconds=137)
        if damage.clock and rng.random() < 0.02:
            at = rng.choice([at - timedelta(hours=3), datetime(1970, 1, 1, 0, 0, 7), at + timedelta(days=400)])
        raw, whole = write_line(process, line, at)
        pieces.append(_Piece(number, count, raw, whole))
        if damage.modules and line.kind != "screen" and rng.random() < 0.1:
            module, level, text = rng.choice(MODULES)
            if module == "FMK" and "adp_logger" in line.text:
                continue  # without a thread's number it would seem to end the block that it stands in
            foreign = Line(text.format(process.pid + 77), line.kind, module, level)
            pieces.append(_Piece(number, -1, write_line(process, foreign, at)[0], True))
    for _ in range(damage.drop if all(line.kind != "screen" for line in process.lines) else 0):
        first = rng.randrange(max(1, len(pieces) - 8))
        del pieces[first : first + rng.randint(6, 40)]
    return pieces


def _spoil(pieces: list[_Piece], damage: Damage, rng: random.Random, *, screen: bool) -> list[_Piece]:
    """Put junk and other programs' lines between; what stands before a line without head may go on in it."""
    spoilt: list[_Piece] = []
    for piece in pieces:
        spoilt.append(piece)
        if damage.foreign and screen and rng.random() < 0.04:
            spoilt[-1] = piece._replace(whole=False)
            spoilt.append(_Piece(-1, -1, rng.choice(FOREIGN), True))
        if damage.junk and rng.random() < 0.01:
            spoilt[-1] = piece._replace(whole=False)
            spoilt.append(_Piece(-1, -1, bytes(rng.choices(range(256), k=rng.randint(1, 300))).replace(b"[", b"("), True))
    return spoilt


def _mix(streams: list[list[_Piece]], rng: random.Random) -> list[_Piece]:
    mixed: list[_Piece] = []
    left = [list(reversed(stream)) for stream in streams if stream]
    while left:
        stream = rng.choice(left)
        mixed += [stream.pop() for _ in range(min(len(stream), rng.randint(1, 5)))]
        left = [stream for stream in left if stream]
    return mixed


class Writer:
    """Writes pieces to files and keeps what came through."""

    def __init__(self, folder: Path, count: int, damage: Damage, rng: random.Random) -> None:
        self.folder, self.damage, self.rng = folder, damage, rng
        self.whole: list[set[int]] = [set() for _ in range(count)]

    def write(self, path: Path, pieces: list[_Piece]) -> None:
        """Write one file, cut short at its end if that is the damage."""
        pieces = [self._dress(piece) for piece in pieces]
        raw = b"".join(piece.raw + b"\n" for piece in pieces)
        end = len(raw)
        if self.damage.tail and raw:
            end = self.rng.randrange(len(raw))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw[:end])
        at = 0
        for piece in pieces:
            at += len(piece.raw) + 1
            if at <= end and piece.whole and piece.line >= 0:
                self.whole[piece.process].add(piece.line)

    def _dress(self, piece: _Piece) -> _Piece:
        """Put a launcher's label before each line, which then shows nothing for sure, or end lines as Windows does."""
        if self.damage.label and piece.process >= 0:
            label = f"[1,{piece.process}]<stderr>:".encode()
            piece = piece._replace(raw=label + piece.raw.replace(b"\n", b"\n" + label), whole=False)
        if self.damage.crlf:
            piece = piece._replace(raw=piece.raw.replace(b"\n", b"\r\n") + b"\r", whole=piece.whole and b"\n" not in piece.raw)
        return piece

    def rotate(self, name: Path, pieces: list[_Piece], start: datetime) -> None:
        """Write the files of one process and kind; the oldest may be gone."""
        size = self.damage.rotate or len(pieces) or 1
        parts = [pieces[first : first + size] for first in range(0, len(pieces), size)]
        lost = min(self.damage.lost, len(parts) - 1)
        for number, part in enumerate(parts):
            at = start + timedelta(seconds=number)
            if number >= lost:
                last = number == len(parts) - 1
                writer = self if last else self._whole()
                writer.write(name.with_name(f"{name.name}_{at:%Y%m%d%H%M%S}{at.microsecond // 1000:03}.log"), part)

    def _whole(self) -> Writer:
        other = Writer(self.folder, 0, self.damage._replace(tail=False), self.rng)
        other.whole = self.whole
        return other


def write_folder(folder: Path, processes: Sequence[Process], damage: Damage, rng: random.Random, *, old: bool = False) -> Written:
    """Write the log folder of a device: a file for each process and kind, or one a process as the releases 5.0 had it."""
    damage = damage._replace(label=False)
    writer = Writer(folder, len(processes), damage, rng)
    paths: list[Path] = []
    for number, process in enumerate(processes):
        pieces = _stamp_lines(number, process, damage, rng)
        plog = [piece for piece in pieces if piece.line < 0 or process.lines[piece.line].kind != "screen"]
        screen = [piece for piece in pieces if piece.line >= 0 and process.lines[piece.line].kind == "screen"]
        for kind in ("both",) if old else ("debug", "run"):
            chosen = [
                piece
                for piece in plog
                if kind == "both" or (process.lines[piece.line].kind == kind if piece.line >= 0 else kind == "debug")
            ]
            place = folder / "plog" if old else folder / kind / "plog"
            if chosen:
                writer.rotate(place / f"plog-{process.pid}", _spoil(chosen, damage, rng, screen=False), process.start)
        if screen:
            path = folder.parent / f"worker-{process.pid}.err"
            writer.write(path, _spoil(screen, damage, rng, screen=True))
            paths.append(path)
    return Written([*([folder] if any(folder.rglob("*.log")) else []), *paths], writer.whole)


def write_hosts(folder: Path, processes: Sequence[Process], damage: Damage, rng: random.Random) -> Written:
    """Write a log folder for each process on a host of its own, where a container gives them all the same number."""
    parts = [write_folder(folder / f"host-{number}" / "log", [process], damage, rng) for number, process in enumerate(processes)]
    return Written([folder], [part.whole[0] for part in parts])


def write_screen(path: Path, processes: Sequence[Process], damage: Damage, rng: random.Random, *, mixed: bool = True) -> Written:
    """Write what a screen shows: the lines of all processes among each other, or one after the other."""
    writer = Writer(path.parent, len(processes), damage, rng)
    streams = [_stamp_lines(number, process, damage, rng) for number, process in enumerate(processes)]
    pieces = _mix(streams, rng) if mixed else [piece for stream in streams for piece in stream]
    writer.write(path, _spoil(pieces, damage, rng, screen=True))
    return Written([path], writer.whole)
