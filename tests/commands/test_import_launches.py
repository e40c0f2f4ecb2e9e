"""``import`` of scripts that start servers: what is rendered is what ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.importing import write
from support.running import Run

ROLES = """\
export OMP_NUM_THREADS=10 PYTHONHASHSEED=0 VLLM_USE_MODELSCOPE=True
export HCCL_BUFFSIZE=200
if [ "$ROLE" = prefill ]; then
  vllm serve a/b --max-model-len 4096
else
  export HCCL_BUFFSIZE=400
  vllm serve a/b --max-model-len 8192
fi
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "profiles").mkdir()
    return tmp_path


def test_the_launches_of_a_script_become_presets_with_a_base(project: Path, run: Run) -> None:
    write(project, {"serve.sh": ROLES})
    assert run("import", "serve.sh", "-o", "profiles").code == 0
    assert sorted(path.name for path in (project / "profiles").glob("*.toml")) == [
        "base.toml",
        "serve-2.toml",
        "serve.toml",
    ]
    assert run("check").code == 0
    for name, length, size in (("serve", 4096, 200), ("serve-2", 8192, 400)):
        assert run("render", name, "--to", "vllm", "-o", name).code == 0
        config = (project / name / "config.yaml").read_text()
        assert f"max-model-len: {length}" in config
        exports = (project / name / "env.sh").read_text()
        for line in (
            f"HCCL_BUFFSIZE='{size}'",
            "OMP_NUM_THREADS='10'",
            "PYTHONHASHSEED='0'",
            "VLLM_USE_MODELSCOPE='True'",
        ):
            assert f"export {line}\n" in exports


def test_a_variable_that_affects_execution_comes_along_untrusted(project: Path, run: Run) -> None:
    write(
        project,
        {"serve.sh": "export LD_PRELOAD=/opt/libx.so HCCL_BUFFSIZE=200\nvllm serve a/b\n"},
    )
    done = run("import", "serve.sh", "-o", "profiles/serve.toml")
    assert "not trusted, because it can affect what is executed: LD_PRELOAD" in done.err
    assert 'LD_PRELOAD = "/opt/libx.so"' in (project / "profiles/serve.toml").read_text()
    assert run("check", "serve").code == 0
    assert run("env", "serve").code == 2


def test_an_unknown_variable_is_listed_and_left(project: Path, run: Run) -> None:
    write(project, {"serve.sh": "export MY_OWN=1 HCCL_BUFFSIZE=200\nvllm serve a/b\n"})
    text = run("import", "serve.sh").out
    assert "# serve.sh: unknown to the catalogue: MY_OWN (line 1)" in text
    assert "MY_OWN =" not in text


def test_the_first_presets_of_a_project_find_their_base(project: Path, run: Run) -> None:
    (project / "profiles").rmdir()
    write(project, {"serve.sh": ROLES})
    assert run("import", "serve.sh", "-o", "profiles/team").code == 0
    assert 'extends = ["team/base"]' in (project / "profiles/team/serve.toml").read_text()
    assert run("check", "team/serve", "team/serve-2").code == 0


def test_a_table_that_is_no_json_is_a_note_with_its_flag(project: Path, run: Run) -> None:
    write(project, {"serve.sh": "vllm serve a/b --hf-overrides '{\"a\": True}'\n"})
    assert "# serve.sh:1: --hf-overrides: is not a JSON object: " in run("import", "serve.sh").out


def test_no_block_replaces_settings_of_a_python_environment(project: Path, run: Run) -> None:
    write(project, {"a.py": 'import os\nos.environ["HCCL_BUFFSIZE"] = "200"\nimport torch_npu\n'})
    assert run("import", "a.py", "-o", "profiles/a.toml").code == 0
    done = run("inject", "a.py", "a", "--replace")
    assert done.code == 2
    assert "It sets nothing in every run that a block could set." in done.err
