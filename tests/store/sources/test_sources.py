"""Presets of other repositories, used in several: added, locked, updated, read through their versions, from real bare remotes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuprof.document.secrets import hide_secrets
from npuprof.edit.merge import split_conflicts
from npuprof.model import NpuprofError
from npuprof.store.sources.lock import LockedSource, LockedVersion, format_lock, parse_lock
from npuprof.store.sources.mirror import find_mirror_folder
from npuprof.store.sources.project import parse_project
from npuprof.store.versions import parse_version_range, parse_version_text
from support.repositories import Repo
from support.running import Run
from support.teams import BASE, Team, offline

# -- ranges --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("^2.1", "2.1.0 2.1.9 2.9.0", "2.0.9 3.0.0 1.9.9 2.2.0-rc.1"),
        ("^2", "2.0.0 2.9.9", "1.9.9 3.0.0"),
        ("^0.2.3", "0.2.3 0.2.9", "0.2.2 0.3.0"),
        ("^0.2", "0.2.0 0.2.9", "0.3.0"),
        ("^0.0.3", "0.0.3", "0.0.4"),
        ("^0", "0.0.1 0.9.0", "1.0.0"),
        ("~2.1.3", "2.1.3 2.1.9", "2.2.0 2.1.2"),
        ("~2.1", "2.1.0 2.1.9", "2.2.0"),
        ("~2", "2.0.0 2.9.0", "3.0.0"),
        (">=2.0,<3", "2.0.0 2.9.9", "3.0.0 1.9.9"),
        (" >= 2.0 , < 3 ", "2.0.0", "3.0.0"),
        (">2.1", "2.2.0 3.0.0", "2.1.0 2.1.9"),
        ("<=2.1", "2.1.9 1.0.0", "2.2.0"),
        ("<2.1", "2.0.9", "2.1.0"),
        ("2.1.0", "2.1.0", "2.1.1"),
        ("v2.1.0", "2.1.0", "2.1.1"),
        ("=2.1", "2.1.0 2.1.9", "2.2.0"),
        ("2", "2.0.0 2.9.9", "3.0.0"),
        ("*", "0.0.1 9.9.9", "1.0.0-rc.1"),
        ("2.0.0-rc.1", "2.0.0-rc.1", "2.0.0 2.0.0-rc.2"),
        (">=2.0.0-rc.1", "2.0.0-rc.1 2.0.0-rc.2 2.0.0 3.0.0", "2.0.0-beta 3.0.0-rc.1"),
    ],
)
def test_a_range_means_its_versions_and_no_others(text: str, yes: str, no: str) -> None:
    wanted = parse_version_range(text)
    assert wanted is not None
    for versions, meant in ((yes, True), (no, False)):
        for version in versions.split():
            number = parse_version_text(version)
            assert number is not None
            assert wanted.accepts(number) is meant, version


@pytest.mark.parametrize("text", ["", "main", "HEAD~1", "abc1234def", "^", "1.2.3.4", ">=", "1,,2", "release/2.0", "^x", "2.1-rc"])
def test_what_is_no_range_is_a_revision(text: str) -> None:
    assert parse_version_range(text) is None


# -- the files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("requires = 3\n", "'requires' must be a text"),
        ('requires = "soon"\n', "is no range of versions"),
        ('presets = ["../x.toml"]\n', "is no path below"),
        ('presets = ["x"]\n', "must end in .toml"),
        ("requirs = 1\n", "did you mean 'requires'"),
        ("sources = 1\n", "'sources' must be a table"),
        ("[sources]\nteam = 1\n", "the source 'team' must be a table"),
        ("[sources.team]\n", "'url' is missing in [sources.team]"),
        ('[sources.team]\nurl = "ext::sh -c id"\n', "ext::"),
        ('[sources.team]\nurl = "http://host/x.git"\n', "http"),
        ('[sources.team]\nurl = "../x"\n', "relative path"),
        ('[sources.team]\nurl = "https://me:secret@host/x.git"\n', "credentials"),
        ('[sources.team]\nurl = "file:///x"\npath = "../y"\n', "is no folder below the top"),
        ('[sources.team]\nurl = "file:///x"\nrev = "-x"\n', "is no range of versions and no revision"),
        ('[sources.team]\nurl = "file:///x"\nrules = 1\n', "'rules' in [sources.team] must be true or false"),
        ('[sources.team]\nurl = "file:///x"\nvendor = "/x"\n', "is no folder below that of npuprof.toml"),
        ('[sources."a b"]\nurl = "file:///x"\n', "cannot be the name of a source"),
        ('[sources.builtin]\nurl = "file:///x"\n', "cannot be the name"),
        ('[sources.team]\nurl = "file:///x"\n[sources.Team]\nurl = "file:///x"\n', "is there already"),
        ("[sources\n", "NP001"),
        ("\xff", "NP002"),
    ],
)
def test_what_npuprof_toml_cannot_say_is_told_at_its_place(text: str, told: str, app: Repo, run: Run) -> None:
    (app.folder / "npuprof.toml").write_bytes(text.encode("latin-1"))
    for words in (("list",), ("check",), ("render", "own"), ("source", "list"), ("source", "sync")):
        result = run(*words)
        assert (result.code, told in result.err) == (2, True), result.err
        assert "npuprof.toml" in result.err
        assert "secret" not in result.err


SECRETS = [
    'url = ["https://me:secret@host/x.git"]',
    'url = "https://me:secret@host/x.git',
    'url = https://me:secret@host/x.git',
    'url = "file:///x" https://me:secret@host/x.git',
    'ulr = "https://me:secret@host/x.git"',
    'ulr = "me:secret@host:x.git"',
    'url = "https://me:sec/ret secret@host/x.git"',
    'url = "https://me\\u003asecret@host/x.git"',
    'url = "https://ghp_secretsecret@host/x.git"',
    'url = "https://host/x?token=secret"',
    'url = "file:///x"\nrev = "https://me:secret@host/x.git"',
    'url = "file:///x"\nrev = "me:secret@host/x.git"',
    'url = "file:///x"\npath = "https://me:secret@host/x.git"',
    'url = "file:///x"\npassword = "secret"',
    '"https://me:secret@host" = 1',
    '{ url = "https://me:secret@host" }',
    'url = { a = "https://me:secret@host" }',
    '# https://me:secret@host\nurl = "https://me:secret@host/x"\n<<<<<<< HEAD',
]  # fmt: skip


@pytest.mark.parametrize("name", ["npuprof.toml", "npuprof.lock"])
@pytest.mark.parametrize("text", SECRETS)
def test_no_password_is_shown_wherever_it_stands_in_the_two_files(text: str, name: str, app: Repo, run: Run) -> None:
    path = app.folder / name
    if name == "npuprof.lock":
        path.write_text(path.read_text().replace("url = ", f"{text}\n#", 1))
    else:
        path.write_text(f"[sources.team]\n{text}\n")
    forms = [("check", "--format", form) for form in ("text", "json", "github", "sarif")]
    for words in (*forms, ("source", "list"), ("source", "sync"), ("show", "team:base")):
        result = run(*words)
        assert "secret" not in result.err + result.out


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('url = "https://me:secret@host/x"  # y', 'url = "https://***@host/x"  # y'),
        ('url = "ssh://git@host/x.git"', 'url = "ssh://git@host/x.git"'),
        ('url = "ssh://ada@host/x.git"', 'url = "ssh://ada@host/x.git"'),
        ('url = "https://git@host/x.git"', 'url = "https://git@host/x.git"'),
        ('url = "https://ada@host/ada/x.git"', 'url = "https://ada@host/ada/x.git"'),
        ('url = "https://sekret@host/x.git"', 'url = "https://***@host/x.git"'),
        ('url = "git@host:x.git"', 'url = "git@host:x.git"'),
        ('url = "git:secret@host:x.git"', 'url = "git:***@host:x.git"'),
        ('a = "https://a:b@c", b = "ssh://git@d"', 'a = "https://***@c", b = "ssh://git@d"'),
        ('"base@1" = "1.0.0 abc"', '"base@1" = "1.0.0 abc"'),
        ('token = "x" # z', 'token = "***" # z'),
    ],
)
def test_of_a_line_only_what_logs_somebody_in_is_hidden(line: str, shown: str) -> None:
    assert hide_secrets("a/npuprof.toml", line) == shown
    assert hide_secrets("profiles/a.toml", line) == line


def test_all_faults_of_npuprof_toml_are_told_at_once(app: Repo, run: Run) -> None:
    (app.folder / "npuprof.toml").write_text('requires = 1\n[sources.team]\nurl = "ext::x"\npath = "/"\n[sources.b]\n')
    assert run("list").err.count("NP040") == 4


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: "<<<<<<< HEAD\n" + text, "marks of a merge"),
        (lambda text: text.replace('commit = "', 'commit = "x'), "not as npuprof writes it"),
        (lambda text: text.replace("sha256:", "md5:"), "not as npuprof writes it"),
        (lambda text: text.replace("url = ", "uri = "), "not as npuprof writes it"),
        (lambda text: text.replace("version = 1", "version = 0"), "not as npuprof writes it"),
        (lambda text: text.replace("version = 1", "version = true"), "not as npuprof writes it"),
        (lambda text: text.replace("version = 1\n", ""), "not as npuprof writes it"),
        (lambda text: text.replace('rev = "^1.0"', 'rev = ">=1.0"'), "out of date: the rev"),
        (lambda text: text.replace('rev = "^1.0"', 'rev = "^2.0"'), "not as npuprof writes it"),
        (lambda text: "", "does not say at which commit"),
        (lambda text: "[sources]\nteam = 1\n", "not as npuprof writes it"),
        (lambda text: text + "[sources.team.versions]\nbase = 1\n", "not as npuprof writes it"),
    ],
)
def test_a_lock_that_was_edited_or_merged_wrongly_is_told_with_the_repair(
    change: Callable[[str], str], told: str, app: Repo, run: Run
) -> None:
    lock = app.folder / "npuprof.lock"
    good = lock.read_text()
    lock.write_text(change(good))
    result = run("show", "job")
    assert (result.code, "NP044" in result.err, told in result.err) == (2, True, True), result.err
    assert "npuprof source update" in result.err
    assert run("show", "own").code == 0
    assert run("source", "update", "--yes").code == 0
    assert lock.read_text().replace("# mine\n", "") == good
    assert run("show", "job").code == 0


@pytest.mark.parametrize("words", ["show job", "source sync", "source update --yes", "source update --yes team", "source add b /b"])
def test_a_lock_that_a_newer_npuprof_wrote_is_not_written_over(words: str, app: Repo, run: Run) -> None:
    lock = app.folder / "npuprof.lock"
    lock.write_text(newer := lock.read_text().replace("version = 1", 'version = 2\nnews = "kept"'))
    result = run(*words.split())
    assert (result.code, "A newer npuprof wrote it" in result.err) == (2, True), result.err
    assert lock.read_text() == newer


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "<<<<<<< HEAD\n" + text,
        lambda text: text + "[[[",
        lambda text: "\x00",
        lambda text: text.replace('commit = "', 'commit = "x'),
    ],
    ids=["with the marks of a merge", "no TOML", "binary", "with a commit that is none"],
)
@pytest.mark.parametrize("names", [(), ("team",)])
def test_an_update_of_a_lock_that_cannot_be_read_shows_what_differs_from_head_and_keeps_what_was_not_named(
    names: tuple[str, ...], spoil: Callable[[str], str], app: Repo, team: Team, run: Run
) -> None:
    assert run("source", "add", "other", team.url).code == 0
    app.commit(message="another source")
    lock = app.folder / "npuprof.lock"
    before = tomllib.loads(lock.read_text())["sources"]["other"]
    team.publish({"base": BASE.format(8)}, "1.1.0")
    lock.write_text(spoil(lock.read_text()))
    result = run("source", "update", "--yes", *names)
    assert (result.code, "hccl_timeout 600 → 8" in result.out, "that of HEAD" in result.err) == (0, True, True), result.out + result.err
    after = tomllib.loads(lock.read_text())["sources"]
    assert (after["team"]["tag"], after["other"] == before) == ("v1.1.0", bool(names))
    assert run("show", "job").code == 0


@pytest.mark.parametrize(
    "change",
    [lambda text: "", lambda text: None],
    ids=["empty", "not there"],
)
def test_an_update_does_not_deny_a_source_that_no_lock_names(change: Callable[[str], str | None], app: Repo, run: Run) -> None:
    lock = app.folder / "npuprof.lock"
    told = change(lock.read_text())
    lock.unlink() if told is None else lock.write_text(told)
    result = run("source", "update", "--yes")
    assert (result.code, "no longer NP044" in result.out, "NP042" in result.out) == (0, True, False), result.out


def test_a_lock_comes_back_from_its_text() -> None:
    made = {
        "b": LockedSource("b", "file:///b", "", "HEAD", "a" * 40, f"sha256:{'0' * 64}", releases=f"0 sha256:{'2' * 64}"),
        "a-1": LockedSource(
            "a-1",
            "ssh://git@h/x",
            "p q",
            "^1",
            "b" * 64,
            f"sha256:{'1' * 64}",
            "v1.0.0",
            "it's broken",
            {"x/y@1": LockedVersion("1.0.0", "c" * 40), "x@main": LockedVersion("-", "d" * 40, "it is: slow")},
            releases=f"12 sha256:{'3' * 64}",
        ),
    }
    assert parse_lock("npuprof.lock", format_lock(made).encode()).sources == dict(sorted(made.items()))


def test_comments_and_what_else_stands_in_npuprof_toml_stay(app: Repo, team: Team, run: Run) -> None:
    project, lock = app.folder / "npuprof.toml", app.folder / "npuprof.lock"
    project.write_text(f'# ours\nrequires = ">=0"  # any\n\n{project.read_text()}# the end\n')
    assert run("source", "add", "second", team.url, "--rev", "main").code == 0
    assert "# ours" in project.read_text()
    assert 'requires = ">=0"  # any' in project.read_text()
    assert "# the end" in project.read_text()
    assert set(parse_project("npuprof.toml", project.read_bytes()).sources) == {"team", "second"}
    assert run("source", "remove", "second").code == 0
    assert "second" not in lock.read_text() + project.read_text()


# -- one team, and who uses its presets ------------------------------------------------------------------------------


def test_every_verb_tells_the_source_the_version_and_the_line_of_a_value(app: Repo, run: Run) -> None:
    place = "team@1.0.0:profiles/base.toml:5"
    for words in (
        ("show", "job", "--origin"),
        ("explain", "job", "hccl_timeout"),
        ("blame", "job"),
        ("diff", "own", "job"),
        ("log", "job"),
        ("show", "job@HEAD", "--origin"),
        ("show", "team:base", "--origin"),
        ("explain", "team:base", "hccl_timeout"),
        ("blame", "team:base"),
        ("show", "team:base+own", "--origin"),
        ("show", "own", "--with", "team:base", "--origin"),
    ):
        result = run(*words)
        assert result.code == 0, result.err
        assert place in result.out, words
    assert "team:base (1.0.0)\n`-- job" in run("list", "--tree").out
    assert "hccl_timeout = 600" in run("show", "team:base@1.0.0").out
    assert "team@base/v1.0.0:profiles/base.toml:5" in run("show", "team:base@1", "--origin").out
    assert run("check").code == 0
    assert "600" in run("render", "job").out


def test_an_update_shows_what_it_changes_here_and_asks_before_it_writes(app: Repo, team: Team, run: Run) -> None:
    lock = app.folder / "npuprof.lock"
    before = lock.read_text()
    assert (run("source", "update").code, lock.read_text()) == (0, before)
    team.publish({"base": BASE.format(60)}, "1.1.0")
    team.publish({"base": BASE.format(6)}, "2.0.0")
    for words, code in ((("--frozen",), 1), (("--dry-run",), 0), ((), 1)):
        result = run("source", "update", *words)
        assert result.code == code, result.err
        assert "team: 1.0.0" in result.out
        assert "-> 1.1.0" in result.out
        assert "hccl_timeout 600 → 60" in result.out
        assert "own" not in result.out
        assert lock.read_text() == before
    assert run("source", "update", "--yes").code == 0
    assert 'tag = "v1.1.0"' in lock.read_text()
    assert "hccl_timeout = 60\n" in run("show", "job").out
    assert "hccl_timeout = 600\n" in run("show", "job@HEAD").out
    app.commit(message="two")
    assert "hccl_timeout 600 → 60" in run("diff", "--rev", "HEAD~1..HEAD").out
    told = json.loads(run("log", "job", "hccl_timeout", "--format", "json").out)["commits"]
    assert [commit["subject"] for commit in told] == ["two", "one"]
    assert "two" in run("explain", "job", "hccl_timeout").out
    app.git("checkout", "-q", "HEAD~1", "--", "npuprof.lock")
    assert "hccl_timeout = 600\n" in run("show", "job").out


def test_a_fresh_clone_works_after_sync_and_without_a_network_from_then_on(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run("render", "job").out
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    app.git("clone", "-q", str(app.folder), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    result = run("render", "job")
    assert (result.code, "NP043" in result.err, "npuprof source sync" in result.err) == (2, True, True)
    before = (Path("npuprof.toml").read_bytes(), Path("npuprof.lock").read_bytes())
    team.publish({"base": BASE.format(1)}, "1.5.0")
    assert run("source", "sync").code == 0
    assert (Path("npuprof.toml").read_bytes(), Path("npuprof.lock").read_bytes()) == before
    offline(team)
    assert run("render", "job").out == expected
    for words in (
        ("source", "sync"),
        ("check",),
        ("list", "--tree"),
        ("show", "team:base@1.0.0"),
        ("log", "job"),
        ("diff", "--rev", "HEAD"),
    ):
        assert run(*words).code == 0, words
    for words in (("source", "update"), ("source", "add", "more", team.url)):
        result = run(*words)
        assert (result.code, "NP045" in result.err) == (2, True)
    assert (Path("npuprof.toml").read_bytes(), Path("npuprof.lock").read_bytes()) == before


def test_what_is_locked_survives_an_upstream_that_is_rewritten(app: Repo, team: Team, run: Run) -> None:
    team.repo.git("tag", "-d", "v1.0.0", "base/v1.0.0")
    team.repo.git("checkout", "-q", "--orphan", "new")
    team.repo.git("branch", "-D", "main")
    team.repo.git("branch", "-m", "main")
    team.repo.commit({"base": BASE.format(5)})
    team.repo.git("tag", "-a", "v1.0.0", "-m", "again")
    team.push("--force")
    old = app.git("show", "HEAD:npuprof.lock")
    result = run("source", "update", "--yes")
    assert (result.code, "NP046" in result.err) == (2, True)
    assert "v1.0.0 was" in result.err
    assert "--moved" in result.err
    assert "hccl_timeout = 600\n" in run("show", "job").out
    subprocess.run(["git", "gc", "-q", "--prune=now"], cwd=find_mirror(), check=True)
    shutil.rmtree(os.path.join(os.environ["XDG_CACHE_HOME"], "npuprof", "presets"))
    assert "hccl_timeout = 600\n" in run("show", "job").out
    assert (app.folder / "npuprof.lock").read_text() == old + "\n"
    assert run("source", "update", "--yes", "--moved").code == 0
    assert "hccl_timeout = 5\n" in run("show", "job").out
    assert "hccl_timeout = 600\n" in run("show", "job@HEAD").out


def find_mirror() -> Path:
    (found,) = Path(os.environ["XDG_CACHE_HOME"], "npuprof", "sources").glob("*.git")
    return found


def test_a_tag_that_names_no_version_may_move(app: Repo, team: Team, run: Run) -> None:
    team.publish({}, "", "nightly")
    assert run("source", "add", "night", team.url, "--rev", "nightly").code == 0
    team.repo.git("tag", "-d", "nightly")
    team.repo.commit({"base": BASE.format(77)})
    team.repo.git("tag", "-a", "nightly", "-m", "x")
    team.push("--force")
    assert run("source", "update", "--yes").code == 0
    assert "hccl_timeout = 77\n" in run("show", "night:base").out
    assert "hccl_timeout = 600\n" in run("show", "team:base").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("team", "{url}"), "there is a source 'team' already"),
        (("TEAM", "{url}"), "there is a source 'team' already"),
        (("a b", "{url}"), "cannot be the name of a source"),
        (("x", "ext::sh -c 'touch pwned'"), "NP048"),
        (("x", "-ofile"), "NP048"),
        (("x", "https://me:secret@host/x"), "NP048"),
        (("x", "https://sekret@host/x"), "'https://***@host/x' is no source: its user may be a token"),
        (("x", "http://host/x"), "NP048"),
        (("x", "{url}", "--rev", "^9"), "nothing in the source"),
        (("x", "{url}", "--rev", "nope"), "nothing in the source"),
        (("x", "{url}", "--path", "nope"), "has no store in 'nope'"),
        (("x", "{url}", "--path", "../.."), "is no folder below"),
        (("x", "file:///nowhere.git"), "NP045"),
    ],
)
def test_what_cannot_be_a_source_is_told_and_nothing_is_written(words: tuple[str, ...], told: str, app: Repo, team: Team, run: Run) -> None:
    before = {path: path.read_bytes() for path in app.folder.glob("npuprof.*")}
    name, url, *more = (word.format(url=team.url) for word in words)
    result = run("source", "add", *more, "--", name, url)
    assert (result.code, told in result.err) == (2, True), result.err
    assert "secret" not in result.err
    assert {path: path.read_bytes() for path in app.folder.glob("npuprof.*")} == before
    assert not list(app.folder.rglob("pwned"))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("nope:base", "there is no source 'nope'"),
        ("taem:base", "did you mean 'team'"),
        ("team:nope", "team:nope"),
        ("team:bsae", "did you mean 'team:base'"),
        ("team:", "cannot be the name|team:"),
        ("team:base@9", "no version and no commit"),
        ("team:../x", "no preset"),
        ("team:base@", "no version and no commit"),
        ("team/lib:base", "there is no source 'lib'"),
        ("a/b/c:d", "there is no source 'a'"),
    ],
)
def test_a_reference_that_names_nothing_is_told_where_it_stands(asked: str, told: str, app: Repo, run: Run) -> None:
    result = run("show", asked)
    assert result.code == 2
    assert any(part in result.err for part in told.split("|")), result.err
    app.write({"x": f'profile.extends = ["{asked}"]\n'})
    result = run("check", "x")
    assert (result.code, "profiles/x.toml:1" in result.err + result.out) == (2, True), result.err


@pytest.mark.parametrize(
    ("rev", "store", "advice"),
    [
        ("^1.0", "", "a range takes only releases of the whole store: ask its owners for npuprof release --all, or follow a branch"),
        ("^1.0", "2.0.0", 'widen rev = "^1.0" in npuprof.toml: it excludes 2.0.0, the newest release of the store'),
        ("1.0.0", "", ""),
        ("main", "", ""),
        ("*", "2.0.0", ""),
    ],
)
def test_an_update_lists_releases_of_presets_that_no_release_of_the_store_has(
    rev: str, store: str, advice: str, app: Repo, team: Team, run: Run
) -> None:
    at_once = ["base/v1.1.0", "base/v1.2.0", "base/v1.2.0.yanked", "base/v3.0.0-rc.1", "new/v0.1.0"]
    team.publish({"base": BASE.format(7), "new": ""}, store, *at_once)
    team.repo.git("tag", "other/v0.9.0", "v1.0.0^{commit}")  # without a message, and where the lock is
    team.push()
    (app.folder / "npuprof.toml").write_text((app.folder / "npuprof.toml").read_text().replace("^1.0", rev))
    result = run("source", "update", "--yes")
    assert result.code == 0, result.err
    assert ("lacks newer releases" in result.err) == bool(advice), result.err
    assert not advice or f"team 1.0.0 lacks newer releases of presets, base 1.1.0, new 0.1.0; {advice}" in result.err, result.err
    assert ("up to date" in result.err) == (rev == "^1.0"), result.err
    app.write({"job": 'profile.extends = ["team:base@1.1.0"]\n'})
    result = run("source", "update", "--yes")
    assert (result.code, advice in result.err) == (2 if rev in ("^1.0", "1.0.0") else 0, True), result.err


def test_a_version_that_the_locked_commit_does_not_have_is_refused(app: Repo, team: Team, run: Run) -> None:
    team.publish({"base": BASE.format(7)}, "1.1.0", "base/v1.1.0")
    assert run("source", "add", "second", team.url).code == 0  # the mirror knows the tag now
    result = run("show", "team:base@1.1.0")
    assert (result.code, "NP047" in result.err) == (2, True), result.err
    assert "hccl_timeout = 7\n" in run("show", "second:base@1.1.0").out
    assert "hccl_timeout = 600\n" in run("show", "team:base@1").out


def test_a_source_brings_its_own_sources_at_what_its_lock_says(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = Team(tmp_path / "tools")
    tools.repo.write({"wide": '[profile]\nextends = ["core:base"]\n[options]\ndeterministic = 1\n', "plain": "options.deterministic = 1\n"})
    monkeypatch.chdir(tools.repo.folder)
    assert run("source", "add", "core", team.url).code == 0
    tools.publish({}, "1.0.0")
    monkeypatch.chdir(app.folder)
    team.publish({"base": BASE.format(60)}, "1.1.0")
    assert run("source", "add", "tools", tools.url).code == 0
    assert "tools/core@1.0.0:profiles/base.toml" in run("show", "tools:wide", "--origin").out
    assert "hccl_timeout = 600\n" in run("show", "tools/core:base").out
    app.write({"both": 'profile.extends = ["team:base", "tools:wide"]\n'})
    assert run("show", "both").code == 0  # the same version by both ways
    assert run("source", "update", "team", "--yes").code == 0
    result = run("show", "both")
    assert (result.code, "NP110" in result.err) == (2, True), result.err
    assert "both -> team:base" in result.err
    assert "both -> tools:wide -> tools/core:base" in result.err
    team.publish({"base": BASE.format(60), "other": "options.deterministic = 0\n"}, "1.2.0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    assert run("source", "sync").code == 0
    assert "hccl_timeout = 600\n" in run("show", "tools:wide").out


def test_sources_of_sources_are_listed_and_what_sync_fetches_of_them_is_told(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = Team(tmp_path / "core")
    core.publish({"base": BASE.format(5)}, "3.0.0")
    monkeypatch.chdir(team.repo.folder)
    assert run("source", "add", "core", core.url).code == 0
    team.publish({"nested": 'profile.extends = ["core:base"]\n'}, "1.1.0")
    monkeypatch.chdir(app.folder)
    assert run("source", "update", "--yes").code == 0
    listed = run("source", "list").out.splitlines()
    assert [line.split()[:2] + line.split()[4:5] for line in listed] == [["team", "v1.1.0", "ready"], ["team/core", "v3.0.0", "ready"]]
    shutil.rmtree(find_mirror_folder(core.url))
    shutil.rmtree(Path(os.environ["XDG_CACHE_HOME"], "npuprof", "presets"))
    assert "not fetched" in run("source", "list").out.splitlines()[1]
    result = run("source", "sync")
    assert (result.code, result.err) == (0, "npuprof: fetched team/core 3.0.0\n")
    assert "everything" in run("source", "sync").err
    assert run("source", "vendor", "team").code == 0
    assert [line.split()[4] for line in run("source", "list").out.splitlines()] == ["copied", "copied"]
    (app.folder / "vendor/team/base.toml").write_text("")
    assert "edited" in run("source", "list").out.splitlines()[0]


def test_presets_whose_source_is_not_here_are_listed_by_what_they_say_themselves(app: Repo, team: Team, run: Run) -> None:
    shutil.rmtree(Path(os.environ["XDG_CACHE_HOME"]))
    result = run("list")
    assert (result.code, "job" in result.out, "own" in result.out, "NP043" in result.err) == (2, True, True, True)
    rows = {row["name"]: row for row in json.loads(run("list", "--format", "json").out)["presets"]}
    assert (rows["job"]["extends"], rows["job"]["digest"], bool(rows["own"]["digest"])) == (["team:base"], None, True)
    assert "job" in run("list", "--tree").out


def test_two_versions_that_say_the_same_are_one(app: Repo, team: Team, run: Run) -> None:
    team.publish({"other": "options.deterministic = 0\n"}, "1.1.0", "base/v1.1.0")
    assert run("source", "update", "--yes").code == 0
    app.write({"both": 'profile.extends = ["team:base@1.0.0", "team:base"]\n[append.env]\n'})
    assert run("show", "both").out == run("show", "team:base").out.replace('description = "base"\n', "")


@pytest.mark.parametrize(("wanted", "code"), [(">=0.0.1", 0), ("*", 0), (">=99", 2), ("<0.0.1", 2)])
def test_the_npuprof_that_a_repository_needs_is_asked_for_first(wanted: str, code: int, app: Repo, run: Run) -> None:
    path = app.folder / "npuprof.toml"
    path.write_text(f'requires = "{wanted}"\n{path.read_text()}')
    app.write({"broken": "[options\n"})
    for words in (("show", "own"), ("list",), ("render", "own"), ("set", "own", "hccl_timeout=5")):
        result = run(*words)
        assert ("NP041" in result.err) == bool(code), result.err
        if code:
            assert result.code == 2
            assert "NP001" not in result.err


def test_deprecated_presets_and_yanked_versions_are_told_on_update_and_in_checks(app: Repo, team: Team, run: Run) -> None:
    app.write({"pinned": 'profile.extends = ["team:base@1.0.0"]\n'})
    team.publish({"base": BASE.format(600).replace("[options]", 'deprecated = "use other"\n[options]')}, "1.1.0")
    for tag in ("base/v1.0.0", "v1.1.0"):
        team.repo.git("tag", "-a", f"{tag}.yanked", "-m", "it is slow")
    team.push()
    result = run("source", "update", "--yes")
    assert 'tag = "v1.0.0"' in (app.folder / "npuprof.lock").read_text(), "the yanked one is not taken"
    assert "team:base@1.0.0 is yanked" in result.err
    team.publish({}, "1.2.0")
    assert run("source", "update", "--yes").code == 0
    told = json.loads(run("check", "--format", "json").out)["findings"]
    assert {(one["code"], one["path"]) for one in told} >= {("NP703", "profiles/job.toml"), ("NP704", "profiles/pinned.toml")}


def test_who_uses_a_yanked_version_of_a_source_is_told_why_and_what_to_write(app: Repo, team: Team, run: Run) -> None:
    def read_hints() -> dict[str, tuple[str, str]]:
        told = json.loads(run("check", "--format", "json").out)["findings"]
        return {one["path"]: (one["message"], one["hint"]) for one in told if one["code"] == "NP704"}

    app.write({"pinned": 'profile.extends = ["team:base@1.0.0"]\n'})
    team.publish({"base": BASE.format(7)}, "1.1.0", "base/v1.1.0")
    team.publish({"base": BASE.format(8)}, "1.2.0", "base/v1.2.0")
    for tag in ("base/v1.0.0", "base/v1.2.0", "v1.2.0"):
        team.repo.git("tag", "-a", f"{tag}.yanked", "-m", "it is: slow")
    team.push()
    result = run("source", "update", "--yes")
    assert "team:base@1.0.0 is yanked: it is: slow" in result.err
    told, hint = read_hints()["profiles/pinned.toml"]
    assert "it is: slow" in told
    assert hint == 'write "team:base@1.1.0" in its place, then npuprof source update team'
    assert run("source", "vendor", "team").code == 0
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    assert read_hints()["profiles/pinned.toml"][1] == "put another version behind the @, then npuprof source update team"
    app.write({"pinned": 'profile.extends = ["team:base@1.1.0"]\n'})
    assert run("source", "update", "--yes").code == 0
    assert read_hints() == {}


@pytest.mark.parametrize(
    ("rev", "yanked"),
    [
        ("1.0.0", "v1.0.0"),
        ("^1.0", "v1.0.0 v1.1.0"),
    ],
)
def test_of_a_source_at_a_yanked_version_the_next_step_is_told(rev: str, yanked: str, app: Repo, team: Team, run: Run) -> None:
    team.publish({"base": BASE.format(7)}, "1.1.0")
    project, lock = app.folder / "npuprof.toml", app.folder / "npuprof.lock"
    project.write_text(project.read_text().replace("^1.0", rev))
    assert run("source", "update", "--yes").code == 0
    before = lock.read_text()
    for tag in yanked.split():
        team.repo.git("tag", "-a", f"{tag}.yanked", "-m", "it is slow")
    team.push()
    assert run("source", "update", "--yes").code == 0
    if "yanked = " not in lock.read_text():
        lock.write_text(before.replace("commit =", 'yanked = "it is slow"\ncommit ='))
    (one,) = (one for one in json.loads(run("check", "job", "--format", "json").out)["findings"] if one["code"] == "NP704")
    assert one["message"] == "job extends team:base in a version that was yanked: it is slow"
    assert one["hint"] == "npuprof source update team, with a rev in npuprof.toml that allows a newer version"


def test_a_release_records_what_its_sources_were_and_stays_what_it_is(app: Repo, team: Team, run: Run) -> None:
    assert run("release", "job", "1.0.0").code == 0
    commit = team.repo.git("rev-parse", "v1.0.0^{commit}")
    assert f"Parent: team:base 1.0.0 {commit}" in app.git("tag", "-l", "--format=%(contents)", "job/v1.0.0")
    shown = run("show", "job@1.0.0", "--format", "json").out
    team.publish({"base": BASE.format(60)}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    app.commit()
    assert run("show", "job@1.0.0", "--format", "json").out == shown
    assert run("verify", "--tags").code == 0
    result = run("release", "job", "--dry-run")
    assert "hccl_timeout" in result.out + result.err


@pytest.mark.parametrize("revision", ["", "@HEAD"])
def test_a_copied_store_is_read_in_place_of_the_mirror(revision: str, app: Repo, team: Team, run: Run, tmp_path: Path) -> None:
    app.write({"pinned": 'profile.extends = ["team:base@1.0.0"]\n'})
    assert run("source", "update", "--yes").code == 0
    expected = [run("show", name, "--origin").out for name in ("job", "pinned")]
    assert run("source", "vendor", "team").code == 0
    app.commit()
    offline(team)
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    found = [run("show", f"{name}{revision}", "--origin").out for name in ("job", "pinned")]
    commit = app.head[:7]
    assert [text.replace(f"{commit}:", "") for text in found] == expected
    assert run("source", "sync").code == 0
    assert "copied" in run("source", "list").out
    copy = app.folder / "vendor/team/base.toml"
    copy.write_text(BASE.format(1))
    assert "NP049" in run("source", "sync").err
    (app.folder / "vendor/team/.commit").write_text("0" * 40)
    assert "NP044" in run("show", "job").err


def test_a_copy_replaces_nothing_but_a_copy(app: Repo, run: Run) -> None:
    before = (app.folder / "profiles/own.toml").read_bytes()
    for folder in ("profiles", "profiles/team", ".", "..", "/tmp"):
        assert run("source", "vendor", "team", "--into", folder).code == 2
    assert (app.folder / "profiles/own.toml").read_bytes() == before


@pytest.mark.parametrize("folder", ["/srv/x", "../x", "a/../../x", "a/./b", ".git/x", "a/.GIT/x", "away", "away/x", "hidden", ""])
def test_a_copy_lies_in_the_repository_and_nowhere_else(folder: str, app: Repo, run: Run, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (app.folder / "away").symlink_to(tmp_path / "elsewhere")
    (app.folder / "hidden").symlink_to(".git")
    before = (app.folder / "npuprof.toml").read_text()
    result = run("source", "vendor", "team", "--into", folder)
    assert (result.code, folder in result.err) == (2, True), result.err
    assert (app.folder / "npuprof.toml").read_text() == before
    assert not [path for path in tmp_path.rglob("*") if path.name == ".commit"]
    (app.folder / "npuprof.toml").write_text(f'{before}vendor = "{folder}"\n')
    assert run("show", "job").code == 2, "nor is it read from there"


def test_a_copy_brings_the_sources_of_the_source_and_theirs(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("core", "tools", "suite")
    chain = [Team(tmp_path / name) for name in names]
    chain[0].publish({"base": BASE.format(1)}, "1.0.0", "base/v1.0.0")
    for index, (one, below) in enumerate(zip(chain[1:], chain, strict=False)):
        source = names[index]
        one.repo.write({"base": f'[profile]\nextends = ["{source}:base@1.0.0"]\n[options]\nop_debug_level = {index}\n'})
        one.repo.write({"now": f'[profile]\nextends = ["{source}:base"]\n'})
        monkeypatch.chdir(one.repo.folder)
        assert run("source", "add", source, below.url).code == 0
        one.publish({}, "1.0.0", "base/v1.0.0")
        below.publish({"base": BASE.format(99 + index)}, "1.1.0")
        assert run("source", "update", "--yes").code == 0
        one.publish({"other": "options.deterministic = 1\n"}, "1.0.1")
    monkeypatch.chdir(app.folder)
    assert run("source", "add", "suite", chain[-1].url).code == 0
    app.write({"old": 'profile.extends = ["suite:base@1.0.0"]\n', "new": 'profile.extends = ["suite:now"]\n'})
    assert run("source", "update", "--yes").code == 0
    expected = [run("show", name, "--origin").out for name in ("old", "new")]
    assert "hccl_timeout = 1" in expected[0]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "second"))
    assert run("source", "sync").code == 0, "sources of versions that are referred to are fetched too"
    assert [run("show", name, "--origin").out for name in ("old", "new")] == expected
    assert run("source", "vendor", "suite").code == 0
    assert run("source", "vendor", "team").code == 0
    assert (run("commit").code, app.git("status", "--short")) == (0, "")
    for one in (*chain, team):
        offline(one)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    subprocess.run(["git", "clone", "-q", app.folder, tmp_path / "clone"], check=True)
    monkeypatch.chdir(tmp_path / "clone")
    assert [run("show", name, "--origin").out for name in ("old", "new")] == expected
    assert "hccl_timeout = 1" in run("show", "old@HEAD").out
    assert run("source", "sync").code == 0
    assert run("check").code == 0
    pool = tmp_path / "clone/vendor/suite/.sources"
    for nested in pool.glob("*/base.toml"):
        good = nested.read_text()
        nested.write_text(good + "# edited\n")
        result = run("source", "sync")
        assert (result.code, "NP049" in result.err, "npuprof source vendor suite" in result.err) == (2, True, True), result.err
        assert "NP049" in run("check").out
        nested.write_text(good)
    shutil.rmtree(pool)
    assert "NP044" in run("show", "new").err


def test_a_copy_brings_the_versions_that_presets_of_the_source_refer_to(app: Repo, team: Team, run: Run, tmp_path: Path) -> None:
    pin = '[profile]\nextends = ["{}"]\n[options]\nop_debug_level = {}\n'
    team.publish({"base": BASE.format(2), "mid": 'profile.extends = ["base"]\n'}, "1.1.0", "base/v1.1.0", "mid/v1.1.0")
    team.publish({"base": BASE.format(3), "mid": pin.format("base@1.0.0", 3), "top": pin.format("mid@1.1.0", 4)}, "1.2.0", "top/v1.2.0")
    range_, chained = pin.format("base@1", 0), pin.format("top@1.2.0", 5)
    team.publish({"base": BASE.format(4), "range": range_, "chained": chained, "top": None, "late": pin.format("base@7", 1)}, "1.3.0")
    app.write({name: f'profile.extends = ["team:{name}"]\n' for name in ("mid", "range", "chained", "late", "mid@1.1.0", "top@1.2.0")})
    for name in ("mid@1.1.0", "top@1.2.0"):
        os.replace(app.folder / f"profiles/{name}.toml", app.folder / f"profiles/{name.replace('@', '-')}.toml")
    assert run("source", "update", "--yes").code == 0
    names = ("mid", "range", "chained", "mid-1.1.0", "top-1.2.0")
    expected = [run("show", name, "--origin").out for name in names]
    assert run("source", "vendor", "team").code == 0
    offline(team)
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    assert [run("show", name, "--origin").out for name in names] == expected
    timeouts = [next(line.split()[2] for line in one.splitlines() if line.startswith("hccl_timeout")) for one in expected]
    assert timeouts == ["600", "2", "2", "2", "2"]
    result = run("show", "late")
    assert (result.code, "the copy of the source 'team' has no base@7" in result.err) == (2, True), result.err
    assert run("source", "sync").code == 0


def test_an_edited_copy_is_mended_from_a_fresh_clone(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("source", "vendor", "team").code == 0
    copy = app.folder / "vendor/team/base.toml"
    good = copy.read_text()
    for damage in (lambda: copy.write_text(BASE.format(1)), copy.with_name(".commit").unlink):
        damage()
        app.git("add", ".")  # an edit that git does not have would be rejected
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
        assert "npuprof source vendor team" in run("source", "sync").err
        assert run("source", "vendor", "team").code == 0
        assert (copy.read_text(), run("source", "sync").code) == (good, 0)
        shutil.rmtree(tmp_path / "fresh")


def test_an_update_copies_anew_what_a_copy_lacks(app: Repo, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    app.write({"pinned": 'profile.extends = ["team:base@1.0.0"]\n'})
    assert run("source", "update", "--yes").code == 0
    assert run("show", "pinned").code == 0
    (app.folder / "vendor/team/base.toml").unlink()
    assert "copied vendor/team anew" in run("source", "update").err
    assert run("source", "sync").code == 0


@pytest.mark.parametrize("folder", ["vendor/team", "vendor/team/x", "vendor", "Vendor/Team"])
def test_a_copy_does_not_replace_that_of_another_source(folder: str, app: Repo, team: Team, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    assert run("source", "add", "other", team.url).code == 0
    result = run("source", "vendor", "other", "--into", folder)
    assert (result.code, "the copy of the source 'team'" in result.err) == (2, True), result.err
    assert run("source", "sync").code == 0


def test_a_copy_that_nothing_reads_any_more_is_told(app: Repo, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    result = run("source", "vendor", "team", "--into", "third/team/")
    assert "the copy in vendor/team stays" in result.err
    assert 'vendor = "third/team"' in (app.folder / "npuprof.toml").read_text()
    assert "its copy in third/team stays" in run("source", "remove", "team", "--force").err


@pytest.mark.parametrize("how", ["mirror", "copy", "commit"])
def test_the_rules_of_a_source_bind_where_that_is_wanted_however_it_is_read(how: str, app: Repo, team: Team, run: Run) -> None:
    (team.repo.folder / "npuprof.toml").write_text('[[rule]]\ncode = "TEAM-1"\nrequire = "hccl_timeout == 1"\nmessage = "one"\n')
    team.publish({}, "1.1.0")
    project = app.folder / "npuprof.toml"
    project.write_text(project.read_text() + "rules = true\n")
    result = run("source", "update", "--yes")
    assert "TEAM-1" in result.out, "a rule that is new breaks presets"
    if how != "mirror":
        assert run("source", "vendor", "team").code == 0
        offline(team)
        shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    app.commit()
    result = run("check", "job@HEAD" if how == "commit" else "job")
    assert (result.code, "TEAM-1" in result.out) == (1, True), result.out
    project.write_text(project.read_text().replace("rules = true\n", ""))
    assert "TEAM-1" not in run("check", "job").out


def test_what_an_update_breaks_is_told_from_what_the_rules_of_a_source_forbade_before(app: Repo, team: Team, run: Run) -> None:
    (team.repo.folder / "npuprof.toml").write_text('[[rule]]\ncode = "TEAM-1"\nrequire = "hccl_timeout == 1"\nmessage = "one"\n')
    team.publish({}, "1.1.0")
    project = app.folder / "npuprof.toml"
    project.write_text(project.read_text() + "rules = true\n")
    assert run("source", "update", "--yes").code == 0
    team.publish({"base": BASE.format(7)}, "1.2.0")
    result = run("source", "update", "--dry-run")
    assert "hccl_timeout" in result.out
    assert "TEAM-1" not in result.out, "it was broken already"


@pytest.mark.parametrize("requires", ['requires = ">=99"\n', 'requires = ">=99"\nlater = 1\n'])
def test_the_npuprof_that_a_source_needs_is_asked_for_before_it_is_read(
    requires: str, app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = (app.folder / "npuprof.lock").read_text()
    (team.repo.folder / "npuprof.toml").write_text(requires)
    team.publish({"base": BASE.format(7).replace("[options]", "later = 1\n[options]")}, "1.1.0")
    for words in (("source", "update", "--yes"), ("source", "add", "new", team.url)):
        result = run(*words)
        assert (result.code, "NP041" in result.err, ">=99" in result.err) == (2, True, True), result.err
    assert (app.folder / "npuprof.lock").read_text() == lock
    assert run("show", "job").code == 0
    monkeypatch.setattr("npuprof.store.sources.project.__version__", "99.0.0")
    (team.repo.folder / "npuprof.toml").write_text('requires = ">=99"\n')
    team.publish({"base": BASE.format(7)}, "1.1.1")
    assert run("source", "update", "--yes").code == 0
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    monkeypatch.chdir(app.folder)
    for words in (("source", "sync"), ("show", "job"), ("show", "team:base"), ("list", "--store", "team:"), ("check",)):
        result = run(*words)
        told = result.out + result.err
        assert (result.code, "the source 'team' needs npuprof >=99" in told, "team@1.1.1:npuprof.toml:1" in told) == (2, True, True), told
    assert run("show", "own").code == 0


def test_what_a_source_decides_to_execute_is_trusted_singly(app: Repo, team: Team, run: Run) -> None:
    team.publish({"power": 'env.LD_PRELOAD = "/x.so"\n'}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    result = run("env", "team:power")
    assert (result.code, "NP930" in result.err, "npuprof trust team:" in result.err) == (2, True, True)
    assert run("trust", "profiles").code == 0
    assert run("env", "team:power").code == 2
    assert run("trust", "team:").code == 0
    assert "LD_PRELOAD='/x.so'" in run("env", "team:power").out
    team.publish({"power": 'env.LD_PRELOAD = "/y.so"\n'}, "1.2.0")
    assert run("source", "update", "--yes").code == 0
    assert run("env", "team:power").code == 2


def test_presets_of_a_source_are_changed_and_released_where_they_come_from(app: Repo, run: Run) -> None:
    for words in (
        ("set", "team:base", "hccl_timeout=1"),
        ("unset", "team:base", "hccl_timeout"),
        ("release", "team:base"),
        ("restore", "team:base@1"),
    ):
        result = run(*words)
        assert (result.code, "update" in result.err) == (2, True), result.err


def test_removing_a_source_that_presets_extend_takes_force(app: Repo, run: Run) -> None:
    result = run("source", "remove", "team")
    assert (result.code, "profiles/job.toml:2" in result.err) == (2, True)
    assert run("source", "remove", "team", "--force").code == 0
    assert "there is no source 'team'" in run("show", "job").err


def test_a_repository_without_presets_of_its_own_can_use_those_of_a_source(
    tmp_path: Path, team: Team, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Repo(tmp_path / "empty")
    monkeypatch.chdir(made.folder)
    assert run("source", "add", "team", team.url).code == 0
    assert "hccl_timeout = 600\n" in run("show", "team:base").out
    assert run("render", "team:base").code == 0
    (made.folder / "below").mkdir()
    monkeypatch.chdir(made.folder / "below")
    assert run("show", "team:base").code == 0


def test_two_sides_that_add_sources_merge(app: Repo, team: Team, run: Run) -> None:
    assert run("git", "install").code == 0
    script = app.folder / ".git" / "npuprof-driver"
    assert script.parent.is_dir()
    app.commit()
    app.git("checkout", "-q", "-b", "other")
    assert run("source", "add", "b", team.url).code == 0
    app.commit()
    app.git("checkout", "-q", "main")
    assert run("source", "add", "c", team.url).code == 0
    app.commit()
    app.git("merge", "-q", "other")
    assert run("source", "sync").code == 0
    assert [row["name"] for row in json.loads(run("source", "list", "--format", "json").out)["sources"]] == ["team", "c", "b"]


LOCKED = """\
version = 1

