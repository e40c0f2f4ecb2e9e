"""Releases of several presets: their plan, tags, notes and pushes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import npuprof
from npuprof.history.planning import sort_parents_first
from support.repositories import ENVIRONMENT, Repo
from support.running import Run, expect

BASE = '[profile]\nabstract = true\nscenario = "training"\n[options]\nhccl_timeout = {}\n'
HEIR = '[profile]\nextends = ["{}"]\nscenario = "training"\n[options]\niterations_per_loop = {}\n'


@pytest.fixture
def repo(repo: Repo) -> Repo:
    """A base, two plain heirs, one that takes a range of the base, and one of its own."""
    repo.commit(
        {
            "base": BASE.format(1836),
            "a/one": HEIR.format("base", 1),
            "a/two": HEIR.format("base", 2),
            "ranged": HEIR.format("base@1", 3),
            "alone": '[profile]\nscenario = "training"\n[options]\nhcom_parallel = true\n',
        }
    )
    return repo


def plan(run: Run, *arguments: str) -> dict[str, list[str]]:
    """Return what is planned: step, version and causes of each tag's name."""
    done = run("release", *arguments, "--dry-run", "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    rows = {
        release["name"]: [release["step"], release["version"], *release["follows"]]
        for release in found["releases"]
    }
    return {
        **rows,
        **({"@": [found["store"]["step"], found["store"]["version"]]} if found["store"] else {}),
    }


@pytest.mark.parametrize(
    ("extends", "order"),
    [
        ({}, []),
        ({"b": ["a"], "a": []}, [["a"], ["b"]]),
        ({"c": ["b"], "b": ["a"], "a": [], "z": []}, [["a", "z"], ["b"], ["c"]]),
        ({"a": ["gone"], "b": ["b"]}, [["a", "b"]]),
        ({"a": ["b"], "b": ["a"], "c": ["b"]}, [["a"], ["b"], ["c"]]),
    ],
)
def test_parents_come_first_and_circles_end(
    extends: dict[str, list[str]], order: list[list[str]]
) -> None:
    assert list(sort_parents_first(extends)) == order


RULE = (
    '[[rule]]\ncode = "T-1"\npresets = ["a/*"]\nrequire = "{}"\nseverity = "{}"\nmessage = "{}"\n'
)
_STRICT = RULE.format("hccl_timeout > 0", "error", "m")
_MILD = RULE.format("hccl_timeout > 0", "warning", "m")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("", _STRICT, ["major", "2.0.0"], id="an error rule is added"),
        pytest.param("", _MILD, ["minor", "1.1.0"], id="a warning rule is added"),
        pytest.param(_STRICT, _MILD, ["minor", "1.1.0"], id="a rule becomes milder"),
        pytest.param(
            _STRICT,
            RULE.format("hccl_timeout > 1", "error", "m"),
            ["major", "2.0.0"],
            id="a rule requires more",
        ),
        pytest.param(
            _STRICT,
            RULE.format("hccl_timeout > 0", "error", "other"),
            ["patch", "1.0.1"],
            id="another message",
        ),
        pytest.param(
            'requires = ">=0.0.1"\n',
            'requires = ">=0.0.1,<99"\n',
            ["major", "2.0.0"],
            id="requires is narrowed",
        ),
        pytest.param('requires = ">=0.0.1"\n', "", ["minor", "1.1.0"], id="requires is removed"),
        pytest.param("", "# a word\n", ["patch", "1.0.1"], id="a comment"),
    ],
)
def test_what_npuprof_toml_asks_of_consumers_is_a_step_of_the_store(
    before: str, after: str, expected: list[str], repo: Repo, run: Run
) -> None:
    project = repo.folder / "npuprof.toml"
    project.write_text(before)
    repo.commit()
    assert run("release", "--all", "--yes").code == 0
    project.write_text(after)
    (repo.folder / "other.txt").write_text("x")
    repo.commit()
    assert plan(run, "--all") == {"@": expected}
    text = '[profile]\nscenario = "training"\n[options]\nhcom_parallel = true\n'
    repo.commit({"alone": f"# text only\n{text}"})
    assert plan(run, "--all") == {"@": expected, "alone": ["patch", "1.0.1"]}, (
        "nor does it go along as less than it is"
    )


