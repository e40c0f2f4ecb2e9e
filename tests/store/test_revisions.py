"""Presets at revisions and versions: what a spec with @ means, and what is said where it means nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import npuprof
from npuprof.store import spec
from support.repositories import ENVIRONMENT, Repo
from support.running import Run

BASE = "[profile]\nabstract = true\n[options]\nhccl_timeout = {}\n"
LEAF = '[profile]\nextends = ["base"]\nscenario = "training"\n[options]\niterations_per_loop = {}\n'


@pytest.fixture
def two(repo: Repo) -> Repo:
    repo.commit({"base": BASE.format(1800), "leaf": LEAF.format(10)}, "first")
    repo.release("leaf", "1.0.0")
    repo.commit({"base": BASE.format(600)}, "second")
    repo.release("leaf", "1.2.0")
    repo.release("leaf", "1.10.0")
    repo.commit({"base": BASE.format(60)}, "third")
    repo.release("leaf", "2.0.0")
    repo.commit({"leaf": LEAF.format(20)}, "fourth")
    return repo


@pytest.mark.parametrize(
    ("asked", "timeout"),
    [
        ("leaf", 60), ("leaf@HEAD", 60), ("leaf@HEAD~3", 1800), ("leaf@main~2", 600), ("leaf@1.0.0", 1800), ("leaf@v1.0.0", 1800),
        ("leaf@1", 600), ("leaf@1.2", 600), ("leaf@2", 60), ("leaf@leaf/v1.0.0", 1800), ("leaf@:/second", 600), ("leaf@@", 60),
    ],
)  # fmt: skip
def test_a_spec_with_a_revision_resolves_with_its_parents_as_they_were(two: Repo, asked: str, timeout: int) -> None:
    assert npuprof.open_store().resolve(asked).options["hccl_timeout"] == timeout


def test_the_newest_of_a_series_is_found_by_number_and_not_by_text(two: Repo) -> None:
    assert npuprof.open_store().resolve("leaf@1").name == "leaf@1.10.0"


def test_full_and_short_ids_and_branches_are_revisions(two: Repo) -> None:
    first = two.git("rev-parse", "HEAD~3")
    two.git("branch", "feature/x", first)
    store = npuprof.open_store()
    for revision in (first, first[:9], "feature/x"):
        config = store.resolve(f"leaf@{revision}")
        assert config.options["hccl_timeout"] == 1800
        assert config.name == f"leaf@{first[:7]}"


def test_an_origin_at_a_revision_says_which_and_git_can_show_it(two: Repo) -> None:
    config = npuprof.open_store().resolve("leaf@HEAD~3")
    origin = config.origins("hccl_timeout")[0]
    assert origin.revision == two.git("rev-parse", "HEAD~3")
    assert str(origin) == f"{origin.revision[:7]}:profiles/base.toml:4"
    assert "hccl_timeout = 1800" in two.git("show", f"{origin.revision[:7]}:{origin.file}")


def test_the_work_tree_is_neither_read_nor_touched(two: Repo) -> None:
    for path in (two.folder / "profiles").glob("*.toml"):
        path.write_text("broken [")
    before = two.git("status", "--porcelain")
    assert npuprof.open_store().resolve("leaf@HEAD").options["hccl_timeout"] == 60
    assert two.git("status", "--porcelain") == before


def test_compositions_and_mixins_may_be_at_revisions(two: Repo, run: Run) -> None:
    two.commit({"other": "[options]\ngraph_run_mode = 1\n"})
    config = npuprof.open_store().resolve("other+leaf@1.0.0", mixins=["base@HEAD~1"])
    assert config.options == {"graph_run_mode": 1, "iterations_per_loop": 10, "hccl_timeout": 60}


def test_a_pinned_parent_and_its_own_parents_stay_at_their_version(two: Repo) -> None:
    two.commit({"pinned": '[profile]\nextends = ["leaf@1.0.0"]\n[options]\ngraph_run_mode = 1\n'})
    config = npuprof.open_store().resolve("pinned")
    assert config.options == {"graph_run_mode": 1, "iterations_per_loop": 10, "hccl_timeout": 1800}
    assert [profile.name for profile in config.lineage] == ["base", "leaf", "pinned"]
    assert str(config.origins("hccl_timeout")[0]).endswith(":profiles/base.toml:4")


def test_pinned_and_plain_parents_are_two_profiles(two: Repo) -> None:
    two.commit({"both": '[profile]\nextends = ["base", "leaf@1.0.0"]\n'})
    assert npuprof.open_store().resolve("both").options["hccl_timeout"] == 1800
    two.commit({"both": '[profile]\nextends = ["leaf@1.0.0", "base"]\n'})
    assert npuprof.open_store().resolve("both").options["hccl_timeout"] == 60


def test_a_pinned_parent_that_is_not_released_is_told_at_its_place(two: Repo, run: Run) -> None:
    two.write({"pinned": '[profile]\nextends = ["leaf@3"]\n'})
    done = run("show", "pinned")
    assert (done.code, done.out) == (2, "")
    assert "profiles/pinned.toml:2:12: error NP011: leaf has no released version 3" in done.err
    assert "released are 1.0.0, 1.2.0, 1.10.0, 2.0.0" in done.err


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        ("leaf@--output=x", "NP011", "cannot start with '-'"),
        ("leaf@-n1", "NP011", "unknown revision"),
        ("leaf@mian", "NP011", "did you mean 'main'?"),
        ("leaf@HEAD~99", "NP011", "unknown revision 'HEAD~99'"),
        ("leaf@3", "NP011", "no released version 3"),
        ("leaf@HEAD:profiles", "NP011", "unknown revision"),
        ("leaf@HEAD\nHEAD", "NP011", "unknown revision"),
        ("later@HEAD~3", "NP023", "no preset 'later' in profiles at"),
        ("laef@HEAD", "NP023", "did you mean 'leaf'?"),
        ("../x@HEAD", "NP023", "no preset"),
    ],
)
def test_a_bad_revision_is_a_clear_error_and_nothing_is_written(two: Repo, run: Run, asked: str, code: str, words: str) -> None:
    two.commit({"later": "[options]\n"})
    before = sorted(os.listdir(two.folder))
    for command in (("show", asked), ("render", asked), ("diff", asked, "leaf"), ("restore", asked)):
        done = run(*command)
        assert (done.code, done.out) == (2, ""), command
        assert code in done.err
        assert words in done.err
    assert sorted(os.listdir(two.folder)) == before
    assert two.git("status", "--porcelain") == ""


def test_a_preset_broken_at_a_revision_is_named_with_it(repo: Repo, run: Run) -> None:
    broken = repo.commit({"base": "[options]\nhccl_timeout = \n", "leaf": LEAF.format(1)})
    repo.commit({"base": BASE.format(1)})
    done = run("show", "leaf@HEAD~1")
    assert (done.code, done.out) == (2, "")
    assert f"{broken[:7]}:profiles/base.toml:2:16: error NP001" in done.err


def test_each_that_extends_a_missing_preset_is_blamed_for_itself(repo: Repo) -> None:
    repo.commit(dict.fromkeys(("one", "two"), '[profile]\nextends = ["bose"]\n') | {"base": BASE.format(1)})
    store = npuprof.open_store()
    for name in ("one", "two", "one"):
        with pytest.raises(npuprof.NpuprofError) as error:
            store.resolve(f"{name}@HEAD")
        assert f"{name} extends 'bose', which is not in profiles at" in str(error.value)
        assert "did you mean 'base'?" in str(error.value)


def test_an_empty_repository_has_no_revisions(repo: Repo, run: Run) -> None:
    repo.write({"leaf": "[options]\nhccl_timeout = 1\n"})
    for command in (
        ("show", "leaf@HEAD"),
        ("show", "leaf@"),
        ("diff",),
        ("diff", "leaf"),
        ("log", "leaf"),
        ("blame", "leaf"),
        ("release", "leaf"),
    ):
        done = run(*command)
        assert (done.code, done.out) == (2, ""), command
        assert "no commits yet" in done.err or command == ("show", "leaf@"), command


def test_presets_outside_a_repository_have_no_revisions(tmp_path: Path, store, run: Run) -> None:
    store({"leaf": "[options]\n"})
    for command in (("show", "leaf@HEAD"), ("diff",), ("diff", "--rev", "HEAD"), ("log", "leaf"), ("blame", "leaf"), ("commit",),
                    ("release", "leaf"), ("restore", "leaf@HEAD"), ("list", "--versions")):  # fmt: skip
        done = run(*command)
        assert (done.code, done.out) == (2, ""), command
        assert "not in a git repository" in done.err, command


def test_without_git_only_what_needs_it_fails(two: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(two.folder))
    assert run("show", "leaf").code == 0
    for command in (("show", "leaf@HEAD"), ("diff",), ("log", "leaf")):
        done = run(*command)
        assert (done.code, done.out) == (2, "")
        assert "NP020: git was not found" in done.err


def test_a_repository_that_git_refuses_is_told_with_the_way_out(two: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    done = run("show", "leaf@HEAD")
    assert (done.code, done.out) == (2, "")
    assert f"git config --global --add safe.directory {two.folder}" in done.err


def test_a_shallow_clone_says_that_it_is_shallow(two: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two.git("clone", "-q", "--depth", "1", f"file://{two.folder}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    assert run("show", "leaf@HEAD").code == 0
    done = run("show", "leaf@HEAD~2")
    assert (done.code, done.out) == (2, "")
    assert "git fetch --unshallow" in done.err
    assert "shallow" in run("log", "leaf").err


def test_worktrees_detached_heads_submodules_and_subfolders_are_repositories_too(
    two: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "HEAD~3")
    outer = Repo(tmp_path / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(two.folder), "inner")
    outer.commit(message="with a submodule")
    (two.folder / "sub" / "folder").mkdir(parents=True)
    for folder, revision, timeout in (
        (tmp_path / "tree", "HEAD", "1800"),
        (tmp_path / "outer" / "inner", "HEAD~1", "60"),
        (two.folder / "sub" / "folder", "HEAD~2", "600"),
    ):
        monkeypatch.chdir(folder)
        done = run("explain", f"leaf@{revision}", "hccl_timeout")
        assert done.code == 0, done.err
        assert f"hccl_timeout = {timeout}" in done.out


def test_a_store_at_the_top_and_one_deep_down_are_found(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Repo(tmp_path / "repo")
    for store in ("deep/er/presets", "."):
        (made.folder / store).mkdir(parents=True, exist_ok=True)
        (made.folder / store / "x.toml").write_text("[options]\nhccl_timeout = 1\n")
    made.commit()
    monkeypatch.chdir(tmp_path)
    for store, source in (("deep/er/presets", "deep/er/presets/x.toml"), (".", "x.toml")):
        done = run("show", "x@HEAD", "--origin", "--store", made.folder / store)
        assert f"{made.head[:7]}:{source}:2" in done.out


def test_line_endings_of_windows_mean_nothing(repo: Repo, run: Run) -> None:
    repo.commit({"leaf": b"[options]\r\nhccl_timeout = 1\r\n"})
    repo.write({"leaf": b"[options]\nhccl_timeout = 1\n"})
    assert run("diff", "--exit-code").out.startswith("0 presets differ")
    assert npuprof.open_store().resolve("leaf@HEAD").options == {"hccl_timeout": 1}


def test_links_inside_the_store_are_followed_at_a_revision_and_those_out_of_it_refused(repo: Repo, run: Run) -> None:
    repo.write({"base": BASE.format(5), "deep/x": "[options]\n"})
    os.symlink("../base.toml", repo.folder / "profiles/deep/link.toml")
    os.symlink("/etc/hostname", repo.folder / "profiles/out.toml")
    repo.commit()
    assert npuprof.open_store().resolve("deep/link@HEAD").options == {"hccl_timeout": 5}
    assert "NP005" in run("show", "out@HEAD").err


def test_a_git_hook_of_another_repository_does_not_mislead(two: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Repo(tmp_path / "other")
    other.commit({"leaf": "[options]\n"})
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert npuprof.open_store().resolve("leaf@1").options["hccl_timeout"] == 600


def test_one_git_process_reads_a_preset_at_a_revision(two: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
    assert run("show", "leaf@HEAD~2").code == 0
    assert trace.read_text().count('"event":"start"') == 1
    trace.unlink()
    assert run("show", "leaf@1").code == 0
    assert trace.read_text().count('"event":"start"') == 2


def test_a_preset_without_a_revision_reads_no_git(two: Repo) -> None:
    code = (
        "import sys; from npuprof.__main__ import main; main(['render', 'leaf']);"
        "sys.exit(any(name.startswith(('npuprof.store.gitstore.revisions', 'subprocess', 'git')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_a_lightweight_tag_is_no_release(two: Repo, run: Run) -> None:
    two.git("tag", "base/v1.0.0")
    assert "base has no released version 1" in run("show", "base@1").err
    two.git("tag", "-a", "-m", "again", "base/v2.0.0", "leaf/v1.0.0")  # a tag of a tag
    assert npuprof.open_store().resolve("base@2").options == {"hccl_timeout": 1800}


def test_a_store_seen_at_a_revision_is_a_store(two: Repo) -> None:
    from npuprof.store.gitstore import revisions

    workspace = spec.Workspace()
    then = revisions.load_revision(workspace.store, two.git("rev-parse", "HEAD~3"))
    assert then.names() == ["base", "leaf"]
    assert then.stray_files() == []
    assert then.profile("leaf").extends == ("base",)


def test_odd_folders_and_long_ids_are_no_obstacle(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "my präset $(x) *"
    folder.mkdir()
    made = Repo(folder, init=False)
    made.git("init", "-q", "-b", "main", "--object-format=sha256")
    monkeypatch.chdir(folder)
    store = folder / "[in] ünder: it" / "profiles"
    store.mkdir(parents=True)
    for number in (1, 2):
        (store / "base.toml").write_text(BASE.format(number))
        (store / "leaf.toml").write_text(LEAF.format(1))
        made.commit(message=f"step {number}")
    assert "hccl_timeout = 1" in run("show", "leaf@HEAD~1", "--store", store).out
    assert "2 presets: hccl_timeout 1 → 2 s" in run("diff", "--rev", "HEAD~1", "--store", store).out
    assert run("diff", "--exit-code", "--store", store).code == 0
    assert run("log", "leaf", "hccl_timeout", "--store", store).out.count("hccl_timeout") == 2
    assert "[in] ünder: it/profiles/base.toml:4" in run("blame", "leaf", "--store", store).out
    (store / "new.toml").write_text(LEAF.format(3))
    assert run("commit", "--store", store).code == 0
    assert run("release", "leaf", "--store", store).code == 0
    assert made.git("status", "--porcelain") == ""
