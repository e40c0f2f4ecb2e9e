"""npuprof in the flags of a script, in pytest and MLflow, with the real packages if installed."""

from __future__ import annotations

import argparse
import doctest
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import npuprof
from npuprof.integrations import arguments, choice, mlflow
from npuprof.integrations.run_config import build_run_config
from support.building import REPOSITORY, build_store
from support.recorders import adapter

Store = Callable[[Mapping[str, str | bytes]], Path]
LEAF = (
    '[profile]\nscenario = "training"\n[options]\nhccl_timeout = 1800\n'
    'precision_mode_v2 = "mixed_float16"\n[env]\nOWN = "${x}"\n'
)


@pytest.fixture
def presets(tmp_path: Path) -> Path:
    return build_store(
        tmp_path / "profiles", {"leaf": LEAF, "base/other": "options.hccl_timeout = 600\n"}
    )


# -- argparse -------------------------------------------------------------------------------------


def parse(command_line: list[str], **defaults: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    arguments.add_arguments(parser, **defaults)
    return parser.parse_args(command_line)


@pytest.mark.parametrize(
    "command_line",
    [
        ["--npu_preset", "leaf", "--npu_set", "hccl_timeout=7", "--npu_unset", "precision_mode_v2"],
        [
            "--npu-preset=leaf",
            "--npu-set=hccl_timeout=600",
            "--npu-set=hccl_timeout=7",
            "--npu-unset=precision_mode_v2",
        ],
        [
            "--npu_preset",
            "profiles/leaf.toml",
            "--npu_set",
            "hccl_timeout=7",
            "--npu-unset",
            "precision_mode_v2",
        ],
    ],
)
def test_the_flags_name_a_preset_and_change_it(presets: Path, command_line: list[str]) -> None:
    config = arguments.resolve_arguments(parse(command_line))
    assert config is not None
    assert config.options == {"hccl_timeout": 7}
    assert config.origins("hccl_timeout")[0].file == "--set"


def test_a_script_has_its_defaults_and_without_one_runs_as_before(presets: Path) -> None:
    found = arguments.resolve_arguments(parse([], preset="leaf"), product="atlas-a2-training")
    assert found is not None
    assert found.name == "leaf"
    assert found.context.product == "atlas-a2-training"
    assert arguments.resolve_arguments(parse([])) is None
    other = arguments.resolve_arguments(parse(["--npu_store", "builtin:"], preset="bert-training"))
    assert other is not None
    assert "precision_mode_v2" in other


@pytest.mark.parametrize(
    ("command_line", "expected"),
    [
        (
            ["--npu_set", "hccl_timeout=7"],
            "--npu_set changes a preset, and --npu_preset names none",
        ),
        (["--npu_unset", "hccl_timeout"], "--npu_unset changes a preset"),
        (["--npu_preset", "laef"], "leaf"),
        (["--npu_preset", "-"], "standard input"),
        (["--npu_preset", "leaf", "--npu_set", "hccl_timeout"], "is not KEY=VALUE"),
        (["--npu_preset", "leaf", "--npu_store", "nowhere"], "nowhere"),
    ],
)
def test_what_is_asked_wrongly_is_said_with_a_repair(
    presets: Path, command_line: list[str], expected: str
) -> None:
    with pytest.raises(npuprof.NpuprofError, match=expected) as caught:
        arguments.resolve_arguments(parse(command_line))
    assert all(finding.hint for finding in caught.value.findings)


@pytest.mark.parametrize(
    "command_line", [["--npu_set=hccl_timout=1"], ["--npu_set=hccl_timeout=abc"]]
)
def test_what_no_adapter_reads_or_takes_is_refused_where_it_is_asked_for(
    presets: Path, command_line: list[str], capsys: Any
) -> None:
    args = parse(["--npu_preset=leaf", *command_line])
    with pytest.raises(npuprof.NpuprofError, match=r"hccl_timeo?u?t"):
        arguments.resolve_arguments(args)
    assert arguments.resolve_arguments(args, check=False) is not None
    with pytest.raises(SystemExit) as ended:
        arguments.resolve_arguments(args, argparse.ArgumentParser(prog="train.py"))
    assert ended.value.code == 2
    assert "train.py: error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--npu_preset=bret"],
        ["--npu_preset=leaf", "--npu_set=hccl_timeout"],
        ["--npu_set=hccl_timeout=1"],
    ],
)
def test_absl_refuses_what_is_not_there_as_it_does_any_flag(
    presets: Path, arguments: list[str]
) -> None:
    flags = pytest.importorskip("absl.flags")
    from npuprof.integrations import absl_flags

    values = flags.FlagValues()
    absl_flags.define_flags(flag_values=values)
    with pytest.raises(flags.IllegalFlagValueError, match="npu_"):
        values(["train.py", *arguments])


