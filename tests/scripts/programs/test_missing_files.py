"""Files that scripts use and that their trees lack, as repairs of public trees show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuprof.model import Context, Finding
from npuprof.scripts.scanning import scan_scripts

START = "export TASK_QUEUE_ENABLE=1\n"


def scan(folder: Path, text: str, files: str, script: str = "run.sh") -> list[Finding]:
    """Return the findings about missing files of a script in a tree of empty files."""
    for name in (*files.split(), script):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (folder / script).write_text(START + text)
    found = scan_scripts([str(folder)], Context(), None, None).findings
    return [each for each in found if each.code == "NP846"]


MISSING = [
    # multinode_trainer.slurm of torchtitan before 93a80533b
    pytest.param(
        "CONFIG_FILE=${CONFIG_FILE:-'./train_configs/llama_13b.toml'}",
        "train_configs/llama2_13b.toml",
        "did you mean train_configs/llama2_13b.toml?",
        id="misspelt default",
    ),
    # the same file before 5a26243c9
    pytest.param(
        "CONFIG_FILE='./torchtitan/models/llama/train_configs/llama3_8b.toml'",
        "torchtitan/models/llama3/train_configs/llama3_8b.toml",
        "did you mean torchtitan/models/llama3/train_configs/llama3_8b.toml?",
        id="renamed folder",
    ),
    # examples/export/ptq_and_trtllm_export of Megatron-LM before 843a22ee7
    pytest.param(
        "torchrun examples/inference/quantization/text_generation_ptq.py $options",
        "examples/inference/gpt.py examples/export/ptq_and_trtllm_export/text_generation_ptq.py",
        "did you mean examples/export/ptq_and_trtllm_export/text_generation_ptq.py?",
        id="moved program",
    ),
    # run_grpo.sh of mindrlhf
    pytest.param(
        "msrun --worker_num=8 examples/qwen/one.py",
        "examples/own/qwen/one.py",
        "did you mean examples/own/qwen/one.py?",
        id="deeper folder",
    ),
    # scripts/dpo_train_with_accelerate.sh of open-instruct before 515cd4e35
    pytest.param(
        "accelerate launch \\\n  --config_file $CONFIG open_instruct/dpo_tune.py --lr 1",
        "open_instruct/dpo_tune_cache.py",
        "did you mean open_instruct/dpo_tune_cache.py?",
        id="renamed program",
    ),
    # scripts/train_merge_tokenizer.sh of LMFlow before 4bf852a83
    pytest.param(
        "bash data/download_data.sh wiki",
        "data/download.sh",
        "did you mean data/download.sh?",
        id="script",
    ),
    # finetune_i2v.sh of FastVideo before 31200fbb8
    pytest.param(
        "FILE='examples/finetune/wan_14b_480p/crush_smol/validation.json'",
        "examples/finetune/wan_14B_480p/crush_smol/validation.json",
        "did you mean examples/finetune/wan_14B_480p/crush_smol/validation.json?",
        id="letter case of a folder",
    ),
    # scripts/archive/run_finetune_with_lora.sh of LMFlow
    pytest.param(
        "deepspeed $MAIN --deepspeed configs/archive/ds_config_zero2.json",
        "configs/archive/ds_config_eval.json",
        "did you mean configs/archive/ds_config_eval.json?",
        id="configuration of DeepSpeed",
    ),
    # examples/merge_mp_bert.sh of Megatron-DeepSpeed
    pytest.param(
        "python tools/merge_mp_partitions.py",
        "tools/a.py tools/b.py",
        "correct the path",
        id="gone",
    ),
    # low_precision/run-qwen3-30b-a3b-fp8.sh of slime: the path begins at the script
    pytest.param(
        'HERE=$(cd "$(dirname "$0")" && pwd)\nsource "$HERE/scripts/qwen3-30B-A3B.sh"',
        "scripts/low/a.sh low/scripts/qwen3-30B-A3B.sh",
        "did you mean low/scripts/qwen3-30B-A3B.sh?",
        id="path from the script",
    ),
]


@pytest.mark.parametrize(("text", "files", "hint"), MISSING)
def test_a_file_that_the_tree_lacks_is_likely_a_slip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, files: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = scan(tmp_path, text, files)
    assert (found.severity, found.certainty, found.hint) == ("warning", "likely", hint)
    assert found.message.startswith("the tree has no ")


TREE = "tools/train.py tools/run_all.py configs/a.yaml own/tools/test.sh data/alpaca_en.json"
PRESENT = [
    pytest.param("python tools/train.py --config configs/a.yaml", id="there"),
    pytest.param("bash tools/test.sh", id="below another folder, from which it may be started"),
    # model_examples of DrivingSDK start programs of the repositories into which they are copied
    pytest.param("python mmdet/trian.py", id="another repository"),
    pytest.param("python trian.py", id="no folder"),
    # examples/diffusers/sdxl of MindSpeed-MM
    pytest.param("python tools/text_to_image/convert/run_all.py", id="far from its name"),
    pytest.param("cd $REPO\npython tools/trian.py", id="unknown folder"),
    pytest.param("cd /opt/repo\npython tools/trian.py", id="absolute folder"),
    pytest.param("python $REPO/tools/trian.py", id="unknown beginning"),
    pytest.param("git clone URL tools\npython tools/trian.py", id="clone"),
    pytest.param("cp a.py tools/trian.py\npython tools/trian.py", id="copy"),
    # bash_script/pruning_head.sh of DeepSpeedExamples
    pytest.param(
        "C=configs/b.yaml\nsed s/a/b/ configs/a.yaml > $C\npython tools/train.py -c $C",
        id="written",
    ),
    pytest.param("python tools/train.py --save_config configs/b.yaml", id="output"),
    pytest.param("python tools/train.py --data data/alpaca_zh.json", id="data"),
    pytest.param("python tools/train.py --config configs/your.yaml", id="placeholder"),
    pytest.param("python tools/local.py", id="ignored by git"),
    pytest.param("python tools/mods/run_all.py", id="submodule"),
    pytest.param("echo tools/trian.py", id="text"),
]


@pytest.mark.parametrize("text", PRESENT)
def test_a_file_that_may_be_elsewhere_is_no_slip(tmp_path: Path, text: str) -> None:
    assert scan(tmp_path, "python tools/trian.py --lr 1", TREE)
    (tmp_path / ".gitignore").write_text("/tools/local.py\n")
    (tmp_path / ".gitmodules").write_text('[submodule "m"]\n\tpath = tools/mods\n')
    assert scan(tmp_path, text, TREE) == []
