"""Arguments of training programs in presets: [megatron], [verl] and [args]."""

from __future__ import annotations

import argparse
import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pytest

from npuprof import catalog
from npuprof.catalog.preset_schema import build_profile_schema
from npuprof.checks.frameworks import find_framework_faults
from npuprof.checks.scope import find_scope_faults
from npuprof.checks.view import Fault, Scope
from support.running import Run

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDS = REPOSITORY / ".ci/upstream"


def find_faults(section: str, name: str, value: Any, release: str = "") -> list[Fault]:
    """Return the faults of a setting, at a release if one is given."""
    there = Scope(None, (), (), versions=((section, (release,)),) if release else ())
    return [
        *find_framework_faults(section, name, value),
        *find_scope_faults(there, f"{section}.{name}", value),
    ]


@pytest.mark.parametrize(
    ("text", "expected", "hint"),
    [
        pytest.param("[megatron]\nnum-layers = 2", [], "", id="known"),
        pytest.param("[megatron]\nuse-flash-attn = true", [], "", id="switch"),
        pytest.param("[megatron]\nno-load-optim = true", [], "", id="negation of its own"),
        pytest.param("[megatron]\nnum-layer = 2", ["warning NP212"], "'num-layers'", id="unknown"),
        pytest.param(
            "[megatron]\nnum_layers = 2", ["warning NP212"], "num-layers", id="underscores"
        ),
        pytest.param('[megatron]\nnum-layers = "2"', [], "", id="number as text"),
        pytest.param('[megatron]\nnum-layers = "two"', ["error NP202"], "number", id="no number"),
        pytest.param("[megatron]\nnum-layers = 2.0", ["error NP202"], "number", id="fraction"),
        pytest.param(
            "[megatron]\nnum-layers = true", ["error NP202"], "number", id="without value"
        ),
        pytest.param(
            '[megatron]\nbf16 = "true"', ["error NP202"], "bf16 = true", id="switch as text"
        ),
        pytest.param("[megatron]\nseed = 2020-01-01", ["error NP202"], "as text", id="date"),
        pytest.param(
            '[megatron]\nlr-decay-style = "cosin"', ["error NP203"], '"cosine"', id="choice"
        ),
        pytest.param("[megatron]\nmax-model-len = 2", ["warning NP212"], "", id="of vLLM"),
        pytest.param("[verl]\ntrainer.nnodes = 2", [], "", id="verl"),
        pytest.param('[verl]\n"trainer.nnodes" = 2', [], "", id="verl, quoted"),
        pytest.param("[verl.trainer]\nnnodes = 2", [], "", id="verl, table"),
        pytest.param(
            "[verl]\ntrainer.nnode = 2", ["warning NP212"], '"+trainer.nnode"', id="verl, unknown"
        ),
        pytest.param('[verl]\n"+trainer.nnode" = 2', [], "", id="verl, added"),
        pytest.param('[verl]\n"++trainer.nnodes" = 2', [], "", id="verl, set or added"),
        pytest.param('[verl]\n"~trainer.nnodes" = true', [], "", id="verl, deleted"),
        pytest.param(
            '[verl]\n"~trainer.nnode" = true',
            ["warning NP212"],
            "nnodes",
            id="verl, none to delete",
        ),
        pytest.param(
            '[verl]\n"+trainer.nnodes" = 2',
            ["error NP217"],
            "write trainer.nnodes",
            id="verl, there",
        ),
        pytest.param('[verl]\n"+trainer.logger" = ["a"]', [], "", id="verl, list is merged"),
        pytest.param(
            "[verl]\nactor_rollout_ref.rollout.engine_kwargs.vllm.a = 1",
            ["warning NP212"],
            '"+actor_rollout_ref',
            id="verl, new key of an open table",
        ),
        pytest.param('[verl]\ntrainer.balance_batch = "null"', [], "", id="verl, null"),
        pytest.param('[verl]\ntrainer.balance_batch = "${a.b}"', [], "", id="verl, reference"),
        pytest.param(
            '[verl]\ntrainer.balance_batch = "off-ish"',
            ["error NP202"],
            "true or",
            id="verl, switch",
        ),
        pytest.param('[verl]\nmodel_engine = "megatron"', [], "", id="verl, group"),
        pytest.param('[verl]\nmodel_engine = "fsdp"', ["error NP203"], '"dp"', id="verl, no group"),
        pytest.param(
            '[verl]\n"--config-name" = "x"\nhydra.run.dir = "y"', [], "", id="hydra's own"
        ),
        pytest.param('[args]\nlr = 1\n"-n" = 3\nx = [[1], [2]]\na.b = "c"', [], "", id="args"),
        pytest.param("[args]\nlr = nan", ["error NP202"], "as text", id="args, not a number"),
    ],
)
def test_a_preset_gets_findings_that_fit_its_program(
    run: Run, text: str, expected: list[str], hint: str
) -> None:
    result = run("check", "-", "--format", "json", stdin=text)
    findings = json.loads(result.output)["findings"]
    assert [f"{each['severity']} {each['code']}" for each in findings] == expected
    assert all(hint in each["hint"] for each in findings)


