"""Where the parser of a program comes from, when it is complete, and what messages say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npuprof.catalog.programs import find_program
from npuprof.model import Context, Finding
from npuprof.scripts.programs.finding import Programs
from npuprof.scripts.programs.parsers import ANY_NUMBER, NO_RELEASE, Parser
from npuprof.scripts.scanning import scan_scripts
from support.running import Run

PROGRAM = """
import argparse
parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--num-layers", type=int)
parser.add_argument("--hidden-size", type=int)
parser.add_argument("--micro-batch-size", type=int)
parser.add_argument("--train-iters", type=int)
parser.add_argument("--schedule", choices=["cosine", "linear"])
parser.add_argument("--bf16", action="store_true")
args = parser.parse_args()
"""


def read(tmp_path: Path, text: str, **others: str) -> Parser | None:
    (tmp_path / "train.py").write_text(text)
    for name, content in others.items():
        (tmp_path / f"{name}.py").write_text(content)
    return Programs([str(tmp_path)]).read_parser(str(tmp_path / "train.py"))


def scan(folder: Path, line: str, *programs: Path) -> list[Finding]:
    (folder / "run.sh").write_text(f"torchrun --nproc_per_node 8 {line}\n")
    paths = [str(each) for each in programs]
    return scan_scripts([str(folder)], Context(), None, None, programs=paths).findings


def test_the_message_names_the_place_of_the_definition(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    found = scan(tmp_path, "train.py --num-layer 4 --schedule cosin --hidden-size x")
    program = tmp_path / "train.py"
    assert [(each.code, each.severity, each.column) for each in found] == [
        ("NP212", "error", 38),
        ("NP203", "error", 52),
        ("NP202", "error", 69),
    ]
    assert found[0].message == f"{program} has no argument --num-layer"
    assert f"--num-layers is defined in {program}:4." in found[0].why
    assert "'--num-layers'" in found[0].hint
    assert f"{program}:8." in found[1].why
    assert '"cosine"' in found[1].hint
    assert f"{program}:5." in found[2].why


def test_arguments_are_listed_for_completion(tmp_path: Path) -> None:
    parser = read(tmp_path, PROGRAM + "parser.add_argument('data')\n")
    assert parser is not None
    assert parser.complete
    assert list(parser.flags)[:2] == ["--num-layers", "--hidden-size"]
    assert "data" not in parser.flags


@pytest.mark.parametrize("where", ["file", "folder"])
def test_a_program_outside_the_tree_is_named(tmp_path: Path, where: str) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    outside.mkdir()
    tree.mkdir()
    (outside / "train.py").write_text(PROGRAM)
    assert scan(tree, "train.py --num-layer 4") == []
    named = outside / "train.py" if where == "file" else outside
    found = scan(tree, "train.py --num-layer 4", named)
    assert [each.code for each in found] == ["NP212"]


def test_check_judges_presets_by_named_programs(tmp_path: Path, run: Run) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "profiles").mkdir()
    preset = "[megatron]\nnum-layers = 'x'\nhiden-size = 3\nschedule = 'linear'\nbf16 = false\n"
    (tmp_path / "profiles/a.toml").write_text(f"[profile]\ndescription = 'x'\n{preset}")
    store = str(tmp_path / "profiles")
    result = run("check", "--store", store, "--programs", str(tmp_path), "--format", "json")
    assert result.code == 1
    assert result.out.count('"code"') == 2
    assert '"NP202"' in result.out
    assert "has no argument --hiden-size" in result.out


@pytest.mark.parametrize("where", ["tree", "named"])
def test_import_judges_arguments_by_their_program(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    tree.mkdir()
    outside.mkdir()
    ((tree if where == "tree" else outside) / "train.py").write_text(PROGRAM)
    line = "torchrun train.py --num-layers 2 --hiden-size 4 --schedule cosin --train-iters 5"
    (tree / "run.sh").write_text(f"{line}\n")
    monkeypatch.chdir(tree)
    assert run("import", "run.sh", "-o", "first.toml").err.count("NP203") == (where == "tree")
    done = run("import", "run.sh", "-o", "second.toml", "--programs", str(outside))
    assert done.code == 0
    assert "has no argument --hiden-size" in done.err
    assert 'error NP203: --schedule = "cosin" is none of "cosine"' in done.err
    assert "num-layers = 2" in (tree / "second.toml").read_text()
    assert run("import", "run.sh", "--programs", str(outside), "--strict").code == 1


@pytest.mark.parametrize(("named", "severity"), [(True, "error"), (False, "warning")])
def test_check_judges_overrides_by_a_named_program(
    tmp_path: Path, run: Run, named: bool, severity: str
) -> None:
    (tmp_path / "ppo.py").write_text(
        "import hydra\n@hydra.main(config_path='conf', config_name='ppo')\ndef main(c): pass\n"
    )
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/ppo.yaml").write_text("actor:\n  rank: 1\n  steps: 3\nmine: {n: 1}\n")
    (tmp_path / "profiles").mkdir()
    # the command may name another configuration, unless the preset does
    name = '"--config-name" = "ppo"\n' if named else ""
    settings = 'actor.rank = 2\nactor.rnk = 3\n"+actor.steps" = 3\n"+actor.new" = 3\nmine.n = 1\n'
    (tmp_path / "profiles/a.toml").write_text(f"[profile]\n\n[verl]\n{name}{settings}")
    store = str(tmp_path / "profiles")
    result = run("check", "--store", store, "--programs", str(tmp_path), "--format", "json")
    found = json.loads(result.out)["findings"]
    assert [(each["key"], each["code"], each["severity"]) for each in found] == [
        ("verl.actor.rnk", "NP212", severity),
        ('verl."+actor".steps', "NP203", severity),
    ]


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ("parser.parse_known_args()", "the parser may ignore unknown arguments"),
        ("import json\njson.dump(parser, None)\nparser.parse_args()", "dump() gets the parser"),
        ("parser.add_argument(name())\nparser.parse_args()", "the name of an argument is computed"),
        ("parser.parse_args(['--num-layers'])", "other arguments than the program's are parsed"),
        ("import mindspeed.megatron_adaptor\nparser.parse_args()", "import mindspeed."),
        ("parser.register('action', 'x', None)\nparser.parse_args()", "register of the parser"),
    ],
    ids=["unknown ones", "foreign", "computed", "other words", "mindspeed", "register"],
)
def test_a_parser_with_a_gap_gives_no_error(tmp_path: Path, text: str, gap: str) -> None:
    parser = read(tmp_path, PROGRAM.replace("args = parser.parse_args()", text))
    assert parser is not None
    assert gap in " ".join(parser.gaps)
    # a similar name that nothing in the tree has is likely wrong
    found = scan(tmp_path, "train.py --num-layer 4 --other 3 --schedule cosin")
    assert [(each.code, each.severity) for each in found] == [
        ("NP212", "warning"),
        ("NP203", "warning"),
    ]


def test_a_name_that_the_tree_has_is_not_reported_for_a_gap(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("parse_args", "parse_known_args"))
    (tmp_path / "other.py").write_text("value = config.num_layer\n")
    assert scan(tmp_path, "train.py --num-layer 4") == []


# tests_extend of Ascend/MindSpeed: the script's program is not in the tree, its parser is
def test_a_flag_close_to_one_that_the_tree_defines_is_likely_a_slip(tmp_path: Path) -> None:
    (tmp_path / "arguments.py").write_text(
        "group.add_argument('--optimize-own-communication-level', type=int)\n"
    )
    flags = "--num-layers 2 --hidden-size 4 --tensor-model-parallel-size 1 --micro-batch-size 1"
    found = scan(tmp_path, f"pretrain_gpt.py {flags} --optimizer-own-communication-level 0")
    slips = [each for each in found if each.code == "NP212"]
    assert [each.certainty for each in slips] == ["likely"]
    assert "'optimize-own-communication-level'" in slips[0].hint


# commands/run_sft.sh of huggingface/trl before 67441bb
def test_a_name_of_another_program_of_the_tree_is_no_field_of_this_one(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from transformers import HfArgumentParser, TrainingArguments\n"
        "HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"
    )
    (tmp_path / "ppo.py").write_text("class Config:\n    batch_size: int = 128\n")
    found = scan(tmp_path, "train.py --batch_size 2 --max_steps 3 --output_dir a")
    assert [(each.code, each.certainty) for each in found] == [("NP212", "likely")]


def test_fields_of_dataclasses_are_arguments_of_transformers(tmp_path: Path) -> None:
    text = """
