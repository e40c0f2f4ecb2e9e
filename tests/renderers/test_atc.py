"""The ATC command line, run by a real shell with a stand-in for atc that keeps its arguments."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import renderers
from support.building import config, examples, render_unchecked, toml
from support.running import Run, Store

BASE = {"model": "/m.pb", "framework": 3, "output": "/o", "soc_version": "Ascend910B2"}
_ATC = """#!/bin/sh
printf '%s\\0' "$@" > "$ARGUMENTS"
"""


@pytest.fixture
def atc(tmp_path: Path) -> Callable[[str], list[str]]:
    """Run a rendered command line; return the arguments atc was given."""
    program = tmp_path / "bin" / "atc"
    program.parent.mkdir()
    program.write_text(_ATC)
    program.chmod(0o755)

    def run(script: str) -> list[str]:
        file = tmp_path / "given"
        environ = {
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "ARGUMENTS": str(file),
        }
        subprocess.run(["sh", "-c", script], env=environ, check=True, cwd=tmp_path)
        return file.read_bytes().decode().split("\0")[:-1]

    return run


def codes(options: dict[str, Any], flags: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the findings of a rendering: code and severity."""
    try:
        rendered = renderers.load_target("atc").write(
            config(toml({"options": options, "atc": flags})), False
        )
    except npuprof.NpuprofError as error:
        return [(finding.code, finding.severity) for finding in error.findings]
    return [(finding.code, finding.severity) for finding in rendered.findings]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"precision_mode_v2": "fp16"}, "--precision_mode_v2=fp16"),
        ({"op_select_implmode": "high_precision"}, "--op_select_implmode=high_precision"),
        ({"jit_compile": "auto"}, "--jit_compile=2"),
        ({"jit_compile": "false"}, "--jit_compile=0"),
        ({"external_weight": False}, "--external_weight=0"),
        ({"oo_constant_folding": False}, "--oo_constant_folding=false"),
        ({"deterministic": 1}, "--deterministic=1"),
        ({"auto_multistream_parallel_mode": "cv"}, "--multi_stream_parallel_mode=cv"),
        ({"input_shape": {"a": [1, 224, 224, 3], "b": [0]}}, "--input_shape=a:1,224,224,3;b:"),
    ],
)
def test_an_option_becomes_its_flag(
    atc: Callable[[str], list[str]], options: dict[str, Any], argument: str
) -> None:
    preset = config(toml({"options": options, "atc": BASE}))
    for inline in (False, True):
        arguments = atc(render_unchecked(preset, "atc", inline=inline))
        assert argument in arguments
        assert len(arguments) == 5


@examples(20)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40))
def test_any_value_comes_through_the_shell_as_it_is(
    atc: Callable[[str], list[str]], text: str
) -> None:
    preset = config(toml({"options": {"debug_dir": text}, "atc": {"log": text}}))
    arguments = atc(render_unchecked(preset, "atc"))
    assert f"--debug_dir={text}" in arguments
    assert f"--log={text}" in arguments


def test_an_option_without_a_flag_is_an_error() -> None:
    with pytest.raises(npuprof.NpuprofError) as caught:
        render_unchecked(config("[options]\niterations_per_loop = 10\ngraph_run_mode = 1\n"), "atc")
    assert [finding.key for finding in caught.value.findings] == [
        "graph_run_mode",
        "iterations_per_loop",
    ]


@pytest.mark.parametrize("value", ["a\0b", "x" * 200_000, "é" * 70_000])
def test_what_no_command_line_can_hold_is_refused_by_name(value: str) -> None:
    with pytest.raises(npuprof.NpuprofError, match="debug_dir"):
        render_unchecked(config(toml({"options": {"debug_dir": value}})), "atc")


def test_what_atc_does_anyway_needs_no_flag(atc: Callable[[str], list[str]]) -> None:
    assert (
        len(
            atc(
                render_unchecked(
                    config(toml({"options": {"graph_run_mode": 0}, "atc": BASE})), "atc"
                )
            )
        )
        == 4
    )


@pytest.mark.parametrize(
    ("options", "flags", "wanted"),
    [
        ({}, BASE, []),
        ({}, {"framework": 3}, [("NP911", "info")]),
        ({}, {"mode": 1, "soc_version": "A"}, [("NP911", "info")]),
        ({"op_select_implmode": "high_precision"}, BASE, [("NP913", "warning")]),
        (
            {"op_select_implmode": "high_precision", "optypelist_for_implmode": "Pooling"},
            BASE,
            [("NP913", "warning")],
        ),
        (
            {"op_select_implmode": "high_precision_for_all", "optypelist_for_implmode": "Pooling"},
            BASE,
            [("NP913", "warning"), ("NP912", "warning")],
        ),
    ],
)
def test_what_the_command_lacks_and_is_advised_is_told(
    options: dict[str, Any], flags: dict[str, Any], wanted: list[tuple[str, str]]
) -> None:
    assert codes(options, flags) == wanted


def test_the_ini_file_is_written_beside_the_command_and_found_from_anywhere(
    atc: Callable[[str], list[str]], store: Store, run: Run, tmp_path: Path
) -> None:
    text = """\
[options.op_precision_mode]
ByOpType = { Conv2D = "high_performance", SoftmaxV2 = "high_precision" }
[atc]
model = "/m.pb"
framework = 3
output = "/o"
soc_version = "Ascend910B2"
"""
    store({"offline": text})
    result = run("render", "offline", "--to", "atc", "-o", tmp_path / "a folder")
    assert result.code == 0
    (argument,) = [
        argument
        for argument in atc(f"sh '{tmp_path}/a folder/atc.sh'")
        if argument.startswith("--op_precision_mode=")
    ]
    assert (
        Path(argument.partition("=")[2]).read_text()
        == "[ByOpType]\nConv2D=high_performance\nSoftmaxV2=high_precision\n"
    )


def test_advice_names_the_ini_file_to_start_from(store: Store, run: Run) -> None:
    store({"offline": toml({"options": {"op_select_implmode": "high_precision"}, "atc": BASE})})
    result = run("render", "offline", "--to", "atc")
    assert result.code == 0
    assert "high_precision_for_all.ini" in result.err


@pytest.mark.parametrize(
    ("option", "flag"),
    [
        ({"external_weight": True}, {"external_weight": "2"}),
        ({"precision_mode": "force_fp16"}, {"precision_mode": "force_fp32"}),
    ],
)
def test_a_flag_that_two_sections_set_differently_is_not_chosen_in_silence(
    option: Any, flag: Any
) -> None:
    with pytest.raises(npuprof.NpuprofError, match="by atc") as caught:
        render_unchecked(config(toml({"options": option, "atc": flag})), "atc")
    (finding,) = caught.value.findings
    assert finding.code == "NP912"
    assert finding.key == f"atc.{next(iter(flag))}"


def test_a_flag_that_two_sections_set_alike_is_written_once() -> None:
    preset = config(toml({"options": {"external_weight": True}, "atc": {"external_weight": "1"}}))
    assert render_unchecked(preset, "atc").count("--external_weight=1") == 1
