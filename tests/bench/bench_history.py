"""What ``diff`` of revisions over many presets and ``log`` over 10,000 commits cost.

Rows of ``bench_all.py``. Whole processes, the median of paired runs by the clock; git processes are
counted through git's own trace.
"""

from __future__ import annotations

import os
import pty
import random
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.measured import Goal
from bench.workplace import BARE_RUN, Workplace

from support.repositories import ENVIRONMENT, Repo, fast_import

ROUNDS = 7
COMMITS = 10_000
_FOLLOW = ["git", "log", "--follow", "-p", "--"]


def _compare_revisions(place: Workplace, revisions: str) -> float:
    ours = [place.npuprof, "diff", "--rev", revisions]
    theirs = ["git", "diff", "--stat", revisions]
    return _ratio(place, place.make("revisions", _make_many), ours, theirs)


def _count_processes(place: Workplace) -> float:
    repo, trace = place.make("revisions", _make_many), place.folder / "trace"
    command = [place.npuprof, "diff", "--rev", "HEAD~1..HEAD"]
    _run(repo, command, GIT_TRACE2_EVENT=str(trace))
    return float(trace.read_text().count('"event":"start"'))


def _compare_base_change(place: Workplace) -> float:
    """Return what ``diff`` takes after a base of 3,000 dependents changed, over before."""
    changed, unchanged = (
        place.make(name, partial(_make_dependents, number=place.size(3_000), is_changed=changes))
        for name, changes in (("changed", True), ("unchanged", False))
    )
    command = [place.npuprof, "diff"]
    return place.compare(changed.folder, command, command, 5, unchanged.folder)


def _compare_log(
    place: Workplace, name: str, build: Callable[[Path, int], Repo], ours: str, theirs: str
) -> float:
    """Return what ``npuprof log`` takes in a long history, over ``git log`` of one of its files."""
    repo = place.make(name, lambda folder: build(folder, place.size(COMMITS)))
    log = [place.npuprof, "log", *ours.split()]
    return _ratio(place, repo, log, [*_FOLLOW, f"profiles/{theirs}.toml"], 3)


def _compare_first_line(
    place: Workplace, name: str, build: Callable[[Path, int], Repo], spec: str
) -> float:
    """Return how long a terminal waits for the first line of a log, over a bare interpreter.

    The rest is not waited for.
    """
    repo = place.make(name, lambda folder: build(folder, place.size(COMMITS)))
    rounds = range(place.rounds(ROUNDS))
    log = [place.npuprof, "log", spec]
    waited = statistics.median(wait_for_output(repo.folder, log, b"\n") for _ in rounds)
    return waited / statistics.median(_run(repo, BARE_RUN) for _ in rounds)


def wait_for_output(folder: Path, arguments: Sequence[str], wanted: bytes) -> float:
    """Return the seconds until a command writes ``wanted`` to its terminal, and end it then.

    A command that ends before it writes this counts with all its time.
    """
    ours, theirs = pty.openpty()
    start = time.perf_counter()
    with subprocess.Popen(
        arguments,
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, "PAGER": "cat"},
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            while wanted not in os.read(ours, 4096):
                pass
        except OSError:  # the other end is closed
            pass
        took = time.perf_counter() - start
        os.killpg(process.pid, signal.SIGKILL)
    os.close(ours)
    return took


def _run(repo: Repo, arguments: Sequence[str], **more: str) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        arguments,
        cwd=repo.folder,
        env={**os.environ, **ENVIRONMENT, **more},
        capture_output=True,
        check=False,
    )
    took = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.decode()}")
    return took


def _ratio(
    place: Workplace, repo: Repo, ours: Sequence[str], theirs: Sequence[str], rounds: int = ROUNDS
) -> float:
    _run(repo, ours), _run(repo, theirs)
    pairs = [(_run(repo, ours), _run(repo, theirs)) for _ in range(place.rounds(rounds))]
    left, right = (statistics.median(times) for times in zip(*pairs, strict=True))
    return left / right


def _preset(number: int, loops: int) -> str:
    return (
        f'[profile]\ndescription = "preset {number}"\n'
        f'extends = ["base/b{number % 20}", "base/b{(number % 20) + 20}"]\n'
        f'scenario = "training"\n\n[options]\niterations_per_loop = {loops}\n'
        "enable_data_pre_proc = true\n"
        'precision_mode_v2 = "mixed_float16"\nop_select_implmode = "high_precision"\n'
        f'dump_path = "/tmp/{number}"\n'
        '\n[options.modify_mixlist]\nblack-list = { to-add = ["MatMul", "Cast"] }\n'
        "\n[env]\nHCCL_EXEC_TIMEOUT = 1800\n"
    )


def _make_many(folder: Path) -> Repo:
    first = {
        f"base/b{number}": f"[profile]\nabstract = true\n[options]\nhccl_timeout = {600 + number}\n"
        for number in range(40)
    }
    first |= {f"team{number % 8}/p{number}": _preset(number, 10) for number in range(960)}
    second = {f"team{number % 8}/p{number}": _preset(number, 20) for number in range(0, 950, 19)}
    made = fast_import(folder, [first, second])
    made.git("gc", "-q")
    return made