[sources.team]
url = "file:///srv/team.git"
path = "profiles"
rev = "^1.0"
# ours since spring
tag = "v1.0.0"
commit = "{}"
digest = "sha256:{}"

[sources.team.versions]
"base@1.0.0" = "1.0.0 {}"
""".format("a" * 40, "0" * 64, "b" * 40)
PIN = '"other@1.0.0" = "1.0.0 ' + "d" * 40 + '"\n'


@pytest.mark.parametrize(
    ("ours", "theirs", "clean"),
    [
        ({'"^1.0"': '">=1.0"'}, {'tag = "v1.0.0"': 'tag = "v1.1.0"', "a" * 40: "c" * 40, "0" * 64: "1" * 64}, False),
        ({"a" * 40: "e" * 40}, {"0" * 64: "1" * 64}, False),
        ({'rev = "^1.0"': 'rev = "main"', 'tag = "v1.0.0"\n': ""}, {"a" * 40: "c" * 40}, False),
        ({"a" * 40: "c" * 40}, {'"base@1.0.0"': f'{PIN}"base@1.0.0"'}, False),
        ({"a" * 40: "c" * 40}, {f'\n[sources.team.versions]\n"base@1.0.0" = "1.0.0 {"b" * 40}"\n': ""}, False),
        ({'"base@1.0.0"': f'{PIN}"base@1.0.0"'}, {'"base@1.0.0"': '"base@1" = "1.0.0 ' + "b" * 40 + '"\n"base@1.0.0"'}, True),
        ({}, {"a" * 40: "c" * 40, "0" * 64: "1" * 64, 'tag = "v1.0.0"': 'tag = "v1.1.0"'}, True),
        ({"a" * 40: "c" * 40}, {"a" * 40: "c" * 40}, True),
    ],
)
def test_an_entry_of_the_lock_is_taken_from_one_side_or_left_to_a_person(
    ours: dict[str, str], theirs: dict[str, str], clean: bool, tmp_path: Path, run: Run
) -> None:
    def write(name: str, changes: dict[str, str]) -> str:
        text = LOCKED
        for before, after in changes.items():
            assert before in text
            text = text.replace(before, after)
        (tmp_path / name).write_text(text)
        return text

    sides = [write(name, changes) for name, changes in (("base", {}), ("ours", ours), ("theirs", theirs))]
    result = run("git", "merge-driver", *(str(tmp_path / name) for name in ("base", "ours", "theirs")), "npuprof.lock")
    assert result.code == (0 if clean else 1), result.err
    text = (tmp_path / "ours").read_text()
    assert ("<<<<<<<" in text) is not clean
    if clean:
        assert set(text.split("\n")) == set((sides[1] + (sides[2] if ours != {} else "")).split("\n")) if ours else text == sides[2]
    else:
        pair = split_conflicts(text)
        assert pair is not None
        assert [parse_lock("npuprof.lock", side.encode()).sources for side in pair] == [
            parse_lock("npuprof.lock", side.encode()).sources for side in sides[1:]
        ]


def test_rendering_what_a_source_gives_starts_no_git_once_it_was_read(app: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("job", "pinned", "range")
    app.write({"pinned": 'profile.extends = ["team:base@1.0.0"]\n', "range": 'profile.extends = ["team:base@1"]\n'})
    assert run("source", "update", "--yes").code == 0
    expected = [run("render", name).out for name in names]
    assert "600" in expected[2]

    def refuse(*words: object, **more: object) -> None:
        raise AssertionError(f"a process was started: {words}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert [run("render", name).out for name in names] == expected


@pytest.mark.parametrize(("asked", "told"), [("base@1", True), ("base@1.0", True), ("base@1.0.0", False), ("base", False)])
def test_what_may_mean_another_version_tomorrow_has_to_be_in_the_lock(
    asked: str, told: bool, app: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.write({"new": f'profile.extends = ["team:{asked}"]\n'})
    result = run("check", "new")
    assert (result.code, "NP044" in result.out and "npuprof source update team" in result.out) == (2 * told, told), result.out
    assert (run("commit").code, run("show", "own").code) == (2 * told, 0)
    assert run("show", f"team:{asked}").code == 0, "nobody relies on what is asked for once"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    assert run("source", "sync").code == 0
    assert run("check", "new").code == 2 * told, "a clone without any lock entry says the same"
    assert run("source", "update", "--yes").code == 0
    assert run("check", "new").code == 0
    app.write({"new": 'profile.extends = ["team:other@1"]\n'})
    assert "NP044" in run("check", "new").out, "nor is a version told as missing that was not fetched yet"


@pytest.mark.parametrize("damage", [b"", b"[options]\nhccl_timeout = 1\n", b"\n# npuprof sha256:" + b"0" * 64])
def test_a_text_that_was_kept_and_is_not_whole_is_read_again(damage: bytes, app: Repo, run: Run) -> None:
    assert run("show", "job").code == 0
    for path in Path(os.environ["XDG_CACHE_HOME"], "npuprof", "presets").rglob("*"):
        if path.is_file():
            path.write_bytes(damage)
    assert "hccl_timeout = 600\n" in run("show", "job").out


@pytest.mark.parametrize(
    ("line", "there"),
    [
        ("so", ["source"]),
        ("source ", ["add", "list", "remove", "sync", "update", "vendor"]),
        ("source update t", ["team"]),
        ("show te", ["team:"]),
        ("show team:b", ["team:base"]),
        ("show job+team:b", ["job+team:base"]),
        ("render job --with team:o", ["team:other"]),
        ("show team:base@", ["team:base@1.0.0"]),
        ("show nope:", []),
    ],
)
def test_sources_and_what_they_have_are_completed_without_git(
    line: str, there: list[str], app: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from npuprof.commands import completion

    assert run("show", "team:base+team:other").code == 0
    assert run("list", "--tree").code == 0
    completed = list_completions(completion.find_candidates, "show team:b")
    assert completed == ["team:base"]
    monkeypatch.setattr(subprocess, "Popen", None)
    assert list_completions(completion.find_candidates, line) == there


def list_completions(find: Callable[..., Any], line: str) -> list[str]:
    *words, current = line.split(" ")
    try:
        return [word for word, _ in find(words, current) if word.startswith(current)]
    except NpuprofError:
        return []


def test_an_update_that_is_killed_at_any_time_leaves_a_lock_that_works(app: Repo, team: Team, run: Run) -> None:
    """Each run is killed a little later than the one before; what is there then is the old lock or the new one."""
    words = [sys.executable, "-c", "from npuprof.__main__ import script; script()", "source", "update", "--yes"]
    for number in range(1, 13):
        team.publish({"base": BASE.format(600 + number)}, f"1.0.{number}")
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(0.05 * number)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert run("show", "job").code == 0
        assert run("source", "update", "--yes").code == 0
        assert f"hccl_timeout = {600 + number}\n" in run("show", "job").out
        assert not [path.name for path in app.folder.iterdir() if path.name.startswith(".npuprof")]


def test_the_store_of_a_source_is_listed_shown_and_checked(app: Repo, run: Run) -> None:
    assert [line.split()[0] for line in run("list", "--store", "team:").out.splitlines()] == ["team:base", "team:other"]
    assert "hccl_timeout = 600" in run("show", "base", "--store", "team:").out
    assert run("check", "--store", "team:").code == 0
    for words in (("set", "base", "hccl_timeout=1"), ("log", "base"), ("new", "x"), ("commit",), ("release", "base")):
        result = run(*words, "--store", "team:")
        assert result.code == 2, words
    assert "there is no source 'x'" in run("list", "--store", "x:").err


def test_a_commit_takes_what_its_presets_come_from_with_it(app: Repo, team: Team, run: Run) -> None:
    team.publish({"base": BASE.format(60)}, "1.1.0")
    assert run("source", "add", "second", team.url).code == 0
    app.write({"more": 'profile.extends = ["second:base"]\n', "own": "options.deterministic = 1\n"})
    assert run("commit", "own").code == 0
    assert app.git("show", "--name-only", "--format=").split() == ["profiles/own.toml"]
    assert run("commit", "more").code == 0
    assert app.git("show", "--name-only", "--format=").split() == ["npuprof.lock", "npuprof.toml", "profiles/more.toml"]
    assert run("source", "update", "--yes").code == 0
    assert run("source", "vendor", "team").code == 0
    result = run("commit")
    assert result.code == 0, result.err
    assert "hccl_timeout" in app.git("log", "-1", "--format=%s")
    assert "vendor/team/base.toml" in app.git("show", "--name-only", "--format=")
    assert app.git("status", "--short") == ""
    app.git("rm", "-q", "--cached", "npuprof.lock")
    (app.folder / "npuprof.lock").unlink()
    result = run("commit")
    assert (result.code, "NP044" in result.err) == (2, True), result.err


def test_a_preset_of_a_source_may_build_on_its_own_older_release(app: Repo, team: Team, run: Run) -> None:
    team.publish({"base": 'profile.extends = ["base@1.0.0"]\noptions.deterministic = 1\n'}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    assert "hccl_timeout = 600\n" in run("show", "job").out
    assert run("check").code == 0
    assert "hccl_timeout = 600\n" in run("show", "team:base").out


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_the_lock_decides_what_a_version_is_whatever_becomes_of_its_tag(
    how: str, app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.write({"pinned": 'profile.extends = ["team:base@1.0.0"]\n'})
    assert run("source", "update", "--yes").code == 0
    app.commit()
    assert run("release", "pinned", "1.0.0").code == 0
    team.repo.git("push", "-q", str(team.bare), ":base/v1.0.0")
    team.repo.git("tag", "-d", "base/v1.0.0")
    team.publish({"base": BASE.format(7)}, "1.1.0", *(["base/v1.0.0"] if how == "moved" else []))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    assert run("source", "sync").code == 0
    assert "hccl_timeout = 600\n" in run("show", "pinned").out
    assert run("verify", "--tags").code == 0
    result = run("source", "update", "--yes")
    assert (result.code, "NP046" in result.err) == ((2, True) if how == "moved" else (0, False)), result.err
    assert "hccl_timeout = 600\n" in run("show", "pinned").out


def test_a_tag_that_moved_is_told_by_a_mirror_that_never_saw_it(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.repo.commit({"base": BASE.format(7)})
    team.repo.git("tag", "-f", "-a", "v1.0.0", "-m", "again")
    team.push("--force")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    for words in (("--yes",), ("--frozen",)):
        result = run("source", "update", *words)
        assert (result.code, "NP046" in result.err) == (2, True), result.err
    assert run("source", "update", "--moved", "--dry-run").code == 0
    assert "hccl_timeout 600 → 7" in run("source", "update", "--moved", "--yes").out


def test_a_commit_that_was_typed_into_the_lock_is_not_kept_by_an_update(app: Repo, run: Run) -> None:
    lock = app.folder / "npuprof.lock"
    before = lock.read_text()
    lock.write_text(before.replace(parse_lock("npuprof.lock", before.encode()).sources["team"].commit, "f" * 40))
    assert run("source", "update", "--yes").code == 0
    assert lock.read_text() == before


def test_a_repository_that_has_nothing_is_told(app: Repo, run: Run, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "empty.git"], check=True)
    result = run("source", "add", "empty", f"file://{tmp_path}/empty.git")
    assert (result.code, "NP047" in result.err, "none has a name there" in result.err) == (2, True, True), result.err


def test_an_update_tells_a_version_of_a_preset_that_moves_alone(app: Repo, team: Team, run: Run) -> None:
    app.write({"ranged": 'profile.extends = ["team:base@1.0"]\n'})
    assert run("source", "update", "--yes").code == 0
    commit = team.repo.head
    team.repo.git("tag", "-a", "base/v1.0.1", "-m", "base/v1.0.1")
    team.push()
    told = f"team:base@1.0: 1.0.0 ({commit[:7]}) -> 1.0.1 ({commit[:7]})"
    for words, code in (("--frozen", 1), ("--yes", 0)):
        result = run("source", "update", words)
        assert (result.code, told in result.out) == (code, True), result.out


def test_an_update_to_another_range_is_compared_with_what_was_locked(app: Repo, team: Team, run: Run) -> None:
    team.publish({"base": BASE.format(60)}, "2.0.0")
    project = app.folder / "npuprof.toml"
    project.write_text(project.read_text().replace("^1.0", "^2.0"))
    result = run("source", "update", "--yes")
    assert "hccl_timeout 600 → 60" in result.out
    assert "valid again" not in result.out


def test_what_is_edited_in_a_copy_is_told_and_seen(app: Repo, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    app.commit()
    (app.folder / "vendor/team/base.toml").write_text(BASE.format(1))
    result = run("check")
    assert (result.code, "NP049" in result.out) == (2, True), result.out + result.err
    for words in (("render", "job", "--to", "session"), ("env", "job"), ("show", "job"), ("run", "job", "--", "true")):
        result = run(*words)
        assert (result.code, "NP049" in result.err, "npuprof source vendor team" in result.err) == (2, True, True), result.err
    assert run("show", "own").code == 0
    assert run("show", "job@HEAD").code == 0


@pytest.mark.parametrize(
    ("name", "uses"), [("base.toml", True), (".digests", True), (".npuprof.toml", True), ("other.toml", False), ("more.toml", False)]
)
def test_an_edited_copy_is_neither_committed_nor_released_nor_clean_at_a_revision(name: str, uses: bool, app: Repo, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    app.commit()
    assert run("release", "job", "1.0.0").code == 0
    copy = app.folder / "vendor/team" / name
    copy.write_text((copy.read_text() if copy.exists() else "") + "\n# edited\n")
    result = run("commit", "-m", "x")
    assert (result.code, "NP049" in result.err, app.git("log", "--format=%s").count("x")) == (2, True, 0), result.err
    app.commit(message="edited")
    app.git("tag", "-a", "job/v1.0.1", "-m", app.git("tag", "-l", "--format=%(contents)", "job/v1.0.0"))
    result = run("check", "--rev", "HEAD")
    assert (result.code, "NP049" in result.out) == (2, True), result.out
    result = run("release", "--all", "--yes")
    assert (result.code, "NP049" in result.err, "v0.1.0" in app.git("tag")) == (2, True, False), result.err
    result = run("release", "job", "1.1.0")
    assert (result.code, "NP049" in result.err) == ((2, True) if uses else (0, False)), result.err
    result = run("verify", "--tags", "job")
    assert result.code == int(uses), result.out + result.err
    assert run("check", "--rev", "HEAD~1").code == 0


def test_a_copy_with_other_line_ends_is_what_was_copied(app: Repo, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    for path in (app.folder / "vendor/team").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert run("show", "job").code == 0
    assert run("source", "sync").code == 0


def test_a_preset_of_a_copy_is_read_without_the_others(app: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from npuprof.store.sources import vendored

    assert run("source", "vendor", "team").code == 0
    read: list[str] = []
    plainly = vendored.read_plain_file
    monkeypatch.setattr(vendored, "read_plain_file", lambda path: read.append(os.path.basename(path)) or plainly(path))
    assert run("render", "job", "--to", "session").code == 0
    assert set(read) <= {".commit", ".digests", "base.toml", ".npuprof.toml", ".npuprof.lock"}


def test_a_lock_that_knows_nothing_of_a_copy_is_out_of_date(app: Repo, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    lock = app.folder / "npuprof.lock"
    lock.write_text("".join(line for line in lock.read_text().splitlines(True) if not line.startswith("copy = ")))
    assert "NP044" in run("show", "job").err
    assert run("source", "update", "--yes").code == 0
    assert run("show", "job").code == 0


def test_a_version_that_was_yanked_since_it_was_locked_is_told_on_update(app: Repo, team: Team, run: Run) -> None:
    team.publish({}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    team.repo.git("tag", "-a", "v1.1.0.yanked", "-m", "it is slow")
    team.push()
    assert "team 1.1.0 was yanked: it is slow" in run("source", "update", "--yes").err


def test_a_byte_order_mark_stays(app: Repo, team: Team, run: Run) -> None:
    path = app.folder / "npuprof.toml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert run("source", "add", "second", team.url).code == 0
    assert run("source", "remove", "second").code == 0
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")


def test_sources_in_one_line_are_asked_to_be_tables(app: Repo, team: Team, run: Run) -> None:
    (app.folder / "npuprof.toml").write_text(f'sources = {{ team = {{ url = "{team.url}", rev = "^1.0" }} }}\n')
    result = run("source", "add", "second", team.url)
    assert result.code in (0, 2), result.err


def test_the_verbs_of_sources_ask_for_the_npuprof_that_is_needed_too(app: Repo, team: Team, run: Run) -> None:
    path = app.folder / "npuprof.toml"
    path.write_text(f'requires = ">=99"\n{path.read_text()}')
    for words in (("add", "x", team.url), ("update", "--yes"), ("sync",), ("list",), ("vendor", "team"), ("remove", "team")):
        result = run("source", *words)
        assert (result.code, "NP041" in result.err) == (2, True), words


def test_two_updates_at_once_both_end_well(app: Repo, team: Team, run: Run) -> None:
    team.publish({"base": BASE.format(60)}, "1.1.0")
    words = [sys.executable, "-c", "from npuprof.__main__ import script; script()", "source", "update", "--yes"]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for process in both:
        _, err = process.communicate(timeout=100)
        assert process.returncode == 0 or b"NP922" in err, err
    assert "hccl_timeout = 60\n" in run("show", "job").out
    assert run("source", "sync").code == 0


def test_presets_whose_names_differ_in_case_only_are_told(store: Any, run: Run) -> None:
    store({"Bert": "options.deterministic = 1\n", "bert": "options.deterministic = 1\n", "other": "options.deterministic = 1\n"})
    result = run("check")
    assert (result.code, result.out.count("NP016"), "profiles/bert.toml" in result.out) == (0, 1, True)
    assert "NP016" not in run("check", "bert").out


# -- what is told of presets that are kept elsewhere -------------------------------------------------------------------


def test_a_caret_stays_below_what_it_points_at_where_something_before_it_is_hidden(app: Repo, run: Run) -> None:
    (app.folder / "npuprof.toml").write_text('[sources.team]\nurl = "https://me:secret@host/x" here\n')
    line, caret = run("list").err.splitlines()[1:3]
    assert line.endswith('url = "https://***@host/x" here')
    assert line.index("here") == caret.index("^")


def test_what_is_wrong_in_a_source_is_told_with_the_place_in_it(app: Repo, team: Team, run: Run) -> None:
    team.repo.write({
        "gone": 'profile.extends = ["bsae"]\n',
        "late": 'profile.extends = ["base@9.0.0"]\n',
        "power": 'env.LD_PRELOAD = "/x.so"\n',
        "old": "options.op_debug_level = 1\n",
    })  # fmt: skip
    team.publish({}, "1.1.0")
    for name in ("gone", "late", "power", "old"):
        app.write({name: f'profile.extends = ["team:{name}"]\n'})
    app.write({"wrong": 'profile.extends = ["team:bsae"]\n', "job": None})
    result = run("source", "update", "--yes")
    told = {one["code"]: one for one in json.loads(run("check", "--format", "json").out)["findings"] if one["path"].startswith("team@")}
    assert told["NP101"]["hint"] == "did you mean 'base'?"
    assert told["NP101"]["message"] == "team:gone extends 'bsae', which is not in team"
    assert told["NP011"]["message"] == "team: base has no released version 9.0.0"
    assert told["NP605"]["hint"].endswith("npuprof trust team:")
    assert "did you mean 'team:base'" in run("show", "wrong").err
    assert "leave the @ off" in run("show", "team:old@1").err
    team.publish({"other": "options.deterministic = 0\n"}, "1.2.0")
    result = run("source", "update", "--dry-run")
    assert "NP101" not in result.out, "what was broken before is no news"


def test_a_link_in_a_source_is_cited_by_its_name(app: Repo, team: Team, run: Run) -> None:
    folder = team.repo.folder / "profiles"
    (folder / "link.toml").symlink_to("base.toml")
    (folder / "out.toml").symlink_to("../README.toml")
    (folder / "gone.toml").symlink_to("nothing.toml")
    (folder / "round.toml").symlink_to("round.toml")
    team.publish({}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    assert "# team@1.1.0:profiles/link.toml:5" in run("show", "team:link", "--origin").out
    for name in ("out", "gone", "round"):
        result = run("show", f"team:{name}")
        assert (result.code, f"team@1.1.0:profiles/{name}.toml: error NP005:" in result.err) == (2, True), result.err


def test_a_source_that_is_not_here_is_told_once(app: Repo, run: Run) -> None:
    app.write({"two": 'profile.extends = ["team:base", "team:other"]\n'})
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    for words in (("show", "two"), ("render", "two"), ("check",), ("list",), ("diff", "two", "job"), ("explain", "two", "hccl_timeout")):
        result = run(*words)
        assert (result.out + result.err).count("NP043") == 1, words


def test_a_tree_shows_what_presets_of_a_source_extend(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = Team(tmp_path / "tools")
    tools.repo.write({"wide": 'profile.extends = ["core:base"]\n', "wider": 'profile.extends = ["wide"]\n'})
    monkeypatch.chdir(tools.repo.folder)
    assert run("source", "add", "core", team.url).code == 0
    tools.publish({}, "2.0.0")
    monkeypatch.chdir(app.folder)
    assert run("source", "add", "tools", tools.url).code == 0
    app.write({"job": None, "broad": 'profile.extends = ["tools:wider"]\n', "pinned": 'profile.extends = ["tools/core:base@1.0.0"]\n'})
    below = "tools/core:base (1.0.0)\n`-- tools:wide (2.0.0)\n    `-- tools:wider (2.0.0)\n        `-- broad\n"
    assert run("list", "--tree").out == f"{below}tools/core:base@1.0.0\n`-- pinned\nown\n"
    assert run("list", "--tree", "--store", "tools:").out == "tools/core:base (1.0.0)\n`-- tools:wide\n    `-- tools:wider\n"


@pytest.mark.parametrize("words", [("--path", "nope"), ("--path", "../.."), ("--rev", "^9"), ("--rev", "nope"), ("--rev", "a:b")])
def test_what_is_wrong_with_a_new_source_is_about_no_line_of_another(words: tuple[str, ...], app: Repo, team: Team, run: Run) -> None:
    result = run("source", "add", "x", team.url, *words)
    assert (result.code, result.err.startswith("error NP0"), "[sources.team]" in result.err) == (2, True, False), result.err


def test_a_link_out_of_the_store_of_a_source_is_told_when_it_is_taken(app: Repo, team: Team, run: Run) -> None:
    (team.repo.folder / "profiles/out.toml").symlink_to("../README.toml")
    team.publish({}, "1.1.0")
    told = "team:out cannot be read: "
    assert told in run("source", "update", "--yes").err
    result = run("source", "add", "again", team.url)
    assert (result.code, told.replace("team:", "again:") in result.err) == (0, True), result.err


@pytest.mark.parametrize("words", [("update",), ("list",), ("vendor", "team"), ("remove", "team"), ("add", "x", "/srv/x")])
def test_in_a_repository_without_a_work_tree_it_is_said_that_there_is_none(
    words: tuple[str, ...], app: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "clone", "-q", "--bare", app.folder, tmp_path / "app.git"], check=True)
    monkeypatch.chdir(tmp_path / "app.git")
    result = run("source", *words)
    assert (result.code, "has no work tree" in result.err, "npuprof source sync" in result.err) == (2, True, True), result.err
    assert run("source", "sync").code == 0


def test_a_path_that_was_made_absolute_is_told(app: Repo, team: Team, run: Run) -> None:
    result = run("source", "add", "near", "../team.git")
    assert f"near is at {team.bare}, a path of this machine" in result.err
    assert "a path of this machine" not in run("source", "add", "far", str(team.bare)).err


def test_a_preset_of_the_store_does_not_build_on_one_outside_of_it(
    app: Repo, team: Team, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaf = team.repo.folder / "jobs/x/preset.toml"
    leaf.parent.mkdir(parents=True)
    leaf.write_text('profile.extends = ["base"]\n')
    (team.repo.folder / "npuprof.toml").write_text('presets = ["jobs/*/preset.toml"]\n')
    team.publish({"heir": 'profile.extends = ["jobs/x/preset"]\n'}, "1.1.0")
    monkeypatch.chdir(team.repo.folder)
    for words in (("check",), ("check", "--rev", "HEAD")):
        told = [one for one in json.loads(run(*words, "--format", "json").out)["findings"] if one["code"] == "NP708"]
        assert [(one["path"].rpartition(":")[2], one["line"], one["profiles"]) for one in told] == [("profiles/heir.toml", 1, ["heir"])]
    monkeypatch.chdir(app.folder)
    assert run("source", "update", "--yes").code == 0
    result = run("show", "team:heir")
    assert (result.code, "NP101" in result.err) == (2, True), result.err
    assert "team@1.1.0" in result.err


def test_a_yanked_version_that_the_lock_does_not_name_is_told_too(app: Repo, team: Team, run: Run) -> None:
    app.write({"job": 'profile.extends = ["team:base@1.0.0"]\n'})
    team.repo.git("tag", "-a", "base/v1.0.0.yanked", "-m", "it is slow")
    team.push()
    assert run("source", "update", "--yes").code == 0
    lock = app.folder / "npuprof.lock"
    kept = [line for line in lock.read_text().splitlines(keepends=True) if "base@1.0.0" not in line]
    assert len(kept) < len(lock.read_text().splitlines())
    lock.write_text("".join(kept))
    told = run("check", "job")
    assert "NP704" in told.out, told.err
    assert "it is slow" in told.out


def test_a_moved_tag_is_not_taken_by_what_takes_nothing(app: Repo, team: Team, run: Run) -> None:
    team.repo.git("tag", "-f", "-a", "v1.0.0", "-m", "again", team.publish({"base": BASE.format(700)}))
    team.repo.git("push", "-q", "-f", str(team.bare), "--tags")
    refused = run("source", "update", "--moved", "--frozen")
    assert (refused.code, "--moved takes tags" in refused.err) == (2, True)
    assert "NP046" in run("source", "update", "--frozen").err
