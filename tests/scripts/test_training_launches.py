"""Arguments of training programs in shell scripts: what bash passes to them is what is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from npuprof.model import Context
from npuprof.scripts.import_resolution import open_modules
from npuprof.scripts.lint import check_script
from npuprof.scripts.lint.program_faults import judge_programs
from npuprof.scripts.preset import build_drafts, format_draft
from npuprof.scripts.programs.finding import Programs
from npuprof.scripts.reading.file_kinds import import_script
from npuprof.scripts.reading.training_launches import mentions_training
from npuprof.scripts.scanning import scan_scripts
from npuprof.scripts.script_coverage import CoverageCount, list_unjudged
from npuprof.scripts.script_records import ImportedFile, ScriptSetting, StartedProgram
from npuprof.scripts.shared_bases import build_family
from npuprof.store import spec

SECTIONS = ("megatron", "verl", "args")
#: Programs that write their arguments to a file instead of running.
PROGRAMS = (
    *("torchrun", "python", "python3", "msrun", "deepspeed", "accelerate", "ray"),
    *("llamafactory-cli", "swift", "mpirun", "uv"),
)
_DUMP = f"""#!{sys.executable} -IS
import json, os, sys
with open(os.environ["DUMP"], "a") as file:
    file.write(json.dumps(sys.argv) + "\\n")
"""

#: By shape: the script, the section, and the word before the arguments of the program. The public
#: scripts have these shapes; names and values are made up.
SHAPES: dict[str, tuple[str, str, str]] = {
    # MindSpeed-MM examples/wan2.1/1.3b/i2v/pretrain.sh
    "texts of several lines": (
        """
NPUS=8
NODE_RANK=0
TP=2
MBS=1
GBS=$(($MBS*4*$NPUS/$TP))
DATA="./a.json ./b.json"
DISTRIBUTED_ARGS="
    --nproc_per_node $NPUS \\
    --node_rank $NODE_RANK \\
"
GPT_ARGS="
    --tensor-model-parallel-size ${TP} \\
    --micro-batch-size ${MBS} \\
    --global-batch-size $GBS \\
    --num-layers 30 --lr 1.0e-5 \\
    --weight-decay 1e-2 --adam-beta2 0.999 --clip-grad 1.0 \\
    --no-load-optim \\
    --data-path $DATA
    --bf16
"
OUTPUT_ARGS="--save ./out --log-interval 1"
torchrun $DISTRIBUTED_ARGS pretrain_x.py \\
    $GPT_ARGS \\
    $OUTPUT_ARGS \\
    --distributed-backend nccl \\
    2>&1 | tee train.log
""",
        "megatron",
        "pretrain_x.py",
    ),
    # Megatron-LM examples/gpt3/train_gpt3_175b_distributed.sh
    "arrays without quotes": (
        """
MODEL_ARGS=(
    --num-layers 96 # of them
    --hidden-size 12288
    --train-iters 500000
    --batch-schedule "0:16 2.4B:320 4.8B:624"
    --lr-warmup-fraction .001
)
torchrun --nproc_per_node=8 pretrain_gpt.py ${MODEL_ARGS[@]} --fp16
""",
        "megatron",
        "pretrain_gpt.py",
    ),
    # Megatron-LM examples/llama/train_llama3_8b_h100_fp8.sh
    "arrays in quotes that grow": (
        """
BASE=(--a 1 --b "x y")
ARGS=()
ARGS+=("${BASE[@]}" --c='p q' --empty "")
ARGS+=(-n 3 --ratio 0.50 --minus -1)
torchrun --standalone --nnodes 1 train.py "${ARGS[@]}" --last
""",
        "args",
        "train.py",
    ),
    # ModelZoo-PyTorch PyTorch/built-in/foundation/GLM-10B/scripts/ds_finetune_record.sh
    "a command in a variable that eval runs": (
        """
MODEL="--block-lm --cloze-eval"
LAUNCH="deepspeed --num_gpus 4 --master_port 29500"
run_cmd="${LAUNCH} finetune.py \\
       --deepspeed --task record \\
       $MODEL \\
       --seq-length 512 \\
       --overwrite \\
       2>&1 | tee log.txt"
eval ${run_cmd}
""",
        "args",
        "finetune.py",
    ),
    # commands/run_sft.sh of huggingface/trl before 67441bb
    "a text with quotes that eval runs": (
        """
STEPS=5
CMD=\"\"\"
accelerate launch --num_processes 2 \\
    --mixed_precision 'fp16' \\
    sft.py --mode 'a' --other "b" \\
    --max_steps $STEPS
\"\"\"
{
    eval "$CMD"
}
""",
        "args",
        "sft.py",
    ),
    # test_scripts of NVIDIA/NeMo-RL, and examples of NovaSky-AI/SkyRL
    "uv run": (
        """
uv run --isolated --extra npu -m train --config a.json --steps 5 --lr 1e-5
uv run --frozen torchrun --nproc_per_node 2 other.py --x 1 --y 2 --z 3
""",
        "args",
        "other.py",
    ),
    # MindSpeed-MM examples/diffusers/sdxl/sdxl_pretrain_fp16.sh
    "accelerate launch": (
        """
