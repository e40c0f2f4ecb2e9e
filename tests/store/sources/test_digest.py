"""The digest of a source's store in the lock: compared wherever the source is read."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from npuprof.store.sources.mirror import find_cache_folder
from support.repositories import Repo
from support.running import Run

#: What reads a source.
READING = [
    ("show", "job"),
    ("check",),
    ("render", "job"),
    ("render", "pinned"),
    ("list", "--store", "team:"),
    ("explain", "job", "hccl_timeout"),
    ("show", "team:base@1.0.0"),
    ("source", "sync"),
]


@pytest.mark.parametrize(
    ("arguments", "how"),
    [*zip(READING, ["mirror", "vendored", "copied by hand"] * 3, strict=False)],
)
def test_a_wrong_digest_in_the_lock_is_told_by_whatever_reads_the_source(
    arguments: tuple[str, ...], how: str, app: Repo, run: Run, lock: Path
) -> None:
    app.write({"pinned": 'profile.extends = ["team:base@1.0.0"]\n'})
    assert run("source", "update", "--yes").code == 0
    if how != "mirror":
        assert run("source", "vendor", "team").code == 0
    app.commit()
    assert run(*arguments).code == 0
    if how == "copied by hand":
        shutil.rmtree(find_cache_folder())
    right = lock.read_text()
    lock.write_text(re.sub(r'(?m)^digest = "sha256:....', 'digest = "sha256:dead', right))
    done = run(*arguments)
    output = done.out + done.err
    assert done.code == 2, done
    assert "NP049" in output, done
    assert "npuprof source update team" in output, done
    assert "npuprof.lock:" in output or arguments[0] == "source", "with its place"
    assert run("show", "own").code == 0, "what has nothing to do with the source works"
    assert run("source", "list").out.count("edited") == 1
    lock.write_text(right)
    assert run(*arguments).code == 0
    lock.write_text(re.sub(r'(?m)^digest = "sha256:....', 'digest = "sha256:dead', right))
    assert run("source", "update", "--yes").code == 0
    assert lock.read_text() == right
    assert run(*arguments).code == 0


# Copies that were edited: what a commit's tree holds counts, and not who edited them first


@pytest.mark.parametrize("name", ["base.toml", "other.toml"])
def test_a_server_refuses_a_push_that_edits_a_copy_once_more(
    name: str, app: Repo, run: Run
) -> None:
    assert run("source", "vendor", "team").code == 0
    commits = [app.commit()]
    copy = app.folder / "vendor/team" / name
    for text in ("one", "two"):
        copy.write_text(f"{copy.read_text()}\n# {text}\n")
        commits.append(app.commit(message=text))
    app.write({"own": "options.deterministic = 1\n"})
    commits.append(app.commit(message="nothing to do with it"))
    copy.unlink()
    commits.append(app.commit(message="gone"))
    codes = [
        run("git", "receive", stdin=f"{old} {new} refs/heads/main\n".encode()).code
        for old, new in pairwise(commits)
    ]
    assert codes == [1, 1, 0, 1]
