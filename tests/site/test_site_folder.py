"""``site`` replaces and removes only files that npuprof wrote there, and files equal to HEAD."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from npuprof.site import site_folder as site_folder
from support.repositories import Repo
from support.running import Run

pytest.importorskip("jinja2")

PRESETS = {
    "base": '[profile]\ndescription = "shared"\n[options]\nhccl_timeout = 1836\n',
    "job": 'profile.extends = ["base"]\n[options]\nprecision_mode_v2 = "mixed_float16"\n',
    "other": "[options]\ndeterministic = 1\n",
}
LIST = ".npuprof-site.json"


def read_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def forget_records(tmp_path: Path) -> None:
    """Remove the records of the user's own: the folder is then as in another clone."""
    shutil.rmtree(tmp_path / "home/.local/state/npuprof/sites")


@pytest.fixture
def site(repo: Repo, run: Run) -> Path:
    repo.commit(PRESETS)
    assert run("site", "public").code == 0
    return repo.folder / "public"


@pytest.fixture
def committed(site: Path, repo: Repo, tmp_path: Path) -> Path:
    """A site that came with a clone."""
    repo.git("add", "-A")
    repo.git("commit", "-qm", "site")
    forget_records(tmp_path)
    return site


@pytest.mark.parametrize(
    ("name", "has_record"),
    [
        ("presets/notes.txt", True),
        ("../outside/kept", False),
        ("out/kept", True),
        ("link", False),
        ("empty", True),
        ("notes.txt", False),
    ],
)
def test_a_forged_list_of_a_site_removes_nothing_of_yours(
    name: str, has_record: bool, committed: Path, run: Run, repo: Repo, tmp_path: Path
) -> None:
    mine = "" if name == "empty" else "mine"
    outside = repo.folder.parent / "outside"
    outside.mkdir()
    (outside / "kept").write_text(mine)
    if has_record:
        assert run("site", "public").code == 0
    listed = json.loads((committed / LIST).read_text())
    digests = {**dict.fromkeys(listed["files"], "0" * 64), name: sha256(mine.encode()).hexdigest()}
    (committed / LIST).write_text(json.dumps({"schema": "npuprof.site/2", "files": digests}))
    repo.git("commit", "-qam", "forged")
    if name == "out/kept":
        (committed / "out").symlink_to(outside)
    elif name == "link":
        (committed / "link").symlink_to(outside / "kept")
    elif ".." not in name:
        (committed / name).write_text(mine)
    result = run("site", "public")
    assert result.code == (0 if ".." in name else 2), result.err
    assert (outside / "kept").read_text() == mine
    assert ".." in name or (committed / name).read_text() == mine


@pytest.mark.parametrize("page", ["index.html", "presets/job.html"])
def test_a_page_that_somebody_edited_is_named_and_nothing_is_written(
    page: str, site: Path, run: Run, repo: Repo
) -> None:
    (site / page).write_text("mine")
    (repo.folder / "profiles/other.toml").write_text("[options]\ndeterministic = 0\n")
    before = read_files(site)
    result = run("site", "public")
    assert result.code == 2
    assert f"public/{page} is not as npuprof wrote it" in result.err
    assert f"remove public/{page}" in result.err
    assert read_files(site) == before
    (site / page).unlink()
    assert run("site", "public").code == 0


def test_a_page_of_yours_that_a_committed_list_names_is_not_written_over(
    committed: Path, run: Run, repo: Repo
) -> None:
    repo.git("rm", "-q", "--cached", "public/index.html")
    repo.git("commit", "-qm", "forged")
    (committed / "index.html").write_text("mine")
    result = run("site", "public")
    assert result.code == 2, result.err
    assert "public/index.html is not as npuprof wrote it" in result.err, result.err
    assert (committed / "index.html").read_text() == "mine"


def test_pages_without_a_record_that_git_does_not_have_are_rejected_with_a_way_out(
    site: Path, run: Run, repo: Repo, tmp_path: Path
) -> None:
    forget_records(tmp_path)
    assert run("site", "public").code == 0  # all is as it would be written
    forget_records(tmp_path)
    (repo.folder / "profiles/base.toml").write_text("[options]\nhccl_timeout = 600\n")
    result = run("site", "public")
    assert result.code == 2, result.err
    assert "NP980" in result.err, result.err
    assert "name an empty folder" in result.err, result.err
    shutil.rmtree(site)
    assert run("site", "public").code == 0


def test_a_committed_site_is_updated_in_another_clone(
    committed: Path, run: Run, repo: Repo
) -> None:
    (repo.folder / "profiles/base.toml").write_text("[options]\nhccl_timeout = 600\n")
    (repo.folder / "profiles/other.toml").unlink()
    result = run("site", "public")
    assert result.code == 0, result.err
    assert "public/presets/other.html is no longer part of the site" in result.err, result.err
    assert run("site", "fresh").code == 0
    fresh = read_files(repo.folder / "fresh")
    assert {
        name: content
        for name, content in read_files(committed).items()
        if name in fresh and name != LIST
    } == {name: content for name, content in fresh.items() if name != LIST}
    (repo.folder / "profiles/base.toml").write_text(
        "[options]\nhccl_timeout = 601\n"
    )  # what npuprof wrote meanwhile is not in HEAD
    assert run("site", "public").code == 0


