"""What the parser of a program really rejects: no line that it takes may be called an error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from npuprof.model import Context
from npuprof.scripts.scanning import scan_scripts

#: Runs a program with each line of arguments, and prints which lines it takes.
DRIVER = """
import io, json, runpy, shlex, sys
program, lines = sys.argv[1], json.load(sys.stdin)
sys.path.insert(0, program.rpartition("/")[0])
taken = []
for line in lines:
    sys.argv = [program, *shlex.split(line)]
    stdout, stderr, sys.stdout, sys.stderr = sys.stdout, sys.stderr, io.StringIO(), io.StringIO()
    try:
        runpy.run_path(program, run_name="__main__")
        taken.append(True)
    except SystemExit as error:
        taken.append(error.code in (None, 0))
    except Exception:
        taken.append(False)
    finally:
        sys.stdout, sys.stderr = stdout, stderr
print(json.dumps(taken))
"""

PLAIN = """
import argparse
def main():
    parser = argparse.ArgumentParser(description="trains")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--lr", type=float, required=False)
    group = parser.add_argument_group("more")
    group.add_argument("--schedule", choices=["cosine", "linear"], default="linear")
    group.add_argument("--level", type=int, choices=[0, 1, 2])
    group.add_argument("-o", "--output-dir", "--out")
    one = group.add_mutually_exclusive_group()
    one.add_argument("--fast", action="store_true")
    one.add_argument("--slow", dest="fast", action="store_false")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--pair", nargs=2, type=float)
    parser.add_argument("--maybe", nargs="?", const="x")
    parser.add_argument("--many", nargs="*")
    parser.add_argument("--tag", action="append")
    parser.add_argument("-v", "--verbose", action="count")
    parser.add_argument("--mode", type=lambda text: text.upper(), choices=["A", "B"])
    parser.add_argument("--ema", action=argparse.BooleanOptionalAction)
    args = parser.parse_args()
    print(args.layers)
if __name__ == "__main__":
    main()
"""
PLAIN_LINES = """
--layers 4
--layers four
--layers 4.0
--layers
--layer 4
--layrs 4
--lr 1e-5
--lr .5
--lr 3
--lr fast
--lr nan
--schedule cosine
--schedule cosin
--level 2
--level 3
--level x
--output-dir /tmp/a
--out /tmp/a
--output_dir /tmp/a
-o /tmp/a
--fast
--fast yes
--fast=yes
--sizes 1 2 3
--sizes 1 b
--sizes
--pair 1 2
--pair 1
--pair 1 2 3
--maybe
--maybe x
--maybe x y
--many
--many a b c
--tag a --tag b
--tag
--verbose
--verbose --verbose
--mode a
--mode z
--ema
--no-ema
--ema true
--fa
--no-fast
--s cosine
--help
--layers -4
--layers 1_000
--unknown-thing 3
--learning-rate=3
"""
#: Programs by name: their files, and lines of arguments.
PROGRAMS = {
    "plain": ({"train.py": PLAIN}, PLAIN_LINES),
    "without abbreviations": (
        {"train.py": PLAIN.replace('description="trains"', "allow_abbrev=False")},
        PLAIN_LINES,
    ),
    "with a word": (
        {
            "train.py": PLAIN.replace(
                "    args =", '    parser.add_argument("data", nargs="?")\n    args ='
            )
        },
        PLAIN_LINES,
    ),
    "functions of other modules": (
        {
            "train.py": """
from options.basic import add_basic
from options import more as others
import options.last
import argparse as ap

def build(parser=None):
    parser = parser or None
    parser = add_basic(parser, True)
    others.add_more(parser=parser)
    return options.last.finish(parser)

if __name__ == "__main__":
    args = build(ap.ArgumentParser(prog="x")).parse_args()
""",
            "options/__init__.py": "",
            "options/basic.py": """
def add_basic(parser, with_model):
    group = parser.add_argument_group(title="basic")
    group.add_argument("--batch", type=int)
    if with_model:
        group.add_argument("--model", choices=("a", "b"))
    return parser
""",
            "options/more.py": """
NAMES = ("beta1", "beta2")
def add_more(parser):
    for name in NAMES:
        parser.add_argument(f"--adam-{name}", type=float)
    for flag, kind in (("--seed", int), ("--name", str)):
        parser.add_argument(flag, type=kind)
""",
            "options/last.py": """
def finish(p):
    p.add_argument("--" + "joined", **{"type": int})
    return p
""",
        },
        """
--batch 3
--batch x
--batches 3
--model a
--model c
--adam-beta1 0.9
--adam-beta1 x
--adam-beta3 0.9
--seed 1
--name 1
--joined 1
--joined x
--joind 1
--nothing
""",
    ),
    "parents and subcommands": (
        {
            "train.py": """