size=1024
accelerate launch --config_file c.yaml --multi_gpu --num_processes=8 \\
  ./train_sdxl.py \\
  --caption_column="text" --resolution=$size --random_flip \\
  --learning_rate=1e-05 --steps=500
""",
        "args",
        "./train_sdxl.py",
    ),
    # LLaMA-Factory examples/train_lora/qwen3_lora_sft.sh
    "a command of a program": (
        """
MODEL_PATH=Org/Model-4B
llamafactory-cli train \\
    --model_name_or_path ${MODEL_PATH} \\
    --do_train \\
    --dataset identity,alpaca \\
    --save_only_model false \\
    --num_train_epochs 3.0
""",
        "args",
        "train",
    ),
    # ModelZoo-PyTorch PyTorch/built-in/mlm/LAVIS/.../upernet_global_small/run.sh
    "python -m torch.distributed.launch": (
        """
PORT=29500 nohup python -u -m torch.distributed.launch --nproc_per_node=8 --use_env \\
    --master_port $PORT tools/train.py cfg.py --launcher pytorch --seed 0 --work-dir ./out &
wait
""",
        "args",
        "tools/train.py",
    ),
    # mindformers research/llama3_1/README.md, without its launcher script
    "msrun": (
        """
msrun --worker_num=8 --local_worker_num=8 --join=True run_mindformer.py \\
 --config x.txt --use_parallel True --run_mode train
""",
        "args",
        "run_mindformer.py",
    ),
    # MindSpeed-MM examples/verl_examples/qwen2.5vl/train_qwen2_5_vl_7b_grpo_full.sh
    "overrides": (
        """
N=4
python3 -m verl.trainer.main_ppo --config-name=ppo_x \\
    algorithm.adv_estimator=grpo data.train_batch_size=512 \\
    data.path='/data/a b.parquet' \\
    actor.optim.lr=1e-6 actor.rollout.n=$N \\
    trainer.logger='["console","board"]' \\
    +trainer.device=npu ++model.extra=null ~data.val \\
    trainer.save=True "$@"
""",
        "verl",
        "verl.trainer.main_ppo",
    ),
    "a function, a loop, and a text that grows": (
        """
run() {
    local extra="--tag run"
    torchrun --nproc_per_node 2 train.py $ALL $extra
}
ALL="--a 1"
ALL="$ALL --b 2"
ALL+=" --c '3'"
for i in 1; do torchrun --nproc_per_node 2 other.py $ALL --x "y"; done
""",
        "args",
        "other.py",
    ),
}


def start_programs(folder: Path, script: str) -> list[list[str]]:
    """Return the arguments of the programs that bash starts for a script."""
    programs = folder / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).write_text(_DUMP)
        (programs / name).chmod(0o755)
    dump = folder / "dump"
    dump.touch()
    path = f"{programs}:{os.environ['PATH']}"
    environ = {"PATH": path, "DUMP": str(dump), "HOME": str(folder)}
    subprocess.run(["bash", "-c", script], cwd=folder, env=environ, check=True)
    return [json.loads(line) for line in dump.read_text().splitlines()]


def read(text: str) -> ImportedFile:
    return import_script("run.sh", text.encode())


def list_arguments(imported: ImportedFile) -> list[ScriptSetting]:
    return [setting for setting in imported.settings if setting.surface in SECTIONS]


def write_words(setting: ScriptSetting) -> list[str]:
    """Return an argument as the words that set it."""
    flag = setting.name if setting.name.startswith("-") else f"--{setting.name}"
    if setting.value is True:
        return [flag]
    values = setting.value if isinstance(setting.value, list) else [setting.value]
    return [flag, *map(str, values)]


def contains(row: list[str], words: list[str]) -> bool:
    pairs = [*row, *(part for word in row for part in word.split("=", 1))]
    joined = [part for word in row for part in (word.split("=", 1) if "=" in word else [word])]
    return any(
        words == line[at : at + len(words)]
        for line in (row, joined, pairs)
        for at in range(len(line))
    )


@pytest.mark.parametrize("name", [name for name, row in SHAPES.items() if row[1] != "verl"])
def test_what_is_read_is_what_bash_passes(name: str, tmp_path: Path) -> None:
    script, section, before = SHAPES[name]
    started = start_programs(tmp_path, script)
    row = next(row for row in started if before in row)
    passed = row[row.index(before) + 1 :]
    imported = read(script)
    records = imported.list_records(StartedProgram)
    record = next(record for record in records if before in (record.script, record.module, "train"))
    assert record.scope.startswith(f"{section}@")
    settings = [setting for setting in imported.settings if setting.scope == record.scope]
    known = [setting for setting in settings if not setting.reason]
    for setting in known:
        assert contains(passed, write_words(setting)), setting
    flags = {word.split("=")[0] for word in passed if word.startswith("-") and word != "-1"}
    assert {write_words(setting)[0] for setting in settings if setting.key} == flags
    assert len(known) >= max(len(flags), 3)  # all of them are literal


@pytest.mark.parametrize("name", SHAPES)
def test_an_argument_is_where_its_flag_is_written(name: str) -> None:
    script, _, _ = SHAPES[name]
    lines = script.split("\n")
    settings = [setting for setting in list_arguments(read(script)) if setting.key]
    assert len(settings) >= 3
    for setting in settings:
        written = lines[setting.line - 1][setting.column - 1 :]
        flag = write_words(setting)[0] if setting.surface != "verl" else setting.name
        assert written.lstrip("'").startswith(flag)


def read_overrides(line: str) -> dict[str, Any]:
    imported = read(f"python3 -m verl.trainer.main_ppo {line}\n")
    return {
        setting.key.removeprefix("verl."): setting.reason or setting.value
        for setting in list_arguments(imported)
    }


#: By override, as a shell passes it: the value.
OVERRIDES: dict[str, Any] = {
    "a.b=1": 1,
    "a.b=-2": -2,
    "a.b=1_000": 1000,
    "a.b=1e-6": 1e-6,
    "a.b=.5": 0.5,
    "a.b=True": True,
    "a.b=false": False,
    "a.b=null": "null",
    "a.b=": "",
    "a.b=text": "text",
    "a.b=a/b-c:d": "a/b-c:d",
    "a.b='x y'": "x y",
    'a.b="1"': "1",
    "a.b=[1,x,true,null]": [1, "x", True, "null"],
    "a.b=[]": [],
    "a.b=['x, y', 2]": ["x, y", 2],
    "a.b=${c.d}": "${c.d}",
    "a.b=hdfs://x/y": "hdfs://x/y",
}


@pytest.mark.parametrize("override", OVERRIDES)
def test_values_of_overrides_are_those_of_hydra(override: str) -> None:
    quoted = "'" + override.replace("'", "'\\''") + "'"
    assert read_overrides(quoted) == {"a.b": OVERRIDES[override]}
    overrides = pytest.importorskip("hydra.core.override_parser.overrides_parser")
    value = overrides.OverridesParser.create().parse_override(override).value()
    assert plain(value) == OVERRIDES[override]


def plain(value: Any) -> Any:
    """Return a value of Hydra as a preset has it."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if value is None:
        return "null"
    return getattr(value, "text", value)


