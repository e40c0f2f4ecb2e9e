"""The drivers as git calls them: diffs, logs, merges, rebases and cherry-picks."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from npuprof.edit.merge import split_conflicts
from support.repositories import ENVIRONMENT, Repo
from support.running import Run

BASE = """\
[profile]
description = "base"
scenario = "training"

[options]
# seconds
hccl_timeout = 1836
deterministic = 0

[env]
A = 1
"""


def git(repo: Repo, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run git and return what it did, whatever it did."""
    environ = {**os.environ, **ENVIRONMENT, **({"PATH": path} if path else {})}
    return subprocess.run(
        ["git", *arguments],
        cwd=repo.folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Repo:
    made = Repo(tmp_path / "re po's $(x) %A")
    made.write({"base": BASE})
    monkeypatch.chdir(made.folder)
    run("git", "install")
    made.commit(message="one")
    return made


@pytest.fixture
def talking(repo: Repo, run: Run) -> Repo:
    """A repository whose diffs speak of settings."""
    assert "--no-textconv --no-ext-diff" in run("git", "install", "--diff").err, (
        "what patches need is said"
    )
    return repo


def branches(repo: Repo, ours: str | None, theirs: str | None, name: str = "base") -> None:
    """Commit one text on main and another on ``side``."""
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({name: theirs}, "theirs")
    repo.git("checkout", "-q", "main")
    repo.commit({name: ours}, "ours")


def read_preset(repo: Repo, name: str = "base") -> str:
    return (repo.folder / "profiles" / f"{name}.toml").read_bytes().decode()


# -- install --------------------------------------------------------------------------------------


def test_what_is_there_stays_and_comes_back_when_it_is_uninstalled(repo: Repo, run: Run) -> None:
    run("git", "uninstall")
    assert not (repo.folder / ".gitattributes").exists()
    assert "npuprof" not in (repo.folder / ".git/config").read_text()
    status = run("git", "status")
    assert status.code == 1
    assert status.err == "npuprof: not complete; npuprof git install adds the missing parts\n"
    assert run("git", "status", "--format", "json").err == ""
    assert run("git", "uninstall").err == "npuprof: nothing was set up for this repository alone\n"
    stored = b"*.png binary\r\n# last"
    (repo.folder / ".gitattributes").write_bytes(stored)
    repo.git("config", "diff.other.textconv", "cat")
    run("git", "install")
    assert (repo.folder / ".gitattributes").read_bytes().startswith(stored)
    assert run("git", "status").code == 0
    run("git", "uninstall")
    assert (repo.folder / ".gitattributes").read_bytes() == stored + b"\r\n"
    assert repo.git("config", "diff.other.textconv") == "cat"


def test_global_installation_uses_the_users_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    run("git", "install", "--global")
    home = Path(os.environ["HOME"])
    assert "npuprof" in (home / ".gitconfig").read_text()
    assert "profiles/**/*.toml" in (home / ".config/git/attributes").read_text()
    run("git", "uninstall", "--global")
    assert "npuprof" not in (home / ".gitconfig").read_text()
    assert not (home / ".config/git/attributes").exists()


def test_a_store_with_a_name_full_of_patterns_is_meant_literally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    made = Repo(tmp_path / "odd")
    folder = made.folder / 'a b [x]*"q'
    folder.mkdir()
    (folder / "base.toml").write_text(BASE)
    monkeypatch.chdir(made.folder)
    assert run("git", "install", "--store", folder).code == 0
    assert run("git", "status", "--store", folder).code == 0
    result = made.git(
        "check-attr",
        "merge",
        "--",
        'a b [x]*"q/base.toml',
        'a b [x]*"q/team/base.toml',
        'a b xz"q/base.toml',
    ).splitlines()
    assert [line.rpartition(" ")[2] for line in result] == ["npuprof", "npuprof", "unspecified"]


@pytest.mark.parametrize("verb", ["install", "uninstall", "status"])
def test_outside_a_repository_it_says_so(verb: str, tmp_path: Path, run: Run) -> None:
    result = run("git", verb)
    assert result.code == 2, verb
    assert "not in a git repository" in result.err, verb


def test_what_cannot_be_installed_is_refused(repo: Repo, tmp_path: Path, run: Run) -> None:
    (tmp_path / "elsewhere").mkdir()
    for arguments, text in (
        (("--store", tmp_path / "elsewhere"), "NP925"),
        (("--hook", "--global"), "do not go together"),
    ):
        result = run("git", "install", *arguments)
        assert result.code == 2, result.err
        assert text in result.err, result.err


def test_patches_apply_and_hunks_name_their_table_after_an_installation(repo: Repo) -> None:
    long = BASE + "".join(f"B{number} = {number}\n" for number in range(20))
    repo.commit({"base": long}, "long")
    changed = long.replace("B15 = 15", "B15 = 16").replace("1836", "1904")
    repo.write({"base": changed})
    made = git(repo, "diff").stdout
    assert "@@ [env]\n" in made
    assert "npuprof" not in made
    repo.git("checkout", "-q", "--", ".")
    repo.git("apply", "-", stdin=made.encode())
    assert read_preset(repo) == changed


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_a_lock_that_a_killed_git_left_is_named(repo: Repo, run: Run, verb: str) -> None:
    repo.git("config", "--unset", "merge.npuprof.driver")
    assert (
        json.loads(run("git", "status", "--format", "json").out)["parts"]["merge.npuprof.driver"]
        == "missing"
    )
    lock = repo.folder / ".git/config.lock"
    lock.touch()
    result = run("git", verb)
    assert result.code == 2
    assert f"NP022: {lock} is there" in result.err
    assert f"if no git runs, delete the file: rm {shlex.quote(str(lock))}\n" in result.err
    lock.unlink()
    assert run("git", verb).code == 0
    assert run("git", "status").code == (verb == "uninstall")


# -- hooks ----------------------------------------------------------------------------------------


def rename_here_and_extend_there(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"heir": '[profile]\nextends = ["base"]\n\n[env]\nB = 1\n'}, "an heir")
    repo.git("checkout", "-q", "main")
    repo.git("mv", "profiles/base.toml", "profiles/root.toml")
    repo.commit(message="another name")


