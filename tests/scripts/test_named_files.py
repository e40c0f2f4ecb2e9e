"""Files that scripts name for an option are judged as a preset's own; none outside is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from npuprof import __main__
from support.importing import HEAD, TAIL, write

MIXED = 'custom_op.parameter_map["precision_mode"].s = b"allow_mix_precision"\n'


def script(option: str, name: str) -> str:
    return f'{HEAD}{MIXED}custom_op.parameter_map["{option}"].s = b"{name}"\n{TAIL}'


def scan(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[str, str, int]]:
    """Return file, message and line of what scan says of files beside scripts."""
    __main__.main(["scan", *arguments, "--format", "json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    return [
        (Path(finding["path"]).name, finding["message"], finding["line"])
        for finding in found
        if finding["code"] == "NP821"
    ]


class OptionFileCase(NamedTuple):
    option: str
    text: str
    message: str | None
    line: int


@pytest.mark.parametrize(
    ("option", "text", "message", "line"),
    [
        OptionFileCase(
            option="modify_mixlist",
            text='{"black-list": {"to-add": ["MatMul"]}}',
            message=None,
            line=0,
        ),
        OptionFileCase(
            option="modify_mixlist",
            text='{\n "black-lst": {"to-add": ["MatMul"]}}',
            message="black-lst: unknown key 'black-lst'",
            line=2,
        ),
        OptionFileCase(
            option="modify_mixlist",
            text='{\n"black-list": {\n // why\n"to-add": ["MatMul"]}}',
            message="is not in the format of modify_mixlist",
            line=1,
        ),
        OptionFileCase(
            option="fusion_switch_file",
            text='{"Switch": {"GraphFusion": {"ALL": "off"}}}',
            message=None,
            line=0,
        ),
        OptionFileCase(
            option="fusion_switch_file",
            text='{"Switch": {"GraphFusion": {\n"ALL": "of"}}}',
            message="unknown 'of'",
            line=2,
        ),
        OptionFileCase(
            option="op_precision_mode",
            text="[ByOpType]\nConv2D=high_perfomance\n",
            message="unknown 'high_perfomance'",
            line=2,
        ),
        OptionFileCase(
            option="op_precision_mode",
            text="Conv2D=high_performance\nConv2D=high_precision\n",
            message="Conv2D is set twice in [ByOpType]: the first",
            line=2,
        ),
        OptionFileCase(
            option="modify_mixlist",
            text='{"black-list": {"to-add": ["A"]},\n"black-list": {"to-add": ["B"]}}',
            message="black-list is set twice: the last",
            line=2,
        ),
        OptionFileCase(
            option="customize_dtypes",
            text="OpType::Add:InputDtype:float16\nOpType::Add:InputDtype:float\n",
            message="OpType::Add is set twice: the first",
            line=2,
        ),
        OptionFileCase(
            option="customize_dtypes",
            text="OpType::Add:InputDtype:float16\nAdd::InputDtype:float\n",
            message=None,
            line=0,
        ),
        OptionFileCase(
            option="customize_dtypes",
            text="OpType::Add:InputDtype:float16\n\n# why\n",
            message="is not in the format of customize_dtypes",
            line=1,
        ),
        OptionFileCase(
            option="op_debug_config",
            text="op_debug_config=oom,dump_cee\n",
            message="unknown 'dump_cee'",
            line=1,
        ),
        OptionFileCase(
            option="aoe_config_file",
            text='{"tune_optimization_level": "O3"}',
            message="tune_optimization_level: unknown 'O3'",
            line=1,
        ),
    ],
)
def test_a_file_that_an_option_names_is_judged(
    option: str,
    text: str,
    message: str | None,
    line: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(
        tmp_path,
        {"models/train.py": script(option, "conf/named.cfg"), "models/conf/named.cfg": text},
    )
    found = scan(capsys, str(tmp_path))
    assert [(name, number) for name, _, number in found] == (
        [("named.cfg", line)] if message else []
    )
    assert all(message in reported for _, reported, _ in found if message)


@pytest.mark.parametrize("surface", ["session", "NPURunConfig", "TF 2", "atc"])
def test_every_surface_can_name_one(
    surface: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {
        "session": ("a.py", script("fusion_switch_file", "./f.cfg")),
        "NPURunConfig": (
            "a.py",
            "from npu_bridge.npu_init import *\nc = NPURunConfig(fusion_switch_file='f.cfg')\n",
        ),
        "TF 2": (
            "a.py",
            "import npu_device as npu\nnpu.global_options().fusion_switch_file = 'f.cfg'\n",
        ),
        "atc": (
            "a.sh",
            (
                "atc --model=m.pb --framework=3 --output=o --soc_version=Ascend310 "
                "--fusion_switch_file=f.cfg\n"
            ),
        ),
    }
    name, text = texts[surface]
    write(tmp_path, {name: text, "f.cfg": '{"Swich": {}}'})
    assert [file for file, _, _ in scan(capsys, str(tmp_path / name))] == ["f.cfg"]


def test_a_file_of_the_folder_that_is_scanned_is_found_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        tmp_path,
        {
            "src/a.py": script("modify_mixlist", "ops.json"),
            "src/b.py": script("modify_mixlist", "../ops.json"),
            "ops.json": "[]",
        },
    )
    assert [file for file, _, _ in scan(capsys, str(tmp_path))] == ["ops.json"]
    assert scan(capsys, str(tmp_path / "src" / "a.py")) == []


def test_what_lies_outside_or_is_no_file_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        tmp_path,
        {
            "in/absolute.py": script("modify_mixlist", str(tmp_path / "out" / "ops.json")),
            "in/above.py": script("modify_mixlist", "../out/ops.json"),
            "in/link.py": script("modify_mixlist", "link.json"),
            "in/folder.py": script("modify_mixlist", "through/ops.json"),
            "in/pipe.py": script("modify_mixlist", "pipe.json"),
            "in/none.py": script("modify_mixlist", "none.json"),
            "out/ops.json": "[]",
        },
    )
    os.symlink(tmp_path / "out" / "ops.json", tmp_path / "in" / "link.json")
    os.symlink(tmp_path / "out", tmp_path / "in" / "through")
    os.mkfifo(tmp_path / "in" / "pipe.json")
    assert scan(capsys, str(tmp_path / "in")) == []


def test_import_reads_the_same_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = '{"black-list": {"to-add": ["MatMul"]}}'
    write(
        tmp_path,
        {"in/a.py": script("modify_mixlist", "ops.json"), "in/ops.json": good, "out.json": good},
    )
    assert __main__.main(["import", str(tmp_path / "in" / "a.py")]) == 0
    assert (
        '[options.modify_mixlist]\nblack-list = { to-add = ["MatMul"] }' in capsys.readouterr().out
    )
    (tmp_path / "in" / "ops.json").unlink()
    os.symlink(tmp_path / "out.json", tmp_path / "in" / "ops.json")
    assert __main__.main(["import", str(tmp_path / "in" / "a.py")]) == 0
    assert 'modify_mixlist = "ops.json"' in capsys.readouterr().out


def test_a_file_that_is_no_text_is_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"a.py": script("modify_mixlist", "ops.json"), "ops.json": b"\xff\xfe\x00"})
    assert [(file, message) for file, message, _ in scan(capsys, str(tmp_path))] == [
        ("ops.json", "ops.json is not in the format of modify_mixlist")
    ]


def scan_all(capsys: pytest.CaptureFixture[str], *arguments: str) -> set[tuple[str, str, int]]:
    """Return file, code and line of what ``scan`` says, notes left out."""
    __main__.main(["scan", *arguments, "--format", "json", "--severity", "warning"])
    found = json.loads(capsys.readouterr().out)["findings"]
    return {(Path(finding["path"]).name, finding["code"], finding["line"]) for finding in found}


def run_config(**options: str) -> str:
    arguments = ", ".join(f"{name}={value}" for name, value in options.items())
    return f"from npu_bridge.npu_init import *\nrun = NPURunConfig({arguments})\n"


class PresetFileCase(NamedTuple):
    options: dict[str, str]
    text: str
    findings: set[tuple[str, str, int]]
    product: str


@pytest.mark.parametrize(
    ("options", "text", "findings", "product"),
    [
        pytest.param(
            *PresetFileCase(
                options={"op_debug_config": "'f'"},
                text="op_debug_config=oom,ccec_O0\n",
                findings={("a.py", "NP353", 2)},
                product="",
            ),
            id="levels that exclude each other",
        ),
        pytest.param(
            *PresetFileCase(
                options={"op_debug_config": "'f'", "op_debug_level": "2"},
                text="op_debug_config=oom\n",
                findings={("a.py", "NP355", 2)},
                product="",
            ),
            id="level set twice",
        ),
        pytest.param(
            *PresetFileCase(
                options={"aoe_config_file": "'f'", "aoe_mode": "'1'"},
                text='{"feature": ["deeper_opat"]}',
                findings={("a.py", "NP371", 2)},
                product="",
            ),
            id="feature that needs another mode",
        ),
        pytest.param(
            *PresetFileCase(
                options={"aoe_config_file": "'f'", "aoe_mode": "'2'"},
                text='{"feature": ["deeper_opat"]}',
                findings=set(),
                product="",
            ),
            id="feature of that mode",
        ),
        pytest.param(
            *PresetFileCase(
                options={"op_precision_mode": "'f'"},
                text="[ByOpType]\nConv2D=enable_float_32_execution\n",
                findings={("f", "NP409", 2)},
                product="atlas-training",
            ),
            id="value of another product",
        ),
        pytest.param(
            *PresetFileCase(
                options={"op_precision_mode": "'f'"},
                text="[ByOpType]\nConv2D=high_precision\n",
                findings=set(),
                product="atlas-training",
            ),
            id="value of the product",
        ),
        pytest.param(
            *PresetFileCase(
                options={"modify_mixlist": "'f'", "precision_mode_v2": "'mixed_float16'"},
                text='{"black-list": {"to-add": ["Matmul"]},\n "gray-list": {"to-add": ["Cast"]}}',
                findings={("f", "NP205", 1), ("f", "NP205", 2)},
                product="",
            ),
            id="names in another case on two lines",
        ),
        pytest.param(
            *PresetFileCase(
                options={"customize_dtypes": "'f'"},
                text="OpType::Matmul:InputDtype:float16\n",
                findings={("f", "NP205", 1)},
                product="",
            ),
            id="operator type in another case",
        ),
    ],
)
def test_a_file_is_judged_as_the_same_table_in_a_preset(
    options: dict[str, str],
    text: str,
    findings: set[tuple[str, str, int]],
    product: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path, {"a.py": run_config(**options), "f": text})
    assert scan_all(capsys, str(tmp_path), *(["--product", product] if product else [])) == findings


BLOCK = (
    "aipp_op {\n  aipp_mode: static # why\n  input_format: RGB888_U8\n  src_image_size_w: 224\n}\n"
)


class FlagFileCase(NamedTuple):
    flag: str
    text: str
    message: str | None
    line: int


@pytest.mark.parametrize(
    ("flag", "text", "message", "line"),
    [
        FlagFileCase(
            flag="keep_dtype",
            text="model/softmax\n\nOpType::LayerNorm\n",
            message=None,
            line=0,
        ),
        FlagFileCase(
            flag="keep_dtype",
            text="model/softmax\nOpType::matmul\n",
            message="'matmul' is not an operator type",
            line=2,
        ),
        FlagFileCase(
            flag="insert_op_conf",
            text=BLOCK,
            message=None,
            line=0,
        ),
        FlagFileCase(
            flag="insert_op_conf",
            text=BLOCK + BLOCK.replace("static", "dynamic\n  max_src_image_size: 752640"),
            message=None,
            line=0,
        ),
        FlagFileCase(
            flag="insert_op_conf",
            text=BLOCK.replace("static", "statc"),
            message="'statc' is not a mode",
            line=2,
        ),
        FlagFileCase(
            flag="insert_op_conf",
            text=BLOCK.replace("224", "5000"),
            message="src_image_size_w is out of range",
            line=4,
        ),
        FlagFileCase(
            flag="insert_op_conf",
            text=BLOCK.replace("src_image_size_w", "src_image_sise_w"),
            message="unknown field 'src_image_sise_w'",
            line=4,
        ),
        FlagFileCase(
            flag="raw_ge_options",
            text='{"compile options": {"session": {"ge.jit_compile": "2"}}}',
            message=None,
            line=0,
        ),
        FlagFileCase(
            flag="raw_ge_options",
            text='{"compile options": {"graph": {"ge.oo.level": 1}}}',
            message="'ge.oo.level' has no text",
            line=1,
        ),
    ],
)
def test_a_file_that_a_flag_names_is_judged(
    flag: str,
    text: str,
    message: str | None,
    line: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = (
        f"atc --model=m.pb --framework=3 --output=o --soc_version=Ascend310 --{flag}=named.cfg\n"
    )
    write(tmp_path, {"a.sh": command, "named.cfg": text})
    found = scan(capsys, str(tmp_path))
    assert [(name, number) for name, _, number in found] == (
        [("named.cfg", line)] if message else []
    )
    assert all(message in reported for _, reported, _ in found if message)
