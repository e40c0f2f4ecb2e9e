"""Which release of CANN the files beside scripts name, and what a family makes of it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuprof.scripts.draft import NamedRelease
from npuprof.scripts.release_ranges import find_named_release, guess_releases

SCRIPT = """import tensorflow as tf
config = tf.ConfigProto()
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
custom_op.parameter_map["enable_data_pre_proc"].b = True
custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("{mode}")
sess = tf.Session(config=config)
"""

TEXTS = [
    ("Image: ascend-share/5.0.4.alpha005_tensorflow-ascend910-cp37-training:1.15.0-21.0.2", ["5.0.4"]),
    ("| CANN版本 | >=5.0.3 |", ["5.0.3"]),
    ("配套的CANN版本为[5.0.4](https://example.org)", ["5.0.4"]),
    ("CANN版本\uff1a\n\n- ascend-toolkit 5.0.3.alpha001\n", ["5.0.3"]),
    ("./Ascend-cann-toolkit_5.1.RC1_linux-aarch64.run --install", ["5.1.RC1"]),
    ("FROM ascend-cann-toolkit:8.0.0-910b", ["8.0.0"]),
    ("FROM quay.example/ascend/cann:8.1.rc1-910b-ubuntu22.04", ["8.1.RC1"]),
    ("CANN-6.3.RC2.alpha003", ["6.3.RC2.alpha003"]),
    ("cann==7.0.0\ntensorflow==1.15.0", ["7.0.0"]),
    ("CANN 5.0.2 at first, CANN 5.0.3 today", ["5.0.2", "5.0.3"]),
    ("CANN 5.0", []),  # a line of releases
    ("CANN 5.0.77", []),  # none that anybody knows
    ("TensorFlow 1.15.0 with CANN", []),
    ("SCANN 5.0.3", []),
    ("npuprof check --cann 9.0.0", []),  # an argument, and nothing that the repository says of itself
    ("Ascend-CANN 5.0.3", ["5.0.3"]),
    ("tensorflow 5.0.3", []),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS, ids=[text[:40] for text, _ in TEXTS])
def test_a_release_is_read_where_a_text_names_it_as_one_of_cann(text: str, expected: list[str]) -> None:
    assert [release for _, release in find_named_release(text)] == expected


FIRST, LATER = NamedRelease("5.0.3", "a/README.md", 3), NamedRelease("5.1.RC1", "b/README.md", 9)
GUESSES = [
    ("", [FIRST], ">=5.0.3", "a/README.md:3 names CANN 5.0.3: cann is guessed by that."),
    (">=5.0.2", [FIRST], ">=5.0.3", "a/README.md:3 names CANN 5.0.3: cann is guessed by that."),
    (">=6.3.RC1", [FIRST], ">=6.3.RC1", "a/README.md:3 names CANN 5.0.3; the settings need >=6.3.RC1."),
    ("", [LATER, FIRST, LATER], ">=5.0.3", "a/README.md:3 names CANN 5.0.3, and others name 1 later one: cann is guessed by that."),
    (">=5.0.2", [FIRST, None], ">=5.0.2", ""),  # nobody says for which release the other script is
    (">=5.0.2", [None], ">=5.0.2", ""),
]


@pytest.mark.parametrize(("needed", "named", "cann", "told"), GUESSES)
def test_the_range_is_what_is_named_first_for_every_script_and_no_less_than_what_the_settings_need(
    needed: str, named: list[NamedRelease | None], cann: str, told: str
) -> None:
    assert guess_releases(needed, named) == (cann, ["", told] if told else [])


#: The files beside a script of ``models/a``, and the range of its preset.
BESIDE: list[tuple[dict[str, str], str]] = [
    ({"models/a/README.md": "CANN 5.0.4"}, ">=5.0.4"),
    ({"README.md": "CANN 5.0.4"}, ">=5.0.4"),
    ({"README.md": "CANN 5.0.4", "models/a/Dockerfile": "FROM cann:5.1.RC1"}, ">=5.1.RC1"),  # the nearest one
    ({"README.md": "CANN 5.0.4", "models/a/README.md": "CANN 5.0.2 or CANN 5.0.3"}, ""),  # two: nobody can tell
    ({"README.md": "CANN 5.0.4", "models/a/README.md": "a model"}, ">=5.0.4"),
    ({"models/b/README.md": "CANN 5.0.4"}, ""),  # another model
    ({"models/a/notes.txt": "CANN 5.0.4"}, ""),
    ({"models/a/README.md": "CANN 5.0.4\n" + "x" * 1_000_001}, ""),
]


@pytest.mark.parametrize(("beside", "cann"), BESIDE, ids=[" ".join(files) for files, _ in BESIDE])
@pytest.mark.parametrize("verb", ["import", "adopt"])
def test_the_presets_of_a_tree_are_for_the_release_that_is_named_beside_their_scripts(
    tmp_path: Path, beside: dict[str, str], cann: str, verb: str, run: Callable[..., Any]
) -> None:
    files = {"models/a/train.py": SCRIPT.format(mode="force_fp32"), "profiles/x.toml": '[profile]\ndescription = "X."\n', **beside}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    words = ["import", "--base", "auto", "-o", "profiles/zoo", "models"] if verb == "import" else ["adopt", "models", "--under", "zoo"]
    done = run(*words)
    assert done.code == 0, done.err
    texts = [path.read_text() for path in (tmp_path / "profiles/zoo").rglob("*.toml")]
    assert [tomllib.loads(text)["profile"].get("cann", "") for text in texts] == [cann]
    assert ("cann is guessed by that" in texts[0]) == bool(cann)


def test_nothing_is_opened_that_is_no_file(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models/train.py").write_text(SCRIPT.format(mode="force_fp32"))
    os.mkfifo(tmp_path / "models/README.md")
    (tmp_path / "models/README.rst").symlink_to("README.rst")
    (tmp_path / "models/Dockerfile").mkdir()
    done = run("import", "--base", "auto", "models")
    assert done.code == 0
    assert "CANN" not in done.out
