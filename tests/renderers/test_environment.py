"""Environments as files, read back by the programs that they are for.

Shells are in end_to_end/shells.
"""

from __future__ import annotations

import ctypes
import glob
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuprof.model import LONGEST_WORD, NpuprofError
from npuprof.renderers.environment import collect_env_variables
from npuprof.renderers.environment_files import FORMATS
from support.building import config, toml
from support.exports import AWKWARD, read_back
from support.running import Run, Store


@pytest.fixture
def run(trusting_run: Run) -> Run:
    """Values are judged here, of variables that nobody else has."""
    return trusting_run


UNSETTING = {
    "base": 'env.HCCL_ALGO = "level0:NA;level1:ring"\nenv.T_A = 1\n',
    "leaf": '[profile]\nextends = ["base"]\nunset = ["env.HCCL_ALGO", "env.T_A"]\n',
}


@pytest.mark.parametrize("name", ["slurm", "slurm-job", "slurm-array"])
def test_a_script_for_slurm_unsets_what_the_preset_unsets(
    name: str, store: Store, run: Run
) -> None:
    store(UNSETTING)
    done = run("env", "leaf", "--format", name)
    assert "unset HCCL_ALGO" in done.out.splitlines()
    assert "cannot unset" not in done.err


@pytest.mark.parametrize(
    "name", ["dotenv", "docker", "systemd", "github", "k8s-env", "k8s-configmap", "json", "ray"]
)
def test_a_file_that_cannot_unset_a_variable_comes_with_a_note(
    name: str, store: Store, run: Run
) -> None:
    store(UNSETTING)
    assert f"--format {name} cannot unset HCCL_ALGO" in run("env", "leaf", "--format", name).err


@pytest.mark.parametrize("kept", ["", "[1]", '{"a b": "1"}', '{"T_A": 1}', "[" * 100_000])
def test_what_somebody_else_keeps_for_undoing_is_not_used(
    kept: str, store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"leaf": "env.T_A = 5\n"})
    monkeypatch.setenv("NPUPROF_BEFORE", kept)
    result = run("env", "leaf", "--unset")
    assert result.code == 0
    assert result.out.splitlines()[0] == "unset T_A"
    assert "export" not in result.out


def test_a_value_before_that_the_shell_cannot_take_is_unset_and_told(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"leaf": "env.T_A = 5\n"})
    monkeypatch.setenv("NPUPROF_BEFORE", '{"T_A": "a\\nb"}')
    monkeypatch.setenv("T_A", "5")
    result = run("env", "leaf", "--unset", "--shell", "tcsh")
    assert {"unsetenv T_A;", "unsetenv NPUPROF_BEFORE;"} <= {*result.out.splitlines()}
    assert "T_A is unset, not restored: tcsh cannot take a line end" in result.err


def test_undoing_sets_no_variable_that_the_preset_does_not_set(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"leaf": "env.T_A = 5\n"})
    hostile = {
        "PATH": "/evil",
        "LD_PRELOAD": "/evil.so",
        "BASH_ENV": "/evil",
        "T_B": "2",
        "T_A": "'; touch evil; '",
        "x;touch evil": "1",
    }
    hostile |= {"NPUPROF_DIGEST": "x", "NPUPROF_PROFILE": "x"}
    monkeypatch.setenv("NPUPROF_BEFORE", json.dumps(hostile))
    monkeypatch.setenv("T_A", "5")
    result = run("env", "leaf", "--unset")
    done = subprocess.run(
        ["bash", "-c", f"{result.out}\nenv"], capture_output=True, check=True, text=True
    )
    lines = done.stdout.splitlines()
    assert "T_A='; touch evil; '" in lines
    assert not [
        line
        for line in lines
        if line.startswith(("LD_PRELOAD=", "BASH_ENV=", "T_B=", "NPUPROF_PROFILE="))
        or line == "PATH=/evil"
    ]
    assert not os.path.exists("evil")
    assert any(line.startswith("NPUPROF_BEFORE=") for line in lines), (
        "what another export saved is there for undoing that one"
    )


