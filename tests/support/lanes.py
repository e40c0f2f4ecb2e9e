"""Which tests run: the fast lane, the gate, the nightly lane; on how many processes.

And what may be left out.

The gate is what ``python -m pytest`` runs. ``--fast`` runs what of it is done in a moment, by the
durations that are kept in ``durations.tsv``. ``--nightly`` runs what takes long: tests marked
``nightly``, and all property tests with many fresh examples.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from textwrap import shorten
from typing import TypeVar

import pytest

R = TypeVar("R", pytest.TestReport, pytest.CollectReport)
TESTS = Path(__file__).parents[1]
DURATIONS = TESTS / "durations.tsv"
#: What a test says that compares with something accepted before.
ACCEPT = "where that is meant to be: python -m pytest --update-golden"
#: How long the tests of the fast lane may take together, one after the other, in seconds.
FAST_BUDGET = 20
#: Why a test may be skipped where CI runs it, with what its skip says then. A skip that says
#: anything else fails there.
MAY_BE_SKIPPED = {
    "the program is in none of the registries that CI reaches": (
        "pwsh is not installed",
        "pyright is not installed",
    ),
    "CI is root, whom no rights stop": (
        "root may write everywhere",
        "root writes everywhere",
        "root reads everything",
    ),
    "CI is not root": (
        "only root can give a folder away",
        "can be made by root only",
        "are started as root only",
        "can be mounted here",
    ),
    "CI has macOS too": (
        "the system does not show processes",
        "the system limits no memory of another process",
        "names of files are text here",
        "bash is older than 4",
    ),
    "CI reaches the package index by pip alone": ("no source distribution in reach",),
    "CI has a shallow clone": ("this checkout does not reach back to",),
    "the host of a public tree may be down for a night": ("cannot be fetched: no commit",),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="accept what is written now as golden files"
    )
    lanes = parser.getgroup("lanes")
    lanes.addoption(
        "--fast", action="store_true", help="run what is done in a moment, for every save"
    )
    lanes.addoption(
        "--nightly",
        action="store_true",
        help="run what takes long: property tests with many examples, full products",
    )
    lanes.addoption(
        "--keep-durations",
        action="store_true",
        help=f"write the CPU seconds of each test to {DURATIONS.name}",
    )


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return None for one process a core, or 0 for this process alone.

    It is 0 if files or tests are named, or if files are written.
    """
    is_whole = config.args_source is not config.ArgsSource.ARGS or any(
        Path(argument).is_dir() for argument in config.args
    )
    return None if is_whole and not config.getoption("--update-golden") else 0


def more_at_night(gate: Iterable[object], nightly: Iterable[object]) -> list[object]:
    """Return the rows of a test: of those of the night the ones of the gate are a sample."""
    return [
        *gate,
        *(
            pytest.param(*(row if type(row) is tuple else (row,)), marks=pytest.mark.at_night)
            for row in nightly
        ),
    ]


def rest_at_night(one_in: int, rows: Iterable[object]) -> list[object]:
    """Return the rows of a test: the first, and one in so many after it, are those of the gate."""
    listed = list(rows)
    nightly = [row for number, row in enumerate(listed) if number % one_in]
    return more_at_night(listed[::one_in], nightly)


# -- lanes ----------------------------------------------------------------------------------------


def read_durations() -> dict[str, float]:
    """Return the CPU seconds of the tests of each function, by ``FILE::FUNCTION``."""
    rows = (
        [line.split("\t") for line in DURATIONS.read_text().splitlines()]
        if DURATIONS.exists()
        else []
    )
    return {name: float(seconds) for seconds, name in rows}


