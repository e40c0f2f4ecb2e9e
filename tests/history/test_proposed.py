"""Commits contain and describe the checked tree, whatever the work tree, index or hooks have."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuprof.history import git_writing
from npuprof.history.proposed import propose_commit
from npuprof.store.gitstore.revisions import StoreRepository
from npuprof.store.layout import Layout
from npuprof.store.worktree import list_changed_paths
from support.repositories import Repo
from support.running import Run, expect

BASE = "[options]\nhccl_timeout = {}\n"
LEAF = '[profile]\nextends = ["{}"]\nscenario = "training"\n[options]\niterations_per_loop = {}\n'
WRONG = "[options]\nprecision_mode_v2 = 'fp61'\n"


@pytest.fixture
def repo(repo: Repo) -> Repo:
    repo.commit({"base": BASE.format(1), "leaf": LEAF.format("base", 1)}, "start")
    return repo


def describe_state(repo: Repo) -> tuple[str, ...]:
    objects = sorted(
        str(path) for path in (repo.folder / ".git/objects").rglob("*") if path.is_file()
    )
    return (
        repo.git("for-each-ref"),
        repo.git("status", "--porcelain"),
        repo.git("ls-files", "--stage"),
        *objects,
    )


def write_hook(repo: Repo, name: str, text: str) -> None:
    path = repo.folder / ".git/hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def ignore_draft(repo: Repo) -> None:
    (repo.folder / ".gitignore").write_text("/profiles/draft*\n")
    repo.git("add", ".gitignore")
    repo.git("commit", "-qm", "ignore drafts")


#: What lies in the work tree, the words of the command, what is told, what is committed.
COMMITTED: dict[str, tuple[dict[str, str | None], list[str], str, list[str]]] = {
    "an unrelated broken draft": (
        {"draft": WRONG, "base": BASE.format(2)},
        ["base"],
        "2 presets: hccl_timeout 1 → 2 s",
        ["base"],
    ),
    "an ignored broken draft": (
        {"draft-1": WRONG, "base": BASE.format(2)},
        [],
        "2 presets: hccl_timeout 1 → 2 s",
        ["base"],
    ),
    "another file with changes": (
        {"base": BASE.format(2), "leaf": LEAF.format("base", 7)},
        ["leaf"],
        "leaf: iterations_per_loop 1 → 7",
        ["leaf"],
    ),
    "a parent with changes of its own": (
        {"base": WRONG, "leaf": LEAF.format("base", 7)},
        ["leaf"],
        "leaf: iterations_per_loop 1 → 7",
        ["leaf"],
    ),
    "an untracked parent that comes with all": (
        {"new": BASE.format(3), "leaf": LEAF.format("new", 1)},
        [],
        "Add new; leaf: hccl_timeout 1 → 3 s",
        ["leaf", "new"],
    ),
    "a parent removed in the work tree": (
        {"base": None, "other": BASE.format(4)},
        ["other"],
        "Add other",
        ["other"],
    ),
}


@pytest.mark.parametrize("case", COMMITTED)
def test_what_lies_beside_it_neither_stops_a_commit_nor_stands_in_its_message(
    repo: Repo, run: Run, case: str
) -> None:
    presets, names, headline, files = COMMITTED[case]
    ignore_draft(repo)
    repo.write(presets)
    tried = run("commit", *names, "--dry-run")
    expect(run("commit", *names), 0)
    message = repo.git("log", "-1", "--format=%B")
    assert message.splitlines()[0] == headline
    assert tried.out.rstrip("\n") == message
    assert "draft" not in message
    assert repo.git("show", "--name-only", "--format=").split() == [
        f"profiles/{name}.toml" for name in files
    ]
    assert run("check", *[f"{name}@HEAD" for name in ("base", "leaf")]).code == 0


#: What lies in the work tree, the words of the command, what is said, and what helps.
REFUSED: dict[str, tuple[dict[str, str | None], list[str], list[str]]] = {
    "a parent that is not named": (
        {"new": BASE.format(3), "leaf": LEAF.format("new", 1)},
        ["leaf"],
        ["NP101", "in the work tree only", "npuprof commit new leaf"],
    ),
    "a parent that git ignores": (
        {"draft-base": BASE.format(3), "leaf": LEAF.format("draft-base", 1)},
        ["leaf"],
        ["NP101", "if git ignores draft-base, git add -f its file first"],
    ),
    "a parent removed": ({"base": None}, ["base"], ["NP101", "profiles/leaf.toml:2"]),
    "a preset that is ignored": (
        {"draft-1": BASE.format(1)},
        ["draft-1"],
        ["git ignores profiles/draft-1.toml", "git add -f"],
    ),
    "no TOML": ({"leaf": "broken = ["}, [], ["NP001", "profiles/leaf.toml:1"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_commit_would_break_is_refused_and_leaves_no_trace(
    repo: Repo, run: Run, case: str
) -> None:
    presets, names, messages = REFUSED[case]
    ignore_draft(repo)
    repo.write(presets)
    repo.git("status")  # refreshes the index
    before = describe_state(repo)
    for arguments in ((*names, "--dry-run"), names):
        done = run("commit", *arguments)
        assert done.code == 2
        assert done.out == ""
        for message in (*messages, "NP025"):
            assert message in done.err, done.err
        assert describe_state(repo) == before


def test_errors_that_the_last_commit_has_already_do_not_stop_the_next(repo: Repo, run: Run) -> None:
    repo.commit(
        {
            "base": BASE.format(1) + "precision_mode_v2 = 'fp61'\n",
            "lost": LEAF.format("gone", 1),
            "torn": "x = [",
        }
    )
    repo.write(
        {
            "base": BASE.format(2) + "precision_mode_v2 = 'fp61'\n",
            "lost": LEAF.format("gone", 2),
            "torn": "x = [  ",
        }
    )
    assert run("commit").code == 0
    repo.write({"base": BASE.format(2) + "precision_mode_v2 = 'fp62'\n"})
    expect(run("commit"), 2, "NP203", "fp62")


def test_what_is_staged_and_not_named_stays_staged_and_untold(repo: Repo, run: Run) -> None:
    repo.write({"base": BASE.format(5), "new": BASE.format(5)})
    repo.git("add", "-A")
    repo.write({"leaf": LEAF.format("base", 3)})
    assert run("commit", "leaf").code == 0
    assert repo.git("log", "-1", "--format=%s") == "leaf: iterations_per_loop 1 → 3"
    assert repo.git("status", "--porcelain") == "M  profiles/base.toml\nA  profiles/new.toml"


#: A hook, and what becomes of a commit of ``base`` with 2, and of a second try: exit codes, the
#: value committed, words of the message.
HOOKS: dict[str, tuple[str, tuple[int, int], str, str]] = {
    "changes the value in the work tree": (
        "sed -i 's/= 2/= 3/' profiles/base.toml && git add profiles/base.toml",
        (2, 0),
        "3",
        "hccl_timeout 1 → 3",
    ),
    "changes the value in the index only": (
        (
            "git update-index --cacheinfo 100644,$(echo 'options.hccl_timeout = 4' | git "
            "hash-object -w --stdin),profiles/base.toml"
        ),
        (2, 2),
        "1",
        "NP025",
    ),
    "takes the change back": (
        "git checkout HEAD -- profiles/base.toml",
        (2, 1),
        "1",
        "no preset differs",
    ),
    "leaves it alone": ("true", (0, 1), "2", "hccl_timeout 1 → 2"),
}


@pytest.mark.parametrize("case", HOOKS)
def test_what_a_hook_makes_of_a_commit_is_not_committed_before_it_is_checked(
    repo: Repo, run: Run, case: str
) -> None:
    hook, codes, value, message = HOOKS[case]
    write_hook(repo, "pre-commit", hook)
    repo.write({"base": BASE.format(2)})
    tries = [run("commit"), run("commit")]
    assert tuple(done.code for done in tries) == codes
    assert codes[0] == 0 or "NP025" in tries[0].err
    assert f"hccl_timeout = {value}" in repo.git("show", "HEAD:profiles/base.toml")
    assert message in (repo.git("log", "-1", "--format=%B") if 0 in codes else tries[1].err)


def test_the_other_hooks_and_the_signer_run_as_git_has_them_run(
    repo: Repo, run: Run, tmp_path: Path
) -> None:
    for name in ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"):
        write_hook(
            repo,
            name,
            f"echo {name} >> '{tmp_path}/ran'"
            + ("\necho 'Changed-by: hook' >> $1" if name == "commit-msg" else ""),
        )
    signer = tmp_path / "signer"
    signer.write_text(
        "#!/bin/sh\ncat > /dev/null\necho 'SIG_CREATED ' >&2\n"
        "echo '[GNUPG:] SIG_CREATED D' >&2\necho signature\n"
    )
    signer.chmod(0o755)
    repo.git("config", "gpg.program", str(signer))
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "commit.verbose", "true")
    repo.write({"base": BASE.format(2)})
    expect(run("commit"), 0)
    assert (tmp_path / "ran").read_text().split() == [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
    ]
    assert "\ngpgsig signature" in repo.git("cat-file", "commit", "HEAD")
    assert repo.git("log", "-1", "--format=%B").endswith("\nChanged-by: hook")


def test_the_tree_is_what_git_would_store(repo: Repo, tmp_path: Path) -> None:
    """Filters, line endings, modes and links: the same tree as from git commit."""
    (repo.folder / ".gitattributes").write_text(
        "*.toml text eol=crlf\nprofiles/f.toml filter=up\nprofiles/b.toml -text\n"
    )
    repo.git("config", "filter.up.clean", "tr a-z A-Z")
    repo.commit(
        {
            "b": "x = 1\r\n",
            "f": "X = 1\n",
            "gone": "x = 1\n",
            "mode": "x = 1\n",
            "turned": "x = 1\n",
        }
    )
    repo.write(
        {
            "b": "x = 2\r\n",
            "f": "y = 2\r\n",
            "new": "x = 1\r\n",
            "gone": None,
            "turned": None,
            "a.toml/x": "x = 1\n",
        }
    )
    (repo.folder / "profiles/mode.toml").chmod(0o755)
    (repo.folder / "profiles/turned.toml").symlink_to("b.toml")
    repository = StoreRepository("profiles")
    repository = repository.with_git(repository.git.with_filters())
    paths = list_changed_paths(repository, Layout("profiles/"))
    changed, untracked = paths.changed, paths.untracked
    head = repo.head
    with propose_commit(repository, head, changed) as proposed:
        expected = git_writing.ExpectedCommit(head, proposed.commit)
        assert proposed.read_profile_text("f") == b"Y = 2\n"
        assert proposed.read_profile_text("new") == b"x = 1\n"
        assert proposed.read_profile_text("b") == b"x = 2\r\n"
        assert proposed.files["turned"].is_link
    git_writing.commit_paths(repository, changed, untracked, "all", expected)
    assert repo.git("rev-parse", "HEAD^{tree}") == expected.tree
    assert repo.git("status", "--porcelain") == ""