def test_the_help_of_a_script_tells_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        parse(["--help"], preset="50%")
    output = capsys.readouterr().out
    assert "Default: 50%." in output
    assert all(f"--{flag.name}" in output for flag in choice.FLAGS)


def test_the_example_of_the_module_runs() -> None:
    failed, tried = doctest.testmod(arguments)
    assert failed == 0
    assert tried > 0


# -- absl -----------------------------------------------------------------------------------------


def test_absl_flags_name_a_preset_and_change_it(presets: Path) -> None:
    flags = pytest.importorskip("absl.flags")
    from npuprof.integrations import absl_flags

    values = flags.FlagValues()
    absl_flags.define_flags(preset="base/other", flag_values=values)
    with pytest.raises(flags.UnparsedFlagAccessError):
        absl_flags.resolve_flags(values)
    values(
        [
            "train.py",
            "--npu_preset=leaf",
            "--npu_set=hccl_timeout=7",
            "--npu_set",
            "deterministic=1",
            "--npu_unset=precision_mode_v2",
        ]
    )
    config = absl_flags.resolve_flags(values, cann="9.0.0")
    assert config is not None
    assert config.options == {"hccl_timeout": 7, "deterministic": 1}
    assert config.context.cann == "9.0.0"
    again = flags.FlagValues()
    absl_flags.define_flags(flag_values=again)
    again(["train.py"])
    assert absl_flags.resolve_flags(again) is None


def test_an_npurunconfig_is_made_with_what_the_preset_sets(presets: Path, tensorflow: Any) -> None:
    config = npuprof.open_store().resolve("leaf")
    with adapter(tensorflow):
        made = build_run_config(config, model_dir="out")
        assert made.hccl_timeout == 1800
        assert made.precision_mode_v2 == "mixed_float16"
        assert made.model_dir == "out"
        mine = tensorflow.compat.v1.ConfigProto(allow_soft_placement=True)
        assert build_run_config(config, mine).session_config.allow_soft_placement
        with pytest.raises(TypeError, match="hccl_timeout"):
            build_run_config(config, hccl_timeout=3)
        with pytest.raises(npuprof.NpuprofError):
            build_run_config(npuprof.loads("options.hccl_timeot = 1"))


# -- pytest ---------------------------------------------------------------------------------------


