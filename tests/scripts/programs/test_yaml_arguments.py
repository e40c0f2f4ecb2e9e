"""Programs whose arguments or defaults are the keys of a YAML file."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuprof.model import Context
from npuprof.scripts.scanning import scan_scripts

#: Makes an argument of each key of a YAML file.
KEYS = """
import argparse, ast, os
import yaml

def add_keys(parser, table):
    parser = argparse.ArgumentParser(parents=[parser])
    for key in table:
        if isinstance(table[key], bool):
            parser.add_argument("--" + key, type=ast.literal_eval, default=table[key])
        else:
            parser.add_argument("--" + key, type=type(table[key]), default=table[key])
    return parser.parse_args()

def read():
    parser = argparse.ArgumentParser(add_help=False)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--config_path", default=os.path.join(here, "../default.yaml"))
    first, _ = parser.parse_known_args()
    with open(first.config_path) as file:
        table = yaml.safe_load(file)
    return add_keys(parser, table)

config = read()
"""
ERROR, LIKELY = ("NP212", "error"), ("NP212", "warning")

#: Takes the keys of a YAML file as defaults.
DEFAULTS = """
import argparse
import yaml

def read():
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("-c", "--config", default="")
    parser = argparse.ArgumentParser(parents=[first])
    for name in ("data_dir", "epochs", "seed", "model", "workers", "momentum", "decay"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--lr", type=float)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--crop", type=float, nargs=2)
    parser.add_argument("--loss", type=str, choices=["CE", "BCE"])
    parser.add_argument("--scheduler", type=str, choices=["constant", "step"])
    args, rest = first.parse_known_args()
    if args.config:
        with open(args.config) as file:
            parser.set_defaults(**yaml.safe_load(file))
    return parser.parse_args(rest)
