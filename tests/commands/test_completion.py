"""Completion: what is offered at each place of a command line, and that the shells get it by their own functions."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npuprof.commands import completion
from npuprof.store import find_store
from support.building import REPOSITORY
from support.lanes import product_at_night
from support.repositories import ENVIRONMENT, Repo
from support.running import Run
from support.teams import Team

BERT = '[profile]\nscenario = "training"\n[options]\nprecision_mode_v2 = "mixed_float16"\nhccl_timeout = 600\n'


def fill(repo: Repo) -> Path:
    repo.commit({"bert": BERT, "base/training": BERT, "mixins/x": BERT})
    repo.git("tag", "-a", "-m", "x", "bert/v1.0.0")
    repo.git("tag", "-a", "-m", "x", "bert/v1.1.0")
    repo.git("branch", "next")
    return repo.folder


@pytest.fixture
def folder(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fill(repo))
    return repo.folder


def offered(line: str) -> list[str]:
    """Return what is offered for the last word of a line."""
    *words, current = line.split(" ")
    return [word for word, _ in completion.find_candidates(words, current) if word.startswith(current)]


@pytest.mark.parametrize(("line", "there", "absent"), [
    ("", ["show", "check", "git", "--help", "--version"], ["merge-driver", "verb", "application"]),
    ("git ", ["install", "uninstall", "status"], ["merge-driver", "judgement", "show"]),
    ("show ", ["bert", "base/training", "mixins/x"], []), ("show --store profiles b", ["bert"], []),
    ("show bert@", ["bert@1.1.0", "bert@1.0.0", "bert@HEAD", "bert@next"], ["bert@bert/v1.0.0"]), ("show bert+", ["bert+mixins/x"], []),
    ("show bert --with ", ["mixins/x"], ["--with"]), ("render bert --to s", ["session", "session-migrated"], ["toml"]),
    ("render bert --", ["--to", "--output", "--set", "--help"], ["-t"]), ("show bu", ["builtin:"], []),
    ("show builtin:", ["builtin:base/training"], ["builtin:bert"]), ("release bert ", ["1.1.1", "1.2.0", "2.0.0"], ["1.1.0", "1.0.1"]),
    ("check --select NP30", ["NP301", "NP303"], []), ("sweep bert --vary hccl_timeo", ["hccl_timeout="], []),
    ("check --cann 9", ["9.0.0", "9.1.0"], ["8.0.0"]), ("set bert hccl_", ["hccl_timeout="], []),
    ("set bert precision_mode_v2=m", ["precision_mode_v2=mixed_float16"], ["precision_mode_v2=fp16"]),
    ("set bert deterministic=", ["deterministic=0", "deterministic=1"], []), ("unset bert ", ["hccl_timeout", "precision_mode_v2"], []),
    ("log bert hccl", ["hccl_timeout"], []), ("explain bert profile.", ["profile.scenario", "profile.cann"], []),
    ("set bert profile.sc", ["profile.scenario="], []), ("set bert hccl_timeout=", ["hccl_timeout=1836"], []),
    ("rule NP30", ["NP301", "NP302"], ["NP201"]), ("diff --rev ", ["HEAD", "next", "bert/v1.0.0"], []),
    ("env bert --shell ", ["bash", "fish", "pwsh"], []), ("diff --rev HEAD..ne", ["HEAD..next"], ["next"]),
    ("diff --rev HEAD...", ["HEAD...next", "HEAD...bert/v1.0.0"], ["HEAD..next"]),
    ("yank bert@", ["bert@1.1.0", "bert@1.0.0"], ["bert@HEAD", "bert@next"]),
    ("options --risk ", ["numerics", "memory", "performance"], []), ("list --where prec", ["precision_mode_v2"], []),
    ("list --store b", ["builtin:"], []), ("list --store ", ["builtin:", "profiles/"], []), ("show bert ", [], ["bert"]),
    ("shwo ", [], ["bert"]),
])  # fmt: skip
def test_a_place_is_offered_what_it_takes(folder: Path, line: str, there: list[str], absent: list[str]) -> None:
    found = offered(line)
    assert [word for word in there if word not in found] == [], found
    assert [word for word in absent if word in found] == []


def test_sources_are_offered_as_stores_and_what_they_hold_as_presets(tmp_path: Path, repo: Repo, folder: Path, run: Run) -> None:
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


@pytest.mark.parametrize("environ", [
    {"COMP_WORDS": "npuprof show '", "COMP_CWORD": "2"}, {"COMP_WORDS": "npuprof show", "COMP_CWORD": "x"},
    {"COMP_WORDS": "npuprof show ", "COMP_CWORD": "2"}, {"COMP_WORDS": "npuprof nothing x", "COMP_CWORD": "2"},
])  # fmt: skip
def test_what_cannot_be_completed_offers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], environ: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (completion.answer_shell("complete_bash", environ), capsys.readouterr()) == (0, ("", ""))


def install_command(folder: Path) -> Path:
    """Have the command in a folder, which is returned."""
    folder.mkdir(exist_ok=True)
    command = folder / "npuprof"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m npuprof "$@"\n')
    command.chmod(0o755)
    return folder


def write_script(shell: str, environ: dict[str, str]) -> bytes:
    """Return what npuprof has a shell run to complete its words."""
    asked = {**environ, "_NPUPROF_COMPLETE": f"source_{shell}"}
    return subprocess.run(["npuprof"], env=asked, capture_output=True, check=True).stdout


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
    ("npuprof set bert hccl_timeo\t7", "set bert hccl_timeout=7"), ("npuprof show ber\t--origin", "show bert --origin"),
    ("npuprof show 'ber\t", "show bert"), ("npuprof show bert@1.1\t--origin", "show bert@1.1.0 --origin"),
    ("npuprof show 'bert@HE\t", "show bert@HEAD"), ("npuprof show bert --with=mix\t", "show bert --with=mixins/x"),
    ("npuprof diff base/training@HE\tbert", "diff base/training@HEAD bert"),
    ("npuprof set bert hccl_timeout=\t", "set bert hccl_timeout=1836"), ("npuprof yank bert@1.0.0 --why on\t", "yank bert@1.0.0 --why on"),
    ("npuprof set bert dump_path=on\t", "set bert dump_path=only"), ("npuprof scan on\t", "scan only"),
]  # fmt: skip


class Shell:
    """An interactive shell in which the words of npuprof are completed, and npuprof says what it was given."""

    def __init__(self, command: list[str], prepare: str, folder: Path, environ: dict[str, str]) -> None:
        self.shown = b""
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environ)
        self.type(f"{prepare}\n", lambda shown: b"READY" in shown)
        self.wait(0.3, lambda shown: True)

    def type(self, text: str, done: Callable[[bytes], bool], quiet: float = 0) -> bytes:
        """Type a text; return what is shown until that is what it should be, and the shell is quiet."""
        before = len(self.shown)
        os.write(self.screen, text.encode())
        self.wait(quiet, lambda shown: done(shown[before:]))
        return self.shown[before:]

    def wait(self, quiet: float, done: Callable[[bytes], bool]) -> None:
        ends = time.monotonic() + 20
        while time.monotonic() < ends and (not done(self.shown) or select.select([self.screen], [], [], quiet)[0]):
            if select.select([self.screen], [], [], 0.3)[0]:
                self.shown += os.read(self.screen, 65536)

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.screen)


@pytest.fixture(scope="module")
def open_shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Shell]]:
    """Return the session of a shell, in a folder with one file of letters that a shell would offer by itself."""
    top = tmp_path_factory.mktemp("shells")
    folder = fill(Repo(top / "repo"))
    (folder / "only").write_text("")
    path = f"{install_command(top / 'bin')}:{os.environ['PATH']}"
    environ = {**os.environ, **ENVIRONMENT, "PATH": path, "TERM": "dumb", "PS1": "$ ", "HOME": str(top)}
    sessions: dict[str, Shell] = {}

    def open_session(name: str) -> Shell:
        if name not in sessions:
            command, prepare = STARTS[name]
            (top / "script").write_bytes(write_script(command[0], environ))
            sessions[name] = Shell(command, prepare, folder, environ)
        return sessions[name]

    yield open_session
    for session in sessions.values():
        session.close()


@pytest.mark.parametrize(("typed", "shell"), product_at_night(2, TYPED, STARTS))
def test_a_tab_completes_what_is_meant_and_no_file_where_none_is(
    open_shell: Callable[[str], Shell], typed: tuple[str, str], shell: str
) -> None:
    if shutil.which(STARTS[shell][0][0]) is None:
        pytest.skip(f"{STARTS[shell][0][0]} is not installed")
    session = open_shell(shell)
    (words, told) = typed
    begin, _, rest = words.partition("\t")
    session.type(begin, lambda shown: shown.endswith(begin.encode()))
    session.type("\t", bool, quiet=0.3)
    shown = session.type(f"{rest}\n", lambda shown: re.search(rb"GOT:.*\r\n", shown) is not None, quiet=0.1)
    assert f"GOT:{told}\r\n" in shown.decode(), session.shown.decode()


def test_zsh_gets_words_with_their_meaning(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_NPUPROF_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "npuprof sho")
    assert run().out == '_arguments \'*: :(("show":"Print the resolved preset"))\''
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
