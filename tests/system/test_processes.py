"""Child processes: which may start in a clone of a stranger, with which flags.

None that hangs is waited for without end.
"""

from __future__ import annotations

import ast
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from npuprof.commands.framework import list_verb_names
from npuprof.model import NpuprofError
from npuprof.store.gitstore.objects import Git
from npuprof.store.sources.transport import build_program_variables
from npuprof.system import processes
from support.building import REPOSITORY
from support.lanes import rest_at_night
from support.planted import configure_everything, plant_bare_repository
from support.repositories import ENVIRONMENT, Repo
from support.running import Run
from support.waiting import PATIENCE

#: Calls that start a process, by module.
STARTING = {
    "os": ("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"),
    "pty": ("fork", "spawn"),
    "subprocess": (
        "Popen",
        "run",
        "call",
        "check_call",
        "check_output",
        "getoutput",
        "getstatusoutput",
    ),
}


def list_starts(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            module, name = node.func.value.id, node.func.attr
            if name in STARTING.get(module, ()) or (
                module == "os" and name.startswith(("exec", "spawn"))
            ):
                yield f"{module}.{name}"
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
            yield from (
                f"import {name}"
                for name in names
                if name.split(".")[0] in ("multiprocessing", "asyncio", "concurrent")
            )


def test_processes_start_in_one_module() -> None:
    starting = {
        str(path.relative_to(REPOSITORY)): found
        for path in (REPOSITORY / "npuprof").rglob("*.py")
        if (found := [*list_starts(path)])
    }
    assert set(starting) == {"npuprof/system/processes.py"}, starting
    assert len(starting["npuprof/system/processes.py"]) >= 4


# -- a clone of a stranger ------------------------------------------------------------------------

#: Writes down with which words it was started, and is the program that it stands for.
RECORDER = """\
#!{python} -IS
import json, os, sys
with open({log!r}, "a") as file:
    environ = {{name: os.environ.get(name) for name in {watched!r}}}
    file.write(json.dumps([{name!r}, sys.argv[1:], environ]) + "\\n")
os.execv({real!r}, [{real!r}, *sys.argv[1:]])
"""
#: What has to stand on the command line of any git, and of one that reads.
ALWAYS = {"safe.bareRepository=explicit", "core.fsmonitor=false"}
OFFLINE = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}
READING = {
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "diff.external=",
    "log.showSignature=false",
}
#: git of the user's own, asked for a path in the repository: where the hooks are is what the
#: configuration says.
PLAIN = [["rev-parse", "--git-path"], ["config", "--show-scope", "-z", "--get-all"]]
#: What each verb is given; most of them end in an error of their own.
VERBS = {
    "list": "--versions",
    "show": "leaf@HEAD",
    "explain": "leaf hccl_timeout",
    "check": "--rev HEAD",
    "diff": "--rev HEAD~1",
    "render": "leaf",
    "env": "leaf",
    "log": "leaf",
    "blame": "leaf",
    "verify": "--tags",
    "whatran": "leaf",
    "doctor": "leaf",
    "scan": ".",
    "import": "train.py",
    "adopt": "train.py --dry-run",
    "inject": ". --all --check",
    "review": "",
    "migrate": "--all --cann 9.0.0 --dry-run",
    "release": "leaf --dry-run",
    "restore": "leaf@HEAD --dry-run",
    "set": "leaf hccl_timeout=900",
    "unset": "leaf hccl_timeout",
    "new": "other",
    "rename": "leaf twig",
    "copy": "leaf twig",
    "yank": "leaf@1.0.0 --why x --dry-run",
    "init": "",
    "option": "hccl_timeout",
    "options": "",
    "rule": "NP202",
    "help": "usage",
    "schema": "",
    "trust": "",
    "site": "out",
    "git status": "",
    "git uninstall": "",
    "source list": "",
    "source remove": "team",
    "source vendor": "",
}
#: They start what the user names, have hooks and filters run as git does, or talk to a remote.
OTHERS = {
    "run",
    "bisect",
    "sweep",
    "commit",
    "git install",
    "source add",
    "source sync",
    "source update",
}


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A foreign repository that names a program in every setting, and shadows Python's modules."""
    repo = Repo(tmp_path / "clone")
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    repo.commit({"leaf": "[options]\nhccl_timeout = 700\n"})
    repo.release("leaf", "1.0.0")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{tmp_path}/started'\ncat\n")
    program.chmod(0o755)
    configure_everything(repo, program)
    (repo.folder / "planted").mkdir()
    plant_bare_repository(repo.folder / "planted", program)
    (repo.folder / "train.py").write_text(
        'import npu_bridge\ncustom_op.parameter_map["precision_mode"].s = b"x"\n'
    )
    for name in ("json", "site", "subprocess", "sitecustomize", "usercustomize", "git", "tomlkit"):
        (repo.folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'started')!r}, 'a').write('{name}.py')\n"
        )
    for name in ("git", "python3", "less", "ssh", "sh"):
        shutil.copy(program, repo.folder / name)
    monkeypatch.chdir(repo.folder)
    return repo


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Any]]:
    """Put recorders on PATH, behind a folder of the clone.

    Return what tells what they were started with since the last time.
    """
    folder, log = tmp_path / "recorders", tmp_path / "log"
    folder.mkdir()
    for name in ("git", "python3", "python", "less", "ssh", "sh", "gpg", "tput", "stty", "uname"):
        if real := shutil.which(name):
            text = RECORDER.format(
                python=sys.executable, log=str(log), name=name, watched=list(OFFLINE), real=real
            )
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f".:{folder}")

    def take() -> list[Any]:
        found = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        return found

    return take


