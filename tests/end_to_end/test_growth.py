"""What is made four times longer costs about four times as much, counted in calls, which are the
same everywhere.

The limits are close to 1, so that inputs can be short: one call more for each pair of fifty entries
is over most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npuprof.model import did_you_mean, renew_hints
from support.building import build_store
from support.growth import measure_growth, measure_time_growth
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


def list_mixed(count: int) -> str:
    return HEAD + "[options.modify_mixlist]\n" + "".join(f"A{i} = 1\n" for i in range(count))


def list_unknown(count: int) -> str:
    return "".join(f"o{i} = 1\n" for i in range(count))


def name_places(count: int) -> list[str]:
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


#: What is asked, and the presets and scripts of a size.
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
    "places in a table that an heir unsets": (
        ["check", "x"],
        lambda n: {"b": list_mixed(n), "x": unset(name_places(n))},
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
        lambda n: {"x": f"{HEAD}ignore = [{', '.join(IGNORE * n)}]\n[options]\n{list_unknown(n)}"},
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
    words, build = INPUTS[name]

    def build_command(size: int) -> Callable[[], object]:
        store = build_store(tmp_path / str(size), build(size))
        return lambda: run(*words, "--store", store)

    assert (
        measure_growth(build_command, 150) < 1.5
    )  # a preset has up to n ancestors; quadratic growth would be 4


MAP = 'op.parameter_map["precision_mode"].s = '
BASE = f"import npu\nc = tf.ConfigProto()\n{BLOCK}"
#: What is asked of a script of a size.
SCRIPTS: dict[str, tuple[str, str, Callable[[int], str]]] = {
    "branches in Python": (
        "scan",
        "a.py",
        lambda n: BASE + "".join(f'if a{i}:\n  {MAP}"x{i}"\n' for i in range(n)),
    ),
    "commented settings": ("scan", "a.py", lambda n: BASE + f'# {MAP}"x"\ny = """\n"""\n' * n),
    "branches in a shell": ("scan", "a.sh", lambda n: "if x; then\nexport HCCL_ALGO=1\nfi\n" * n),
    "launches with branches": (
        "scan",
        "a.sh",
        lambda n: "".join(
            f"if [ $1 = {i} ]; then\nexport HCCL_ALGO=a{i}\nfi\natc --model=x{i} --framework=3\n"
            for i in range(n)
        ),
    ),
    "branches in branches": ("scan", "a.sh", lambda n: "if x; then\nexport HCCL_ALGO=1\n" * n),
    "remarks that accept": (
        "scan",
        "a.py",
        lambda n: (
            BASE + "# npuprof: ignore[NP201] x\n" * n + 'op.parameter_map["no_such"].s = b"x"\n'
        ),
    ),
    "conversions": (
        "import",
        "a.sh",
        lambda n: "".join(f"atc --model=x{i} --framework=3\n" for i in range(n)),
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_cost_what_their_length_costs(name: str, tmp_path: Path, run: Run) -> None:
    verb, called, build = SCRIPTS[name]

    def build_command(size: int) -> Callable[[], object]:
        path = tmp_path / str(size) / called
        path.parent.mkdir()
        path.write_text(build(size))
        return lambda: run(verb, path)

    limit = {"branches in branches": 1.9, "conversions": 1.45}.get(name, 1.12)
    assert measure_growth(build_command, 100) < limit


#: Words of a length, to copy which for each character, or to look through which for each call,
#: takes the square.
LONG_WORDS: dict[str, tuple[str, int, Callable[[int], str]]] = {
    "of a shell": ("a.sh", 100_000, lambda n: "export HCCL_ALGO=" + "\\\\" * n + "\n"),
    "in one line": (
        "a.py",
        250,
        lambda n: BASE + ";".join(["op.parameter_map['x'].s = 'é'"] * n) + "\n",
    ),
    "of calls": ("a.py", 1_000, lambda n: "c = NPURunConfig(precision_mode='x')\n" * n),
    "of names that are read": (
        "a.sh",
        1_000,
        lambda n: "".join(f"export FOO_X{i}=$HCCL_FOO{i}\n" for i in range(n)),
    ),
}


@pytest.mark.parametrize("name", LONG_WORDS)
def test_long_words_take_the_time_of_their_length(name: str, tmp_path: Path, run: Run) -> None:
    called, size, build = LONG_WORDS[name]

    def build_scan(size: int) -> Callable[[], object]:
        path = tmp_path / str(size) / called
        path.parent.mkdir()
        path.write_text(build(size))
        return lambda: run("scan", path)

    assert measure_time_growth(build_scan, size) < 2.5


def test_what_is_too_much_of_a_script_is_told(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.sh").write_text("if x; then\n" * 201 + "export HCCL_ALGO=1\n")
    done = run("scan", "a.sh")
    assert (done.code, "warning NP801: more than 200 nested branches" in done.out) == (2, True)


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
    told = [did_you_mean("nam1", names, "none") for _ in range(30)]
    assert told[0].startswith("did you mean")
    assert told[-1] == "none"
    renew_hints()
    assert did_you_mean("nam1", names, "none") == told[0]
