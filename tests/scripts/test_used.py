"""Settings that a script does not use, or uses elsewhere, are reported and in no preset."""

from __future__ import annotations

from typing import Any

import pytest

from npuprof.scripts.preset import build_drafts
from support.importing import HEAD, imported

DUMP = 'DumpConfig(enable_dump=True, dump_path="/d")'
NPU = "from npu_bridge.npu_init import *\n"


def draft_settings(text: str, name: str = "x.py") -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of the one preset that a script makes, and why others are left out."""
    drafts = build_drafts(imported(text, name))
    settings = {key: value for draft in drafts for key, value in draft.settings.items()}
    return settings, {note.setting.key: note.why for draft in drafts for note in draft.notes}


@pytest.mark.parametrize(
    ("text", "dump", "why"),
    [
        pytest.param(
            f"dump = {DUMP}\nNPURunConfig(precision_mode='force_fp16')",
            None,
            "the DumpConfig is given to no NPURunConfig here",
            id="never given",
        ),
        pytest.param(
            f"def make():\n    return {DUMP}\nNPURunConfig(dump_config=make())",
            True,
            "",
            id="returned by a function",
        ),
        pytest.param(
            (
                f"class Net:\n    def __init__(self):\n        self.dump = {DUMP}\n"
                "    def run(self):\n        return NPURunConfig(dump_config=self.dump)"
            ),
            True,
            "",
            id="attribute of an object",
        ),
        pytest.param(
            f"given = dict(dump_config={DUMP})\nNPURunConfig(**given)",
            True,
            "",
            id="in a dict() call",
        ),
        pytest.param(
            f"given = {{'dump_config': {DUMP}}}\nNPURunConfig(**given)",
            True,
            "",
            id="in a dict literal",
        ),
        pytest.param(
            f"ON = True\nif FLAGS.dump or ON:\n    NPURunConfig(dump_config={DUMP})",
            True,
            "",
            id="condition always true",
        ),
        pytest.param(
            f"OFF = False\nif FLAGS.dump and OFF:\n    NPURunConfig(dump_config={DUMP})",
            None,
            "never runs: FLAGS.dump and OFF",
            id="condition never true",
        ),
        pytest.param(
            f"dump = {DUMP}\ndef run():\n    NPURunConfig(dump_config=dump)\ndump = None\nrun()",
            None,
            "only if the argument is",
            id="assigned again before the call",
        ),
        pytest.param(
            (
                f"dump = None\nfor one in (1, 2):\n    dump = {DUMP} if one else dump\n"
                "NPURunConfig(dump_config=dump)"
            ),
            None,
            "only if",
            id="assigned in a loop",
        ),
        pytest.param(
            (
                f"try:\n    dump = {DUMP}\nexcept ImportError:\n    dump = None\n"
                "NPURunConfig(dump_config=dump)"
            ),
            None,
            "only if the argument is",
            id="assigned in a try",
        ),
    ],
)
def test_a_nested_configuration_counts_where_it_is_always_given(
    text: str, dump: bool | None, why: str
) -> None:
    settings, left = draft_settings(f"{NPU}{text}\n")
    assert settings.get("enable_dump") is dump
    assert left.get("enable_dump", "").startswith(why) if why else "enable_dump" not in left


def test_what_never_runs_is_told_wherever_it_stands() -> None:
    inner = "    op.parameter_map['precision_mode'].s = b'force_fp16'\n"
    at_the_top = f"{HEAD.replace('custom_op', 'op')}OFF = False\nif OFF:\n{inner}"
    assert draft_settings(at_the_top) == ({}, {"precision_mode": "never runs: OFF"})
    turns = f"{HEAD.replace('custom_op', 'op')}for mode in (1, 2):\n    if mode == 2:\n    {inner}"
    assert draft_settings(turns) == ({"precision_mode": "force_fp16"}, {})  # the other turn has it


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        (
            (
                "os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "
                '"../dump"))'
            ),
            "../dump",
        ),
        ('os.path.dirname(os.path.dirname(__file__)) + "/dump"', "../dump"),
        ('"%s/dump" % HERE', "./dump"),
        ('f"{HERE}/dump"', "./dump"),
        ('"{}/dump".format(HERE)', "./dump"),
    ],
)
def test_a_path_from_the_folder_of_the_script_stays_in_the_script(
    expression: str, path: str
) -> None:
    text = (
        "import os\nHERE = os.path.dirname(os.path.abspath(__file__))\n"
        f'{HEAD}custom_op.parameter_map["dump_path"].s = tf.compat.as_bytes({expression})\n'
    )
    settings, left = draft_settings(text)
    assert settings == {}
    assert left == {"dump_path": "begins in the folder of the script"}
    (setting,) = [item for item in imported(text).settings if item.key == "dump_path"]
    assert setting.value == path
    assert setting.assigned.relative


@pytest.mark.parametrize(
    ("lines", "frameworks"),
    [
        ('F=(\n  --framework=3 # tf\n  --log=error\n)\natc "${F[@]}"', [3]),
        ('F=(--log=error)\nF+=(--framework=3)\natc "${F[@]}"', [3]),
        ('if [ $1 ]; then\n  F=(--framework=3)\n  atc "${F[@]}"\nfi', [3]),
        ('F=(--framework=3)\nif [ $1 ]; then\n  F+=(--framework=5)\nfi\natc "${F[@]}"', [3]),
        ("F=(--framework=3\natc --framework=5", []),
    ],
)
def test_flags_come_from_an_array_where_it_is_certain(lines: str, frameworks: list[int]) -> None:
    settings, _ = draft_settings(f"#!/bin/bash\n{lines}\n", "x.sh")
    assert [value for key, value in settings.items() if key == "atc.framework"] == frameworks


T, L, P = "HCCL_CONNECT_TIMEOUT", "ASCEND_GLOBAL_LOG_LEVEL", "ASCEND_PROCESS_LOG_PATH"
SHELL = [
    ("f() {\n  export {T}=700\n}\ntrap 'f; exit' USR1\nexport {L}=3\n", {L: "3", T: "700"}, ""),
    (
        "f() {\n  export {T}=700\n}\nexport {L}=3\n",
        {L: "3"},
        "f() is called nowhere, so this never runs",
    ),
    (
        "function f {\n  { export {T}=700; }\n}\nexport {L}=3\n",
        {L: "3"},
        "f() is called nowhere, so this never runs",
    ),
    (
        "export {L}=3\nexit 0\nexport {T}=700\n",
        {L: "3"},
        "the script ends in line 3, so this never runs",
    ),
    (
        (
            "[ -f x ] || exit\n(exit 1)\nfor x in 1; do exit; done\n"
            "case $1 in a) exit;; esac\nexport {T}=700\n"
        ),
        {T: "700"},
        "",
    ),
    ("export {T}=700\nexport -n {T}\n", {}, "the script takes it back"),
    ("set -a\n{T}=700\nset +a\n{L}=3\n", {T: "700"}, ""),
    ("set -o allexport\n{T}=700\nset +o allexport\n{L}=3\n", {T: "700"}, ""),
    ("export {P}=~/log\n", {}, "depends on ~"),
    ("export {P}='~/log'\n", {P: "~/log"}, ""),
    ("export {P}=/a\nexport {P}=$" + "{P}/b\n", {P: "/a/b"}, ""),
    ("export {P}=/a\nexport {P}=$HOME/b\n", {}, "depends on $HOME"),
]
_NAMES = {"{T}": T, "{L}": L, "{P}": P}


@pytest.mark.parametrize(("lines", "settings", "why"), SHELL, ids=[lines for lines, _, _ in SHELL])
def test_what_a_shell_script_sets_and_does_not_run_is_not_carried_over(
    lines: str, settings: dict[str, str], why: str
) -> None:
    for mark, name in _NAMES.items():
        lines = lines.replace(mark, name)
    found, notes = draft_settings(f"#!/bin/bash\n{lines}", "x.sh")
    assert found == {f"env.{name}": value for name, value in settings.items()}
    assert not why or why in str(notes)
