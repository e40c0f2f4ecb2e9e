"""Evidence as it comes: mixed, rotated, cut, growing, with junk in it.

What is read of it, and that nothing is claimed that was not.
"""

from __future__ import annotations

import gzip
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuprof.model import NpuprofError
from npuprof.runs.evidence.evidence_files import read_evidence
from npuprof.runs.evidence.log_locations import find_sources
from npuprof.runs.verdicts import judge_process
from support.growth import count_calls
from support.logged import (
    INIT,
    write_block,
    write_engine_line,
    write_line,
    write_run,
    write_tf2_block,
)


def judge_all(paths: list[Path], **options: Any) -> dict[str, dict[str, str]]:
    """Return the states of settings by process."""
    found = read_evidence([str(path) for path in paths]).processes
    return {
        str(process.pid or f"{process.number}"): {
            verdict.setting: verdict.state for verdict in judge_process(options, process)
        }
        for process in found
    }


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogateescape"))
    return path


MODES = {"ge.exec.precision_mode": "force_fp16", "precision_mode": "force_fp16"}
ON, OFF = write_run({"ge.deterministic": "1"}, pid=1), write_run({}, pid=2)


def test_packed_logs_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    write(tmp_path / "plog-1_20260304050607008.log.gz", gzip.compress(ON.encode()))
    write(tmp_path / "run.err.gz", gzip.compress(OFF.encode()))
    write(tmp_path / "data.tar.gz", gzip.compress(b"no log"))
    assert judge_all([tmp_path], deterministic=1) == {
        "1": {"deterministic": "in force"},
        "2": {"deterministic": "changed"},
    }
    rng = random.Random(1)
    noise = bytes(rng.randrange(32, 127) for _ in range(300_000))
    packed = gzip.compress(noise + b"\n" + ON.encode() + noise)
    assert judge_all([write(tmp_path / "cut.log.gz", packed[:-100_000])], deterministic=1) == {
        "1": {"deterministic": "in force"}
    }
    assert judge_all([write(tmp_path / "short.log.gz", packed[:200_000])], deterministic=1) == {}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("plain.log.gz", ON.encode(), id="plain"),
        pytest.param("packed.log", gzip.compress(ON.encode()), id="packed"),
    ],
)
def test_packed_logs_are_recognised_by_their_content(
    tmp_path: Path, name: str, content: bytes
) -> None:
    assert judge_all([write(tmp_path / name, content)], deterministic=1) == {
        "1": {"deterministic": "in force"}
    }


@pytest.mark.parametrize("label", ["[1,0]<stderr>:", "0: ", "worker-0: ", "[rank0] "])
def test_labels_of_launchers_before_lines_are_ignored(tmp_path: Path, label: str) -> None:
    path = write(tmp_path / "a.log", "".join(label + line for line in ON.splitlines(True)))
    assert judge_all([path], deterministic=1) == {"1": {"deterministic": "in force"}}


def test_what_launchers_put_before_lines_is_left_out(tmp_path: Path) -> None:
    blocks = [
        write_tf2_block({"ge.deterministic": text, "ge.graphRunMode": "1"}).splitlines(True)
        for text in "01"
    ]
    mixed = [
        f"[1,{rank}]<stderr>:{line}"
        for lines in zip(*blocks, strict=True)
        for rank, line in enumerate(lines)
    ]
    found = read_evidence([str(write(tmp_path / "b.log", "".join(mixed)))]).processes
    assert [judge_process({"deterministic": 1}, process)[0].state for process in found] == [
        "changed",
        "in force",
    ]


def test_a_folder_of_logs_is_read_in_the_order_of_its_files(tmp_path: Path) -> None:
    first, second = write_run(
        {"ge.deterministic": "1"}, {}, {"dump_layer": "x", "ge.exec.dumpLayer": "x"}, pid=5
    ).split(write_line("[GePlugin] Ge has already initialized", "ge_plugin.cc", 5))
    late = write_line("[GePlugin] Ge has already initialized", "ge_plugin.cc", 5)
    write(tmp_path / "log/debug/plog/plog-5_20260101000000001.log", first)
    write(tmp_path / "log/debug/plog/plog-5_20260101000000002.log", late + second)
    line = (
        "OMPartition subgraph_0 begin. mix_compile_mode is False, iterations_per_loop is 9, "
        "input_shape: , dynamic_dims: "
    )
    write(
        tmp_path / "log/run/plog/plog-5_20260101000000001.log",
        write_line(line, "om_partition_subgraphs_pass.cc", 5),
    )
    states = judge_all(
        [tmp_path / "log"], deterministic=1, iterations_per_loop=9, dump_layer="x", graph_run_mode=0
    )
    assert states == {
        "5": {
            "deterministic": "in force",
            "iterations_per_loop": "in force",
            "dump_layer": "in force",
            "graph_run_mode": "changed",
        }
    }
    (
        tmp_path / "log/debug/plog/plog-5_20260101000000001.log"
    ).unlink()  # the oldest is deleted first, with the start in it
    assert judge_all([tmp_path / "log"], deterministic=1, dump_layer="x") == {
        "5": {"deterministic": "cannot tell", "dump_layer": "in force"}
    }