def _make_wide(folder: Path, commits: int) -> Repo:
    dice = random.Random(1)
    loops = [10] * 200
    timeouts = [600] * 10

    def base(number: int) -> dict[str, str]:
        options = f"[options]\nhccl_timeout = {timeouts[number]}\n"
        return {f"base/b{number}": f"[profile]\nabstract = true\n{options}"}

    def leaf(number: int) -> dict[str, str]:
        text = _preset(number, loops[number]).replace(
            f'"base/b{number % 20}", "base/b{(number % 20) + 20}"', f'"base/b{number % 10}"'
        )
        return {f"p{number}": text}

    def history() -> Iterator[dict[str, str]]:
        yield {name: text for number in range(200) for name, text in leaf(number).items()} | {
            name: text for number in range(10) for name, text in base(number).items()
        }
        for _ in range(commits - 1):
            if dice.random() < 0.05:
                number = dice.randrange(10)
                timeouts[number] += 1
                yield base(number)
            else:
                number = dice.randrange(200)
                loops[number] += 1
                yield leaf(number)

    made = fast_import(folder, history())
    made.git("gc", "-q")
    return made


def _make_dependents(folder: Path, number: int, is_changed: bool) -> Repo:
    """Make a repository in which many presets extend one base, which the work tree may change."""

    def base(timeout: int) -> dict[str, str]:
        options = f"[options]\nhccl_timeout = {timeout}\n"
        return {"base": f"[profile]\nscenario = 'training'\n{options}"}

    heirs = {
        f"job{job}": f"[profile]\nextends = ['base']\n[options]\nop_wait_timeout = {200 + job}\n"
        for job in range(number)
    }
    made = fast_import(folder, [{**base(1972), **heirs}])
    made.git("gc", "-q")
    made.write(base(2040 if is_changed else 1972))
    return made


def _make_long(folder: Path, commits: int, write: Callable[[int], str]) -> Repo:
    """Make a history of one base, whose text each commit changes, and a preset that extends it."""
    leaf = (
        '[profile]\nextends = ["base"]\n[options]\nprecision_mode_v2 = "fp16"\ndeterministic = 1\n'
    )

    def history() -> Iterator[dict[str, str]]:
        yield {"leaf": leaf, "base": write(0)}
        for number in range(1, commits):
            yield {"base": write(number)}

    made = fast_import(folder, history())
    made.git("gc", "-q")
    return made


def _write_base(
    number: int, timeout: int = 600, comment: str = "all presets", above: str = "", mixed: str = ""
) -> str:
    return (
        f"# what {comment} share\n[profile]\n"
        'abstract = true\nscenario = "training"\n\n[options]\n'
        f"graph_run_mode = 1\n{above}hccl_timeout = {timeout}\n"
        f"iterations_per_loop = {1 + number // 10}\n"
        f'op_select_implmode = "high_precision"\n{mixed}\n[env]\nHCCL_EXEC_TIMEOUT = 1800\n'
    )


def _write_plain(number: int) -> str:
    return _write_base(number, timeout=600 + number)


def _write_line_above(number: int) -> str:
    return _write_base(number, above="jit_compile = 'auto'\n" * (number % 2))


def _write_comment(number: int) -> str:
    return _write_base(number, comment=f"all {number} presets")


def _write_structured(number: int) -> str:
    mixed = f"modify_mixlist = {{ black-list = {{ to-add = ['MatMul', 'Cast{number}'] }} }}\n"
    return _write_base(number, mixed=mixed)


_LONG = partial(_make_long, write=_write_plain)
#: What each commit of a history of one base changes, and the key that is asked for.
_OTHER_EDITS = (
    ("a line above changed", _write_line_above, "hccl_timeout"),
    ("a comment changed", _write_comment, "hccl_timeout"),
    ("a structured value changed", _write_structured, "modify_mixlist"),
)
GOALS = (
    Goal(
        "diff --rev, 50 of 1,000 presets / git diff --stat",
        40,
        partial(_compare_revisions, revisions="HEAD~1..HEAD"),
    ),
    Goal("git processes of that diff", 4, _count_processes),
    Goal(
        "the same against the work tree / git diff --stat",
        40,
        partial(_compare_revisions, revisions="HEAD~1"),
    ),
    Goal("diff after a base with 3,000 dependents changed / unchanged", 3, _compare_base_change),
    *(
        Goal(
            f"log SPEC KEY, 10,000 commits to 200 presets / git log --follow -p of {name}",
            4,
            lambda place, name=name: _compare_log(
                place, "wide", _make_wide, "p7 hccl_timeout", name
            ),
        )
        for name in ("p7", "base/b1")
    ),
    *(
        Goal(
            f"log SPEC KEY, 10,000 commits to one file, {what} / git log --follow -p",
            4,
            lambda place, key=key: _compare_log(place, "long", _LONG, f"leaf {key}", "base"),
        )
        for key, what in (
            ("hccl_timeout", "each changes it"),
            ("deterministic", "none changes it"),
        )
    ),
    *(
        Goal(
            f"log SPEC KEY, 10,000 commits, {what} / git log --follow -p",
            8,
            lambda place, what=what, write=write, key=key: _compare_log(
                place, what, partial(_make_long, write=write), f"leaf {key}", "base"
            ),
        )
        for what, write, key in _OTHER_EDITS
    ),
    Goal(
        "log SPEC, 10,000 commits to one file / git log --follow -p",
        8,
        lambda place: _compare_log(place, "long", _LONG, "leaf", "base"),
    ),
    Goal(
        "log SPEC, 10,000 commits to 200 presets / git log --follow -p",
        8,
        lambda place: _compare_log(place, "wide", _make_wide, "p7", "p7"),
    ),
    Goal(
        "log on a terminal, one file: first line / bare",
        40,
        lambda place: _compare_first_line(place, "long", _LONG, "leaf"),
    ),
    Goal(
        "log on a terminal, 200 presets: first line / bare",
        40,
        lambda place: _compare_first_line(place, "wide", _make_wide, "p7"),
    ),
)
