"""Reading a log with its shortcuts finds what parsing every single line finds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lanes import more_at_night
from logged import write_block, write_engine_line, write_line, write_run

from npuprof.runs.evidence import log_reader, scanning
from npuprof.runs.evidence.reading import read_evidence

GRAPH = {"ge.dynamicDims": "", "ge.inputShape": "x:1", "ge.jit_compile": "2", "iterations_per_loop": "10"}


def stamp(lines: str, start: int = 0) -> str:
    """Return lines with a time of its own for each."""
    told = lines.splitlines(True)
    return "".join(
        line.replace("05:06:07.008.009", f"{at // 3600 % 24:02d}:{at // 60 % 60:02d}:{at % 60:02d}.008.009")
        for at, line in enumerate(told, start)
    )


def write_engine_graph(number: int, texts: dict[str, str], pid: int = 100) -> str:
    return "".join(
        write_engine_line(f"GE option: {key}, value: {text}, innerSession:0, graphid: {number}.", "AddGraph", pid)
        for key, text in texts.items()
    )


def write_strangers(rng: random.Random) -> str:
    """Return lines of other modules, some of them cut, without a head, or with one of the adapter in their middle."""
    line = "[INFO] HCCL(100,python3.7):2026-03-04-05:06:07.008.009 [rank.cc:7]100 set GE option: (100,"
    told = [
        line,
        line,
        line,
        line[:20],
        f"[TRACE] RUNTIME{line[11:]}",
        "goes on",
        line + "[INFO] FMK(100,python3.7):2026-",
        f"[1,0]<stdout>:{line}",
    ]
    return "".join(f"{one}\n" for one in rng.choices(told, k=rng.randint(1, 30)))


def write_talk(rng: random.Random) -> str:
    """Return what is said for a while, of which nothing is of a block: by the engine, by adapters of processes, by whoever."""
    said = [
        write_engine_line("step done, optional inputs: 3, option cache hit", "Run", rng.choice([100, 101])),
        write_line("[GEOP] RunGraphAsync begin", "geop_npu.cc", 3000),
        write_line("[GEOP] RunGraphAsync begin", "geop_npu.cc", rng.choice([100, 3000]), thread="9"),
        "loss 0.5\n",
    ]
    return "".join(rng.choice(said[: rng.randint(1, 4)]) for _ in range(rng.choice((5, 60, 600))))


def draw_pieces(rng: random.Random) -> Iterator[str]:
    """Yield what a process may write: mostly the same again, and now and then something that is not."""
    graphs = [
        GRAPH,
        GRAPH,
        GRAPH,
        {**GRAPH, "ge.inputShape": "y:1"},
        {**GRAPH, "ge.zero": "0"},
        {"ge.dynamicDims": "", "ge.inputShape": "x:1"},
    ]
    for number in range(rng.randint(5, 60)):
        pid = rng.choice([100, 100, 100, 101, 102, 2000])
        kind = rng.choice(
            ["block"] * 8
            + ["engine"] * 6
            + [
                "same",
                "starts",
                "noise",
                "talk",
                "split",
                "split",
                "strangers",
                "head",
                "start",
                "late",
                "old",
                "tail",
                "lost",
                "cut",
                "line",
            ]
        )
        block = write_block("Graph options: ", rng.choice(graphs), pid, file="geop_npu.cc", thread=rng.choice(["100", str(pid), "7"]))
        lines = block.splitlines(True)
        if kind == "block":
            yield block if rng.random() < 0.5 else "".join(lines[:-1])
        elif kind == "engine":
            yield write_engine_graph(number, rng.choice(graphs), pid)
        elif kind == "same":
            yield "".join(lines[:-1]) * rng.randint(2, 30)
        elif kind == "starts":
            yield (
                write_block("Init options: ", {"ge.deterministic": "1", "op_debug_config": "", "ge.debugDir": "", "debug_dir": ""}, pid) * 9
            )
        elif kind == "noise":
            yield write_line(f"[GEOP] step {number}", "geop_npu.cc", pid)
        elif kind == "strangers":
            yield write_strangers(rng)
        elif kind == "split":
            place = rng.randrange(1, len(lines))
            yield "".join([*lines[:place], write_talk(rng), *lines[place:]])
        elif kind == "talk":
            yield write_talk(rng)
        elif kind == "head":
            yield "a line of another program\n"
        elif kind == "start":
            yield write_run({"ge.deterministic": rng.choice("01")}, {"dump_layer": rng.choice("ab")}, pid=pid)
        elif kind == "late":
            yield write_line("[GePlugin] Ge has already initialized", "ge_plugin.cc", pid)
        elif kind == "old":
            old = write_block("init options: ", {"ge.deterministic": rng.choice("01"), "ge.debugDir": "", "ge.opDebugLevel": "0"}, pid)
            yield old + write_block("session options: ", {"ge.hcomParallel": rng.choice("01"), "ge.dumpMode": "", "ge.dumpPath": ""}, pid)
        elif kind == "tail":
            yield "".join([*lines[:-1], "goes on\n", *lines[:-1]])
        elif kind == "lost":
            del lines[rng.randrange(len(lines))]
            yield "".join(lines)
        elif kind == "cut":
            yield "".join(lines)[: rng.randrange(len(block))] + "\n"
        else:
            yield write_line(
                "OMPartition subgraph_0 begin. mix_compile_mode is False, iterations_per_loop is 10, input_shape: ", "x.cc", pid
            )


def dress(rng: random.Random, text: str) -> str:
    """Return a log as it is, or as something has left it that passed it on: for all lines, or for some of them."""
    dresses: list[Callable[[str], str]] = [
        lambda line: line + "\r",
        lambda line: f"[1,0]<stdout>:{line}",
        lambda line: f"\x1b[32m{line}\x1b[0m",
        lambda line: line[:130],
        lambda line: line.replace("x:1", "x:\udcff"),
        lambda line: line + "\0",
    ]
    chosen, share = rng.choice(dresses), rng.choice((0, 0, 0.03, 1))
    return "".join(f"{chosen(line) if rng.random() < share else line}\n" for line in text.splitlines())


def tell(path: Path) -> list[Any]:
    """Return all that is known of the processes of a log, by their numbers: a line that says nothing may be the first of one."""
    found = sorted(read_evidence([str(path)]).processes, key=lambda process: process.pid or 0)
    return [
        (
            process.pid,
            (process.generation, process.informed, process.rank, process.device, process.pending, process.orphaned, process.crowded),
            [(epoch.maps, epoch.asked, epoch.late, epoch.doubtful, epoch.crowded) for epoch in process.epochs],
        )
        for process in found
    ]


@pytest.mark.parametrize("seed", more_at_night(range(6), range(6, 12)))
def test_shortcuts_find_what_every_single_line_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = random.Random(seed)
    quick = log_reader.LogReader.pass_over
    for number in range(25):
        path = tmp_path / f"{number}.log"
        path.write_text(dress(rng, stamp("".join(draw_pieces(rng)), rng.randrange(500))), errors="surrogateescape")
        monkeypatch.setattr(scanning, "_PIECE", rng.choice([1 << 10, 1 << 13, 1 << 17]))
        monkeypatch.setattr(log_reader.LogReader, "pass_over", quick)
        found = tell(path)
        monkeypatch.setattr(log_reader.LogReader, "pass_over", lambda self, data, place: place)
        assert found == tell(path), f"seed {seed}, log {number}"


def test_a_name_that_stands_in_a_text_as_well_is_not_replaced(tmp_path: Path) -> None:
    """What another process said is taken for what this one says: but not where its number is part of a value."""
    texts = {"ge.a": "(101,", "ge.b": "]101 x", "ge.c": "", "ge.d": ""}
    path = tmp_path / "run.log"
    path.write_text("".join(write_block("Graph options: ", texts, pid, file="geop_npu.cc", thread=str(pid)) for pid in (101, 102)))
    for process in read_evidence([str(path)]).processes:
        assert {key: text.text for key, text in process.epochs[0].maps["graph"][0].values.items()} == texts
