"""Presets of other repositories: added, locked, updated and read, from real bare remotes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from npuprof.document.secrets import hide_secrets
from npuprof.edit.merge import split_conflicts
from npuprof.store.project import parse_project
from npuprof.store.sources.lock import parse_lock
from npuprof.store.versions import parse_version_range, parse_version_text
from support.repositories import Repo
from support.running import Run, expect
from support.teams import BASE, Team, make_unreachable

# -- ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("^2.1", "2.1.0 2.1.9 2.9.0", "2.0.9 3.0.0 1.9.9 2.2.0-rc.1"),
        ("^0.2.3", "0.2.3 0.2.9", "0.2.2 0.3.0"),
        ("^0.0.3", "0.0.3", "0.0.4"),
        ("^0", "0.0.1 0.9.0", "1.0.0"),
        ("~2.1.3", "2.1.3 2.1.9", "2.2.0 2.1.2"),
        (">=2.0,<3", "2.0.0 2.9.9", "3.0.0 1.9.9"),
        (" >= 2.0 , < 3 ", "2.0.0", "3.0.0"),
        (">2.1", "2.2.0 3.0.0", "2.1.0 2.1.9"),
        ("<=2.1", "2.1.9 1.0.0", "2.2.0"),
        ("<2.1", "2.0.9", "2.1.0"),
        ("2.1.0", "2.1.0", "2.1.1"),
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
        assert versions
        for version in versions.split():
            number = parse_version_text(version)
            assert number is not None
            assert wanted.accepts(number) is meant, version


@pytest.mark.parametrize(
    "text",
    [
        "",
        "main",
        "HEAD~1",
        "abc1234def",
        "^",
        "1.2.3.4",
        ">=",
        "1,,2",
        "release/2.0",
        "^x",
        "2.1-rc",
    ],
)
def test_what_is_no_range_is_a_revision(text: str) -> None:
    assert parse_version_range(text) is None


# -- the files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("requires = 3\n", "'requires' must be a text"),
        ('requires = "soon"\n', "is not a version range"),
        ('presets = ["../x.toml"]\n', "is not a path below"),
        ('presets = ["x"]\n', "must end in .toml"),
        ("requirs = 1\n", "did you mean 'requires'"),
        ("sources = 1\n", "'sources' must be a table"),
        ("[sources]\nteam = 1\n", "the source 'team' must be a table"),
        ("[sources.team]\n", "'url' is missing in [sources.team]"),
        ('[sources.team]\nurl = "ext::sh -c id"\n', "ext::"),
        ('[sources.team]\nurl = "http://host/x.git"\n', "http"),
        ('[sources.team]\nurl = "../x"\n', "relative path"),
        ('[sources.team]\nurl = "https://me:secret@host/x.git"\n', "credentials"),
        ('[sources.team]\nurl = "file:///x"\npath = "../y"\n', "is not a folder inside"),
        (
            '[sources.team]\nurl = "file:///x"\nrev = "-x"\n',
            "is neither a version range nor a revision",
        ),
        (
            '[sources.team]\nurl = "file:///x"\nrules = 1\n',
            "'rules' in [sources.team] must be true or false",
        ),
        (
            '[sources.team]\nurl = "file:///x"\nvendor = "/x"\n',
            "is not a folder below that of npuprof.toml",
        ),
        ('[sources."a b"]\nurl = "file:///x"\n', "cannot be the name of a source"),
        ('[sources.builtin]\nurl = "file:///x"\n', "cannot be the name"),
        (
            '[sources.team]\nurl = "file:///x"\n[sources.Team]\nurl = "file:///x"\n',
            "is there already",
        ),
        ("[sources\n", "NP001"),
        ("\xff", "NP002"),
    ],
)
def test_what_npuprof_toml_cannot_say_is_told_at_its_place(
    text: str, expected: str, app: Repo, run: Run
) -> None:
    (app.folder / "npuprof.toml").write_bytes(text.encode("latin-1"))
    for arguments in (
        ("list",),
        ("check",),
        ("render", "own"),
        ("source", "list"),
        ("source", "sync"),
    ):
        result = run(*arguments)
        assert result.code == 2, result.err
        assert expected in result.err, result.err
        assert "npuprof.toml" in result.err
        assert "secret" not in result.err


SECRETS = [
    'url = ["https://me:secret@host/x.git"]',
    "url = https://me:secret@host/x.git",
    'ulr = "me:secret@host:x.git"',
    'url = "https://me\\u003asecret@host/x.git"',
    'url = "https://ghp_secretsecret@host/x.git"',
    'url = "https://host/x?token=secret"',
    'url = "file:///x"\nrev = "me:secret@host/x.git"',
    'url = "file:///x"\npassword = "secret"',
    '"https://me:secret@host" = 1',
    '# https://me:secret@host\nurl = "https://me:secret@host/x"\n<<<<<<< HEAD',
]


@pytest.mark.parametrize("name", ["npuprof.toml", "npuprof.lock"])
@pytest.mark.parametrize("text", SECRETS)
def test_no_password_is_shown_wherever_it_stands_in_the_two_files(
    text: str, name: str, app: Repo, run: Run
) -> None:
    path = app.folder / name
    if name == "npuprof.lock":
        path.write_text(path.read_text().replace("url = ", f"{text}\n#", 1))
    else:
        path.write_text(f"[sources.team]\n{text}\n")
    for arguments in ("check", "check --format json", "source list", "show team:base"):
        result = run(*arguments.split())
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
    (app.folder / "npuprof.toml").write_text(
        'requires = 1\n[sources.team]\nurl = "ext::x"\npath = "/"\n[sources.b]\n'
    )
    assert run("list").err.count("NP040") == 4


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: "<<<<<<< HEAD\n" + text, "conflict markers"),
        (lambda text: text.replace('commit = "', 'commit = "x'), "not as npuprof writes it"),
        (lambda text: text.replace("url = ", "uri = "), "not as npuprof writes it"),
        (lambda text: text.replace("version = 1", "version = 0"), "not as npuprof writes it"),
        (lambda text: text.replace('rev = "^1.0"', 'rev = ">=1.0"'), "out of date: the rev"),
        (lambda text: "", "does not say at which commit"),
        (lambda text: text + "[sources.team.versions]\nbase = 1\n", "not as npuprof writes it"),
    ],
)
def test_a_lock_that_was_edited_or_merged_wrongly_is_told_with_the_repair(
    change: Callable[[str], str], expected: str, run: Run, lock: Path
) -> None:
    good = lock.read_text()
    lock.write_text(change(good))
    expect(run("show", "job"), 2, "NP044", expected, "npuprof source update")
    assert run("show", "own").code == 0
    assert run("source", "update", "--yes").code == 0
    assert lock.read_text() == good
    assert run("show", "job").code == 0
    lock.write_text(good + "[[[\n")
    expect(
        run("show", "job"),
        2,
        "NP001",
        "try: restore it (git checkout npuprof.lock), or recreate it: npuprof source update",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "show job",
        "source sync",
        "source update --yes",
        "source update --yes team",
        "source add b /b",
    ],
)
def test_a_lock_that_a_newer_npuprof_wrote_is_not_written_over(
    arguments: str, run: Run, lock: Path
) -> None:
    lock.write_text(newer := lock.read_text().replace("version = 1", 'version = 2\nnews = "kept"'))
    expect(run(*arguments.split()), 2, "A newer npuprof wrote it")
    assert lock.read_text() == newer


def test_comments_and_what_else_stands_in_npuprof_toml_stay(
    team: Team, run: Run, lock: Path, project: Path
) -> None:
    before = f'# ours\nrequires = ">=0"  # any\n\n{project.read_text()}# the end\n'
    project.write_bytes(b"\xef\xbb\xbf" + before.encode())
    assert run("source", "add", "second", team.url, "--rev", "main").code == 0
    text = project.read_bytes()
    assert text.startswith(b"\xef\xbb\xbf")
    assert set(parse_project("npuprof.toml", text).sources) == {"team", "second"}
    assert not set(before.splitlines()) - set(text.decode("utf-8-sig").splitlines())
    assert run("source", "remove", "second").code == 0
    assert "second" not in lock.read_text() + project.read_text()
    assert project.read_bytes().startswith(b"\xef\xbb\xbf")


# -- one team, and who uses its presets -----------------------------------------------------------


def test_every_verb_tells_the_source_the_version_and_the_line_of_a_value(
    run: Run, app: Repo
) -> None:
    spelled = (
        "show job --origin,explain job hccl_timeout,blame job,diff own job,log job,show job@HEAD "
        "--origin,show team:base --origin"
    )
    spelled += (
        ",explain team:base hccl_timeout,blame team:base,show "
        "team:base+own --origin,show own --with team:base --origin"
    )
    for arguments in spelled.split(","):
        expect(run(*arguments.split()), 0, "team@1.0.0:profiles/base.toml:5")
    assert "team:base (1.0.0)\n`-- job" in run("list", "--tree").out
    expect(run("show", "team:base@1.0.0"), 0, "hccl_timeout = 600")
    expect(run("show", "team:base@1", "--origin"), 0, "team@base/v1.0.0:profiles/base.toml:5")
    assert run("check").code == 0
    expect(run("render", "job"), 0, "600")


def test_an_update_shows_what_it_changes_here_and_asks_before_it_writes(
    app: Repo, team: Team, run: Run, lock: Path
) -> None:
    before = lock.read_text()
    assert run("source", "update").code == 0
    assert lock.read_text() == before
    team.publish({"base": BASE.format(60)}, "1.1.0")
    team.publish({"base": BASE.format(6)}, "2.0.0")
    expect(
        run("source", "add", "x", team.url, "--rev", "^9"),
        2,
        "it has the versions 2.0.0, 1.1.0, 1.0.0",
    )
    for arguments, code in ((("--frozen",), 1), (("--dry-run",), 0), ((), 1)):
        result = run("source", "update", *arguments)
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
    output = json.loads(run("log", "job", "hccl_timeout", "--format", "json").out)["commits"]
    assert [commit["subject"] for commit in output] == ["two", "one"]
    assert "two" in run("explain", "job", "hccl_timeout").out
    app.git("checkout", "-q", "HEAD~1", "--", "npuprof.lock")
    assert "hccl_timeout = 600\n" in run("show", "job").out


def test_a_fresh_clone_works_after_sync_and_without_a_network_from_then_on(
    app: Repo,
    team: Team,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh: Callable[[], Path],
) -> None:
    expected = run("render", "job").out
    fresh()
    app.git("clone", "-q", str(app.folder), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    expect(run("render", "job"), 2, "NP043", "npuprof source sync")
    before = (Path("npuprof.toml").read_bytes(), Path("npuprof.lock").read_bytes())
    team.publish({"base": BASE.format(1)}, "1.5.0")
    assert run("source", "sync").code == 0
    assert (Path("npuprof.toml").read_bytes(), Path("npuprof.lock").read_bytes()) == before
    make_unreachable(team)
    assert run("render", "job").out == expected
    for arguments in (
        "source sync",
        "check",
        "list --tree",
        "show team:base@1.0.0",
        "log job",
        "diff --rev HEAD",
    ):
        assert run(*arguments.split()).code == 0, arguments
    for arguments in (("source", "update"), ("source", "add", "more", team.url)):
        expect(run(*arguments), 2, "NP045")
    assert (Path("npuprof.toml").read_bytes(), Path("npuprof.lock").read_bytes()) == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("team", "{url}"), "there is a source 'team' already"),
        (("TEAM", "{url}"), "there is a source 'team' already"),
        (("a b", "{url}"), "cannot be the name of a source"),
        (("x", "ext::sh -c 'touch pwned'"), "NP048"),
        (("x", "https://me:secret@host/x"), "NP048"),
        (
            ("x", "https://sekret@host/x"),
            "'https://***@host/x' is not a source: its user may be a token",
        ),
        (("x", "{url}", "--rev", "^9"), "nothing in the source"),
        (("x", "{url}", "--rev", "nope"), "nothing in the source"),
        (("x", "{url}", "--rev", "a:b"), "it is neither a version range nor a revision"),
        (("x", "file://{empty}"), "it has no commits: push one there first"),
        (("x", "{url}", "--path", "nope"), "has no store in 'nope'"),
        (("x", "{url}", "--path", "../.."), "is not a folder inside"),
        (("x", "file:///nowhere.git"), "NP045"),
    ],
)
def test_what_cannot_be_a_source_is_told_and_nothing_is_written(
    arguments: tuple[str, ...], expected: str, app: Repo, team: Team, run: Run, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "empty.git"], check=True)
    before = {path: path.read_bytes() for path in app.folder.glob("npuprof.*")}
    name, url, *more = (
        argument.format(url=team.url, empty=tmp_path / "empty.git") for argument in arguments
    )
    output = expect(run("source", "add", *more, "--", name, url), 2, expected)
    assert "secret" not in output, "nor is it about a line of another"
    assert "[sources.team]" not in output, "nor is it about a line of another"
    assert {path: path.read_bytes() for path in app.folder.glob("npuprof.*")} == before
    assert not list(app.folder.rglob("pwned"))


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ("nope:base", "there is no source 'nope'"),
        ("taem:base", "did you mean 'team'"),
        ("team:nope", "team:nope"),
        ("team:bsae", "did you mean 'team:base'"),
        ("team:", "cannot be the name|team:"),
        ("team:base@9", "neither a version nor a commit"),
        ("team:../x", "no preset"),
        ("a/b/c:d", "there is no source 'a'"),
    ],
)
def test_a_reference_that_names_nothing_is_told_where_it_stands(
    requested: str, expected: str, app: Repo, run: Run
) -> None:
    result = run("show", requested)
    assert result.code == 2
    assert any(part in result.err for part in expected.split("|")), result.err
    app.write({"x": f'profile.extends = ["{requested}"]\n'})
    expect(run("check", "x"), 2, "profiles/x.toml:1")


@pytest.mark.parametrize(
    ("rev", "store", "advice"),
    [
        (
            "^1.0",
            "",
            (
                "a range takes only releases of the whole store: ask its owners for npuprof "
                "release --all, or follow a branch"
            ),
        ),
        (
            "^1.0",
            "2.0.0",
            (
                'widen rev = "^1.0" in npuprof.toml: it '
                "excludes 2.0.0, the newest release of the store"
            ),
        ),
        ("1.0.0", "", ""),
        ("main", "", ""),
    ],
)
def test_an_update_lists_releases_of_presets_that_no_release_of_the_store_has(
    rev: str, store: str, advice: str, app: Repo, team: Team, run: Run
) -> None:
    at_once = ["base/v1.1.0", "base/v1.2.0", "base/v1.2.0.yanked", "base/v3.0.0-rc.1", "new/v0.1.0"]
    team.publish({"base": BASE.format(7), "new": ""}, store, *at_once)
    team.repo.git(
        "tag", "other/v0.9.0", "v1.0.0^{commit}"
    )  # without a message, and where the lock is
    team.push()
    (app.folder / "npuprof.toml").write_text(
        (app.folder / "npuprof.toml").read_text().replace("^1.0", rev)
    )
    result = run("source", "update", "--yes")
    assert result.code == 0, result.err
    assert ("lacks newer releases" in result.err) == bool(advice), result.err
    assert (
        not advice
        or f"team 1.0.0 lacks newer releases of presets, base 1.1.0, new 0.1.0; {advice}"
        in result.err
    ), result.err
    assert ("up to date" in result.err) == (rev == "^1.0"), result.err
    app.write({"job": 'profile.extends = ["team:base@1.1.0"]\n'})
    expect(run("source", "update", "--yes"), 2 if rev in ("^1.0", "1.0.0") else 0, advice)


def test_a_source_brings_its_own_sources_at_what_its_lock_says(
    app: Repo,
    team: Team,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh: Callable[[], Path],
) -> None:
    tools = Team(tmp_path / "tools")
    tools.repo.write(
        {
            "wide": '[profile]\nextends = ["core:base"]\n[options]\ndeterministic = 1\n',
            "plain": "options.deterministic = 1\n",
        }
    )
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
    expect(
        run("show", "both"),
        2,
        "NP110",
        "both -> team:base",
        "both -> tools:wide -> tools/core:base",
    )
    team.publish({"base": BASE.format(60), "other": "options.deterministic = 0\n"}, "1.2.0")
    fresh()
    assert run("source", "sync").code == 0
    assert "hccl_timeout = 600\n" in run("show", "tools:wide").out


def test_a_deprecated_preset_of_a_source_of_a_source_is_named_by_both(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = 'profile.deprecated = "use newer"\nenv.JOB_ID = "1"\n'
    team.publish({"base": old}, "1.1.0")
    tools = Team(tmp_path / "tools")
    accepting = 'profile.ignore = [{ code = "NP603", reason = "one job" }]\n'
    tools.repo.write(
        {
            "wide": f'{accepting}profile.extends = ["core:base"]\n',
            "strict": 'profile.extends = ["core:base"]\n',
        }
    )
    monkeypatch.chdir(tools.repo.folder)
    assert run("source", "add", "core", team.url).code == 0
    tools.publish({}, "1.0.0")
    monkeypatch.chdir(app.folder)
    assert run("source", "add", "tools", tools.url).code == 0
    app.write(
        {
            "heir": 'profile.extends = ["tools:wide"]\n',
            "other": 'profile.extends = ["tools:strict"]\n',
        }
    )
    checked = run("check", "heir").out
    assert "heir extends tools:wide, which builds on tools/core:base" in checked
    assert "that is deprecated: use newer" in checked
    assert "NP603" not in checked, "accepted for the values of its ancestors in other sources"
    assert "NP603" in run("check", "other").out


def test_presets_whose_source_is_not_here_are_listed_by_what_they_say_and_it_is_told_once(
    app: Repo, run: Run
) -> None:
    app.write({"two": 'profile.extends = ["team:base", "team:other"]\n'})
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    for arguments in (
        "show two",
        "render two",
        "check",
        "list",
        "diff two job",
        "explain two hccl_timeout",
    ):
        assert expect(run(*arguments.split()), 2).count("NP043") == 1, arguments
    expect(run("list"), 2, "job", "own")
    rows = {row["name"]: row for row in json.loads(run("list", "--format", "json").out)["presets"]}
    assert rows["job"]["extends"] == ["team:base"]
    assert rows["job"]["digest"] is None
    assert bool(rows["own"]["digest"]) is True
    assert "job" in run("list", "--tree").out


@pytest.mark.parametrize(
    ("wanted", "meets"), [(">=0.0.1", True), ("*", True), (">=99", False), ("<0.0.1", False)]
)
def test_the_npuprof_that_a_repository_needs_is_asked_for_first(
    wanted: str, meets: bool, app: Repo, team: Team, run: Run, project: Path
) -> None:
    project.write_text(f'requires = "{wanted}"\n{project.read_text()}')
    app.write({"broken": "[options\n"})
    sources = (
        f"source add x {team.url}",
        "source update --yes",
        "source sync",
        "source list",
        "source vendor team",
        "source remove team",
    )
    for arguments in (
        "show own",
        "list",
        "render own",
        "set own hccl_timeout=5",
        *(() if meets else sources),
    ):
        result = run(*arguments.split())
        assert ("NP041" in result.err) == (not meets), result.err
        assert (meets or (result.code, "NP001" in result.err) == (2, False)) is True, result.err


def test_who_uses_a_yanked_version_or_a_deprecated_preset_of_a_source_is_told_why_and_what_to_write(
    app: Repo, team: Team, run: Run, lock: Path
) -> None:
    def read_told() -> dict[tuple[str, str], tuple[str, str]]:
        output = json.loads(run("check", "--format", "json").out)["findings"]
        return {
            (line["code"], line["path"]): (line["message"], line["hint"])
            for line in output
            if line["code"] in ("NP703", "NP704")
        }

    pinned = ("NP704", "profiles/pinned.toml")
    app.write({"pinned": 'profile.extends = ["team:base@1.0.0"]\n'})
    team.publish(
        {"base": BASE.format(7).replace("[options]", 'deprecated = "use other"\n[options]')},
        "1.1.0",
        "base/v1.1.0",
    )
    team.publish({"base": BASE.format(8)}, "1.2.0", "base/v1.2.0")
    for tag in ("base/v1.0.0", "base/v1.2.0", "v1.2.0"):
        team.repo.git("tag", "-a", f"{tag}.yanked", "-m", "it is: slow")
    team.push()
    expect(run("source", "update", "--yes"), 0, "team:base@1.0.0 is yanked: it is: slow")
    assert 'tag = "v1.1.0"' in lock.read_text(), "the yanked one is not taken"
    found = read_told()
    assert found.keys() == {pinned, ("NP703", "profiles/job.toml")}
    assert "it is: slow" in found[pinned][0]
    assert (
        found[pinned][1] == 'write "team:base@1.1.0" in its place, then npuprof source update team'
    )
    assert run("source", "vendor", "team").code == 0
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    assert (
        read_told()[pinned][1] == "put another version after the @, then npuprof source update team"
    )
    app.write({"pinned": 'profile.extends = ["team:base@1.1.0"]\n'})
    assert run("source", "update", "--yes").code == 0
    assert pinned not in read_told()


@pytest.mark.parametrize(
    "folder", ["/srv/x", "a/../../x", ".git/x", "a/.GIT/x", "away/x", "hidden", ""]
)
def test_a_copy_lies_in_the_repository_and_nowhere_else(
    folder: str, app: Repo, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (app.folder / "away").symlink_to(tmp_path / "elsewhere")
    (app.folder / "hidden").symlink_to(".git")
    before = (app.folder / "npuprof.toml").read_text()
    expect(run("source", "vendor", "team", "--into", folder), 2, folder)
    assert (app.folder / "npuprof.toml").read_text() == before
    assert not [path for path in tmp_path.rglob("*") if path.name == ".commit"]
    (app.folder / "npuprof.toml").write_text(f'{before}vendor = "{folder}"\n')
    read = expect(run("show", "job"), 2)
    assert read.startswith(("error NP941: ", "npuprof.toml:5:1: error NP040: ")), (
        "nor is it read from there"
    )


def test_a_copy_brings_the_versions_that_presets_of_the_source_refer_to(
    app: Repo, team: Team, run: Run
) -> None:
    pin = '[profile]\nextends = ["{}"]\n[options]\nop_debug_level = {}\n'
    team.publish(
        {"base": BASE.format(2), "mid": 'profile.extends = ["base"]\n'},
        "1.1.0",
        "base/v1.1.0",
        "mid/v1.1.0",
    )
    team.publish(
        {
            "base": BASE.format(3),
            "mid": pin.format("base@1.0.0", 3),
            "top": pin.format("mid@1.1.0", 4),
        },
        "1.2.0",
        "top/v1.2.0",
    )
    chained, late = pin.format("top@1.2.0", 5), pin.format("base@7", 1)
    team.publish(
        {
            "base": BASE.format(4),
            "range": pin.format("base@1", 0),
            "chained": chained,
            "top": None,
            "late": late,
        },
        "1.3.0",
    )
    taken = {
        "mid": "mid",
        "range": "range",
        "chained": "chained",
        "old": "mid@1.1.0",
        "top": "top@1.2.0",
        "late": "late",
    }
    app.write(
        {name: f'profile.extends = ["team:{reference}"]\n' for name, reference in taken.items()}
    )
    assert run("source", "update", "--yes").code == 0
    expected = {name: run("show", name, "--origin").out for name in taken if name != "late"}
    assert run("source", "vendor", "team").code == 0
    make_unreachable(team)
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    assert {name: run("show", name, "--origin").out for name in expected} == expected
    assert re.findall(r"(?m)^hccl_timeout = (\d+)", "\n".join(expected.values())) == [
        "600",
        "2",
        "2",
        "2",
        "2",
    ]
    expect(run("show", "late"), 2, "the copy of the source 'team' has no base@7")
    assert run("source", "sync").code == 0


@pytest.mark.parametrize("folder", ["vendor/team", "vendor/team/x", "vendor", "Vendor/Team"])
def test_a_copy_does_not_replace_that_of_another_source(
    folder: str, app: Repo, team: Team, run: Run
) -> None:
    assert run("source", "vendor", "team").code == 0
    assert run("source", "add", "other", team.url).code == 0
    expect(run("source", "vendor", "other", "--into", folder), 2, "the copy of the source 'team'")
    assert run("source", "sync").code == 0


def test_a_copy_that_nothing_reads_any_more_is_told(app: Repo, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    assert (
        "the copy in vendor/team stays"
        in run("source", "vendor", "team", "--into", "third/team/").err
    )
    assert 'vendor = "third/team"' in (app.folder / "npuprof.toml").read_text()
    assert "its copy in third/team stays" in run("source", "remove", "team", "--force").err


@pytest.mark.parametrize("how", ["mirror", "copy", "commit"])
def test_the_rules_of_a_source_bind_where_that_is_wanted_however_it_is_read(
    how: str, app: Repo, team: Team, run: Run, project: Path
) -> None:
    (team.repo.folder / "npuprof.toml").write_text(
        '[[rule]]\ncode = "TEAM-1"\nrequire = "hccl_timeout == 1"\nmessage = "one"\n'
    )
    team.publish({}, "1.1.0")
    project.write_text(project.read_text() + "rules = true\n")
    result = run("source", "update", "--yes")
    assert "TEAM-1" in result.out, "a rule that is new breaks presets"
    if how != "mirror":
        assert run("source", "vendor", "team").code == 0
        make_unreachable(team)
        shutil.rmtree(os.environ["XDG_CACHE_HOME"])
    app.commit()
    expect(run("check", "job@HEAD" if how == "commit" else "job"), 1, "TEAM-1")
    if how == "mirror":
        team.publish({"base": BASE.format(7)}, "1.2.0")
        result = run("source", "update", "--dry-run")
        assert "hccl_timeout" in result.out, "it was broken already"
        assert "TEAM-1" not in result.out, "it was broken already"
    project.write_text(project.read_text().replace("rules = true\n", ""))
    assert "TEAM-1" not in run("check", "job").out


def test_the_npuprof_that_a_source_needs_is_asked_for_before_it_is_read(
    app: Repo, team: Team, run: Run, monkeypatch: pytest.MonkeyPatch, fresh: Callable[[], Path]
) -> None:
    lock = (app.folder / "npuprof.lock").read_text()
    (team.repo.folder / "npuprof.toml").write_text('requires = ">=99"\nlater = 1\n')
    team.publish({"base": BASE.format(7).replace("[options]", "later = 1\n[options]")}, "1.1.0")
    for arguments in (("source", "update", "--yes"), ("source", "add", "new", team.url)):
        expect(run(*arguments), 2, "NP041", ">=99")
    assert (app.folder / "npuprof.lock").read_text() == lock
    assert run("show", "job").code == 0
    monkeypatch.setattr("npuprof.store.project.__version__", "99.0.0")
    (team.repo.folder / "npuprof.toml").write_text('requires = ">=99"\n')
    team.publish({"base": BASE.format(7)}, "1.1.1")
    assert run("source", "update", "--yes").code == 0
    monkeypatch.undo()
    fresh()
    monkeypatch.chdir(app.folder)
    for arguments in ("source sync", "show job", "show team:base", "list --store team:", "check"):
        expect(
            run(*arguments.split()),
            2,
            "the source 'team' needs npuprof >=99",
            "team@1.1.1:npuprof.toml:1",
        )
    assert run("show", "own").code == 0


def test_what_a_source_decides_to_execute_is_trusted_singly(
    app: Repo, team: Team, run: Run
) -> None:
    team.publish({"power": 'env.LD_PRELOAD = "/x.so"\n'}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    expect(run("env", "team:power"), 2, "NP930", "npuprof trust team:")
    assert run("trust", "profiles").code == 0
    assert run("env", "team:power").code == 2
    assert run("trust", "team:").code == 0
    assert "LD_PRELOAD='/x.so'" in run("env", "team:power").out
    team.publish({"power": 'env.LD_PRELOAD = "/y.so"\n'}, "1.2.0")
    assert run("source", "update", "--yes").code == 0
    assert run("env", "team:power").code == 2


def test_refusals_are_grouped_by_store_and_each_ends_in_a_command_that_can_be_pasted(
    app: Repo, team: Team, run: Run
) -> None:
    team.publish({"power": '[env]\nONE_SWITCH = "1"\nLD_PRELOAD = "/x y.so"\n'}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    folder = app.folder / "our presets"
    folder.mkdir()
    own = '[profile]\nextends = ["team:power"]\n[env]\nMY_SWITCH = "1"\n'
    (folder / "job.toml").write_text(own)
    refused = run("env", "job", "--store", folder).err
    assert re.findall(r"(?<=NP930: env\.)\w+|(?<=then ).*(?=, or --trust)", refused) == [
        "MY_SWITCH",
        f"npuprof trust '{folder}' MY_SWITCH",
        "LD_PRELOAD",
        "ONE_SWITCH",
        "npuprof trust team: 'LD_PRELOAD=/x y.so' ONE_SWITCH",
    ]


def test_presets_of_a_source_are_changed_and_released_where_they_come_from(
    app: Repo, run: Run
) -> None:
    for arguments in (
        "set team:base hccl_timeout=1",
        "unset team:base hccl_timeout",
        "release team:base",
        "restore team:base@1",
    ):
        expect(run(*arguments.split()), 2, "update")


def test_removing_a_source_that_presets_extend_takes_force(app: Repo, run: Run) -> None:
    expect(run("source", "remove", "team"), 2, "profiles/job.toml:2")
    assert run("source", "remove", "team", "--force").code == 0
    assert "there is no source 'team'" in run("show", "job").err


LOCKED = """\
version = 1