"""
FILE = """
data_dir: data
epochs: 3
seed: 1
model: resnet
workers: 8
momentum: 0.9
decay: 1e-4
lr: 1e-3
batch_size: 32
crop: [0.1, 0.2]
loss: ce
"""


def scan(folder: Path) -> list[tuple[str, str]]:
    found = scan_scripts([str(folder)], Context(), None, None).findings
    return [(each.code, each.severity) for each in found]


# research/cv/Pix2Pix/scripts/run_distribute_train_ascend.sh of mindspore-ai/models (8b072a1b)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--device_num=8", [ERROR]),
        ("--epochs 3 --device_id=1 --distribute True", []),
        ("--layers 3", []),  # some programs take lists
        ("--epoch 3", []),  # an abbreviation
        ("--of_gpu=1", []),  # of another file beside the default
        ("--config_path=other/a.yaml --device_num=8", []),
        ("--config_path=$CONFIG --device_num=8", []),
        ("--config_path=$CONFIG --device_idd=8", [LIKELY]),
    ],
)
def test_the_keys_of_a_yaml_file_are_arguments(
    tmp_path: Path, line: str, expected: list[tuple[str, str]]
) -> None:
    write_program(tmp_path, KEYS)
    (tmp_path / "run.sh").write_text(f"CONFIG=$1\ntorchrun train.py {line}\n")
    assert scan(tmp_path) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"--" + key', 'f"--{key}"', [ERROR]),
        ('"--" + key', '"--{}".format(key)', [ERROR]),
        ('here, "../default.yaml"', '*["."], "default.yaml"', [ERROR]),  # beside the program
        ('"../default.yaml"', '"../{}".format("default.yaml")', [ERROR]),
        ('"--" + key', '"--" + prefix + key', []),
        ("../default.yaml", "../missing.yaml", []),
        ('os.path.join(here, "../default.yaml")', "None", []),
        ("return parser.parse_args()", "return parser.parse_known_args()[0]", []),
        ("    return parser.parse_args()", "    if table:\n        return parser.parse_args()", []),
        ("config = read()", 'if __name__ == "__main__":\n    read()', []),
    ],
)
def test_other_programs_with_keys_as_arguments_may_take_more(
    tmp_path: Path, old: str, new: str, expected: list[tuple[str, str]]
) -> None:
    assert old in KEYS
    write_program(tmp_path, KEYS.replace(old, new))
    (tmp_path / "run.sh").write_text("torchrun train.py --device_num=8\n")
    assert scan(tmp_path) == expected


def write_program(folder: Path, config: str) -> None:
    (folder / "src").mkdir()
    (folder / "src/config.py").write_text(config)
    (folder / "train.py").write_text("from src.config import config\n")
    (folder / "default.yaml").write_text(
        "epochs: 1\ndevice_id: 0\ndistribute: False\nlayers: [1]\n---\nepochs: number\n"
    )
    (folder / "gpu.yaml").write_text("of_gpu: 1\n")


# configs/nasnet/nasnet_a_4x1056_ascend.yaml (9aad4049), configs/pvt_v2/pvt_v2_b0_ascend.yaml
# (4d836319), and configs/convit/convit_tiny_gpu.yaml (d6962d3a) of mindspore-lab/mindcv
@pytest.mark.parametrize(
    ("added", "expected"),
    [
        ("dynamic_scale: True", [LIKELY]),
        ("scheduler: warmup_step", [("NP203", "warning")]),
        ("lr_noise: 0.1\nscheduler: step", [LIKELY]),
        ("scheduler: step", []),
        ("scheduler: Cosine", []),  # train.py takes it, whatever the choices are
        ("ema: True", []),  # train.py reads it
        ("a: 1\nb: 2\nc: 3\nd: 4", []),  # of another program
    ],
)
def test_the_keys_of_a_yaml_file_are_defaults(
    tmp_path: Path, added: str, expected: list[tuple[str, str]]
) -> None:
    write_defaults(tmp_path, DEFAULTS, FILE + added)
    assert scan(tmp_path) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("parser.set_defaults(**yaml.safe_load(file))", "parser.parse_args(file.read().split())"),
        ('"data_dir", "epochs", "seed",', ""),
        ("def read", "def unused"),
    ],
)
def test_a_program_that_takes_other_keys_judges_no_file(tmp_path: Path, old: str, new: str) -> None:
    assert old in DEFAULTS
    write_defaults(tmp_path, DEFAULTS.replace(old, new), f"{FILE}dynamic_scale: True\n")
    assert scan(tmp_path) == []


def test_a_file_below_two_programs_is_judged_by_none(tmp_path: Path) -> None:
    write_defaults(tmp_path, DEFAULTS, f"{FILE}dynamic_scale: True\n")
    other = DEFAULTS.replace('"seed",', '"seed", "tag",')
    (tmp_path / "tune.py").write_text(f"{other}read()\n")
    assert scan(tmp_path) == []
    (tmp_path / "tune.py").write_text(f"{DEFAULTS}read()\n")
    assert scan(tmp_path) == [LIKELY]


def write_defaults(folder: Path, program: str, file: str) -> None:
    (folder / "config.py").write_text(program)
    (folder / "train.py").write_text(
        "from config import read\nargs = read()\nif args.scheduler == 'cosine' and args.ema: pass\n"
        "if args.loss.lower() == 'ce': pass\n"
    )
    (folder / "configs/a").mkdir(parents=True)
    (folder / "configs/a/b.yaml").write_text(file)


FIELDS = """
import argparse
from dataclasses import dataclass

parser = argparse.ArgumentParser()
parser.add_argument("--num-layers", type=int)
parser.add_argument("--hidden-size", type=int)
parser.add_argument("--vocab-size", type=int)
parser.parse_args()

@dataclass
class Config:
    scheduler_name: str = ""
    warmup_steps: int = 0
    weight_decay: float = 0.1
    adam_epsilon: float = 0.1
    save_steps: int = 1
    eval_steps: int = 1
    max_steps: int = 1
    data_path: str = ""
    save_path: str = ""
    model_args: dict = None
    fsdp_config: dict = None
    accelerator_config: dict = None
    checkpoint_activations: bool = False