def test_undoing_leaves_what_the_user_changed_and_says_so(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"leaf": "env.T_A = 5\nenv.T_B = 6\nenv.T_C = 7\n", "other": "env.T_A = 1\n"})
    exported = json.loads(run("env", "leaf", "--format", "json").out)["env"]
    for name, text in {
        **exported,
        "T_A": "2",
        "NPUPROF_BEFORE": '{"T_A": "0", "T_B": "0", "T_C": "0"}',
    }.items():
        monkeypatch.setenv(name, text)
    monkeypatch.delenv("T_C")
    result = run("env", "leaf", "--unset")
    assert [line for line in result.out.splitlines() if re.search(r"\bT_", line)] == [
        "export T_B='0'"
    ]
    assert [f"{name} is left as it is" in result.err for name in ("T_A", "T_B", "T_C")] == [
        True,
        False,
        True,
    ]
    result = run("env", "other", "--unset")
    assert "another preset, or another version of it, is exported here" in result.err
    assert "export T_A='0'" in result.out, "what an export with other flags set is undone"


def test_tcsh_refuses_line_ends_and_says_so(store: Store, run: Run) -> None:
    store({"leaf": '[options]\ndebug_dir = "a\\nb"\n'})
    result = run("env", "leaf", "--shell", "tcsh", "--no-check")
    assert result.code == 2
    assert result.out == ""
    assert "NPUPROF_DEBUG_DIR" in result.err
    assert "profiles/leaf.toml:2:1" in result.err


# -- files ----------------------------------------------------------------------------------------


def dotenv(text: str) -> dict[str, str | None]:
    import dotenv as library

    return library.dotenv_values(stream=io.StringIO(text, newline=""))


def dotenv_file(text: str, tmp_path: Path) -> dict[str, str | None]:
    import dotenv as library

    path = tmp_path / ".env"
    path.write_bytes(text.encode())
    return library.dotenv_values(path)


def docker(text: str) -> dict[str, str]:
    """Read as docker does: leading blanks are cut, comments and empty lines skipped, no quotes."""
    found = {}
    for line in text.encode().split(b"\n"):
        assert len(line) < 65_536
        line = line.removesuffix(b"\r").lstrip(b" \t").decode()
        if line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            assert equals
            found[name] = value
    return found


def github(text: str) -> dict[str, str]:
    """Read as the runner does: NAME=value, or NAME<<MARK with the lines up to the mark."""
    found = {}
    while text:
        head, _, text = text.partition("\n")
        if "=" in head.partition("<<")[0]:
            name, _, value = head.partition("=")
        else:
            name, _, mark = head.partition("<<")
            value, end, text = text.partition(f"\n{mark}\n")
            assert end, "no end mark"
        found[name] = value
    return found


def systemd(text: str, tmp_path: Path) -> dict[str, str]:
    """Read by systemd's own parser."""
    libraries = glob.glob("/usr/lib/*/systemd/libsystemd-shared-*.so") + glob.glob(
        "/usr/lib/systemd/libsystemd-shared-*.so"
    )
    if not libraries:
        pytest.skip("systemd is not installed")
    path = tmp_path / "environment"
    path.write_bytes(text.encode())
    library = ctypes.CDLL(libraries[0])
    found = ctypes.POINTER(ctypes.c_char_p)()
    load = library.load_env_file
    load.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.POINTER(ctypes.c_char_p)),
    ]
    assert load(None, os.fsencode(path), ctypes.byref(found)) >= 0
    pairs = []
    index = 0
    while found and (item := found[index]) is not None:
        pairs.append(item.decode().partition("="))
        index += 1
    return {name: value for name, _, value in pairs}


def configmap(text: str) -> dict[str, str]:
    import yaml

    (document,) = yaml.safe_load_all(text)
    assert document["apiVersion"] == "v1"
    assert document["kind"] == "ConfigMap"
    assert document["immutable"] is True
    found: dict[str, str] = document["data"]
    assert all(isinstance(value, str) for value in found.values())
    return found


def kubernetes(text: str) -> dict[str, str]:
    """Read the env block as the kubelet does: $$ is $, $(NAME) is replaced."""
    import yaml

    found: dict[str, str] = {}
    for entry in yaml.safe_load(text)["env"]:
        assert set(entry) == {"name", "value"}
        found[entry["name"]] = re.sub(r"\$(.)", _expand, entry["value"], flags=re.DOTALL)
    return found


def _expand(match: re.Match[str]) -> str:
    assert match[1] != "(" or ")" not in match.string[match.start() :], (
        "a reference is left in the value"
    )
    return "$" if match[1] == "$" else match[0]


