"""Presets outside the store that npuprof.toml lists: their names and files, for every verb."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from npuprof.edit.merge import merge_texts
from npuprof.edit.merge_check import find_unfit_changes
from npuprof.model import NpuprofError
from npuprof.store.folder import Folder
from npuprof.store.layout import Layout, Located, find_glob_fault, read_globs
from support.repositories import Repo
from support.running import Run, Store, expect

BASE = '[profile]\nscenario = "training"\n[options]\nhccl_timeout = 1800\n'
LEAF = '[profile]\nextends = ["base"]\n[options]\ndeterministic = 1\n'
GLOBS = 'presets = ["jobs/*/preset.toml"]\n'


def write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.fixture
def team(repo: Repo) -> Repo:
    """A repository with one preset in its store, and one outside of it."""
    write(repo.folder, {"npuprof.toml": GLOBS, "jobs/x/preset.toml": LEAF})
    repo.commit({"base": BASE})
    return repo


@pytest.mark.parametrize(
    ("glob", "taken", "left"),
    [
        (
            "jobs/*/preset.toml",
            "jobs/x/preset",
            "jobs/preset jobs/x/y/preset jobs/x/presets a/jobs/x/preset jobs/.x/preset",
        ),
        (
            "**/preset.toml",
            "preset a/preset a/b/c/preset",
            "profiles/preset a/.b/preset .a/preset a/.preset apreset",
        ),
        ("jobs/**/*.toml", "jobs/a jobs/x/a jobs/x/y/a", "a jobs x/jobs/a"),
        ("**/jobs/**/p.toml", "jobs/p jobs/jobs/p a/jobs/b/p", "p a/p"),
        ("*.toml", "a pyproject", "npuprof x/a .a"),
        ("a*b*c/p.toml", "abc/p axbxc/p abbcc/p", "ac/p acb/p ab/c/p"),
        ("profiles/**/*.toml", "", "profiles/a profiles/x/a"),
        ("profiles2/*.toml", "profiles2/a", "profiles/a"),
    ],
)
@pytest.mark.parametrize("prefix", ["profiles/", "mono/profiles/"])
def test_a_glob_names_files_outside_the_store(
    glob: str, taken: str, left: str, prefix: str
) -> None:
    layout = Layout(prefix, (glob,))
    assert find_glob_fault(glob) == ""
    for name in taken.split():  # a glob may match nothing outside
        path = layout.path_of(name, outside=True)
        assert layout.takes(name) is True, name
        assert layout.locate(path) == Located(name, True), name
    assert [name for name in left.split() if layout.takes(name)] == []
    assert not any(Layout("", (glob,)).takes(name) for name in taken.split()), (
        "at the top every path is in the store"
    )
    assert layout.name_of(layout.path_of("x/y")) == "x/y"
    assert Layout("", (glob,)).locate("jobs/a.toml") == Located("jobs/a", False)


@pytest.mark.parametrize(
    ("glob", "fault"),
    [
        ("jobs/x", "must end in .toml"),
        ("/jobs/x.toml", "not a path"),
        ("../x.toml", "not a path"),
        ("a//x.toml", "not a path"),
        ("a/?.toml", "contains '?'"),
        ("a/[xy].toml", "contains '['"),
        ("a**/x.toml", "next to other characters"),
        ("jobs/**.toml", "next to other characters"),
        (".ci/x.toml", "begins with '.'"),
        ("jobs/-x/p.toml", "begins with '.' or '-'"),
    ],
)
def test_a_glob_that_could_take_nothing_is_an_error(
    glob: str, fault: str, repo: Repo, run: Run
) -> None:
    write(repo.folder, {"npuprof.toml": f"presets = [{json.dumps(glob)}]\n"})
    repo.commit({"base": BASE})
    assert fault in find_glob_fault(glob)
    assert read_globs(f"presets = [{json.dumps(glob)}]\n".encode()) == ()
    for arguments in (("list",), ("check", "--rev", "HEAD")):
        expect(run(*arguments), 2, "NP040", fault)


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("list",), 0, "jobs/x/preset"),
        (("list", "--tree"), 0, "`-- jobs/x/preset"),
        (("show", "jobs/x/preset", "--origin"), 0, "# jobs/x/preset.toml:4"),
        (("show", "jobs/x/preset.toml"), 0, "hccl_timeout = 1800"),
        (("show", "jobs/x/preset@HEAD", "--origin"), 0, ":jobs/x/preset.toml:4"),
        (("explain", "jobs/x/preset", "hccl_timeout"), 0, "base (profiles/base.toml:4)"),
        (("check",), 0, "2 presets checked"),
        (("check", "jobs/x/preset.toml"), 0, "1 preset checked"),
        (("check", "--rev", "HEAD", "jobs/x/preset.toml"), 0, "1 preset checked"),
        (("render", "jobs/x/preset", "--to", "json"), 0, '"hccl_timeout": 1800'),
        (("diff", "base", "jobs/x/preset"), 0, "+ deterministic 1"),
        (("diff", "--rev", "HEAD"), 0, "0 presets differ, 2 do not"),
        (("log", "jobs/x/preset"), 0, "via jobs/x/preset.toml:4"),
        (("blame", "jobs/x/preset"), 0, "jobs/x/preset.toml:4"),
        (("release", "jobs/x/preset", "--dry-run"), 0, "jobs/x/preset/v1.0.0"),
        (("restore", "jobs/x/preset@HEAD", "--dry-run"), 0, "deterministic = 1"),
        (("show", "jobs/y/preset"), 2, "no preset 'jobs/y/preset'"),
        (("show", "jobs/x/presett"), 2, "did you mean 'jobs/x/preset'"),
    ],
)
def test_every_verb_knows_a_preset_outside_the_store(
    arguments: tuple[str, ...], code: int, expected: str, team: Repo, run: Run
) -> None:
    expect(run(*arguments), code, expected)


def test_its_path_means_it_from_any_folder(
    team: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(team.folder / "jobs/x")
    assert run("show", "preset.toml", "--origin").out.count("preset.toml:4") == 1
    expect(run("set", "preset.toml", "hccl_timeout=9"), 0)
    write(team.folder, {"jobs/x/other.toml": BASE})
    expect(run("check", "other.toml"), 0, "1 preset checked")  # no glob names it: a file of its own
    assert "9 s" in run("diff", "jobs/x/preset").out


def test_it_is_changed_committed_released_and_restored_like_any_other(team: Repo, run: Run) -> None:
    assert run("set", "jobs/x/preset", "deterministic=0").code == 0
    assert run("set", "base", "hccl_timeout=900").code == 0
    assert "not committed as it is" in run("release", "jobs/x/preset").err
    assert run("diff", "--rev", "HEAD", "--name-only").out == "base\njobs/x/preset\n"
    assert run("commit", "jobs/x/preset").out.endswith(" jobs/x/preset: deterministic 1 → 0\n")
    assert team.git("show", "--name-only", "--format=") == "jobs/x/preset.toml"
    assert run("commit").code == 0
    assert run("release", "jobs/x/preset").out == "jobs/x/preset/v1.0.0\n"
    assert "matches" in run("verify", "--tags").out
    assert "1.0.0" in run("list").out
    assert run("log", "jobs/x/preset").out.count("via") == 4
    (team.folder / "jobs/x/preset.toml").unlink()
    assert run("restore", "jobs/x/preset@1.0.0").code == 0
    assert "deterministic = 0" in (team.folder / "jobs/x/preset.toml").read_text()
    assert team.git("status", "--porcelain") == ""


def test_a_new_preset_goes_where_a_glob_says(team: Repo, run: Run) -> None:
    assert "+++ b/jobs/y/preset.toml" in run("new", "jobs/y/preset", "--extends", "base").out
    assert "+++ b/profiles/jobs/y.toml" in run("new", "jobs/y", "--extends", "base").out
    assert "exists already" in run("new", "jobs/x/preset").err
    assert run("commit").out.endswith(" Add jobs/y, jobs/y/preset\n")


def test_a_move_of_the_store_leaves_what_lies_outside_in_its_place(team: Repo, run: Run) -> None:
    team.git("mv", "profiles", "conf")
    write(team.folder, {"jobs/x/preset.toml": LEAF.replace("= 1", "= 0")})
    team.commit(message="move")
    output = run("log", "jobs/x/preset", "--store", "conf").out
    assert [line.split("  ")[1] for line in output.splitlines() if not line.startswith(" ")] == [
        "move",
        "change",
    ]
    assert "~ deterministic 1 → 0" in output
    assert "1 preset differs, 1 does not" in run("diff", "--rev", "HEAD~1", "--store", "conf").out


def test_what_the_last_commit_does_not_name_is_left_out(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE})
    write(repo.folder, {"npuprof.toml": GLOBS, "jobs/x/preset.toml": LEAF})
    repo.write({"base": BASE.replace("1800", "900")})
    expect(run("commit", "base"), 0)
    assert repo.git("show", "--name-only", "--format=") == "profiles/base.toml"
    assert run("commit", "jobs/x/preset").out.endswith(" Add jobs/x/preset\n")
    assert repo.git("show", "--name-only", "--format=") == "jobs/x/preset.toml\nnpuprof.toml"
    assert run("show", "jobs/x/preset@HEAD").code == 0
    assert run("show", "jobs/x/preset@HEAD~1").code == 2
    write(
        repo.folder,
        {
            "npuprof.toml": "presets = ['jobs/y/*.toml']\n",
            "jobs/y/a.toml": LEAF,
            "other.toml": "x = 1",
        },
    )
    (repo.folder / "jobs/x/preset.toml").unlink()
    assert run("commit").out.endswith(" Rename jobs/x/preset to jobs/y/a\n")
    assert repo.git("status", "--porcelain") == "?? other.toml"


def test_one_name_for_two_presets_is_an_error_with_both_places(team: Repo, run: Run) -> None:
    team.commit({"jobs/x/preset": LEAF})
    both = "profiles/jobs/x/preset.toml and jobs/x/preset.toml"
    for arguments in (
        ("show", "jobs/x/preset"),
        ("check",),
        ("check", "jobs/x/preset.toml"),
        ("set", "jobs/x/preset", "hccl_timeout=9"),
    ):
        expect(run(*arguments), 2, "NP014", both)
    then = team.head[:7]
    for arguments in (("show", "jobs/x/preset@HEAD"), ("check", "--rev", "HEAD")):
        expect(
            run(*arguments), 2, f"{then}:profiles/jobs/x/preset.toml and {then}:jobs/x/preset.toml"
        )
    assert run("check", "base").code == 0


def test_nothing_is_found_through_links_nor_in_hidden_or_foreign_folders(
    team: Repo, run: Run, tmp_path: Path
) -> None:
    write(
        team.folder,
        {
            "npuprof.toml": 'presets = ["jobs/**/preset.toml", "**/deep/*.toml"]\n',
            "jobs/.x/preset.toml": LEAF,
        },
    )
    write(tmp_path, {"away/preset.toml": LEAF, "away/deep/a.toml": LEAF})
    write(
        team.folder,
        {"jobs/other/preset.toml": LEAF, ".git/deep/a.toml": LEAF, "profiles/deep/in.toml": LEAF},
    )
    (team.folder / "jobs/other/.git").write_text("gitdir: elsewhere\n")
    (team.folder / "jobs/out").symlink_to(tmp_path / "away")
    (team.folder / "jobs/loop").symlink_to(".")
    (team.folder / "jobs/x/deep").symlink_to("..")
    (team.folder / "jobs/folder/preset.toml").mkdir(parents=True)
    home = Folder("profiles")
    assert home.names() == ["base", "deep/in", "jobs/folder/preset", "jobs/x/preset"]
    assert (
        run("show", "jobs/out/preset")
        .err.splitlines()[0]
        .endswith("jobs/out/preset.toml is a link, or lies below one")
    )
    assert (
        "cannot read jobs/folder/preset.toml: is a directory"
        in run("show", "jobs/folder/preset").err
    )
    (team.folder / "jobs/folder/preset.toml").rmdir()
    (team.folder / "jobs/folder/preset.toml").symlink_to("../x/preset.toml")
    assert "NP005" in run("check").out
    team.git("add", "jobs/folder", "npuprof.toml")
    team.git("commit", "-qm", "link")
    expect(run("check", "--rev", "HEAD"), 2, "jobs/folder/preset.toml is a link")


def test_a_sparse_checkout_that_leaves_it_out_does_not_lose_it(team: Repo, run: Run) -> None:
    team.git("sparse-checkout", "set", "--no-cone", "/profiles/", "/npuprof.toml")
    assert not (team.folder / "jobs").exists()
    assert run("diff", "--rev", "HEAD").out == "0 presets differ, 2 do not\n"
    assert "git sparse-checkout add" in run("show", "jobs/x/preset").err
    assert run("commit").code == 1
    assert run("release", "jobs/x/preset").code == 0


def test_a_release_holds_though_npuprof_toml_forgets_the_preset(team: Repo, run: Run) -> None:
    assert run("release", "jobs/x/preset").code == 0
    write(team.folder, {"npuprof.toml": "presets = []\n"})
    team.commit(message="forget")
    assert "matches" in run("verify", "--tags").out
    assert "deterministic = 1" in run("show", "jobs/x/preset@1.0.0").out
    expect(run("restore", "jobs/x/preset@1.0.0"), 2, "npuprof.toml does not name it now")


def test_a_store_at_the_top_reserves_npuprof_toml(tmp_path: Path, run: Run) -> None:
    repo = Repo(tmp_path / "top")
    write(repo.folder, {"npuprof.toml": GLOBS, "base.toml": BASE, "jobs/x/preset.toml": LEAF})
    repo.git("add", "-A")
    repo.git("commit", "-qm", "top")
    for arguments in (("check",), ("check", "--rev", "HEAD")):
        expect(run(*arguments, "--store", str(repo.folder)), 0, "2 presets checked")


def test_a_merge_of_it_is_judged_with_its_store(team: Repo) -> None:
    sides = [
        LEAF,
        LEAF + "hccl_timeout = 3000\n",
        "# x\n" + LEAF + "stream_sync_timeout = 2000000\n",
    ]
    unfit = find_unfit_changes(merge_texts(*sides), sides, "jobs/x/preset.toml")
    assert any("NP378" in note for note in unfit.notes), unfit
    bad, lost = (
        LEAF + "static_memory_policy = 2\n[env]\nGE_USE_STATIC_MEMORY = 2\n",
        LEAF.replace("base", "gone"),
    )
    for sides in (
        [LEAF, bad, "# x\n" + LEAF],
        [lost, bad.replace("base", "gone"), LEAF],
    ):  # the error is there, or may be, on one side
        unfit = find_unfit_changes(merge_texts(*sides), sides, "jobs/x/preset.toml")
        assert unfit.forced == []
        assert unfit.notes == []


def test_a_fault_of_the_file_is_told_where_presets_are_looked_for(team: Repo, run: Run) -> None:
    write(team.folder, {"npuprof.toml": "presets = [\n"})
    for arguments in (("show", "base"), ("list",), ("show", "jobs/x/preset")):
        assert run(*arguments).code == 2
        assert "npuprof.toml" in run(*arguments).err
    with pytest.raises(NpuprofError):
        Folder("profiles").profile("jobs/x/preset")


def test_a_source_shares_its_store_and_nothing_beside_it(
    team: Repo, run: Run, tmp_path: Path
) -> None:
    there = Repo(tmp_path / "there")
    write(there.folder, {"npuprof.toml": GLOBS, "jobs/theirs/preset.toml": LEAF})
    there.commit({"base": BASE})
    assert run("source", "add", "team", f"file://{there.folder}").code == 0
    assert [line.split()[0] for line in run("list", "--store", "team:").out.splitlines()] == [
        "team:base"
    ]
    expect(
        run("show", "team:jobs/theirs/preset"), 2, "NP008", "no preset 'team:jobs/theirs/preset'"
    )
    expect(run("source", "vendor", "team", "--into", "team"), 0)
    assert sorted(path.name for path in (team.folder / "team").rglob("*.toml")) == [
        ".npuprof.toml",
        "base.toml",
    ]
    expect(run("show", "team:jobs/x/preset"), 2, "NP008", "no preset 'team:jobs/x/preset'")
    assert run("show", "team:base").code == 0


@pytest.mark.parametrize("folder", ["a [b]*", ":(top)"])
def test_the_folder_of_npuprof_toml_may_have_any_name(folder: str, repo: Repo, run: Run) -> None:
    write(
        repo.folder / folder,
        {"npuprof.toml": GLOBS, "jobs/x/preset.toml": LEAF, "profiles/base.toml": BASE},
    )
    repo.commit()
    write(repo.folder / folder, {"jobs/x/preset.toml": LEAF.replace("= 1", "= 0")})
    store = ("--store", f"./{folder}/profiles")
    done = run("commit", *store)
    assert done.out.endswith(" jobs/x/preset: deterministic 1 → 0\n"), done
    assert run("log", "jobs/x/preset", *store).out.count("via") == 3
    assert run("release", "jobs/x/preset", *store).code == 0


def test_presets_whose_names_differ_in_case_only_are_told(store: Store, run: Run) -> None:
    store(
        {
            "Bert": "options.deterministic = 1\n",
            "bert": "options.deterministic = 1\n",
            "other": "options.deterministic = 1\n",
        }
    )
    result = run("check")
    assert result.code == 0
    assert result.out.count("NP016") == 1
    assert "profiles/bert.toml" in result.out
    assert "NP016" not in run("check", "bert").out