@pytest.mark.parametrize(
    ("how", "done"),
    [
        (("merge", "-q", "side"), "merge"),
        (("merge", "--squash", "side"), "merge"),
        (("rebase", "-q", "side"), "rebase"),
    ],
)
def test_a_hook_tells_what_a_clean_merge_of_several_files_breaks(
    repo: Repo, run: Run, how: tuple[str, ...], done: str
) -> None:
    assert run("git", "install", "--hook").code == 0
    repo.commit({"old": "[env]\nA = [1\n"}, "an error of before")
    rename_here_and_extend_there(repo)
    result = git(repo, *how)
    assert result.returncode == 0
    assert (
        f"the {done} is done, and introduces findings that neither side had: 1 error"
        in result.stderr
    )
    assert "undo the merge: git reset --keep ORIG_HEAD" in result.stderr
    assert "heir extends 'base'" in result.stderr
    assert "old.toml" not in result.stderr
    if done == "merge":
        assert "npuprof" not in git(repo, "commit", "-q", "--amend", "-m", "another message").stderr


def test_a_hook_is_silent_where_a_merge_breaks_nothing(repo: Repo, run: Run) -> None:
    run("git", "install", "--hook")
    repo.commit(
        {"old": "[env]\nA = [1\n", "lost": '[profile]\nextends = ["nothing"]\n'}, "errors of before"
    )
    repo.write({"lost": '# x\n[profile]\nextends = ["nothing"]\n'})
    assert "0 presets differ" in run("diff", "--rev", "HEAD").out, (
        "its error is the same, though HEAD has another name for the store"
    )
    repo.git("checkout", "-q", ".")
    branches(repo, *NEAR)
    result = git(repo, "merge", "-q", "side")
    assert result.returncode == 0
    assert result.stderr == ""
    repo.git("checkout", "-q", "-b", "ahead")
    repo.commit({"bad": '[profile]\nextends = ["nothing"]\n'}, "bad")
    repo.git("checkout", "-q", "main")
    assert git(repo, "merge", "-q", "ahead").stderr == ""
    repo.git("checkout", "-q", "-b", "late", "HEAD~1")
    repo.commit({"other": BASE}, "other")
    assert git(repo, "rebase", "-q", "main").stderr == "", "main has the error already"


