"""The rendered ``config.yaml``, as vLLM's parser reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import npuprof
from support.building import config, toml
from support.running import Run
from support.vllm_files import (
    RECORDS,
    build_recorded_parser,
    fetch_parser,
    list_cases,
    load_record,
    read_by_record,
    read_by_vllm,
    write_command,
)

#: The releases with a record.
RELEASES = sorted(path.stem for path in RECORDS.glob("*.json"))
#: Switches that are off and have no form that says so.
NO_NEGATION = {
    "headless",
    "disable-log-stats",
    "aggregate-engine-logging",
    "grpc",
    "data-parallel-multi-port-external-lb",
}


def render(name: str, value: Any, **context: Any) -> str:
    """Return ``config.yaml`` of a preset with one argument, which rules may find fault with."""
    preset = config(toml({"vllm": {name: value}}), **context)
    text: str = npuprof.render(preset, "vllm", inline=True, check=False)["config.yaml"]
    return text


def render_rounds(record: dict[str, Any], **context: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield presets that together have each value of each argument, and their files."""
    values = defaultdict(list)
    for name, value in list_cases(record):
        values[name].append(value)
    for number in range(max(map(len, values.values()))):
        chosen = {name: each[number] for name, each in values.items() if number < len(each)}
        preset = config(toml({"vllm": chosen}), **context)
        yield chosen, npuprof.render(preset, "vllm", inline=True, check=False)["config.yaml"]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("named", [True, False], ids=["release named", "no release named"])
def test_each_argument_is_read_as_the_preset_has_it(release: str, named: bool) -> None:
    record = load_record(release)
    parser = build_recorded_parser(record)
    context = {"versions": {"vllm": release}} if named else {}
    tried = 0
    for values, text in render_rounds(record, **context):
        got = vars(read_by_record(parser, release, text))
        for name, value in values.items():
            dest = name.replace("-", "_")
            command = write_command(name, value, record["arguments"][name])
            wanted = False if value is False else vars(parser.parse_args(command))[dest]
            assert repr(got[dest]) == repr(wanted), f"{name} = {value}"
            tried += 1
    assert tried > 800


@pytest.mark.parametrize(
    ("context", "text"),
    [
        ({}, "no-enable-prefix-caching: true\n"),
        ({"versions": {"vllm": "0.18.0"}}, "no-enable-prefix-caching: true\n"),
        ({"versions": {"vllm_ascend": "0.23.0"}}, "no-enable-prefix-caching: true\n"),
        ({"versions": {"vllm": "0.28.0"}}, "enable-prefix-caching: false\n"),
        ({"versions": {"vllm_ascend": "0.28.0rc1"}}, "enable-prefix-caching: false\n"),
        ({"versions": {"vllm_ascend": "0.28.0rc1", "vllm": "0.23.0"}}, "no-enable-prefix"),
    ],
)
def test_false_is_written_as_the_release_reads_it(context: dict[str, Any], text: str) -> None:
    assert render("enable-prefix-caching", False, **context).startswith(text)


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        ('vllm_ascend = ">=0.28.0rc1"', "enable-prefix-caching: false\n"),
        ('vllm_ascend = ">=0.23"', "no-enable-prefix-caching: true\n"),
        ('vllm = ">=0.28"', "enable-prefix-caching: false\n"),
    ],
)
def test_the_releases_of_a_preset_decide_too(versions: str, text: str) -> None:
    preset = config(f"[profile]\nversions.{versions}\n[vllm]\nenable-prefix-caching = false")
    assert npuprof.render(preset, "vllm", inline=True, check=False)["config.yaml"] == text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("middleware", ["a", "b", "a"], id="repeated key"),
        pytest.param("served-model-name", ["a", "-b"], id="dash in a list"),
        pytest.param("ignore-patterns", [], id="empty list instead of the default"),
        pytest.param("config", "more.yaml", id="file that names a file"),
    ],
)
def test_a_value_that_no_file_can_express_is_an_error_that_names_it(name: str, value: Any) -> None:
    with pytest.raises(npuprof.NpuprofError, match=rf"vllm\.{name} cannot be carried"):
        render(name, value)


