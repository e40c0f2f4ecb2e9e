"""Input that is four times as long costs about four times as much work, which is counted.

The limits are close to 1, so that inputs can be short: one call more for each pair of fifty entries
is over most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from npuprof.model import did_you_mean, renew_hints
from support.building import build_store
from support.growth import measure_copying_growth, measure_growth
from support.running import Run, Store

HEAD = '[profile]\nscenario = "training"\n'
BLOCK = (
    'op = c.graph_options.rewrite_options.custom_optimizers.add()\nop.name = "NpuOptimizer"\n'
    'op.parameter_map["precision_mode"].s = "x"\n'
)
MATCHES = ("atlas-a2", "atlas-a3", "atlas-a2-training", "910B2")


def write_override(number: int) -> str:
    return (
        f'[[override]]\nmatch = {{ product = "{MATCHES[number % 4]}" }}\n'
        f'env = {{ A{number} = "1" }}\n'
    )


IGNORE = ['{ code = "NP201", reason = "x" }']


def format_mixlist(count: int) -> str:
    return HEAD + "[options.modify_mixlist]\n" + "".join(f"A{i} = 1\n" for i in range(count))


def format_unknown_options(count: int) -> str:
    return "".join(f"o{i} = 1\n" for i in range(count))


def name_mixed_keys(count: int) -> list[str]:
    return [f"modify_mixlist.A{i}" for i in range(count)]


def unset(keys: list[str]) -> str:
    return f'[profile]\nextends = ["b"]\nunset = {keys}\n'


def chain(count: int, root: dict[str, str]) -> dict[str, str]:
    return {f"p{i}": f'profile.extends = ["p{i - 1}"]\n' for i in range(1, count)} | root


def lattice(count: int) -> dict[str, str]:
    """Return pairs of presets that each build on both of the pair below."""
    layers = {
        f"l{i}{side}": f'profile.extends = ["l{i - 1}a", "l{i - 1}b"]\n'
        for i in range(1, count // 2)
        for side in "ab"
    }
    return {f"l0{side}": HEAD for side in "ab"} | {
        name: f"{text}options.hccl_timeout = 9{name[1:-1]}\n" for name, text in layers.items()
    }


#: Arguments of a command, and the presets that it reads, of any size.
INPUTS: dict[str, tuple[list[str], Callable[[int], dict[str, str]]]] = {
    "a dotted key": (["check", "x"], lambda n: {"x": f"{'.'.join('a' * n)} = 1\n"}),
    "locks": (
        ["check", "x"],
        lambda n: {
            "b": HEAD + f"locked = {[f'env.A{i}' for i in range(n)]}\n",
            "x": 'profile.extends = ["b"]\n',
        },
    ),
    "overrides of one key each": (
        ["check", "x"],
        lambda n: {"x": HEAD + "".join(map(write_override, range(n)))},
    ),
    "parents": (
        ["show", "x"],
        lambda n: {
            **{f"p{i}": HEAD for i in range(n)},
            "x": f"profile.extends = {[f'p{i}' for i in range(n)]}\n",
        },
    ),
    "keys in a table that a child unsets": (
        ["check", "x"],
        lambda n: {"b": format_mixlist(n), "x": unset(name_mixed_keys(n))},
    ),
    "a circle": (["check"], lambda n: chain(n, {}) | {"p0": f'profile.extends = ["p{n - 1}"]\n'}),
    "a chain with a fault in its root": (
        ["check"],
        lambda n: chain(n, {"p0": f"{HEAD}[options]\nhccl_timeout = 'x'\n"}),
    ),
    "a chain that breaks the lock of its root": (
        ["check"],
        lambda n: (
            {
                f"p{i}": f'{HEAD}extends = ["p{i - 1}"]\n[options]\nhccl_timeout = {i}\n'
                for i in range(1, n)
            }
            | {"p0": f"{HEAD}locked = ['hccl_timeout']\n[options]\nhccl_timeout = 0\n"}
        ),
    ),
    "accepted findings": (
        ["check", "x"],
        lambda n: {
            "x": f"{HEAD}ignore = [{', '.join(IGNORE * n)}]\n[options]\n{format_unknown_options(n)}"
        },
    ),
    "a chain with values": (
        ["list", "--format", "json"],
        lambda n: {
            f"p{i}": (f'profile.extends = ["p{i - 1}"]\n' if i else "")
            + f"options.hccl_timeout = {i}\n"
            for i in range(n)
        },
    ),
    "a lattice in a tree": (["list", "--tree"], lattice),
}


@pytest.mark.parametrize("name", INPUTS)
def test_presets_cost_what_their_length_costs(name: str, tmp_path: Path, run: Run) -> None:
    arguments, build_presets = INPUTS[name]

    def build_command(size: int) -> Callable[[], object]:
        store = build_store(tmp_path / str(size), build_presets(size))
        return lambda: run(*arguments, "--store", store)

    # A preset has up to n ancestors; quadratic growth would be 4.
    assert measure_growth(build_command, 150) < 1.5


MAP = 'op.parameter_map["precision_mode"].s = '
BASE = f"import npu\nc = tf.ConfigProto()\n{BLOCK}"


class Script(NamedTuple):
    """A command, and the script that it reads, of any size."""

    verb: str
    file: str
    size: int
    build_text: Callable[[int], str]
    limit: float = 1.12

    def write_to(self, folder: Path, size: int) -> Path:
        path = folder / str(size) / self.file
        path.parent.mkdir()
        path.write_text(self.build_text(size))
        return path


SCRIPTS: dict[str, Script] = {
    "branches in Python": Script(
        "scan",
        "a.py",
        100,
        lambda n: BASE + "".join(f'if a{i}:\n  {MAP}"x{i}"\n' for i in range(n)),
    ),
    "commented settings": Script(
        "scan", "a.py", 100, lambda n: BASE + f'# {MAP}"x"\ny = """\n"""\n' * n
    ),
    "branches in a shell": Script(
        "scan", "a.sh", 100, lambda n: "if x; then\nexport HCCL_ALGO=1\nfi\n" * n
    ),
    "launches with branches": Script(
        "scan",
        "a.sh",
        100,
        lambda n: "".join(
            f"if [ $1 = {i} ]; then\nexport HCCL_ALGO=a{i}\nfi\natc --model=x{i} --framework=3\n"
            for i in range(n)
        ),
    ),
    "branches in branches": Script(
        "scan", "a.sh", 100, lambda n: "if x; then\nexport HCCL_ALGO=1\n" * n, limit=1.9
    ),
    "variables that nothing sets, and others that nothing uses": Script(
        "scan",
        "a.sh",
        150,
        lambda n: (
            "torchrun a.py\n" + "".join(f"echo $N_{i}_ARGS_A\nN_{i}_ARGS_B=1\n" for i in range(n))
        ),
        limit=1.3,
    ),
    "comments that accept findings": Script(
        "scan",
        "a.py",
        100,
        lambda n: (
            BASE + "# npuprof: ignore[NP201] x\n" * n + 'op.parameter_map["no_such"].s = b"x"\n'
        ),
    ),
    "attributes of one name": Script(
        "scan",
        "a.py",
        100,
        lambda n: "import npu\nnpu.global_options()\n" + "op.name = x()\n" * n,
    ),
    "conversions": Script(
        "import",
        "a.sh",
        100,
        lambda n: "".join(f"atc --model=x{i} --framework=3\n" for i in range(n)),
        limit=1.45,
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_cost_what_their_length_costs(name: str, tmp_path: Path, run: Run) -> None:
    script = SCRIPTS[name]

    def build_command(size: int) -> Callable[[], object]:
        path = script.write_to(tmp_path, size)
        return lambda: run(script.verb, path)

    assert measure_growth(build_command, script.size) < script.limit


def misspell(number: int) -> str:
    """Return a variable's name with one wrong letter, another for each of the first 112 numbers."""
    name, index = "HCCL_CONNECT_TIMEOUT", 5 + number % 14
    return f"{name[:index]}{'QXZVWJKY'[number // 14]}{name[index + 1 :]}"


