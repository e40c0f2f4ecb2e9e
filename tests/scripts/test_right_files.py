"""Launch files that are right, as people write them on purpose, have no findings."""

from __future__ import annotations

import pytest

from support.importing import findings

BLOCKING = "ASCEND_LAUNCH_BLOCKING=1"
QUEUE = "TASK_QUEUE_ENABLE=2"
#: What the two do together in one process.
CONFLICT = "NP3109"
SERVICES = """
services:
  debug:
    image: x
    environment: {{ASCEND_LAUNCH_BLOCKING: "1"{first}}}
  train:
    image: x
    environment: {{TASK_QUEUE_ENABLE: "2"{second}}}
"""
CONTAINERS = """
kind: Pod
spec:
  containers:
  - name: debug
    env: [{name: ASCEND_LAUNCH_BLOCKING, value: "1"}]
  - name: train
    env: [{name: TASK_QUEUE_ENABLE, value: "2"}]
"""
CONVERTER = """
import subprocess

def convert(parameters, scaling, output):
    command = ["atc"]
    for k, v in parameters.items():
        command.extend([f"--{k}", f"{v}"])
    if scaling:
        command.extend(["--dynamic_dims", scaling])
    command.extend(["--output", output])
    subprocess.Popen(command)
"""
CONVERT = "atc --model=a.onnx --framework=5 --output=o --soc_version=Ascend310P3"
SIZES = "--tensor-model-parallel-size 1 --num-layers 2 --hidden-size 8 --num-attention-heads 8"
CASE = """
ENV_VARS:
  SKIP_PYTEST: 1
  CUDA_DEVICE_MAX_CONNECTIONS: 1
  NCCL_ALGO: Tree
  DISTILL_CONFIG: '{pairs: [["a", "a"]], logits: ["b", "b"], skip: true, scale: 10.0}'
MODEL_ARGS:
  --num-layers: 12
  --hidden-size: 512
  --num-attention-heads: 8
  --tensor-model-parallel-size: 2
  --sequence-parallel: true
"""


def list_codes(text: str, name: str) -> list[str]:
    return [found.code for found in findings(text, name) if found.severity != "info"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("x.sh", f"{BLOCKING} python a.py\n{QUEUE} python b.py\n", id="two commands"),
        pytest.param(
            "x.sh",
            f"{QUEUE} python a.py\nexport {BLOCKING}\npython b.py\n",
            id="an export after it",
        ),
        pytest.param(
            "x.sh",
            f"docker run -e {BLOCKING} i python a.py\ndocker run -e {QUEUE} i python b.py\n",
            id="two containers that a script starts",
        ),
        pytest.param("compose.yaml", SERVICES.format(first="", second=""), id="two services"),
        pytest.param("pod.yaml", CONTAINERS, id="two containers of a pod"),
        pytest.param(
            "x.sh",
            "seq 0 7 | xargs -I{} sh -c 'ASCEND_RT_VISIBLE_DEVICES={} python a.py'\n",
            id="an argument of xargs",
        ),
        pytest.param(
            "x.md",
            f"```bash\nexport {BLOCKING}\npython a.py\n```\n# Fast\n```bash\nexport {QUEUE}\n```\n",
            id="two blocks of a manual",
        ),
        pytest.param("x.sh", f"set -ea\n{QUEUE}\npython a.py\n", id="set -ea"),
        pytest.param("x.sh", f"set -eo allexport\n{QUEUE}\npython a.py\n", id="set -eo allexport"),
        pytest.param("x.sh", f"#!/bin/bash -a\n{QUEUE}\npython a.py\n", id="bash -a"),
        pytest.param(
            "x.sh",
            f"python -m venv v\npython setup.py develop\nexport {QUEUE}\n",
            id="a file to be sourced that installs its package",
        ),
        pytest.param("x.sh", "export MAX_RUNTIME_CORE_NUMBER=1\n", id="one thread"),
        # PGNet/deploy/models_utils/auto_scaling of 2024-MindSpore-1/Code3
        pytest.param("x.py", CONVERTER, id="a flag with a computed name"),
        pytest.param(
            "x.sh",
            f"for k in a b; do {CONVERT} --$k 1 --${{k}}d=1 --in$k=1; done\n",
            id="flags of atc with a variable in their names",
        ),
        pytest.param(
            "x.sh",
            "for k in a b; do vllm serve m --$k 3 --max-$k=3 -O$k; done\n",
            id="flags of vLLM with a variable in their names",
        ),
        # llm-train/megatron-deepspeed/microsoft/pretrain_llama2_distributed.sh of
        # liguodongiot/llm-action: Megatron-DeepSpeed writes rmsnorm
        pytest.param(
            "x.sh",
            f"torchrun pretrain_gpt.py {SIZES} --normalization rmsnorm --deepspeed\n",
            id="Megatron-DeepSpeed",
        ),
        # examples/llama/train_llama3_8b_h100_fp8.sh of NVIDIA/Megatron-LM
        pytest.param(
            "x.sh",
            'TOKENIZER_ARG=${1:-MOCK}\nDATA=("--tokenizer-model $TOKENIZER_ARG")\n'
            f"torchrun pretrain_gpt.py {SIZES} ${{DATA[@]}}\n",
            id="a value with a name of arguments",
        ),
        # NVIDIA/Megatron-LM: tests/functional_tests, gpt3_mcore_te_tp2_pp1_modelopt_distill_resume
        pytest.param(
            "model_config.yaml",
            CASE.replace("CUDA_DEVICE", "OTHER") + "  --use-megatron-fsdp: true\n",
            id="variables that Megatron-FSDP does without",
        ),
        # tests/st/models/qwen3/test_vllm_qwen3.py of mindspore-ai/vllm-mindspore
        pytest.param(
            "x.py",
            "from vllm import LLM\nllm = LLM(model='m', compilation_config=3)\n",
            id="a mode of compilation",
        ),
        pytest.param("model_config.yaml", CASE, id="variables with a value of many words"),
    ],
)
def test_a_right_file_has_no_findings(name: str, text: str) -> None:
    assert list_codes(text, name) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("x.sh", f"{BLOCKING} {QUEUE} python a.py\n", id="one command"),
        pytest.param("x.sh", f"export {BLOCKING}\n{QUEUE} python a.py\n", id="an export before it"),
        pytest.param("x.md", f"```sh\nexport {BLOCKING}\nexport {QUEUE}\n```\n", id="one block"),
        pytest.param(
            "compose.yaml",
            SERVICES.format(first="", second=', ASCEND_LAUNCH_BLOCKING: "1"'),
            id="both in one service",
        ),
    ],
)
def test_variables_of_one_process_still_conflict(name: str, text: str) -> None:
    assert list_codes(text, name) == [CONFLICT]
