"""What commands cost: of this repository, of stores of 10,000 presets, and beside other tools.

Rows of ``bench_all.py``. Commands run in a clone of this repository and in stores made for it.
Ratios are of whole processes, the least processor time of runs in turns. Hydra, Conan,
check-jsonschema, taplo and ruff are installed for comparison, if pip can.
"""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

from bench.measured import Goal, UnavailableError
from bench.workplace import BARE, BARE_RUN, Workplace

MANY = 10_000
_PARSE = """
import os, tomllib
for folder, _, names in os.walk("profiles"):
    for name in names:
        tomllib.load(open(f"{folder}/{name}", "rb"))
"""
#: What brings a preset a warning of its own: nothing in it writes files for debugging.
_WARNED = 'debug_dir = "./debug/{number}"\n'

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
    ("check", 8),  # from when this repository had 50 presets; its check grows with their number
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


def _compare_command(place: Workplace, line: str) -> float:
    return place.compare(place.repository, [place.npuprof, *line.split()], BARE_RUN)


def _complete(place: Workplace, line: str, folder: Path | None = None) -> float:
    """Return what a TAB costs behind a command line, as the shell asks for it."""
    shell = {
        "_NPUPROF_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    return place.compare(
        folder or place.repository,
        ["env", *(f"{name}={value}" for name, value in shell.items()), place.npuprof],
        ["env", *BARE_RUN],
    )


def _compare_store_sizes(place: Workplace) -> float:
    render = [place.npuprof, "render", "leaf"]
    return place.compare(_make_many(place), render, render, other=place.make("five", make_small))


def _compare_check(place: Workplace, store: Path) -> float:
    return place.compare(store, [place.npuprof, "check"], [*BARE, _PARSE], 5)


def _compare_set(place: Workplace) -> float:
    """Return the growth of ``set`` on a base from 1,000 to 3,000 dependents."""
    change = f"{place.npuprof} set base hccl_timeout=$((2000 + $$ % 5000))"  # another value each
    return _compare_dependents(place, change, 3_000, 1_000)


def _compare_rename(place: Workplace) -> float:
    """Return the growth of ``rename``, there and back, from 300 to 1,000 dependents."""
    change = f"{place.npuprof} rename base common && {place.npuprof} rename common base"
    return _compare_dependents(place, change, 1_000, 300)


def _compare_dependents(place: Workplace, change: str, many: int, few: int) -> float:
    stores = [
        place.make(f"dependents{number}", partial(make_dependents, number=place.size(number)))
        for number in (many, few)
    ]
    command = ["sh", "-c", change]
    return place.compare(stores[0], command, command, 3, stores[1])


def _count_parses(place: Workplace) -> float:
    """Return how often ``rename`` parses a file at most."""
    store = place.make("renamed", partial(make_dependents, number=place.size(1_000)))
    return float(_run_python(place, store, _COUNT_PARSES).split()[-1])


def _compare_site(place: Workplace) -> float:
    """Return the time to make the pages over that to resolve and check all presets.

    Each is the least of three runs.
    """
    store = place.make("site", partial(make_many, presets=place.size(1_000)))
    times = []
    for number in range(place.rounds(3)):
        # each in its own folder: ext4 is slow to create files where it has just removed as many
        printed = _run_python(place, store, _SITE, f"public{number}")
        times.append([float(word) for word in printed.split()[-2:]])
    checked, made = map(min, zip(*times, strict=True))
    return made / checked


