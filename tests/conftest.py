"""Fixtures for stores, the command in this process, golden files and an empty home."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from npuprof.__main__ import _NEW_OBJECTS
from support.browsing import open_browser
from support.building import REPOSITORY, Checkout, build_store
from support.case_ids import pytest_make_parametrize_id  # noqa: F401
from support.lanes import (  # noqa: F401
    ACCEPT,
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_make_collect_report,
    pytest_pycollect_makeitem,
    pytest_runtest_logreport,
    pytest_runtest_logstart,
    pytest_runtest_makereport,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_xdist_auto_num_workers,
)
from support.repositories import ENVIRONMENT, Repo
from support.running import Result, Run, Store
from support.teams import Shared, Team, copy_shared, copy_team

GOLDEN = Path(__file__).parent / "golden"

settings.register_profile(
    "npuprof",
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
    database=None,
)
settings.register_profile("fast", settings.get_profile("npuprof"), max_examples=8)
settings.register_profile(
    "nightly",
    settings.get_profile("npuprof"),
    max_examples=500,
    derandomize=False,
    print_blob=True,
    database=DirectoryBasedExampleDatabase(
        REPOSITORY / ".hypothesis" / "examples"
    ),  # what failed is tried first the next time
)
settings.load_profile("npuprof")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # collecting thousands of tests makes no garbage
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # a shell that runs the tests in the background hands that on to all commands
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers",
        "nightly(gate): runs with --nightly only; FILE::FUNCTION stands for it in the gate",
    )
    config.addinivalue_line(
        "markers",
        "at_night: one of the rows that run with --nightly only; lanes.more_at_night marks them",
    )
    config.addinivalue_line("markers", "accepted: compares with what was accepted before")
    if config.getoption("--fast"):
        settings.load_profile("fast")
    if config.getoption("--nightly"):
        settings.load_profile("nightly")
        config.option.timeout = 1800


def pytest_collection_finish() -> None:
    """Look for garbage as the command does, and not among the tests."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(_NEW_OBJECTS, 5, 5)


#: How many open files there may be before repositories that nobody holds any more are asked to give
#: theirs back.
_files = {"most": 150}


def pytest_runtest_logfinish() -> None:
    """Collect garbage if this process has many open files.

    git's reader of a repository keeps its files open until it is collected.
    """
    if len(os.listdir("/dev/fd")) > _files["most"]:
        gc.collect()
        _files["most"] = len(os.listdir("/dev/fd")) + 100


@pytest.fixture(scope="session", autouse=True)
def kept_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the user's home out of what several tests share, which is made before any of them."""
    home = tmp_path_factory.mktemp("shared-home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            patch.delenv(name, raising=False)
        yield home


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's home, cache, git settings and launcher out of every test."""
    for name in list(os.environ):
        if name.startswith(("NPUPROF", "GIT_", "SLURM_", "OMPI_", "PMI")) or name in (
            "NO_COLOR",
            "RANK",
            "RANK_ID",
            "RANK_SIZE",
        ):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_TEST_FSYNC", "0")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Build ``profiles/`` in the current folder from names and texts."""
    return lambda presets: build_store(tmp_path / "profiles", presets)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process: ``run("show", "leaf", stdin=b"")``."""
    from npuprof.__main__ import main

    def command(*arguments: str | Path, stdin: bytes = b"") -> Result:
        out, err = io.BytesIO(), io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8", newline="\n"))
            patch.setattr(
                sys,
                "stderr",
                io.TextIOWrapper(err, encoding="utf-8", newline="\n", errors="backslashreplace"),
            )
            code = main([str(argument) for argument in arguments])
            sys.stdout.flush()
            sys.stderr.flush()
            return Result(
                code, out.getvalue().decode(errors="surrogateescape"), err.getvalue().decode()
            )

    return command


#: The verbs that export what a preset sets.
EXPORTING = ("env", "run", "inject", "adopt", "bisect", "sweep")


@pytest.fixture
def trusting_run(run: Run) -> Run:
    """Run the command as a user who trusts what presets set.

    Tests use it for variables that the catalogue does not contain.
    """

    def command(*arguments: str | Path, stdin: bytes = b"") -> Result:
        more = ["--trust"] if arguments[0] in EXPORTING else []
        return run(arguments[0], *more, *arguments[1:], stdin=stdin)

    return command


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a file below ``tests/golden``; ``--update-golden`` accepts it."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        assert path.exists(), f"{path} is missing; {ACCEPT}"
        assert text == path.read_bytes().decode(), f"{name} has changed; {ACCEPT}"

    return compare


@pytest.fixture(scope="session")
def tensorflow() -> Any:
    """TensorFlow, imported once and quietly.

    Tests that need it are skipped where it is not installed.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium of the machine, started once."""
    yield from open_browser()


@pytest.fixture
def shipped() -> Path:
    """The presets of this repository."""
    return REPOSITORY / "profiles"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A copy of the package that a test may change."""
    return Checkout(tmp_path / "checkout")


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committer: None) -> Repo:
    """Make an empty repository with a fixed author, and work in it."""
    made = Repo(tmp_path / "repo")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Team:
    """Presets of a team, published as 1.0.0.

    The one that the test's repository uses, if it has one.
    """
    shared = [name for name in request.fixturenames if name.startswith("shared")]
    found: Team = request.getfixturevalue(shared[0]).team if shared else copy_team(tmp_path)
    return found


@pytest.fixture
def committer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixed author for all that git commits."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def shared(tmp_path: Path, run: Run, committer: None) -> Shared:
    """A team, and a repository that uses its presets at 1.0.0."""
    return copy_shared(tmp_path, run)


@pytest.fixture
def app(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository that uses the team's presets, at 1.0.0."""
    monkeypatch.chdir(shared.app.folder)
    return shared.app
