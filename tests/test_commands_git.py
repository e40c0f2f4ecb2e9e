"""The drivers as git calls them: real diffs, logs, merges, rebases and cherry-picks in real repositories."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import ENVIRONMENT, Repo

from npuprof.edit.mergetext import split_conflicts

pytestmark = pytest.mark.slow

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


def git(repo: Repo, *words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run git and return what it did, whatever it did."""
    environ = {**os.environ, **ENVIRONMENT, **({"PATH": path} if path else {})}
    return subprocess.run(["git", *words], cwd=repo.folder, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., object]) -> Repo:
    made = Repo(tmp_path / "re po's $(x) %A")
    made.write({"base": BASE})
    monkeypatch.chdir(made.folder)
    run("git", "install")
    made.commit(message="one")
    return made


@pytest.fixture
def talking(repo: Repo, run: Callable[..., object]) -> Repo:
    """A repository whose diffs speak of settings."""
    assert run("git", "install", "--diff").code == 0
    return repo


def branches(repo: Repo, ours: str | None, theirs: str | None, name: str = "base") -> None:
    """Commit one text on main and another on ``side``."""
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({name: theirs}, "theirs")
    repo.git("checkout", "-q", "main")
    repo.commit({name: ours}, "ours")


def now(repo: Repo, name: str = "base") -> str:
    return (repo.folder / "profiles" / f"{name}.toml").read_bytes().decode()


# -- install ---------------------------------------------------------------------------------------------------


def test_installing_twice_changes_nothing_more(repo: Repo, run: Callable[..., object]) -> None:
    before = [(repo.folder / name).read_bytes() for name in (".git/config", ".gitattributes")]
    run("git", "install")
    assert [(repo.folder / name).read_bytes() for name in (".git/config", ".gitattributes")] == before
    assert run("git", "status").code == 0


def test_what_is_there_stays_and_comes_back_when_it_is_uninstalled(repo: Repo, run: Callable[..., object]) -> None:
    run("git", "uninstall")
    assert not (repo.folder / ".gitattributes").exists()
    assert "npuprof" not in (repo.folder / ".git/config").read_text()
    assert run("git", "status").code == 1
    kept = b"*.png binary\r\n# last"
    (repo.folder / ".gitattributes").write_bytes(kept)
    repo.git("config", "diff.other.textconv", "cat")
    run("git", "install")
    assert (repo.folder / ".gitattributes").read_bytes().startswith(kept)
    assert run("git", "status").code == 0
    run("git", "uninstall")
    assert (repo.folder / ".gitattributes").read_bytes() == kept + b"\r\n"
    assert repo.git("config", "diff.other.textconv") == "cat"


def test_status_says_what_is_missing_as_json_too(repo: Repo, run: Callable[..., object]) -> None:
    import json

    repo.git("config", "--unset", "merge.npuprof.driver")
    said = run("git", "status", "--format", "json")
    assert said.code == 1
    assert json.loads(said.out)["parts"]["merge.npuprof.driver"] == "missing"


def test_global_installation_uses_the_users_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., object]) -> None:
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    run("git", "install", "--global")
    home = Path(os.environ["HOME"])
    assert "npuprof" in (home / ".gitconfig").read_text()
    assert "profiles/**/*.toml" in (home / ".config/git/attributes").read_text()
    run("git", "uninstall", "--global")
    assert "npuprof" not in (home / ".gitconfig").read_text()
    assert not (home / ".config/git/attributes").exists()


def test_a_store_with_a_name_full_of_patterns_is_meant_literally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., object]
) -> None:
    made = Repo(tmp_path / "odd")
    folder = made.folder / 'a b [x]*"q'
    folder.mkdir()
    (folder / "base.toml").write_text(BASE)
    monkeypatch.chdir(made.folder)
    assert run("git", "install", "--store", folder).code == 0
    assert run("git", "status", "--store", folder).code == 0
    said = made.git("check-attr", "merge", "--", 'a b [x]*"q/base.toml', 'a b [x]*"q/team/base.toml', 'a b xz"q/base.toml').splitlines()
    assert [line.rpartition(" ")[2] for line in said] == ["npuprof", "npuprof", "unspecified"]


