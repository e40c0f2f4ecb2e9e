"""Files of every kind that are broken, odd or endless: a finding with its place, an exit code as
everywhere, and never a crash.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

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
    for kind, (name, text) in GOOD.items():
        assert [(one.key, one.value) for one in imported(text, name).settings] == [
            ("env.HCCL_CONNECT_TIMEOUT", "600")
        ], kind


#: What is done to a file, what is said, and how bad that is where it is named.
BROKEN: dict[str, tuple[Callable[[bytes], bytes], str, str]] = {
    "NUL bytes": (lambda data: data + b"\n\0", "the file is binary, UTF-16 or UTF-32", "warning"),
    "a program": (
        lambda data: b"\x7fELF\2\1\1" + bytes(9) + data,
        "the file is binary, UTF-16 or UTF-32",
        "warning",
    ),
    "ten megabytes": (
        lambda data: data + b"\n" * 10_000_000,
        "the file is not read: 10.0 MB are too much for a script",
        "warning",
    ),
    "bytes that are no UTF-8": (
        lambda data: data.replace(b"600", b"6\xff"),
        "the file is not UTF-8 text",
        "info",
    ),
}


@pytest.mark.parametrize(
    ("how", "kind"),
    [*zip(list(BROKEN) * 2, [kind for kind in GOOD if kind != "python"], strict=False)],
)
def test_a_broken_file_is_a_finding_with_its_place(
    kind: str, how: str, run: Run, tmp_path: Path
) -> None:
    change, said, severity = BROKEN[how]
    name, text = GOOD[kind]
    data = change(text.encode())
    told = imported(data, name).problems
    assert [(one.message, one.severity) for one in told] == [(said, severity)]
    assert told[0].where is not None
    assert told[0].where.file == name
    write(tmp_path, {name: data})
    for verb in ("scan", "import"):
        done = run(verb, tmp_path / name)
        assert (done.code == 2) == (severity == "warning"), done
        assert "Traceback" not in done.err


#: Data that is cut off or too deep, with the place that is told.
CUT = {
    "JSON that ends too early": (
        "x.json",
        '{"env":\n {"HCCL_ALGO": "ring"',
        "the file is not JSON: expecting ',' delimiter",
        2,
        22,
    ),
    "JSON with a comment": (
        "x.json",
        '// HCCL_ALGO\n{"env": {}}',
        "the file is not JSON: expecting value",
        1,
        1,
    ),
    "JSON that is too deep": (
        "x.json",
        '{"HCCL_ALGO":' * 100_000,
        "the file is nested too deeply to be read",
        0,
        0,
    ),
    "YAML that is none": ("x.yaml", "a: [HCCL_ALGO\nb: c\n", "the file is not YAML: ", 2, 2),
    "YAML that names what is not there": (
        "x.yaml",
        "HCCL_ALGO: *a\n",
        "the file is not YAML: found undefined alias",
        1,
        12,
    ),
    "YAML that is too deep": (
        "x.yaml",
        "HCCL_ALGO: " + "[" * 100_000,
        "the file is nested too deeply to be read",
        0,
        0,
    ),
    "a template": (
        "x.yaml",
        "{{ if .x }}\nHCCL_ALGO: {{ .y }}\n",
        "the file is a template, and no YAML before it is filled in",
        2,
        1,
    ),
}


@pytest.mark.parametrize("case", CUT)
def test_data_that_cannot_be_read_is_a_warning_where_it_is_named_and_a_note_below_a_folder(
    case: str, run: Run, tmp_path: Path
) -> None:
    name, text, said, line, column = CUT[case]
    told = imported(text, name).problems[0]
    assert told.message.startswith(said)
    assert told.where is not None
    assert told.where.line == line or not line
    assert told.where.column == column or not column
    write(tmp_path, {f"d/{name}": text, "d/x.sh": GOOD["shell"][1]})
    assert run("scan", tmp_path / "d" / name).code == (0 if "template" in case else 2)
    assert run("import", tmp_path / "d" / name).code == 2
    done = run("scan", tmp_path / "d")
    assert (done.code, "NP801" in done.out) == (0, False)
    assert run("import", tmp_path / "d", "--strict").code == 0
    assert said.split(":")[0] in run("scan", tmp_path / "d", "--severity", "info").out


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
    assert "YAML" not in done.out + done.err


def test_a_config_object_that_a_helper_of_another_file_nests_is_read(
    run: Run, tmp_path: Path
) -> None:
    """As ``TensorFlow/built-in/cv/image_classification/MobileNetV1_for_TensorFlow/train.py`` of
    Ascend/ModelZoo-TensorFlow a2c3332a.
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
    assert (done.code, "NP203" in done.out) == (1, True), done.err
