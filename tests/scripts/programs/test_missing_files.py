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
    # multinode_trainer.slurm of torchtitan: a script at the top is started there
    pytest.param(
        "srun torchrun --nnodes 4 ./train.py --job.config_file $CONFIG_FILE",
        "torchtitan/train.py torchtitan/config/train.toml",
        "did you mean torchtitan/train.py?",
        id="moved program without a folder",
    ),
    # the same file
    pytest.param(
        "CONFIG_FILE=${CONFIG_FILE:-'./train_configs/llama3_8b.toml'}",
        "torchtitan/models/llama/train_configs/llama3_8b.toml",
        "did you mean torchtitan/models/llama/train_configs/llama3_8b.toml?",
        id="moved folder",
    ),
    # run_full_sft.sh of MedicalGPT
    pytest.param(
        "torchrun --nproc_per_node 8 supersived_finetuning.py",
        "supervised_finetuning.py supervised_finetuning_accelerate.py",
        "did you mean supervised_finetuning.py?",
        id="misspelt name without a folder",
    ),
    # run_grpo.sh of mindrlhf before 2ebb8cd47: the value before it is no output of the program
    pytest.param(
        'root=$(realpath "$(dirname "$0")")\ncd $root\n'
        "msrun --log_dir=./log examples/qwen_tutorial/one_stage.py",
        "examples/grpo/qwen_tutorial/one_stage.py examples/deepseek_tutorial/one_stage.py",
        "did you mean examples/grpo/qwen_tutorial/one_stage.py?",
        id="gone to its own folder",
    ),
    # ckpt_convert_kimi2_hf2mcore.sh of PCL-Model-Kit before f1048e95f
    pytest.param(
        'CONVERT_SCRIPT="${REPO_ROOT}/utils/convert_ckpt_kimi2_hf2mcore.py"',
        "utils/convert_kimi2_hf2mcore.py utils/check.py",
        "did you mean utils/convert_kimi2_hf2mcore.py?",
        id="below a variable",
    ),
]