@pytest.mark.parametrize(
    ("key", "value", "release", "codes"),
    [
        pytest.param("megatron.yarn-scaling-factor", 1, "2.2.0", [], id="read"),
        pytest.param("megatron.yarn-scaling-factor", 1, "2.1.0", ["NP404"], id="not read yet"),
        pytest.param("verl.model_engine", "dp", "0.9.0", [], id="group"),
        pytest.param("verl.model_engine", "dp", "0.5.0", ["NP404"], id="no group yet"),
        pytest.param("verl.+model_engine", "dp", "0.5.0", [], id="added where it is missing"),
        pytest.param("verl.~model_engine", True, "0.5.0", ["NP404"], id="deleted too early"),
    ],
)
def test_a_release_decides_which_arguments_there_are(
    key: str, value: Any, release: str, codes: list[str]
) -> None:
    section, _, name = key.partition(".")
    assert [fault.code for fault in find_faults(section, name, value, release)] == codes


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def build_parser(record: dict[str, Any]) -> argparse.ArgumentParser:
    """Return a parser with the arguments of a record."""
    parser = _Parser(allow_abbrev=False, conflict_handler="resolve")
    types = {"int": int, "float": float, "str": str, "any": str}
    for row in record["arguments"].values():
        if row["kind"] == "bool":
            parser.add_argument(*row["flags"], action="store_true")
        else:
            parser.add_argument(
                *row["flags"],
                type=types[row["kind"]],
                choices=row.get("choices"),
                nargs=row.get("nargs"),
            )
    return parser


def write_words(name: str, value: Any) -> list[str]:
    """Return the words of an argument as the documentation has them."""
    if value is True:
        return [f"--{name}"]
    values = value if isinstance(value, list) else [value]
    return [f"--{name}", *map(str, values)] if value is not False else []


VALUES = (True, 1, "7", 0.5, 1e-6, "word", "1.0", [1, 2], ["a"], "e4m3", -1)


@pytest.mark.parametrize("release", ["2.0.0", "2.3.0", "26.1.0"])
def test_what_argparse_takes_is_no_error_and_what_it_refuses_one(release: str) -> None:
    record = json.loads((RECORDS / f"megatron/{release}.json").read_text("utf-8"))
    parser = build_parser(record)
    counts = Counter[tuple[bool, bool]]()
    wrong = []
    for name, row in record["arguments"].items():
        for value in (*VALUES, *row.get("choices", ())[:2]):
            try:
                parser.parse_args(write_words(name, value))
                is_taken = True
            except ValueError:
                is_taken = False
            faults = find_faults("megatron", name, value, release)
            has_error = any(fault.severity == "error" for fault in faults)
            counts[is_taken, has_error] += 1
            if is_taken and has_error:
                wrong.append((name, value, faults[0].message))
    assert not wrong
    assert counts[True, False] > 2000
    assert counts[False, True] > 0.95 * (counts[False, True] + counts[False, False]) > 4000


#: Keys with their default, and values to set; other keys are missing.
KEYS = (
    ("trainer.nnodes", 1),
    ("trainer.project_name", "p"),
    ("trainer.balance_batch", True),
    ("trainer.logger", ["console"]),
    ("trainer.total_training_steps", None),
    ("trainer.no_such_key", "???"),
    ("no_such.key", "???"),
)
OVERRIDES = (1, "x", True, [1], "null")


def test_hydra_stops_where_check_has_an_error_and_goes_on_where_it_has_none(
    tmp_path: Path,
) -> None:
    hydra = pytest.importorskip("hydra")
    known = {name.partition(".")[2]: value for name, value in KEYS if value != "???"}
    (tmp_path / "ppo_trainer.yaml").write_text(json.dumps({"trainer": known}), "utf-8")
    counts = Counter[tuple[bool, str]]()
    with hydra.initialize_config_dir(str(tmp_path), version_base=None):
        for prefix in ("", "+", "++", "~"):
            for name, default in KEYS:
                for value in OVERRIDES if prefix != "~" else (True,):
                    word = f"{prefix}{name}" + f"={json.dumps(value)}" * (prefix != "~")
                    try:
                        hydra.compose("ppo_trainer", overrides=[word])
                        is_taken = True
                    except Exception:  # its own classes of errors
                        is_taken = False
                    head, _, rest = f"{prefix}{name}".partition(".")
                    faults = [
                        fault
                        # values of a wrong kind are stopped by verl, not by Hydra
                        for fault in find_faults("verl", head, {rest: value}, "0.9.0")
                        if fault.code not in ("NP202", "NP203")
                    ]
                    worst = faults[0].severity if faults else "none"
                    counts[is_taken, worst] += 1
                    assert is_taken == (worst == "none"), (word, default, faults)
    assert set(counts) == {(True, "none"), (False, "error"), (False, "warning")}
    assert counts[False, "error"] > 10


def test_the_schema_of_editors_has_names_and_lets_others_pass() -> None:
    validator = pytest.importorskip("jsonschema").Draft7Validator(build_profile_schema())
    for section in ("megatron", "verl"):
        fields = validator.schema["definitions"][section]["properties"]
        for name in catalog.record_names(section):
            table = {"properties": fields}
            for part in name.split("."):
                table = table["properties"][part]
    accepted = '[megatron]\nown = 1\n[verl]\n"+a.b" = 1\na.b = 2\n[args]\nx = [1]'
    assert validator.is_valid(tomllib.loads(accepted))
    assert not validator.is_valid(tomllib.loads('[megatron]\nlr-decay-style = "cosin"'))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param('"+trainer.nnodes" = 2', '"trainer.nnodes" = 2', id="quoted key"),
        pytest.param('"+trainer".nnodes = 2', '"+trainer".nnodes = 2', id="part of a table"),
        pytest.param(
            '"+trainer.nnodes" = 2\ntrainer.nnodes = 3',
            '"+trainer.nnodes" = 2\ntrainer.nnodes = 3',
            id="key that is set too",
        ),
    ],
)
def test_fix_drops_the_plus_of_a_key_that_exists(
    run: Run, tmp_path: Path, before: str, after: str
) -> None:
    path = tmp_path / "a.toml"
    path.write_text(f"[verl]\n{before}\n", "utf-8")
    run("check", "--fix", str(path))
    assert path.read_text("utf-8") == f"[verl]\n{after}\n"