def _run_python(place: Workplace, folder: Path, *arguments: str) -> str:
    python = str(Path(place.npuprof).with_name("python"))
    return subprocess.run(
        [python, "-c", *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def _measure_check_growth(place: Workplace) -> float:
    least, four, sixteen = (
        place.take_least(
            place.make(f"n{number}", partial(make_many, presets=place.size(number))),
            [place.npuprof, "check"],
        ).cpu
        for number in (MANY // 16, MANY // 4, MANY)
    )
    return max(four / least / 4, sixteen / least / 16)


def _measure_peak(place: Workplace, store: Path, *arguments: str) -> float:
    return place.take_least(store, [place.npuprof, *arguments]).peak


def _make_many(place: Workplace) -> Path:
    return place.make("many", partial(make_many, presets=place.size(MANY)))


def _make_warned(place: Workplace) -> Path:
    return place.make("warned", partial(make_many, more=_WARNED, presets=place.size(MANY)))


def make_dependents(folder: Path, number: int) -> Path:
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


def make_small(folder: Path) -> Path:
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


def make_many(folder: Path, more: str = "", presets: int = MANY) -> Path:
    """Make the same store with thousands of leaves beside it, below fifty bases.

    A leaf is as long as the presets that npuprof ships, says things that many say, and some that
    only it says; ``more`` are further options of each.
    """
    store = make_small(folder) / "profiles"
    for number in range(50):
        text = (
            f"[profile]\nextends = ['model']\ndescription = 'base {number}'\n[options]\n"
            f"hccl_timeout = {1972 + 68 * (number % 20)}\n"
        )
        (store / f"base{number}.toml").write_text(
            f"{text}stream_sync_timeout = {4_000_000 + number}\ndeterministic = 1\n"
        )
    for number in range(presets - 55):
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


def _compare_with_chain(place: Workplace, package: str) -> float:
    """Return what another tool takes to print a preset of the same settings, over ``render``."""
    commands = _require(place, package)
    write = {"hydra-core": _write_hydra, "conan": _write_conan}[package]
    folder, arguments = place.make(f"{package}-files", partial(write, commands=commands))
    render = [place.npuprof, "render", "leaf"]
    return place.compare(folder, arguments, render, 9, place.make("five", make_small))


def _compare_with_checker(place: Workplace, package: str) -> float:
    """Return what another tool takes to check the same files, or rendered code, over ``check``."""
    command = str(_require(place, package) / package)
    presets = [str(path) for path in sorted((place.repository / "profiles").rglob("*.toml"))]
    schema, module = place.folder / "schema.json", place.folder / "module.py"
    arguments = {
        "check-jsonschema": ["--schemafile", str(schema), *presets],
        "taplo": ["lint", "--no-schema", *presets],
        "ruff": ["check", "--no-cache", "--isolated", str(module)],
    }[package]
    for path, line in ((schema, "schema"), (module, "render bert-training")):
        with path.open("wb") as file:
            ours = [place.npuprof, *line.split()]
            subprocess.run(
                ours, cwd=place.repository, stdout=file, stderr=subprocess.DEVNULL, check=True
            )
    return place.compare(place.repository, [command, *arguments], [place.npuprof, "check"], 5)


def _require(place: Workplace, package: str) -> Path:
    if commands := place.install(package):
        return commands
    raise UnavailableError(f"pip cannot install {package}")


def _pairs() -> dict[str, list[tuple[str, str]]]:
    pairs: dict[str, list[tuple[str, str]]] = {}
    for name, text in _OPTIONS.items():
        lines = [line.partition(" = ") for line in text.split("\n") if line]
        pairs[name] = [(key, value) for key, _, value in lines]
    return pairs


def _write_hydra(folder: Path, commands: Path) -> tuple[Path, list[str]]:
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


def _write_conan(folder: Path, commands: Path) -> tuple[Path, list[str]]:
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


#: Figures without a limit compare with tools that do something else.
GOALS = (
    *(
        Goal(f"{line} / bare", limit, partial(_compare_command, line=line))
        for line, limit in _COMMANDS
    ),
    *(
        Goal(f"TAB: {what} / bare", 4.2, partial(_complete, line=line))
        for what, line in _COMPLETIONS
    ),
    Goal(
        "TAB: preset of 10,000 / bare",
        5.5,
        lambda place: _complete(place, "npuprof show job77", _make_many(place)),
    ),
    Goal("render, 10,000 presets in the store / 5", 1.1, _compare_store_sizes),
    Goal(
        "check of 10,000 / tomllib alone",
        2.5,
        lambda place: _compare_check(place, _make_many(place)),
    ),
    Goal(
        "check of 10,000, each with a warning / tomllib alone",
        3,
        lambda place: _compare_check(place, _make_warned(place)),
    ),
    Goal("set on a base, 3,000 dependents / 1,000", 3.5, _compare_set),
    Goal("rename of a base, 1,000 dependents / 300", 3.5, _compare_rename),
    Goal("rename of a base with 1,000 dependents: parses of a file", 1, _count_parses),
    Goal("site of 1,000 / resolving and checking them", 4, _compare_site),
    Goal("check, growth from n to 4n and 16n presets / n", 2.5, _measure_check_growth),
    Goal(
        "render, peak MiB",
        16,
        lambda place: _measure_peak(place, place.make("five", make_small), "render", "leaf"),
    ),
    Goal(
        "check of 10,000, peak MiB",
        120,
        lambda place: _measure_peak(place, _make_many(place), "check"),
    ),
    Goal(
        "check of 10,000, each with a warning, peak MiB",
        150,
        lambda place: _measure_peak(place, _make_warned(place), "check"),
    ),
    Goal("Hydra / render", 7, partial(_compare_with_chain, package="hydra-core"), more=True),
    Goal("Conan / render", 8, partial(_compare_with_chain, package="conan"), more=True),
    *(
        Goal(f"{package} / check", None, partial(_compare_with_checker, package=package), more=True)
        for package in ("check-jsonschema", "taplo", "ruff")
    ),
)
