"""Exports, evaluated and undone by the shells themselves."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.catalog.execution import find_value_execution
from npuprof.renderers.shell import SHELLS, quote_posix
from support.exports import AWKWARD, read_back
from support.running import Run, Store

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30
) | st.lists(
    st.sampled_from(
        [
            "'",
            '"',
            "\\",
            "$",
            "`",
            "!",
            "\n",
            "\r",
            "\t",
            " ",
            "(",
            ")",
            "{",
            "}",
            "#",
            "=",
            "a",
            "%",
            ";",
            "é",
            "😀",
        ]
    ),
    max_size=12,
).map("".join)
UNSETTING = {
    "base": 'env.HCCL_ALGO = "level0:NA;level1:ring"\nenv.T_A = 1\n',
    "leaf": '[profile]\nextends = ["base"]\nunset = ["env.HCCL_ALGO", "env.T_A"]\n',
}


@pytest.fixture
def run(trusting_run: Run) -> Run:
    """Values are judged here, of variables that nobody else has."""
    return trusting_run


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_gives_awkward_values_back(shell: str, tmp_path: Path) -> None:
    values = [text for text in AWKWARD if not SHELLS[shell].refuses(text)]
    assert len(values) > len(AWKWARD) / 2
    found = {f"T_{index}": text for index, text in enumerate(values)}
    assert read_back(shell, tmp_path, found) == found


@pytest.mark.parametrize("shell", [name for name in SHELLS if name != "pwsh"])
@given(st.lists(texts, min_size=1, max_size=6))
def test_a_shell_gives_any_value_back_or_it_is_refused(
    shell: str, tmp_path: Path, values: list[str]
) -> None:
    found = {
        f"T_{index}": text for index, text in enumerate(values) if not SHELLS[shell].refuses(text)
    }
    assert read_back(shell, tmp_path, found) == found


@pytest.mark.parametrize("shell", SHELLS)
def test_what_undoes_an_export_brings_back_what_was_there(
    shell: str, tmp_path: Path, store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exported twice, then another preset over it, and undone: the shell's own values are back."""
    store({"leaf": "env.T_A = 5\nenv.T_NEW = 1\n", "other": "env.T_A = 6\nenv.T_LATER = 1\n"})
    before = {"T_A": 'it\'s "mine" $HOME !', "T_KEPT": "é"}
    for name, text in before.items():
        monkeypatch.setenv(name, text)
    for name in ("leaf", "leaf", "other"):
        result = run("env", name)
        assert result.code == 0, result.err
        for pair in read_variables(result.out).items():
            monkeypatch.setenv(*pair)
    assert os.environ["T_A"] == "6"
    assert not any("BEFORE" in line for line in run("env", "other", "--diff").out.splitlines())
    undo = run("env", "other", "--shell", shell, "--unset").out
    now = {name: text for name, text in os.environ.items() if name.startswith("T_")}
    assert read_back(shell, tmp_path, {}, now, undo) == {**before, "T_NEW": "1"}


#: Sets a shell variable, sets an exported one, and prints the shell variable, in the words of each
#: shell.
POSIX = ("T_LOCAL='it is  mine'", "export T_LATER=2", 'echo "<$T_LOCAL>"')
SPOKEN = {
    "bash": POSIX,
    "zsh": POSIX,
    "sh": POSIX,
    "fish": ("set -g T_LOCAL 'it is  mine'", "set -gx T_LATER 2", 'echo "<$T_LOCAL>"'),
    "tcsh": ("set T_LOCAL='it is  mine'", "setenv T_LATER 2", 'echo "<${T_LOCAL:q}>"'),
    "pwsh": ("$T_LOCAL = 'it is  mine'", "$env:T_LATER = 2", 'echo "<$T_LOCAL>"'),
}
ROWS = [(shell, program) for shell in SHELLS for program in (*SHELLS[shell].programs, shell)] + [
    ("sh", "ksh"),
    ("sh", "mksh"),
]


