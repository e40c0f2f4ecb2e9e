"""What shell scripts take in from files of their own tree: read, and run by the real shell."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from npuprof.scripts.import_resolution import open_modules, set_callers_apart
from npuprof.scripts.preset import build_drafts
from npuprof.scripts.reading import (
    import_script,
    may_call_settings,
    may_hold_settings,
    shell_scripts,
)
from support.importing import write

if TYPE_CHECKING:
    from pathlib import Path

    from npuprof.scripts.reading import ImportedFile

SET = "export HCCL_ALGO=a\n"
A, B = {"HCCL_ALGO": "a"}, {"HCCL_ALGO": "b"}
OWN = 'HERE_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\n'

#: What is in start.sh before its last line, which starts the program; other files; what the program
#: is given and the preset has.
TREES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "beside": ("source ./env.sh\n", {"env.sh": SET}, A),
    "by the folder of the script": ('. "$(dirname "$0")/conf/env.sh"\n', {"conf/env.sh": SET}, A),
    "by a variable of a variable": (
        f'{OWN}CONF="$HERE_DIR/conf"\nsource "$CONF"/env.sh\n',
        {"conf/env.sh": SET},
        A,
    ),
    "exported by the script": (
        "source ./env.sh\nexport HCCL_ALGO\n",
        {"env.sh": "HCCL_ALGO=a\n"},
        A,
    ),
    "set again behind set -a": ("set -a\nHCCL_ALGO=b\nset +a\nHCCL_ALGO=a\n", {}, A),
    "exported nowhere": ("source ./x.env\n", {"x.env": "HCCL_ALGO=a\n"}, {}),
    "taken back by the script": ("source ./env.sh\nunset HCCL_ALGO\n", {"env.sh": SET}, {}),
    "a function nobody calls": (
        "source ./env.sh\n",
        {"env.sh": "set_up() {\n  export HCCL_ALGO=a\n}\n"},
        {},
    ),
    "under a test": ('if [ "$X" ]; then source ./env.sh; fi\n', {"env.sh": SET}, {}),
    "behind a test": ('[ "$X" ] && source ./env.sh\n', {"env.sh": SET}, {}),
    "in a process of its own": ("(source ./env.sh)\nexport HCCL_ALGO=b\n", {"env.sh": SET}, B),
    "two on one line": (
        "source ./a.sh; source ./b.sh >/dev/null 2>&1 || exit 1\n",
        {"a.sh": SET, "b.sh": "export HCCL_ALGO=b"},
        B,
    ),
    "a file that takes itself in": (
        "source ./a.sh\n",
        {"a.sh": f"{SET}[ $X$Y ] || Y=1 && [ ] && source ./a.sh\n"},
        A,
    ),
    "a file that is left": (
        "source ./a.sh\nexport HCCL_ALGO=a\n",
        {"a.sh": "return 0\nexport HCCL_ALGO=b\n"},
        A,
    ),
    "one that is not there": ("source ./none.sh\nexport HCCL_ALGO=a\n", {}, A),
}


def read(folder: Path, script: str = "start.sh") -> ImportedFile:
    path = str(folder / script)
    data = (folder / script).read_bytes()
    modules = open_modules([str(folder)])
    return import_script(
        path, data, may_hold_settings(path, data) or may_call_settings(path, data, modules), modules
    )


@pytest.mark.parametrize("case", TREES)
def test_a_preset_has_what_a_program_is_given_that_the_script_starts(
    case: str, tmp_path: Path
) -> None:
    text, files, expected = TREES[case]
    write(tmp_path, {"start.sh": f"#!/bin/bash\n{text}env > given\n", **files})
    subprocess.run(
        ["bash", "./start.sh"],
        check=False,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
    )
    exported = dict(
        line.split("=", 1)
        for line in (tmp_path / "given").read_text().splitlines()
        if line.startswith("HCCL_") and line[-1] != "="
    )
    assert exported == expected
    carried = {
        key: value
        for draft in build_drafts(read(tmp_path))
        for key, value in draft.settings.items()
    }
    assert carried == {f"env.{name}": value for name, value in expected.items()}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("source $SITE/env.sh", "$SITE/env.sh (line 2) depends on $SITE"),
        ("source ~/x.sh", "~/x.sh (line 2) is not looked into"),
        (
            "cd build; source ../env.sh",
            "../env.sh (line 2) depends on the folder that the script has gone to",
        ),
        ("source a/two.sh", "a/two.sh (line 2) is "),
        ("source own.sh", "own.sh (line 2) is not looked into"),
        ("source start.sh", "start.sh (line 2) it takes itself in"),
        ("source /usr/local/Ascend/ascend-toolkit/set_env.sh", ""),
        ("source $ASCEND_HOME/set_env.sh; . ~/.bashrc", ""),
        ("source ./env.sh", ""),
    ],
)
def test_what_is_not_looked_into_is_named(line: str, reason: str, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "b/start.sh": f"#!/bin/bash\n{line}\n{SET}",
            "b/env.sh": "X=1\n",
            "b/own.sh": OWN,
            "a/two.sh": SET,
            "b/a/two.sh": SET,
        },
    )
    problems = [
        finding for finding in read(tmp_path, "b/start.sh").problems if finding.code == "NP801"
    ]
    assert [(problem.severity, problem.line) for problem in problems] == (
        [("info", 2)] if reason else []
    )
    assert all(
        f"not looked into what the script sources: {reason}" in problem.message
        for problem in problems
    )


def test_a_file_that_others_take_in_makes_no_preset_of_its_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "start.sh": "source ./env.sh\npython3 x.py\n",
            "env.sh": f"{SET}alias x=y\n",
            "x.env": SET,
        },
    )
    env = str(tmp_path / "env.sh")
    files = [read(tmp_path), read(tmp_path, "env.sh")]
    exclude_passed, reasons = set_callers_apart(files)
    assert exclude_passed(files[1]).settings == ()
    assert reasons == {
        env: (
            f"used by {tmp_path / 'start.sh'}: its settings "
            "are in the preset of each script that uses it"
        )
    }


@pytest.mark.parametrize(
    ("text", "files", "sources"),
    [
        ("source ./env.sh\n", {"env.sh": SET}, True),
        ("source ./env.sh\n", {"env.sh": "X=1\n"}, False),
        ('. "./my env.sh"\n', {"my env.sh": SET}, True),
        (". \\\n  ./env.sh\n", {"env.sh": SET}, True),
        ("if true; then . $PWD/env.sh; fi\n", {"env.sh": SET}, True),
        (". ${BASH_SOURCE[0]%/*}/env.sh\n", {"env.sh": SET}, True),
        ("D=conf\nE=$D\n. $E/env.sh\n", {"conf/env.sh": SET}, True),
        (". ./a.sh\n. ${D}/env.sh\n", {"a.sh": "D=conf\n", "conf/env.sh": SET}, True),
        (". ./a.sh\n", {"a.sh": ". ./b.sh\n", "b.sh": SET}, True),
        ("D=$PWD/..\n. $D/env.sh\n", {"env.sh": SET}, False),
        ("D=$D/conf\n. $D/env.sh\n", {"conf/env.sh": SET}, False),
        ("# source ./env.sh\n", {"env.sh": SET}, False),
    ],
)
def test_a_script_counts_if_a_file_that_it_sources_has_settings(
    text: str, files: dict[str, str], sources: bool, tmp_path: Path
) -> None:
    write(tmp_path, {"start.sh": text, **files})
    path = str(tmp_path / "start.sh")
    assert may_call_settings(path, text.encode(), open_modules([str(tmp_path)])) is sources


def test_a_script_that_sources_no_settings_is_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"path.sh": "ROOT=$PWD/..\n. $ROOT/tools/env.sh\n", "tools/env.sh": SET})
    monkeypatch.setattr(shell_scripts, "parse_shell_commands", None)  # a call would fail
    path, text = str(tmp_path / "start.sh"), b". ./path.sh || exit 1\necho $1\n"
    assert not may_call_settings(path, text, open_modules([str(tmp_path)]))


# run_mlm_cn.sh and env.sh of transformers in ModelZoo-PyTorch
def test_a_block_without_an_end_in_a_sourced_file_is_none_of_the_script(tmp_path: Path) -> None:
    write(tmp_path, {"env.sh": "if [ -d $A ]; then\n  export A=1\n"})
    write(tmp_path, {"start.sh": "source ./env.sh\ntorchrun t.py --lr 1\n"})
    assert read(tmp_path, "start.sh").problems == ()
