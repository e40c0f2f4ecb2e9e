"""``builtin:NAME``: a preset that npuprof ships, beside those of the store."""

from __future__ import annotations

from pathlib import Path

import pytest

import npuprof
from support.building import build_store
from support.repositories import Repo
from support.running import Run, expect

STORE = {
    "base/training": "options.hccl_timeout = 601\n",
    "mine": 'profile.extends = ["base/training"]\n',
}
SHIPPED = "builtin:bert-training"


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("show", SHIPPED), 0, 'precision_mode_v2 = "mixed_float16"'),
        (("show", f"mine+{SHIPPED}"), 0, "hccl_timeout = 601"),
        (("show", "mine", "--with", "builtin:mixins/profiling"), 0, "profiling_mode = true"),
        (("diff", "mine", SHIPPED), 0, '+ precision_mode_v2 "mixed_float16"'),
        (("explain", SHIPPED, "precision_mode_v2"), 0, "set by       mixins/mixed-precision-fp16"),
        (("env", SHIPPED), 0, "NPUPROF_PROFILE='builtin:bert-training'"),
        (("check", SHIPPED), 0, "1 preset checked"),
        (("copy", "builtin:mixins/profiling", "prof"), 0, "wrote "),
        (("show", "builtin:bert-trainin"), 2, "did you mean 'bert-training'"),
        (
            ("show", "builtin:nothing"),
            2,
            "npuprof list --store builtin: lists the presets of builtin:",
        ),
        (("show", "builtin:"), 2, "the name of a preset is missing"),
        (("show", f"{SHIPPED}@1.0.0"), 2, "write builtin:bert-training;"),
        (
            ("source", "add", "odd", "file:///nowhere.git", "--store", "builtin:"),
            2,
            "builtin: is read-only, and has no sources",
        ),
        (("set", SHIPPED, "hccl_timeout=1"), 2, "npuprof copy builtin:NAME NAME"),
        (("migrate", SHIPPED, "--cann", "9.0.0"), 2, "npuprof copy builtin:NAME NAME"),
        (("log", SHIPPED), 2, "npuprof copy builtin:bert-training bert-training"),
        (("restore", f"{SHIPPED}@HEAD"), 2, "npuprof copy builtin:bert-training bert-training"),
        (("new", "x", "--extends", SHIPPED), 2, "npuprof copy builtin:bert-training bert-training"),
    ],
)
def test_a_shipped_preset_can_be_read_and_not_changed(
    arguments: tuple[str, ...], code: int, expected: str, tmp_path: Path, run: Run, repo: Repo
) -> None:
    build_store(tmp_path / "profiles", STORE)
    expect(run(*arguments), code, expected)


def test_a_shipped_preset_is_the_same_from_wherever_it_is_asked_for(
    tmp_path: Path, run: Run
) -> None:
    alone = npuprof.open_store("builtin:").resolve("bert-training")
    build_store(tmp_path / "profiles", STORE)
    beside = npuprof.open_store("profiles").resolve(SHIPPED)
    assert beside.digest == alone.digest
    assert beside.options == alone.options
    assert run("show", SHIPPED).out == run("show", "bert-training", "--store", "builtin:").out
    assert run("env", "mine").code == 0


def test_a_preset_that_extends_a_shipped_one_is_told_how_to_take_it_over(
    tmp_path: Path, run: Run
) -> None:
    build_store(tmp_path / "profiles", {"x": 'profile.extends = ["builtin:base/training"]\n'})
    expect(run("check"), 2, "npuprof copy builtin:base/training base/training")
