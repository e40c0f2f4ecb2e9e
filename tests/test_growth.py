"""What is made four times longer costs at most ten times as much: two and a half for each time, counted in calls, the same everywhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from building import build_store
from growth import measure_growth

from npuprof.commands.git import configuration
from npuprof.document import parse_document
from npuprof.model import NpuprofError, did_you_mean, renew_hints
from npuprof.store.git import Git

HEAD = '[profile]\nscenario = "training"\n'
BLOCK = (
    'op = c.graph_options.rewrite_options.custom_optimizers.add()\nop.name = "NpuOptimizer"\nop.parameter_map["precision_mode"].s = "x"\n'
)
MATCHES = ("atlas-a2", "atlas-a3", "atlas-a2-training", "910B2")


def write_override(number: int) -> str:
    return f'[[override]]\nmatch = {{ product = "{MATCHES[number % 4]}" }}\nenv = {{ A{number} = "1" }}\n'


#: What is asked, and the presets and scripts of a size.
INPUTS: dict[str, tuple[list[str], Callable[[int], dict[str, str]]]] = {
    "a dotted key": (["check", "x"], lambda n: {"x": f"{'.'.join('a' * n)} = 1\n"}),
    "unknown options": (["check", "x"], lambda n: {"x": HEAD + "[options]\n" + "".join(f"precision_mod{i} = 1\n" for i in range(n))}),
    "unknown tables": (["check", "x"], lambda n: {"x": "".join(f"[optio{i}]\n" for i in range(n))}),
    "locks": (["check", "x"], lambda n: {"b": HEAD + f"locked = {[f'env.A{i}' for i in range(n)]}\n", "x": 'profile.extends = ["b"]\n'}),
    "variables": (["check", "x"], lambda n: {"x": HEAD + "[env]\n" + "".join(f"A{i} = 1\n" for i in range(n))}),
    "overrides of one key each": (["check", "x"], lambda n: {"x": HEAD + "".join(map(write_override, range(n)))}),
    "parents": (["show", "x"], lambda n: {**{f"p{i}": HEAD for i in range(n)}, "x": f"profile.extends = {[f'p{i}' for i in range(n)]}\n"}),
    "a chain in a tree": (["list", "--tree"], lambda n: {"p0": HEAD} | {f"p{i}": f'profile.extends = ["p{i - 1}"]\n' for i in range(1, n)}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_presets_cost_what_their_length_costs(name: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    words, build = INPUTS[name]

    def build_command(size: int) -> Callable[[], object]:
        store = build_store(tmp_path / str(size), build(size))
        return lambda: run(*words, "--store", store)

    assert measure_growth(build_command, 200) < 2.5


@pytest.mark.parametrize("verb", ["scan", "import"])
def test_optimizer_blocks_cost_what_their_number_costs(verb: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    def build_command(size: int) -> Callable[[], object]:
        path = tmp_path / f"a{size}.py"
        path.write_text("c = tf.ConfigProto()\n" + BLOCK * size)
        return lambda: run(verb, path)

    assert measure_growth(build_command, 40) < 1.3


@pytest.mark.parametrize(
    "lines",
    [" " * 40_000, f"except {' ' * 40_000}x", f"raise {' ' * 40_000}x", f"if {' ' * 40_000}x", f"else:{' ' * 40_000}x", "\n" * 40_000],
)
def test_long_blanks_in_python_2_take_no_time(lines: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "a.py").write_text(f'print "x"\n{lines}\nop.parameter_map["precision_mode"].s = "x"\n')
    before = time.process_time()
    run("scan", "a.py")
    assert time.process_time() - before < 2, "the square of the blanks takes ten times that"


def test_a_lattice_of_diamonds_is_told_once(store: Callable[..., Path], run: Callable[..., Any]) -> None:
    layers = {f"l{depth}{side}": f'profile.extends = ["l{depth - 1}a", "l{depth - 1}b"]\n' for depth in range(1, 20) for side in "ab"}
    store({"l0a": HEAD, "l0b": HEAD, **layers})
    told = run("list", "--tree").out
    assert len(told.splitlines()) < 4 * len(layers)
    assert "(as above)" in told
    assert max(map(len, told.splitlines())) < 120
    assert {line.split(" (")[0].split(" ")[-1] for line in told.splitlines()} == {"l0a", "l0b", *layers}


@pytest.mark.parametrize(
    "text",
    [
        f"{'.'.join('a' * 101)} = 1",
        f"[{'.'.join('a' * 101)}]",
        f"x = {{ {'.'.join(['b'] * 150)} = 1 }}",
        f"""{".".join(["'a'"] * 101)} = 1""",
    ],
)
def test_a_key_of_too_many_segments_is_told_at_its_place(text: str) -> None:
    with pytest.raises(NpuprofError) as caught:
        parse_document("x", "x.toml", f'# {"." * 300}\n[options]\ny = \'{"a." * 300}\'\nz = """\n{"a." * 300}\n"""\n{text}\n')
    (finding,) = caught.value.findings
    assert (finding.code, finding.line) == ("NP001", 7)


@pytest.mark.parametrize("value", ["a." * 300, "1, " + "2.0, " * 300, "''" * 300])
def test_dots_in_texts_are_no_keys(value: str) -> None:
    assert parse_document("x", "x.toml", f'x = """{value}"""\n"a.b" = 1 # {"a." * 300}\n').data["a.b"] == 1


def test_a_preset_builds_on_a_bounded_number_of_others(store: Callable[..., Path], run: Callable[..., Any]) -> None:
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


def test_a_pipe_in_the_place_of_gits_settings_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "settings"
    os.mkfifo(pipe)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(pipe))
    with pytest.raises(NpuprofError, match="named pipe"):
        configuration.write_setting(Git(str(tmp_path)), "--global", "a.b", "c")
    assert pipe.is_fifo()


def test_a_preset_named_twice_has_one_row_in_a_matrix(store: Callable[..., Path], run: Callable[..., Any]) -> None:
    store({"x": HEAD})
    result = run("check", "x", "x", "--product", "atlas-a2", "--product", "atlas-a3")
    assert result.code == 0
    assert sum(line.startswith("x") for line in result.out.splitlines()) == 1


def test_a_number_of_thousands_of_digits_in_a_text_is_a_finding(store: Callable[..., Path], run: Callable[..., Any]) -> None:
    digits = "9" * 4301
    store({"x": f'{HEAD}[options]\ndynamic_dims = "{digits},1"\ninput_shape = "a:{digits}"\n'})
    for words in (["check", "x"], ["env", "x", "--no-check"], ["render", "x"], ["diff", "x", "x"], ["migrate", "x", "--cann", "9.0.0"]):
        assert run(*words).code in (0, 1, 2), words
    assert run("check", "x").code == 1
