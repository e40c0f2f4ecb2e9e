"""Settings of torch_npu in scripts: every row of the catalogue, under any imported name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import npuprof
from npuprof import catalog
from npuprof.document.keys import format_toml_value
from npuprof.scripts.python.torch_settings import list_forms
from npuprof.scripts.reading.python_scripts import mentions_python_setting
from support.importing import find_release_faults, findings, settings, write
from support.running import Run

if TYPE_CHECKING:
    from pathlib import Path

ROWS = catalog.record_names("torch_npu")
HEAD = "import torch\nimport torch_npu\n"
SAMPLES = {"bool": "True", "int": "3", "float": "0.5", "str": "'Add,Sub'", "path": "'/tmp/x'"}
#: The first release that reads every row with every value.
RELEASE = "26.2.0-beta.1"
MEMBER = "torch.npu.CubeMathType.USE_HF32"


def setting(name: str) -> catalog.Setting:
    found = catalog.find_setting("torch_npu", name)
    assert found is not None
    return found


def write_row(name: str) -> str:
    """Return the code that sets a row to a value that it takes."""
    row = setting(name)
    value = (
        str(row.choices[-1])
        if ".CubeMathType" in row.call
        else repr(row.choices[-1])
        if row.choices
        else SAMPLES[row.kind]
    )
    return row.call.format(value) if row.call else f"torch.npu.set_option({{{name!r}: {value}}})"


def read(lines: str, head: str = HEAD) -> dict[str, Any]:
    return {key.removeprefix("torch_npu."): value for key, value in settings(head + lines).items()}


def judge(lines: str) -> list[tuple[str, str, int]]:
    return [
        (finding.code, finding.severity, finding.line - 2)
        for finding in find_release_faults(HEAD + lines, "torch_npu", RELEASE)
        if finding.severity != "info"
    ]


def test_every_row_is_read_from_the_code_that_sets_it_and_is_judged_as_in_a_preset() -> None:
    assert len(ROWS) >= 7
    assert sum(map(len, list_forms().values())) == sum(bool(setting(name).call) for name in ROWS)
    for name in ROWS:
        (value,) = read(write_row(name)).values()
        assert list(read(write_row(name))) == [name]
        assert mentions_python_setting((HEAD + write_row(name)).encode()), name
        judged = npuprof.check(
            npuprof.loads(
                f'[profile.versions]\ntorch_npu = "{RELEASE}"\n'
                f"[torch_npu]\n{name} = {format_toml_value(value)}\n"
            )
        )
        wrong = {finding.code for finding in judged if finding.severity != "info"} - {
            "NP214",
            "NP601",
        }
        assert {code for code, *_ in judge(write_row(name))} == wrong <= {"NP501"}, (name, judged)


READ = [
    ("torch.npu.set_compile_mode(False)", {"jit_compile": False}),
    ("mm = torch.npu.matmul\nmm.allow_hf32 = True", {"matmul.allow_hf32": True}),
    (f"torch.npu.matmul.cube_math_type = {MEMBER}", {"matmul.cube_math_type": "USE_HF32"}),
    ("torch_npu.npu.set_option(option=dict(ACL_AICORE_NUM=24))", {"ACL_AICORE_NUM": 24}),
    (
        "o = {}\no.update({'ACL_DEBUG_DIR': '/a'}, ACL_AICORE_NUM=2)\ntorch.npu.set_option(o)",
        {"ACL_DEBUG_DIR": "/a", "ACL_AICORE_NUM": 2},
    ),
    (
        "o = {}\ndef f(t):\n    torch.npu.set_option(t)\no['ACL_DEBUG_DIR'] = '/a'\nf(o)",
        {"ACL_DEBUG_DIR": "/a"},
    ),
    (
        "def f(jit):\n    torch.npu.set_compile_mode(jit_compile=jit)\nf(True)",
        {"jit_compile": True},
    ),
    (
        "torch.npu.set_compile_mode(jit_compile=FLAGS.jit)",
        {"jit_compile": "<depends on the command line or its parameters (FLAGS.jit)>"},
    ),
    (
        "torch.npu.set_compile_mode()",
        {"jit_compile": "<depends on all arguments of torch.npu.set_compile_mode()>"},
    ),
    ("o = {}\no = load()\ntorch.npu.set_option(o)", {"?": "<depends on the result of load()>"}),
    ("if torch.npu.config.allow_internal_format == 1: pass\n# torch.npu.set_option({})", {}),
    (
        (
            "class A:\n    def f(self, config):\n        config.allow_internal_format = True\n"
            "        self.matmul.allow_hf32 = 1"
        ),
        {},
    ),
]


@pytest.mark.parametrize(
    ("lines", "expected"), READ, ids=[str(number) for number in range(len(READ))]
)
def test_calls_are_read_under_any_name_and_what_is_not_constant_has_its_reason(
    lines: str, expected: dict[str, Any]
) -> None:
    assert read(lines) == expected


JUDGED = [
    (
        "torch.npu.set_compile_mode(jit_compile='False')",
        ("NP202", "error", 1),
        "torch.npu.set_compile_mode(jit_compile=False)",
    ),
    (
        "torch.npu.set_compile_mode(jit=False)",
        ("NP212", "error", 1),
        "torch.npu.set_compile_mode(jit_compile=False)",
    ),
    ("torch.npu.matmul.allow_tf32 = True", ("NP212", "error", 1), "matmul.allow_hf32"),
    (
        "torch.npu.matmul.cube_math_type = 'USE_HF32'",
        ("NP202", "error", 1),
        "torch.npu.CubeMathType.",
    ),
    (
        "torch.npu.matmul.cube_math_type = torch.npu.CubeMathType.HF32",
        ("NP203", "error", 1),
        "USE_HF32",
    ),
    (
        "torch.npu.set_option({'ACL_PRECISION_MODE': 'force_fp16'})",
        ("NP203", "error", 1),
        "must_keep_origin_dtype",
    ),
    ("torch.npu.set_option({'precision_mode': 'x'})", ("NP212", "error", 1), "ACL_PRECISION_MODE"),
    (
        "torch.npu.set_option({'matmul.allow_hf32': True})",
        ("NP212", "error", 1),
        "torch.npu.matmul.allow_hf32 = True",
    ),
    ("torch.npu.set_option({'ACL_AICORE_NUM': 33})", ("NP203", "error", 1), "1"),
]


@pytest.mark.parametrize(
    ("lines", "expected", "hint"), JUDGED, ids=[str(number) for number in range(len(JUDGED))]
)
def test_what_torch_npu_misreads_is_found_with_what_to_write(
    lines: str, expected: tuple[str, str, int], hint: str
) -> None:
    assert judge(lines) == [expected]
    (finding,) = (finding for finding in findings(HEAD + lines) if finding.severity != "info")
    assert hint in finding.hint
    assert finding.why or finding.code == "NP203"


def test_an_unknown_name_is_a_warning_where_no_release_is_named() -> None:
    lines = f"{HEAD}torch.npu.set_compile_mode(jit=False)"
    named = find_release_faults(lines, "torch_npu", RELEASE)
    other = findings(lines, cann="9.0.0")
    assert [finding.severity for finding in named] == ["error"]
    assert [finding.severity for finding in other] == ["warning"]


def test_a_setting_is_read_where_only_another_file_names_torch_or_hands_it_over(
    tmp_path: Path, run: Run
) -> None:
    write(
        tmp_path,
        {
            "compat.py": "from torch import npu\n",
            "a.py": 'from compat import npu\nnpu.set_option({"ACL_PRECISION_MODE": ""})',
        },
    )
    assert "NP203" in run("scan", "a.py").out
    helper = 'def opt(o):\n    o.set_option({"ACL_PRECISION_MODE": ""})  # torch_npu\n'
    write(
        tmp_path,
        {
            "b.py": helper,
            "c.py": "import b\nb.opt(1)\n",
            "d.py": "import torch_npu, b\nb.opt(torch_npu.npu)\n",
        },
    )
    assert "d.py:2" in run("scan", "c.py", "d.py").out


def test_import_writes_a_section_that_check_accepts_and_lists_the_rest(
    tmp_path: Path, run: Run
) -> None:
    helper = (
        f"{HEAD}def prepare(jit):\n    torch.npu.set_compile_mode(jit_compile=jit)\n"
        "    torch.npu.config.allow_internal_format = False\n"
    )
    lines = (
        "torch.npu.matmul.allow_hf32 = True\n"
        "torch.npu.set_option({'ACL_DEBUG_DIR': 'it\\'s \"here\"'})\n"
    )
    rest = "torch.npu.conv.allow_hf32 = FLAGS.x\ntorch.npu.config.speed = 1\n"
    write(
        tmp_path,
        {
            "helper.py": helper,
            "train.py": f"{HEAD}from helper import prepare\nprepare(False)\n{lines}{rest}",
        },
    )
    answer = run("import", "train.py")
    preset, _, left = answer.out.partition("# Not carried over:")
    assert npuprof.loads(preset)["torch_npu.matmul"] == {"allow_hf32": True}
    assert npuprof.loads(preset)["torch_npu.jit_compile"] is False
    assert npuprof.loads(preset)["torch_npu.allow_internal_format"] is False
    assert npuprof.loads(preset)["torch_npu.ACL_DEBUG_DIR"] == 'it\'s "here"'
    assert "train.py:7: torch_npu.conv.allow_hf32: depends on" in left
    assert "train.py:8: torch_npu.speed = 1: torch_npu has no such setting" in left
    assert "6 settings: 4 checked, 1 dynamic, 1 unknown (speed)" in answer.err
    assert "[torch_npu]\n" in preset
    assert "matmul.allow_hf32 = true\n" in preset


WITH_OS = "import os\nimport torch\nimport torch_npu\n"
#: What comes before a variable is set, and whether torch_npu has read it then.
STARTS = {
    "device": ("torch.npu.set_device(0)\n", "ASCEND_RT_VISIBLE_DEVICES", True),
    "tensor": ("x = torch.zeros(1).npu()\n", "TASK_QUEUE_ENABLE", True),
    "allocator": ("x = torch.zeros(1).npu()\n", "PYTORCH_NPU_ALLOC_CONF", True),
    "not read by the device": ("torch.npu.set_device(0)\n", "TASK_QUEUE_ENABLE", False),
    "a branch": ("if x:\n    torch.npu.set_device(0)\n", "ASCEND_RT_VISIBLE_DEVICES", False),
    "CUDA": ("torch.cuda.set_device(0)\n", "ASCEND_RT_VISIBLE_DEVICES", False),
    "another process": (
        "torch.npu.set_device(0)\nsubprocess.run(['a'])\n",
        "ASCEND_RT_VISIBLE_DEVICES",
        False,
    ),
    "nothing": ("", "TASK_QUEUE_ENABLE", False),
}


@pytest.mark.parametrize("case", STARTS)
def test_a_variable_that_torch_npu_has_read_before_comes_too_late(case: str) -> None:
    before, name, is_late = STARTS[case]
    value = "expandable_segments:True" if name.endswith("CONF") else "1"
    text = f'{WITH_OS}{before}os.environ["{name}"] = "{value}"\n'
    assert [finding.code for finding in findings(text)] == ["NP822"] * is_late
    body = "".join(f"    {line}\n" for line in text.split("\n")[3:-1])
    in_function = f"{WITH_OS}def f(x):\n{body}f(1)\n"
    assert [finding.code for finding in findings(in_function)] == ["NP822"] * is_late
