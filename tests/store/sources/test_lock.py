"""What a lock says a version is: compared with what was locked, and kept, wherever presets of a source are read."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from support.repositories import Repo
from support.running import Run
from support.teams import BASE, Shared, Team, copy_shared


@pytest.fixture
def shared_pinned(tmp_path: Path, run: Run, committer: None) -> Shared:
    def pin(shared: Shared) -> None:
        team, app = shared
        team.publish({"base": BASE.format(7)}, "1.1.0", "base/v1.1.0")
        team.publish({"base": BASE.format(8)}, "1.2.0", "base/v1.2.0")
        app.write({"pinned": 'profile.extends = ["team:base@1.1"]\n'})
        assert run("source", "update", "--yes").code == 0
        app.commit(message="pinned")

    return copy_shared(tmp_path, run, pin)


@pytest.fixture
def pinned(shared_pinned: Shared, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository whose source is at 1.2.0, of which a preset takes base 1.1.0."""
    monkeypatch.chdir(shared_pinned.app.folder)
    return shared_pinned.app


def type_over(app: Repo, pattern: str, replacement: str) -> str:
    """Change the lock as somebody with an editor would; return what it was."""
    lock = app.folder / "npuprof.lock"
    before = lock.read_text()
    after = re.sub(pattern, replacement, before)
    assert after != before
    lock.write_text(after)
    return before


#: What is said of an entry that npuprof did not write.
UNSEALED = "npuprof.lock has no fitting seals for the source 'team'"


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r'"1\.1\.0 [0-9a-f]*"', '"1.1.0 {v1.0.0}"'),
        (r'"1\.1\.0 [0-9a-f]*"', '"0.9.0 {v1.0.0}"'),
        (r'"1\.1\.0 ([0-9a-f]*)"', r'"1.1.1 \1"'),
        (r'tag = "v1\.2\.0"', 'tag = "v1.1.0"'),
        (r'"base@1\.1" = "[0-9a-f]{16}"\n', ""),
        (r"\[sources\.team\.seals\]\n.*\n", ""),
    ],
)
@pytest.mark.parametrize("words", ["show pinned", "check", "source sync", "commit -m x", "release own 1.0.0"])
def test_a_version_that_was_typed_into_the_lock_is_told_offline_by_whatever_reads_it(
    words: str, pattern: str, replacement: str, pinned: Repo, team: Team, run: Run
) -> None:
    before = type_over(pinned, pattern, replacement.replace("{v1.0.0}", team.repo.git("rev-parse", "v1.0.0^{commit}").strip()))
    shutil.move(team.bare, team.bare.with_suffix(".gone"))
    pinned.write({"own": "options.deterministic = 1\n"})
    if words.startswith("release"):
        pinned.commit()
        words = "release pinned 1.0.0"
    result = run(*words.split())
    said = " ".join((result.out + result.err).split())
    assert (result.code, "NP044" in said, UNSEALED in said) == (2, True, True), said
    (pinned.folder / "npuprof.lock").write_text(before)
    assert run("show", "pinned").code == 0


def test_a_release_whose_lock_was_typed_over_does_not_hold(pinned: Repo, team: Team, run: Run) -> None:
    assert run("release", "pinned", "1.0.0").code == 0
    assert run("verify", "--tags").code == 0
    first = team.repo.git("rev-parse", "v1.0.0^{commit}")
    type_over(pinned, r'"1\.1\.0 [0-9a-f]*"', f'"1.1.0 {first}"')
    pinned.commit()
    pinned.git("tag", "-a", "pinned/v1.0.1", "-m", pinned.git("tag", "-l", "--format=%(contents)", "pinned/v1.0.0"))
    result = run("verify", "--tags")
    assert (result.code, "seals" in result.out) == (1, True), result.out
    assert run("show", "pinned@1.0.0").code == 0