import argparse
common = argparse.ArgumentParser(add_help=False)
common.add_argument("--seed", type=int)
parser = argparse.ArgumentParser(parents=[common], allow_abbrev=False)
sub = parser.add_subparsers(dest="command")
fit = sub.add_parser("fit", parents=[common])
fit.add_argument("--epochs", type=int)
test = sub.add_parser("test")
test.add_argument("--checkpoint")
parser.parse_args()
"""
        },
        """
--seed 1
--seed x
--sed 1
fit --epochs 1
fit --epochs x
fit --epoch 1
fit --checkpoint x
test --checkpoint x
test --chckpoint x
--epochs 1
fit --nothing 1
""",
    ),
    "provider of further arguments": (
        {
            "train.py": """
from training.start import pretrain
def add_extra(parser):
    parser.add_argument("--vision-size", type=int)
    return parser
if __name__ == "__main__":
    pretrain(None, extra_args_provider=add_extra, args_defaults={"a": 1})
""",
            "training/__init__.py": "from .start import pretrain",
            "training/start.py": """
from training.arguments import parse_args
def pretrain(model, extra_args_provider=None, args_defaults={}):
    initialize(extra_args_provider=extra_args_provider)
def initialize(extra_args_provider=None, ignore_unknown_args=False, parsed=None):
    if parsed is None:
        parsed = parse_args(extra_args_provider, ignore_unknown_args)
    return parsed
""",
            "training/arguments.py": """
import argparse
def parse_args(extra_args_provider=None, ignore_unknown_args=False):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser = _add_size(parser)
    if extra_args_provider is not None:
        parser = extra_args_provider(parser)
    if ignore_unknown_args:
        args, _ = parser.parse_known_args()
    else:
        args = parser.parse_args()
    return args
def _add_size(parser):
    group = parser.add_argument_group(title="size")
    group.add_argument("--num-layers", type=int)
    for action in group._group_actions:
        assert action.dest
    return parser
""",
        },
        """
--num-layers 4
--num-layers x
--num-layer 4
--vision-size 4
--vision-size x
--vision-sizes 4
""",
    ),
    "object of options": (
        {
            "train.py": """
import argparse
class Base:
    def __init__(self):
        self.parser = argparse.ArgumentParser()
        self.parser.add_argument("--gpu", type=int)
    def initialize(self):
        self.parser.add_argument("--name")
    def parse(self):
        self.initialize()
        self.opt = self.parser.parse_args()
        return self.opt
class Train(Base):
    def initialize(self):
        Base.initialize(self)
        self.parser.add_argument("--epochs", type=int)
opt = Train().parse()
"""
        },
        """
--gpu 1
--gpu x
--name x
--epochs 3
--epochs x
--epoch 3
--epocs 3
--names 3
""",
    ),
    "known arguments only": (
        {
            "train.py": PLAIN.replace(
                "args = parser.parse_args()", "args, _ = parser.parse_known_args()"
            )
        },
        PLAIN_LINES,
    ),
    "changed words": (
        {"train.py": "import sys\nif '--old' in sys.argv:\n    sys.argv.remove('--old')\n" + PLAIN},
        "--old\n--layers 4\n--lr 3",
    ),
    "compared words": (
        {
            "train.py": PLAIN.replace(
                "parser.parse_args()",
                "parser.parse_args([x for x in __import__('sys').argv[1:] if x != '--old'])",
            )
        },
        "--old\n--layers 4\n--lr 3",
    ),
    "another parser": (
        {
            "train.py": """
import argparse
first = argparse.ArgumentParser(add_help=False)
first.add_argument("--config")
known, rest = first.parse_known_args()
second = argparse.ArgumentParser()
second.add_argument("--layers", type=int)
args = second.parse_args(rest)
"""
        },
        "--config x --layers 3\n--config x\n--layers 4",
    ),
    "a class of its own": (
        {
            "train.py": """
import argparse
class Parser(argparse.ArgumentParser):
    def parse_args(self, args=None, namespace=None):
        return self.parse_known_args(args, namespace)[0]
parser = Parser()
parser.add_argument("--layers", type=int)
parser.parse_args()
"""
        },
        "--layers 3\n--layer 3\n--others 3",
    ),
    "a stored parser": (
        {
            "train.py": """
import argparse
def extend(table):
    table["parser"].add_argument("--hidden", type=int)
parser = argparse.ArgumentParser()
parser.add_argument("--layers", type=int)
extend({"parser": parser})
parser.parse_args()
"""
        },
        "--layers 3\n--hidden 3",
    ),
    "all words that follow": (
        {
            "train.py": PLAIN.replace(
                "    args =",
                '    parser.add_argument("opts", nargs=argparse.REMAINDER)\n    args =',
            )
        },
        "--lr 3 MODEL.NAME x --other 3\n--layers 4 x --others 2",
    ),
    "a parser of another library behind a function": (
        {
            "train.py": """