@pytest.mark.parametrize(
    "override",
    [
        *("a.b=1,2", "a.b=glob(*)", "a.b=range(1,3)", "a.b=[1,", "a.b={c:1}", "a.b=[[1]]"),
        *("a.b=nan", "a.b=x y", "a.b=[x y]", 'a.b="\\""'),
    ],
)
def test_sweeps_functions_and_nested_values_are_no_plain_values(override: str) -> None:
    assert read_overrides(f"'{override}'") == {"a.b": "is no plain value of Hydra"}


def test_keys_of_overrides_have_their_prefix() -> None:
    read = read_overrides("+a.b=1 ++c.d=2 ~e.f --config-name=x -cp y --config-dir z 'g@h.i=j'")
    assert read == {
        '"+a".b': 1,
        '"++c".d': 2,
        '"~e".f': True,
        "--config-name": "x",
        "-cp": "y",
        "--config-dir": "z",
        '"g@h".i': "j",
    }


#: Lines after ``export HCCL_BUFFSIZE=200`` or not, and the names that are read.
FOUND: dict[str, tuple[str, list[str]]] = {
    "a launcher": ("torchrun --nnodes 1 t.py --x 1", ["x"]),
    "flags of the launcher without values": ("deepspeed --no_ssh --num_gpus 8 t.py --x 1", ["x"]),
    "an unknown flag of the launcher": ("torchrun --new-one --nnodes 1 t.py --x 1", ["x"]),
    "arguments of the launcher in a variable": ("torchrun $DIST t.py --x 1", ["x"]),
    "a module of a launcher": ("torchrun --nnodes 1 -m pkg.train --x 1", ["x"]),
    "a wrapper": ("timeout 10 numactl -N 0 torchrun t.py --x 1", ["x"]),
    "an environment": ("env A=1 nohup torchrun t.py --x 1 &", ["x"]),
    "ray": ("ray job submit --address a --no-wait -- python3 t.py --x 1", ["x"]),
    "mpirun": ("mpirun -n 8 -x A=1 python t.py --x 1", ["x"]),
    "a nested shell": ("bash -c 'torchrun t.py --x 1'", ["x"]),
    "a script of msrun": (
        'bash scripts/msrun_launcher.sh "run.py --x 1 \\\n --y True" 8',
        ["x", "y"],
    ),
    "a sub-command": ("swift sft --x 1", ["x"]),
    "a script in a variable": ("torchrun $SCRIPT --x 1", ["x"]),
    "Megatron's flags": (
        "python t.py --num-layers 2 --hidden-size 8 --train-iters 9",
        ["num-layers", "hidden-size", "train-iters"],
    ),
    "verl": ("python -m verl.trainer.main_ppo x=1", ["x"]),
    "variables of the catalogue": ("export HCCL_BUFFSIZE=200\npython t.py --x 1", ["x"]),
    "no evidence": ("python tool.py --x 1", []),
    # Ascend/ModelZoo-PyTorch, PyTorch/built-in/rl/MAPPO_for_PyTorch/onpolicy/scripts
    "many arguments": ("python t.py --a 1 --b 2 --c 3 --d 4 --e 5", [*"abcde"]),
    "a launcher that is only shown": ("echo torchrun t.py --x 1", []),
    "no script": ("torchrun --help", []),
    "no program in Python": ("torchrun --no-python run.sh --x 1", []),
    "other modules": ("python -m pip install --x torchrun", []),
    "other commands": ("accelerate config --x 1; ray start --x 1; swift web-ui --x 1", []),
}