@pytest.mark.parametrize(
    ("path", "machine"),
    [
        ("/a/log/debug/plog/plog-5_2.log", "/a"),
        ("/log/plog/plog-5_2.log", "/"),
        ("/plog-5_2.log.gz", "/"),
        ("/5_0/x.pbtxt", "/"),
        ("/a/run.log", "/a/run.log"),
    ],
)
def test_logs_of_a_machine_are_in_the_folder_above_those_of_plog(path: str, machine: str) -> None:
    (source,) = find_sources([path])
    assert source.machine == machine


@pytest.mark.parametrize("name", ["missing.log", "empty"])
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NpuprofError) as caught:
        read_evidence([str(tmp_path / name)])
    assert caught.value.findings[0].code == "NP003"


def test_what_is_kept_of_a_process_is_bounded(tmp_path: Path) -> None:
    """Graphs are added by the thousand."""
    graphs = "".join(
        write_block("Graph options: ", {"ge.dynamicDims": str(number)}) for number in range(500)
    )
    (process,) = read_evidence([str(write(tmp_path / "a.log", write_run({}) + graphs))]).processes
    assert all(len(maps) <= 64 for epoch in process.epochs for maps in epoch.maps.values())
    assert sum(len(maps) for epoch in process.epochs for maps in epoch.maps.values()) > 60
    assert judge_process({"dynamic_dims": "7"}, process)[0].state != "in force"


SETTINGS: dict[str, tuple[str, dict[str, dict[str, str]]]] = {
    "precision_mode": ("s", {"init": {"ge.exec.precision_mode": "-", "precision_mode": "-"}}),
    "deterministic": ("i", {"init": {"ge.deterministic": "0"}}),
    "op_debug_config": ("s", {"init": {"ge.exec.opDebugConfig": "", "op_debug_config": ""}}),
    "hccl_timeout": (
        "i",
        {"init": {"ge.exec.hcclExecuteTimeOut": ""}, "session": {"ge.exec.hcclExecuteTimeOut": ""}},
    ),
    "graph_memory_max_size": ("s", {"session": {"ge.graphMemoryMaxSize": "-"}}),
    "dump_layer": ("s", {"session": {"dump_layer": "", "ge.exec.dumpLayer": ""}}),
    "enable_small_channel": ("i", {"session": {"ge.enableSmallChannel": "0"}}),
}
VALUES: dict[str, list[Any]] = {
    "s": ["", "alpha", "alpha,beta", "alpha\nbeta", "é" * 700],
    "i": [None, 0, 1, 12],
}


def _write_truth(chance: random.Random, pid: int) -> tuple[str, dict[str, Any]]:
    """Return the log of a run, and the value that each setting had in force.

    None or an empty text where nobody set it.
    """
    truth = {name: chance.choice(VALUES[field]) for name, (field, _) in SETTINGS.items()}
    stages: dict[str, dict[str, str]] = {"init": {}, "session": {}}
    for name, (_, keys) in SETTINGS.items():
        for stage, unset in keys.items():
            for key, text in unset.items():
                if truth[name] in (None, ""):
                    stages[stage].update({key: text} if text != "-" else {})
                else:
                    stages[stage][key] = str(truth[name])
    return write_run(stages["init"], stages["session"], pid=pid), truth


