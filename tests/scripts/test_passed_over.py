"""Code that no importer follows is read if it is simple, and named if not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.importing import imported, write
from support.running import Run

HEAD = "import functools\nimport tensorflow as tf\nfrom npu_bridge.npu_init import *\n"
MODE = 'precision_mode="force_fp32"'
ENTRY = (
    "config = tf.ConfigProto()\nop = config.graph_options.rewrite_options.custom_optimizers.add()\n"
)
SET = 'op.parameter_map["precision_mode"].s = b"force_fp32"\n'
ATC = "atc --model=a.pb --framework=3 --output=a --soc_version=Ascend310P3"


def by_scope(text: str, name: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for setting in imported(text, name).settings:
        found.setdefault(setting.scope.rpartition("@")[2], {})[setting.key] = (
            setting.reason or setting.value
        )
    return found


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            (
                f"make = functools.partial(NPURunConfig, {MODE}, iterations_per_loop=10)\n"
                "c = make(iterations_per_loop=20)\n"
            ),
            {"4": {"": "NPURunConfig is handed to functools.partial(), which is not followed"}},
        ),
        (
            f"build(NPURunConfig, {MODE})\n",
            {"4": {"": "NPURunConfig is handed to build(), which is not followed"}},
        ),
        (
            (
                "class Mine(Other):\n    def __init__(self):\n"
                "        super().__init__(precision_mode='x')\n"
            ),
            {},
        ),
        ("class NPURunConfig:\n    pass\n", {}),
    ],
)
def test_a_class_of_the_adapter_is_known_by_the_names_that_stand_for_it(
    text: str, read: dict[str, dict[str, Any]]
) -> None:
    assert by_scope(HEAD + text, "x.py") == read


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        pytest.param(
            "x.py",
            (
                f"{HEAD}class Mine(NPURunConfig):\n    def __init__(self):\n"
                "        NPURunConfig.__init__(self)\n"
            ),
            "NPURunConfig in line 4 is not followed: class Mine(NPURunConfig):",
            id="a subclass",
        ),
        pytest.param(
            "x.py",
            f"{HEAD}fill(op.parameter_map[k], v)\n",
            "parameter_map in line 4 is not followed",
            id="passed to another function",
        ),
        pytest.param(
            "x.sh", f"OUT=$({ATC})\n", "atc is run in line 1", id="a command substitution"
        ),
        pytest.param("x.sh", f"x=1\nOUT=`{ATC}`\n", "atc is run in line 2", id="backticks"),
        pytest.param("x.sh", f"# {ATC}\necho atc\n", "no setting in it", id="a comment"),
        pytest.param("x.py", "print('NPURunConfig')\n", "no setting in it", id="a name in a text"),
        pytest.param(
            "x.py", f"{HEAD}c = NPURunConfig()\n", "no setting in it", id="a call without arguments"
        ),
        pytest.param(
            "x.py",
            f"{HEAD}assert isinstance(c, NPURunConfig)\n",
            "no setting in it",
            id="a class that is only checked",
        ),
    ],
)
def test_a_script_whose_settings_are_not_followed_is_named_with_the_reason(
    name: str, text: str, reason: str, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {name: text})
    document = json.loads(run("import", name, "--format", "json").out)
    assert document["settings"] == []
    [unimported] = document["nothing"]
    assert unimported["file"] == name
    assert reason in unimported["reason"]
    done = run("import", name)
    assert done.code == 2
    assert reason == "no setting in it" or reason[1:] in done.err


def test_a_parameter_map_that_other_code_is_given_is_named() -> None:
    (condition,) = (
        setting.reason
        for setting in imported(f"{HEAD}{ENTRY}{SET}fill(op.parameter_map)\n", "a.py").settings
        if setting.reason
    )
    assert (
        condition == "op.parameter_map is passed to other code, whose changes to it are not traced"
    )


def test_a_command_in_a_variable_is_read() -> None:
    settings = imported(f'CMD="{ATC}"\n$CMD\n', "x.sh").settings
    assert {setting.surface for setting in settings} == {"atc"}
    assert [setting.line for setting in settings] == [1] * 4
