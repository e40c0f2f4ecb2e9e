"""Rules between arguments of training runs: what Megatron-LM's own checks say, and scripts."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from npuprof.document import keys
from npuprof.model import Context
from npuprof.scripts import lint
from npuprof.scripts.reading import import_script
from support.building import REPOSITORY, findings

RULES = tomllib.loads((REPOSITORY / "npuprof/catalog/rules.toml").read_text())["rule"]
TRAINING = [rule for rule in RULES if rule["options"][0].startswith(("megatron.", "verl."))]
CODES = {rule["code"] for rule in TRAINING}
#: Rules from the function that .ci/megatron_judge.py runs.
JUDGED_CODES = {
    rule["code"]
    for rule in TRAINING
    if rule["source"] == ["megatron/training/arguments.py: validate_args"]
}
#: Tables with the verdicts of .ci/megatron_judge.py, by the release that runs on this Megatron-LM.
JUDGED = json.loads((Path(__file__).parent / "megatron_arguments.json").read_text())


def list_errors(table: dict[str, Any], release: str) -> set[str]:
    """Return the codes of the errors of these rules in a preset with arguments."""
    lines = (f"{name} = {keys.format_toml_value(value)}\n" for name, value in table.items())
    found = findings("[megatron]\n" + "".join(lines), versions={"megatron": release})
    return {f.code for f in found if f.code in JUDGED_CODES and f.severity == "error"}


@pytest.mark.parametrize("release", JUDGED)
def test_what_megatron_accepts_is_no_error_and_most_that_it_refuses_is_one(release: str) -> None:
    accepted, rejected = JUDGED[release]["accepted"], JUDGED[release]["rejected"]
    assert [table for table in accepted if list_errors(table, release)] == []
    assert sum(bool(list_errors(table, release)) for table in rejected) >= 0.9 * len(rejected)


def test_the_rules_are_about_distinct_places_upstream() -> None:
    assert len({(rule["source"][0], rule["message"]) for rule in TRAINING}) == len(TRAINING)
    assert len(TRAINING) >= 32


# -- scripts ---------------------------------------------------------------------------------------


def list_script_codes(text: str) -> set[str]:
    """Return the codes of these rules in a shell script, without notes."""
    found = lint.check_script(import_script("train.sh", text.encode()), Context())
    return {f.code for f in found if f.code in CODES and f.severity != "info"}


def flatten_overrides(table: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the overrides of Hydra for a table."""
    words = []
    for name, value in table.items():
        if isinstance(value, dict):
            words += flatten_overrides(value, f"{prefix}{name}.")
        else:
            words.append(f"{prefix}{name}={value}")
    return words


def write_script(preset: dict[str, Any]) -> str:
    """Return the shell script with the settings of a preset: arguments in a variable."""
    if "verl" in preset:
        return "python3 -m verl.trainer.main_ppo " + " ".join(flatten_overrides(preset["verl"]))
    words = ["--micro-batch-size 1", "--tokenizer-type Llama2Tokenizer", "--lr-decay-style cosine"]
    for name, value in preset["megatron"].items():
        values = value if isinstance(value, list) else [] if value is True else [value]
        words.append(" ".join([f"--{name}", *map(str, values)]))
    exports = "".join(f"export {name}={value}\n" for name, value in preset.get("env", {}).items())
    return exports + (
        'GPT_ARGS="\n    ' + " \\\n    ".join(words) + '\n"\ntorchrun pretrain_gpt.py $GPT_ARGS\n'
    )


@pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, id=rule["code"]) for rule in TRAINING if rule["severity"] != "info"],
)
def test_a_script_is_judged_like_a_preset(rule: dict[str, Any]) -> None:
    assert rule["code"] in list_script_codes(write_script(tomllib.loads(rule["bad"])))
    assert rule["code"] not in list_script_codes(write_script(tomllib.loads(rule["good"])))


BROKEN = "--num-layers 46 --pipeline-model-parallel-size 4 --hidden-size 4096 --micro-batch-size 1"


@pytest.mark.parametrize(
    ("text", "is_broken"),
    [
        pytest.param(f"torchrun pretrain_gpt.py {BROKEN}\n", True, id="all is known"),
        pytest.param(f"torchrun pretrain_gpt.py {BROKEN} $MORE\n", False, id="other arguments"),
        pytest.param(f'torchrun pretrain_gpt.py {BROKEN} "$@"\n', False, id="the caller's"),
        pytest.param(
            f"torchrun pretrain_gpt.py {BROKEN} --pipeline-model-parallel-size $PP\n",
            False,
            id="a later value",
        ),
        pytest.param(
            f'ARGS="{BROKEN}"\n'
            'if [ -n "$V" ]; then ARGS="$ARGS --decoder-first-pipeline-num-layers 10"; fi\n'
            "torchrun pretrain_gpt.py $ARGS\n",
            False,
            id="a branch",
        ),
        pytest.param(
            f"torchrun pretrain_gpt.py {BROKEN} --yaml-cfg a.yaml\n", False, id="a YAML file"
        ),
        pytest.param(
            f"torchrun pretrain_vlm.py {BROKEN} --mm-model a.json\n", False, id="MindSpeed-MM"
        ),
        pytest.param(
            f"torchrun pretrain_gpt.py {BROKEN} --use-checkpoint-args\n", False, id="a checkpoint"
        ),
    ],
)
def test_a_size_is_judged_where_nothing_changes_it_later(text: str, is_broken: bool) -> None:
    assert ("NP3302" in list_script_codes(text)) is is_broken


VERL = "actor_rollout_ref.actor.ppo_micro_batch_size"


@pytest.mark.parametrize(
    ("more", "is_broken"),
    [
        pytest.param("", True, id="the default"),
        pytest.param('"++actor_rollout_ref.actor.use_dynamic_bsz" = true\n', False, id="++"),
        pytest.param('"--config-name" = "own_trainer"\n', False, id="another configuration"),
        pytest.param("actor_rollout_ref.actor.use_dynamic_bsz = true\n", False, id="set"),
    ],
)
def test_a_default_of_verl_counts_unless_it_may_be_replaced(more: str, is_broken: bool) -> None:
    text = f"[verl]\n{VERL} = 64\n{VERL}_per_gpu = 8\n{more}"
    assert ("NP3360" in {f.code for f in findings(text)}) is is_broken
