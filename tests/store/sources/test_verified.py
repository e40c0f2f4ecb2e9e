"""Locked commits that no branch and no tag of the source contains are not used."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from npuprof.store.sources.lock import LockedVersion, format_lock, parse_lock
from npuprof.store.sources.mirror import LOCKED, find_mirror_folder
from npuprof.store.sources.storedigest import digest_texts
from support.repositories import Repo
from support.running import Run, expect
from support.teams import BASE, Team, make_unreachable

#: Servers as git lets them be: the protocol, and whether commits are given out by their ids.
SERVERS = {"version 2": ("2", False), "closed": ("0", False), "open": ("0", True)}


def set_server(name: str, team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    version, is_open = SERVERS[name]
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.version")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", version)
    team.repo.git(
        f"--git-dir={team.bare}", "config", "uploadpack.allowAnySHA1InWant", str(is_open).lower()
    )


def propose(team: Team, ref: str = "refs/pull/7/head", parent: str = "main") -> str:
    """Have a stranger propose a commit on top of another, which only a ref leads to.

    Return its id.
    """
    team.repo.git("checkout", "-q", "--detach", parent)
    commit = team.repo.commit({"base": BASE.format(666)}, message="from a fork")
    team.repo.git("push", "-q", str(team.bare), f"{commit}:{ref}")
    team.repo.git("checkout", "-q", "main")
    return commit


def forge(
    app: Repo, team: Team, commit: str, tag: str = "v1.0.0", rev: str = "^1.0", **versions: str
) -> None:
    """Write a lock as npuprof would, with everything that fits to another commit and tag."""
    lock, project = app.folder / "npuprof.lock", app.folder / "npuprof.toml"
    project.write_text(project.read_text().replace('rev = "^1.0"', f'rev = "{rev}"'))
    locked = parse_lock("npuprof.lock", lock.read_bytes()).sources["team"]
    names = team.repo.git("ls-tree", "--name-only", f"{commit}:profiles").split()
    texts = {
        name.removesuffix(
            ".toml"
        ): f"{team.repo.git('show', f'{commit}:profiles/{name}')}\n".encode()
        for name in names
    }
    pins = {f"base@{number}": LockedVersion(number, pinned) for number, pinned in versions.items()}
    lock.write_text(
        format_lock(
            {
                "team": locked._replace(
                    commit=commit, tag=tag, rev=rev, digest=digest_texts(texts), versions=pins
                )
            }
        )
    )


def read_refs(team: Team) -> str:
    return subprocess.run(
        ["git", f"--git-dir={find_mirror_folder(team.url)}", "show-ref"],
        capture_output=True,
        text=True,
    ).stdout


def holds(team: Team, commit: str) -> bool:
    return not subprocess.run(
        ["git", f"--git-dir={find_mirror_folder(team.url)}", "cat-file", "-e", commit],
        capture_output=True,
    ).returncode


#: What a server may list beside branches and tags, where strangers can have their commits.
ELSEWHERE = [
    "refs/pull/7/head",
    "refs/pull/7/merge",
    "refs/merge-requests/7/head",
    "refs/changes/07/7/1",
    "refs/pull-requests/7/from",
    "refs/keep-around/7",
    "refs/remotes/fork/main",
    "refs/notes/7",
    "refs/npuprof/locked/7",
    "refs/x/refs/heads/main",
    "refs/x/refs/tags/v1.0.0",
]


#: The tag and the ``rev`` of a lock: a tag that the source has, none, and one that it lacks.
LOCKS = [("v1.0.0", "^1.0"), ("", "main"), ("v1.0.7", "^1.0")]


@pytest.mark.parametrize(
    ("ref", "tag", "rev"),
    [
        (ref, *LOCKS[number % 3])
        for number, ref in enumerate([*ELSEWHERE[:3], ELSEWHERE[0], *ELSEWHERE])
    ],
)
def test_a_commit_outside_of_all_branches_and_tags_is_rejected_and_nothing_of_it_is_used(
    tag: str,
    rev: str,
    ref: str,
    app: Repo,
    team: Team,
    run: Run,
    lock: Path,
    fresh: Callable[[], Path],
) -> None:
    commit = propose(team, ref)
    forge(app, team, commit, tag, rev)
    if ref == ELSEWHERE[0]:  # on a machine that has the source, and on one that has not
        expect(run("source", "sync"), 2, "NP046", commit[:12])
        assert commit not in read_refs(team)
    fresh()
    before = lock.read_bytes()
    for _ in range(2):
        output = expect(
            run("source", "sync"),
            2,
            "NP046",
            commit[:12],
            "the source 'team'",
            "restore npuprof.lock",
        )
        assert ("no branch and no tag of" in output) is (tag != "v1.0.0")
        assert "fetched" not in output
    assert lock.read_bytes() == before
    assert commit not in read_refs(team)
    for arguments in (
        "show job",
        "show team:base",
        "check",
        "blame job",
        "render job",
        "source vendor team",
        f"show team:base@{commit}",
    ):
        output = expect(run(*arguments.split()), 2, "NP043", "npuprof source sync")
        assert "666" not in output


#: Names of tags that git would resolve to something else, or that are tags of something else.
TAGS = [
    "refs/pull/7/head",
    "../pull/7/head",
    "../../refs/pull/7/head",
    "../heads/main",
    "v1.0.0^{}",
    "v1.0.0^{commit}",
    "v1.0.0~0",
    "-",
    "base/v1.0.0",
    "HEAD",
    "main",
    "heads/main",
    "FETCH_HEAD",
    "v1.0.0 v1.0.0",
    "*",
    "kept/*",
    "{commit}",
]


@pytest.mark.parametrize("tag", TAGS)
def test_no_name_of_a_tag_leads_out_of_the_tags(
    tag: str, app: Repo, team: Team, run: Run, fresh: Callable[[], Path]
) -> None:
    commit = propose(team)
    forge(app, team, commit, tag.replace("{commit}", commit), "main")
    expect(run("source", "sync"), 2, "NP044")
    fresh()
    expect(run("source", "sync"), 2, "NP044")
    assert commit not in read_refs(team)


#: Pins that name another version than their reference, or one that no tag has in this spelling, so
#: that no tag is compared.
PINS = [
    ("base@1.0.0", "2.0.0"),
    ("base@1", "2.0.0"),
    ("base@1.0.0", "-"),
    ("base@1.0", "-"),
    ("base@1", "-"),
    ("base@1.0.0", "01.0.0"),
    ("base@1.0.0", "v1.0.0"),
    ("base@1.0.0", "1.0.0-x"),
    ("base@1.0.0", "1.0.0.yanked"),
    ("base@1.0.0", "../../../heads/main"),
    ('base@"1.0.0"', "2.0.0"),
]


@pytest.mark.parametrize(("reference", "version"), PINS)
def test_a_pin_names_the_version_that_its_reference_asks_for(
    reference: str, version: str, app: Repo, team: Team, run: Run
) -> None:
    commit = team.repo.git("rev-parse", "HEAD").strip()
    lock = app.folder / "npuprof.lock"
    locked = parse_lock("npuprof.lock", lock.read_bytes()).sources["team"]
    lock.write_text(
        format_lock({"team": locked._replace(versions={reference: LockedVersion(version, commit)})})
    )
    expect(run("source", "sync"), 2, "NP044")
    for other, number in (
        ("base@1.0.0", "1.0.0"),
        ("base@1", "1.2.0"),
        ("base@1234567", "-"),
        ("base@main", "-"),
        ("base@2.0.0-rc.1", "2.0.0-rc.1"),
    ):
        lock.write_text(
            format_lock({"team": locked._replace(versions={other: LockedVersion(number, commit)})})
        )
        assert parse_lock("npuprof.lock", lock.read_bytes()).sources["team"].versions, other


@pytest.mark.parametrize("tag", ["1.0.0", "v01.0.0", "V1.0.0", "v1.0"])
def test_a_tag_in_another_spelling_is_not_taken_for_one_that_was_deleted(
    tag: str, app: Repo, team: Team, run: Run
) -> None:
    forge(app, team, team.repo.git("rev-parse", "HEAD").strip(), tag)
    expect(run("source", "sync"), 2, "NP044")


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_gives_a_commit_to_nobody_is_reported_as_without_it(
    server: str,
    app: Repo,
    team: Team,
    run: Run,
    fresh: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_server(server, team, monkeypatch)
    commit = propose(team)
    propose(team, parent=commit)
    forge(app, team, commit, "", "main")
    fresh()
    expect(run("source", "sync"), 2, "NP043" if server == "closed" else "NP046", commit[:7])
    assert commit not in read_refs(team)
    expect(run("show", "job"), 2, "NP043")


@pytest.mark.parametrize("number", ["1.0.0", "1.0.7"])
def test_a_version_of_one_preset_is_verified_like_the_source(
    number: str, app: Repo, team: Team, run: Run, fresh: Callable[[], Path]
) -> None:
    commit = propose(team)
    forge(app, team, team.repo.head, **{number: commit})
    app.write({"job": f'profile.extends = ["team:base@{number}"]\n'})
    for begin in (str, fresh):
        begin()
        expect(run("source", "sync"), 2, "NP046", commit[:12])
        output = expect(run("show", "job"), 2, "NP043")
        assert "666" not in output


@pytest.mark.parametrize("on_branch", [False, True])
def test_a_locked_tag_that_moved_is_rejected_where_nothing_was_fetched_yet(
    on_branch: bool, app: Repo, team: Team, run: Run, fresh: Callable[[], Path]
) -> None:
    before = team.repo.head
    team.repo.commit({"base": BASE.format(900)})
    team.repo.git("tag", "-f", "-a", "v1.0.0", "-m", "again")
    team.push("--force")
    if not on_branch:
        team.repo.git(
            "push", "-q", "-f", str(team.bare), f"{team.repo.head}:main", ":refs/tags/base/v1.0.0"
        )
    assert run("source", "sync").code == 0, "it was verified here before"
    fresh()
    expect(
        run("source", "sync"),
        2,
        "NP046",
        "the tag v1.0.0 of",
        f"is at {team.repo.head[:12]}",
        before[:12],
        "source update --moved",
    )
    assert before not in read_refs(team)
    expect(run("source", "update", "--yes"), 2, "NP046", "moved")
    assert run("source", "update", "--yes", "--moved").code == 0
    assert "hccl_timeout = 900" in run("show", "job").out
    fresh()
    assert run("source", "sync").code == 0


#: What becomes of the tags and branches of the source, while one of them contains the locked
#: commit: git commands in its repository.
CONTAINED = {
    "an annotated tag": "",
    "a lightweight tag": "tag -f v1.0.0 v1.0.0^{commit}; push -q -f HUB v1.0.0",
    "a tag of a tag": "tag -f -a v1.0.0 v1.0.0 -m nested; push -q -f HUB v1.0.0",
    "only the tag": (
        "checkout -q --orphan new; commit -q --allow-empty -m "
        "new; push -q -f HUB new:main :refs/tags/base/v1.0.0"
    ),
    "the branch": (
        "push -q HUB :refs/tags/v1.0.0 :refs/tags/base/v1.0.0; "
        "commit -q --allow-empty -m on; push -q HUB main"
    ),
    "another branch": "push -q HUB :refs/tags/v1.0.0 :refs/tags/base/v1.0.0 main:old; "
    "checkout -q --orphan new;"
    "commit -q --allow-empty -m new; push -q -f HUB new:main",
    "a kept tag": "push -q HUB :refs/tags/v1.0.0 :refs/tags/base/v1.0.0 "
    "main:refs/tags/kept/1; checkout -q --orphan new;"
    "commit -q --allow-empty -m new; push -q -f HUB new:main",
    "a later tag": "push -q HUB :refs/tags/v1.0.0 :refs/tags/base/v1.0.0; "
    "commit -q --allow-empty -m on; tag -a later -m later;"
    "push -q HUB later; checkout -q --orphan new; commit "
    "-q --allow-empty -m new; push -q -f HUB new:main",
    "a tag of a tree": (
        "tag -a tree HEAD^{tree} -m tree; tag blob HEAD:profiles/base.toml; push -q HUB "
        ":refs/tags/v1.0.0 tree blob"
    ),
    "the head alone": "push -q HUB :refs/tags/v1.0.0 :refs/tags/base/v1.0.0 main:other; "
    "--git-dir=HUB update-ref --no-deref HEAD main;"
    "--git-dir=HUB update-ref -d refs/heads/main; --git-dir=HUB update-ref -d refs/heads/other",
}


@pytest.mark.parametrize(
    ("name", "tag", "rev", "server"),
    [
        (name, *LOCKS[lock], [*SERVERS][(row + lock) % 3])
        for row, name in enumerate(CONTAINED)
        for lock in (0, 1)
    ],
)
def test_a_commit_that_a_branch_or_a_tag_contains_is_fetched_from_any_server(
    name: str,
    tag: str,
    rev: str,
    server: str,
    app: Repo,
    team: Team,
    run: Run,
    fresh: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_server(server, team, monkeypatch)
    forge(app, team, team.repo.head, tag, rev)
    for deed in filter(None, CONTAINED[name].split(";")):
        team.repo.git(*deed.replace("HUB", str(team.bare)).split())
    propose(team)
    fresh()
    expect(run("source", "sync"), 0, "fetched team")
    assert "hccl_timeout = 600" in run("show", "job").out
    make_unreachable(team)
    expect(run("source", "sync"), 0, "everything that npuprof.lock names is here")


def test_a_commit_that_a_failed_sync_left_in_the_mirror_is_no_more_verified_than_before(
    app: Repo, team: Team, run: Run, project: Path, lock: Path
) -> None:
    commit, honest = propose(team), (project.read_text(), lock.read_text())
    forge(app, team, commit, "", "main")
    expect(run("source", "sync"), 2, "NP046")
    assert holds(team, commit), "this test is about a commit that is there"
    make_unreachable(team)
    expect(run("source", "sync"), 2, "NP045")
    shutil.move(team.bare.with_suffix(".gone"), team.bare)
    for rev in (commit, commit[:12]):
        project.write_text(honest[0].replace("^1.0", rev))
        lock.write_text(honest[1])
        expect(run("source", "update", "--yes"), 2, "NP046", commit[:12])
    project.write_text(honest[0])
    app.write({"job": f'profile.extends = ["team:base@{commit}"]\n'})
    expect(run("source", "update", "--yes"), 2, "NP046", commit[:12])
    app.write({"job": 'profile.extends = ["team:base@1.0.7"]\n'})
    forge(app, team, team.repo.head, **{"1.0.7": commit})
    expect(run("source", "update", "--yes"), 2, "team:base@1.0.7")
    assert commit not in read_refs(team)
    app.write({"job": 'profile.extends = ["team:base"]\n'})
    lock.write_text(honest[1])
    assert run("source", "update", "--yes").code == 0
    team.repo.git("push", "-q", str(team.bare), f"{commit}:refs/heads/merged")
    forge(app, team, commit, "", "main")
    expect(run("source", "sync"), 0, "fetched team")
    assert "hccl_timeout = 666" in run("show", "job").out


def test_a_commit_of_one_address_is_not_verified_for_another(
    app: Repo, team: Team, run: Run, tmp_path: Path
) -> None:
    commit = propose(team)
    fork = tmp_path / "fork.git"
    team.repo.git("clone", "-q", "--bare", str(team.bare), str(fork))
    team.repo.git("push", "-q", str(fork), f"{commit}:refs/heads/main")
    assert run("source", "add", "fork", f"file://{fork}", "--rev", "main").code == 0
    assert "666" in run("show", "fork:base").out
    assert run("source", "remove", "fork").code == 0
    forge(app, team, commit)
    expect(run("source", "sync"), 2, "NP046", commit[:12])
    expect(run("show", "job"), 2, "NP043")


def test_the_sources_of_a_source_are_verified_too(
    app: Repo,
    team: Team,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh: Callable[[], Path],
) -> None:
    hub = Team(tmp_path / "hub")
    monkeypatch.chdir(hub.repo.folder)
    hub.repo.write({"wide": 'profile.extends = ["team:base"]\n'})
    assert run("source", "add", "team", team.url).code == 0
    hub.publish({}, "1.0.0")
    monkeypatch.chdir(app.folder)
    assert run("source", "add", "hub", hub.url).code == 0
    commit = propose(team)
    forge(hub.repo, team, commit)
    hub.publish({}, "1.1.0")
    expect(run("source", "update", "hub", "--yes"), 2, "NP046", commit[:12], "'hub/team'")
    assert "600" in run("show", "hub:wide").out
    fresh()
    assert run("source", "sync").code == 0


def test_what_earlier_syncs_verified_and_its_history_need_no_network(
    app: Repo, team: Team, run: Run, fresh: Callable[[], Path]
) -> None:
    older = (app.folder / "npuprof.lock").read_bytes()
    team.publish({"base": BASE.format(900)}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    fresh()
    assert run("source", "sync").code == 0
    make_unreachable(team)
    assert run("source", "sync").code == 0
    (app.folder / "npuprof.lock").write_bytes(older)
    assert run("source", "sync").code == 0
    assert "hccl_timeout = 600" in run("show", "job").out


def test_of_a_source_without_a_tag_the_branch_that_rev_names_is_fetched_first(
    app: Repo, team: Team, run: Run, fresh: Callable[[], Path]
) -> None:
    forge(app, team, team.publish({"base": BASE.format(700)}), "", "main")
    team.publish({"base": BASE.format(900)})
    other = propose(team, "refs/heads/other")
    fresh()
    assert run("source", "sync").code == 0
    assert holds(team, team.repo.head) is True
    assert holds(team, other) is False


@pytest.mark.parametrize("ref", ["refs/tags/later", "HEAD"])
def test_a_tag_or_the_default_branch_that_contains_a_commit_spares_the_other_branches(
    ref: str, app: Repo, team: Team, run: Run, fresh: Callable[[], Path]
) -> None:
    later = propose(team, "refs/heads/branch" if ref == "HEAD" else ref)
    team.repo.git("push", "-q", str(team.bare), ":refs/tags/v1.0.0", ":refs/tags/base/v1.0.0")
    if ref == "HEAD":
        team.repo.git(f"--git-dir={team.bare}", "symbolic-ref", "HEAD", "refs/heads/branch")
    branches = [propose(team, "refs/heads/other")]
    if ref != "HEAD":
        branches.append(team.repo.commit())
        team.repo.git("push", "-q", str(team.bare), "main")
    else:
        team.repo.git("push", "-q", str(team.bare), ":main")
    fresh()
    assert run("source", "sync").code == 0
    assert holds(team, later) is True
    assert [holds(team, branch) for branch in branches] == [False] * len(branches)


def test_a_mirror_does_not_verify_a_tag_that_it_knows_at_another_commit(
    app: Repo, team: Team, run: Run, fresh: Callable[[], Path]
) -> None:
    unreleased = team.publish({"base": BASE.format(666)})
    team.publish({"base": BASE.format(900)}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    for tag in ("v1.1.0", "v1.0.0"):
        forge(app, team, unreleased, tag)
        expect(
            run("source", "sync"),
            2,
            "NP046",
            f"the tag {tag} of",
            f"the lock has it at {unreleased[:12]}",
        )
        assert f"{LOCKED}{unreleased}" not in read_refs(team)


def test_a_remote_without_its_whole_history_ends_in_an_error(
    app: Repo, team: Team, run: Run, fresh: Callable[[], Path]
) -> None:
    first = team.repo.head
    team.publish({"base": BASE.format(900)})
    team.repo.git("clone", "-q", "--bare", "--depth=1", team.url, f"{team.bare}.shallow")
    make_unreachable(team)
    shutil.move(f"{team.bare}.shallow", team.bare)
    forge(app, team, first, "", "main")
    fresh()
    output = expect(run("source", "sync"), 2)
    assert {"NP043", "NP045", "NP054"} & set(output.replace(":", "").split()), output
    assert first not in read_refs(team)
