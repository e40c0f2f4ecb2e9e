"""Records of training programs: what the recorder reads, and the rows made from it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDS = REPOSITORY / ".ci/upstream"
sys.path.insert(0, str(REPOSITORY / ".ci"))

import training_parser  # noqa: E402 - a script of CI

FACTORY = """
from dataclasses import dataclass, field
@dataclass
class Base:
    hidden_size: int = 0
@dataclass
class Config(Base):
    log_speed: bool = False
    check_nan: bool = True
    rates: list[float] | None = None
    mode: Literal["a", "b"] = "a"
    left_out: int = 1
    odd: int | str = field(default=1, metadata={"argparse_meta": {"arg_names": ["--own"], "type": str}})
    renamed: bool = field(default=True, metadata={"argparse_meta": {"arg_names": ["--no-x"]}})
    table: dict[str, int] = None
def add(parser):
    exclude = ["left_out"]
    ArgumentGroupFactory(Config, exclude=exclude).build_group(parser)
"""


@pytest.mark.parametrize(
    ("framework", "release", "names", "chosen"),
    [
        ("megatron", "2.0.0", 703, 43),
        ("megatron", "2.1.0", 739, 46),
        ("megatron", "2.2.0", 890, 61),
        ("megatron", "2.3.0", 904, 61),
        ("megatron", "26.0.0", 915, 63),
        ("megatron", "26.1.0", 968, 66),
        ("verl", "0.5.0", 494, 0),
        ("verl", "0.9.0", 1612, 1),
    ],
)
def test_a_record_has_every_argument(framework: str, release: str, names: int, chosen: int) -> None:
    rows = json.loads((RECORDS / framework / f"{release}.json").read_text("utf-8"))["arguments"]
    assert len(rows) == names
    assert sum("choices" in row for row in rows.values()) == chosen


@pytest.mark.parametrize("framework", ["megatron", "verl"])
def test_the_rows_are_those_of_the_records(framework: str) -> None:
    result = subprocess.run(
        [sys.executable, REPOSITORY / ".ci/upstream.py", framework],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param("'--a', type=int", {"kind": "int"}, id="number"),
        pytest.param("'--a'", {"kind": "str"}, id="text"),
        pytest.param("'--a', action='store_false'", {"kind": "bool"}, id="switch"),
        pytest.param("'--a', type=bool", {"kind": "any"}, id="any text is true"),
        pytest.param("'--a', type=lambda x: x", {"kind": "any"}, id="own type"),
        pytest.param("'--a', nargs='+', type=int", {"kind": "int", "nargs": "+"}, id="several"),
        pytest.param("'--a', nargs=1", {"kind": "str", "nargs": "+"}, id="list of one"),
        pytest.param("'--a', action='append'", {"kind": "str", "repeated": True}, id="repeated"),
        pytest.param("'--a', choices=['x', None]", {"kind": "str", "choices": ["x"]}, id="choices"),
        pytest.param("'--a', choices=NAMES", {"kind": "str", "choices": ["x"]}, id="constant"),
        pytest.param(
            "'--a', type=int, choices=range(0, 2)", {"kind": "int", "choices": [0, 1]}, id="range"
        ),
        pytest.param("'--a', choices=list(Enum)", {"kind": "any"}, id="computed choices"),
        pytest.param("'--a', **given", {"kind": "any"}, id="computed arguments"),
        pytest.param(
            "'-a', '--all'", {"kind": "str", "flags": ["--all", "-a"], "name": "all"}, id="short"
        ),
        pytest.param(
            "'--a', action=argparse.BooleanOptionalAction",
            {"kind": "bool", "flags": ["--a", "--no-a"]},
            id="with its negation",
        ),
    ],
)
def test_an_argument_has_the_form_of_its_call(call: str, expected: dict[str, object]) -> None:
    text = f"NAMES = ['x']\nparser.add_argument({call})\n"
    name = expected.pop("name", "a")
    arguments = training_parser.read_megatron({"a.py": text})["arguments"]
    assert arguments == {name: {"flags": ["--a"], **expected}}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param("parser.add_argument('--a', choices=['x'])", ["x"], id="same"),
        pytest.param("parser.add_argument('--a', choices=['y'])", None, id="other choices"),
        pytest.param("parser.add_argument('--a', type=int)", None, id="other kind"),
        pytest.param("self.add_parser_argument_choices_value(p, '--a', 'y')", None, id="more"),
        pytest.param(
            "for x in parser._actions:\n  if x.dest == 'a': x.choices = y", None, id="replaced"
        ),
        pytest.param("parser.add_argument(f'--{a}')", ["x"], id="computed name"),
    ],
)
def test_what_two_sources_say_differently_is_left_out(
    other: str, expected: list[str] | None
) -> None:
    files = {"a.py": "parser.add_argument('--a', choices=['x'])", "b.py": other, "c.py": "("}
    (row,) = training_parser.read_megatron(files)["arguments"].values()
    assert row.get("choices") == expected


def test_fields_of_a_class_are_arguments_as_the_factory_of_megatron_makes_them() -> None:
    arguments = training_parser.read_megatron({"a.py": FACTORY})["arguments"]
    assert arguments == {
        "hidden-size": {"kind": "int", "flags": ["--hidden-size"]},
        "log-speed": {"kind": "bool", "flags": ["--log-speed"]},
        "no-check-nan": {"kind": "bool", "flags": ["--no-check-nan", "--disable-check-nan"]},
        "rates": {"kind": "float", "flags": ["--rates"], "nargs": "+"},
        "mode": {"kind": "str", "flags": ["--mode"], "choices": ["a", "b"]},
        "own": {"kind": "any", "flags": ["--own"]},
        "no-x": {"kind": "bool", "flags": ["--no-x"]},
        "table": {"kind": "any", "flags": ["--table"]},
    }


CONFIG = {
    "ppo_trainer": "defaults:\n- model_engine: dp\n- actor@runs.actor: ${model_engine}_actor\n"
    "- data@data: plain\n- shared\n- _self_\ntrainer:\n  nodes: 1\n  seed: null\n",
    "model_engine/dp": "# @package _global_\nmodel_engine: dp\n",
    "model_engine/fast": "# @package _global_\nmodel_engine: fast\n",
    "actor/base": "defaults: [_self_]\nstrategy: x\n",
    "actor/dp_actor": "defaults:\n- ../optim@optim: sgd\n- base\n- _self_\n_target_: a.B\nuse: true\n",
    "actor/fast_actor": "defaults:\n- base\n- _self_\nfast: {depth: 1e-6, more: {}}\n",
    "optim/sgd": "lr: 0.1\n",
    "optim/adam": "beta: 0.1\n",
    "data/plain": "files: [a]\n",
    "shared": "extra: ${trainer.nodes}\n",
}


def test_keys_of_a_configuration_are_those_that_hydra_composes(tmp_path: Path) -> None:
    hydra = pytest.importorskip("hydra")
    omegaconf = pytest.importorskip("omegaconf")
    for name, text in CONFIG.items():
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    composed: dict[str, object] = {}
    with hydra.initialize_config_dir(str(tmp_path), version_base=None):
        for engine in ("dp", "fast"):
            config = hydra.compose("ppo_trainer", overrides=[f"model_engine={engine}"])
            table = omegaconf.OmegaConf.to_container(config, resolve=False)
            composed |= dict(training_parser._list_leaves(table))
    head = "verl/trainer/config/"
    files = {f"{head}{name}.yaml": text for name, text in CONFIG.items()}
    arguments = training_parser.read_verl(files)["arguments"]
    groups = {"actor@runs.actor", "data@data", "optim@runs.actor.optim"}
    assert set(arguments) == set(composed) | groups
    assert arguments["model_engine"] == {"kind": "str", "choices": ["dp", "fast"]}
    assert arguments["runs.actor.use"]["kind"] == "bool"
    assert arguments["runs.actor.fast.depth"]["kind"] == "float"
    assert arguments["trainer.nodes"] == {"kind": "float", "always": True, "default": 1}
    assert arguments["trainer.seed"] == {"kind": "any"}
