"""Damage that programs between a process and a file do to its lines.

The verdict is never one that the complete lines would not give.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npuprof.catalog.wire import list_tf2_standing_keys, load_generations
from npuprof.runs.evidence.evidence_files import read_evidence
from npuprof.runs.verdicts import judge_process
from support.logged import INIT, write_engine_line, write_line, write_run, write_tf2_block

LONG = "/data/model_zoo/bert/configs/fusion_switch_bert_large.cfg"
RUN = write_run(
    {
        "op_debug_config": LONG,
        "ge.exec.opDebugConfig": LONG,
        "ge.exec.hcclExecuteTimeOut": "700",
        "ge.deterministic": "1",
    },
    {
        "ge.streamMaxParallelNum": LONG,
        "dump_layer": LONG,
        "ge.exec.dumpLayer": LONG,
        "ge.graphMemoryMaxSize": "31*1024*1024*1024",
    },
)
CUT = len(write_line("ge.streamMaxParallelNum: /data/model_zoo")) - 1


def list_states(folder: Path, raw: str | bytes, **options: object) -> list[str]:
    path = folder / "run.log"
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    (process,) = read_evidence([str(path)]).processes
    return [verdict.state for verdict in judge_process(options, process)]


def write_engine_run(init: dict[str, str]) -> str:
    """Return what the engine alone writes down."""
    return "".join(
        write_engine_line(f"GE option: {key}, value: {text}.", "GEInitializeImpl")
        for key, text in sorted({**INIT, **init}.items())
    )


def edit(change: Callable[[str], str]) -> str:
    return "".join(f"{change(line)}\n" for line in RUN.splitlines())


SHORTENED = [
    ("cut", lambda line: line[:CUT]),
    ("marked with dots", lambda line: line if len(line) <= CUT else line[: CUT - 3] + "..."),
    ("marked with one character", lambda line: line if len(line) <= CUT else line[: CUT - 1] + "…"),
    ("marked in words", lambda line: line if len(line) <= CUT else line[:CUT] + " [truncated]"),
    (
        "shortened in the middle",
        lambda line: line if len(line) <= CUT else line[: CUT - 5] + "..." + line[-8:],
    ),
    ("labelled before", lambda line: f"rank0| {line}"[:CUT]),
    (
        "wrapped",
        lambda line: "\n".join(line[place : place + CUT] for place in range(0, len(line), CUT)),
    ),
]


@pytest.mark.parametrize(("how", "change"), SHORTENED)
def test_a_text_that_ends_where_lines_are_cut_is_no_other_text(
    tmp_path: Path, how: str, change: Callable[[str], str]
) -> None:
    text = edit(change)
    assert list_states(
        tmp_path, text, stream_max_parallel_num=LONG, op_debug_config=LONG, deterministic=1
    ) == ["cannot tell"] * 2 + ["in force"]
    is_marked = "marked" in how or "middle" in how  # what the mark stands for is not known
    assert list_states(tmp_path, text, stream_max_parallel_num="other", deterministic=0) == [
        "cannot tell" if is_marked else "changed",
        "changed",
    ]


SPOILT = [
    (lambda raw: raw.replace(b"/bert/", b"/be\0t/"), "cannot tell"),
    (lambda raw: raw.replace(b"/bert/", b"/be\xc8t/"), "cannot tell"),
    (lambda raw: raw.replace(b"/bert/", b"/be\rEpoch 1\rrt/"), "cannot tell"),
    (lambda raw: raw.replace(b"/bert/", "/be\ufffdt/".encode()), "cannot tell"),
    (lambda raw: raw.replace(b"/bert/", b"/gpt/"), "changed"),
]


@pytest.mark.parametrize(("change", "state"), SPOILT)
def test_what_cannot_be_read_of_a_text_is_no_other_text(
    tmp_path: Path, change: Callable[[bytes], bytes], state: str
) -> None:
    assert list_states(
        tmp_path, change(RUN.encode()), stream_max_parallel_num=LONG, deterministic=1
    ) == [
        state,
        "in force",
    ]


#: What programs put before each line: torchrun, kubectl logs, Open MPI, ts, docker compose, stern,
#: GNU parallel, cat -n, grep -n.
LABELS = [
    "[default3]:",
    "[rank3]: ",
    "[pod/bert-0/main] 2026-03-04T05:06:07.008Z ",
    "Wed Mar  4 05:06:07 2026[1,3]<stdout>:",
    "[prterun-node7-2@1,3]<stdout>: ",
    "Mar 04 05:06:07 ",
    "2026-03-04 05:06:07 ",
    "[2026-03-04 05:06:07] ",
    "1772600767.008009 ",
    "trainer-0  | 2026-03-04T05:06:07.008009010Z ",
    "bert-0 main ",
    "node7\t",
    "    12\t",
    "plog/plog-77_1.log:12:",
    "3: [default3]:",
]


DRESSED = [
    lambda line: f"\x1b[32m{line}\x1b[0m",
    lambda line: line.replace("ge.", "\x1b[01;31m\x1b[Kge.\x1b[m\x1b[K"),
    lambda line: f"{line}\r\r",
    lambda line: f"2026-03-04T05:06:07.008009010Z stdout F {line}",
    lambda line: f"2026-03-04T05:06:07.008+08:00 {line}",
    lambda line: f"Mar  4 05:06:07 node7 python[77]: {line}",
    lambda line: f"(worker pid=77, ip=10.0.0.1) {line}",
    lambda line: f"worker-0  | {line}",
    lambda line: f"    {line}",
    lambda line: f"[1,3]<stdout>: 05:06:07 {line}",
    *(lambda line, label=label: f"{label}{line}" for label in LABELS),
]


@pytest.mark.parametrize("change", DRESSED)
def test_what_a_log_is_dressed_in_is_left_out(tmp_path: Path, change: Callable[[str], str]) -> None:
    assert list_states(
        tmp_path,
        edit(change),
        stream_max_parallel_num=LONG,
        op_debug_config=LONG,
        hcom_parallel=False,
    ) == [
        "in force",
        "in force",
        "changed",
    ]


@pytest.mark.parametrize("label", ["", "2026-03-04T05:06:07.008009010Z stdout F ", "    12\t"])
@pytest.mark.parametrize("write", [write_run, write_engine_run])
def test_a_text_before_a_line_without_a_head_may_go_on_in_that(
    tmp_path: Path, label: str, write: Callable[..., str]
) -> None:
    text = write({"op_debug_config": "a\n  b: c", "ge.exec.opDebugConfig": "a\n  b: c"})
    labelled = "".join(f"{label}{line}\n" for line in text.splitlines())
    assert list_states(tmp_path, labelled, op_debug_config="a\n  b: c") == ["cannot tell"]
    assert list_states(tmp_path, labelled, op_debug_config="a") == ["cannot tell"]
    assert list_states(tmp_path, labelled, op_debug_config="b") in (
        ["changed"],
        ["cannot tell"],
    )  # a label may be the rest of a line


def test_the_last_line_of_a_log_is_whole_where_it_ends_as_the_engine_ends_it(
    tmp_path: Path,
) -> None:
    text = write_engine_run({}) + write_engine_line(
        "GE option: ge.variableMemoryMaxSize, value: 31.", "CreateSession"
    )
    assert list_states(tmp_path, text, variable_memory_max_size="31") == ["in force"]
    assert list_states(tmp_path, text.removesuffix(".\n"), variable_memory_max_size="31") == [
        "cannot tell"
    ]


def test_in_a_log_with_torn_lines_no_other_value_is_proven(tmp_path: Path) -> None:
    longer = {
        "ge.bufferOptimize": LONG * 2,
        "ge.streamMaxParallelNum": "/data/model",
        "ge.variableMemoryMaxSize": LONG * 2,
    }
    short = write_run(
        {"ge.exec.opDebugConfig": LONG, "op_debug_config": LONG, "ge.deterministic": "1"}, longer
    )
    assert list_states(tmp_path, short, stream_max_parallel_num=LONG) == ["cannot tell"]
    assert list_states(tmp_path, short, stream_max_parallel_num="/other") == ["changed"]
    head = write_line("ge.exec.enableDump: 0")
    for rest in (
        head[:40],
        head[60:-1],
        head[:-1] + head[:-1],
        head.replace("enableDump: 0\n", "ena"),
    ):
        torn = short.replace(head, rest + "\n")
        assert (
            list_states(tmp_path, torn, stream_max_parallel_num=LONG, op_debug_config="/b")
            == ["cannot tell"] * 2
        ), rest
        assert list_states(tmp_path, torn, stream_max_parallel_num="/other") == ["cannot tell"], (
            rest
        )


def test_lines_without_the_title_of_their_block_prove_nothing_and_cast_doubt(
    tmp_path: Path,
) -> None:
    """One of two sessions has another value.

    The rest of its block shows that a value differs, but not which.
    """
    run = write_run(
        {},
        {"ge.streamMaxParallelNum": "/a", "ge.hcomParallel": "0"},
        {"ge.streamMaxParallelNum": "/b", "ge.hcomParallel": "0"},
    )
    title = write_line("Session options: ", "session_manager.cc")
    assert list_states(tmp_path, run, stream_max_parallel_num="/a", hcom_parallel=False) == [
        "cannot tell",
        "in force",
    ]
    head, first, second = run.split(title)
    assert list_states(tmp_path, write_line("ge.hcomParallel: 1") + run, hcom_parallel=False) == [
        "cannot tell"
    ], "all but one line is lost"
    for text in (
        head + title + first + second,
        head + first + second,
    ):  # the second title is lost, or both
        assert list_states(tmp_path, text, stream_max_parallel_num="/a", hcom_parallel=False) == [
            "cannot tell",
            "cannot tell",
        ]


def test_a_note_of_one_start_is_told_beside_others_that_have_none(tmp_path: Path) -> None:
    with_value, with_empty = {"ge.streamMaxParallelNum": "/a"}, {"ge.streamMaxParallelNum": ""}
    path = tmp_path / "run.log"
    path.write_text(write_run({}, with_value) + write_run({}, with_value, with_empty))
    (process,) = read_evidence([str(path)]).processes
    (verdict,) = judge_process({"stream_max_parallel_num": "/a"}, process)
    assert verdict.state == "in force"
    assert (
        verdict.note
        == "at start 2 of 2 of the engine: not in all of its sessions; in the others it is unset"
    )


TF2 = write_tf2_block(
    dict.fromkeys(
        list_tf2_standing_keys(
            next(generation.name for generation in load_generations() if generation.tf2)
        ),
        "0",
    )
)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace("  ge.graphRunMode:0", "  ge.graphRu"),
        lambda line: line[30:] if "ge.graphRunMode" in line else line,
        lambda line: line * 2 if "ge.graphRunMode" in line else line,
        lambda line: line.replace("ge.graphRunMode:0", "ge.graphRunMode:\0"),
        lambda line: (
            f"{line[:32]}?{line[33:]}" if "ge.graphRunMode" in line else line
        ),  # the name of the file in its head is spoilt
    ],
)
def test_a_spoilt_log_of_tf2_does_not_say_what_is_not_in_it(
    tmp_path: Path, change: Callable[[str], str]
) -> None:
    """Each setting has one line there, and none if it is unset.

    If lines are damaged, that one may be.
    """
    is_truncated = "".join(f"{change(line)}\n" for line in TF2.splitlines())
    assert list_states(tmp_path, TF2, op_debug_config="/a", deterministic=1) == [
        "absent",
        "changed",
    ]
    assert list_states(tmp_path, is_truncated, op_debug_config="/a")[0] == "cannot tell"