@cache
def find_slow() -> frozenset[str]:
    """Return the functions that are too slow for the fast lane.

    The others fit into its budget together.
    """
    left = float(FAST_BUDGET)
    slow = []
    for name, seconds in sorted(read_durations().items(), key=lambda row: (row[1], row[0])):
        left -= seconds
        if left < 0:
            slow.append(name)
    return frozenset(slow)


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str
) -> list[pytest.Item] | None:
    """Make no rows of a function that the fast lane leaves out."""
    if (
        collector.config.getoption("--fast")
        and f"{collector.path.relative_to(TESTS).as_posix()}::{name}" in find_slow()
    ):
        return []
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the lane; accept with those that compare and no others."""
    nightly = config.getoption("--nightly")

    def is_wanted(item: pytest.Item) -> bool:
        if config.getoption("--update-golden"):
            if item.get_closest_marker("nightly") and not nightly:
                return False
            return bool(item.get_closest_marker("accepted")) or "golden" in getattr(
                item, "fixturenames", ()
            )
        if config.getoption("--fast") and "tensorflow" in getattr(item, "fixturenames", ()):
            return False
        if item.get_closest_marker("nightly") or item.get_closest_marker("at_night"):
            return bool(nightly)
        return not nightly or bool(getattr(getattr(item, "obj", None), "is_hypothesis_test", False))

    kept = [item for item in items if is_wanted(item)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if not is_wanted(item)])
        items[:] = kept


# -- shares of the suite's CPU --------------------------------------------------------------------

_TAKEN: dict[str, float] = defaultdict(float)
#: A file may take this many times its kept share of the CPU, or so many percentage points more.
MOST_TIMES, MOST_PERCENT = 1.5, 4.0
_clock = [0.0]


def take_cpu() -> float:
    """Return the CPU seconds of this process and its ended children since the last call."""
    before, _clock[0] = _clock[0], sum(os.times()[:4])
    return _clock[0] - before


def sum_shares(durations: dict[str, float]) -> dict[str, float]:
    """Return how many percent of all seconds each file has."""
    files: dict[str, float] = defaultdict(float)
    for name, seconds in durations.items():
        files[name.partition("::")[0]] += seconds
    total = sum(files.values()) or 1.0
    return {file: 100 * seconds / total for file, seconds in files.items()}


def find_excesses(taken: dict[str, float], kept: dict[str, float]) -> list[str]:
    """Return a line for each file that takes more than its share of the CPU.

    None if a tenth of the tests did not run.
    """
    if len(taken.keys() & kept.keys()) < 0.9 * len(kept):
        return []
    shares = sum_shares(kept)
    return [
        (
            f"{file} takes {share:.1f} % of the CPU of all tests, kept are "
            f"{shares.get(file, 0.0):.1f} %"
        )
        for file, share in sorted(sum_shares(taken).items())
        if share > max(MOST_TIMES * shares.get(file, 0.0), shares.get(file, 0.0) + MOST_PERCENT)
    ]


def pytest_runtest_logstart() -> None:
    take_cpu()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the CPU of a test without its teardown.

    The teardown of the last test of a process includes that of session fixtures.
    """
    if report.when == "teardown":
        return
    path, _, name = report.nodeid.partition("::")
    _TAKEN[f"{path.removeprefix('tests/')}::{name.partition('[')[0]}"] += getattr(
        report, "cpu", 0.0
    )


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Write the CPU seconds of the tests, or fail if a file takes too much of the gate."""
    config = session.config
    lane = config.getoption("--fast") or config.getoption("--nightly")
    is_whole = config.args_source is not config.ArgsSource.ARGS and not lane
    if not hasattr(config, "workerinput"):
        if config.getoption("--keep-durations"):
            kept = {**({} if is_whole else read_durations()), **_TAKEN}
            DURATIONS.write_text(
                "".join(f"{seconds:.2f}\t{name}\n" for name, seconds in sorted(kept.items()))
            )
        elif (
            is_whole
            and session.exitstatus == pytest.ExitCode.OK
            and (excesses := find_excesses(_TAKEN, read_durations()))
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            hint = "make them cheaper, or accept that: python -m pytest --keep-durations"
            config.stash[_EXCESSES] = [*excesses, hint]
    return (yield)


_EXCESSES = pytest.StashKey[list[str]]()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for line in config.stash.get(_EXCESSES, []):
        terminalreporter.write_line(line, red=True)
    reasons = [find_skip_reason(report) for report in terminalreporter.stats.get("skipped", ())]
    if reasons and not os.environ.get("CI"):
        terminalreporter.write_line(format_skips(reasons), yellow=True)


# -- skips ----------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say what CPU a phase of a test took.

    Let a test that is skipped for no listed reason fail where CI runs it.
    """
    report = yield
    report.cpu = take_cpu()
    return _judge_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same of a file."""
    return _judge_skip((yield))


_MISSING = re.compile(
    r"could not import '(?P<module>\w+)|no (?P<name>\S+)(?: on this machine| from npm)?$"
    r"|(?P<program>.+) is not (?:installed|here)|not here: (?P<programs>.+)"
)


def find_skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    _, _, reason = (
        report.longrepr if isinstance(report.longrepr, tuple) else ("", 0, str(report.longrepr))
    )
    return reason.removeprefix("Skipped: ")


def format_skips(reasons: Sequence[str]) -> str:
    """Return a line that counts skipped tests and names what is missing, frequent first."""
    missing: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for reason in reasons:
        match = _MISSING.match(reason)
        if match and match.lastgroup:
            missing[f"no {match[match.lastgroup]}"] += 1
        else:
            others[shorten(reason, 60)] += 1
    named = ", ".join(name for counts in (others, missing) for name, _ in counts.most_common())
    advice = "; `.ci/run` installs them" if missing else ""
    tests = "1 test" if len(reasons) == 1 else f"{len(reasons)} tests"
    return f"{tests} skipped: {named}{advice}"


def _judge_skip(report: R) -> R:
    if os.environ.get("CI") and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = find_skip_reason(report)
        words = re.findall(r"[\w+-]+", reason.casefold())
        left_out = os.environ.get("TESTS_WITHOUT", "").split()  # what `.ci/run` cannot have here
        listed = any(allowed in reason for allowed in chain(*MAY_BE_SKIPPED.values()))
        if not listed and set(left_out).isdisjoint(words):
            report.outcome = "failed"
            report.longrepr = (
                f"{reason}\nIn CI that is no reason to skip it: "
                f"see MAY_BE_SKIPPED in {Path(__file__).name}."
            )
    return report