from dataclasses import dataclass, field
from typing import List, Literal, Optional
from transformers import HfArgumentParser
@dataclass
class Model:
    model_name: str
    rank: Optional[int] = None
    use_cache: bool = True
    targets: List[str] = field(default_factory=list)
    kind: Literal["a", "b"] = "a"
    files: str = field(default="", metadata={"nargs": "+"})
parser = HfArgumentParser((Model,))
(model,) = parser.parse_args_into_dataclasses()
"""
    parser = read(tmp_path, text)
    assert parser is not None
    assert parser.complete
    flags = parser.flags
    assert flags["--rank"].kind == "int"
    assert flags["--model-name"] == flags["--model_name"]
    assert flags["--no_use_cache"].kind == flags["--targets"].kind == ""
    assert flags["--kind"].choices == ("a", "b")
    # AbsArguments.py of FlagOpen/FlagEmbedding
    assert flags["--files"].nargs == ANY_NUMBER


def test_a_base_class_outside_the_tree_is_a_gap(tmp_path: Path) -> None:
    text = """
from dataclasses import dataclass
from somewhere import Base
from transformers import HfArgumentParser
@dataclass
class Mine(Base):
    rank: int = 3
HfArgumentParser(Mine).parse_args_into_dataclasses()
"""
    parser = read(tmp_path, text)
    assert parser is not None
    assert parser.gaps == ("Base is not in the tree",)


#: Programs whose classes extend those of transformers and trl, as public training scripts write it.
OF_LIBRARIES = {
    "by name": "from transformers import TrainingArguments\nclass A(TrainingArguments):",
    "by another name": "from transformers import TrainingArguments as T\nclass A(T):",
    "by its module": "import transformers\nclass A(transformers.TrainingArguments):",
    "through a class of trl": "from trl import SFTConfig\nclass A(SFTConfig):",
    "one of two": (
        "from transformers import Seq2SeqTrainingArguments, TrainingArguments\n"
        "if x:\n    B = TrainingArguments\nelse:\n    B = Seq2SeqTrainingArguments\nclass A(B):"
    ),
}


@pytest.mark.parametrize("name", OF_LIBRARIES)
def test_classes_of_libraries_have_the_fields_of_all_known_releases(
    name: str, tmp_path: Path
) -> None:
    text = f"""
