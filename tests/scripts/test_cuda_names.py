"""Variables of CUDA and NCCL in files that run on NPUs."""

from __future__ import annotations

import pytest

from support.importing import findings

CUDA = "export CUDA_VISIBLE_DEVICES=0\nexport NCCL_SOCKET_IFNAME=eth0\n"
NPU = "export HCCL_CONNECT_TIMEOUT=600\n"


def test_variables_of_cuda_in_a_launch_on_npus_are_one_note() -> None:
    (finding,) = findings(f"{NPU}{CUDA}python a.py\n", "a.sh")
    assert finding.code == "NP842"
    assert finding.severity == "info"
    assert finding.line == 2
    assert "CUDA_VISIBLE_DEVICES, NCCL_SOCKET_IFNAME" in finding.message
    assert "ASCEND_RT_VISIBLE_DEVICES, HCCL_SOCKET_IFNAME" in finding.hint


def test_python_that_imports_torch_npu_runs_on_npus() -> None:
    line = 'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"\n'
    (finding,) = findings(f"import os\nimport torch_npu\n{line}", "a.py")
    assert finding.hint == "its names are PYTORCH_NPU_ALLOC_CONF"
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