import os, sys
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
from helper import get_parser
args = get_parser().parse_args()
""",
            "helper.py": """
import other
def get_parser():
    parser = other.make()
    parser.add_argument("--layers", type=int)
    return parser
""",
            "site-packages/other.py": """
import argparse
def make():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden")
    return parser
""",
        },
        "--layers 3\n--hidden 3",
    ),
    "a class of its own behind a function": (
        {
            "train.py": """
import argparse
class Parser(argparse.ArgumentParser):
    def parse_args(self, args=None, namespace=None):
        return self.parse_known_args(args, namespace)[0]
def get_parser():
    parser = Parser()
    parser.add_argument("--layers", type=int)
    return parser
get_parser().parse_args()
"""
        },
        "--layers 3\n--layer 3\n--others 3",
    ),
    "computed names": (
        {
            "train.py": """
import argparse, string
parser = argparse.ArgumentParser()
for letter in string.ascii_lowercase:
    parser.add_argument("--letter-" + letter)
parser.parse_args()
"""
        },
        "--letter-a 3\n--letter-z 3",
    ),
    "code that depends on the run": (
        {
            "train.py": """
import argparse, os
parser = argparse.ArgumentParser()
if os.name == "posix":
    parser.add_argument("--here", type=int)
else:
    parser.add_argument("--here", type=float, nargs=2)
if os.environ.get("NEVER"):
    parser.add_argument("--never")
parser.parse_args()
"""
        },
        "--here 3\n--here 3 4\n--there 3\n--elsewhere",
    ),
    "group of a dataclass": (
        {
            "train.py": """
import argparse
from factory import ArgumentGroupFactory
from settings import Model
def parse():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    factory = ArgumentGroupFactory(Model, exclude=["inner"])
    group = factory.build_group(parser, "model")
    group.add_argument("--extra", type=int)
    return parser.parse_args()
if __name__ == "__main__":
    parse()
""",
            "settings.py": """
from dataclasses import dataclass, field
from typing import Literal, Optional
@dataclass
class Base:
    num_layers: int = 2
@dataclass
class Model(Base):
    hidden_size: Optional[int] = None
    use_bias: bool = True
    use_rope: bool = False
    kind: Literal["a", "b"] = "a"
    inner: int = 3
    named: str = field(default="x", metadata={"argparse_meta": {"arg_names": ["--other-name"]}})
""",
            "factory.py": """
import dataclasses, typing
class ArgumentGroupFactory:
    def __init__(self, cls, exclude=None):
        self.cls, self.exclude = cls, exclude or ()
    def build_group(self, parser, title=None):
        group = parser.add_argument_group(title)
        for each in dataclasses.fields(self.cls):
            if each.name not in self.exclude:
                names, options = self.describe(each, typing.get_type_hints(self.cls)[each.name])
                group.add_argument(*names, **options)
        return group
    def describe(self, each, kind):
        name = each.name.replace("_", "-")
        names = [f"--{name}"]
        if kind is bool and each.default:
            return [f"--no-{name}", f"--disable-{name}"], {"action": "store_false"}
        if kind is bool:
            return names, {"action": "store_true"}
        inner = typing.get_args(kind)
        if typing.get_origin(kind) is typing.Literal:
            return names, {"choices": inner}
        meta = each.metadata.get("argparse_meta", {})
        return meta.get("arg_names", names), {"type": inner[0] if inner else kind}
""",
        },
        """
--num-layers 3
--num-layers x
--hidden-size 3
--hidden-size x
--hiden-size 3
--no-use-bias
--disable-use-bias
--use-bias
--use-rope
--no-use-rope
--kind a
--kind c
--inner 3
--other-name x
--named x
--extra 1
""",
    ),
    "tyro": (
        {
            "train.py": """
from dataclasses import dataclass, field
from typing import Literal, Optional
import tyro
@dataclass
class Optimizer:
    learning_rate: float = 1e-3
    kind: Literal["adam", "sgd"] = "adam"
@dataclass
class Base:
    seed: int = 1
@dataclass
class Config(Base):
    optimizer: Optimizer = field(default_factory=Optimizer)
    num_steps: int = 3
    use_ema: bool = False
    name: Optional[str] = None
if __name__ == "__main__":
    config = tyro.cli(Config)
"""
        },
        """
--seed 3
--seed x
--optimizer.learning-rate 0.1
--optimizer.learning_rate 0.1
--optimizer.learning-rate x
--optimizer.kind sgd
--optimizer.kind sgdd
--optimizer.kid sgd
--num-steps 3
--num_steps 3
--num-step 3
--use-ema
--no-use-ema
--name x
--nme x
""",
    ),
    "draccus": (
        {
            "train.py": """