def test_all_presets_and_the_store_are_released_together(repo: Repo, run: Run) -> None:
    assert plan(run, "--all") == {
        name: ["first", "1.0.0"] for name in ("alone", "base", "a/one", "a/two", "ranged", "@")
    }
    assert repo.git("tag") == ""
    expect(run("release", "--all", "--yes"), 0)
    assert repo.git("tag").split() == sorted(
        [f"{name}/v1.0.0" for name in ("alone", "base", "a/one", "a/two", "ranged")] + ["v1.0.0"]
    )
    assert set(repo.git("for-each-ref", "--format=%(objecttype)", "refs/tags").split()) == {"tag"}
    assert run("verify", "--tags").code == 0
    assert "nothing has changed" in run("release", "--all", "--yes").err
    commit = repo.head
    assert f"Parent: base@1 1.0.0 {commit}" in repo.git(
        "tag", "-l", "--format=%(contents)", "ranged/v1.0.0"
    ), "a version of the same plan"
    repo.git("tag", "-d", "alone/v1.0.0")
    expect(run("release", "--all", "--dry-run"), 0, "only versions of presets are new")


def test_heirs_follow_what_changes_a_range_too(repo: Repo, run: Run) -> None:
    assert run("release", "--all", "--yes").code == 0
    repo.commit({"base": BASE.format(1904)})
    assert plan(run, "--changed") == {
        "base": ["minor", "1.1.0"],
        **{name: ["minor", "1.1.0", "base"] for name in ("a/one", "a/two", "ranged")},
    }
    done = run("release", "--all", "--dry-run")
    assert "3 presets follow base@1.1.0 a/one@1.1.0 minor after 1.0.0 " in " ".join(
        done.out.split()
    )
    assert " ".join(done.out.split()).endswith(
        " v1.1.0 the whole store, minor after 1.0.0: 4 presets: changed: hccl_timeout 1836 → 1904 "
        "s (in a/one, a/two, base, ranged) "
        f"5 tags at {repo.head[:7]}"
    )
    assert run("release", "--all", "--yes").code == 0
    assert npuprof.open_store().resolve("ranged").options["hccl_timeout"] == 1904
    assert plan(run, "--all", "9.0.0")["@"] == ["none", "9.0.0"]
    repo.commit(
        {
            "base": BASE.format(1972),
            "a/one": HEIR.format("base", 9),
            "a/two": HEIR.format("base", 2) + "# more\n",
            "alone": None,
        }
    )
    found = plan(run, "--all")  # who has a change of its own follows nobody
    assert found["a/one"] == ["major", "2.0.0"]
    assert found["a/two"] == ["minor", "1.2.0"]
    assert found["ranged"] == ["minor", "1.2.0", "base"]
    assert found["@"] == ["major", "2.0.0"], "the biggest step makes the number of the store"


def test_changed_leaves_out_what_never_was_released_and_says_so(repo: Repo, run: Run) -> None:
    assert run("release", "base").code == 0
    repo.commit({"base": BASE.format(1904)})
    done = run("release", "--changed", "--dry-run")
    assert done.out == (
        "base@1.1.0  minor after 1.0.0: changed: hccl_timeout 1836 → 1904 s\n"
        f"1 tag at {repo.head[:7]}\n"
    )
    assert "4 presets never released are omitted: a/one, a/two, alone, ranged" in done.err


def test_an_error_in_one_preset_stops_all(repo: Repo, run: Run) -> None:
    assert run("release", "--all", "--yes").code == 0
    before = repo.git("for-each-ref", "refs/tags")
    repo.commit(
        {
            "base": BASE.format(1904),
            "a/one": HEIR.format("base", '"x"'),
            "a/two": HEIR.format("gone", 1),
            "alone": "x = [",
        }
    )
    expect(
        run("release", "--changed", "--yes"),
        2,
        "NP101",
        "NP001",
        "iterations_per_loop",
        "nothing is released",
    )
    assert repo.git("for-each-ref", "refs/tags") == before


