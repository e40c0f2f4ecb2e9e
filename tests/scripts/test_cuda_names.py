"""Variables of CUDA and NCCL in files that run on NPUs."""

from __future__ import annotations

import pytest

from support.importing import findings

CUDA = "export CUDA_VISIBLE_DEVICES=0\nexport NCCL_SOCKET_IFNAME=eth0\n"
NPU = "export HCCL_CONNECT_TIMEOUT=600\n"


def test_each_variable_of_cuda_in_a_launch_on_npus_is_one_note() -> None:
    first, second = findings(f"{NPU}{CUDA}{CUDA}python a.py\n", "a.sh")
    assert {first.code, second.code} == {"NP842"}
    assert {first.severity, second.severity} == {"info"}
    assert first.line == 2
    assert first.hint == "its name is ASCEND_RT_VISIBLE_DEVICES"
    assert second.hint == "its name is HCCL_SOCKET_IFNAME"


def test_python_that_imports_torch_npu_runs_on_npus() -> None:
    line = 'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"\n'
    (finding,) = findings(f"import os\nimport torch_npu\n{line}", "a.py")
    assert finding.hint == "its name is PYTORCH_NPU_ALLOC_CONF"
    assert not findings(f"import os\nimport torch\n{line}", "a.py")


#: Files that may run on CUDA, or set both variables.
OTHERS = {
    "no NPU": CUDA,
    "both": f"{CUDA}export HCCL_SOCKET_IFNAME=eth0\nexport ASCEND_RT_VISIBLE_DEVICES=0\n",
    "a branch": f'{NPU}if [ "$X" ]; then\n{CUDA}fi\n',
    "a test of the hardware": f"{NPU}nvidia-smi\n{CUDA}",
    "a command of CUDA": f'{NPU}[ "$DEVICE" = "gpu" ] || true\n{CUDA}',
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_file_that_may_run_on_cuda_has_no_note(case: str) -> None:
    assert not findings(OTHERS[case], "a.sh")
