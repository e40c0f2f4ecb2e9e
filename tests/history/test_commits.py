"""Commits as they are read from git: changed files, authors, and former folders of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from npuprof.store.gitstore.commits import Commit, find_former_folder, load_commits, walk_commits
from npuprof.store.gitstore.repository import Repository
from support.repositories import Link, Node, Repo, import_graph

ONE, TWO, THREE = (
    "[options]\n" + "".join(f"{word}_{number} = 1\n" for number in range(9))
    for word in ("one", "two", "three")
)
EDITED = ONE.replace("one_5 = 1", "one_5 = 2")


def open_repository(repo: Repo) -> Repository:
    return Repository(str(repo.folder / "profiles"))


def describe_changes(
    repo: Repo, commit: Commit
) -> list[list[tuple[str | None, str, str | None, str]]]:
    """Return the changes against each parent: name and text before and after.

    A text is followed by its mode, unless that is the one of a plain file.
    """

    def show(file: Any) -> str:
        return (
            "-"
            if file is None
            else ("" if file.mode == "100644" else f"{file.mode} ")
            + repo.git("cat-file", "blob", file.oid)[:20]
        )

    return [
        sorted(((c.was, show(c.old), c.now, show(c.new)) for c in changed), key=str)
        for changed in commit.changes.values()
    ]


#: The presets of a commit, those of the next one, and what that changed.
CHANGES: dict[str, tuple[dict[str, str], dict[str, str], list[tuple[Any, ...]]]] = {
    "added": ({"a": "1"}, {"a": "1", "b": "2"}, [(None, "-", "b", "2")]),
    "removed": ({"a": "1", "b": "2"}, {"a": "1"}, [("b", "2", None, "-")]),
    "renamed": ({"a": ONE, "b": TWO}, {"c": ONE, "b": TWO}, [("a", ONE[:20], "c", ONE[:20])]),
    "renamed and edited": ({"a": ONE}, {"x/c": EDITED}, [("a", ONE[:20], "x/c", EDITED[:20])]),
    "swapped": (
        {"a": ONE, "b": TWO},
        {"a": TWO, "b": ONE},
        [("a", ONE[:20], "a", TWO[:20]), ("b", TWO[:20], "b", ONE[:20])],
    ),
    "moved out of sight": (
        {"a": ONE, "b": "1"},
        {".a": ONE, "b": "1"},
        [("a", ONE[:20], None, "-")],
    ),
    "hidden": ({".a": "1", "x/.b": "1", "b": "1"}, {".a": "2", "x/.b": "2", "b": "1"}, []),
    "made a link": (
        {"a": "1", "b": "2"},
        {"a": Link("b.toml"), "b": "2"},
        [("a", "1", "a", "120000 b.toml")],
    ),
    "several": (
        {"a": "1", "b": "2"},
        {"a": "3", "c": "4"},
        [("a", "1", "a", "3"), ("b", "2", None, "-"), (None, "-", "c", "4")],
    ),
    "odd names": (
        {"a b": "1", 'ü"\t': "2"},
        {"a b": "3", 'ü"\t': "4"},
        [("a b", "1", "a b", "3"), ('ü"\t', "2", 'ü"\t', "4")],
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_commit_tells_each_file_before_and_after(tmp_path: Path, case: str) -> None:
    before, after, expected = CHANGES[case]
    repo = import_graph(tmp_path / "repo", [Node((), before), Node((0,), after)])
    newest, oldest = walk_commits(open_repository(repo), repo.head)
    assert newest.id == repo.head
    assert newest.parents == (oldest.id,)
    assert oldest.parents == ()
    assert describe_changes(repo, newest) == [expected]
    assert {change.now for change in oldest.changes[""]} == {
        name for name in before if not name.startswith(".") and "/." not in name
    }
    assert all((change.was, change.old) == (None, None) for change in oldest.changes[""])


def test_a_merge_tells_what_differs_from_each_parent(tmp_path: Path) -> None:
    first = {"a": ONE, "b": TWO, "c": "1"}
    nodes = [
        Node((), first),
        Node((0,), {**first, "c": "2"}),
        Node((0,), {**first, "a": EDITED}),
        Node((0,), first),
    ]
    repo = import_graph(
        tmp_path / "repo", [*nodes, Node((1, 2, 3), {"a": EDITED, "d": TWO, "c": "2"})]
    )
    merge = next(walk_commits(open_repository(repo), repo.head))
    moved = ("b", TWO[:20], "d", TWO[:20])
    edited = ("a", ONE[:20], "a", EDITED[:20])
    assert describe_changes(repo, merge) == [
        [edited, moved],
        [moved, ("c", "1", "c", "2")],
        [edited, moved, ("c", "1", "c", "2")],
    ]


def test_a_repository_in_the_place_of_a_file_is_none_of_the_store(repo: Repo) -> None:
    repo.commit({"a": "1", "b": "2"})
    repo.git("rm", "-q", "--cached", "profiles/a.toml")
    for name in "ac":
        repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},profiles/{name}.toml")
    repo.git("commit", "-q", "-m", "two repositories")
    found = next(walk_commits(open_repository(repo), repo.head))
    assert describe_changes(repo, found) == [[("a", "1", None, "-")]]
    assert set(open_repository(repo).list_profile_files(repo.head)) == {"b"}


# -- who wrote a commit, and when -----------------------------------------------------------------

AUTHOR = b"author Ada L. <ada@example.org> 1767225600 +0130\n"
ADA = ("Ada L.", "ada@example.org", "2026-01-01T01:30:00+01:30")
HEADERS: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "as usual": (AUTHOR + b"committer x <y> 0 +0000\n\nfirst line\n\nrest\n", (*ADA, "first line")),
    "blank lines first": (AUTHOR + b"\n\n  \n  indented  \nrest", (*ADA, "indented rest")),
    "nobody": (b"author  <> 0 -0000\n\nx", ("", "", "1970-01-01T00:00:00+00:00", "x")),
    "another encoding": (
        AUTHOR.replace(b"Ada", b"\xc5sa") + b"encoding latin-1\n\n\xfc",
        ("Åsa L.", *ADA[1:], "ü"),
    ),
    "an encoding unknown here": (AUTHOR + b"encoding klingon\n\n\xc3\xbc", (*ADA, "ü")),
    "bytes of no encoding": (AUTHOR + b"\n\xff", (*ADA, "\ufffd")),
}


@pytest.mark.parametrize("case", HEADERS)
def test_author_date_and_subject_of_a_commit_are_read_as_git_shows_them(
    repo: Repo, case: str
) -> None:
    raw, expected = HEADERS[case]
    repo.commit({"a": ""})
    tree = repo.git("rev-parse", "HEAD^{tree}").encode()
    oid = repo.git(
        "hash-object",
        "-t",
        "commit",
        "-w",
        "--stdin",
        "--literally",
        stdin=b"tree " + tree + b"\n" + raw,
    )
    commit = load_commits(open_repository(repo), [oid])[oid]
    assert (commit.author, commit.email, commit.date, commit.subject) == expected


# -- a store that was another folder --------------------------------------------------------------


def test_the_folder_most_files_came_from_is_the_former_one(repo: Repo) -> None:
    for place, texts in (
        ("one", {"a": ONE, "b": TWO}),
        ("two", {"c": THREE}),
        ("one/profiles", {"d": "x" * 50}),
    ):
        for name, text in texts.items():
            path = repo.folder / place / f"{name}.toml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    old = repo.commit()
    (repo.folder / "profiles").mkdir()
    for path in ("one/a", "one/b", "two/c", "one/profiles/d"):
        repo.git("mv", f"{path}.toml", f"profiles/{path.rpartition('/')[2]}.toml")
    moved = repo.commit()
    repository = open_repository(repo)
    assert find_former_folder(repository, old, moved) == "one/"
    newest, oldest = walk_commits(repository, moved)
    assert describe_changes(repo, newest) == [
        [("profiles/d", "x" * 20, "d", "x" * 20), (None, "-", "c", THREE[:20])]
    ]
    assert {change.now for change in oldest.changes[""]} == {"a", "b", "profiles/d"}
    (repo.folder / "fresh").mkdir()
    (repo.folder / "fresh" / "n.toml").write_text("new = 1\n")
    repo.commit()
    fresh = Repository(str(repo.folder / "fresh"))
    assert find_former_folder(fresh, moved, repo.head) is None
    assert next(walk_commits(fresh, repo.head)).former_prefix is None


def test_a_store_that_was_the_whole_repository_keeps_its_history(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    (repo.folder / "a.toml").write_text(ONE)
    first = repo.commit()
    (repo.folder / "profiles").mkdir()
    repo.git("mv", "a.toml", "profiles/a.toml")
    moved = repo.commit()
    assert [commit.id for commit in walk_commits(open_repository(repo), moved)] == [moved, first]
    assert find_former_folder(open_repository(repo), first, moved) == ""
