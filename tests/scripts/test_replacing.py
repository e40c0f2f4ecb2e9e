"""``inject --replace``: a block in place of lines, if the script provably sets the same."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from npuprof import __main__
from npuprof.scripts.blocks import find_blocks
from npuprof.scripts.preset import build_drafts, format_draft
from npuprof.scripts.reading import import_script
from support.importing import write
from support.replaced import ENTRY, EXPORTS, HEAD, MIXED, OFF, ON, REPLACED, RUN, indent
from support.staging import record_all


def prepare(folder: Path, text: str, name: str = "train.py", at: int = 0) -> str:
    """Write a script and a preset of what it sets; return the preset's name."""
    drafts = [draft for draft in build_drafts(import_script(name, text.encode())) if draft.settings]
    accepted = ", ".join(
        f'{{ code = "{code}", reason = "as in the script" }}' for code in ("NP203", "NP346")
    )
    preset = format_draft(drafts[at]).replace("[profile]\n", f"[profile]\nignore = [{accepted}]\n")
    write(folder, {"profiles/p.toml": preset, name: text})
    return "p"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    return __main__.main(list(arguments))


@pytest.mark.parametrize("shape", REPLACED)
def test_lines_give_way_to_a_block_that_sets_the_same(
    folder: Path, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, stays = REPLACED[shape]
    prepare(folder, text)
    assert run("inject", "train.py", "p", "--replace") == 0, capsys.readouterr().err
    after = (folder / "train.py").read_text()
    found = find_blocks("train.py", after.encode())
    assert len(found) == (2 if shape.startswith("two") else 1)
    assert stays in after
    lines = after.split("\n")
    for block in reversed(found):
        del lines[block.first : block.last + 1]
    assert not [
        setting
        for setting in import_script("train.py", "\n".join(lines).encode()).settings
        if is_plain(setting, text)
    ]
    assert run("inject", "train.py", "--all", "--check") == 0
    assert run("inject", "train.py", "p", "--replace") == 0
    assert (folder / "train.py").read_text() == after


def is_plain(setting: Any, text: str) -> bool:
    """Return whether a setting is one that a preset of the script would hold."""
    drafts = build_drafts(import_script("train.py", text.encode()))
    carried = any(setting.key in draft.settings for draft in drafts)
    return carried and not setting.reason and not setting.condition and not setting.commented


@pytest.mark.parametrize("shape", REPLACED)
def test_a_replaced_script_gives_the_same_to_sessions_and_estimators(
    folder: Path, shape: str, tensorflow: Any
) -> None:
    text, _ = REPLACED[shape]
    prepare(folder, text)
    before = record_all(text, tensorflow, "a")
    assert run("inject", "train.py", "p", "--replace") == 0
    assert record_all((folder / "train.py").read_text(), tensorflow, "a") == before
    assert before[0][:-1] or before[0][-1][1]


#: Scripts whose lines stay as they are, with a word of the reason.
REFUSED: dict[str, tuple[str, str]] = {
    "a line between two sessions": (
        f"{HEAD}{ENTRY}{MIXED}{OFF}{RUN}{ON}{RUN}",
        "it calls Session()",
    ),
    "a line behind an import that may fail": (
        (
            f"{HEAD}{ENTRY}try:\n{indent(MIXED)}    import absent\n"
            f"    {ON}except ImportError:\n    pass\n{RUN}"
        ),
        "the code may end",
    ),
    "a name that is something else": (
        (
            f"{HEAD}def make(config, tf=None):\n"
            "    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()\n"
            '    custom_op.parameter_map["precision_mode"].s = b"force_fp16"\n'
        ),
        "tf is not defined at the place of the block",
    ),
    "a call that sees everything between": (
        f'{HEAD}{ENTRY}{MIXED}exec("pass")\n{ON}{OFF}{RUN}',
        "it calls exec()",
    ),
    "setattr and CopyFrom": (
        f"{HEAD}from tensorflow.core.framework.attr_value_pb2 import AttrValue\n"
        f'{ENTRY}setattr(custom_op.parameter_map["use_off_line"], "b", True)\n'
        'custom_op.parameter_map["precision_mode"].CopyFrom(AttrValue(s=b"force_fp16"))\n'
        f"{OFF}{RUN}",
        "not a plain assignment of one option",
    ),
    "a group of the options of TF 2": (
        (
            "import npu_device as npu\ndump = npu.global_options().dump_config\n"
            "dump.enable_dump = True\ndump.dump_path = '/d'\nnpu.open().as_default()\n"
        ),
        "has no name that a block could use",
    ),
    "other code in the line": (
        f'{HEAD}{ENTRY}custom_op.parameter_map["use_off_line"].b = True; print("x")\n{OFF}{RUN}',
        "on a separate line",
    ),
    "lines that do not always run together": (
        f"{HEAD}{ENTRY}{MIXED}{OFF}for i in range(int(FLAGS.a)):\n    {ON}{indent(RUN)}",
        "does not always run together with line 6",
    ),
    "an early end between": (
        (
            f"{HEAD}def make():\n{indent(ENTRY + MIXED)}    if FLAGS.a:\n        return None\n"
            f"    {ON}    return config\ntf.Session(config=make())\n"
        ),
        "the code may end",
    ),
    "a condition that a later line overrules": (
        (
            f"{HEAD}{ENTRY}{ON}if FLAGS.a:\n"
            f'    custom_op.parameter_map["precision_mode"].s = b"force_fp32"\n{MIXED}{OFF}{RUN}'
        ),
        "precision_mode of custom_op would change",
    ),
    "an argument by position": (
        f'{HEAD}NPURunConfig(10, precision_mode="force_fp16")\n',
        "by position",
    ),
    "arguments from a table": (
        f'{HEAD}given = {{"precision_mode": "force_fp16"}}\nNPURunConfig(**given)\n',
        "made elsewhere",
    ),
    "half of an object": (
        f"{HEAD}NPURunConfig(dump_config=DumpConfig(enable_dump=True, dump_path=FLAGS.a))\n",
        "dump_path of NPURunConfig would change",
    ),
    "a property of the object between": (
        f"{HEAD}class Net:\n    @property\n    def session(self):\n"
        "        return tf.Session(config=self.config)\n    def __init__(self):\n"
        "        self.config = tf.ConfigProto()\n"
        "        self.op = self.config.graph_options.rewrite_options.custom_optimizers.add()\n"
        "        self.op.parameter_map['use_off_line'].b = True\n"
        "        sess = self.session\n"
        "        self.op.parameter_map['mix_compile_mode'].b = True\nNet()\n",
        "it uses the object that the lines change",
    ),
    "a name that is not there yet": (
        "import tensorflow\nfrom npu_bridge.npu_init import *\ndef late():\n"
        "    import tensorflow as tf\nconfig = tensorflow.ConfigProto()\n"
        "custom_op = config.graph_options.rewrite_options.custom_optimizers.add()\n"
        'custom_op.parameter_map["precision_mode"].s = b"force_fp16"\n',
        "import tensorflow as tf first",
    ),
}


@pytest.mark.parametrize("shape", REFUSED)
def test_what_is_not_proven_stays_and_is_named(
    folder: Path, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, why = REFUSED[shape]
    prepare(folder, text)
    assert run("inject", "train.py", "p", "--replace") == 2
    messages = capsys.readouterr().err
    assert "NP830" in messages
    assert why in " ".join(messages.split())
    assert (folder / "train.py").read_text() == text


def test_a_preset_that_sets_something_else_is_refused_with_the_differences(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(folder, f"{HEAD}{ENTRY}{MIXED}{OFF}{RUN}")
    run("set", "p", "precision_mode=force_fp16", "use_off_line=true")
    capsys.readouterr()
    assert run("inject", "train.py", "p", "--replace") == 2
    messages = " ".join(capsys.readouterr().err.split())
    assert (
        'precision_mode is "force_fp16" in the preset, "allow_mix_precision" in line 6' in messages
    )
    assert "use_off_line = true is in the preset only" in messages


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--all",), "--replace needs a preset, and goes without --all"),
        (("p", "--line", "3"), "--replace needs a preset, and goes without --line"),
        ((), "--replace needs a preset"),
    ],
)
def test_replace_stands_alone(
    folder: Path, arguments: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(folder, f"{HEAD}{ENTRY}{MIXED}{OFF}{RUN}")
    assert run("inject", "train.py", *arguments, "--replace") == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(("newline", "mark"), [("\n", b""), ("\r\n", b"\xef\xbb\xbf")])
def test_every_other_byte_stays(folder: Path, newline: str, mark: bytes) -> None:
    text = f"# -*- coding: utf-8 -*-\n{HEAD}\n# größer\n{ENTRY}{MIXED}  \n\t\n{OFF}\f\n{RUN}"
    prepare(folder, text)
    data = mark + text.replace("\n", newline).encode()
    (folder / "train.py").write_bytes(data)
    assert run("inject", "train.py", "p", "--replace") == 0
    after = (folder / "train.py").read_bytes()
    (block,) = find_blocks("train.py", after)
    lines = after.split(b"\n")
    lines[block.first : block.last + 1] = [MIXED.rstrip("\n").encode() + newline.encode()[:-1]]
    assert b"\n".join(lines) == data


#: Shell scripts whose exports a block can stand for, with what must stay of them. ``record`` is a
#: program that tells its environment.
SHELL_REPLACED: dict[str, tuple[str, str]] = {
    "lines in a row": (f"#!/bin/bash\n{EXPORTS}record\n", "record"),
    "quoted, with comments": (
        (
            "#!/bin/bash\nexport HCCL_CONNECT_TIMEOUT='600' # ten minutes\n"
            'export ASCEND_GLOBAL_LOG_LEVEL="3"\nrecord\n'
        ),
        "# ten minutes",
    ),
    "facts of the process between": (
        (
            "#!/bin/bash\nexport HCCL_CONNECT_TIMEOUT=600\nexport RANK_ID=0 # one card\n"
            "export DEVICE_ID=$1\nexport ASCEND_GLOBAL_LOG_LEVEL=3\nrecord\n"
        ),
        "export RANK_ID=0 # one card",
    ),
    "quiet commands between": (
        (
            "#!/bin/sh\nexport HCCL_CONNECT_TIMEOUT=600\ncd /\nx=1\n[ $x = 1 ] && echo yes\n"
            "export ASCEND_GLOBAL_LOG_LEVEL=3\nrecord\n"
        ),
        "echo yes",
    ),
    "commands that read no variable, in a substitution": (
        "#!/bin/bash\nexport HCCL_CONNECT_TIMEOUT=600\nexport PYTHONPATH=`pwd`:$PYTHONPATH\n"
        'here=$(cd "$(dirname $0)"; pwd)\nrm -f $here/none\n'
        "export ASCEND_GLOBAL_LOG_LEVEL=3\nrecord\n",
        "here=",
    ),
    "exported later": (
        "#!/bin/bash\nHCCL_CONNECT_TIMEOUT=600\nexport HCCL_CONNECT_TIMEOUT\nrecord\n",
        "export HCCL_CONNECT_TIMEOUT\n",
    ),
    "a value that looks like a comment": (
        (
            "#!/bin/bash\nexport HCCL_CONNECT_TIMEOUT=600\n"
            "export HCCL_SOCKET_IFNAME='=eth0 #b'\nrecord\n"
        ),
        "record",
    ),
}
BEFORE, AFTER = (
    "#!/bin/bash\nexport HCCL_CONNECT_TIMEOUT=600\n",
    "export ASCEND_GLOBAL_LOG_LEVEL=3\n",
)
SHELL_REFUSED: dict[str, tuple[str, str]] = {
    "exported between": (
        (
            "#!/bin/bash\nexport ASCEND_GLOBAL_LOG_LEVEL=3\nHCCL_CONNECT_TIMEOUT=600\n"
            "export HCCL_CONNECT_TIMEOUT\nexport HCCL_EXEC_TIMEOUT=1800\nrecord\n"
        ),
        "it reads or sets one of the variables",
    ),
    "a program between": (f"{BEFORE}record\n{AFTER}", "it has the command record"),
    "a substitution between": (f"{BEFORE}x=$(record)\n{AFTER}", "it has the command record"),
    "a program behind the mark of a comment in quotes": (
        f"{BEFORE}echo ' #'; record\n{AFTER}",
        "it has the command record",
    ),
    "a list of all variables between": (
        f"{BEFORE}export -p > x\n{AFTER}",
        "it has the command export",
    ),
    "a reader between": (f"{BEFORE}echo $ASCEND_GLOBAL_LOG_LEVEL\n{AFTER}", "it reads or sets one"),
    "for one command": ("#!/bin/bash\nHCCL_CONNECT_TIMEOUT=600 record\n", "not a plain export"),
    "another variable in the line": (
        "#!/bin/bash\nexport HCCL_CONNECT_TIMEOUT=600 FOO=1\n",
        "sets FOO too",
    ),
    "other commands in the line": (
        "#!/bin/bash\nexport HCCL_CONNECT_TIMEOUT=600; record\n",
        "shares its line",
    ),
    "two lines of one value": ("#!/bin/bash\nexport HCCL_ALGO='a\nb'\n", "continues on the next"),
}


def tell_environment(folder: Path, script: str) -> str:
    """Run a script in bash; return what the programs that it starts find in their environment."""
    tool = folder / "bin/record"
    write(
        folder,
        {
            "bin/record": (
                "#!/bin/sh\nenv | grep -v -e ^NPUPROF -e ^_= -e ^SHLVL -e ^PWD -e ^OLDPWD | sort\n"
            )
        },
    )
    tool.chmod(0o755)
    environ = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin"}
    return subprocess.run(
        ["bash", script, "7"], cwd=folder, env=environ, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("shape", SHELL_REPLACED)
def test_exports_give_way_to_a_block_that_exports_the_same(
    folder: Path, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, stays = SHELL_REPLACED[shape]
    prepare(folder, text, "run.sh")
    before = tell_environment(folder, "run.sh")
    assert run("trust", "profiles") == 0
    assert run("inject", "run.sh", "p", "--replace") == 0, capsys.readouterr().err
    after = (folder / "run.sh").read_text()
    assert len(find_blocks("run.sh", after.encode())) == 1
    assert stays in after
    assert tell_environment(folder, "run.sh") == before
    assert "HCCL_CONNECT_TIMEOUT=600" in before
    assert run("inject", "run.sh", "--all", "--check") == 0
    assert run("inject", "run.sh", "p", "--replace") == 0
    assert (folder / "run.sh").read_text() == after


@pytest.mark.parametrize("shape", SHELL_REFUSED)
def test_exports_that_others_could_see_change_stay(
    folder: Path, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, why = SHELL_REFUSED[shape]
    prepare(folder, text, "run.sh")
    assert run("inject", "run.sh", "p", "--replace") == 2
    assert why in " ".join(capsys.readouterr().err.split())
    assert (folder / "run.sh").read_text() == text


#: Scripts with a command line of ATC whose flags a block can stand for.
FLAGS = "--framework=3 --output=./o --soc_version=Ascend310P3"
ATC_REPLACED = {
    "all flags": (
        "#!/bin/bash\natc --model=./m.pb --framework=3 --output=./o --soc_version=Ascend310P3\n"
    ),
    "values in words of their own": (
        "#!/bin/bash\natc --model $1 --framework 3 --output "
        "./o --soc_version Ascend310P3 > /dev/stdout\n"
    ),
    "values in quotes": (
        "#!/bin/bash\natc --model=$1 --framework=3 --output='./o p' --input_shape=\"x:1,2;y:3\" "
        "--soc_version=Ascend310P3\n"
    ),
    "behind words": (
        "#!/bin/bash\nif true; then\n"
        '  X=1 nohup atc --framework=3 --model="$1" --output=./o --soc_version=Ascend310P3\nfi\n'
    ),
    "a test of its end": f"#!/bin/bash\nif atc --model=$1 {FLAGS}; then\n  echo fine\nfi\n",
    "an end that counts": f"#!/bin/bash\natc --model=$1 {FLAGS} || exit 1\n",
    "no first line, in the words of bash": f"[[ -n $1 ]] && echo more\natc --model=$1 {FLAGS}\n",
    "two command lines": (
        "#!/bin/bash\natc --model=a.pb --framework=3 --output=./o --soc_version=Ascend310P3\n"
        "atc --model=$1 --framework=3 --soc_version=Ascend310B1\n"
    ),
}
#: Scripts that a shell without arrays may run.
ATC_PLAIN = {
    "a first line of sh": (
        "#!/bin/sh -e\natc --model=./m.pb --framework=3 --output=./o\n",
        "run.sh",
    ),
    "a first line of sh, and no ending": (
        "#! /bin/sh\natc --model=./m.pb --framework=3 --output=./o\n",
        "convert",
    ),
    "no first line, and a value with a semicolon": (
        f"atc --model=$1 --input_shape='x:1,2;y:3' {FLAGS}\n",
        "run.sh",
    ),
    "a test of its end": (
        f"#!/bin/sh\nif atc --model=$1 {FLAGS}; then\n  echo fine\nelse\n  exit 1\nfi\n",
        "run.sh",
    ),
}
ATC_REFUSED = {
    "a blank, in a shell without arrays": (
        "#!/bin/sh -e\natc --model=./m.pb --framework=3 --output='./o p'\n",
        "run.sh",
        "it contains a blank or a pattern",
    ),
    "a pattern, in a script that names no shell": (
        "atc --model=./m.pb --framework=3 --output=./o*\n",
        "run.sh",
        "it contains a blank or a pattern",
    ),
    "IFS, in a shell without arrays": (
        "#!/bin/sh\nIFS=:\natc --model=./m.pb --framework=3 --output=./o\n",
        "run.sh",
        "it is not certain",
    ),
    "under a test": (
        "#!/bin/bash\ntest -f o.om || atc --model=./m.pb --framework=3 --output=./o\n",
        "run.sh",
        "test -f o.om || precedes it",
    ),
    "a line that goes on": (
        "#!/bin/bash\ntrue &&\natc --model=./m.pb --framework=3 --output=./o\n",
        "run.sh",
        "goes on from the one before",
    ),
    "carriage returns": (
        "#!/bin/bash\r\natc --model=./m.pb --framework=3 --output=./o\r\n",
        "run.sh",
        "carriage returns",
    ),
}


def tell_arguments(folder: Path, script: str, shell: str = "bash") -> list[list[str]]:
    """Run a script in a shell.

    Return the flags that each start of ``atc`` is given, in any order.
    """
    write(
        folder,
        {"bin/atc": "#!/bin/sh\nprintf '%s\\n' \"$*\" | sed 's/ --/\\n--/g' | sort\necho end\n"},
    )
    (folder / "bin/atc").chmod(0o755)
    environ = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin"}
    output = subprocess.run(
        [shell, script, "7"], cwd=folder, env=environ, capture_output=True, text=True, check=True
    ).stdout
    return [
        sorted(line.replace("=", " ", 1) for line in part.split("\n") if line)
        for part in output.split("end\n")
    ]


@pytest.mark.parametrize("shape", ATC_REPLACED)
def test_flags_of_atc_give_way_to_an_array_that_says_the_same(
    folder: Path, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(folder, ATC_REPLACED[shape], "run.sh")
    before = tell_arguments(folder, "run.sh")
    assert run("inject", "run.sh", "p", "--replace") == 0, capsys.readouterr().err
    after = (folder / "run.sh").read_text()
    assert after.count('"${ATC_FLAGS[@]}"') == 1
    assert tell_arguments(folder, "run.sh") == before
    assert any("--framework 3" in line for line in before)
    assert run("inject", "run.sh", "--all", "--check") == 0
    assert run("inject", "run.sh", "p", "--replace") == 0
    assert (folder / "run.sh").read_text() == after


@pytest.mark.parametrize("shape", ATC_PLAIN)
def test_flags_are_handed_on_in_a_text_where_no_shell_with_arrays_is_named(
    folder: Path, shape: str
) -> None:
    text, name = ATC_PLAIN[shape]
    prepare(folder, text, name)
    before = tell_arguments(folder, name, "dash")
    assert run("inject", name, "p", "--replace") == 0
    after = (folder / name).read_text()
    assert "$ATC_FLAGS" in after
    assert "[@]" not in after
    assert tell_arguments(folder, name, "dash") == tell_arguments(folder, name, "bash") == before
    assert run("inject", name, "--all", "--check") == 0
    assert run("inject", name, "p", "--replace") == 0
    assert (folder / name).read_text() == after


@pytest.mark.parametrize("shape", ATC_REFUSED)
def test_flags_that_no_array_can_hand_on_stay(
    folder: Path, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, name, why = ATC_REFUSED[shape]
    prepare(folder, text, name)
    assert run("inject", name, "p", "--replace") == 2
    assert why in " ".join(capsys.readouterr().err.split())
    assert (folder / name).read_bytes() == text.encode()
