"""A launch has the settings of one program, and the variables that reach it."""

from __future__ import annotations

import pytest

from npuprof.model import Context
from npuprof.scripts.configuration import configure_launch
from npuprof.scripts.launches import Launch, list_launches
from npuprof.scripts.reading import import_script

SERVE = "vllm serve m --max-num-seqs 8"
#: A file, and the variables that reach each program that it starts, by its place in the file.
FILES = {
    "an export before the start": (
        "a.sh",
        f"export HCCL_BUFFSIZE=200\n{SERVE}\n",
        [["HCCL_BUFFSIZE"]],
    ),
    "an export after the start": ("a.sh", f"{SERVE}\nexport HCCL_BUFFSIZE=200\n", [[]]),
    "a variable of the command": ("a.sh", f"HCCL_BUFFSIZE=200 {SERVE}\n", [["HCCL_BUFFSIZE"]]),
    "a variable of another command": ("a.sh", f"HCCL_BUFFSIZE=200 python a.py\n{SERVE}\n", [[]]),
    "a variable of another container": (
        "a.sh",
        f"docker run -e HCCL_BUFFSIZE=200 x\n{SERVE}\n",
        [[]],
    ),
    "a variable for a container that starts it": (
        "a.sh",
        f"docker run -e HCCL_BUFFSIZE=200 x {SERVE}\n",
        [["HCCL_BUFFSIZE"]],
    ),
    "subshells with their own variables": (
        "a.sh",
        (
            f"(export HCCL_BUFFSIZE=200; {SERVE}) &\n"
            f"(\n  export HCCL_CONNECT_TIMEOUT=600\n  {SERVE}\n)\n(export HCCL_EXEC_TIMEOUT=1)\n"
        ),
        [["HCCL_BUFFSIZE"], ["HCCL_CONNECT_TIMEOUT"]],
    ),
    "an inner shell with its own variable": (
        "a.sh",
        f'bash -c "export HCCL_BUFFSIZE=200 && {SERVE}"\n{SERVE}\n',
        [["HCCL_BUFFSIZE"], []],
    ),
    "two starts": (
        "a.sh",
        (
            f"export HCCL_BUFFSIZE=200\nHCCL_CONNECT_TIMEOUT=600 {SERVE}\n"
            f"export HCCL_EXEC_TIMEOUT=1800\n{SERVE}\n"
        ),
        [["HCCL_BUFFSIZE", "HCCL_CONNECT_TIMEOUT"], ["HCCL_BUFFSIZE", "HCCL_EXEC_TIMEOUT"]],
    ),
    "a container that names its variables last": (
        "pod.yaml",
        (
            "spec:\n  containers:\n  - args: [vllm, serve, m]\n"
            "    env: [{name: HCCL_BUFFSIZE, value: '200'}]\n"
        ),
        [["HCCL_BUFFSIZE"]],
    ),
    "two containers": (
        "pod.yaml",
        (
            "spec:\n  containers:\n  - args: [vllm, serve, a]\n"
            "    env: [{name: HCCL_BUFFSIZE, value: '200'}]\n  - args: [vllm, serve, b]\n"
        ),
        [["HCCL_BUFFSIZE"], []],
    ),
    "a call in Python": (
        "a.py",
        (
            "import os\nos.environ['HCCL_BUFFSIZE'] = '200'\n"
            "LLM('m', additional_config={'weight_nz_mode': 0})\n"
        ),
        [["HCCL_BUFFSIZE"]],
    ),
}


def list_vllm_launches(file: str, text: str) -> list[Launch]:
    launches = list_launches(import_script(file, text.encode()))
    return [launch for launch in launches if launch.surface == "vllm"]


@pytest.mark.parametrize("name", FILES)
def test_a_launch_has_the_variables_that_reach_it(name: str) -> None:
    file, text, variables = FILES[name]
    environments = [launch.environment for launch in list_vllm_launches(file, text)]
    names = [[variable.name for variable in environment] for environment in environments]
    assert names == variables


def test_a_rule_between_a_variable_and_an_argument_is_judged_on_one_path_only() -> None:
    """Rules see a launch as a preset: the variable of another branch does not break them."""
    text = f"if [ $1 ]; then\n  export HCCL_BUFFSIZE=200\nelse\n  {SERVE}\nfi\n"
    (launch,) = (
        launch
        for launch in list_launches(import_script("a.sh", text.encode()))
        if launch.surface == "vllm"
    )
    together = [set(view.certain) for view in configure_launch("a.sh", launch, Context())]
    assert {"vllm.max-num-seqs", "vllm.model"} in together
    assert not any({"env.HCCL_BUFFSIZE", "vllm.max-num-seqs"} <= found for found in together)