[sources.team]
url = "file:///srv/team.git"
rev = "^1.0"
# ours since spring
tag = "v1.0.0"
commit = "{}"
digest = "sha256:{}"

[sources.team.versions]
"base@1.0.0" = "1.0.0 {}"
""".format("a" * 40, "0" * 64, "b" * 40)
PINNED = "base@1.0.0"


@pytest.mark.parametrize(
    ("ours", "theirs", "clean"),
    [
        ({"^1.0": ">=1.0"}, {"v1.0.0": "v1.1.0", "a" * 40: "c" * 40, "0" * 64: "1" * 64}, False),
        (
            {"a" * 40: "c" * 40},
            {f'"{PINNED}"': f'"other@1.0.0" = "1.0.0 {"d" * 40}"\n"{PINNED}"'},
            False,
        ),
        (
            {"a" * 40: "c" * 40},
            {f'\n[sources.team.versions]\n"{PINNED}" = "1.0.0 {"b" * 40}"\n': ""},
            False,
        ),
        ({"a" * 40: "c" * 40}, {"a" * 40: "c" * 40}, True),
        ({"v1.0.0": "v1.0.0"}, {"a" * 40: "c" * 40, "0" * 64: "1" * 64, "v1.0.0": "v1.1.0"}, True),
    ],
)
def test_an_entry_of_the_lock_is_taken_from_one_side_or_left_to_a_person(
    ours: dict[str, str], theirs: dict[str, str], clean: bool, tmp_path: Path, run: Run
) -> None:
    paths = [tmp_path / name for name in ("base", "ours", "theirs")]
    assert paths
    for path, changes in zip(paths, ({}, ours, theirs), strict=True):
        text = LOCKED
        for before, after in changes.items():
            assert before in text
            text = text.replace(before, after)
        path.write_text(text)
    sides = [path.read_text() for path in paths[1:]]
    expect(run("git", "merge-driver", *map(str, paths), "npuprof.lock"), 0 if clean else 1)
    merged = paths[1].read_text()
    if clean:
        sides, pair = [sides[1]], [merged]
    else:
        pair = split_conflicts(merged)
        assert pair is not None
    found, expected = (
        [parse_lock("npuprof.lock", side.encode()).sources for side in two] for two in (pair, sides)
    )
    assert found == expected
    assert merged == sides[0] or not clean


def test_rendering_what_a_source_gives_starts_no_git_once_it_was_read(
    app: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("job", "pinned", "range")
    app.write(
        {
            "pinned": 'profile.extends = ["team:base@1.0.0"]\n',
            "range": 'profile.extends = ["team:base@1"]\n',
        }
    )
    assert run("source", "update", "--yes").code == 0
    expected = [run("render", name).out for name in names]
    assert "600" in expected[2]

    def refuse(*arguments: object, **more: object) -> None:
        raise AssertionError(f"a process was started: {arguments}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert [run("render", name).out for name in names] == expected


@pytest.mark.parametrize(
    ("requested", "expected"),
    [("base@1", True), ("base@1.0", True), ("base@1.0.0", False), ("base", False)],
)
def test_what_may_mean_another_version_tomorrow_has_to_be_in_the_lock(
    requested: str, expected: bool, app: Repo, run: Run, fresh: Callable[[], Path]
) -> None:
    app.write({"new": f'profile.extends = ["team:{requested}"]\n'})
    expect(
        run("check", "new"),
        2 * expected,
        *(("NP044", "npuprof source update team") if expected else ()),
    )
    assert run("commit").code == 2 * expected
    assert run("show", "own").code == 0
    assert run("show", f"team:{requested}").code == 0, "nobody relies on what is asked for once"
    fresh()
    assert run("source", "sync").code == 0
    assert run("check", "new").code == 2 * expected, "a clone without any lock entry says the same"
    assert run("source", "update", "--yes").code == 0
    assert run("check", "new").code == 0
    app.write({"new": 'profile.extends = ["team:other@1"]\n'})
    assert "NP044" in run("check", "new").out, (
        "nor is a version told as missing that was not fetched yet"
    )


@pytest.mark.parametrize(
    "damage", [b"", b"[options]\nhccl_timeout = 1\n", b"\n# npuprof sha256:" + b"0" * 64]
)
def test_a_text_that_was_kept_and_is_not_whole_is_read_again(
    damage: bytes, app: Repo, run: Run
) -> None:
    assert run("show", "job").code == 0
    folder = Path(os.environ["XDG_CACHE_HOME"], "npuprof", "presets")
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert kept
    for path in kept:
        path.write_bytes(damage)
    assert "hccl_timeout = 600\n" in run("show", "job").out
    assert [path for path, text in kept.items() if text and path.read_bytes() == text]


def test_the_store_of_a_source_is_listed_shown_and_checked(app: Repo, run: Run) -> None:
    assert [line.split()[0] for line in run("list", "--store", "team:").out.splitlines()] == [
        "team:base",
        "team:other",
    ]
    assert "hccl_timeout = 600" in run("show", "base", "--store", "team:").out
    assert run("check", "--store", "team:").code == 0
    for arguments in (
        ("set", "base", "hccl_timeout=1"),
        ("log", "base"),
        ("new", "x"),
        ("commit",),
        ("release", "base"),
    ):
        expect(run(*arguments, "--store", "team:"), 2, "NP010", "team: is read as it is locked")
    assert "there is no source 'x'" in run("list", "--store", "x:").err


def test_a_commit_takes_what_its_presets_come_from_with_it(app: Repo, team: Team, run: Run) -> None:
    team.publish({"base": BASE.format(60)}, "1.1.0")
    assert run("source", "add", "second", team.url).code == 0
    app.write({"more": 'profile.extends = ["second:base"]\n', "own": "options.deterministic = 1\n"})
    assert run("commit", "own").code == 0
    assert app.git("show", "--name-only", "--format=").split() == ["profiles/own.toml"]
    assert run("commit", "more").code == 0
    assert app.git("show", "--name-only", "--format=").split() == [
        "npuprof.lock",
        "npuprof.toml",
        "profiles/more.toml",
    ]
    assert run("source", "update", "--yes").code == 0
    assert run("source", "vendor", "team").code == 0
    expect(run("commit"), 0)
    assert "hccl_timeout" in app.git("log", "-1", "--format=%s")
    assert "vendor/team/base.toml" in app.git("show", "--name-only", "--format=")
    assert app.git("status", "--short") == ""
    app.git("rm", "-q", "--cached", "npuprof.lock")
    (app.folder / "npuprof.lock").unlink()
    expect(run("commit"), 2, "NP044")


@pytest.mark.parametrize(
    ("name", "uses"), [("base.toml", True), (".npuprof.toml", True), ("more.toml", False)]
)
def test_an_edited_copy_is_neither_read_nor_committed_nor_released_nor_clean_at_a_revision(
    name: str, uses: bool, app: Repo, run: Run
) -> None:
    assert run("source", "vendor", "team").code == 0
    app.commit()
    assert run("release", "job", "1.0.0").code == 0
    copy = app.folder / "vendor/team" / name
    copy.write_text((copy.read_text() if copy.exists() else "") + "\n# edited\n")
    for arguments in (
        ("show job", "env job", "render job --to session", "run job -- true")
        if uses
        else ("check", "source sync")
    ):
        expect(run(*arguments.split()), 2, "NP049", "npuprof source vendor team")
    assert run("show", "own").code == 0
    assert run("show", "job@HEAD").code == 0
    expect(run("commit", "-m", "x"), 2, "NP049")
    app.commit(message="edited")
    assert app.git("log", "--format=%s").count("x") == 0
    expect(run("diff", "--rev", "HEAD~1"), *((2, "INVALID NOW", "NP049") if uses else (0,)))
    app.git(
        "tag", "-a", "job/v1.0.1", "-m", app.git("tag", "-l", "--format=%(contents)", "job/v1.0.0")
    )
    expect(run("check", "--rev", "HEAD"), 2, "NP049")
    expect(run("release", "--all", "--yes"), 2, "NP049")
    assert "v0.1.0" not in app.git("tag")
    expect(run("release", "job", "1.1.0"), *((2, "NP049") if uses else (0,)))
    expect(run("verify", "--tags", "job"), int(uses))
    assert run("check", "--rev", "HEAD~1").code == 0


def test_a_copy_with_other_line_ends_is_what_was_copied(app: Repo, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    for path in (app.folder / "vendor/team").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert "hccl_timeout = 600\n" in run("show", "job").out
    assert run("source", "sync").code == 0


def test_a_lock_that_knows_nothing_of_a_copy_is_out_of_date(run: Run, lock: Path) -> None:
    assert run("source", "vendor", "team").code == 0
    lock.write_text(
        "".join(
            line for line in lock.read_text().splitlines(True) if not line.startswith("copy = ")
        )
    )
    assert "NP044" in run("show", "job").err
    assert run("source", "update", "--yes").code == 0
    assert run("show", "job").code == 0


def test_sources_in_one_line_are_asked_to_be_tables(team: Team, run: Run, project: Path) -> None:
    project.write_text(text := f'sources = {{ team = {{ url = "{team.url}", rev = "^1.0" }} }}\n')
    expect(
        run("source", "add", "second", team.url),
        2,
        "NP922",
        "write each source as a table: [sources.team]",
    )
    assert project.read_text() == text


# -- what is told of presets that are kept elsewhere ----------------------------------------------


def test_a_caret_stays_below_what_it_points_at_where_something_before_it_is_hidden(
    app: Repo, run: Run
) -> None:
    (app.folder / "npuprof.toml").write_text(
        '[sources.team]\nurl = "https://me:secret@host/x" here\n'
    )
    line, caret = run("list").err.splitlines()[1:3]
    assert line.endswith('url = "https://***@host/x" here')
    assert line.index("here") == caret.index("^")


def test_what_is_wrong_in_a_source_is_told_with_the_place_in_it(
    app: Repo, team: Team, run: Run
) -> None:
    lost = {"gone": 'profile.extends = ["bsae"]\n', "late": 'profile.extends = ["base@9.0.0"]\n'}
    team.publish(
        {**lost, "power": 'env.LD_PRELOAD = "/x.so"\n', "old": "options.op_debug_level = 1\n"},
        "1.1.0",
    )
    for name in ("gone", "late", "power", "old"):
        app.write({name: f'profile.extends = ["team:{name}"]\n'})
    app.write({"wrong": 'profile.extends = ["team:bsae"]\n', "job": None})
    run("source", "update", "--yes")
    output = {
        finding["code"]: finding
        for finding in json.loads(run("check", "--format", "json").out)["findings"]
        if finding["path"].startswith("team@")
    }
    assert output["NP101"]["hint"] == "did you mean 'base'?"
    assert output["NP101"]["message"] == "team:gone extends 'bsae', which is not in team"
    assert output["NP011"]["message"] == "team: base has no released version 9.0.0"
    assert output["NP605"]["hint"].endswith("npuprof trust team:")
    assert "did you mean 'team:base'" in run("show", "wrong").err
    assert "omit the @" in run("show", "team:old@1").err
    team.publish({"other": "options.deterministic = 0\n"}, "1.2.0")
    assert "NP101" not in run("source", "update", "--dry-run").out, (
        "what was broken before is no news"
    )


def test_a_link_in_a_source_is_cited_by_its_name_and_one_out_of_it_told_when_it_is_taken(
    app: Repo, team: Team, run: Run
) -> None:
    for name, target in (
        ("link", "base.toml"),
        ("out", "../README.toml"),
        ("gone", "nothing.toml"),
        ("round", "round.toml"),
    ):
        (team.repo.folder / f"profiles/{name}.toml").symlink_to(target)
    team.publish({}, "1.1.0")
    expect(run("source", "update", "--yes"), 0, "team:out cannot be read: ")
    expect(run("source", "add", "again", team.url), 0, "again:out cannot be read: ")
    expect(run("show", "team:link", "--origin"), 0, "# team@1.1.0:profiles/link.toml:5")
    for name in ("out", "gone", "round"):
        expect(run("show", f"team:{name}"), 2, f"team@1.1.0:profiles/{name}.toml: error NP005:")


@pytest.mark.parametrize(
    "arguments",
    [("update",), ("list",), ("vendor", "team"), ("remove", "team"), ("add", "x", "/srv/x")],
)
def test_in_a_repository_without_a_work_tree_it_is_said_that_there_is_none(
    arguments: tuple[str, ...], app: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "clone", "-q", "--bare", app.folder, tmp_path / "app.git"], check=True)
    monkeypatch.chdir(tmp_path / "app.git")
    expect(run("source", *arguments), 2, "has no work tree", "npuprof source sync")
    assert run("source", "sync").code == 0


def test_a_path_that_was_made_absolute_is_told(app: Repo, team: Team, run: Run) -> None:
    assert (
        f"near is at {team.bare}, a path of this machine"
        in run("source", "add", "near", "../team.git").err
    )
    assert "a path of this machine" not in run("source", "add", "far", str(team.bare)).err
