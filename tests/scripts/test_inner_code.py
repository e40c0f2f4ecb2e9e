"""Code in other code: exec form, nested shells, here-documents and Python in shell scripts."""

from __future__ import annotations

import pytest

from support.importing import findings, imported

FLAG = '"{\\"dynamic_eplb2\\": true}"'
DOCKERFILES = {
    "CMD": f'FROM x\nCMD ["vllm","serve","/m","--additional-config",{FLAG}]\n',
    "ENTRYPOINT and CMD": (
        f'FROM x\nENTRYPOINT ["vllm", "serve"]\nCMD ["/m", \\\n "--additional-config", {FLAG}]\n'
    ),
    "a stage before the last": (
        f'FROM x\nCMD ["vllm","serve","/m","--additional-config",{FLAG}]\nFROM y\nCMD ["a"]\n'
    ),
    "a shell": (
        'FROM x\nENTRYPOINT ["sh", "-c", '
        '"vllm serve /m --additional-config \'{\\"dynamic_eplb2\\": true}\'"]\n'
    ),
}


@pytest.mark.parametrize("case", DOCKERFILES)
def test_a_command_of_an_image_in_exec_form_is_read(case: str) -> None:
    (finding,) = findings(DOCKERFILES[case], "Dockerfile")
    assert finding.code == "NP212"
    assert finding.line == (4 if case == "ENTRYPOINT and CMD" else 2)


def test_of_several_commands_of_a_stage_the_last_one_counts() -> None:
    text = f'FROM x\nCMD ["vllm","serve","/m","--additional-config",{FLAG}]\nCMD ["a"]\n'
    assert not findings(text, "Dockerfile")


def test_variables_of_a_run_line_in_exec_form_end_with_it() -> None:
    text = 'FROM x\nRUN ["bash", "-c", "export HCCL_BUFFSIZE=a && make"]\n'
    (setting,) = imported(text, "Dockerfile").settings
    assert setting.key == "env.HCCL_BUFFSIZE"
    assert setting.unused
    assert [finding.code for finding in findings(text, "Dockerfile")] == ["NP202"]


PYTHON = 'import os\nos.environ["HCCL_BUFFSIZE"] = "a"\n'
#: Scripts with one wrong value, in line 3.
SHELLS = {
    "an argument": f"true\npython -c '{PYTHON}'\n",
    "an argument after flags": f"true\npython3 -u -c '{PYTHON}' a b\n",
    "a here-document": f"python - <<EOF\n{PYTHON}EOF\n",
    "a here-document for a pipe": f"python3 <<'PY' | tee log\n{PYTHON}PY\n",
    "a here-document with arguments": f'python3 - "$X" <<"PY"\n{PYTHON}PY\n',
    "a shell on another host": "ssh -p 22 a bash <<'E'\ncd /x\nexport HCCL_BUFFSIZE=a\nE\n",
    "the login shell of another host": "ssh a@b <<E\ncd /x\nexport HCCL_BUFFSIZE=a\nE\n",
    "the quoted shell of another host": "ssh a 'bash -s' <<E\n\nexport HCCL_BUFFSIZE=a;./b.py\nE\n",
    "a shell in a container": "docker exec -i c bash <<E\n\nexport HCCL_BUFFSIZE=a\nE\n",
    "a login shell": "true\nsh -lc '\nexport HCCL_BUFFSIZE=a; python a.py'\n",
    "Python on another host": f"ssh a <<E\npython -c '{PYTHON}'\nE\n",
}


@pytest.mark.parametrize("case", SHELLS)
def test_code_in_a_script_is_judged_in_its_line_and_ends_with_its_process(case: str) -> None:
    (finding,) = findings(SHELLS[case], "a.sh")
    assert finding.code == "NP202"
    assert finding.line == 3
    (setting,) = imported(SHELLS[case], "a.sh").settings
    assert setting.unused


#: Documents that no shell and no Python runs, and values that the shell decides.
UNREAD = {
    "a file": "cat > a.sh <<E\nexport HCCL_BUFFSIZE=a\nE\n",
    "a file on another host": "ssh a 'cat > x.sh' <<E\nexport HCCL_BUFFSIZE=a\nE\n",
    "the input of a script": f"python a.py <<E\n{PYTHON}E\n",
    "the input of a shell script": "bash a.sh <<E\nexport HCCL_BUFFSIZE=a\nE\n",
    "an expansion": 'python <<E\nimport os\nos.environ["HCCL_BUFFSIZE"] = "$X"\nE\n',
}


@pytest.mark.parametrize("case", UNREAD)
def test_a_document_that_is_only_input_is_no_code(case: str) -> None:
    assert not findings(UNREAD[case], "a.sh")


def test_two_python_processes_of_a_script_do_not_contradict_each_other() -> None:
    text = "".join(
        f"python -c 'import torch, torch_npu\ntorch.npu.set_compile_mode(jit_compile={value})'\n"
        for value in (True, False)
    )
    one, other = imported(text, "a.sh").settings
    assert one.scope != other.scope
    assert (one.line, other.line) == (2, 4)


def test_lines_of_a_block_in_yaml_are_those_of_the_file() -> None:
    text = (
        "services:\n  a:\n    image: x\n    command:\n    - python\n    - -c\n    - |\n"
        '      import os\n      os.environ["HCCL_BUFFSIZE"] = "a"\n'
        "  b:\n    command: ['bash', '-c', \"cd x\\nexport HCCL_BUFFSIZE=b\"]\n"
        "  c:\n    command: [bash, -c]\n    args:\n    - |\n"
        "      cd x\n      export HCCL_BUFFSIZE=c\n"
    )
    assert [finding.line for finding in findings(text, "a.yaml")] == [9, 11, 17]
