"""Redirections, case arms and arithmetic of shell scripts: as read, and as run by real bash."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from npuprof.scripts.preset import build_drafts
from npuprof.scripts.shell_lexer import parse_shell_commands
from support.importing import findings, imported

#: Commands of which a shell passes only some words to the program ``record``.
REDIRECTED = [
    "record --trust-remote-code 2>&1",
    "record -a > log.txt 2>&1 -b",
    "record -a &> out -b",
    "record a &>> out b >> out 2>>err",
    "record a2>file b",
    'record a <<<"c d" b',
    "record a >| out {fd}>x b",
    "2> err > out record a",
    "record a < <(echo b) > >(cat)",
    "record a 2>&- b",
    "record 2 >out",
    "record a 2<<EOF b\nc\nEOF",
    "case b in a) record no;; b) record yes;; esac",
    "case b in\n# c)\n(a|c)\n  record no ;;\n'b' | d) record yes 2>&1\n;;\nesac",
    "case b in a) record no;;\nesac\nrecord yes",
]


def read_bash_version(environment: dict[str, str]) -> int:
    command = ["bash", "-c", "echo $BASH_VERSINFO"]
    return int(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("text", REDIRECTED)
def test_a_program_gets_the_words_that_real_bash_passes(text: str, tmp_path: Path) -> None:
    (tmp_path / "record").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$RECORDED"\n')
    (tmp_path / "record").chmod(0o755)
    given = tmp_path / "given"
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RECORDED": str(given)}
    if ("&>>" in text or "{fd}" in text) and read_bash_version(environment) < 4:
        pytest.skip("bash is older than 4")
    subprocess.run(
        ["bash", "-c", text],
        check=True,
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    read = [
        [word.text for word in command[1:]]
        for command in parse_shell_commands(text)
        if command[0].text == "record"
    ]
    assert given.read_text().splitlines() in read
    assert len(read) == text.count("record")


def test_arithmetic_in_square_brackets_is_one_expansion() -> None:
    (command, *_) = parse_shell_commands("record $[a[1] + 2] b")
    assert [word.open_part for word in command] == ["", "$[a[1] + 2]", ""]


def test_redirections_and_short_options_are_no_values_of_arguments() -> None:
    text = (
        "vllm serve m --trust-remote-code 2>&1 | tee log\n"
        "vllm serve m --enable-expert-parallel -tp 4 --seed -1 > log 2>&1\n"
    )
    first, second = (draft.settings for draft in build_drafts(imported(text, "serve.sh")))
    assert first["vllm.trust-remote-code"] is True
    assert second == {
        "vllm.model": "m",
        "vllm.enable-expert-parallel": True,
        "vllm.tensor-parallel-size": 4,
        "vllm.seed": -1,
    }


@pytest.mark.parametrize("rest", ["--log 2>&1", "--log", "--log --framework=3"])
def test_a_flag_of_atc_without_a_value_is_reported(rest: str) -> None:
    (found,) = findings(f"atc --model=a.pb {rest}\n", "a.sh")
    assert (found.code, found.message) == ("NP203", "--log has no value")


def test_the_help_flag_of_atc_needs_no_value() -> None:
    assert findings("atc --help\n", "a.sh") == []


@pytest.mark.parametrize(
    "line",
    [
        "export HCCL_CONNECT_TIMEOUT=${X:-1800s}",
        "export HCCL_CONNECT_TIMEOUT=${X:=1800s}",
        "export HCCL_CONNECT_TIMEOUT=${X-1800s}",
        ": ${HCCL_CONNECT_TIMEOUT:=1800s}; export HCCL_CONNECT_TIMEOUT",
    ],
)
def test_a_default_in_an_expansion_must_have_the_type(line: str) -> None:
    (found,) = findings(f"{line}\n", "a.sh")
    assert found.code == "NP202"
    assert "it is the default of the script" in found.message


SOURCE = "source /usr/local/Ascend/nnal/atb/set_env.sh"
EXPORT = "export ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE=3"
#: Scripts in which the export and the sourcing never run one after the other.
EXCLUSIVE = {
    "if and elif": f'if [ "$1" = a ]; then\n{EXPORT}\nelif [ "$1" = b ]; then\n{SOURCE}\nfi\n',
    "if and else": f"if [ $1 ]; then {EXPORT}; else {SOURCE}; fi\n",
    "arms of case": f"case $1 in\na)\n{EXPORT}\n;;\nb) {SOURCE} ;;\nesac\n",
    "a branch that exits": f"if [ $1 ]; then\n{EXPORT}\nserver\nexit 0\nfi\n{SOURCE}\n",
    "a group that exits": f"[ $1 ] || {{ {EXPORT}; server; exit; }}\n{SOURCE}\n",
    "two functions": f"a() {{ {EXPORT}; }}\nb() {{ {SOURCE}; }}\nif [ $1 ]; then a; else b; fi\n",
    "a function that is never called": f"{EXPORT}\nb() {{ {SOURCE}; }}\nserver\n",
    "two conditions": f"if [ $1 ]; then {EXPORT}; fi\nif [ ! $1 ]; then {SOURCE}; fi\n",
}
OVERWRITTEN = {
    "one after the other": f"{EXPORT}\n{SOURCE}\n",
    "a file that may be missing": f"{EXPORT}\nif [ -f x ]; then {SOURCE}; fi\n",
    "in one branch": f"if [ $1 ]; then {EXPORT}; {SOURCE}; fi\n",
    "in one arm": f"case $1 in a) {EXPORT}; {SOURCE};; esac\n",
    "after a branch": f"if [ $1 ]; then {EXPORT}; fi\n{SOURCE}\n",
    "after a guard": f"{EXPORT}\n[ $1 ] || {{ usage; exit 1; }}\n{SOURCE}\n",
    "in one function": f"a() {{ {EXPORT}; {SOURCE}; }}\na\n",
    "in a function that runs later": f"{EXPORT}\nb() {{ {SOURCE}; }}\nb\n",
}


@pytest.mark.parametrize("case", [*EXCLUSIVE, *OVERWRITTEN])
def test_exports_in_exclusive_branches_are_not_overwritten(case: str) -> None:
    found = findings({**EXCLUSIVE, **OVERWRITTEN}[case], "boot.sh")
    assert [finding.code for finding in found] == ["NP832"] * (case in OVERWRITTEN)