from transformers import HfArgumentParser
{OF_LIBRARIES[name]}
    own: int = 3
HfArgumentParser(A).parse_args_into_dataclasses()
"""
    parser = read(tmp_path, text)
    assert parser is not None
    assert set(parser.gaps) == {NO_RELEASE}
    assert parser.flags["--learning_rate"].kind == "float"
    # renamed in 4.46
    assert {"--own", "--evaluation_strategy", "--eval_strategy"} <= parser.flags.keys()


def test_the_parser_of_trl_reads_a_file_of_arguments(tmp_path: Path) -> None:
    text = """
from trl import DPOConfig, TrlParser
if __name__ == "__main__":
    parser = TrlParser((DPOConfig,))
    (arguments,) = parser.parse_args_and_config()
"""
    parser = read(tmp_path, text)
    assert parser is not None
    assert parser.gaps == (NO_RELEASE,)
    assert {"--config", "--beta", "--learning_rate"} <= parser.flags.keys()


@pytest.mark.parametrize(
    "text",
    [
        "def f(p):\n    return f(p)\np = argparse.ArgumentParser()\np = f(p)\np.parse_args()",
        "def f(p):\n    return g(p)\ndef g(p):\n    return f(f(p))\nf(f(f(p))).parse_args()",
        "\n".join(
            [
                "p0 = argparse.ArgumentParser()",
                *(f"def f{at}(p):\n    return f{at + 1}(f{at + 1}(p))" for at in range(60)),
                "def f60(p):\n    return p",
                "f0(p0).parse_args()",
            ]
        ),
        "p0 = argparse.ArgumentParser()\n"
        + "\n".join(f"p{at + 1} = p{at} if x else p{at}" for at in range(3000))
        + "\np3000.parse_args()",
    ],
    ids=["recursion", "mutual recursion", "doubling calls", "long chain"],
)
def test_any_program_is_read_in_bounded_time(tmp_path: Path, text: str) -> None:
    parser = read(tmp_path, f"import argparse\n{text}\n")
    assert parser is None or isinstance(parser, Parser)


#: Marks of Megatron-LM, whose parser is not in the tree.
MARKS = "--num-layers 4 --tensor-model-parallel-size 2 --micro-batch-size 1"


# Ascend/ModelZoo-PyTorch, CLIP_for_PyTorch/test/train_clip_full_16p.sh starts a program with a
# changed copy of transformers in its tree
@pytest.mark.parametrize("copied", ["", "work/transformers/src/transformers/training_args.py"])
def test_a_flag_that_no_release_of_a_library_has_is_likely(copied: str, tmp_path: Path) -> None:
    text = """
