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