def test_a_rendered_folder_is_imported_as_one_preset(tmp_path: Path, run: Run) -> None:
    values = {
        "enable-prefix-caching": False,
        "headless": False,
        "enforce-eager": True,
        "middleware": ["a", "-b"],
        "chat-template": "-x",
        "allowed-origins": ["*"],
        "served-model-name": ["a", "yes"],
        "max-model-len": -1,
        "max-num-seqs": 4,
        "compilation-config": {"cudagraph_mode": "NONE"},
        "tensor-parallel-size": 2,
    }
    tables = {
        "vllm": values,
        "vllm_ascend": {"weight_nz_mode": 0},
        "env": {"HCCL_BUFFSIZE": 1024, "TASK_QUEUE_ENABLE": "1"},
    }
    (tmp_path / "serving.toml").write_text(toml(tables))
    folder = tmp_path / "out"
    assert run("render", tmp_path / "serving.toml", "--to", "vllm", "-o", folder).code == 0
    answer = run("import", folder)
    assert answer.code == 0
    back = npuprof.loads(answer.out)
    assert back.digest == config(toml(tables)).digest
    # an edited file is still part of the folder
    (folder / "env.sh").write_text((folder / "env.sh").read_text() + "export HCCL_BUFFSIZE=512\n")
    assert 'HCCL_BUFFSIZE = "512"' in run("import", folder).out


def test_the_command_that_starts_vllm_is_printed(tmp_path: Path, run: Run) -> None:
    text = "[env]\nHCCL_BUFFSIZE = 1024\n[vllm]\ntensor-parallel-size = 2\n"
    preset = tmp_path / "serving.toml"
    preset.write_text(text)
    render_it = ("render", preset, "--to", "vllm")
    folder = tmp_path / "a b"
    line = f"start: . '{folder}'/env.sh && vllm serve MODEL --config '{folder}'/config.yaml\n"
    assert line in run(*render_it, "-o", folder).err
    shown = run(*render_it, "--set", 'vllm.model="m"').err
    assert "start: . ./env.sh && vllm serve --config ./config.yaml\n" in shown
    answer = run("env", preset, "--format", "k8s-configmap", "--strict")
    assert answer.code == 0
    assert 'config.yaml: "tensor-parallel-size: 2\\n"' in answer.out
    assert "start: vllm serve MODEL --config /etc/npuprof/config.yaml\n" in answer.err
    assert "config.yaml must be at /etc/npuprof in the container" in answer.err


@pytest.mark.nightly(
    "renderers/test_vllm_files.py::test_each_argument_is_read_as_the_preset_has_it"
)
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("release", ["0.18.0", "0.23.0", "0.33.0"])
def test_vllm_reads_each_argument_as_the_preset_has_it(release: str, tmp_path: Path) -> None:
    record = load_record(release)
    python, package = fetch_parser(release, tmp_path)
    cases = list(list_cases(record))
    written = [
        (
            render(name, value, versions={"vllm": release}),
            # without a negation, only another value than the file's tells that it is off
            [f"--{name}"]
            if value is False and name in NO_NEGATION
            else write_command(name, value, record["arguments"][name]),
        )
        for name, value in cases
    ]
    answers = read_by_vllm(python, package, written, tmp_path)
    wrong = defaultdict(list)
    failed = 0
    for (name, value), (of_file, of_command), (text, _) in zip(
        cases, answers, written, strict=True
    ):
        failed += str(of_command).startswith("error: ")
        wanted = False if value is False else of_command
        if of_file != wanted:
            wrong[name].append((value, text, of_file, wanted))
    assert not wrong
    assert failed < len(cases) / 50