def test_outside_a_repository_it_says_so(tmp_path: Path, run: Callable[..., object]) -> None:
    for verb in ("install", "uninstall", "status"):
        said = run("git", verb)
        assert said.code == 2
        assert "not in a git repository" in said.err


def test_a_store_elsewhere_is_refused(repo: Repo, tmp_path: Path, run: Callable[..., object]) -> None:
    (tmp_path / "elsewhere").mkdir()
    said = run("git", "install", "--store", tmp_path / "elsewhere")
    assert said.code == 2
    assert "NP925" in said.err


# -- diff ------------------------------------------------------------------------------------------------------


def test_git_diff_speaks_of_values(talking: Repo) -> None:
    talking.write({"base": BASE.replace("1836", "1904").replace("# seconds", "# s")})
    said = git(talking, "diff")
    assert said.returncode == 0
    assert "~ options.hccl_timeout 1836 → 1904 s" in said.stdout
    assert "seconds" not in said.stdout


def test_a_change_of_text_only_is_shown_as_text(talking: Repo) -> None:
    talking.write({"base": BASE.replace("# seconds", "# s")})
    assert "-# seconds\n+# s\n" in git(talking, "diff").stdout


def test_new_removed_and_renamed_presets_are_shown(talking: Repo) -> None:
    talking.commit({"new": "[env]\nB = 2\n"}, "two")
    assert "new preset" in git(talking, "diff", "HEAD~1").stdout
    assert "removed" in git(talking, "diff", "HEAD", "HEAD~1").stdout
    talking.git("mv", "profiles/base.toml", "profiles/root.toml")
    (talking.folder / "profiles/root.toml").write_text(BASE.replace("1836", "1904"))
    said = git(talking, "diff", "-M", "HEAD")
    assert said.returncode == 0
    assert "1836 → 1904" in said.stdout


def test_git_log_and_show_speak_of_values_in_the_normal_form(talking: Repo) -> None:
    talking.commit(
        {"base": BASE.replace("hccl_timeout = 1836\ndeterministic = 0", "deterministic = 0\nhccl_timeout   = 1904 # more")}, "two"
    )
    for command in (("log", "-p", "-1"), ("show",)):
        said = git(talking, *command).stdout
        assert "-options.hccl_timeout = 1836\n+options.hccl_timeout = 1904\n" in said
        assert "deterministic" not in [line[1:] for line in said.splitlines() if line.startswith(("+o", "-o"))]


