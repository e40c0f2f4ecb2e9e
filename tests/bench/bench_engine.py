"""Ratios of the engine: ``render`` and ``env`` against the bare interpreter, 10,000 presets against tomllib, memory.

Run ``python tests/bench/bench_engine.py [--keep]``. A wheel is built and installed into a virtual environment in a temporary
folder, so that what is measured is what users install. Whole processes, the least processor time of runs in turns; "bare" is
the interpreter by its full path with ``-I -S -c pass``. Hydra and Conan are installed beside it for comparison, where pip
can. Exits 1 where a line is not held.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measured import keep_figures

ROOT = Path(__file__).resolve().parent.parent.parent
BARE = [str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"), "-I", "-S", "-c"]
ROUNDS = 25
MANY = 10_000
_PARSE = """
import os, tomllib
for folder, _, names in os.walk("profiles"):
    for name in names:
        tomllib.load(open(f"{folder}/{name}", "rb"))
"""
#: What brings a preset a warning of its own: nothing in it writes files for debugging.
_WARNED = 'debug_dir = "./debug/{number}"\n'
# A child's peak counts what its parent held when it forked, so the child is started by a small process.
_PEAK = """
import os, sys
pid = os.fork()
if not pid:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.execv(sys.argv[1], sys.argv[1:])
print(os.wait4(pid, 0)[2].ru_maxrss)
"""

#: Forty options as a real chain of five would hold them.
_OPTIONS = {
    "root": """
graph_run_mode = 1
enable_exception_dump = 2
hcom_parallel = true
iterations_per_loop = 1
op_compiler_cache_mode = 'enable'
op_compiler_cache_dir = './cache'
hccl_timeout = 1836
stream_sync_timeout = 1900000
event_sync_timeout = -1
deterministic = 0
""",
    "family": """
precision_mode_v2 = 'mixed_float16'
jit_compile = 'auto'
static_memory_policy = 0
atomic_clean_policy = 0
external_weight = false
input_fusion_size = 131072
input_batch_cpy = false
enable_small_channel = 0
use_off_line = true
mix_compile_mode = false
""",
    "cluster": """
hccl_timeout = 1904
stream_sync_timeout = 2000000
op_wait_timeout = 120
op_execute_timeout = 90
is_tailing_optimization = false
topo_sorting_mode = 1
variable_use_1g_huge_page = 0
export_compile_stat = 1
oo_constant_folding = true
all_tensor_not_empty = false
""",
    "model": """
stream_max_parallel_num = 'DNN_VM_AICPU:10,AIcoreEngine:1'
dump_step = '0|5|10'
enable_dump = true
dump_path = '/var/dump'
dump_mode = 'all'
dump_data = 'stats'
profiling_mode = false
dump_layer = 'a b'
""",
}


def main() -> int:
    """Measure and print; return 1 where a line is not held."""
    with tempfile.TemporaryDirectory(prefix="npuprof-bench-") as name:
        folder = Path(name)
        for variable in ("PYTHONDONTWRITEBYTECODE", "NPUPROF_STORE", "NPUPROF_DEBUG"):
            os.environ.pop(variable, None)
        os.environ["HOME"] = os.environ["XDG_CACHE_HOME"] = str(folder)
        npuprof = str(_environment(folder / "venv", [str(_wheel(folder))]) / "npuprof")
        small, many, warned = _small(folder / "small"), _many(folder / "many"), _many(folder / "warned", _WARNED)
        bare = [*BARE, "pass"]
        render = [npuprof, "render", "leaf"]
        rows = [
            ("render SPEC / bare", _ratio(small, render, bare), 2.8, 3.6, False),
            ("env SPEC / bare", _ratio(small, [npuprof, "env", "leaf"], bare), 2.8, 3.6, False),
        ]
        words = (
            "list",
            "show leaf",
            "show leaf --origin",
            "explain leaf hccl_timeout",
            "check",
            "options dump",
            "option hccl_timeout",
            "rule",
            "--help",
        )
        rows += [(f"{line} / bare", _ratio(small, [npuprof, *line.split()], bare, 9), 5, 8, False) for line in words]
        rows.append((f"render, {MANY:,} presets in the store / 5", _ratio(many, render, render, other=small), 1.0, 1.1, False))
        rows.append((f"check of {MANY:,} / tomllib alone", _ratio(many, [npuprof, "check"], [*BARE, _PARSE], 5), 1.5, 2.5, False))
        rows.append(("the same, each with a warning", _ratio(warned, [npuprof, "check"], [*BARE, _PARSE], 5), 2, 3, False))
        rows.append(("render, peak MiB", _peak(small, render), 12, 16, False))
        rows.append((f"check of {MANY:,}, peak MiB", _peak(many, [npuprof, "check"]), 80, 120, False))
        rows += _peers(folder, small, render)
    keep_figures("engine", [(title, found, hold, more) for title, found, _, hold, more in rows])
    bad = False
    for title, found, reach, hold, more in rows:
        held = found >= hold if more else found <= hold
        bad |= not held
        print(f"{found:7.2f}  reach {reach:<4} hold {hold:<4} {'' if held else 'NOT HELD  '}{title}")
    return int(bad)


def _wheel(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)], check=True)
    return next(folder.glob("npuprof-*.whl"))


def _environment(folder: Path, wanted: Sequence[str]) -> Path:
    """Return the folder of commands of a new virtual environment, made by a pip whose scripts start quickly."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--upgrade", "pip"], check=True)
    subprocess.run([*pip, *wanted], check=True)
    return folder / "bin"


