"""Variables that reach no program: as read, and as passed on by real bash."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from npuprof.scripts.script_coverage import CoverageCount
from support.importing import findings, imported, settings

PROGRAM = "torchrun train.py\n"
#: Scripts, and how many of their variables no program gets.
SCRIPTS = {
    "plain": ("export HCCL_BUFFSIZE=1\n", 0),
    "not exported": ("HCCL_BUFFSIZE=1\n", 1),
    "exported later": ("HCCL_BUFFSIZE=1\nexport HCCL_BUFFSIZE\n", 0),
    "exported by set -a": ("set -a\nHCCL_BUFFSIZE=1\nset +a\n", 0),
    "for one command": ("HCCL_BUFFSIZE=1 torchrun a.py\n", 0),
    "passed on by name": (
        'HCCL_BUFFSIZE=1\nenv X=$HCCL_BUFFSIZE HCCL_BUFFSIZE="1" torchrun a\n',
        0,
    ),
    "not exported twice": ("HCCL_BUFFSIZE=1\nHCCL_BUFFSIZE=2\n", 2),
    "named in a comment": ("# HCCL_BUFFSIZE is 200 by default\nHCCL_BUFFSIZE=1\n", 1),
    "a subshell": ("(export HCCL_BUFFSIZE=1)\n", 1),
    "a subshell over lines": ("(\n  cd .\n  export HCCL_BUFFSIZE=1\n)\n", 1),
    "a program in a subshell": ("(export HCCL_BUFFSIZE=1; torchrun a.py)\n", 0),
    "a program in another subshell": ("(export HCCL_BUFFSIZE=1); (torchrun a.py)\n", 1),
    "after a subshell in the background": (
        "(cd .; pwd) &\nexport HCCL_BUFFSIZE=1\ntorchrun a.py\n",
        0,
    ),
    "a subshell in a subshell": ("(export HCCL_BUFFSIZE=1; (torchrun a.py))\n", 0),
    "a loop after a pipe": (
        "echo a | while read -r x; do export HCCL_BUFFSIZE=1; done\n",
        1,
    ),
    "a program in a loop after a pipe": (
        "echo a | while read -r x; do export HCCL_BUFFSIZE=1; torchrun a.py; done\n",
        0,
    ),
    "a loop with a redirection": (
        "while read -r x; do export HCCL_BUFFSIZE=1; done < <(echo a)\n",
        0,
    ),
    "a loop before a pipe": ("for x in a; do export HCCL_BUFFSIZE=1; done | cat\n", 1),
    "a loop over a pipe": ("for x in `echo a | cat`; do export HCCL_BUFFSIZE=1; done\n", 0),
    "a condition with a pipe": ("if echo a | grep -q a; then export HCCL_BUFFSIZE=1; fi\n", 0),
    "a group before a pipe": ("{ export HCCL_BUFFSIZE=1; echo; } 2>&1 | tee log\n", 1),
    "a program in a group before a pipe": (
        "{ export HCCL_BUFFSIZE=1; torchrun a.py; } 2>&1 | tee log\n",
        0,
    ),
    "an export before a pipe": ("export HCCL_BUFFSIZE=1 | cat\n", 1),
    "an export in the background": ("export HCCL_BUFFSIZE=1 &\nwait\n", 1),
    "a function that nothing calls": ("f() {\n  export HCCL_BUFFSIZE=1\n}\n", 1),
    "a called function": ("f() {\n  export HCCL_BUFFSIZE=1\n}\nf\n", 0),
    "a function called by a variable": ("f() { export HCCL_BUFFSIZE=1; }\nx=f\n$x\n", 0),
    "overwritten": ("export HCCL_BUFFSIZE=1\nexport HCCL_BUFFSIZE=2\n", 1),
    "overwritten by an assignment": ("export HCCL_BUFFSIZE=1\necho\nHCCL_BUFFSIZE=2\n", 1),
    "overwritten by the same value": ("export HCCL_BUFFSIZE=1\nexport HCCL_BUFFSIZE=1\n", 0),
    "overwritten after a program": (
        "export HCCL_BUFFSIZE=1\ntorchrun a.py\nexport HCCL_BUFFSIZE=2\n",
        0,
    ),
    "overwritten after a program in a substitution": (
        "export HCCL_BUFFSIZE=1\nx=$(torchrun a.py)\nexport HCCL_BUFFSIZE=2\n",
        0,
    ),
    "overwritten in a branch": (
        "export HCCL_BUFFSIZE=1\nif false; then export HCCL_BUFFSIZE=2; fi\ntorchrun a.py\n"
        "HCCL_BUFFSIZE=2\n",
        0,
    ),
    "overwritten after a test": (
        "export HCCL_BUFFSIZE=1\n[ -z x ] && export HCCL_BUFFSIZE=1\n",
        0,
    ),
    "read before it is overwritten": (
        "export HCCL_SOCKET_IFNAME=a\nexport HCCL_SOCKET_IFNAME=${HCCL_SOCKET_IFNAME},b\n",
        0,
    ),
    "appended to": ("export HCCL_SOCKET_IFNAME=a\nHCCL_SOCKET_IFNAME+=,b\n", 0),
    "overwritten in a subshell": ("export HCCL_BUFFSIZE=1\n(export HCCL_BUFFSIZE=2)\n", 1),
    "in a loop of programs": (
        "for x in 1 2; do\n  torchrun a.py\n  export HCCL_BUFFSIZE=1\ndone\nexit\n",
        0,
    ),
    "before a program that runs by a function": (
        "f() { torchrun a.py; }\nexport HCCL_BUFFSIZE=1\nf\nexit\n",
        0,
    ),
    "after the last program": (
        "torchrun a.py &\nexport HCCL_BUFFSIZE=1\nwait\necho done $(date)\nexit\n",
        1,
    ),
    "after the last program in a branch": (
        "torchrun a.py\nif true; then export HCCL_BUFFSIZE=1; fi\nexit\n",
        1,
    ),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_a_variable_is_lost_exactly_if_real_bash_passes_it_to_no_program(
    case: str, tmp_path: Path
) -> None:
    body, count = SCRIPTS[case]
    text = f"#!/bin/bash\n{body}{PROGRAM}"
    (tmp_path / "torchrun").write_text('#!/bin/sh\nenv | grep ^HCCL_ >> "$RECORDED"\ntrue\n')
    (tmp_path / "torchrun").chmod(0o755)
    given = tmp_path / "given"
    given.write_text("")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RECORDED": str(given)}
    subprocess.run(
        ["bash", "-c", text],
        check=True,
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    arrived = set(given.read_text().splitlines())
    script = imported(text, "run.sh")
    lost = [setting for setting in script.settings if setting.is_lost]
    assert len(lost) == count
    assert not arrived.intersection(
        f"{setting.name}={setting.assigned.written}" for setting in lost
    )
    assert count or arrived
    assert [finding.code for finding in findings(text, "run.sh")] == ["NP834"] * count
    coverage = CoverageCount()
    coverage.add_file(script)
    assert coverage.coverage.lost == count


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("export HCCL_SOCKET_IFNAME=a\nHCCL_SOCKET_IFNAME+=,b\n", "a,b"),
        ("HCCL_SOCKET_IFNAME=a\nexport HCCL_SOCKET_IFNAME+=,b\n", "a,b"),
        ("export HCCL_SOCKET_IFNAME+=,b\n", "<depends on ${HCCL_SOCKET_IFNAME}>"),
    ],
)
def test_a_text_is_appended_to_the_value_before_it(text: str, value: str) -> None:
    assert settings(f"{text}{PROGRAM}", "run.sh")["env.HCCL_SOCKET_IFNAME"] == value


#: Exports that end before what was meant as a part of the value.
CUT = {
    "export HCCL_SOCKET_IFNAME=eth0 eth1": "eth1",
    "export HCCL_SOCKET_IFNAME=eth0 eth1\nexport GLOO_SOCKET_IFNAME=eth0": "eth1",
    "export HCCL_BUFFSIZE= 200": "200",
    "export ASCEND_GLOBAL_LOG_LEVEL=1;llm:debug": "llm:debug",
    "export HCCL_ALGO=level0:NA;level1:ring": "level1:ring",
    "export HCCL_ALGO=allreduce=level0:NA;allgather=level0:NA": "allgather=level0:NA",
}
WHOLE = [
    'export HCCL_SOCKET_IFNAME="eth0 eth1"',
    "export HCCL_BUFFSIZE=1 HCCL_SOCKET_IFNAME=a",
    "HCCL_SOCKET_IFNAME=a\nexport HCCL_BUFFSIZE=1 HCCL_SOCKET_IFNAME",
    "nic=eth1; export HCCL_SOCKET_IFNAME=eth0 nic",
    "export HCCL_SOCKET_IFNAME=eth0 $MORE",
    "export HCCL_SOCKET_IFNAME=<nic name>",
    "export HCCL_BUFFSIZE=1; wait",
    "export HCCL_BUFFSIZE=1 # eth1",
    "export HCCL_BUFFSIZE=1 && torchrun a.py",
]


@pytest.mark.parametrize("text", [*CUT, *WHOLE])
def test_an_export_that_ends_before_its_value_does_is_found(text: str) -> None:
    found = [finding for finding in findings(f"{text}\n", "a.sh") if finding.code == "NP834"]
    assert [finding.message.rpartition(" ")[2] for finding in found] == (
        [CUT[text]] if text in CUT else []
    )


#: Files that others source, or that have only settings: what they set may reach programs.
SOURCED = [
    "HCCL_BUFFSIZE=1\n",
    "export HCCL_BUFFSIZE=1\nexport HCCL_BUFFSIZE=2\n",
    "f() {\n  export HCCL_BUFFSIZE=1\n}\n",
    "f() {\n  torchrun a.py\n  export HCCL_BUFFSIZE=1\n}\nHCCL_SOCKET_IFNAME=a\n",
    'if [ -d /x ]; then\n  export HCCL_BUFFSIZE=1\nfi\n[ "$PS1" ] && HCCL_SOCKET_IFNAME=a\n',
    "python3 -c 'import torch'\nHCCL_BUFFSIZE=1\nexport HCCL_SOCKET_IFNAME=a\n",
    "HCCL_BUFFSIZE=1\nsource other.sh\n" + PROGRAM,
    PROGRAM + "export HCCL_BUFFSIZE=1\nsource other.sh\n",
    PROGRAM + 'export HCCL_BUFFSIZE=1\nexec "$@"\n',
]


@pytest.mark.parametrize("text", SOURCED)
def test_what_a_file_sets_for_others_is_not_lost(text: str) -> None:
    settings = imported(text, "a.sh").settings
    assert not any(setting.is_lost for setting in settings)
    assert findings(text, "a.sh") == []