@pytest.mark.parametrize(
    ("link", "target"),
    [("search.html", "notes.txt"), ("presets", "elsewhere"), ("data", "../out"), (LIST, "x.json")],
)
def test_nothing_is_written_through_a_link_in_a_site(
    link: str, target: str, site: Path, run: Run, repo: Repo
) -> None:
    there = (site / target).resolve()
    if (site / link).is_dir():
        (site / link).rename(there)
    else:
        (site / link).unlink()
        there.write_text("mine")
    (site / link).symlink_to(target)
    if link != LIST:
        listed = json.loads((site / LIST).read_text())
        (site / LIST).write_text(json.dumps({**listed, "files": [*listed["files"], target]}))
    (repo.folder / "profiles/base.toml").write_text("[options]\nhccl_timeout = 600\n")
    before = read_files(repo.folder)
    result = run("site", "public")
    assert result.code == 2, result.err
    assert f"public/{link} is a link" in result.err, result.err
    assert f"rm public/{link}" in result.err, result.err
    assert read_files(repo.folder) == before


def test_no_forged_page_or_script_of_a_committed_site_stays(
    committed: Path, run: Run, repo: Repo
) -> None:
    for path in committed.rglob("*.*"):
        if path.suffix in (".html", ".js", ".css"):
            path.write_text("<script>alert(1)</script>")
    repo.git("commit", "-qam", "forged")
    assert run("site", "public").code == 0
    assert run("site", "fresh").code == 0
    assert read_files(committed) == read_files(repo.folder / "fresh")


@pytest.mark.parametrize(
    "content",
    [
        '{"files": ' + "[" * 100_000,
        "3",
        '{"files": [3, null, [], {}]}',
        "\ud800",
        *(json.dumps({"files": [name]}) for name in ("presets/./x.html", "a\nb", "\0")),
    ],
)
def test_whatever_the_list_of_a_site_contains_breaks_nothing(
    content: str, site: Path, run: Run, repo: Repo, tmp_path: Path
) -> None:
    (site / LIST).write_text(content, errors="surrogatepass")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "site")
    assert run("site", "public").code == 0
    (site / LIST).write_text(content, errors="surrogatepass")
    (site / "presets/x.html").write_text("mine")
    result = run("site", "public")
    assert result.code == 2, result.err
    assert "public/presets/x.html is not as npuprof wrote it" in result.err, result.err
    forget_records(tmp_path)
    (site / "a\nb").write_text("mine")
    assert run("site", "public").code == 2
    assert (site / "a\nb").read_text() == "mine"
    assert (site / "presets/x.html").read_text() == "mine"


@pytest.mark.parametrize("record", ["", "\udc80", "0 index.html", f"{'0' * 64} ../x"])
def test_a_record_that_is_damaged_proves_nothing(
    record: str, site: Path, run: Run, repo: Repo, tmp_path: Path
) -> None:
    (path,) = (tmp_path / "home/.local/state/npuprof/sites").iterdir()
    path.write_text(record, errors="surrogateescape")
    assert run("site", "public").code == 0
    path.write_text(record, errors="surrogateescape")
    (repo.folder / "profiles/base.toml").write_text("[options]\nhccl_timeout = 600\n")
    before, result = read_files(site), run("site", "public")
    assert result.code == 2, result.err
    assert "NP980" in result.err, result.err
    assert read_files(site) == before, result.err


def test_a_run_that_is_killed_on_the_way_is_completed_by_the_next(
    site: Path, run: Run, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = site_folder.write_planned_files

    def write_some(files: Any) -> None:
        write(files[::2])
        (site / f"data/.npuprof-{'0' * 16}.new").write_text("begun")
        raise KeyboardInterrupt

    (repo.folder / "profiles/base.toml").write_text("[options]\nhccl_timeout = 600\n")
    (repo.folder / "profiles/other.toml").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(site_folder, "write_planned_files", write_some)
        assert run("site", "public").code == 130
    (repo.folder / "profiles/base.toml").write_text("[options]\nhccl_timeout = 601\n")
    assert run("site", "public").code == 0
    assert run("site", "fresh").code == 0
    assert read_files(site) == read_files(repo.folder / "fresh")


def test_a_committed_site_whose_lines_git_gave_other_ends_is_replaced(
    committed: Path, repo: Repo, run: Run
) -> None:
    for path in committed.rglob("*.html"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    repo.write({"job": PRESETS["job"].replace("mixed_float16", "fp16")})
    done = run("site", "public")
    assert done.code == 0, done.err
    assert b"\r\n" not in (committed / "presets/job.html").read_bytes(), done.err