@pytest.mark.parametrize("name", FOUND)
def test_starts_are_those_of_training_programs(name: str) -> None:
    text, names = FOUND[name]
    assert [setting.name for setting in list_arguments(read(f"{text}\n"))] == names


@pytest.mark.parametrize(
    "text",
    [
        "(I=2; torchrun t.py --x $I)",
        "{ I=2; torchrun t.py --x $I; } | tee log",
        "I=2\n(cd a && torchrun t.py --x $I) &",
        "I=2\nif (( I == 2 )); then torchrun t.py --x $I | tee log; fi",
    ],
)
def test_a_subshell_has_its_own_values_and_those_before_it(text: str) -> None:
    (setting,) = list_arguments(read(f"{text}\n"))
    assert setting.value == 2


#: Scripts of which a value is unknown: the settings with their reasons.
UNKNOWN: dict[str, tuple[str, dict[str, str]]] = {
    "a variable": ("torchrun t.py --x $1 --y 2", {"x": "depends on $1", "y": ""}),
    "a variable without quotes may be several words": (
        "torchrun t.py --x $EXTRA_ARGS --y 2",
        {"x": "", "$EXTRA_ARGS": "depends on $EXTRA_ARGS", "y": ""},
    ),
    "a product of an unknown number": (
        "N=$(wc -l < hosts)\nGBS=$((8*$N))\ntorchrun t.py --x $GBS --y 2",
        {"x": "depends on $((8*$N))", "y": ""},
    ),
    "all arguments": ('torchrun t.py --x 1 "$@"', {"x": "", "$@": "depends on $@"}),
    "a pattern": (
        "torchrun t.py --x *.bin",
        {"x": "depends on *.bin, which a shell replaces"},
    ),
    "a home folder": (
        "torchrun t.py --x ~/data",
        {"x": "depends on ~/data, which a shell replaces"},
    ),
    "a secret": ("torchrun t.py --wandb-api-key abc", {"wandb-api-key": "is a secret"}),
    "another value in a branch": (
        'A="--x 1"\nif [ -n "$B" ]; then A="--x 2"; fi\ntorchrun t.py $A',
        {"$A": "depends on $A"},
    ),
    "another value in a function": (
        'A="--x 1"\nset_it() { A="--x 2"; }\nset_it\ntorchrun t.py $A',
        {"$A": "depends on $A"},
    ),
    # Ascend/ModelZoo-PyTorch, PyTorch/contrib/cv/others/Cross-Scale-Non-Local-Attention/test
    "a loop with an expression": (
        "for((I=0;I<8;I++));\ndo\ntorchrun t.py --rank_id $I --y 2\ndone",
        {"rank_id": "depends on $I", "y": ""},
    ),
    "a number that an expression changes": (
        "((I=1))\n((I++))\ntorchrun t.py --x $I",
        {"x": "depends on $I"},
    ),
    "a number that an expression changes after its assignment": (
        "I=1\n((I++))\ntorchrun t.py --x $I",
        {"x": "depends on $I"},
    ),
    "a number that let changes": (
        "I=1\nif true; then let I+=1; fi\ntorchrun t.py --x $I",
        {"x": "depends on $I"},
    ),
    "a text of printf": (
        "I=1\nprintf -v I %d 2\ntorchrun t.py --x $I",
        {"x": "depends on $I"},
    ),
    "another value in a subshell": (
        "I=1\n(I=2)\ntorchrun t.py --x $I",
        {"x": "depends on $I"},
    ),
    "another value in a pipe": (
        "I=1\n{ I=2; echo; } | cat\ntorchrun t.py --x $I",
        {"x": "depends on $I"},
    ),
    "another value in the background": (
        "I=1\nI=2 &\ntorchrun t.py --x $I",
        {"x": "depends on $I"},
    ),
    "a variable that read changes": (
        'A="--x 1"\nread A\ntorchrun t.py $A',
        {"$A": "depends on $A"},
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_value_keeps_its_name(name: str) -> None:
    text, reasons = UNKNOWN[name]
    settings = list_arguments(read(f"{text}\n"))
    assert {setting.name: setting.reason for setting in settings} == reasons
    assert all(setting.key == "" for setting in settings if setting.name.startswith("$"))


def test_flags_under_a_condition_are_no_part_of_the_base() -> None:
    text = 'A="--x 1"\nif [ -n "$B" ]; then A="$A --y 2"; fi\ntorchrun t.py $A\n'
    (draft,) = build_drafts(read(text))
    assert draft.settings == {"args.x": 1}
    (note,) = draft.notes
    assert (note.setting.name, note.condition, note.value) == ("y", "[ -n $B ]", 2)


@pytest.mark.parametrize(
    "command",
    ["torchrun t.py --model a --model.b 1", "python -m verl.trainer.main_ppo model.b=1 model=a"],
)
def test_an_argument_around_another_is_in_no_preset(command: str) -> None:
    (draft,) = build_drafts(read(f"{command}\n"))
    assert len(draft.settings) == len(draft.notes) == 1
    tomllib.loads(format_draft(draft))


def test_variables_of_a_sourced_file_are_in_that_file(tmp_path: Path) -> None:
    (tmp_path / "env.sh").write_text('ARGS="\n  --x 1\n"\n')
    run = tmp_path / "run.sh"
    run.write_text("source ./env.sh\ntorchrun t.py $ARGS --y 2\n")
    imported = import_script(str(run), run.read_bytes(), modules=open_modules([str(tmp_path)]))
    found = [(Path(s.file).name, s.line, s.column, s.key) for s in list_arguments(imported)]
    assert found == [("env.sh", 2, 3, "args.x"), ("run.sh", 2, 21, "args.y")]


@pytest.mark.parametrize(
    "command", ["torchrun train.py conf/a.yaml --model.b 3", "llamafactory-cli train conf/a.yaml"]
)
def test_a_file_that_a_command_names_is_read(command: str, tmp_path: Path) -> None:
    """As LLaMA-Factory's README and MindSpeed-MM's train_fsdp2.py have it."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "a.yaml").write_text("model:\n  a: 1\n  b: 2\nlist: [x, y]\nnone: null\n")
    run = tmp_path / "run.sh"
    run.write_text(f"{command}\n")
    imported = import_script(str(run), run.read_bytes(), modules=open_modules([str(tmp_path)]))
    (draft,) = build_drafts(imported)
    b = 3 if "--model.b" in command else 2
    assert draft.settings == {"args.model.a": 1, "args.model.b": b, "args.list": ["x", "y"]}
    run.write_text(f"{command.replace('a.yaml', 'other.yaml')}\n")
    imported = import_script(str(run), run.read_bytes(), modules=open_modules([str(tmp_path)]))
    assert list_arguments(imported)[0].reason == "names a file that is not in the tree"


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        pytest.param("torchrun pretrain_vlm.py $GPT_ARGS", [2], id="not passed"),
        pytest.param("torchrun pretrain_vlm.py $GPT_ARGS $OUTPUT_ARGS", [], id="passed"),
        pytest.param("echo $GPT_ARGS", [], id="nothing is started"),
    ],
)
def test_arguments_that_no_command_gets_are_found(command: str, lines: list[int]) -> None:
    """As examples/mindspore/internvl2/finetune_internvl2_8B.sh of MindSpeed-MM has them."""
    text = f'GPT_ARGS="--lr 1e-5"\nOUTPUT_ARGS="--log-interval 1"\n{command}\n'
    found = check_script(read(text), Context())
    assert [(each.code, each.line) for each in found] == [("NP843", line) for line in lines]


def test_the_key_of_an_override_is_named_as_in_a_preset() -> None:
    text = "python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=x\n"
    (found,) = check_script(read(text), Context())
    assert found.message == 'verl.trainer.n_gpus_per_node takes a number, not "x"'


def test_a_table_of_flags_is_a_launch() -> None:
    """As tests/functional_tests/test_cases/*/model_config.yaml of NVIDIA/Megatron-LM has it."""
    text = """\
ENV_VARS:
  CUDA_DEVICE_MAX_CONNECTIONS: 1
MODEL_ARGS:
  --tensor-model-parallel-size: 2
  --num-layers: 12
  --micro-batch-size: 4
  --sequence-parallel: true
  --load: ${CHECKPOINT_LOAD_PATH}
  --hierarchical-context-parallel-sizes: 2 4
"""
    imported = import_script("model_config.yaml", text.encode())
    found = [(each.line, each.key, each.value) for each in imported.settings]
    assert found == [
        (2, "env.CUDA_DEVICE_MAX_CONNECTIONS", "1"),
        (4, "megatron.tensor-model-parallel-size", 2),
        (5, "megatron.num-layers", 12),
        (6, "megatron.micro-batch-size", 4),
        (7, "megatron.sequence-parallel", True),
        (8, "megatron.load", None),
        (9, "megatron.hierarchical-context-parallel-sizes", [2, 4]),
    ]
    (finding,) = check_script(
        import_script("a.yaml", text.replace(": 2\n", ": 1\n").encode()), Context()
    )
    assert (finding.code, finding.line, finding.certainty) == ("NP3336", 7, "likely")


def test_a_file_of_verl_has_keys_of_hydra() -> None:
    """In the shape of verl/trainer/config/ppo_trainer.yaml: defaults, tables, interpolations."""
    text = """\
defaults:
  - ppo_trainer
  - _self_
data:
  train_batch_size: 64
actor_rollout_ref:
  actor:
    optim:
      lr: fast
trainer:
  project_name: ${oc.env:NAME}
"""
    imported = import_script("own.yaml", text.encode())
    found = [(each.line, each.key, each.value, each.reason) for each in imported.settings]
    assert found == [
        (1, "", None, "names further files"),
        (5, "verl.data.train_batch_size", 64, ""),
        (9, "verl.actor_rollout_ref.actor.optim.lr", "fast", ""),
        (11, "verl.trainer.project_name", None, "depends on ${oc.env:NAME}"),
    ]
    (finding,) = check_script(imported, Context())
    assert (finding.code, finding.line, finding.certainty) == ("NP202", 9, "likely")


# rllm/experimental/config/rllm/backend/verl.yaml of rllm
def test_a_file_of_hydra_may_demand_values_and_have_keys_of_other_code() -> None:
    text = """
actor_rollout_ref:
  actor: {ppo_epochs: 1}
algorithm:
  gamma: ???
data: {gen_batch_size: 8}
trainer:
  total_epochs: ???
"""
    imported = import_script("verl.yaml", text.encode())
    context = spec.build_context(versions={"verl": "0.6.1"})
    found = [(each.code, each.certainty, each.line) for each in check_script(imported, context)]
    assert found == [("NP404", "likely", 6)]


#: Runtime environments of jobs of Ray, and whether each is the JSON that Ray parses: tests/ and
#: scripts/ of THUDM/slime before 2025-12 have the first two.
ENVIRONMENTS = {
    '{"env_vars": {"A": "1",}}': False,
    '{"env_vars": {"A": "$A"\n "B": "1"}}': False,
    "{env_vars: {A: 1}}": False,
    '{"env_vars": {"A": "1"}}': True,
    '{"env_vars": {"A": $NUMBER, "B": "${TEXT}"}}': True,
    '{"env_vars": {"A": "1" $MORE}}': True,
    "$ALL": True,
}


@pytest.mark.parametrize("text", ENVIRONMENTS)
@pytest.mark.parametrize("is_variable", [False, True])
def test_a_runtime_environment_of_ray_is_json(text: str, is_variable: bool) -> None:
    quoted = '"' + text.replace('"', '\\"') + '"'
    script = f"ray job submit --runtime-env-json={quoted} -- python3 t.py --lr 1\n"
    if is_variable:
        script = f'J={quoted}\nray job submit --runtime-env-json="$J" -- python3 t.py --lr 1\n'
    found = check_script(read(script), Context())
    codes = [each.code for each in found if "runtime-env" in each.message]
    assert codes == ([] if ENVIRONMENTS[text] else ["NP203"])
    filled = subprocess.run(
        ["bash", "-c", f"NUMBER=1 TEXT=x A=y MORE= ALL='{{}}'; echo {quoted}"],
        capture_output=True,
        text=True,
    )
    try:
        json.loads(filled.stdout)
    except ValueError:
        assert not ENVIRONMENTS[text]
    else:
        assert ENVIRONMENTS[text]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # scripts/run-qwen3-235B-A22B.sh of slime before its comma, and its test before the brace
        ('J="{\n  \\"a\\": {\n    \\"b\\": \\"${X}\\"\n    \\"c\\": 1 } }"\n', [3]),
        ("J='{\n  \"a\": 1,\n}'\n", [4]),  # a constant
        ('A=1\nJ="{\\"a\\": 1, \\"b\\": $A}"\n', []),
    ],
)
def test_what_is_no_json_is_found_where_it_is_written(text: str, lines: list[int]) -> None:
    script = f'{text}ray job submit --runtime-env-json="$J" -- python3 t.py --lr 1\n'
    found = check_script(read(script), Context())
    assert [each.line for each in found if "JSON" in each.message] == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # scripts/eval/oe-eval.sh of open-instruct before 4ddd53c2
        ('J="{\\"path\\":\\"$P\\", \\"length\\": ${N}"\n', [2]),
        ('IFS=, read -ra A <<< $1\nJ="{\\"path\\":\\"$P\\""\n', [3]),
        ('J="{\\"path\\":\\"$P\\", \\"length\\": ${N}}"\n', []),
        ("J=\"{{'a'\"\n", []),  # a template
        ("M=${M:+--a=1}\ntorchrun t.py ${M:+$M --b=1} ${N:---c=1}\n", []),
    ],
)
def test_json_without_its_end_is_found(text: str, lines: list[int]) -> None:
    script = f'N=${{N:-1}}\n{text}torchrun t.py --lr 1 --model-args "$J"\n'
    found = check_script(read(script), Context())
    assert [each.line for each in found if "JSON" in each.message] == lines


# scripts/train-13b.yaml of FastChat before 672fd1cc
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("setup: |\n  pip install a\n\nrun: |\n  torchrun --nnodes=$N \\\n    t.py --lr 1\n", [5]),
        ("name: a\ncommand: |-\n  torchrun t.py \\\n    --lr 1\n    --wd 2\n", [5]),
        # the job may set any variable, and get the file
        ("envs: {}\nrun: |\n  torchrun b/t.py $my_data\n", []),
        ("jobs:\n  a:\n    run: |\n      torchrun --nnodes=$N t.py --lr 1\n", []),
        # mcli/mcli-llama3-finetune.yaml of mosaicml/llm-foundry: a variable of another program
        ("command: |\n  export HF_HUB_ENABLE=1\n  torchrun t.py --lr 1\n", []),
    ],
)
def test_the_commands_of_a_job_in_yaml_are_judged(
    text: str, lines: list[int], tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text(text)
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [(each.code, each.line) for each in found] == [("NP844", line) for line in lines]


def test_unknown_arguments_hide_no_contradiction_of_known_ones() -> None:
    """Those of examples/retool/retool_qwen3_4b_sft.sh of THUDM/slime before a01b0b07."""
    known = "--tensor-model-parallel-size 2 --num-layers 2 --hidden-size 8"
    script = f"torchrun t.py $MORE {known} --lr-warmup-iters 128 --lr-warmup-fraction 0.9\n"
    found = check_script(read(script), Context())
    assert [each.code for each in found if each.code.startswith("NP33")] == ["NP3325"]


def test_a_file_of_arguments_is_judged_by_the_parser_of_its_program(tmp_path: Path) -> None:
    """The misspelt name is that of hiyouga/LLaMA-Factory, commit 955396e8a."""
    home = tmp_path / "src" / "llamafactory"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("")
    (home / "launcher.py").write_text(
        "from dataclasses import dataclass\n"
        "from transformers import HfArgumentParser\n"
        "@dataclass\nclass Arguments:\n"
        "    stage: str\n    cutoff_len: int\n    use_v1_kernels: bool\n"
        "    finetuning_type: str = 'lora'\n"
        "HfArgumentParser(Arguments).parse_args_into_dataclasses()\n"
    )
    recipe = tmp_path / "examples" / "lora.yaml"
    recipe.parent.mkdir()
    lines = ["stage: sft", "finetuning_type: lora", "cutoff_len: long", "use_kernels: true"]
    recipe.write_text("\n".join(lines))
    imported = import_script(str(recipe), recipe.read_bytes())
    programs = Programs([str(tmp_path)])
    found = judge_programs(imported, check_script(imported, Context()), programs)
    assert [(each.code, each.line, each.severity) for each in found] == [
        ("NP202", 3, "error"),
        ("NP212", 4, "error"),
    ]
    assert "use_v1_kernels" in found[1].hint


@pytest.mark.parametrize("between", [" | ", " && ", "; "])
def test_each_program_of_a_line_has_its_own_arguments(tmp_path: Path, between: str) -> None:
    for name, flag in (("first.py", "--rate"), ("second.py", "--size")):
        text = (
            f"import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument({flag!r})\n"
        )
        (tmp_path / name).write_text(f"{text}parser.parse_args()\n")
    script = tmp_path / "train.sh"
    line = f"python first.py --rate 1{between}python second.py --size 2 --seize 3"
    script.write_text(f"export HCCL_BUFFSIZE=200\n{line}\n")
    imported = import_script(str(script), script.read_bytes())
    found = judge_programs(imported, [], Programs([str(tmp_path)]))
    assert [(each.code, each.key) for each in found] == [("NP212", "args.seize")]


def test_arguments_without_a_parser_are_neither_checked_nor_found_wrong() -> None:
    text = "export HCCL_BUFFSIZE=200\ntorchrun t.py \\\n  --tenser-parallel 1 \\\n  --x two\n"
    imported = read(text)
    assert check_script(imported, Context()) == []
    count = CoverageCount()
    count.add_file(imported)
    count.add_unjudged(list_unjudged(imported, text.encode()))
    assert count.coverage.checked == 1
    assert [(seen.surface, seen.lines) for seen in count.coverage.unjudged] == [
        ("program arguments", 2)
    ]


def test_arguments_of_launchers_are_no_unjudged_lines() -> None:
    text = """DISTRIBUTED_ARGS="
    --nproc_per_node 8 \\
    --master_port 6000
"
torchrun $DISTRIBUTED_ARGS --nnodes 1 \\
    --rdzv_id 1 t.py --num-layers 2 --hidden-size 8 \\
    --train-iters 9
torchrun --nnodes 1 other.py --x 1
tool --y 1 train.py
"""
    (unjudged,) = (seen for seen in list_unjudged(read(text), text.encode()) if seen.lines)
    assert (unjudged.surface, unjudged.lines) == ("program arguments", 2)


#: Values of templates: what they are, as the note has it.
TEMPLATES = {
    'DATA="your data path"': "your data path",
    "DATA=/path/to/x": "/path/to/x",
    'DATA=""': "",
}


@pytest.mark.parametrize("line", TEMPLATES)
def test_a_value_of_a_template_is_a_note_and_in_no_preset(line: str) -> None:
    text = f"{line}\ntorchrun t.py --num-layers 2 --hidden-size 8 --train-iters 9 --load $DATA\n"
    imported = read(text)
    (setting,) = (each for each in list_arguments(imported) if each.name == "load")
    assert (setting.reason, setting.assigned.written) == ("a placeholder", TEMPLATES[line]) or (
        setting.assigned.written == TEMPLATES[line].split()
    )
    findings = check_script(imported, Context())
    assert {(found.code, found.severity) for found in findings if found.key.endswith("load")} == {
        ("NP203", "info")
    }
    (draft,) = build_drafts(imported)
    assert "megatron.load" not in draft.settings


def test_an_empty_variable_among_arguments_is_no_value() -> None:
    text = 'NO=""\nARGS="--x $NO --y 1 $NO"\ntorchrun $NO t.py $NO $ARGS --z=$NO --w "$NO"\n'
    values = {setting.name: setting.value for setting in list_arguments(read(text))}
    assert values == {"x": True, "y": 1, "z": "", "w": ""}


def write_script(number: int) -> str:
    """Return one of many scripts for Megatron, which differ in a few values."""
    shared = "\n".join(f"    --shared-{at} {at} \\" for at in range(40))
    own = "--bf16" if number % 2 else "--fp16"
    return f"""export HCCL_CONNECT_TIMEOUT=1200
export TASK_QUEUE_ENABLE=2
TP={2 ** (number % 4)}
GPT_ARGS="
    --tensor-model-parallel-size $TP \\
    --num-layers {24 + number} \\
    --hidden-size 4096 \\
    --micro-batch-size 1 \\
    --train-iters 2000 \\
    --lr 1e-{number % 5 + 1} \\
    {own} \\
{shared}
"
torchrun --nproc_per_node 8 pretrain_gpt.py $GPT_ARGS --data-path $DATA
"""


def test_scripts_of_one_kind_share_a_base() -> None:
    drafts = []
    for number in range(20):
        drafts += build_drafts(import_script(f"m{number}.sh", write_script(number).encode()))
    family = build_family(drafts)
    (base,) = family.bases
    assert len(family.bases[base].facts) >= 45
    texts = [family.files[leaf.name] for leaf in family.leaves]
    assert len(texts) == 20
    lines = [[line for line in text.splitlines() if "=" in line] for text in texts]
    assert median(map(len, lines)) <= 15


def write_model(model: int, length: int) -> str:
    """Return one of nine scripts: three models with three lengths of sequences."""
    return f"""export TASK_QUEUE_ENABLE=2
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers {(32, 40, 80)[model]} \\
    --hidden-size {(4096, 5120, 8192)[model]} --ffn-hidden-size {11008 + model} \\
    --seq-length {4096 * 2**length} --micro-batch-size 1 --lr 1e-5 {"--bf16" if model else ""}
"""


def test_a_base_has_what_more_than_half_of_its_presets_have() -> None:
    drafts = []
    for model in range(3):
        for length in range(3):
            name = f"examples/m{model}/s{length}.sh"
            drafts += build_drafts(import_script(name, write_model(model, length).encode()))
    family = build_family(drafts)
    top = tomllib.loads(family.files["base-megatron"])
    assert top["megatron"] == {"micro-batch-size": 1, "lr": "1e-5", "bf16": True}
    assert "most of 9" in top["profile"]["description"]
    below = tomllib.loads(family.files["base-megatron-m0"])
    assert below["profile"]["extends"] == ["base-megatron"]
    assert below["profile"]["unset"] == ["megatron.bf16"]
    assert below["megatron"] == {"num-layers": 32, "hidden-size": 4096, "ffn-hidden-size": 11008}
    for leaf in family.leaves:
        assert list(tomllib.loads(family.files[leaf.name])["megatron"]) == ["seq-length"]


@pytest.mark.parametrize(
    "odd", ["--model.b 1", "--model c", "--model.b.c 2 --other 1", "--n [1]", "--size.x 1"]
)
def test_arguments_around_others_differ_from_a_base(odd: str) -> None:
    shared = "torchrun t.py --a 1 --b 2 --size 4"
    lines = [f"{shared} --x 1 --model a", f"{shared} --x 2 --model a", f"{shared} --x 3 {odd}"]
    for order in (lines, [line.replace("--model a", "--model.b 3") for line in lines]):
        drafts = []
        for at, line in enumerate(order):
            drafts += build_drafts(import_script(f"{at}.sh", f"{line}\n".encode()))
        family = build_family(drafts)  # which resolves each preset again
        assert set(family.bases["base-args"].facts) >= {"args.a", "args.b"}


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("torchrun train.py", True),
        ("mytorchrun train.py", False),
        ("bash msrun_launcher.sh", True),
        ("python -m torch.distributed.run train.py", True),
        ("swift sft --model x", True),
        ("swift and fast", False),
        ("uv run train.py", True),
        ("python train.py trainer.epochs=1 \\\n", True),
        ("finetuning_types: lora", False),
    ],
)
def test_a_text_mentions_training_by_whole_words(text: str, mentioned: bool) -> None:
    assert mentions_training(text.encode()) is mentioned
