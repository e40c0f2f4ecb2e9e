"""Files of every kind that are broken, odd or endless: a finding with its place, never a crash."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from npuprof.scripts.reading.file_kinds import KINDS
from support.importing import imported, write
from support.notebooks import notebook
from support.running import Run

#: One file of each kind that sets something.
GOOD = {
    "python": ("x.py", "import os\nos.environ['HCCL_CONNECT_TIMEOUT'] = '600'\n"),
    "shell": ("x.sh", "export HCCL_CONNECT_TIMEOUT=600\n"),
    "notebook": ("x.ipynb", notebook("%env HCCL_CONNECT_TIMEOUT=600")),
    "docker": ("Dockerfile", "FROM x\nENV HCCL_CONNECT_TIMEOUT=600\n"),
    "yaml": ("x.yaml", "env:\n- {name: HCCL_CONNECT_TIMEOUT, value: '600'}\n"),
    "json": ("x.json", '{"schema": "npuprof.env/1",\n"env": {"HCCL_CONNECT_TIMEOUT": "600"}}\n'),
    "markdown": ("x.md", "```sh\nexport HCCL_CONNECT_TIMEOUT=600\n```\n"),
    "env": ("x.env", "HCCL_CONNECT_TIMEOUT=600\n"),
}


def test_there_is_one_file_of_every_kind() -> None:
    assert list(GOOD) == [name for name, kind in KINDS.items() if kind.read]


@pytest.mark.parametrize("kind", GOOD)
def test_a_file_of_every_kind_is_read(kind: str) -> None:
    name, text = GOOD[kind]
    (setting,) = imported(text, name).settings
    assert setting.key == "env.HCCL_CONNECT_TIMEOUT"
    assert setting.value == "600"


class Broken(NamedTuple):
    """How a file is broken, and the message and severity of the finding if it is named."""

    change: Callable[[bytes], bytes]
    message: str
    severity: str = "warning"


BROKEN = {
    "NUL bytes": Broken(
        change=lambda data: data + b"\n\0", message="the file is binary, UTF-16 or UTF-32"
    ),
    "a program": Broken(
        change=lambda data: b"\x7fELF\2\1\1" + bytes(9) + data,
        message="the file is binary, UTF-16 or UTF-32",
    ),
    "ten megabytes": Broken(
        change=lambda data: data + b"\n" * 10_000_000,
        message="the file is not read: 10.0 MB are too much for a script",
    ),
    "bytes that are no UTF-8": Broken(
        change=lambda data: data.replace(b"600", b"6\xff"),
        message="the file is not UTF-8 text",
        severity="info",
    ),
}


@pytest.mark.parametrize(
    ("how", "kind"),
    [*zip(list(BROKEN) * 2, [kind for kind in GOOD if kind != "python"], strict=False)],
)
def test_a_broken_file_is_a_finding_with_its_place(
    kind: str, how: str, run: Run, tmp_path: Path
) -> None:
    broken = BROKEN[how]
    name, text = GOOD[kind]
    data = broken.change(text.encode())
    (problem,) = imported(data, name).problems
    assert problem.message == broken.message
    assert problem.severity == broken.severity
    assert problem.where is not None
    assert problem.where.file == name
    write(tmp_path, {name: data})
    scanned, made = run("scan", tmp_path / name), run("import", tmp_path / name)
    assert (scanned.code == 2) == (broken.severity == "warning"), scanned
    assert (made.code == 2) == (broken.severity == "warning"), made
    assert "Traceback" not in scanned.err + made.err


class Cut(NamedTuple):
    """Data that is cut off or too deep, and the finding; line and column 0 if it has none."""

    name: str
    text: str
    message: str
    line: int = 0
    column: int = 0
    code: int = 2


CUT = {
    "JSON that ends too early": Cut(
        name="x.json",
        text='{"env":\n {"HCCL_ALGO": "ring"',
        message="the file is not JSON: expecting ',' delimiter",
        line=2,
        column=22,
    ),
    "JSON with a comment": Cut(
        name="x.json",
        text='// HCCL_ALGO\n{"env": {}}',
        message="the file is not JSON: comments are not allowed",
        line=1,
        column=1,
    ),
    "JSON that is too deep": Cut(
        name="x.json",
        text='{"HCCL_ALGO":' * 100_000,
        message="the file is nested too deeply to be read",
    ),
    "YAML that is none": Cut(
        name="x.yaml",
        text="a: [HCCL_ALGO\nb: c\n",
        message="the file is not YAML: ",
        line=2,
        column=2,
    ),
    "YAML that names what is not there": Cut(
        name="x.yaml",
        text="HCCL_ALGO: *a\n",
        message="the file is not YAML: found undefined alias",
        line=1,
        column=12,
    ),
    "YAML that is too deep": Cut(
        name="x.yaml",
        text="HCCL_ALGO: " + "[" * 100_000,
        message="the file is nested too deeply to be read",
    ),
    "a template": Cut(
        name="x.yaml",
        text="{{ if .x }}\nHCCL_ALGO: {{ .y }}\n",
        message="the file is a template, and no YAML before it is filled in",
        line=2,
        column=1,
        code=0,
    ),
}


@pytest.mark.parametrize("case", CUT)
def test_data_that_cannot_be_read_is_a_warning_where_it_is_named_and_a_note_below_a_folder(
    case: str, run: Run, tmp_path: Path
) -> None:
    cut = CUT[case]
    problem = imported(cut.text, cut.name).problems[0]
    assert problem.message.startswith(cut.message)
    assert problem.where is not None
    assert problem.where.line == cut.line or not cut.line
    assert problem.where.column == cut.column or not cut.column
    folder = tmp_path / "d"
    _, good_script = GOOD["shell"]
    write(folder, {cut.name: cut.text, "x.sh": good_script})
    assert run("scan", folder / cut.name).code == cut.code
    assert run("import", folder / cut.name).code == 2
    scanned = run("scan", folder)
    assert scanned.code == 0
    assert "NP801" not in scanned.out
    assert run("import", folder, "--strict").code == 0
    assert cut.message.split(":")[0] in run("scan", folder, "--severity", "info").out


def test_links_in_a_circle_end_and_files_that_are_gone_are_told(run: Run, tmp_path: Path) -> None:
    write(tmp_path, {"a/x.yaml": GOOD["yaml"][1]})
    (tmp_path / "a" / "again").symlink_to(tmp_path / "a", target_is_directory=True)
    (tmp_path / "a" / "y.yaml").symlink_to(tmp_path / "a" / "z.yaml")
    (tmp_path / "a" / "z.yaml").symlink_to(tmp_path / "a" / "y.yaml")
    (tmp_path / "a" / "Dockerfile").symlink_to(tmp_path / "none")
    os.mkfifo(tmp_path / "a" / "p.json")
    done = run("scan", tmp_path / "a")
    assert done.code == 0
    assert "1 file scanned" in done.err
    assert "p.json is omitted: it is a named pipe, not a file" in done.out
    assert run("scan", tmp_path / "a" / "y.yaml").code == 2
    assert run("import", tmp_path / "a" / "Dockerfile").code == 2


def test_yaml_that_names_no_setting_is_passed_over(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    write(tmp_path, {"z.yaml": "a: 1\n", "x.sh": GOOD["shell"][1]})
    done = run("scan", tmp_path, "--severity", "info")
    assert "PyYAML" not in done.out + done.err


def test_a_config_object_that_a_helper_of_another_file_nests_is_read(
    run: Run, tmp_path: Path
) -> None:
    """As MobileNetV1_for_TensorFlow of Ascend/ModelZoo-TensorFlow a2c3332a.

    In ``TensorFlow/built-in/cv/image_classification``, file ``train.py``.
    """
    (tmp_path / "helper.py").write_text(
        "from npu_bridge.npu_init import *\n\n\ndef make_config():\n"
        '    profiling = ProfilingConfig(enable_profiling=True, profiling_options="trace")\n'
        '    return NPURunConfig(model_dir="x", profiling_config=profiling)\n'
    )
    (tmp_path / "train.py").write_text(
        "from npu_bridge.npu_init import *\nimport helper\n\n"
        "config = helper.make_config()\nestimator = NPUEstimator(model_fn=None, config=config)\n"
    )
    done = run("scan", str(tmp_path))
    assert done.code == 1, done.err
    assert "NP203" in done.out
