"""What commands cost: the whole table of limits, in one run.

Run ``python tests/bench/bench_engine.py [--keep] [--tree FOLDER]``. A wheel is built and installed
into a virtual environment in a temporary folder, so that what is measured is what users install;
commands run in a clone of this repository and in stores made for it. Whole processes, the least
processor time of runs in turns; "bare" is the interpreter by its full path with ``-I -S -c pass``.
Hydra, Conan, check-jsonschema, taplo and ruff are installed for comparison, where pip can. The rows
of ``bench_history`` follow, and with ``--tree`` those of ``scan`` over the real files of a folder.
Exits 1 where a limit is exceeded.
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

import bench_history
import bench_scan
from measured import Row, keep_figures, print_rows

ROOT = Path(__file__).resolve().parent.parent.parent
BARE = [
    str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"),
    "-I",
    "-S",
    "-c",
]
BARE_RUN = [*BARE, "pass"]
ROUNDS = 15
MANY = 10_000
_PARSE = """
import os, tomllib
for folder, _, names in os.walk("profiles"):
    for name in names:
        tomllib.load(open(f"{folder}/{name}", "rb"))
"""
#: What brings a preset a warning of its own: nothing in it writes files for debugging.
_WARNED = 'debug_dir = "./debug/{number}"\n'
# A child's peak counts what its parent held when it forked, so the child is started by a small
# process.
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


#: Commands in this repository, with their limits in multiples of the bare interpreter.
_COMMANDS = (
    ("render bert-training", 4.2),
    ("env bert-training", 4.2),
    ("show bert-training", 4.0),
    ("option hccl_timeout", 3.8),
    ("list", 5.2),
    ("check", 8),
    ("explain bert-training precision_mode_v2", 7),
    ("diff bert-training resnet-inference-fp16", 7),
    ("--help", 7),
)
#: What a shell completes: a preset, a key, a value, a revision.
_COMPLETIONS = (
    ("preset", "npuprof show bert-t"),
    ("key", "npuprof set bert-training hccl_"),
    ("value", "npuprof set bert-training precision_mode_v2="),
    ("revision", "npuprof show bert-training@"),
)
_COUNT_PARSES = """
from collections import Counter
from functools import lru_cache
from npuprof import document
from npuprof.__main__ import main
parses, known = Counter(), document._load_text_once
@lru_cache(**known.cache_parameters())
def load(text):
    parses[text] += 1
    return known.__wrapped__(text)
document._load_text_once = load
main(["rename", "base", "common"])
print(max(number for text, number in parses.items() if "[profile]" in text))
"""
_SITE = """
import sys, time, npuprof
from npuprof.__main__ import main
store = npuprof.open_store()
start = time.process_time()
for name in store:
    npuprof.check(store.resolve(name))
