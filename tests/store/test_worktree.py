"""Work trees of every kind: sparse, with filters, with links.

What git takes for unchanged is so, and no filter is run to tell.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.repositories import Repo
from support.running import Run, expect

BASE = "[options]\nhccl_timeout = {}\n"
LEAF = '[profile]\nextends = ["far/base"]\n[options]\ndeterministic = 1\n'


def keep_out_by_sparse_checkout(repo: Repo) -> None:
    repo.git("sparse-checkout", "set", "--no-cone", "/profiles/*", "!/profiles/far/")


def keep_out_by_hand(repo: Repo) -> None:
    repo.git("update-index", "--skip-worktree", "profiles/far/base.toml", "profiles/far/own.toml")
    for name in ("base", "own"):
        (repo.folder / f"profiles/far/{name}.toml").unlink()


@pytest.fixture(
    params=[keep_out_by_sparse_checkout, keep_out_by_hand], ids=lambda keep: keep.__name__
)
def sparse(repo: Repo, request: pytest.FixtureRequest) -> Repo:
    """A repository of which the presets below ``far`` are not in the work tree."""
    far = {"far/base": BASE.format(5), "far/own": BASE.format(5)}
    repo.commit({**far, "leaf": LEAF, "near/leaf": LEAF, "near/own": BASE.format(7)})
    repo.commit({"far/own": BASE.format(6)})
    request.param(repo)
    assert not (repo.folder / "profiles/far/base.toml").exists()
    return repo


def test_what_a_sparse_checkout_keeps_out_is_neither_removed_nor_missing(
    sparse: Repo, run: Run
) -> None:
    assert run("diff", "--rev", "HEAD").out == "0 presets differ, 5 do not\n"
    assert (
        json.loads(run("diff", "--rev", "HEAD~1", "--format", "json").out)["presets"][0]["preset"]
        == "far/own"
    )
    assert run("diff", "--rev", "HEAD~1", "--name-only").out == "far/own\n"
    assert run("commit").code == 1
    sparse.write({"leaf": LEAF + "hccl_timeout = 9\n"})
    assert "~ hccl_timeout 5 → 9 s" in run("diff", "--rev", "HEAD").out
    expect(run("commit"), 0)
    assert (
        sparse.git("show", "--name-status", "--format=%s")
        == "leaf: hccl_timeout 5 → 9 s\n\nM\tprofiles/leaf.toml"
    )
    assert sparse.git("status", "--porcelain") == ""
    assert run("release", "leaf").code == 0
    assert run("check", "--rev", "HEAD").code == 0


#: The attribute, and what the work tree has.
CONVERTED = {
    "a filter, run before": ("filter=mark", b"# HERE\nx\n"),
    "an id put in": ("ident", b"# $Id$\n"),
    "an encoding": ("working-tree-encoding=UTF-8", b"# a\n"),
    "mixed line endings": ("text", b"# a\r\n# b\n"),
    "carriage returns on checkout": ("text eol=crlf", b"# a\n# b\n"),
    "no conversion": ("-text", b"# a\r\n# b\n"),
}


@pytest.mark.parametrize("expected", CONVERTED)
def test_a_file_that_git_stores_as_other_bytes_is_as_it_was_committed(
    repo: Repo, run: Run, tmp_path: Path, expected: str
) -> None:
    attribute, note = CONVERTED[expected]
    (repo.folder / ".gitattributes").write_text(f"profiles/base.toml {attribute}\n")
    repo.git("config", "filter.mark.clean", f"touch '{tmp_path}/ran'; sed s/HERE/there/")
    repo.git("config", "filter.mark.smudge", f"touch '{tmp_path}/ran'; sed s/there/HERE/")
    repo.git("config", "filter.mark.required", "true")
    text = note.replace(b"x\n", b"") + BASE.format(5).encode()
    repo.commit({"base": text, "leaf": LEAF.replace("far/", "")})
    (repo.folder / "profiles/base.toml").unlink()
    repo.git("checkout", "--", "profiles/base.toml")
    (tmp_path / "ran").unlink(missing_ok=True)
    assert run("diff", "--rev", "HEAD").out == "0 presets differ, 2 do not\n"
    assert run("diff", "--rev", "HEAD", "--raw").out == "0 presets differ, 2 do not\n"
    assert run("restore", "base@HEAD", "--dry-run").code == 0
    assert not (tmp_path / "ran").exists()
    assert run("commit").code == 1
    assert run("release", "leaf").code == 0


def test_links_are_committed_released_and_compared_as_what_they_lead_to(
    repo: Repo, run: Run
) -> None:
    repo.commit({"base": BASE.format(5), "sub/own": BASE.format(8)})
    folder = repo.folder / "profiles"
    (folder / "link.toml").symlink_to("base.toml")
    (folder / "sub/up.toml").symlink_to("../link.toml")
    expect(run("commit"), 0)
    assert repo.git("log", "-1", "--format=%s") == "Add link, sub/up"
    assert repo.git("ls-tree", "HEAD", "profiles/link.toml").startswith("120000")
    assert run("diff", "--rev", "HEAD").out == "0 presets differ, 4 do not\n"
    for name in ("link", "sub/up"):
        assert run("release", name).code == 0
        assert "hccl_timeout = 5" in run("show", f"{name}@1.0.0").out
    repo.write({"base": BASE.format(6)})
    assert "3 presets differ, 1 does not" in run("diff", "--rev", "HEAD").out
    expect(run("release", "link", "1.0.1"), 2, "not committed as it is")
    (folder / "link.toml").unlink()
    (folder / "link.toml").symlink_to("sub/own.toml")
    assert run("commit", "link").code == 0
    assert (
        repo.git("log", "-1", "--format=%s")
        == "link: hccl_timeout 5 → 8 s; sub/up: hccl_timeout 5 → 8 s"
    )
    (folder / "out.toml").symlink_to("../../elsewhere.toml")
    expect(run("commit", "out"), 2, "NP005")


@pytest.mark.parametrize("kind", ["shallow", "sha256", "submodule", "worktree"])
def test_other_kinds_of_repositories_answer_alike(
    repo: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    base, there = repo, tmp_path / "there"
    if kind == "sha256":
        (tmp_path / "long").mkdir()
        subprocess.run(
            ["git", "init", "-q", "-b", "main", "--object-format=sha256"],
            cwd=tmp_path / "long",
            check=True,
        )
        base = Repo(tmp_path / "long", init=False)
    for number in (5, 6, 7):
        base.commit({"far/base": BASE.format(number), "leaf": LEAF})
    if kind == "shallow":
        repo.git("clone", "-q", "--depth", "2", f"file://{repo.folder}", str(there))
    elif kind == "submodule":
        outer = Repo(there)
        outer.git(
            "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo.folder), "inner"
        )
        there = outer.folder / "inner"
    elif kind == "worktree":
        repo.git("worktree", "add", "-q", str(there))
    else:
        there = base.folder
    monkeypatch.chdir(there)
    assert run("check", "--rev", "HEAD").code == 0
    assert "hccl_timeout 6 → 7 s" in run("diff", "--rev", "HEAD~1").out
    assert "hccl_timeout 6 → 7 s" in run("log", "leaf").out
    assert run("release", "leaf").code == 0
    (there / "profiles/leaf.toml").write_text(LEAF + "hccl_timeout = 9\n")
    expect(run("release", "leaf", "2.0.0"), 2, "leaf is not committed as it is")
    assert run("commit").code == 0
    assert run("diff", "--rev", "HEAD").out == "0 presets differ, 2 do not\n"