from transformers import HfArgumentParser, TrainingArguments
HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
"""
    (tmp_path / "train.py").write_text(text)
    copy = tmp_path / (copied or "other.py")  # a class of another program is no such copy
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text("class TrainingArguments:\n    ray_storage_path: str = None\n")
    found = scan(
        tmp_path, "train.py --learning_rate 1e-4 --ray_storage_path x --logging_steps 1.5e1"
    )
    unknown = [("args.ray_storage_path", "NP212", "likely")]
    assert [(each.key, each.code, each.certainty) for each in found] == ([] if copied else unknown)


#: Flags of a program whose parser is made of a class that a method names, as in ms-swift, and
#: whether one is a slip: no file has the name, and it is close to a field of a class of the tree.
SLIPS = {
    "learning_rate": False,
    "learing_rate": True,
    "lora_rnak": True,
    "lora_ran": False,  # argparse takes the beginning of a flag
    "lora_rank_of_others": False,
    "mentioned_elsewere": False,
    "something_else": False,
    # llm-compression/quantization/llm-qat of liguodongiot/llm-action: one of transformers
    "per_device_eval_batch_size": False,
}


@pytest.mark.parametrize("name", SLIPS)
def test_classes_anywhere_in_the_tree_show_slips_if_the_parser_is_not_read(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "arguments.py").write_text(
        "@dataclass\nclass SftArguments:\n    learning_rate: float = 1e-4\n"
        "    lora_rank: int = 8\n    mentioned_elsewhere: Optional[str] = None\n"
        "    per_device_train_batch_size: int = 1\n"
        "alias = 'mentioned_elsewere'\n"
    )
    (tmp_path / "train.py").write_text("from pipelines import run\nrun()\n")
    found = scan(tmp_path, f"train.py --{name} 1")
    assert [(each.code, each.certainty) for each in found] == [("NP212", "likely")] * SLIPS[name]


@pytest.mark.parametrize(
    ("flag", "meant"),
    [
        # a script of MindSpeed-LLM has lost the last letter of this flag
        ("num-layers-per-virtual-pipeline-stag", "num-layers-per-virtual-pipeline-stage"),
        ("hiden-size", "hidden-size"),
        ("seq-lenght", "seq-length"),
    ],
)
def test_a_slip_in_a_flag_is_likely_if_the_program_is_not_found(
    tmp_path: Path, flag: str, meant: str
) -> None:
    (found,) = scan(tmp_path, f"pretrain_gpt.py {MARKS} --{flag} 2 --my-own-flag 3")
    assert (found.code, found.certainty, found.severity) == ("NP212", "likely", "warning")
    assert f"'{meant}'" in found.hint
    (tmp_path / "options.py").write_text(f"group.add_argument('--{flag}', type=int)\n")
    assert scan(tmp_path, f"pretrain_gpt.py {MARKS} --{flag} 2") == [], "the tree has it"


@pytest.mark.parametrize("flag", ["fp4-format", "moe-shared-expert-gate", "layer-number"])
def test_a_flag_of_a_newer_release_is_no_slip(tmp_path: Path, flag: str) -> None:
    assert scan(tmp_path, f"pretrain_gpt.py {MARKS} --{flag} 2") == []


# tests/functional_tests and examples of NVIDIA/Megatron-LM, and of Fugaku-LLM/DeepSpeedFugaku
@pytest.mark.parametrize(
    "text",
    ["--transformer-impl: inference_optimized", "--checkpoint-activations: true"],
)
@pytest.mark.parametrize("is_script", [False, True])
def test_a_tree_with_its_own_megatron_is_not_judged_by_other_releases(
    text: str, is_script: bool, tmp_path: Path
) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    if is_script:
        line = f"torchrun tasks/other.py {MARKS} {text.replace(':', '')}\n"
        (tests / "run.sh").write_text(line)
    else:
        sizes = "--num-layers: 4\n  --tensor-model-parallel-size: 2\n  --micro-batch-size: 1"
        (tests / "model_config.yaml").write_text(f"MODEL_ARGS:\n  {sizes}\n  {text}\n")
    assert scan_scripts([str(tmp_path)], Context(), None, None).findings != []
    flag = text.partition(":")[0]
    (tmp_path / "arguments.py").write_text(f"group.add_argument('{flag}')\n")
    assert scan_scripts([str(tmp_path)], Context(), None, None).findings == []


# tests/functional_tests/test_scripts/bert/pretrain_bert_distributed_test.sh of fwyc0573/Megatron-LM
@pytest.mark.parametrize(
    "end", ["; rm -rf out", " && rm -rf out", "; torchrun $OTHER", "& wait -n"]
)
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_command_that_eval_reads_ends_before_the_next_one(
    end: str, quote: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    lines = [
        "a='torchrun train.py --num-layers 4 --bf16'",
        f'b="$a{end}"',
        f"eval {quote}$b{quote}",
    ]
    assert scan(tmp_path, "other.py\n" + "\n".join(lines)) == []
    assert scan(tmp_path, "other.py\n" + "\n".join(lines).replace("--bf16", "--bf17")) != []


# examples/models/glm47/slurm_conversion.sh of Feilong607/LLaVA-OneVision-2-Megatron-Bridge
def test_a_variable_named_as_an_argument_may_be_the_value_of_a_flag(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    assert scan(tmp_path, "train.py --num-layers $LAYERS_ARG --bf16 $OTHER_ARG") == []
    found = scan(tmp_path, "train.py --num-layers $MY_ARGS")
    assert [each.message for each in found if each.code == "NP203"] == [
        "--num-layers takes a value"
    ]


# finetune_hf_llama/scripts/finetune_llama.sbatch of aws-samples/awsome-distributed-training
def test_flags_of_megatron_are_no_slips_beside_deepspeed(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("parser.add_argument('--grad-clip', type=float)\n")
    assert scan(tmp_path, f"finetune_llama.py {MARKS} --deepspeed --clip-grad 1") == []


# deepspeed.add_config_arguments() of DeepSpeed adds its own arguments
def test_the_arguments_of_deepspeed_are_known(tmp_path: Path) -> None:
    line = "parser = deepspeed.add_config_arguments(parser)\n"
    text = PROGRAM.replace("args = ", f"{line}args = ").replace(
        "import", "import deepspeed\nimport"
    )
    (tmp_path / "train.py").write_text(text)
    assert scan(tmp_path, "train.py --num-layers 4 --deepspeed --deepspeed_config a.json") == []
    (found,) = scan(tmp_path, "train.py --num-layers 4 --deepspeed --steps 3")
    assert (found.code, found.certainty) == ("NP212", "certain")


# src/llamafactory/hparams/parser.py of LLaMA-Factory
def test_a_parser_that_may_read_a_file_instead_is_complete(tmp_path: Path) -> None:
    text = """
import sys
from dataclasses import dataclass
from transformers import HfArgumentParser
@dataclass
class Arguments:
    lr: float = 0.1
parser = HfArgumentParser((Arguments,))
if sys.argv[1].endswith(".yaml"):
    args = parser.parse_yaml_file(sys.argv[1])
else:
    (args,) = parser.parse_args_into_dataclasses()