checked = time.process_time() - start
start = time.process_time()
assert main(["site", sys.argv[1]]) == 0
print(checked, time.process_time() - start)
"""


def main() -> int:
    """Measure and print; return 1 where a limit is exceeded."""
    for variable in ("PYTHONDONTWRITEBYTECODE", "NPUPROF_STORE", "NPUPROF_DEBUG"):
        os.environ.pop(variable, None)
    with tempfile.TemporaryDirectory(prefix="npuprof-bench-") as name:
        folder = Path(name)
        os.environ["HOME"] = os.environ["XDG_CACHE_HOME"] = name
        npuprof = str(_environment(folder / "venv", [f"{_wheel(folder)}[site]"]) / "npuprof")
        repository = _clone(folder / "repository")
        rows = [
            Row(f"{line} / bare", _ratio(repository, [npuprof, *line.split()], BARE_RUN), hold)
            for line, hold in _COMMANDS
        ]
        rows += [
            Row(f"TAB: {what} / bare", _complete(repository, npuprof, line), 4.2)
            for what, line in _COMPLETIONS
        ]
        rows += _measure_stores(folder, npuprof)
        rows += _peers(folder, _small(folder / "small"), repository, npuprof)
        rows += (
            bench_scan.measure_tree(sys.argv[sys.argv.index("--tree") + 1], npuprof)
            if "--tree" in sys.argv
            else []
        )
    rows += bench_history.measure_rows()
    keep_figures("engine", rows)
    return print_rows(rows)


def _clone(folder: Path) -> Path:
    subprocess.run(
        ["git", "clone", "-q", "--no-local", str(ROOT), str(folder)], check=True
    )  # in one pack, as from a server
    return folder


def _measure_stores(folder: Path, npuprof: str) -> list[Row]:
    """Return what stores of 10,000 presets, of 3,000 dependents, and a site of 1,000 cost."""
    python = str(Path(npuprof).with_name("python"))
    small, many, warned = (
        _small(folder / "five"),
        _many(folder / "many"),
        _many(folder / "warned", _WARNED),
    )
    render, check, parse = [npuprof, "render", "leaf"], [npuprof, "check"], [*BARE, _PARSE]
    few, base, renamed = (
        _dependents(folder / name, number)
        for name, number in (("few", 1_000), ("base", 3_000), ("renamed", 1_000))
    )
    change = [
        "sh",
        "-c",
        f"{npuprof} set base hccl_timeout=$((2000 + $$ % 5000))",
    ]  # another value each time
    sizes = [_many(folder / f"n{number}", presets=number) for number in (625, 2_500)]
    least, four, sixteen = (_time_best(store, check) for store in (*sizes, many))
    count = subprocess.run(
        [python, "-c", _COUNT_PARSES], cwd=renamed, capture_output=True, text=True, check=True
    ).stdout
    checked, made = _measure_site(python, _many(folder / "site", presets=1_000))
    return [
        Row(
            f"TAB: preset of {MANY:,} / bare",
            _complete(many, npuprof, "npuprof show job77"),
            5.5,
        ),
        Row(
            f"render, {MANY:,} presets in the store / 5",
            _ratio(many, render, render, other=small),
            1.1,
        ),
        Row(f"check of {MANY:,} / tomllib alone", _ratio(many, check, parse, 5), 2.5),
        Row("the same, each with a warning", _ratio(warned, check, parse, 5), 3),
        Row(
            "set on a base, 3,000 dependents / 1,000",
            _ratio(base, change, change, 3, few),
            3.5,
        ),
        Row(
            "rename of a base with 1,000 dependents: parses of a file",
            float(count.split()[-1]),
            1,
        ),
        Row("site of 1,000 / resolving and checking them", made / checked, 4),
        Row(
            "check, growth from n to 4n and 16n presets / n",
            max(four / least / 4, sixteen / least / 16),
            2.5,
        ),
        Row("render, peak MiB", _peak(small, render), 16),
        Row(f"check of {MANY:,}, peak MiB", _peak(many, check), 120),
    ]


def _measure_site(python: str, store: Path) -> tuple[float, float]:
    """Return the times to resolve and check all presets and to make their pages.

    Each is the least of three runs.
    """
    times = []
    for number in range(
        3
    ):  # each in its own folder: ext4 is slow to create files where it has just removed as many
        done = subprocess.run(
            [python, "-c", _SITE, f"public{number}"],
            cwd=store,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        times.append([float(word) for word in done.stdout.split()[-2:]])
    return min(checked for checked, _ in times), min(made for _, made in times)


def _dependents(folder: Path, number: int) -> Path:
    """Make a store in which so many presets extend one base."""
    store = folder / "profiles"
    store.mkdir(parents=True)
    (store / "base.toml").write_text(
        "[profile]\nscenario = 'training'\n[options]\nhccl_timeout = 1972\n"
    )
    for place in range(number):
        (store / f"job{place}.toml").write_text(
            f"[profile]\nextends = ['base']\n[options]\nop_wait_timeout = {200 + place}\n"
        )
    return folder


def _complete(folder: Path, npuprof: str, line: str) -> float:
    """Return what a TAB costs behind a command line, as the shell asks for it."""
    shell = {
        "_NPUPROF_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    return _ratio(
        folder,
        ["env", *(f"{name}={value}" for name, value in shell.items()), npuprof],
        ["env", *BARE_RUN],
    )


def _wheel(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)],
        check=True,
    )
    return next(folder.glob("npuprof-*.whl"))


def _environment(folder: Path, wanted: Sequence[str]) -> Path:
    """Return the folder of commands of a new virtual environment.

    Its pip writes scripts that start quickly.
    """
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
        (store / f"{name}.toml").write_text(
            f"[profile]\nscenario = 'training'\nextends = [{parent}]\n[options]\n{options}"
        )
        parent = f"'{name}'"
    (store / "leaf.toml").write_text(
        f"[profile]\nextends = [{parent}]\ncann = '>=9.0'\n"
        "[options]\ndump_mode = 'input'\ndump_step = '0|7'\n"
    )
    return folder


def _many(folder: Path, more: str = "", presets: int = 0) -> Path:
    """Make the same store with thousands of leaves beside it, below fifty bases.

    A leaf is as long as the presets that npuprof ships, says things that many say, and some that
    only it says; ``more`` are further options of each.
    """
    store = _small(folder) / "profiles"
    for number in range(50):
        text = (
            f"[profile]\nextends = ['model']\ndescription = 'base {number}'\n[options]\n"
            f"hccl_timeout = {1972 + 68 * (number % 20)}\n"
        )
        (store / f"base{number}.toml").write_text(
            f"{text}stream_sync_timeout = {4_000_000 + number}\ndeterministic = 1\n"
        )
    for number in range((presets or MANY) - 55):
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


def _ratio(
    folder: Path,
    arguments: Sequence[str],
    against: Sequence[str],
    rounds: int = ROUNDS,
    other: Path | None = None,
) -> float:
    """Return the least processor time of one command over that of another.

    The other command runs in ``other``. Other load can only add to a time.
    """
    pairs = [(_time(folder, arguments), _time(other or folder, against)) for _ in range(rounds + 1)]
    return min(first for first, _ in pairs) / min(second for _, second in pairs)


def _time(folder: Path, arguments: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr.decode()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _time_best(folder: Path, arguments: Sequence[str], rounds: int = 3) -> float:
    return min(_time(folder, arguments) for _ in range(rounds))


def _peak(folder: Path, arguments: Sequence[str]) -> float:
    """Return the peak memory of a command in MiB, the least of three runs."""
    runs = [
        subprocess.run([*BARE, _PEAK, *arguments], cwd=folder, stdout=subprocess.PIPE, check=True)
        for _ in range(3)
    ]
    return min(int(run.stdout) for run in runs) / 1024


def _peers(folder: Path, small: Path, repository: Path, npuprof: str) -> list[Row]:
    """Return how long others take: for a preset of the same settings, or to check the same files.

    What pip cannot install is left out.
    """
    rows: list[Row] = []
    render, check = [npuprof, "render", "leaf"], [npuprof, "check"]
    for title, package, make, hold in (
        ("Hydra", "hydra-core", _hydra, 7),
        ("Conan", "conan", _conan, 8),
    ):
        if commands := _install_peer(folder, package):
            home, arguments = make(folder / f"{package}-files", commands)
            rows.append(
                Row(f"{title} / render", _ratio(home, arguments, render, 9, small), hold, more=True)
            )
    presets = [str(path) for path in sorted((repository / "profiles").rglob("*.toml"))]
    schema, module = folder / "schema.json", folder / "module.py"
    for path, arguments in ((schema, ["schema"]), (module, ["render", "bert-training"])):
        path.write_text(
            subprocess.run(
                [npuprof, *arguments], cwd=repository, capture_output=True, text=True, check=True
            ).stdout
        )
    checkers = {
        "check-jsonschema": ["--schemafile", str(schema), *presets],
        "taplo": ["lint", "--no-schema", *presets],
        "ruff": ["check", "--no-cache", "--isolated", str(module)],
    }
    for package, arguments in checkers.items():
        if commands := _install_peer(folder, package):
            rows.append(
                Row(
                    f"{package} / check",
                    _ratio(repository, [str(commands / package), *arguments], check, 5),
                    None,
                    more=True,
                )
            )
    return rows


def _install_peer(folder: Path, package: str) -> Path | None:
    try:
        return _environment(folder / package, [package])
    except subprocess.CalledProcessError:
        print(f"left out: {package} could not be installed")
        return None


def _pairs() -> dict[str, list[tuple[str, str]]]:
    pairs: dict[str, list[tuple[str, str]]] = {}
    for name, text in _OPTIONS.items():
        lines = [line.partition(" = ") for line in text.split("\n") if line]
        pairs[name] = [(key, value) for key, _, value in lines]
    return pairs


def _hydra(folder: Path, commands: Path) -> tuple[Path, list[str]]:
    """Write the chain as YAML files, each with the one below it in its defaults."""
    folder.mkdir()
    parent = ""
    for name, pairs in _pairs().items():
        head = f"defaults:\n  - {parent}\n  - _self_\n" if parent else ""
        (folder / f"{name}.yaml").write_text(
            head + "".join(f"{key}: {value}\n" for key, value in pairs)
        )
        parent = name
    (folder / "leaf.yaml").write_text(f"defaults:\n  - {parent}\n  - _self_\ndump_mode: input\n")
    (folder / "app.py").write_text(
        "import hydra\n@hydra.main(version_base=None, config_path='.', config_name='leaf')\n"
        "def app(config):\n    pass\napp()\n"
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
