"""Files that scripts name for an option are judged as a preset's own; none outside is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from npuprof import __main__
from support.importing import HEAD, TAIL, write

MIXED = 'custom_op.parameter_map["precision_mode"].s = b"allow_mix_precision"\n'


def script(option: str, name: str) -> str:
    return f'{HEAD}{MIXED}custom_op.parameter_map["{option}"].s = b"{name}"\n{TAIL}'


def scan(capsys: pytest.CaptureFixture[str], *words: str) -> list[tuple[str, str, int]]:
    """Return file, message and line of what scan says of files beside scripts."""
    __main__.main(["scan", *words, "--format", "json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    return [
        (Path(one["path"]).name, one["message"], one["line"])
        for one in found
        if one["code"] == "NP821"
    ]


@pytest.mark.parametrize(
    ("option", "text", "message", "line"),
    [
        ("modify_mixlist", '{"black-list": {"to-add": ["MatMul"]}}', None, 0),
        (
            "modify_mixlist",
            '{\n "black-lst": {"to-add": ["MatMul"]}}',
            "black-lst: unknown key 'black-lst'",
            2,
        ),
        (
            "modify_mixlist",
            '{\n"black-list": {\n // why\n"to-add": ["MatMul"]}}',
            "is not in the format of modify_mixlist",
            1,
        ),
        ("fusion_switch_file", '{"Switch": {"GraphFusion": {"ALL": "off"}}}', None, 0),
        ("fusion_switch_file", '{"Switch": {"GraphFusion": {\n"ALL": "of"}}}', "unknown 'of'", 2),
        (
            "op_precision_mode",
            "[ByOpType]\nConv2D=high_perfomance\n",
            "unknown 'high_perfomance'",
            2,
        ),
        (
            "op_precision_mode",
            "Conv2D=high_performance\nConv2D=high_precision\n",
            "Conv2D is set twice in [ByOpType]: the first",
            2,
        ),
        (
            "modify_mixlist",
            '{"black-list": {"to-add": ["A"]},\n"black-list": {"to-add": ["B"]}}',
            "black-list is set twice: the last",
            2,
        ),
        (
            "customize_dtypes",
            "OpType::Add:InputDtype:float16\nOpType::Add:InputDtype:float\n",
            "OpType::Add is set twice: the first",
            2,
        ),
        ("customize_dtypes", "OpType::Add:InputDtype:float16\nAdd::InputDtype:float\n", None, 0),
        (
            "customize_dtypes",
            "OpType::Add:InputDtype:float16\n\n# why\n",
            "is not in the format of customize_dtypes",
            1,
        ),
        ("op_debug_config", "op_debug_config=oom,dump_cee\n", "unknown 'dump_cee'", 1),
        (
            "aoe_config_file",
            '{"tune_optimization_level": "O3"}',
            "tune_optimization_level: unknown 'O3'",
            1,
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
    assert all(message in said for _, said, _ in found if message)


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


def scan_all(capsys: pytest.CaptureFixture[str], *words: str) -> set[tuple[str, str, int]]:
    """Return file, code and line of what ``scan`` says, notes left out."""
    __main__.main(["scan", *words, "--format", "json", "--severity", "warning"])
    found = json.loads(capsys.readouterr().out)["findings"]
    return {(Path(one["path"]).name, one["code"], one["line"]) for one in found}


def run_config(**given: str) -> str:
    arguments = ", ".join(f"{name}={value}" for name, value in given.items())
    return f"from npu_bridge.npu_init import *\nrun = NPURunConfig({arguments})\n"


@pytest.mark.parametrize(
    ("given", "text", "said", "product"),
    [
        ({"op_debug_config": "'f'"}, "op_debug_config=oom,ccec_O0\n", {("a.py", "NP353", 2)}, ""),
        (
            {"op_debug_config": "'f'", "op_debug_level": "2"},
            "op_debug_config=oom\n",
            {("a.py", "NP355", 2), ("a.py", "NP501", 2)},
            "",
        ),
        (
            {"aoe_config_file": "'f'", "aoe_mode": "'1'"},
            '{"feature": ["deeper_opat"]}',
            {("a.py", "NP371", 2)},
            "",
        ),
        ({"aoe_config_file": "'f'", "aoe_mode": "'2'"}, '{"feature": ["deeper_opat"]}', set(), ""),
        (
            {"op_precision_mode": "'f'"},
            "[ByOpType]\nConv2D=enable_float_32_execution\n",
            {("f", "NP409", 2)},
            "atlas-training",
        ),
        (
            {"op_precision_mode": "'f'"},
            "[ByOpType]\nConv2D=high_precision\n",
            set(),
            "atlas-training",
        ),
        (
            {"modify_mixlist": "'f'", "precision_mode_v2": "'mixed_float16'"},
            '{"black-list": {"to-add": ["Matmul"]},\n "gray-list": {"to-add": ["Cast"]}}',
            {("f", "NP205", 1), ("f", "NP205", 2)},
            "",
        ),
        (
            {"customize_dtypes": "'f'"},
            "OpType::Matmul:InputDtype:float16\n",
            {("f", "NP205", 1)},
            "",
        ),
    ],
)
def test_a_file_is_judged_as_the_same_table_in_a_preset(
    given: dict[str, str],
    text: str,
    said: set[tuple[str, str, int]],
    product: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path, {"a.py": run_config(**given), "f": text})
    assert scan_all(capsys, str(tmp_path), *(["--product", product] if product else [])) == said


BLOCK = (
    "aipp_op {\n  aipp_mode: static # why\n  input_format: RGB888_U8\n  src_image_size_w: 224\n}\n"
)


@pytest.mark.parametrize(
    ("flag", "text", "message", "line"),
    [
        ("keep_dtype", "model/softmax\n\nOpType::LayerNorm\n", None, 0),
        ("keep_dtype", "model/softmax\nOpType::matmul\n", "'matmul' is not an operator type", 2),
        ("insert_op_conf", BLOCK, None, 0),
        (
            "insert_op_conf",
            BLOCK + BLOCK.replace("static", "dynamic\n  max_src_image_size: 752640"),
            None,
            0,
        ),
        ("insert_op_conf", BLOCK.replace("static", "statc"), "'statc' is not a mode", 2),
        ("insert_op_conf", BLOCK.replace("224", "5000"), "src_image_size_w is out of range", 4),
        (
            "insert_op_conf",
            BLOCK.replace("src_image_size_w", "src_image_sise_w"),
            "unknown field 'src_image_sise_w'",
            4,
        ),
        ("raw_ge_options", '{"compile options": {"session": {"ge.jit_compile": "2"}}}', None, 0),
        (
            "raw_ge_options",
            '{"compile options": {"graph": {"ge.oo.level": 1}}}',
            "'ge.oo.level' has no text",
            1,
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
    assert all(message in said for _, said, _ in found if message)
