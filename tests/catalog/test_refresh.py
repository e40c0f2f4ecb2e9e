"""The comparison of the catalogue with the sources of a framework, with sources that are made up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.building import REPOSITORY

SOURCES = {
    "package/envs.py": 'env = {"TASK_QUEUE_ENABLE": lambda: os.getenv("TASK_QUEUE_ENABLE", "2"),\n'
    '"NEW_SWITCH": lambda: bool(int(os.getenv("NEW_SWITCH", "1")))}\n',
    "package/other.py": 'if os.environ.get("ASCEND_LAUNCH_BLOCKING", "0") == "1" or "ANOTHER_ONE" in os.environ:\n    os.environ["PATH"]\n',
    "package/csrc/env.cpp": 'const char* text = std::getenv("PER_STREAM_QUEUE");\nGetEnv("A_THIRD_ONE");\n',
    "package/tests/test_it.py": 'os.environ["ONLY_IN_A_TEST"]\n',
}


def refresh(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, REPOSITORY / ".ci/refresh_variables.py", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_names_and_defaults_that_the_catalogue_lacks_or_has_alone_are_printed(tmp_path: Path) -> None:
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    result = refresh("torch_npu", tmp_path, "package")
    lines = result.stdout.splitlines()
    assert (result.returncode, result.stderr) == (1, "")
    assert {"+ NEW_SWITCH = 1", "+ ANOTHER_ONE", "+ A_THIRD_ONE", "~ TASK_QUEUE_ENABLE: 1 -> 2", "- PYTORCH_NPU_ALLOC_CONF"} <= {*lines}
    assert not [line for line in lines if "ONLY_IN_A_TEST" in line or "PATH" in line.split() or "ASCEND_LAUNCH_BLOCKING" in line]
    assert "- PER_STREAM_QUEUE" not in lines


def test_without_a_framework_and_a_checkout_the_usage_is_printed(tmp_path: Path) -> None:
    for words in ((), ("torch_npu",), ("no_such", tmp_path), ("torch_npu", tmp_path / "absent")):
        result = refresh(*words)
        assert result.returncode == 2
        assert "refresh_variables.py FRAMEWORK CHECKOUT" in result.stderr