def test_nothing_is_tagged_without_a_yes(repo: Repo, run: Run) -> None:
    done = run("release", "--all")
    assert done.code == 1
    assert repo.git("tag") == ""
    assert "the whole store" in done.out
    assert "--yes was not given" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "release names no preset"),
        (["--changed", "--all"], "two ways"),
        (["--changed", "base"], "'base' cannot be combined with --changed"),
        (["--all", "base"], "'base' is not a version"),
        (["--all", "1.0.0", "x"], "'1.0.0 x' cannot be combined with --all"),
        (["base", "--yes"], "--yes belongs to --changed and --all"),
    ],
)
def test_words_without_a_place_are_refused(
    arguments: list[str], message: str, repo: Repo, run: Run
) -> None:
    expect(run("release", *arguments), 2, message)
    assert repo.git("tag") == ""


def test_the_number_of_the_store_can_be_given_and_only_rises(repo: Repo, run: Run) -> None:
    assert run("release", "--all", "3.0.0", "--yes").code == 0
    repo.commit({"base": BASE.format(1904)})
    assert "3.0.0 is released already" in run("release", "--all", "3.0.0", "--yes").err
    assert (
        "2.0.0 would go back: the store is at 3.0.0"
        in run("release", "--all", "2.0.0", "--yes").err
    )
    assert plan(run, "--all", "4.0.0-rc.1")["@"] == ["minor", "4.0.0-rc.1"]


