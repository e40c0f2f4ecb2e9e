"""Notebooks: cells as one script, IPython's syntax, and locations in the file and in the cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from npuprof.scripts.reading.notebook import mentions_notebook_setting
from support.importing import HEAD, TAIL, imported, settings, write
from support.notebooks import CELLS, SET, notebook
from support.running import Run

FORMS: dict[str, dict[str, Any]] = {
    "as Jupyter writes it": {},
    "in one line": {"indent": None},
    "cells as one text": {"joined": True},
}


@pytest.mark.parametrize("case", CELLS)
def test_the_cells_of_a_notebook_are_one_script(case: str) -> None:
    cells, expected = CELLS[case]
    assert settings(notebook(*cells), "x.ipynb") == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_place_is_one_of_the_file_and_says_which_cell_it_is(form: str) -> None:
    text = notebook(
        ("markdown", "# é"), HEAD, f'"é\\"\t"; {SET}', "x = 1\n%env HCCL_ALGO=1\n%%x", **FORMS[form]
    )
    text += "\n"
    (setting,) = imported(text, "x.ipynb").settings
    assert setting.key == "precision_mode"
    assert setting.location.part == "cell 3, line 1"
    line = text.split("\n")[setting.line - 1]
    assert line[setting.column - 1 :].startswith('custom_op.parameter_map[\\"precision_mode')
    problem = imported(text, "x.ipynb").problems[0]
    assert problem.message.startswith("cell 4 is not Python")
    assert problem.why.startswith("It is in cell 4, line 3. ")
    assert problem.where is not None
    assert "%%x" in text.split("\n")[problem.where.line - 1]


#: A notebook that cannot be read, the start of its message, and its severity.
FAULTS: dict[str, tuple[str | bytes, str, str]] = {
    "another language": (
        notebook("x <- 1", kernelspec={"language": "R"}),
        "the notebook is in R, which is not read",
        "info",
    ),
    "no notebook": ('{"a": 1}', "the file is JSON, and no notebook", "warning"),
    "cut off": (notebook("x")[:60], "the file is not JSON: ", "warning"),
    "too deep": ("[" * 100_000, "the file is nested too deeply to be read", "warning"),
    "NUL bytes": (b'{"cells": []}\n\0', "the file is binary, UTF-16 or UTF-32", "warning"),
    "too long": (
        notebook("x" * 5_000_000),
        "the file is not read: 5.0 MB are too much for a script",
        "warning",
    ),
    "cells that are none": (
        '{"cells": [1, {"cell_type": "code"}, {"cell_type": "code", "source": [1, {}]}, null]}',
        "",
        "",
    ),
    "a cell with a NUL": (notebook("\0"), "cell 1 is binary, UTF-16 or UTF-32", "warning"),
    "half a character": (notebook("x = 'half'").replace("half", "\\ud800"), "", ""),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_notebook_that_cannot_be_read_is_a_finding(case: str, run: Run, tmp_path: Path) -> None:
    text, message, severity = FAULTS[case]
    problems = imported(text, "x.ipynb").problems
    assert [(problem.message[: len(message)], problem.severity) for problem in problems] == (
        [(message, severity)] if message else []
    )
    write(tmp_path, {"x.ipynb": text})
    for verb in ("scan", "import"):
        done = run(verb, tmp_path / "x.ipynb")
        assert done.code == (2 if severity == "warning" or verb == "import" else 0)
        assert "Traceback" not in done.err
        if severity == "warning":
            assert message in done.out + done.err


def test_scan_judges_the_cells_and_names_them(run: Run, tmp_path: Path) -> None:
    wrong = (
        'custom_op.parameter_map["hcl_timeout"].i = 3\n'
        'custom_op.parameter_map["precision_mode"].i = 3  # npuprof: ignore[NP802] tried\n'
    )
    write(
        tmp_path,
        {
            "x.ipynb": notebook(HEAD, wrong, TAIL),
            "y.ipynb": notebook(HEAD, wrong.partition("\n")[0], TAIL),
        },
    )
    done = run("scan", tmp_path, "--cann", "9.0.0")
    assert done.code == 1
    lines = (tmp_path / "x.ipynb").read_text().split("\n")
    number = next(number for number, line in enumerate(lines, 1) if "hcl_timeout" in line)
    assert f"x.ipynb:{number}:6: error NP201" in done.out
    assert f"y.ipynb:{number}:6: error NP201" in done.out
    assert done.out.count("cell 2, line 1") == 2
    assert "NP802" not in done.out
    assert "1 accepted" in done.err


def test_a_picture_of_a_notebook_is_no_text() -> None:
    assert not mentions_notebook_setting(b'{"data": {"image/png": "/atc+vllm/HCCL_ALGO"}}')
    assert mentions_notebook_setting(b'{"data": {"image/png": ""}, "source": "HCCL_ALGO"}')
