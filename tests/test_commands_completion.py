"""Completion: what is offered at each place of a command line, and that the shells get it by their own functions."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from building import REPOSITORY
from repositories import Repo
from teams import Team

from npuprof.commands import completion
from npuprof.store import find_store

BERT = '[profile]\nscenario = "training"\n[options]\nprecision_mode_v2 = "mixed_float16"\nhccl_timeout = 600\n'


@pytest.fixture
def folder(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Path:
    repo.commit({"bert": BERT, "base/training": BERT, "mixins/x": BERT})
    repo.git("tag", "-a", "-m", "x", "bert/v1.0.0")
    repo.git("tag", "-a", "-m", "x", "bert/v1.1.0")
    repo.git("branch", "next")
    monkeypatch.chdir(repo.folder)
    return repo.folder


def offered(line: str) -> list[str]:
    """Return what is offered for the last word of a line."""
    *words, current = line.split(" ")
    return [word for word, _ in completion.find_candidates(words, current) if word.startswith(current)]


@pytest.mark.parametrize(
    ("line", "there", "absent"),
    [
        ("", ["show", "check", "git", "--help", "--version"], ["merge-driver", "verb", "application"]),
        ("sh", ["show"], ["check"]),
        ("git ", ["install", "uninstall", "status"], ["merge-driver", "judgement", "show"]),
        ("show ", ["bert", "base/training", "mixins/x"], []),
        ("show b", ["bert", "base/training"], ["mixins/x"]),
        ("show --store profiles b", ["bert"], []),
        ("show bert@", ["bert@1.1.0", "bert@1.0.0", "bert@HEAD", "bert@next"], ["bert@bert/v1.0.0"]),
        ("show bert+", ["bert+mixins/x"], []),
        ("show bert+mixins/x+", ["bert+mixins/x+base/training"], []),
        ("show bert --with ", ["mixins/x"], ["--with"]),
        ("show bert --with=m", ["--with=mixins/x"], []),
        ("render bert --to s", ["session", "session-migrated"], ["toml"]),
        ("render bert --to=t", ["--to=toml"], []),
        ("render bert --", ["--to", "--output", "--set", "--help"], ["-t"]),
        ("new fresh --extends be", ["bert"], []),
        ("show bu", ["builtin:"], []),
        ("show b", ["bert"], ["builtin:"]),
        ("show builtin:", ["builtin:base/training"], ["builtin:bert"]),
        ("show bert+builtin:mix", ["bert+builtin:mixins/deterministic"], []),
        ("release bert ", ["1.1.1", "1.2.0", "2.0.0"], ["1.1.0", "1.0.1"]),
        ("release base/training ", ["1.0.0"], ["1.1.1"]),
        ("check --select NP30", ["NP301", "NP303"], []),
        ("sweep bert --vary hccl_timeo", ["hccl_timeout="], []),
        ("check bert ", ["mixins/x"], []),
        ("check --severity ", ["error", "warning", "info"], []),
        ("check --cann 9", ["9.0.0", "9.1.0"], ["8.0.0"]),
        ("check --product atlas-a", ["atlas-a2", "atlas-a2-training", "atlas-a3"], ["ascend-950"]),
        ("set bert hccl_", ["hccl_timeout="], []),
        ("set bert env.HCCL_C", ["env.HCCL_CONNECT_TIMEOUT="], []),
        ("set bert precision_mode_v2=m", ["precision_mode_v2=mixed_float16"], ["precision_mode_v2=fp16"]),
        ("set bert hcom_parallel=", ["hcom_parallel=true", "hcom_parallel=false"], []),
        ("set bert deterministic=", ["deterministic=0", "deterministic=1"], []),
        ("render bert --set jit_compile=", ["jit_compile=auto"], []),
        ("unset bert ", ["hccl_timeout", "precision_mode_v2"], []),
        ("explain bert precision_", ["precision_mode_v2", "precision_mode"], []),
        ("log bert hccl", ["hccl_timeout"], []),
        ("explain bert profile.", ["profile.scenario", "profile.cann"], []),
        ("explain bert atc.soc", ["atc.soc_version"], []),
        ("set bert profile.sc", ["profile.scenario="], []),
        ("set bert profile.scenario=", ["profile.scenario=training"], []),
        ("set bert hccl_timeout=", ["hccl_timeout=1836"], []),
        ("option hccl", ["hccl_timeout"], []),
        ("rule NP30", ["NP301", "NP302"], ["NP201"]),
        ("diff --rev ", ["HEAD", "next", "bert/v1.0.0"], []),
        ("diff bert m", ["mixins/x"], []),
        ("env bert --shell ", ["bash", "fish", "pwsh"], []),
        ("env bert --format d", ["dotenv", "docker"], []),
        ("restore b", ["bert"], []),
        ("release b", ["bert"], []),
        ("migrate bert --cann 9", ["9.0.0"], []),
        ("diff --rev HEAD..ne", ["HEAD..next"], ["next"]),
        ("diff --rev HEAD...", ["HEAD...next", "HEAD...bert/v1.0.0"], ["HEAD..next"]),
        ("yank bert@", ["bert@1.1.0", "bert@1.0.0"], ["bert@HEAD", "bert@next"]),
        ("yank b", ["bert"], []),
        ("options --risk ", ["numerics", "memory", "performance"], []),
        ("list --where prec", ["precision_mode_v2"], []),
        ("list --where env.HCCL_C", ["env.HCCL_CONNECT_TIMEOUT"], []),
        ("list --store b", ["builtin:"], []),
        ("list --store ", ["builtin:", "profiles/"], []),
        ("trust b", ["builtin:"], []),
        ("show bert ", [], ["bert"]),
        ("shwo ", [], ["bert"]),
    ],
)  # fmt: skip
def test_a_place_is_offered_what_it_takes(folder: Path, line: str, there: list[str], absent: list[str]) -> None:
    found = offered(line)
    assert [word for word in there if word not in found] == [], found
    assert [word for word in absent if word in found] == []


def test_sources_are_offered_as_stores_and_what_they_hold_as_presets(tmp_path: Path, repo: Repo, folder: Path, run: Any) -> None:
    team = Team(tmp_path / "shared")
    team.publish({"base": BERT, "large": BERT}, "", "base/v1.0.0")
    assert run("source", "add", "team", team.url).code == 0
    for line, there in {
        "show te": ["team:"],
        "show team:la": ["team:large"],
        "show bert+team:b": ["bert+team:base"],
        "show team:base@": ["team:base@1.0.0"],
        "list --store te": ["team:"],
        "trust te": ["team:"],
    }.items():  # fmt: skip
        assert offered(line) == there, line


def test_the_newest_version_comes_first(folder: Path) -> None:
    assert offered("show bert@1") == ["bert@1.1.0", "bert@1.0.0"]


@pytest.mark.parametrize("packed", [False, True])
def test_packed_references_are_offered_too(repo: Repo, folder: Path, packed: bool) -> None:
    if packed:
        repo.git("pack-refs", "--all")
    assert {"bert/v1.0.0", "bert/v1.1.0", "next"} <= set(offered("diff --rev "))


def test_words_that_a_shell_would_run_are_not_offered(repo: Repo, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repo.git("branch", "x$(touch${IFS}owned)")
    repo.git("branch", "y`id`")
    (folder / "profiles/evil.toml").write_text("[options]\n'$(id)' = 1\n'a b' = 1\nfine = 1\n")
    for shell, environ in (
        ("complete_zsh", {"_TYPER_COMPLETE_ARGS": "npuprof diff --rev "}),
        ("complete_zsh", {"_TYPER_COMPLETE_ARGS": "npuprof unset evil "}),
        ("complete_bash", {"COMP_WORDS": "npuprof unset evil ", "COMP_CWORD": "3"}),
    ):  # fmt: skip
        assert completion.answer_shell(shell, environ) == 0
        out = capsys.readouterr().out
        assert "$" not in out
        assert "`" not in out
        assert "a b" not in out


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"COMP_WORDS": "npuprof show '", "COMP_CWORD": "2"},
        {"COMP_WORDS": "npuprof show", "COMP_CWORD": "x"},
        {"COMP_WORDS": "", "COMP_CWORD": "9"},
    ],
)
def test_what_cannot_be_completed_offers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], environ: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for shell in ("bash", "zsh", "fish", "powershell"):
        assert completion.answer_shell(f"complete_{shell}", environ) in (0, 1)
        assert "Traceback" not in capsys.readouterr().err


def complete_in(shell: str, folder: Path, line: str) -> list[str]:
    """Return what a shell offers for a line by the function that npuprof installs in it."""
    bin_folder = folder.parent / "bin"
    bin_folder.mkdir(exist_ok=True)
    command = bin_folder / "npuprof"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m npuprof "$@"\n')
    command.chmod(0o755)
    environ = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    asked = {**environ, "_NPUPROF_COMPLETE": f"source_{shell}"}
    shown = subprocess.run([str(command)], env=asked, capture_output=True, text=True, check=True).stdout
    script = folder.parent / f"completion.{shell}"
    script.write_text(shown)
    if shell == "bash":
        words = line.replace("=", " = ").replace("@", " @ ").split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        code = f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _npuprof_completion npuprof"
        code += "; printf '%s\\n' \"${COMPREPLY[@]}\""
        done = subprocess.run(["bash", "--norc", "-c", code], cwd=folder, env=environ, capture_output=True, text=True, check=True)
    elif shell == "fish":
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
    else:
        code = f". {script}; (TabExpansion2 '{line}' {len(line)}).CompletionMatches | ForEach-Object {{ $_.CompletionText }}"
        done = subprocess.run(["pwsh", "-NoProfile", "-Command", code], cwd=folder, env=environ, capture_output=True, text=True, check=True)
    return [row.split("\t")[0] for row in done.stdout.splitlines()]


@pytest.mark.parametrize("project", ["", 'presets = ["other/*.toml"]\n'])
@pytest.mark.parametrize(
    "beginning", ["", "b", "ba", "base", "base/", "base/t", "base/training", "base/training/", "bert.to", "x", "m", "../", "other/"]
)
def test_names_of_a_beginning_are_those_of_the_store(folder: Path, beginning: str, project: str) -> None:
    (folder / "npuprof.toml").write_text(project)
    for name in ("other/d", "profiles/base/deep/er/x", "profiles/b", "profiles/.hidden/b", "profiles/ba d"):
        (folder / f"{name}.toml").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(BERT)
    home = find_store(None, {})
    assert home.list_names_beginning(beginning) == [name for name in home.names() if name.startswith(beginning)]


def test_folders_that_hold_nothing_of_a_beginning_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (read.append(os.path.basename(path)), scan(path))[1])
    assert offered("show base/") == ["base/training"]
    assert read == ["profiles", "base"]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "fish", "pwsh"])
@pytest.mark.parametrize(
    ("line", "expected", "rest"),
    [
        ("npuprof sho", "show", "show"),
        ("npuprof show be", "bert", "bert"),
        ("npuprof render bert --to glo", "global-options", "global-options"),
        ("npuprof set bert precision_mode_v2=mixed_f", "precision_mode_v2=mixed_float16", "mixed_float16"),
        ("npuprof show bert@1.1", "bert@1.1.0", "@1.1.0"),
    ],
)
def test_a_shell_gets_it_by_its_own_function(folder: Path, shell: str, line: str, expected: str, rest: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert (rest if shell == "bash" else expected) in complete_in(shell, folder, line)


#: How a shell is started with nothing of the user's, and made to complete; the command says what it was given.
POSIX = '. ../script; npuprof() { echo "G"OT:"$*"; }; echo REA""DY'
STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], POSIX),
    "bash that splits no @": (["bash", "--norc", "--noprofile", "-i"], f"COMP_WORDBREAKS=${{COMP_WORDBREAKS//@}}; {POSIX}"),
    "zsh": (["zsh", "-f", "-i"], f"autoload -U compinit && compinit -u -D; {POSIX}"),
    "fish": (["fish", "--no-config", "-i"], 'source ../script; function npuprof; echo "G"OT:"$argv"; end; echo REA""DY'),
}


#: What is typed, and what the command is given then.
TYPED = [
    ("npuprof set bert hccl_timeo\t7", "set bert hccl_timeout=7"),
    ("npuprof set bert profile.sce\ttraining", "set bert profile.scenario=training"),
    ("npuprof show ber\t--origin", "show bert --origin"),
    ("npuprof show 'ber\t", "show bert"),
    ("npuprof show bert@1.1\t--origin", "show bert@1.1.0 --origin"),
    ("npuprof show bert@HE\t", "show bert@HEAD"),
    ("npuprof show 'bert@HE\t", "show bert@HEAD"),
    ("npuprof show bert+mixins/x@HE\t", "show bert+mixins/x@HEAD"),
    ("npuprof show bert --with=mix\t", "show bert --with=mixins/x"),
    ("npuprof diff base/training@HE\tbert", "diff base/training@HEAD bert"),
    ("npuprof set bert hccl_timeout=\t", "set bert hccl_timeout=1836"),
    ("npuprof set bert core_type=on\t", "set bert core_type=on"),
    ("npuprof set bert profile.description=on\t", "set bert profile.description=on"),
    ("npuprof explain bert on\t", "explain bert on"),
    ("npuprof yank bert@1.0.0 --why on\t", "yank bert@1.0.0 --why on"),
    ("npuprof undo on\t", "undo on"),
    ("npuprof set bert dump_path=on\t", "set bert dump_path=only"),
    ("npuprof scan on\t", "scan only"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "typed", "told"),
    [(shell, *row) for shell in STARTS for row in TYPED if " " not in shell or "@" in row[0]],
)
def test_a_tab_completes_what_is_meant_and_no_file_where_none_is(folder: Path, shell: str, typed: str, told: str) -> None:
    command, prepare = STARTS[shell]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    complete_in("bash", folder, "npuprof show be")  # which leaves the command there
    (folder / "only").write_text("")  # the one file of its letters, which a shell would offer by itself
    environ = {
        **os.environ,
        "PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}",
        "TERM": "dumb",
        "PS1": "$ ",
        "HOME": str(folder.parent),
    }
    script = subprocess.run(
        ["npuprof"], env={**environ, "_NPUPROF_COMPLETE": f"source_{command[0]}"}, capture_output=True, check=True
    ).stdout
    (folder.parent / "script").write_bytes(script)
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, environ)
    shown = b""

    def read_until(done: Callable[[bytes], bool]) -> None:
        """Read what the shell shows until it is done, and then until it is quiet."""
        nonlocal shown
        end = time.monotonic() + 20
        while time.monotonic() < end and (select.select([screen], [], [], 0.3)[0] or not done(shown)):
            if select.select([screen], [], [], 0)[0]:
                shown += os.read(screen, 65536)

    try:
        os.write(screen, f"{prepare}\n".encode())
        read_until(lambda shown: b"READY" in shown)
        begin, _, rest = typed.partition("\t")
        os.write(screen, begin.encode())
        read_until(lambda shown: shown.endswith(begin.encode()))
        before = len(shown)
        os.write(screen, b"\t")
        read_until(lambda shown: len(shown) > before)
        os.write(screen, f"{rest}\n".encode())
        read_until(lambda shown: b"GOT:" in shown)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(screen)
    assert f"GOT:{told}\r\n" in shown.decode(), shown.decode()


@pytest.mark.slow
def test_zsh_gets_words_with_their_meaning(folder: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_NPUPROF_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "npuprof sho")
    assert run().out == '_arguments \'*: :(("show":"Show a preset resolved"))\''
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "npuprof scan ")
    assert run().out == "_files"


def test_completion_loads_what_it_offers_and_nothing_heavy(folder: Path) -> None:
    code = (
        "import sys; from npuprof.__main__ import main; main([]);"
        "heavy = {'typer', 'git', 'deepdiff', 'tomlkit', 'rich', 'subprocess', 'json', 'dataclasses'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    for line in ("npuprof s", "npuprof show ", "npuprof show bert@", "npuprof set bert hccl_timeout=", "npuprof render bert --to "):
        environ = {**os.environ, "PYTHONPATH": str(REPOSITORY), "_NPUPROF_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
        subprocess.run([sys.executable, "-c", code], cwd=folder, env={**environ, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}, check=True)