from dataclasses import dataclass, field
import draccus
@dataclass
class Optimizer:
    learning_rate: float = 1e-3
@dataclass
class Config:
    optimizer: Optimizer = field(default_factory=Optimizer)
    num_steps: int = 3
    use_ema: bool = False
def main():
    print(draccus.parse(Config))
if __name__ == "__main__":
    main()
"""
        },
        """
--optimizer.learning_rate 0.1
--optimizer.learning_rat 0.1
--num_steps 3
--num_stps 3
--use_ema true
--use_emma true
--steps 1
""",
    ),
    "keys of a file": (
        {
            "train.py": "from src.config import read\nconfig = read()\n",
            "default.yaml": "epochs: 1\ndevice_id: 0\nlr: 1e-3\nrun: False\nckpt:\nlayers: [1]\n",
            "src/config.py": """
import argparse, ast, os
import yaml
def add(parser, table):
    parser = argparse.ArgumentParser(parents=[parser])
    for key in table:
        if not isinstance(table[key], (list, dict)):
            kind = ast.literal_eval if isinstance(table[key], bool) else type(table[key])
            parser.add_argument("--" + key, type=kind, default=table[key])
    return parser.parse_args()
def read():
    parser = argparse.ArgumentParser(add_help=False)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--config_path", default=os.path.join(here, "../default.yaml"))
    first, _ = parser.parse_known_args()
    with open(first.config_path) as file:
        return add(parser, yaml.safe_load(file))
""",
        },
        """
--epochs 3
--epoch 3
--device_id=1
--device_num=1
--device 1
--lr x
--run True
--rank 3
--layers 3
-e 3
""",
    ),
    "defaults before the others": (
        {
            "train.py": """
import argparse
import yaml
first = config_parser = argparse.ArgumentParser(add_help=False)
config_parser.add_argument("-c", "--config", default="")
parser = argparse.ArgumentParser()
parser.add_argument("data", nargs="?")
parser.add_argument("--epochs", type=int)
parser.add_argument("-b", "--batch-size", type=int)
def read():
    args, rest = config_parser.parse_known_args()
    if args.config:
        parser.set_defaults(**yaml.safe_load(open(args.config)))
    args = parser.parse_args(rest)
    return args, yaml.safe_dump(args.__dict__)
def main():
    args, text = read()
if __name__ == "__main__":
    main()
""",
        },
        """
--epochs 3
--epohs 3
-epochs 3
--epochs x
-b 3 data
-b3
--batch_size 3
--config= --epochs 3
--workers 3
""",
    ),
    "one of two parsers": (
        {
            "train.py": """
import argparse
def parse_own():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr")
    return parser.parse_args()
def parse_all():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed")
    args, rest = parser.parse_known_args()
    if args.seed:
        return parser.parse_args()
    return args
parse_all()
""",
        },
        """
--seed 1
--lr 1
--sed 1
""",
    ),
    "types and negations of its own": (
        {
            "train.py": """
import argparse
def int(text):
    return text
parser = argparse.ArgumentParser()
parser.add_argument("--n", type=int)
parser.add_argument("-f", "--fast", action=argparse.BooleanOptionalAction)
parser.parse_args()
""",
        },
        """
--n two
--no-fast
--fsat
-f
""",
    ),
}
#: The least number of lines that are called errors.
FLOORS = {
    "plain": 17,
    "without abbreviations": 20,
    "with a word": 12,
    "functions of other modules": 7,
    "parents and subcommands": 5,
    "provider of further arguments": 4,
    "object of options": 4,
    "code that depends on the run": 2,
    "group of a dataclass": 4,
    "tyro": 5,
    "draccus": 3,
    "keys of a file": 3,
    "defaults before the others": 4,
    "types and negations of its own": 1,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_real_parser_takes_is_no_error(name: str, tmp_path: Path) -> None:
    files, text = PROGRAMS[name]
    lines = text.strip().splitlines()
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content)
    for number, line in enumerate(lines):
        (tmp_path / f"run{number:03}.sh").write_text(
            f"torchrun --nproc_per_node 8 train.py {line}\n"
        )
    command = [sys.executable, "-W", "ignore", "-c", DRIVER, str(tmp_path / "train.py")]
    ran = subprocess.run(
        command, input=json.dumps(lines), capture_output=True, text=True, check=True
    )
    taken = dict(zip(lines, json.loads(ran.stdout), strict=True))
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    errors = {
        lines[int(Path(finding.path).stem[3:])]
        for finding in found
        if finding.severity == "error" and finding.path.endswith(".sh")
    }
    assert [line for line in errors if taken[line]] == []
    rejected = [line for line in lines if not taken[line]]
    assert len(errors) >= FLOORS.get(name, 0), sorted(set(rejected) - errors)