#: Names of filters: words that git also prints for the state of an attribute, bytes that are no
#: text, and a plain one.
FILTERS = (b"evil", b"set", b"\xff", b"a=b")
#: Verbs that compare or read files of a work tree, and what they are given.
COMPARING = (
    "whatran {digest}",
    "restore job@1.0.0",
    "commit --dry-run",
    "release --all --dry-run",
    "diff --rev HEAD",
    "log job",
    "list",
)


@pytest.mark.parametrize("name", FILTERS)
def test_a_verb_that_reads_runs_no_filter_of_the_clone(
    name: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    repo = Repo(tmp_path / "clone")
    repo.commit({"job": "[options]\nhccl_timeout = 600\n"})
    repo.release("job", "1.0.0")
    monkeypatch.chdir(repo.folder)
    digest = json.loads(run("show", "job@1.0.0", "--format", "json").out)["digest"]
    repo.git(
        "mv", "profiles/job.toml", "profiles/other.toml"
    )  # a staged rename, and an index that knows another time
    os.utime(repo.folder / "profiles/other.toml", (10**9, 10**9))
    (repo.folder / "profiles/job.toml").write_text("[options]\nhccl_timeout = 700\n")
    marker = tmp_path / "ran"
    (repo.folder / ".gitattributes").write_bytes(b"* filter=" + name + b"\n")
    with (repo.folder / ".git/config").open("ab") as file:
        file.write(
            b'[filter "'
            + name
            + f'"]\n\tclean = "echo >> {marker}; cat"\n'.encode()
            + f'\tsmudge = "echo >> {marker}; cat"\n'.encode()
        )
    for arguments in COMPARING:
        run(*arguments.format(digest=digest).split())
        assert not marker.exists(), arguments
    subprocess.run(
        ["git", "add", "profiles/job.toml"], cwd=repo.folder, check=True, capture_output=True
    )
    assert marker.exists()  # git itself runs it


def test_every_verb_is_tried_in_the_clone() -> None:
    assert set(VERBS) | OTHERS == {" ".join(arguments) for arguments, _ in list_verb_names()}


@pytest.mark.parametrize("verb", rest_at_night(2, VERBS))
def test_in_a_clone_of_a_stranger_nothing_starts_but_git_that_reads_and_python_apart(
    verb: str,
    clone: Repo,
    recorded: Callable[[], list[Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = [sys.executable, "-P", "-m", "npuprof", *verb.split(), *VERBS[verb].split()]
    environ = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(arguments, capture_output=True, env=environ, timeout=100, check=False)
    assert done.returncode in (0, 1, 2), done.stderr
    assert not (tmp_path / "started").exists(), (tmp_path / "started").read_text()
    for name, command, environment in recorded():
        if name == "git":
            settings = {
                command[place + 1] for place, argument in enumerate(command) if argument == "-c"
            }
            is_plain = any(command[-len(arguments) - 1 : -1] == arguments for arguments in PLAIN)
            assert settings >= (ALWAYS if is_plain else ALWAYS | READING), " ".join(command[-4:])
            assert is_plain or environment == OFFLINE, " ".join(command[-4:])
        else:
            assert name == "python3", (name, command)
            assert command[:2] == ["-I", "-c"], (name, command)


def test_git_that_commits_runs_hooks_and_no_monitor_of_the_file_system(
    tmp_path: Path, repo: Repo, run: Run
) -> None:
    repo.commit({"job": "[options]\nhccl_timeout = 600\n"})
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho \"$0\" >> '{tmp_path}/started'\n")
    program.chmod(0o755)
    (repo.folder / ".git/hooks").mkdir(exist_ok=True)
    (repo.folder / ".git/hooks/pre-commit").symlink_to(program)
    repo.git("config", "core.fsmonitor", str(program))
    repo.write({"job": "[options]\nhccl_timeout = 700\n"})
    assert run("commit").code == 0
    assert (tmp_path / "started").read_text() == ".git/hooks/pre-commit\n"


def test_the_recorders_see_what_starts(clone: Repo, recorded: Callable[[], list[Any]]) -> None:
    environ = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(REPOSITORY)}
    for arguments in (["log", "leaf"], ["doctor"]):
        subprocess.run(
            [sys.executable, "-P", "-m", "npuprof", *arguments],
            capture_output=True,
            env=environ,
            check=False,
        )
    assert {name for name, _, _ in recorded()} == {"git", "python3"}


@pytest.mark.parametrize(
    ("scope", "started"),
    [
        ("--local", set()),
        ("--worktree", set()),
        ("--global", {"ssh", "every", "host"}),
        ("command", {"ssh", "every", "host"}),
    ],
)
def test_a_transport_starts_the_ssh_and_the_credential_helpers_of_the_user_and_none_of_a_repository(
    scope: str, started: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo(tmp_path / "clone")
    repo.git("config", "extensions.worktreeConfig", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    marks = {
        "core.sshCommand": "ssh",
        "credential.helper": "every",
        "credential.https://h.helper": "host",
    }
    for number, (name, mark) in enumerate(marks.items()):
        program = f"{'!' if mark != 'ssh' else ''}touch {tmp_path}/started-{mark};:"
        if scope == "command":
            for key, text in {
                "COUNT": f"{number + 1}",
                f"KEY_{number}": name,
                f"VALUE_{number}": program,
            }.items():
                monkeypatch.setenv(f"GIT_CONFIG_{key}", text)
        else:
            subprocess.run(["git", "config", scope, name, program], cwd=repo.folder, check=True)
    for program in ("", str(tmp_path / "own")):
        monkeypatch.setenv("GIT_SSH", program)
        (tmp_path / "own").write_text("#!/bin/sh\n")
        (tmp_path / "own").chmod(0o755)
        git = Git(
            str(repo.folder),
            build_program_variables(Git(str(repo.folder)), 1.0),
            profile=processes.NETWORK,
        )
        assert git.try_command("ls-remote", "ssh://127.0.0.1:9/x").code
        assert git.try_command("credential", "fill", stdin=b"protocol=https\nhost=h\n\n").code
        assert {path.name.partition("-")[2] for path in tmp_path.glob("started-*")} == started


# -- what would be waited for ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("HEAD", "list"),
        ("packed-refs", "log leaf"),
        ("shallow", "diff --rev HEAD"),
        ("index", "scan ."),
        ("info/exclude", "log leaf"),
        ("config", "list"),
        ("refs/heads/x", "diff --rev HEAD"),
        ("logs/HEAD", "log leaf"),
        ("objects/info/alternates", "log leaf"),
        ("objects/info/commit-graphs/commit-graph-chain", "diff --rev HEAD"),
        ("objects/pack/multi-pack-index", "log leaf"),
        (".", "list"),
        (".", "log leaf"),
        (".", "diff --rev HEAD"),
        (".", "scan ."),
    ],
)
def test_a_pipe_in_git_s_folder_is_told_and_not_waited_for(
    name: str, verb: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo(tmp_path / "clone")
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    monkeypatch.chdir(repo.folder)
    path = repo.folder / ".git" / name
    if name == ".":
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(repo.folder / ".git" if name == "." else path)
    monkeypatch.setattr(processes, "PATIENCE", 5.0)
    done = run(*verb.split())  # list asks git only if there are tags
    assert done.code == (2 if verb.startswith(("log", "diff")) else 0), done.err
    assert ("a named pipe" in done.err) == (name not in ("HEAD", "config")), done.err


def test_git_that_says_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo(tmp_path / "clone")
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    os.mkfifo(repo.folder / "never")
    monkeypatch.setattr(processes, "PATIENCE", 0.05)
    git = Git(
        str(repo.folder),
        {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "include.path",
            "GIT_CONFIG_VALUE_0": f"{repo.folder}/never",
        },
    )
    with pytest.raises(NpuprofError, match="it did not answer"):
        git.run_command("log")
    with pytest.raises(NpuprofError, match="it did not answer"):
        git.read_objects(["HEAD"])
    with pytest.raises(NpuprofError, match="it did not answer"):
        list(git.stream_output("log"))


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        ("list", 0),
        ("list --versions", 2),
        ("show leaf@1.0.0", 2),
        ("check --rev HEAD", 2),
        ("diff --rev HEAD", 2),
        ("log leaf", 2),
        ("verify --tags", 2),
        ("site out", 0),
        ("scan .", 0),
        ("git status", 2),
        ("explain leaf hccl_timeout", 0),
    ],
)
def test_what_a_silent_git_would_have_answered_is_reported_by_each_verb(
    verb: str, code: int, repo: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    repo.release("leaf", "1.0.0")
    (repo.folder / "train.py").write_text('import os\nos.environ["HCCL_CONNECT_TIMEOUT"] = "600"\n')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text("#!/bin/sh\nexec sleep 100\n")
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(processes, "PATIENCE", 0.05)
    done = run(*verb.split())
    assert done.code == code, done.err
    assert done.err.count("it did not answer in time") == 1, done.err


def read_all(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (place, *place.rglob("*")) if path.is_file()}


def plant_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize(
    "name",
    [
        ".git/logs/HEAD",
        ".git/logs/refs/heads/main",
        ".git/objects/info/commit-graphs/commit-graph-chain",
        ".gitattributes",
        "profiles/.gitignore",
    ],
)
def test_a_pipe_is_rejected_by_name_before_a_verb_that_writes_starts_git(
    name: str, repo: Repo, run: Run
) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    repo.release("leaf", "1.0.0")
    repo.write({"leaf": "[options]\nhccl_timeout = 700\n"})
    plant_pipe(repo.folder / name)
    for arguments in (
        ("commit", "leaf"),
        ("yank", "leaf@1.0.0", "--why", "x"),
        ("release", "leaf", "2.0.0"),
        ("restore", "leaf@HEAD"),
    ):
        done = run(*arguments)
        assert done.code == 2, done.err
        assert f"{repo.folder / name}: it is a named pipe" in done.err, done.err


#: Lines of a configuration that name the file ``odd`` at the top of the repository.
NAMING = [
    "[include]\n\tpath = ../odd",
    "[Include] PATH = ../odd ; a comment",
    '[includeIf "gitdir:**"]\npath = "../o"dd',
    "[a] [include] path = ../odd",
    "[include]\r\npath = ../o\\\r\ndd\r",
    "[include]\npath = ~/odd",
    "[core]\nexcludesFile = odd",
    '[core]\nattributesfile = "{top}/odd"',
    "[include]\npath = ../other",
]


@pytest.mark.parametrize("line", NAMING)
@pytest.mark.parametrize("scope", ["--local", "--worktree", "--global", "nested"])
def test_a_pipe_that_a_configuration_names_is_rejected_by_name(
    line: str, scope: str, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    repo.git("config", "extensions.worktreeConfig", "true")
    monkeypatch.setenv("HOME", str(repo.folder))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(repo.folder / ".git/user"))
    named = {
        "--local": ".git/config",
        "--worktree": ".git/config.worktree",
        "--global": ".git/user",
        "nested": ".git/inner",
    }[scope]
    if scope == "nested":
        repo.git("config", "include.path", "inner")
    plant_pipe(repo.folder / "odd")
    (repo.folder / "other").write_text("[include]\npath = odd\n")
    with (repo.folder / named).open("a", newline="") as file:
        file.write(
            f"{line.replace('{top}', str(repo.folder).replace(chr(34), chr(92) + chr(34)))}\n"
        )
    monkeypatch.setattr(processes, "PATIENCE", 5.0)
    done = run("log", "leaf")
    assert done.code == 2, done.err
    assert "odd: it is a named pipe" in done.err, done.err
    assert "rm " not in done.err, done.err


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "/dev/tty"])
@pytest.mark.parametrize(
    "name",
    [
        ".git/refs/tags",
        ".git/refs/tags/leaf/v2.0.0",
        ".git/refs/replace",
        ".git/reftable/tables.list",
        ".git/objects/ab/cd",
        ".gitignore",
        "profiles/deep/.gitignore",
        "profiles/deep/.gitattributes",
        "profiles/inner/.git/HEAD",
    ],
)
def test_list_shows_presets_and_names_the_special_file_that_hides_their_versions(
    name: str, kind: str, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    repo.release("leaf", "1.0.0")
    path = repo.folder / name
    if path.is_dir():
        shutil.rmtree(path)
    plant_pipe(path)
    if kind != "pipe":
        path.unlink()
        path.symlink_to(kind)
    monkeypatch.setattr(processes, "PATIENCE", 5.0)
    done = run("list")
    assert "leaf" in done.out, done
    assert f"warning NP021: git cannot use {path}: it is a" in done.err, done
    assert run("list", "--versions").code == 2


def test_special_files_that_git_does_not_wait_for_are_no_error(
    repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    repo.release("leaf", "1.0.0")
    for name in ("core.excludesFile", "core.attributesFile", "include.path"):
        repo.git("config", name, os.devnull)
    (repo.folder / ".git/info/exclude").unlink(missing_ok=True)
    (repo.folder / ".git/info/exclude").symlink_to(os.devnull)
    plant_pipe(repo.folder / ".mailmap")
    monkeypatch.chdir(repo.folder / ".git")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("fsmonitor--daemon.ipc")
    monkeypatch.chdir(repo.folder)
    monkeypatch.setattr(processes, "PATIENCE", 5.0)
    for arguments in (
        ("list",),
        ("list", "--versions"),
        ("log", "leaf"),
        ("diff", "--rev", "HEAD"),
        ("scan", "."),
    ):
        done = run(*arguments)
        assert done.code == 0, done.err
        assert "warning" not in done.err, done.err
    assert "1.0.0" in run("list").out


@pytest.mark.parametrize("broken", ["refs/tags/leaf/v1.0.0", "packed-refs"])
def test_versions_that_git_cannot_read_are_reported(broken: str, repo: Repo, run: Run) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    repo.release("leaf", "1.0.0")
    (repo.folder / ".git" / broken).write_text("no ref\n")
    for arguments in (("list",), ("list", "--versions"), ("site", "out")):
        done = run(*arguments)
        assert "NP022: git failed: " in done.err, done


def test_versions_are_listed_without_the_folder_of_loose_tags(repo: Repo, run: Run) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    repo.release("leaf", "1.0.0")
    repo.git("pack-refs", "--all")
    shutil.rmtree(repo.folder / ".git/refs/tags")
    assert "1.0.0" in run("list").out


@pytest.mark.parametrize(
    ("kind", "level"),
    [("pipe", 0), ("device", 3), ("pipe", 6), ("circle", 2), ("quoted", 1), ("long", 0)],
)
def test_alternates_are_looked_at_as_deep_as_git_follows_them(
    kind: str, level: int, repo: Repo, run: Run
) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    objects = repo.folder / ".git/objects"
    for number in range(level):
        there = repo.folder / f'store "{number}"'
        (there / "info").mkdir(parents=True)
        quoted = f'"{there}"'.replace(' "', ' \\"').replace('""', '\\""')
        (objects / "info/alternates").write_text(
            f"# others\n{quoted if kind == 'quoted' else there}\n"
        )
        objects = there
    listed = objects / "info/alternates"
    if kind == "device":
        listed.symlink_to("/dev/zero")
    elif kind == "circle":
        listed.write_text(f"{repo.folder}/.git/objects\n")
    elif kind == "long":
        listed.write_text("#\n" * (1 << 20))
    else:
        plant_pipe(listed)
    done = run("log", "leaf")
    assert (done.code, str(listed) in done.err) == (
        (0, False) if kind == "circle" else (2, True)
    ), done.err


@pytest.mark.parametrize("lines", ['"\\x"', '"abc\\"', '"\\000a"'])
def test_a_quoted_alternate_that_is_no_path_is_a_finding(lines: str, repo: Repo, run: Run) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    (repo.folder / ".git/objects/info/alternates").write_text(f"{lines}\n")
    assert run("log", "leaf").code == 2
    assert "NP021" in run("log", "leaf").err


def test_settings_of_a_repository_give_no_password_to_another_server_and_write_no_file(
    repo: Repo,
) -> None:
    theirs = {
        "http.sslVerify": "false",
        "http.https://h/.sslVerify": "false",
        "http.curloptResolve": "h:443:127.0.0.1",
        "http.saveCookies": "true",
        "http.cookieFile": "/home/ada/.bashrc",
        "http.proxy": "http://evil",
        "http.https://h/.extraHeader": "X: 1",
    }
    for name, value in theirs.items():
        repo.git("config", name, value)
    git = Git(str(repo.folder))
    requested = Git(str(repo.folder), build_program_variables(git, 5))
    output = {
        name: requested.run_command("config", "--get", name).decode().strip() for name in theirs
    }
    assert output == {
        **dict.fromkeys(theirs, ""),
        "http.sslVerify": "true",
        "http.https://h/.sslVerify": "true",
        "http.saveCookies": "false",
        "http.https://h/.extraHeader": "X: 1",
    }


@pytest.mark.parametrize("name", [".git", ".git/commondir", ".git/objects/info/alternates"])
def test_a_path_of_git_with_a_nul_byte_in_it_is_a_finding(name: str, repo: Repo, run: Run) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    if name == ".git":
        (repo.folder / ".git").rename(repo.folder / "meta")
    (repo.folder / name).write_bytes(b"gitdir: a\0b\n")
    for arguments in (
        ("list", "--versions"),
        ("diff",),
        ("commit",),
        ("git", "install"),
        ("log", "leaf"),
    ):
        done = run(*arguments)
        assert done.code in (0, 1, 2), done.err
    assert f"{repo.folder / name}: it contains a NUL byte" in done.err


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the system limits no memory of another process"
)
def test_git_that_reads_takes_a_bounded_memory_whatever_file_the_configuration_names(
    repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    monkeypatch.setattr(processes, "MEMORY", 64 << 20)
    repo.git("config", "diff.orderFile", "/dev/zero")
    assert run("log", "leaf").code == 0
    for name, text in {
        "COUNT": "1",
        "KEY_0": "core.attributesFile",
        "VALUE_0": "/dev/zero",
    }.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", text)
    done = run("git", "status")
    assert done.code == 2, done.err
    assert "Out of memory" in done.err, done.err


# -- what would be written elsewhere --------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "COMMIT_EDITMSG",
        "index",
        "config",
        "logs",
        "logs/HEAD",
        "refs/tags",
        "refs/heads/main",
        "objects",
        "objects/00",
    ],
)
def test_nothing_is_written_through_a_link_of_git_s_folder(
    name: str, repo: Repo, run: Run, tmp_path: Path
) -> None:
    repo.commit({"leaf": "[options]\nhccl_timeout = 600\n"})
    repo.release("leaf", "1.0.0")
    repo.commit({"leaf": "[options]\nhccl_timeout = 700\n"})
    repo.write({"other": ""})
    link, outside = repo.folder / ".git" / name, tmp_path / "outside"
    if link.exists():
        link.rename(outside)
    link.symlink_to(outside)
    before = read_all(outside)
    for arguments in (
        ("commit", "other"),
        ("yank", "leaf@1.0.0", "--why", "x"),
        ("release", "leaf", "2.0.0"),
        ("git", "install"),
    ):
        done = run(*arguments)
        assert done.code == 2, done.err
        assert f"NP941: {link} is a link to {outside}" in done.err, done.err
    assert read_all(outside) == before


