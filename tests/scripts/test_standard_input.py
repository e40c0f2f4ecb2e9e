"""``scan -``: a text from standard input under the name of a file, or by its content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npuprof.system import files
from support.importing import write
from support.notebooks import notebook
from support.running import Run, expect

FAULT = b"export HCCL_CONNECT_TIMEOUT=abc\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("run.sh", FAULT, "run.sh:1:8"),
        ("jobs/run.sh", FAULT, "jobs/run.sh:1:8"),
        ("./run.sh", FAULT, "./run.sh:1:8"),
        ("launch", b"#!/bin/sh\n" + FAULT, "launch:2:8"),
        (
            "a.py",
            b"import os\nos.environ['HCCL_CONNECT_TIMEOUT'] = 'abc'\n",
            "a.py:2:1",
        ),
        ("Dockerfile.gpu", b"FROM a\nENV HCCL_CONNECT_TIMEOUT=abc\n", "Dockerfile.gpu:2:5"),
        (".env", b"HCCL_CONNECT_TIMEOUT=abc\n", ".env:1:1"),
        ("r.json", b'{"env": {"HCCL_CONNECT_TIMEOUT": "abc"}}', "r.json:1:10"),
        ("g.md", b"```sh\n" + FAULT + b"```\n", "g.md:2:8"),
        (
            "n.ipynb",
            notebook(
                "import os\nos.environ['HCCL_CONNECT_TIMEOUT'] = 'abc'\n", indent=None
            ).encode(),
            "n.ipynb:1:77",
        ),
    ],
)
def test_the_name_decides_how_it_is_read_and_is_the_place_of_findings(
    name: str, text: bytes, place: str, folder: Path, run: Run
) -> None:
    done = run("scan", "-", "--stdin-filename", name, "--format", "concise", stdin=text)
    assert done.code == 1, done.err
    assert [line.partition(": ")[0] for line in done.out.splitlines()] == [place]
    assert not (folder / name).exists()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"#!/usr/bin/env bash\n" + FAULT, 2),
        (FAULT, 1),
        (b"#!/usr/bin/env python3\nimport os\nos.environ['HCCL_CONNECT_TIMEOUT'] = 'abc'\n", 3),
        (b"import os\nos.environ['HCCL_CONNECT_TIMEOUT'] = 'abc'\n", 2),
        (b"FROM a\nENV HCCL_CONNECT_TIMEOUT=abc\n", 2),
        (b"HCCL_CONNECT_TIMEOUT=abc\n", 1),
        (b'{"env": {"HCCL_CONNECT_TIMEOUT": "abc"}}', 1),
        (notebook("import os\nos.environ['HCCL_CONNECT_TIMEOUT'] = 'abc'\n").encode(), 8),
    ],
    ids=[
        "shebang",
        "exports",
        "shebang of Python",
        "imports",
        "Dockerfile",
        "env file",
        "JSON",
        "notebook",
    ],
)
def test_without_a_name_the_content_decides(text: bytes, line: int, run: Run) -> None:
    done = run("scan", "-", "--format", "concise", stdin=text)
    assert done.code == 1, done.err
    assert done.out.startswith(f"<stdin>:{line}:")
    assert done.out.count("\n") == 1


@pytest.mark.parametrize("text", [b"", b"hello\n", b"a: 1\n", b"#!/usr/bin/perl\n"])
def test_a_text_of_an_unknown_kind_is_an_error_that_names_the_flag(text: bytes, run: Run) -> None:
    done = run("scan", "-", stdin=text)
    assert done.code == 2
    assert "<stdin>: warning NP801: the kind of the file is not known" in done.out
    assert "try: name its file: npuprof scan - --stdin-filename run.sh" in done.out


def test_the_text_is_read_and_shown_instead_of_the_file_of_that_name(run: Run) -> None:
    write(Path(), {"run.sh": "echo one\necho two\nexport HCCL_BUFFSIZE=200\n"})
    done = run("scan", "-", "--stdin-filename", "run.sh", stdin=b"\n" + FAULT)
    expect(done, 1, "run.sh:2:8: error NP202", "2 | export HCCL_CONNECT_TIMEOUT=abc")
    assert run("scan", "run.sh").code == 0, "the next command reads the file again"
    assert files.REPLACED == {}
    done = run("scan", "-", ".", "--stdin-filename", "run.sh", "--format", "json", stdin=FAULT)
    found = [finding["path"] for finding in json.loads(done.out)["findings"]]
    assert found == ["run.sh"], "a file of the folder is read once"


def test_what_it_sources_and_imports_is_looked_up_from_its_name(run: Run) -> None:
    write(
        Path(),
        {
            "jobs/env.sh": "export HCCL_CONNECT_TIMEOUT=abc\n",
            "jobs/helper.py": (
                "import os\ndef prepare():\n    os.environ['HCCL_CONNECT_TIMEOUT'] = 'abc'\n"
            ),
        },
    )
    for name, text, place in (
        ("jobs/run.sh", b"source ./env.sh\npython train.py\n", "jobs/env.sh:1:8"),
        ("jobs/a.py", b"from helper import prepare\nprepare()\n", "jobs/helper.py:3:5"),
    ):
        done = run("scan", "-", "--stdin-filename", name, "--format", "concise", stdin=text)
        assert done.code == 1, done.err
        assert done.out.startswith(f"{place}: NP202 "), done.out
        elsewhere = Path(name).name
        assert run("scan", "-", "--stdin-filename", elsewhere, stdin=text).code == 0


def test_a_comment_in_the_text_accepts_a_finding(run: Run) -> None:
    text = b"export HCCL_BUFFSIZ=200  # npuprof: ignore[NP206] ours\n"
    done = run("scan", "-", "--stdin-filename", "run.sh", "--strict", stdin=text)
    expect(done, 0, "1 accepted")


@pytest.mark.parametrize(
    "arguments",
    [["b.sh", "--stdin-filename", "a.sh"], ["-", "--stdin-filename", "jobs"]],
    ids=["another path", "a folder"],
)  # fmt: skip
def test_a_name_needs_standard_input_and_is_no_folder(
    arguments: list[str], folder: Path, run: Run
) -> None:
    write(folder, {"jobs/a.sh": FAULT.decode(), "b.sh": ""})
    expect(run("scan", *arguments, stdin=FAULT), 2, "NP902", "scan - --stdin-filename run.sh")


def test_a_name_alone_means_standard_input(run: Run) -> None:
    write(Path(), {"b.sh": FAULT.decode()})
    expect(run("scan", "--stdin-filename", "a.sh", stdin=FAULT), 1, "a.sh:1:8", "1 file scanned")


def test_a_preset_is_no_script(run: Run) -> None:
    done = run("scan", "-", "--stdin-filename", "a.toml", stdin=b"[options]\n")
    expect(done, 0, "a.toml is not a script and was skipped")


def test_standard_input_has_the_limit_of_files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST_FILE", 20)
    expect(run("scan", "-", stdin=FAULT), 2, "NP003", "cannot read standard input: it is longer")
    assert files.REPLACED == {}