#: Of scripts in a folder of the tree.
MISSING_BELOW = [
    # tools/wav_to_duration.sh of wenet before 9ca09d5d3
    pytest.param(
        ". utils/parse_options.sh || exit 1;",
        "jobs/parse_options.sh README.md",
        "did you mean parse_options.sh?",
        id="sourced file beside the script",
    ),
    # tools/scripts/run_train.sh of mindyolo: ./tools/run.py tells where it is started
    pytest.param(
        "mkdir ./train_parallel\ncd ./train_parallel\npython train.py\ncd ..\n"
        "python ./tools/train.py &\npython ./tools/run.py",
        "tools/run.py",
        "correct the path",
        id="beside another program",
    ),
    # benchmarks/deepcompile/run.sh of DeepSpeedExamples before 65bc5364e
    pytest.param(
        "python generate_conf.py\naccelerate launch --config_file $CONFIG run_acc_lm.py",
        "jobs/generate_conf.py jobs/run_bench_lm.py",
        "did you mean run_bench_lm.py?",
        id="name without a folder beside another program",
    ),
    # train_merge_tokenizer.sh of LMFlow before ddcfea908
    pytest.param(
        "cd data\nbash download.sh\ncd ..\npython utils/data_preprocess/convert_json.py\n"
        "python utils/train_tokenizer.py",
        "utils/convert_json.py utils/train_tokenizer.py data/download.sh",
        "did you mean utils/convert_json.py?",
        id="gone to a folder and back",
    ),
    # run_train_cpu.sh of tinydarknet in mindspore-ai/models
    pytest.param(
        'BASE=$(dirname "$(dirname "$(readlink -f $0)")")\nCONFIG="${BASE}/imagenet_config.yaml"',
        "config/imagenet_config.yaml config/cifar10_config.yaml",
        "did you mean ../config/imagenet_config.yaml?",
        id="folder above that of the script",
    ),
    # wan2.1/feature_extract/feature_extraction.sh of MindSpeed-MM before 201e18bdb
    pytest.param(
        'MM_DATA="./jobs/data.json"\nMM_MODEL="./jobs/model.json"',
        "jobs/data.json jobs/model_i2v.json jobs/model_t2v.json",
        "did you mean jobs/model_t2v.json?",
        id="model beside the script",
    ),
    # UNet_Medical/examples/unet_TRAIN_1GPU.sh of DeepLearningExamples before 8eca836a2
    pytest.param(
        "horovodrun -np 1 python main.py --lr 1\npython utils/parse_results.py --model_dir $2",
        "main.py runtime/parse_results.py",
        "did you mean runtime/parse_results.py?",
        id="the only one of its name in the folder of the start",
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


@pytest.mark.parametrize(("text", "files", "hint"), MISSING_BELOW)
def test_other_files_and_the_folder_of_a_script_tell_where_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, files: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = scan(tmp_path, text, files, "jobs/run.sh")
    assert (found.certainty, found.hint) == ("likely", hint)


def test_a_scan_of_one_script_finds_a_near_name_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of EfficientNet_for_PyTorch/run_to_onnx.sh of Ascend/modelzoo before 745437d5a."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    scan(tmp_path, "python3.7 pthtar2onx.py\n", "jobs/pthtar2onnx.py", "jobs/run.sh")

    def list_hints() -> list[str]:
        found = scan_scripts(["jobs/run.sh"], Context(), None, None).findings
        return [each.hint for each in found if each.code == "NP846"]

    assert list_hints() == ["did you mean pthtar2onnx.py?"]
    (tmp_path / "pthtar2onx.py").write_text("")  # from there it may be started
    assert list_hints() == []


VALUES = [
    # tests/functional_tests/test_cases/train/deepseek/conf of FlagScale before 00d2df47d
    pytest.param(
        "task:\n  entrypoint: flagscale/train/train_deepseek_v3.py", "correct the path", id="gone"
    ),
    # examples/llama3/conf/train_hetero.yaml of FlagScale
    pytest.param(
        "entrypoint: ./flagscale/train/hetero/train_gpt.py  # hetero",
        "did you mean flagscale/train/train_gpt.py?",
        id="moved",
    ),
    pytest.param("entrypoint: flagscale/train/train_gpt.py", "", id="there"),
    pytest.param("save_config: flagscale/train/train_gtp.py", "", id="output"),
    # .pre-commit-config.yaml of megablocks
    pytest.param("exclude: flagscale/train/train_gtp.py", "", id="omitted"),
    # research/cv/ISyNet/config of mindspore-ai/models: from the folder of the start
    pytest.param("weights: ../flagscale/train/train_gtp.py", "", id="above"),
    pytest.param("entrypoint: other/train/train_gtp.py", "", id="another repository"),
    # .github/workflows/ci.yml of geerlingguy/ansible-for-devops
    pytest.param(
        "a: |\n  wget -O flagscale/train/test.py URL\nrun: flagscale/train/test.py",
        "",
        id="brought",
    ),
    pytest.param(
        "".join(f"k{at}: flagscale/train/train_gpt{at}.py\n" for at in range(100)),
        "",
        id="a list of data",
    ),
]


@pytest.mark.parametrize(("text", "hint"), VALUES)
def test_a_yaml_file_names_a_file_that_the_tree_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    files = "flagscale/train/train_gpt.py flagscale/train/train_aquila.py"
    scan(tmp_path, "", files)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/train.yaml").write_text(text + "\n")
    found = scan_scripts([str(tmp_path)], Context(), None, None).findings
    assert [each.hint for each in found if each.code == "NP846"] == ([hint] if hint else [])


TREE = (
    "tools/train.py tools/run_all.py configs/a.yaml own/tools/test.sh data/alpaca_en.json"
    " jobs/thirdparty/.gitignore"
)
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
    pytest.param("python $REPO/tools/tests.py", id="not near, and below a variable"),
    # examples/moonlight/run_mcore_moonlight_verl.sh of Pai-Megatron-Patch: a name for Hydra
    pytest.param("python tools/train.py --config-name a.yaml", id="name alone"),
    # examples/m2m_100/tok.sh of fairseq
    pytest.param("S=$(dirname $0)\nMY=$S/thirdparty/seg.py", id="only what git ignores beside it"),
    # SalsaNext of DrivingSDK: the folder is in another repository
    pytest.param("cd tools\npython trainer_all.py", id="gone to a folder"),
    # infer/mxbase/run.sh of slowfast in mindspore-ai/models
    pytest.param("cp -r ../tools/* ./\npython train.py", id="copied with others"),
    # prepare_sft.sh: the folder is made
    pytest.param("mkdir new\ncd new\npython train.py", id="gone to a new folder"),
    # tf_get_param.sh of transformer_xl in mindspore-ai/models
    pytest.param("cd $(dirname $0)\npython test.sh", id="far away"),
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
    # FSDP/slurm of aws-samples/awsome-distributed-training: in an image, it is there
    pytest.param(
        "if [ ! -z $IMAGE ]; then\nP=./run_all.py\nelse\nP=../tools/run_all.py\nfi\npython $P",
        id="there by another path",
    ),
]


@pytest.mark.parametrize("text", PRESENT)
def test_a_file_that_may_be_elsewhere_is_no_slip(tmp_path: Path, text: str) -> None:
    assert scan(tmp_path, "python tools/trian.py --lr 1", TREE, "jobs/run.sh")
    (tmp_path / ".gitignore").write_text("/tools/local.py\n")
    (tmp_path / ".gitmodules").write_text('[submodule "m"]\n\tpath = tools/mods\n')
    assert scan(tmp_path, text, TREE, "jobs/run.sh") == []