def pytest_there(folder: Path, *arguments: str) -> tuple[int, str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "npuprof.integrations.pytest_plugin",
        *arguments,
    ]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a test of its own, and three presets, one of them wrong, one doubtful."""
    folder = tmp_path / "project"
    build_store(
        folder / "profiles",
        {"good": LEAF, "bad": "[options]\nhccl_timeot = 1\n", "odd": "[env]\nhccl_timeout = 1\n"},
    )
    (folder / "test_own.py").write_text("def test_own():\n    pass\n")
    return folder


def test_pytest_knows_nothing_of_presets_until_it_is_asked(project: Path) -> None:
    (project / "test_more.py").write_text(
        "import sys\n\ndef test_loaded():\n"
        "    found = {name for name in sys.modules if name.startswith('npuprof')}\n"
        "    assert found <= {'npuprof', 'npuprof.integrations', "
        "'npuprof.integrations.pytest_plugin'}\n"
    )
    code, output = pytest_there(project)
    assert code == 0, output
    assert "2 passed" in output, output


@pytest.mark.parametrize("arguments", [["--npuprof"], ["-o", "npuprof=profiles"]])
def test_each_preset_is_a_test_that_fails_with_what_check_says(
    project: Path, arguments: list[str]
) -> None:
    code, output = pytest_there(project, *arguments, "-rA")
    assert code == 1
    for message in (
        "1 failed, 4 passed",
        "NP201: unknown option 'hccl_timeot'",
        "did you mean 'hccl_timeout'?",
        "profiles/bad.toml:2:1",
        "npuprof::bad",
    ):
        assert message in output, output
    assert "Traceback" not in output


def test_presets_are_chosen_and_judged_as_asked(project: Path) -> None:
    code, output = pytest_there(project, "--npuprof", "-k", "good or own")
    assert code == 0, output
    assert "2 passed, 3 deselected" in output, output
    code, output = pytest_there(project, "--npuprof", "--npuprof-strict", "-k", "good or odd")
    assert code == 1, output
    assert "NP206" in output, output
    assert "npuprof::odd" in output, output
    build_store(project / "profiles", {"-x": "", "sub/profiles/b": LEAF})
    code, output = pytest_there(project, "--npuprof", "-k", "other and files")
    assert code == 1, output
    assert "NP004" in output, output
    assert "rename the file" in output, output
    assert "NP017" in output, output
    assert "5 deselected" in output, output
    code, output = pytest_there(project, "--npuprof=nowhere")
    assert code == 4, output
    assert "nowhere" in output, output
    assert "Traceback" not in output, output


# -- MLflow ---------------------------------------------------------------------------------------


def test_any_client_is_told_what_a_run_was_made_with(presets: Path) -> None:
    config = npuprof.open_store().resolve("leaf", cann="9.0.0")
    calls: list[tuple[str, ...]] = []
    client = SimpleNamespace(
        set_tag=lambda *tag: calls.append(tag)
    )  # of the run it is told, or of its own
    tags = mlflow.tag_run(config, client)
    assert tags == dict(calls)
    assert tags["npuprof.preset"] == "leaf"
    assert tags["npuprof.digest"] == config.digest
    assert tags["npuprof.context"] == "cann 9.0.0"
    mlflow.tag_run(config, client, "run 1")
    assert calls[-1] == ("run 1", "npuprof.version", tags["npuprof.version"])
    with pytest.raises(TypeError, match="object has neither"):
        mlflow.tag_run(config, object())
    with pytest.raises(
        TypeError, match="a Config is needed, as resolve and loads return it, not str"
    ):
        mlflow.tag_run("leaf", client)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="run_id must be given"):
        mlflow.tag_run(config, type("MlflowClient", (), {"set_tag": None, "get_run": None})())


def test_mlflow_itself_keeps_the_tags_of_the_active_run_and_of_another(
    presets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow")
    code = (
        "import mlflow, npuprof, sys\nfrom npuprof.integrations.mlflow import tag_run\n"
        "mlflow.set_tracking_uri('file:' + sys.argv[1])\n"
        "config = npuprof.open_store().resolve('leaf')\nclient = mlflow.MlflowClient()\n"
        "with mlflow.start_run() as run:\n    tag_run(config)\n"
        "assert client.get_run(run.info.run_id).data.tags['npuprof.digest'] == config.digest\n"
        "other = client.create_run(run.info.experiment_id).info.run_id\n"
        "tag_run(config, run_id=other)\n"
        "assert client.get_run(other).data.tags['npuprof.preset'] == 'leaf'\n"
        "tag_run(config, client, other)\nprint('tagged')\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "GIT_PYTHON_REFRESH": "quiet",
    }
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "runs"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "tagged\n", done.stderr