def test_a_hook_of_somebody_else_is_never_changed(repo: Repo, run: Run) -> None:
    hook = repo.folder / ".git/hooks/post-merge"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho mine\n")
    hook.chmod(0o755)
    result = run("git", "install", "--hook")
    assert result.code == 2
    assert "post-merge exists already" in result.err
    assert "add this line to it: " in result.err
    assert hook.read_text() == "#!/bin/sh\necho mine\n"
    assert run("git", "status").code == 1
    line = result.err.partition("add this line to it: ")[2].partition("\n")[0]
    hook.write_text(f"#!/bin/sh\necho mine\n{line}\n")
    assert run("git", "install", "--hook").code == 0
    assert run("git", "status").code == 0
    rename_here_and_extend_there(repo)
    assert "introduces findings that neither side had" in git(repo, "merge", "-q", "side").stderr
    run("git", "uninstall")
    assert hook.read_text() == f"#!/bin/sh\necho mine\n{line}\n"
    assert not hook.with_name("post-rewrite").exists()


def test_hooks_are_where_git_looks_for_them_and_what_was_added_to_them_stays(
    repo: Repo, run: Run
) -> None:
    repo.git("config", "core.hooksPath", "our hooks")
    run("git", "install", "--hook")
    hook = repo.folder / "our hooks/post-merge"
    assert os.access(hook, os.X_OK)
    assert not (repo.folder / ".git/hooks/post-merge").exists()
    hook.write_text(hook.read_text() + "echo more\n")
    run("git", "install", "--hook")
    run("git", "uninstall")
    assert hook.read_text() == "#!/bin/sh\necho more\n"
    assert not hook.with_name("post-rewrite").exists()


