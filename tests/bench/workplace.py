"""What the rows of a benchmark share: an installed wheel, stores, and runs of commands."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parent.parent.parent
_FULL = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
#: The interpreter by its full path: a name on PATH may be the script of a version manager.
BARE = [str(_FULL if _FULL.exists() else sys.executable), "-I", "-S", "-c"]
BARE_RUN = [*BARE, "pass"]
#: What a reduced run divides sizes by.
REDUCTION = 10
# A child's peak counts what its parent held when it forked, so the child is started by a small
# process.
_METER = """
import os, sys, time
start = time.monotonic()
pid = os.fork()
if not pid:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
clock = time.monotonic() - start
code = os.waitstatus_to_exitcode(status)
print(usage.ru_utime, usage.ru_stime, clock, usage.ru_maxrss / 1024, code)
"""
Made = TypeVar("Made")


class Usage(NamedTuple):
    """What a command took: seconds of processor time and by the clock, peak memory in MiB.

    The peak is that of its largest process.
    """

    user: float
    system: float
    clock: float
    peak: float

    @property
    def cpu(self) -> float:
        return self.user + self.system


class Workplace:
    """A folder for one run. Things are made when the first row needs them.

    A reduced run has smaller stores and trees, and measures once: its figures only show that rows
    can be measured.
    """

    def __init__(self, folder: Path, is_reduced: bool, clones: str | None, cache: Path) -> None:
        self.folder, self.is_reduced = folder, is_reduced
        self.clones, self.cache = clones, cache
        self._made: dict[object, object] = {}

    @cached_property
    def npuprof(self) -> str:
        """The installed command: a wheel of this checkout, so that users have the same."""
        pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(self.folder)]
        subprocess.run([*pip, str(ROOT)], check=True)
        wheel = next(self.folder.glob("npuprof-*.whl"))
        return str(_create_environment(self.folder / "venv", f"{wheel}[site]") / "npuprof")

    @cached_property
    def repository(self) -> Path:
        """A clone of this repository, in one pack, as from a server."""
        folder = self.folder / "repository"
        subprocess.run(["git", "clone", "-q", "--no-local", str(ROOT), str(folder)], check=True)
        return folder

    def size(self, number: int) -> int:
        return number // REDUCTION if self.is_reduced else number

    def rounds(self, number: int) -> int:
        return 1 if self.is_reduced else number

    def make(self, name: str, build: Callable[[Path], Made]) -> Made:
        """Return what ``build`` makes of a new folder; for the same name, make it once."""
        if name not in self._made:
            self._made[name] = build(self.folder / name)
        return self._made[name]  # type: ignore[return-value]

    def install(self, package: str) -> Path | None:
        """Return the folder of commands of an installed package, None if pip cannot install it."""
        return self.make(package, lambda folder: _install(folder, package))

    def compare(
        self,
        folder: Path,
        arguments: Sequence[str],
        against: Sequence[str],
        rounds: int = 15,
        other: Path | None = None,
    ) -> float:
        """Return the least processor time of one command over that of another, run in turns.

        The other command runs in ``other``. Other load can only add to a time.
        """
        pairs = [
            (time_command(folder, arguments), time_command(other or folder, against))
            for _ in range(self.rounds(rounds + 1))
        ]
        return min(first for first, _ in pairs) / min(second for _, second in pairs)

    def take_least(
        self, folder: Path, arguments: Sequence[str], rounds: int = 3, codes: Sequence[int] = (0,)
    ) -> Usage:
        """Return the least usage of some runs."""
        runs = [run_metered(folder, arguments, codes) for _ in range(self.rounds(rounds))]
        return find_least(runs)


def find_least(runs: Sequence[Usage]) -> Usage:
    return Usage(*map(min, zip(*runs, strict=True)))


def run_metered(folder: Path, arguments: Sequence[str], codes: Sequence[int] = (0,)) -> Usage:
    """Return the usage of a command with its children; raise if it exits with none of ``codes``."""
    done = subprocess.run([*BARE, _METER, *arguments], cwd=folder, capture_output=True, check=True)
    *figures, code = map(float, done.stdout.split())
    if code not in codes:
        raise RuntimeError(f"{' '.join(arguments)}: exit {code:g}")
    return Usage(*figures)


def time_command(folder: Path, arguments: Sequence[str]) -> float:
    """Return the seconds of processor time of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr.decode()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def one_core() -> Iterator[None]:
    """Run what is started in the block on one core: busy cores slow each other down."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _create_environment(folder: Path, wanted: str) -> Path:
    """Return the folder of commands of a new virtual environment.

    Its pip writes scripts that start quickly.
    """
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--upgrade", "pip"], check=True)
    subprocess.run([*pip, wanted], check=True)
    return folder / "bin"


def _install(folder: Path, package: str) -> Path | None:
    try:
        return _create_environment(folder, package)
    except subprocess.CalledProcessError:
        return None
