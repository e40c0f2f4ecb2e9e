"""Completion: candidates at each position of a command line, and the functions of the shells."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from npuprof.commands import completion
from npuprof.commands.completion.offering import COMPLETERS
from npuprof.commands.framework import Parameter, list_verbs
from npuprof.store.folder import find_store
from support.building import REPOSITORY
from support.repositories import Repo
from support.running import Run
from support.teams import Team

#: What is typed of a value, and a candidate for it, by the ``complete`` of the parameter.
OFFERED = {
    "assignment": ("hccl_t", "hccl_timeout="),
    "axis": ("role=d", "role=decode"),
    "code": ("NP30", "NP301"),
    "condition": ("prec", "precision_mode_v2"),
    "framework": ("torch_npu=7.3", "torch_npu=7.3.0"),
    "key": ("hccl_t", "hccl_timeout"),
    "next-version": ("1.", "1.2.0"),
    "product": ("atlas-a2", "atlas-a2-training"),
    "release": ("9", "9.0.0"),
    "revision": ("", "next"),
    "revisions": ("HEAD..", "HEAD..next"),
    "source": ("t", "team"),
    "spec": ("bert@", "bert@next"),
    "store": ("b", "builtin:"),
    "topic": ("pres", "presets"),
    "values": ("hccl_timeout=", "hccl_timeout=1836"),
    "version": ("bert@", "bert@1.1.0"),
}
#: Metavars of values that are files, and of values that npuprof cannot list, where shells offer
#: files too.
FILES = {
    "DIR",
    "FILE",
    "FILE...",
    "FOLDER",
    "PATH",
    "PATH...",
    "SPEC EVIDENCE...",
    "X",
    "[FILE]",
    "A,B,...",
    "CMD...",
    "GIT-URL",
    "IMAGE",
    "LIST",
    "METRIC",
    "NAME",
    "NAME=REGEX",
    "REGEX",
    "T",
    "TIME",
    "URL",
    "VARIABLE...",
}
#: The texts of all verbs that people call, by verb and name.
TEXTS = {
    (names, name): parameter
    for names, verb in list_verbs()
    if not verb.hidden
    for name, parameter in verb.parameters.items()
    if parameter.kind in ("argument", "arguments", "text", "many")
}
BERT = (
    '[profile]\nscenario = "training"\n[options]\n'
    'precision_mode_v2 = "mixed_float16"\nhccl_timeout = 600\n'
)


def fill(repo: Repo) -> Path:
    (repo.folder / "npuprof.toml").write_text('[axes]\nrole = ["prefill", "decode"]\n')
    repo.commit({"bert": BERT, "base/training": BERT, "mixins/x": BERT})
    repo.git("tag", "-a", "-m", "x", "bert/v1.0.0")
    repo.git("tag", "-a", "-m", "x", "bert/v1.1.0")
    repo.git("pack-refs", "--all")
    repo.git("branch", "next")
    return repo.folder


@pytest.fixture
def folder(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fill(repo))
    return repo.folder


def list_candidates(line: str) -> list[str]:
    """Return what is offered for the last word of a line."""
    *arguments, current = line.split(" ")
    return [
        argument
        for argument, _ in completion.find_candidates(arguments, current)
        if argument.startswith(current)
    ]


@pytest.mark.parametrize(
    ("line", "there", "absent"),
    [
        (
            "",
            ["show", "check", "git", "--help", "--version"],
            ["merge-driver", "verb", "application"],
        ),
        ("git ", ["install", "uninstall", "status"], ["merge-driver", "judgement", "show"]),
        ("show ", ["bert", "base/training", "mixins/x"], []),
        ("show --store profiles b", ["bert"], []),
        (
            "show bert@",
            ["bert@1.1.0", "bert@1.0.0", "bert@HEAD", "bert@next"],
            ["bert@bert/v1.0.0"],
        ),
        ("show bert+", ["bert+mixins/x"], []),
        ("show bert --with ", ["mixins/x"], ["--with"]),
        ("render bert --to s", ["session", "session-migrated"], ["toml"]),
        ("render bert --", ["--to", "--output", "--set", "--help"], ["-t"]),
        ("show bu", ["builtin:"], []),
        ("show builtin:", ["builtin:base/training"], ["builtin:bert"]),
        ("release bert ", ["1.1.1", "1.2.0", "2.0.0"], ["1.1.0", "1.0.1"]),
        ("check --select NP30", ["NP301", "NP303"], []),
        ("sweep bert --vary hccl_timeo", ["hccl_timeout="], []),
        ("check --cann 9", ["9.0.0", "9.1.0"], ["8.0.0"]),
        ("set bert hccl_", ["hccl_timeout="], []),
        (
            "set bert precision_mode_v2=m",
            ["precision_mode_v2=mixed_float16"],
            ["precision_mode_v2=fp16"],
        ),
        ("set bert deterministic=", ["deterministic=0", "deterministic=1"], []),
        ("unset bert ", ["hccl_timeout", "precision_mode_v2"], []),
        ("explain bert profile.", ["profile.scenario", "profile.cann"], []),
        ("set bert hccl_timeout=", ["hccl_timeout=1836"], []),
        ("rule NP30", ["NP301", "NP302"], ["NP201"]),
        ("diff --rev ", ["HEAD", "next", "bert/v1.0.0"], []),
        ("env bert --shell ", ["bash", "fish", "pwsh"], []),
        ("diff --rev HEAD..ne", ["HEAD..next"], ["next"]),
        ("diff --rev HEAD...", ["HEAD...next", "HEAD...bert/v1.0.0"], ["HEAD..next"]),
        ("yank bert@", ["bert@1.1.0", "bert@1.0.0"], ["bert@HEAD", "bert@next"]),
        ("options --risk ", ["numerics", "memory", "performance"], []),
        ("list --where prec", ["precision_mode_v2"], []),
        ("list --store b", ["builtin:"], []),
        ("list --store ", ["builtin:", "profiles/"], []),
        ("show bert ", [], ["bert"]),
        ("show bert --axis ", ["role="], ["role=decode"]),
        ("show bert --axis role=", ["role=prefill", "role=decode"], ["role="]),
        ("shwo ", [], ["bert"]),
    ],
)
def test_a_place_is_offered_what_it_takes(
    folder: Path, line: str, there: list[str], absent: list[str]
) -> None:
    found = list_candidates(line)
    assert [argument for argument in there if argument not in found] == [], found
    assert [argument for argument in absent if argument in found] == []


def test_arguments_of_programs_in_the_current_folder_are_offered(folder: Path) -> None:
    (folder / "train.py").write_text(
        "import argparse\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--lora-rank', '-r', type=int)\n"
        "parser.parse_args()\n"
    )
    (folder / "other.py").write_text("from train import parser\nparser.add_argument('--more')\n")
    assert list_candidates("set bert args.") == ["args.lora-rank=", "args.-r="]
    assert list_candidates("unset bert args.lo") == ["args.lora-rank"]
    assert "megatron.num-layers=" in list_candidates("set bert megatron.num-l")


def list_words_before(names: tuple[str, ...], name: str, parameter: Parameter) -> list[str]:
    """Return a command line up to the value of a parameter."""
    if parameter.flags:
        return [*names, parameter.flags[0]]
    places = [
        other for (verb, other), parameter in TEXTS.items() if verb == names and not parameter.flags
    ]
    return [*names, *["bert"] * places.index(name)]


@pytest.mark.parametrize("names", sorted({names for names, _ in TEXTS}), ids=" ".join)
def test_a_parameter_is_offered_what_its_declaration_says(
    tmp_path: Path, folder: Path, run: Run, names: tuple[str, ...]
) -> None:
    team = Team(tmp_path / "shared")
    team.publish({"base": BERT}, "", "base/v1.0.0")
    assert run("source", "add", "team", team.url).code == 0
    for (verb, name), parameter in TEXTS.items():
        if verb == names:
            before, candidate = OFFERED.get(parameter.complete, ("", None))
            found = [
                argument
                for argument, _ in completion.find_candidates(
                    list_words_before(names, name, parameter), before
                )
            ]
            if parameter.choices:
                assert found == [*parameter.list_choices()], name
            else:
                assert candidate in found if candidate else not found, (name, found)


def test_a_text_is_completed_unless_it_is_a_file_or_nothing_can_be_listed() -> None:
    assert {parameter.complete for parameter in TEXTS.values()} == {"", *COMPLETERS}
    assert {*OFFERED, "nothing"} == {*COMPLETERS} > completion.cursor._WITH_FILES - {""}
    assert {
        parameter.metavar
        for parameter in TEXTS.values()
        if not parameter.choices and not parameter.complete
    } == FILES
    assert not [key for key, parameter in TEXTS.items() if parameter.choices and parameter.complete]


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("show te", ["team:"]),
        ("show team:la", ["team:large"]),
        ("show bert+team:b", ["bert+team:base"]),
        ("show team:base@", ["team:base@1.0.0"]),
        ("list --store te", ["team:"]),
        ("trust te", ["team:"]),
    ],
)
def test_sources_are_offered_as_stores_and_what_they_hold_as_presets(
    line: str, candidates: list[str], tmp_path: Path, repo: Repo, folder: Path, run: Run
) -> None:
    team = Team(tmp_path / "shared")
    team.publish({"base": BERT, "large": BERT}, "", "base/v1.0.0")
    assert run("source", "add", "team", team.url).code == 0
    assert list_candidates(line) == candidates


@pytest.mark.parametrize(
    ("shell", "environ"),
    [
        ("complete_zsh", {"_TYPER_COMPLETE_ARGS": "npuprof diff --rev "}),
        ("complete_zsh", {"_TYPER_COMPLETE_ARGS": "npuprof unset evil "}),
        ("complete_bash", {"COMP_WORDS": "npuprof unset evil ", "COMP_CWORD": "3"}),
    ],
)
def test_words_that_a_shell_would_run_are_not_offered(
    shell: str,
    environ: dict[str, str],
    repo: Repo,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    repo.git("branch", "x$(touch${IFS}owned)")
    repo.git("branch", "y`id`")
    (folder / "profiles/evil.toml").write_text("[options]\n'$(id)' = 1\n'a b' = 1\nfine = 1\n")
    assert completion.answer_shell(shell, environ) == 0
    out = capsys.readouterr().out
    assert "$" not in out
    assert "`" not in out
    assert "a b" not in out


@pytest.mark.parametrize(
    "environ",
    [
        {"COMP_WORDS": "npuprof show '", "COMP_CWORD": "2"},
        {"COMP_WORDS": "npuprof show", "COMP_CWORD": "x"},
        {"COMP_WORDS": "npuprof nothing x", "COMP_CWORD": "2"},
    ],
)
def test_what_cannot_be_completed_offers_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environ: dict[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert completion.answer_shell("complete_bash", environ) == 0
    assert capsys.readouterr() == ("", "")


def test_names_of_a_beginning_are_those_of_the_store(folder: Path) -> None:
    (folder / "npuprof.toml").write_text('presets = ["other/*.toml"]\n')
    for name in (
        "other/d",
        "profiles/base/deep/er/x",
        "profiles/b",
        "profiles/.hidden/b",
        "profiles/ba d",
    ):
        (folder / f"{name}.toml").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(BERT)
    home = find_store(None, {})
    for beginning in ("", "b", "base", "base/", "base/t", "base/training/", "x", "../", "other/"):
        assert home.list_names_beginning(beginning) == [
            name for name in home.names() if name.startswith(beginning)
        ], beginning
    assert home.list_names_beginning("o") == ["other/d"]


def test_zsh_gets_words_with_their_meaning(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_NPUPROF_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "npuprof sho")
    assert run().out == '_arguments \'*: :(("show":"Print the resolved preset"))\''
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "npuprof scan ")
    assert run().out == "_files"


def test_completion_loads_what_it_offers_and_nothing_heavy(folder: Path) -> None:
    code = (
        "import sys; from npuprof.__main__ import main; main([]);"
        "heavy = {'typer', 'git', 'deepdiff', 'tomlkit', 'rich', 'subprocess', 'json', "
        "'dataclasses'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    for line in (
        "npuprof s",
        "npuprof show ",
        "npuprof show bert@",
        "npuprof set bert hccl_timeout=",
        "npuprof render bert --to ",
    ):
        environ = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "_NPUPROF_COMPLETE": "complete_fish",
            "_TYPER_COMPLETE_ARGS": line,
        }
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env={**environ, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
            check=True,
        )