BROKEN = {
    "no TOML": b"[options\nx =\n",
    "not UTF-8": b"[options]\nx = '\xff'\n",
    "UTF-16": "[options]\nx = 1\n".encode("utf-16"),
    "NUL": b"[options]\nx = 1\n\0",
    "empty": b"",
    "deep": b"x = " + b"[" * 4000 + b"]" * 4000 + b"\n",
    "a form of its own": b"options = 3\n[[profile]]\nappend = 1\n",
    "overrides that are none": b"override = 3\n",
    "half a conflict": b"<<<<<<< ours\n[options]\n",
    "an endless number": b"x = " + b"9" * 6000 + b"\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_never_fails_a_git_command(talking: Repo, name: str) -> None:
    talking.write({"base": BROKEN[name]})
    said = subprocess.run(["git", "diff"], cwd=talking.folder, env={**os.environ, **ENVIRONMENT}, capture_output=True, check=False)
    assert said.returncode == 0, said.stderr
    talking.commit(message="broken")
    talking.commit({"base": BASE}, "mended")
    for command in (("diff", "HEAD~1"), ("log", "-p"), ("show", "HEAD~1")):
        said = subprocess.run(["git", *command], cwd=talking.folder, env={**os.environ, **ENVIRONMENT}, capture_output=True, check=False)
        assert said.returncode == 0, said.stderr
        assert b"profiles/base.toml" in said.stdout


@pytest.mark.parametrize("name", [name for name in BROKEN if name not in ("empty", "a form of its own", "overrides that are none")])
def test_textconv_gives_a_file_that_is_no_toml_back_as_it_is(repo: Repo, name: str) -> None:
    path = repo.folder / "x.toml"
    path.write_bytes(BROKEN[name])
    said = subprocess.run([sys.executable, "-m", "npuprof", "git", "textconv", str(path)], capture_output=True, check=True)
    assert said.stdout == BROKEN[name]


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
    assert tomllib.loads(now(talking))["options"]["hccl_timeout"] == 1904
    assert tomllib.loads(now(talking))["env"]["A"] == 2


def test_conflicts_are_marked_where_npuprof_is_gone(repo: Repo) -> None:
    without_npuprof(repo)
    branches(repo, BASE.replace("1836", "1904"), BASE.replace("1836", "1972"))
    assert git(repo, "merge", "-q", "side").returncode == 1
    assert "<<<<<<< ours\nhccl_timeout = 1904\n" in now(repo)


# -- merge -----------------------------------------------------------------------------------------------------

NEAR = (BASE.replace("deterministic = 0", "deterministic = 1"), BASE.replace("hccl_timeout = 1836", "hccl_timeout = 1904 # 28 * 68"))


@pytest.mark.parametrize("how", [("merge", "-q"), ("rebase", "-q"), ("cherry-pick",)])
def test_changes_to_neighbouring_lines_merge(repo: Repo, how: tuple[str, ...]) -> None:
    branches(repo, *NEAR)
    said = git(repo, *how, "side")
    assert said.returncode == 0, said.stderr
    assert now(repo) == BASE.replace("hccl_timeout = 1836\ndeterministic = 0", "hccl_timeout = 1904 # 28 * 68\ndeterministic = 1")


def test_git_alone_would_not_have_merged_them(repo: Repo, run: Callable[..., object]) -> None:
    run("git", "uninstall")
    branches(repo, *NEAR)
    assert git(repo, "merge", "-q", "side").returncode == 1


@pytest.mark.parametrize("how", [("merge", "-q"), ("rebase", "-q"), ("cherry-pick",)])
def test_one_key_with_two_values_is_a_conflict_for_git_too(repo: Repo, how: tuple[str, ...]) -> None:
    branches(
        repo, BASE.replace("1836", "1904").replace("A = 1", "A = 1\nB = 2"), BASE.replace("1836", "1972").replace("A = 1", "A = 1\nC = 3")
    )
    said = git(repo, *how, "side")
    assert said.returncode == 1
    assert "conflict in options.hccl_timeout" in said.stderr
    assert "UU profiles/base.toml" in git(repo, "status", "--porcelain").stdout
    picked = split_conflicts(now(repo))
    assert picked is not None
    assert {tomllib.loads(side)["options"]["hccl_timeout"] for side in picked} == {1904, 1972}
    assert all(tomllib.loads(side)["env"] == {"A": 1, "B": 2, "C": 3} for side in picked)
    shown = git(repo, "diff")
    assert shown.returncode == 0
    assert "++<<<<<<< ours" in shown.stdout


def test_a_file_that_both_added_is_merged_by_key(repo: Repo) -> None:
    branches(repo, "[env]\nA = 1\nB = 2\n", "[env]\nA = 1\nC = 3\n", "new")
    assert git(repo, "merge", "-q", "side").returncode == 0
    assert tomllib.loads(now(repo, "new")) == {"env": {"A": 1, "B": 2, "C": 3}}


def test_a_file_that_cannot_be_read_is_merged_as_text(repo: Repo) -> None:
    broken = BASE + "\n\n\n\nnot toml\n"
    branches(repo, BASE.replace("base", "ours"), broken)
    said = git(repo, "merge", "-q", "side")
    assert said.returncode == 0
    assert "merged as text" in said.stderr
    assert now(repo) == broken.replace("base", "ours")


def test_where_git_merges_the_lines_to_the_same_settings_its_text_is_kept(repo: Repo) -> None:
    theirs = BASE + "\n# A paragraph of theirs,\n# which belongs to no key.\n"
    branches(repo, BASE.replace("1836", "1904"), theirs)
    assert git(repo, "merge", "-q", "side").returncode == 0
    assert now(repo) == theirs.replace("1836", "1904")


def test_line_endings_and_mark_of_ours_stay(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "false")
    mark = "\ufeff"
    repo.commit({"base": mark + BASE.replace("\n", "\r\n")}, "crlf")
    branches(repo, *(mark + text.replace("\n", "\r\n") for text in NEAR))
    assert git(repo, "merge", "-q", "side").returncode == 0
    raw = (repo.folder / "profiles/base.toml").read_bytes()
    assert raw.startswith(mark.encode())
    assert raw.count(b"\r\n") == raw.count(b"\n")


def test_what_only_breaks_a_rule_together_is_a_conflict(repo: Repo) -> None:
    branches(
        repo,
        BASE.replace("deterministic = 0", 'deterministic = 0\nprecision_mode = "allow_mix_precision"'),
        BASE.replace("A = 1", "A = 3").replace("# seconds", '# seconds\nprecision_mode_v2 = "mixed_float16"'),
    )
    said = git(repo, "merge", "-q", "side")
    assert said.returncode == 1
    assert "together, both sides break" in said.stderr
    picked = split_conflicts(now(repo))
    assert picked is not None
    ours, theirs = (tomllib.loads(side) for side in picked)
    assert "precision_mode_v2" not in ours["options"]
    assert theirs["options"]["precision_mode_v2"] == "mixed_float16"
    assert ours["env"] == theirs["env"] == {"A": 3}


def test_rules_are_checked_in_a_store_of_any_name(repo: Repo) -> None:
    (repo.folder / "presets/base").mkdir(parents=True)
    (repo.folder / ".gitattributes").write_text("presets/**/*.toml merge=npuprof\n")
    parent, child = repo.folder / "presets/base/all.toml", repo.folder / "presets/child.toml"
    parent.write_text('[options]\nprecision_mode = "allow_mix_precision"\n')
    child.write_text("[options]\n\n[env]\nA = 1\n")
    repo.commit(message="two")
    repo.git("checkout", "-q", "-b", "side")
    child.write_text('[options]\nprecision_mode_v2 = "mixed_float16"\n\n[env]\nA = 1\n')
    repo.commit(message="theirs")
    repo.git("checkout", "-q", "main")
    child.write_text('[profile]\nextends = ["base/all"]\n\n[options]\n\n[env]\nA = 1\n')
    repo.commit(message="ours")
    said = git(repo, "merge", "-q", "side")
    assert said.returncode == 1
    assert "together, both sides break" in said.stderr


@pytest.mark.parametrize(("second", "code"), [("[env]\nY = 2\n", 0), ("[env]\nX = 2\n", 1)])
def test_parents_that_both_added_conflict_only_where_their_order_counts(repo: Repo, second: str, code: int) -> None:
    child = '[profile]\nextends = ["base"]\n'
    repo.commit({"m/x": "[env]\nX = 1\n", "m/y": second, "child": child}, "two")
    branches(repo, child.replace('"base"', '"base", "m/x"'), child.replace('"base"', '"base", "m/y"'), "child")
    assert git(repo, "merge", "-q", "side").returncode == code
    if not code:
        assert tomllib.loads(now(repo, "child"))["profile"]["extends"] == ["base", "m/x", "m/y"]
    else:
        assert "<<<<<<<" in now(repo, "child")


def test_a_parent_that_only_their_branch_has_is_no_conflict(repo: Repo) -> None:
    child = '[profile]\nextends = ["base"]\n\n[env]\nB = 1\n'
    repo.commit({"child": child}, "two")
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"new": "[env]\nX = 1\n", "child": child.replace('"base"', '"base", "new"')}, "theirs")
    repo.git("checkout", "-q", "main")
    repo.commit({"child": child.replace("B = 1", "B = 2")}, "ours")
    assert git(repo, "merge", "-q", "side").returncode == 0
    assert tomllib.loads(now(repo, "child")) == {"profile": {"extends": ["base", "new"]}, "env": {"B": 2}}


