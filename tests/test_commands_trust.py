"""What decides what is executed is exported only once the user has trusted the store with that very value."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repositories import Repo

from npuprof.catalog.powers import find_power
from npuprof.store.trust import find_trust_file

DANGEROUS = '[env]\nLD_PRELOAD = "/x.so"\nHCCL_CONNECT_TIMEOUT = 600\n'
EXPORTS = ["env a", "env a --unset", "run a -- true", *(f"env a --shell {shell}" for shell in ("zsh", "sh", "fish", "tcsh", "pwsh"))]
EXPORTS += [f"env a --format {form}" for form in ("dotenv", "docker", "systemd", "github", "k8s-configmap", "k8s-env", "slurm", "json")]
Run = Callable[..., Any]


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONWARNINGS",
     "BASH_ENV", "ENV", "PS1", "PS4", "PROMPT_COMMAND", "BASH_FUNC_ls", "ZDOTDIR", "GIT_SSH_COMMAND", "LESSOPEN", "EDITOR",
     "NODE_OPTIONS", "PERL5OPT",
     "JAVA_TOOL_OPTIONS", "HOME", "GCONV_PATH", "OPENSSL_CONF", "GLIBC_TUNABLES"],
)  # fmt: skip
def test_a_variable_that_decides_what_is_executed_is_known(name: str) -> None:
    assert find_power(name)


@pytest.mark.parametrize(
    "name",
    ["HCCL_ALGO", "ASCEND_CUSTOM_OPP_PATH", "ASCEND_OPP_PATH", "TF_CPP_MIN_LOG_LEVEL", "OMP_NUM_THREADS", "PYTHONUNBUFFERED",
     "PYTHONHASHSEED", "MALLOC_ARENA_MAX", "JOB_ID", "NODE_RANK", "RUST_LOG", "CUDA_VISIBLE_DEVICES", "MY_PATH", "PATHS", "TMPDIR",
     "OMPI_MCA_btl",
     "LDAP", "UCX_TLS"],
)  # fmt: skip
def test_a_variable_that_only_tunes_is_none_of_them(name: str) -> None:
    assert not find_power(name)


@pytest.mark.parametrize("line", EXPORTS)
def test_an_export_is_refused_until_the_store_is_trusted(store: Run, run: Run, tmp_path: Path, line: str) -> None:
    store({"a": DANGEROUS})

    def start() -> Any:
        if not line.startswith("run "):
            return run(*line.split())
        done = subprocess.run([sys.executable, "-m", "npuprof", *line.split()], capture_output=True, text=True, check=False)
        return type("Done", (), {"code": done.returncode, "out": done.stdout, "err": done.stderr})

    refused = start()
    assert (refused.code, refused.out) == (2, "")
    assert "profiles/a.toml:2:1: error NP930: env.LD_PRELOAD" in refused.err
    assert f"npuprof trust {tmp_path}/profiles" in refused.err
    assert run("trust", "profiles").code == 0
    assert start().code == 0
    (tmp_path / "profiles/a.toml").write_text(DANGEROUS.replace("/x.so", "/y.so"))
    assert start().code == 2
    assert run("trust", "profiles").code == 0
    (tmp_path / "profiles/a.toml").write_text(DANGEROUS)
    assert start().code == 2, "the value before is no longer trusted"


@pytest.mark.parametrize("line", [f"{line} --trust" for line in EXPORTS if not line.startswith("run")])
def test_it_can_be_trusted_for_once(store: Run, run: Run, line: str) -> None:
    store({"a": DANGEROUS})
    assert run(*line.split()).code == 0
    assert not os.path.exists(find_trust_file())


def test_what_the_command_line_sets_needs_no_trust_and_what_is_only_compared_neither(store: Run, run: Run) -> None:
    store({"a": DANGEROUS, "b": "[env]\nHCCL_CONNECT_TIMEOUT = 600\n"})
    assert run("env", "b", "--set", "env.LD_PRELOAD=/z.so").code == 0
    assert run("env", "a", "--set", "env.LD_PRELOAD=/z.so").code == 0
    assert run("env", "a", "--diff").code == 0
    for line in ("show a", "check a", "render a", "diff a b", "list", "explain a env.LD_PRELOAD"):
        assert run(*line.split()).code == 0, line


@pytest.mark.parametrize(
    "presets",
    [
        {"base": DANGEROUS, "a": '[profile]\nextends = ["base"]\n'},
        {"a": '[env]\nJOB_ID = "1"\n[[override]]\nmatch = { target = "env" }\nenv = { LD_PRELOAD = "/x.so" }\n'},
        {"a": "[env]\nLD_PRELOAD = true\n"},
        {"a": "[env]\nLD_PRELOAD = 7\n"},
        {"a": '[env]\nLD_PRELOAD = { launcher = "rank" }\n'},
    ],
)
def test_every_way_to_set_it_is_seen_and_every_value_that_is_written_can_be_trusted(store: Run, run: Run, presets: dict[str, str]) -> None:
    store(presets)
    assert run("env", "a", "--no-check").code == 2
    assert run("trust").code == 0
    assert run("env", "a", "--no-check").code == 0


def test_what_is_trusted_is_this_store_only(store: Run, run: Run, tmp_path: Path) -> None:
    store({"a": DANGEROUS})
    run("trust", "profiles")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.toml").write_text(DANGEROUS)
    (tmp_path / "alone.toml").write_text(DANGEROUS)
    assert run("env", "a", "--store", "other").code == 2
    assert run("env", "alone.toml").code == 2
    assert run("env", "-", stdin=DANGEROUS.encode()).code == 2
    assert run("env", "a+alone.toml").code == 2
    assert run("env", "profiles/a.toml").code == 0
    assert run("env", "a").code == 0
    assert run("trust", "--revoke").code == 0
    assert run("env", "a").code == 2


def test_a_revision_is_trusted_with_what_its_store_is(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo(tmp_path / "repo")
    repo.commit({"a": DANGEROUS})
    repo.commit({"a": DANGEROUS.replace("/x.so", "/y.so")})
    monkeypatch.chdir(repo.folder)
    assert run("trust").code == 0
    assert run("env", "a@HEAD").code == 0
    assert run("env", "a@HEAD~1").code == 2


def test_a_block_in_a_script_is_an_export_too(store: Run, run: Run, tmp_path: Path) -> None:
    store({"a": DANGEROUS})
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/bash\npython train.py\n")
    assert run("inject", "train.sh", "a").code == 2
    assert script.read_text() == "#!/bin/bash\npython train.py\n"
    assert run("inject", "train.sh", "a", "--trust").code == 0
    assert "LD_PRELOAD" in script.read_text()
    assert run("inject", "train.sh", "a", "--check").code == 0
    assert run("scan", "train.sh").code == 0


def test_check_warns_on_every_machine_alike(store: Run, run: Run) -> None:
    store({"a": DANGEROUS})
    before = run("check")
    assert "warning NP605: env.LD_PRELOAD decides what is executed" in before.out + before.err
    run("trust")
    assert run("check") == before


def test_trust_shows_each_pair_with_its_places_and_keeps_nothing_where_it_is_only_asked(store: Run, run: Run) -> None:
    store({"a": DANGEROUS, "b": f'{DANGEROUS}PATH = "/bin"\n', "c": '[env]\nJOB_ID = "1"\n'})
    shown = run("trust", "--dry-run", "--format", "json")
    assert json.loads(shown.out)["pairs"] == [
        {
            "variable": "LD_PRELOAD",
            "value": "/x.so",
            "decides": find_power("LD_PRELOAD"),
            "places": ["profiles/a.toml:2", "profiles/b.toml:2"],
        },
        {"variable": "PATH", "value": "/bin", "decides": find_power("PATH"), "places": ["profiles/b.toml:4"]},
    ]
    assert not os.path.exists(find_trust_file())
    assert run("trust").out.splitlines()[1].startswith('PATH        "/bin"   profiles/b.toml:4')
    assert run("trust", "builtin:").err == "npuprof: the presets that npuprof ships need no trust\n"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"schema": "other/1"}', '{"schema": "npuprof.trust/1", "stores": {"x": [["a"]]}}', "\xff", "[" * 9999]
)
def test_a_damaged_file_trusts_nothing_and_is_named(store: Run, run: Run, text: str) -> None:
    store({"a": DANGEROUS})
    path = Path(find_trust_file())
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="latin-1")
    for line in ("env a", "trust"):
        done = run(*line.split())
        assert (done.code, "NP931" in done.err, str(path) in done.err) == (2, True, True), line
    assert path.read_text(encoding="latin-1") == text


def test_a_store_with_a_preset_that_cannot_be_read_is_not_trusted_in_part(store: Run, run: Run) -> None:
    store({"a": DANGEROUS, "b": "not toml"})
    assert run("trust").code == 2
    assert not os.path.exists(find_trust_file())
