"""What ``scan`` costs in public trees, in generated ones, and as one input grows.

Rows of ``bench_all.py``. The trees are those of ``trees.toml``. Processor time is user time on one
core, the least of runs in turns with what it is compared with: ``ast.parse`` of the same Python
files in one process of this interpreter, ruff, or shellcheck.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from bench.bench_history import wait_for_output
from bench.measured import Goal, UnavailableError
from bench.workplace import Usage, Workplace, count_cores, find_least, one_core, run_metered
from end_to_end.ecosystem.ecosystem import Tree, check_out

TREES = tomllib.loads(Path(__file__).with_name("trees.toml").read_text(encoding="utf-8"))
#: Trees with more than a hundred shell files. For shellcheck, the last one has too many.
WITH_SHELL = ("MindSpeed-MM", "Megatron-LM", "ModelZoo-PyTorch")
#: Files of Megatron-LM that somebody changed: a script, what it starts, and a module of that.
CHANGED = (
    "examples/gpt3/train_gpt3_175b_distributed.sh",
    "pretrain_gpt.py",
    "megatron/training/arguments.py",
)
NUMBER = 2_000
#: Exit codes of ``scan``, ruff and shellcheck, without and with findings.
_FOUND = (0, 1)

_NPU = """\
def make_config(args):
    config = tf.ConfigProto(allow_soft_placement=True)
    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
    custom_op.name = "NpuOptimizer"
    custom_op.parameter_map["use_off_line"].b = True
    custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("allow_mix_precision")
    if args.profiling:
        custom_op.parameter_map["profiling_mode"].b = True
        options = '{{"output":"/tmp/p{0}"}}'
        custom_op.parameter_map["profiling_options"].s = tf.compat.as_bytes(options)
    custom_op.parameter_map["hccl_timeout"].i = {0} + 600
    config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    return config
"""
_LAYER = """\
def layer_{0}(inputs, filters={0}, training=True, name=None):
    with tf.variable_scope(name or "layer_{0}"):
        x = tf.layers.conv2d(inputs, filters, (3, 3), padding="same", use_bias=False)
        x = tf.layers.batch_normalization(x, momentum=0.9, epsilon=1e-5, training=training)
        if filters % 2 == 0 and training:
            x = tf.nn.dropout(x, keep_prob=0.5 + 0.01 * {0})
        outputs = [tf.nn.relu(x) for _ in range({0} % 4 + 1)]
        return {{"output": outputs[0], "size": (x.shape[1], x.shape[2]), "scale": x * 2 + 1}}


"""
#: Parses the named files, and all below named folders.
_PARSE = """
import ast, pathlib, sys, warnings
warnings.simplefilter("ignore")
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    for file in path.rglob("*.py") if path.is_dir() else [path]:
        try:
            ast.parse(file.read_bytes())
        except (SyntaxError, ValueError, OSError):
            pass