def slurm(text: str, tmp_path: Path) -> dict[str, str]:
    return read_back("bash", tmp_path, {}, text=text)


def slurm_job(text: str, tmp_path: Path) -> dict[str, str]:
    """Read what is exported before the tasks are started."""
    return read_back(
        "bash", tmp_path, {}, text=text[text.index("\nexport ") : text.index("# Each task asks")]
    )


READERS: dict[str, Callable[[str, Path], Any]] = {
    "dotenv": dotenv_file,
    "docker": lambda text, _: docker(text),
    "systemd": systemd,
    "github": lambda text, _: github(text),
    "k8s-configmap": lambda text, _: configmap(text),
    "k8s-env": lambda text, _: kubernetes(text),
    "slurm": slurm,
    "slurm-job": slurm_job,
    "slurm-array": slurm_job,
    "ray": lambda text, _: json.loads(text)["env_vars"],
    "json": lambda text, _: json.loads(text)["env"],
}
PRESET = config("[options]\ndeterministic = 1\n")


def test_every_format_has_a_reader() -> None:
    assert set(READERS) == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_gives_awkward_values_back(name: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    values = [text for text in AWKWARD if not form.refuses("T_0", text)]
    assert len(values) > len(AWKWARD) / 2
    found = {f"T_{index}": text for index, text in enumerate(values)}
    assert READERS[name](form.write(PRESET, found, {}), tmp_path) == found


def npm_dotenv(text: str, tmp_path: Path) -> dict[str, str]:
    """Read by npm's dotenv."""
    modules = Path(__file__).parents[2] / ".venv" / "node_modules"
    if not shutil.which("node") or not (modules / "dotenv").is_dir():
        pytest.skip("npm's dotenv is not installed")
    path = tmp_path / ".env"
    path.write_bytes(text.encode())
    arguments = [
        "node",
        "-e",
        "console.log(JSON.stringify(require('dotenv').parse(require('fs').readFileSync(process.argv[1]))))",
        path,
    ]
    done = subprocess.run(
        arguments, env={**os.environ, "NODE_PATH": str(modules)}, capture_output=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def sourced(text: str, tmp_path: Path) -> dict[str, str]:
    return read_back("sh", tmp_path, {}, text=f"set -a\n{text}")


@pytest.mark.parametrize("read", [npm_dotenv, sourced], ids=lambda read: read.__name__)
def test_a_dotenv_file_is_read_alike_by_all_where_nothing_else_is_said(
    read: Any, tmp_path: Path
) -> None:
    form = FORMATS["dotenv"]
    plain = [
        text for text in AWKWARD if not form.refuses("T_0", text) and not form.caveat("T_0", text)
    ]
    assert len(plain) > len(AWKWARD) / 2
    found = {f"T_{index}": text for index, text in enumerate(plain)}
    assert read(form.write(PRESET, found, {}), tmp_path) == found


@pytest.mark.parametrize(
    ("text", "is_reported"),
    [
        ("a'b", False),
        ('a"b', False),
        ("a\\b", False),
        ("a\nb", False),
        ("$HOME", False),
        ("it's 5 #1", False),
        ('{"a": [1]}', False),
        ("it's $5", True),
        ("'a\"", True),
        ("a\\\\b", True),
        ("a\\", True),
        ("a\rb", True),
    ],
)
def test_a_value_that_not_every_reader_of_dotenv_files_takes_as_it_is_is_told(
    text: str, is_reported: bool, store: Store, run: Run
) -> None:
    store({"leaf": toml({"env": {"MINE": text}})})
    result = run("env", "leaf", "--format", "dotenv")
    assert dotenv(result.out)["MINE"] == text
    assert ("npm's dotenv" in result.err) == is_reported


def test_github_keeps_its_own_names() -> None:
    refuses = FORMATS["github"].refuses
    assert all(refuses(name, "a") for name in ("GITHUB_TOKEN", "RUNNER_TEMP", "NODE_OPTIONS"))
    assert not any(refuses(name, "a") for name in ("MY_GITHUB_TOKEN", "NODE_OPTION"))


@pytest.mark.parametrize(
    ("name", "text", "is_refused"),
    [
        # systemd before 248 drops what has a control character, which env_value_is_valid looks for
        ("systemd", "a\x7f", True),
        ("systemd", "a\x1f", True),
        ("systemd", "a\r", True),
        ("systemd", "a ~\t\n", False),
        ("systemd", "\ufdcf\ufdf0\ufffd\U0001fffd", False),
        ("systemd", "\ufdd0", True),
        ("systemd", "\ufdef", True),
        ("systemd", "\ufffe", True),
        ("systemd", "\U0001ffff", True),
        ("docker", "a\tb", False),
        ("docker", "a\nb", True),
        ("docker", "a\rb", True),
        pytest.param("docker", "x" * 64_998, False, id="a line of 65 kB"),
        pytest.param("docker", "x" * 64_999, True, id="a line of a byte more"),
        pytest.param("docker", "é" * 32_500, True, id="a line of 65 kB of two-byte characters"),
        ("github", "a\nb", False),
        ("github", "a\rb", True),
        ("dotenv", "${A}", True),
        ("dotenv", "${A:-b}", True),
        ("dotenv", "${A:b}", False),
        ("dotenv", "a b\\", False),
        ("dotenv", "a\nb\\", True),
        ("dotenv", "'a\\", True),
        ("dotenv", "a #b\\", True),
        ("dotenv", "#a\\", True),
        ("dotenv", "\u3000a\\", True),
    ],
)
def test_a_file_refuses_only_what_its_readers_lose(name: str, text: str, is_refused: bool) -> None:
    assert bool(FORMATS[name].refuses("A", text)) is is_refused


# -- which variables ------------------------------------------------------------------------------


def collect_exports(
    text: str, environ: dict[str, str] | None = None
) -> tuple[dict[str, str], list[str]]:
    return collect_env_variables(
        config(text), None if environ is None else environ.get, "/cache", trusting=True
    )


def test_an_export_holds_env_twins_options_and_what_names_the_preset() -> None:
    preset = config(
        '[options]\naoe_mode = "2"\nenable_dump = true\n[env]\n'
        "HCCL_EXEC_TIMEOUT = 1800\nPROFILING_MODE = true\n"
    )
    found, notes = collect_env_variables(preset, {}.get, "/cache")
    assert found == {
        "HCCL_EXEC_TIMEOUT": "1800",
        "PROFILING_MODE": "true",
        "NPUPROF_ENABLE_DUMP": "1",
        "AOE_MODE": "2",
        "NPUPROF_AOE_MODE": "2",
        "NPUPROF_PROFILE": preset.name,
        "NPUPROF_DIGEST": preset.digest,
        "NPUPROF_PRESET_DIGEST": preset.preset_digest,
        "NPUPROF_CONTEXT": "any",
    }
    assert notes == []


def test_where_a_variable_and_an_option_meet_the_precedence_is_said() -> None:
    found, notes = collect_exports('[options]\naoe_mode = "2"\n[env]\nAOE_MODE = 1\n')
    assert found["AOE_MODE"] == "1"
    (note,) = notes
    assert "aoe_mode > AOE_MODE" in note


def test_facts_of_a_process_come_from_the_launcher_and_never_stand_in_files() -> None:
    text = '[env]\nRANK_ID = { launcher = "rank" }\n'
    assert collect_exports(text, {"rank": "3"})[0]["RANK_ID"] == "3"
    found, notes = collect_exports(text, {})
    assert "RANK_ID" not in found
    assert "no launcher" in notes[0]
    found, notes = collect_exports(text)
    assert "RANK_ID" not in found
    assert "npuprof run" in notes[0]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            '[options]\ndebug_dir = "a\\u0000b"\n',
            "NPUPROF_DEBUG_DIR contains a NUL character or invalid UTF-8: a\\x00b",
        ),
        (f'[env]\nA = "{"x" * LONGEST_WORD}"\n', "A is longer"),
        ('[env]\n"A B" = 1\n', "A B"),
        ('[env]\n"" = 1\n', "is not a variable name"),
        ('[env]\n"A;touch x" = 1\n', "A;touch x"),
        ('[env]\n"é" = 1\n', "is not a variable name"),
        ('[options]\n"x;y" = 1\n', "NPUPROF_X;Y"),
    ],
)
def test_what_no_environment_can_hold_is_refused_by_name(text: str, name: str) -> None:
    with pytest.raises(NpuprofError) as caught:
        collect_exports(text, {})
    assert name in caught.value.findings[0].message
    assert caught.value.findings[0].code == "NP903"
    longest = "x" * (LONGEST_WORD - len("A="))
    assert collect_exports(f'[env]\nA = "{longest}"\n', {})[0]["A"] == longest