@pytest.mark.parametrize(("shell", "program"), ROWS)
def test_a_shell_gets_its_own_variables_back_and_keeps_what_was_changed_since(
    shell: str, program: str, tmp_path: Path, store: Store
) -> None:
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    store({"leaf": "env.T_LOCAL = 1\nenv.T_OLD = 1\nenv.T_NEW = 1\nenv.T_LATER = 1\n"})
    command = tmp_path / "npuprof"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m npuprof "$@"\n')
    command.chmod(0o755)
    keep, change, show = SPOKEN[shell]
    export, undo = (
        SHELLS[shell].use.replace("NAME", f"leaf --trust{flag}") for flag in ("", " --unset")
    )
    script = "\n".join([keep, export, export, change, undo, show, "env"])
    if SPOKEN[shell] == POSIX:
        script = f"set -eu\n{script}"
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "T_OLD": "o  'k",
        "T_LATER": "0",
        "LC_ALL": "C.UTF-8",
    }
    (tmp_path / "script").write_text(script)
    done = subprocess.run(
        [program, str(tmp_path / "script")],
        env=environ,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "T_LATER is left as it is" in done.stderr
    shown, *lines = done.stdout.splitlines()
    assert shown == "<it is  mine>"
    assert {line for line in lines if line.startswith(("T_", "NPUPROF_", "_NPUPROF_"))} == {
        "T_OLD=o  'k",
        "T_LATER=2",
    }


@pytest.mark.parametrize(
    "script", ["T_X=mine; {export}; {undo}", "{export}; export -n T_X; T_X=mine; {undo}"]
)
def test_an_undo_leaves_a_variable_that_is_not_exported_alone(
    script: str, tmp_path: Path, store: Store
) -> None:
    store({"leaf": "env.T_X = 1\n"})
    export = f'eval "$({sys.executable} -P -m npuprof env leaf --trust)"'
    commands = script.format(export=export, undo=export.replace("--trust", "--trust --unset"))
    done = subprocess.run(
        ["bash", "-euc", f'{commands}; echo "$T_X"'],
        env=os.environ,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "mine\n", done.stderr


#: Ways of an export to a file, of which the last is a pipe.
WAYS = {
    "a new file": "-o out",
    "a file in place of stdout": "> out",
    "stdout by its name": "-o - > out",
    "its device": "-o /dev/stdout > out",
    "an open file": "-o /dev/fd/3 3> out",
    "a link": "-o link",
    "a file that is added to": ">> out",
    "a pipe": "| cat > out",
    "a pipe by its name": "-o /dev/stdout | cat > out",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("flag", ["", "--unset"])
def test_values_of_the_environment_are_in_no_file(
    way: str, flag: str, tmp_path: Path, store: Store
) -> None:
    store({"leaf": 'env.HTTPS_PROXY = "http://proxy"\n'})
    (tmp_path / "link").symlink_to("out")
    before = {"NPUPROF_BEFORE": json.dumps({"HTTPS_PROXY": "http://me:pa55@old"})} if flag else {}
    environ = {
        **os.environ,
        "HTTPS_PROXY": "http://proxy" if flag else "http://me:pa55@old",
        **before,
    }
    line = f"{sys.executable} -P -m npuprof env leaf --trust {flag} {WAYS[way]}"
    done = subprocess.run(
        ["bash", "-c", line], env=environ, capture_output=True, check=True, text=True
    )
    is_piped = "pipe" in way
    assert ("pa55" in (tmp_path / "out").read_text()) == is_piped
    assert ("a file gets no values of your environment" in done.stderr) == (not is_piped)
    assert (
        f'eval "$(npuprof env leaf {flag + " " if flag else ""}--shell bash)"' in done.stderr
    ) == (not is_piped)
    assert "_NPUPROF_WAS" not in (tmp_path / "out").read_text() or is_piped or flag


@pytest.mark.parametrize("flags", [(), ("--format", "json")])
def test_a_comparison_with_the_environment_hides_credentials(
    flags: tuple[str, ...], store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"leaf": 'env.HTTPS_PROXY = "http://new"\nenv.T_TOKEN = "t"\nenv.NO_PROXY = "a"\n'})
    for name, text in (
        ("HTTPS_PROXY", "http://me:pa55@old"),
        ("T_TOKEN", "pa55"),
        ("NO_PROXY", "b"),
    ):
        monkeypatch.setenv(name, text)
    shown = run("env", "leaf", "--diff", *flags)
    assert "pa55" not in shown.out
    assert shown.out.count("***") == 2
    assert "http://***@old" in shown.out
    assert '"b"' in shown.out


@pytest.mark.parametrize("shell", SHELLS)
def test_an_export_removes_what_the_preset_unsets_and_undoing_restores_it(
    shell: str, tmp_path: Path, store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(UNSETTING)
    monkeypatch.setenv("T_A", "host")
    exported = run("env", "leaf", "--shell", shell, "--trust")
    assert exported.code == 0
    assert exported.err == ""
    assert read_back(shell, tmp_path, {}, {"T_A": "host", "T_B": "2"}, exported.out) == {"T_B": "2"}
    for name, text in read_variables(run("env", "leaf", "--trust").out).items():
        monkeypatch.setenv(name, text)
    monkeypatch.delenv("T_A")
    assert read_back(
        shell, tmp_path, {}, {}, run("env", "leaf", "--shell", shell, "--unset").out
    ) == {"T_A": "host"}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_block_unsets_what_the_preset_unsets_but_for_what_needs_trust(
    shell: str, tmp_path: Path, store: Store, run: Run
) -> None:
    store(UNSETTING)
    script = tmp_path / f"launch{SHELLS[shell].endings[0]}"
    script.write_text("env\n")
    assert (
        "left out: unset of T_A: npuprof run --trust removes it"
        in run("inject", str(script), "leaf").err
    )
    for flags in ((), ("--trust",)):
        assert run("inject", "--check", str(script), *flags).code == 0
    program = next(filter(shutil.which, (*SHELLS[shell].programs, shell)), None)
    if not program:
        pytest.skip(f"{shell} is not installed")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HCCL_ALGO": "level0:NA;level1:H-D_R",
        "T_A": "host",
    }
    lines = subprocess.run(
        [program, str(script)], env=environ, capture_output=True, check=True, text=True
    ).stdout.splitlines()
    assert "T_A=host" in lines
    assert "NPUPROF_PROFILE=leaf" in lines
    assert not [line for line in lines if line.startswith("HCCL_ALGO=")]


def read_variables(text: str) -> dict[str, str]:
    """Return what an export for bash sets, as bash reads it."""
    done = subprocess.run(
        ["bash", "-c", f"{text}\nenv -0"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
    )
    pairs = (item.decode().partition("=") for item in done.stdout.split(b"\0") if item)
    return {name: value for name, _, value in pairs if name.startswith(("T_", "NPUPROF_"))}


#: What launch scripts do with a variable: an unquoted argument, a calculation, a comparison, a test
#: of arithmetic.
USES = (
    'printf "%s\\n" $X; ( : $((X)) ) 2>/dev/null; ( : $((X / 2)) ) 2>/dev/null; ( [ "$X" -gt 1 ] '
    ") 2>/dev/null; ( test $X ) 2>/dev/null"
)
FRAGMENTS = ["x[", "$(touch ran)", "`touch ran`", "${X@P}", *"]=a0,:/ -{()%@^+*!", "~/"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "mksh", "dash"])
def test_a_text_that_needs_no_trust_stays_one_word_and_runs_nothing(
    shell: str, tmp_path: Path
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell}")
    texts = [
        "".join(parts) for count in (1, 2) for parts in itertools.product(FRAGMENTS, repeat=count)
    ]
    free = [text for text in texts if not find_value_execution("WANDB_RUN_GROUP", text)]
    assert 100 < len(free) < len(texts) / 2
    script = "".join(f"X={quote_posix(text)}; export X; {USES}\n" for text in free)
    done = subprocess.run(
        [program], input=script, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert not (tmp_path / "ran").exists()
    assert done.stdout.splitlines() == free, "each is one word"