def read_folder(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("kind", ["file", "link"])
def test_no_hook_of_another_repository_is_changed_by_a_git_folder_that_leads_there(
    kind: str, repo: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repo(tmp_path / "other")
    other.commit({"mine": BASE})
    before = read_folder(other.folder)
    unpacked = tmp_path / "unpacked"
    shutil.copytree(repo.folder, unpacked, ignore=shutil.ignore_patterns(".git"))
    if kind == "file":
        (unpacked / ".git").write_text(f"gitdir: {other.folder / '.git'}\n")
    else:
        (unpacked / ".git").symlink_to(other.folder / ".git")
    monkeypatch.chdir(unpacked)
    for arguments in (["uninstall"], ["install", "--hook"]):
        result = run("git", *arguments)
        assert result.code == 2, result.err
        assert "knows nothing of" in result.err, result.err
    assert run("set", "base", "hccl_timeout=1801").code == 0
    assert read_folder(other.folder) == before
    typed = result.err.partition("say so there: git ")[2].splitlines()[0]
    assert git(other, *shlex.split(typed)).returncode == 0
    assert run("git", "install", "--hook").code == (0 if kind == "file" else 2)


@pytest.mark.parametrize(
    ("kind", "message"), [("archive", "meta/commondir leads to"), ("hooks", "or a link")]
)
def test_no_setting_and_no_hook_is_written_where_a_file_or_a_link_in_git_s_folder_leads(
    kind: str, message: str, repo: Repo, run: Run, tmp_path: Path
) -> None:
    other = Repo(tmp_path / "other")
    other.commit({"mine": BASE})
    (other.folder / ".git/hooks").mkdir(exist_ok=True)
    before, own = read_folder(other.folder), repo.folder / ".git"
    if kind == "hooks":
        shutil.rmtree(own / "hooks", ignore_errors=True)
        (own / "hooks").symlink_to(other.folder / ".git/hooks")
    else:
        own = own.rename(repo.folder / "meta")
        (repo.folder / ".git").write_text("gitdir: meta\n")
        (own / "gitdir").write_text(f"{repo.folder}/.git\n")
        (own / "commondir").write_text(f"{other.folder}/.git\n")
    for arguments in (["install", "--hook"], ["uninstall"]):
        done = run("git", *arguments)
        assert done.code == 2, done.err
        assert "NP941" in done.err, done.err
        assert message in done.err, done.err
    assert read_folder(other.folder) == before


# -- diff -----------------------------------------------------------------------------------------


def test_git_diff_speaks_of_values_and_of_presets(talking: Repo) -> None:
    talking.write({"base": BASE.replace("1836", "1904").replace("# seconds", "# s")})
    result = git(talking, "diff")
    assert result.returncode == 0
    assert "seconds" not in result.stdout
    assert "~ options.hccl_timeout 1836 → 1904 s" in result.stdout
    talking.git("mv", "profiles/base.toml", "profiles/root.toml")
    assert "1836 → 1904" in git(talking, "diff", "-M", "HEAD").stdout
    talking.commit({"new": "[env]\nB = 2\n"}, "two")
    assert "new preset" in git(talking, "diff", "HEAD~1").stdout
    assert "removed" in git(talking, "diff", "HEAD", "HEAD~1").stdout


@pytest.mark.parametrize("command", [("log", "-p", "-1"), ("show",)])
def test_git_log_and_show_speak_of_values_in_the_normal_form(
    command: tuple[str, ...], talking: Repo
) -> None:
    talking.commit(
        {
            "base": BASE.replace(
                "hccl_timeout = 1836\ndeterministic = 0",
                "deterministic = 0\nhccl_timeout   = 1904 # more",
            )
        },
        "two",
    )
    result = git(talking, *command).stdout
    assert "-options.hccl_timeout = 1836\n+options.hccl_timeout = 1904\n" in result
    assert "deterministic" not in [
        line[1:] for line in result.splitlines() if line.startswith(("+o", "-o"))
    ]


BROKEN = {
    "UTF-16": "[options]\nx = 1\n".encode("utf-16"),
    "deep": b"x = " + b"[" * 4000 + b"]" * 4000 + b"\n",
    "half a conflict": b"<<<<<<< ours\n[options]\n",
    "a form of its own": b"options = 3\n[[profile]]\nappend = 1\n",
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("command", [("diff", "HEAD~1"), ("log", "-p")])
def test_a_broken_file_never_fails_a_git_command(
    command: tuple[str, ...], talking: Repo, name: str
) -> None:
    talking.commit({"base": BROKEN[name]}, "broken")
    talking.commit({"base": BASE}, "mended")
    result = subprocess.run(
        ["git", *command],
        cwd=talking.folder,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert b"profiles/base.toml" in result.stdout


def without_npuprof(repo: Repo) -> None:
    """Point the drivers at a command that is not there."""
    for name in ("diff.npuprof.textconv", "diff.npuprof.command", "merge.npuprof.driver"):
        value = repo.git("config", "--default", "", name)
        if not value:
            continue
        first = value.index("{ ") + 2
        repo.git("config", name, f"{value[:first]}/nowhere/npuprof{value[value.index(' git ') :]}")


def test_git_goes_on_where_npuprof_is_gone(talking: Repo) -> None:
    without_npuprof(talking)
    branches(talking, BASE.replace("A = 1", "A = 2"), BASE.replace("1836", "1904"))
    assert "+A = 2" in git(talking, "diff", "HEAD~1").stdout
    assert "+A = 2" in git(talking, "log", "-p", "-1").stdout
    assert git(talking, "merge", "-q", "side").returncode == 0
    assert tomllib.loads(read_preset(talking))["options"]["hccl_timeout"] == 1904
    assert tomllib.loads(read_preset(talking))["env"]["A"] == 2


# -- merge ----------------------------------------------------------------------------------------

NEAR = (
    BASE.replace("deterministic = 0", "deterministic = 1"),
    BASE.replace("hccl_timeout = 1836", "hccl_timeout = 1904 # 28 * 68"),
)


@pytest.mark.parametrize("how", [("merge", "-q"), ("rebase", "-q")])
def test_changes_to_neighbouring_lines_merge(repo: Repo, how: tuple[str, ...]) -> None:
    branches(repo, *NEAR)
    result = git(repo, *how, "side")
    assert result.returncode == 0, result.stderr
    assert read_preset(repo) == BASE.replace(
        "hccl_timeout = 1836\ndeterministic = 0", "hccl_timeout = 1904 # 28 * 68\ndeterministic = 1"
    )


@pytest.mark.parametrize("how", [("merge", "-q"), ("cherry-pick",)])
def test_one_key_with_two_values_is_a_conflict_for_git_too(
    repo: Repo, how: tuple[str, ...]
) -> None:
    branches(
        repo,
        BASE.replace("1836", "1904").replace("A = 1", "A = 1\nB = 2"),
        BASE.replace("1836", "1972").replace("A = 1", "A = 1\nC = 3"),
    )
    result = git(repo, *how, "side")
    assert result.returncode == 1
    assert "conflict in options.hccl_timeout" in result.stderr
    assert "UU profiles/base.toml" in git(repo, "status", "--porcelain").stdout
    picked = split_conflicts(read_preset(repo))
    assert picked is not None
    assert {tomllib.loads(side)["options"]["hccl_timeout"] for side in picked} == {1904, 1972}
    assert all(tomllib.loads(side)["env"] == {"A": 1, "B": 2, "C": 3} for side in picked)
    shown = git(repo, "diff")
    assert shown.returncode == 0
    assert "++<<<<<<< ours" in shown.stdout


def test_what_only_breaks_a_rule_together_is_a_conflict(repo: Repo) -> None:
    branches(
        repo,
        BASE.replace("deterministic = 0", "deterministic = 0\nstatic_memory_policy = 2"),
        BASE.replace("A = 1", "A = 3\nGE_USE_STATIC_MEMORY = 2\nB = 2"),
    )
    result = git(repo, "merge", "-q", "side")
    assert result.returncode == 1
    assert "together, both sides break" in result.stderr
    picked = split_conflicts(read_preset(repo))
    assert picked is not None
    ours, theirs = (tomllib.loads(side)["env"] for side in picked)
    assert ours == {"A": 3, "B": 2}
    assert theirs == {"A": 3, "GE_USE_STATIC_MEMORY": 2, "B": 2}


@pytest.mark.parametrize(
    ("theirs", "code", "message"),
    [("x = 1", 1, "merge into an invalid preset"), ("y = 1", 0, "is merged as text")],
)
def test_where_npuprof_cannot_merge_its_lines_are_taken_only_if_they_are_a_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, theirs: str, code: int, message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("npuprof.commands.git.merge_driver.merge_texts", fail)
    monkeypatch.chdir(tmp_path)
    sides = (
        BASE.replace("[options]", "[options]\nx = 1"),
        BASE.replace("deterministic = 0", f"deterministic = 0\n{theirs}"),
    )
    for name, text in zip(("base", "ours", "theirs"), (BASE, *sides), strict=True):
        Path(name).write_text(text)
    done = run("git", "merge-driver", "base", "ours", "theirs", "p.toml")
    assert done.code == code
    assert message in done.err
    assert split_conflicts(Path("ours").read_text()) == (sides if code else None)


def test_an_override_in_conflict_is_named_by_its_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    block = '[[override]]\nmatch = { product = "atlas-a3" }\n'
    texts = f"{block}options.a = 1\n", block, f"{block}# theirs\noptions.a = 1\n"
    monkeypatch.chdir(tmp_path)
    for name, text in zip(("base", "ours", "theirs"), texts, strict=True):
        Path(name).write_text(f"\ufeff{text}" if name == "ours" else text)
    done = run("git", "merge-driver", "base", "ours", "theirs", "p.toml", "9")
    assert done.code == 1
    assert 'conflict in override { product = "atlas-a3" }.options.a: here gone, there 1' in done.err
    assert (
        Path("ours").read_text()
        == f"\ufeff{block}<<<<<<<<< ours\n=========\n# theirs\noptions.a = 1\n>>>>>>>>> theirs\n"
    )


def test_warnings_that_a_merge_brings_are_told(repo: Repo) -> None:
    branches(
        repo,
        BASE.replace("A = 1", "A = 1\nHCCL_EXEC_TIMEOUT = 1700").replace(
            "hccl_timeout = 1836\n", ""
        ),
        BASE.replace("deterministic = 0", "deterministic = 0\nstream_sync_timeout = 1700"),
    )
    result = git(repo, "merge", "-q", "side")
    assert result.returncode == 0
    assert "together, both sides bring the warning NP3" in result.stderr


def test_nothing_in_a_path_is_run(talking: Repo) -> None:
    name = "x; touch hacked; $(touch hacked) `touch hacked` 'q"
    path = talking.folder / "profiles" / f"{name}.toml"
    path.write_text(BASE)
    talking.commit(message="odd")
    talking.git("checkout", "-q", "-b", "side")
    path.write_text(NEAR[0])
    talking.commit(message="theirs")
    talking.git("checkout", "-q", "main")
    path.write_text(NEAR[1])
    talking.commit(message="ours")
    for command in (("diff", "HEAD~1"), ("log", "-p"), ("merge", "-q", "side")):
        assert git(talking, *command).returncode == 0
    assert not list(talking.folder.rglob("hacked"))
    assert tomllib.loads(path.read_text())["options"]["deterministic"] == 1


def test_a_repository_cannot_lend_its_own_modules_to_the_drivers(talking: Repo) -> None:
    (talking.folder / "npuprof").mkdir()
    for name in ("npuprof/__init__.py", "typer.py", "tomli.py"):
        (talking.folder / name).write_text("open('hacked', 'w')\n")
    talking.write({"base": NEAR[0]})
    assert git(talking, "diff").returncode == 0
    assert not (talking.folder / "hacked").exists()


def test_git_missing_is_said(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    result = run("git", "install")
    assert result.code == 2
    assert "git was not found" in result.err