@pytest.mark.parametrize(
    "text",
    [
        "dump_step = [1, []]",
        "precision_mode_v2 = { a = 1 }",
        "op_precision_mode = { ByOpType = 1 }",
    ],
)
def test_a_value_no_text_stands_for_is_refused(text: str) -> None:
    with pytest.raises(NpuprofError, match="cannot be carried"):
        collect_exports(f"[options]\n{text}\n", {})


# -- the command ----------------------------------------------------------------------------------


def test_a_config_map_carries_the_sidecar_files(store: Store, run: Run) -> None:
    import yaml

    store(
        {
            "team/Mixed": (
                '[options]\nprecision_mode_v2 = "mixed_float16"\n'
                'modify_mixlist = { black-list = { to-add = ["Cast"] } }\n'
            )
        }
    )
    result = run("env", "team/Mixed", "--format", "k8s-configmap")
    settings, files = yaml.safe_load_all(result.out)
    assert json.loads(files["data"]["ops_info.json"]) == {"black-list": {"to-add": ["Cast"]}}
    assert settings["data"]["NPUPROF_MODIFY_MIXLIST"] == "/etc/npuprof/ops_info.json"
    assert settings["metadata"]["name"].startswith("npuprof-team-mixed-")
    assert settings["metadata"]["annotations"]["npuprof/preset"] == "team/Mixed"
    assert (
        "ops_info.json must be at /etc/npuprof in the container: mount the second ConfigMap there\n"
        in result.err
    )
    assert (
        "npuprof env --format k8s-configmap writes a ConfigMap of them"
        in run("env", "team/Mixed", "--format", "k8s-env").err
    )


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("team/Mixed_1", "team.Mixed_1"),
        ("team/" + "long" * 30, ("team." + "long" * 30)[:63]),
        ("a" * 61 + "/_b", "a" * 61),
        ("./über stufe.toml", "ber.stufe.toml"),
    ],
)
def test_a_config_map_is_found_by_its_labels_and_changes_its_name_with_its_content(
    name: str, label: str, store: Store, run: Run
) -> None:
    import kubernetes_validate
    import yaml

    store({"team/Mixed_1": "", "team/" + "long" * 30: "", "a" * 61 + "/_b": ""})
    Path("über stufe.toml").write_text("")
    names = set()
    for requested in ((), ("--set", "deterministic=1"), ("--cann", "9.0.0")):
        document = yaml.safe_load(run("env", name, "--format", "k8s-configmap", *requested).out)
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        digest = document["data"]["NPUPROF_DIGEST"]
        metadata = document["metadata"]
        assert metadata["labels"] == {"npuprof/preset": label, "npuprof/digest": digest[:63]}
        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", label)
        context = "cann 9.0.0" if "--cann" in requested else "any"
        assert metadata["annotations"] == {
            "npuprof/preset": name,
            "npuprof/digest": digest,
            "npuprof/context": context,
        }
        names.add(metadata["name"])
    assert len(names) == 3, "what was asked for is in it, too"
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?", name) for name in names)


