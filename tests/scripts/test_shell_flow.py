"""A program gets what a shell script exports: as read, and as run by the real shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import may_hold_settings
from support.importing import findings, imported

#: Scripts without their last line, which starts the program, and what is carried over of them.
SCRIPTS: dict[str, tuple[str, dict[str, str]]] = {
    "a here-string is no heredoc": (
        "read -r X <<< 'a b'\nexport HCCL_ALGO=a\n",
        {"HCCL_ALGO": "a"},
    ),
    "parentheses": (
        "export HCCL_ALGO=a\n(\n  export HCCL_ALGO=b\n  unset HCCL_ALGO\n)\n",
        {"HCCL_ALGO": "a"},
    ),
    "a program in parentheses": ("(export HCCL_ALGO=a; record)\nexit\n", {}),
    "a loop behind a pipe": ("echo a b | while read -r x; do\n  export HCCL_ALGO=$x\ndone\n", {}),
    "a value that grows": (
        "HCCL_ALGO=a\nexport HCCL_ALGO\nexport HCCL_ALGO=$HCCL_ALGO:b\n",
        {"HCCL_ALGO": "a:b"},
    ),
    "a loop over nothing": ('for x in "$@"; do\n  export HCCL_ALGO=b\ndone\n', {}),
    "a loop that counts": (
        "for ((x=0; x<2; x++)); do\n  export HCCL_ALGO=b\ndone\n",
        {"HCCL_ALGO": "b"},
    ),
    "an export that may not run": (
        "if [ -n $X ] && false; then\n  export HCCL_ALGO\nfi\nHCCL_ALGO=a\n",
        {},
    ),
    "a function that is left": ("f() {\n  [ -z $1 ] && return\n  export HCCL_ALGO=b\n}\nf\n", {}),
    "a function before what follows it": (
        "f() {\n  export HCCL_ALGO=b\n}\nf\nexport HCCL_ALGO=a\n",
        {},
    ),
    "a function that nobody calls": (
        "export HCCL_ALGO=a\nf() {\n  unset HCCL_ALGO\n  set -a\n}\nHCCL_BUFFSIZE=1\n",
        {"HCCL_ALGO": "a"},
    ),
}


@pytest.mark.parametrize("case", SCRIPTS)
def test_what_is_carried_over_is_what_a_program_is_given(case: str, tmp_path: Path) -> None:
    text, expected = SCRIPTS[case]
    (tmp_path / "record").write_text("#!/bin/sh\nenv | grep ^HCCL_ >> given\necho end >> given\n")
    (tmp_path / "record").chmod(0o755)
    script = f"#!/bin/bash\n{text}record\n"
    subprocess.run(
        ["bash", "-c", script],
        check=True,
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
    )
    (first, *others) = (tmp_path / "given").read_text().split("end\n")[:-1]
    carried = {
        key: value
        for draft in build_drafts(imported(script, "run.sh"))
        for key, value in draft.settings.items()
    }
    assert carried == {f"env.{name}": value for name, value in expected.items()}
    assert all(
        f"{name}={value}\n" in environment
        for environment in (first, *others)
        for name, value in expected.items()
    )


#: Lines of launch scripts that give HCCL_CONNECT_TIMEOUT=9000 to what they start, and lines that
#: give nothing. The forms are those of the manuals: docker run, mpirun of Open MPI, mpiexec -genv
#: NAME VALUE of MPICH and Intel MPI, ssh HOST COMMAND.
GIVING = [
    "sudo podman exec --env HCCL_CONNECT_TIMEOUT=9000 c python t.py",
    "/usr/bin/nerdctl run --rm --env=HCCL_CONNECT_TIMEOUT='9000' img",
    'docker run -e HCCL_CONNECT_TIMEOUT="${T:-9000}" img',
    "mpiexec -x HCCL_CONNECT_TIMEOUT=9000 python t.py",
    "srun --export=ALL,HCCL_CONNECT_TIMEOUT=9000 python t.py",
    'bash -c "export HCCL_CONNECT_TIMEOUT=9000; python t.py"',
    "docker exec c /bin/sh -xc 'cd /w && HCCL_CONNECT_TIMEOUT=9000 python t.py'",
    'bash -c "export HCCL_CONNECT_TIMEOUT=\\"9000\\""',
    "bash -c \"bash -c 'export HCCL_CONNECT_TIMEOUT=9000'\"",
    "bash -c '(export HCCL_CONNECT_TIMEOUT=9000)'",
    "docker run -it -eHCCL_CONNECT_TIMEOUT=9000 img",
    "mpiexec -genv HCCL_CONNECT_TIMEOUT 9000 -n 8 python t.py",
    "mpiexec.hydra -n 8 -env HCCL_CONNECT_TIMEOUT '9000' python t.py",
    'ssh node1 "export HCCL_CONNECT_TIMEOUT=9000; python t.py"',
    "ssh -p 22 root@node1 'cd /w && HCCL_CONNECT_TIMEOUT=9000 nohup python t.py > log 2>&1 &'",
    "nohup ssh -o StrictHostKeyChecking=no $HOST HCCL_CONNECT_TIMEOUT=9000 python t.py &",
    "ssh node1 'bash -c \"export HCCL_CONNECT_TIMEOUT=9000\"'",
]
#: What may precede a command that is read.
BEFORE_COMMANDS = ["nohup", "time", "exec", "sudo", "env", "command", "builtin", "!", "sudo env"]
NOT_GIVING = [
    "docker run -e HCCL_CONNECT_TIMEOUT img",
    "docker run img -e",
    "docker run -e",
    "bash -c $X -c ''",
    "ssh",
    "ssh node1",
    "ssh -o HCCL_CONNECT_TIMEOUT=9000 node1 true",
    "ssh node1 'echo HCCL_CONNECT_TIMEOUT=9000 x'",
    "mpiexec -genv HCCL_CONNECT_TIMEOUT",
]


@pytest.mark.parametrize("line", GIVING + NOT_GIVING)
def test_what_a_launch_line_gives_is_judged(line: str) -> None:
    found = [
        (finding.code, finding.severity, finding.line, finding.column)
        for finding in findings(f"true\n{line}\n", "launch.sh")
    ]
    assert found == (
        [("NP203", "error", 2, line.index("HCCL_CONNECT") + 1)] if line in GIVING else []
    )
    assert line not in GIVING or may_hold_settings("launch.sh", line.encode()), (
        "scan reads no file that fails this test of its text"
    )


@pytest.mark.parametrize("command", BEFORE_COMMANDS)
def test_a_command_is_read_behind_words_that_start_it(command: str) -> None:
    found = findings(f"{command} atc --model=a --framework=9\n", "a.sh")
    assert [(finding.code, finding.key) for finding in found] == [("NP203", "atc.framework")]


def test_variables_of_torch_npu_are_carried_over_and_a_slip_in_one_is_told() -> None:
    known = {
        "TASK_QUEUE_ENABLE": "2",
        "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
        "CPU_AFFINITY_CONF": "1",
    }
    text = "".join(f"export {name}={value}\n" for name, value in known.items())
    (draft,) = build_drafts(imported(f"{text}export HCCL_OP_BASE_FFTS_MODE=TRUE\n", "launch.sh"))
    assert draft.settings == {f"env.{name}": value for name, value in known.items()}
    assert [(note.setting.name, note.why) for note in draft.notes] == [
        ("HCCL_OP_BASE_FFTS_MODE", "the catalogue does not know the variable")
    ]
    assert may_hold_settings("launch.sh", b"export PYTORCH_NPU_ALOC_CONF=1\n")
    (found,) = findings(
        "export PYTORCH_NPU_ALOC_CONF=1\nexport TORCH_NCCL_DESYNC_DEBUG=1\nexport MASTER_ADDR=x\n",
        "launch.sh",
    )
    assert found.code == "NP206"
    assert found.line == 1
    assert "PYTORCH_NPU_ALLOC_CONF" in found.hint


#: Words in which a quote or bracket stays open, and words that only look like it. Real bash judges
#: both; the long ones are like those of launch scripts in Ascend/ModelZoo-PyTorch
#: (GLIP_for_PyTorch/test, contrib/cv/classification/pointnetCNN/test).
QUOTED = [
    "echo `date",
    "A=(1 'x",
    'echo "a$(echo ")"',
    # examples/scripts/train_ppo_llama_ray_slurm.sh of OpenRLHF before 7cfc3f36
    'bash -c "python t.py &> log echo "done ..." &>> log',
    'x=$(cd "$(dirname "$0")"; pwd)',
    "a=$(awk -F \"'AP', \" '{print $2}' f |awk -F \")\" '{print $1}')",
    'echo "$(echo "a b" | sed \'s/"//\')"',
    "cat <<EOF\nit's\nEOF",
    # tests/scripts/dummy_ltx_video_lora.sh of a-r-r-o-w/finetrainers at f476c37
    "PROMPTS=$(cat <<EOF\nthe cat's eyes\nEOF\n)",
    "echo \"$(cat <<-'END' | tr a b\n\tit's \")\n\tEND\n)\"",
    'echo $((1 << N)) $(tr a b <<<"it\'s")',
]


@pytest.mark.parametrize("line", QUOTED)
def test_a_quote_that_is_never_closed_hides_no_line_without_a_word(line: str) -> None:
    text = f"true\n{line}\nexport HCCL_CONNECT_TIMEOUT=-5\n"
    is_open = (
        "unexpected EOF"
        in subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True).stderr
    )
    found = [(finding.code, finding.line) for finding in findings(text, "launch.sh")]
    assert found == ([("NP801", 2)] if is_open else [("NP203", line.count("\n") + 3)])
    assert is_open == (QUOTED.index(line) < 4)