"""


def write_script(number: int, npu: bool) -> str:
    layers = "".join(_LAYER.format(number * 7 + layer) for layer in range(8 + number % 17))
    head = (
        "import tensorflow as tf\nfrom npu_bridge.npu_init import *\n\n\n"
        if npu
        else "import tensorflow as tf\n\n\n"
    )
    return head + layers + (_NPU.format(number) if npu else "")


def _make_scripts(folder: Path, number: int) -> Path:
    """Write scripts, a third of which set options, as in a model collection."""
    for place in range(number):
        path = folder / f"m{place // 50}" / f"s{place}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write_script(place, place % 3 == 0))
    return folder


def _compare_scripts(place: Workplace, is_named: bool) -> float:
    """Return what a scan of a folder, or of each of its files by name, takes over parsing them."""
    folder = place.make("scripts", partial(_make_scripts, number=place.size(NUMBER)))
    files = sorted(map(str, folder.rglob("*.py"))) if is_named else ["."]
    ours, parse = _take_turns(place, folder, [_scan(place, *files), _parse(".")])
    return ours.cpu / parse.cpu


def _scan(place: Workplace, *paths: str) -> list[str]:
    return [place.npuprof, "scan", *paths]


def _parse(*paths: str) -> list[str]:
    return [sys.executable, "-c", _PARSE, *paths]


def _take_turns(
    place: Workplace, folder: Path, commands: Sequence[Sequence[str]], rounds: int = 3
) -> list[Usage]:
    """Return the least usage of each command on one core. They run in turns, as load changes."""
    with one_core():
        turns = [
            [run_metered(folder, command, _FOUND) for command in commands]
            for _ in range(place.rounds(rounds))
        ]
    return [find_least(runs) for runs in zip(*turns, strict=True)]


def _check_out(place: Workplace, name: str) -> Path:
    """Return the folder with the Python and shell files of a tree, as a repository."""
    folder = place.make(name, lambda folder: _write_tree(place, name, folder))
    if not folder:
        raise UnavailableError(f"the commit of {name} cannot be fetched")
    return folder


def _write_tree(place: Workplace, name: str, folder: Path) -> Path | None:
    """Write the files of a tree; return None if its commit is out of reach."""
    url, commit, below = (TREES[name].get(key, "") for key in ("url", "commit", "folder"))
    only = tuple(str(Path(below, f"*.{suffix}")) for suffix in ("py", "sh"))
    folder.mkdir()
    try:
        check_out(Tree(name, url, commit, only=only), folder, place.clones, place.cache)
    except pytest.skip.Exception:
        return None
    folder.joinpath(".git").unlink(missing_ok=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def _measure_tree(place: Workplace, name: str) -> tuple[Usage, Usage, Usage]:
    """Return what a tree takes on one core: all of it, its shell files alone, ``ast.parse``."""

    def measure(folder: Path) -> tuple[Usage, Usage, Usage]:
        shell = _copy_shell_files(place, name)
        all_files, parse = _take_turns(place, tree, [_scan(place, "."), _parse(".")])
        [shell_files] = _take_turns(place, shell, [_scan(place, ".")])
        return all_files, shell_files, parse

    tree = _check_out(place, name)
    return place.make(f"usage of {name}", measure)


def _copy_shell_files(place: Workplace, name: str) -> Path:
    tree = _check_out(place, name)

    def copy(folder: Path) -> Path:
        for file in filter(Path.is_file, tree.rglob("*.sh")):
            path = folder / file.relative_to(tree)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, path)
        return folder

    return place.make(f"shell files of {name}", copy)


def _measure_start(place: Workplace) -> Usage:
    """Return what a scan takes that has nothing to read."""

    def measure(folder: Path) -> Usage:
        folder.mkdir()
        folder.joinpath("a.sh").write_text("true\n")
        return _take_turns(place, folder, [_scan(place, "a.sh")])[0]

    return place.make("start", measure)


def _compare_python(place: Workplace, name: str) -> float:
    """Return the time of a scan, less that of its shell files alone, over ``ast.parse``."""
    all_files, shell_files, parse = _measure_tree(place, name)
    shell = shell_files.user - _measure_start(place).user
    return (all_files.user - shell) / parse.user


def _measure_shell(place: Workplace, name: str) -> float:
    """Return the seconds for a thousand shell files, each as in a folder without Python files."""
    _, shell_files, _ = _measure_tree(place, name)
    number = len(list(_copy_shell_files(place, name).rglob("*.sh")))
    return (shell_files.cpu - _measure_start(place).cpu) / number * 1_000


def _compare_cores(place: Workplace, name: str) -> float:
    if count_cores() < 2:
        raise UnavailableError("this machine has one core")
    folder = _check_out(place, name)
    turns = []
    for _ in range(place.rounds(3)):
        both = run_metered(folder, _scan(place, "."), _FOUND)
        turns.append((both, *_take_turns(place, folder, [_scan(place, ".")], 1)))
    both, one = map(find_least, zip(*turns, strict=True))
    return one.clock / both.clock


def _measure_peak(place: Workplace, name: str) -> float:
    return place.take_least(_check_out(place, name), _scan(place, "."), codes=_FOUND).peak


def _measure_first_output(place: Workplace, name: str) -> float:
    folder = _check_out(place, name)
    return min(wait_for_output(folder, _scan(place, "."), b"") for _ in range(place.rounds(3)))


def _compare_with_ruff(place: Workplace, name: str) -> float:
    commands = place.install("ruff")
    if not commands:
        raise UnavailableError("pip cannot install ruff")
    all_files, _, _ = _measure_tree(place, name)
    command = [str(commands / "ruff"), "check", "--no-cache", "--isolated", "--exit-zero", "."]
    return all_files.cpu / _take_turns(place, _check_out(place, name), [command])[0].cpu


def _compare_with_shellcheck(place: Workplace, name: str) -> float:
    if not shutil.which("shellcheck"):
        raise UnavailableError("shellcheck is not installed")
    folder = _copy_shell_files(place, name)
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*.sh"))
    _, shell_files, _ = _measure_tree(place, name)
    [peer] = _take_turns(place, folder, [["shellcheck", *files]], 1)
    return shell_files.cpu / peer.cpu


def _compare_changed_files(place: Workplace) -> float:
    """Return what a scan of three files takes in a tree of 5,000, over parsing what they need.

    The tree has all public trees side by side.
    """
    trees = [_check_out(place, name) for name in TREES]

    def gather(folder: Path) -> Path:
        for tree in trees:
            shutil.copytree(
                tree, folder / tree.name, symlinks=True, ignore=shutil.ignore_patterns(".git")
            )
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        return folder / "Megatron-LM"

    root = place.make("together", gather)
    needed = find_imported_files(root, [name for name in CHANGED if name.endswith(".py")])
    scan, parse = _take_turns(place, root, [_scan(place, *CHANGED), _parse(*needed)])
    return scan.user / parse.user


def find_imported_files(root: Path, names: Sequence[str]) -> list[str]:
    """Return the named Python files and all files below ``root`` that they import, also in turn."""
    found: list[str] = []
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or not (root / name).is_file():
            continue
        found.append(name)
        package = Path(name).parent
        for node in ast.walk(ast.parse((root / name).read_bytes())):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                start = ["", *package.parts][: len(package.parts) + 2 - node.level][1:]
                parts = [*(start if node.level else []), *filter(None, [node.module])]
                base = ".".join(parts)
                modules = [base, *(f"{base}.{alias.name}" for alias in node.names)]
            else:
                continue
            for module in modules:
                path = Path(*module.split("."))
                waiting += [f"{path}.py", f"{path}/__init__.py"]
                waiting += [f"{parent}/__init__.py" for parent in path.parents]
    return sorted(found)


#: Inputs that may grow: the name of the file, its text for n, and the n to begin with.
GROWING: dict[str, tuple[str, Callable[[int], str], int]] = {
    "words of a shell line": ("a.sh", lambda n: "echo " + "word " * n + "\n", 100_000),
    "backslashes of a shell line": ("a.sh", lambda n: "echo " + r"\a" * n + "\n", 100_000),
    "continued lines of a command": ("a.sh", lambda n: "echo" + " \\\n  a" * n + "\n", 20_000),
    "lines of a here-document": (
        "a.sh",
        lambda n: "cat > b.sh <<EOF\n" + "export A=1\n" * n + "EOF\n",
        20_000,
    ),
    "settings of a script": ("a.sh", lambda n: "export HCCL_CONNECT_TIMEOUT=1200\n" * n, 2_000),
    "settings of a Python file": (
        "a.py",
        lambda n: "import os\n" + "os.environ['HCCL_CONNECT_TIMEOUT'] = '1200'\n" * n,
        2_000,
    ),
    "functions that call each other": (
        "a.py",
        lambda n: (
            "import os\ndef f0():\n    os.environ['HCCL_CONNECT_TIMEOUT'] = '1200'\n"
            + "".join(f"def f{k}():\n    f{k - 1}()\n    f{k - 1}()\n" for k in range(1, n))
            + f"f{n - 1}()\n"
        ),
        10,
    ),
}


def _measure_growth(place: Workplace, what: str) -> float:
    """Return how much longer a scan takes of an input that is four times longer, over 4."""
    name, write, length = GROWING[what]
    folder = place.folder
    times = []
    for factor in (1, 4):
        folder = place.folder / f"{what}, {factor}"
        folder.mkdir()
        folder.joinpath(name).write_text(write(place.size(length) * factor))
        times.append(_take_turns(place, folder, [_scan(place, name)])[0].user)
    start = _measure_start(place).user
    few, many = (max(seconds - start, 0.01) for seconds in times)
    return many / few / 4


def _goals_of_trees() -> list[Goal]:
    goals = []
    for title, limit, measure, names, more in (
        ("scan of {}, Python files / ast.parse of them", 3, _compare_python, TREES, False),
        ("scan of {} / ruff", None, _compare_with_ruff, TREES, False),
        ("shell files of {}, CPU s per 1,000", 3, _measure_shell, WITH_SHELL, False),
        ("shell files of {} / shellcheck", None, _compare_with_shellcheck, WITH_SHELL[:2], False),
        ("scan of {}, one core / both, by the clock", 1.6, _compare_cores, TREES, True),
        ("scan of {}, peak MiB", 150, _measure_peak, TREES, False),
        ("scan of {}, s to the first output", 1, _measure_first_output, TREES, False),
    ):
        goals += [
            Goal(title.format(name), limit, partial(measure, name=name), more) for name in names
        ]
    return goals


GOALS = (
    *_goals_of_trees(),
    Goal(
        "scan of three changed files of 5,000 / parsing them and what they import",
        2,
        _compare_changed_files,
    ),
    *(
        Goal(
            f"scan of 2,000 scripts {how}, a third of them set options / ast.parse of them",
            limit,
            partial(_compare_scripts, is_named=is_named),
        )
        for how, is_named, limit in (("in a folder", False, 0.6), ("by name", True, 1))
    ),
    *(
        Goal(f"scan, growth with the {what}, 4n / n", 2.5, partial(_measure_growth, what=what))
        for what in GROWING
    ),
)