def test_criss_cross_merges_get_a_base_with_conflicts_in_it(repo: Repo) -> None:
    mine, other = (BASE.replace("1836", number) for number in ("1904", "1972"))
    branches(repo, mine, other)
    first, second = repo.git("rev-parse", "main"), repo.git("rev-parse", "side")
    git(repo, "merge", "-q", second)
    repo.commit({"base": mine}, "main takes its own")
    repo.git("checkout", "-q", "side")
    git(repo, "merge", "-q", first)
    repo.commit({"base": other.replace("A = 1", "A = 2")}, "side takes its own")
    repo.git("checkout", "-q", "main")
    assert len(repo.git("merge-base", "--all", "main", "side").splitlines()) == 2
    assert git(repo, "merge", "-q", "side").returncode == 1
    picked = split_conflicts(now(repo))
    assert picked is not None
    assert [tomllib.loads(side) for side in picked] == [tomllib.loads(text.replace("A = 1", "A = 2")) for text in (mine, other)]


def test_the_size_of_the_markers_is_gits(repo: Repo) -> None:
    with (repo.folder / ".gitattributes").open("a") as file:
        file.write("*.toml conflict-marker-size=12\n")
    repo.commit(message="longer markers")
    branches(repo, BASE.replace("1836", "1904"), BASE.replace("1836", "1972"))
    assert git(repo, "merge", "-q", "side").returncode == 1
    assert "\n<<<<<<<<<<<< ours\n" in now(repo)


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
    for name in ("npuprof/__init__.py", "typer.py", "tomllib.py"):
        (talking.folder / name).write_text("open('hacked', 'w')\n")
    talking.write({"base": NEAR[0]})
    assert git(talking, "diff").returncode == 0
    assert not (talking.folder / "hacked").exists()


