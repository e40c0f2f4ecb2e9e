"""How fast ``verify`` reads the lines of logs that are none of Ascend's.

Rows of ``bench_all.py``: megabytes a second of processor time, less what a short log takes.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from bench.measured import Goal
from bench.workplace import Workplace

SIZE = 40_000_000
#: Exit codes of a run that no log tells about.
_UNDETERMINED = (0, 1, 2)
_STEP = "[INFO] 2026-07-24 10:00:00,123 >>  gradient accumulation steps = 4, total steps = 120\n"
#: Some lines have words that Ascend's lines have, too.
FOREIGN = {
    "one line in ten on options": _STEP * 9 + "[INFO] building the graph with these options:\n",
    "prose": "going on to look up good groups of outputs for our logs of jobs and unknown graphs\n",
    "tracebacks": (
        'Traceback (most recent call last):\n  File "/opt/job/train.py", line 120, in main\n'
        "    loss = step(batch)\nRuntimeError: rank 3 ran out of memory\n"
    ),
    "lines of 20 kB": "weights " + "0.0125, -0.5, " * 1_400 + "\n",
    "text that is not ASCII": "第 12 轮 损失 0.125 学习率 3e-4 耗时 1.5 秒 étape terminée\n",
    "progress bars": "\x1b[32mtrain\x1b[0m  45%|████▌     | 450/1000 [01:30<01:50,  5.0it/s]\r" * 20
    + "\n",
    "log of Ascend without options": (
        "[INFO] HCCL(123,python3):2026-07-24-10:00:00.123.456 [hccl_communicator.cc:311][129]"
        "[HcclCommunicator]rank[3], Init success, group[hccl_world_group]\n"
        "[INFO] GE(123,python3):2026-07-24-10:00:00.123.456 [graph_builder.cc:311]129 "
        "BuildGraph: partition done, subgraph count 12, graph name train_step\n"
    ),
    "log of a server": (
        'INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
        "INFO 07-24 10:00:00 [loggers.py:116] Engine 000: Avg prompt throughput: 120.5 tokens/s, "
        "Running: 32 reqs, Waiting: 0 reqs, GPU KV cache usage: 43.2%\n"
    ),
    "lines of key=value": (
        'time=2026-07-24T10:00:00Z level=info msg="step done" step=120 loss=0.125 grad_norm=1.25 '
        "lr=0.0003 mem=31.2 group=7 epoch=3\n"
    ),
    "JSON lines with many keys": (
        '{"level": "info", "options": {"graph": 1, "groups": 8}, "optimizer": "adam", "vm": "v1", '
        '"gpu_mem": 31.2, "input_pipeline": "tf.data", "output_path": "/opt/out", "prompt": "a"}\n'
    ),
    "JSON lines": '{"step": 120, "loss": 0.125, "lr": 3e-4, "host": "node-7", "tags": ["a"]}\n',
}


def _measure_rate(place: Workplace, kind: str) -> float:
    text = FOREIGN[kind].encode()

    def write(folder: Path, times: int) -> Path:
        folder.mkdir()
        folder.joinpath("run.log").write_bytes(text * times)
        return folder

    times = place.size(SIZE) // len(text)
    long, short = (
        place.make(f"{kind}, {number}", partial(write, times=number)) for number in (times, 1)
    )
    seconds = [
        place.take_least(
            place.repository,
            [place.npuprof, "verify", "bert-training", str(folder / "run.log")],
            5,
            _UNDETERMINED,
        ).cpu
        for folder in (long, short)
    ]
    return len(text) * times / 1e6 / max(seconds[0] - seconds[1], 0.001)


GOALS = tuple(
    Goal(f"verify, {kind}, MB/s", 100, partial(_measure_rate, kind=kind), more=True)
    for kind in FOREIGN
)