def _damage(chance: random.Random, runs: list[str]) -> bytes:
    """Return what remains of runs that write to one screen.

    Lines are lost, cut, torn and mixed with others.
    """
    lines = [
        re.split(r"(?m)^(?=\[)", text)[1:] for text in runs
    ]  # a text of several lines is written at once
    screen: list[str] = []
    while any(lines):
        some = chance.choice([run_lines for run_lines in lines if run_lines])
        screen += some[: (count := chance.randint(1, 12))]
        del some[:count]
    lost = chance.choice([0.0, 0.02, 0.2])
    screen = [line for line in screen if chance.random() >= lost]
    noise = [
        "step 3\n",
        "\n",
        "Init options: \n",
        write_engine_line("GE option: broken", "GEInitializeImpl", 9),
        "\x00\xff\n",
    ]
    for _ in range(chance.randint(0, 6)):
        screen.insert(chance.randint(0, len(screen)), chance.choice(noise))
    data = "".join(screen).encode(errors="surrogateescape")
    return data[: chance.choice([len(data), chance.randint(0, len(data))])]


def test_whatever_is_lost_of_a_log_nothing_is_claimed_that_was_not(tmp_path: Path) -> None:
    """What was not in force is never called so, nor what was there absent."""
    judged: Counter[str] = Counter()
    for seed in range(200):
        chance = random.Random(seed)
        runs = [_write_truth(chance, pid) for pid in range(1, chance.randint(2, 4))]
        path = write(tmp_path / "a.log", _damage(chance, [text for text, _ in runs]))
        for process in read_evidence([str(path)]).processes:
            truth = runs[process.pid - 1][1] if process.pid in range(1, len(runs) + 1) else {}
            for name, value in (
                (key, value)
                for key in truth
                for value in VALUES[SETTINGS[key][0]]
                if value not in (None, "")
            ):
                (verdict,) = judge_process({name: value}, process)
                judged[verdict.state] += 1
                if verdict.state in ("in force", "changed", "too late", "absent"):
                    assert (truth[name] == value) is (verdict.state == "in force"), (
                        seed,
                        name,
                        value,
                    )
    assert judged["in force"] > 100
    assert judged["changed"] > 500


@pytest.mark.parametrize(
    "make",
    [
        lambda count: "".join(write_run(MODES, pid=pid) for pid in range(1, count + 1)),
        lambda count: "".join(
            write_block("Graph options: ", {"ge.dynamicDims": str(number)})
            for number in range(8 * count)
        ),
        lambda count: write_line("dump_layer: x") + "no head\n" * 500 * count,
        lambda count: "option" * 20_000 * count,
    ],
    ids=["processes", "graphs", "lines without a head", "one long line"],
)
def test_a_log_that_is_longer_costs_no_more_for_each_line(
    make: Callable[[int], str], tmp_path: Path
) -> None:
    def read(count: int) -> Callable[[], object]:
        path = write(tmp_path / f"{count}.log", make(count))
        return lambda: judge_all([path], precision_mode="force_fp16")

    small, large = count_calls(read(10)), count_calls(read(40))
    assert large <= 10 * small


ENGINE = write_engine_line("step done, cost 12 us", "Run", 42)
#: The engine, that of another process, the engine of options, the adapter of another process,
#: nobody, another module.
TALK = [
    ENGINE,
    ENGINE.replace("42", "77"),
    write_engine_line("option cache hit, optional inputs: 3", "Run", 42),
    write_line("[GEOP] RunGraphAsync begin, inputs: 3", "geop_npu.cc", 77),
    "step 12 of 100, loss 0.5\n",
    ENGINE.replace("GE(", "HCCL("),
]


@pytest.mark.parametrize("gap", [1, 251, 3000])
@pytest.mark.parametrize("old", [False, True])
def test_a_block_goes_on_and_ends_behind_whatever_others_say_meanwhile(
    old: bool, gap: int, tmp_path: Path
) -> None:
    lines = write_run({"ge.deterministic": "1"}, {"ge.hcomParallel": "0"}, pid=42).splitlines(True)
    if old:
        lines = [
            *write_block(
                "init options: ", {**INIT, "ge.deterministic": "1"}, 42, old=True
            ).splitlines(True),
            *lines[len(INIT) + 2 :],
        ]
    undisturbed = write(tmp_path / "b.log", "".join(lines))
    expected = judge_all([undisturbed], deterministic=1, hcom_parallel=False)
    assert len(lines) > 5
    for index in range(1, len(lines), 5):
        meanwhile = "".join(TALK[number % len(TALK)] for number in range(gap))
        path = write(tmp_path / "a.log", "".join([*lines[:index], meanwhile, *lines[index:]]))
        assert judge_all([path], deterministic=1, hcom_parallel=False) == expected, lines[index]