"""
    parser = read(tmp_path, text)
    assert parser is not None
    assert parser.gaps == ()


# PyTorch/built-in/cv/detection/DB_ID0706_for_PyTorch of ModelZoo-PyTorch
def test_the_keys_of_a_file_are_no_flags_if_the_program_takes_a_file(tmp_path: Path) -> None:
    positional = 'parser.add_argument("file")\nargs'
    (tmp_path / "train.py").write_text(PROGRAM.replace("args", positional, 1))
    (tmp_path / "a.yaml").write_text("import: [x]\nown: 1\n")
    assert scan(tmp_path, "train.py a.yaml --num-layers 4") == []


# examples/deepseekocr/finetune_ocr.sh of MindSpeed-MM
def test_checks_of_megatron_are_not_those_of_a_program_with_a_parser_of_its_own(
    tmp_path: Path,
) -> None:
    line = "train.py --num-layers 4 --hidden-size 8 --micro-batch-size 1 --bf16 --fp16"
    (tmp_path / "train.py").write_text(
        PROGRAM.replace("args", "parser.add_argument('--fp16', action='store_true')\nargs", 1)
    )
    assert scan(tmp_path, line) == []
    marks = find_program("megatron").marks
    text = "".join(f"parser.add_argument('--{name}')\n" for name in (*marks, "bf16", "fp16"))
    (tmp_path / "train.py").write_text(
        f"{PROGRAM.partition('parser.add')[0]}{text}parser.parse_args()\n"
    )
    assert "NP3313" in [each.code for each in scan(tmp_path, line)]


# test/train_full_8p.sh of XLM_ID0740_for_PyTorch in ModelZoo-PyTorch
@pytest.mark.parametrize("here", ["`pwd`", "$(pwd)", "$PWD", "${PWD}"])
def test_a_program_in_the_current_folder_is_found(tmp_path: Path, here: str) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "run.sh").write_text(f"D={here}\ntorchrun $D/train.py --num-layer 4\n")
    (found,) = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert (found.code, found.severity) == ("NP212", "error")


# apex configurations of ModelZoo-PyTorch: --cfg-options of mmcv takes pairs
def test_pairs_behind_a_flag_are_no_overrides_of_hydra(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f'{PROGRAM}parser.add_argument("--options", nargs="+")\n')
    pairs = "runner.epochs=1 data.samples=2 data.workers=3"
    assert scan(tmp_path, f"train.py --options {pairs} --bf16") == []
    found = scan(tmp_path, f"train.py --option {pairs} --bf16")
    assert [each.code for each in found] == ["NP212"]


# fastvideo/utils.py of hao-ai-lab/FastVideo
def test_a_parser_that_may_change_dashes_gets_no_advice_on_them(tmp_path: Path) -> None:
    methods = "    def parse_args(self):\n        ...\n"
    other = f"import argparse\nclass MyArgumentParser(argparse.ArgumentParser):\n{methods}"
    for text in (
        PROGRAM.replace("import argparse\n", other).replace("= argparse.", "= My"),
        f"import sys\nsys.argv = [each.replace('_', '-') for each in sys.argv]\n{PROGRAM}",
    ):
        (tmp_path / "train.py").write_text(text)
        assert scan(tmp_path, "train.py --num_layers 4") == []
        found = scan(tmp_path, "train.py --num-layer 4")
        assert [(each.code, each.certainty) for each in found] == [("NP212", "likely")]


# examples/finetune/embedder/decoder_only/base.sh of FlagOpen/FlagEmbedding, slurm_inference.sh of
# qwen35_vl in NVIDIA-NeMo/Megatron-Bridge
@pytest.mark.parametrize("run", ["eval $C", 'eval "$C"', 'bash -c "cd a && $C"'])
def test_a_second_shell_reads_the_quotes_of_a_value(tmp_path: Path, run: str) -> None:
    (tmp_path / "train.py").write_text(f'{PROGRAM}parser.add_argument("--text")\n')
    start = 'torchrun train.py --text \\"a b c\\" --bf16'
    (tmp_path / "run.sh").write_text(f'C="{start} 2>&1 | tee a.log"\n{run}\n')
    assert scan_scripts([str(tmp_path)], Context(), None, None).findings == []
    (tmp_path / "run.sh").write_text(f'C="{start}"\n$C\n')
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.code for each in found] == ["NP203"]


# examples/msdp/eval_resp_generation.sh of Megatron-LM
def test_a_placeholder_in_angle_brackets_is_no_empty_value(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f'{PROGRAM}parser.add_argument("--file")\n')
    for text, is_found in {
        'file=""\n': True,
        "file=<a path>\n": False,
        "file= <a\n": True,
    }.items():
        (tmp_path / "run.sh").write_text(f"{text}torchrun train.py --file $file --bf16\n")
        found = scan_scripts([str(tmp_path)], Context(), None, None).findings
        assert ("NP203" in {each.code for each in found}) == is_found, text


# examples/industrial_data_pretraining/bicif_paraformer/finetune.sh of modelscope/FunASR
def test_an_override_of_hydra_is_no_flag_of_another_parser(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    pairs = "++runner.epochs=1 ++data.samples=2 ++data.workers=3"
    assert scan(tmp_path, f"train.py {pairs} ++num_layer=$N train_iter=3") == []
    found = scan(tmp_path, f"train.py {pairs} --num-layer 4")
    assert [(each.code, each.message.rpartition(" ")[2]) for each in found] == [
        ("NP212", "--num-layer")
    ]


# scripts/sample.sh of PKU-YuanGroup/Open-Sora-Plan
def test_a_long_flag_with_one_dash_is_unknown(tmp_path: Path) -> None:
    short = 'parser.add_argument("-v", type=int)\n'
    (tmp_path / "train.py").write_text(PROGRAM.replace("args =", f"{short}args ="))
    found = scan(tmp_path, "train.py -bf16 -v2 -v 3 -vv")
    assert [each.message.rpartition(" ")[2] for each in found] == ["-bf16"]
    (tmp_path / "train.py").write_text(PROGRAM.replace("parse_args", "parse_known_args"))
    assert scan(tmp_path, "train.py -bf16") == []


def test_a_flag_with_the_other_dashes_is_likely_a_slip_for_a_gap(tmp_path: Path) -> None:
    program = PROGRAM.replace("parse_args", "parse_known_args") + "print(args.num_layers)\n"
    (tmp_path / "train.py").write_text(program)
    found = scan(tmp_path, "train.py --num_layers 4")
    assert [(each.code, each.certainty) for each in found] == [("NP212", "likely")]
    (tmp_path / "train.py").write_text(f"{program}print('--num_layers')\n")
    assert scan(tmp_path, "train.py --num_layers 4") == []


# run_train_single_gpu.sh of ArtTrack in mindspore/models
def test_a_variable_of_a_loop_may_be_the_value_of_a_flag(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f'{PROGRAM}parser.add_argument("--option")\n')
    assert scan(tmp_path, "train.py --option $ARG") == []
    found = scan(tmp_path, "train.py --option --lr $ARG")
    assert "--option takes a value" in [each.message for each in found]


# FOTS/test/test_1p.sh of ModelZoo-PyTorch
def test_each_program_of_a_line_has_its_own_arguments(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "eval.py").write_text(PROGRAM.replace("--num-layers", "--gt"))
    assert scan(tmp_path, "train.py --num-layers=4 && torchrun eval.py --gt 4") == []
    found = scan(tmp_path, "train.py --num-layers=4 && torchrun eval.py --num-layers 4")
    assert [each.code for each in found] == ["NP212"]


# create_pretraining_data.py of Roberta_Series_for_TensorFlow2.X in ModelZoo-TensorFlow
def test_another_program_may_have_a_flag_with_the_other_dashes(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(PROGRAM)
    (tmp_path / "train.py").write_text("flags.DEFINE_integer('num_layers', 1, '')\n")
    assert scan(tmp_path, "train.py --num_layers=4") == []


# examples/reasoning/train_code_agent.sh of rllm-org/rllm
def test_a_module_that_its_package_lacks_is_likely_a_slip(tmp_path: Path) -> None:
    (tmp_path / "own/train").mkdir(parents=True)
    for name in ("own/__init__.py", "own/train/__init__.py", "own/train/agent.py"):
        (tmp_path / name).write_text("")
    found = scan(tmp_path, "-m own.train.agents --lr 1")
    message = f"{tmp_path}/own/train has no module own.train.agents"
    assert [(each.code, each.certainty, each.message) for each in found] == [
        ("NP844", "likely", message)
    ]
    # the same example at a later time: the package has no such folder
    found = scan(tmp_path, "-m own.trainer.agent --lr 1")
    assert [each.message for each in found] == [f"{tmp_path}/own has no module own.trainer.agent"]
    # YOLOX_Dynamic_ID4069_for_PyTorch of ModelZoo-PyTorch has yolox.tools in another folder
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/train.py").write_text("")
    for module in ("own.train.agent", "own.tools.train", "other.train", "own"):
        assert scan(tmp_path, f"-m {module} --lr 1") == []


def test_an_abbreviation_of_a_known_flag_is_no_slip(tmp_path: Path) -> None:
    program = PROGRAM.replace("allow_abbrev=False", "").replace("parse_args", "parse_known_args")
    (tmp_path / "train.py").write_text(program)
    assert scan(tmp_path, "train.py --num-layer=4") == []


# sgcn/scripts/run_standalone_train.sh of mindspore-ai/models
def test_a_script_that_trains_by_its_name_needs_no_launcher(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "tool.py").write_text(PROGRAM)
    for name, codes in (("train", ["NP212"]), ("tool", [])):
        (tmp_path / "run.sh").write_text(f"nohup python3 -u {name}.py --num_layers=$2 > log &\n")
        found = scan_scripts([str(tmp_path)], Context(), None, None).findings
        assert [each.code for each in found] == codes


# recipes/Qwen2.5-1.5B-Instruct/sft/config_demo.yaml of open-r1, config/base.yaml of RAGEN
@pytest.mark.parametrize(
    "text",
    [
        "per_device_train_batch_size: 1\nlogging_steps: 1\nseed: 1\nwarmup_ratio: 1\nseed: 2\n",
        "trainer: {a: 1}\nactor_rollout_ref: {b: 1}\nalgorithm: {c: 1}\nalgorithm: {d: 1}\n",
    ],
    ids=["transformers", "verl"],
)
def test_a_key_that_a_file_of_arguments_has_twice_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.line for each in found if each.code == "NP836"] == [text.count("\n")]


# research/cv/Pix2Pix/default_config.yaml of mindspore-ai/models,
# model_configs/qwen_config/finetune_qwen2_7b_dpo.yaml of mindrlhf
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("size: 32\nworkers: 4\nsize: 1\n---\nsize: a\n---\nsize: b\n", [3]),
        ("size: 32\n---\nsize: 1\n", []),
        ("size: 32\na:\n  size: 1\n", []),
        ("text: |\n  a: 1\n  a: 2\n", []),
        ("{% if a %}\nsize: 1\n{% else %}\nsize: 2\n{% endif %}\n", []),
    ],
)
def test_a_key_that_any_file_has_twice_is_found(
    tmp_path: Path, text: str, lines: list[int]
) -> None:
    (tmp_path / "a.yaml").write_text(text)
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.line for each in found if each.code == "NP836"] == lines


# PFPO/conf/exp/apps/code_gen/deepseek_coder/dpo of microsoft/unilm
def test_a_text_that_a_program_fills_in_is_no_placeholder(tmp_path: Path) -> None:
    known = "per_device_train_batch_size: 1\nlogging_steps: 1\nwarmup_ratio: 1\n"
    (tmp_path / "a.yaml").write_text(f'{known}template:\n  prompt: "{{prefix}}{{prompt}}"\n')
    assert scan_scripts([str(tmp_path)], Context(), None, None).findings == []
    # official/audio/EcapaTDNN/hparams/prepare_train.yaml of mindspore/models
    (tmp_path / "a.yaml").write_text(f"{known}model: !ref <folder>/save\n")
    assert scan_scripts([str(tmp_path)], Context(), None, None).findings == []
    (tmp_path / "a.yaml").write_text(f"{known}model: <path of the model>\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.code for each in found] == ["NP203"]


# examples/qwen3/verl_configs/rollout/rollout.yaml of Pai-Megatron-Patch
def test_a_file_with_few_names_of_vllm_is_not_its_file(tmp_path: Path) -> None:
    known = "max_model_len: 1\nmax_num_seqs: 2\nmax_num_batched_tokens: 3\n"
    (tmp_path / "a.yaml").write_text(f"{known}beta: 1\nepochs: 1\nlr: 1\n")
    assert scan_scripts([str(tmp_path)], Context(), None, None).findings == []
    (tmp_path / "a.yaml").write_text(f"{known}max_num_sekvs: 1\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.code for each in found] == ["NP212"]


def test_findings_of_parsers_and_of_slips_are_in_the_order_of_lines(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "run.sh").write_text(
        "export TASK_QUEUE_ENABLE=on\nTRAIN_ITERS=1\n"
        "torchrun train.py --bf17 --hidden-size $width\n"
    )
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [(each.code, each.line) for each in found] == [
        ("NP203", 1),
        ("NP843", 2),
        ("NP212", 3),
        ("NP845", 3),
    ]


# eval/sample.sh of hpcaitech/Open-Sora before 71158643, whose code reads "aspect_ratio", and
# research/cv/retinaface of mindspore-ai/models before 52185fac, whose train.py has cfg["device_id"]
@pytest.mark.parametrize(
    ("added", "codes"),
    [
        ("args.bf_16 = vars(args)['num_layer']\n", ["NP212", "NP212"]),
        ("if '--num_layers' in texts: pass\n", ["NP212"]),
        ("if '--num_layers=' in texts or '--device_id' in texts: pass\n", []),
    ],
)
def test_an_attribute_with_the_name_of_a_flag_is_no_flag(
    tmp_path: Path, added: str, codes: list[str]
) -> None:
    (tmp_path / "train.py").write_text(f"{PROGRAM}args.num_layers = table['device_id']\n{added}")
    found = scan(tmp_path, "train.py --num_layers 4 --device_id=0 --num-layers 3")
    assert [each.code for each in found] == codes


OWN_CLASS = """
from dataclasses import dataclass
from transformers import HfArgumentParser