@pytest.mark.parametrize(("state", "made"), [("prepared", 0), ("committed", 6)])
def test_being_killed_leaves_all_of_the_tags_or_none(
    state: str, made: int, repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("npuprof.history.git_writing._WAITS", (0.01, 0.01))
    hook = repo.folder / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\n[ "$1" != {state} ] || kill -9 0\n')
    hook.chmod(0o755)
    command = [sys.executable, "-m", "npuprof", "release", "--all", "--yes"]
    done = subprocess.run(
        command,
        cwd=repo.folder,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert len(repo.git("tag").split()) == made
    hook.unlink()
    locks = list((repo.folder / ".git/refs/tags").rglob("*.lock"))
    if locks:
        assert ".lock is there" in run("release", "--all", "--yes").err
    for lock in locks:
        lock.unlink()
    if not made:
        assert run("release", "--all", "--yes").code == 0


# -- notes ----------------------------------------------------------------------------------------


def test_notes_tell_changes_once_and_who_follows(repo: Repo, run: Run) -> None:
    assert run("release", "--all", "--yes").code == 0
    repo.commit({"base": BASE.format(1904), "alone": None, "a/one": HEIR.format("base", 9)})
    text = run("release", "--all", "--dry-run", "--format", "markdown").out
    assert text.startswith(
        "# v2.0.0\n\nA major step after 1.0.0:\n\n- `removed: alone`\n"
        "- `a/one: may change numerics: iterations_per_loop 1 → 9"
    )
    assert "\n\nRemoved: `alone`\n" in text
    assert (
        "\n## Changes of several presets\n\n**`profiles/base.toml:5` → 4 presets**\n\n"
        "| | change | risk |\n|---|---|---|\n"
        "| `~` | `hccl_timeout 1836 → 1904 s` |" in text
    )
    assert text.count("| `~` | `hccl_timeout 1836") == 1, "which all four share"
    assert (
        "\n## `base` 1.1.0\n\nA minor step after 1.0.0:\n\n"
        "- `changed: hccl_timeout 1836 → 1904 s`\n\n"
    ) in text
    assert text.endswith(
        "\n## 2 presets follow `base@1.1.0`\n\n- `a/two` 1.0.0 → 1.1.0 (minor)\n"
        "- `ranged` 1.0.0 → 1.1.0 (minor)\n"
    )
    assert run("release", "--all", "--yes", "--format", "markdown", "-o", "notes.md").code == 0
    assert Path("notes.md").read_text() == text
    assert run("release", "alone", "--dry-run", "--format", "markdown").code == 2


def test_a_rename_is_told_as_one_and_a_removal_is_not(repo: Repo, run: Run) -> None:
    assert run("release", "--all", "--yes").code == 0
    alone = '[profile]\nscenario = "training"\n[options]\nhcom_parallel = true\n'
    repo.commit(
        {
            "alone": None,
            "single": alone,
            "ranged": None,
            "fresh": '[profile]\nscenario = "training"\n[options]\nhccl_timeout = 9\n',
        }
    )
    text = run("release", "--all", "--dry-run", "--format", "markdown").out
    assert text.startswith(
        "# v2.0.0\n\nA major step after 1.0.0:\n\n- `removed: ranged`\n"
        "- `renamed: alone → single`\n\nRemoved: `ranged`\n"
    )
    assert "\n\nRenamed: `alone` → `single`\n" in text
    assert "- `only the name changed, from alone`" in text
    store = json.loads(run("release", "--all", "--dry-run", "--format", "json").out)["store"]
    assert store["removed"] == ["ranged"]
    assert store["renamed"] == [{"was": "alone", "name": "single"}]
    assert run("release", "--all", "--yes").code == 0
    record = repo.git("tag", "-l", "--format=%(contents)", "v2.0.0")
    assert "renamed: alone → single\n" in record
    assert "removed: alone" not in record


def test_a_changelog_is_what_the_tags_say(repo: Repo, run: Run) -> None:
    expect(run("list", "--versions"), 0, "nothing in profiles has been released yet")
    assert run("release", "--all", "--yes").code == 0
    repo.commit({"base": BASE.format(1904)})
    assert run("release", "--all", "--yes").code == 0
    assert run("yank", "base@1.0.0", "--why", "slow").code == 0
    text = run("list", "--versions", "--format", "markdown").out
    assert re.match(r"# Changelog\n\n## The whole store\n\n### 1\.1\.0 \(\d{4}-\d\d-\d\d\)\n", text)
    assert "## `base`\n\n### 1.1.0 (" in text
    assert "    ~ hccl_timeout 1836 → 1904 s" in text
    assert "\n\n**Yanked**: `slow`\n\n    the first release\n" in text
    assert "Digest" not in text


GRADUAL = (
    '[profile]\ndescription = "one of a kind"\n\n[options]\nhccl_timeout = 555\n'
    "iterations_per_loop = 55\nhcom_parallel = true\n"
)


def test_a_changelog_goes_on_under_a_new_name_and_says_what_is_gone(repo: Repo, run: Run) -> None:
    repo.commit({"p55": GRADUAL, "short": "[options]\nhccl_timeout = 7\n"})
    assert run("release", "--all", "--yes").code == 0
    repo.git("mv", "profiles/p55.toml", "profiles/q55.toml")
    repo.commit(message="rename")
    assert run("release", "q55").code == 0
    repo.git("mv", "profiles/q55.toml", "profiles/r55.toml")
    repo.git("rm", "-q", "profiles/short.toml")
    repo.commit(message="rename again, remove one")
    text = run("list", "--versions", "--format", "markdown").out
    sections = {part.split("\n")[0]: part for part in text.split("\n## ")}
    found = [
        line.replace(line[line.index("(") : line.index(")") + 1], "")
        for line in sections["`r55`"].split("\n")
        if line.startswith("### ")
    ]
    assert found == ["### 1.0.1 , as `q55`", "### 1.0.0 , as `p55`"]
    assert sections["`p55`"] == "`p55`\n\nGoes on as `r55`.\n"
    assert sections["`q55`"] == "`q55`\n\nGoes on as `r55`.\n"
    assert "\nThe preset no longer exists.\n\n### 1.0.0 (" in sections["`short`"]
    assert "no longer exists" not in sections["`base`"] + sections["The whole store"]
    repo.commit({"p55": "[options]\nhccl_timeout = 8\n"})
    assert run("release", "p55", "3.0.0").code == 0
    text = run("list", "--versions", "--format", "markdown").out
    assert "\n## `p55`\n\nGoes on as `r55`.\n\n### 3.0.0 (" in text, (
        "another preset has the old name"
    )


def test_a_released_preset_that_is_gone_is_told_until_a_version_of_the_store_says_it(
    repo: Repo, run: Run
) -> None:
    repo.commit(
        {
            "p55": GRADUAL,
            "short": "[options]\nhccl_timeout = 7\n",
            "never": "[options]\nhccl_timeout = 9\n",
        }
    )
    for name in ("p55", "short", "base"):
        assert run("release", name, "1.0.0").code == 0
    repo.git("mv", "profiles/p55.toml", "profiles/q55.toml")
    repo.git("rm", "-q", "profiles/short.toml", "profiles/never.toml")
    repo.commit(message="rename one, remove two")
    note = (
        "1 released preset is gone: short@1.0.0; the next "
        "version of the store says so (npuprof release --all)"
    )
    expect(run("release", "--changed", "--dry-run"), 0, note)
    assert json.loads(run("release", "--changed", "--dry-run", "--format", "json").out)[
        "removed"
    ] == ["short@1.0.0"]
    for form, expected in (
        ("text", "was p55 until 1.0.0"),
        ("markdown", "Was `p55 until 1.0.0`."),
        ("json", '"former": "p55 until 1.0.0"'),
    ):
        expect(run("release", "--changed", "--dry-run", "--format", form), 0, expected)
    assert note in run("release", "--changed", "--yes").err
    assert note in run("release", "--changed").err, "also where there is nothing to tag"
    assert run("release", "--all", "--yes").code == 0
    assert "gone" not in run("release", "--changed").err, (
        "a first version of the store has never had it"
    )
    repo.git("rm", "-q", "profiles/q55.toml")
    repo.commit(message="remove one more")
    assert "gone: q55@1.0.1;" in run("release", "--changed").err
    assert "removed: q55" in run("release", "--all", "--yes").out


# -- pushing --------------------------------------------------------------------------------------


@pytest.fixture
def remote(repo: Repo, tmp_path: Path) -> Repo:
    """A bare repository that the branch is pushed to, under a name that is not origin."""
    made = Repo(tmp_path / "remote.git", init=False)
    made.folder.mkdir()
    made.git("init", "-q", "--bare")
    repo.git("remote", "add", "team", str(made.folder))
    return made


def test_a_push_takes_the_new_tags_and_nothing_else(repo: Repo, remote: Repo, run: Run) -> None:
    repo.git("tag", "-a", "other", "-m", "x")
    touched = repo.folder / "touched"
    for key, value in (
        ("receivepack", f"touch {touched}; git-receive-pack"),
        ("uploadpack", f"touch {touched}; git-upload-pack"),
    ):
        repo.git("config", f"remote.team.{key}", value)
    repo.git("config", "push.followTags", "true")
    done = run("release", "--all", "--yes", "--push")
    assert done.code == 0, done.err
    assert sorted(remote.git("tag").split()) == sorted(set(repo.git("tag").split()) - {"other"})
    assert remote.git("for-each-ref", "refs/heads") == ""
    assert "to team" in done.err
    done = run("yank", "base@1.0.0", "--why", "slow", "--push")
    assert "base/v1.0.0.yanked" in remote.git("tag").split(), done.err
    assert not touched.exists(), "no program of the other side but git's own is started"


def refuse_pushes(remote: Repo, condition: str) -> Path:
    """Let a remote refuse the refs that meet a condition of the shell.

    Return the hook that does.
    """
    hook = remote.folder / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"#!/bin/sh\n{condition} || exit 0\n"
        'echo "no tags on Fridays" >&2\necho "nor before" >&2\nexit 1\n'
    )
    hook.chmod(0o755)
    return hook


def test_a_push_that_fails_is_told_and_the_tags_stay(repo: Repo, remote: Repo, run: Run) -> None:
    refuse_pushes(remote, '[ "$1" = refs/tags/v1.0.0 ]')
    expect(
        run("release", "--all", "--yes", "--push"),
        2,
        "the tags are made, and team did not take them",
        "no tags on Fridays; nor before; ",
        "; v1.0.0: hook declined\n",
        "git push --atomic team",
    )
    assert len(repo.git("tag").split()) == 6
    assert remote.git("tag") == "", "all or none there, too"


def test_a_version_that_somebody_else_pushed_first_is_told_with_what_to_do(
    repo: Repo, remote: Repo, run: Run, tmp_path: Path
) -> None:
    assert run("release", "base").code == 0
    other = Repo(tmp_path / "other")
    other.commit({"base": BASE.format(7)})
    other.release("base", "1.0.0")
    other.git("push", "-q", str(remote.folder), "base/v1.0.0")
    repo.git("tag", "-d", "base/v1.0.0")
    expect(
        run("release", "--all", "--yes", "--push"),
        2,
        "why: base/v1.0.0: already exists\n",
        "it is another there: take yours away (git tag -d base/v1.0.0)",
    )


def test_a_yank_whose_push_failed_is_pushed_when_it_is_said_again(
    repo: Repo, remote: Repo, run: Run
) -> None:
    assert run("release", "base", "--push").code == 0
    hook = refuse_pushes(remote, "true")
    arguments = ["yank", "base@1.0.0", "--why", "slow", "--push"]
    assert run(*arguments).code == 2
    hook.unlink()
    assert "yanked already: slow" in run("yank", "base@1.0.0", "--why", "other", "--push").err
    assert run(*arguments).code == 0
    assert "base/v1.0.0.yanked" in remote.git("tag").split()


def test_who_loses_against_another_release_is_told_in_words_and_has_no_tag(
    repo: Repo, run: Run, tmp_path: Path
) -> None:
    program = tmp_path / "signer"  # at work between the look at what is there and the tags
    other = (
        "env -u GIT_DIR -u GIT_OBJECT_DIRECTORY git -C "
        f"{repo.folder} update-ref refs/tags/base/v1.0.0 HEAD"
    )
    program.write_text(
        f"#!/bin/sh\ncat > /dev/null\n{other}\necho '[GNUPG:] SIG_CREATED ' >&2\n"
        "echo '-----BEGIN PGP SIGNATURE-----'\n"
    )
    program.chmod(0o755)
    for key, value in (("tag.gpgSign", "true"), ("gpg.program", str(program))):
        repo.git("config", key, value)
    done = run("release", "--all", "--yes")
    expect(
        done,
        2,
        "the tag base/v1.0.0 exists already",
        "made it meanwhile; this one has made no tag.",
        "run npuprof release again, which recomputes the plan",
    )
    assert "lock" not in done.err
    assert repo.git("tag") == "base/v1.0.0"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "team"),
        ({"branch.main.remote": "one"}, "one"),
        ({"branch.main.pushRemote": "three", "remote.pushDefault": "two"}, "three"),
    ],
)
def test_the_command_to_type_names_the_remote_of_the_branch(
    settings: dict[str, str], name: str, repo: Repo, remote: Repo, run: Run
) -> None:
    for key, value in settings.items():
        repo.git("config", key, value)
    assert f"share it with git push {name} base/v1.0.0" in run("release", "base").err


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ssh://nobody@nowhere/presets.git", "team sent nothing for 1 seconds"),
        ("ext::sh -c touch% {touched}", "over ssh, https and file only, not over ext"),
    ],
)
def test_a_push_goes_by_ssh_https_or_file_and_is_given_up_where_nothing_comes(
    address: str,
    message: str,
    repo: Repo,
    remote: Repo,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    touched = tmp_path / "touched"
    monkeypatch.setenv("NPUPROF_TIMEOUT", "1")
    monkeypatch.setenv("GIT_SSH_COMMAND", "sleep 100;")
    repo.git("remote", "set-url", "team", address.format(touched=touched))
    repo.git("config", "remote.team.receivepack", f"touch {touched}; git-receive-pack")
    repo.git("config", "remote.team.uploadpack", f"touch {touched}; git-upload-pack")
    expect(run("release", "base", "--push"), 2, message)
    assert repo.git("tag") == "base/v1.0.0"
    assert not touched.exists()


def test_a_push_does_not_start_the_ssh_that_only_the_repository_names(
    repo: Repo, remote: Repo, run: Run, tmp_path: Path
) -> None:
    repo.git("config", "core.sshCommand", f"touch {tmp_path}/touched;:")
    repo.git("remote", "set-url", "team", "ssh://127.0.0.1:9/x")
    assert run("release", "base", "--push").code == 2
    assert not (tmp_path / "touched").exists()


def test_a_server_that_knows_no_all_or_none_is_told_with_the_push_that_it_takes(
    repo: Repo, remote: Repo, run: Run
) -> None:
    remote.git("config", "receive.advertiseAtomic", "false")
    done = run("release", "--all", "--yes", "--push")
    assert done.code == 2
    assert "The server cannot take all or none of several tags." in done.err
    typed = done.err.partition("interrupted halfway: ")[2].splitlines()[0].split()
    assert typed[:3] == ["git", "push", "team"]
    repo.git(*typed[1:])
    assert sorted(remote.git("tag").split()) == sorted(repo.git("tag").split())


def test_without_a_remote_no_tag_is_made(repo: Repo, run: Run) -> None:
    for what in (["base"], ["--all", "--yes"]):
        expect(run("release", *what, "--push"), 2, "there is no remote to push to")
        assert repo.git("tag") == ""
