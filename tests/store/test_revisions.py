"""Presets at revisions and versions: specs with @, and the errors of invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import npuprof
from npuprof.store.gitstore.objects import Git
from support.histories import import_versions
from support.repositories import Repo
from support.running import Run, Store, expect

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
    ("requested", "timeout"),
    [
        ("leaf", 60),
        ("leaf@HEAD", 60),
        ("leaf@HEAD~3", 1800),
        ("leaf@main~2", 600),
        ("leaf@1.0.0", 1800),
        ("leaf@v1.0.0", 1800),
        ("leaf@1", 600),
        ("leaf@1.2", 600),
        ("leaf@2", 60),
        ("leaf@leaf/v1.0.0", 1800),
        ("leaf@:/second", 600),
        ("leaf@@", 60),
    ],
)
def test_a_spec_with_a_revision_resolves_with_its_parents_as_they_were(
    two: Repo, requested: str, timeout: int
) -> None:
    assert npuprof.open_store().resolve(requested).options["hccl_timeout"] == timeout


def test_an_origin_at_a_revision_says_which_and_git_can_show_it(two: Repo) -> None:
    config = npuprof.open_store().resolve("leaf@HEAD~3")
    origin = config.origins("hccl_timeout")[0]
    assert origin.revision == two.git("rev-parse", "HEAD~3")
    assert str(origin) == f"{origin.revision[:7]}:profiles/base.toml:4"
    assert "hccl_timeout = 1800" in two.git("show", f"{origin.revision[:7]}:{origin.file}")


def test_a_pinned_parent_and_its_own_parents_stay_at_their_version(two: Repo) -> None:
    two.commit({"pinned": '[profile]\nextends = ["leaf@1.0.0"]\n[options]\ngraph_run_mode = 1\n'})
    config = npuprof.open_store().resolve("pinned")
    assert config.options == {"graph_run_mode": 1, "iterations_per_loop": 10, "hccl_timeout": 1800}
    assert [profile.name for profile in config.lineage] == ["base", "leaf", "pinned"]
    assert str(config.origins("hccl_timeout")[0]).endswith(":profiles/base.toml:4")


def test_an_empty_repository_has_no_revisions(repo: Repo, run: Run) -> None:
    repo.write({"leaf": "[options]\nhccl_timeout = 1\n"})
    for arguments in (
        "show leaf@HEAD",
        "diff",
        "diff leaf",
        "log leaf",
        "blame leaf",
        "release leaf",
    ):
        expect(run(*arguments.split()), 2, "no commits yet")


def test_presets_outside_a_repository_have_no_revisions(store: Store, run: Run) -> None:
    store({"leaf": "[options]\n"})
    reading = (
        "show leaf@HEAD,diff,diff --rev HEAD,log leaf,blame "
        "leaf,commit,release leaf,restore leaf@HEAD,list --versions"
    )
    for arguments in reading.split(","):
        expect(run(*arguments.split()), 2, "not in a git repository")


def test_without_git_only_what_needs_it_fails(
    two: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(two.folder))
    assert run("show", "leaf").code == 0
    for command in (("show", "leaf@HEAD"), ("diff",), ("log", "leaf")):
        done = run(*command)
        assert done.code == 2
        assert done.out == ""
        assert "NP020: git was not found" in done.err


def test_a_shallow_clone_says_that_it_is_shallow(
    two: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.git("clone", "-q", "--depth", "1", f"file://{two.folder}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    assert run("show", "leaf@HEAD").code == 0
    done = run("show", "leaf@HEAD~2")
    assert done.code == 2
    assert done.out == ""
    assert "git fetch --unshallow" in done.err
    assert (
        "this clone is shallow, so its oldest commit seems to have made everything"
        in run("log", "leaf").err
    )
    assert (
        "this clone is shallow, older commits were not looked at: git fetch --unshallow"
        in run("whatran", "0" * 16).err
    )
    assert "shallow" not in run("whatran", npuprof.open_store().resolve("leaf").digest).err


def test_one_git_process_reads_a_preset_at_a_revision(
    two: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
    assert run("show", "leaf@HEAD~2").code == 0
    assert trace.read_text().count('"event":"start"') == 1
    trace.unlink()
    assert run("show", "leaf@1").code == 0
    assert trace.read_text().count('"event":"start"') == 2


def test_a_history_is_read_in_batches_and_its_first_step_alone(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = import_versions(
        tmp_path / "repo", [{"leaf": BASE.format(number)} for number in range(600)]
    )
    monkeypatch.chdir(repo.folder)
    requested: list[int] = []
    read = Git._read_object_batch
    monkeypatch.setattr(
        Git,
        "_read_object_batch",
        lambda git, names: (requested.append(len(names)), read(git, names))[1],
    )
    for arguments, sizes in ((["-n", "1"], [2]), ([], [2, 4, 16, 64, 256, 256, 2])):
        requested.clear()
        assert run("log", "leaf", *arguments).out.count("hccl_timeout") == (1 if arguments else 600)
        assert [
            size for size in requested if size > 1
        ] == sizes  # texts; commits and trees are single


def test_a_text_is_read_once_where_a_preset_had_many_parents_earlier(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"p{number}" for number in range(12)]
    parents = [
        {name: BASE.format(100 * place + number) for place, name in enumerate(names)}
        for number in range(40)
    ]
    old = [{**tree, "leaf": f"[profile]\nextends = {names}\n"} for tree in parents]
    repo = import_versions(
        tmp_path / "repo",
        [*old, *({**parents[-1], "leaf": BASE.format(number)} for number in range(9))],
    )
    monkeypatch.chdir(repo.folder)
    requested: list[str] = []
    read = Git._read_object_batch
    monkeypatch.setattr(
        Git, "_read_object_batch", lambda git, names: (requested.extend(names), read(git, names))[1]
    )
    assert run("log", "leaf", "hccl_timeout").out.count("hccl_timeout") > 40
    assert len(requested) <= 1.2 * len({*requested})
