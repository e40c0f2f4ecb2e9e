"""How long ``verify`` takes over logs against ``grep -F`` of one word in them: ``python tests/bench/bench_evidence.py``.

Logs of 256 MiB: one as a training writes them, where the adapter writes a line in six, one where every line is the adapter's, and one
that has nothing but the options of graphs, of which each is added a moment later. Blocks of options stand at the beginning, in the middle
and at the end as well. One of a thousand processes, and one of eight whose lines are mixed, with the blocks of each between other lines.
One whose blocks are left open while others go on, who speak of options too. And the dump of a graph as long as these, of which two nodes
carry options. Printed are ratios of processor time, and the peak of memory over that of a log of one MiB.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from npuprof.catalog.wire import load_attribute_names
from support.logged import write_block, write_dump, write_engine_line, write_line, write_run

SIZE = 256 << 20
WORD = "OMPartition"
GRAPH = {
    "ge.compileHybridMode": "", "ge.dynamicDims": "", "ge.dynamicNodeType": "-1", "ge.exec.graphIOMemAllocMode": "ByGE",
    "ge.exec.inputReuseMemIndexes": "0", "ge.exec.isVarInitGraph": "0", "ge.exec.overflow": "1", "ge.graphLevelSat": "1",
    "ge.inputShape": "", "ge.jit_compile": "2", "ge.shape_generalized_build_mode": "shape_precise", "iterations_per_loop": "10",
}  # fmt: skip
Kind = tuple[str, ...] | Callable[[Path, int], None]
MODULES = ("RUNTIME", "HCCL", "GE", "ASCENDCL", "FMK", "TEFUSION")


def write_noise(number: int, modules: tuple[str, ...]) -> str:
    """Return a line of a running job."""
    module = modules[number % len(modules)]
    if module == "FMK":
        return write_line(f"[GEOP] RunGraphAsync begin, graph id: {number}, inputs: {number % 9}, step: {number}", "geop_npu.cc", 100)
    time = f"2026-03-04-05:06:07.{number % 1000:03d}.{number % 977:03d}"
    head = f"[INFO] {module}(100,python3.7):{time} [task_submit.cc:{number % 900}]{number % 7}"
    return f"{head} SubmitTask: stream_id={number % 64}, task_id={number}, name=MatMul_{number}, cost {number % 99} us\n"


def write_graphs(number: int) -> str:
    """Return what adapter and engine write of a graph that is added."""
    lines = [write_line(f"[GEOP] call ge session add graph jit_compile: 2, graph_id: {number}", "geop_npu.cc")]
    lines.append(write_block("Graph options: ", GRAPH, file="geop_npu.cc"))
    tail = f", innerSession:0, graphid: {number}."
    lines += [write_engine_line(f"GE option: {key}, value: {text}{tail}", "AddGraph") for key, text in GRAPH.items()]
    return "".join(lines).replace("05:06:07.008", f"05:{number // 60 % 60:02d}:{number % 60:02d}.{number % 1000:03d}")


def write_process(pid: int, noise: int) -> list[str]:
    """Return what a process writes: its blocks, and so many lines before them and behind."""
    lines = [write_noise(number, MODULES).replace("(100,", f"({pid},") for number in range(noise)]
    return [*lines, *write_run({"ge.deterministic": "1"}, pid=pid).splitlines(True), *lines]


def write_processes(path: Path, size: int) -> None:
    """Write the logs of a thousand processes, one after the other."""
    with path.open("w") as file:
        for pid in range(1000, 2000):
            file.writelines(write_process(pid, max(size // 1000 // 300, 1)))


def write_mixed(path: Path, size: int) -> None:
    """Write the logs of eight processes that write at the same time."""
    rng = random.Random(1)
    written = 0
    with path.open("w") as file:
        while written < size:
            left = [iter(write_process(pid, 1000)) for pid in range(1000, 1008)]
            while left:
                lines = rng.choice(left)
                if not (piece := "".join(islice(lines, rng.randint(1, 6)))):
                    left.remove(lines)
                written += file.write(piece)


def write_talk(path: Path, size: int) -> None:
    """Write the log of a process that is killed while it writes a block, again and again, and of what goes on: some of it of options."""
    rng = random.Random(1)
    written = 0
    with path.open("w") as file:
        while written < size:
            run = write_run({"ge.deterministic": "1"}, pid=rng.choice((100, 200))).splitlines(True)
            lines = run[: rng.randrange(len(run))]
            for number in range(40_000):
                talk = write_noise(number, MODULES)
                lines.append(talk.replace("cost", "option cache hit, cost") if number % 20 == 0 else talk)
            written += file.write("".join(lines))


def write_nodes(path: Path, size: int) -> None:
    """Write the dump of a graph in which the first node and the last carry options."""
    texts = {"_graph_run_mode": "1", "_ge.deterministic": "1", **dict.fromkeys(sorted(load_attribute_names())[:60], "1")}
    marked = write_dump(texts, end="")
    piece = write_dump({"_class": "x", "_output_shapes": "y"}, end="") * 1000
    with path.open("w") as file:
        file.write(marked)
        for _ in range(size // len(piece)):
            file.write(piece)
        file.write(marked)


def write_log(path: Path, modules: Kind, size: int) -> None:
    if callable(modules):
        modules(path, size)
        return
    noise = (write_noise(number, modules) for number in range(40_000)) if modules else map(write_graphs, range(3_000))
    piece = "".join(noise).encode()
    run = write_run({"ge.deterministic": "1"}).encode()
    with path.open("wb") as file:
        file.write(run)
        for place in range(max(size // len(piece), 1)):
            file.write(piece[:size] + (run if place * 2 == size // len(piece) else b""))
        file.write(run)


def measure(command: list[str], rounds: int = 3) -> tuple[float, int]:
    """Return the least processor time of a command in seconds, and its peak of memory in KiB."""
    times = []
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=-3, stderr=-3); "
        "used = resource.getrusage(-1); print(used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    peak = 0
    for _ in range(rounds):
        said = subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True, text=True).stdout.split()
        times.append(float(said[0]))
        peak = max(peak, int(said[1]))
    return min(times), peak


def main() -> None:
    kinds: list[tuple[str, Kind]] = [
        ("a line in six is the adapter's", MODULES), ("all lines are the adapter's", ("FMK",)), ("all lines are options", ()),
        ("a thousand processes", write_processes), ("eight processes mixed", write_mixed), ("blocks without an end", write_talk),
        ("the dump of a graph", write_nodes),
    ]  # fmt: skip
    for title, modules in kinds:
        with tempfile.TemporaryDirectory() as folder:
            preset, log, small = (
                Path(folder, name) for name in ("p.toml", *(f"{name}.{'pbtxt' if modules is write_nodes else 'log'}" for name in "ab"))
            )
            preset.write_text("[options]\ndeterministic = 1\n")
            write_log(log, modules, SIZE)
            write_log(small, modules, 1 << 20)
            verify, peak = measure([sys.executable, "-m", "npuprof", "verify", str(preset), str(log)])
            start, least = measure([sys.executable, "-m", "npuprof", "verify", str(preset), str(small)])
            grep, _ = measure(["grep", "-c", "-F", WORD, str(log)])
            size = log.stat().st_size / 2**20
        print(
            f"verify over {size:.0f} MiB, {title}: {verify / grep:.1f} times grep -F"
            f" ({verify:.2f} s, {grep:.2f} s; {start:.2f} s for 1 MiB), {(peak - least) / 1024:.1f} MiB more than for 1 MiB"
        )


if __name__ == "__main__":
    main()