"""
KNOWN = "".join(
    f"{name}: 1\n"
    for name in (
        *("num_layers", "hidden_size", "vocab_size", "scheduler_name", "warmup_steps"),
        *("weight_decay", "adam_epsilon", "save_steps", "eval_steps", "max_steps"),
        *("data_path", "save_path"),
    )
)


# examples/wav2vec/xlsr/config/finetune.yaml of facebookresearch/fairseq (7f5ec30b),
# examples/llava/conf/train/train_llava1.5_7b.yaml of FlagOpen/FlagScale (b6478b86), and
# examples/grpo/deepseekv3_grpo_tutorial/grpo_config.yaml of mindspore-ai/mindrlhf (68bfa633)
@pytest.mark.parametrize(
    ("added", "names"),
    [
        ("checkpoint_activation: true", ["checkpoint_activation"]),
        ("img_embedding_idx: 1", ["img_embedding_idx"]),
        ("sceduler_name: cosine", ["sceduler_name"]),
        ("checkpoint_activations: true", []),
        ("used_by_name: 1", []),  # a file has this word
        ("HCCL_OTHER: 1", []),  # an environment variable
        ("hydra:\n  job_dir: out", []),  # of Hydra itself
        ("model_args:\n  other_key: 1", []),  # of a library
        # examples/glm47-flash/lora_fsdp.yaml and examples/falcon-e of axolotl-ai-cloud/axolotl
        ("fsdp_config:\n  num_layers: 1\n  other_key: 1", []),
        ("accelerator_config:\n  num_layers: 1\n  other_key: 1", []),
        # apps/aunet/configs/2B_1level.yaml of facebookresearch/lingua: any names
        ("checkpoint_activations:\n  word1: 1", []),
        ("n_filters: &n_filters 8\nmodel_args: *n_filters", []),  # for the file itself
        ("n_filters: 8\nmodel_args: ${n_filters}", []),
        ("a:\n  own_key: 1\nb:\n  own_key: 1", []),  # docs/design of FastVideo: a schema
        ("a_1: 1\nb_1: 1\nc_1: 1", []),  # too many for a slip
    ],
)
def test_a_key_that_no_file_of_the_tree_has_is_likely_unknown(
    tmp_path: Path, added: str, names: list[str]
) -> None:
    (tmp_path / "train.py").write_text(f"{FIELDS}print(Config().used_by_name)\n")
    (tmp_path / "config.yaml").write_text(f"{KNOWN}{added}\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.message.rpartition(" ")[2] for each in found] == names
    assert {(each.code, each.certainty) for each in found} <= {("NP212", "likely")}


def test_a_file_with_few_known_keys_is_no_file_of_arguments(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FIELDS)
    few = "".join(KNOWN.splitlines(keepends=True)[:9])
    (tmp_path / "config.yaml").write_text(f"{few}sceduler_name: cosine\n")
    assert scan(tmp_path) == []


def test_a_file_that_takes_defaults_is_judged_once(tmp_path: Path) -> None:
    fields = FIELDS.replace("scheduler_name", "dynamic_name")
    write_defaults(tmp_path, f"{DEFAULTS}{fields}", f"{FILE}dynamic_scale: True\n")
    assert scan(tmp_path) == [LIKELY]


# programs may take more: add_argparse_args of Lightning, parse_known_args, computed names
@pytest.mark.parametrize(
    ("added", "parsing"),
    [
        ("p = Trainer.add_argparse_args(p)", "p.parse_args()"),
        ("", "None\nargs, extra = p.parse_known_args()\nrun(extra)"),
        ("for key in open('keys'):\n    p.add_argument('--' + key)", "p.parse_args()"),
    ],
)
def test_most_known_flags_do_not_exclude_more(tmp_path: Path, added: str, parsing: str) -> None:
    known = "\n".join(f"p.add_argument('--{name}')" for name in ("lr", "wd", "bs", "epochs"))
    (tmp_path / "t.py").write_text(
        "import argparse\nfrom pytorch_lightning import Trainer\n"
        f"p = argparse.ArgumentParser()\n{known}\n{added}\nargs = {parsing}\n"
    )
    (tmp_path / "a.sh").write_text("torchrun t.py --lr 1 --wd 1 --bs 1 --epochs 1 --other 3\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.message for each in found if each.code == "NP212"] == []