@dataclass
class Arguments:
    max_prompt_length: int = 2
    def __post_init__(self):
        self.layers = self.max_prompt_length

class ParserPlus(HfArgumentParser):
    def parse_yaml_and_args(self, path):
        return [(each, path) for each in self.dataclass_types]
    def parse(self):
        return self.parse_args_into_dataclasses()

(args,) = ParserPlus((Arguments,)).parse_args_into_dataclasses()
"""


# scripts/benchmarking/olmo3_infra.sh of allenai/open-instruct before ecc947e1
@pytest.mark.parametrize(
    ("old", "new", "severities"),
    [
        ("def parse(", "def parse(", ["error"]),
        ("    def parse(", "    'Reads files too.'\n    def parse(", ["error"]),
        ("def parse(self):", "def parse(self):\n        add(self)", []),
        ("def parse(", "def parse_known_args(", []),
        ("def parse(", "def parse_args_into_dataclasses(", []),
        ("def parse(", "def __init__(", []),
        ("def parse(", "def _add_dataclass_arguments(", []),
        ("def parse(", "def error(", []),
        ("(HfArgumentParser):", "(HfArgumentParser, Mixin):", []),
        ("(HfArgumentParser):", "(LenientArgumentParser):", []),
    ],
)
def test_a_class_that_adds_methods_to_its_parser_is_followed(
    tmp_path: Path, old: str, new: str, severities: list[str]
) -> None:
    assert old in OWN_CLASS
    (tmp_path / "train.py").write_text(OWN_CLASS.replace(old, new))
    found = scan(tmp_path, "train.py --max_prompt_length 3 --max_token_length 4")
    assert [each.severity for each in found] == severities


# the same script: mason.py submits the command behind "--"
@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("uv run mason.py --gpus 8 -- source a.sh \\&\\& python train.py --bf17", ["--bf17"]),
        ("uv run mason.py --gpus 8 -- torchrun --nproc_per_node 8 train.py --bf17", ["--bf17"]),
        ("srun -n 2 -- python train.py --bf17 --lr 1 -- --a 1", ["--bf17", "--lr"]),
        ("torchrun train.py --bf16 -- --bf17", []),
        ("torchrun train.py --bf17 -- data", ["--bf17"]),
        ("git log -- train.py --bf17", []),
    ],
)
def test_a_program_behind_two_dashes_is_judged(tmp_path: Path, line: str, names: list[str]) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "mason.py").write_text("import argparse\n")
    (tmp_path / "run.sh").write_text(f"{line}\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.message.rpartition(" ")[2] for each in found] == names


# research/cv/E-NET/train.py of mindspore-ai/models: its configuration parses the arguments
@pytest.mark.parametrize(
    ("options", "codes"),
    [
        (PROGRAM, ["NP212"]),
        (PROGRAM.replace("args =", "if __name__ == '__main__':\n    args ="), []),
        (PROGRAM.replace("args =", "def parse():\n    return"), []),
        (PROGRAM.replace("parse_args", "parse_known_args"), []),
    ],
)
def test_an_imported_file_may_parse_the_arguments(
    tmp_path: Path, options: str, codes: list[str]
) -> None:
    (tmp_path / "options.py").write_text(options)
    (tmp_path / "train.py").write_text("from options import args\nprint(args)\n")
    found = scan(tmp_path, "train.py --num-layers 4 --device-id 0")
    assert [each.code for each in found] == codes


# scripts/finetune/finetune_v1.sh of hao-ai-lab/FastVideo before 4f3e8751; at that time the scripts
# of allenai/open-instruct also had --number_samples_per_prompt, which no file knew
@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("--num-layers 4 --hidden-size 8 --bf16 --prefetch", ["--prefetch"]),
        ("--num_layers 4 --hidden_size 8 --bf16 --prefetch 1", ["--prefetch"]),
        ("--num-layers 4 --hidden-size 8 --prefetch", []),  # the program knows too few of them
        ("--num-layers 4 --hidden-size 8 --bf16 --quoted", []),
    ],
)
def test_a_name_that_no_file_has_is_likely_unknown_beside_known_ones(
    tmp_path: Path, line: str, names: list[str]
) -> None:
    methods = "    def parse_args(self):\n        ...\n"
    other = f"import argparse\nclass MyArgumentParser(argparse.ArgumentParser):\n{methods}"
    program = PROGRAM.replace("import argparse\n", other).replace("= argparse.", "= My")
    (tmp_path / "train.py").write_text(f"{program}print(args.quoted)\n")
    found = scan(tmp_path, f"train.py {line}")
    assert [each.message.rpartition(" ")[2] for each in found] == names
    assert {(each.code, each.certainty) for each in found} <= {("NP212", "likely")}
    # slime gives its parser to SGLang, whose names it changes
    for other in (
        "from transformers import A\nfrom tyro import cli\ncli(A)\n",
        "parser.add_argument = add\n",
    ):
        (tmp_path / "train.py").write_text(program.replace("args =", f"{other}args ="))
        assert scan(tmp_path, f"train.py {line}") == []


# open_instruct/dpo.py of allenai/open-instruct
def test_a_method_that_also_reads_files_may_parse_the_arguments(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        OWN_CLASS.replace("parse_args_into_dataclasses()", "parse()")
    )
    found = scan(tmp_path, "train.py --max_promt_length 3")
    assert [(each.code, each.certainty) for each in found] == [("NP212", "likely")]


# applications/Chat/examples/train_prompts.sh of hpcaitech/ColossalAI before 891b8e7f
@pytest.mark.parametrize(
    ("line", "program", "is_found"),
    [
        ("prompts.csv --bf16", PROGRAM, True),
        ("prompts.csv", PROGRAM, True),
        ("--bf16", PROGRAM, False),
        ("config.yaml --bf16", PROGRAM, False),  # some programs read it themselves
        ("a=1 --bf16", PROGRAM, False),
        ("$DATA --bf16", PROGRAM, False),
        ("prompts.csv --bf16", f"{PROGRAM}parser.add_argument('data')\n", False),
        # examples/conversion/convert_megatron_mimo.py of NVIDIA-NeMo/Megatron-Bridge
        ("export --bf16", f"{PROGRAM}parser.add_subparsers().add_parser('export')\n", False),
        ("prompts.csv --bf16", PROGRAM.replace("parse_args", "parse_known_args"), False),
    ],
)
def test_a_word_before_all_flags_needs_an_argument_without_one(
    tmp_path: Path, line: str, program: str, is_found: bool
) -> None:
    (tmp_path / "train.py").write_text(program)
    found = scan(tmp_path, f"train.py {line}")
    assert [(each.code, each.certainty) for each in found] == [("NP844", "likely")] * is_found


# scripts of mindspore-ai/models, and tests of NVIDIA/NeMo, which run below coverage
@pytest.mark.parametrize(
    ("start", "is_found"),
    [
        ('torchrun $(dirname "$(pwd)")/train.py', True),
        ('torchrun $(cd ./"`dirname $0`" || exit; pwd)/../train.py', True),
        ("cd run0\ntorchrun ../../train.py", True),
        ("coverage run -a --data-file=/a/.coverage train.py", True),
        ("python -m coverage run --parallel-mode train.py", True),
        ("torchrun $(find_program)/train.py", False),
        ("coverage run -m pytest train.py", False),
    ],
)
def test_a_program_in_a_folder_that_a_command_names_is_found(
    tmp_path: Path, start: str, is_found: bool
) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "scripts/run.sh").write_text(f"{start} --bf17\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.code for each in found if each.code == "NP212"] == ["NP212"] * is_found


def test_an_unused_variable_of_a_program_that_is_not_found_is_judged_by_the_tree(
    tmp_path: Path,
) -> None:
    (tmp_path / "options.py").write_text("group.add_argument('--warmup', type=int)\n")
    (tmp_path / "__init__.py").write_text("")  # as in examples/msdp of Megatron-LM
    (tmp_path / "run.sh").write_text(f"WARMUP=3\ntorchrun pretrain_gpt.py {MARKS} --bf16\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.code for each in found if "WARMUP" in each.message] == ["NP843"]
    assert "There is a flag --warmup." in "".join(each.why + each.hint for each in found)