def test_each_driver_is_called_once_for_a_file(talking: Repo, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    for name in ("diff.npuprof.command", "merge.npuprof.driver"):
        talking.git("config", name, talking.git("config", name).replace("{ ", f"{{ echo {name} >> '{calls}'; ", 1))
    branches(talking, *NEAR)
    git(talking, "merge", "-q", "side")
    git(talking, "diff", "HEAD~1")
    assert sorted(calls.read_text().splitlines()) == ["diff.npuprof.command", "merge.npuprof.driver"]


def test_the_drivers_are_not_in_the_help(run: Callable[..., object]) -> None:
    said = run("git", "--help")
    assert "install" in said.out
    assert "driver" not in said.out.replace("drivers", "")


def test_git_missing_is_said(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., object]) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    said = run("git", "install")
    assert said.code == 2
    assert "git was not found" in said.err


def test_the_drivers_run_in_a_linked_work_tree(repo: Repo) -> None:
    branches(repo, *NEAR)
    other = repo.folder.parent / "linked"
    repo.git("worktree", "add", "-q", "--detach", str(other))
    linked = Repo(other, init=False)
    assert git(linked, "merge", "-q", "side").returncode == 0
    assert "28 * 68" in now(linked)


def test_permissions_of_a_merged_file_stay(repo: Repo) -> None:
    branches(repo, *NEAR)
    assert git(repo, "merge", "-q", "side").returncode == 0
    assert not (repo.folder / "profiles/base.toml").stat().st_mode & stat.S_IXUSR
