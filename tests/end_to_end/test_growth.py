"""What is made four times longer costs about four times as much, counted in calls, which are the same everywhere.

The limits are close to 1, so that inputs can be short: one call more for each pair of fifty entries is over most of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npuprof.edit.dependents import find_dependents
from npuprof.model import did_you_mean, renew_hints
from npuprof.scripts.lint import check_script
from npuprof.scripts.reading import import_script
from npuprof.store import Folder
from npuprof.store.spec import Workspace
from support.building import build_store
from support.growth import count_calls, measure_growth, measure_time_growth
from support.repositories import Repo
from support.running import Run, Store

HEAD = '[profile]\nscenario = "training"\n'
BLOCK = (
    'op = c.graph_options.rewrite_options.custom_optimizers.add()\nop.name = "NpuOptimizer"\nop.parameter_map["precision_mode"].s = "x"\n'
)
MATCHES = ("atlas-a2", "atlas-a3", "atlas-a2-training", "910B2")


def write_override(number: int) -> str:
    return f'[[override]]\nmatch = {{ product = "{MATCHES[number % 4]}" }}\nenv = {{ A{number} = "1" }}\n'


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
    layers = {f"l{i}{side}": f'profile.extends = ["l{i - 1}a", "l{i - 1}b"]\n' for i in range(1, count // 2) for side in "ab"}
    return {f"l0{side}": HEAD for side in "ab"} | {name: f"{text}options.hccl_timeout = 9{name[1:-1]}\n" for name, text in layers.items()}


#: What is asked, and the presets and scripts of a size.
INPUTS: dict[str, tuple[list[str], Callable[[int], dict[str, str]]]] = {
    "a dotted key": (["check", "x"], lambda n: {"x": f"{'.'.join('a' * n)} = 1\n"}),
    "locks": (["check", "x"], lambda n: {"b": HEAD + f"locked = {[f'env.A{i}' for i in range(n)]}\n", "x": 'profile.extends = ["b"]\n'}),
    "overrides of one key each": (["check", "x"], lambda n: {"x": HEAD + "".join(map(write_override, range(n)))}),
    "parents": (["show", "x"], lambda n: {**{f"p{i}": HEAD for i in range(n)}, "x": f"profile.extends = {[f'p{i}' for i in range(n)]}\n"}),
    "places in a table that an heir unsets": (["check", "x"], lambda n: {"b": list_mixed(n), "x": unset(name_places(n))}),
    "a circle": (["check"], lambda n: chain(n, {}) | {"p0": f'profile.extends = ["p{n - 1}"]\n'}),
    "a chain with a fault in its root": (["check"], lambda n: chain(n, {"p0": f"{HEAD}[options]\nhccl_timeout = 'x'\n"})),
    "a chain that breaks the lock of its root": (
        ["check"],
        lambda n: (
            {f"p{i}": f'{HEAD}extends = ["p{i - 1}"]\n[options]\nhccl_timeout = {i}\n' for i in range(1, n)}
            | {"p0": f"{HEAD}locked = ['hccl_timeout']\n[options]\nhccl_timeout = 0\n"}
        ),
    ),
    "accepted findings": (["check", "x"], lambda n: {"x": f"{HEAD}ignore = [{', '.join(IGNORE * n)}]\n[options]\n{list_unknown(n)}"}),
    "a chain with values": (
        ["list", "--format", "json"],
        lambda n: {f"p{i}": (f'profile.extends = ["p{i - 1}"]\n' if i else "") + f"options.hccl_timeout = {i}\n" for i in range(n)},
    ),
    "a lattice in a tree": (["list", "--tree"], lattice),
}  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_presets_cost_what_their_length_costs(name: str, tmp_path: Path, run: Run) -> None:
    words, build = INPUTS[name]

    def build_command(size: int) -> Callable[[], object]:
        store = build_store(tmp_path / str(size), build(size))
        return lambda: run(*words, "--store", store)

    assert measure_growth(build_command, 50) < 1.15


def test_dependents_take_the_time_of_the_presets_of_their_store(tmp_path: Path) -> None:
    def build_search(size: int) -> Callable[[], object]:
        heirs = {f"h{i}": 'profile.extends = ["base"]\n' for i in range(size)}
        others = {f"o{i}": 'profile.extends = ["root"]\n' for i in range(size)}
        home = Folder(str(build_store(tmp_path / str(size), {"base": HEAD, "root": HEAD, **heirs, **others})))
        home.read_ahead = {name: text.encode() for name, text in (heirs | others).items()}
        return lambda: find_dependents(home, "base")

    assert len(build_search(3)()) == 3  # type: ignore[arg-type]
    assert measure_time_growth(build_search, 500) < 2


def test_a_fault_that_many_inherit_costs_what_as_many_without_it_cost(tmp_path: Path, run: Run) -> None:
    costs = []
    for fault in ("hccl_timeout = 600", "no_such_option = 1"):
        store = build_store(tmp_path / fault, chain(100, {"p0": f"{HEAD}[options]\n{fault}\n"}))
        costs.append(count_calls(lambda store=store: run("check", "--store", store)))  # type: ignore[misc]
    assert costs[1] < 2 * costs[0]


@pytest.mark.parametrize("part", ["x", "./f.toml", "x@HEAD", "x@1+.f", "No Name"])
def test_specs_that_are_joined_cost_what_their_number_costs(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_store(tmp_path / "profiles", {"x": HEAD})
    monkeypatch.chdir(tmp_path)
    Path("f.toml").write_text(HEAD)
    Repo(tmp_path).commit()
    workspace = Workspace()
    assert measure_growth(lambda size: lambda: workspace.split_spec("+".join([part] * size)), 50) < 1.5


@pytest.mark.parametrize("verb", ["scan", "import"])
def test_optimizer_blocks_cost_what_their_number_costs(verb: str, tmp_path: Path, run: Run) -> None:
    def build_command(size: int) -> Callable[[], object]:
        path = tmp_path / f"a{size}.py"
        path.write_text("c = tf.ConfigProto()\n" + BLOCK * size)
        return lambda: run(verb, path)

    assert measure_growth(build_command, 40) < 1.3


@pytest.mark.parametrize("distinct", [1, 3])
def test_a_family_costs_what_its_scripts_cost(distinct: int, tmp_path: Path, run: Run) -> None:
    def build_command(size: int) -> Callable[[], object]:
        folder = tmp_path / str(size)
        for number in range(size):
            path = folder / "zoo" / f"model{number}" / "train.py"
            path.parent.mkdir(parents=True)
            line = f'op.parameter_map["hccl_timeout"].i = {number // distinct}\n'
            path.write_text(f"import npu\nc = tf.ConfigProto()\n{BLOCK}{line}tf.Session(config=c)\n")
        return lambda: run("import", folder / "zoo", "--base", "auto", "-o", folder / "out", "--force")

    assert measure_growth(build_command, 15) < 1.6


MAP = 'op.parameter_map["precision_mode"].s = '
BASE = f"import npu\nc = tf.ConfigProto()\n{BLOCK}"
#: What is asked of a script of a size.
SCRIPTS: dict[str, tuple[str, str, Callable[[int], str]]] = {
    "branches in Python": ("scan", "a.py", lambda n: BASE + "".join(f'if a{i}:\n  {MAP}"x{i}"\n' for i in range(n))),
    "commented settings": ("scan", "a.py", lambda n: BASE + f'# {MAP}"x"\ny = """\n"""\n' * n),
    "branches in a shell": ("scan", "a.sh", lambda n: "if x; then\nexport HCCL_ALGO=1\nfi\n" * n),
    "branches in branches": ("scan", "a.sh", lambda n: "if x; then\nexport HCCL_ALGO=1\n" * n),
    "remarks that accept": ("scan", "a.py", lambda n: BASE + "# npuprof: ignore[NP201] x\n" * n + 'op.parameter_map["no_such"].s = b"x"\n'),
    "conversions": ("import", "a.sh", lambda n: "".join(f"atc --model=x{i} --framework=3\n" for i in range(n))),
}  # fmt: skip


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


def test_configurations_of_one_script_take_time_by_their_number() -> None:
    def build_check(size: int) -> Callable[[], object]:
        read = import_script("a.py", (BASE * size).encode())
        return lambda: check_script(read)

    assert measure_time_growth(build_check, 300) < 2.5, "to go through all earlier ones takes the square"


#: Words of a length, to copy which for each character, or to look through which for each call, takes the square.
LONG_WORDS: dict[str, tuple[str, int, Callable[[int], str]]] = {
    "of a shell": ("a.sh", 100_000, lambda n: "export HCCL_ALGO=" + "\\\\" * n + "\n"),
    "in one line": ("a.py", 250, lambda n: BASE + ";".join(["op.parameter_map['x'].s = 'é'"] * n) + "\n"),
    "of calls": ("a.py", 1_000, lambda n: "c = NPURunConfig(precision_mode='x')\n" * n),
    "of names that are read": ("a.sh", 1_000, lambda n: "".join(f"export FOO_X{i}=$HCCL_FOO{i}\n" for i in range(n))),
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


@pytest.mark.parametrize(
    ("begin", "blank", "end"),
    [("", " ", ""), ("except ", " ", "x"), ("", "\n", "")],
)
def test_long_blanks_in_python_2_take_the_time_of_their_length(begin: str, blank: str, end: str, tmp_path: Path, run: Run) -> None:
    def build_scan(size: int) -> Callable[[], object]:
        path = tmp_path / str(size) / "a.py"
        path.parent.mkdir()
        path.write_text(f'print "x"\n{begin}{blank * size}{end}\nop.parameter_map["precision_mode"].s = "x"\n')
        return lambda: run("scan", path)

    assert measure_time_growth(build_scan, 10_000) < 2.5


def test_a_preset_builds_on_a_bounded_number_of_others(store: Store, run: Run) -> None:
    store({"p0": HEAD, **{f"p{number}": f'profile.extends = ["p{number - 1}"]\n' for number in range(1, 2003)}})
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


def test_a_preset_named_twice_has_one_row_in_a_matrix(store: Store, run: Run) -> None:
    store({"x": HEAD})
    result = run("check", "x", "x", "--product", "atlas-a2", "--product", "atlas-a3")
    assert result.code == 0
    assert sum(line.startswith("x") for line in result.out.splitlines()) == 1