def test_what_was_typed_into_the_lock_is_mended_by_an_update_that_says_so(pinned: Repo, run: Run) -> None:
    before = type_over(pinned, r'"1\.1\.0 ([0-9a-f]*)"', r'"1.1.9 \1"')
    result = run("source", "update", "--yes")
    assert (result.code, "team:base@1.1: 1.1.9" in result.out) == (0, True), result.out + result.err
    assert (pinned.folder / "npuprof.lock").read_text() == before
    before = type_over(pinned, r'"base@1\.1" = "[0-9a-f]{16}"\n', "")
    result = run("source", "update", "--yes")
    assert (result.code, "team" in result.out) == (0, True), result.out + result.err
    assert (pinned.folder / "npuprof.lock").read_text() == before


def test_a_lock_of_a_source_that_was_changed_by_hand_is_told_with_where_it_is_kept(
    pinned: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Team(tmp_path / "other")
    shutil.copy(pinned.folder / "npuprof.toml", other.repo.folder)
    shutil.copy(pinned.folder / "npuprof.lock", other.repo.folder)
    type_over(other.repo, r'"1\.1\.0 ([0-9a-f]*)"', r'"1.1.9 \1"')
    other.publish({"mid": 'profile.extends = ["team:base@1.1"]\n'}, "1.0.0")
    result = run("source", "add", "mid", other.url)
    assert (result.code, "NP044" in result.err, "the lock of mid has no fitting seals" in result.err) == (2, True, True), result.err
    assert "npuprof source update mid" in result.err


SEALS = r'(?s)seal = "[0-9a-f]{16}"\n|\n\[sources\.team\.seals\].*'


WORDS = ["show pinned", "check", "source sync", "source vendor team", "commit -m x", "release --all --yes"]


@pytest.mark.parametrize("copied", [False, True])
def test_a_lock_without_seals_is_rejected_until_an_update_locks_it_again(copied: bool, pinned: Repo, run: Run) -> None:
    if copied:
        assert run("source", "vendor", "team").code == 0
    before = type_over(pinned, SEALS, "")
    pinned.commit()
    pinned.write({"own": "options.deterministic = 1\n"})
    for words in WORDS:
        result = run(*words.split())
        said = " ".join((result.out + result.err).split())
        assert (result.code, "NP044" in said, UNSEALED in said) == (2, True, True), (words, said)
        assert "npuprof source update team" in said, (words, said)
    assert run("check", "own").code == 0, "it reads no source"
    assert run("source", "update", "--frozen").code == 1
    result = run("source", "update", "--yes")
    assert (result.code, "written anew" in result.out) == (0, True), result.out + result.err
    assert tomllib.loads((pinned.folder / "npuprof.lock").read_text()) == tomllib.loads(before)
    assert "hccl_timeout = 7\n" in run("show", "pinned").out


def test_what_was_typed_into_a_lock_without_seals_is_not_kept_by_an_update(pinned: Repo, team: Team, run: Run) -> None:
    older = team.repo.git("rev-parse", "v1.0.0^{commit}").strip()
    before = type_over(pinned, r'"1\.1\.0 [0-9a-f]*"', f'"1.1.0 {older}"')
    (pinned.folder / "npuprof.lock").write_text(re.sub(SEALS, "", (pinned.folder / "npuprof.lock").read_text()))
    assert run("show", "pinned").code == 2
    assert run("source", "update", "--yes", "--moved").code == 0
    assert tomllib.loads((pinned.folder / "npuprof.lock").read_text()) == tomllib.loads(before)


def test_a_source_whose_own_lock_has_no_seals_is_rejected_with_where_to_lock_it(pinned: Repo, tmp_path: Path, run: Run) -> None:
    other = Team(tmp_path / "other")
    shutil.copy(pinned.folder / "npuprof.toml", other.repo.folder)
    (other.repo.folder / "npuprof.lock").write_text(re.sub(SEALS, "", (pinned.folder / "npuprof.lock").read_text()))
    other.publish({"mid": 'profile.extends = ["team:base@1.1"]\n'}, "1.0.0")
    result = run("source", "add", "mid", other.url)
    said = " ".join(result.err.split())
    assert (result.code, "the lock of mid has no fitting seals for the source 'mid/team'" in said) == (2, True), said
    assert "npuprof source update mid" in said


def test_what_is_done_with_one_source_seals_no_other(pinned: Repo, team: Team, run: Run, tmp_path: Path) -> None:
    other = Team(tmp_path / "other")
    other.publish({"mid": "options.deterministic = 1\n"}, "1.0.0")
    type_over(pinned, r'"1\.1\.0 ([0-9a-f]*)"', r'"1.1.1 \1"')
    for words in (("add", "mid", other.url), ("update", "mid", "--yes"), ("vendor", "mid"), ("remove", "mid")):
        assert run("source", *words).code == 0, words
        result = run("show", "pinned")
        assert (result.code, UNSEALED in " ".join(result.err.split())) == (2, True), (words, result.err)


def test_a_lock_that_was_typed_over_is_told_by_a_check_though_no_preset_reads_it(pinned: Repo, run: Run) -> None:
    pinned.write({"pinned": None, "job": None})
    type_over(pinned, r'"1\.1\.0 ([0-9a-f]*)"', r'"1.1.1 \1"')
    result = run("check")
    assert (result.code, UNSEALED in " ".join(result.out.split())) == (2, True), result.out + result.err


# -- what a source has withdrawn ------------------------------------------------------------------------------------


@pytest.fixture
def withdraw(team: Team) -> Callable[[str], None]:
    """Delete a tag where the source is kept."""

    def delete(tag: str) -> None:
        team.repo.git("push", "-q", str(team.bare), f":refs/tags/{tag}")
        team.repo.git("tag", "-d", tag)

    return delete


@pytest.mark.parametrize(
    ("tags", "gone", "reference", "rev", "told"),
    [
        (["v1.1.0-yanked"], "v1.1.0-yanked", "base", "^1.0", 'tag = "v1.1.0"'),
        (["base/v1.1.0", "base/v1.1.0-yanked"], "base/v1.1.0-yanked", "base@1", "^1.0", '"base@1" = "1.1.0 '),
        (["base/v1.1.0"], "base/v1.1.0", "base@1", "^1.0", '"base@1" = "1.0.0 '),
        (["base/v1.1.0"], "base/v1.1.0", "base@1.1.0", "^1.0", ""),
        (["try/one"], "try/one", "base@try/one", "^1.0", ""),
        (["try/one"], "try/one", "base", "try/one", ""),
        (["one"], "one", "base", "one~1", ""),
        ([], "v1.1.0", "base", "^1.0", 'tag = "v1.0.0"'),
    ],
)
def test_what_a_source_has_withdrawn_is_chosen_by_no_machine(
    tags: list[str], gone: str, reference: str, rev: str, told: str,
    repo: Repo, team: Team, run: Run, withdraw: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    team.publish({"base": BASE.format(7)}, "1.1.0", *tags)
    repo.write({"own": "options.deterministic = 0\n"})
    assert run("source", "add", "team", team.url, "--rev", "*").code == 0
    repo.write({"job": f'profile.extends = ["team:{reference}"]\n'})
    assert run("source", "update", "--yes").code == 0
    withdraw(gone)
    locks = []
    for cache in ("old", "fresh"):
        if cache == "fresh":
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
        (repo.folder / "npuprof.lock").unlink()
        (repo.folder / "npuprof.toml").write_text(f'[sources.team]\nurl = "{team.url}"\nrev = "{rev}"\n')
        result = run("source", "update", "--yes")
        assert (result.code, "NP047" in result.err or "NP011" in result.err) == ((0, False) if told else (2, True)), result.err
        locks.append((repo.folder / "npuprof.lock").read_text() if told else "")
        (repo.folder / "npuprof.lock").touch()
    assert locks[0] == locks[1]
    assert told in locks[0]
    assert "yanked" not in locks[0]


@pytest.mark.parametrize("cache", ["old", "fresh"])
def test_a_version_that_is_locked_and_was_withdrawn_is_told_before_an_older_one_takes_its_place(
    cache: str, pinned: Repo, run: Run, withdraw: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned.write({"pinned": 'profile.extends = ["team:base@1"]\n'})
    assert run("source", "update", "--yes").code == 0
    before = (pinned.folder / "npuprof.lock").read_text()
    withdraw("base/v1.2.0")
    if cache == "fresh":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
        assert run("source", "sync").code == 0
    result = run("source", "update", "--yes")
    assert (result.code, "base/v1.2.0 of the source" in result.err) == (2, True), result.out + result.err
    assert (pinned.folder / "npuprof.lock").read_text() == before
    assert "hccl_timeout = 8\n" in run("show", "pinned").out


# -- versions on the command line -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", ["old", "fresh"])
def test_a_version_on_the_command_line_is_the_locked_one_on_every_machine(
    cache: str, pinned: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.repo.commit({"base": BASE.format(99)})
    team.repo.git("tag", "-f", "-a", "base/v1.1.0", "-m", "again")
    team.push("--force")
    if cache == "fresh":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
        assert run("source", "sync").code == 0
    else:
        pinned.write({"more": "options.deterministic = 1\n"})
        lock = (pinned.folder / "npuprof.lock").read_bytes()
        run("source", "update", "--yes", "--moved")
        (pinned.folder / "npuprof.lock").write_bytes(lock)
    for spec in ("team:base@1.1.0", "team:base@1.1", "team:base@v1.1.0", "pinned"):
        result = run("show", spec)
        assert (result.code, "hccl_timeout = 7\n" in result.out) == (0, True), (spec, result.out, result.err)


def test_what_a_copy_lacks_is_told_with_what_brings_it(pinned: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("source", "vendor", "team").code == 0
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    assert "hccl_timeout = 7\n" in run("show", "team:base@1.1.0").out
    result = run("show", "team:base@1.0.0")
    assert (result.code, 'extend "team:base@1.0.0" in a preset' in result.err) == (2, True), result.err
    pinned.write({"older": 'profile.extends = ["team:base@1.0.0"]\n'})
    assert run("source", "update", "team", "--yes").code == 0
    assert "hccl_timeout = 600\n" in run("show", "team:base@1.0.0").out


# -- what is told ---------------------------------------------------------------------------------------------------------


def test_a_deprecated_preset_that_one_of_a_source_builds_on_is_told(app: Repo, team: Team, run: Run) -> None:
    old = 'profile.deprecated = "use newer"\noptions.hccl_timeout = 600\n'
    team.publish({"base": 'profile.extends = ["mid"]\n', "mid": 'profile.extends = ["old"]\n', "old": old}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    checked = run("check", "job")
    assert "job extends team:base, which builds on team:old, and that is deprecated: use newer" in checked.out
    assert "once it is: npuprof source update team" in checked.out
    app.write({"heir": 'profile.extends = ["job"]\n', "direct": 'profile.extends = ["team:old"]\n'})
    assert "deprecated" not in run("check", "heir").out, "it is told where the source is named"
    assert run("check", "direct").out.count("is deprecated") == 1


def test_what_an_update_mends_in_the_lock_is_told(app: Repo, run: Run) -> None:
    before = type_over(app, r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}")
    result = run("source", "update", "--yes")
    assert (result.code, "written anew" in result.out) == (0, True), result.out
    assert (app.folder / "npuprof.lock").read_text() == before


@pytest.mark.parametrize("words", ["sync", "update", "list"])
def test_where_there_is_neither_store_nor_npuprof_toml_that_is_told(
    words: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    result = run("source", words)
    assert (result.code, "NP010" in result.err) == (2, True), result.err
    (tmp_path / "elsewhere/npuprof.toml").write_text("")
    assert run("source", words).code == 0


def test_a_lock_that_is_no_toml_is_told_with_what_writes_it_anew(app: Repo, run: Run) -> None:
    lock = app.folder / "npuprof.lock"
    lock.write_text(lock.read_text() + "[[[\n")
    result = run("show", "job")
    assert (result.code, "try: restore it (git checkout npuprof.lock), or write it anew: npuprof source update" in result.err) == (2, True)


@pytest.mark.parametrize(("left", "told"), [("", "it has no versions; name a branch: main"), ("v0.9.0", "it has the versions 0.9.0")])
def test_a_version_that_is_locked_and_gone_is_named_where_no_other_fits(left: str, told: str, app: Repo, team: Team, run: Run) -> None:
    if left:
        team.repo.git("tag", "-a", left, "-m", left)
        team.push()
    team.repo.git("push", "-q", "--delete", str(team.bare), "v1.0.0")
    result = run("source", "update", "--yes")
    assert (result.code, told in result.err) == (2, True), result.err