def _small(folder: Path) -> Path:
    """Make a store with a chain of five and forty options."""
    store = folder / "profiles"
    store.mkdir(parents=True)
    parent = ""
    for name, options in _OPTIONS.items():
        (store / f"{name}.toml").write_text(f"[profile]\nscenario = 'training'\nextends = [{parent}]\n[options]\n{options}")
        parent = f"'{name}'"
    (store / "leaf.toml").write_text(
        f"[profile]\nextends = [{parent}]\ncann = '>=9.0'\n[options]\ndump_mode = 'input'\ndump_step = '0|7'\n"
    )
    return folder


def _many(folder: Path, more: str = "") -> Path:
    """Make the same store with thousands of leaves beside it, below fifty bases.

    A leaf is as long as the presets that npuprof ships, says things that many say, and some that only it says; ``more``
    are further options of each.
    """
    store = _small(folder) / "profiles"
    for number in range(50):
        text = f"[profile]\nextends = ['model']\ndescription = 'base {number}'\n[options]\nhccl_timeout = {1972 + 68 * (number % 20)}\n"
        (store / f"base{number}.toml").write_text(f"{text}stream_sync_timeout = {4_000_000 + number}\ndeterministic = 1\n")
    for number in range(MANY - 55):
        (store / f"job{number}.toml").write_text(
            f"""\
[profile]
description = "Use it for job {number} of the nightly training, on one server with eight devices."
extends = ["base{number % 50}"]
owner = "team-{number % 7}"
scenario = "training"
cann = ">=9.0"
products = ["atlas-a2", "atlas-a3"]

[options]
jit_compile = "{("true", "false")[number % 2]}" # text, not a boolean
op_wait_timeout = {200 + number % 50}           # seconds
input_fusion_size = {1024 * (1 + number % 64)}
# Where the operators of this job are dumped; nobody else writes there.
dump_path = "./dump/{number}"
{more.format(number=number)}
[env]
JOB_NAME = "job-{number}"
TE_PARALLEL_COMPILER = {8 + number % 8}
"""
        )
    return folder


def _ratio(folder: Path, words: Sequence[str], against: Sequence[str], rounds: int = ROUNDS, other: Path | None = None) -> float:
    """Return the least processor time of one command over that of another, which runs in ``other``: what else runs only adds."""
    pairs = [(_time(folder, words), _time(other or folder, against)) for _ in range(rounds + 1)]
    return min(first for first, _ in pairs) / min(second for _, second in pairs)


def _time(folder: Path, words: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr.decode()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _peak(folder: Path, words: Sequence[str]) -> float:
    """Return the peak memory of a command in MiB, the least of three runs."""
    runs = [subprocess.run([*BARE, _PEAK, *words], cwd=folder, stdout=subprocess.PIPE, check=True) for _ in range(3)]
    return min(int(run.stdout) for run in runs) / 1024


def _peers(folder: Path, small: Path, render: Sequence[str]) -> list[tuple[str, float, float, float, bool]]:
    """Return how long others take for the same preset; what cannot be installed is left out and said."""
    rows: list[tuple[str, float, float, float, bool]] = []
    for title, package, make, reach, hold in (("Hydra", "hydra-core", _hydra, 9, 7), ("Conan", "conan", _conan, 10, 8)):
        try:
            commands = _environment(folder / package, [package])
        except subprocess.CalledProcessError:
            print(f"left out: {title} could not be installed")
            continue
        home, words = make(folder / f"{package}-files", commands)
        rows.append((f"{title} / render", _ratio(home, words, render, 9, small), reach, hold, True))
    return rows


def _pairs() -> dict[str, list[tuple[str, str]]]:
    return {name: [tuple(line.split(" = ", 1)) for line in text.split("\n") if line] for name, text in _OPTIONS.items()}  # type: ignore[misc]


def _hydra(folder: Path, commands: Path) -> tuple[Path, list[str]]:
    """Write the chain as YAML files, each with the one below it in its defaults."""
    folder.mkdir()
    parent = ""
    for name, pairs in _pairs().items():
        head = f"defaults:\n  - {parent}\n  - _self_\n" if parent else ""
        (folder / f"{name}.yaml").write_text(head + "".join(f"{key}: {value}\n" for key, value in pairs))
        parent = name
    (folder / "leaf.yaml").write_text(f"defaults:\n  - {parent}\n  - _self_\ndump_mode: input\n")
    (folder / "app.py").write_text(
        "import hydra\n@hydra.main(version_base=None, config_path='.', config_name='leaf')\ndef app(config):\n    pass\napp()\n"
    )
    return folder, [str(commands / "python"), "app.py", "--cfg", "job"]


def _conan(folder: Path, commands: Path) -> tuple[Path, list[str]]:
    """Write the chain as Conan profiles that include each other, the options as its ``[conf]``."""
    folder.mkdir()
    os.environ["CONAN_HOME"] = str(folder / "home")
    parent = ""
    for name, pairs in _pairs().items():
        body = "".join(f"user.npu:{key}={value}\n" for key, value in pairs)
        (folder / name).write_text((f"include(./{parent})\n" if parent else "") + f"[conf]\n{body}")
        parent = name
    (folder / "leaf").write_text(f"include(./{parent})\n[conf]\nuser.npu:dump_mode='input'\n")
    leaf = str(folder / "leaf")
    return folder, [str(commands / "conan"), "profile", "show", "-pr:h", leaf, "-pr:b", leaf]


if __name__ == "__main__":
    if not shutil.which(BARE[0]):
        BARE[0] = sys.executable
    sys.exit(main())