#: Starts two tasks as srun would, without a cluster.
SRUN = """#!/bin/bash
while [ "${1#--}" != "$1" ]; do shift; done
export SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=0 SLURM_JOB_ID=77
for task in 0 1; do SLURM_PROCID=$task SLURM_LOCALID=$task "$@" || exit; done
"""


@pytest.mark.parametrize("form", ["slurm-job", "slurm-array"])
def test_a_slurm_job_tells_each_task_which_it_is_and_proves_its_digest(
    form: str, store: Store, run: Run, tmp_path: Path
) -> None:
    facts = ("rank", "local-rank", "world-size", "node-rank", "job", "node-ip")
    requested = "".join(
        f'F{number} = {{ launcher = "{fact}" }}\n' for number, fact in enumerate(facts)
    )
    store(
        {
            "it's $(touch x)": "",
            "leaf": f'[options]\nhccl_timeout = 600\n[env]\nODD = "a\'$(touch y)\\n"\n{requested}',
        }
    )
    result = run("env", "leaf", "--format", form, "--no-check")
    assert result.code == 0
    assert "F5 is omitted" in result.err
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    (tmp_path / "job.sh").write_text(result.out)
    show = (
        "import os, sys; print([os.environ.get(f'F{n}') for n in range(6)], "
        "repr(os.environ['ODD']), sys.argv[1:])"
    )
    done = subprocess.run(
        ["bash", "job.sh", sys.executable, "-c", show, "a b", "$HOME"],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = [[str(task), str(task), "2", "0", "77", None] for task in range(2)]
    assert done.stdout.splitlines() == [
        f"{facts} {chr(34)}a'$(touch y)\\n{chr(34)} ['a b', '$HOME']" for facts in wanted
    ]
    digest = json.loads(run("show", "leaf", "--format", "json").out)["digest"]
    assert done.stderr == f"npuprof: leaf {digest}\n"
    assert not (tmp_path / "y").exists()
    arguments = ["bash", "job.sh"]
    nothing = subprocess.run(
        arguments,
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert nothing.returncode == 2
    assert nothing.stdout == ""
    assert nothing.stderr.startswith("npuprof: ")


def test_a_name_that_no_shell_takes_is_refused_for_what_a_job_asks_later(
    store: Store, run: Run
) -> None:
    store({"leaf": "[env]\n'A;touch x' = { launcher = 'rank' }\n"})
    done = run("env", "leaf", "--format", "slurm-job", "--no-check")
    assert done.code == 2
    assert done.out == ""
    assert "A;touch x" in done.err


def test_diff_tells_what_would_change(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"leaf": '[options]\naoe_mode = "2"\nhccl_timeout = 600\n'})
    monkeypatch.setenv("NPUPROF_HCCL_TIMEOUT", "1800")
    monkeypatch.setenv("NPUPROF_AOE_MODE", "2")
    monkeypatch.setenv("NPUPROF_DUMP_PATH", "\x1b[2J\udcff")
    monkeypatch.setenv("NPUPROF_BEFORE", "{}")
    result = run("env", "leaf", "--diff")
    assert result.code == 0
    lines = result.out.splitlines()
    assert '+ AOE_MODE = "2"' in lines
    assert '~ NPUPROF_HCCL_TIMEOUT = "1800" -> "600"' in lines
    assert [line.split()[1] for line in lines if line.startswith("-")] == ["NPUPROF_DUMP_PATH"]
    assert not any("NPUPROF_AOE_MODE" in line for line in lines)
    assert "\x1b" not in result.out
    rows = json.loads(run("env", "leaf", "--diff", "--format", "json").out)["changes"]
    assert {
        "change": "changed",
        "name": "NPUPROF_HCCL_TIMEOUT",
        "before": "1800",
        "after": "600",
    } in rows


@pytest.mark.parametrize(
    "arguments",
    [
        ("--format", "yaml"),
        ("--shell", "csh"),
        ("--format", "json", "--shell", "bash"),
        ("--format", "json", "--unset"),
        ("--diff", "--unset"),
        ("--diff", "--format", "docker"),
    ],
)
def test_words_that_make_no_sense_are_refused(
    arguments: tuple[str, ...], store: Store, run: Run
) -> None:
    store({"leaf": "[options]\ndeterministic = 1\n"})
    result = run("env", "leaf", *arguments)
    assert result.code == 2, result.err
    assert result.out == "", result.err
    assert "error NP9" in result.err


@pytest.mark.parametrize("text", ["it's `", "it's $(", "a(b\\"])
def test_a_value_of_which_source_loses_the_lines_after_it_is_told(
    text: str, store: Store, run: Run, tmp_path: Path
) -> None:
    store({"leaf": toml({"env": {"MINE": text, "OTHER": "x"}})})
    result = run("env", "leaf", "--format", "dotenv")
    assert dotenv(result.out)["MINE"] == text
    path = tmp_path / "file.env"
    path.write_text(result.out)
    done = subprocess.run(
        ["bash", "-c", f'source {path}; printf %s "$OTHER"'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout != "x"
    assert "or lose lines after it" in " ".join(result.err.split())


@pytest.mark.parametrize(
    ("name", "is_quoted"),
    [("NO", True), ("y", True), ("null", True), ("True", True), ("A1", False), ("NO_PROXY", False)],
)
def test_yaml_reads_every_name_as_the_text_that_it_is(name: str, is_quoted: bool) -> None:
    for form, read in (("k8s-configmap", configmap), ("k8s-env", kubernetes)):
        text = FORMATS[form].write(PRESET, {name: "1"}, {})
        assert read(text) == {name: "1"}
        assert (f'"{name}"' in text) is is_quoted