def test_a_program_is_looked_for_in_absolute_folders_of_path_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "git").write_text("#!/bin/sh\n")
    (tmp_path / "git").chmod(0o755)
    for path in (".", "", ":", "./:bin"):
        monkeypatch.setenv("PATH", path)
        assert processes.find_program("git") is None
    monkeypatch.setenv("PATH", f".:{tmp_path}")
    assert processes.find_program("git") == str(tmp_path / "git")


def test_what_a_process_takes_and_says_may_be_long() -> None:
    data = os.urandom(3 << 20)
    process = subprocess.Popen(
        ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert processes.finish(process, data) == (data, b"")
    assert process.returncode == 0
    process = subprocess.Popen(
        ["true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert processes.finish(process, data) == (b"", b"")


def start_shell(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize(
    "script",
    [
        "exec sleep 100",
        "echo a; exec sleep 100",
        "echo a >&2; exec sleep 100",
        "exec >&-; exec sleep 100",
        "exec sleep 100 >&- 2>&-",
    ],
)
def test_a_child_without_a_byte_is_ended_whatever_it_has_closed(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.05)
    process = start_shell(f"exec 3>&-; {script}")
    with pytest.raises(processes.SilentError):
        processes.finish(process)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("script", ["yes", "yes >&2", "while echo a >&2; do sleep 0.01; done"])
def test_a_child_that_writes_without_end_is_ended(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MEMORY", 1 << 20)
    monkeypatch.setattr(processes, "_LONGEST", 0.01)
    process = start_shell(script)
    with pytest.raises(processes.SilentError):
        processes.finish(process)
    assert process.wait() == -signal.SIGKILL


def test_each_byte_of_a_child_restarts_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts: list[float] = []

    class RecordingPoll:
        def __init__(self) -> None:
            self._poll = select.poll()
            self.register, self.unregister = self._poll.register, self._poll.unregister

        def poll(self, timeout: float) -> list[tuple[int, int]]:
            timeouts.append(timeout)
            return self._poll.poll(PATIENCE * 1000)

    recording = SimpleNamespace(**{**vars(select), "poll": RecordingPoll})
    monkeypatch.setattr(processes, "select", recording)
    monkeypatch.setattr(processes, "PATIENCE", 3)
    process = start_shell("for number in 1 2; do echo $number; echo $number >&2; done")
    assert processes.finish(process) == (b"1\n2\n", b"1\n2\n")
    assert set(timeouts) == {3000}
    timeouts.clear()
    assert processes.finish(start_shell("echo a"), patience=100) == (b"a\n", b"")
    assert set(timeouts) == {300_000}


def test_a_child_with_many_messages_is_read_and_not_waited_for() -> None:
    process = start_shell("head -c 3000000 /dev/zero >&2; echo a; echo b; exec cat >&2")
    replies = processes.Replies(process, b"c" * (3 << 20))
    assert replies.read_line() == b"a\n"
    assert replies.read(2) == b"b\n"
    assert replies.read_some() == b""
    code, messages = replies.finish()
    assert code == 0
    assert len(messages) < 2 << 20


def test_the_output_of_a_child_is_whole_although_one_that_it_left_behind_has_its_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.5)
    process = start_shell("sleep 5 & echo a")
    assert processes.finish(process) == (b"a\n", b"")
    assert process.returncode == 0


def test_a_child_that_cannot_be_ended_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.05)
    process = start_shell("exec sleep 100")
    end, process.kill = process.kill, lambda: None  # type: ignore[method-assign]
    with pytest.raises(processes.SilentError):
        processes.finish(process)
    end()
    process.wait()


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processors, and only the threads that the test starts: other tests may have left some."""
    before, count_threads = threading.active_count(), threading.active_count
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    monkeypatch.setattr(threading, "active_count", lambda: count_threads() - before + 1)


@pytest.fixture
def copy_works() -> Iterator[Callable[[], None]]:
    """Return what each process calls in a batch: in its first one it waits for the other."""
    parent = os.getpid()
    of_parent, of_copy = os.pipe(), os.pipe()
    met: list[bytes] = []

    def meet() -> None:
        own, other = (of_parent, of_copy) if os.getpid() == parent else (of_copy, of_parent)
        if not met:
            os.write(own[1], b"x")
            met.append(os.read(other[0], 1))

    yield meet
    for end in (*of_parent, *of_copy):
        os.close(end)


@pytest.mark.usefixtures("two_processors")
def test_batches_are_shared_out_among_the_process_and_its_copy_in_order(
    copy_works: Callable[[], None],
) -> None:
    parent = os.getpid()
    prepared: list[int] = []

    def work(batch: int) -> tuple[int, int, list[int]]:
        copy_works()
        return batch, os.getpid(), prepared

    results = list(
        processes.map_in_processes(work, range(40), lambda: prepared.append(os.getpid()))
    )
    assert [batch for batch, _, _ in results] == list(range(40))
    # each begins with a half, and what was prepared is known to both
    assert results[0][1] == parent
    assert results[20][1] != parent
    assert all(known == [parent] for _, _, known in results)


@pytest.mark.usefixtures("two_processors")
def test_two_batches_and_a_process_with_threads_are_worked_on_in_this_process() -> None:
    parent = os.getpid()
    assert list(processes.map_in_processes(lambda batch: os.getpid(), [1, 2])) == [parent, parent]
    with ThreadPoolExecutor(1) as threads:
        threads.submit(int).result()
        assert set(processes.map_in_processes(lambda batch: os.getpid(), range(40))) == {parent}


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize("end", [lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1 // 0])
def test_batches_of_a_copy_that_was_killed_or_failed_are_worked_on_all_the_same(
    end: Callable[[], object], copy_works: Callable[[], None]
) -> None:
    parent = os.getpid()

    def work(batch: int) -> int:
        copy_works()
        if os.getpid() != parent:
            end()
        return batch

    assert list(processes.map_in_processes(work, range(40))) == list(range(40))


@pytest.mark.usefixtures("two_processors")
def test_a_copy_is_ended_if_this_process_is_interrupted(
    copy_works: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, copies = os.getpid(), list[int]()
    fork = os.fork

    def record() -> int:
        copies.append(fork())
        return copies[-1]

    def work(batch: int) -> None:
        copy_works()
        if os.getpid() != parent:
            signal.pause()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fork", record)
    with pytest.raises(KeyboardInterrupt):
        list(processes.map_in_processes(work, range(40)))
    with pytest.raises(ProcessLookupError):
        os.kill(copies[0], 0)


@pytest.mark.skipif(sys.platform != "linux", reason="there are no copies")
def test_a_copy_ends_with_a_process_that_is_killed() -> None:
    code = """
import os, signal, time
from npuprof.system.processes import map_in_processes
os.sched_getaffinity = lambda process: {0, 1}
parent, (start, end) = os.getpid(), os.pipe()
def work(batch):
    if os.getpid() == parent:
        os.read(start, 1)
        os.kill(parent, signal.SIGKILL)
    os.write(end, b"x")
    while os.getppid() == parent:
        time.sleep(0.001)
    os.write(1, b"a batch of the copy\\n")
list(map_in_processes(work, range(40)))
"""
    # its copy has the same output: that is read until both have ended
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=PATIENCE)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == b"a batch of the copy\n"


@pytest.mark.usefixtures("two_processors")
@pytest.mark.skipif(sys.platform != "linux", reason="there are no copies")
def test_batches_without_room_in_a_small_pipe_are_worked_on_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = os.pipe

    def make_small_pipe() -> tuple[int, int]:
        start, end = pipe()
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
        return start, end

    monkeypatch.setattr(os, "pipe", make_small_pipe)
    assert list(processes.map_in_processes(str, range(3000))) == [*map(str, range(3000))]


@pytest.mark.usefixtures("two_processors")
def test_this_process_works_alone_if_the_system_allows_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refuse)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert list(processes.map_in_processes(str, range(40))) == [*map(str, range(40))]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


@pytest.mark.usefixtures("two_processors")
def test_an_error_of_a_batch_reaches_the_caller() -> None:
    with pytest.raises(ValueError, match="batch 5"):
        list(processes.map_in_processes(_fail_at_five, range(40)))


def _fail_at_five(batch: int) -> int:
    if batch == 5:
        raise ValueError("batch 5")
    return batch
