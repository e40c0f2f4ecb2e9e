"""Ratios of ``diff --rev`` over 1,000 presets and ``log`` over 10,000 commits.

Run ``python tests/bench/bench_history.py [--keep]``. Whole processes, the median of paired runs;
git processes are counted through git's own trace. Exits 1 where a ratio is beyond the line that is
held.
"""

from __future__ import annotations

import os
import pty
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from measured import Row, keep_figures, print_rows

from support.repositories import ENVIRONMENT, Repo, fast_import

ROUNDS = 7
SCRIPT = Path(sys.executable).with_name("npuprof")
_FOLLOW = ["git", "log", "--follow", "-p", "--"]
NPUPROF = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "npuprof"]


def main() -> int:
    """Measure and print; return 1 where a limit is exceeded."""
    rows = measure_rows()
    keep_figures("history", rows)
    return print_rows(rows)


def measure_rows() -> list[Row]:
    """Return the rows of diffs over 1,000 presets and of logs over 10,000 commits."""
    with tempfile.TemporaryDirectory(prefix="npuprof-bench-") as folder:
        os.environ.pop(
            "PYTHONDONTWRITEBYTECODE", None
        )  # a checkout would compile itself at every start
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "compiled")
        bare = [sys.executable, "-I", "-S", "-c", "pass"]
        many, wide, long = (
            _many(Path(folder) / "many"),
            _wide(Path(folder) / "wide"),
            _long(Path(folder) / "long"),
        )
        rev, tree = (
            [*NPUPROF, "diff", "--rev", "HEAD~1..HEAD"],
            [*NPUPROF, "diff", "--rev", "HEAD~1"],
        )
        rows: list[Row] = [
            Row(
                "diff --rev, 50 of 1,000 presets / git diff --stat",
                _ratio(many, rev, ["git", "diff", "--stat", "HEAD~1..HEAD"]),
                40,
            ),
            Row("git processes of that diff", _processes(many, rev), 4),
            Row(
                "the same against the work tree",
                _ratio(many, tree, ["git", "diff", "--stat", "HEAD~1"]),
                40,
            ),
        ]
        log = [*NPUPROF, "log", "p7", "hccl_timeout"]
        for name in ("p7", "base/b1"):
            title = f"log SPEC KEY, 10,000 commits to 200 presets / git log --follow -p of {name}"
            rows.append(Row(title, _ratio(wide, log, [*_FOLLOW, f"profiles/{name}.toml"], 3), 4))
        follow = [*_FOLLOW, "profiles/base.toml"]
        for key, title in (
            ("hccl_timeout", "each changes it"),
            ("deterministic", "none changes it"),
        ):
            title = f"log SPEC KEY, 10,000 commits to one file, {title} / git log --follow -p"
            rows.append(Row(title, _ratio(long, [*NPUPROF, "log", "leaf", key], follow, 3), 4))
        for repo, name, what, other in (
            (long, "leaf", "one file", "base"),
            (wide, "p7", "200 presets", "p7"),
        ):
            log, follow = [*NPUPROF, "log", name], [*_FOLLOW, f"profiles/{other}.toml"]
            rows.append(
                Row(
                    f"log SPEC, 10,000 commits to {what} / git log --follow -p",
                    _ratio(repo, log, follow, 3),
                    8,
                )
            )
            rows.append(
                Row(
                    "the first line of it on a terminal / bare",
                    _measure_first_line(repo, log) / _median(repo, bare),
                    40,
                )
            )
    return rows


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
    assert done.returncode == 0, done.stderr.decode()
    return took


def _ratio(repo: Repo, ours: Sequence[str], theirs: Sequence[str], rounds: int = ROUNDS) -> float:
    _run(repo, ours), _run(repo, theirs)
    pairs = [(_run(repo, ours), _run(repo, theirs)) for _ in range(rounds)]
    left, right = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(
        (
            f"        {1000 * left:7.1f} ms {' '.join(map(str, ours[-3:]))}; "
            f"{1000 * right:.1f} ms {' '.join(theirs[:3])}"
        ),
        file=sys.stderr,
    )
    return left / right


def _median(repo: Repo, arguments: Sequence[str]) -> float:
    return statistics.median(_run(repo, arguments) for _ in range(ROUNDS))


def _measure_first_line(repo: Repo, arguments: Sequence[str]) -> float:
    """Return how long a terminal waits for the first line of an answer, the median.

    The rest is not waited for.
    """
    return statistics.median(_wait_for_line(repo, arguments) for _ in range(ROUNDS))


def _wait_for_line(repo: Repo, arguments: Sequence[str]) -> float:
    ours, theirs = pty.openpty()
    start = time.perf_counter()
    with subprocess.Popen(
        arguments,
        cwd=repo.folder,
        env={**os.environ, **ENVIRONMENT, "PAGER": "cat"},
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        while b"\n" not in os.read(ours, 4096):
            pass
        took = time.perf_counter() - start
        process.kill()
    os.close(ours)
    return took


def _processes(repo: Repo, arguments: Sequence[str]) -> float:
    trace = repo.folder.parent / "trace"
    _run(repo, arguments, GIT_TRACE2_EVENT=str(trace))
    return float(trace.read_text().count('"event":"start"'))


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


def _many(folder: Path) -> Repo:
    first = {
        f"base/b{number}": f"[profile]\nabstract = true\n[options]\nhccl_timeout = {600 + number}\n"
        for number in range(40)
    }
    first |= {f"team{number % 8}/p{number}": _preset(number, 10) for number in range(960)}
    second = {f"team{number % 8}/p{number}": _preset(number, 20) for number in range(0, 950, 19)}
    made = fast_import(folder, [first, second])
    made.git("gc", "-q")
    return made


def _wide(folder: Path) -> Repo:
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
        for _ in range(9_999):
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


def _long(folder: Path) -> Repo:
    def history() -> Iterator[dict[str, str]]:
        leaf = (
            '[profile]\nextends = ["base"]\n[options]\n'
            'precision_mode_v2 = "fp16"\ndeterministic = 1\n'
        )
        yield {"leaf": leaf, "base": _base(0)}
        for number in range(1, 10_000):
            yield {"base": _base(number)}

    made = fast_import(folder, history())
    made.git("gc", "-q")
    return made


def _base(number: int) -> str:
    return (
        "# what all training presets share\n[profile]\n"
        'abstract = true\nscenario = "training"\n\n[options]\n'
        f"graph_run_mode = 1\nhccl_timeout = {600 + number}\n"
        f"iterations_per_loop = {1 + number // 10}\n"
        'op_select_implmode = "high_precision"\n\n[env]\nHCCL_EXEC_TIMEOUT = 1800\n'
    )


if __name__ == "__main__":
    sys.exit(main())
