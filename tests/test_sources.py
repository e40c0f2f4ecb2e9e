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
from repositories import Repo
from teams import BASE, Team, offline

from npuprof.document.secrets import hide_secrets
from npuprof.edit.merge import split_conflicts
from npuprof.model import NpuprofError
from npuprof.store.sources.lock import LockedSource, LockedVersion, format_lock, parse_lock
from npuprof.store.sources.mirror import find_mirror_folder
from npuprof.store.sources.project import parse_project
from npuprof.store.versions import parse_version_range, parse_version_text

Run = Callable[..., Any]


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
    '# https://me:secret@host\nurl = "https://me:secret@host/x"\n    assert told["NP011"]["message"] == "team: base has no released version 9.0.0"
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