#: Scripts of a size, by the work that was once done again for each of their settings or pieces.
COPIED: dict[str, Script] = {
    "a word is copied for each escaped character": Script(
        "scan", "a.sh", 500, lambda n: "export HCCL_ALGO=" + "\\\\" * n + "\n"
    ),
    "a line is copied for each of its settings": Script(
        "scan",
        "a.py",
        100,
        lambda n: BASE + ";".join(["op.parameter_map['x'].s = 'é'"] * n) + "\n",
    ),
    "a text is searched for each second argument of an export": Script(
        "scan", "a.sh", 100, lambda n: "".join(f"export A{i}=1 b{i}\n" for i in range(n))
    ),
    "line ends are counted for each variable": Script(
        "scan",
        "Dockerfile",
        100,
        lambda n: "FROM x\n" + "".join(f"ENV HCCL_A{i}=1\n" for i in range(n)),
    ),
    "a text is searched for each call": Script(
        "scan", "a.py", 100, lambda n: "c = NPURunConfig(precision_mode='x')\n" * n
    ),
    "a text is searched for each misspelt name that it reads": Script(
        "scan",
        "a.sh",
        28,
        lambda n: "".join(f"export FOO_X{i}=${misspell(i)}\n" for i in range(n)),
    ),
}


@pytest.mark.parametrize("name", COPIED)
def test_no_text_is_copied_or_searched_for_each_of_its_parts(name: str, tmp_path: Path) -> None:
    script = COPIED[name]

    def build_scan(size: int) -> list[str | Path]:
        return [script.verb, script.write_to(tmp_path, size)]

    assert measure_copying_growth(build_scan, script.size) < script.limit


def test_a_script_with_too_many_nested_branches_has_a_finding(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.sh").write_text("if x; then\n" * 201 + "export HCCL_ALGO=1\n")
    result = run("scan", "a.sh")
    assert result.code == 2
    assert "warning NP801: more than 200 nested branches" in result.out


def test_a_preset_builds_on_a_bounded_number_of_others(store: Store, run: Run) -> None:
    store(
        {
            "p0": HEAD,
            **{f"p{number}": f'profile.extends = ["p{number - 1}"]\n' for number in range(1, 2003)},
        }
    )
    assert run("show", "p2000").code == 0
    result = run("check")
    assert result.code == 2
    assert (result.out + result.err).count("NP109") == 1


def test_hints_have_a_budget_that_each_piece_of_work_has_anew() -> None:
    names = [f"name{number}" for number in range(10_000)]
    renew_hints()
    first, *_, last = [did_you_mean("nam1", names, "none") for _ in range(30)]
    assert first.startswith("did you mean")
    assert last == "none"
    renew_hints()
    assert did_you_mean("nam1", names, "none") == first
